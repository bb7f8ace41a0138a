//! Updates that are of second order in time by values of one time: methods of Runge and Kutta whose stages are parts of
//! the update, and transport by the second term of Taylor's series.

use super::graph::{Graph, LevelKey, Node, NodeId};
use super::order::Statement;
use super::resolver::Resolver;
use super::worth::value_of;
use crate::host::{HostBinary, HostPoint, HostUnary};
use crate::lattice::{Axis, HalfIndex, Offset};
use crate::scheme::{Coef, ComponentId, FileId, Read, Update};
use std::collections::HashMap;

/// A place of the domain at which all coefficients are taken, wherever they are read.
pub struct Frozen {
    at: [f64; 3],
    /// The value of the first file there: files have values of no meaning, each its own.
    first: f64,
}

impl HostPoint for Frozen {
    fn coordinate(&self, axis: Axis, _: HalfIndex) -> f64 {
        self.at[axis.index()]
    }

    fn time(&self) -> f64 {
        0.0
    }

    fn file(&self, file: FileId, _: Offset) -> f64 {
        self.first * (1.0 + 0.3 * (file.index() as f64).sin())
    }
}

impl Resolver<'_> {
    /// Some places inside of the domain.
    pub fn frozen_places(&self) -> Vec<Frozen> {
        let Some(grid) = &self.frame.grid else {
            return Vec::new();
        };
        let at = |part: f64| {
            let axis = |a: Axis| part * grid.cells[a] as f64 * grid.spacing[a];
            Frozen {
                at: Axis::ALL.map(axis),
                first: part,
            }
        };
        [0.317, 0.541, 0.863].map(at).into()
    }
}

/// Whether an update is a transport of second order, by its own old values alone: errors of cells and steps cancel, as
/// in Lax and Wendroff's method. Its factor of a wave is the mean of exp(i theta s) over the offsets s, with its
/// weights, so that of a wave of the equations, exp(i theta m), has the mean m of the offsets and no variance.
/// Coefficients count with their values at one place; the update is centred at all of some, or leaves values there.
pub fn carries_centred(update: &Update, coefs: &[Coef], places: &[Frozen]) -> bool {
    let own = |r: &Read| r.component == update.target && r.age == 0;
    if !update.body.reads().all(own) {
        return false;
    }
    let found = places.iter().map(|at| is_centred(update, coefs, at));
    let found: Vec<Option<bool>> = found.collect();
    found.contains(&Some(true)) && !found.contains(&Some(false))
}

/// `None`: with these coefficients nothing moves.
fn is_centred(update: &Update, coefs: &[Coef], at: &Frozen) -> Option<bool> {
    let zero = |value: f64| value.abs() < 1e-5;
    let value = |field: &dyn Fn([f64; 3]) -> f64| {
        let read = |r: &Read| field(r.offset.0.map(f64::from));
        value_of(&update.body, read, |id| coefs[id.index()].value.eval(at))
    };
    let axes = [0, 1, 2];
    let mean = axes.map(|a| value(&|s| s[a]));
    let is_linear = |a: usize| zero(value(&|s| 1.9 + s[a]) - 1.9 - mean[a]);
    let varies = |a: usize, b: usize| !zero(value(&|s| s[a] * s[b]) - mean[a] * mean[b]);
    let is_sharp = !axes.iter().any(|a| axes.iter().any(|b| varies(*a, *b)));
    let is_centred = zero(value(&|_| 0.0)) && axes.into_iter().all(is_linear) && is_sharp;
    let moves = !mean.into_iter().all(zero);
    (moves || !is_centred).then_some(is_centred)
}

/// Whether the value that a statement gives a component may be one of a Runge-Kutta method: a difference or a function
/// of a sum that advances a target of the statement, `d2(u + dt/2 * d2(u, x), x)`.
pub fn has_stage(graph: &mut Graph, statement: &Statement, target: ComponentId) -> bool {
    let Some(advance) = statement.updates.iter().find(|u| u.target == target) else {
        return false;
    };
    let order = graph.in_order(advance.value.node);
    let is_target = |c: ComponentId| statement.targets().any(|t| t == c);
    let mut known: HashMap<NodeId, Part> = HashMap::new();
    for id in order {
        let part = Part::of(graph, id, &known, &is_target);
        known.insert(id, part);
        if applied_to(graph, id)
            .into_iter()
            .flatten()
            .any(|operand| known[&operand].advances)
        {
            return true;
        }
    }
    false
}

/// The operands of an operation that is no sum, and no product with a static factor.
fn applied_to(graph: &Graph, id: NodeId) -> [Option<NodeId>; 2] {
    use HostBinary as B;
    use HostUnary as U;
    let dynamic = |id: NodeId| graph.is_dynamic(id);
    match graph.node(id) {
        Node::Stencil(a, _) => [Some(a), None],
        Node::Unary(op, a) if !matches!(op.0, U::Neg | U::Not | U::Abs) => [Some(a), None],
        Node::Binary(op, a, b) => match op.0 {
            B::Mul if dynamic(a) && dynamic(b) => [Some(a), Some(b)],
            B::Div if dynamic(b) => [Some(a), Some(b)],
            B::Pow => [Some(a), None],
            _ => [None; 2],
        },
        _ => [None; 2],
    }
}

/// A value as a part of an update.
#[derive(Clone, Copy, Default)]
struct Part {
    /// A term of it is the newest value of a target.
    keeps: bool,
    /// A term of it is more than a multiple of one value.
    changes: bool,
    /// It is a multiple of one value, at any place.
    is_multiple: bool,
    /// But for a static factor it is the sum of a target and a change of it.
    advances: bool,
}

impl Part {
    /// `known`: all parts of the node.
    fn of(
        graph: &Graph,
        id: NodeId,
        known: &HashMap<NodeId, Part>,
        is_target: &impl Fn(ComponentId) -> bool,
    ) -> Part {
        let mut part = match graph.node(id) {
            Node::Field { component, level } => Part {
                keeps: level != Some(LevelKey::Prev) && is_target(component),
                is_multiple: true,
                ..Part::default()
            },
            Node::Binary(op, a, b) if op.0 == HostBinary::Add => Part {
                keeps: known[&a].keeps || known[&b].keeps,
                changes: known[&a].changes || known[&b].changes,
                ..Part::default()
            },
            Node::Binary(op, a, b) if op.0 == HostBinary::Sub => Part {
                keeps: known[&a].keeps,
                changes: known[&a].changes || (graph.is_dynamic(b) && !known[&b].is_multiple),
                ..Part::default()
            },
            _ => {
                let scaled = scaled(graph, id).map_or_else(Part::default, |a| known[&a]);
                Part {
                    keeps: false,
                    changes: graph.is_dynamic(id) && !scaled.is_multiple,
                    ..scaled
                }
            }
        };
        part.advances |= part.keeps && part.changes;
        part
    }
}

/// The value of which this is a multiple with a static factor, at any place.
fn scaled(graph: &Graph, id: NodeId) -> Option<NodeId> {
    use HostBinary as B;
    match graph.node(id) {
        Node::Unary(op, a) if op.0 == HostUnary::Neg => Some(a),
        Node::Binary(op, a, b) if op.0 == B::Mul && !graph.is_dynamic(a) => Some(b),
        Node::Binary(op, a, b) if matches!(op.0, B::Mul | B::Div) && !graph.is_dynamic(b) => {
            Some(a)
        }
        Node::Shift(a, _) | Node::Zoned(_, a) => Some(a),
        _ => None,
    }
}
