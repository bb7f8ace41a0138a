//! The two floating-point formats behind one trait, with the operations that bodies use.

use crate::scheme::{Cmp, Precision};

/// An IEEE 754 number; every operation rounds to nearest even and `mul_add` rounds once.
pub trait Real:
    Copy + Send + Sync + PartialEq + PartialOrd + std::fmt::Debug + Default + 'static
{
    const PRECISION: Precision;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// The bits, zero-extended; all NaNs give the same ones.
    fn bits(self) -> u64;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn mul_add(self, b: Self, c: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;

    fn compare(self, cmp: Cmp, b: Self) -> bool {
        match cmp {
            Cmp::Lt => self < b,
            Cmp::Le => self <= b,
            Cmp::Eq => self == b,
            Cmp::Ne => self != b,
        }
    }
}

macro_rules! real {
    ($t:ident, $precision:expr) => {
        impl Real for $t {
            const PRECISION: Precision = $precision;
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn bits(self) -> u64 {
                if self.is_nan() {
                    <$t>::NAN.to_bits() as u64
                } else {
                    self.to_bits() as u64
                }
            }
            fn add(self, b: Self) -> Self {
                self + b
            }
            fn sub(self, b: Self) -> Self {
                self - b
            }
            fn mul(self, b: Self) -> Self {
                self * b
            }
            fn div(self, b: Self) -> Self {
                self / b
            }
            fn mul_add(self, b: Self, c: Self) -> Self {
                $t::mul_add(self, b, c)
            }
            fn neg(self) -> Self {
                -self
            }
            fn abs(self) -> Self {
                $t::abs(self)
            }
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
        }
    };
}

real!(f32, Precision::F32);
real!(f64, Precision::F64);
