//! Operations for bodies of amendments, besides the operations for updates.

use super::ops::pruned_to;
use super::{Emitter, Refused, scaled_factor};
use crate::resolve::graph::{NodeId, Shift};
use crate::scheme::{Body, Cmp, Op, StateAdvance, Value};

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
        weight: NodeId,
        term: NodeId,
        to: Value,
    ) -> Result<Value, Refused> {
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
