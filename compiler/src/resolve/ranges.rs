//! Between which values a static node lies over a box of places, and conditions there.
//!
//! The bounds of an operation are its values at the bounds of its operands, with the same rounding; rounding is
//! monotone, so bounds of computed values are exact. Bounds of functions that a library computes are wider by more than
//! the errors of the library. An operation without bounds here, and a result that is not finite, may have any value.
//! At a single place, conditions are decided by exact values.

use super::exact::Exact;
use super::graph::{Graph, Node, NodeId};
use crate::host::{HostBinary, HostUnary, is_product};
use crate::host_range::{self, Range as HostRange};
use crate::lattice::{Position, Region};
use crate::scheme::Grid;
use crate::statics;
use std::collections::HashMap;

/// How much wider than their values at the ends the bounds of functions are, relative to their size. Libraries err by a
/// few units of 1e-16, and powers by products by up to 64 of them.
const SLACK: f64 = 1e-13;
/// The largest argument of a wave for which the place of a peak is known well enough for this.
const WAVE: f64 = 1e6;

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

    /// As the bounds of a function that a library computes.
    fn widened(self) -> Range {
        let slack = |end: f64| SLACK * end.abs() + f64::MIN_POSITIVE;
        Range::of([self.lo - slack(self.lo), self.hi + slack(self.hi)])
    }

    fn is_finite(self) -> bool {
        self.lo.is_finite() && self.hi.is_finite()
    }

    /// The largest absolute value.
    fn size(self) -> f64 {
        self.lo.abs().max(self.hi.abs())
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

/// The bounds of nodes in a box of places, each found once.
pub struct Bounds<'g> {
    graph: &'g Graph,
    grid: &'g Grid,
    position: Position,
    region: Region,
    known: HashMap<NodeId, Range>,
    /// Of a box of one place.
    exact: Option<Exact<'g>>,
}

impl<'g> Bounds<'g> {
    pub fn new(graph: &'g Graph, grid: &'g Grid, position: Position, region: Region) -> Self {
        let place = region.map(|r| r.lo);
        Self {
            graph,
            grid,
            position,
            region,
            known: HashMap::new(),
            exact: (region.volume() == 1).then(|| Exact::new(graph, grid, position, place)),
        }
    }

    /// The values that have been found.
    pub fn work(&self) -> usize {
        let exact = self.exact.as_ref().map_or(0, Exact::work);
        (self.known.len() + exact).max(1)
    }

    /// Whether a condition holds at all places of the box, or at none.
    pub fn holds(&mut self, condition: NodeId) -> Option<bool> {
        let exact = self.exact.as_mut().and_then(|exact| exact.value(condition));
        match exact {
            Some(value) => Some(value != 0.0),
            None => self.range(condition).holds(),
        }
    }

    /// The same for all of some conditions together.
    pub fn all(&mut self, conditions: &[NodeId]) -> Option<bool> {
        let mut all = Some(true);
        for &condition in conditions {
            match self.holds(condition) {
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
            Node::Coordinate(axis, by) => {
                let from = self.position[axis] + by;
                statics::coordinates(self.grid, axis, from, self.region[axis]).into()
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
            Node::Time
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

impl From<HostRange> for Range {
    fn from(range: HostRange) -> Self {
        Range::of([range.lo, range.hi])
    }
}

impl From<Range> for HostRange {
    fn from(range: Range) -> Self {
        HostRange::new(range.lo, range.hi)
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
        H::Exp | H::Log | H::Tanh => Range::of(ends).widened(),
        H::Sin | H::Cos if a.size() < WAVE => {
            Range::from(host_range::unary(op, a.into())).widened()
        }
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
            let disjoint = a.hi < b.lo || b.hi < a.lo;
            return match op {
                H::Eq => compared(same, disjoint),
                _ => compared(disjoint, same),
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
        H::Pow if b.lo == b.hi && is_product(b.lo) => power(a, b.lo),
        H::Pow if a.lo > 0.0 => corners().widened(),
        H::Atan2 => Range::from(host_range::binary(op, a.into(), b.into())).widened(),
        _ => Range::ANYTHING,
    }
}

/// Small whole powers are products, so they are monotone on either side of 0.
fn power(a: Range, n: f64) -> Range {
    if n < 0.0 && a.contains(0.0) {
        return Range::ANYTHING;
    }
    let ends = [a.lo, a.hi].map(|x| HostBinary::Pow.apply(x, n));
    match a.contains(0.0) {
        true => Range::of([ends[0], ends[1], HostBinary::Pow.apply(0.0, n)]),
        false => Range::of(ends),
    }
}
