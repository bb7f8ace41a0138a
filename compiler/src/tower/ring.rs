//! Periodic axes: how the faces of towers close around them.
//!
//! *The middle axis.* The two faces of towers lean along it in opposite ways, so towers go around it as they do along
//! it, if each face comes back to itself after the length of the ring. Where its pitch does not divide that length, one
//! distance between faces around the ring is *narrow*: the remainder. A tower between narrow faces is one of
//! the usual width of which only the events below a limit count.
//!
//! *The outer axis.* The ring is cut at a [`Seam`]. A calculation window does not have the whole ring: there it is
//! [unrolled](Towers::is_unrolled).

use super::geometry::Geometry;
use super::group::{Group, PerFace};
use super::seam::Seam;
use super::towers::Towers;
use super::unfit::Unfit;
use super::width::Width;
use crate::lattice::{Axis, Interval, div_ceil, div_floor};
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tile::TileProgram;

/// The depths at which the faces of a cut lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spacing {
    pitch: i64,
    /// Once around the middle axis.
    pub around: Option<i64>,
}

impl Spacing {
    /// From a tile to the next one.
    pub fn pitch(&self) -> i64 {
        self.pitch
    }

    /// Tiles around the ring.
    #[inline]
    pub fn count(&self) -> Option<i64> {
        self.around.map(|around| div_ceil(around, self.pitch))
    }

    /// Where a tile starts.
    #[inline]
    pub fn start(&self, index: i64) -> i64 {
        match (self.around, self.count()) {
            (Some(around), Some(count)) => {
                index.div_euclid(count) * around + index.rem_euclid(count) * self.pitch
            }
            _ => index * self.pitch,
        }
    }

    /// The tile of a depth.
    #[inline]
    fn index(&self, depth: i64) -> i64 {
        match (self.around, self.count()) {
            (Some(around), Some(count)) => {
                depth.div_euclid(around) * count + depth.rem_euclid(around) / self.pitch
            }
            _ => div_floor(depth, self.pitch),
        }
    }

    /// Where the tile of a depth starts.
    pub fn first_depth(&self, depth: i64) -> i64 {
        self.start(self.index(depth))
    }

    /// The last depth of the tile of a depth.
    pub fn last_depth(&self, depth: i64) -> i64 {
        self.start(self.index(depth) + 1) - 1
    }

    /// The tiles of some depths.
    pub fn tiles(&self, depths: Interval) -> Interval {
        Interval::new(self.index(depths.lo), self.index(depths.hi) + 1)
    }

    /// The tiles that start at some depths, on an axis that is not periodic.
    pub fn starts(&self, depths: Interval) -> Interval {
        let first = |depth: i64| div_ceil(depth, self.pitch);
        Interval::new(first(depths.lo), first(depths.hi))
    }

    /// The width of a tile, if it is narrow.
    #[inline]
    fn narrow(&self, index: i64) -> Option<i64> {
        let (around, count) = (self.around?, self.count()?);
        let rest = around % self.pitch;
        (rest > 0 && index.rem_euclid(count) == count - 1).then_some(rest)
    }
}

/// How towers close around periodic axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Cells around the outer and the middle axis, where the axes are periodic.
    pub cells: [Option<i64>; 2],
    pub seam: Option<Seam>,
    /// Whether some tiles are narrow.
    pub narrow: bool,
    /// Whether all planes across the outer axis have the same updates and volume sources, where that axis is periodic;
    /// points aside.
    pub uniform: bool,
    /// Where the ring of the outer axis is unrolled, from a plane as towers count it to its index, but for whole
    /// lengths of the ring.
    pub rotation: i64,
    pub(super) spacings: PerFace<Spacing>,
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
        let seam = match cells[0] {
            Some(cells) => Some(Seam::new(scheme, program, cells).ok_or(Unfit::Ring)?),
            None => None,
        };
        Ok(Rings {
            cells,
            seam,
            narrow: spacings.iter().any(|s| s.narrow(-1).is_some()),
            uniform: is_uniform(scheme),
            rotation: 0,
            spacings,
        })
    }

    /// Whether one of the first two axes is periodic.
    pub fn is_any(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }

    /// Depths by which tiles lie apart, beside the pitches.
    pub(super) fn generators(&self) -> Vec<PerFace<i64>> {
        let [first, second] = &self.spacings;
        let first = first.around.map(|n| [n, 0]);
        first
            .into_iter()
            .chain(second.around.map(|n| [0, n]))
            .collect()
    }

    /// Where a tile starts along both cuts.
    pub(super) fn start(&self, tile: PerFace<i64>) -> PerFace<i64> {
        let start = |cut: usize| self.spacings[cut].start(tile[cut]);
        [start(0), start(1)]
    }

    /// Below which depths of a tower, counted from where it starts, events belong to a tile; `None`: all of them.
    pub(super) fn limits(&self, tile: PerFace<i64>) -> PerFace<Option<i64>> {
        let narrow = |cut: usize| self.spacings[cut].narrow(tile[cut]);
        [narrow(0), narrow(1)]
    }

    /// The widths of towers, the usual one first.
    pub(super) fn widths(&self) -> Vec<Width> {
        let narrow = |cut: usize| self.spacings[cut].narrow(-1).is_some();
        let each = |cut: usize| match narrow(cut) {
            true => vec![false, true],
            false => vec![false],
        };
        let second = each(1);
        let pairs = each(0)
            .into_iter()
            .flat_map(|a| second.iter().map(move |b| (a, *b)));
        pairs.map(|(a, b)| Width([a, b])).collect()
    }

    /// The limits of towers of a width.
    pub(super) fn limits_of(&self, width: Width) -> PerFace<Option<i64>> {
        let limit = |cut: usize| self.spacings[cut].narrow(-1).filter(|_| width.0[cut]);
        [limit(0), limit(1)]
    }

    /// By how many cells the contents of the array may appear moved, counted on around periodic axes. The rotation is
    /// the first one.
    pub fn shifts(&self) -> Vec<Group> {
        let rotation = [self.rotation, 0];
        let along = |axis: usize| match self.cells[axis] {
            Some(around) => [0, around, -around].map(|by| rotation[axis] + by).to_vec(),
            None => vec![0],
        };
        let second = along(1);
        let each = |x: i64| second.iter().map(move |y| Group::new(x, *y));
        along(0).into_iter().flat_map(each).collect()
    }

    /// The pair of indices by which a tile is known, of the pairs that it has, one for each time around the ring. Its
    /// neighbours with a lower index along one face or both have no higher index along the first one then.
    pub fn known(&self, [i, j]: PerFace<i64>) -> PerFace<i64> {
        let counts = [0, 1].map(|cut| self.spacings[cut].count());
        let [Some(first), Some(second)] = counts else {
            return [i, j];
        };
        let times = j.div_euclid(second);
        [i + times * first, j - times * second]
    }
}

/// Whether updates, amendments and coefficients treat all planes across the outer axis alike.
fn is_uniform(scheme: &Scheme) -> bool {
    let whole = Interval::new(0, scheme.grid.cells[Axis::OUTER]);
    let updates = scheme.stages.iter().flat_map(|stage| &stage.updates);
    let mut regions = updates.map(|update| update.region);
    let mut boxes = scheme.zones.iter().flat_map(|zone| &zone.boxes);
    let mut coefs = scheme.coefs.iter();
    regions.all(|region| region.is_empty() || region[Axis::OUTER] == whole)
        && boxes.all(|region| region[Axis::OUTER] == whole)
        && !coefs.any(|coef| coef.only_axis == Some(Axis::OUTER))
}

/// A periodic outer axis in a calculation window: planes are counted on around the ring, each lies between its
/// predecessor and its successor, and none is the ghost of another one. The seam of a time block begins where that of
/// the time block before has ended, or beyond. So in terms of planes that are counted on the seam never comes back,
/// each event belongs to one plane, and time blocks are in flight as along an open axis: planes that the seam passes
/// are loaded again, as planes below the lowest one, when all time blocks of a pass have left them.
impl Towers {
    /// Whether the outer axis is periodic, and planes in arrays of a layout are counted on around it.
    pub fn is_unrolled(&self, layout: &Layout) -> bool {
        layout.windowed && self.rings.cells[0].is_some()
    }

    /// Cells by which the seam moves against the way of towers in `stages`, rounded up; 0 without one.
    pub fn drift(&self, stages: i64) -> i64 {
        let seam = self.rings.seam.as_ref();
        seam.map_or(0, |seam| seam.drift(stages))
    }

    /// The same towers with planes that are counted on from elsewhere: `rotation` more is the index of a plane, but for
    /// whole lengths of the ring.
    pub fn rotated(&self, rotation: i64) -> Towers {
        let mut towers = self.clone();
        towers.rings.rotation = match self.rings.cells[0] {
            Some(around) => rotation.rem_euclid(around),
            None => 0,
        };
        towers
    }
}
