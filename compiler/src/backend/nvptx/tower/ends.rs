//! Ghosts along the inner axis, as the threads of a tower write them.
//!
//! Near an end of a line a value has a ghost beyond that end. All components have theirs in the same place but for a constant: on the lower side
//! that of index z is at -z, or a length of the ring farther; half-integer positions lie one index lower. So a thread knows one
//! displacement, and what few kinds of components need: whether the thread has a ghost of them. A ghost is then one store more, with a
//! condition. That matters, as the warps at the ends of a line write them for each row, and all others wait for these.
//!
//! Those of what threads tell each other are written so, in shared memory; and those of what they store, where memory holds ghosts
//! ([`super::beyond`]).

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::write::Writer;
use crate::ghost::{AxisGhosts, Ghost};
use crate::lattice::{Axis, Interval};
use crate::scheme::{Boundary, ComponentId};

/// Values with a ghost along the inner axis, at most one each.
pub(super) type Round = Vec<(i64, Ghost)>;

/// The ghost of a component that a thread writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct One {
    /// The thread has one.
    pub has: Operand,
    /// Elements from the thread's ghost to it.
    pub by: i64,
    /// Whether ghosts have the other sign, on the lower and on the upper side.
    pub negated: [bool; 2],
}

/// What a thread knows of the ends of its line.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// Bytes from the thread's value to its ghost.
    pub by: Operand,
    /// The thread's ghost in slot 0.
    pub own: Operand,
    /// The thread is in the upper half of the line.
    pub upper: Operand,
    /// Per component; `None`: it has no ghosts, or others than these.
    pub ghosts: Vec<Option<One>>,
}

/// Where ghosts lie: elements from index z, `factor * z + by`, on the lower and on the upper side.
type Sides = [(i64, i64); 2];

impl Ends {
    /// `None` where there is none.
    pub fn new(k: &mut Kernel<'_>, writer: &Writer<'_>) -> Option<Ends> {
        let axis = Axis::INNER;
        let grid = &writer.scheme.grid;
        let cells = grid.cells[axis];
        let half = cells / 2;
        let [below, above] = grid.boundary[axis];
        let sides = [
            if below == Boundary::Periodic {
                (0, cells)
            } else {
                (-2, 0)
            },
            if above == Boundary::Periodic {
                (0, -cells)
            } else {
                (-2, 2 * cells)
            },
        ];
        let found = writer.ghosts.iter().map(|rounds| one(rounds, sides, half));
        let found: Vec<Option<(i64, [bool; 2])>> = found.collect();
        if found.iter().all(Option::is_none) {
            return None;
        }
        let upper = k.compare(IntCmp::Ge, writer.thread, Operand::i32(half as i32));
        let [below, above] = sides.map(|(factor, by)| {
            let of = k.int(
                IntOp::Mul,
                writer.thread,
                Operand::i32(writer.bytes(factor) as i32),
            );
            k.int(IntOp::Add, of, Operand::i32(writer.bytes(by) as i32))
        });
        let by = k.choose(upper, above, below);
        // Those that have a ghost of one kind have one of all that lie there.
        let mut known: Vec<(Vec<i64>, Operand)> = Vec::new();
        let mut ghosts = Vec::new();
        for (found, rounds) in found.into_iter().zip(&writer.ghosts) {
            ghosts.push(found.map(|(by, negated)| {
                let sources: Vec<i64> = rounds[0].iter().map(|&(source, _)| source).collect();
                let same = known.iter().find(|(other, _)| *other == sources);
                let has = same.map(|(_, has)| *has).unwrap_or_else(|| {
                    let has = holds(k, writer.thread, sources.iter().copied());
                    known.push((sources, has));
                    has
                });
                One { has, by, negated }
            }));
        }
        Some(Ends {
            by,
            own: k.advance_by_word(writer.own, by),
            upper,
            ghosts,
        })
    }
}

impl Writer<'_> {
    /// The ghosts of a component along the inner axis.
    pub fn rounds(&self, id: ComponentId) -> Vec<Round> {
        let mut rounds: Vec<Round> = Vec::new();
        for (source, ghost) in AxisGhosts::new(self.scheme, id, Axis::INNER).pairs() {
            let free = |round: &Round| round.iter().all(|&(other, _)| other != source);
            match rounds.iter_mut().find(|round| free(round)) {
                Some(round) => round.push((source, ghost)),
                None => rounds.push(vec![(source, ghost)]),
            }
        }
        rounds
    }

    /// Writes a value and its ghosts along the inner axis to a row.
    pub fn write_row(
        &self,
        k: &mut Kernel<'_>,
        component: ComponentId,
        to: Operand,
        value: Operand,
    ) {
        self.write_values(k, component, to, value);
        let bytes = self.real.bytes();
        for round in &self.ghosts[component.index()] {
            // What the ghosts depend on stays the same, but threads have no register to keep it in.
            let thread = k.again(self.thread);
            let has = holds(k, thread, round.iter().map(|&(source, _)| source));
            k.when(has, |k| {
                let mut by = Operand::i64(0);
                let mut negated = Operand::int(Type::I1, 0);
                for &(source, ghost) in round {
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

    pub fn write_values(
        &self,
        k: &mut Kernel<'_>,
        component: ComponentId,
        to: Operand,
        value: Operand,
    ) {
        let extent = self.scheme.extent(component)[Axis::INNER];
        let bytes = self.real.bytes();
        self.within(k, extent, |k| k.store(value, to, bytes, Access::Plain));
    }

    /// Writes a value of a whole tower to a slot.
    pub fn write_slot(
        &self,
        k: &mut Kernel<'_>,
        component: ComponentId,
        slot: usize,
        value: Operand,
    ) {
        let by = self.bytes(slot as i64 * self.slot.stride);
        let to = self.slot(k, slot, 0);
        self.write_whole(k, component, to, value, |k, ends| k.offset(ends.own, by));
    }

    /// Writes a value to a row in memory.
    pub fn store(&self, k: &mut Kernel<'_>, component: ComponentId, to: Operand, value: Operand) {
        if self.beyond.is_some() {
            self.write_values(k, component, to, value);
            return;
        }
        self.write_whole(k, component, to, value, |k, ends| {
            k.advance_by_word(to, ends.by)
        });
    }

    /// Writes a value, and its ghost along the inner axis beside where the thread's lies.
    fn write_whole(
        &self,
        k: &mut Kernel<'_>,
        component: ComponentId,
        to: Operand,
        value: Operand,
        ghost: impl FnOnce(&mut Kernel<'_>, &Ends) -> Operand,
    ) {
        let ends = self.ends.as_ref();
        let one = ends.and_then(|ends| Some((ends, ends.ghosts[component.index()]?)));
        let Some((ends, one)) = one else {
            self.write_row(k, component, to, value);
            return;
        };
        self.write_values(k, component, to, value);
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
}

/// Whether a component's ghosts lie where a thread has its ghost, but for a constant.
fn one(rounds: &[Round], sides: Sides, half: i64) -> Option<(i64, [bool; 2])> {
    let [round] = rounds else { return None };
    let side = |source: i64| usize::from(source >= half);
    let mut by = None;
    let mut negated = [None; 2];
    for &(source, ghost) in round {
        let (factor, constant) = sides[side(source)];
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
        let from = k.int(IntOp::Sub, thread, Operand::i32(range.lo as i32));
        let one = k.compare(IntCmp::Below, from, Operand::i32(range.len() as i32));
        holds = k.int(IntOp::Or, holds, one);
    }
    holds
}
