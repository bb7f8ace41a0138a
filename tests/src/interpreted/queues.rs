//! Queues of interpreted GPUs, and their copies to each other.

use super::*;
use torre_runtime::gpu::queues::{Peers, Queues};

impl Interpreted {
    pub(super) fn ask(&self, queue: WorkQueue, work: Work) -> Result<(), DeviceError> {
        let mut machine = self.machine();
        let index = match queue.0.checked_sub(1) {
            None => self.number,
            Some(index) => machine.devices.len() + index,
        };
        match machine.queued.queues.get_mut(index) {
            Some((number, queue)) if *number == self.number => {
                queue.push_back(work);
                Ok(())
            }
            _ => Err(failed("asking", "there is no such queue")),
        }
    }
}

impl Queues for Interpreted {
    fn queue(&self) -> Result<WorkQueue, DeviceError> {
        let mut machine = self.machine();
        let own = machine.devices.len();
        let queues = &mut machine.queued.queues;
        queues.push((self.number, VecDeque::new()));
        Ok(WorkQueue(queues.len() - own))
    }

    unsafe fn start_in(
        &self,
        queue: WorkQueue,
        function: Function,
        threads: device::Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        let start = Start {
            function,
            threads,
            arguments: arguments.to_vec(),
            kind: LaunchKind::Ordinary,
        };
        self.ask(queue, Work::Start(start))
    }

    unsafe fn upload(
        &self,
        queue: WorkQueue,
        from: *const u8,
        to: Address,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.ask(queue, Work::Upload(Host(from.cast_mut()), to, bytes))
    }

    unsafe fn download(
        &self,
        queue: WorkQueue,
        from: Address,
        to: *mut u8,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.ask(queue, Work::Download(from, Host(to), bytes))
    }

    fn copy_in(
        &self,
        queue: WorkQueue,
        from: Address,
        to: Address,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        self.ask(queue, Work::Copy(from, to, bytes))
    }

    fn signal(&self, queue: WorkQueue) -> Result<Signal, DeviceError> {
        let number = {
            let queued = &mut self.machine().queued;
            queued.signals += 1;
            queued.known.insert(queued.signals);
            queued.signals
        };
        self.ask(queue, Work::Signal(number))?;
        Ok(Signal(number))
    }

    fn follow(&self, queue: WorkQueue, signal: Signal) -> Result<(), DeviceError> {
        self.expect(signal)?;
        self.ask(queue, Work::Follow(signal.0))
    }

    fn arrive(&self, signal: Signal) -> Result<(), DeviceError> {
        self.expect(signal)?;
        self.machine()
            .work_until(signal.0, |queued| queued.arrived.contains(&signal.0))
    }

    fn forget(&self, signal: Signal) {
        self.machine().queued.known.remove(&signal.0);
    }

    fn mark_in(&self, queue: WorkQueue) -> Result<Mark, DeviceError> {
        let number = {
            let queued = &mut self.machine().queued;
            queued.marks_made += 1;
            queued.marks_made
        };
        self.ask(queue, Work::Mark(number))?;
        Ok(Mark(number))
    }

    fn seconds(&self, from: Mark, to: Mark) -> Result<f64, DeviceError> {
        let mut machine = self.machine();
        for mark in [from, to] {
            machine.work_until(mark.0, |queued| queued.marks.contains_key(&mark.0))?;
        }
        let time = |mark: Mark| {
            let met = machine.queued.marks.get(&mark.0);
            met.copied()
                .ok_or_else(|| failed("measuring time", "a mark was not met"))
        };
        let (from, to) = (time(from)?, time(to)?);
        let after = to.duration_since(from).as_secs_f64();
        Ok(after - from.duration_since(to).as_secs_f64())
    }

    unsafe fn lock(&self, from: *mut u8, _: u64) -> Result<bool, DeviceError> {
        self.with(|own| match own.most_locked {
            Some(most) if own.locked.len() >= most => {
                Err(failed("locking memory", "this many parts are enough"))
            }
            _ => match own.locked.insert(from.addr()) {
                true => Ok(true),
                false => Err(failed("locking memory", "it is locked")),
            },
        })
    }

    unsafe fn unlock(&self, from: *mut u8) -> Result<(), DeviceError> {
        self.with(|own| match own.locked.remove(&from.addr()) {
            true => Ok(()),
            false => Err(failed("unlocking memory", "it is not locked")),
        })
    }
}

impl Peers for InterpretedPeers {
    fn count(&self) -> usize {
        self.devices.len()
    }

    fn device(&self, number: usize) -> &dyn Queues {
        &self.devices[number]
    }

    fn follow_peer(
        &self,
        number: usize,
        queue: WorkQueue,
        of: usize,
        signal: Signal,
    ) -> Result<(), DeviceError> {
        match number == of {
            true => Err(failed("following", "the signal is the device's own")),
            false => self.devices[number].follow(queue, signal),
        }
    }

    fn send(
        &self,
        [from, to]: [usize; 2],
        queue: WorkQueue,
        places: [Address; 2],
        lines: ByteLines,
    ) -> Result<(), DeviceError> {
        self.devices[from].ask(queue, Work::Send(to, places, lines))
    }
}
