//! A row along the inner axis, value by value.

use crate::lattice::Interval;
use std::ops::Range;

/// The values of a row and beyond its ends; `None`: unknown.
#[derive(Clone, Debug)]
pub(super) struct Line<T> {
    values: Vec<Option<T>>,
    below: i64,
    length: i64,
    above: i64,
    /// Places by which index 0 lies behind the one where rows begin that are not packed.
    begin: i64,
}

impl<T: Copy> Line<T> {
    /// Unknown values, of which `below` and `above` are visible beyond the ends; rows begin `latest` places later at
    /// most.
    pub fn new([below, above]: [i64; 2], length: i64, latest: i64) -> Line<T> {
        Line {
            values: vec![None; (below + length + above + latest) as usize],
            below,
            length,
            above,
            begin: 0,
        }
    }

    /// The same values in all places.
    pub fn filled(self, value: T) -> Line<T> {
        Line {
            values: vec![Some(value); self.values.len()],
            ..self
        }
    }

    /// The same places for a row that begins elsewhere.
    pub fn beginning(self, begin: i64) -> Line<T> {
        Line { begin, ..self }
    }

    /// The indices that are visible.
    pub fn visible(&self) -> Range<i64> {
        -self.below..self.length + self.above
    }

    /// The indices of lanes.
    pub fn own(&self) -> Interval {
        Interval::new(0, self.length)
    }

    /// Unknown beyond the visible values.
    pub fn get(&self, z: i64) -> Option<T> {
        let at = usize::try_from(z + self.begin + self.below).ok()?;
        self.values.get(at).copied().flatten()
    }

    pub fn set(&mut self, z: i64, value: Option<T>) {
        self.values[(z + self.begin + self.below) as usize] = value;
    }
}
