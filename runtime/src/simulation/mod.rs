//! A calculation that can be advanced and looked at, independent of the engine.

mod device_error;
mod error;
mod tuning;
mod values;

pub use device_error::DeviceError;
pub use error::{Difference, RunError};
pub use tuning::{Candidate, Timed, Tried, Tuned, Tuning, TuningResult};
pub use values::{Part, PartOf, Values};

use crate::host::guard::{BlowUp, irregular};
use crate::host::receivers::{Picture, slice_shape};
use crate::host::{Calculation, Execution, Progress, SetupError, contention};
use crate::output::{AnyRows, Element, Rows};
use crate::timeline::Timeline;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use torre_compiler::kernel::{Code, KernelSet};
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::real::Real;
use torre_compiler::reference::{Reference, for_each_index};
use torre_compiler::scheme::{ComponentId, Scheme, StateId};

/// `f32` or `f64`, to compute with and to write.
pub trait Value: Real + Element {
    /// Rows of this type as rows of any type.
    fn any<'a>(rows: &'a dyn Rows<Self>) -> AnyRows<'a>;
}

impl Value for f32 {
    fn any<'a>(rows: &'a dyn Rows<f32>) -> AnyRows<'a> {
        AnyRows::F32(rows)
    }
}

impl Value for f64 {
    fn any<'a>(rows: &'a dyn Rows<f64>) -> AnyRows<'a> {
        AnyRows::F64(rows)
    }
}

/// A calculation in progress.
pub trait Simulation<T>: Sync {
    fn scheme(&self) -> &Scheme;
    fn problem(&self) -> &Problem;
    /// Steps done.
    fn steps(&self) -> u64;
    /// The next step after which an output must be taken.
    fn next_pause(&self) -> u64;
    /// The step at which it must pause for a state that it keeps itself.
    fn next_state(&self) -> u64 {
        u64::MAX
    }
    /// Steps that it advances at a time: it can end at multiples of them only.
    fn stride(&self) -> u64 {
        1
    }
    /// Runs until `until` steps are done.
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError>;
    /// Brings the values to where [`Simulation::row`] finds them, if they are elsewhere while steps run.
    fn fetch(&mut self) -> Result<(), RunError> {
        Ok(())
    }
    /// Brings at least these values; the others may be older ones until [`Simulation::fetch`] is called.
    fn fetch_parts(&mut self, parts: &[Part]) -> Result<(), RunError> {
        match parts.is_empty() {
            true => Ok(()),
            false => self.fetch(),
        }
    }
    /// Begins with the steps up to `until`, where they can be done while the calculation is looked at as it is now, and
    /// fetches the wanted values first. Until [`Simulation::run`] is called, with the same step, everything
    /// stays as if nothing had begun.
    fn go_on(&mut self, _until: u64, values: &Values) -> Result<(), RunError> {
        match values {
            Values::All => self.fetch(),
            Values::Parts(parts) => self.fetch_parts(parts),
        }
    }
    /// Whether it keeps states from which a run goes on.
    fn keeps_states(&self) -> bool {
        false
    }
    /// All results up to the current step are written, and `records` was recorded beside probes, by the names of a
    /// checkpoint: a state that a calculation keeps itself counts from now on.
    fn settle(&mut self, _records: Vec<(String, Vec<f64>)>) -> Result<(), RunError> {
        Ok(())
    }
    /// How long steps went on outside of [`Simulation::run`].
    fn overlapped(&self) -> Duration {
        Duration::ZERO
    }
    /// The values along the inner axis at (x, y) of a version that is kept: 0 is the newest.
    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T];
    /// The value of a state at a cell of its zone.
    fn state(&self, id: StateId, at: PerAxis<i64>) -> T;
    /// The record of a probe: one value per step.
    fn probe(&self, index: usize) -> Vec<f64>;
    /// The pictures of slices that were due and have not been taken yet.
    fn take_pictures(&mut self) -> Vec<Picture>;
    /// The step up to which all probes have recorded: a later one than is done where a value ended [`Simulation::run`].
    fn recorded(&self) -> u64 {
        self.steps()
    }
    /// The pictures that are complete where a value ended [`Simulation::run`].
    fn take_complete_pictures(&mut self) -> Vec<Picture> {
        self.take_pictures()
    }
    /// The result of tuning, if the run was tuned.
    fn tuning(&self) -> Option<TuningResult> {
        None
    }
    /// When operations of devices ran, if that was recorded.
    fn timeline(&self) -> Option<Timeline> {
        None
    }
}

/// The next step behind `steps` and up to the problem's end after which an output is taken from the values.
pub fn next_volume(problem: &Problem, steps: u64) -> u64 {
    let outputs = problem.outputs.iter();
    outputs
        .filter(|o| o.needs_values())
        .map(|o| (steps / o.every + 1).saturating_mul(o.every))
        .fold(problem.steps, u64::min)
}

/// The cell-stages of one step, as [`Progress`] counts them: cells of an update's region times stages.
pub fn cell_stages_per_step(scheme: &Scheme) -> u64 {
    scheme
        .stage_ids()
        .flat_map(|stage| torre_compiler::tile::stage_blocks(scheme, stage))
        .map(|block| block.region.volume() * u64::from(block.updates.0.count_ones()))
        .fold(0, u64::saturating_add)
}

/// A calculation in memory, advanced by kernels.
pub struct Compiled<'a, T> {
    pub calculation: Calculation<'a, T>,
    pub set: &'a KernelSet,
    pub code: &'a dyn Code,
    pub execution: &'a Execution,
    pub threads: usize,
    /// Schedules of which the fastest one is taken, instead of `execution`.
    pub tuning: Option<Tuning<'a>>,
}

impl<T: Value> Compiled<'_, T> {
    /// Runs up to `until` by one schedule, or for a timing of tuning.
    fn run_stretch(&mut self, until: u64, progress: &Progress) -> Result<(), SetupError> {
        let Self {
            calculation,
            set,
            code,
            execution,
            threads,
            tuning,
        } = self;
        let Some(tuning) = tuning else {
            return calculation.run(set, *code, execution, *threads, until, progress);
        };
        let from = calculation.steps();
        let (execution, steps) = tuning.next(until - from);
        let start = Instant::now();
        let (ran, waiting) = contention::during_runs(|| {
            calculation.run(set, *code, execution, *threads, from + steps, progress)
        });
        tuning.took(Timed {
            steps,
            time: start.elapsed(),
            disturbed: waiting.is_busy(),
        });
        ran
    }
}

impl<T: Value> Simulation<T> for Compiled<'_, T> {
    fn scheme(&self) -> &Scheme {
        self.calculation.scheme
    }

    fn problem(&self) -> &Problem {
        self.calculation.problem
    }

    fn steps(&self) -> u64 {
        self.calculation.steps()
    }

    fn next_pause(&self) -> u64 {
        self.calculation.next_pause()
    }

    #[inline(never)]
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        while self.calculation.steps() < until && progress.guard.found().is_none() {
            self.run_stretch(until, progress)?;
        }
        match progress.guard.found() {
            Some(found) => Err(RunError::BlowUp(found)),
            None => Ok(()),
        }
    }

    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        self.calculation.aged_row(id, age, x, y)
    }

    fn state(&self, id: StateId, at: PerAxis<i64>) -> T {
        self.calculation.state_value(id, at).unwrap_or_default()
    }

    fn probe(&self, index: usize) -> Vec<f64> {
        self.calculation.probe(index)
    }

    fn take_pictures(&mut self) -> Vec<Picture> {
        self.calculation.take_pictures()
    }

    fn recorded(&self) -> u64 {
        self.calculation.recorded()
    }

    fn tuning(&self) -> Option<TuningResult> {
        self.tuning.as_ref().map(Tuning::result)
    }

    fn take_complete_pictures(&mut self) -> Vec<Picture> {
        self.calculation.take_complete_pictures()
    }
}

/// The reference: the meaning of the language, one cell at a time.
pub struct Literal<'a, T> {
    scheme: &'a Scheme,
    problem: &'a Problem,
    reference: Reference<'a, T>,
    pictures: Vec<Picture>,
}

impl<'a, T: Value> Literal<'a, T> {
    #[inline(never)]
    pub fn new(
        scheme: &'a Scheme,
        problem: &'a Problem,
        files: &'a dyn torre_compiler::statics::Files,
    ) -> Self {
        Self {
            scheme,
            problem,
            reference: Reference::new(scheme, problem, files),
            pictures: Vec::new(),
        }
    }

    /// The bytes that the reference takes for a scheme.
    pub fn bytes(scheme: &Scheme) -> u64 {
        let values = scheme.component_ids().map(|id| {
            let time_levels = u64::from(scheme.component(id).time_levels);
            // One more for the values of a stage that are not stored yet, with their indices.
            let each = time_levels * size_of::<T>() as u64 + 32;
            scheme.extent(id).volume().saturating_mul(each)
        });
        let coefs = scheme.coefs.iter().map(|coef| {
            let volume = scheme.grid.extent(coef.position).volume();
            volume.saturating_mul(size_of::<T>() as u64)
        });
        let states = scheme.states.iter().map(|state| {
            let volume = scheme.grid.extent(state.position).volume();
            volume.saturating_mul(size_of::<T>() as u64)
        });
        values
            .chain(coefs)
            .chain(states)
            .fold(0, u64::saturating_add)
    }
}

impl<T: Value> Simulation<T> for Literal<'_, T> {
    fn scheme(&self) -> &Scheme {
        self.scheme
    }

    fn problem(&self) -> &Problem {
        self.problem
    }

    fn steps(&self) -> u64 {
        self.reference.steps()
    }

    #[inline(never)]
    fn next_pause(&self) -> u64 {
        next_volume(self.problem, self.steps())
    }

    #[inline(never)]
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        let cells = cell_stages_per_step(self.scheme);
        while self.reference.steps() < until {
            self.reference.step();
            self.record();
            progress.done.fetch_add(cells, Ordering::Relaxed);
            if progress.guard.looks() {
                self.look()
                    .map_or(Ok(()), |found| Err(RunError::BlowUp(found)))?;
            }
        }
        Ok(())
    }

    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        let extent = self.scheme.extent(id);
        let length = extent[Axis::INNER].hi as usize;
        let start = (x * extent[Axis::MIDDLE].hi + y) as usize * length;
        &self.reference.aged_values(id, age)[start..start + length]
    }

    fn state(&self, id: StateId, at: PerAxis<i64>) -> T {
        let position = self.scheme.states[id.index()].position;
        let [_, ny, nz] = self.scheme.grid.extent(position).map(|i| i.hi).0;
        let [x, y, z] = at.0;
        self.reference.state_values(id)[((x * ny + y) * nz + z) as usize]
    }

    #[inline(never)]
    fn probe(&self, index: usize) -> Vec<f64> {
        let record = self.reference.probe(index).iter();
        record.map(|v| Real::to_f64(*v)).collect()
    }

    #[inline(never)]
    fn take_pictures(&mut self) -> Vec<Picture> {
        std::mem::take(&mut self.pictures)
    }
}

impl<T: Value> Literal<'_, T> {
    /// The first value that is not regular.
    fn look(&self) -> Option<BlowUp> {
        self.scheme.component_ids().find_map(|id| {
            let values = self.reference.values(id);
            let index = irregular(values)? as i64;
            let extent = self.scheme.extent(id).map(|i| i.hi);
            let [_, ny, nz] = extent.0;
            let at = PerAxis([index / (ny * nz), index / nz % ny, index % nz]);
            let value = Real::to_f64(values[index as usize]);
            Some(BlowUp::new(
                self.scheme,
                id,
                at,
                self.reference.steps(),
                value,
            ))
        })
    }

    /// Takes the pictures that are due after the current step.
    fn record(&mut self) {
        let step = self.reference.steps();
        for (output, o) in self.problem.outputs.iter().enumerate() {
            let OutputKind::Slice { axis, index } = o.kind else {
                continue;
            };
            if o.state.is_some() || !step.is_multiple_of(o.every) {
                continue;
            }
            let mut region = self.scheme.extent(o.component);
            region[axis] = Interval::new(index, index + 1);
            let mut values = Vec::with_capacity(region.volume() as usize);
            for_each_index(region, |at| {
                values.push(Real::to_f64(self.reference.value(o.component, at)));
            });
            self.pictures.push(Picture {
                output,
                step,
                shape: slice_shape(self.scheme, o.component, axis),
                values,
            });
        }
    }
}
