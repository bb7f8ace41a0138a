//! A calculation whose values are in a device's memory.
//!
//! The host keeps the array, too: it fills it at the start, and gets it back when values are to be written or compared.
//! While steps run, only waves of sources go to the device, and records of probes and slices come back, many steps at a
//! time. While files are written, the device goes on with later steps: the values to be written are in the host's
//! memory, or in a copy on the device.

use super::code::{DeviceCode, DeviceProgram};
use super::device::{Address, Device, DeviceError, Mark};
use super::ghost_kernel::GhostKernel;
use super::interruptions::Interruptions;
use super::lookout::{self, Lookout};
use super::no_time_blocks::NoTimeBlocks;
use super::records::Records;
use super::step_tables::slice_place;
use super::time_blocks::TimeBlocks;
use super::transfer;
use super::waves::WaveStream;
use crate::host::{Calculation, threads};
use crate::simulation::{
    BlowUp, Part, Picture, Progress, RunError, Simulation, Value, Values, cell_stages_per_step,
    next_output,
};
use recording::Waiting;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use torre_compiler::backend::gpu::abi::{SourceCell, Volumes};
use torre_compiler::backend::gpu::layerwise::kept_bytes;
use torre_compiler::injection::{Driven, Injections};
use torre_compiler::kernel::KernelSet;
use torre_compiler::problem::Problem;
use torre_compiler::scheme::{ComponentId, Scheme, StateId};
use torre_compiler::statics::Files;

mod fetching;
mod recording;
mod sequence;

/// Bytes of waves that are kept on the device, and of probes' records that wait there together.
const RECORD_BYTES: u64 = 8 << 20;

/// Steps of a high time block, whose waves are kept on the device even if they are many; and bytes of waves, at most:
/// kernels count them in words.
const STEPS_OF_TIME_BLOCK: u64 = 64;
const MOST_WAVE_BYTES: u64 = 1 << 30;

/// Steps of which waves and records are kept, where there is room, even if a problem has fewer.
const STEPS_KEPT: u64 = 1 << 10;

/// Bytes of slices that wait on the device together, if a slice is not larger.
const PICTURE_BYTES: u64 = 32 << 20;

/// Cell-steps between two looks at how far the device has come.
const CELLS_BETWEEN_MARKS: u64 = 1 << 26;

/// Marks that may lie ahead of the work that the device has done.
const MARKS_AHEAD: usize = 16;

/// Starts of kernels that the device is given before its host turns to files: the driver lets about 1000 wait.
const STARTS_AHEAD: usize = 512;

/// A calculation on a device.
pub struct OnDevice<'a, T> {
    calculation: Calculation<'a, T>,
    device: &'a dyn Device,
    code: DeviceCode,
    time_blocks: Option<TimeBlocks>,
    /// Why it does not advance by the towers that it was given.
    without_towers: Option<NoTimeBlocks>,
    /// Makes ghosts along the inner axis, if they are out of date in the array.
    stale: Option<GhostKernel>,
    interruptions: Interruptions,
    /// The volume sources of towers, once there were some; `None` where they cannot be.
    volumes: OnceLock<Result<Volumes, NoTimeBlocks>>,
    /// Where the values lie: in the array that kernels of whole stages work on, or in the second one.
    array: Address,
    home: Address,
    /// The second array for time blocks of pyramids, once there were some; `None` where there is no memory for it.
    second: OnceLock<Option<Address>>,
    /// Memory for copies of values that are read while steps go on, and its bytes, once there were some.
    shadow: Option<(Address, u64)>,
    /// Steps done, as callers see them.
    steps: u64,
    /// Steps that the device was asked for.
    asked: u64,
    marks: VecDeque<(Mark, u64)>,
    /// Cell-stages of a step.
    per_step: u64,
    /// Steps after the last mark.
    since: u64,
    /// Steps that go on while the host does something else: since when, and between which marks.
    beside: Option<(Instant, [Mark; 2])>,
    /// How long steps went on beside something else.
    overlapped: Duration,
    injections: Arc<Injections>,
    stream: Arc<WaveStream<'a>>,
    /// Place and capacity in steps.
    waves: (Address, u64),
    /// Steps whose waves are on the device.
    waves_of: Range<u64>,
    /// The same waves as bytes.
    wave_bytes: Vec<u8>,
    /// Whole steps of all probes.
    probes: Records<()>,
    records: Vec<Vec<f64>>,
    planes: Records<Waiting>,
    pictures: Vec<Picture>,
    /// Looks whether values stay finite, in runs that are to end where they do not; empty where memory is too short for
    /// it.
    lookout: Option<Option<Lookout>>,
    /// Cell-stages since it looked last.
    unseen: u64,
    blown_up: Option<BlowUp>,
}

/// Bytes that the device's memory must hold where the whole grid lies in it, tables aside.
pub fn resident_bytes(scheme: &Scheme, problem: &Problem, set: &KernelSet) -> u64 {
    let planes = plane_bytes(scheme, problem, set);
    let around = planes.saturating_mul(2).saturating_add(3 * RECORD_BYTES);
    let kept = kept_bytes(scheme, &set.layout);
    let values = set.layout.bytes().saturating_add(kept);
    let tables = source_bytes(scheme, problem);
    values.saturating_add(around).saturating_add(tables)
}

/// Bytes of the tables of sources: in each phase all cells on which they act. Cells that depend on conditions are not
/// known yet and left out.
fn source_bytes(scheme: &Scheme, problem: &Problem) -> u64 {
    let everywhere = problem.sources.iter().filter(|s| s.condition.is_none());
    let cells = everywhere.map(|source| source.region.volume());
    let each = SourceCell::BYTES as u64 * u64::from(scheme.phases());
    cells.fold(0, u64::saturating_add).saturating_mul(each)
}

/// Bytes for slices that wait together: some of the largest one.
fn plane_bytes(scheme: &Scheme, problem: &Problem, set: &KernelSet) -> u64 {
    let bytes = |output: usize| {
        let place = slice_place(scheme, problem, &set.layout, output, 0)?;
        Some(place.count() * set.layout.element_bytes as u64)
    };
    let largest = (0..problem.outputs.len()).filter_map(bytes).max();
    largest.map_or(0, |bytes| {
        bytes * (PICTURE_BYTES / bytes.max(1)).clamp(1, 64)
    })
}

impl<'a, T: Value> OnDevice<'a, T> {
    /// Takes a calculation to a device, at the step where it is.
    #[inline(never)]
    pub fn new(
        calculation: Calculation<'a, T>,
        files: &'a dyn Files,
        device: &'a dyn Device,
        program: DeviceProgram<'_>,
    ) -> Result<Self, DeviceError> {
        let (scheme, problem) = (calculation.scheme, calculation.problem);
        let set = program.set;
        assert_eq!(calculation.layout, set.layout, "kernels for this layout");
        let needed = resident_bytes(scheme, problem, set);
        let available = device.free_memory()?;
        if needed > available {
            return Err(DeviceError::Memory { needed, available });
        }
        let array = device.take(set.layout.bytes())?;
        device.write(array, calculation.array())?;
        let injections = Arc::new(Injections::new(scheme, problem, files));
        let of = Driven {
            scheme,
            problem,
            files,
        };
        let stream = WaveStream::new(of, injections.clone(), threads::available());
        let code = DeviceCode::new(device, program, scheme, problem, &injections, array)?;
        let each = injections.waves_per_step() as u64 * 8;
        let steps = steps_of_waves(each, device.free_memory()?);
        let steps = steps.min(problem.steps.max(STEPS_KEPT));
        // Threads without a correction read the first one.
        let waves = (device.take((each * steps).max(8))?, steps);
        let recorded = (problem.probes.len() * T::PRECISION.bytes()) as u64;
        let kept = (RECORD_BYTES / recorded.max(1)).clamp(1, problem.steps.max(STEPS_KEPT));
        let probes = Records::new(device, recorded * kept)?;
        let planes = Records::new(device, plane_bytes(scheme, problem, set))?;
        let records = (0..problem.probes.len())
            .map(|i| calculation.probe(i))
            .collect();
        Ok(Self {
            steps: calculation.steps(),
            asked: calculation.steps(),
            calculation,
            device,
            code,
            time_blocks: None,
            without_towers: None,
            stale: None,
            interruptions: Interruptions::new(scheme, problem),
            volumes: OnceLock::new(),
            array,
            home: array,
            second: OnceLock::new(),
            shadow: None,
            marks: VecDeque::new(),
            per_step: cell_stages_per_step(scheme).max(1),
            since: 0,
            beside: None,
            overlapped: Duration::ZERO,
            injections,
            stream: Arc::new(stream),
            waves,
            waves_of: 0..0,
            wave_bytes: Vec::new(),
            probes,
            records,
            planes,
            pictures: Vec::new(),
            lookout: None,
            unseen: 0,
            blown_up: None,
        })
    }

    /// Starts of kernels in a step.
    pub fn starts_per_step(&self) -> usize {
        self.code.starts_per_step()
    }

    /// Bytes that the array takes on the device.
    #[inline(never)]
    pub fn memory_bytes(&self) -> u64 {
        self.calculation.memory_bytes()
    }

    fn scheme(&self) -> &'a Scheme {
        self.calculation.scheme
    }

    fn problem(&self) -> &'a Problem {
        self.calculation.problem
    }

    /// Asks the device for the next step or time block; gives the number of starts.
    fn ask(&mut self, until: u64) -> Result<usize, DeviceError> {
        let [steps, mut starts] = match self.time_block(until)? {
            Some(time_block) => time_block,
            None => {
                let waves = self.waves(until, 1)?;
                let before = self.settle()? + self.renew_ghosts()?;
                self.code.step(self.device, self.asked, waves)?;
                self.record_probes()?;
                [1, before + self.starts_per_step() as u64 + 1]
            }
        };
        self.asked += steps;
        starts += self.record_slices()?;
        self.unseen = self
            .unseen
            .saturating_add(steps.saturating_mul(self.per_step));
        if self.unseen >= lookout::BETWEEN {
            self.look()?;
        }
        self.since += steps;
        if self.since >= (CELLS_BETWEEN_MARKS / self.per_step).max(1) {
            self.mark()?;
        }
        Ok(starts as usize)
    }

    /// Has some values come back.
    fn look(&mut self) -> Result<(), DeviceError> {
        self.unseen = 0;
        if let Some(Some(lookout)) = &mut self.lookout {
            let scheme = self.calculation.scheme;
            let found = lookout.look(self.device, scheme, self.array, self.asked)?;
            self.blown_up = self.blown_up.take().or(found);
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<(), DeviceError> {
        let steps = std::mem::take(&mut self.since);
        self.marks.push_back((self.device.mark()?, steps));
        Ok(())
    }

    fn advance(&mut self, until: u64, progress: &Progress) -> Result<(), DeviceError> {
        if until < self.asked {
            return Err(too_late("running"));
        }
        let beside = self.beside.take();
        let beside = beside.map(|(since, marks)| (since.elapsed(), marks));
        if progress.guard.looks() && self.lookout.is_none() {
            let (scheme, layout) = (self.scheme(), &self.calculation.layout);
            let gather = self.code.services.gather;
            self.lookout = Some(match Lookout::new(self.device, gather, scheme, layout) {
                // A run that has the memory for its values goes on without.
                Err(DeviceError::Memory { .. }) => None,
                made => Some(made?),
            });
        }
        let stream = self.stream.clone();
        let first = match self.has_waves() {
            true => self.waves_of.end,
            false => self.asked,
        };
        stream.beside(first..until, || {
            while self.asked < until && self.blown_up.is_none() {
                self.ask(until)?;
                while self.marks.len() > MARKS_AHEAD {
                    self.pass(progress)?;
                }
            }
            Ok::<(), DeviceError>(())
        })?;
        self.look()?;
        self.mark()?;
        self.begin_records()?;
        while !self.marks.is_empty() {
            self.pass(progress)?;
        }
        self.end_records()?;
        if let Some(Some(lookout)) = &mut self.lookout {
            let found = lookout.end(self.device, self.calculation.scheme)?;
            self.blown_up = self.blown_up.take().or(found);
        }
        if let Some((time, [from, to])) = beside {
            self.overlapped += self.device.between(from, to)?.min(time);
        }
        self.steps = self.asked;
        Ok(())
    }

    /// Waits for the oldest mark.
    fn pass(&mut self, progress: &Progress) -> Result<(), DeviceError> {
        if let Some((mark, steps)) = self.marks.pop_front() {
            self.device.reach(mark)?;
            let done = steps * self.per_step;
            progress.done.fetch_add(done, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives the device some of the steps to do while the host does something else.
    fn begin(&mut self, until: u64) -> Result<(), DeviceError> {
        if self.beside.is_some() {
            return Ok(());
        }
        let (since, from) = (Instant::now(), self.device.mark()?);
        let mut starts = 0;
        while self.asked < until && starts < STARTS_AHEAD && self.has_room(until) {
            starts += self.ask(until)?;
        }
        self.beside = Some((since, [from, self.device.mark()?]));
        Ok(())
    }

    /// Whether the next steps find room for their records without a wait.
    fn has_room(&self, until: u64) -> bool {
        let steps = self.next_time_block(until).unwrap_or(1);
        let slices = (0..self.problem().outputs.len())
            .filter(|output| self.is_due(*output, self.asked + steps))
            .filter_map(|output| {
                let (scheme, layout) = (self.scheme(), &self.calculation.layout);
                slice_place(scheme, self.problem(), layout, output, 0)
            })
            .map(|place| place.count() * T::PRECISION.bytes() as u64)
            .sum();
        let lookout = self.lookout.as_ref().and_then(Option::as_ref);
        self.probes.has_room(steps * self.probe_bytes())
            && self.planes.has_room(slices)
            && lookout.is_none_or(|lookout| lookout.has_room(self.scheme()))
    }

    /// Whether the device has the waves of the next step.
    fn has_waves(&self) -> bool {
        self.waves_of.contains(&self.asked)
    }

    /// Where the waves of the next `steps` steps lie, for which there is room.
    fn waves(&mut self, until: u64, steps: u64) -> Result<Address, DeviceError> {
        let (place, most) = self.waves;
        let each = self.injections.waves_per_step() as u64 * 8;
        if each == 0 {
            return Ok(place);
        }
        let known = self.has_waves();
        if !known || self.asked + steps > self.waves_of.end {
            let end = until.min(self.asked + steps_sent(each, most, steps));
            // A step behind one whose waves were computed takes all steps before it.
            let next = if known { self.waves_of.end } else { self.asked };
            let done = self.wave_bytes.len() - ((next - self.asked) * each) as usize;
            self.wave_bytes.drain(..done);
            let needed = next..self.asked + steps;
            let last = self.stream.take(needed, end, &mut self.wave_bytes);
            self.device.write(place, &self.wave_bytes)?;
            self.waves_of = self.asked..last;
        }
        Ok(place.offset(((self.asked - self.waves_of.start) * each) as i64))
    }
}

/// Steps whose waves are kept on the device, if the waves of a step take `bytes` bytes: as many as find room, or the
/// steps of a time block if their waves do not take too much of the available memory.
fn steps_of_waves(bytes: u64, available: u64) -> u64 {
    let each = bytes.max(1);
    let time_block = STEPS_OF_TIME_BLOCK.min(available / 16 / each);
    let time_block = time_block.min(MOST_WAVE_BYTES / each);
    (RECORD_BYTES / each).max(time_block).max(1)
}

/// Steps whose waves are sent at a time, if there is room for the waves of `most` steps and `steps` are needed: as many
/// time blocks as find room in a piece of locked memory. Of more pieces the host would fill the third one when the
/// device has nothing left to do, as the first ones are sent behind all that it was asked for before.
fn steps_sent(bytes: u64, most: u64, steps: u64) -> u64 {
    let (each, steps) = (bytes.max(1), steps.max(1));
    let blocks = transfer::PIECE as u64 / each / steps;
    most.min(blocks.max(1) * steps)
}

/// Something was asked for of a step that later ones have followed.
fn too_late(operation: &'static str) -> DeviceError {
    DeviceError::Failed {
        operation,
        message: "later steps have begun".to_owned(),
    }
}

impl<T: Value> Simulation<T> for OnDevice<'_, T> {
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
        next_output(self.calculation.problem, self.steps)
    }

    #[inline(never)]
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        self.advance(until, progress)?;
        match &self.blown_up {
            Some(found) => Err(RunError::BlowUp(found.clone())),
            None => Ok(()),
        }
    }

    #[inline(never)]
    fn fetch(&mut self) -> Result<(), RunError> {
        self.fetch_runs(&self.lacking(&Values::All))?;
        self.note(&Values::All);
        Ok(())
    }

    #[inline(never)]
    fn fetch_parts(&mut self, parts: &[Part]) -> Result<(), RunError> {
        let values = Values::Parts(parts.to_vec());
        self.fetch_runs(&self.lacking(&values))?;
        self.note(&values);
        Ok(())
    }

    #[inline(never)]
    fn run_ahead(&mut self, until: u64, values: &Values) -> Result<(), RunError> {
        let runs = self.lacking(values);
        let copy = match runs.is_empty() {
            true => None,
            false => self.begin_copy(&runs)?,
        };
        if copy.is_none() {
            self.fetch_runs(&runs)?;
        }
        self.begin(until)?;
        if let Some(copy) = copy {
            self.end_copy(copy, &runs)?;
        }
        self.note(values);
        Ok(())
    }

    fn overlapped(&self) -> Duration {
        self.overlapped
    }

    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        self.calculation.aged_row(id, age, x, y)
    }

    fn state(&self, id: StateId, at: torre_compiler::lattice::PerAxis<i64>) -> T {
        self.calculation.state_value(id, at).unwrap_or_default()
    }

    #[inline(never)]
    fn probe(&self, index: usize) -> Vec<f64> {
        self.records[index].clone()
    }

    fn is_unwatched(&self) -> bool {
        matches!(self.lookout, Some(None))
    }

    #[inline(never)]
    fn take_pictures(&mut self) -> Vec<Picture> {
        let mut pictures = std::mem::take(&mut self.pictures);
        pictures.sort_by_key(|p| (p.step, p.output));
        pictures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::code;
    use crate::world::FileWorld;
    use std::path::Path;
    use torre_compiler::driver::load;
    use torre_grammar::source::Source;

    /// A device has a table of all cells of a source.
    #[test]
    fn tables_of_sources_are_in_the_plan_of_memory() {
        let bytes = |source: &str| {
            let text = format!(
                "use std::maxwell::maxwell42\nproblem p {{ scheme maxwell42; domain 32 x 30 x 28; {source}; steps 9 }}"
            );
            let world = FileWorld::beside(Path::new("."));
            let resolved = load(&world, &Source::new("p.torre", text), &Default::default());
            let resolved = resolved.expect("a problem");
            let set = code::kernels(&resolved.scheme).expect("a layout");
            resident_bytes(&resolved.scheme, &resolved.problem, &set)
        };
        let without = bytes("source E.z at (3, 4, 5) += sin(t)");
        let each = SourceCell::BYTES as u64;
        let everywhere = bytes("source E.z += sin(t)") - without;
        assert!(everywhere >= (31 * 29 * 27 - 1) * each, "{everywhere}");
        let half = bytes("source E.z in x = 0..16 += sin(t)") - without;
        assert!(half < everywhere * 2 / 3, "{half} of {everywhere}");
    }

    /// Waves of whole time blocks are sent at a time, and one piece of locked memory where time blocks are not larger.
    #[test]
    fn waves_are_sent_in_pieces_of_locked_memory() {
        let piece = transfer::PIECE as u64;
        // FDTD(4,2) with a box in 768^3 cells.
        assert_eq!(steps_sent(2_400_000, 64, 8), 8);
        for each in [8, 4096, 730_000, 2_400_000, piece, 2 * piece] {
            for steps in [1, 4, 8, 24, 64] {
                let most = steps_of_waves(each, 80 << 30).max(steps);
                let sent = steps_sent(each, most, steps);
                assert!((steps..=most).contains(&sent), "{each}: {sent} of {most}");
                assert!(sent == most || sent.is_multiple_of(steps), "{each}: {sent}");
                assert!(sent == steps || sent * each <= piece, "{each}: {sent}");
            }
        }
    }
}
