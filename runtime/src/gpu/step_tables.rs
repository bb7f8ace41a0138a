//! The work around the updates of a step, as tables for the kernels of [`torre_compiler::backend::gpu::service`]:
//! ghosts of rows, sources, probes and slices. Places depend on which time level of a component is the newest, so there
//! is one set of tables per phase.

use std::collections::BTreeSet;
use torre_compiler::backend::gpu::abi::{
    CellGhost, CorrectedRow, CorrectionTable, RowCopy, RowGhost, SourceCell,
};
use torre_compiler::ghost::{AxisGhosts, ComponentGhosts};
use torre_compiler::incident::{CorrectedRows, Group};
use torre_compiler::injection::Injections;
use torre_compiler::kernel::row_region;
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::scheme::{ComponentId, Scheme, StageId};

/// Indices `lo..hi` without the holes.
struct Segment {
    range: Interval,
    holes: [i32; 2],
}

/// No index of a row.
const NO_HOLE: i32 = i32::MIN;

/// The parts that are copied of a row with ghosts: all values that can be other than 0, ghosts along the inner axis
/// included.
fn copied(ghosts: &AxisGhosts) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for range in ghosts.held() {
        let joined = segments.last_mut().and_then(|last| {
            let holes = last.holes.iter_mut().filter(|hole| **hole == NO_HOLE);
            let between = last.range.hi..range.lo;
            let free: Vec<&mut i32> = holes.collect();
            (between.clone().count() <= free.len()).then(|| {
                free.into_iter()
                    .zip(between)
                    .for_each(|(hole, i)| *hole = i as i32);
                last.range.hi = range.hi;
            })
        });
        if joined.is_none() {
            segments.push(Segment {
                range,
                holes: [NO_HOLE; 2],
            });
        }
    }
    segments
}

/// Places in the array, in bytes.
#[derive(Clone, Copy)]
struct Places<'a> {
    layout: &'a Layout,
}

impl Places<'_> {
    fn of(self, row: RowId, at: PerAxis<i64>) -> i64 {
        self.layout.element(row, at) * self.layout.element_bytes as i64
    }
}

/// The rows that are copied after a stage, in a phase.
pub fn row_copies(scheme: &Scheme, layout: &Layout, stage: StageId, phase: u32) -> Vec<RowCopy> {
    let places = Places { layout };
    let mut copies = Vec::new();
    for update in &scheme.stages[stage.index()].updates {
        let ghosts = ComponentGhosts::new(scheme, update.target);
        let segments = copied(&ghosts.0[Axis::INNER]);
        let row = layout.target_row(scheme, stage, phase, update.target);
        let [outer, middle, inner] = row_region(scheme, update).0;
        if inner.is_empty() {
            continue;
        }
        let has = |axis: Axis, i: i64| ghosts.0[axis].of(i).next().is_some();
        let all: Vec<i64> = (middle.lo..middle.hi).collect();
        let some: Vec<i64> = all
            .iter()
            .copied()
            .filter(|y| has(Axis::MIDDLE, *y))
            .collect();
        for x in outer.lo..outer.hi {
            let rows = if has(Axis::OUTER, x) { &all } else { &some };
            for &y in rows {
                let copies_of_row = ghosts.of_row(PerAxis([x, y, 0]));
                for (to, negated) in copies_of_row.into_iter().skip(1) {
                    for Segment { range, holes } in &segments {
                        copies.push(RowCopy {
                            from: places.of(row, PerAxis([x, y, 0])),
                            to: places.of(row, to),
                            lo: range.lo as i32,
                            hi: range.hi as i32,
                            holes: *holes,
                            negated,
                        });
                    }
                }
            }
        }
    }
    copies
}

/// Cells that may be added to at the same time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceGroup {
    pub cells: Vec<SourceCell>,
    pub ghosts: Vec<CellGhost>,
}

/// The injections of sources after a stage, in a phase: groups in their order. Sources on the same cell act one after
/// the other.
pub fn source_groups(
    injections: &Injections,
    scheme: &Scheme,
    layout: &Layout,
    stage: StageId,
    phase: u32,
) -> Vec<SourceGroup> {
    let places = Places { layout };
    let mut groups: Vec<(SourceGroup, BTreeSet<i64>)> = Vec::new();
    for source in &injections.sources {
        let cells = &source.cells;
        if source.stage != stage || cells.is_empty() {
            continue;
        }
        let row = layout.target_row(scheme, stage, phase, source.component);
        let ghosts = AxisGhosts::new(scheme, source.component, Axis::INNER);
        let place = |at: &PerAxis<i64>| places.of(row, *at);
        let together = groups
            .last_mut()
            .filter(|(_, taken)| !cells.iter().any(|cell| taken.contains(&place(&cell.at))));
        let (group, taken) = match together {
            Some(group) => group,
            None => {
                groups.push(Default::default());
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        for cell in cells {
            let first = group.ghosts.len();
            group
                .ghosts
                .extend(ghosts.of(cell.at[Axis::INNER]).map(|ghost| {
                    let mut there = cell.at;
                    there[Axis::INNER] = ghost.index;
                    CellGhost {
                        place: place(&there),
                        negated: ghost.negated,
                    }
                }));
            taken.insert(place(&cell.at));
            group.cells.push(SourceCell {
                place: place(&cell.at),
                profile: cell.profile,
                wave: cell.wave,
                first: first as i32,
                count: (group.ghosts.len() - first) as i32,
                replaces: source.replaces,
            });
        }
    }
    groups.into_iter().map(|(group, _)| group).collect()
}

/// The rows of a table of corrections, in a phase, and the ghosts along the inner axis that each of them has.
pub fn corrected_rows(
    rows: &CorrectedRows,
    table: &CorrectionTable,
    scheme: &Scheme,
    layout: &Layout,
    phase: u32,
) -> (Vec<CorrectedRow>, Vec<RowGhost>) {
    let places = Places { layout };
    let Group { stage, component } = rows.group;
    let target = layout.target_row(scheme, stage, phase, component);
    let row = |row: [i64; 2]| {
        let [pattern, shift] = table.row(row)?;
        Some(CorrectedRow {
            place: places.of(target, PerAxis([row[0], row[1], 0])),
            pattern,
            shift,
        })
    };
    let ghosts = AxisGhosts::new(scheme, component, Axis::INNER);
    let along = rows.region[Axis::INNER];
    let of_cell = |z: i64| {
        ghosts.of(z).map(move |ghost| RowGhost {
            of: z as i32,
            at: ghost.index as i32,
            negated: ghost.negated,
        })
    };
    (
        rows.rows().filter_map(row).collect(),
        (along.lo..along.hi).flat_map(of_cell).collect(),
    )
}

/// The row of the newest version of a component after `steps` steps.
fn newest(scheme: &Scheme, layout: &Layout, id: ComponentId, steps: u64) -> RowId {
    layout.row(id, steps * u64::from(scheme.updates_per_step(id)))
}

/// Where the probes' values are after a step of a phase.
pub fn probe_places(scheme: &Scheme, problem: &Problem, layout: &Layout, phase: u32) -> Vec<i64> {
    let places = Places { layout };
    let steps = u64::from(phase) + 1;
    let place = |p: &torre_compiler::problem::Probe| {
        places.of(newest(scheme, layout, p.component, steps), p.at)
    };
    problem.probes.iter().map(place).collect()
}

/// A plane of a component, as it lies in the array; strides in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanePlace {
    pub first: i64,
    pub between_rows: i64,
    pub between_values: i64,
    pub rows: i64,
    pub values: i64,
}

impl PlanePlace {
    /// The values of the plane.
    pub fn count(&self) -> u64 {
        self.rows.max(0) as u64 * self.values.max(0) as u64
    }
}

/// The axes along which a slice across an axis has its rows and its values.
pub fn slice_axes(across: Axis) -> [Axis; 2] {
    match across {
        Axis::OUTER => [Axis::MIDDLE, Axis::INNER],
        Axis::MIDDLE => [Axis::OUTER, Axis::INNER],
        _ => [Axis::OUTER, Axis::MIDDLE],
    }
}

/// Where the slice of an output is after `steps` steps; `None` for an output that is none, or of a state.
pub fn slice_place(
    scheme: &Scheme,
    problem: &Problem,
    layout: &Layout,
    output: usize,
    steps: u64,
) -> Option<PlanePlace> {
    let output = &problem.outputs[output];
    let OutputKind::Slice { axis, index } = output.kind else {
        return None;
    };
    if output.state.is_some() {
        return None;
    }
    let places = Places { layout };
    let extent = scheme.extent(output.component).map(|i| i.hi);
    let [rows, values] = slice_axes(axis);
    let mut first = PerAxis::splat(0);
    first[axis] = index;
    let bytes = layout.element_bytes as i64;
    Some(PlanePlace {
        first: places.of(newest(scheme, layout, output.component, steps), first),
        between_rows: layout.stride[rows] * bytes,
        between_values: layout.stride[values] * bytes,
        rows: extent[rows],
        values: extent[values],
    })
}
