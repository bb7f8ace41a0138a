//! Boxes around conditions, by interval arithmetic: the part of the grid in which a condition can hold.
//!
//! The bounds of an operation are its values at the bounds of its operands, with the same rounding; rounding is
//! monotone, so bounds of computed values are exact. An operation without such bounds here, and a result that is not
//! finite, may have any value.

use super::graph::{Graph, Node, NodeId};
use crate::host::{HostBinary, HostUnary};
use crate::lattice::{Axis, HalfIndex, Interval, Position, Region};
use std::collections::HashMap;

/// The possible values: a number from `lo` to `hi`; where one of them is not finite, anything.
#[derive(Clone, Copy, Debug)]
struct Range {
    lo: f64,
    hi: f64,
}

impl Range {
    const ANYTHING: Range = Range {
        lo: f64::NEG_INFINITY,
        hi: f64::INFINITY,
    };
    const FALSE: Range = Range { lo: 0.0, hi: 0.0 };
    const TRUE: Range = Range { lo: 1.0, hi: 1.0 };
    const EITHER: Range = Range { lo: 0.0, hi: 1.0 };

    fn of(values: impl IntoIterator<Item = f64>) -> Range {
        let mut range = Range {
            lo: f64::INFINITY,
            hi: f64::NEG_INFINITY,
        };
        for value in values {
            if !value.is_finite() {
                return Range::ANYTHING;
            }
            range.lo = range.lo.min(value);
            range.hi = range.hi.max(value);
        }
        range
    }

    fn is_finite(self) -> bool {
        self.lo.is_finite() && self.hi.is_finite()
    }

    fn contains(self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// As a condition: certainly true, certainly false, or either.
    fn holds(self) -> Option<bool> {
        match self.is_finite() {
            true if !self.contains(0.0) => Some(true),
            true if self.lo == 0.0 && self.hi == 0.0 => Some(false),
            _ => None,
        }
    }

    fn truth(holds: Option<bool>) -> Range {
        match holds {
            Some(true) => Range::TRUE,
            Some(false) => Range::FALSE,
            None => Range::EITHER,
        }
    }
}

/// The smallest box in `region` outside of which a condition certainly fails, as far as bounds can tell.
pub fn enclose(graph: &mut Graph, condition: NodeId, position: Position, region: Region) -> Region {
    let mut found = region;
    if region.is_empty() || fails(graph, condition, position, region) {
        found[Axis::INNER] = Interval::new(region[Axis::INNER].lo, region[Axis::INNER].lo);
        return found;
    }
    for axis in Axis::ALL {
        let Interval { lo, hi } = found[axis];
        // The condition may hold in lo..hi. The most indices that can be cut off from below, then from above.
        let cut_below = most(hi - lo, |n| {
            let mut slab = found;
            slab[axis] = Interval::new(lo, lo + n);
            fails(graph, condition, position, slab)
        });
        let lo = lo + cut_below;
        let cut_above = most(hi - lo, |n| {
            let mut slab = found;
            slab[axis] = Interval::new(hi - n, hi);
            fails(graph, condition, position, slab)
        });
        found[axis] = Interval::new(lo, hi - cut_above);
    }
    found
}

/// The largest number below `limit` for which a statement holds that holds for all smaller ones too.
fn most(limit: i64, mut holds: impl FnMut(i64) -> bool) -> i64 {
    let (mut yes, mut no) = (0, limit.max(1));
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    yes
}

/// Whether a condition fails in all of a region.
fn fails(graph: &mut Graph, condition: NodeId, position: Position, region: Region) -> bool {
    let mut bounds = Bounds {
        graph,
        position,
        region,
        known: HashMap::new(),
    };
    let holds = bounds.range(condition).holds();
    let work = bounds.known.len();
    graph.spend(work);
    holds == Some(false)
}

/// Whether some conditions hold wherever others do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Implied {
    Yes,
    No,
    /// Bounds do not tell, or not within the work that is left.
    Unknown,
}

/// The claim that all of `wanted` hold at every place of a region where all of `given` do.
pub struct Claim<'a> {
    pub given: &'a [NodeId],
    pub wanted: &'a [NodeId],
    pub position: Position,
    pub region: Region,
}

/// Whether a claim is true. `work` is the number of values that may still be bounded.
pub fn implied(graph: &Graph, claim: &Claim<'_>, work: &mut usize) -> Implied {
    let mut open = vec![claim.region];
    let mut answer = Implied::Yes;
    while let Some(region) = open.pop() {
        if region.is_empty() || claim.wanted.is_empty() {
            continue;
        }
        let mut bounds = Bounds {
            graph,
            position: claim.position,
            region,
            known: HashMap::new(),
        };
        let (given, wanted) = (bounds.all(claim.given), bounds.all(claim.wanted));
        let spent = bounds.known.len().max(1);
        if given == Some(false) || wanted == Some(true) {
            continue;
        }
        if given == Some(true) && wanted == Some(false) {
            return Implied::No;
        }
        if spent >= *work {
            return Implied::Unknown;
        }
        *work -= spent;
        let length = |axis: &Axis| region[*axis].hi - region[*axis].lo;
        match Axis::ALL.into_iter().max_by_key(length) {
            Some(axis) if length(&axis) > 1 => {
                let Interval { lo, hi } = region[axis];
                let middle = lo + (hi - lo) / 2;
                for half in [Interval::new(middle, hi), Interval::new(lo, middle)] {
                    let mut part = region;
                    part[axis] = half;
                    open.push(part);
                }
            }
            _ => answer = Implied::Unknown,
        }
    }
    answer
}

struct Bounds<'g> {
    graph: &'g Graph,
    position: Position,
    region: Region,
    known: HashMap<NodeId, Range>,
}

impl Bounds<'_> {
    /// Whether all of some conditions hold.
    fn all(&mut self, conditions: &[NodeId]) -> Option<bool> {
        let mut all = Some(true);
        for &condition in conditions {
            match self.range(condition).holds() {
                Some(true) => {}
                Some(false) => return Some(false),
                None => all = None,
            }
        }
        all
    }

    /// Static nodes are not deep, so recursion is bounded.
    fn range(&mut self, id: NodeId) -> Range {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let range = match self.graph.node(id) {
            Node::Number(bits) => Range::of([f64::from_bits(bits)]),
            Node::Coordinate(axis, by) if by == HalfIndex::ZERO => {
                let Interval { lo, hi } = self.region[axis];
                let at = |i: i64| {
                    let place = HalfIndex::cells(i) + self.position[axis];
                    place.as_f64() * self.graph.spacing[axis]
                };
                Range::of([at(lo), at(hi - 1)])
            }
            Node::Unary(op, a) => {
                let a = self.range(a);
                unary(op.0, a)
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.range(a), self.range(b));
                binary(op.0, a, b)
            }
            Node::If(c, a, b) => match self.range(c).holds() {
                Some(true) => self.range(a),
                Some(false) => self.range(b),
                None => {
                    let (a, b) = (self.range(a), self.range(b));
                    Range::of([a.lo, a.hi, b.lo, b.hi])
                }
            },
            // Shifted coordinates may go around an axis.
            Node::Coordinate(..)
            | Node::Time
            | Node::File(..)
            | Node::Table(..)
            | Node::Field { .. }
            | Node::State(_)
            | Node::Next(..)
            | Node::Zoned(..)
            | Node::Shift(..)
            | Node::Stencil(..) => Range::ANYTHING,
        };
        self.known.insert(id, range);
        range
    }
}

fn unary(op: HostUnary, a: Range) -> Range {
    use HostUnary as H;
    if op == H::Not {
        return Range::truth(a.holds().map(|holds| !holds));
    }
    if !a.is_finite() {
        return Range::ANYTHING;
    }
    let ends = [a.lo, a.hi].map(|x| op.apply(x));
    match op {
        H::Neg | H::Floor | H::Ceil | H::Round => Range::of(ends),
        H::Abs if a.contains(0.0) => Range::of([ends[0], ends[1], 0.0]),
        H::Abs => Range::of(ends),
        H::Sqrt if a.lo >= 0.0 => Range::of(ends),
        // Not monotone, or not certainly so where a library computes them.
        _ => Range::ANYTHING,
    }
}

fn binary(op: HostBinary, a: Range, b: Range) -> Range {
    use HostBinary as H;
    let logic = match op {
        H::And => match (a.holds(), b.holds()) {
            (Some(false), _) | (_, Some(false)) => Some(Range::FALSE),
            (Some(true), Some(true)) => Some(Range::TRUE),
            _ => Some(Range::EITHER),
        },
        H::Or => match (a.holds(), b.holds()) {
            (Some(true), _) | (_, Some(true)) => Some(Range::TRUE),
            (Some(false), Some(false)) => Some(Range::FALSE),
            _ => Some(Range::EITHER),
        },
        _ => None,
    };
    if let Some(logic) = logic {
        return logic;
    }
    let finite = a.is_finite() && b.is_finite();
    let compared = |sure: bool, never: bool| {
        let holds = match (sure, never) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        Range::truth(holds.filter(|_| finite))
    };
    match op {
        H::Lt => return compared(a.hi < b.lo, a.lo >= b.hi),
        H::Le => return compared(a.hi <= b.lo, a.lo > b.hi),
        H::Gt => return compared(a.lo > b.hi, a.hi <= b.lo),
        H::Ge => return compared(a.lo >= b.hi, a.hi < b.lo),
        H::Eq | H::Ne => {
            let same = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;
            let apart = a.hi < b.lo || b.hi < a.lo;
            return match op {
                H::Eq => compared(same, apart),
                _ => compared(apart, same),
            };
        }
        _ => {}
    }
    if !finite {
        return Range::ANYTHING;
    }
    let corners = || {
        let all = [(a.lo, b.lo), (a.lo, b.hi), (a.hi, b.lo), (a.hi, b.hi)];
        Range::of(all.map(|(x, y)| op.apply(x, y)))
    };
    match op {
        H::Add | H::Sub | H::Mul | H::Min | H::Max => corners(),
        H::Div if !b.contains(0.0) => corners(),
        H::Pow if b.lo == b.hi => power(a, b.lo),
        _ => Range::ANYTHING,
    }
}

/// Small whole powers are products, so they are monotone on either side of 0.
fn power(a: Range, n: f64) -> Range {
    if n != n.trunc() || n.abs() > 64.0 || (n < 0.0 && a.contains(0.0)) {
        return Range::ANYTHING;
    }
    let ends = [a.lo, a.hi].map(|x| HostBinary::Pow.apply(x, n));
    match a.contains(0.0) {
        true => Range::of([ends[0], ends[1], HostBinary::Pow.apply(0.0, n)]),
        false => Range::of(ends),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::At;
    use crate::lattice::PerAxis;
    use proptest::prelude::*;

    /// An expression made of choices: numbers, coordinates and operations with bounds.
    fn expression(graph: &mut Graph, choices: &mut impl Iterator<Item = u8>, depth: u32) -> NodeId {
        use HostBinary as H;
        let mut next = || choices.next().unwrap_or(0);
        let kind = next();
        if depth == 0 || kind % 8 == 0 {
            return match next() % 3 {
                0 => {
                    let n = f64::from(next()) / 8.0 - 10.0;
                    graph.number(n)
                }
                1 => graph.coordinate(Axis::OUTER),
                _ => graph.coordinate(Axis::INNER),
            };
        }
        if kind % 8 == 1 {
            let ops = [
                HostUnary::Neg,
                HostUnary::Abs,
                HostUnary::Sqrt,
                HostUnary::Not,
                HostUnary::Floor,
                HostUnary::Sin,
            ];
            let op = ops[usize::from(next()) % ops.len()];
            let a = expression(graph, choices, depth - 1);
            return graph.unary(op, a);
        }
        if kind % 8 == 2 {
            let c = expression(graph, choices, depth - 1);
            let a = expression(graph, choices, depth - 1);
            let b = expression(graph, choices, depth - 1);
            return graph.choose(c, a, b);
        }
        let ops = [
            H::Add,
            H::Sub,
            H::Mul,
            H::Div,
            H::Pow,
            H::Min,
            H::Max,
            H::Lt,
            H::Le,
            H::Gt,
            H::Ge,
            H::Eq,
            H::Ne,
            H::And,
            H::Or,
            H::Atan2,
        ];
        let op = ops[usize::from(next()) % ops.len()];
        let a = expression(graph, choices, depth - 1);
        let b = match op {
            H::Pow => {
                let n = f64::from(choices.next().unwrap_or(0) % 7) - 2.0;
                graph.number(n)
            }
            _ => expression(graph, choices, depth - 1),
        };
        graph.binary(op, a, b)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// No index outside of the box satisfies the condition.
        #[test]
        fn nothing_is_cut_off(choices in proptest::collection::vec(any::<u8>(), 0..80), half in 0i64..2) {
            let mut graph = Graph::default();
            graph.spacing = PerAxis([0.5, 1.0, 0.3]);
            let id = expression(&mut graph, &mut choices.into_iter(), 4);
            let position = PerAxis([HalfIndex(half), HalfIndex::ZERO, HalfIndex(1 - half)]);
            let region = PerAxis([Interval::new(-3, 14), Interval::new(0, 1), Interval::new(0, 11)]);
            let found = enclose(&mut graph, id, position, region);
            let whole = graph.host(id, position).expect("small");
            for i in -3..14 {
                for k in 0..11 {
                    let index = PerAxis([i, 0, k]);
                    let place = PerAxis::from_fn(|a| {
                        (HalfIndex::cells(index[a]) + position[a]).as_f64() * graph.spacing[a]
                    });
                    let at = At { position: place.0, time: 0.0 };
                    if whole.eval(&at) != 0.0 {
                        prop_assert!(found.contains(index), "{} at {:?}: {:?}", whole, index, found);
                    }
                }
            }
        }
    }

    #[test]
    fn boxes_of_simple_bodies_are_tight() {
        let mut graph = Graph::default();
        graph.spacing = PerAxis::splat(0.5);
        let squared = |graph: &mut Graph, axis, centre: f64| {
            let (x, centre, two) = (
                graph.coordinate(axis),
                graph.number(centre),
                graph.number(2.0),
            );
            let d = graph.binary(HostBinary::Sub, x, centre);
            graph.binary(HostBinary::Pow, d, two)
        };
        let x = squared(&mut graph, Axis::OUTER, 5.0);
        let y = squared(&mut graph, Axis::INNER, 4.0);
        let sum = graph.binary(HostBinary::Add, x, y);
        let four = graph.number(4.0);
        let disc = graph.binary(HostBinary::Lt, sum, four);
        let whole = PerAxis([
            Interval::new(0, 40),
            Interval::new(0, 1),
            Interval::new(0, 30),
        ]);
        let found = enclose(&mut graph, disc, Position::default(), whole);
        // From 3 to 7 and from 2 to 6, both ends outside.
        assert_eq!(found[Axis::OUTER], Interval::new(7, 14));
        assert_eq!(found[Axis::INNER], Interval::new(5, 12));
        let outside = graph.unary(HostUnary::Not, disc);
        assert_eq!(
            enclose(&mut graph, outside, Position::default(), whole),
            whole
        );
        let never = graph.binary(HostBinary::And, disc, outside);
        let far = PerAxis([
            Interval::new(20, 40),
            Interval::new(0, 1),
            Interval::new(0, 30),
        ]);
        assert!(enclose(&mut graph, never, Position::default(), far).is_empty());
    }
}
