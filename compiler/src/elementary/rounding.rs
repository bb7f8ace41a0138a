//! Whole numbers near a number.

use super::Writer;
use crate::scheme::{Cmp, Value};

impl Writer {
    pub(super) fn floor(&mut self, x: Value) -> Value {
        let near = self.rint(x);
        let one = self.number(1.0);
        let less = self.sub(near, one);
        self.select(Cmp::Lt, [x, near], [less, near])
    }

    pub(super) fn ceil(&mut self, x: Value) -> Value {
        let minus = self.neg(x);
        let floor = self.floor(minus);
        self.neg(floor)
    }

    /// Of two, the one farther from 0.
    pub(super) fn round(&mut self, x: Value) -> Value {
        let magnitude = self.abs(x);
        let near = self.rint_of_magnitude(magnitude);
        let rest = self.sub(magnitude, near);
        let half = self.number(0.5);
        let one = self.number(1.0);
        let more = self.add(near, one);
        let result = self.select(Cmp::Eq, [rest, half], [more, near]);
        self.odd(x, result)
    }

    /// The nearest whole number, of two the even one, of any number.
    pub(super) fn rint(&mut self, x: Value) -> Value {
        let magnitude = self.abs(x);
        let result = self.rint_of_magnitude(magnitude);
        self.odd(x, result)
    }

    fn rint_of_magnitude(&mut self, x: Value) -> Value {
        let shift = self.number(0.5 * self.table.all_whole);
        let sum = self.add(x, shift);
        let near = self.sub(sum, shift);
        // Larger numbers are whole.
        self.select(Cmp::Lt, [x, shift], [near, x])
    }
}
