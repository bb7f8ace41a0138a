//! Where cells of a patch lie in their tile, by conditions that may be known before a kernel runs: with one thread
//! along an axis each cell of a patch has its place there.

use super::context::{Context, within};
use super::place::Patch;
use crate::backend::gpu::ir::{Operand, Type};
use crate::backend::gpu::kernel::{IntCmp, IntOp, Kernel};
use crate::lattice::Interval;
use crate::patch::{Along, Shape};

/// A condition.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    Never,
    Always,
    Where(Operand),
}

impl Known {
    pub fn and(self, k: &mut Kernel<'_>, other: Known) -> Known {
        match (self, other) {
            (Known::Never, _) | (_, Known::Never) => Known::Never,
            (Known::Always, known) | (known, Known::Always) => known,
            (Known::Where(one), Known::Where(other)) => Known::Where(k.int(IntOp::And, one, other)),
        }
    }

    pub fn or(self, k: &mut Kernel<'_>, other: Known) -> Known {
        match (self, other) {
            (Known::Always, _) | (_, Known::Always) => Known::Always,
            (Known::Never, known) | (known, Known::Never) => known,
            (Known::Where(one), Known::Where(other)) => Known::Where(k.int(IntOp::Or, one, other)),
        }
    }

    pub fn not(self, k: &mut Kernel<'_>) -> Known {
        match self {
            Known::Never => Known::Always,
            Known::Always => Known::Never,
            Known::Where(one) => Known::Where(k.int(IntOp::Xor, one, Operand::int(Type::I1, 1))),
        }
    }

    /// Code for threads for which it holds.
    pub fn when(self, k: &mut Kernel<'_>, body: impl FnOnce(&mut Kernel<'_>)) {
        match self {
            Known::Never => {}
            Known::Always => body(k),
            Known::Where(condition) => k.when(condition, body),
        }
    }

    pub fn operand(self) -> Operand {
        match self {
            Known::Never => Operand::int(Type::I1, 0),
            Known::Always => Operand::int(Type::I1, 1),
            Known::Where(condition) => condition,
        }
    }
}

/// The cells of a patch in their tile.
pub(super) struct InTile<'a> {
    shape: &'a Shape,
    along: &'a [Along; 3],
    /// The patch's first cell, found anew: there are no registers to keep the places of all cells.
    local: [Operand; 3],
    /// Whether conditions ask for the thread: cells that the same threads have in an interval share theirs, which takes
    /// fewer registers. Where there are enough of them the code is slower, as the assembler makes jumps of it.
    by_threads: bool,
}

impl<'a> InTile<'a> {
    pub fn new(k: &mut Kernel<'_>, context: &Context<'a>, patch: &Patch) -> InTile<'a> {
        InTile {
            shape: &context.program.shape,
            along: &context.program.along,
            local: context.local(k, patch),
            by_threads: context.program.exchanges_each_round(),
        }
    }

    /// Whether a cell of the patch along an axis lies between some of the tile.
    pub fn within(&self, k: &mut Kernel<'_>, n: usize, cell: i64, own: Interval) -> Known {
        if self.shape.threads[n] == 1 {
            return match own.contains(cell) {
                true => Known::Always,
                false => Known::Never,
            };
        }
        if self.by_threads {
            return self.of_threads(k, n, self.shape.threads_with(n, cell, own));
        }
        let local = k.int(IntOp::Add, self.local[n], Operand::i32(cell as i32));
        Known::Where(within(k, local, own))
    }

    /// Whether the thread is one of some along an axis.
    fn of_threads(&self, k: &mut Kernel<'_>, n: usize, own: Interval) -> Known {
        if own.is_empty() {
            return Known::Never;
        }
        let mut beside = |is_needed: bool, cmp: IntCmp, thread: i64| match is_needed {
            false => Known::Always,
            true => {
                let cell = Operand::i32((thread * self.shape.patch[n]) as i32);
                Known::Where(k.compare(cmp, self.local[n], cell))
            }
        };
        let begun = beside(own.lo > 0, IntCmp::Ge, own.lo);
        let before = beside(own.hi < self.shape.threads[n], IntCmp::Lt, own.hi);
        begun.and(k, before)
    }

    fn base_of(&self, n: usize) -> Interval {
        let along = &self.along[n];
        Interval::new(along.halo[0], along.halo[0] + along.base)
    }

    /// Whether it lies in the base.
    pub fn base(&self, k: &mut Kernel<'_>, n: usize, cell: i64) -> Known {
        self.within(k, n, cell, self.base_of(n))
    }

    /// Whether it lies in a rim of the base, whose widths are given for the lower and the upper end.
    pub fn rim(&self, k: &mut Kernel<'_>, n: usize, cell: i64, [below, above]: [i64; 2]) -> Known {
        let base = self.base_of(n);
        let [lower, upper] = [
            Interval::new(base.lo, base.lo + below),
            Interval::new(base.hi - above, base.hi),
        ];
        let [lower, upper] = [lower, upper].map(|rim| self.within(k, n, cell, rim));
        lower.or(k, upper)
    }

    /// Whether it lies in the base or at most these numbers of cells below and above it.
    pub fn near(&self, k: &mut Kernel<'_>, n: usize, cell: i64, [below, above]: [i64; 2]) -> Known {
        let base = self.base_of(n);
        let near = Interval::new(base.lo - below, base.hi + above);
        self.within(k, n, cell, near)
    }
}
