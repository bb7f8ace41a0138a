//! Elementary functions of field values, as sequences of the operations that bodies have.
//!
//! Every back end executes the same operations in the same order, so a function gives the same bits everywhere by
//! construction. Nothing depends on the library of a platform, and no condition is a jump: all cases are computed, and
//! one is selected.
//!
//! Methods: an argument is reduced by multiples of a constant in two or three parts, whose products are exact or have
//! their rounding error carried along (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980);
//! the rest goes into a polynomial through Chebyshev points of the interval. The lowest bits come from sums and
//! products in two parts (T. J. Dekker, Numer. Math. 18, 1971). Errors are measured by the tests and stated in the
//! book.

mod circle;
mod exponential;
mod power;
mod rounding;
mod tables;
#[cfg(test)]
mod tests;

use crate::host::HostUnary;
use crate::scheme::{Cmp, Op, Precision, Value};
use tables::Table;

/// A function as operations: `Value(i)` is argument i where there are that many, and beyond them the result of an
/// operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    pub arguments: u32,
    pub ops: Vec<Op>,
    pub result: Value,
}

/// A function of one argument; `None` for operations that bodies have themselves.
pub fn function(op: HostUnary, precision: Precision) -> Option<Sequence> {
    let mut w = Writer::new(precision, 1);
    let x = Value(0);
    let result = match op {
        HostUnary::Exp => w.exp(x),
        HostUnary::Log => w.log(x),
        HostUnary::Sin => w.sin(x),
        HostUnary::Cos => w.cos(x),
        HostUnary::Tan => w.tan(x),
        HostUnary::Tanh => w.tanh(x),
        HostUnary::Floor => w.floor(x),
        HostUnary::Ceil => w.ceil(x),
        HostUnary::Round => w.round(x),
        HostUnary::Neg | HostUnary::Not | HostUnary::Abs | HostUnary::Sqrt => return None,
    };
    Some(w.sequence(result))
}

/// The first argument to the power of the second.
pub fn power(precision: Precision) -> Sequence {
    let mut w = Writer::new(precision, 2);
    let result = w.pow(Value(0), Value(1));
    w.sequence(result)
}

/// Writes operations down.
struct Writer {
    precision: Precision,
    table: &'static Table,
    arguments: u32,
    ops: Vec<Op>,
}

/// A number in two parts, whose second one is below the last bit of the first.
#[derive(Clone, Copy)]
struct Double {
    high: Value,
    low: Value,
}

impl Writer {
    fn new(precision: Precision, arguments: u32) -> Writer {
        Writer {
            precision,
            table: tables::of(precision),
            arguments,
            ops: Vec::new(),
        }
    }

    fn sequence(self, result: Value) -> Sequence {
        Sequence {
            arguments: self.arguments,
            ops: self.ops,
            result,
        }
    }

    fn push(&mut self, op: Op) -> Value {
        self.ops.push(op);
        Value(self.arguments + self.ops.len() as u32 - 1)
    }

    fn number(&mut self, value: f64) -> Value {
        self.push(Op::Const(self.precision.round(value)))
    }

    fn neg(&mut self, a: Value) -> Value {
        self.push(Op::Neg(a))
    }

    fn abs(&mut self, a: Value) -> Value {
        self.push(Op::Abs(a))
    }

    fn add(&mut self, a: Value, b: Value) -> Value {
        self.push(Op::Add(a, b))
    }

    fn sub(&mut self, a: Value, b: Value) -> Value {
        self.push(Op::Sub(a, b))
    }

    fn mul(&mut self, a: Value, b: Value) -> Value {
        self.push(Op::Mul(a, b))
    }

    fn div(&mut self, a: Value, b: Value) -> Value {
        self.push(Op::Div(a, b))
    }

    fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.push(Op::Fma(a, b, c))
    }

    fn times(&mut self, factor: f64, a: Value) -> Value {
        let factor = self.number(factor);
        self.mul(factor, a)
    }

    /// `then` where `a cmp b` holds, else `otherwise`.
    fn select(&mut self, cmp: Cmp, [a, b]: [Value; 2], [then, otherwise]: [Value; 2]) -> Value {
        self.push(Op::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        })
    }

    /// The polynomial with these coefficients, lowest first.
    fn polynomial(&mut self, x: Value, coefficients: &[f64]) -> Value {
        let mut rest = coefficients.iter().rev();
        let mut sum = self.number(rest.next().copied().unwrap_or(0.0));
        for c in rest {
            let c = self.number(*c);
            sum = self.fma(sum, x, c);
        }
        sum
    }

    /// The nearest whole number, of two the even one, for magnitudes up to a quarter of the largest odd number.
    fn nearest(&mut self, x: Value) -> Value {
        let shift = self.number(0.75 * self.table.all_whole);
        let sum = self.add(x, shift);
        self.sub(sum, shift)
    }

    /// `a * b`, exactly unless the lower part is too small for a normal number.
    fn product(&mut self, a: Value, b: Value) -> Double {
        let high = self.mul(a, b);
        let minus = self.neg(high);
        let low = self.fma(a, b, minus);
        Double { high, low }
    }

    /// `a + b`, exactly, where `a` is 0 or not less than `b` in magnitude.
    fn ordered_sum(&mut self, a: Value, b: Value) -> Double {
        let high = self.add(a, b);
        let rest = self.sub(a, high);
        let low = self.add(rest, b);
        Double { high, low }
    }

    /// `a - b`, exactly (D. E. Knuth, The Art of Computer Programming, volume 2, 4.2.2).
    fn difference(&mut self, a: Value, b: Value) -> Double {
        let high = self.sub(a, b);
        let minus_b = self.sub(high, a);
        let of_a = self.sub(high, minus_b);
        let of_a = self.sub(a, of_a);
        let of_b = self.add(b, minus_b);
        let low = self.sub(of_a, of_b);
        Double { high, low }
    }
}
