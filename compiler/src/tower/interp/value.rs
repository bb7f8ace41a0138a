//! Arithmetic on values, some of which are unknown.

use crate::evaluate::{Elsewhere, range};
use crate::real::Real;
use crate::scheme::{self, Op, Scheme, Value};

/// An operation on numbers, some of which may be unknown.
pub(super) fn number<T: Real>(op: &Op, values: &[Option<T>]) -> Option<T> {
    let get = |value: Value| values[value.index()];
    Some(match *op {
        Op::Const(value) => T::from_f64(value),
        // They are operands.
        Op::Read(_) | Op::Coef(_) | Op::Base | Op::State(_) => return None,
        Op::Neg(a) => get(a)?.neg(),
        Op::Abs(a) => get(a)?.abs(),
        Op::Flush(a) => get(a)?.flush(),
        Op::Sqrt(a) => get(a)?.sqrt(),
        Op::Power2(a) => get(a)?.power2(),
        Op::Exponent(a) => get(a)?.exponent(),
        Op::Add(a, b) => get(a)?.add(get(b)?),
        Op::Sub(a, b) => get(a)?.sub(get(b)?),
        Op::Mul(a, b) => get(a)?.mul(get(b)?),
        Op::Div(a, b) => get(a)?.div(get(b)?),
        Op::Fma(a, b, c) => get(a)?.mul_add(get(b)?, get(c)?),
        Op::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        } => get(match get(a)?.compare(cmp, get(b)?) {
            true => then,
            false => otherwise,
        })?,
    })
}

/// The new value at an index, from that of the body: where mask and range say so.
pub(super) fn kept<T: Real>(
    scheme: &Scheme,
    update: &scheme::Update,
    z: i64,
    value: Option<T>,
    mask: Option<Option<T>>,
    old: Option<T>,
) -> Option<T> {
    let value = match mask {
        // An unknown mask makes an unknown value.
        Some(mask) => match mask? != T::from_f64(0.0) {
            true => value,
            false => old,
        },
        None => value,
    };
    let (range, elsewhere) = range(scheme, update);
    match (range.contains(z), elsewhere) {
        (true, _) | (_, Elsewhere::Nothing) => value,
        (false, Elsewhere::Zero) => Some(T::from_f64(0.0)),
        (false, Elsewhere::Old) => old,
    }
}
