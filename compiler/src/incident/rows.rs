//! Where corrections of an update in a box act, and which waves they add, by rows along the inner axis.
//!
//! Rows whose places read across faces in the same way have one *pattern*: its places along the row, and the wave of
//! each but for the row's *shift*, which is how far its cells lie along the line of a plane wave. So a box has about as
//! many patterns as there are ways in which rows meet its faces, however many rows it has.

use super::shell::Shell;
use super::table::Group;
use crate::lattice::{Axis, Interval, PerAxis, Region};

/// No pattern: the row has no corrections.
const NONE: u32 = u32::MAX;

/// A place of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowPlace {
    /// Index along the inner axis.
    pub z: i64,
    /// The number of its wave less the row's shift.
    pub wave: i64,
}

/// The corrections of an update in a box.
#[derive(Clone, Debug)]
pub struct CorrectedRows {
    pub group: Group,
    /// All places lie in it.
    pub region: Region,
    /// Places within it along the inner axis are corrected in rows near faces across the other axes only.
    pub hole: Interval,
    /// The pattern of each row of the region, the middle axis fastest.
    pub(super) of_row: Vec<u32>,
    pub(super) patterns: Vec<Vec<RowPlace>>,
    /// By which the waves of a row move with its index along the outer and the middle axis.
    pub(super) shift: [i64; 2],
    /// Rows of the region that are not near faces across the first two axes.
    far: [Interval; 2],
}

impl CorrectedRows {
    /// The rows of a region near the faces of a box, none of which has a pattern yet.
    pub(super) fn new(shell: &Shell<'_>, group: Group, region: Region, shift: [i64; 2]) -> Self {
        let rows = [Axis::OUTER, Axis::MIDDLE].map(|axis| region[axis].len() as usize);
        CorrectedRows {
            group,
            region,
            hole: shell.hole(group.component).intersect(region[Axis::INNER]),
            of_row: vec![NONE; rows[0] * rows[1]],
            patterns: Vec::new(),
            shift,
            far: shell.far(group.component),
        }
    }

    fn index(&self, [x, y]: [i64; 2]) -> Option<usize> {
        let [xs, ys] = [Axis::OUTER, Axis::MIDDLE].map(|axis| self.region[axis]);
        let inside = xs.contains(x) && ys.contains(y);
        inside.then(|| ((x - xs.lo) * ys.len() + y - ys.lo) as usize)
    }

    /// Gives all rows of a box along the first two axes a pattern.
    pub(super) fn set(&mut self, rows: [Interval; 2], pattern: u32) {
        for x in rows[0].lo..rows[0].hi {
            for y in rows[1].lo..rows[1].hi {
                if let Some(index) = self.index([x, y]) {
                    self.of_row[index] = pattern;
                }
            }
        }
    }

    /// The number of the pattern of a row, if it has one.
    pub fn pattern(&self, row: [i64; 2]) -> Option<usize> {
        let pattern = self.of_row[self.index(row)?];
        (pattern != NONE).then_some(pattern as usize)
    }

    /// How many places are corrected.
    pub(super) fn count(&self) -> u64 {
        let patterns = self.of_row.iter().filter(|pattern| **pattern != NONE);
        let places = patterns.map(|pattern| self.patterns[*pattern as usize].len() as u64);
        places.sum()
    }

    /// Bytes of the tables of places of corrections.
    pub(super) fn bytes(&self) -> u64 {
        let places = self.patterns.iter().map(Vec::len).sum::<usize>();
        (self.of_row.len() * size_of::<u32>() + places * size_of::<RowPlace>()) as u64
    }

    pub fn patterns(&self) -> &[Vec<RowPlace>] {
        &self.patterns
    }

    /// The pattern of each row of the region, the middle axis fastest, if it has one.
    pub fn of_rows(&self) -> Vec<Option<usize>> {
        let pattern = |pattern: &u32| (*pattern != NONE).then_some(*pattern as usize);
        self.of_row.iter().map(pattern).collect()
    }

    /// Whether a row is not near faces across the first two axes.
    pub fn is_far(&self, [x, y]: [i64; 2]) -> bool {
        let [xs, ys] = self.far;
        xs.contains(x) && ys.contains(y)
    }

    /// The face that a row is near, which is not far: the lower and the upper one across the outer axis, then the faces
    /// across the middle one.
    pub fn nearest_face(&self, [x, y]: [i64; 2]) -> usize {
        let [xs, ys] = self.far;
        match xs.contains(x) {
            false => usize::from(x >= xs.hi),
            true => 2 + usize::from(y >= ys.hi),
        }
    }

    /// The pattern of all rows of the region that are not near faces across the first two axes, or that they have none;
    /// `None` where they differ.
    pub fn far_pattern(&self) -> Option<Option<usize>> {
        let [xs, ys] = [0, 1].map(|n| self.far[n].intersect(self.region.0[n]));
        let rows = (xs.lo..xs.hi).flat_map(|x| (ys.lo..ys.hi).map(move |y| [x, y]));
        let mut patterns = rows.map(|row| self.pattern(row));
        let first = patterns.next().flatten();
        patterns.all(|pattern| pattern == first).then_some(first)
    }

    /// By which the waves of a row's pattern move with its index along the outer and the middle axis.
    pub fn shifts(&self) -> [i64; 2] {
        self.shift
    }

    /// By which the waves of a row's pattern move.
    pub fn shift(&self, [x, y]: [i64; 2]) -> i64 {
        self.shift[0] * x + self.shift[1] * y
    }

    /// The corrections of a row: indices along the inner axis, ascending, and the numbers of waves.
    pub fn row(&self, row: [i64; 2]) -> impl Iterator<Item = (i64, u32)> + '_ {
        let shift = self.shift(row);
        let pattern = self.pattern(row).map(|pattern| &self.patterns[pattern]);
        let places = pattern.into_iter().flatten();
        places.map(move |place| (place.z, (place.wave + shift) as u32))
    }

    /// Whether a row has corrections in the hole.
    pub fn is_whole(&self, row: [i64; 2]) -> bool {
        let places = self.pattern(row).map(|pattern| &self.patterns[pattern]);
        let mut places = places.into_iter().flatten();
        places.any(|place| self.hole.contains(place.z))
    }

    /// Rows that have some, in ascending order.
    pub fn rows(&self) -> impl Iterator<Item = [i64; 2]> + '_ {
        let [xs, ys] = [Axis::OUTER, Axis::MIDDLE].map(|axis| self.region[axis]);
        let all = (xs.lo..xs.hi).flat_map(move |x| (ys.lo..ys.hi).map(move |y| [x, y]));
        all.filter(|row| self.pattern(*row).is_some())
    }

    /// All places with the numbers of their waves, the inner axis fastest.
    pub fn places(&self) -> impl Iterator<Item = (PerAxis<i64>, u32)> + '_ {
        self.rows().flat_map(|[x, y]| {
            let places = self.row([x, y]);
            places.map(move |(z, wave)| (PerAxis([x, y, z]), wave))
        })
    }
}
