//! Periods of which ends of the grid cut rows off, as the same straight-line code as interior periods.
//!
//! A row that is in no region keeps its value. Values that memory does not have are never used, so they may be
//! arbitrary: zeros are copied and loaded instead. Reads beyond mirrors take values that the row reads anyway
//! ([`crate::tower::MirroredReads`]). So each row needs one condition more, and some for each mirror, the same for all
//! threads, and no row is read again from memory in each stage, as in boundary periods ([`super::boundary`]).
//! Boundary periods and steps of other schedules find ghosts in memory, so rows that leave bring them.

use super::super::abi::TaskWord;
use super::super::ir::Operand;
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::context::{Context, in_interval};
use super::task;
use crate::lattice::Axis;
use crate::scheme::{ComponentId, Update};
use crate::tower::{Group, GroupBox, RowRef, RowUpdate, written_groups};

/// A period of which ends may cut rows off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predicate {
    /// The index of its origin in the array.
    pub at: [Operand; 2],
    /// The plane of its origin, as the array has it.
    pub plane: Operand,
}

impl Predicate {
    /// The period of this number of the task whose words these are.
    pub fn new(
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        words: Operand,
        number: Operand,
    ) -> Predicate {
        let mut at = task::interior_origin(k, context, words);
        for (at, by) in at.iter_mut().zip(context.towers().advance.array()) {
            let by = k.int(IntOp::Mul, number, Operand::i32(by as i32));
            *at = k.int(IntOp::Add, *at, by);
        }
        let mut plane = at[0];
        if context.unrolled() && !context.planes_alike() {
            let rotation = task::word(k, words, TaskWord::SHIFT[0]);
            plane = k.int(IntOp::Sub, plane, rotation);
        }
        Predicate { at, plane }
    }

    /// Whether the group at the distance `by` from the origin lies in a box.
    fn lies(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        by: Group,
        groups: GroupBox,
    ) -> Operand {
        let GroupBox { x, y } = groups.seen_from(by);
        if context.planes_alike() {
            return in_interval(k, self.at[1], y);
        }
        let [x, y] = [(0, x), (1, y)].map(|(n, range)| in_interval(k, self.at[n], range));
        k.int(IntOp::And, x, y)
    }

    /// Whether memory has a row. Ghosts beyond mirrors are of no use, and others may write them meanwhile.
    pub fn has(&self, k: &mut Kernel<'_>, context: &Context<'_>, row: RowRef) -> Operand {
        let held = GroupBox {
            x: context.layout.visible(Axis::OUTER),
            y: context.layout.visible(Axis::MIDDLE),
        };
        let component = context.layout.component_of(row.row);
        let own = component.map(|id| context.towers().mirrored.own(id));
        self.lies(
            k,
            context,
            row.at,
            own.map_or(held, |own| held.intersect(own)),
        )
    }

    /// Whether the group at the distance `by` from the origin has an index along an axis, the first or the second one.
    pub fn is_at(&self, k: &mut Kernel<'_>, by: Group, axis: usize, index: i64) -> Operand {
        let index = index - by.array()[axis];
        k.compare(IntCmp::Eq, self.at[axis], Operand::i32(index as i32))
    }

    /// Whether an update acts on a row.
    pub fn acts(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        update: &Update,
        row: &RowUpdate,
    ) -> Operand {
        let region = GroupBox {
            x: update.region[Axis::OUTER],
            y: update.region[Axis::MIDDLE],
        };
        self.lies(k, context, row.at, region)
    }

    /// Whether a row of a component has values that updates may write.
    pub fn stores(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        component: ComponentId,
        row: RowRef,
    ) -> Operand {
        let written = written_groups(context.scheme, component);
        self.lies(k, context, row.at, written)
    }
}
