//! What happens around the updates, as tables for the kernels of [`torre_compiler::backend::nvptx::service`]: ghosts of rows, sources,
//! probes and slices. Places depend on which time level of a component is the newest, so there is one set of tables per phase.

use super::sheets::Dense;
use std::collections::BTreeSet;
use torre_compiler::backend::nvptx::layerwise::vector_ghosts;
use torre_compiler::backend::nvptx::service::{CellGhost, RowCopy, SourceCell};
use torre_compiler::backend::nvptx::tower::{Addition, Hooks};
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::reference::for_each_index;
use torre_compiler::scheme::{ComponentId, Ghost, Scheme, StageId};
use torre_compiler::statics::{Files, coef_value, source_acts, source_wave};
use torre_compiler::tile::row_region;

/// Where the values of a component near an end appear again.
struct ComponentGhosts {
    /// Along the inner axis: indices of a row that are copied to a ghost of it.
    copied: Vec<Segment>,
    lean: Vec<Vec<Ghost>>,
    diamond: Vec<Vec<Ghost>>,
}

/// Indices `lo..hi` without the holes.
struct Segment {
    range: Interval,
    holes: [i32; 2],
}

/// No index of a row.
const NO_HOLE: i32 = i32::MIN;

impl ComponentGhosts {
    fn new(scheme: &Scheme, layout: &Layout, id: ComponentId) -> Self {
        let grid = &scheme.grid;
        let position = scheme.component(id).position;
        let extent = scheme.extent(id);
        let visible = scheme.visible(id);
        let along = |axis: Axis| -> Vec<Vec<Ghost>> {
            (0..layout.extent[axis])
                .map(|i| match extent[axis].contains(i) {
                    true => grid.ghosts(axis, position, i, visible[axis]).collect(),
                    false => Vec::new(),
                })
                .collect()
        };
        let live = grid.live(position)[Axis::INNER];
        let ghosts = vector_ghosts(scheme, id);
        let mut indices: BTreeSet<i64> = ghosts.iter().map(|(_, ghost)| ghost.index).collect();
        let Interval { lo, hi } = extent[Axis::INNER];
        let first = indices.first().map_or(lo, |i| lo.min(*i));
        let last = indices.last().map_or(hi, |i| hi.max(*i + 1));
        // What lies on a plane about which it is odd stays 0, in ghosts, too.
        indices.extend(live.lo..hi);
        let mut copied = vec![Segment {
            range: Interval::new(first, first),
            holes: [NO_HOLE; 2],
        }];
        for index in first..last {
            let Some(segment) = copied.last_mut() else {
                break;
            };
            segment.range.hi = index + 1;
            if indices.contains(&index) {
                continue;
            }
            match segment.holes.iter().position(|hole| *hole == NO_HOLE) {
                Some(free) => segment.holes[free] = index as i32,
                None => {
                    segment.range.hi = index;
                    copied.push(Segment {
                        range: Interval::new(index + 1, index + 1),
                        holes: [NO_HOLE; 2],
                    });
                }
            }
        }
        copied.retain(|segment| !segment.range.is_empty());
        Self {
            copied,
            lean: along(Axis::OUTER),
            diamond: along(Axis::MIDDLE),
        }
    }

    /// The ghosts of a row along the outer and middle axes.
    fn of_row(&self, x: i64, y: i64) -> impl Iterator<Item = (i64, i64, bool)> + '_ {
        let own = |index| Ghost {
            index,
            negated: false,
        };
        let with_own = move |i: i64, ghosts: &[Ghost]| {
            let mut all = vec![own(i)];
            all.extend_from_slice(ghosts);
            all
        };
        let lean = with_own(x, &self.lean[x as usize]);
        let diamond = with_own(y, &self.diamond[y as usize]);
        lean.into_iter()
            .flat_map(move |a| diamond.clone().into_iter().map(move |b| (a, b)))
            .map(|(a, b)| (a.index, b.index, a.negated != b.negated))
            .filter(move |(a, b, _)| (*a, *b) != (x, y))
    }
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
        let ghosts = ComponentGhosts::new(scheme, layout, update.target);
        let row = layout.target_row(scheme, stage, phase, update.target);
        let [lean, diamond, vector] = row_region(scheme, update).0;
        if vector.is_empty() {
            continue;
        }
        let some: Vec<i64> = (diamond.lo..diamond.hi)
            .filter(|y| !ghosts.diamond[*y as usize].is_empty())
            .collect();
        let all: Vec<i64> = (diamond.lo..diamond.hi).collect();
        for x in lean.lo..lean.hi {
            let rows = match ghosts.lean[x as usize].is_empty() {
                true => &some,
                false => &all,
            };
            for &y in rows {
                for (to_x, to_y, negated) in ghosts.of_row(x, y) {
                    for Segment { range, holes } in &ghosts.copied {
                        copies.push(RowCopy {
                            from: places.of(row, PerAxis([x, y, 0])),
                            to: places.of(row, PerAxis([to_x, to_y, 0])),
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
            let ghosts = vector_ghosts(scheme, source.component);
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
