//! Exact fractions for slopes and pitches.

use crate::lattice::gcd;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

/// A fraction in lowest terms with a positive denominator. Results that do not fit saturate; slopes and pitches of real
/// schemes are far from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rational {
    num: i64,
    den: i64,
}

impl Rational {
    pub const ZERO: Rational = Rational { num: 0, den: 1 };
    pub const ONE: Rational = Rational { num: 1, den: 1 };

    /// `num / den`; `None` if `den` is 0.
    pub fn new(num: i64, den: i64) -> Option<Rational> {
        (den != 0).then(|| reduce(i128::from(num), i128::from(den)))
    }

    /// The whole number `n`.
    pub fn whole(n: i64) -> Rational {
        Rational { num: n, den: 1 }
    }

    /// `n / 2`: the value of a [`crate::lattice::HalfIndex`].
    pub fn halves(n: i64) -> Rational {
        reduce(i128::from(n), 2)
    }

    pub fn num(self) -> i64 {
        self.num
    }

    /// At least 1.
    pub fn den(self) -> i64 {
        self.den
    }

    /// The largest whole number that is not above it.
    pub fn floor(self) -> i64 {
        self.num.div_euclid(self.den)
    }

    /// The smallest whole number that is not below it.
    pub fn ceil(self) -> i64 {
        // The denominator is 1 for i64::MIN and i64::MAX, the saturated values.
        self.floor() + i64::from(self.num.rem_euclid(self.den) != 0)
    }

    pub fn is_zero(self) -> bool {
        self.num == 0
    }

    /// The quotient; `None` if `other` is 0.
    pub fn checked_div(self, other: Rational) -> Option<Rational> {
        (other.num != 0).then(|| {
            reduce(
                i128::from(self.num) * i128::from(other.den),
                i128::from(self.den) * i128::from(other.num),
            )
        })
    }

    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

/// `num / den` in lowest terms; `den` is not 0.
pub(super) fn reduce(num: i128, den: i128) -> Rational {
    let by = gcd(num.unsigned_abs(), den.unsigned_abs()) as i128 * den.signum();
    let (num, den) = (num / by, den / by);
    match (i64::try_from(num), i64::try_from(den)) {
        (Ok(num), Ok(den)) => Rational { num, den },
        // Too fine or too large: the nearest whole number that fits.
        _ => Rational {
            num: (num / den).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            den: 1,
        },
    }
}

impl Default for Rational {
    fn default() -> Self {
        Rational::ZERO
    }
}

impl From<i64> for Rational {
    fn from(n: i64) -> Self {
        Rational::whole(n)
    }
}

impl Ord for Rational {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = i128::from(self.num) * i128::from(other.den);
        left.cmp(&(i128::from(other.num) * i128::from(self.den)))
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Add for Rational {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (a, b) = (i128::from(self.num), i128::from(other.num));
        let (c, d) = (i128::from(self.den), i128::from(other.den));
        reduce(a * d + b * c, c * d)
    }
}

impl Sub for Rational {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Rational {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        reduce(
            i128::from(self.num) * i128::from(other.num),
            i128::from(self.den) * i128::from(other.den),
        )
    }
}

impl Neg for Rational {
    type Output = Self;
    fn neg(self) -> Self {
        Rational {
            num: self.num.saturating_neg(),
            den: self.den,
        }
    }
}

impl fmt::Display for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 {
            f.pad(&self.num.to_string())
        } else {
            f.pad(&format!("{}/{}", self.num, self.den))
        }
    }
}
