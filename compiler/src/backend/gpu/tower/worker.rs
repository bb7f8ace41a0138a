//! A compute thread: its values while it runs towers of one alignment.

use super::super::ir::{Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::cluster::first_index;
use super::context::{Context, Lane};
use super::ghosts_on_store::{LineEnds, Target};
use super::listed_ghosts::GhostList;
use super::predicate::Predicate;
use super::steer::rank;
use super::sync::Sync;
use super::z_block::{self, Between};
use super::{cluster, task};
use crate::lattice::Axis;
use crate::scheme::ComponentId;
use crate::tower::block::WARP;
use crate::tower::{RowRef, Written};
use std::rc::Rc;

#[derive(Clone)]
pub(super) struct Worker<'a> {
    pub context: Context<'a>,
    pub lane: Lane,
    /// `None` where no component has ghosts along the inner axis, or the thread does not know yet where they lie.
    pub ends: Option<Rc<LineEnds>>,
    pub sync: Sync<'a>,
    /// The words of the block's task.
    pub words: Operand,
    /// The list of ghosts along the inner axis in shared rows, where towers make them.
    pub ghosts: Option<GhostList<'a>>,
}

impl Lane {
    /// Of a thread of the block, with shared rows at a place.
    pub fn new(k: &mut Kernel<'_>, context: &Context<'_>, rows: Operand, thread: Operand) -> Lane {
        let slabs = context.slabs();
        let first = slabs.map(|slabs| {
            let rank = rank(k);
            first_index(k, slabs, rank)
        });
        let first = first.or_else(|| z_block::base(k, context));
        let shape = context.block().shared_row;
        let own = slabs.map_or(shape.length, |slabs| slabs.width);
        let idle = slabs.is_some() && own % WARP != 0;
        let mut local = thread;
        if idle {
            // Threads beyond the end of a slab see its last index.
            local = k.int(IntOp::Min, thread, Operand::i32(own as i32 - 1));
        }
        let [mut thread, mut seen] = [thread, local];
        if let Some(first) = first {
            [thread, seen] = [thread, local].map(|n| k.int(IntOp::Add, n, first));
        }
        if idle {
            let same = k.compare(IntCmp::Eq, thread, seen);
            let behind = Operand::i32(context.block().line_threads() as i32);
            thread = k.choose(same, thread, behind);
        }
        let last = Operand::i32(shape.length as i32 - 1);
        let at = k.int(IntOp::Min, seen, last);
        let index = k.resize(at, Type::I64);
        let at_zero = k.offset(rows, context.bytes(shape.before));
        let within = match first {
            Some(first) => {
                let mut within = k.int(IntOp::Sub, at, first);
                if let Some((slabs, beyond)) = slabs.and_then(|s| Some((s, s.idle?))) {
                    // No warp synchronises with warps beyond the end of the line.
                    let idle = (slabs.last - 1) / WARP * WARP + WARP;
                    let idle = k.compare(IntCmp::Ge, local, Operand::i32(idle as i32));
                    let rank = rank(k);
                    let is_last = cluster::is_last(k, slabs, rank);
                    let idle = k.int(IntOp::And, idle, is_last);
                    let beyond = k.int(IntOp::Max, local, Operand::i32(beyond as i32));
                    within = k.choose(idle, beyond, within);
                }
                k.resize(within, Type::I64)
            }
            None => index,
        };
        Lane {
            thread,
            index,
            own: k.advance(at_zero, within, context.real.bytes()),
            rows,
        }
    }
}

/// A row that a period leaves in memory.
#[derive(Clone, Copy)]
pub(super) struct Left {
    pub component: ComponentId,
    pub row: RowRef,
    /// The thread's value in memory.
    pub to: Operand,
    pub written: Written,
}

/// A row that appears again beyond ends of the first two axes.
#[derive(Clone, Copy)]
pub(super) struct GhostRow {
    pub component: ComponentId,
    /// Where the thread's value lies there.
    pub to: Operand,
    pub negated: bool,
}

impl<'a> Worker<'a> {
    /// The thread knows where its ghosts along the inner axis lie.
    pub fn with_ends(self, k: &mut Kernel<'_>) -> Worker<'a> {
        Worker {
            ends: LineEnds::new(k, &self.context, &self.lane).map(Rc::new),
            ..self
        }
    }

    /// Where the thread's values of an origin's group lie.
    pub fn at(&self, k: &mut Kernel<'_>, origin: Operand) -> Operand {
        k.advance(origin, self.lane.index, self.context.real.bytes())
    }

    /// Where a thread writes a row of a component.
    pub fn target(&self, component: ComponentId, to: Operand) -> Target<'_> {
        Target {
            component,
            to,
            ends: self.ends.as_deref(),
        }
    }

    /// The predicate of an interior period, where ends may cut rows off. `from_end`: the number of the period, counted
    /// from the end of the interior periods on.
    pub fn predicate(&self, k: &mut Kernel<'_>, from_end: Operand) -> Option<Predicate> {
        let predicated = self.context.predicated();
        predicated.then(|| self.place(k, from_end))
    }

    /// Where the interior period of this number lies, counted from the end of the interior periods on.
    pub fn place(&self, k: &mut Kernel<'_>, from_end: Operand) -> Predicate {
        let end = task::interior_end(k, self.words);
        let number = k.int(IntOp::Add, from_end, end);
        Predicate::new(k, &self.context, self.words, number)
    }

    /// Writes a value to a row in memory that a period leaves there: where the thread has had a part in the stages that
    /// wrote it, if lines are cut into z blocks.
    pub fn leave(
        &self,
        k: &mut Kernel<'_>,
        predicate: Option<Predicate>,
        between: Option<Between>,
        left: Left,
        value: Operand,
    ) {
        let Left {
            component,
            row,
            to,
            written,
        } = left;
        let there = predicate.map(|p| p.stores(k, &self.context, component, row));
        let wrote = between.map(|b| b.takes_part(k, &self.context, written.first, written.last));
        let stores = match (there, wrote) {
            (Some(there), Some(wrote)) => Some(k.int(IntOp::And, there, wrote)),
            (there, wrote) => there.or(wrote),
        };
        let target = self.target(component, to);
        match stores {
            None => self.context.store(k, &self.lane, target, value),
            Some(stores) => k.when(stores, |k| {
                self.context.store(k, &self.lane, target, value);
                if let Some(predicate) = predicate {
                    self.leave_ghosts(k, predicate, left, value);
                }
            }),
        }
    }

    /// Writes a row that leaves to its ghosts beyond closed mirrors.
    fn leave_ghosts(&self, k: &mut Kernel<'_>, predicate: Predicate, left: Left, value: Operand) {
        let context = &self.context;
        let Left {
            component, row, to, ..
        } = left;
        let ghosts = context.towers().mirrored.ghosts(component);
        let mut places: Vec<((usize, i64), Operand)> = Vec::new();
        let mut near = Operand::int(Type::I1, 0);
        let along = ghosts.iter().flat_map(|ghost| {
            let of = ghost.of.into_iter().enumerate();
            of.filter_map(|(axis, index)| Some((axis, index?)))
        });
        for place in along {
            if !places.iter().any(|(known, _)| *known == place) {
                let (axis, index) = place;
                let there = predicate.is_at(k, row.at, axis, index);
                near = k.int(IntOp::Or, near, there);
                places.push((place, there));
            }
        }
        if places.is_empty() {
            return;
        }
        // Most rows have no ghosts: one jump then, the same one for all threads.
        k.when(near, |k| {
            for ghost in ghosts {
                let of = places
                    .iter()
                    .filter(|(place, _)| ghost.of[place.0] == Some(place.1));
                let has = of.fold(None, |has, (_, there)| match has {
                    None => Some(*there),
                    Some(has) => Some(k.int(IntOp::And, has, *there)),
                });
                let Some(has) = has else { continue };
                let stride = [Axis::OUTER, Axis::MIDDLE].map(|axis| context.layout.stride[axis]);
                let by = ghost.by[0] * stride[0] + ghost.by[1] * stride[1];
                k.when(has, |k| {
                    let to = k.offset(to, context.bytes(by));
                    let ghost = GhostRow {
                        component,
                        to,
                        negated: ghost.negated,
                    };
                    self.write_ghost(k, ghost, value);
                });
            }
        });
    }

    /// Writes a row to where it appears again, with the sign that it has there.
    pub fn write_ghost(&self, k: &mut Kernel<'_>, ghost: GhostRow, value: Operand) {
        let Worker { context, lane, .. } = self;
        let GhostRow {
            component,
            to,
            negated,
        } = ghost;
        let value = match negated {
            true => opposite(k, context, lane, component, value),
            false => value,
        };
        context.store(k, lane, self.target(component, to), value);
    }
}

/// A row with the other sign, but for the zeros on a plane about which it is odd.
fn opposite(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    id: ComponentId,
    value: Operand,
) -> Operand {
    let negated = k.negated(value);
    let position = context.scheme.component(id).position;
    let live = context.scheme.grid.live(position)[Axis::INNER];
    if live.lo == 0 {
        return negated;
    }
    let inside = lane.is_within(k, live);
    k.choose(inside, negated, Operand::real(context.real, 0f64.to_bits()))
}
