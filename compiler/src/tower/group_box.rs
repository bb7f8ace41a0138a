//! Boxes of groups.

use super::group::Group;
use crate::lattice::{Interval, div_ceil};
use std::ops::Range;

const EVERYWHERE: Interval = Interval {
    lo: i64::MIN / 4,
    hi: i64::MAX / 4,
};

/// A box of groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupBox {
    pub x: Interval,
    pub y: Interval,
}

impl GroupBox {
    pub const ALL: GroupBox = GroupBox {
        x: EVERYWHERE,
        y: EVERYWHERE,
    };

    #[inline]
    pub fn contains(&self, at: Group) -> bool {
        self.x.contains(at.x) && self.y.contains(at.y)
    }

    /// The periods of a range in which a group lies in the box, if it is at `at` in period 0 and moves by `advance` in
    /// each. An empty range begins where the given one ends.
    pub fn periods(&self, periods: Range<u64>, at: Group, advance: Group) -> Range<u64> {
        let Range { start, end } = periods;
        let (mut first, mut last) = (start, end);
        for (range, at, by) in [(self.x, at.x, advance.x), (self.y, at.y, advance.y)] {
            // A group that moves down moves up on the axis turned around.
            let (range, at) = match by < 0 {
                true => (Interval::new(1 - range.hi, 1 - range.lo), -at),
                false => (range, at),
            };
            let reaches = |bound: i64| match by {
                0 if bound <= at => 0,
                0 => end,
                _ => u64::try_from(div_ceil(bound - at, by.abs())).unwrap_or(0),
            };
            first = first.max(reaches(range.lo));
            last = last.min(match by {
                0 if at >= range.hi => 0,
                0 => end,
                _ => reaches(range.hi),
            });
        }
        match first < last {
            true => first..last,
            false => end..end,
        }
    }

    #[inline]
    pub fn intersect(self, other: GroupBox) -> GroupBox {
        GroupBox {
            x: self.x.intersect(other.x),
            y: self.y.intersect(other.y),
        }
    }

    #[inline]
    pub fn hull(self, other: GroupBox) -> GroupBox {
        GroupBox {
            x: self.x.hull(other.x),
            y: self.y.hull(other.y),
        }
    }

    /// As seen from a group.
    #[inline]
    pub fn seen_from(self, at: Group) -> GroupBox {
        let moved = |range: Interval, by: i64| Interval::new(range.lo - by, range.hi - by);
        GroupBox {
            x: moved(self.x, at.x),
            y: moved(self.y, at.y),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    /// The range is the same as that of a search period by period.
    #[test]
    fn what_moves_along_a_line_is_in_a_box_in_a_range_of_periods() {
        let mut rng = Rng::new(1);
        let mut found = 0;
        for _ in 0..9000 {
            let mut range = || {
                let lo = rng.within(-9, 9);
                Interval::new(lo, lo + rng.within(-1, 9))
            };
            let of = GroupBox {
                x: range(),
                y: range(),
            };
            let at = Group::new(rng.within(-15, 15), rng.within(-15, 15));
            let advance = Group::new(rng.within(-3, 3), rng.within(-3, 3));
            let periods = 1..rng.within(1, 8) as u64;
            let inside = |t: &u64| of.contains(at + advance * *t as i64);
            let one_by_one: Vec<u64> = periods.clone().filter(inside).collect();
            let range = of.periods(periods.clone(), at, advance);
            assert_eq!(range.clone().collect::<Vec<u64>>(), one_by_one);
            assert!(!range.is_empty() || range.start == periods.end);
            found += usize::from(!range.is_empty());
        }
        assert!(found > 100, "{found}");
    }
}
