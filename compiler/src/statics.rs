//! Values on the grid that the host computes: coefficients, initial values, values of sources.

use crate::host::{HostExpr, HostPoint};
use crate::host_range::Range;
use crate::lattice::{Axis, HalfIndex, Interval, Offset, PerAxis, Position};
use crate::problem::{Init, Problem, Source, StaticValue};
use crate::scheme::{ComponentId, FileId, Grid, Scheme};

/// The contents of a scheme's files: one value per cell index of a component at the file's position.
pub trait Files: Sync {
    /// `at` lies in the file's extent.
    fn value(&self, file: FileId, at: PerAxis<i64>) -> f64;
}

/// For schemes that name no file.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn value(&self, _: FileId, _: PerAxis<i64>) -> f64 {
        f64::NAN
    }
}

/// Where a host expression is evaluated: an index of a component at `position`, at a time.
#[derive(Clone, Copy)]
pub struct GridPoint<'a> {
    pub scheme: &'a Scheme,
    pub files: &'a dyn Files,
    pub position: Position,
    pub at: PerAxis<i64>,
    pub time: f64,
}

impl HostPoint for GridPoint<'_> {
    fn coordinate(&self, axis: Axis, by: HalfIndex) -> f64 {
        let grid = &self.scheme.grid;
        let mut place = HalfIndex::cells(self.at[axis]) + self.position[axis] + by;
        if grid.is_periodic(axis) {
            place.0 = place.0.rem_euclid(2 * grid.cells[axis]);
        }
        place.as_f64() * grid.spacing[axis]
    }

    fn time(&self) -> f64 {
        self.time
    }

    fn file(&self, file: FileId, offset: Offset) -> f64 {
        let extent = self
            .scheme
            .grid
            .extent(self.scheme.files[file.index()].position);
        let at = PerAxis::from_fn(|a| {
            let Interval { lo, hi } = extent[a];
            let place = self.at[a] + i64::from(offset[a]);
            if self.scheme.grid.is_periodic(a) {
                place.rem_euclid(hi)
            } else {
                place.clamp(lo, hi - 1)
            }
        });
        self.files.value(file, at)
    }
}

/// Position of an index along an axis, in the user's unit of length.
pub fn coordinate(grid: &Grid, axis: Axis, stagger: HalfIndex, index: i64) -> f64 {
    (HalfIndex::cells(index) + stagger).as_f64() * grid.spacing[axis]
}

/// Physical time of a component's newest value after `steps` steps (-1: one before the start).
pub fn physical_time(scheme: &Scheme, id: ComponentId, steps: i64) -> f64 {
    (HalfIndex::cells(steps) - scheme.component(id).time).as_f64() * scheme.grid.dt
}

/// The value of a coefficient at an index, not yet rounded.
pub fn coef_value(
    scheme: &Scheme,
    files: &dyn Files,
    position: Position,
    value: &HostExpr,
    at: PerAxis<i64>,
) -> f64 {
    value.eval(&GridPoint {
        scheme,
        files,
        position,
        at,
        time: 0.0,
    })
}

/// Between which coordinates along an axis places lie, each as far from the beginning of its cell.
pub fn coordinates(grid: &Grid, axis: Axis, from: HalfIndex, cells: Interval) -> Range {
    let place = |i: i64| HalfIndex::cells(i) + from;
    let (mut first, mut last) = (place(cells.lo), place(cells.hi - 1));
    if grid.is_periodic(axis) {
        // Positions start anew at the end of the domain.
        let around = 2 * grid.cells[axis];
        let laps = first.0.div_euclid(around);
        if last.0.div_euclid(around) == laps {
            (first.0, last.0) = (first.0 - laps * around, last.0 - laps * around);
        } else {
            (first.0, last.0) = (0, around);
        }
    }
    let h = grid.spacing[axis];
    Range::new(first.as_f64() * h, last.as_f64() * h)
}

/// How a version of a component starts.
pub struct Start<'a> {
    pub init: &'a Init,
    /// The physical time at which it is evaluated.
    pub time: f64,
}

/// The start of a version of a component, 0 the newest; `None`: zeros. A component that advances several times in a
/// step has as many versions of each step: those between two steps start as the earlier one, unless they have a start
/// of their own.
pub fn start_of<'a>(
    scheme: &Scheme,
    problem: &'a Problem,
    component: ComponentId,
    version: u8,
) -> Option<Start<'a>> {
    let per_step = scheme.updates_per_step(component).max(1);
    let version = u32::from(version);
    let steps = version.div_ceil(per_step);
    let find = |age: u32| {
        let all = problem.init.iter().rev();
        let mut own = all.filter(|i| i.component == component);
        own.find(|i| u32::from(i.age) == age)
    };
    let own = find(version).or_else(|| find(steps * per_step));
    Some(Start {
        init: own.or_else(|| find(0))?,
        time: physical_time(scheme, component, -i64::from(steps)),
    })
}

/// An initial value at an index of the live region, not yet rounded and flushed.
pub fn init_value(
    scheme: &Scheme,
    files: &dyn Files,
    Start { init, time }: &Start<'_>,
    at: PerAxis<i64>,
) -> f64 {
    match &init.value {
        StaticValue::Expr(e) => e.eval(&GridPoint {
            scheme,
            files,
            position: scheme.component(init.component).position,
            at,
            time: *time,
        }),
        StaticValue::File(file) => files.value(*file, at),
    }
}

/// Whether a source acts at an index of its region.
pub fn source_acts(scheme: &Scheme, files: &dyn Files, source: &Source, at: PerAxis<i64>) -> bool {
    let position = scheme.component(source.component).position;
    source
        .condition
        .as_ref()
        .is_none_or(|c| coef_value(scheme, files, position, c, at) != 0.0)
}

/// The wave of a source for the value that step `step` (from 0) computes.
pub fn source_wave(
    scheme: &Scheme,
    files: &dyn Files,
    source: &Source,
    step: u64,
    at: PerAxis<i64>,
) -> f64 {
    source.wave.eval(&GridPoint {
        scheme,
        files,
        position: scheme.component(source.component).position,
        at,
        time: physical_time(scheme, source.component, step as i64 + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostExpr;
    use crate::scheme::{Boundary, Precision, StaticFile};
    use crate::testing::maxwell;

    struct Indices;

    impl Files for Indices {
        fn value(&self, _: FileId, at: PerAxis<i64>) -> f64 {
            at[Axis::OUTER] as f64
        }
    }

    #[test]
    fn static_values_go_around_a_periodic_axis() {
        let mut scheme = maxwell(2, Precision::F64, [4, 4, 4]);
        scheme.grid.spacing = PerAxis::splat(0.5);
        let position = PerAxis::splat(HalfIndex::ZERO);
        scheme.files.push(StaticFile {
            path: "eps.npy".to_string(),
            position: PerAxis::splat(HalfIndex::HALF),
        });
        let before = HostExpr::Coordinate(Axis::OUTER, -HalfIndex::HALF);
        let file = HostExpr::File {
            file: FileId(0),
            offset: PerAxis([-1, 0, 0]),
        };
        let mut values = |boundary| {
            scheme.grid.boundary[Axis::OUTER] = [boundary; 2];
            [&before, &file].map(|e| {
                let at = PerAxis::splat(0);
                coef_value(&scheme, &Indices, position, e, at)
            })
        };
        // Half a cell before the first node lies the centre of the last cell, 3.5 cells from the start.
        assert_eq!(values(Boundary::Periodic), [1.75, 3.0]);
        assert_eq!(values(Boundary::Zero), [-0.25, 0.0]);
    }
}
