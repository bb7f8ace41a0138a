//! Operands and guards as they are written.

use crate::lex::{Number, number};
use crate::op::{Polarity, Ty};

/// An operand as written.
#[derive(Clone, Debug)]
pub(crate) enum Operand<'a> {
    Word(&'a str),
    /// `-` and a number.
    Negative(&'a str),
    /// `!` and a predicate.
    Not(&'a str),
    /// `a|b`
    Pair(&'a str, &'a str),
    /// `[base+offset]`
    Memory(&'a str, i64),
    /// `{a, b}`
    List(Vec<Operand<'a>>),
}

/// `@p` or `@!p` before an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard<'a> {
    pub(crate) predicate: &'a str,
    pub(crate) polarity: Polarity,
}

/// The sign before a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus,
    Minus,
}

impl Sign {
    /// The number behind it with this sign.
    pub(crate) fn of<T: std::ops::Neg<Output = T>>(self, number: T) -> T {
        match self {
            Sign::Plus => number,
            Sign::Minus => -number,
        }
    }
}

/// The bits of a number as a value of a type.
pub(crate) fn constant(word: &str, sign: Sign, ty: Ty) -> Option<u64> {
    match (number(word)?, ty) {
        (Number::Int(value), _) if !ty.is_float() => {
            let value = sign.of(value);
            let low = -(1i128 << (ty.bits() - 1)).max(1);
            (low..=i128::from(ty.mask()))
                .contains(&value)
                .then_some(value as u64 & ty.mask())
        }
        (Number::Single(bits), Ty::F32 | Ty::B32 | Ty::U32) => Some(u64::from(bits)),
        (Number::Double(bits), Ty::F64 | Ty::B64 | Ty::U64) => Some(bits),
        (Number::Single(bits), Ty::F64) => Some(f64::from(f32::from_bits(bits)).to_bits()),
        (Number::Double(bits), Ty::F32) => Some(u64::from((f64::from_bits(bits) as f32).to_bits())),
        (Number::Decimal(value), Ty::F32 | Ty::F64) => {
            let value = sign.of(value);
            let single = u64::from((value as f32).to_bits());
            Some(if ty == Ty::F32 {
                single
            } else {
                value.to_bits()
            })
        }
        _ => None,
    }
}
