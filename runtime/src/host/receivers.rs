//! Receivers: probes and slices record values of rows right after the updates that leave them final in a step.

use super::memory::Cells;
use super::row::{AdvancedRow, AdvancedRows};
use crate::simulation::{Picture, slice_shape};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use torre_compiler::injection::{Receiver, last_stage, receivers};
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis, Region};
use torre_compiler::layout::Layout;
use torre_compiler::problem::{Output, OutputKind, Problem};
use torre_compiler::real::Real;
use torre_compiler::reference::for_each_index;
use torre_compiler::scheme::{ComponentId, Scheme, StageId};

/// All receivers of values.
pub(super) struct Receivers {
    probes: Vec<ProbeRecord>,
    /// Indices into the probes, per (x, y).
    probe_rows: BTreeMap<Group, Vec<usize>>,
    slices: Vec<SliceRecord>,
}

struct ProbeRecord {
    receiver: Receiver,
    /// One value per step since the first step; NaN where not yet recorded.
    record: Mutex<Vec<f64>>,
}

struct SliceRecord {
    /// Index into the problem's outputs.
    output: usize,
    component: ComponentId,
    stage: StageId,
    axis: Axis,
    index: i64,
    every: u64,
    /// Extents of the component.
    extent: PerAxis<i64>,
    /// Values of a picture that rows advance; the boundary holds the others at 0.
    advanced: u64,
    /// Finished or growing pictures by step number. All threads write to one at a time, each its own rows.
    pictures: RwLock<BTreeMap<u64, Growing>>,
}

/// A picture that rows record.
struct Growing {
    /// The bits of its values.
    values: Vec<AtomicU64>,
    /// Values that rows have not recorded yet.
    missing: AtomicU64,
}

/// A slice that rows record.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedSlice {
    pub stage: StageId,
    every: u64,
    /// The cells of its plane.
    pub region: Region,
}

impl RecordedSlice {
    /// Whether it records values of a step, counted from 0.
    pub fn is_due(&self, step: u64) -> bool {
        (step + 1).is_multiple_of(self.every)
    }
}

impl Receivers {
    pub fn new(scheme: &Scheme, problem: &Problem) -> Receivers {
        let mut probe_rows: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
        let mut probes = Vec::new();
        for (number, receiver) in receivers(scheme, problem).into_iter().enumerate() {
            if receiver.stage.is_some() {
                let PerAxis([x, y, _]) = receiver.at;
                probe_rows.entry(Group { x, y }).or_default().push(number);
            }
            probes.push(ProbeRecord {
                receiver,
                record: Mutex::new(Vec::new()),
            });
        }
        let outputs = problem.outputs.iter().enumerate();
        let slices =
            outputs.filter_map(|(number, output)| SliceRecord::new(scheme, number, output));
        Receivers {
            probes,
            probe_rows,
            slices: slices.collect(),
        }
    }

    /// The rows of probes, with the stages after which they record.
    pub fn probe_rows(&self) -> impl Iterator<Item = (StageId, Group)> + '_ {
        self.probes.iter().filter_map(|probe| {
            let PerAxis([x, y, _]) = probe.receiver.at;
            Some((probe.receiver.stage?, Group { x, y }))
        })
    }

    pub fn slices(&self) -> impl Iterator<Item = RecordedSlice> + '_ {
        self.slices.iter().map(SliceRecord::recorded)
    }

    /// Probes record values of a row that were just computed.
    ///
    /// # Safety
    /// No other thread writes the row meanwhile.
    pub unsafe fn record<T: Real>(&self, layout: &Layout, cells: Cells<T>, of: &AdvancedRow) {
        let Group { x, y } = of.group;
        let start = layout.element(of.row, PerAxis([x, y, 0]));
        // SAFETY: indices lie in the component's extent; the caller excludes writers.
        let get = |z: i64| unsafe { cells.get(start + z) }.to_f64();
        let probes = self.probe_rows.get(&of.group).into_iter().flatten();
        for probe in probes.map(|&number| &self.probes[number]) {
            let Receiver {
                component,
                stage,
                at: PerAxis([_, _, z]),
            } = probe.receiver;
            if component == of.component && stage == Some(of.stage) && of.range.contains(z) {
                let mut record = lock(&probe.record);
                let step = of.step as usize;
                if record.len() <= step {
                    record.resize(step + 1, f64::NAN);
                }
                record[step] = get(z);
            }
        }
    }

    /// Slices record values of rows that were just computed.
    ///
    /// # Safety
    /// No other thread writes the rows meanwhile.
    pub unsafe fn record_slices<T: Real>(
        &self,
        layout: &Layout,
        cells: Cells<T>,
        of: &AdvancedRows,
    ) {
        // SAFETY: the indices of rows lie in the component's extent; the caller excludes writers.
        let get = |at| unsafe { cells.get(layout.element(of.row, at)) }.to_f64();
        for slice in &self.slices {
            slice.record(of, get);
        }
    }

    /// The record of probe `index`, one value per step from step 1.
    pub fn probe(&self, index: usize) -> Vec<f64> {
        lock(&self.probes[index].record).clone()
    }

    /// Continues a probe after a resumed checkpoint.
    pub fn restore_probe(&self, index: usize, record: Vec<f64>) {
        *lock(&self.probes[index].record) = record;
    }

    /// Whether rows record the pictures of an output; otherwise they must be taken from memory between runs.
    pub fn records(&self, output: usize) -> bool {
        self.slices.iter().any(|slice| slice.output == output)
    }

    /// Steps from the first one for which all probes of values that advance have a number.
    pub fn recorded(&self) -> Option<u64> {
        let advancing = self.probes.iter().filter(|p| p.receiver.stage.is_some());
        let recorded = |probe: &ProbeRecord| {
            let record = lock(&probe.record);
            let missing = record.iter().position(|value| value.is_nan());
            missing.unwrap_or(record.len()) as u64
        };
        advancing.map(recorded).min()
    }

    /// Takes the pictures of all steps up to `steps`, which are done.
    pub fn take_pictures(&self, scheme: &Scheme, steps: u64) -> Vec<Picture> {
        let mut out = Vec::new();
        for slice in &self.slices {
            let pictures = slice.pictures.write();
            let mut pictures = pictures.unwrap_or_else(PoisonError::into_inner);
            let later = pictures.split_off(&(steps + 1));
            for (step, picture) in std::mem::replace(&mut *pictures, later) {
                debug_assert!(picture.is_complete());
                out.push(slice.picture(scheme, step, picture));
            }
        }
        out
    }

    /// Takes the pictures that are complete, of whichever steps.
    pub fn take_complete_pictures(&self, scheme: &Scheme) -> Vec<Picture> {
        let mut out = Vec::new();
        for slice in &self.slices {
            let pictures = slice.pictures.write();
            let mut pictures = pictures.unwrap_or_else(PoisonError::into_inner);
            let complete = pictures.extract_if(.., |_, picture| picture.is_complete());
            out.extend(complete.map(|(step, picture)| slice.picture(scheme, step, picture)));
        }
        out
    }
}

impl Growing {
    fn is_complete(&self) -> bool {
        self.missing.load(Ordering::Relaxed) == 0
    }
}

impl SliceRecord {
    /// `None` where rows cannot record it.
    fn new(scheme: &Scheme, number: usize, output: &Output) -> Option<SliceRecord> {
        let OutputKind::Slice { axis, index } = output.kind else {
            return None;
        };
        if output.state.is_some() {
            return None;
        }
        let component = output.component;
        let slice = SliceRecord {
            output: number,
            component,
            stage: whole_stage(scheme, component)?,
            axis,
            index,
            every: output.every,
            extent: scheme.extent(component).map(|range| range.hi),
            advanced: 0,
            pictures: RwLock::new(BTreeMap::new()),
        };
        // No row of a plane advances in which the boundary holds all values at 0.
        let live = scheme.grid.live(scheme.component(component).position);
        let advanced = slice.recorded().region.intersect(live).volume();
        (advanced > 0).then_some(SliceRecord { advanced, ..slice })
    }

    fn picture(&self, scheme: &Scheme, step: u64, picture: Growing) -> Picture {
        let values = picture.values.into_iter().map(AtomicU64::into_inner);
        Picture {
            output: self.output,
            step,
            shape: slice_shape(scheme, self.component, self.axis),
            values: values.map(f64::from_bits).collect(),
        }
    }

    fn recorded(&self) -> RecordedSlice {
        let mut region = self.extent.map(|n| Interval::new(0, n));
        region[self.axis] = Interval::new(self.index, self.index + 1);
        RecordedSlice {
            stage: self.stage,
            every: self.every,
            region,
        }
    }

    fn record(&self, of: &AdvancedRows, get: impl Fn(PerAxis<i64>) -> f64) {
        if self.component != of.component || self.stage != of.stage {
            return;
        }
        let plane = self.recorded();
        let part = plane.region.intersect(of.rows);
        if !plane.is_due(of.step) || part.is_empty() {
            return;
        }
        // The index along the slice's axis is the same everywhere, so it has no weight.
        let mut weights = PerAxis::splat(0);
        let mut cells = 1;
        for axis in Axis::ALL
            .into_iter()
            .rev()
            .filter(|axis| *axis != self.axis)
        {
            weights[axis] = cells;
            cells *= self.extent[axis];
        }
        let write = |picture: &Growing| {
            for_each_index(part, |at| {
                let place: i64 = Axis::ALL.iter().map(|&a| at[a] * weights[a]).sum();
                picture.values[place as usize].store(get(at).to_bits(), Ordering::Relaxed);
            });
            picture.missing.fetch_sub(part.volume(), Ordering::Relaxed);
        };
        let pictures = || self.pictures.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(picture) = pictures().get(&(of.step + 1)) {
            return write(picture);
        }
        let blank = Growing {
            values: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            missing: AtomicU64::new(self.advanced),
        };
        let all = self.pictures.write();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        write(all.entry(of.step + 1).or_insert(blank));
    }
}

/// The last stage that updates a component, if it advances all its live values.
fn whole_stage(scheme: &Scheme, id: ComponentId) -> Option<StageId> {
    let stage = last_stage(scheme, id, None)?;
    let live = scheme.grid.live(scheme.component(id).position);
    let mut updates = scheme.stages[stage.index()].updates.iter();
    updates
        .any(|u| u.target == id && u.region == live)
        .then_some(stage)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A poisoned record is still a record: the panic that poisoned it is on its way out.
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
