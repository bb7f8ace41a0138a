//! Values that the boundary holds at 0 on the plane of a mirror, by their parity about it.

use super::graph::{Graph, Kernel, Node, NodeId};
use crate::host::{HostBinary, HostUnary};
use crate::lattice::{Axis, HalfIndex, Interval, Position, Region};
use crate::scheme::{Boundary, Component, Grid};
use std::collections::HashMap;

/// The values at equal distances on both sides of the plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parity {
    /// The same.
    Even,
    /// Opposite.
    Odd,
}

impl Parity {
    fn times(self, other: Self) -> Self {
        match self == other {
            true => Self::Even,
            false => Self::Odd,
        }
    }
}

/// What is known of a value about the plane.
#[derive(Clone, Copy, Debug, Default)]
struct About {
    parity: Option<Parity>,
    /// On the plane it is 0.
    is_zero: bool,
}

impl About {
    const UNKNOWN: Self = Self {
        parity: None,
        is_zero: false,
    };
    const EVEN: Self = Self {
        parity: Some(Parity::Even),
        is_zero: false,
    };

    fn of(parity: Option<Parity>) -> Self {
        let is_zero = parity == Some(Parity::Odd);
        Self { parity, is_zero }
    }

    /// A function of even values.
    fn from_even(all: &[Self]) -> Self {
        let is_even = all.iter().all(|a| a.parity == Some(Parity::Even));
        if is_even { Self::EVEN } else { Self::UNKNOWN }
    }
}

/// A mirror at one end of an axis.
struct Mirror<'a> {
    axis: Axis,
    boundary: Boundary,
    components: &'a [Component],
}

/// The indices of a position at which an expression has values that the boundary does not hold at 0.
pub fn counted(
    graph: &mut Graph,
    grid: &Grid,
    components: &[Component],
    position: Position,
    value: NodeId,
) -> Region {
    let mut region = places(grid, position);
    for axis in Axis::ALL {
        for (side, boundary) in grid.boundary[axis].into_iter().enumerate() {
            if !has_plane(grid, position, axis, boundary) {
                continue;
            }
            let mirror = Mirror {
                axis,
                boundary,
                components,
            };
            if mirror.about(graph, value).is_zero {
                let Interval { lo, hi } = region[axis];
                region[axis] = match side {
                    0 => Interval::new(lo + 1, hi),
                    _ => Interval::new(lo, hi - 1),
                };
            }
        }
    }
    region
}

/// The indices of a position at which an expression may have values: the extent, and the plane of an upper mirror,
/// where components that are odd about it are not stored.
pub fn places(grid: &Grid, position: Position) -> Region {
    let mut region = grid.extent(position);
    for axis in Axis::ALL {
        if has_plane(grid, position, axis, grid.boundary[axis][1]) {
            region[axis].hi = grid.cells[axis] + 1;
        }
    }
    region
}

/// Whether places of a position lie on the plane of a mirror.
fn has_plane(grid: &Grid, position: Position, axis: Axis, boundary: Boundary) -> bool {
    grid.axes[axis].is_some() && position[axis] == HalfIndex::ZERO && boundary.is_mirror()
}

impl Mirror<'_> {
    fn about(&self, graph: &mut Graph, root: NodeId) -> About {
        let mut known: HashMap<NodeId, About> = HashMap::new();
        for id in graph.in_order(root) {
            let (parts, count) = graph.parts(id);
            let of = |part: &NodeId| known.get(part).copied().unwrap_or_default();
            let parts = parts.map(|part| of(&part));
            let about = self.node(graph, id, &parts[..count]);
            known.insert(id, about);
        }
        known.get(&root).copied().unwrap_or_default()
    }

    fn node(&self, graph: &Graph, id: NodeId, parts: &[About]) -> About {
        match (graph.node(id), parts) {
            (Node::Number(bits), _) => About {
                is_zero: f64::from_bits(bits) == 0.0,
                ..About::EVEN
            },
            (Node::Time, _) => About::EVEN,
            (Node::Coordinate(axis, _), _) if axis != self.axis => About::EVEN,
            (Node::Field { component, .. }, _) => {
                let position = self.components[component.index()].position;
                let odd = self.boundary.is_odd(self.axis, position);
                About::of(odd.map(|odd| if odd { Parity::Odd } else { Parity::Even }))
            }
            (Node::Table(..), all) => About::from_even(all),
            (Node::Unary(op, _), [a]) => unary(op.0, *a),
            (Node::Binary(op, _, b), [x, y]) => match op.0 {
                HostBinary::Pow => power(*x, *y, graph.as_number(b)),
                op => binary(op, *x, *y),
            },
            (Node::If(..), [condition, a, b]) => {
                let is_even = condition.parity == Some(Parity::Even);
                let parity = a.parity.filter(|p| is_even && b.parity == Some(*p));
                About {
                    parity,
                    is_zero: a.is_zero && b.is_zero,
                }
            }
            (Node::Shift(_, by), [a]) if by[self.axis] == HalfIndex::ZERO => *a,
            (Node::Stencil(_, kernel), [a]) => {
                let kernel = graph.kernel(kernel);
                match kernel.axis == self.axis {
                    true => About::of(a.parity.and_then(|p| Some(p.times(parity_of(&kernel)?)))),
                    false => *a,
                }
            }
            (Node::Next(..) | Node::Zoned(..), [a]) => *a,
            _ => About::UNKNOWN,
        }
    }
}

fn unary(op: HostUnary, a: About) -> About {
    let even = About::from_even(&[a]);
    match op {
        HostUnary::Neg | HostUnary::Sin | HostUnary::Tan | HostUnary::Tanh | HostUnary::Round => a,
        HostUnary::Abs => About {
            parity: a.parity.map(|_| Parity::Even),
            ..a
        },
        HostUnary::Cos => About {
            parity: a.parity.map(|_| Parity::Even),
            is_zero: false,
        },
        HostUnary::Sqrt | HostUnary::Floor | HostUnary::Ceil => About {
            is_zero: a.is_zero,
            ..even
        },
        HostUnary::Not | HostUnary::Exp | HostUnary::Log => even,
    }
}

fn binary(op: HostBinary, a: About, b: About) -> About {
    let product = || Some(a.parity?.times(b.parity?));
    match op {
        HostBinary::Add | HostBinary::Sub => {
            let parity = a.parity.filter(|p| b.parity == Some(*p));
            About {
                parity,
                is_zero: a.is_zero && b.is_zero,
            }
        }
        HostBinary::Mul => About {
            parity: product(),
            is_zero: a.is_zero || b.is_zero,
        },
        HostBinary::Div => About {
            parity: product(),
            is_zero: a.is_zero,
        },
        HostBinary::Min | HostBinary::Max => About {
            is_zero: a.is_zero && b.is_zero,
            ..About::from_even(&[a, b])
        },
        _ => About::from_even(&[a, b]),
    }
}

fn power(base: About, exponent: About, number: Option<f64>) -> About {
    let Some(n) = number else {
        return About::from_even(&[base, exponent]);
    };
    let parity = match base.parity {
        Some(Parity::Odd) if n % 2.0 == 0.0 => Some(Parity::Even),
        Some(Parity::Odd) if n.fract() != 0.0 => None,
        parity => parity,
    };
    let is_zero = base.is_zero && n > 0.0;
    About { parity, is_zero }
}

/// The parity of the result for even values; `None`: it has none.
fn parity_of(kernel: &Kernel) -> Option<Parity> {
    let taps: Vec<(i64, f64)> = kernel
        .taps
        .iter()
        .map(|(by, c)| (by.0, c.as_f64()))
        .collect();
    let is = |sign: f64| {
        let back = taps.iter().rev();
        taps.iter()
            .zip(back)
            .all(|(a, b)| a.0 == -b.0 && a.1 == sign * b.1)
    };
    match (is(1.0), is(-1.0)) {
        (true, _) => Some(Parity::Even),
        (_, true) => Some(Parity::Odd),
        _ => None,
    }
}
