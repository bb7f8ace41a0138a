//! Boxes of groups.

use super::group::Group;
use crate::lattice::Interval;

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

    pub fn contains(&self, at: Group) -> bool {
        self.x.contains(at.x) && self.y.contains(at.y)
    }

    pub fn intersect(self, other: GroupBox) -> GroupBox {
        GroupBox {
            x: self.x.intersect(other.x),
            y: self.y.intersect(other.y),
        }
    }

    pub fn hull(self, other: GroupBox) -> GroupBox {
        GroupBox {
            x: self.x.hull(other.x),
            y: self.y.hull(other.y),
        }
    }

    /// As seen from a group.
    pub fn seen_from(self, at: Group) -> GroupBox {
        let moved = |range: Interval, by: i64| Interval::new(range.lo - by, range.hi - by);
        GroupBox {
            x: moved(self.x, at.x),
            y: moved(self.y, at.y),
        }
    }
}
