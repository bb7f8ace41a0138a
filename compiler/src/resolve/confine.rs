//! Conditions on the place: boxes of indices where they are boxes, else coefficients that are 0 or 1.

use super::graph::{Graph, Node, NodeId};
use crate::host::{HostBinary, HostUnary};
use crate::lattice::{Axis, HalfIndex, Interval, Position, Region};
use std::collections::BTreeSet;

/// Where a condition holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Confined {
    pub region: Region,
    /// The condition that remains to be tested inside of the region.
    pub rest: Option<NodeId>,
}

/// A strictly rising or falling function of a coordinate, rounded like everything else.
struct Ramp {
    axis: Axis,
    rising: bool,
}

/// Splits a condition for the points of `position` in `live`.
pub fn confine(
    graph: &mut Graph,
    condition: Option<NodeId>,
    position: Position,
    live: Region,
) -> Confined {
    let mut confined = Confined {
        region: live,
        rest: None,
    };
    let Some(condition) = condition else {
        return confined;
    };
    let mut open = vec![condition];
    while let Some(id) = open.pop() {
        if let Some((a, b)) = both(graph, id) {
            open.extend([b, a]);
            continue;
        }
        if let Some(n) = graph.as_number(id) {
            if n == 0.0 {
                let lo = confined.region[Axis::INNER].lo;
                confined.region[Axis::INNER] = Interval::new(lo, lo);
            }
            continue;
        }
        match interval(graph, Test::new(id), position, live) {
            Some((axis, range)) => {
                confined.region[axis] = confined.region[axis].intersect(range);
            }
            None => {
                let test = graph.truth(id);
                confined.rest = Some(match confined.rest {
                    None => test,
                    Some(rest) => graph.binary(HostBinary::And, rest, test),
                });
            }
        }
    }
    if confined.region.is_empty() {
        confined.rest = None;
        let lo = live[Axis::INNER].lo;
        confined.region[Axis::INNER] = Interval::new(lo, lo);
    }
    confined
}

/// The conditions that all have to hold for a condition to hold.
pub fn conjuncts(graph: &mut Graph, condition: Option<NodeId>) -> Vec<NodeId> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<NodeId> = condition.into_iter().collect();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        match both(graph, id) {
            Some((a, b)) => open.extend([b, a]),
            None => found.push(id),
        }
    }
    found
}

/// The two conditions that have to hold for this one: the conditions of `a and b`, and of `not (a or b)` their
/// opposites.
fn both(graph: &mut Graph, id: NodeId) -> Option<(NodeId, NodeId)> {
    match graph.node(id) {
        Node::Binary(op, a, b) if op.0 == HostBinary::And => Some((a, b)),
        Node::Unary(op, inner) if op.0 == HostUnary::Not => match graph.node(inner) {
            Node::Binary(op, a, b) if op.0 == HostBinary::Or => {
                let a = graph.unary(HostUnary::Not, a);
                Some((a, graph.unary(HostUnary::Not, b)))
            }
            Node::Unary(op, a) if op.0 == HostUnary::Not => {
                let both = both(graph, a);
                both.or_else(|| Some((a, graph.number(1.0))))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A condition, or its opposite.
#[derive(Clone, Copy)]
struct Test {
    node: NodeId,
    negated: bool,
}

impl Test {
    fn new(node: NodeId) -> Test {
        Test {
            node,
            negated: false,
        }
    }
}

/// A comparison of a value with a number, which is no NaN.
struct Comparison {
    op: HostBinary,
    value: NodeId,
    bound: f64,
}

/// A test as a comparison whose number is on the right.
fn comparison(graph: &Graph, Test { node, negated }: Test) -> Option<Comparison> {
    use HostBinary as H;
    let (op, a, b) = match graph.node(node) {
        Node::Unary(op, node) if op.0 == HostUnary::Not => {
            let test = Test {
                node,
                negated: !negated,
            };
            return comparison(graph, test);
        }
        Node::Binary(op, a, b) => (op.0, a, b),
        _ => return None,
    };
    let (op, value, bound) = match (graph.as_number(a), graph.as_number(b)) {
        (None, Some(n)) => (op, a, n),
        (Some(n), None) => (mirrored(op), b, n),
        _ => return None,
    };
    if bound.is_nan() {
        return None;
    }
    let op = match (op, negated) {
        (op, false) => op,
        (H::Lt, true) => H::Ge,
        (H::Le, true) => H::Gt,
        (H::Gt, true) => H::Le,
        (H::Ge, true) => H::Lt,
        (H::Ne, true) => H::Eq,
        _ => return None,
    };
    Some(Comparison { op, value, bound })
}

/// The comparison with its sides, or the order of its values, turned round.
fn mirrored(op: HostBinary) -> HostBinary {
    use HostBinary as H;
    match op {
        H::Lt => H::Gt,
        H::Le => H::Ge,
        H::Gt => H::Lt,
        H::Ge => H::Le,
        op => op,
    }
}

/// The indices along one axis where a test holds, if it compares a coordinate with a number.
fn interval(
    graph: &Graph,
    test: Test,
    position: Position,
    live: Region,
) -> Option<(Axis, Interval)> {
    use HostBinary as H;
    let Comparison { op, value, bound } = comparison(graph, test)?;
    let Ramp { axis, rising } = ramp_of(graph, value)?;
    let range = live[axis];
    let at = |i: i64| {
        let coordinate = (HalfIndex::cells(i) + position[axis]).as_f64() * graph.spacing[axis];
        evaluate(graph, value, coordinate)
    };
    // The first index from which on a value is beyond the bound, in the direction of the ramp.
    let first = |beyond: &dyn Fn(f64) -> bool| {
        let (mut lo, mut hi) = (range.lo, range.hi.max(range.lo));
        while lo < hi {
            let middle = lo + (hi - lo) / 2;
            if beyond(at(middle)) {
                hi = middle;
            } else {
                lo = middle + 1;
            }
        }
        lo
    };
    let from_ge = |up: bool| match up {
        true => first(&|v| v >= bound),
        false => first(&|v| v <= bound),
    };
    let from_gt = |up: bool| match up {
        true => first(&|v| v > bound),
        false => first(&|v| v < bound),
    };
    let op = if rising { op } else { mirrored(op) };
    let (lo, hi) = match op {
        H::Lt => (range.lo, from_ge(rising)),
        H::Le => (range.lo, from_gt(rising)),
        H::Gt => (from_gt(rising), range.hi),
        H::Ge => (from_ge(rising), range.hi),
        H::Eq => (from_ge(rising), from_gt(rising)),
        _ => return None,
    };
    Some((axis, Interval::new(lo, hi.max(lo))))
}

/// Sums, differences, products and quotients of a coordinate with numbers: monotone also after rounding.
fn ramp_of(graph: &Graph, id: NodeId) -> Option<Ramp> {
    match graph.node(id) {
        Node::Coordinate(axis, by) if by == HalfIndex::ZERO => Some(Ramp { axis, rising: true }),
        Node::Unary(op, a) if op.0 == HostUnary::Neg => negated(ramp_of(graph, a)?),
        Node::Binary(op, a, b) => {
            let (inner, n, left) = match (graph.as_number(a), graph.as_number(b)) {
                (None, Some(n)) => (a, n, false),
                (Some(n), None) => (b, n, true),
                _ => return None,
            };
            if !n.is_finite() {
                return None;
            }
            match op.0 {
                HostBinary::Add => ramp_of(graph, inner),
                HostBinary::Sub if left => negated(ramp_of(graph, inner)?),
                HostBinary::Sub => ramp_of(graph, inner),
                HostBinary::Mul if n > 0.0 => ramp_of(graph, inner),
                HostBinary::Mul if n < 0.0 => negated(ramp_of(graph, inner)?),
                HostBinary::Div if !left && n > 0.0 => ramp_of(graph, inner),
                HostBinary::Div if !left && n < 0.0 => negated(ramp_of(graph, inner)?),
                _ => None,
            }
        }
        _ => None,
    }
}

fn negated(ramp: Ramp) -> Option<Ramp> {
    Some(Ramp {
        rising: !ramp.rising,
        ..ramp
    })
}

/// The value of a ramp, computed as the host does.
fn evaluate(graph: &Graph, id: NodeId, coordinate: f64) -> f64 {
    match graph.node(id) {
        Node::Number(bits) => f64::from_bits(bits),
        Node::Coordinate(..) => coordinate,
        Node::Unary(op, a) => op.0.apply(evaluate(graph, a, coordinate)),
        Node::Binary(op, a, b) => op.0.apply(
            evaluate(graph, a, coordinate),
            evaluate(graph, b, coordinate),
        ),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::At;
    use crate::lattice::PerAxis;
    use proptest::prelude::*;

    fn condition(graph: &mut Graph, choices: &mut impl Iterator<Item = u8>, depth: u32) -> NodeId {
        use HostBinary as H;
        let mut next = || choices.next().unwrap_or(0);
        let kind = next();
        if depth > 0 && kind % 4 == 0 {
            let op = if kind & 16 == 0 { H::And } else { H::Or };
            let a = condition(graph, choices, depth - 1);
            let b = condition(graph, choices, depth - 1);
            return graph.binary(op, a, b);
        }
        if depth > 0 && kind % 4 == 1 {
            let a = condition(graph, choices, depth - 1);
            return graph.unary(HostUnary::Not, a);
        }
        let axis = if next() & 1 == 0 {
            Axis::OUTER
        } else {
            Axis::INNER
        };
        let mut ramp = graph.coordinate(axis);
        for _ in 0..next() % 3 {
            let n = graph.number(f64::from(next()) / 16.0 - 8.0);
            let op = [H::Add, H::Sub, H::Mul, H::Div][usize::from(next() % 4)];
            ramp = if next() & 1 == 0 {
                graph.binary(op, ramp, n)
            } else {
                graph.binary(op, n, ramp)
            };
        }
        let bound = graph.number(f64::from(next() % 20) * 0.1);
        let op = [H::Lt, H::Le, H::Gt, H::Ge, H::Eq, H::Ne][usize::from(next() % 6)];
        if next() & 1 == 0 {
            graph.binary(op, ramp, bound)
        } else {
            graph.binary(op, bound, ramp)
        }
    }

    proptest! {
        /// An index lies in the region and passes the rest exactly where the condition holds.
        #[test]
        fn regions_are_exact(choices in proptest::collection::vec(any::<u8>(), 0..60), half in 0i64..2) {
            let mut graph = Graph::default();
            graph.spacing = PerAxis([0.1, 1.0, 0.3]);
            let id = condition(&mut graph, &mut choices.into_iter(), 3);
            let position = PerAxis([HalfIndex(half), HalfIndex::ZERO, HalfIndex(1 - half)]);
            let live = PerAxis([Interval::new(1, 20), Interval::new(0, 1), Interval::new(0, 8)]);
            let confined = confine(&mut graph, Some(id), position, live);
            let whole = graph.host(id, position).expect("small");
            let rest = confined.rest.map(|r| graph.host(r, position).expect("small"));
            for i in 1..20 {
                for k in 0..8 {
                    let index = PerAxis([i, 0, k]);
                    let at = At {
                        position: PerAxis::from_fn(|a| {
                            (HalfIndex::cells(index[a]) + position[a]).as_f64() * graph.spacing[a]
                        }).0,
                        time: 0.0,
                    };
                    let holds = whole.eval(&at) != 0.0;
                    let found = confined.region.contains(index)
                        && rest.as_ref().is_none_or(|r| r.eval(&at) != 0.0);
                    prop_assert_eq!(holds, found, "{} at {:?}: {:?}", whole, index, confined);
                }
            }
        }
    }
}
