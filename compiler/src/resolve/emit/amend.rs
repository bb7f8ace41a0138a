//! Operations for bodies of amendments, besides the operations for updates.

use super::ops::pruned_to;
use super::{Emitter, Refused, scaled_factor};
use crate::resolve::graph::{Graph, NodeId, Shift};
use crate::scheme::{Body, Cmp, Op, StateAdvance, Value};
use std::rc::Rc;

/// The factor of a call in an update.
#[derive(Clone, PartialEq)]
pub enum Weight {
    Factor(NodeId),
    /// The factors of two branches. Each branch has the bits that it has alone, so no coefficient joins them.
    Branches {
        condition: NodeId,
        then: Option<Rc<Weight>>,
        otherwise: Option<Rc<Weight>>,
    },
}

impl Weight {
    /// The weight of a value with branches. `None`: neither has the call.
    pub fn of_branches(
        condition: NodeId,
        then: Option<Weight>,
        otherwise: Option<Weight>,
    ) -> Option<Self> {
        if then == otherwise {
            return then;
        }
        Some(Self::Branches {
            condition,
            then: then.map(Rc::new),
            otherwise: otherwise.map(Rc::new),
        })
    }

    /// The weight with `change` applied to the factor of each branch.
    pub fn map(&self, change: &mut impl FnMut(NodeId) -> NodeId) -> Self {
        match self {
            Self::Factor(factor) => Self::Factor(change(*factor)),
            Self::Branches {
                condition,
                then,
                otherwise,
            } => {
                let mut of = |w: &Option<Rc<Self>>| w.as_ref().map(|w| Rc::new(w.map(change)));
                Self::Branches {
                    condition: *condition,
                    then: of(then),
                    otherwise: of(otherwise),
                }
            }
        }
    }

    /// The weight as one factor.
    pub fn factor(&self, graph: &mut Graph) -> NodeId {
        match self {
            Self::Factor(factor) => *factor,
            Self::Branches {
                condition,
                then,
                otherwise,
            } => {
                let mut of = |w: &Option<Rc<Self>>| match w {
                    Some(w) => w.factor(graph),
                    None => graph.number(0.0),
                };
                let (then, otherwise) = (of(then), of(otherwise));
                graph.choose(*condition, then, otherwise)
            }
        }
    }
}

impl Emitter<'_> {
    /// An operand of an amendment.
    pub fn operand(&mut self, op: Op) -> Result<Value, Refused> {
        self.push(op)
    }

    /// The value of a node at the target's place, in the order as written.
    pub fn fused(&mut self, node: NodeId) -> Result<Value, Refused> {
        self.as_written(node, Shift::default())
    }

    /// A static node as a coefficient.
    pub fn coefficient(&mut self, node: NodeId) -> Result<Value, Refused> {
        self.coef(node)
    }

    /// `weight * term + to`, where the weight's number goes to the term, so that a coefficient is one that the update
    /// has anyway.
    pub fn add_weighted(
        &mut self,
        weight: &Weight,
        term: NodeId,
        to: Value,
    ) -> Result<Value, Refused> {
        let weight = match weight {
            Weight::Factor(factor) => *factor,
            Weight::Branches {
                condition,
                then,
                otherwise,
            } => {
                let mut added = |branch: &Option<Rc<Weight>>| match branch {
                    Some(weight) => self.add_weighted(weight, term, to),
                    None => Ok(to),
                };
                let (then, otherwise) = (added(then)?, added(otherwise)?);
                return self.select(*condition, Shift::default(), then, otherwise);
            }
        };
        let term = self.fused(term)?;
        if self.graph.is_dynamic(weight) {
            let weight = self.fused(weight)?;
            return self.push(Op::Fma(weight, term, to));
        }
        let (scale, factor) = scaled_factor(self.graph, weight);
        match factor {
            None => {
                let weight = self.constant(scale)?;
                self.push(Op::Fma(weight, term, to))
            }
            Some(factor) => {
                let term = self.weighted(scale, term)?;
                let factor = self.coef(factor)?;
                self.push(Op::Fma(factor, term, to))
            }
        }
    }

    /// `then` where a mask is not 0, else `otherwise`; without a mask `then`.
    pub fn chosen(
        &mut self,
        mask: Option<Value>,
        then: Value,
        otherwise: Value,
    ) -> Result<Value, Refused> {
        let Some(mask) = mask else { return Ok(then) };
        let zero = self.constant(0.0)?;
        self.push(Op::Select {
            cmp: Cmp::Ne,
            a: mask,
            b: zero,
            then,
            otherwise,
        })
    }

    /// The body of an amendment with its result; the new values of states are renumbered with it.
    pub fn finish(self, result: Value, advances: &mut [StateAdvance]) -> Body {
        pruned_to(&self.ops, result, advances)
    }
}
