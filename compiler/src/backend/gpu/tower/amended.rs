//! Amendments of a thread's values of rows.

use super::super::ir::Operand;
use super::super::kernel::{Access, IntOp, Kernel, Variable};
use super::super::numbers;
use super::context::Context;
use crate::evaluate::evaluate_all;
use crate::lattice::Axis;
use crate::scheme::{Amendment, Op};

/// The values on which an amendment acts.
pub(super) struct AmendedValues {
    pub base: Operand,
    pub mask: Option<Operand>,
    /// Operands, one for each operation of the body; `None` where an operation reads no row.
    pub reads: Vec<Option<Operand>>,
}

/// An amendment of the thread's value of a row.
pub(super) struct Acting<'v> {
    pub amendment: &'v Amendment,
    pub values: &'v AmendedValues,
    pub acts: Operand,
    /// The values of states and of axis coefficients, by the operations of the body.
    pub fetched: Vec<Option<Operand>>,
    /// Which coefficients in shared memory its operations are.
    pub near: Vec<Option<usize>>,
    /// Where its states go.
    pub to: Vec<Operand>,
}

/// A coefficient in shared memory that amendments read where they act.
pub(super) struct Near {
    /// The axis along which it differs, and how far it is from others of its zone.
    pub of: (Axis, i64),
    pub from: Operand,
}

/// The new values where amendments act, the old ones elsewhere; stores new states.
pub(super) fn amend(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    all: &[Acting<'_>],
    near: &[Near],
) -> Vec<Operand> {
    let mut some: Vec<Operand> = Vec::new();
    for one in all {
        if !some.contains(&one.acts) {
            some.push(one.acts);
        }
    }
    let any = some.iter().copied();
    let Some(any) = any.reduce(|any, one| k.int(IntOp::Or, any, one)) else {
        return Vec::new();
    };
    let alike = some.len() == 1;
    let variables = all.iter().map(|one| k.variable_of(one.values.base));
    let variables: Vec<Variable> = variables.collect();
    k.when(any, |k| {
        let bytes = context.real.bytes();
        let near = near.iter();
        let near = near.map(|near| k.load(context.real, near.from, bytes, Access::Plain));
        let near: Vec<Operand> = near.collect();
        let values = all.iter().map(|one| one.evaluate(k, context, &near));
        let values: Vec<Vec<Operand>> = values.collect();
        for ((one, values), variable) in all.iter().zip(&values).zip(&variables) {
            let mut value = values[one.amendment.body.result.index()];
            if !alike {
                value = k.choose(one.acts, value, one.values.base);
            }
            k.set(*variable, value);
        }
        for (one, values) in all.iter().zip(&values) {
            match alike {
                true => one.advance(k, context, values),
                false => k.when(one.acts, |k| one.advance(k, context, values)),
            }
        }
    });
    variables.into_iter().map(|v| k.get(v)).collect()
}

impl AmendedValues {
    /// Whether an amendment acts, by the mask too.
    pub fn unmasked(&self, k: &mut Kernel<'_>, context: &Context<'_>, acts: Operand) -> Operand {
        let Some(mask) = self.mask else { return acts };
        let zero = Operand::real(context.real, 0f64.to_bits());
        let unmasked = k.differs(mask, zero);
        k.int(IntOp::And, acts, unmasked)
    }
}

impl Acting<'_> {
    /// The values of all operations.
    fn evaluate(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        near: &[Operand],
    ) -> Vec<Operand> {
        let body = &self.amendment.body;
        let poison = Operand::poison(context.real);
        evaluate_all(
            k,
            body,
            |_, n| match body.ops[n] {
                Op::Base => self.values.base,
                _ => {
                    let own = self.fetched.get(n).copied().flatten();
                    let shared = self.near.get(n).copied().flatten();
                    let own = own.or(shared.map(|number| near[number]));
                    self.values.reads[n].or(own).unwrap_or(poison)
                }
            },
            |k, op, values| numbers::number(k, context.real, op, values),
        )
    }

    /// Stores new states.
    fn advance(&self, k: &mut Kernel<'_>, context: &Context<'_>, values: &[Operand]) {
        for (advance, to) in self.amendment.advances.iter().zip(&self.to) {
            let value = values[advance.value.index()];
            k.store(value, *to, context.real.bytes(), Access::Plain);
        }
    }
}
