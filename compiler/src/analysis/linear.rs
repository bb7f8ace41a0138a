//! Which linear combination of values an update computes.

use crate::real::Real;
use crate::scheme::{Body, Cmp, ComponentId, Op, Read, Value};
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
/// out. `coefs` are the values of the scheme's coefficients. A nonlinear operation whose result has no weight does not
/// count.
pub fn weights(body: &Body, coefs: &[f64]) -> Result<Vec<(Read, f64)>, Nonlinear> {
    let known = known_values(body, coefs);
    let known = |v: Value| known[v.index()];
    let mut adjoint = vec![0.0; body.ops.len()];
    adjoint[body.result.index()] = 1.0;
    let mut reads: Vec<(Read, f64)> = Vec::new();
    for (i, op) in body.ops.iter().enumerate().rev() {
        let weight = adjoint[i];
        if weight == 0.0 || known(Value(i as u32)).is_some() {
            continue;
        }
        let mut add = |v: Value, w: f64| adjoint[v.index()] += w;
        let nonlinear = |operation, by: &[Value]| {
            Err(Nonlinear {
                operation,
                components: components(body, by),
            })
        };
        match *op {
            // Additions of amendments are not part of the analysis.
            Op::Const(_) | Op::Coef(_) | Op::Base | Op::State(_) => {}
            Op::Read(read) => match reads.iter_mut().find(|(r, _)| *r == read) {
                Some((_, sum)) => *sum += weight,
                None => reads.push((read, weight)),
            },
            Op::Neg(a) => add(a, -weight),
            // A flushed value is too small to matter.
            Op::Flush(a) => add(a, weight),
            Op::Add(a, b) => {
                add(a, weight);
                add(b, weight);
            }
            Op::Sub(a, b) => {
                add(a, weight);
                add(b, -weight);
            }
            Op::Mul(a, b) | Op::Fma(a, b, _) => {
                match (known(a), known(b)) {
                    (Some(a), Some(_) | None) => add(b, weight * a),
                    (None, Some(b)) => add(a, weight * b),
                    (None, None) => return nonlinear(Operation::Product, &[a, b]),
                }
                if let Op::Fma(_, _, c) = *op {
                    add(c, weight);
                }
            }
            Op::Div(a, b) => match known(b) {
                Some(b) => add(a, weight / b),
                None => return nonlinear(Operation::Quotient, &[b]),
            },
            Op::Sqrt(a) => return nonlinear(Operation::Root, &[a]),
            Op::Power2(a) | Op::Exponent(a) => return nonlinear(Operation::Function, &[a]),
            Op::Abs(a) => return nonlinear(Operation::Magnitude, &[a]),
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => match (known(a), known(b)) {
                (Some(a), Some(b)) => add(if holds(cmp, a, b) { then } else { otherwise }, weight),
                _ if then == otherwise => add(then, weight),
                _ => return nonlinear(Operation::Choice, &[a, b]),
            },
        }
    }
    reads.retain(|(_, w)| *w != 0.0);
    Ok(reads)
}

/// Which way each choice goes that does not depend on field values.
pub fn choices(body: &Body, coefs: &[f64]) -> Vec<bool> {
    let known = known_values(body, coefs);
    let choice = |op: &Op| match *op {
        Op::Select { cmp, a, b, .. } => Some(holds(cmp, known[a.index()]?, known[b.index()]?)),
        _ => None,
    };
    body.ops.iter().filter_map(choice).collect()
}

/// A product is known where a factor is 0, for any other factor.
fn product(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a * b),
        (Some(0.0), None) | (None, Some(0.0)) => Some(0.0),
        _ => None,
    }
}

/// The value of each operation that does not depend on field values.
fn known_values(body: &Body, coefs: &[f64]) -> Vec<Option<f64>> {
    let mut known: Vec<Option<f64>> = Vec::with_capacity(body.ops.len());
    for op in &body.ops {
        let k = |v: Value| known[v.index()];
        let both = |a: Value, b: Value, f: fn(f64, f64) -> f64| Some(f(k(a)?, k(b)?));
        let value = match *op {
            Op::Const(c) => Some(c),
            Op::Coef(id) => Some(coefs[id.index()]),
            Op::Read(_) | Op::Base | Op::State(_) => None,
            Op::Neg(a) => k(a).map(|a| -a),
            Op::Abs(a) => k(a).map(f64::abs),
            Op::Flush(a) => k(a),
            Op::Sqrt(a) => k(a).map(f64::sqrt),
            Op::Power2(a) => k(a).map(Real::power2),
            Op::Exponent(a) => k(a).map(Real::exponent),
            Op::Add(a, b) => both(a, b, |a, b| a + b),
            Op::Sub(a, b) => both(a, b, |a, b| a - b),
            Op::Mul(a, b) => product(k(a), k(b)),
            Op::Div(a, b) => both(a, b, |a, b| a / b),
            Op::Fma(a, b, c) => product(k(a), k(b)).and_then(|p| Some(p + k(c)?)),
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => match (k(a), k(b)) {
                (Some(a), Some(b)) => k(if holds(cmp, a, b) { then } else { otherwise }),
                _ => None,
            },
        };
        known.push(value);
    }
    known
}

fn holds(cmp: Cmp, a: f64, b: f64) -> bool {
    match cmp {
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
    }
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
    use crate::scheme::CoefId;

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
            weights(&body(ops), &[])
        };
        assert_eq!(choice(Cmp::Lt, 0.0), Ok(vec![(read(0, 0), 1.0)]));
        assert_eq!(choice(Cmp::Lt, 1.0), Ok(vec![(read(1, 0), 1.0)]));
        assert_eq!(choice(Cmp::Ne, 0.0), Ok(vec![(read(0, 0), 1.0)]));

        for (op, operation) in [
            (Op::Abs(Value(0)), Operation::Magnitude),
            (Op::Sqrt(Value(0)), Operation::Root),
            (Op::Div(Value(0), Value(0)), Operation::Quotient),
        ] {
            let refused = weights(&body(vec![Op::Read(read(2, 0)), op]), &[]).unwrap_err();
            assert_eq!(refused.operation, operation);
            assert_eq!(refused.components, BTreeSet::from([ComponentId(2)]));
        }
    }
}
