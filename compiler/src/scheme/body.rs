//! The arithmetic of one update: a straight line of operations on one cell.

#[cfg(doc)]
use super::Precision;
use super::{CoefId, ComponentId, StateId};
use crate::lattice::Offset;
use std::fmt;

/// The result of an operation of a body, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u32);

impl Value {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// Operations in an order in which operands come first.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    pub ops: Vec<Op>,
    pub result: Value,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Exact in the scheme's precision.
    Const(f64),
    Read(Read),
    /// The coefficient at the target's own index.
    Coef(CoefId),
    /// The value of the update before this amendment.
    Base,
    /// The old value of a state at the target's own index.
    State(StateId),
    /// Flips the sign bit.
    Neg(Value),
    /// Clears the sign bit.
    Abs(Value),
    /// The value, or 0 if its magnitude is below [`Precision::flush_threshold`].
    Flush(Value),
    Sqrt(Value),
    /// 2 to a whole power from that of the smallest normal number to that of the largest
    /// ([`crate::real::Real::power2`]).
    Power2(Value),
    /// The power of 2 in a number's bits ([`crate::real::Real::exponent`]).
    Exponent(Value),
    Add(Value, Value),
    Sub(Value, Value),
    Mul(Value, Value),
    Div(Value, Value),
    /// a * b + c, rounded once.
    Fma(Value, Value, Value),
    /// `then` where `a cmp b` holds, else `otherwise`. Minimum and maximum are written with it.
    Select {
        cmp: Cmp,
        a: Value,
        b: Value,
        then: Value,
        otherwise: Value,
    },
}

/// Ordered comparisons: false if a side is NaN (`Ne`: true).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cmp {
    Lt,
    Le,
    Eq,
    Ne,
}

/// A value of a component near the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    pub component: ComponentId,
    /// From the target's cell index to that of the value.
    pub offset: Offset,
    /// 0: the newest version when the stage starts, 1: the one before it, ...
    pub age: u8,
}

impl Op {
    /// Whether it brings in a value from outside of the body.
    pub fn is_operand(&self) -> bool {
        matches!(self, Op::Read(_) | Op::Coef(_) | Op::Base | Op::State(_))
    }

    /// The same operation on other values.
    pub fn map(self, of: impl Fn(Value) -> Value) -> Op {
        match self {
            Op::Const(_) | Op::Read(_) | Op::Coef(_) | Op::Base | Op::State(_) => self,
            Op::Neg(a) => Op::Neg(of(a)),
            Op::Abs(a) => Op::Abs(of(a)),
            Op::Flush(a) => Op::Flush(of(a)),
            Op::Sqrt(a) => Op::Sqrt(of(a)),
            Op::Power2(a) => Op::Power2(of(a)),
            Op::Exponent(a) => Op::Exponent(of(a)),
            Op::Add(a, b) => Op::Add(of(a), of(b)),
            Op::Sub(a, b) => Op::Sub(of(a), of(b)),
            Op::Mul(a, b) => Op::Mul(of(a), of(b)),
            Op::Div(a, b) => Op::Div(of(a), of(b)),
            Op::Fma(a, b, c) => Op::Fma(of(a), of(b), of(c)),
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => Op::Select {
                cmp,
                a: of(a),
                b: of(b),
                then: of(then),
                otherwise: of(otherwise),
            },
        }
    }

    /// Calls `f` with each operand.
    pub fn operands(&self, mut f: impl FnMut(Value)) {
        match *self {
            Op::Const(_) | Op::Read(_) | Op::Coef(_) | Op::Base | Op::State(_) => {}
            Op::Neg(a)
            | Op::Abs(a)
            | Op::Flush(a)
            | Op::Sqrt(a)
            | Op::Power2(a)
            | Op::Exponent(a) => f(a),
            Op::Add(a, b) | Op::Sub(a, b) | Op::Mul(a, b) | Op::Div(a, b) => {
                f(a);
                f(b);
            }
            Op::Fma(a, b, c) => {
                f(a);
                f(b);
                f(c);
            }
            Op::Select {
                a,
                b,
                then,
                otherwise,
                ..
            } => {
                f(a);
                f(b);
                f(then);
                f(otherwise);
            }
        }
    }
}

impl Body {
    pub fn reads(&self) -> impl Iterator<Item = &Read> {
        self.ops.iter().filter_map(|op| match op {
            Op::Read(read) => Some(read),
            _ => None,
        })
    }

    pub fn coefs(&self) -> impl Iterator<Item = CoefId> {
        self.ops.iter().filter_map(|op| match op {
            Op::Coef(id) => Some(*id),
            _ => None,
        })
    }

    /// Floating-point operations per cell, a fused multiply-add counted as one.
    pub fn arithmetic(&self) -> usize {
        self.ops
            .iter()
            .filter(|op| !op.is_operand() && !matches!(op, Op::Const(_)))
            .count()
    }
}
