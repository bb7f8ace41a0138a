//! A calculation by time blocks in flight, with all of its values on a device, or only the values of a calculation
//! window.
//!
//! The host's array is the state between passes. While steps run, operations of a [pipeline](torre_compiler::pipeline)
//! go to queues of the device: slabs of planes come from the host's array and go back to it, and launches run groups of
//! towers. Waves of sources go to the device before a pass, and records come back after it. Several devices take passes
//! in turns.

mod active_passes;
mod around;
mod beside;
mod chain;
mod check;
mod ends;
mod file_passes;
mod in_flight;
mod issue;
mod kept;
mod look;
mod low_passes;
mod over_files;
mod pass_state;
mod pass_waves;
mod passes;
mod planes;
mod recording;
mod records;
mod seam;
mod slabs;
mod slices;
mod stream;
mod unit;

pub use in_flight::{HeldPlanes, InFlight};
pub use over_files::{PIECE, piece_bytes};
pub use unit::Devices;

use super::code::DeviceProgram;
use super::device::DeviceError;
use super::interruptions::Interruptions;
use super::lookout::Lookout;
use super::queues::end_work;
use super::runs;
use super::towers::CompiledTowers;
use crate::host::Calculation;
use crate::simulation::{
    Part, PartOf, Picture, Progress, RunError, Simulation, Value, cell_stages_per_step, next_output,
};
use crate::timeline::Timeline;
use active_passes::ActivePasses;
use beside::Beside;
use check::{check_layout, check_slabs};
use low_passes::LowPasses;
use over_files::OverFiles;
use pass_state::Record;
use pass_waves::PassWaves;
use planes::PlaneBytes;
use slabs::SlabRun;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock};
use torre_compiler::injection::{Injections, Receiver, receivers};
use torre_compiler::lattice::PerAxis;
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::{
    BUFFERS, Builder, Footprints, OpId, SlabBuilder, StatePlaces, Window,
};
use torre_compiler::problem::Problem;
use torre_compiler::scheme::{ComponentId, Scheme, StateId};
use torre_compiler::statics::Files;
use torre_compiler::tower::{Points, TaskList};
use unit::{DeviceSignal, Unit, UnitParts};

/// Time blocks of a pass, where the device holds the whole array, for each that is in flight.
const RESIDENT_BLOCKS: usize = 16;

/// Passes of a device between two looks at whether values are finite, for which all operations end.
const BETWEEN_LOOKS: u64 = 16;

/// A calculation by time blocks in flight.
pub struct Pipelined<'a, T> {
    calculation: Calculation<'a, T>,
    files: &'a dyn Files,
    devices: Devices<'a>,
    towers: CompiledTowers,
    /// The most clusters of a launch.
    clusters: u32,
    footprints: Footprints,
    builder: Builder,
    planes: PlaneBytes,
    /// Per device.
    units: Vec<Unit>,
    /// The host's array, while copies of queues use it.
    host: *mut u8,
    locked: bool,
    /// The files that planes come from and go to, if they are not in the host's memory.
    over: Option<OverFiles<'a>>,
    waves: PassWaves,
    points: Points,
    receivers: Vec<Receiver>,
    interruptions: Interruptions,
    /// Bytes of the slices of a pass.
    slice_bytes: u64,
    active: ActivePasses,
    signals: BTreeMap<OpId, DeviceSignal>,
    /// Steps done, as callers see them.
    steps: u64,
    /// Steps that passes have begun.
    asked: u64,
    /// Passes have begun that did not come to their end.
    failed: bool,
    /// Cell-stages of a step.
    per_step: u64,
    probes: Vec<Vec<f64>>,
    pictures: Vec<Picture>,
    /// Passes are by overlapped slabs.
    slabs: Option<SlabRun>,
    /// When operations ran, if that is recorded.
    record: Option<Record>,
    /// Values that are looked at, if the device holds the whole array, once there were some; `None` where there is no
    /// memory for that.
    lookout: OnceLock<Option<Lookout>>,
    /// The towers of time blocks by their steps, where tables differ around a ring.
    lists: BTreeMap<u64, TaskList>,
    /// Around a ring.
    low_passes: Option<Mutex<LowPasses>>,
}

// SAFETY: the pointer to the host's array is used by methods with `&mut self` alone, and by the device until these
// methods return.
unsafe impl<T: Sync> Sync for Pipelined<'_, T> {}

/// Bytes of the device's memory that such a run takes, tables of time blocks and of sources aside; a step has `waves`
/// waves, or fewer.
pub fn device_bytes(
    scheme: &Scheme,
    problem: &Problem,
    layout: &Layout,
    steps: u64,
    how: InFlight,
    waves: u64,
) -> u64 {
    let planes = PlaneBytes::new(layout, 1, how);
    let sizes = slices::Sizes::new(scheme, problem, layout, pass_steps(steps, how), waves);
    let beside = how.held.places().map_or(0, |_| Beside::bytes(layout));
    let buffer = planes.buffer_bytes().saturating_add(beside);
    let unit = buffer.saturating_add(2 * sizes.all());
    unit.saturating_mul(how.held.base().map_or(1, |_| BUFFERS as u64))
}

/// Steps of a pass of time blocks of `steps` steps, at most.
fn pass_steps(steps: u64, how: InFlight) -> u64 {
    steps.max(1) * most_blocks(how) as u64
}

/// Time blocks of a pass, at most.
fn most_blocks(how: InFlight) -> usize {
    match how.held.places() {
        Some(_) => how.blocks.max(1),
        None => RESIDENT_BLOCKS * how.blocks.max(1),
    }
}

impl<'a, T: Value> Pipelined<'a, T> {
    /// Takes a calculation to devices, at the step where it is; the towers belong to the same scheme and layout. `None`
    /// where towers cannot run the problem, or cannot be put into groups.
    #[inline(never)]
    pub fn new(
        mut calculation: Calculation<'a, T>,
        files: &'a dyn Files,
        devices: Devices<'a>,
        program: DeviceProgram<'_>,
        towers: &CompiledTowers,
        how: InFlight,
    ) -> Result<Option<Self>, DeviceError> {
        let (scheme, problem) = (calculation.scheme, calculation.problem);
        let layout = calculation.layout.clone();
        assert_eq!(layout, program.set.layout, "kernels for this layout");
        let interruptions = Interruptions::new(scheme, problem);
        let chosen = &interruptions.volumes;
        // The states of zones move with planes in a layout for that.
        let fixed = how.held.places().is_some() && !scheme.zones.is_empty() && !layout.windowed;
        let unfit = !interruptions.always.is_empty() || fixed;
        let several = devices.count() > 1 && how.held == HeldPlanes::All;
        if unfit || several || !chosen.are_those_of(&towers.program, problem) {
            return Ok(None);
        }
        towers.check_beginning(calculation.steps())?;
        let Some(mut footprints) = footprints(scheme, &layout, towers, how) else {
            return Ok(None);
        };
        let injections = Injections::new(scheme, problem, files);
        let receivers = receivers(scheme, problem);
        let points = Points::new(&injections, receivers.clone(), |source| chosen.has(source));
        let (slabs, window) =
            Self::checked_window(&mut footprints, &calculation, how, towers, devices)?;
        let planes = PlaneBytes::new(&layout, footprints.way(), how);
        let waves = injections.waves_per_step() as u64;
        let pass = pass_steps(towers.steps, how);
        let sizes = slices::Sizes::new(scheme, problem, &layout, pass, waves);
        let parts = UnitParts {
            calculation: &calculation,
            devices,
            program,
            towers,
            how,
            injections: &injections,
            volumes: chosen,
            planes: &planes,
            sizes,
            needed: device_bytes(scheme, problem, &layout, towers.steps, how, waves),
            in_flight: window.in_flight,
        };
        let mut units: Vec<Unit> = Vec::new();
        for number in 0..window.devices.max(1) {
            let Some(unit) = parts.unit(number, &units)? else {
                return Ok(None);
            };
            units.push(unit);
        }
        let device = devices.device(0);
        let locked = match how.held.places() {
            Some(_) => {
                let in_file = calculation.is_in_file();
                let array = calculation.array_mut();
                // SAFETY: the array stays where it is as long as the calculation lives, and is unlocked before.
                !in_file && unsafe { device.lock(array.as_mut_ptr(), array.len() as u64) }?
            }
            None => false,
        };
        let mut run = Self {
            low_passes: LowPasses::around(&footprints, &window, towers.steps),
            clusters: towers.resident_clusters(device.facts()),
            builder: Builder::new(window),
            footprints,
            planes,
            units,
            host: calculation.array_mut().as_mut_ptr(),
            locked,
            over: None,
            points,
            receivers,
            interruptions,
            slice_bytes: sizes.slices,
            active: ActivePasses::default(),
            signals: BTreeMap::new(),
            steps: calculation.steps(),
            asked: calculation.steps(),
            failed: false,
            per_step: cell_stages_per_step(scheme).max(1),
            probes: (0..problem.probes.len())
                .map(|i| calculation.probe(i))
                .collect(),
            pictures: Vec::new(),
            slabs,
            record: None,
            lookout: OnceLock::new(),
            lists: BTreeMap::new(),
            towers: towers.clone(),
            calculation,
            files,
            devices,
            waves: PassWaves::new(injections),
        };
        for number in 0..run.units.len() {
            if !run.make_ready(number, towers.steps, &BTreeSet::new())? {
                return Ok(None);
            }
        }
        Ok(Some(run))
    }

    /// The window of such a run, with its slabs where it has any: operations on it break no rule.
    fn checked_window(
        footprints: &mut Footprints,
        calculation: &Calculation<'a, T>,
        how: InFlight,
        towers: &CompiledTowers,
        devices: Devices<'a>,
    ) -> Result<(Option<SlabRun>, Window), DeviceError> {
        let (scheme, layout) = (calculation.scheme, &calculation.layout);
        let (steps, count) = (towers.steps, devices.count());
        let HeldPlanes::Slabs { places, base } = how.held else {
            let window = how.window(footprints, scheme, layout, steps, count);
            let window = window.ok_or(DeviceError::TooLong)?;
            check_layout(footprints, calculation, &window, steps)?;
            return Ok((None, window));
        };
        let blocks = how.blocks.max(1);
        let builder = SlabBuilder::on(count, footprints.held(), places, blocks, how.group);
        let builder = builder.with_states(StatePlaces::from(layout));
        check_slabs(footprints, calculation, &builder, base, steps)?;
        let window = builder.window().clone();
        Ok((Some(SlabRun::new(base, builder)), window))
    }

    /// Whether pages of the host are locked, so that copies go on beside other work.
    #[inline(never)]
    pub fn is_locked(&self) -> bool {
        let over = self.over.as_ref();
        over.map_or(self.locked, OverFiles::is_locked)
    }

    /// Bytes that the array takes on the host.
    #[inline(never)]
    pub fn memory_bytes(&self) -> u64 {
        self.calculation.memory_bytes()
    }

    /// How often planes were moved within the buffer.
    pub fn slides(&self) -> u64 {
        self.builder.slides()
    }

    fn advance(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        if self.over.is_some() {
            return self.advance_over_files(until, progress);
        }
        if self.slabs.is_some() {
            return self.advance_by_slabs(until, progress);
        }
        while self.asked < until {
            let next = self.builder.passes() + BETWEEN_LOOKS * self.units.len() as u64;
            let done = self.passes_until(until, next, progress);
            // Copies use the host's array until they are over, also after a failure.
            let ended = self.end_passes(progress);
            done?;
            ended?;
            self.steps = self.asked;
            if self.builder.window().places().is_some() {
                self.calculation.set_steps(self.steps);
                self.take_slices_around();
                if progress.guard.looks() {
                    self.look()?;
                }
            } else if progress.guard.looks() {
                self.look_on_device()?;
            }
        }
        Ok(())
    }

    /// Runs passes up to a step, and up to one with some number.
    fn passes_until(
        &mut self,
        until: u64,
        last: u64,
        progress: &Progress,
    ) -> Result<(), DeviceError> {
        // The next pass finds no room beside others.
        let mut waits = false;
        loop {
            let more = self.asked < until && self.builder.passes() < last;
            let may_begin = more && self.builder.may_begin();
            if may_begin && !waits {
                waits = !self.next_finds_room(until)?;
            }
            if may_begin && (!waits || self.builder.is_idle()) {
                waits = false;
                while self.active.first() < self.builder.first_active() {
                    self.end_pass(progress)?;
                }
                self.begin_pass(until)?;
            } else if self.builder.is_idle() {
                return Ok(());
            }
            let ops = self.builder.tick().map_err(|room| DeviceError::Failed {
                operation: "laying out the calculation window",
                message: room.to_string(),
            })?;
            for op in ops {
                self.issue(&op)?;
            }
        }
    }

    /// Waits for all passes that have begun.
    fn end_passes(&mut self, progress: &Progress) -> Result<(), DeviceError> {
        let mut result = Ok(());
        while !self.active.is_empty() {
            let ended = self.end_pass(progress);
            result = result.and(ended);
        }
        result
    }

    /// Counts steps of a pass that is over.
    fn count(&self, steps: u64, progress: &Progress) {
        progress
            .done
            .fetch_add(steps * self.per_step, Ordering::Relaxed);
    }
}

/// The groups of time blocks; `None` where towers cannot be put into groups.
fn footprints(
    scheme: &Scheme,
    layout: &Layout,
    towers: &CompiledTowers,
    how: InFlight,
) -> Option<Footprints> {
    let of = &towers.program.towers;
    let mut footprints = Footprints::new(scheme, layout, of, towers.order, how.group, towers.steps);
    if of.way() == 0 {
        return None;
    }
    footprints.height(scheme, layout, towers.steps)?;
    // Rings may be too short for the order of towers.
    if of.rings.is_any() {
        footprints.tasks(scheme, layout, towers.steps)?;
    }
    Some(footprints)
}

impl<T> Drop for Pipelined<'_, T> {
    #[inline(never)]
    fn drop(&mut self) {
        for (number, unit) in self.units.iter().enumerate() {
            end_work(self.devices.device(number), unit.queues.all());
        }
        // Memory for passes over files is unlocked after this.
        if self.locked {
            // SAFETY: it was locked, and all copies are over. A failure here cannot be reported.
            let _ = unsafe { self.devices.device(0).unlock(self.host) };
        }
    }
}

impl<T: Value> Simulation<T> for Pipelined<'_, T> {
    fn scheme(&self) -> &Scheme {
        self.calculation.scheme
    }

    fn problem(&self) -> &Problem {
        self.calculation.problem
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    #[inline(never)]
    fn next_pause(&self) -> u64 {
        // Slices are recorded while steps run.
        let volume = next_output(self.calculation.problem, self.steps);
        volume.min(self.next_slice_around())
    }

    #[inline(never)]
    fn next_state(&self) -> u64 {
        match &self.over {
            Some(_) => self.next_state_in_files(),
            None => u64::MAX,
        }
    }

    fn stride(&self) -> u64 {
        self.towers.program.towers.steps.max(1)
    }

    #[inline(never)]
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        if self.failed {
            let error = DeviceError::Failed {
                operation: "going on with time blocks in flight",
                message: "a pass was given up, so values are of different steps".to_owned(),
            };
            return Err(error.into());
        }
        let done = self.advance(until, progress);
        self.failed = matches!(&done, Err(error) if !matches!(error, RunError::BlowUp(_)));
        done
    }

    #[inline(never)]
    fn fetch(&mut self) -> Result<(), RunError> {
        // Several devices have a window, and store all that the host has.
        let [unit] = self.units.as_mut_slice() else {
            return Ok(());
        };
        let device = self.devices.device(0);
        if !self.calculation.is_after(self.steps) {
            device.read(unit.buffer, self.calculation.array_mut())?;
            self.calculation.set_steps(self.steps);
        }
        if let Some(beside) = &mut unit.beside {
            beside.fetch(device, self.calculation.array_mut(), self.steps)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn fetch_parts(&mut self, parts: &[Part]) -> Result<(), RunError> {
        let [unit] = self.units.as_mut_slice() else {
            return Ok(());
        };
        let in_planes = |part: &Part| matches!(part.of, PartOf::Newest(_));
        if unit.beside.is_some() && !parts.iter().all(in_planes) {
            return self.fetch();
        }
        if parts.is_empty() || self.calculation.is_after(self.steps) {
            return Ok(());
        }
        let (device, scheme) = (self.devices.device(0), self.calculation.scheme);
        for run in runs::runs(scheme, &self.calculation.layout, self.steps, parts) {
            let from = unit.buffer.offset(run.start as i64);
            device.read(from, &mut self.calculation.array_mut()[run])?;
        }
        self.calculation.set_steps_of_parts(self.steps);
        Ok(())
    }

    fn keeps_states(&self) -> bool {
        self.over.is_some()
    }

    #[inline(never)]
    fn confirm_state(&mut self, records: Vec<(String, Vec<f64>)>) -> Result<(), RunError> {
        self.confirm_files(records)
    }

    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        self.calculation.aged_row(id, age, x, y)
    }

    fn state(&self, id: StateId, at: PerAxis<i64>) -> T {
        self.calculation.state_value(id, at).unwrap_or_default()
    }

    #[inline(never)]
    fn probe(&self, index: usize) -> Vec<f64> {
        self.probes[index].clone()
    }

    fn is_unwatched(&self) -> bool {
        matches!(self.lookout.get(), Some(None))
    }

    #[inline(never)]
    fn take_pictures(&mut self) -> Vec<Picture> {
        let mut pictures = std::mem::take(&mut self.pictures);
        pictures.sort_by_key(|p| (p.step, p.output));
        pictures
    }

    #[inline(never)]
    fn timeline(&self) -> Option<Timeline> {
        self.record
            .as_ref()
            .map(|record| record.recorder.timeline())
    }
}
