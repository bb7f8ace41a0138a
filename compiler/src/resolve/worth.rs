//! The value of a compiled body at one place.

use crate::real::Real;
use crate::scheme::{Body, Cmp, CoefId, Op, Read, Value};

/// The value of a body where each read and each coefficient has a value.
pub(super) fn value_of(
    body: &Body,
    field: impl Fn(&Read) -> f64,
    coef: impl Fn(CoefId) -> f64,
) -> f64 {
    let mut values: Vec<f64> = Vec::with_capacity(body.ops.len());
    for op in &body.ops {
        let v = |value: Value| values[value.index()];
        let value = match *op {
            Op::Const(n) => n,
            Op::Read(read) => field(&read),
            // Of amendments only.
            Op::Base | Op::State(_) => 0.0,
            Op::Coef(id) => coef(id),
            Op::Neg(a) => -v(a),
            Op::Abs(a) => v(a).abs(),
            Op::Flush(a) => v(a),
            Op::Sqrt(a) => v(a).sqrt(),
            Op::Power2(a) => Real::power2(v(a)),
            Op::Exponent(a) => Real::exponent(v(a)),
            Op::Add(a, b) => v(a) + v(b),
            Op::Sub(a, b) => v(a) - v(b),
            Op::Mul(a, b) => v(a) * v(b),
            Op::Div(a, b) => v(a) / v(b),
            Op::Fma(a, b, c) => v(a) * v(b) + v(c),
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => {
                let holds = match cmp {
                    Cmp::Lt => v(a) < v(b),
                    Cmp::Le => v(a) <= v(b),
                    Cmp::Eq => v(a) == v(b),
                    Cmp::Ne => v(a) != v(b),
                };
                v(if holds { then } else { otherwise })
            }
        };
        values.push(value);
    }
    values[body.result.index()]
}
