//! Time blocks of any kind: of towers, or of pyramids.

use super::patches::{CompiledPatches, PatchBlocks};
use super::tower_blocks::TowerBlocks;
use super::towers::CompiledTowers;
use torre_compiler::backend::gpu::Ptx;

/// The time blocks of a schedule, compiled.
#[derive(Clone, Debug)]
pub enum CompiledBlocks {
    Towers(Box<CompiledTowers>),
    Patches(Box<CompiledPatches>),
}

impl CompiledBlocks {
    /// Their kernels.
    pub fn ptx(&self) -> &Ptx {
        match self {
            CompiledBlocks::Towers(towers) => &towers.ptx,
            CompiledBlocks::Patches(patches) => &patches.ptx,
        }
    }

    /// The towers, if they are such.
    pub fn towers(&self) -> Option<&CompiledTowers> {
        match self {
            CompiledBlocks::Towers(towers) => Some(towers),
            CompiledBlocks::Patches(_) => None,
        }
    }
}

/// The time blocks of a calculation, on a device.
#[derive(Debug)]
pub enum TimeBlocks {
    Towers(Box<TowerBlocks>),
    Patches(Box<PatchBlocks>),
}

impl TimeBlocks {
    /// The steps of the time block that begins at a step, if nothing is due for `room` steps.
    pub(super) fn next(&self, step: u64, room: u64) -> Option<u64> {
        match self {
            TimeBlocks::Towers(towers) => towers.heights.next(step, room),
            TimeBlocks::Patches(patches) => patches.next(step, room),
        }
    }

    /// Bytes of memory that a thread has of its own, for values that registers do not hold.
    pub(super) fn spilled(&self) -> u64 {
        match self {
            TimeBlocks::Towers(towers) => towers.spilled,
            TimeBlocks::Patches(patches) => patches.spilled,
        }
    }

    /// Whether receivers record values that no time block records.
    pub(super) fn leave_out(&self) -> bool {
        match self {
            TimeBlocks::Towers(towers) => towers.leaves_out,
            TimeBlocks::Patches(patches) => patches.leaves_out,
        }
    }
}
