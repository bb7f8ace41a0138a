//! Boxes of cells: the ranges of coefficients over them, and which updates act there.

use super::cells::{coef_of_waves, of_waves};
use super::number::Number;
use super::step::Spans;
use crate::host_range::{HostBox, Range, range};
use crate::lattice::{Axis, HalfIndex, Interval, Offset, PerAxis, Position, Region};
use crate::scheme::{Cmp, CoefId, FileId, Scheme, Update};
use crate::statics::{Files, coordinates};
use std::cmp::Ordering;

/// Cells per axis of the blocks that the extremes of files are kept for.
const BLOCK: i64 = 16;

/// The boxes of a scheme's domain.
pub struct Boxes<'a> {
    pub scheme: &'a Scheme,
    pub files: &'a dyn Files,
    bounds: FileBounds<'a>,
}

impl<'a> Boxes<'a> {
    pub fn new(scheme: &'a Scheme, files: &'a dyn Files) -> Self {
        Self {
            scheme,
            files,
            bounds: FileBounds::new(scheme, files),
        }
    }

    /// The values of a coefficient over a box of cells.
    pub fn range(&self, coef: usize, zone: Region) -> Range {
        let id = CoefId(coef as u32);
        let coef = &self.scheme.coefs[coef];
        let extent = self.scheme.grid.extent(coef.position);
        let zone = Region::from_fn(|a| {
            // The last cell stands for the plane at the end, too.
            let last = zone[a].hi == self.scheme.grid.cells[a];
            let hi = if last { extent[a].hi } else { zone[a].hi };
            Interval::new(zone[a].lo.min(extent[a].hi - 1), hi.min(extent[a].hi))
        });
        let single = zone.volume() == 1;
        if single {
            let at = zone.map(|i| i.lo);
            return Range::point(coef_of_waves(self.scheme, self.files, id, at));
        }
        let cells = Cells {
            scheme: self.scheme,
            bounds: &self.bounds,
            position: coef.position,
            zone,
        };
        range(&coef.value, &cells)
    }

    /// The ranges of some coefficients, rounded as runs have them, 0 for the others, and the updates that act.
    pub fn spans(&self, zone: Region, wanted: &[bool]) -> Spans {
        let round = |value: f64| self.scheme.precision.round(value);
        let span = |(coef, wanted): (usize, &bool)| match wanted {
            true => {
                let Range { lo, hi } = self.range(coef, zone);
                Range::new(round(lo), round(hi))
            }
            false => Range::point(0.0),
        };
        let coefs: Vec<Range> = wanted.iter().enumerate().map(span).collect();
        let acts = |update: &Update| {
            let masked = update.mask.map(|mask| &coefs[mask.index()]);
            let shown = masked.map_or(Some(true), |m| {
                Range::compare(Cmp::Ne, *m, Range::point(0.0))
            });
            match (self.has(update, zone), shown) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            }
        };
        let stages = self.scheme.stages.iter();
        let active = stages.map(|s| s.updates.iter().map(acts).collect());
        Spans {
            active: active.collect(),
            coefs,
        }
    }

    /// Whether a box lies in the region of an update.
    pub fn has(&self, update: &Update, zone: Region) -> Option<bool> {
        let grid = &self.scheme.grid;
        let live = grid.live(self.scheme.component(update.target).position);
        let near = Region::from_fn(|a| {
            let Interval { lo, hi } = live[a];
            let most = (hi - 1).max(lo);
            let last = if zone[a].hi == grid.cells[a] {
                most
            } else {
                zone[a].hi - 1
            };
            Interval::new(zone[a].lo.clamp(lo, most), last.clamp(lo, most) + 1)
        });
        let common = near.intersect(update.region);
        match common.is_empty() {
            true => Some(false),
            false => (common == near).then_some(true),
        }
    }
}

/// A box to be looked at; the one with the highest bound comes first.
#[derive(Clone, Copy, PartialEq)]
pub struct Candidate {
    pub bound: f64,
    pub zone: Region,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A box of cells as expressions see it.
struct Cells<'a> {
    scheme: &'a Scheme,
    bounds: &'a FileBounds<'a>,
    position: Position,
    zone: Region,
}

impl HostBox for Cells<'_> {
    fn coordinate(&self, axis: Axis, by: HalfIndex) -> Range {
        let grid = &self.scheme.grid;
        coordinates(grid, axis, self.position[axis] + by, self.zone[axis])
    }

    fn file(&self, file: FileId, offset: Offset) -> Range {
        let grid = &self.scheme.grid;
        let extent = grid.extent(self.scheme.files[file.index()].position);
        let zone = Region::from_fn(|a| {
            let o = i64::from(offset[a]);
            let (lo, hi) = (self.zone[a].lo + o, self.zone[a].hi + o);
            if grid.is_periodic(a) && (lo < 0 || hi > extent[a].hi) {
                return extent[a];
            }
            let last = extent[a].hi - 1;
            Interval::new(lo.clamp(0, last), (hi - 1).clamp(0, last) + 1)
        });
        self.bounds.range(file, zone)
    }
}

/// The ranges of files over blocks of cells.
struct FileBounds<'a> {
    files: &'a dyn Files,
    /// By file the number of blocks per axis, and their ranges.
    blocks: Vec<(PerAxis<i64>, Vec<Range>)>,
}

impl<'a> FileBounds<'a> {
    fn new(scheme: &Scheme, files: &'a dyn Files) -> Self {
        let ids = (0..scheme.files.len() as u32).map(FileId);
        let of_waves = of_waves(scheme);
        let used = |id: FileId| {
            let is = |e: &crate::host::HostExpr| matches!(e, crate::host::HostExpr::File { file, .. } if *file == id);
            let coefs = scheme.coefs.iter().zip(&of_waves);
            let mut coefs = coefs.filter(|(_, used)| **used);
            coefs.any(|(c, _)| c.value.any(&mut |e| is(e)))
        };
        let bounds = ids.map(|id| {
            let extent = scheme.grid.extent(scheme.files[id.index()].position);
            if !used(id) {
                return (PerAxis::splat(0), Vec::new());
            }
            let counts = PerAxis::from_fn(|a| (extent[a].hi + BLOCK - 1) / BLOCK);
            let mut ranges = Vec::new();
            for_each(counts.map(|n| Interval::new(0, n)), |block| {
                let part = Region::from_fn(|a| {
                    Interval::new(block[a] * BLOCK, (block[a] + 1) * BLOCK).intersect(extent[a])
                });
                let mut range = Range::WHOLE;
                let mut first = true;
                for_each(part, |at| {
                    let value = Range::point(files.value(id, at));
                    range = if first { value } else { range.hull(value) };
                    first = false;
                });
                ranges.push(range);
            });
            (counts, ranges)
        });
        Self {
            files,
            blocks: bounds.collect(),
        }
    }

    fn range(&self, file: FileId, zone: Region) -> Range {
        let (counts, ranges) = &self.blocks[file.index()];
        let mut range: Option<Range> = None;
        let mut add = |own: Range| range = Some(range.map_or(own, |r| r.hull(own)));
        if zone.volume() <= BLOCK.pow(3) as u64 {
            for_each(zone, |at| add(Range::point(self.files.value(file, at))));
            return range.unwrap_or(Range::WHOLE);
        }
        let blocks = zone.map(|i| Interval::new(i.lo / BLOCK, (i.hi - 1) / BLOCK + 1));
        for_each(blocks, |block| {
            let index = Axis::ALL.iter().fold(0, |n, &a| n * counts[a] + block[a]);
            let own = ranges.get(index as usize).copied().unwrap_or(Range::WHOLE);
            add(own);
        });
        range.unwrap_or(Range::WHOLE)
    }
}

fn for_each(region: Region, f: impl FnMut(PerAxis<i64>)) {
    crate::lattice::for_each_index(region, f);
}
