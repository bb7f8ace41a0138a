//! Sine, cosine and tangent.

use super::{Double, Writer};
use crate::scheme::{Cmp, Value};

/// An argument less a number of quarter turns.
#[derive(Clone, Copy)]
struct Angle {
    /// A whole number.
    quarters: Value,
    rest: Double,
}

impl Writer {
    pub(super) fn sin(&mut self, x: Value) -> Value {
        let magnitude = self.abs(x);
        let angle = self.angle(magnitude);
        let result = self.quadrant(angle.rest, angle.quarters);
        let result = self.within_range(x, result);
        self.odd(x, result)
    }

    pub(super) fn cos(&mut self, x: Value) -> Value {
        let magnitude = self.abs(x);
        let angle = self.angle(magnitude);
        let one = self.number(1.0);
        let next = self.add(angle.quarters, one);
        let result = self.quadrant(angle.rest, next);
        self.within_range(x, result)
    }

    pub(super) fn tan(&mut self, x: Value) -> Value {
        let magnitude = self.abs(x);
        let angle = self.angle(magnitude);
        let (sin, cos) = self.sin_cos(angle.rest);
        let half = self.times(0.5, angle.quarters);
        let whole = self.nearest(half);
        let minus = self.neg(cos);
        let above = self.select(Cmp::Eq, [half, whole], [sin, minus]);
        let below = self.select(Cmp::Eq, [half, whole], [cos, sin]);
        let result = self.div(above, below);
        let result = self.within_range(x, result);
        self.odd(x, result)
    }

    /// The rest has a relative error far below the last bit, as no number is that near to a multiple of a quarter turn
    /// that the three parts of the constant would not tell it from that.
    fn angle(&mut self, x: Value) -> Angle {
        let quarters = self.times(std::f64::consts::FRAC_2_PI, x);
        let quarters = self.nearest(quarters);
        let minus = self.neg(quarters);
        let [first, second, third] = self.table.quarter_turn.map(|n| self.number(n));
        // Exact: a multiple of the first part's last bit, below 1.
        let start = self.fma(minus, first, x);
        let product = self.product(quarters, second);
        let left = self.difference(start, product.high);
        let low = self.sub(left.low, product.low);
        let low = self.fma(minus, third, low);
        let rest = self.ordered_sum(left.high, low);
        Angle { quarters, rest }
    }

    /// The sine of a remainder `rest` and `quarters` right angles.
    fn quadrant(&mut self, rest: Double, quarters: Value) -> Value {
        let (sin, cos) = self.sin_cos(rest);
        let half = self.times(0.5, quarters);
        let whole = self.nearest(half);
        let result = self.select(Cmp::Eq, [half, whole], [sin, cos]);
        // 0 and 1 quarters more than a whole number of turns are positive; 2, which are -2 too, and 3, which are -1,
        // negative.
        let quarter = self.times(0.25, quarters);
        let turns = self.nearest(quarter);
        let beyond = self.sub(quarter, turns);
        let zero = self.number(0.0);
        let half_turn = self.number(0.5);
        let minus = self.neg(result);
        let result_or_minus = self.select(Cmp::Eq, [beyond, half_turn], [minus, result]);
        self.select(Cmp::Lt, [beyond, zero], [minus, result_or_minus])
    }

    /// Sine and cosine of at most an eighth turn.
    fn sin_cos(&mut self, r: Double) -> (Value, Value) {
        let z = self.mul(r.high, r.high);
        let one = self.number(1.0);
        let minus_half = self.number(-0.5);
        let slope = self.fma(minus_half, z, one);
        let p = self.polynomial(z, self.table.sin);
        let cube = self.mul(z, r.high);
        let low = self.mul(r.low, slope);
        let tail = self.fma(cube, p, low);
        let sin = self.add(r.high, tail);
        let lost = self.sub(one, slope);
        let lost = self.fma(minus_half, z, lost);
        let p = self.polynomial(z, self.table.cos);
        let fourth = self.mul(z, z);
        let tail = self.fma(fourth, p, lost);
        let minus = self.neg(r.high);
        let tail = self.fma(minus, r.low, tail);
        let cos = self.add(slope, tail);
        (sin, cos)
    }

    /// NaN for arguments beyond the range that is reduced.
    fn within_range(&mut self, x: Value, result: Value) -> Value {
        let magnitude = self.abs(x);
        let most = self.number(self.table.largest_angle);
        let nan = self.number(f64::NAN);
        self.select(Cmp::Le, [magnitude, most], [result, nan])
    }
}
