//! Facts about towers for time blocks in flight: which planes across an axis a tower accesses, and on which towers of
//! an earlier time block it depends.

use super::bounds::Placement;
use super::group::{Group, PerFace};
use super::residency::Residency;
use super::towers::{Located, Towers};
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::Scheme;

/// Planes across the outer axis, or across the middle axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planes {
    /// All planes that are read or written, and the planes between them.
    pub touched: Interval,
    /// The planes of them that may be written.
    pub written: Interval,
}

impl Planes {
    pub fn hull(self, other: Planes) -> Planes {
        Planes {
            touched: self.touched.hull(other.touched),
            written: self.written.hull(other.written),
        }
    }
}

/// The planes that towers of a scheme access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneAccess {
    /// Per alignment, the planes of a period, relative to the origin.
    periods: Vec<Planes>,
    axis: Axis,
    /// Cells that towers advance along the axis in a period.
    advance: i64,
    /// The planes of the array, ghosts included.
    held: Interval,
    /// Planes with ghosts along the axis, each with the plane of the ghosts.
    ghosts: Vec<(i64, i64)>,
    /// Planes are counted on around the ring of the axis.
    unrolled: bool,
}

/// An index along one of the two axes over which towers are cut.
fn along(axis: Axis, at: Group) -> i64 {
    match axis {
        Axis::OUTER => at.x,
        _ => at.y,
    }
}

impl PlaneAccess {
    /// Planes across the outer axis or the middle axis; the latter is not periodic.
    pub fn new(scheme: &Scheme, layout: &Layout, towers: &Towers, axis: Axis) -> PlaneAccess {
        let advance = along(axis, towers.advance);
        let unrolled = axis == Axis::OUTER && towers.is_unrolled(layout);
        let mut ghosts = Vec::new();
        for id in scheme.component_ids().filter(|_| !unrolled) {
            let pairs = AxisGhosts::new(scheme, id, axis).pairs();
            ghosts.extend(pairs.into_iter().map(|(from, ghost)| (from, ghost.index)));
        }
        ghosts.sort_unstable();
        ghosts.dedup();
        let period = |residency: &Residency| residency.planes(axis, advance);
        PlaneAccess {
            periods: towers.alignments.iter().map(period).collect(),
            axis,
            advance,
            held: layout.visible(axis),
            ghosts,
            unrolled,
        }
    }

    /// The planes of the array, ghosts included.
    pub fn held(&self) -> Interval {
        self.held
    }

    /// Whether planes are counted on around the ring of the axis.
    pub fn is_unrolled(&self) -> bool {
        self.unrolled
    }

    /// Above all planes that towers touch, along their way, where planes are counted on around the ring of the outer
    /// axis: towers have rows up to the seam at most, which is highest at the beginning of a time block.
    pub fn top(&self, towers: &Towers, scheme: &Scheme) -> Option<i64> {
        let seam = towers.rings.seam.as_ref().filter(|_| self.unrolled)?;
        let stages = scheme.stages.iter().enumerate();
        let updates =
            stages.flat_map(|(n, of)| (0..of.updates.len()).map(move |update| (n, update)));
        let way = towers.way();
        let highest = updates.map(|(stage, update)| {
            let side = seam.side(stage, update).at(0);
            if way < 0 { 1 - side.lo } else { side.hi }
        });
        let above = self.periods.iter().map(|of| match way < 0 {
            true => of.written.hi - of.touched.lo,
            false => of.touched.hi - of.written.lo,
        });
        Some(highest.max()? + above.max()?)
    }

    /// The planes of a tower in a time block; it may have none.
    pub fn of(&self, placement: &Placement) -> Planes {
        let mut all = Planes::default();
        let Planes { touched, written } = self.periods[placement.alignment];
        for period in [placement.periods.start, placement.periods.end - 1] {
            let origin = along(self.axis, placement.origin) + self.advance * period as i64;
            let moved = |range: Interval| match range.is_empty() {
                true => range,
                false => Interval::new(range.lo + origin, range.hi + origin),
            };
            all = all.hull(Planes {
                touched: moved(touched),
                written: moved(written),
            });
        }
        let sources = all.written;
        for (from, to) in &self.ghosts {
            if sources.contains(*from) {
                let ghost = Interval::new(*to, *to + 1);
                all = all.hull(Planes {
                    touched: ghost,
                    written: ghost,
                });
            }
        }
        if self.unrolled {
            return all;
        }
        let held = |range: Interval| {
            let held = range.intersect(self.held);
            match held.is_empty() {
                true => Interval::default(),
                false => held,
            }
        };
        Planes {
            touched: held(all.touched),
            written: held(all.written),
        }
    }
}

impl Residency {
    /// Planes across the outer axis in which a tower updates rows in a period.
    pub(super) fn width(&self) -> i64 {
        self.planes(Axis::OUTER, 0).written.len()
    }

    /// The planes of a period whose origin lies at index 0.
    fn planes(&self, axis: Axis, advance: i64) -> Planes {
        let plane = |x: i64| Interval::new(x, x + 1);
        let mut planes = Planes::default();
        for stage in &self.stages {
            for update in &stage.updates {
                planes.written = planes.written.hull(plane(along(axis, update.at)));
            }
            for row in stage.read.iter().chain(&stage.old) {
                planes.touched = planes.touched.hull(plane(along(axis, row.at)));
            }
        }
        // A tower that begins with this period loads rows that earlier ones would have kept.
        let per_period = self.stages.len();
        for live in &self.live_ranges {
            for period in 1..=live.last() / per_period {
                let at = along(axis, live.row.at) - advance * period as i64;
                planes.touched = planes.touched.hull(plane(at));
            }
        }
        planes.touched = planes.touched.hull(planes.written);
        planes
    }
}

impl Towers {
    /// Along the outer axis towers move up (1) or down (-1) as time goes on; 0 if they stay.
    pub fn way(&self) -> i64 {
        self.advance.x.signum()
    }

    /// The index of the origin along the outer axis of the last tower, in the order of towers, on which `tower` may
    /// depend, if its time block begins `stages` stages after theirs.
    ///
    /// An event's depth never falls from an event to one that depends on it. Depths count stages from the start of a
    /// time block on, so they are larger in the earlier one by the slope times the stages between.
    ///
    /// `moved`: planes by which the tower's planes are farther along the way than planes of the earlier time block with
    /// the same index, where they are counted on around the outer axis.
    pub fn last_before(&self, tower: Located, stages: i64, moved: i64) -> i64 {
        let Located { alignment, origin } = tower;
        let near = self.alignments[alignment].start;
        let x = origin.x - self.way() * moved;
        let start: PerFace<i64> = [0, 1].map(|face| {
            let [a, b] = self.geometry.forms()[face];
            let spacing = &self.rings.spacings[face];
            let start = near[face] - 2 * (a * x + b * origin.y);
            // One that lies beside the tiles of the earlier time block ends in the next one.
            let last = match moved {
                0 => spacing.last_depth(start),
                _ => start + spacing.pitch() - 1,
            };
            let slope = self.geometry.slopes()[face];
            spacing.first_depth(last + slope * stages)
        });
        self.geometry.reduce(start).1.x
    }
}
