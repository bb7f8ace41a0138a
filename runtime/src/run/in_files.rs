//! A calculation whose array is in files, advanced by the processor: each pass sweeps over the planes of one file,
//! which come to memory and leave it again, and writes the planes of another one.

use super::sweep_plan::{Planes, SLACK, SweepPlan};
use crate::disk::{ArrayFile, RowGhosts, StateFolder};
use crate::host::Calculation;
use crate::host::memory::Memory;
use crate::host::sweep::{PlanesOnDemand, SweepOver};
use crate::host::threads::EndsTogether;
use crate::output::{FileError, checkpoint::probe_name};
use crate::simulation::{NoThreads, Picture, Progress, RunError, SetupError, Simulation, Value};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use torre_compiler::kernel::{Code, KernelSet};
use torre_compiler::lattice::PerAxis;
use torre_compiler::problem::Problem;
use torre_compiler::scheme::{ComponentId, Scheme, StateId};

/// How far threads are, in bytes of the array.
#[derive(Debug, Default)]
struct Front {
    /// Read up to here; wanted up to here.
    there: u64,
    wanted: u64,
    /// Final up to here; written up to here.
    finished: u64,
    written: u64,
    ended: bool,
    failed: Option<FileError>,
}

/// The planes of a pass.
struct Pass<'a> {
    planes: Planes,
    piece: u64,
    files: [&'a ArrayFile; 2],
    array: Array,
    front: Mutex<Front>,
    changed: Condvar,
}

/// Where the array is.
#[derive(Clone, Copy)]
struct Array(*mut u8);

// SAFETY: a plain address; the fronts of a pass say which thread may access the memory there.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Pass<'_> {
    fn front(&self) -> MutexGuard<'_, Front> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, front: MutexGuard<'a, Front>) -> MutexGuard<'a, Front> {
        let front = self.changed.wait(front);
        front.unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Front)) {
        change(&mut self.front());
        self.changed.notify_all();
    }

    /// Bytes of the array.
    ///
    /// # Safety
    /// No other thread touches them.
    #[expect(clippy::mut_from_ref, reason = "fronts say whose bytes are")]
    unsafe fn bytes(&self, range: Range<u64>) -> &mut [u8] {
        let length = (range.end - range.start) as usize;
        // SAFETY: the range lies in the array, whose memory is there for the whole pass.
        unsafe { std::slice::from_raw_parts_mut(self.array.0.add(range.start as usize), length) }
    }

    /// Pieces from one byte to another, which is no inner one of a piece unless it is the end of the file.
    fn pieces(&self, from: u64, to: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let piece = self.piece;
        (from / piece..to.div_ceil(piece)).map(move |n| n * piece..((n + 1) * piece).min(to))
    }

    /// From where on everything stays in memory for the whole pass.
    fn tail(&self) -> u64 {
        self.planes.end / self.piece * self.piece
    }

    /// Reads the data that stay in memory, before anything runs.
    fn read_tail(&self) -> Result<(), FileError> {
        for piece in self.pieces(self.tail(), self.files[0].bytes()) {
            // SAFETY: no thread runs yet.
            self.files[0].read(piece.start, unsafe { self.bytes(piece) })?;
        }
        Ok(())
    }

    /// The thread that reads.
    fn read(&self) {
        for piece in self.pieces(0, self.tail()) {
            let mut front = self.front();
            let ahead = SLACK * self.piece;
            while !front.ended && piece.start > front.wanted + ahead {
                front = self.wait(front);
            }
            if front.ended {
                return;
            }
            drop(front);
            let end = piece.end;
            // SAFETY: no thread touches the piece before it is said to be there.
            match self.files[0].read(piece.start, unsafe { self.bytes(piece) }) {
                Ok(()) => self.change(|front| front.there = end),
                Err(error) => return self.fail(error),
            }
        }
        self.change(|front| front.there = u64::MAX);
    }

    /// The thread that writes.
    fn write(&self) {
        for piece in self.pieces(0, self.tail()) {
            let mut front = self.front();
            while !front.ended && front.finished < piece.end {
                front = self.wait(front);
            }
            if front.finished < piece.end {
                return;
            }
            drop(front);
            let end = piece.end;
            // SAFETY: the piece is final, and not needed any more.
            let bytes = unsafe { self.bytes(piece.clone()) };
            if let Err(error) = self.files[1].write_summed(piece.start, bytes) {
                return self.fail(error);
            }
            give_back(bytes);
            self.change(|front| front.written = end);
        }
    }

    /// Writes the data that have stayed in memory, after everything has run.
    fn write_tail(&self) -> Result<(), FileError> {
        for piece in self.pieces(self.tail(), self.files[1].bytes()) {
            // SAFETY: threads have ended.
            self.files[1].write_summed(piece.start, unsafe { self.bytes(piece) })?;
        }
        Ok(())
    }

    fn fail(&self, error: FileError) {
        self.change(|front| {
            front.failed.get_or_insert(error);
            front.ended = true;
        });
    }

    /// Runs a sweep, which says whether it came to its end, beside the threads that read and write.
    fn run(&self, sweep: impl FnOnce() -> Result<bool, NoThreads>) -> Result<bool, NoThreads> {
        std::thread::scope(|scope| {
            let _end = End(self);
            Builder::new()
                .spawn_scoped(scope, || {
                    let _end = EndsTogether;
                    self.read();
                })
                .and_then(|_| {
                    Builder::new().spawn_scoped(scope, || {
                        let _end = EndsTogether;
                        self.write();
                    })
                })
                .map_err(|error| NoThreads {
                    wanted: 2,
                    started: 0,
                    error,
                })?;
            let ran = sweep();
            if matches!(ran, Ok(true)) {
                self.change(|front| front.finished = u64::MAX);
            }
            ran
        })
    }
}

/// Ends the threads of a pass, also where the sweep panics: the end of the process would wait for them.
struct End<'a>(&'a Pass<'a>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.change(|front| front.ended = true);
    }
}

impl PlanesOnDemand for Pass<'_> {
    fn need(&self, below: i64) -> bool {
        let wanted = self.planes.below(below).min(self.tail());
        self.change(|front| front.wanted = wanted);
        let mut front = self.front();
        let behind = |front: &Front| {
            let finished = front.finished.min(self.tail());
            finished.saturating_sub(front.written) > SLACK * self.piece
        };
        while !front.ended && (front.there < wanted || behind(&front)) {
            front = self.wait(front);
        }
        !front.ended
    }

    fn done(&self, below: i64) {
        // Ghosts below the first plane go with it.
        if below > 0 {
            let finished = self.planes.below(below);
            self.change(|front| front.finished = front.finished.max(finished));
        }
    }
}

/// Gives memory back to the system, which has zeros when it is used again.
#[cfg(target_os = "linux")]
fn give_back(bytes: &mut [u8]) {
    use rustix::mm::{Advice, madvise};
    let place = bytes.as_mut_ptr().cast();
    // SAFETY: whole pages of private memory, whose content is not needed. A failure here only takes more memory.
    let _ = unsafe { madvise(place, bytes.len(), Advice::LinuxDontNeed) };
}

#[cfg(not(target_os = "linux"))]
fn give_back(_: &mut [u8]) {}

/// A calculation in files.
pub struct InFiles<'a, T> {
    pub calculation: Calculation<'a, T>,
    pub set: &'a KernelSet,
    pub code: &'a dyn Code,
    pub threads: usize,
    pub plan: SweepPlan,
    pub folder: StateFolder,
    /// Records beside probes, as they were when results were written last.
    pub records: Vec<(String, Vec<f64>)>,
}

impl<T: Value> InFiles<'_, T> {
    /// Makes the values of the current step the state of the folder.
    fn commit(&mut self) -> Result<(), RunError> {
        let problem = self.calculation.problem;
        let probes = 0..problem.probes.len();
        let probes = probes.map(|n| (probe_name(n), self.calculation.probe(n)));
        let probes: Vec<(String, Vec<f64>)> = probes.collect();
        let all: Vec<&(String, Vec<f64>)> = probes.iter().chain(&self.records).collect();
        Ok(self.folder.commit(self.calculation.steps(), &all)?)
    }

    /// One pass: to a step, or as far as it goes.
    fn pass(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        let from = self.calculation.steps();
        let until = until.min(from.saturating_add(self.plan.steps));
        let until = self.calculation.prepare(until);
        let (old, new) = (self.folder.file().clone(), self.folder.other()?);
        new.begin_sum();
        let layout = self.calculation.layout.clone();
        let memory = Memory::reserved(old.bytes(), &layout);
        let memory = memory.map_err(|error| SetupError::Memory {
            bytes: layout.bytes(),
            error,
        })?;
        self.calculation.set_memory(memory);
        let pass = Pass {
            planes: Planes::new(&layout),
            piece: self.plan.piece,
            files: [&old, &new],
            array: Array(self.calculation.array_mut().as_mut_ptr()),
            front: Mutex::default(),
            changed: Condvar::new(),
        };
        pass.read_tail()?;
        let (set, code, threads) = (self.set, self.code, self.threads);
        let calculation = &mut self.calculation;
        let ran = pass.run(|| {
            let over = SweepOver {
                sweep: &self.plan.sweep,
                planes: &pass,
                threads,
            };
            calculation.run_sweep(set, code, over, until, progress)
        });
        if let Some(error) = pass.front().failed.take() {
            return Err(error.into());
        }
        if !ran? {
            // Values are none: the run ends, and the state is that before the pass.
            let map = old.map(layout.bytes())?;
            self.calculation.set_memory(Memory::of_file(map, &layout));
            return Ok(());
        }
        pass.write_tail()?;
        let map = new.map(layout.bytes())?;
        self.calculation.set_memory(Memory::of_file(map, &layout));
        // Kernels of whole stages make all ghosts.
        self.folder.exchange(RowGhosts::InMemory);
        Ok(())
    }
}

impl<T: Value> Simulation<T> for InFiles<'_, T> {
    fn scheme(&self) -> &Scheme {
        self.calculation.scheme
    }

    fn problem(&self) -> &Problem {
        self.calculation.problem
    }

    fn steps(&self) -> u64 {
        self.calculation.steps()
    }

    #[inline(never)]
    fn next_pause(&self) -> u64 {
        self.calculation.next_pause()
    }

    /// Results of a pass are written before its end is a state.
    #[inline(never)]
    fn next_state(&self) -> u64 {
        let until = self.steps().saturating_add(self.plan.steps);
        self.calculation.prepared_until(until)
    }

    #[inline(never)]
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        while self.steps() < until {
            self.pass(until, progress)?;
            if let Some(found) = progress.guard.found() {
                return Err(RunError::BlowUp(found));
            }
            if self.steps() < until {
                // The next pass writes over the state before this one.
                self.commit()?;
            }
        }
        Ok(())
    }

    fn keeps_states(&self) -> bool {
        true
    }

    #[inline(never)]
    fn confirm_state(&mut self, records: Vec<(String, Vec<f64>)>) -> Result<(), RunError> {
        self.records = records;
        self.commit()
    }

    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        self.calculation.aged_row(id, age, x, y)
    }

    fn state(&self, id: StateId, at: PerAxis<i64>) -> T {
        self.calculation.state_value(id, at).unwrap_or_default()
    }

    #[inline(never)]
    fn probe(&self, index: usize) -> Vec<f64> {
        self.calculation.probe(index)
    }

    #[inline(never)]
    fn take_pictures(&mut self) -> Vec<Picture> {
        self.calculation.take_pictures()
    }

    fn steps_recorded(&self) -> u64 {
        self.calculation.recorded()
    }

    fn take_complete_pictures(&mut self) -> Vec<Picture> {
        self.calculation.take_complete_pictures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::BLOCK;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    #[test]
    fn a_panic_of_the_sweep_ends_the_pass() {
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let folder = tempfile::tempdir().unwrap();
            let bytes = 16 * BLOCK;
            let create = |name| ArrayFile::create(&folder.path().join(name), bytes).unwrap();
            let (old, new) = (create("old"), create("new"));
            let mut memory = memmap2::MmapMut::map_anon(bytes as usize).unwrap();
            let planes = Planes {
                start: 0,
                each: BLOCK,
                ghosts: 0,
                count: 16,
                end: bytes,
                all: bytes,
            };
            let pass = Pass {
                planes,
                piece: BLOCK,
                files: [&old, &new],
                array: Array(memory.as_mut_ptr()),
                front: Mutex::default(),
                changed: Condvar::new(),
            };
            let ended = catch_unwind(AssertUnwindSafe(|| pass.run(|| panic!("a defect"))));
            send.send(ended.is_err()).unwrap();
        });
        let ended = receive.recv_timeout(Duration::from_secs(60));
        assert_eq!(ended, Ok(true));
    }
}
