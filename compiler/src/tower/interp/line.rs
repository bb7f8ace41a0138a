//! A row along the inner axis, value by value.

use crate::lattice::Interval;
use std::ops::Range;

/// The values of a row and beyond its ends; `None`: unknown.
#[derive(Clone, Debug)]
pub(super) struct Line<T> {
    values: Vec<Option<T>>,
    below: i64,
    above: i64,
}

impl<T: Copy> Line<T> {
    /// Unknown values, of which `below` and `above` are visible beyond the ends.
    pub fn new([below, above]: [i64; 2], length: i64) -> Line<T> {
        Line {
            values: vec![None; (below + length + above) as usize],
            below,
            above,
        }
    }

    /// The indices that are visible.
    pub fn visible(&self) -> Range<i64> {
        -self.below..self.values.len() as i64 - self.below
    }

    /// The indices of lanes.
    pub fn own(&self) -> Interval {
        Interval::new(0, self.visible().end - self.above)
    }

    /// Unknown beyond the visible values.
    pub fn get(&self, z: i64) -> Option<T> {
        let at = usize::try_from(z + self.below).ok()?;
        self.values.get(at).copied().flatten()
    }

    pub fn set(&mut self, z: i64, value: Option<T>) {
        self.values[(z + self.below) as usize] = value;
    }
}
