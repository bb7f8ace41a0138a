//! Row kernels: the unit of compiled code on a CPU.
//!
//! A kernel runs some updates of one stage over a list of runs of consecutive groups and a range of the inner axis: for each group
//! in turn, for each index of the range, all its updates. It contains no boundary conditions and no conditions on indices: which
//! groups, ranges and updates are right is decided by who calls it, and ghosts ([`crate::scheme::Grid::ghosts`]) are kept in memory.
//! A tile has many short runs, so one call takes all that share a set of updates.

use crate::lattice::Interval;
use crate::layout::Layout;
use crate::scheme::{Scheme, StageId, Update};
use std::fmt;

/// A set of updates of one stage, by index; a stage has at most 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpdateSet(pub u64);

impl UpdateSet {
    pub fn all(count: usize) -> Self {
        Self(if count >= 64 {
            u64::MAX
        } else {
            (1 << count) - 1
        })
    }

    pub fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let next = (left != 0).then(|| left.trailing_zeros() as usize);
            left &= left.wrapping_sub(1);
            next
        })
    }
}

/// What one compiled function computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKernel {
    pub stage: StageId,
    /// The step's number modulo [`Scheme::phases`].
    pub phase: u32,
    pub updates: UpdateSet,
}

impl RowKernel {
    pub fn updates<'a>(&self, scheme: &'a Scheme) -> impl Iterator<Item = &'a Update> {
        let set = self.updates;
        scheme.stages[self.stage.index()]
            .updates
            .iter()
            .enumerate()
            .filter(move |(i, _)| set.contains(*i))
            .map(|(_, u)| u)
    }
}

impl fmt::Display for RowKernel {
    /// Also the symbol's name, behind a prefix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_p{}_u{:x}", self.stage, self.phase, self.updates.0)
    }
}

/// Everything that a back end needs to know to compile a calculation.
#[derive(Clone, Debug)]
pub struct KernelSet {
    pub layout: Layout,
    pub kernels: Vec<RowKernel>,
}

impl KernelSet {
    /// From a group to the next one of a kernel's run, in elements: along the middle axis, or the outer axis if there is no middle axis.
    pub fn run_stride(&self, scheme: &Scheme) -> i64 {
        self.layout.stride[run_axis(scheme)]
    }
}

/// The axis along which a kernel's groups follow each other.
pub fn run_axis(scheme: &Scheme) -> crate::lattice::Axis {
    use crate::lattice::Axis;
    if scheme.grid.axes[Axis::MIDDLE].is_some() {
        Axis::MIDDLE
    } else {
        Axis::OUTER
    }
}

/// Consecutive groups along [`run_axis`], as kernels take them.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Of the first group, in bytes from the call's base.
    pub offset: i64,
    /// Nothing happens if this is not positive.
    pub groups: i64,
}

/// `kernel(base, runs, count, lo, hi)`: `base` points at the element of row 0, inner index 0 of some group, from which the `count`
/// runs count their offsets; inner indices `lo..hi`. Nothing happens if `count <= 0` or `lo >= hi`.
///
/// The caller guarantees that `lo..hi` lies in the extents of the targets, that all that the updates read and write at these groups
/// and indices lies in the array of the layout, and that no other thread writes it meanwhile. Kernels may read up to two lines of
/// [`crate::layout::ALIGNMENT`] bytes more to either side (and drop what they find), never write there.
pub type RowFn =
    unsafe extern "C" fn(base: *mut u8, runs: *const Run, count: i64, lo: i64, hi: i64);

/// Executable kernels, in the order of their [`KernelSet`].
pub trait Code: Send + Sync {
    /// Runs the kernel with this index.
    ///
    /// # Safety
    /// As for [`RowFn`]. The index must be one of the set's.
    unsafe fn run(&self, kernel: usize, base: *mut u8, runs: &[Run], range: Interval);
    /// For reports: `llvm 22.1.2, znver5, 512-bit`.
    fn description(&self) -> String;
}
