//! How large the tables of corrections are, before they are made.

use super::shell::Shell;
use super::table::Corrections;
use super::waves::POINT;
use super::weigh::Weigher;
use crate::problem::{IncidentField, Problem, TotalBox};
use crate::scheme::Scheme;
use crate::statics::NoFiles;

/// Sizes of the tables of a problem's corrections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Corrected values.
    pub places: u64,
    /// Different corrections in a step.
    pub waves: u64,
    /// Bytes of the tables of their places and of their terms.
    pub bytes: u64,
    /// Multiplications of a step that depend on the step before, and others.
    pub operations: [u64; 2],
    /// These are counts, not upper bounds.
    pub exact: bool,
}

/// Bytes of a place with a correction of its own, at most, while tables are made: a place of a pattern, before and
/// after waves have numbers, its kind, and the key by which equal ones are found; or points of a given field, with
/// keys, too.
const PLACE: [u64; 2] = [96, 280];

/// The same for a value that it reads: a part, and its key.
const READ: [u64; 2] = [32, 16];

impl Sizes {
    /// Counts, where waves are plane and the media at faces are the same everywhere, so that few rows are looked at.
    /// Otherwise upper bounds, by which each place has a correction of its own.
    pub fn new(scheme: &Scheme, problem: &Problem) -> Sizes {
        let incidents = &problem.incidents;
        if incidents.iter().all(|i| i.boxes.is_empty()) {
            return Sizes::default();
        }
        let updates = || scheme.stages.iter().flat_map(|stage| &stage.updates);
        let is_plane = |field: &IncidentField| matches!(field, IncidentField::Plane(_));
        let regular = incidents.iter().all(|incident| {
            let is_fixed = |of: &TotalBox| {
                let shell = Shell::new(scheme, of);
                updates().all(|update| {
                    let parts = shell.parts(update.target);
                    Weigher::new(scheme, &NoFiles, update, &parts).is_fixed()
                })
            };
            is_plane(&incident.field) && incident.boxes.iter().all(is_fixed)
        });
        let counted = regular.then(|| Corrections::new(scheme, problem, &NoFiles));
        if let Some(Ok(corrections)) = counted {
            return Sizes {
                places: corrections.rows.iter().map(|rows| rows.count()).sum(),
                waves: corrections.len() as u64,
                bytes: corrections.bytes(),
                operations: corrections.operations(),
                exact: true,
            };
        }
        let mut sizes = Sizes::default();
        let boxes = incidents.iter().flat_map(|incident| {
            let of = |of| (of, usize::from(!is_plane(&incident.field)));
            incident.boxes.iter().map(of)
        });
        for (of, kind) in boxes {
            let shell = Shell::new(scheme, of);
            for update in updates() {
                let Some(region) = shell.region(update) else {
                    continue;
                };
                let parts = shell.parts(update.target).into_iter();
                let parts = parts.map(|part| part.intersect(update.region).volume());
                let places = parts.fold(0, u64::saturating_add);
                let each = PLACE[kind] + READ[kind] * update.reads().count() as u64;
                let [x, y, _] = region.0.map(|range| range.len().max(0) as u64);
                let rows = x.saturating_mul(y).saturating_mul(size_of::<u32>() as u64);
                sizes.places = sizes.places.saturating_add(places);
                let reads = update.reads().count() as u64 * [1, POINT][kind];
                let operations = places.saturating_mul(reads);
                sizes.operations[1] = sizes.operations[1].saturating_add(operations);
                sizes.bytes = sizes.bytes.saturating_add(places.saturating_mul(each));
                sizes.bytes = sizes.bytes.saturating_add(rows);
            }
        }
        sizes.waves = sizes.places;
        sizes
    }
}
