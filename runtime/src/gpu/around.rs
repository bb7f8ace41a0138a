//! What happens around the updates, as tables for the kernels of [`torre_compiler::backend::nvptx::service`]: ghosts of rows, sources,
//! probes and slices. Places depend on which time level of a component is the newest, so there is one set of tables per phase.

use super::sheets::Dense;
use std::collections::BTreeSet;
use torre_compiler::backend::nvptx::service::{CellGhost, RowCopy, SourceCell};
use torre_compiler::backend::nvptx::tower::{Addition, Hooks};
use torre_compiler::ghost::{AxisGhosts, ComponentGhosts};
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::reference::for_each_index;
use torre_compiler::scheme::{ComponentId, Scheme, StageId};
use torre_compiler::statics::{Files, coef_value, source_acts, source_wave};
use torre_compiler::tile::row_region;

/// Indices `lo..hi` without the holes.
struct Segment {
    range: Interval,
    holes: [i32; 2],
}

/// No index of a row.
const NO_HOLE: i32 = i32::MIN;

/// What is copied of a row that appears again: all that can be other than 0, ghosts along the inner axis included.
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

/// Where a wave is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave {
    /// Index into the problem's sources.
    source: usize,
    /// Where the source acts; any place where the wave does not depend on it.
    at: PerAxis<i64>,
}

/// The cells of the sources, and the waves that they need.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// One for each source in turn: where it acts with its profile, and which wave is that cell's.
    pub(super) acting: Vec<Vec<(PerAxis<i64>, f64, i32)>>,
    pub waves: Vec<Wave>,
}

impl Sources {
    pub fn new(scheme: &Scheme, problem: &Problem, files: &dyn Files) -> Sources {
        let mut sources = Sources::default();
        for (number, source) in problem.sources.iter().enumerate() {
            let position = scheme.component(source.component).position;
            let everywhere = !source.wave.depends_on_place();
            let mut acting = Vec::new();
            for_each_index(source.region, |at| {
                if !source_acts(scheme, files, source, at) {
                    return;
                }
                if acting.is_empty() || !everywhere {
                    sources.waves.push(Wave { source: number, at });
                }
                let profile = coef_value(scheme, files, position, &source.profile, at);
                acting.push((at, profile, sources.waves.len() as i32 - 1));
            });
            sources.acting.push(acting);
        }
        sources
    }

    /// The waves of a step, in order.
    pub fn waves(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
        step: u64,
    ) -> impl Iterator<Item = f64> {
        self.waves.iter().map(move |wave| {
            source_wave(scheme, files, &problem.sources[wave.source], step, wave.at)
        })
    }

    /// What happens to single values in each step, for towers; sources in many columns of cells are sheets.
    pub fn hooks(&self, problem: &Problem, dense: &Dense) -> Hooks {
        let mut additions = Vec::new();
        let sources = problem.sources.iter().zip(&self.acting).enumerate();
        for (_, (source, acting)) in sources.filter(|(number, _)| !dense.has(*number)) {
            additions.extend(acting.iter().map(|&(at, profile, wave)| Addition {
                stage: source.stage,
                component: source.component,
                at,
                profile,
                wave,
            }));
        }
        Hooks {
            additions,
            probes: problem.probes.iter().map(|p| (p.component, p.at)).collect(),
            waves: self.waves.len(),
        }
    }

    /// What sources do after a stage, in a phase: groups in their order. Sources on the same cell act one after the other.
    pub fn groups(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        layout: &Layout,
        stage: StageId,
        phase: u32,
    ) -> Vec<SourceGroup> {
        let places = Places { layout };
        let mut groups: Vec<(SourceGroup, BTreeSet<i64>)> = Vec::new();
        for (source, acting) in problem.sources.iter().zip(&self.acting) {
            if source.stage != stage || acting.is_empty() {
                continue;
            }
            let row = layout.target_row(scheme, stage, phase, source.component);
            let ghosts = AxisGhosts::new(scheme, source.component, Axis::INNER).pairs();
            let place = |at: &PerAxis<i64>| places.of(row, *at);
            let together = groups
                .last_mut()
                .filter(|(_, taken)| !acting.iter().any(|(at, ..)| taken.contains(&place(at))));
            let (group, taken) = match together {
                Some(group) => group,
                None => {
                    groups.push(Default::default());
                    let last = groups.len() - 1;
                    &mut groups[last]
                }
            };
            for (at, profile, wave) in acting {
                let first = group.ghosts.len();
                let own = ghosts.iter().filter(|(i, _)| *i == at[Axis::INNER]);
                group.ghosts.extend(own.map(|(_, ghost)| {
                    let mut there = *at;
                    there[Axis::INNER] = ghost.index;
                    CellGhost {
                        place: place(&there),
                        negated: ghost.negated,
                    }
                }));
                taken.insert(place(at));
                group.cells.push(SourceCell {
                    place: place(at),
                    profile: *profile,
                    wave: *wave,
                    first: first as i32,
                    count: (group.ghosts.len() - first) as i32,
                    replaces: source.replaces,
                });
            }
        }
        groups.into_iter().map(|(group, _)| group).collect()
    }
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

/// Where the slice of an output is after `steps` steps; `None` for an output that is none.
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
    let places = Places { layout };
    let extent = scheme.extent(output.component).map(|i| i.hi);
    let [rows, values] = match axis {
        Axis::OUTER => [Axis::MIDDLE, Axis::INNER],
        Axis::MIDDLE => [Axis::OUTER, Axis::INNER],
        _ => [Axis::OUTER, Axis::MIDDLE],
    };
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
