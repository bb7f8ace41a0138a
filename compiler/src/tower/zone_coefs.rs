//! Coefficients of zones that depend on one index, in the shared memory of a block.
//!
//! They are few, and the same in all steps: the coefficients of layers of 10 cells on six sides take 4.4 KB for
//! FDTD(4,2) in f32 and W = 4, with values beside layers. So they are copied once, when a kernel begins, and amendments
//! read them there: threads neither ask memory for them, nor keep them in registers until they are needed.

use super::group_box::GroupBox;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::{CoefId, Op, Scheme, ZoneId};

/// Bytes that a block has for them, at most.
const MOST: u32 = 8192;

/// Where a block has the coefficients of zones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneCoefs {
    lines: Vec<ZoneLine>,
    /// From the first shared row, in bytes.
    pub first: u32,
}

/// The coefficients of a zone along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneLine {
    pub zone: ZoneId,
    pub axis: Axis,
    /// The indices at which the zone has cells, ascending.
    pub ranges: Vec<Interval>,
    pub coefs: Vec<CoefId>,
    /// Values on each side of a range that stand for rows beside it: where no row of a period is in the range,
    /// nothing is read of other places.
    pub margin: i64,
    /// Values of lines before.
    before: i64,
}

impl ZoneCoefs {
    /// The coefficients of all amendments. `rows`: the rows of a period along the first two axes. A line whose ranges
    /// are nearer to each other, so that the rows of a period may meet two of them, is left out.
    pub(super) fn new(scheme: &Scheme, layout: &Layout, rows: GroupBox) -> ZoneCoefs {
        let mut lines: Vec<ZoneLine> = Vec::new();
        let updates = scheme.stages.iter().flat_map(|s| &s.updates);
        for amendment in updates.flat_map(|u| &u.amendments) {
            for op in &amendment.body.ops {
                let Op::Coef(coef) = op else { continue };
                let Some(axis) = scheme.coefs[coef.index()].only_axis else {
                    continue;
                };
                let zone = amendment.zone;
                let known = lines.iter_mut();
                match known.into_iter().find(|l| l.zone == zone && l.axis == axis) {
                    Some(line) if line.coefs.contains(coef) => {}
                    Some(line) => line.coefs.push(*coef),
                    None => lines.push(ZoneLine {
                        zone,
                        axis,
                        ranges: ranges(layout, zone, axis),
                        coefs: vec![*coef],
                        margin: match axis {
                            Axis::OUTER => (rows.x.len() - 1).max(0),
                            Axis::MIDDLE => (rows.y.len() - 1).max(0),
                            _ => 0,
                        },
                        before: 0,
                    }),
                }
            }
        }
        lines.retain(|line| {
            let mut pairs = line.ranges.windows(2);
            let apart = pairs.all(|pair| pair[1].lo - pair[0].hi > line.margin);
            apart && !line.ranges.is_empty()
        });
        let mut before = 0;
        lines.retain_mut(|line| {
            line.before = before;
            let all = before + line.count() * line.coefs.len() as i64;
            let fits = all * layout.element_bytes as i64 <= i64::from(MOST);
            if fits {
                before = all;
            }
            fits
        });
        ZoneCoefs { lines, first: 0 }
    }

    /// The same, `first` bytes behind the first shared row.
    pub(super) fn at(self, first: u32) -> ZoneCoefs {
        ZoneCoefs { first, ..self }
    }

    pub fn lines(&self) -> &[ZoneLine] {
        &self.lines
    }

    /// The line that has a coefficient of a zone.
    pub fn line(&self, zone: ZoneId, coef: CoefId) -> Option<&ZoneLine> {
        let mut lines = self.lines.iter();
        lines.find(|line| line.zone == zone && line.coefs.contains(&coef))
    }

    /// Values of all lines.
    pub fn values(&self) -> i64 {
        let last = self.lines.last();
        last.map_or(0, |line| {
            line.before + line.count() * line.coefs.len() as i64
        })
    }
}

impl ZoneLine {
    /// Values of a coefficient.
    fn count(&self) -> i64 {
        self.until(self.ranges.len())
    }

    /// Values of a coefficient for some of the ranges.
    fn until(&self, range: usize) -> i64 {
        let ranges = self.ranges[..range].iter();
        ranges.map(|range| range.len() + 2 * self.margin).sum()
    }

    /// Where a coefficient has the value at index 0, if that were in a range.
    pub fn place(&self, coef: CoefId, range: usize) -> i64 {
        let number = self.coefs.iter().position(|c| *c == coef).unwrap_or(0);
        let first = self.before + number as i64 * self.count() + self.until(range);
        first + self.margin - self.ranges[range].lo
    }
}

/// The indices along an axis at which a zone has cells.
fn ranges(layout: &Layout, zone: ZoneId, axis: Axis) -> Vec<Interval> {
    let boxes = layout.zones[zone.index()].boxes.iter();
    let mut all: Vec<Interval> = boxes.map(|own| own.region[axis]).collect();
    all.retain(|range| !range.is_empty());
    all.sort_by_key(|range| range.lo);
    let mut merged: Vec<Interval> = Vec::new();
    for range in all {
        match merged.last_mut() {
            Some(last) if range.lo <= last.hi => *last = last.hull(range),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::PerAxis;
    use crate::scheme::Precision;
    use crate::testing::{add_layers, maxwell};
    use std::collections::BTreeSet;

    /// Values have places of their own, values beside ranges included; lines of ranges that a period may meet together,
    /// and lines for which there is no room, are left out.
    #[test]
    fn values_have_places_of_their_own() {
        let mut scheme = maxwell(4, Precision::F32, [40, 30, 50]);
        add_layers(&mut scheme, PerAxis([5, 4, 6]));
        let layout = Layout::new(&scheme).expect("a small grid");
        let rows = |x: i64, y: i64| GroupBox {
            x: Interval::new(-2, x - 2),
            y: Interval::new(-1, y - 1),
        };
        let coefs = ZoneCoefs::new(&scheme, &layout, rows(7, 5));
        let axes: Vec<Axis> = coefs.lines().iter().map(|line| line.axis).collect();
        assert_eq!(axes.len(), 3);
        let mut taken = BTreeSet::new();
        for line in coefs.lines() {
            for coef in &line.coefs {
                assert_eq!(coefs.line(line.zone, *coef), Some(line));
                for (number, range) in line.ranges.iter().enumerate() {
                    for index in range.lo - line.margin..range.hi + line.margin {
                        assert!(taken.insert(line.place(*coef, number) + index));
                    }
                }
            }
        }
        assert_eq!(taken.first(), Some(&0));
        assert_eq!(taken.last(), Some(&(coefs.values() - 1)));
        // The layers along x are 30 cells apart, the layers along y 22.
        for ((x, y), lines) in [((30, 22), 3), ((31, 22), 2), ((31, 23), 1)] {
            let coefs = ZoneCoefs::new(&scheme, &layout, rows(x, y));
            let few = coefs.values() * 4 <= i64::from(MOST);
            assert!(few && coefs.lines().len() <= lines);
        }
    }
}
