//! Page-locked memory of the driver, and copies through it.

use super::{Address, DeviceError, check, sys};
use crate::gpu::transfer::{Bus, SMALL, copy_widely};
use std::ffi::c_void;
use std::ptr;

/// Page-locked memory with an event that the last copy through it leads up to.
#[derive(Debug)]
pub(super) struct Pinned {
    place: *mut c_void,
    bytes: usize,
    event: sys::CUevent,
}

impl Pinned {
    /// Gives it back; no copy uses it. A failure here cannot be reported.
    pub fn give_back(self) {
        let _ = driver!("giving back", cuEventDestroy_v2(self.event));
        let _ = driver!("giving back", cuMemFreeHost(self.place));
    }
}

/// Copies in the order of a stream, in whose context the thread is.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamBus {
    pub stream: sys::CUstream,
}

impl StreamBus {
    /// Lets the memory's event mark the end of the work that was asked for up to now.
    fn follow(self, memory: &Pinned) -> Result<(), DeviceError> {
        driver!("copying", cuEventRecord(memory.event, self.stream))
    }
}

impl Bus for StreamBus {
    type Memory = Pinned;

    fn lock(&self, bytes: usize) -> Option<Pinned> {
        let mut event = ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        driver!("locking memory", cuEventCreate(&mut event, flags)).ok()?;
        let mut place = ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
        let locked = driver!("locking memory", cuMemHostAlloc(&mut place, bytes, flags));
        if locked.is_err() || place.is_null() {
            let _ = driver!("giving back", cuEventDestroy_v2(event));
            return None;
        }
        // SAFETY: the driver gave these bytes to this call alone; then they have values, too.
        unsafe { ptr::write_bytes(place.cast::<u8>(), 0, bytes) };
        Some(Pinned {
            place,
            bytes,
            event,
        })
    }

    fn unlock(&self, memory: Pinned) {
        memory.give_back();
    }

    fn fill(&self, memory: &mut Pinned, from: &[u8]) {
        // SAFETY: the bytes were locked together and have values, `&mut` keeps the host's threads away, and no copy
        // uses them: the caller has waited for it.
        let all =
            unsafe { std::slice::from_raw_parts_mut(memory.place.cast::<u8>(), memory.bytes) };
        copy_widely(from, &mut all[..from.len()]);
    }

    fn empty(&self, memory: &Pinned, to: &mut [u8]) {
        // SAFETY: as in `fill`, but that others may read, too.
        let all = unsafe { std::slice::from_raw_parts(memory.place.cast::<u8>(), memory.bytes) };
        copy_widely(&all[..to.len()], to);
    }

    fn send(&self, memory: &Pinned, bytes: usize, to: Address) -> Result<(), DeviceError> {
        driver!(
            "copying to the GPU",
            cuMemcpyHtoDAsync_v2(to.0, memory.place, bytes.min(memory.bytes), self.stream)
        )?;
        self.follow(memory)
    }

    fn receive(&self, from: Address, memory: &Pinned, bytes: usize) -> Result<(), DeviceError> {
        driver!(
            "copying from the GPU",
            cuMemcpyDtoHAsync_v2(memory.place, from.0, bytes.min(memory.bytes), self.stream)
        )?;
        self.follow(memory)
    }

    fn wait(&self, memory: &Pinned) -> Result<(), DeviceError> {
        driver!("waiting for the GPU", cuEventSynchronize(memory.event))
    }

    fn send_plain(&self, bytes: &[u8], to: Address) -> Result<(), DeviceError> {
        driver!(
            "copying to the GPU",
            cuMemcpyHtoDAsync_v2(to.0, bytes.as_ptr().cast(), bytes.len(), self.stream)
        )?;
        // The driver has read few bytes when it returns. More of them a GPU may read by itself, where it has access to
        // memory that is not locked.
        match bytes.len() <= SMALL {
            true => Ok(()),
            false => driver!("waiting for the GPU", cuStreamSynchronize(self.stream)),
        }
    }

    fn receive_plain(&self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        driver!(
            "copying from the GPU",
            cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), from.0, bytes.len(), self.stream)
        )?;
        driver!("waiting for the GPU", cuStreamSynchronize(self.stream))
    }
}
