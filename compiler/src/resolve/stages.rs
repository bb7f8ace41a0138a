//! Stages of Runge-Kutta methods in the value of an update: whether their increments give it second order.
//!
//! The part of the update that is in proportion to the increments of stages is half of the change of its rate, for each
//! wave: `d2(u + dt/2 * d2(u, x), x)` has it, and `d2(u + g * d2(u, x), x)` with another factor is a step of first
//! order. Waves are taken with the coefficients of one place.

use super::graph::{Graph, LevelKey, Node, NodeId, Shift};
use super::order::Statement;
use super::second_order::Frozen;
use crate::host::{HostBinary, HostUnary};
use crate::lattice::PerAxis;
use crate::scheme::ComponentId;
use num_complex::Complex64;
use std::collections::{BTreeMap, HashMap};

/// The phases per cell of a wave of no particular length.
const WAVE: PerAxis<f64> = PerAxis([0.53, 0.71, 0.37]);
/// The relative difference of sums that are alike.
const ALIKE: f64 = 1e-4;

/// A sum of waves, by component.
type Sum = BTreeMap<ComponentId, Complex64>;

/// A value of an update.
#[derive(Clone, Default)]
struct Part {
    /// Without the increments of stages.
    value: Sum,
    /// The part in proportion to these.
    change: Sum,
    /// The part that is a target's newest value.
    kept: Sum,
}

impl Part {
    /// The value that a stage starts from, and its increment as a change.
    fn as_stage(&self) -> Part {
        if self.kept.is_empty() || self.kept == self.value {
            return self.clone();
        }
        let mut change = self.value.clone();
        add(&mut change, &self.kept, -Complex64::ONE);
        Part {
            value: self.kept.clone(),
            change,
            kept: Sum::new(),
        }
    }

    fn scaled(&self, by: Complex64) -> Part {
        let scaled = |sum: &Sum| sum.iter().map(|(c, v)| (*c, v * by)).collect();
        Part {
            value: scaled(&self.value),
            change: scaled(&self.change),
            kept: scaled(&self.kept),
        }
    }

    fn plus(&self, other: &Part, sign: Complex64) -> Part {
        let mut sum = self.clone();
        add(&mut sum.value, &other.value, sign);
        add(&mut sum.change, &other.change, sign);
        if sign == Complex64::ONE {
            add(&mut sum.kept, &other.kept, sign);
        }
        sum
    }
}

fn add(sum: &mut Sum, other: &Sum, by: Complex64) {
    for (component, value) in other {
        *sum.entry(*component).or_default() += value * by;
    }
}

/// Whether the stages in a statement make its update of a component one of first order. `false` where that cannot be
/// told, as of nonlinear updates.
pub fn are_of_first_order(
    graph: &mut Graph,
    statement: &Statement,
    target: ComponentId,
    at: &Frozen,
) -> bool {
    let mut rows: BTreeMap<ComponentId, Part> = BTreeMap::new();
    for advance in &statement.updates {
        let waves = Waves {
            statement,
            at,
            position: advance.value.position.unwrap_or_default(),
        };
        let Some(mut row) = waves.part(graph, advance.value.node) else {
            return false;
        };
        let own = row.value.entry(advance.target).or_default();
        *own -= Complex64::ONE;
        rows.insert(advance.target, row);
    }
    let Some(row) = rows.get(&target) else {
        return false;
    };
    let mut half = Sum::new();
    for (of, rate) in &row.value {
        match rows.get(of) {
            Some(change) => add(&mut half, &change.value, 0.5 * rate),
            None if rate.norm() > 0.0 => return false,
            None => {}
        }
    }
    let size = half.values().map(|v| v.norm()).fold(0.0, f64::max);
    add(&mut half, &row.change, -Complex64::ONE);
    half.values().any(|rest| rest.norm() > ALIKE * size)
}

/// Waves in the updates of a statement.
struct Waves<'a> {
    statement: &'a Statement,
    at: &'a Frozen,
    position: crate::lattice::Position,
}

impl Waves<'_> {
    fn part(&self, graph: &mut Graph, root: NodeId) -> Option<Part> {
        let mut known: HashMap<NodeId, Part> = HashMap::new();
        for id in graph.in_order(root) {
            if graph.is_dynamic(id) {
                let part = self.of(graph, id, &known)?;
                known.insert(id, part);
            }
        }
        known.remove(&root)
    }

    fn of(&self, graph: &mut Graph, id: NodeId, known: &HashMap<NodeId, Part>) -> Option<Part> {
        use HostBinary as B;
        let sign = -Complex64::ONE;
        Some(match graph.node(id) {
            Node::Field { component, level } => {
                let own = Sum::from([(component, Complex64::ONE)]);
                let is_kept = self.statement.advances(component);
                match level {
                    Some(LevelKey::Prev) => return None,
                    _ => Part {
                        kept: if is_kept { own.clone() } else { Sum::new() },
                        value: own,
                        change: Sum::new(),
                    },
                }
            }
            Node::Unary(op, a) if op.0 == HostUnary::Neg => known.get(&a)?.scaled(sign),
            Node::Shift(a, by) => known.get(&a)?.scaled(phase(by)),
            Node::Zoned(_, a) => known.get(&a)?.clone(),
            Node::Stencil(a, kernel) => {
                let kernel = graph.kernel(kernel);
                let tap =
                    |(offset, weight): &(crate::lattice::HalfIndex, super::graph::Coefficient)| {
                        let mut by = Shift::default();
                        by[kernel.axis] = *offset;
                        phase(by) * weight.as_f64() / kernel.divisor
                    };
                let mut part = known
                    .get(&a)?
                    .as_stage()
                    .scaled(kernel.taps.iter().map(tap).sum());
                part.kept.clear();
                part
            }
            Node::Binary(op, a, b) => match (op.0, known.get(&a), known.get(&b)) {
                (B::Add, Some(a), Some(b)) => a.plus(b, Complex64::ONE),
                (B::Sub, Some(a), Some(b)) => a.plus(b, sign),
                (B::Add | B::Sub, Some(a), None) if graph.as_number(b) == Some(0.0) => a.clone(),
                (B::Mul, Some(part), None) => part.scaled(self.number(graph, b)?),
                (B::Mul, None, Some(part)) => part.scaled(self.number(graph, a)?),
                (B::Div, Some(part), None) => part.scaled(self.number(graph, b)?.inv()),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// The value of a static node.
    fn number(&self, graph: &mut Graph, id: NodeId) -> Option<Complex64> {
        let value = graph.host(id, self.position)?.eval(self.at);
        value.is_finite().then(|| Complex64::from(value))
    }
}

/// The factor of a wave at a distance in half cells.
fn phase(by: Shift) -> Complex64 {
    let angle: f64 = by
        .iter()
        .map(|(axis, half)| half.as_f64() * WAVE[axis])
        .sum();
    Complex64::from_polar(1.0, angle)
}
