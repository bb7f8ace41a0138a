//! Places that are no media: where statements or branches act in a few cells only, and seams between branches.
//!
//! A uniform medium with the coefficients of such a place is nowhere in the domain, so waves that grow in it need not
//! grow. Where they do, a piece of the lattice with the coefficients of its own cells decides ([`super::trial`]): a
//! comb or a sheet may change next to nothing about a medium in which waves grow, and lines of a medium that is too
//! fast may be too thin for such waves.

use super::cells::{Cell, Place, Site};
use super::gain::Gain;
use super::media::Media;
use super::search::Search;
use super::trial::{covers, trial_of};
use super::zone::TOLERANCE;
use crate::lattice::{Axis, PerAxis};

/// Pieces that are stepped, at most, and values that are read in the steps of each.
const TRIALS: usize = 4;
const READS: f64 = 2e7;
/// Multiplications for the waves of a place.
const WAVES: f64 = 2e5;
/// Pairs of media between which seams are looked for.
const PAIRS: usize = 48;

/// The places that were decided.
pub struct Decided {
    /// Values grow there.
    pub grows: Vec<Place>,
    /// The others that are too thin.
    pub left: Vec<Place>,
    /// Whether it is known that values grow in none of these.
    pub is_known: bool,
}

/// Decides whether values grow where a part of a scheme has no medium.
pub fn decide(
    search: &Search,
    media: &[Place],
    thin: Vec<Place>,
    mut seams: Vec<Place>,
) -> Decided {
    seams.extend(seams_between(search, media));
    let mut decided = Decided {
        grows: Vec::new(),
        left: Vec::new(),
        is_known: true,
    };
    let mut suspects: Vec<(f64, &Place)> = Vec::new();
    for place in thin.iter().chain(&seams) {
        let is_new = suspects
            .iter()
            .all(|(_, known)| known.setting != place.setting);
        if let Some(rate) = growth(search, place).filter(|_| is_new) {
            suspects.push((rate, place));
        }
    }
    suspects.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut tried: Vec<Cell> = Vec::new();
    for (rate, place) in suspects {
        if tried.iter().any(|t| covers(search.scheme, *t, place.cell)) {
            continue;
        }
        let trial = match tried.len() < TRIALS {
            true => trial_of(search.scheme, search.files, place.cell, rate, READS),
            false => None,
        };
        match trial.and_then(|trial| trial.grows()) {
            Some(true) => {
                decided.grows.push(place.clone());
                break;
            }
            Some(false) => tried.push(place.cell),
            None => decided.is_known = false,
        }
    }
    let is_left = |place: &Place| decided.grows.iter().all(|own| own.setting != place.setting);
    decided.left = thin
        .iter()
        .filter(|place| is_left(place))
        .cloned()
        .collect();
    decided
}

/// ln of the growth per step of waves in a uniform medium with the coefficients of a place, if they grow.
fn growth(search: &Search, place: &Place) -> Option<f64> {
    let site = Site {
        cell: place.cell,
        part: search.part.clone(),
    };
    let media = Media::new(search.scheme, search.files, &[site]).ok()?;
    let mut phases = media.corners();
    phases.extend(
        media
            .scan_coarsely(WAVES)
            .into_iter()
            .map(|wave| wave.phase),
    );
    let worst = media.worst_beyond(&phases, Gain::OfStep.in_step(&media))?;
    (worst.excess > TOLERANCE).then_some(worst.growth.rate)
}

/// Cells at seams between media, with the faces that belong to other media than these cells.
fn seams_between(search: &Search, media: &[Place]) -> Vec<Place> {
    let mut pairs: Vec<(i64, &Place, &Place)> = Vec::new();
    for (number, one) in media.iter().enumerate() {
        for other in &media[number + 1..] {
            let distance = |a: Axis| (one.cell.index[a] - other.cell.index[a]).abs();
            pairs.push((Axis::ALL.into_iter().map(distance).sum(), one, other));
        }
    }
    pairs.retain(|(_, one, other)| {
        search.forms.form(&one.setting) != search.forms.form(&other.setting)
    });
    pairs.sort_by_key(|(distance, ..)| *distance);
    let seams = pairs
        .iter()
        .take(PAIRS)
        .flat_map(|(_, one, other)| seam(search, one, other));
    seams.collect()
}

/// The seam on the way from one place to another one of another form: along one axis after the other.
fn seam(search: &Search, from: &Place, to: &Place) -> Option<Place> {
    let form = search.forms.form(&from.setting);
    let mut at = from.cell.index;
    for axis in search.scheme.grid.present() {
        let is_alike = |index: i64| {
            let mut cell = at;
            cell[axis] = index;
            search.forms.form(&search.setting(cell)) == form
        };
        let (mut alike, mut other) = (at[axis], to.cell.index[axis]);
        if !is_alike(other) {
            while (alike - other).abs() > 1 {
                let middle = (alike + other).div_euclid(2);
                match is_alike(middle) {
                    true => alike = middle,
                    false => other = middle,
                }
            }
            let mut cell = Cell::from(at);
            cell.index[axis] = alike.min(other);
            cell.upper = PerAxis::from_fn(|a| a == axis);
            return Some(Place {
                setting: search.setting(cell),
                cell,
            });
        }
        at[axis] = other;
    }
    None
}
