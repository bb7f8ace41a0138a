//! Periodic axes: how the faces of towers close around them.
//!
//! *The middle axis.* The two faces of towers lean along it in opposite ways, so towers go around it as they do along it, if each face comes
//! back to itself after the length of the ring. Where its pitch does not divide that length, one distance between faces around the ring is
//! *narrow*: what the others leave. A tower between narrow faces is one of the usual width of which only the events below a limit count.
//!
//! *The outer axis.* Towers of a time block run along it, from one end to the other, and around the ring they would wait for themselves. So the ring
//! is cut at a *seam*, a face that moves against the towers: where it needs no more than its own slope, nothing on the side that runs
//! first depends on the other one. What lies beyond the seam is done before what reads it begins: a time block has two starts then.

use super::geometry::Geometry;
use super::{Residency, Towers, Unfit};
use crate::lattice::{Axis, Interval, div_ceil, div_floor};
use crate::scheme::Scheme;
use crate::tile::TileProgram;

/// The depths at which the faces of a cut lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spacing {
    pitch: i64,
    /// Once around the middle axis.
    around: Option<i64>,
}

impl Spacing {
    /// Tiles around the ring.
    fn count(&self) -> Option<i64> {
        self.around.map(|around| div_ceil(around, self.pitch))
    }

    /// Where a tile starts.
    pub fn start(&self, index: i64) -> i64 {
        match (self.around, self.count()) {
            (Some(around), Some(count)) => {
                index.div_euclid(count) * around + index.rem_euclid(count) * self.pitch
            }
            _ => index * self.pitch,
        }
    }

    /// The tile of a depth.
    fn index(&self, depth: i64) -> i64 {
        match (self.around, self.count()) {
            (Some(around), Some(count)) => {
                depth.div_euclid(around) * count + depth.rem_euclid(around) / self.pitch
            }
            _ => div_floor(depth, self.pitch),
        }
    }

    /// The width of a tile, if it is narrow.
    fn narrow(&self, index: i64) -> Option<i64> {
        let (around, count) = (self.around?, self.count()?);
        let rest = around % self.pitch;
        (rest > 0 && index.rem_euclid(count) == count - 1).then_some(rest)
    }
}

/// Where the ring of the outer axis is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seam {
    /// Of the plane, per half cell of the outer axis: not 0.
    form: i64,
    /// Per stage.
    slope: i64,
    /// Per stage and update.
    leads: Vec<Vec<i64>>,
    /// Half cells of each target's position along the outer axis.
    positions: Vec<Vec<i64>>,
    cells: i64,
}

/// The part of a ring of cells that counts in a stage, in terms of `(rate * n + from) / unit`, rounded down, with n the stages since the time block
/// began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub rate: i64,
    pub from: i64,
    pub unit: i64,
    /// The window begins at minus that; otherwise it ends after that.
    pub begins: bool,
    pub cells: i64,
}

impl Window {
    pub fn at(&self, number: i64) -> Interval {
        let edge = div_floor(self.rate * number + self.from, self.unit);
        if self.begins {
            Interval::new(-edge, self.cells - edge)
        } else {
            Interval::new(edge + 1 - self.cells, edge + 1)
        }
    }
}

impl Seam {
    /// Events count whose depth lies in a window as long as the ring.
    fn around(&self) -> i64 {
        2 * self.cells * self.form.abs()
    }

    /// The cells that count for an update of a stage of a step.
    pub fn window(&self, stage: usize, update: usize) -> Window {
        let (lead, position) = (self.leads[stage][update], self.positions[stage][update]);
        // 0 <= slope * n + lead - form * (2 x + position) < around
        Window {
            rate: self.slope,
            from: lead - self.form * position,
            unit: 2 * self.form.abs(),
            begins: self.form < 0,
            cells: self.cells,
        }
    }

    /// The least and the largest depth of the rows of a period that begins at stage 0 with its origin at index 0.
    pub(super) fn depths(&self, sets: &Residency) -> [i64; 2] {
        let mut depths = [i64::MAX / 4, i64::MIN / 4];
        for (number, stage) in sets.stages.iter().enumerate() {
            let of = number % self.leads.len();
            for own in &stage.own {
                let at = 2 * own.x + self.positions[of][own.update];
                let depth =
                    self.slope * number as i64 + self.leads[of][own.update] - self.form * at;
                depths = [depths[0].min(depth), depths[1].max(depth)];
            }
        }
        depths
    }

    /// What such depths become so many stages later, with the origin elsewhere.
    fn later(&self, depths: [i64; 2], number: i64, x: i64) -> [i64; 2] {
        let by = self.slope * number - 2 * self.form * x;
        depths.map(|depth| depth + by)
    }

    /// Whether rows of such depths are all, and some, in the window.
    pub(super) fn holds(&self, depths: [i64; 2], number: i64, x: i64) -> [bool; 2] {
        let [least, most] = self.later(depths, number, x);
        let around = self.around();
        [least >= 0 && most < around, most >= 0 && least < around]
    }
}

/// How towers close around periodic axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Cells around the outer and the middle axis, where those are periodic.
    pub cells: [Option<i64>; 2],
    pub seam: Option<Seam>,
    /// Whether some tiles are narrow.
    pub narrow: bool,
    pub(super) spacings: [Spacing; 2],
}

/// Towers around a ring, at least.
const LEAST: i64 = 4;

impl Rings {
    pub(super) fn new(
        scheme: &Scheme,
        program: &TileProgram,
        geometry: &Geometry,
    ) -> Result<Rings, Unfit> {
        let ring = |axis: Axis| {
            let cells = scheme.grid.cells[axis];
            scheme.grid.is_periodic(axis).then_some(cells)
        };
        let cells = [Axis::OUTER, Axis::MIDDLE].map(ring);
        let [[a, b], [c, d]] = geometry.forms();
        let pitches = geometry.pitches();
        // Both faces lean along the outer axis in one way, and along the middle axis in opposite ones.
        let usual = a.signum() * c.signum() > 0 && b.signum() * d.signum() < 0;
        if cells.iter().any(Option::is_some) && !usual {
            return Err(Unfit::Ring);
        }
        let around = |form: i64| {
            let cells = cells[1]?;
            form.abs().checked_mul(2)?.checked_mul(cells)
        };
        let spacings = [(b, pitches[0]), (d, pitches[1])].map(|(form, pitch)| Spacing {
            pitch,
            around: around(form),
        });
        let short = |s: &Spacing| s.around.is_some_and(|around| around < LEAST * s.pitch);
        if spacings.iter().any(short) {
            return Err(Unfit::Ring);
        }
        let seam = cells[0].map(|cells| {
            let plane = program.seam.ok_or(Unfit::Ring)?;
            let mut leads: Vec<Vec<i64>> = Vec::new();
            let mut positions: Vec<Vec<i64>> = Vec::new();
            for (stage, classes) in scheme.stages.iter().zip(&program.stages) {
                let class = |n: usize| classes.iter().find(|c| c.updates.contains(n));
                let all = || (0..stage.updates.len()).map(class);
                leads.push(all().map(|c| c.map_or(0, |c| c.leads[plane])).collect());
                let at = |c: Option<&crate::tile::Class>| c.map_or(0, |c| c.position[Axis::OUTER]);
                positions.push(all().map(at).collect());
            }
            Ok(Seam {
                form: program.planes[plane].form[Axis::OUTER],
                slope: program.planes[plane].slope,
                leads,
                positions,
                cells,
            })
        });
        Ok(Rings {
            cells,
            seam: seam.transpose()?,
            narrow: spacings.iter().any(|s| s.narrow(-1).is_some()),
            spacings,
        })
    }

    /// Whether one of the first two axes is periodic.
    pub fn is_any(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }

    /// Depths by which tiles lie apart, beside the pitches.
    pub(super) fn generators(&self) -> Vec<[i64; 2]> {
        let [first, second] = &self.spacings;
        let first = first.around.map(|n| [n, 0]);
        first
            .into_iter()
            .chain(second.around.map(|n| [0, n]))
            .collect()
    }

    /// Where a tile starts along both cuts.
    pub(super) fn start(&self, tile: [i64; 2]) -> [i64; 2] {
        [0, 1].map(|cut| self.spacings[cut].start(tile[cut]))
    }

    /// Below which depths of a tower, counted from where it starts, events belong to a tile; `None`: all of them.
    pub(super) fn limits(&self, tile: [i64; 2]) -> [Option<i64>; 2] {
        [0, 1].map(|cut| self.spacings[cut].narrow(tile[cut]))
    }

    /// By how many cells what lies in the array may appear moved, counted on around periodic axes; nothing comes first.
    pub fn shifts(&self) -> Vec<[i64; 2]> {
        let along = |axis: usize| match self.cells[axis] {
            Some(around) => vec![0, around, -around],
            None => vec![0],
        };
        let second = along(1);
        let each = |x: i64| second.iter().map(move |y| [x, *y]);
        along(0).into_iter().flat_map(each).collect()
    }

    /// Of the indices that a tile has, once for each time around the ring, those by which it is known. Its neighbours with a lower index along one
    /// face or both have no higher index along the first one then.
    pub fn known(&self, [i, j]: [i64; 2]) -> [i64; 2] {
        let counts = [0, 1].map(|cut| self.spacings[cut].count());
        let [Some(first), Some(second)] = counts else {
            return [i, j];
        };
        let times = j.div_euclid(second);
        [i + times * first, j - times * second]
    }

    /// The indices of all tiles, each known by one pair, that hold events in so many stages; and perhaps of some others.
    pub(super) fn indices(
        &self,
        scheme: &Scheme,
        program: &Depths<'_>,
        stages: i64,
    ) -> Option<[Interval; 2]> {
        let mut x = program.places(scheme, Axis::OUTER);
        if let Some(seam) = &self.seam {
            // In half cells.
            let by = div_ceil(seam.slope.checked_mul(stages)?, seam.form.abs()) + 4;
            let lead = seam.leads.iter().flatten().map(|l| l.abs()).max();
            let by = by + div_ceil(lead.unwrap_or(0), seam.form.abs());
            let around = 2 * seam.cells;
            x = match seam.form < 0 {
                true => Interval::new(-by, around + by),
                false => Interval::new(-around - by, by),
            };
        }
        let y = program.places(scheme, Axis::MIDDLE);
        let [first, second] = [0, 1].map(|cut| program.range(cut, x, y, stages));
        let [one, other] = &self.spacings;
        let Some(around) = other.around else {
            return Some([one.tiles(first), other.tiles(second)]);
        };
        // The second face has each depth of the ring once; the first one what goes with that.
        let along = program.beside(x, Interval::new(0, around), stages)?;
        Some([one.tiles(along), Interval::new(0, other.count()?)])
    }
}

impl Spacing {
    fn tiles(&self, depths: Interval) -> Interval {
        Interval::new(self.index(depths.lo), self.index(depths.hi) + 1)
    }
}

/// The depths of events along both cuts.
pub(super) struct Depths<'a> {
    pub geometry: &'a Geometry,
    /// The least and the largest lead along each cut.
    pub leads: [[i64; 2]; 2],
}

impl Depths<'_> {
    /// Half cells of an axis, those of all updates.
    fn places(&self, scheme: &Scheme, axis: Axis) -> Interval {
        let updates = scheme.stages.iter().flat_map(|s| &s.updates);
        let regions = updates.map(|u| u.region).filter(|r| !r.is_empty());
        let all = regions.fold(Interval::default(), |all, r| all.hull(r[axis]));
        Interval::new(2 * all.lo, 2 * all.hi + 1)
    }

    /// Along a cut, in a box of half cells.
    fn range(&self, cut: usize, x: Interval, y: Interval, stages: i64) -> Interval {
        let [a, b] = self.geometry.forms()[cut];
        let slope = self.geometry.slopes()[cut];
        let span = |factor: i64, lo: i64, hi: i64| {
            let [one, other] = [factor * lo, factor * hi];
            [one.min(other), one.max(other)]
        };
        let terms = [
            span(-a, x.lo, x.hi),
            span(-b, y.lo, y.hi),
            span(slope, 0, stages),
            self.leads[cut],
        ];
        let sum = |n: usize| terms.iter().map(|t| t[n]).sum();
        Interval::new(sum(0), sum(1))
    }

    /// Along the first cut, for half cells of the outer axis and depths along the second cut.
    fn beside(&self, x: Interval, depths: Interval, stages: i64) -> Option<Interval> {
        let [_, [c, d]] = self.geometry.forms();
        let slope = self.geometry.slopes()[1];
        let mut y: Option<Interval> = None;
        for x in [x.lo, x.hi] {
            for depth in [depths.lo, depths.hi] {
                for number in [0, stages] {
                    for lead in self.leads[1] {
                        let at = slope * number + lead - c * x - depth;
                        let at = div_floor(at * d.signum(), d.abs());
                        let own = Interval::new(at - 2, at + 3);
                        y = Some(y.map_or(own, |y| y.hull(own)));
                    }
                }
            }
        }
        Some(self.range(0, x, y?, stages))
    }
}

impl Towers {
    /// The indices along both cuts of all tiles that a time block of so many periods has; each tile is known by one pair of them ([`Rings::known`]).
    /// `None` where there are too many to be counted.
    pub fn indices(&self, scheme: &Scheme, periods: u64) -> Option<[Interval; 2]> {
        let mut leads = [[i64::MAX / 4, i64::MIN / 4]; 2];
        for class in self.classes.iter().flatten() {
            for (leads, plane) in leads.iter_mut().zip(self.geometry.planes()) {
                let lead = class.leads[plane];
                *leads = [leads[0].min(lead), leads[1].max(lead)];
            }
        }
        let depths = Depths {
            geometry: &self.geometry,
            leads,
        };
        let stages = i64::try_from(periods)
            .ok()?
            .checked_mul(self.per_period())?;
        self.rings.indices(scheme, &depths, stages)
    }

    /// Where the ring of the outer axis is cut: which towers, by their origins, run before all others begin, as those read across the
    /// seam what they have written. `None` where the ring is too short for a time block of so many periods.
    pub fn halves(&self, scheme: &Scheme, periods: u64) -> Option<Halves> {
        let Some(seam) = &self.rings.seam else {
            return Some(Halves::default());
        };
        let stages = i64::try_from(periods)
            .ok()?
            .checked_mul(self.per_period())?;
        // Along the way of the towers.
        let sign = -seam.form.signum();
        let own = self.alignments.iter().flat_map(|a| &a.stages);
        let own = own.flat_map(|s| &s.own).map(|own| sign * own.x);
        let rows = own.fold(Interval::default(), |all, x| {
            all.hull(Interval::new(x, x + 1))
        });
        let reach = scheme.reach()[Axis::OUTER];
        let reach = reach.map(i64::from).into_iter().max().unwrap_or(0);
        let lead = seam.leads.iter().flatten().map(|l| l.abs()).max();
        let near = reach + 2 + div_ceil(lead.unwrap_or(0), 2 * seam.form.abs());
        let moved = div_ceil(seam.slope.checked_mul(stages)?, 2 * seam.form.abs());
        let towers = i64::try_from(periods)
            .ok()?
            .checked_mul(self.advance[0].abs())?;
        // The last towers that read across the seam, and the first ones that they may read from.
        let readers = near - rows.lo;
        let written = seam.cells - moved - towers - rows.hi - near;
        (readers + 1 < written).then(|| Halves {
            first: Some((sign, (readers + 1 + written) / 2)),
        })
    }

    /// Stages of a period.
    fn per_period(&self) -> i64 {
        self.steps as i64 * self.classes.len() as i64
    }
}

/// Which towers of a time block run first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Halves {
    /// Those whose origin, times a sign, is not below.
    first: Option<(i64, i64)>,
}

impl Halves {
    pub fn is_first(&self, origin: [i64; 2]) -> bool {
        self.first
            .is_none_or(|(sign, from)| sign * origin[0] >= from)
    }
}
