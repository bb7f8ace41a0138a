//! Interpreted GPUs, as devices. Their own queue does its work when something waits for it.

use super::*;

impl device::Device for Interpreted {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn free_memory(&self) -> Result<u64, DeviceError> {
        let taken = self.with(|own| {
            let all: usize = own.buffers.iter().map(|b| b.bytes()).sum();
            let twice: usize = own.circles.iter().map(Circle::bytes).sum();
            all - twice
        });
        Ok(self.facts.memory.saturating_sub(taken as u64))
    }

    fn take(&self, bytes: u64) -> Result<Address, DeviceError> {
        let available = self.free_memory()?;
        if bytes > available {
            return Err(DeviceError::Memory {
                needed: bytes,
                available,
            });
        }
        self.with(|own| {
            let buffer = own.device.upload_bytes(vec![0; bytes as usize]);
            own.buffers.push(buffer);
            Ok(Address(buffer.address()))
        })
    }

    fn take_circular(&self, bytes: u64) -> Result<Address, DeviceError> {
        let available = self.free_memory()?;
        if bytes > available {
            return Err(DeviceError::Memory {
                needed: bytes,
                available,
            });
        }
        if bytes == 0 || !bytes.is_multiple_of(MAPPING) {
            return Err(failed("mapping memory", "it has no multiple of the bytes"));
        }
        self.with(|own| {
            let circle = Circle::new(&mut own.device, bytes as usize);
            let buffer = circle.buffer();
            own.buffers.push(buffer);
            own.circles.push(circle);
            Ok(Address(buffer.address()))
        })
    }

    fn give_back(&self, memory: Address) -> Result<(), DeviceError> {
        self.wait()?;
        self.with(|own| own.buffers.retain(|b| b.address() != memory.0));
        Ok(())
    }

    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.with(|own| own.find(to, bytes.len()).map(drop))?;
        self.ask(WorkQueue::OWN, Work::Write(to, bytes.to_vec()))
    }

    fn read(&self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.wait()?;
        self.with(|own| {
            own.bytes_read += bytes.len() as u64;
            own.read(from, bytes)
        })
    }

    fn begin_read(&self, from: Address, bytes: u64) -> Result<Reading, DeviceError> {
        self.with(|own| {
            own.find(from, bytes as usize)?;
            own.readings_begun += 1;
            let number = own.readings_begun;
            own.readings.insert(number, (from, bytes));
            own.readings_together = own.readings_together.max(own.readings.len());
            Ok(Reading(number))
        })
    }

    fn end_read(&self, reading: Reading, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let begun = self.with(|own| own.readings.remove(&reading.0));
        match begun {
            Some((from, size)) if size == bytes.len() as u64 => self.read(from, bytes),
            _ => Err(failed("reading", "it did not begin like that")),
        }
    }

    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError> {
        self.ask(WorkQueue::OWN, Work::Copy(from, to, bytes))
    }

    fn load(&self, ptx: &str, names: &[String]) -> Result<Vec<Function>, DeviceError> {
        let module = Module::parse(ptx).map_err(|error| DeviceError::Code {
            message: error.to_string(),
        })?;
        if let Some(name) = names.iter().find(|name| module.entry(name).is_none()) {
            return Err(failed("finding a kernel", format!("there is no `{name}`")));
        }
        self.with(|own| {
            let first = own.functions.len();
            let number = own.modules.len();
            let functions = names.iter().map(|name| (number, name.clone()));
            own.functions.extend(functions);
            own.modules.push(module);
            Ok((first..own.functions.len()).map(Function).collect())
        })
    }

    fn spilled(&self, _: Function) -> Result<u64, DeviceError> {
        Ok(0)
    }

    unsafe fn start(
        &self,
        function: Function,
        threads: device::Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        self.ask_to_start(function, threads, arguments, LaunchKind::Ordinary)
    }

    unsafe fn start_early(
        &self,
        function: Function,
        threads: device::Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        self.ask_to_start(function, threads, arguments, LaunchKind::Ordinary)
    }

    unsafe fn start_together(
        &self,
        function: Function,
        threads: device::Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        self.ask_to_start(function, threads, arguments, LaunchKind::Cooperative)
    }

    fn mark(&self) -> Result<Mark, DeviceError> {
        Ok(Mark(0))
    }

    fn reach(&self, mark: Mark) -> Result<(), DeviceError> {
        if mark.0 == 0 {
            return self.wait();
        }
        self.machine().queued.marks.remove(&mark.0);
        Ok(())
    }

    fn between(&self, _: Mark, _: Mark) -> Result<Duration, DeviceError> {
        Ok(Duration::ZERO)
    }
}
