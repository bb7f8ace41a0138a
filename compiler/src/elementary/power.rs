//! Powers with any exponent.

use super::exponential::Scaled;
use super::{Double, Writer};
use crate::scheme::{Cmp, Value};

impl Writer {
    /// x^y as C's `pow` gives it, with two exceptions: the sign of a 0 does not count, and minus infinity to a power
    /// that is not whole is NaN, as for other negative bases.
    pub(super) fn pow(&mut self, x: Value, y: Value) -> Value {
        let zero = self.number(0.0);
        let one = self.number(1.0);
        let infinity = self.number(f64::INFINITY);
        let magnitude = self.abs(x);
        let log = self.log_in_two_parts(magnitude);
        // Larger exponents give 0, 1 or infinity as this one does, and would be too large for the products.
        let most = self.number(self.table.largest_exponent);
        let least = self.neg(most);
        let exponent = self.select(Cmp::Lt, [most, y], [most, y]);
        let exponent = self.select(Cmp::Lt, [y, least], [least, exponent]);
        let product = self.product(exponent, log.high);
        let low = self.fma(exponent, log.low, product.low);
        let result = self.exp_of(product.high, Some(low));
        let [lo, hi] = self.table.exp_range.map(|n| self.number(n));
        let result = self.select(Cmp::Lt, [product.high, lo], [zero, result]);
        let result = self.select(Cmp::Lt, [hi, product.high], [infinity, result]);
        let of_zero = self.select(Cmp::Lt, [y, zero], [infinity, zero]);
        let of_infinity = self.select(Cmp::Lt, [y, zero], [zero, infinity]);
        let result = self.select(Cmp::Eq, [magnitude, zero], [of_zero, result]);
        let result = self.select(Cmp::Eq, [magnitude, infinity], [of_infinity, result]);
        let whole = self.rint(y);
        let half = self.times(0.5, y);
        let half_whole = self.rint(half);
        let minus = self.neg(result);
        let nan = self.number(f64::NAN);
        let signed = self.select(Cmp::Eq, [half, half_whole], [result, minus]);
        let of_negative = self.select(Cmp::Eq, [y, whole], [signed, nan]);
        let result = self.select(Cmp::Lt, [x, zero], [of_negative, result]);
        let result = self.select(Cmp::Ne, [y, y], [y, result]);
        let result = self.select(Cmp::Eq, [y, zero], [one, result]);
        self.select(Cmp::Eq, [x, one], [one, result])
    }

    /// The logarithm of a positive number with a relative error of about 2^-14 of the last bit.
    fn log_in_two_parts(&mut self, x: Value) -> Double {
        let Scaled {
            exponent: k,
            fraction: f,
        } = self.scale(x);
        // s = f / (2 + f) in two parts.
        let two = self.number(2.0);
        let denominator = self.ordered_sum(two, f);
        let one = self.number(1.0);
        let inverse = self.div(one, denominator.high);
        let s = self.mul(f, inverse);
        let minus = self.neg(s);
        let left = self.fma(minus, denominator.high, f);
        let left = self.fma(minus, denominator.low, left);
        let s = Double {
            high: s,
            low: self.mul(left, inverse),
        };
        // s^2, s^3
        let square = self.product(s.high, s.high);
        let twice = self.add(s.high, s.high);
        let square_low = self.fma(twice, s.low, square.low);
        let cube = self.product(square.high, s.high);
        let cube_low = self.fma(square.high, s.low, cube.low);
        let cube_low = self.fma(square_low, s.high, cube_low);
        // 2/3 + 2/5 s^2 + ...
        let [third, third_low] = self.table.two_thirds.map(|n| self.number(n));
        let series = self.polynomial(square.high, self.table.pow);
        let series = self.mul(series, square.high);
        let sum = self.ordered_sum(third, series);
        let sum_low = self.add(sum.low, third_low);
        // 2 artanh(s)
        let product = self.product(cube.high, sum.high);
        let product_low = self.fma(cube.high, sum_low, product.low);
        let product_low = self.fma(cube_low, sum.high, product_low);
        let of_fraction = self.ordered_sum(twice, product.high);
        let low = self.add(s.low, s.low);
        let low = self.add(low, product_low);
        let low = self.add(of_fraction.low, low);
        // k ln 2, whose first part is exact.
        let [first, second] = self.table.ln_2_short.map(|n| self.number(n));
        let powers = self.mul(k, first);
        let total = self.ordered_sum(powers, of_fraction.high);
        let low = self.fma(k, second, low);
        let low = self.add(total.low, low);
        self.ordered_sum(total.high, low)
    }
}
