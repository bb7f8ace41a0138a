//! The parameters of the code of all threads, and the values of a thread.

use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{IntCmp, IntOp, Kernel};
use crate::lattice::Interval;
use crate::layout::Layout;
use crate::patch::PatchProgram;
use crate::scheme::Scheme;

/// The parameters of the code of all threads.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub scheme: &'a Scheme,
    pub layout: &'a Layout,
    pub program: &'a PatchProgram,
    /// Whether the launch before may still run when blocks begin.
    pub early: bool,
    pub real: Type,
    /// Bytes of a value.
    pub bytes: i64,
}

/// The kinds of tiles, with code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surroundings {
    /// Cells alone.
    Bare,
    /// Ends of the grid, zones, sources and probes.
    Ends,
}

/// The values of a thread: per row and cell of its patch.
pub struct Values {
    pub rows: Vec<Vec<Operand>>,
    /// Per coefficient of the program; none where they are in shared memory.
    pub coefs: Vec<Vec<Operand>>,
}

/// Whether an index lies in an interval.
pub(super) fn within(k: &mut Kernel<'_>, index: Operand, interval: Interval) -> Operand {
    let bound = |n: i64| Operand::i32(n.clamp(i32::MIN.into(), i32::MAX.into()) as i32);
    let begun = k.compare(IntCmp::Ge, index, bound(interval.lo));
    let before = k.compare(IntCmp::Lt, index, bound(interval.hi));
    k.int(IntOp::And, begun, before)
}
