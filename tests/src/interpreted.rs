//! A GPU that is interpreted: runs on it are runs of the PTX that a real one gets.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use torre_compiler::backend::gpu::abi::Argument;
use torre_ptx::{Buffer, Device, Module, Options, Param};
use torre_runtime::gpu::device::{self, Address, DeviceError, Facts, Function, Mark, Reading};

/// A small GPU of compute capability 9.0.
#[derive(Debug)]
pub struct Interpreted {
    facts: Facts,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    device: Device,
    buffers: Vec<Buffer>,
    modules: Vec<Module>,
    functions: Vec<(usize, String)>,
    launches: u64,
    /// No kernel can be started after so many.
    last: Option<u64>,
    /// Readings that have begun: from where, and how many bytes. They are done as late as possible.
    readings: BTreeMap<u64, (Address, u64)>,
    readings_begun: u64,
    /// The most that were under way at a time.
    readings_together: usize,
}

/// Bytes of the memory that it claims to have.
const MEMORY: u64 = 1 << 30;

impl Default for Interpreted {
    fn default() -> Self {
        Self::new()
    }
}

impl Interpreted {
    pub fn new() -> Interpreted {
        Interpreted {
            facts: Facts {
                name: "interpreter".to_owned(),
                capability: 90,
                cuda: 12080,
                multiprocessors: 2,
                threads: 64,
                clock: 1_000_000,
                memory: MEMORY,
                l2: 1 << 20,
                l2_partition: vec![0, 1],
            },
            state: Mutex::default(),
        }
    }

    /// The most readings that were under way at a time.
    pub fn readings_together(&self) -> usize {
        self.state().readings_together
    }

    /// Lets no kernel be started after so many.
    pub fn fail_after(&self, launches: u64) {
        self.state().last = Some(launches);
    }

    /// Kernels that were started.
    pub fn launches(&self) -> u64 {
        self.state().launches
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(what: &'static str, message: impl ToString) -> DeviceError {
    DeviceError::Failed {
        what,
        message: message.to_string(),
    }
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
}

impl device::Device for Interpreted {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn free_memory(&self) -> Result<u64, DeviceError> {
        let taken: usize = self.state().buffers.iter().map(|b| b.bytes()).sum();
        Ok(MEMORY.saturating_sub(taken as u64))
    }

    fn take(&self, bytes: u64) -> Result<Address, DeviceError> {
        let mut state = self.state();
        let buffer = state.device.upload(&vec![0u8; bytes as usize]);
        state.buffers.push(buffer);
        Ok(Address(buffer.address()))
    }

    fn give_back(&self, memory: Address) -> Result<(), DeviceError> {
        self.state().buffers.retain(|b| b.address() != memory.0);
        Ok(())
    }

    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        let mut state = self.state();
        let (buffer, offset) = state.find(to, bytes.len())?;
        let written = state.device.write(buffer, offset, bytes);
        written.map_err(|fault| failed("writing", fault))
    }

    fn read(&self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let state = self.state();
        let (buffer, offset) = state.find(from, bytes.len())?;
        bytes.copy_from_slice(&state.device.read(buffer)[offset..offset + bytes.len()]);
        Ok(())
    }

    fn begin_read(&self, from: Address, bytes: u64) -> Result<Reading, DeviceError> {
        let mut state = self.state();
        state.find(from, bytes as usize)?;
        state.readings_begun += 1;
        let number = state.readings_begun;
        state.readings.insert(number, (from, bytes));
        state.readings_together = state.readings_together.max(state.readings.len());
        Ok(Reading(number))
    }

    fn end_read(&self, reading: Reading, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let begun = self.state().readings.remove(&reading.0);
        match begun {
            Some((from, size)) if size == bytes.len() as u64 => self.read(from, bytes),
            _ => Err(failed("reading", "it did not begin like that")),
        }
    }

    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError> {
        let mut content = vec![0; bytes as usize];
        self.read(from, &mut content)?;
        self.write(to, &content)
    }

    fn load(&self, ptx: &str, names: &[String]) -> Result<Vec<Function>, DeviceError> {
        let module = Module::parse(ptx).map_err(|error| DeviceError::Code {
            message: error.to_string(),
        })?;
        if let Some(name) = names.iter().find(|name| module.entry(name).is_none()) {
            return Err(failed("finding a kernel", format!("there is no `{name}`")));
        }
        let mut state = self.state();
        let first = state.functions.len();
        let number = state.modules.len();
        let functions = names.iter().map(|name| (number, name.clone()));
        state.functions.extend(functions);
        state.modules.push(module);
        Ok((first..state.functions.len()).map(Function).collect())
    }

    unsafe fn start(
        &self,
        function: Function,
        threads: device::Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        let mut state = self.state();
        let State {
            device,
            modules,
            functions,
            launches,
            last,
            ..
        } = &mut *state;
        if last.is_some_and(|last| *launches >= last) {
            return Err(failed("starting a kernel", "this many are enough"));
        }
        let found = functions.get(function.0);
        let entry = found.and_then(|(module, name)| modules.get(*module)?.entry(name));
        let (Some(entry), Some((_, name))) = (entry, found) else {
            return Err(failed("starting a kernel", "it was not loaded"));
        };
        *launches += 1;
        let params: Vec<Param> = arguments
            .iter()
            .map(|argument| match *argument {
                Argument::Place(place) => Param::U64(place),
                Argument::Word(word) => Param::U32(word as u32),
                Argument::Long(long) => Param::U64(long as u64),
            })
            .collect();
        // Blocks and warps take turns in another order each time.
        let options = Options {
            seed: *launches,
            ..Options::default()
        };
        let device::Threads {
            blocks,
            threads,
            shared,
        } = threads;
        device
            .launch(entry, blocks, threads, shared, &params, &options)
            .map(|_| ())
            .map_err(|fault| failed("running a kernel", format!("{name}: {fault}")))
    }

    fn mark(&self) -> Result<Mark, DeviceError> {
        Ok(Mark(0))
    }

    fn reach(&self, _: Mark) -> Result<(), DeviceError> {
        Ok(())
    }

    fn between(&self, _: Mark, _: Mark) -> Result<Duration, DeviceError> {
        Ok(Duration::ZERO)
    }
}
