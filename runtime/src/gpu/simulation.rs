//! A calculation whose values are in a device's memory.
//!
//! The host keeps the array, too: it fills it at the start, and gets it back when values are to be written or compared. While steps run,
//! only waves of sources go to the device, and records of probes and slices come back, many steps at a time.

use super::apart::Apart;
use super::around::{Sources, slice_place};
use super::code::{DeviceCode, DeviceProgram, blocks};
use super::device::{Address, Argument, Device, DeviceError, Mark, Threads};
use super::towers::{Bands, TowerProgram};
use crate::host::hooks::{Picture, slice_shape};
use crate::host::{Calculation, Progress};
use crate::run::{RunError, Simulation, Value, cell_stages_per_step};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use torre_compiler::backend::nvptx::service;
use torre_compiler::kernel::KernelSet;
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::real::Real;
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_compiler::statics::Files;

/// Bytes of waves, and of probes' records, that are kept on the device.
const RECORD_BYTES: u64 = 8 << 20;

/// Steps of which waves and records are kept, where there is room, even if a problem has fewer.
const STEPS_KEPT: u64 = 1 << 10;

/// Bytes of slices that wait on the device, if a slice is not larger.
const PICTURE_BYTES: u64 = 64 << 20;

/// Cell-steps between two looks at how far the device has come.
const CELLS_BETWEEN_MARKS: u64 = 1 << 26;

/// Marks that may lie ahead of what the device has done.
const MARKS_AHEAD: usize = 16;

/// A calculation on a device.
pub struct OnDevice<'a, T> {
    calculation: Calculation<'a, T>,
    files: &'a dyn Files,
    device: &'a dyn Device,
    code: DeviceCode,
    bands: Option<Bands>,
    apart: Apart,
    array: Address,
    steps: u64,
    sources: Sources,
    /// Place and capacity in steps.
    waves: (Address, u64),
    /// Steps whose waves are on the device.
    waves_of: std::ops::Range<u64>,
    /// Place and capacity in steps; what is there is of the last steps.
    probes: (Address, u64),
    probes_waiting: u64,
    records: Vec<Vec<f64>>,
    /// Place and capacity in bytes.
    planes: (Address, u64),
    planes_waiting: Vec<Waiting>,
    pictures: Vec<Picture>,
}

/// A slice that waits on the device.
struct Waiting {
    output: usize,
    step: u64,
    values: u64,
}

impl<'a, T: Value> OnDevice<'a, T> {
    /// Takes a calculation to a device, at the step where it is.
    pub fn new(
        calculation: Calculation<'a, T>,
        files: &'a dyn Files,
        device: &'a dyn Device,
        program: DeviceProgram<'_>,
    ) -> Result<Self, DeviceError> {
        let (scheme, problem) = (calculation.scheme, calculation.problem);
        let set = program.set;
        assert_eq!(calculation.layout, set.layout, "kernels for this layout");
        let needed = Self::device_bytes(scheme, problem, set);
        let available = device.free_memory()?;
        if needed > available {
            return Err(DeviceError::Memory { needed, available });
        }
        let array = device.take(set.layout.bytes())?;
        device.write(array, calculation.array())?;
        let sources = Sources::new(scheme, problem, files);
        let code = DeviceCode::new(device, program, scheme, problem, &sources, array)?;
        let per_step = |count: usize, bytes: u64| {
            let bytes = count as u64 * bytes;
            let steps = (RECORD_BYTES / bytes.max(1)).clamp(1, problem.steps.max(STEPS_KEPT));
            Ok::<_, DeviceError>((device.take(bytes * steps)?, steps))
        };
        let waves = per_step(sources.waves.len(), 8)?;
        let probes = per_step(problem.probes.len(), T::PRECISION.bytes() as u64)?;
        let plane_bytes = Self::plane_bytes(scheme, problem, set);
        let planes = (device.take(plane_bytes)?, plane_bytes);
        let records = (0..problem.probes.len())
            .map(|i| calculation.probe(i))
            .collect();
        Ok(Self {
            steps: calculation.steps(),
            calculation,
            files,
            device,
            code,
            bands: None,
            apart: Apart::new(problem),
            array,
            sources,
            waves,
            waves_of: 0..0,
            probes,
            probes_waiting: 0,
            records,
            planes,
            planes_waiting: Vec::new(),
            pictures: Vec::new(),
        })
    }

    /// Advances by towers where nothing else happens in every step; `program` is that of the same scheme and layout.
    pub fn by_towers(mut self, program: &TowerProgram) -> Result<Self, DeviceError> {
        self.bands = self.bands(program)?;
        Ok(self)
    }

    /// Whether it advances by towers, but for steps that bands do not reach.
    pub fn goes_by_towers(&self) -> bool {
        self.bands.is_some()
    }

    /// Towers made ready, to be exchanged for others; `None` where they cannot do what the problem asks for.
    pub fn bands(&self, program: &TowerProgram) -> Result<Option<Bands>, DeviceError> {
        if !self.apart.always.is_empty() {
            return Ok(None);
        }
        let hooks = self.sources.hooks(self.problem());
        let layout = &self.calculation.layout;
        Bands::new(self.device, program, self.scheme(), layout, hooks)
    }

    /// Advances by other towers, or by none, from here on; leaves those that it went by.
    pub fn exchange(&mut self, bands: &mut Option<Bands>) {
        std::mem::swap(&mut self.bands, bands);
    }

    /// Runs a band of towers if nothing keeps its steps apart; gives their number.
    fn band(&mut self, until: u64) -> Result<Option<u64>, DeviceError> {
        let scheme = self.calculation.scheme;
        let Some(bands) = &mut self.bands else {
            return Ok(None);
        };
        let room = self.apart.room(self.steps, until);
        let most = |count: usize, steps: u64| if count == 0 { u64::MAX } else { steps };
        let room = room
            .min(most(self.sources.waves.len(), self.waves.1))
            .min(most(self.records.len(), self.probes.1));
        let Some(steps) = bands.heights.next(self.steps, room) else {
            return Ok(None);
        };
        if !bands.has(self.device, scheme, &self.calculation.layout, steps)? {
            return Ok(None);
        }
        let waves = self.waves(until, steps)?;
        let records = self.room_for_probes(steps)?;
        if self.bands.as_ref().is_some_and(|bands| bands.leaves_out) {
            let each = self.records.len() * T::PRECISION.bytes();
            for n in 0..steps {
                self.gather(self.steps + n, records.offset((n * each as u64) as i64))?;
            }
        }
        let Some(bands) = &mut self.bands else {
            return Ok(None);
        };
        bands.run(self.device, steps, self.array, waves, records)?;
        self.probes_waiting += steps;
        Ok(Some(steps))
    }

    /// What the device's memory must hold, tables aside.
    pub fn device_bytes(scheme: &Scheme, problem: &Problem, set: &KernelSet) -> u64 {
        let planes = Self::plane_bytes(scheme, problem, set);
        let around = planes.saturating_add(2 * RECORD_BYTES);
        set.layout.bytes().saturating_add(around)
    }

    /// Bytes for slices on the device: some of the largest one.
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

    /// Starts of kernels in a step.
    pub fn starts_per_step(&self) -> usize {
        self.code.starts_per_step()
    }

    /// Bytes that the array takes on the device.
    pub fn memory_bytes(&self) -> u64 {
        self.calculation.memory_bytes()
    }

    fn scheme(&self) -> &'a Scheme {
        self.calculation.scheme
    }

    fn problem(&self) -> &'a Problem {
        self.calculation.problem
    }

    fn advance(&mut self, until: u64, progress: &Progress) -> Result<(), DeviceError> {
        let per_step = cell_stages_per_step(self.scheme());
        let between = (CELLS_BETWEEN_MARKS / per_step.max(1)).max(1);
        let mut marks: VecDeque<(Mark, u64)> = VecDeque::new();
        let mut since = 0;
        while self.steps < until {
            let steps = match self.band(until)? {
                Some(steps) => steps,
                None => {
                    let waves = self.waves(until, 1)?;
                    self.code.step(self.device, self.steps, waves)?;
                    self.record_probes()?;
                    1
                }
            };
            self.steps += steps;
            self.record_slices()?;
            since += steps;
            if since >= between {
                marks.push_back((self.device.mark()?, since));
                since = 0;
            }
            if marks.len() > MARKS_AHEAD {
                self.pass(&mut marks, per_step, progress)?;
            }
        }
        marks.push_back((self.device.mark()?, since));
        while !marks.is_empty() {
            self.pass(&mut marks, per_step, progress)?;
        }
        self.collect()
    }

    /// Waits for the oldest mark.
    fn pass(
        &self,
        marks: &mut VecDeque<(Mark, u64)>,
        per_step: u64,
        progress: &Progress,
    ) -> Result<(), DeviceError> {
        if let Some((mark, steps)) = marks.pop_front() {
            self.device.reach(mark)?;
            progress.done.fetch_add(steps * per_step, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Where the waves of the next steps lie: so many of them, for which there is room.
    fn waves(&mut self, until: u64, steps: u64) -> Result<Address, DeviceError> {
        let (place, most) = self.waves;
        let each = self.sources.waves.len() as u64 * 8;
        if each == 0 {
            return Ok(place);
        }
        let known = self.waves_of.contains(&self.steps);
        if !known || self.steps + steps > self.waves_of.end {
            let last = until.min(self.steps + most);
            let mut bytes = Vec::with_capacity(((last - self.steps) * each) as usize);
            for step in self.steps..last {
                let (scheme, problem) = (self.scheme(), self.problem());
                for wave in self.sources.waves(scheme, problem, self.files, step) {
                    bytes.extend(wave.to_le_bytes());
                }
            }
            self.device.write(place, &bytes)?;
            self.waves_of = self.steps..last;
        }
        Ok(place.offset(((self.steps - self.waves_of.start) * each) as i64))
    }

    /// Where probes record so many steps, for which there is room after others have been collected.
    fn room_for_probes(&mut self, steps: u64) -> Result<Address, DeviceError> {
        if self.probes_waiting + steps > self.probes.1 {
            self.collect_probes()?;
        }
        let bytes = (self.records.len() * T::PRECISION.bytes()) as u64;
        Ok(self.probes.0.offset((self.probes_waiting * bytes) as i64))
    }

    /// Probes after the updates of a step.
    fn record_probes(&mut self) -> Result<(), DeviceError> {
        let to = self.room_for_probes(1)?;
        self.gather(self.steps, to)?;
        self.probes_waiting += 1;
        Ok(())
    }

    /// Records what probes see now as what they see after a step (from 0).
    fn gather(&self, step: u64, to: Address) -> Result<(), DeviceError> {
        let count = self.records.len();
        if count == 0 {
            return Ok(());
        }
        let phase = (step % self.code.probes.len() as u64) as usize;
        let arguments = [
            Argument::Place(self.array),
            Argument::Place(self.code.probes[phase]),
            Argument::Word(count as i32),
            Argument::Place(to),
        ];
        let threads = Threads {
            blocks: [blocks(count as u64, service::THREADS)?, 1, 1],
            threads: [service::THREADS, 1, 1],
            shared: 0,
        };
        // SAFETY: the parameters are those of the kernel; the table's places lie in the array, and a record fits in what was taken.
        unsafe {
            self.device
                .start(self.code.services.gather, threads, &arguments)
        }
    }

    /// Slices that are due.
    fn record_slices(&mut self) -> Result<(), DeviceError> {
        for output in 0..self.problem().outputs.len() {
            let due = self
                .steps
                .is_multiple_of(self.problem().outputs[output].every);
            if due {
                self.record_slice(output)?;
            }
        }
        Ok(())
    }

    fn record_slice(&mut self, output: usize) -> Result<(), DeviceError> {
        let layout = &self.calculation.layout;
        let place = slice_place(self.scheme(), self.problem(), layout, output, self.steps);
        let Some(place) = place else { return Ok(()) };
        let each = T::PRECISION.bytes() as u64;
        if (self.planes_bytes() + place.count() * each) > self.planes.1 {
            self.collect_planes()?;
        }
        let to = self.planes.0.offset(self.planes_bytes() as i64);
        let word = |n: i64| i32::try_from(n).map_err(|_| DeviceError::TooLong);
        let arguments = [
            Argument::Place(self.array.offset(place.first)),
            Argument::Long(place.between_rows),
            Argument::Long(place.between_values),
            Argument::Word(word(place.rows)?),
            Argument::Word(word(place.values)?),
            Argument::Place(to),
        ];
        let threads = Threads {
            blocks: [
                blocks(place.values.max(1) as u64, service::THREADS)?,
                place.rows.clamp(1, 65535) as u32,
                1,
            ],
            threads: [service::THREADS, 1, 1],
            shared: 0,
        };
        // SAFETY: the parameters are those of the kernel; the plane lies in the array, and there is room for it.
        unsafe {
            self.device
                .start(self.code.services.gather_plane, threads, &arguments)
        }?;
        self.planes_waiting.push(Waiting {
            output,
            step: self.steps,
            values: place.count(),
        });
        Ok(())
    }

    /// Bytes of the slices that wait.
    fn planes_bytes(&self) -> u64 {
        let each = T::PRECISION.bytes() as u64;
        self.planes_waiting.iter().map(|w| w.values * each).sum()
    }

    /// Gets all records.
    fn collect(&mut self) -> Result<(), DeviceError> {
        self.collect_probes()?;
        self.collect_planes()
    }

    fn read(&self, from: Address, values: u64) -> Result<Vec<f64>, DeviceError> {
        let mut raw = vec![0; values as usize * T::PRECISION.bytes()];
        self.device.read(from, &mut raw)?;
        let mut numbers = vec![T::default(); values as usize];
        T::decode(&raw, &mut numbers);
        Ok(numbers.into_iter().map(Real::to_f64).collect())
    }

    fn collect_probes(&mut self) -> Result<(), DeviceError> {
        let count = self.records.len();
        let values = self.read(self.probes.0, self.probes_waiting * count as u64)?;
        for step in values.chunks_exact(count.max(1)) {
            for (record, value) in self.records.iter_mut().zip(step) {
                record.push(*value);
            }
        }
        self.probes_waiting = 0;
        Ok(())
    }

    fn collect_planes(&mut self) -> Result<(), DeviceError> {
        let each = T::PRECISION.bytes() as u64;
        let mut from = self.planes.0;
        for waiting in std::mem::take(&mut self.planes_waiting) {
            let component = self.problem().outputs[waiting.output].component;
            let OutputKind::Slice { axis, .. } = self.problem().outputs[waiting.output].kind else {
                continue;
            };
            self.pictures.push(Picture {
                output: waiting.output,
                step: waiting.step,
                shape: slice_shape(self.scheme(), component, axis),
                values: self.read(from, waiting.values)?,
            });
            from = from.offset((waiting.values * each) as i64);
        }
        Ok(())
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

    fn next_pause(&self) -> u64 {
        // Slices are recorded while steps run.
        crate::run::next_volume(self.calculation.problem, self.steps)
    }

    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        Ok(self.advance(until, progress)?)
    }

    fn fetch(&mut self) -> Result<(), RunError> {
        if self.calculation.steps() != self.steps {
            self.device.read(self.array, self.calculation.array_mut())?;
            self.calculation.set_steps(self.steps);
        }
        Ok(())
    }

    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        self.calculation.aged_row(id, age, x, y)
    }

    fn probe(&self, index: usize) -> Vec<f64> {
        self.records[index].clone()
    }

    fn take_pictures(&mut self) -> Vec<Picture> {
        let mut pictures = std::mem::take(&mut self.pictures);
        pictures.sort_by_key(|p| (p.step, p.output));
        pictures
    }
}
