//! Closed ranges of integers.

use crate::lattice::{div_ceil, div_floor};

/// A closed range of integers; empty if `lo > hi`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub lo: i64,
    pub hi: i64,
}

impl Span {
    pub const NONE: Span = Span { lo: 0, hi: -1 };

    pub fn at(place: i64) -> Span {
        Span {
            lo: place,
            hi: place,
        }
    }

    pub fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    pub fn meet(self, other: Span) -> Span {
        Span {
            lo: self.lo.max(other.lo),
            hi: self.hi.min(other.hi),
        }
    }

    pub fn hull(self, other: Span) -> Span {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Span {
                lo: self.lo.min(other.lo),
                hi: self.hi.max(other.hi),
            },
        }
    }

    pub fn scaled(self, by: i64) -> Span {
        let (a, b) = (self.lo * by, self.hi * by);
        Span {
            lo: a.min(b),
            hi: a.max(b),
        }
    }

    pub fn minus(self, other: Span) -> Span {
        Span {
            lo: self.lo - other.hi,
            hi: self.hi - other.lo,
        }
    }

    pub fn plus(self, other: Span) -> Span {
        Span {
            lo: self.lo + other.lo,
            hi: self.hi + other.hi,
        }
    }

    /// The x with `factor * x` in this range; all of `bound` or nothing if the factor is 0.
    pub fn solve(self, factor: i64, bound: Span) -> Span {
        match factor.signum() {
            0 if self.lo <= 0 && 0 <= self.hi => bound,
            0 => Span::NONE,
            1 => bound.meet(Span {
                lo: div_ceil(self.lo, factor),
                hi: div_floor(self.hi, factor),
            }),
            _ => bound.meet(Span {
                lo: div_ceil(-self.hi, -factor),
                hi: div_floor(-self.lo, -factor),
            }),
        }
    }
}
