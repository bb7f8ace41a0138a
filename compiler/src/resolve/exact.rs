//! Values of static nodes at single places, as the host computes them.

use super::graph::{Graph, Node, NodeId};
use crate::host::HostBinary;
use crate::lattice::{Interval, PerAxis, Position};
use crate::scheme::Grid;
use crate::statics;
use std::collections::HashMap;

/// The values of nodes at one place, each found once.
pub struct Exact<'g> {
    graph: &'g Graph,
    grid: &'g Grid,
    position: Position,
    index: PerAxis<i64>,
    known: HashMap<NodeId, Option<f64>>,
}

impl<'g> Exact<'g> {
    pub fn new(graph: &'g Graph, grid: &'g Grid, position: Position, index: PerAxis<i64>) -> Self {
        Self {
            graph,
            grid,
            position,
            index,
            known: HashMap::new(),
        }
    }

    /// The values that have been found.
    pub fn work(&self) -> usize {
        self.known.len()
    }

    /// `None` where the value takes one of an array, of the time or of a field. Static nodes are not deep, so recursion
    /// is bounded.
    pub fn value(&mut self, id: NodeId) -> Option<f64> {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let value = match self.graph.node(id) {
            Node::Number(bits) => Some(f64::from_bits(bits)),
            Node::Coordinate(axis, by) => {
                let i = self.index[axis];
                let from = self.position[axis] + by;
                let at = statics::coordinates(self.grid, axis, from, Interval::new(i, i + 1));
                Some(at.lo)
            }
            Node::Table(table, a) => self.value(a).map(|a| self.graph.value_in(table, a)),
            Node::Unary(op, a) => self.value(a).map(|a| op.0.apply(a)),
            Node::Binary(op, a, b) => binary(op.0, self.value(a), self.value(b)),
            Node::If(c, a, b) => self.value(c).and_then(|c| match c != 0.0 {
                true => self.value(a),
                false => self.value(b),
            }),
            Node::Time
            | Node::File(..)
            | Node::Field { .. }
            | Node::State(_)
            | Node::Next(..)
            | Node::Zoned(..)
            | Node::Shift(..)
            | Node::Stencil(..) => None,
        };
        self.known.insert(id, value);
        value
    }
}

/// One operand may decide a condition.
fn binary(op: HostBinary, a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let decides = |value: f64| match op {
        HostBinary::And => value == 0.0,
        HostBinary::Or => value != 0.0,
        _ => false,
    };
    match (a, b) {
        (Some(a), Some(b)) => Some(op.apply(a, b)),
        (Some(one), None) | (None, Some(one)) if decides(one) => {
            Some(f64::from(op == HostBinary::Or))
        }
        _ => None,
    }
}
