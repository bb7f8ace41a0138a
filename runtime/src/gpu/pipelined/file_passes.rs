//! A calculation window over files, or slabs: each pass reads the array of one file and writes the array of another
//! one, and its end is a state from which a run goes on.

use super::Pipelined;
use super::chain::{Chain, Locked};
use super::kept::{KeptPlanes, SlabPlanes};
use super::over_files::{OverFiles, slots};
use super::seam::SeamPlanes;
use super::stream::{Pieces, Stream};
use crate::disk::StateFolder;
use crate::gpu::device::DeviceError;
use crate::host::memory::Memory;
use crate::host::threads::EndsTogether;
use crate::output::checkpoint::probe_name;
use crate::simulation::{Progress, RunError, Value, next_output};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::Builder;
use torre_compiler::pipeline::{Action, Pass, RingPart};
use torre_compiler::problem::OutputKind;

/// Threads that read, and as many that write.
const THREADS: usize = 4;

impl<'a, T: Value> Pipelined<'a, T> {
    /// Goes over the files of a folder, whose current one is the memory of the calculation. Several devices do so in
    /// chains of passes.
    #[inline(never)]
    pub fn over(mut self, folder: StateFolder, piece: u64) -> Result<Self, DeviceError> {
        if self.slabs.is_some() && self.devices.count() > 1 {
            return Err(DeviceError::Failed {
                operation: "opening files",
                message: "slabs over files are for one device".to_owned(),
            });
        }
        let kept = self.kept_planes()?;
        let mut chain = Chain::new(self.footprints.way());
        let layout = &self.calculation.layout;
        if self.units.len() > 1 && layout.has_beside() {
            let first = layout.after_planes() as usize * layout.element_bytes;
            let array = self.calculation.array();
            let mut beside = Locked::new(self.devices.device(0), (array.len() - first) as u64)?;
            beside.bytes().copy_from_slice(&array[first..]);
            chain.beside = Some((beside, first));
        }
        let group = self.footprints.grouping().planes().unsigned_abs() * self.planes.each();
        let slots = slots(group, piece) as usize;
        let stream = || Stream::new(self.devices.device(0), slots, piece).map(Arc::new);
        let range = self.planes.bytes_of_all(self.builder.window());
        let down = self.footprints.way() > 0;
        let pieces = Pieces {
            cut: if down { range.end } else { range.start },
            range,
            each: piece,
            down,
        };
        self.over = Some(OverFiles {
            reading: stream()?,
            writing: stream()?,
            chain,
            pieces: [pieces.clone(), pieces],
            kept,
            folder,
            filling: None,
            stored: None,
            pending: true,
            records: Vec::new(),
        });
        Ok(self)
    }

    /// Whether files are accessed past the system's cache.
    pub fn is_direct(&self) -> bool {
        let over = self.over.as_ref();
        over.is_some_and(|over| over.folder.is_direct())
    }

    pub(super) fn advance_over_files(
        &mut self,
        until: u64,
        progress: &Progress,
    ) -> Result<(), RunError> {
        while self.asked < until {
            // The results of the state before this one were written before the run went on.
            self.commit()?;
            self.pass_over_files(until, progress)?;
            self.take_slices_around();
            if progress.guard.looks() {
                self.look()?;
            }
        }
        Ok(())
    }

    /// Planes that passes keep in memory, around a periodic first axis or by slabs: no pass has more of them than a
    /// pass of the highest time blocks.
    fn kept_planes(&mut self) -> Result<Option<KeptPlanes<'a>>, DeviceError> {
        let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
        let heights = vec![self.towers.steps; self.builder.window().in_flight];
        let (way, each) = (self.footprints.way(), self.planes.each());
        let device = self.devices.device(0);
        if let Some(slabs) = &self.slabs {
            let slabs = self.footprints.slabs(scheme, layout, &heights, slabs.base);
            let slabs = slabs.ok_or(DeviceError::TooLong)?;
            let kept = SlabPlanes::new(device, way, each, &slabs)?;
            return Ok(Some(KeptPlanes::Slabs(kept)));
        }
        let Some(ring) = self.footprints.ring() else {
            return Ok(None);
        };
        let pass = self.footprints.pass(scheme, layout, &heights);
        let ring_part = pass.and_then(|pass| pass.ring_part);
        let ring_part = ring_part.ok_or(DeviceError::TooLong)?;
        let passes = self.units.len();
        let kept = SeamPlanes::new(device, way, ring, each, ring_part, passes)?;
        Ok(Some(KeptPlanes::Seam(kept)))
    }

    /// The passes that go over the files next, one of each device, up to some step.
    fn foresee(&mut self, until: u64) -> Result<Vec<Pass>, DeviceError> {
        let (mut asked, mut passes) = (self.asked, Vec::new());
        while asked < until && passes.len() < self.units.len() {
            let (blocks, step) = self.blocks_from(asked, until)?;
            passes.push(self.pass_of(&blocks).ok_or(DeviceError::TooLong)?);
            asked = step;
        }
        Ok(passes)
    }

    /// Lists the operations of such passes; gives by how many of the planes that go from one to the next a pass is
    /// behind the one before, at most.
    fn planes_between(&self, passes: &[Pass]) -> Result<i64, DeviceError> {
        if self.units.len() == 1 {
            return Ok(1);
        }
        let mut builder = self.builder.clone();
        let (top, first) = (builder.window().planes.hi, builder.passes());
        // By how many planes the planes of each pass lie below planes of the first pass with the same index.
        let mut below = vec![0];
        for pass in passes {
            let last = below.last().copied().unwrap_or(0);
            below.push(last + builder.window().below(pass));
        }
        let mut loaded: BTreeMap<usize, i64> = BTreeMap::new();
        let (mut most, mut begun) = (0, 0);
        loop {
            match passes.get(begun) {
                Some(pass) if builder.may_begin() => {
                    builder.begin(pass.clone());
                    begun += 1;
                }
                None if builder.is_idle() => return Ok(most),
                _ => {}
            }
            let ops = builder.tick().map_err(|room| DeviceError::Failed {
                operation: "laying out the calculation window",
                message: room.to_string(),
            })?;
            for op in ops {
                let pass = (op.pass - first) as usize;
                match op.action {
                    Action::Store { planes } => {
                        let lowest = planes.lo - below[pass];
                        let next = loaded.get(&(pass + 1)).copied();
                        let next = next.unwrap_or(top - below[pass + 1]);
                        most = most.max(next - lowest);
                    }
                    Action::Load { planes } => {
                        loaded.insert(pass, planes.lo - below[pass]);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Begins the chain of passes that goes over the files next, up to some step. Around a ring it begins where the
    /// files do: all chains have the same planes then, and time blocks the same tables.
    fn begin_chain(&mut self, until: u64) -> Result<(), DeviceError> {
        if self.footprints.ring().is_some() {
            self.builder.turn_back();
        }
        let passes = self.foresee(until)?;
        let planes = self.planes_between(&passes)?;
        let first = self.builder.passes();
        let bytes = planes.max(1) as u64 * self.planes.each();
        let device = self.devices.device(0);
        let Some(over) = &mut self.over else {
            return Ok(());
        };
        let numbers = first..first + passes.len() as u64;
        over.chain.begin(device, numbers, bytes)?;
        if let Some(KeptPlanes::Seam(seam)) = &mut over.kept {
            let ring_parts: Option<Vec<RingPart>> =
                passes.iter().map(|pass| pass.ring_part).collect();
            seam.begin(first, &ring_parts.ok_or(DeviceError::TooLong)?);
            over.pieces = seam.pieces(&over.pieces[0]);
        }
        Ok(())
    }

    /// A chain of passes, to its end.
    fn pass_over_files(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        // Slabs of a pass give nothing to another pass.
        if self.slabs.is_none() {
            self.begin_chain(until)?;
        }
        let Some(over) = &mut self.over else {
            return Ok(());
        };
        (over.filling, over.stored) = (None, None);
        let [read_pieces, written_pieces] = over.pieces.clone();
        let [reading, writing] = [&over.reading, &over.writing].map(Arc::clone);
        let (from, to) = (over.folder.file().clone(), over.folder.other()?);
        to.begin_sum();
        reading.begin(read_pieces.count());
        writing.begin(written_pieces.count());
        let passes = over.chain.passes.clone();
        let window = self.builder.window();
        let [first, last] = [passes.start, passes.end.max(1) - 1]
            .map(|pass| self.devices.device(window.device(pass)));
        let next = passes.end;
        let done = std::thread::scope(|scope| {
            // Threads wait for this one, too, and copies for slots.
            let _end = EndsTogether;
            let read = || {
                let _end = EndsTogether;
                reading.read_pieces(first, &from, &read_pieces);
            };
            let write = || {
                let _end = EndsTogether;
                writing.write_pieces(last, &to, &written_pieces);
            };
            let started = (0..THREADS).try_for_each(|_| {
                Builder::new().spawn_scoped(scope, read)?;
                Builder::new().spawn_scoped(scope, write).map(|_| ())
            });
            let started = started.map_err(|error| DeviceError::Failed {
                operation: "starting threads for files",
                message: error.to_string(),
            });
            let done = started.and_then(|()| match &self.slabs {
                Some(_) => self.slabs_of_pass(until, progress),
                None => self.passes_until(until, next, progress),
            });
            let done = done.and_then(|()| self.flush());
            // Copies use slots until they are over, also after a failure.
            let ended = self.end_passes(progress);
            reading.settle(first);
            let done = done.and(ended);
            for stream in [&reading, &writing] {
                match &done {
                    Ok(()) => stream.end(),
                    Err(error) => stream.fail(error.clone().into()),
                }
            }
            done
        });
        // The first of all faults is that of the thread which gave up first.
        let failure = match &done {
            Ok(()) => writing.failure(),
            Err(error) => {
                let given =
                    |failure: &RunError| !matches!(failure, RunError::Device(e) if e == error);
                let failures = [reading.failure(), writing.failure()].into_iter().flatten();
                failures.into_iter().find(given)
            }
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
        done?;
        self.take_state()
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        let Some(over) = &mut self.over else {
            return Ok(());
        };
        let last = over.chain.passes.end.max(1) - 1;
        let number = self.builder.window().device(last);
        let queue = self.units[number].queues.stores;
        over.flush(self.devices.device(number), queue)
    }

    /// Turns to the file that a pass has written; data that no pass moves come from the other one.
    fn take_state(&mut self) -> Result<(), RunError> {
        let Some(over) = &mut self.over else {
            return Ok(());
        };
        let to = over.folder.other()?;
        let layout = &self.calculation.layout;
        let mut map = to.map(layout.bytes())?;
        let stored = over.stored.clone().unwrap_or(0..0);
        let old = self.calculation.array();
        for range in [0..stored.start as usize, stored.end as usize..map.len()] {
            map[range.clone()].copy_from_slice(&old[range]);
        }
        if let Some((beside, first)) = &mut over.chain.beside {
            map[*first..].copy_from_slice(beside.bytes());
        }
        let memory = Memory::of_file(map, layout);
        self.calculation.set_memory(memory);
        self.steps = self.asked;
        self.calculation.set_steps(self.steps);
        let alone = self.units.len() == 1;
        if let Some(beside) = self.units[0].beside.as_mut().filter(|_| alone) {
            beside.fetch(
                self.devices.device(0),
                self.calculation.array_mut(),
                self.steps,
            )?;
        }
        to.add_around(&stored, self.calculation.array());
        let ghosts = self.towers.row_ghosts(self.calculation.scheme);
        over.folder.exchange(ghosts);
        over.pending = true;
        Ok(())
    }

    /// Says in the folder which file has the state, once all results up to it are written.
    fn commit(&mut self) -> Result<(), RunError> {
        let Some(over) = &mut self.over else {
            return Ok(());
        };
        if !over.pending {
            return Ok(());
        }
        if !self.pictures.is_empty() {
            let error = DeviceError::Failed {
                operation: "going on with a calculation window",
                message: "slices were not taken".to_owned(),
            };
            return Err(error.into());
        }
        let probes: Vec<(String, Vec<f64>)> = self
            .probes
            .iter()
            .enumerate()
            .map(|(n, record)| (probe_name(n), record.clone()))
            .collect();
        let records: Vec<&(String, Vec<f64>)> = probes.iter().chain(&over.records).collect();
        over.folder.commit(self.steps, &records)?;
        over.pending = false;
        Ok(())
    }

    /// All results up to now are written, and `records` is recorded beside probes.
    pub(super) fn confirm_files(
        &mut self,
        records: Vec<(String, Vec<f64>)>,
    ) -> Result<(), RunError> {
        if let Some(over) = &mut self.over {
            over.records = records;
        }
        self.commit()
    }

    /// The step at which a run pauses next: slices of a pass are written before its end is a state.
    pub(super) fn next_state_in_files(&self) -> u64 {
        let problem = self.calculation.problem;
        let mut outputs = problem.outputs.iter();
        match outputs.any(|output| matches!(output.kind, OutputKind::Slice { .. })) {
            true => {
                let until = next_output(problem, self.steps);
                // Both buffers of slabs have a pass together.
                let passes = self.slabs.as_ref().map_or(self.units.len(), |_| 1);
                (0..passes).fold(self.steps, |step, _| self.end_of_pass(step, until))
            }
            false => u64::MAX,
        }
    }
}
