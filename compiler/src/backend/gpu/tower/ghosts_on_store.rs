//! Ghosts along the inner axis, written by the threads that have their sources.
//!
//! Near an end of a line a value has a ghost beyond that end. The place of the ghost is the same for all components but
//! for a constant: on the lower side the ghost of index z is at -z, or a length of the ring farther; half-integer
//! positions lie one index lower. So a thread keeps one displacement, and a condition for each of a few kinds of
//! components: whether the thread has a ghost of them. A ghost is then one store more, with a condition. That matters,
//! as the warps at the ends of a line write them for each row, and all others wait for these.
//!
//! Ghosts of published values are written so in shared memory, and ghosts of stored values in memory, where memory
//! holds ghosts.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::context::{Context, Lane};
use crate::ghost::{AxisGhosts, Ghost};
use crate::lattice::{Axis, Interval};
use crate::scheme::{Boundary, ComponentId, Scheme};

/// Values with a ghost along the inner axis, at most one each.
type Round = Vec<(i64, Ghost)>;

/// The ghost of a component that a thread writes.
#[derive(Clone, Copy, Debug)]
struct OneGhost {
    /// The thread has one.
    has: Operand,
    /// Elements from the thread's ghost to it.
    by: i64,
    /// Whether ghosts have the other sign, on the lower and on the upper side.
    negated: [bool; 2],
}

/// The ends of the line, as a thread keeps them.
#[derive(Clone, Debug)]
pub(super) struct LineEnds {
    /// Bytes from the thread's value to its ghost.
    by: Operand,
    /// The thread's ghost in shared row 0.
    own: Operand,
    /// The thread is in the upper half of the line.
    upper: Operand,
    /// Per component; `None`: it has no ghosts, or others than these.
    ghosts: Vec<Option<OneGhost>>,
}

/// Where ghosts of a side lie: elements from index z, `factor * z + by`.
#[derive(Clone, Copy)]
struct Side {
    factor: i64,
    by: i64,
}

/// The ghosts of a component in rounds, in each of which a value has at most one.
fn rounds(scheme: &Scheme, id: ComponentId) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::new();
    for (source, ghost) in AxisGhosts::new(scheme, id, Axis::INNER).pairs() {
        let free = |round: &Round| round.iter().all(|&(other, _)| other != source);
        match rounds.iter_mut().find(|round| free(round)) {
            Some(round) => round.push((source, ghost)),
            None => rounds.push(vec![(source, ghost)]),
        }
    }
    rounds
}

impl LineEnds {
    /// `None` where no component has ghosts that lie so.
    pub fn new(k: &mut Kernel<'_>, context: &Context<'_>, lane: &Lane) -> Option<LineEnds> {
        let axis = Axis::INNER;
        let grid = &context.scheme.grid;
        let cells = grid.cells[axis];
        let half = cells / 2;
        let [below, above] = grid.boundary[axis];
        let side = |end: Boundary, ring: i64, mirror: i64| match end {
            Boundary::Periodic => Side {
                factor: 0,
                by: ring,
            },
            _ => Side {
                factor: -2,
                by: mirror,
            },
        };
        let sides = [side(below, cells, 0), side(above, -cells, 2 * cells)];
        let ids = context.scheme.component_ids();
        let rounds: Vec<Vec<Round>> = ids.map(|id| rounds(context.scheme, id)).collect();
        let found = rounds.iter().map(|rounds| one(rounds, sides, half));
        let found: Vec<Option<(i64, [bool; 2])>> = found.collect();
        if found.iter().all(Option::is_none) {
            return None;
        }
        let upper = k.compare(IntCmp::Ge, lane.thread, Operand::i32(half as i32));
        let [below, above] = sides.map(|Side { factor, by }| {
            let factor = Operand::i32(context.bytes(factor) as i32);
            let of = k.int(IntOp::Mul, lane.thread, factor);
            k.int(IntOp::Add, of, Operand::i32(context.bytes(by) as i32))
        });
        let by = k.choose(upper, above, below);
        // A thread that has a ghost of one component has one of all components with the same sources.
        let mut known: Vec<(Vec<i64>, Operand)> = Vec::new();
        let mut ghosts = Vec::new();
        for (found, rounds) in found.into_iter().zip(&rounds) {
            ghosts.push(found.map(|(by, negated)| {
                let sources: Vec<i64> = rounds[0].iter().map(|&(source, _)| source).collect();
                let same = known.iter().find(|(other, _)| *other == sources);
                let has = same.map(|(_, has)| *has).unwrap_or_else(|| {
                    let has = holds(k, lane.thread, sources.iter().copied());
                    known.push((sources, has));
                    has
                });
                OneGhost { has, by, negated }
            }));
        }
        Some(LineEnds {
            by,
            own: k.advance_by_word(lane.own, by),
            upper,
            ghosts,
        })
    }
}

/// A row of a component that a thread writes.
#[derive(Clone, Copy)]
pub(super) struct Target<'e> {
    pub component: ComponentId,
    /// The thread's value.
    pub to: Operand,
    /// The ends of the line, as the thread keeps them.
    pub ends: Option<&'e LineEnds>,
}

impl Context<'_> {
    /// Writes a value where the row has one.
    pub fn write_values(
        &self,
        k: &mut Kernel<'_>,
        lane: &Lane,
        component: ComponentId,
        to: Operand,
        value: Operand,
    ) {
        let extent = self.scheme.extent(component)[Axis::INNER];
        let bytes = self.real.bytes();
        self.within(k, lane, extent, |k| {
            k.store(value, to, bytes, Access::Plain)
        });
    }

    /// Writes a value to a shared row, with its ghost along the inner axis.
    pub fn write_shared(
        &self,
        k: &mut Kernel<'_>,
        lane: &Lane,
        target: Target<'_>,
        shared: usize,
        value: Operand,
    ) {
        let begin = self.layout.row_begin(self.layout.row(target.component, 0));
        let by = self.bytes(shared as i64 * self.block().shared_row.stride + begin);
        self.write_whole(k, lane, target, value, |k, ends| k.offset(ends.own, by));
    }

    /// Writes zeros to a shared row at some indices beyond its ends, by the thread beside each end.
    pub fn write_zeros(&self, k: &mut Kernel<'_>, lane: &Lane, target: Target<'_>, places: &[i64]) {
        let extent = self.scheme.extent(target.component)[Axis::INNER];
        let bytes = self.real.bytes();
        for place in places {
            let near = (*place).clamp(extent.lo, extent.hi - 1);
            // There is no register to keep the condition in.
            let thread = k.again(lane.thread);
            let is_near = k.compare(IntCmp::Eq, thread, Operand::i32(near as i32));
            k.when(is_near, |k| {
                let zero = Operand::real(self.real, 0f64.to_bits());
                let to = k.offset(target.to, self.bytes(place - near));
                k.store(zero, to, bytes, Access::Plain);
            });
        }
    }

    /// Writes a value to a row in memory, with its ghost along the inner axis if memory holds that.
    pub fn store(&self, k: &mut Kernel<'_>, lane: &Lane, target: Target<'_>, value: Operand) {
        if self.ghosts().is_some() {
            self.write_values(k, lane, target.component, target.to, value);
            return;
        }
        self.write_whole(k, lane, target, value, |k, ends| {
            k.advance_by_word(target.to, ends.by)
        });
    }

    /// Writes a value, and its ghost along the inner axis where `ghost` says that the thread's lies.
    fn write_whole(
        &self,
        k: &mut Kernel<'_>,
        lane: &Lane,
        target: Target<'_>,
        value: Operand,
        ghost: impl FnOnce(&mut Kernel<'_>, &LineEnds) -> Operand,
    ) {
        let Target {
            component,
            to,
            ends,
        } = target;
        let one = ends.and_then(|ends| Some((ends, ends.ghosts[component.index()]?)));
        let Some((ends, one)) = one else {
            self.write_row(k, lane, component, to, value);
            return;
        };
        self.write_values(k, lane, component, to, value);
        k.when(one.has, |k| {
            let value = match one.negated {
                [false, false] => value,
                [true, true] => k.negated(value),
                [below, _] => {
                    let opposite = k.negated(value);
                    let sides = if below {
                        [value, opposite]
                    } else {
                        [opposite, value]
                    };
                    k.choose(ends.upper, sides[0], sides[1])
                }
            };
            let ghost = ghost(k, ends);
            let to = k.offset(ghost, self.bytes(one.by));
            k.store(value, to, self.real.bytes(), Access::Plain);
        });
    }

    /// Writes a value and its ghosts along the inner axis to a row, wherever they lie.
    fn write_row(
        &self,
        k: &mut Kernel<'_>,
        lane: &Lane,
        component: ComponentId,
        to: Operand,
        value: Operand,
    ) {
        self.write_values(k, lane, component, to, value);
        let bytes = self.real.bytes();
        for round in rounds(self.scheme, component) {
            // The condition for the ghosts stays the same, but threads have no register to keep it in.
            let thread = k.again(lane.thread);
            let has = holds(k, thread, round.iter().map(|&(source, _)| source));
            k.when(has, |k| {
                let mut by = Operand::i64(0);
                let mut negated = Operand::int(Type::I1, 0);
                for (source, ghost) in round {
                    let this = k.compare(IntCmp::Eq, thread, Operand::i32(source as i32));
                    by = k.choose(this, Operand::i64(self.bytes(ghost.index - source)), by);
                    let sign = Operand::int(Type::I1, i64::from(ghost.negated));
                    negated = k.choose(this, sign, negated);
                }
                let opposite = k.negated(value);
                let ghost = k.choose(negated, opposite, value);
                let to = k.advance(to, by, 1);
                k.store(ghost, to, bytes, Access::Plain);
            });
        }
    }
}

/// Whether a component's ghosts lie where a thread has its ghost, but for a constant.
fn one(rounds: &[Round], sides: [Side; 2], half: i64) -> Option<(i64, [bool; 2])> {
    let [round] = rounds else { return None };
    let side = |source: i64| usize::from(source >= half);
    let mut by = None;
    let mut negated = [None; 2];
    for &(source, ghost) in round {
        let Side {
            factor,
            by: constant,
        } = sides[side(source)];
        let here = ghost.index - source - (factor * source + constant);
        let sign = &mut negated[side(source)];
        if *by.get_or_insert(here) != here || *sign.get_or_insert(ghost.negated) != ghost.negated {
            return None;
        }
    }
    let either = negated[0].or(negated[1]).unwrap_or(false);
    Some((by?, negated.map(|sign| sign.unwrap_or(either))))
}

/// Whether a thread is one of some, which rise.
fn holds(k: &mut Kernel<'_>, thread: Operand, some: impl Iterator<Item = i64>) -> Operand {
    let mut ranges: Vec<Interval> = Vec::new();
    for i in some {
        match ranges.last_mut() {
            Some(range) if range.hi == i => range.hi += 1,
            _ => ranges.push(Interval::new(i, i + 1)),
        }
    }
    let mut holds = Operand::int(Type::I1, 0);
    for range in ranges {
        let one = super::context::in_interval(k, thread, range);
        holds = k.int(IntOp::Or, holds, one);
    }
    holds
}
