//! Sums of weighted values, as chains of fused multiply-adds.

use super::{Emitter, Refused};
use crate::resolve::linearize::{Tap, Weight};
use crate::scheme::{Op, Value};

impl Emitter<'_> {
    /// `weight * value`.
    pub(super) fn weighted(&mut self, weight: f64, value: Value) -> Result<Value, Refused> {
        if self.precision.round(weight) == 1.0 {
            return Ok(value);
        }
        let w = self.constant(weight)?;
        self.push(Op::Mul(w, value))
    }

    /// `start + sum of weight * tap` over the taps in ascending order; without `start` the first product begins.
    pub(super) fn sum<'t>(
        &mut self,
        start: Option<Value>,
        taps: impl Iterator<Item = (&'t Tap, &'t Weight)>,
    ) -> Result<Option<Value>, Refused> {
        let mut acc = start;
        for (tap, weight) in taps {
            let value = self.read(*tap)?;
            acc = Some(match acc {
                None => self.weighted(weight.value(), value)?,
                Some(acc) => self.plus(acc, weight.value(), value)?,
            });
        }
        Ok(acc)
    }

    /// `acc + weight * value`. Twice a number is exact, so where `acc` is that and the weight is 1 or -1, both are one
    /// operation with the same result, as in `2 * u - u@prev`.
    fn plus(&mut self, acc: Value, weight: f64, value: Value) -> Result<Value, Refused> {
        if let Op::Mul(two, twice) = self.ops[acc.index()]
            && self.ops[two.index()] == Op::Const(2.0)
            && weight.abs() == 1.0
        {
            let other = match weight < 0.0 {
                true => self.push(Op::Neg(value))?,
                false => value,
            };
            return self.push(Op::Fma(two, twice, other));
        }
        let weight = self.constant(weight)?;
        self.push(Op::Fma(weight, value, acc))
    }
}
