//! Which tiles a time block has, and in which of its launches they run.

use super::bounds::Bounds;
use super::geometry::Geometry;
use super::group::{Group, PerFace};
use super::group_box::GroupBox;
use super::residency::RowUpdate;
use super::towers::Towers;
use crate::lattice::{Axis, Interval, div_ceil, div_floor};
use crate::scheme::Scheme;

/// The least and the largest of some numbers.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    least: i64,
    most: i64,
}

impl Extremes {
    fn both(self) -> [i64; 2] {
        [self.least, self.most]
    }
}

/// The depths of events along both faces.
struct Depths<'a> {
    geometry: &'a Geometry,
    /// Along each face.
    leads: PerFace<Extremes>,
}

impl Depths<'_> {
    /// Half cells of an axis with updates.
    fn places(&self, scheme: &Scheme, axis: Axis) -> Interval {
        let updates = scheme.stages.iter().flat_map(|s| &s.updates);
        let regions = updates.map(|u| u.region).filter(|r| !r.is_empty());
        let all = regions.fold(Interval::default(), |all, r| all.hull(r[axis]));
        Interval::new(2 * all.lo, 2 * all.hi + 1)
    }

    /// Along a face, in a box of half cells.
    fn range(&self, face: usize, x: Interval, y: Interval, stages: i64) -> Interval {
        let [a, b] = self.geometry.forms()[face];
        let slope = self.geometry.slopes()[face];
        let span = |factor: i64, lo: i64, hi: i64| {
            let [one, other] = [factor * lo, factor * hi];
            [one.min(other), one.max(other)]
        };
        let terms = [
            span(-a, x.lo, x.hi),
            span(-b, y.lo, y.hi),
            span(slope, 0, stages),
            self.leads[face].both(),
        ];
        let sum = |n: usize| terms.iter().map(|t| t[n]).sum();
        Interval::new(sum(0), sum(1))
    }

    /// Along the first face, for half cells of the outer axis and depths along the second face.
    fn beside(&self, x: Interval, depths: Interval, stages: i64) -> Option<Interval> {
        let [_, [c, d]] = self.geometry.forms();
        let slope = self.geometry.slopes()[1];
        let mut y: Option<Interval> = None;
        for x in [x.lo, x.hi] {
            for depth in [depths.lo, depths.hi] {
                for number in [0, stages] {
                    for lead in self.leads[1].both() {
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
    /// The indices along both faces of all tiles that a time block of `periods` periods has, and perhaps of some
    /// others; each tile is known by one pair of them ([`Rings::known`](super::Rings::known)). `None` where there are
    /// too many to be counted.
    pub fn indices(&self, scheme: &Scheme, periods: u64) -> Option<PerFace<Interval>> {
        let none = Extremes {
            least: i64::MAX / 4,
            most: i64::MIN / 4,
        };
        let mut leads = [none; 2];
        for class in self.classes.iter().flatten() {
            for (leads, plane) in leads.iter_mut().zip(self.geometry.planes()) {
                let lead = class.leads[plane];
                leads.least = leads.least.min(lead);
                leads.most = leads.most.max(lead);
            }
        }
        let depths = Depths {
            geometry: &self.geometry,
            leads,
        };
        let stages = i64::try_from(periods)
            .ok()?
            .checked_mul(self.per_period())?;
        let mut x = depths.places(scheme, Axis::OUTER);
        if let Some(seam) = &self.rings.seam {
            // In half cells.
            let by = div_ceil(seam.slope.checked_mul(stages)?, seam.form.abs()) + 4;
            let by = by + div_ceil(seam.most_lead(), seam.form.abs());
            let around = 2 * seam.cells;
            x = match seam.form < 0 {
                true => Interval::new(-by, around + by),
                false => Interval::new(-around - by, by),
            };
        }
        let y = depths.places(scheme, Axis::MIDDLE);
        let [first, second] = [0, 1].map(|face| depths.range(face, x, y, stages));
        let [one, other] = &self.rings.spacings;
        let Some(around) = other.around else {
            return Some([one.tiles(first), other.tiles(second)]);
        };
        // The second face has each depth of the ring once; the first one has the depths that belong to it.
        let along = depths.beside(x, Interval::new(0, around), stages)?;
        Some([one.tiles(along), Interval::new(0, other.count()?)])
    }

    /// The same without tiles that no period takes to rows of the grid: per index along the first face, indices along
    /// the second one. There are as many as a time block has tiles, about, where pairs of both ranges grow with the
    /// square of the longer axis.
    pub fn tiles(
        &self,
        scheme: &Scheme,
        bounds: &[Bounds],
        periods: u64,
    ) -> Option<Vec<(i64, Interval)>> {
        let [first, second] = self.indices(scheme, periods)?;
        let [one, other] = &self.rings.spacings;
        let last = i64::try_from(periods).ok()? - 1;
        let origins = |of: fn(GroupBox) -> Interval, advance: i64| {
            let rows = bounds.iter().map(|own| of(own.touched()));
            let rows = rows.fold(Interval::default(), Interval::hull);
            let moves = advance * last;
            Interval::new(rows.lo - moves.max(0), rows.hi - moves.min(0))
        };
        let mut origins_along = Vec::new();
        if other.around.is_none() {
            origins_along.push((Axis::MIDDLE, origins(|of| of.y, self.advance.y)));
            if self.rings.cells[0].is_none() {
                origins_along.push((Axis::OUTER, origins(|of| of.x, self.advance.x)));
            }
        }
        let of = |i: i64| {
            let beside = origins_along.iter().filter_map(|(axis, origins)| {
                let depths = self.geometry.beside(one.start(i), *axis, *origins)?;
                Some(other.starts(depths))
            });
            (i, beside.fold(second, Interval::intersect))
        };
        let all = (first.lo..first.hi).map(of);
        Some(all.filter(|(_, own)| !own.is_empty()).collect())
    }

    /// The launches of a time block of `periods` periods. `None` where the ring of the outer axis is too short for it.
    pub fn launches(&self, scheme: &Scheme, periods: u64) -> Option<Launches> {
        let Some(seam) = &self.rings.seam else {
            return Some(Launches::default());
        };
        let stages = i64::try_from(periods)
            .ok()?
            .checked_mul(self.per_period())?;
        // Along the way of the towers.
        let sign = -seam.form.signum();
        let stages_of = self.alignments.iter().flat_map(|a| &a.stages);
        let updates = stages_of.flat_map(|s| &s.updates);
        let at = updates.map(|update: &RowUpdate| sign * update.at.x);
        let rows = at.fold(Interval::default(), |all, x| {
            all.hull(Interval::new(x, x + 1))
        });
        let reach = scheme.reach()[Axis::OUTER];
        let reach = reach.map(i64::from).into_iter().max().unwrap_or(0);
        let near = reach + 2 + div_ceil(seam.most_lead(), 2 * seam.form.abs());
        let moved = div_ceil(seam.slope.checked_mul(stages)?, 2 * seam.form.abs());
        let towers = i64::try_from(periods)
            .ok()?
            .checked_mul(self.advance.x.abs())?;
        // The last towers that read across the seam, and the first ones that they may read from.
        let readers = near - rows.lo;
        let written = seam.cells - moved - towers - rows.hi - near;
        (readers + 1 < written).then(|| Launches {
            seam: Some(SeamOrder {
                sign,
                from: (readers + 1 + written) / 2,
            }),
        })
    }
}

/// Which towers of a time block run first: all of them, unless a seam cuts the outer axis. Then some towers write
/// values that others read across the seam, and the former run in a launch of their own before all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    seam: Option<SeamOrder>,
}

/// The towers whose origin's x, times a sign, is not below `from` run first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeamOrder {
    sign: i64,
    from: i64,
}

impl Launches {
    /// The number of the launch in which a tower runs, by its origin at the start of the time block.
    pub fn of(&self, origin: Group) -> usize {
        let later = self.seam.is_some_and(|s| s.sign * origin.x < s.from);
        usize::from(later)
    }
}
