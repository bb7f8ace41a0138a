//! Exact fractions of coefficients, whose operations fail where a part leaves its range.

use crate::lattice::gcd;
use std::cmp::Ordering;

/// A fraction in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fraction {
    num: i128,
    den: i128,
}

impl Fraction {
    pub const ZERO: Fraction = Fraction { num: 0, den: 1 };
    pub const ONE: Fraction = Fraction { num: 1, den: 1 };

    pub fn integer(n: i64) -> Self {
        Self {
            num: i128::from(n),
            den: 1,
        }
    }

    /// `None` if `den` is 0 or a part leaves the range.
    pub fn new(num: i128, den: i128) -> Option<Self> {
        let divisor = gcd(num.unsigned_abs(), den.unsigned_abs());
        let divisor = i128::try_from(divisor).ok().filter(|&d| d != 0)?;
        let (num, den) = (num / divisor, den / divisor);
        match den.cmp(&0) {
            Ordering::Equal => None,
            Ordering::Greater => Some(Self { num, den }),
            Ordering::Less => Some(Self {
                num: num.checked_neg()?,
                den: den.checked_neg()?,
            }),
        }
    }

    pub fn is_zero(self) -> bool {
        self.num == 0
    }

    pub fn add(self, other: Self) -> Option<Self> {
        let common = i128::try_from(gcd(self.den.unsigned_abs(), other.den.unsigned_abs())).ok()?;
        let left = self.num.checked_mul(other.den / common)?;
        let right = other.num.checked_mul(self.den / common)?;
        Self::new(
            left.checked_add(right)?,
            self.den.checked_mul(other.den / common)?,
        )
    }

    pub fn mul(self, other: Self) -> Option<Self> {
        let a = Self::new(self.num, other.den)?;
        let b = Self::new(other.num, self.den)?;
        Some(Self {
            num: a.num.checked_mul(b.num)?,
            den: a.den.checked_mul(b.den)?,
        })
    }

    pub fn div(self, other: Self) -> Option<Self> {
        self.mul(Self::new(other.den, other.num)?)
    }

    pub fn neg(self) -> Option<Self> {
        self.num.checked_neg().map(|num| Self { num, ..self })
    }

    /// The nearest double where both parts are exact doubles, else within a unit in the last place.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

/// A double that is a whole number and can be treated as one exactly.
pub fn small_integer(n: f64) -> Option<i64> {
    (n == n.trunc() && n.abs() <= 9e15).then_some(n as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_is_noticed() {
        let big = Fraction::new(i128::MAX, 1).unwrap();
        assert_eq!(big.mul(big), None);
        assert_eq!(big.add(big), None);
        assert_eq!(Fraction::new(1, 0), None);
        assert_eq!(Fraction::new(i128::MIN, -1), None);
        assert_eq!(Fraction::new(i128::MIN, 3), Fraction::new(i128::MIN, 3));
    }
}
