//! Features that not every GPU has.

use std::fmt;

/// Something that not every GPU can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Copies from global to shared memory that threads do not wait for.
    AsyncCopy,
    /// Barriers in shared memory that count arrivals.
    SharedBarrier,
    /// Copies of whole pieces between global and shared memory, counted in bytes by barriers.
    BulkCopy,
    /// Blocks that run side by side and see each other's shared memory.
    Cluster,
    /// Registers moved between the warps of a block.
    RegisterShift,
    /// Two single-precision operations in one instruction.
    PairedSingle,
    /// Launches whose blocks begin before the launch before has ended, and wait for its end by themselves.
    EarlyLaunch,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Feature::AsyncCopy => "asynchronous copies",
            Feature::SharedBarrier => "barriers in shared memory",
            Feature::BulkCopy => "bulk copies",
            Feature::Cluster => "clusters of blocks",
            Feature::RegisterShift => "registers moved between warps",
            Feature::PairedSingle => "paired single precision",
            Feature::EarlyLaunch => "early launches",
        })
    }
}
