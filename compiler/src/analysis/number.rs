//! Numbers of which the value is known, or a range.

use crate::host_range::Range;
use crate::real::Real;
use crate::scheme::Cmp;

/// A coefficient, and all that follows from coefficients.
pub trait Number: Copy {
    fn of(value: f64) -> Self;
    /// Whether it is 0, and nothing else.
    fn is_zero(self) -> bool;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn power2(self) -> Self;
    fn exponent(self) -> Self;
    /// Either of two.
    fn either(self, other: Self) -> Self;
    /// Whether a comparison holds, where that is known.
    fn compare(cmp: Cmp, a: Self, b: Self) -> Option<bool>;
    fn range(self) -> Range;
    /// The value, or the largest absolute value of a range.
    fn largest(self) -> f64;
}

impl Number for f64 {
    fn of(value: f64) -> Self {
        value
    }

    fn is_zero(self) -> bool {
        self == 0.0
    }

    fn add(self, other: Self) -> Self {
        self + other
    }

    fn sub(self, other: Self) -> Self {
        self - other
    }

    fn mul(self, other: Self) -> Self {
        self * other
    }

    fn div(self, other: Self) -> Self {
        self / other
    }

    fn neg(self) -> Self {
        -self
    }

    fn abs(self) -> Self {
        f64::abs(self)
    }

    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }

    fn power2(self) -> Self {
        Real::power2(self)
    }

    fn exponent(self) -> Self {
        Real::exponent(self)
    }

    /// Comparisons of numbers are known, so there is one way only.
    fn either(self, _: Self) -> Self {
        self
    }

    fn compare(cmp: Cmp, a: Self, b: Self) -> Option<bool> {
        Some(match cmp {
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
        })
    }

    fn range(self) -> Range {
        Range::point(self)
    }

    fn largest(self) -> f64 {
        self
    }
}

/// Bounds of results are up to rounding.
impl Number for Range {
    fn of(value: f64) -> Self {
        Range::point(value)
    }

    fn is_zero(self) -> bool {
        self.is_point() && self.lo == 0.0
    }

    fn add(self, other: Self) -> Self {
        Range::new(self.lo + other.lo, self.hi + other.hi)
    }

    fn sub(self, other: Self) -> Self {
        Range::new(self.lo - other.hi, self.hi - other.lo)
    }

    fn mul(self, other: Self) -> Self {
        match self.is_zero() || other.is_zero() {
            true => Range::point(0.0),
            false => self.corners(other, |a, b| a * b),
        }
    }

    fn div(self, other: Self) -> Self {
        match other.contains(0.0) {
            true => Range::WHOLE,
            false => self.corners(other, |a, b| a / b),
        }
    }

    fn neg(self) -> Self {
        Range::new(-self.hi, -self.lo)
    }

    fn abs(self) -> Self {
        match self.contains(0.0) {
            true => Range::new(0.0, self.size()),
            false => Range::new(self.lo.abs().min(self.hi.abs()), self.size()),
        }
    }

    fn sqrt(self) -> Self {
        self.monotone(f64::sqrt)
    }

    fn power2(self) -> Self {
        self.monotone(Real::power2)
    }

    fn exponent(self) -> Self {
        Number::abs(self).monotone(Real::exponent)
    }

    fn either(self, other: Self) -> Self {
        self.hull(other)
    }

    fn compare(cmp: Cmp, a: Self, b: Self) -> Option<bool> {
        let opposite = |truth: Option<bool>| truth.map(|t| !t);
        match cmp {
            Cmp::Lt => a.is_less(b),
            Cmp::Le => opposite(b.is_less(a)),
            Cmp::Eq => a.is_equal(b),
            Cmp::Ne => opposite(a.is_equal(b)),
        }
    }

    fn range(self) -> Range {
        self
    }

    fn largest(self) -> f64 {
        self.size()
    }
}
