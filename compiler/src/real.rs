//! The two floating-point formats behind one trait, with the operations that bodies use.

use crate::scheme::{Cmp, Precision};

/// Constants that turn exponents into numbers and back; all executors take the numbers from here.
#[derive(Clone, Copy, Debug)]
pub struct PowerBits {
    /// Bits below the exponent field.
    pub mantissa: u32,
    /// Exponents of the smallest and the largest normal number.
    pub least: f64,
    pub most: f64,
    /// Added to a whole number, gives one whose lowest bits are the number plus the bias, and zeros up to the width of
    /// the field.
    pub shift: f64,
    /// 2 to the power `mantissa`: a small integer put into its lowest bits is added to it.
    pub whole: f64,
    /// `whole` plus the bias.
    pub start: f64,
}

impl Precision {
    pub fn power_bits(self) -> PowerBits {
        let (mantissa, bias) = match self {
            Precision::F32 => (23, 127.0),
            Precision::F64 => (52, 1023.0),
        };
        let whole = (1u64 << mantissa) as f64;
        PowerBits {
            mantissa,
            least: 1.0 - bias,
            most: bias,
            shift: 1.5 * whole + bias,
            whole,
            start: whole + bias,
        }
    }
}

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
    /// The value, or +0 if its magnitude is below [`Precision::flush_threshold`]. NaN stays.
    fn flush(self) -> Self;
    fn sqrt(self) -> Self;
    /// 2^n, where n is the number, but at least the smallest exponent of a normal number (also for NaN) and at most the
    /// largest. Numbers that are not whole are rounded to the nearest whole one; of two, to the odd one.
    fn power2(self) -> Self;
    /// The exponent field without its bias: n for a normal number of magnitude 2^n to 2^(n+1), for all smaller ones the
    /// smallest n less 1, for infinities and NaN the largest n plus 1.
    fn exponent(self) -> Self;

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
    ($t:ident, $word:ident, $precision:expr) => {
        impl Real for $t {
            const PRECISION: Precision = $precision;
            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline]
            fn bits(self) -> u64 {
                if self.is_nan() {
                    <$t>::NAN.to_bits() as u64
                } else {
                    self.to_bits() as u64
                }
            }
            #[inline]
            fn add(self, b: Self) -> Self {
                self + b
            }
            #[inline]
            fn sub(self, b: Self) -> Self {
                self - b
            }
            #[inline]
            fn mul(self, b: Self) -> Self {
                self * b
            }
            #[inline]
            fn div(self, b: Self) -> Self {
                self / b
            }
            #[inline]
            fn mul_add(self, b: Self, c: Self) -> Self {
                $t::mul_add(self, b, c)
            }
            #[inline]
            fn neg(self) -> Self {
                -self
            }
            #[inline]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline]
            fn flush(self) -> Self {
                let tiny = $t::abs(self) < $precision.flush_threshold() as $t;
                if tiny { 0.0 } else { self }
            }
            #[inline]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline]
            fn power2(self) -> Self {
                let bits = $precision.power_bits();
                let [lo, hi] = [bits.least, bits.most].map(|n| n as $t);
                let n = if lo < self { self } else { lo };
                let n = if n < hi { n } else { hi };
                $t::from_bits((n + bits.shift as $t).to_bits() << bits.mantissa)
            }
            #[inline]
            fn exponent(self) -> Self {
                let bits = $precision.power_bits();
                let field: $word = $t::abs(self).to_bits() >> bits.mantissa;
                $t::from_bits(field | (bits.whole as $t).to_bits()) - bits.start as $t
            }
        }
    };
}

real!(f32, u32, Precision::F32);
real!(f64, u64, Precision::F64);
