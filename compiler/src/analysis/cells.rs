//! Cells with the coefficients and the updates that act in them.

use super::parts::Part;
use super::step::Setting;
use crate::lattice::{Interval, PerAxis, Position, Region};
use crate::scheme::{CoefId, Op, Scheme, Update};
use crate::statics::{Files, coef_value};
use crate::taken::is_taken;

/// A cell with one face across each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub index: PerAxis<i64>,
    /// Whether the face is the upper one.
    pub upper: PerAxis<bool>,
}

impl From<PerAxis<i64>> for Cell {
    /// With its lower faces, which have the indices of the cell.
    fn from(index: PerAxis<i64>) -> Self {
        Self {
            index,
            upper: PerAxis::splat(false),
        }
    }
}

/// A place with the coefficients and the updates that act there.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub cell: Cell,
    pub setting: Setting,
}

/// By coefficient whether the waves of a scheme depend on it. Amendments are not part of the analysis: the profiles
/// of layers would only give many places whose steps are the same.
pub fn of_waves(scheme: &Scheme) -> Vec<bool> {
    let mut used = vec![false; scheme.coefs.len()];
    for update in scheme.stages.iter().flat_map(|s| &s.updates) {
        for op in &update.body.ops {
            if let Op::Coef(id) = op {
                used[id.index()] = true;
            }
        }
        if let Some(mask) = update.mask {
            used[mask.index()] = true;
        }
    }
    used
}

/// A cell and a part of the scheme whose waves are looked at with the coefficients of this cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    pub cell: Cell,
    pub part: Part,
}

/// The value of a coefficient at an index, or 0 where it is no finite number and no update takes it.
pub fn coef_of_waves(scheme: &Scheme, files: &dyn Files, id: CoefId, at: PerAxis<i64>) -> f64 {
    let coef = &scheme.coefs[id.index()];
    let value = coef_value(scheme, files, coef.position, &coef.value, at);
    match scheme.precision.round(value).is_finite() || is_taken(scheme, files, id, at) {
        true => value,
        false => 0.0,
    }
}

/// The setting at a cell: coefficients at its middle and at its faces, or 0 where no wave depends on them.
pub fn setting(scheme: &Scheme, files: &dyn Files, cell: impl Into<Cell>) -> Setting {
    let cell: Cell = cell.into();
    let near = |position: Position, extent: Region| {
        PerAxis::from_fn(|a| {
            let is_above = cell.upper[a] && !position[a].is_half();
            let Interval { lo, hi } = extent[a];
            let index = scheme
                .grid
                .around(a, cell.index[a] + i64::from(is_above), lo);
            index.clamp(lo, (hi - 1).max(lo))
        })
    };
    let coefs: Vec<f64> = scheme
        .coefs
        .iter()
        .zip(of_waves(scheme))
        .enumerate()
        .map(|(index, (coef, used))| {
            if !used {
                return 0.0;
            }
            let at = near(coef.position, scheme.grid.extent(coef.position));
            let value = coef_of_waves(scheme, files, CoefId(index as u32), at);
            scheme.precision.round(value)
        })
        .collect();
    let acts = |update: &Update| {
        let position = scheme.component(update.target).position;
        let live = scheme.grid.live(position);
        let masked = update.mask.is_some_and(|m| coefs[m.index()] == 0.0);
        update.region.contains(near(position, live)) && !masked
    };
    let active = scheme
        .stages
        .iter()
        .map(|s| s.updates.iter().map(acts).collect())
        .collect();
    Setting { coefs, active }
}

/// The middle cell of a box.
pub fn middle(zone: Region) -> PerAxis<i64> {
    zone.map(|i| i.lo + (i.len() - 1).max(0) / 2)
}
