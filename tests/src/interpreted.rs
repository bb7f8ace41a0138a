//! GPUs that are interpreted: runs on them are runs of the PTX that real ones get.

mod as_device;
mod queues;

use crate::circle::Circle;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use torre_compiler::backend::gpu::abi::Argument;
use torre_compiler::testing::Rng;
use torre_ptx::{Buffer, Device, Module, Options, Param};
use torre_runtime::gpu::device::{self, Address, DeviceError, Facts, Function, Mark, Reading};
use torre_runtime::gpu::queues::{ByteLines, Signal, WorkQueue};

/// A small GPU of compute capability 9.0.
#[derive(Debug)]
pub struct Interpreted {
    facts: Facts,
    machine: Arc<Mutex<Machine>>,
    /// Among the devices of the machine.
    number: usize,
}

/// Devices whose queues take turns.
#[derive(Debug, Default)]
struct Machine {
    devices: Vec<State>,
    queued: Queued,
}

/// Several such devices, which copy to each other.
#[derive(Debug)]
pub struct InterpretedPeers {
    devices: Vec<Interpreted>,
}

/// Launches of a function in which races are looked for: the first ones, and some of the later ones. That takes half
/// of the time of a launch, and later launches run the same code at other times.
const ALL_CHECKED: u64 = 4;
const LATER_CHECKED: u64 = 5;

#[derive(Debug, Default)]
struct State {
    device: Device,
    buffers: Vec<Buffer>,
    /// The circular ones of them.
    circles: Vec<Circle>,
    modules: Vec<Module>,
    functions: Vec<(usize, String)>,
    launches: u64,
    /// Of each function.
    started: Vec<u64>,
    /// No kernel can be started after this number of launches.
    last: Option<u64>,
    /// Readings that have begun: from where, and how many bytes. They are done as late as possible.
    readings: BTreeMap<u64, (Address, u64)>,
    readings_begun: u64,
    /// The most that were under way at a time.
    readings_together: usize,
    /// Bytes that the host has read, but for copies of queues.
    bytes_read: u64,
    /// Where locked parts of the host's memory begin, and how many there can be.
    locked: BTreeSet<usize>,
    most_locked: Option<usize>,
}

/// Queues of work. Their operations run when a thread waits, one after the other, from any queue whose next operation
/// is ready.
#[derive(Debug, Default)]
struct Queued {
    /// Each with the number of its device. The devices' own ones are the first.
    queues: Vec<(usize, VecDeque<Work>)>,
    signals: u64,
    /// Signals that were not forgotten.
    known: BTreeSet<u64>,
    arrived: BTreeSet<u64>,
    /// When marks were met.
    marks: BTreeMap<u64, Instant>,
    marks_made: u64,
    /// How often the next piece of work was another queue's than the one before.
    changes: u64,
    seed: u64,
}

/// A piece of work of a queue.
#[derive(Debug)]
enum Work {
    Start(Start),
    Write(Address, Vec<u8>),
    Upload(Host, Address, u64),
    Download(Address, Host, u64),
    Copy(Address, Address, u64),
    /// To another device.
    Send(usize, [Address; 2], ByteLines),
    Signal(u64),
    Follow(u64),
    Mark(u64),
}

/// A kernel that is started.
#[derive(Debug)]
struct Start {
    function: Function,
    threads: device::Threads,
    arguments: Vec<Argument>,
    kind: LaunchKind,
}

/// A place in the host's memory.
#[derive(Clone, Copy, Debug)]
struct Host(*mut u8);

// SAFETY: a plain address; the caller of copies keeps others from the memory that they access until they are done.
unsafe impl Send for Host {}

/// Buffers of a device among peers, about, before it reaches addresses of the next one.
const BUFFERS: usize = 256;

/// Bytes in multiples of which it maps memory, so few that planes are no multiple of them, nor they of planes.
pub const MAPPING: u64 = 3 << 10;

/// Bytes of the memory that it claims to have.
const MEMORY: u64 = 1 << 30;

impl Default for Interpreted {
    fn default() -> Self {
        Self::new()
    }
}

impl Interpreted {
    pub fn new() -> Interpreted {
        Interpreted::with_memory(MEMORY)
    }

    /// A device with `memory` bytes of memory.
    pub fn with_memory(memory: u64) -> Interpreted {
        Interpreted {
            facts: Facts {
                name: "interpreter".to_owned(),
                capability: 90,
                cuda: 12080,
                multiprocessors: 2,
                threads: 64,
                clock: 1_000_000,
                memory,
                l2: 1 << 20,
                l2_partition: vec![0, 1],
                mapping: Some(MAPPING),
            },
            machine: Arc::new(Mutex::new(Machine::new(vec![State::default()]))),
            number: 0,
        }
    }

    /// The most readings that were under way at a time.
    pub fn readings_together(&self) -> usize {
        self.machine().devices[self.number].readings_together
    }

    /// Bytes that the host has read, but for copies of queues.
    pub fn bytes_read(&self) -> u64 {
        self.machine().devices[self.number].bytes_read
    }

    /// Lets no kernel be started after `launches` launches.
    pub fn fail_after(&self, launches: u64) {
        self.machine().devices[self.number].last = Some(launches);
    }

    /// Lets no more than some number of parts of the host's memory be locked together.
    pub fn lock_at_most(&self, parts: usize) {
        self.with(|own| own.most_locked = Some(parts));
    }

    /// Parts of the host's memory that are locked.
    pub fn locked(&self) -> usize {
        self.with(|own| own.locked.len())
    }

    /// Lets queues take their turns in another order.
    pub fn reseed(&self, seed: u64) {
        self.machine().queued.seed = seed;
    }

    /// How often queues took turns.
    pub fn changes(&self) -> u64 {
        self.machine().queued.changes
    }

    /// Signals that were not forgotten.
    pub fn signals(&self) -> usize {
        self.machine().queued.known.len()
    }

    /// Refuses a signal that was forgotten.
    fn expect(&self, signal: Signal) -> Result<(), DeviceError> {
        match self.machine().queued.known.contains(&signal.0) {
            true => Ok(()),
            false => Err(failed("waiting", "the signal was forgotten")),
        }
    }

    /// Kernels that were started.
    pub fn launches(&self) -> u64 {
        self.machine().devices[self.number].launches
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        let machine = self.machine.lock();
        machine.unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the state of this device.
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.machine().devices[self.number])
    }

    /// Waits for the work of the device's own queue.
    fn wait(&self) -> Result<(), DeviceError> {
        let own = self.number;
        let mut machine = self.machine();
        let asked = machine.queued.signals;
        machine.work_until(asked, |queued| queued.queues[own].1.is_empty())
    }

    /// Starts a kernel in the device's own queue.
    fn ask_to_start(
        &self,
        function: Function,
        threads: device::Threads,
        arguments: &[Argument],
        kind: LaunchKind,
    ) -> Result<(), DeviceError> {
        let own = self.number;
        let asked = {
            let machine = self.machine();
            let (_, queue) = &machine.queued.queues[own];
            let starts = queue.iter().filter(|work| matches!(work, Work::Start(_)));
            machine.devices[own].launches + starts.count() as u64
        };
        self.with(|own| own.may_start(asked))?;
        let arguments = arguments.to_vec();
        let start = Start {
            function,
            threads,
            arguments,
            kind,
        };
        self.ask(WorkQueue::OWN, Work::Start(start))
    }
}

impl InterpretedPeers {
    /// `count` devices. None has memory where another one has some.
    pub fn new(count: usize) -> InterpretedPeers {
        let one = Interpreted::new();
        let mut devices = Vec::new();
        let mut apart = 0;
        for _ in 0..count {
            let mut state = State::default();
            // Each buffer takes addresses of its own.
            for _ in 0..apart {
                state.device.upload_bytes(vec![0]);
            }
            apart += BUFFERS;
            devices.push(state);
        }
        let machine = Arc::new(Mutex::new(Machine::new(devices)));
        let device = |number| Interpreted {
            facts: one.facts.clone(),
            machine: machine.clone(),
            number,
        };
        InterpretedPeers {
            devices: (0..count).map(device).collect(),
        }
    }

    /// Lets queues take their turns in another order.
    pub fn reseed(&self, seed: u64) {
        self.devices[0].reseed(seed);
    }

    /// Bytes that the host has read from all devices, but for copies of queues.
    pub fn bytes_read(&self) -> u64 {
        self.devices.iter().map(Interpreted::bytes_read).sum()
    }

    /// How often queues took turns.
    pub fn changes(&self) -> u64 {
        self.devices[0].changes()
    }

    /// Lets a device start no kernel after `launches` launches.
    pub fn fail_after(&self, number: usize, launches: u64) {
        self.devices[number].fail_after(launches);
    }

    /// Kernels that each device started.
    pub fn launches(&self) -> Vec<u64> {
        self.devices.iter().map(Interpreted::launches).collect()
    }
}

fn failed(operation: &'static str, message: impl ToString) -> DeviceError {
    DeviceError::Failed {
        operation,
        message: message.to_string(),
    }
}

/// How a kernel is started: as usual, or with all of its blocks resident together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaunchKind {
    Ordinary,
    Cooperative,
}

impl State {
    /// The buffer that has bytes, and where they begin in it.
    fn find(&self, at: Address, bytes: usize) -> Result<(Buffer, usize), DeviceError> {
        let buffer = self.buffers.iter().find(|buffer| {
            let inside = at.0.checked_sub(buffer.address());
            inside.is_some_and(|first| first as usize + bytes <= buffer.bytes())
        });
        match buffer {
            Some(buffer) => Ok((*buffer, (at.0 - buffer.address()) as usize)),
            None => Err(failed("copying", "memory that was not taken")),
        }
    }

    fn write(&mut self, to: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        let (buffer, offset) = self.find(to, bytes.len())?;
        let written = self.device.write(buffer, offset, bytes);
        written.map_err(|fault| failed("writing", fault))?;
        self.settle()
    }

    /// Refuses to start a kernel after too many others.
    fn may_start(&self, before: u64) -> Result<(), DeviceError> {
        match self.last.is_some_and(|last| before >= last) {
            true => Err(failed("starting a kernel", "this many are enough")),
            false => Ok(()),
        }
    }

    /// Makes both places of circular memory alike.
    fn settle(&mut self) -> Result<(), DeviceError> {
        let device = &mut self.device;
        self.circles.iter_mut().try_for_each(|c| c.settle(device))
    }

    fn read(&self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let (buffer, offset) = self.find(from, bytes.len())?;
        bytes.copy_from_slice(&self.device.read(buffer)[offset..offset + bytes.len()]);
        Ok(())
    }

    fn copy(&mut self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError> {
        if from.0.abs_diff(to.0) < bytes {
            return Err(failed("copying", "places overlap"));
        }
        let mut content = vec![0; bytes as usize];
        self.read(from, &mut content)?;
        self.write(to, &content)
    }

    fn start(&mut self, start: Start) -> Result<(), DeviceError> {
        self.may_start(self.launches)?;
        let Start {
            function,
            threads,
            arguments,
            kind,
        } = start;
        let State {
            device,
            modules,
            functions,
            launches,
            started,
            ..
        } = self;
        let found = functions.get(function.0);
        let entry = found.and_then(|(module, name)| modules.get(*module)?.entry(name));
        let (Some(entry), Some((_, name))) = (entry, found) else {
            return Err(failed("starting a kernel", "it was not loaded"));
        };
        *launches += 1;
        started.resize(functions.len(), 0);
        started[function.0] += 1;
        let own = started[function.0];
        let param = |argument: &Argument| match *argument {
            Argument::Place(place) => Param::U64(place),
            Argument::Word(word) => Param::U32(word as u32),
            Argument::Long(long) => Param::U64(long as u64),
        };
        let params: Vec<Param> = arguments.iter().map(param).collect();
        // Blocks and warps take turns in another order each time.
        let options = Options {
            seed: *launches,
            races: own <= ALL_CHECKED || own % LATER_CHECKED == 0,
            pieces: false,
            ..Options::default()
        };
        let device::Threads {
            blocks,
            threads,
            shared,
        } = threads;
        if kind == LaunchKind::Cooperative && blocks.iter().product::<u32>() > options.resident {
            let message = format!("{name}: more than {} blocks", options.resident);
            return Err(failed("starting a kernel", message));
        }
        let ran = device.launch(entry, blocks, threads, shared, &params, &options);
        let failure = |fault| failed("running a kernel", format!("{name}: {fault}"));
        ran.map(drop).map_err(failure)?;
        self.settle()
    }
}

impl Machine {
    fn new(devices: Vec<State>) -> Machine {
        let own = (0..devices.len()).map(|n| (n, VecDeque::new()));
        let queued = Queued {
            queues: own.collect(),
            ..Queued::default()
        };
        Machine { devices, queued }
    }

    /// Does a piece of work of a device.
    fn work(&mut self, number: usize, work: Work) -> Result<(), DeviceError> {
        let device = &mut self.devices[number];
        match work {
            Work::Start(start) => device.start(start),
            Work::Write(to, bytes) => device.write(to, &bytes),
            Work::Upload(Host(from), to, bytes) => {
                // SAFETY: the caller promised that there are `bytes` bytes, and that no thread writes them.
                let bytes = unsafe { std::slice::from_raw_parts(from, bytes as usize) };
                device.write(to, bytes)
            }
            Work::Download(from, Host(to), bytes) => {
                // SAFETY: the caller promised that there are `bytes` bytes, and that nothing else accesses them.
                let bytes = unsafe { std::slice::from_raw_parts_mut(to, bytes as usize) };
                device.read(from, bytes)
            }
            Work::Copy(from, to, bytes) => device.copy(from, to, bytes),
            Work::Send(other, [from, to], lines) => {
                for line in 0..lines.count {
                    let [from, to] = [from, to].map(|at| at.offset((line * lines.stride) as i64));
                    let mut bytes = vec![0; lines.length as usize];
                    self.devices[number].read(from, &mut bytes)?;
                    self.devices[other].write(to, &bytes)?;
                }
                Ok(())
            }
            Work::Signal(number) => {
                self.queued.arrived.insert(number);
                Ok(())
            }
            Work::Follow(_) => Ok(()),
            Work::Mark(mark) => {
                self.queued.marks.insert(mark, Instant::now());
                Ok(())
            }
        }
    }

    /// Does work of queues in some order, which depends on a number, until something is done.
    fn work_until(
        &mut self,
        number: u64,
        done: impl Fn(&Queued) -> bool,
    ) -> Result<(), DeviceError> {
        let mut rng = Rng::new(self.queued.seed ^ number);
        let mut before = usize::MAX;
        // The rarest of them is asked last, so that it falls far behind.
        let slow = rng.below(self.queued.queues.len().max(1) as u64) as usize;
        while !done(&self.queued) {
            let Queued {
                queues, arrived, ..
            } = &self.queued;
            let ready = |n: &usize| match queues[*n].1.front() {
                Some(Work::Follow(signal)) => arrived.contains(signal),
                other => other.is_some(),
            };
            let mut ready: Vec<usize> = (0..queues.len()).filter(ready).collect();
            if ready.len() > 1 && !rng.once_in(8) {
                ready.retain(|n| *n != slow);
            }
            if ready.is_empty() {
                return Err(failed("waiting", "all queues wait for each other"));
            }
            let next = *rng.pick(&ready);
            self.queued.changes += u64::from(next != before);
            before = next;
            let (device, queue) = &mut self.queued.queues[next];
            let device = *device;
            if let Some(work) = queue.pop_front() {
                self.work(device, work)?;
            }
        }
        Ok(())
    }
}
