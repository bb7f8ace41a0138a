//! Growth at interfaces between media.
//!
//! A cell at an interface has coefficients of both sides, means of them for instance, and a uniform medium with these
//! is nowhere in the domain. Waves may grow in it where values of the domain do not, so a piece of the lattice around
//! the cell decides ([`super::trial`]), unless waves grow in a medium of several cells, too.

use super::cells::{Cell, Site, setting};
use super::cost::Patience;
use super::media::Media;
use super::places::places;
use super::stability::Stability;
use super::trial::{Trial, covers, trial};
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
        found,
    };
    let own = Site {
        cell: found.at,
        part: found.part.clone(),
    };
    let others = places(scheme, files, Patience::Short).ok()?.list;
    let mut first = None;
    let mut tried: Vec<Cell> = Vec::new();
    for site in std::iter::once(own).chain(others) {
        let cell = site.cell;
        if tried.iter().any(|t| covers(scheme, *t, cell)) {
            continue;
        }
        let Some(rate) = media.growth(&site) else {
            continue;
        };
        if tried.len() == TRIALS || media.is_medium(&site) || media.is_unstable_beside(&site) {
            return None;
        }
        let trial = trial(&site.part.scheme(scheme), files, cell, rate)?;
        if trial.grows() != Some(false) {
            return None;
        }
        first = first.or(Some(trial));
        tried.push(cell);
    }
    first
}

/// A trial at the cell of a stability that is none, of the values that grow there.
pub fn trial_of_part(scheme: &Scheme, files: &dyn Files, found: &Stability) -> Option<Trial> {
    let own = found.part.scheme(scheme);
    trial(&own, files, found.at, found.worst.rate)
}

/// Waves of uniform media with the coefficients of cells.
struct OfMedia<'a> {
    scheme: &'a Scheme,
    files: &'a dyn Files,
    found: &'a Stability,
}

impl OfMedia<'_> {
    /// ln of the growth per step of waves in a medium with the coefficients of a cell, if they grow.
    fn growth(&self, site: &Site) -> Option<f64> {
        let media = Media::new(self.scheme, self.files, std::slice::from_ref(site)).ok()?;
        let mut phases = media.corners();
        phases.push(self.found.worst.phase);
        let (_, wave) = media.worst(&phases)?;
        (wave.rate > self.found.allowed(&site.part)).then_some(wave.rate)
    }

    /// Whether the cells around one have the same coefficients.
    fn is_medium(&self, site: &Site) -> bool {
        let own_scheme = site.part.scheme(self.scheme);
        let of = |cell: Cell| setting(&own_scheme, self.files, cell);
        let own = of(site.cell);
        let is_alike = |other: Cell| of(other) == own;
        let mut present = self.scheme.grid.present();
        is_alike(site.cell.index.into())
            && present.all(|axis| {
                (-BESIDE..=BESIDE).all(|by| self.moved(site.cell, axis, by).is_none_or(is_alike))
            })
    }

    /// Whether waves grow in a medium beside an interface, in any direction.
    fn is_unstable_beside(&self, site: &Site) -> bool {
        let mut cells = vec![Cell::from(site.cell.index)];
        for axis in self.scheme.grid.present() {
            let beside: Vec<Cell> = cells
                .iter()
                .flat_map(|c| [-BESIDE - 1, BESIDE + 1].map(|by| self.moved(*c, axis, by)))
                .flatten()
                .collect();
            cells.extend(beside);
        }
        cells.into_iter().any(|cell| {
            let beside = Site {
                cell,
                part: site.part.clone(),
            };
            self.is_medium(&beside) && self.growth(&beside).is_some()
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
