//! Which linear combination of values an update computes.

use super::number::Number;
use crate::host_range::Range;
use crate::scheme::{Body, ComponentId, Op, Read, Value};
use std::collections::BTreeSet;

/// An operation that makes an update nonlinear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Product,
    Quotient,
    Root,
    Magnitude,
    Choice,
    Function,
}

impl Operation {
    /// As a message names it.
    pub fn describe(self) -> &'static str {
        match self {
            Operation::Product => "a product of field values",
            Operation::Quotient => "a quotient by field values",
            Operation::Root => "the square root of field values",
            Operation::Magnitude => "the absolute value of field values",
            Operation::Choice => "a choice by field values, or a function of them",
            Operation::Function => "a function of field values",
        }
    }
}

/// Why an update is not linear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonlinear {
    pub operation: Operation,
    /// The components whose values it multiplies, divides by, or chooses by.
    pub components: BTreeSet<ComponentId>,
}

/// The values that a body reads, each with its weight in the result; terms that do not depend on field values are left
/// out. `coefs` are the values of the scheme's coefficients, or their ranges, which give the ranges of weights for all
/// branches. A nonlinear operation whose result has no weight does not count.
pub fn weights<N: Number>(body: &Body, coefs: &[N]) -> Result<Vec<(Read, N)>, Nonlinear> {
    weights_unless(body, coefs, Err)
}

/// The same for the linear terms of a body alone. Over ranges of coefficients these bound the weights wherever the body
/// is linear, as the terms that are left out have no weight there.
pub fn weights_of_linear_terms<N: Number>(body: &Body, coefs: &[N]) -> Vec<(Read, N)> {
    weights_unless(body, coefs, |_| Ok(())).unwrap_or_default()
}

/// The same where nonlinear operations are refused or left out.
fn weights_unless<N: Number>(
    body: &Body,
    coefs: &[N],
    judge: impl Fn(Nonlinear) -> Result<(), Nonlinear>,
) -> Result<Vec<(Read, N)>, Nonlinear> {
    let known = known_values(body, coefs);
    let known = |v: Value| known[v.index()];
    let mut adjoint = vec![N::of(0.0); body.ops.len()];
    adjoint[body.result.index()] = N::of(1.0);
    let mut reads: Vec<(Read, N)> = Vec::new();
    for (i, op) in body.ops.iter().enumerate().rev() {
        let weight = adjoint[i];
        if weight.is_zero() || known(Value(i as u32)).is_some() {
            continue;
        }
        let mut add = |v: Value, w: N| adjoint[v.index()] = adjoint[v.index()].add(w);
        let nonlinear = |operation, by: &[Value]| {
            judge(Nonlinear {
                operation,
                components: components(body, by),
            })
        };
        match *op {
            // Additions of amendments are not part of the analysis.
            Op::Const(_) | Op::Coef(_) | Op::Base | Op::State(_) => {}
            Op::Read(read) => match reads.iter_mut().find(|(r, _)| *r == read) {
                Some((_, sum)) => *sum = sum.add(weight),
                None => reads.push((read, weight)),
            },
            Op::Neg(a) => add(a, weight.neg()),
            // A flushed value is too small to matter.
            Op::Flush(a) => add(a, weight),
            Op::Add(a, b) => {
                add(a, weight);
                add(b, weight);
            }
            Op::Sub(a, b) => {
                add(a, weight);
                add(b, weight.neg());
            }
            Op::Mul(a, b) | Op::Fma(a, b, _) => {
                match (known(a), known(b)) {
                    (Some(a), Some(_) | None) => add(b, weight.mul(a)),
                    (None, Some(b)) => add(a, weight.mul(b)),
                    (None, None) => nonlinear(Operation::Product, &[a, b])?,
                }
                if let Op::Fma(_, _, c) = *op {
                    add(c, weight);
                }
            }
            Op::Div(a, b) => match known(b) {
                Some(b) => add(a, weight.div(b)),
                None => nonlinear(Operation::Quotient, &[b])?,
            },
            Op::Sqrt(a) => nonlinear(Operation::Root, &[a])?,
            Op::Power2(a) | Op::Exponent(a) => nonlinear(Operation::Function, &[a])?,
            Op::Abs(a) => nonlinear(Operation::Magnitude, &[a])?,
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => match (known(a), known(b)) {
                (Some(a), Some(b)) => match N::compare(cmp, a, b) {
                    Some(holds) => add(if holds { then } else { otherwise }, weight),
                    None => {
                        add(then, weight.either(N::of(0.0)));
                        add(otherwise, weight.either(N::of(0.0)));
                    }
                },
                _ if then == otherwise => add(then, weight),
                _ => nonlinear(Operation::Choice, &[a, b])?,
            },
        }
    }
    reads.retain(|(_, w)| !w.is_zero());
    Ok(reads)
}

/// Which way each choice goes that does not depend on field values, by the number of its operation; `None` where it
/// goes both ways.
pub fn choices<N: Number>(body: &Body, coefs: &[N]) -> Vec<(usize, Option<bool>)> {
    let known = known_values(body, coefs);
    let choice = |(number, op): (usize, &Op)| match *op {
        Op::Select { cmp, a, b, .. } => {
            let holds = N::compare(cmp, known[a.index()]?, known[b.index()]?);
            Some((number, holds))
        }
        _ => None,
    };
    body.ops.iter().enumerate().filter_map(choice).collect()
}

/// The sum of the largest absolute weights of a component's values in a body, where each of them has one: no product
/// with field values, and no function or choice, depends on the component.
pub fn own_weight(body: &Body, coefs: &[Range], component: ComponentId) -> Option<f64> {
    let known = known_values(body, coefs);
    let mut own: Vec<Read> = Vec::new();
    for read in body.reads().filter(|r| r.component == component) {
        if !own.contains(read) {
            own.push(*read);
        }
    }
    let sizes = own
        .iter()
        .map(|read| Some(share_of(body, &known, read)?.size()));
    sizes.sum()
}

/// The weight of one value that a body reads, if it has one.
fn share_of(body: &Body, known: &[Option<Range>], read: &Read) -> Option<Range> {
    let mut shares: Vec<Option<Range>> = Vec::with_capacity(body.ops.len());
    let zero = Range::of(0.0);
    for op in &body.ops {
        let share = |v: Value| shares[v.index()];
        let is_free = |v: Value| share(v).is_some_and(Number::is_zero);
        let product = |a: Value, b: Value| match (known[a.index()], known[b.index()]) {
            (Some(k), _) => Some(k.mul(share(b)?)),
            (_, Some(k)) => Some(k.mul(share(a)?)),
            _ => (is_free(a) && is_free(b)).then_some(zero),
        };
        let own = match *op {
            Op::Const(_) | Op::Coef(_) | Op::Base | Op::State(_) => Some(zero),
            Op::Read(own) => Some(Range::of(if own == *read { 1.0 } else { 0.0 })),
            Op::Neg(a) => share(a).map(Number::neg),
            Op::Flush(a) => share(a),
            Op::Add(a, b) => share(a).zip(share(b)).map(|(a, b)| a.add(b)),
            Op::Sub(a, b) => share(a).zip(share(b)).map(|(a, b)| a.sub(b)),
            Op::Mul(a, b) => product(a, b),
            Op::Fma(a, b, c) => product(a, b).zip(share(c)).map(|(p, c)| p.add(c)),
            Op::Div(a, b) => match known[b.index()] {
                Some(k) => share(a).map(|a| a.div(k)),
                None => (is_free(a) && is_free(b)).then_some(zero),
            },
            Op::Sqrt(a) | Op::Power2(a) | Op::Exponent(a) | Op::Abs(a) => {
                is_free(a).then_some(zero)
            }
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => {
                let of_known = known[a.index()].zip(known[b.index()]);
                match of_known.and_then(|(a, b)| Range::compare(cmp, a, b)) {
                    Some(true) => share(then),
                    Some(false) => share(otherwise),
                    None if !is_free(a) || !is_free(b) => None,
                    None => share(then).zip(share(otherwise)).map(|(t, o)| t.hull(o)),
                }
            }
        };
        shares.push(own);
    }
    shares[body.result.index()]
}

/// A product is known where a factor is 0, for any other factor.
fn product<N: Number>(a: Option<N>, b: Option<N>) -> Option<N> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.mul(b)),
        (Some(zero), None) | (None, Some(zero)) if zero.is_zero() => Some(N::of(0.0)),
        _ => None,
    }
}

/// The value of each operation that does not depend on field values.
fn known_values<N: Number>(body: &Body, coefs: &[N]) -> Vec<Option<N>> {
    let mut known: Vec<Option<N>> = Vec::with_capacity(body.ops.len());
    for op in &body.ops {
        let k = |v: Value| known[v.index()];
        let both = |a: Value, b: Value, f: fn(N, N) -> N| Some(f(k(a)?, k(b)?));
        let value = match *op {
            Op::Const(c) => Some(N::of(c)),
            Op::Coef(id) => Some(coefs[id.index()]),
            Op::Read(_) | Op::Base | Op::State(_) => None,
            Op::Neg(a) => k(a).map(N::neg),
            Op::Abs(a) => k(a).map(N::abs),
            Op::Flush(a) => k(a),
            Op::Sqrt(a) => k(a).map(N::sqrt),
            Op::Power2(a) => k(a).map(N::power2),
            Op::Exponent(a) => k(a).map(N::exponent),
            Op::Add(a, b) => both(a, b, N::add),
            Op::Sub(a, b) => both(a, b, N::sub),
            Op::Mul(a, b) => product(k(a), k(b)),
            Op::Div(a, b) => both(a, b, N::div),
            Op::Fma(a, b, c) => product(k(a), k(b)).and_then(|p| Some(p.add(k(c)?))),
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => match (k(a), k(b)) {
                (Some(a), Some(b)) => match N::compare(cmp, a, b) {
                    Some(holds) => k(if holds { then } else { otherwise }),
                    None => k(then).zip(k(otherwise)).map(|(t, o)| t.either(o)),
                },
                _ => None,
            },
        };
        known.push(value);
    }
    known
}

/// The components that some values of a body depend on.
fn components(body: &Body, values: &[Value]) -> BTreeSet<ComponentId> {
    let mut needed = vec![false; body.ops.len()];
    for value in values {
        needed[value.index()] = true;
    }
    let mut found = BTreeSet::new();
    for (i, op) in body.ops.iter().enumerate().rev() {
        if needed[i] {
            op.operands(|v| needed[v.index()] = true);
            if let Op::Read(read) = op {
                found.insert(read.component);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::PerAxis;
    use crate::scheme::{Cmp, CoefId};

    fn read(component: u32, x: i32) -> Read {
        Read {
            component: ComponentId(component),
            offset: PerAxis([x, 0, 0]),
            age: 0,
        }
    }

    fn body(ops: Vec<Op>) -> Body {
        let result = Value(ops.len() as u32 - 1);
        Body { ops, result }
    }

    #[test]
    fn a_chain_has_the_weights_of_its_taps() {
        // u + 3 (v[1] - v) - m0 (2 u) / 4, and a constant
        let chain = body(vec![
            Op::Read(read(0, 0)),
            Op::Read(read(1, 1)),
            Op::Read(read(1, 0)),
            Op::Sub(Value(1), Value(2)),
            Op::Const(3.0),
            Op::Fma(Value(4), Value(3), Value(0)),
            Op::Coef(CoefId(0)),
            Op::Add(Value(0), Value(0)),
            Op::Mul(Value(6), Value(7)),
            Op::Const(4.0),
            Op::Div(Value(8), Value(9)),
            Op::Sub(Value(5), Value(10)),
            Op::Add(Value(11), Value(9)),
        ]);
        let mut found = weights(&chain, &[5.0]).unwrap();
        found.sort_by_key(|(r, _)| (r.component, r.offset));
        assert_eq!(
            found,
            [(read(0, 0), -1.5), (read(1, 0), -3.0), (read(1, 1), 3.0)]
        );
    }

    #[test]
    fn nonlinear_operations_are_named_unless_their_weight_is_0() {
        let kerr = |chi: f64| {
            // u / (1 + chi v^2)
            let ops = vec![
                Op::Read(read(1, 0)),
                Op::Mul(Value(0), Value(0)),
                Op::Coef(CoefId(0)),
                Op::Const(1.0),
                Op::Fma(Value(2), Value(1), Value(3)),
                Op::Read(read(0, 0)),
                Op::Div(Value(5), Value(4)),
            ];
            weights(&body(ops), &[chi])
        };
        assert_eq!(kerr(0.0), Ok(vec![(read(0, 0), 1.0)]));
        let refused = kerr(0.5).unwrap_err();
        assert_eq!(refused.operation, Operation::Quotient);
        assert_eq!(refused.components, BTreeSet::from([ComponentId(1)]));

        let choice = |cmp, a: f64| {
            let ops = vec![
                Op::Const(a),
                Op::Const(1.0),
                Op::Read(read(0, 0)),
                Op::Read(read(1, 0)),
                Op::Select {
                    cmp,
                    a: Value(0),
                    b: Value(1),
                    then: Value(2),
                    otherwise: Value(3),
                },
            ];
            weights::<f64>(&body(ops), &[])
        };
        assert_eq!(choice(Cmp::Lt, 0.0), Ok(vec![(read(0, 0), 1.0)]));
        assert_eq!(choice(Cmp::Lt, 1.0), Ok(vec![(read(1, 0), 1.0)]));
        assert_eq!(choice(Cmp::Ne, 0.0), Ok(vec![(read(0, 0), 1.0)]));

        for (op, operation) in [
            (Op::Abs(Value(0)), Operation::Magnitude),
            (Op::Sqrt(Value(0)), Operation::Root),
            (Op::Div(Value(0), Value(0)), Operation::Quotient),
        ] {
            let refused = weights::<f64>(&body(vec![Op::Read(read(2, 0)), op]), &[]).unwrap_err();
            assert_eq!(refused.operation, operation);
            assert_eq!(refused.components, BTreeSet::from([ComponentId(2)]));
        }
    }

    #[test]
    fn ranges_of_weights_hold_for_all_branches_and_signs() {
        // if m0 then 3 u else m1 u - m2 u
        let ops = vec![
            Op::Read(read(0, 0)),
            Op::Coef(CoefId(1)),
            Op::Coef(CoefId(2)),
            Op::Mul(Value(1), Value(0)),
            Op::Mul(Value(2), Value(0)),
            Op::Sub(Value(3), Value(4)),
            Op::Const(3.0),
            Op::Mul(Value(6), Value(0)),
            Op::Coef(CoefId(0)),
            Op::Const(0.0),
            Op::Select {
                cmp: Cmp::Ne,
                a: Value(8),
                b: Value(9),
                then: Value(7),
                otherwise: Value(5),
            },
        ];
        let [one, zero] = [1.0, 0.0].map(Range::point);
        let [m1, m2] = [Range::new(0.25, 0.5), Range::new(-5.0, -0.25)];
        for (m0, lo, hi) in [
            (one, 3.0, 3.0),
            (zero, 0.5, 5.5),
            (Range::new(0.0, 1.0), 0.0, 8.5),
        ] {
            let found = weights(&body(ops.clone()), &[m0, m1, m2]).unwrap();
            assert_eq!(found, [(read(0, 0), Range::new(lo, hi))]);
        }
    }

    #[test]
    fn a_component_has_a_weight_of_its_own_unless_products_depend_on_it() {
        // 2 u + v^2, and u + u v
        let sum = body(vec![
            Op::Read(read(0, 0)),
            Op::Read(read(1, 0)),
            Op::Const(2.0),
            Op::Mul(Value(1), Value(1)),
            Op::Fma(Value(2), Value(0), Value(3)),
        ]);
        assert_eq!(own_weight(&sum, &[], ComponentId(0)), Some(2.0));
        assert_eq!(own_weight(&sum, &[], ComponentId(2)), Some(0.0));
        assert_eq!(own_weight(&sum, &[], ComponentId(1)), None);
        let product = body(vec![
            Op::Read(read(0, 0)),
            Op::Read(read(1, 0)),
            Op::Fma(Value(0), Value(1), Value(0)),
        ]);
        assert_eq!(own_weight(&product, &[], ComponentId(0)), None);
    }
}
