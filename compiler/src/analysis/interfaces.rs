//! Growth at interfaces between media.
//!
//! A cell at an interface has coefficients of both sides, means of them for instance, and a uniform medium with these
//! is nowhere in the domain. Waves may grow in it where values of the domain do not, so a piece of the lattice around
//! the cell decides ([`super::trial`]), unless waves grow in a medium of several cells, too.

use super::cells::{Cell, setting};
use super::cost::Patience;
use super::media::Media;
use super::places::places;
use super::stability::{Stability, allowed};
use super::trial::{Trial, piece, trial};
use super::zone::Phase;
use crate::lattice::{Axis, PerAxis};
use crate::scheme::Scheme;
use crate::statics::Files;

/// Cells on both sides along each axis that have the coefficients of a cell in a medium: waves in a slab of nine cells
/// have a largest step 1 % above that of the medium.
const BESIDE: i64 = 4;
/// Pieces that are stepped, at most.
const TRIALS: usize = 4;

/// A trial at the cell of a stability that is none, if waves grow at interfaces only, and values do not grow there with
/// the coefficients that the cells have. `None` if they do, or if that would take too many trials.
pub fn trial_of_interfaces(scheme: &Scheme, files: &dyn Files, found: &Stability) -> Option<Trial> {
    let media = OfMedia {
        scheme,
        files,
        phases: vec![found.worst.phase],
        allowed: allowed(found.own),
    };
    let others = places(scheme, files, Patience::Short).ok()?.list;
    let others = others.iter().map(|place| place.cell);
    let mut first = None;
    let mut tried: Vec<Cell> = Vec::new();
    for cell in std::iter::once(found.at).chain(others) {
        if tried.iter().any(|t| media.covers(*t, cell)) {
            continue;
        }
        let Some(rate) = media.growth(cell) else {
            continue;
        };
        if tried.len() == TRIALS || media.is_medium(cell) || media.is_unstable_beside(cell) {
            return None;
        }
        let trial = trial(scheme, files, cell, rate)?;
        if trial.grows() != Some(false) {
            return None;
        }
        first = first.or(Some(trial));
        tried.push(cell);
    }
    first
}

/// Waves of uniform media with the coefficients of cells.
struct OfMedia<'a> {
    scheme: &'a Scheme,
    files: &'a dyn Files,
    /// Of waves that are looked at.
    phases: Vec<Phase>,
    /// ln of the growth per step that is no instability.
    allowed: f64,
}

impl OfMedia<'_> {
    /// ln of the growth per step of waves in a medium with the coefficients of a cell, if they grow.
    fn growth(&self, cell: Cell) -> Option<f64> {
        let media = Media::new(self.scheme, self.files, &[cell]).ok()?;
        let mut phases = media.corners();
        phases.extend(&self.phases);
        let (_, wave) = media.worst(&phases)?;
        (wave.rate > self.allowed).then_some(wave.rate)
    }

    /// Whether the cells around one have the same coefficients.
    fn is_medium(&self, cell: Cell) -> bool {
        let own = setting(self.scheme, self.files, cell);
        let is_alike = |other: Cell| setting(self.scheme, self.files, other) == own;
        let mut present = self.scheme.grid.present();
        is_alike(cell.index.into())
            && present.all(|axis| {
                (-BESIDE..=BESIDE).all(|by| self.moved(cell, axis, by).is_none_or(is_alike))
            })
    }

    /// Whether waves grow in a medium beside an interface, in any direction.
    fn is_unstable_beside(&self, cell: Cell) -> bool {
        let mut cells = vec![Cell::from(cell.index)];
        for axis in self.scheme.grid.present() {
            let beside: Vec<Cell> = cells
                .iter()
                .flat_map(|c| [-BESIDE - 1, BESIDE + 1].map(|by| self.moved(*c, axis, by)))
                .flatten()
                .collect();
            cells.extend(beside);
        }
        cells
            .into_iter()
            .any(|c| self.is_medium(c) && self.growth(c).is_some())
    }

    /// Whether a piece around one cell has another one in it, and the cells that the updates of that one read.
    fn covers(&self, tried: Cell, cell: Cell) -> bool {
        let grid = &self.scheme.grid;
        let reach = self.scheme.reach();
        let piece = piece(grid, tried.index);
        grid.present().all(|axis| {
            let reach = reach[axis].into_iter().max().unwrap_or(0);
            let (part, cells) = (piece[axis], grid.cells[axis]);
            let at = grid.around(axis, cell.index[axis], part.lo);
            let margin = 2 * i64::from(reach);
            // A part of a ring has no end of the domain.
            let has_ends = !grid.is_periodic(axis) || part.len() == cells;
            let below = (has_ends && part.lo == 0) || at - part.lo >= margin;
            let above = (has_ends && part.hi == cells) || part.hi - at > margin;
            part.contains(at) && below && above
        })
    }

    /// The cell at a distance, if it is in the domain.
    fn moved(&self, cell: Cell, axis: Axis, by: i64) -> Option<Cell> {
        let grid = &self.scheme.grid;
        let index = grid.around(axis, cell.index[axis] + by, 0);
        let moved = PerAxis::from_fn(|a| if a == axis { index } else { cell.index[a] });
        (0..grid.cells[axis])
            .contains(&index)
            .then_some(moved.into())
    }
}
