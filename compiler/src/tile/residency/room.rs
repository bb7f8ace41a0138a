//! Where on the grid towers are whole, and what they do in a time block there.

use super::{Residency, Towers};
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::{Boundary, Scheme, Update};
use std::ops::Range;

/// The origins, as intervals along the outer and the middle axis, for which periods of an alignment have a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// All rows lie in the regions of their updates, and have no ghosts along the two axes.
    whole: [Interval; 2],
    /// The same but for rows beyond ends that have no ghosts: those are in no region. `None` where no end clips towers.
    clipped: Option<[Interval; 2]>,
    /// Memory holds all that is kept when the period begins.
    begin: [Interval; 2],
    /// Some row may lie in the region of its update.
    touched: [Interval; 2],
    /// Along a seam, the depths of the rows of a period.
    depths: [i64; 2],
}

impl Room {
    /// Whether a period whose origin is here may be the first one of a whole tower, if it is whole.
    pub fn may_begin(&self, at: [i64; 2]) -> bool {
        (0..2).all(|a| self.begin[a].contains(at[a]))
    }

    fn is_whole(&self, at: [i64; 2]) -> bool {
        (0..2).all(|a| self.whole[a].contains(at[a]))
    }

    fn is_clipped(&self, at: [i64; 2]) -> bool {
        let clipped = |room: [Interval; 2]| (0..2).all(|a| room[a].contains(at[a]));
        self.clipped.is_some_and(clipped)
    }
}

/// What a tower does in a time block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub alignment: usize,
    /// At the start of the time block, counted on around periodic axes: along the outer axis from the seam on.
    pub origin: [i64; 2],
    /// Cells from there to where the origin lies in the array, if the tower is whole: lengths of rings.
    pub shift: [i64; 2],
    /// Below which depths rows belong to a narrow tower, along both cuts.
    pub limits: [Option<i64>; 2],
    /// Those in which rows may lie in the grid, counted from the start of the time block.
    pub periods: Range<u64>,
    /// Those of which nothing is cut off, all but a few of them.
    pub whole: Range<u64>,
    /// Ends without ghosts may cut rows off in these. Values that memory does not have are nobody's, and rows in no region stay as they are.
    pub clipped: bool,
}

impl Towers {
    /// Where towers have to be, per alignment.
    pub fn rooms(&self, scheme: &Scheme, layout: &Layout) -> Vec<Room> {
        let clips = self.may_clip(scheme);
        let room = |sets: &Residency| Room {
            whole: sets.room(scheme, false),
            clipped: clips.then(|| sets.room(scheme, true)),
            begin: sets.visible(layout, self.advance),
            touched: sets.touched(scheme),
            depths: self.rings.seam.as_ref().map_or([0; 2], |s| s.depths(sets)),
        };
        self.alignments.iter().map(room).collect()
    }

    /// What a tile has to do in a time block of so many periods; `None` if that is nothing.
    pub fn part(&self, rooms: &[Room], tile: [i64; 2], periods: u64) -> Option<Part> {
        let (alignment, mut origin) = self.locate(tile)?;
        let [_, around] = self.rings.cells;
        if let Some(around) = around {
            origin[1] = origin[1].rem_euclid(around);
        }
        let room = &rooms[alignment];
        let at = |period: u64| [0, 1].map(|a| origin[a] + period as i64 * self.advance[a]);
        let per_period = self.alignments[alignment].stages.len() as i64;
        // Whether all, and some, of a period's rows are on the right side of a seam.
        let held = |period: u64| match &self.rings.seam {
            Some(seam) => seam.holds(room.depths, period as i64 * per_period, at(period)[0]),
            None => [true; 2],
        };
        let touches = |period: u64| {
            let lies =
                |a: usize| self.rings.cells[a].is_some() || room.touched[a].contains(at(period)[a]);
            lies(0) && lies(1) && held(period)[1]
        };
        // Where a tower is moves along a line, and rooms are boxes, so these are ranges.
        let first = (0..periods).find(|t| touches(*t))?;
        let end = (first..periods).find(|t| !touches(*t)).unwrap_or(periods);
        let limits = self.rings.limits(tile);
        let mut part = Part {
            alignment,
            origin,
            shift: [0; 2],
            limits,
            periods: first..end,
            whole: end..end,
            clipped: false,
        };
        if limits.iter().any(Option::is_some) {
            return Some(part);
        }
        for shift in self.rings.shifts() {
            let there = |period: u64| [0, 1].map(|a| at(period)[a] + shift[a]);
            let fits = |t: u64| room.is_whole(there(t)) && held(t)[0];
            let begin = (first..end).find(|t| fits(*t) && room.may_begin(there(*t)));
            let whole = match begin {
                Some(begin) => begin..(begin..end).find(|t| !fits(*t)).unwrap_or(end),
                None => end..end,
            };
            let fits = |t: u64| room.is_clipped(there(t)) && held(t)[0];
            let from = (first..end).find(|t| fits(*t)).unwrap_or(end);
            let clipped = from..(from..end).find(|t| !fits(*t)).unwrap_or(end);
            for (periods, clips) in [(whole, false), (clipped, true)] {
                if periods.end - periods.start > part.whole.end - part.whole.start {
                    (part.whole, part.shift, part.clipped) = (periods, shift, clips);
                }
            }
        }
        Some(part)
    }

    /// Whether ends of the grid may clip towers of their rows.
    pub fn may_clip(&self, scheme: &Scheme) -> bool {
        self.clipping(scheme)
            .into_iter()
            .flatten()
            .any(|clips| clips)
    }

    /// Which ends of the outer and the middle axis may clip towers of their rows: those without ghosts, if all updates need the old values of what
    /// they write.
    pub fn clipping(&self, scheme: &Scheme) -> [[bool; 2]; 2] {
        let keep = self.alignments.iter().all(Residency::keeps_all);
        let open = |end: Boundary| keep && end == Boundary::Zero;
        [Axis::OUTER, Axis::MIDDLE].map(|axis| scheme.grid.boundary[axis].map(open))
    }
}

impl Residency {
    /// Whether all updates need the old values of what they write.
    fn keeps_all(&self) -> bool {
        let mut touches = self.lives.iter().flat_map(|life| &life.touches);
        touches.all(|t| t.write.is_none() || t.read || t.old)
    }

    /// The origins for which all rows of a period lie in the regions of their updates, and none has ghosts along the two axes; `clipped`: rows
    /// may lie beyond ends without ghosts.
    fn room(&self, scheme: &Scheme, clipped: bool) -> [Interval; 2] {
        let all = Interval::new(i64::MIN / 4, i64::MAX / 4);
        let mut room = [all; 2];
        for (number, sets) in self.stages.iter().enumerate() {
            let updates = &scheme.stages[number % scheme.stages.len()].updates;
            let inner = updates.iter().map(|u| without_ghosts(scheme, u));
            let inner: Vec<[Interval; 2]> = inner.collect();
            for own in &sets.own {
                for (axis, at) in [own.x, own.y].into_iter().enumerate() {
                    let range = inner[own.update][axis];
                    let mut own = Interval::new(range.lo - at, range.hi - at);
                    let [below, above] = scheme.grid.boundary[[Axis::OUTER, Axis::MIDDLE][axis]];
                    if clipped && below == Boundary::Zero {
                        own.lo = all.lo;
                    }
                    if clipped && above == Boundary::Zero {
                        own.hi = all.hi;
                    }
                    room[axis] = room[axis].intersect(own);
                }
            }
        }
        room
    }

    /// The origins for which some row may lie in the region of its update.
    fn touched(&self, scheme: &Scheme) -> [Interval; 2] {
        let mut room = [Interval::default(); 2];
        for (number, sets) in self.stages.iter().enumerate() {
            let updates = &scheme.stages[number % scheme.stages.len()].updates;
            for own in &sets.own {
                let region = &updates[own.update].region;
                if region.is_empty() {
                    continue;
                }
                for (axis, at) in [(Axis::OUTER, own.x), (Axis::MIDDLE, own.y)] {
                    let own = Interval::new(region[axis].lo - at, region[axis].hi - at);
                    room[axis.index()] = room[axis.index()].hull(own);
                }
            }
        }
        room
    }

    /// The origins for which memory holds all that is kept when a period begins.
    fn visible(&self, layout: &Layout, advance: [i64; 2]) -> [Interval; 2] {
        let mut room = [Interval::new(i64::MIN / 4, i64::MAX / 4); 2];
        let per_period = self.stages.len();
        for life in &self.lives {
            // Loads may run one stage ahead.
            for period in 1..=life.last() / per_period + 1 {
                let period = period as i64;
                for (axis, at) in [(Axis::OUTER, life.place.x), (Axis::MIDDLE, life.place.y)] {
                    let at = at - (period - 1) * advance[axis.index()];
                    let held = layout.visible(axis);
                    for at in [at, at - advance[axis.index()]] {
                        let own = Interval::new(held.lo - at, held.hi - at);
                        room[axis.index()] = room[axis.index()].intersect(own);
                    }
                }
            }
        }
        room
    }
}

/// The indices along the first two axes where an update acts and its values have no ghosts.
pub fn without_ghosts(scheme: &Scheme, update: &Update) -> [Interval; 2] {
    [Axis::OUTER, Axis::MIDDLE]
        .map(|axis| AxisGhosts::new(scheme, update.target, axis).without(update.region[axis]))
}
