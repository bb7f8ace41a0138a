//! Exponential function, logarithm and hyperbolic tangent.

use super::{Double, Writer};
use crate::scheme::{Cmp, Op, Value};

/// e^x as `2^exponent * e^(rest)`, with a small rest.
#[derive(Clone, Copy)]
struct Reduced {
    exponent: Value,
    rest: Double,
}

/// A positive number as `2^exponent * (1 + fraction)`, with `1 + fraction` between the roots of 1/2 and 2. The fraction
/// is exact.
#[derive(Clone, Copy)]
pub(super) struct Scaled {
    pub exponent: Value,
    pub fraction: Value,
}

impl Writer {
    /// Infinity above the largest number's logarithm; 0 below that of half the smallest number.
    pub(super) fn exp(&mut self, x: Value) -> Value {
        let [lo, hi] = self.table.exp_range.map(|n| self.number(n));
        // Beyond these, results are the same.
        let x = self.select(Cmp::Lt, [x, lo], [lo, x]);
        let x = self.select(Cmp::Lt, [hi, x], [hi, x]);
        self.exp_of(x, None)
    }

    /// e^(x + low), for x in the range of results that are neither 0 nor infinite, or little beyond.
    pub(super) fn exp_of(&mut self, x: Value, low: Option<Value>) -> Value {
        let Reduced { exponent, rest } = self.reduce(x, low);
        let tail = self.exp_tail(rest);
        let one = self.number(1.0);
        let sum = self.ordered_sum(one, rest.high);
        let low = self.add(sum.low, tail);
        let result = self.add(sum.high, low);
        // In two steps, as the power alone may be too large or too small.
        let half = self.times(0.5, exponent);
        let half = self.nearest(half);
        let other = self.sub(exponent, half);
        let half = self.push(Op::Power2(half));
        let other = self.push(Op::Power2(other));
        let result = self.mul(result, half);
        self.mul(result, other)
    }

    fn reduce(&mut self, x: Value, low: Option<Value>) -> Reduced {
        let exponent = self.times(std::f64::consts::LOG2_E, x);
        let exponent = self.nearest(exponent);
        let minus = self.neg(exponent);
        let [first, second] = self.table.ln_2.map(|n| self.number(n));
        // Exact: a multiple of the first part's last bit, below 1.
        let start = self.fma(minus, first, x);
        let high = self.fma(minus, second, start);
        let left = self.sub(start, high);
        let left = self.fma(minus, second, left);
        let rest = match low {
            None => Double { high, low: left },
            Some(low) => {
                let low = self.add(left, low);
                self.ordered_sum(high, low)
            }
        };
        Reduced { exponent, rest }
    }

    /// `e^r - 1 - r.high` for a reduced argument.
    fn exp_tail(&mut self, r: Double) -> Value {
        let p = self.polynomial(r.high, self.table.exp);
        let square = self.mul(r.high, r.high);
        self.fma(square, p, r.low)
    }

    /// (e^2x - 1) / (e^2x + 1).
    pub(super) fn tanh(&mut self, x: Value) -> Value {
        let magnitude = self.abs(x);
        let hi = self.number(self.table.tanh_is_1);
        let a = self.select(Cmp::Lt, [hi, magnitude], [hi, magnitude]);
        let twice = self.add(a, a);
        let Reduced { exponent, rest } = self.reduce(twice, None);
        let tail = self.exp_tail(rest);
        let less_one = self.add(rest.high, tail);
        let power = self.push(Op::Power2(exponent));
        let one = self.number(1.0);
        let power_less_one = self.sub(power, one);
        let numerator = self.fma(power, less_one, power_less_one);
        let two = self.number(2.0);
        let denominator = self.add(numerator, two);
        let result = self.div(numerator, denominator);
        self.odd(x, result)
    }

    /// The result for x from that for its magnitude, of an odd function that is 0 at 0.
    pub(super) fn odd(&mut self, x: Value, result: Value) -> Value {
        let zero = self.number(0.0);
        let minus = self.neg(result);
        let result = self.select(Cmp::Lt, [x, zero], [minus, result]);
        // 0 keeps its sign.
        self.select(Cmp::Eq, [x, zero], [x, result])
    }

    /// Minus infinity of 0, NaN of less.
    pub(super) fn log(&mut self, x: Value) -> Value {
        let Scaled {
            exponent: k,
            fraction: f,
        } = self.scale(x);
        // With s = f / (2 + f): log(1 + f) = 2 artanh(s) = f - (f^2/2 - s (f^2/2 + 2/3 s^2 + 2/5 s^4 + ...)).
        let two = self.number(2.0);
        let denominator = self.add(two, f);
        let s = self.div(f, denominator);
        let z = self.mul(s, s);
        let series = self.polynomial(z, self.table.log);
        let half = self.times(0.5, f);
        let half_square = self.mul(half, f);
        let inner = self.fma(z, series, half_square);
        let [first, second] = self.table.ln_2.map(|n| self.number(n));
        let low = self.mul(k, second);
        let low = self.fma(s, inner, low);
        let rest = self.sub(half_square, low);
        let rest = self.sub(f, rest);
        let result = self.fma(k, first, rest);
        let zero = self.number(0.0);
        let infinity = self.number(f64::INFINITY);
        let minus_infinity = self.number(f64::NEG_INFINITY);
        let nan = self.number(f64::NAN);
        let others = self.select(Cmp::Eq, [x, zero], [minus_infinity, nan]);
        let result = self.select(Cmp::Lt, [zero, x], [result, others]);
        self.select(Cmp::Lt, [x, infinity], [result, x])
    }

    /// For positive numbers below infinity.
    pub(super) fn scale(&mut self, x: Value) -> Scaled {
        let [small, factor, places] = self.table.subnormal.map(|n| self.number(n));
        let zero = self.number(0.0);
        let larger = self.mul(factor, x);
        let normal = self.select(Cmp::Lt, [x, small], [larger, x]);
        let places = self.select(Cmp::Lt, [x, small], [places, zero]);
        // A quarter of the root of 2: whole powers begin at the root of 1/2, and stay within normal numbers.
        let quarter = self.times(0.25 * std::f64::consts::SQRT_2, normal);
        let power = self.push(Op::Exponent(quarter));
        let minus = self.neg(power);
        let scale = self.push(Op::Power2(minus));
        let four_times = self.mul(normal, scale);
        let mantissa = self.times(0.25, four_times);
        let one = self.number(1.0);
        let fraction = self.sub(mantissa, one);
        let two = self.number(2.0);
        let exponent = self.add(power, two);
        let exponent = self.sub(exponent, places);
        Scaled { exponent, fraction }
    }
}
