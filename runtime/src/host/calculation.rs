//! A calculation: its values in memory, and running it forward.

use super::effects::Effects;
use super::engine::Engine;
use super::execution::Execution;
use super::fill::{Fill, Filled, TinyCoef, sizes};
use super::ghosts::Ghosts;
use super::kernel_table::KernelTable;
use super::memory::Memory;
use super::pyramids::Buffers;
use super::sweep::SweepOver;
use crate::simulation::SetupError;
use crate::simulation::{NoThreads, Picture, Progress, slice_shape};
use torre_compiler::cost::Blocking;
use torre_compiler::kernel::{Code, KernelSet};
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis, Region};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::real::Real;
use torre_compiler::scheme::{ComponentId, Scheme, StateId};
use torre_compiler::statics::Files;

/// Bytes of rows between a kernel and the work that follows it: a part of a core's level-2 cache.
const CHUNK_BYTES: i64 = 128 << 10;

/// Where the machine was not measured.
const BLOCKING: Blocking = Blocking {
    sweep: 1 << 20,
    piece: u64::MAX,
};

/// The state of a calculation in precision `T`, which is the scheme's.
pub struct Calculation<'a, T> {
    pub scheme: &'a Scheme,
    pub problem: &'a Problem,
    pub(super) files: &'a dyn Files,
    pub layout: Layout,
    pub(super) memory: Memory,
    pub(super) ghosts: Ghosts,
    pub(super) effects: Effects,
    pub(super) steps: u64,
    /// The step up to which all probes that record have recorded, where the guard stopped the run.
    recorded: Option<u64>,
    /// Whether all of the array is after that number of steps: parts may have come from a device.
    whole: bool,
    /// As [`torre_compiler::cost::Machine::blocking`] chooses it where the machine was measured.
    pub blocking: Blocking,
    /// A coefficient that is too small for the precision.
    pub tiny: Option<TinyCoef>,
    /// For pyramids, once there were any.
    pub(super) buffers: Option<Buffers>,
    precision: std::marker::PhantomData<T>,
}

impl<'a, T: Real> Calculation<'a, T> {
    /// Takes the memory and fills it with coefficients and initial values, on `threads` threads.
    #[inline(never)]
    pub fn new(
        scheme: &'a Scheme,
        problem: &'a Problem,
        files: &'a dyn Files,
        threads: usize,
    ) -> Result<Self, SetupError> {
        Self::arranged(Layout::new(scheme)?, scheme, problem, files, threads)
    }

    /// The same with values as a layout of the scheme arranges them.
    #[inline(never)]
    pub fn arranged(
        layout: Layout,
        scheme: &'a Scheme,
        problem: &'a Problem,
        files: &'a dyn Files,
        threads: usize,
    ) -> Result<Self, SetupError> {
        let memory = Memory::new(&layout).map_err(|error| SetupError::Memory {
            bytes: layout.bytes(),
            error,
        })?;
        let mut calculation = Self::of_memory(memory, layout, scheme, problem, files)?;
        calculation.fill(threads)?;
        Ok(calculation)
    }

    /// Fills memory of zeros with coefficients and initial values.
    #[inline(never)]
    pub fn fill(&mut self, threads: usize) -> Result<(), SetupError> {
        let fill = Fill {
            scheme: self.scheme,
            problem: self.problem,
            files: self.files,
            layout: &self.layout,
            to: Some(Filled {
                ghosts: &self.ghosts,
                cells: self.memory.cells::<T>(),
            }),
            sizes: sizes(self.scheme),
        };
        let filled = fill.run(threads);
        self.tiny = fill.tiny();
        filled
    }

    /// Takes the values that some memory has.
    #[inline(never)]
    pub fn of_memory(
        memory: Memory,
        layout: Layout,
        scheme: &'a Scheme,
        problem: &'a Problem,
        files: &'a dyn Files,
    ) -> Result<Self, SetupError> {
        assert_eq!(T::PRECISION, scheme.precision);
        let ghosts = Ghosts::new(scheme, &layout);
        let effects = Effects::new(scheme, problem, files, &layout)
            .map_err(|refusal| SetupError::incident(scheme, &refusal))?;
        Ok(Self {
            scheme,
            problem,
            files,
            layout,
            memory,
            ghosts,
            effects,
            steps: 0,
            recorded: None,
            whole: true,
            blocking: BLOCKING,
            tiny: None,
            buffers: None,
            precision: std::marker::PhantomData,
        })
    }

    /// Steps done so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Bytes of the array on the host, and of the memory that pyramids need beside it.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.bytes() + self.buffers.as_ref().map_or(0, Buffers::bytes)
    }

    /// The bytes of the array, for callers that compute with a copy of it.
    pub fn array(&self) -> &[u8] {
        self.memory.content()
    }

    /// The same, to be replaced by the array after later steps ([`Calculation::set_steps`]).
    pub fn array_mut(&mut self) -> &mut [u8] {
        self.memory.content_mut()
    }

    /// Whether the array is in a file.
    pub fn is_in_file(&self) -> bool {
        self.memory.is_in_file()
    }

    /// Takes other memory with an array of the same layout.
    pub fn set_memory(&mut self, memory: Memory) {
        assert!(memory.bytes() >= self.layout.bytes());
        self.memory = memory;
    }

    /// Says after how many steps the array is.
    pub fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
        self.whole = true;
    }

    /// Says after how many steps parts of the array are, while the rest is older.
    pub fn set_steps_of_parts(&mut self, steps: u64) {
        self.whole &= self.steps == steps;
        self.steps = steps;
    }

    /// Whether all of the array is after some number of steps.
    pub fn is_after(&self, steps: u64) -> bool {
        self.whole && self.steps == steps
    }

    /// Runs until `until` steps are done, with kernels compiled for this calculation's layout, or for that of the
    /// pyramids. After an error the values are of no use.
    ///
    /// Panics if the set was not made for it.
    #[inline(never)]
    pub fn run(
        &mut self,
        set: &KernelSet,
        code: &dyn Code,
        execution: &Execution,
        threads: usize,
        until: u64,
        progress: &Progress,
    ) -> Result<(), SetupError> {
        while self.steps < until && progress.guard.found().is_none() {
            let ready = self
                .effects
                .prepare(self.scheme, self.files, self.steps, until);
            self.run_prepared(set, code, execution, threads, ready, progress)?;
        }
        Ok(())
    }

    fn run_prepared(
        &mut self,
        set: &KernelSet,
        code: &dyn Code,
        execution: &Execution,
        threads: usize,
        until: u64,
        progress: &Progress,
    ) -> Result<(), SetupError> {
        if let Execution::Pyramids(program) = execution {
            return self.run_pyramids(set, code, program, threads, until, progress);
        }
        let from = self.steps;
        let engine = self.engine(set, code, until, progress);
        // SAFETY: `&mut self` keeps all other threads away from the cells until the run's threads have ended.
        unsafe {
            match execution {
                Execution::Layerwise => engine.run_layerwise(threads, from, until),
                Execution::Tiles(program) => engine.run_tiles(program, threads, from, until),
                Execution::Boxes(boxes) => engine.run_boxes(boxes, threads, from, until),
                // Done above.
                Execution::Pyramids(_) => Ok(()),
            }
        }?;
        self.end_stretch(until, progress);
        Ok(())
    }

    fn engine<'e>(
        &'e mut self,
        set: &KernelSet,
        code: &'e dyn Code,
        until: u64,
        progress: &'e Progress,
    ) -> Engine<'e, T> {
        assert_eq!(set.layout, self.layout);
        let cells = self.memory.cells::<T>();
        Engine {
            scheme: self.scheme,
            problem: self.problem,
            files: self.files,
            layout: &self.layout,
            ghosts: &self.ghosts,
            effects: &self.effects,
            cells,
            code,
            kernels: KernelTable::new(self.scheme, set, self.blocking),
            chunk: (CHUNK_BYTES
                / (self.layout.row_length
                    * i64::from(self.layout.rows.max(1))
                    * self.layout.element_bytes as i64))
                .max(1),
            progress,
            until,
        }
    }

    /// The step up to which [`Calculation::prepare`] gets ready, at most `until`.
    pub fn prepared_until(&self, until: u64) -> u64 {
        self.effects.last(self.steps, until)
    }

    /// Gets ready for the steps up to one: the last that can be done before the next time.
    #[inline(never)]
    pub fn prepare(&mut self, until: u64) -> u64 {
        let (scheme, files) = (self.scheme, self.files);
        self.effects.prepare(scheme, files, self.steps, until)
    }

    /// Runs until `until` steps are done, for which it is prepared, in one sweep over planes that come and go; `false`
    /// where they did not come, or values were none.
    #[inline(never)]
    pub fn run_sweep(
        &mut self,
        set: &KernelSet,
        code: &dyn Code,
        over: SweepOver<'_>,
        until: u64,
        progress: &Progress,
    ) -> Result<bool, NoThreads> {
        let from = self.steps;
        let engine = self.engine(set, code, until, progress);
        // SAFETY: `&mut self` keeps all other threads away from the cells until the run's threads have ended, except
        // threads that bring planes and take them away.
        let ran = unsafe { engine.run_sweep(over, from, until) }?;
        if ran || progress.guard.found().is_some() {
            self.end_stretch(until, progress);
        }
        Ok(ran)
    }

    /// The steps up to one have been run, unless the guard stopped them: then the values are of different steps.
    pub(super) fn end_stretch(&mut self, until: u64, progress: &Progress) {
        match progress.guard.found() {
            None => self.steps = until,
            Some(_) => {
                let recorded = self.effects.recorded();
                self.recorded = recorded.map(|steps| steps.max(self.steps));
            }
        }
    }

    /// The row of the newest version of a component.
    fn newest_row(&self, id: ComponentId) -> RowId {
        let version = self.steps * u64::from(self.scheme.updates_per_step(id));
        self.layout.row(id, version)
    }

    /// The newest values of a component along the inner axis at (x, y).
    pub fn row(&self, id: ComponentId, x: i64, y: i64) -> &[T] {
        self.stored_row(self.newest_row(id), self.scheme.extent(id), x, y)
    }

    fn stored_row(&self, row: RowId, extent: Region, x: i64, y: i64) -> &[T] {
        let start = self.layout.element(row, PerAxis([x, y, 0])) as usize;
        &self.memory.elements::<T>()[start..start + extent[Axis::INNER].hi as usize]
    }

    /// One value.
    pub fn value(&self, id: ComponentId, at: PerAxis<i64>) -> T {
        self.row(id, at[Axis::OUTER], at[Axis::MIDDLE])[at[Axis::INNER] as usize]
    }

    /// The value of a state at a cell; `None` outside of its zone.
    pub fn state_value(&self, id: StateId, at: PerAxis<i64>) -> Option<T> {
        let zone = self.scheme.states[id.index()].zone;
        let element = self.layout.state_element(zone, id, at)?;
        Some(self.memory.elements::<T>()[element as usize])
    }

    /// Continues from a checkpoint: the values of a state in a box of its zone, inner axis fastest.
    #[inline(never)]
    pub fn restore_state(&mut self, id: StateId, region: Region, values: &[T]) {
        let zone = self.scheme.states[id.index()].zone;
        let cells = self.memory.cells::<T>();
        let mut values = values.iter();
        torre_compiler::reference::for_each_index(region, |at| {
            let element = self.layout.state_element(zone, id, at);
            if let (Some(element), Some(value)) = (element, values.next()) {
                // SAFETY: `&mut self`, no threads; the element lies in the layout.
                unsafe { cells.set(element, *value) };
            }
        });
    }

    /// The values of a stored version of a component at (x, y): `age` counts the versions kept, 0 the newest.
    /// For checkpoints.
    pub fn aged_row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        let row = self.aged(id, age);
        self.stored_row(row, self.scheme.extent(id), x, y)
    }

    fn aged(&self, id: ComponentId, age: u8) -> RowId {
        let time_levels = u64::from(self.scheme.component(id).time_levels);
        let version = self.steps * u64::from(self.scheme.updates_per_step(id));
        self.layout
            .row(id, version + time_levels - u64::from(age) % time_levels)
    }

    /// Continues from a checkpoint: `steps` are done, `read(component, age, x, y, row)` gives the stored values.
    pub fn restore<E>(
        &mut self,
        steps: u64,
        mut read: impl FnMut(ComponentId, u8, i64, i64, &mut [T]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.steps = steps;
        let cells = self.memory.cells::<T>();
        for id in self.scheme.component_ids() {
            let [outer, middle, inner] = self.scheme.extent(id).0;
            let live = self.scheme.grid.live(self.scheme.component(id).position);
            let mut values = vec![T::default(); inner.hi as usize];
            for age in 0..self.scheme.component(id).time_levels {
                let row = self.aged(id, age);
                for x in outer.lo..outer.hi {
                    for y in middle.lo..middle.hi {
                        read(id, age, x, y, &mut values)?;
                        let start = self.layout.element(row, PerAxis([x, y, 0]));
                        // SAFETY: `&mut self`, no threads.
                        unsafe {
                            for (i, value) in values.iter().enumerate() {
                                cells.set(start + i as i64, *value);
                            }
                            // Zeros on a plane have no sign that a mirror could turn.
                            if live[Axis::OUTER].contains(x) && live[Axis::MIDDLE].contains(y) {
                                self.ghosts.update(
                                    &self.layout,
                                    cells,
                                    id,
                                    row,
                                    Group { x, y },
                                    inner,
                                );
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The record of probe `index`: one value for each step that was [recorded](Calculation::recorded).
    #[inline(never)]
    pub fn probe(&self, index: usize) -> Vec<f64> {
        let probe = &self.problem.probes[index];
        let mut record = self.effects.probe(index);
        let recorded = self.recorded() as usize;
        if record.len() < recorded {
            // Nothing ever changes this value.
            let value = self.value(probe.component, probe.at).to_f64();
            record.resize(recorded, value);
        }
        record
    }

    /// Continues a probe's record after `restore`.
    #[inline(never)]
    pub fn restore_probe(&self, index: usize, record: Vec<f64>) {
        self.effects.restore_probe(index, record);
    }

    /// The step up to which all probes have recorded.
    pub fn recorded(&self) -> u64 {
        self.recorded.unwrap_or(self.steps)
    }

    /// The pictures of slices that are complete, also of steps in which the guard stopped the run.
    pub fn take_complete_pictures(&self) -> Vec<Picture> {
        let mut pictures = self.effects.take_complete_pictures(self.scheme);
        pictures.sort_by_key(|p| (p.step, p.output));
        pictures
    }

    /// The pictures of slices due up to now that have not been taken yet.
    #[inline(never)]
    pub fn take_pictures(&self) -> Vec<Picture> {
        let mut pictures = self.effects.take_pictures(self.scheme, self.steps);
        for (output, o) in self.problem.outputs.iter().enumerate() {
            let OutputKind::Slice { axis, index } = o.kind else {
                continue;
            };
            let recorded = self.effects.records(output) || o.state.is_some();
            if !recorded && self.steps.is_multiple_of(o.every) {
                pictures.push(self.picture(output, o.component, axis, index));
            }
        }
        pictures.sort_by_key(|p| (p.step, p.output));
        pictures
    }

    /// The slices of components that are due after the steps that are done, taken from memory.
    #[inline(never)]
    pub fn slices_due(&self) -> Vec<Picture> {
        let outputs = self.problem.outputs.iter().enumerate();
        let due = outputs.filter(|(_, o)| o.state.is_none() && self.steps.is_multiple_of(o.every));
        let slices = due.filter_map(|(output, o)| match o.kind {
            OutputKind::Slice { axis, index } => Some((output, o.component, axis, index)),
            OutputKind::Volume => None,
        });
        let picture = |(output, id, axis, index)| self.picture(output, id, axis, index);
        slices.map(picture).collect()
    }

    fn picture(&self, output: usize, id: ComponentId, axis: Axis, index: i64) -> Picture {
        let mut region = self.scheme.extent(id);
        region[axis] = Interval::new(index, index + 1);
        let mut values = Vec::with_capacity(region.volume() as usize);
        torre_compiler::reference::for_each_index(region, |at| {
            values.push(self.value(id, at).to_f64());
        });
        Picture {
            output,
            step: self.steps,
            shape: slice_shape(self.scheme, id, axis),
            values,
        }
    }

    /// The next step, after now and up to the problem's end, at which the run has to pause so that an output can be
    /// taken from memory.
    #[inline(never)]
    pub fn next_pause(&self) -> u64 {
        self.problem
            .outputs
            .iter()
            .enumerate()
            .filter(|(i, _)| !self.effects.records(*i))
            .map(|(_, o)| (self.steps / o.every + 1).saturating_mul(o.every))
            .fold(self.problem.steps, u64::min)
    }
}
