//! The box of a volume source, and where a thread and its rows lie in it.

use super::super::ir::{Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::context::Context;
use super::task;
use crate::lattice::Interval;
use crate::tower::RowUpdate;

/// The indices of a box along an axis.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub lo: Operand,
    pub len: Operand,
}

/// The box of a source, along each axis.
#[derive(Clone, Copy)]
pub(super) struct SourceBox(pub [Range; 3]);

/// Indices of a row along the first two axes, and whether the thread has something to do there.
#[derive(Clone, Copy)]
pub(super) struct RowPlace {
    pub at: [Operand; 2],
    /// Its plane, as the array has it.
    pub plane: Operand,
    pub inside: Operand,
}

/// Where a thread is that a source concerns: from the first index of its box along the inner axis, and in the periods
/// of the time block.
#[derive(Clone, Copy)]
pub(super) struct Within {
    pub z: Operand,
    pub period: Operand,
}

impl SourceBox {
    /// Along the inner axis.
    pub fn inner(&self) -> Range {
        let SourceBox([.., inner]) = *self;
        inner
    }

    /// Whether a row is in the box, and the thread has something to do there.
    pub fn has(&self, k: &mut Kernel<'_>, row: RowPlace) -> Operand {
        let mut inside = row.inside;
        for (at, range) in row.at.into_iter().zip(self.0) {
            let from = k.int(IntOp::Sub, at, range.lo);
            let within = k.compare(IntCmp::Below, from, range.len);
            inside = k.int(IntOp::And, inside, within);
        }
        inside
    }

    /// Whether all of a period's rows, and the groups between them, are in the box.
    pub fn is_around(&self, k: &mut Kernel<'_>, at: [Operand; 2], rows: &[RowUpdate]) -> Operand {
        let mut around = Operand::int(Type::I1, 1);
        for (n, (at, range)) in at.into_iter().zip(self.0).enumerate() {
            let hull = hull_along(rows, n);
            for end in [hull.lo, hull.hi - 1] {
                let end = k.int(IntOp::Add, at, Operand::i32(end as i32));
                let from = k.int(IntOp::Sub, end, range.lo);
                let within = k.compare(IntCmp::Below, from, range.len);
                around = k.int(IntOp::And, around, within);
            }
        }
        around
    }

    /// Whether some of a period's rows, or of the groups between them, may be in the box.
    pub fn is_near(&self, k: &mut Kernel<'_>, at: [Operand; 2], rows: &[RowUpdate]) -> Operand {
        let mut near = Operand::int(Type::I1, 1);
        for (n, (at, range)) in at.into_iter().zip(self.0).enumerate() {
            let hull = hull_along(rows, n);
            let last = k.int(IntOp::Add, at, Operand::i32(hull.hi as i32 - 1));
            let from = k.int(IntOp::Sub, last, range.lo);
            let more = Operand::i32(hull.len() as i32 - 1);
            // There is no register to keep it in.
            let len = k.again(range.len);
            let len = k.int(IntOp::Add, len, more);
            let within = k.compare(IntCmp::Below, from, len);
            near = k.int(IntOp::And, near, within);
        }
        near
    }
}

/// The index of the origin of a period of the time block.
pub(super) fn origin(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    period: Operand,
    words: Operand,
) -> [Operand; 2] {
    let at = task::interior_origin(k, context, words);
    let advance = context.towers().advance.array();
    [0, 1].map(|n| {
        let by = Operand::i32(advance[n] as i32);
        let by = k.int(IntOp::Mul, period, by);
        k.int(IntOp::Add, at[n], by)
    })
}

/// The rows of a period along one of the first two axes, from its origin.
fn hull_along(rows: &[RowUpdate], axis: usize) -> Interval {
    let offsets = rows.iter().map(|row| row.at.array()[axis]);
    let none = Interval::new(0, 0);
    offsets.fold(none, |hull, at| hull.hull(Interval::new(at, at + 1)))
}
