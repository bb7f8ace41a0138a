//! The part of a plane wave's drive that makes no wave, since fields of its direction stand still: of a field E it is
//! the part along the wave.

use super::cells::setting;
use super::step::Step;
use crate::lattice::{Axis, PerAxis};
use crate::problem::{IncidentField, PlaneWave, Problem};
use crate::scheme::{ComponentId, Scheme};
use crate::statics::{Files, GridPoint, physical_time};
use num_complex::Complex64;
use std::collections::BTreeMap;

/// The length of the waves that are looked at, in cells. Long waves would need many steps, and short ones have another
/// polarisation than the equations'.
const CELLS: f64 = 16.0;

/// Steps over which values are averaged.
const STEPS: u32 = 4096;

/// Values of a drive that are looked at.
const SAMPLES: u64 = 4096;

/// The part of a drive that stands still from which on there is no wave, and from which on it is worth a warning. Waves
/// of schemes have a polarisation that differs from the equations' by less than the second.
const ALL_STILL: f64 = 0.999;
const SOME_STILL: f64 = 0.03;

/// A plane wave whose drive stands still, at least in part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StillDrive {
    /// The number of the incident field.
    pub incident: usize,
    /// The share of the drive, by size.
    pub part: f64,
}

impl StillDrive {
    /// Whether there is no wave at all.
    pub fn is_all(&self) -> bool {
        self.part > ALL_STILL
    }

    /// `a part of the drive of w, 30 % of its size, makes no wave in its direction`, and the remedy.
    pub fn describe(&self, problem: &Problem) -> [String; 2] {
        let name = &problem.incidents[self.incident].name;
        let message = match self.is_all() {
            true => format!("the drive of `{name}` makes no wave in its direction"),
            false => format!(
                "a part of the drive of `{name}`, {:.0} % of its size, makes no wave in its direction",
                100.0 * self.part
            ),
        };
        let remedy = "for Maxwell's equations drive E across the direction, for acoustics the pressure, for elastic \
                      media the velocity";
        [message, remedy.to_owned()]
    }
}

/// The plane waves with a box whose drives stand still, at least in a part that counts.
pub fn still_drives(scheme: &Scheme, problem: &Problem, files: &dyn Files) -> Vec<StillDrive> {
    let waves = problem.incidents.iter().enumerate();
    let found = waves.filter_map(|(incident, own)| {
        let (IncidentField::Plane(wave), Some(first)) = (&own.field, own.boxes.first()) else {
            return None;
        };
        let at = before(scheme, first.ends);
        let part = still_part(scheme, files, wave, at, problem.steps)?;
        (part > SOME_STILL).then_some(StillDrive { incident, part })
    });
    found.collect()
}

/// The root of the mean square of the part of a drive that stands still, over that of the drive; where several fields
/// are driven, that of the field with the largest part. `None` where the scheme is not linear at a place, grows there,
/// or is not driven.
fn still_part(
    scheme: &Scheme,
    files: &dyn Files,
    wave: &PlaneWave,
    at: PerAxis<i64>,
    steps: u64,
) -> Option<f64> {
    let step = Step::new(scheme, &setting(scheme, files, at)).ok()?;
    let m = wave.direction.map(|m| m as f64);
    let length = m.iter().map(|(_, m)| m * m).sum::<f64>().sqrt();
    let theta = m.map(|m| std::f64::consts::TAU / CELLS * m / length);
    let mut driven: Vec<ComponentId> = wave.drives.iter().map(|d| d.component).collect();
    driven.dedup();
    let still = step.means(theta, &driven, STEPS)?;
    let field = |id: ComponentId| {
        let name = &scheme.component(id).name;
        name.split_once('.')
            .map_or(name.as_str(), |(field, _)| field)
    };
    // Squares by field: of the part that stands still, and of the drive.
    let mut squares: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    let samples = steps.clamp(1, SAMPLES);
    for sample in 0..samples {
        let now = 1 + u128::from(sample) * u128::from(steps.max(1)) / u128::from(samples);
        let mut values = vec![0.0; driven.len()];
        for drive in &wave.drives {
            let number = driven.iter().position(|id| *id == drive.component)?;
            values[number] += drive.wave.eval(&GridPoint {
                scheme,
                files,
                position: scheme.component(drive.component).position,
                at: PerAxis::splat(0),
                time: physical_time(scheme, drive.component, now as i64),
            });
        }
        for (id, value) in driven.iter().zip(&values) {
            squares.entry(field(*id)).or_default()[1] += value * value;
        }
        for (id, row) in scheme.component_ids().zip(&still) {
            let part = row.iter().zip(&values).map(|(part, value)| part * value);
            if let Some(square) = squares.get_mut(field(id)) {
                square[0] += part.sum::<Complex64>().norm_sqr();
            }
        }
    }
    let of_drives = squares
        .values()
        .filter(|[_, all]| *all > 0.0 && all.is_finite());
    let parts = of_drives.map(|[still, all]| (still / all).sqrt());
    parts.reduce(f64::max)
}

/// A cell outside of the lower faces of a box.
fn before(scheme: &Scheme, ends: PerAxis<[i64; 2]>) -> PerAxis<i64> {
    PerAxis::from_fn(|axis: Axis| (ends[axis][0] - 1).clamp(0, scheme.grid.cells[axis] - 1))
}
