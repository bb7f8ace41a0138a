//! Queues of work as streams, signals as events.

use super::super::queues::{Queues, Signal, WorkQueue};
use super::{Address, CudaDevice, DeviceError, Function, Mark, Threads, check, sys};
use std::ffi::c_void;
use std::ptr;
use torre_compiler::backend::gpu::abi::Argument;

impl CudaDevice {
    pub(super) fn stream_of(&self, queue: WorkQueue) -> Result<sys::CUstream, DeviceError> {
        self.enter()?;
        let Some(more) = queue.0.checked_sub(1) else {
            return Ok(self.stream);
        };
        let stream = self.state().queues.get(more).copied();
        stream.ok_or_else(|| unknown("a queue"))
    }

    pub(super) fn event_of(&self, signal: Signal) -> Result<sys::CUevent, DeviceError> {
        let event = self.state().signals.get(&signal.0).copied();
        event.ok_or_else(|| unknown("a signal"))
    }
}

fn unknown(operation: &'static str) -> DeviceError {
    DeviceError::Failed {
        operation,
        message: "it was not made".to_owned(),
    }
}

impl Queues for CudaDevice {
    fn queue(&self) -> Result<WorkQueue, DeviceError> {
        self.enter()?;
        let mut stream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        driver!("making a queue", cuStreamCreate(&mut stream, flags))?;
        let queues = &mut self.state().queues;
        queues.push(stream);
        Ok(WorkQueue(queues.len()))
    }

    unsafe fn start_in(
        &self,
        queue: WorkQueue,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        let stream = self.stream_of(queue)?;
        self.launch(stream, function, threads, arguments)
    }

    unsafe fn upload(
        &self,
        queue: WorkQueue,
        from: *const u8,
        to: Address,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let stream = self.stream_of(queue)?;
        driver!(
            "copying to the GPU",
            cuMemcpyHtoDAsync_v2(to.0, from.cast(), bytes as usize, stream)
        )
    }

    unsafe fn download(
        &self,
        queue: WorkQueue,
        from: Address,
        to: *mut u8,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let stream = self.stream_of(queue)?;
        driver!(
            "copying from the GPU",
            cuMemcpyDtoHAsync_v2(to.cast(), from.0, bytes as usize, stream)
        )
    }

    fn copy_in(
        &self,
        queue: WorkQueue,
        from: Address,
        to: Address,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let stream = self.stream_of(queue)?;
        driver!(
            "copying in the GPU's memory",
            cuMemcpyDtoDAsync_v2(to.0, from.0, bytes as usize, stream)
        )
    }

    fn signal(&self, queue: WorkQueue) -> Result<Signal, DeviceError> {
        let stream = self.stream_of(queue)?;
        let mut state = self.state();
        let event = match state.untimed.pop() {
            Some(event) => event,
            None => {
                let mut event = ptr::null_mut();
                let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
                driver!("marking work", cuEventCreate(&mut event, flags))?;
                event
            }
        };
        let number = state.number();
        state.signals.insert(number, event);
        driver!("marking work", cuEventRecord(event, stream))?;
        Ok(Signal(number))
    }

    fn follow(&self, queue: WorkQueue, signal: Signal) -> Result<(), DeviceError> {
        let stream = self.stream_of(queue)?;
        let event = self.event_of(signal)?;
        driver!("ordering work", cuStreamWaitEvent(stream, event, 0))
    }

    fn arrive(&self, signal: Signal) -> Result<(), DeviceError> {
        self.enter()?;
        let event = self.event_of(signal)?;
        driver!("waiting for the GPU", cuEventSynchronize(event))
    }

    fn forget(&self, signal: Signal) {
        let mut state = self.state();
        let event = state.signals.remove(&signal.0);
        state.untimed.extend(event);
    }

    fn mark_in(&self, queue: WorkQueue) -> Result<Mark, DeviceError> {
        let stream = self.stream_of(queue)?;
        self.mark_stream(stream)
    }

    fn seconds(&self, from: Mark, to: Mark) -> Result<f64, DeviceError> {
        self.enter()?;
        let event = |mark: Mark| {
            let event = self.state().marks.get(&mark.0).copied();
            event.ok_or_else(|| unknown("a mark"))
        };
        let (from, to) = (event(from)?, event(to)?);
        for event in [from, to] {
            driver!("waiting for the GPU", cuEventSynchronize(event))?;
        }
        let mut time = 0.0;
        driver!("measuring time", cuEventElapsedTime(&mut time, from, to))?;
        Ok(f64::from(time) * 1e-3)
    }

    unsafe fn lock(&self, from: *mut u8, bytes: u64) -> Result<bool, DeviceError> {
        self.enter()?;
        let flags = sys::CU_MEMHOSTREGISTER_PORTABLE;
        let place = from.cast::<c_void>();
        let locked = driver!(
            "locking memory",
            cuMemHostRegister_v2(place, bytes as usize, flags)
        );
        Ok(locked.is_ok())
    }

    unsafe fn unlock(&self, from: *mut u8) -> Result<(), DeviceError> {
        self.enter()?;
        driver!("unlocking memory", cuMemHostUnregister(from.cast()))
    }
}
