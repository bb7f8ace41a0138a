//! A calculation: its values in memory, and running it forward.

use super::effects::Effects;
use super::engine::{Engine, Order, Progress};
use super::ghosts::Ghosts;
use super::kernel_table::KernelTable;
use super::memory::{Cells, Memory};
use super::pyramids::Buffers;
use super::receivers::{Picture, slice_shape};
use super::threads::{self, NoThreads};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use torre_compiler::incident::Refusal;
use torre_compiler::kernel::{Code, KernelSet};
use torre_compiler::lattice::{Axis, Interval, PerAxis, Region};
use torre_compiler::layout::{Layout, RowId, TooLarge};
use torre_compiler::problem::{OutputKind, Problem, StaticValue};
use torre_compiler::real::Real;
use torre_compiler::scheme::{CoefId, ComponentId, Scheme, StateId};
use torre_compiler::statics::{Files, GridPoint, coef_value, init_of, physical_time};

/// Bytes of rows between a kernel and what follows it: a part of a core's level-2 cache.
const CHUNK_BYTES: i64 = 128 << 10;

/// Why a calculation cannot start.
#[derive(Debug)]
pub enum SetupError {
    /// The sizes exceed what can be addressed.
    TooLarge,
    /// The memory could not be had.
    Memory { bytes: u64, error: io::Error },
    /// A coefficient or an initial value is NaN or infinite.
    NotFinite {
        /// What the user calls it.
        name: String,
        at: Vec<i64>,
        value: f64,
    },
    /// Not all threads could be started.
    Threads(NoThreads),
    /// An incident field cannot be: what is wrong, and what helps.
    Incident(String, &'static str),
}

impl SetupError {
    /// An incident field of a scheme's problem cannot be.
    pub fn incident(scheme: &Scheme, refusal: &Refusal) -> SetupError {
        SetupError::Incident(refusal.fault.describe(scheme), refusal.fault.hint())
    }
}

impl From<NoThreads> for SetupError {
    fn from(error: NoThreads) -> Self {
        SetupError::Threads(error)
    }
}

impl From<TooLarge> for SetupError {
    fn from(_: TooLarge) -> Self {
        SetupError::TooLarge
    }
}

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
    /// For pyramids, once there were any.
    pub(super) buffers: Option<Buffers>,
    precision: std::marker::PhantomData<T>,
}

impl<'a, T: Real> Calculation<'a, T> {
    /// Takes the memory and fills it with coefficients and initial values, on `threads` threads.
    pub fn new(
        scheme: &'a Scheme,
        problem: &'a Problem,
        files: &'a dyn Files,
        threads: usize,
    ) -> Result<Self, SetupError> {
        Self::arranged(Layout::new(scheme)?, scheme, problem, files, threads)
    }

    /// The same with values as a layout of the scheme arranges them.
    pub fn arranged(
        layout: Layout,
        scheme: &'a Scheme,
        problem: &'a Problem,
        files: &'a dyn Files,
        threads: usize,
    ) -> Result<Self, SetupError> {
        assert_eq!(T::PRECISION, scheme.precision);
        let mut memory = Memory::new(&layout).map_err(|error| SetupError::Memory {
            bytes: layout.bytes(),
            error,
        })?;
        let ghosts = Ghosts::new(scheme, &layout);
        let cells = memory.cells::<T>();
        let fill = Fill {
            scheme,
            problem,
            files,
            layout: &layout,
            ghosts: &ghosts,
            cells,
        };
        fill.run(threads)?;
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
            buffers: None,
            precision: std::marker::PhantomData,
        })
    }

    /// Steps done so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn memory_bytes(&self) -> u64 {
        self.memory.bytes() + self.buffers.as_ref().map_or(0, Buffers::bytes)
    }

    /// The bytes of the array, for who computes with a copy of it.
    pub fn array(&self) -> &[u8] {
        self.memory.content()
    }

    /// The same, to be replaced by the array after so many steps ([`Calculation::set_steps`]).
    pub fn array_mut(&mut self) -> &mut [u8] {
        self.memory.content_mut()
    }

    /// Says after how many steps the array is.
    pub fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// Runs until `until` steps are done, with kernels compiled for this calculation's layout, or for that of the
    /// pyramids. After an error the values are of no use.
    ///
    /// Panics if the set was not made for it.
    pub fn run(
        &mut self,
        set: &KernelSet,
        code: &dyn Code,
        order: Order<'_>,
        threads: usize,
        until: u64,
        progress: &Progress,
    ) -> Result<(), NoThreads> {
        while self.steps < until && progress.guard.found().is_none() {
            let ready = self
                .effects
                .prepare(self.scheme, self.files, self.steps, until);
            self.run_prepared(set, code, order, threads, ready, progress)?;
        }
        Ok(())
    }

    fn run_prepared(
        &mut self,
        set: &KernelSet,
        code: &dyn Code,
        order: Order<'_>,
        threads: usize,
        until: u64,
        progress: &Progress,
    ) -> Result<(), NoThreads> {
        if let Order::Pyramids(program) = order {
            return self.run_pyramids(set, code, program, threads, until, progress);
        }
        assert_eq!(set.layout, self.layout);
        let cells = self.memory.cells::<T>();
        let engine = Engine {
            scheme: self.scheme,
            problem: self.problem,
            files: self.files,
            layout: &self.layout,
            ghosts: &self.ghosts,
            effects: &self.effects,
            cells,
            code,
            kernels: KernelTable::new(self.scheme, set),
            chunk: (CHUNK_BYTES
                / (self.layout.row_stride
                    * i64::from(self.layout.rows.max(1))
                    * self.layout.element_bytes as i64))
                .max(1),
            progress,
            until,
        };
        // SAFETY: `&mut self` keeps everybody else away from the cells until the run's threads have ended.
        unsafe {
            match order {
                Order::Layerwise => engine.run_layerwise(threads, self.steps, until),
                Order::Tiles(program) => engine.run_tiles(program, threads, self.steps, until),
                Order::Boxes(boxes) => engine.run_boxes(boxes, threads, self.steps, until),
                // Done above.
                Order::Pyramids(_) => Ok(()),
            }
        }?;
        self.steps = until;
        Ok(())
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

    /// The values of a stored version of a component at (x, y): `time_level` counts the versions kept, 0 the newest.
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
            let [lean, diamond, vector] = self.scheme.extent(id).0;
            let live = self.scheme.grid.live(self.scheme.component(id).position);
            let mut values = vec![T::default(); vector.hi as usize];
            for age in 0..self.scheme.component(id).time_levels {
                let row = self.aged(id, age);
                for x in lean.lo..lean.hi {
                    for y in diamond.lo..diamond.hi {
                        read(id, age, x, y, &mut values)?;
                        let start = self.layout.element(row, PerAxis([x, y, 0]));
                        // SAFETY: `&mut self`, no threads.
                        unsafe {
                            for (i, value) in values.iter().enumerate() {
                                cells.set(start + i as i64, *value);
                            }
                            // Zeros on a plane have no sign that a mirror could turn.
                            if live[Axis::OUTER].contains(x) && live[Axis::MIDDLE].contains(y) {
                                self.ghosts
                                    .update(&self.layout, cells, id, row, (x, y), vector);
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// What probe `index` has recorded: one value per step done.
    pub fn probe(&self, index: usize) -> Vec<f64> {
        let probe = &self.problem.probes[index];
        let mut record = self.effects.probe(index);
        if record.len() < self.steps as usize {
            // Nothing ever changes this value.
            let value = self.value(probe.component, probe.at).to_f64();
            record.resize(self.steps as usize, value);
        }
        record
    }

    /// Continues a probe's record after `restore`.
    pub fn restore_probe(&self, index: usize, record: Vec<f64>) {
        self.effects.restore_probe(index, record);
    }

    /// The pictures of slices due up to now that have not been taken yet.
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

/// Fills memory with start values.
struct Fill<'a, T> {
    scheme: &'a Scheme,
    problem: &'a Problem,
    files: &'a dyn Files,
    layout: &'a Layout,
    ghosts: &'a Ghosts,
    cells: Cells<T>,
}

impl<T: Real> Fill<'_, T> {
    fn run(&self, threads: usize) -> Result<(), SetupError> {
        for (index, coef) in self.scheme.coefs.iter().enumerate() {
            if let Some(axis) = coef.only_axis {
                self.axis_coef(CoefId(index as u32), axis)?;
            }
        }
        let nx = self.layout.extent[Axis::OUTER];
        let next = AtomicI64::new(0);
        let failure = Mutex::new(None);
        threads::run(threads, |_| {
            loop {
                let x = next.fetch_add(1, Ordering::Relaxed);
                if x >= nx {
                    return;
                }
                if let Err(error) = self.plane(x) {
                    if let Ok(mut failure) = failure.lock() {
                        failure.get_or_insert(error);
                    }
                    next.store(nx, Ordering::Relaxed);
                }
            }
        })?;
        match failure.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn plane(&self, x: i64) -> Result<(), SetupError> {
        for y in 0..self.layout.extent[Axis::MIDDLE] {
            for id in self.scheme.component_ids() {
                for age in 0..self.scheme.component(id).time_levels {
                    self.initial(id, age, x, y)?;
                }
            }
            for (index, coef) in self.scheme.coefs.iter().enumerate() {
                if coef.only_axis.is_none() {
                    self.coef(CoefId(index as u32), x, y)?;
                }
            }
        }
        Ok(())
    }

    fn initial(&self, id: ComponentId, age: u8, x: i64, y: i64) -> Result<(), SetupError> {
        let time_levels = u64::from(self.scheme.component(id).time_levels);
        let row = self.layout.row(id, time_levels - u64::from(age));
        let whole = self.scheme.extent(id);
        let Some(init) = init_of(self.problem, id, age) else {
            // Zeros too: an odd ghost of 0 is -0.
            if whole[Axis::OUTER].contains(x) && whole[Axis::MIDDLE].contains(y) {
                // SAFETY: each row, with its ghosts, belongs to one call; `plane` runs for each x on one thread.
                unsafe {
                    let range = whole[Axis::INNER];
                    self.ghosts
                        .update(self.layout, self.cells, id, row, (x, y), range);
                }
            }
            return Ok(());
        };
        let component = self.scheme.component(id);
        let live = self.scheme.grid.live(component.position);
        if !live[Axis::OUTER].contains(x) || !live[Axis::MIDDLE].contains(y) {
            return Ok(());
        }
        let range = live[Axis::INNER];
        let mut values = vec![0.0; range.len() as usize];
        let at = PerAxis([x, y, range.lo]);
        match &init.value {
            StaticValue::Expr(e) => {
                let point = GridPoint {
                    scheme: self.scheme,
                    files: self.files,
                    position: component.position,
                    at,
                    time: physical_time(self.scheme, id, -i64::from(age)),
                };
                e.eval_row(&point, range.lo, &mut values);
            }
            StaticValue::File(file) => {
                for (i, v) in values.iter_mut().enumerate() {
                    *v = self
                        .files
                        .value(*file, PerAxis([x, y, range.lo + i as i64]));
                }
            }
        }
        values
            .iter_mut()
            .for_each(|v| *v = T::from_f64(*v).flush().to_f64());
        let name = || format!("the initial value of {}", component.name);
        self.store(row, (x, y), range.lo, &values, name)?;
        // SAFETY: each row, with its ghosts, belongs to one call; `plane` runs for each x on one thread.
        unsafe {
            let range = whole[Axis::INNER];
            self.ghosts
                .update(self.layout, self.cells, id, row, (x, y), range);
        }
        Ok(())
    }

    /// The values of a coefficient that depends on one axis.
    fn axis_coef(&self, id: CoefId, axis: Axis) -> Result<(), SetupError> {
        let coef = &self.scheme.coefs[id.index()];
        for i in 0..self.scheme.grid.extent(coef.position)[axis].hi {
            let mut at = PerAxis::splat(0);
            at[axis] = i;
            let value = coef_value(self.scheme, self.files, coef.position, &coef.value, at);
            let name = || format!("the coefficient {}", coef.name);
            self.put(self.layout.axis_coef_element(axis, id, i), value, at, name)?;
        }
        Ok(())
    }

    /// Stores a value that must be finite.
    fn put(
        &self,
        element: i64,
        value: f64,
        at: PerAxis<i64>,
        name: impl Fn() -> String,
    ) -> Result<(), SetupError> {
        let rounded = T::from_f64(value);
        if !rounded.to_f64().is_finite() {
            return Err(SetupError::NotFinite {
                name: name(),
                at: self.scheme.grid.present().map(|a| at[a]).collect(),
                value,
            });
        }
        // SAFETY: the element lies in the layout; it belongs to one call.
        unsafe { self.cells.set(element, rounded) };
        Ok(())
    }

    fn coef(&self, id: CoefId, x: i64, y: i64) -> Result<(), SetupError> {
        let coef = &self.scheme.coefs[id.index()];
        let extent = self.scheme.grid.extent(coef.position);
        if !extent[Axis::OUTER].contains(x) || !extent[Axis::MIDDLE].contains(y) {
            return Ok(());
        }
        let range = extent[Axis::INNER];
        let mut values = vec![0.0; range.len() as usize];
        let point = GridPoint {
            scheme: self.scheme,
            files: self.files,
            position: coef.position,
            at: PerAxis([x, y, 0]),
            time: 0.0,
        };
        coef.value.eval_row(&point, 0, &mut values);
        let name = || format!("the coefficient {}", coef.name);
        self.store(self.layout.coef_row(id), (x, y), 0, &values, name)
    }

    fn store(
        &self,
        row: RowId,
        (x, y): (i64, i64),
        lo: i64,
        values: &[f64],
        name: impl Fn() -> String,
    ) -> Result<(), SetupError> {
        let start = self.layout.element(row, PerAxis([x, y, lo]));
        for (i, &value) in values.iter().enumerate() {
            let at = PerAxis([x, y, lo + i as i64]);
            self.put(start + i as i64, value, at, &name)?;
        }
        Ok(())
    }
}
