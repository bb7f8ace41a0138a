//! Amendments: additions of the calls in an update to its value in their zones.

use super::misplaced::Misplaced;
use crate::host::{HostBinary, HostUnary};
use crate::lattice::PerAxis;
use crate::resolve::codes;
use crate::resolve::emit::{Coefs, Emitter, Refused, Weight};
use crate::resolve::graph::{CallId, Graph, Node, NodeId, StateKey};
use crate::resolve::report::{Outcome, Place, Reported};
use crate::resolve::resolver::Resolver;
use crate::resolve::zones::{Call, Kept};
use crate::scheme::{Amendment, ComponentId, Op, Precision, State, StateAdvance, StateId, ZoneId};
use std::collections::{BTreeMap, HashMap};
use torre_grammar::diag::Diagnostic;

/// The addition of a call to an update in its zone.
pub struct Term {
    weight: Weight,
    /// The value inside less the one outside.
    correction: NodeId,
    states: Vec<StateKey>,
}

/// The terms of an update in a zone of the frame.
pub struct ZoneTerms {
    zone: usize,
    terms: Vec<Term>,
}

/// Where amendments are made.
pub struct Amending<'a> {
    pub coefs: &'a mut Coefs,
    pub states: &'a mut Vec<State>,
    pub kept: &'a mut Vec<Kept>,
    pub target: ComponentId,
    pub precision: Precision,
    pub per_step: &'a [u8],
    pub cells: PerAxis<i64>,
}

/// The factor that a call has in a value. `None`: the value does not have it.
fn weight(graph: &mut Graph, value: NodeId, call: CallId) -> Result<Option<Weight>, Misplaced> {
    let mut weights: HashMap<NodeId, Weight> = HashMap::new();
    for id in graph.in_order(value) {
        let of = |a: NodeId| weights.get(&a).cloned();
        let found = match graph.node(id) {
            Node::Zoned(own, outside) => match own == call {
                true => Some(Weight::Factor(graph.number(1.0))),
                false => of(outside),
            },
            Node::Unary(op, a) => match (of(a), op.0) {
                (None, _) => None,
                (Some(w), HostUnary::Neg) => Some(negative(graph, &w)),
                _ => return Err(Misplaced::Nonlinear),
            },
            Node::Binary(op, a, b) => match (of(a), of(b), op.0) {
                (None, None, _) => None,
                (Some(x), None, HostBinary::Add | HostBinary::Sub) => Some(x),
                (None, Some(y), HostBinary::Add) => Some(y),
                (None, Some(y), HostBinary::Sub) => Some(negative(graph, &y)),
                (Some(x), Some(y), op @ (HostBinary::Add | HostBinary::Sub)) => {
                    let (x, y) = (x.factor(graph), y.factor(graph));
                    Some(Weight::Factor(graph.binary(op, x, y)))
                }
                (Some(x), None, HostBinary::Mul) => Some(x.map(&mut |x| product(graph, x, b))),
                (None, Some(y), HostBinary::Mul) => Some(y.map(&mut |y| product(graph, a, y))),
                (Some(x), None, HostBinary::Div) => {
                    Some(x.map(&mut |x| graph.binary(HostBinary::Div, x, b)))
                }
                _ => return Err(Misplaced::Nonlinear),
            },
            Node::If(c, a, b) => match of(c) {
                None => Weight::of_branches(c, of(a), of(b)),
                Some(_) => return Err(Misplaced::Nonlinear),
            },
            Node::Shift(a, _) | Node::Stencil(a, _) => match of(a) {
                None => None,
                Some(_) => return Err(Misplaced::Elsewhere),
            },
            Node::Table(_, a) if of(a).is_some() => return Err(Misplaced::Nonlinear),
            _ => None,
        };
        if let Some(found) = found {
            weights.insert(id, found);
        }
    }
    Ok(weights.remove(&value))
}

fn negative(graph: &mut Graph, weight: &Weight) -> Weight {
    weight.map(&mut |w| graph.unary(HostUnary::Neg, w))
}

/// Whether a node is a state, old or new.
fn is_state(node: Node) -> bool {
    matches!(node, Node::State(_) | Node::Next(..))
}

/// Whether a node is the value of a call with states.
fn is_zoned(node: Node) -> bool {
    matches!(node, Node::Zoned(..))
}

/// Whether a value takes such a node from another place than its own.
fn moves(graph: &mut Graph, value: NodeId, such: impl Fn(Node) -> bool) -> bool {
    let mut has_such: HashMap<NodeId, bool> = HashMap::new();
    for id in graph.in_order(value) {
        let (parts, count) = graph.parts(id);
        let below = parts[..count].iter().any(|p| has_such[p]);
        let node = graph.node(id);
        if below && matches!(node, Node::Shift(..) | Node::Stencil(..)) {
            return true;
        }
        has_such.insert(id, below || such(node));
    }
    false
}

/// A product without factors 1.
fn product(graph: &mut Graph, a: NodeId, b: NodeId) -> NodeId {
    match (graph.as_number(a), graph.as_number(b)) {
        (Some(1.0), _) => b,
        (_, Some(1.0)) => a,
        _ => graph.binary(HostBinary::Mul, a, b),
    }
}

impl Resolver<'_> {
    /// The states that an update keeps, and the additions of its amendments, one after the other.
    pub fn terms(&mut self, value: NodeId, update: &Place) -> Outcome<Vec<ZoneTerms>> {
        let mut calls = self.graph.calls(value);
        calls.sort_unstable();
        let mut found: BTreeMap<usize, Vec<Term>> = BTreeMap::new();
        for id in calls {
            let call = self.zoned.calls[id.0 as usize].clone();
            let nested = [call.inside].into_iter().chain(
                call.states
                    .iter()
                    .filter_map(|s| self.zoned.states[s.0 as usize].next),
            );
            let nested: Vec<NodeId> = nested.collect();
            let mut moved = |such: fn(Node) -> bool| {
                let mut values = nested.iter();
                values.any(|n| moves(&mut self.graph, *n, such))
            };
            if moved(is_state) {
                return self.misplaced(&Misplaced::State, &call, update);
            }
            let elsewhere = moved(is_zoned);
            let within: Vec<CallId> = nested.iter().flat_map(|n| self.graph.calls(*n)).collect();
            let mut zones = within.iter().map(|id| self.zoned.calls[id.0 as usize].zone);
            let layer = zones.find_map(|zone| self.layer_axis(zone));
            let weight = match (elsewhere, layer) {
                (true, _) => Err(Misplaced::Elsewhere),
                (false, Some(axis)) => Err(Misplaced::InLayer(axis)),
                (false, None) if !within.is_empty() => Err(Misplaced::Nested),
                (false, None) => weight(&mut self.graph, value, id),
            };
            let weight = match weight {
                Ok(Some(weight)) => weight,
                Ok(None) => continue,
                Err(reason) => return self.misplaced(&reason, &call, update),
            };
            let plain = self.graph.outside_of(value, id);
            let correction = match plain {
                Some(plain) => {
                    let plain = self.outside(plain);
                    self.graph.binary(HostBinary::Sub, call.inside, plain)
                }
                None => return Err(Reported),
            };
            found.entry(call.zone).or_default().push(Term {
                weight,
                correction,
                states: call.states,
            });
        }
        Ok(found
            .into_iter()
            .map(|(zone, terms)| ZoneTerms { zone, terms })
            .collect())
    }

    fn misplaced<T>(&mut self, reason: &Misplaced, call: &Call, update: &Place) -> Outcome<T> {
        let (message, hint) = reason.said();
        let mut d = Diagnostic::error(codes::STATE, message)
            .at(&update.source, update.span, "in this update")
            .hint(hint);
        if call.place.span != update.span {
            d = d.at(&call.place.source, call.place.span, "the value");
        }
        self.fail(d)
    }

    /// The amendments that the terms of zones make up; new states are appended to the scheme's.
    pub fn amend(
        &mut self,
        terms: &[ZoneTerms],
        context: &mut Amending<'_>,
    ) -> Result<Vec<Amendment>, Refused> {
        let mut amendments = Vec::new();
        for ZoneTerms { zone, terms } in terms {
            let facts = self.frame.zones[*zone].clone();
            let target = self.frame.components[context.target.index()].clone();
            let mut own = BTreeMap::new();
            for key in terms.iter().flat_map(|t| &t.states) {
                let state = StateId(context.states.len() as u32);
                let name = &self.zoned.states[key.0 as usize].name;
                context.states.push(State {
                    name: format!("{name} of {} in {}", target.name, facts.name),
                    position: target.position,
                    zone: ZoneId(*zone as u32),
                });
                context.kept.push(Kept {
                    id: state,
                    name: name.clone(),
                    target: context.target,
                    zone: *zone,
                });
                own.insert(*key, state);
            }
            let mut emitter = Emitter::new(
                &mut self.graph,
                &self.frame.components,
                context.coefs,
                context.precision,
                context.target,
                context.per_step,
                context.cells,
            );
            emitter.states.clone_from(&own);
            let base = emitter.operand(Op::Base)?;
            let mut value = base;
            for term in terms {
                value = emitter.add_weighted(&term.weight, term.correction, value)?;
            }
            let mask = match facts.mask {
                Some(mask) => Some(emitter.coefficient(mask)?),
                None => None,
            };
            let mut advances = Vec::new();
            for (key, state) in &own {
                let next = self.zoned.states[key.0 as usize].next;
                let Some(next) = next else { continue };
                let old = emitter.operand(Op::State(*state))?;
                let new = emitter.fused(next)?;
                let value = emitter.chosen(mask, new, old)?;
                advances.push(StateAdvance {
                    state: *state,
                    value,
                });
            }
            let value = emitter.chosen(mask, value, base)?;
            let body = emitter.finish(value, &mut advances);
            amendments.push(Amendment {
                zone: ZoneId(*zone as u32),
                body,
                advances,
            });
        }
        Ok(amendments)
    }
}
