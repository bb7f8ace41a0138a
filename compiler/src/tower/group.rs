//! Positions along the two axes over which towers are cut.

use std::ops::{Add, Mul, Sub};

/// Indices, or a displacement, along the outer and the middle axis: where a group of rows lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    pub x: i64,
    pub y: i64,
}

impl Group {
    pub fn new(x: i64, y: i64) -> Group {
        Group { x, y }
    }

    /// Along the outer axis, then along the middle axis.
    pub fn array(self) -> [i64; 2] {
        [self.x, self.y]
    }

    pub fn map(self, mut f: impl FnMut(i64) -> i64) -> Group {
        Group::new(f(self.x), f(self.y))
    }
}

impl From<[i64; 2]> for Group {
    fn from([x, y]: [i64; 2]) -> Group {
        Group { x, y }
    }
}

impl Add for Group {
    type Output = Group;
    fn add(self, other: Group) -> Group {
        Group::new(self.x + other.x, self.y + other.y)
    }
}

impl Sub for Group {
    type Output = Group;
    fn sub(self, other: Group) -> Group {
        Group::new(self.x - other.x, self.y - other.y)
    }
}

impl Mul<i64> for Group {
    type Output = Group;
    fn mul(self, by: i64) -> Group {
        self.map(|n| n * by)
    }
}

/// One value for each of the two faces of a tower.
pub type PerFace<T> = [T; 2];
