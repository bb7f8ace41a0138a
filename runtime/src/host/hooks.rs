//! What happens to single values right after an update: sources act, probes and slices record.
//!
//! Hooks are attached to rows, so that they work in whatever order a schedule advances rows: a row knows its step.

use super::memory::Cells;
use std::collections::BTreeMap;
use std::sync::Mutex;
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::real::Real;
use torre_compiler::scheme::{ComponentId, Scheme, StageId};
use torre_compiler::statics::{Files, coef_value, source_acts, source_wave};

/// Longer runs evaluate the waves of sources when they are needed.
pub const MOST_TABLED_STEPS: u64 = 1 << 20;

/// All hooks of a problem.
pub struct Hooks {
    sources: Vec<SourceHook>,
    probes: Vec<ProbeHook>,
    slices: Vec<SliceHook>,
    /// Per stage one byte per (x, y): whether any hook sits there.
    flags: Vec<Vec<u8>>,
    /// Whether a stage has any hook.
    stages: Vec<bool>,
    diamond: i64,
}

struct SourceHook {
    component: ComponentId,
    stage: StageId,
    /// Index into the problem's sources.
    source: usize,
    /// The inner indices where it acts, with their profiles, per (x, y); rows of equal content are not shared.
    rows: BTreeMap<(i64, i64), Vec<(i64, f64)>>,
    /// Where the wave does not depend on the place: its values per step, computed beforehand.
    waves: Option<Vec<f64>>,
}

struct ProbeHook {
    component: ComponentId,
    /// `None`: nothing ever changes the value.
    stage: Option<StageId>,
    at: PerAxis<i64>,
    /// One value per step since the hooks' first step; NaN where not yet recorded.
    record: Mutex<Vec<f64>>,
}

struct SliceHook {
    /// Index into the problem's outputs.
    output: usize,
    component: ComponentId,
    stage: StageId,
    axis: Axis,
    index: i64,
    every: u64,
    /// Extents of the component.
    extent: PerAxis<i64>,
    /// Finished or growing pictures by step number.
    pictures: Mutex<BTreeMap<u64, Vec<f64>>>,
}

/// A recorded slice: values of one plane, in the order of the remaining axes, the last fastest.
pub struct Picture {
    /// Index into the problem's outputs.
    pub output: usize,
    /// Steps done.
    pub step: u64,
    /// Per remaining present axis.
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

impl Hooks {
    pub fn new(scheme: &Scheme, problem: &Problem, files: &dyn Files, layout: &Layout) -> Hooks {
        let mut hooks = Hooks {
            sources: Vec::new(),
            probes: Vec::new(),
            slices: Vec::new(),
            flags: vec![Vec::new(); scheme.stages.len()],
            stages: vec![false; scheme.stages.len()],
            diamond: layout.extent[Axis::MIDDLE],
        };
        let rows = (layout.extent[Axis::OUTER] * layout.extent[Axis::MIDDLE]) as usize;
        for (index, source) in problem.sources.iter().enumerate() {
            let position = scheme.component(source.component).position;
            let [outer, middle, inner] = source.region.0;
            let mut acting: BTreeMap<(i64, i64), Vec<(i64, f64)>> = BTreeMap::new();
            let mut row = Vec::new();
            for (x, y) in
                (outer.lo..outer.hi).flat_map(|x| (middle.lo..middle.hi).map(move |y| (x, y)))
            {
                for z in inner.lo..inner.hi {
                    let at = PerAxis([x, y, z]);
                    if source_acts(scheme, files, source, at) {
                        row.push((z, coef_value(scheme, files, position, &source.profile, at)));
                    }
                }
                if !row.is_empty() {
                    // A copy has no more room than it needs, as the memory of a run is counted (`run::memory`).
                    acting.insert((x, y), row.clone());
                    row.clear();
                }
            }
            hooks.flag(source.stage, rows, acting.keys().copied());
            let tabled = !source.wave.depends_on_place() && problem.steps <= MOST_TABLED_STEPS;
            let waves = tabled.then(|| {
                let at = PerAxis::splat(0);
                (0..problem.steps)
                    .map(|step| source_wave(scheme, files, source, step, at))
                    .collect()
            });
            hooks.sources.push(SourceHook {
                component: source.component,
                stage: source.stage,
                source: index,
                rows: acting,
                waves,
            });
        }
        for probe in &problem.probes {
            let stage = last_stage(scheme, probe.component, Some(probe.at));
            let PerAxis([x, y, _]) = probe.at;
            if let Some(stage) = stage {
                hooks.flag(stage, rows, std::iter::once((x, y)));
            }
            hooks.probes.push(ProbeHook {
                component: probe.component,
                stage,
                at: probe.at,
                record: Mutex::new(Vec::new()),
            });
        }
        for (number, output) in problem.outputs.iter().enumerate() {
            let OutputKind::Slice { axis, index } = output.kind else {
                continue;
            };
            let Some(stage) = whole_stage(scheme, output.component) else {
                continue;
            };
            let region = scheme.extent(output.component);
            let extent = region.map(|i| i.hi);
            let planes = |a: Axis| {
                if a == axis {
                    index..index + 1
                } else {
                    0..extent[a]
                }
            };
            let keys: Vec<_> = planes(Axis::OUTER)
                .flat_map(|x| planes(Axis::MIDDLE).map(move |y| (x, y)))
                .collect();
            hooks.flag(stage, rows, keys.into_iter());
            hooks.slices.push(SliceHook {
                output: number,
                component: output.component,
                stage,
                axis,
                index,
                every: output.every,
                extent,
                pictures: Mutex::new(BTreeMap::new()),
            });
        }
        hooks
    }

    fn flag(&mut self, stage: StageId, rows: usize, at: impl Iterator<Item = (i64, i64)>) {
        for (x, y) in at {
            let flags = &mut self.flags[stage.index()];
            flags.resize(rows, 0);
            flags[(x * self.diamond + y) as usize] = 1;
            self.stages[stage.index()] = true;
        }
    }

    /// Whether a stage has hooks anywhere.
    pub fn has(&self, stage: StageId) -> bool {
        self.stages[stage.index()]
    }

    /// Whether a row has hooks at a stage.
    pub fn at(&self, stage: StageId, x: i64, y: i64) -> bool {
        self.flags[stage.index()]
            .get((x * self.diamond + y) as usize)
            .is_some_and(|f| *f != 0)
    }

    /// Sources act on the values of `range` of a row that step `step` (from 0) has just computed.
    ///
    /// # Safety
    /// No other thread touches the row meanwhile.
    #[expect(
        clippy::too_many_arguments,
        reason = "a place in the program has this many coordinates"
    )]
    pub unsafe fn act<T: Real>(
        &self,
        context: &HookContext<'_>,
        cells: Cells<T>,
        stage: StageId,
        step: u64,
        component: ComponentId,
        row: RowId,
        (x, y): (i64, i64),
        range: Interval,
    ) {
        let start = context.layout.element(row, PerAxis([x, y, 0]));
        for hook in &self.sources {
            if hook.component != component || hook.stage != stage {
                continue;
            }
            let Some(acting) = hook.rows.get(&(x, y)) else {
                continue;
            };
            for &(z, profile) in acting.iter().filter(|(z, _)| range.contains(*z)) {
                let tabled = hook.waves.as_ref().and_then(|w| w.get(step as usize));
                let wave = match tabled {
                    Some(wave) => *wave,
                    None => source_wave(
                        context.scheme,
                        context.files,
                        &context.problem.sources[hook.source],
                        step,
                        PerAxis([x, y, z]),
                    ),
                };
                // SAFETY: z lies in the component's extent; the caller excludes other threads.
                unsafe {
                    let value = cells.get(start + z);
                    cells.set(start + z, value.add(T::from_f64(profile * wave)));
                }
            }
        }
    }

    /// Probes and slices record the values of `range` of a row that step `step` (from 0) has just computed.
    ///
    /// # Safety
    /// No other thread writes the row meanwhile.
    #[expect(
        clippy::too_many_arguments,
        reason = "a place in the program has this many coordinates"
    )]
    pub unsafe fn record<T: Real>(
        &self,
        layout: &Layout,
        cells: Cells<T>,
        stage: StageId,
        step: u64,
        component: ComponentId,
        row: RowId,
        (x, y): (i64, i64),
        range: Interval,
    ) {
        let start = layout.element(row, PerAxis([x, y, 0]));
        // SAFETY: indices lie in the component's extent; the caller excludes writers.
        let get = |z: i64| unsafe { cells.get(start + z) }.to_f64();
        for hook in &self.probes {
            let PerAxis([px, py, pz]) = hook.at;
            if hook.component == component
                && hook.stage == Some(stage)
                && (px, py) == (x, y)
                && range.contains(pz)
            {
                let mut record = lock(&hook.record);
                let step = step as usize;
                if record.len() <= step {
                    record.resize(step + 1, f64::NAN);
                }
                record[step] = get(pz);
            }
        }
        for hook in &self.slices {
            if hook.component != component
                || hook.stage != stage
                || !(step + 1).is_multiple_of(hook.every)
            {
                continue;
            }
            let PerAxis([nx, ny, nz]) = hook.extent;
            let here = match hook.axis {
                Axis::OUTER => x == hook.index,
                Axis::MIDDLE => y == hook.index,
                _ => range.contains(hook.index),
            };
            if !here {
                continue;
            }
            let mut pictures = lock(&hook.pictures);
            let cells_of_plane = match hook.axis {
                Axis::OUTER => ny * nz,
                Axis::MIDDLE => nx * nz,
                _ => nx * ny,
            };
            let picture = pictures
                .entry(step + 1)
                .or_insert_with(|| vec![0.0; cells_of_plane as usize]);
            match hook.axis {
                Axis::OUTER => {
                    (range.lo..range.hi).for_each(|z| picture[(y * nz + z) as usize] = get(z))
                }
                Axis::MIDDLE => {
                    (range.lo..range.hi).for_each(|z| picture[(x * nz + z) as usize] = get(z))
                }
                _ => picture[(x * ny + y) as usize] = get(hook.index),
            }
        }
    }

    /// What probe `index` has recorded, one value per step from step 1.
    pub fn probe(&self, index: usize) -> Vec<f64> {
        lock(&self.probes[index].record).clone()
    }

    /// Continues a probe after a resumed checkpoint.
    pub fn restore_probe(&self, index: usize, record: Vec<f64>) {
        *lock(&self.probes[index].record) = record;
    }

    /// Whether rows record the pictures of an output; otherwise they must be taken from memory between runs.
    pub fn records(&self, output: usize) -> bool {
        self.slices.iter().any(|s| s.output == output)
    }

    /// Takes the pictures that are complete: all steps up to `steps` are done.
    pub fn take_pictures(&self, scheme: &Scheme, steps: u64) -> Vec<Picture> {
        let mut out = Vec::new();
        for hook in &self.slices {
            let mut pictures = lock(&hook.pictures);
            let later = pictures.split_off(&(steps + 1));
            for (step, values) in std::mem::replace(&mut *pictures, later) {
                out.push(Picture {
                    output: hook.output,
                    step,
                    shape: slice_shape(scheme, hook.component, hook.axis),
                    values,
                });
            }
        }
        out
    }
}

/// The extents of a slice across `axis`, one per remaining axis of the scheme.
pub fn slice_shape(scheme: &Scheme, id: ComponentId, axis: Axis) -> Vec<usize> {
    let extent = scheme.extent(id);
    scheme
        .grid
        .present()
        .filter(|a| *a != axis)
        .map(|a| extent[a].hi as usize)
        .collect()
}

/// What sources need to evaluate themselves.
#[derive(Clone, Copy)]
pub struct HookContext<'a> {
    pub scheme: &'a Scheme,
    pub problem: &'a Problem,
    pub files: &'a dyn Files,
    pub layout: &'a Layout,
}

/// The last stage of a step that can change a value of a component (any, or the one at `at`).
fn last_stage(scheme: &Scheme, id: ComponentId, at: Option<PerAxis<i64>>) -> Option<StageId> {
    scheme
        .stage_ids()
        .filter(|s| {
            scheme.stages[s.index()]
                .updates
                .iter()
                .any(|u| u.target == id && at.is_none_or(|at| u.region.contains(at)))
        })
        .last()
}

/// The last stage that updates a component, if it advances all its live values.
fn whole_stage(scheme: &Scheme, id: ComponentId) -> Option<StageId> {
    let stage = last_stage(scheme, id, None)?;
    let live = scheme.grid.live(scheme.component(id).position);
    scheme.stages[stage.index()]
        .updates
        .iter()
        .any(|u| u.target == id && u.region == live)
        .then_some(stage)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A poisoned record is still a record: the panic that poisoned it is on its way out.
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
