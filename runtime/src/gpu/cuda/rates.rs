//! How fast copies are.

use super::super::device::{Device, DeviceError};
use super::pinned::Pinned;
use super::{CudaDevice, check, sys};
use crate::gpu::transfer::Bus;
use std::time::Instant;

/// Bytes that are copied each way to find the rate of the link to the host, and how often.
const LINK_BYTES: usize = 64 << 20;
const LINK_ROUNDS: u32 = 4;

impl CudaDevice {
    /// Bytes read and written per second by copies within the device's memory, of pieces far larger than its caches.
    pub fn copy_rate(&self) -> Result<f64, DeviceError> {
        const ROUNDS: u32 = 10;
        let bytes = (self.free_memory()? / 4).min(2 << 30);
        let (from, to) = (self.take(bytes)?, self.take(bytes)?);
        let copy = || {
            driver!(
                "copying in the GPU's memory",
                cuMemcpyDtoDAsync_v2(to.0, from.0, bytes as usize, self.stream)
            )
        };
        copy()?;
        self.wait()?;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            copy()?;
        }
        self.wait()?;
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        self.give_back(from)?;
        self.give_back(to)?;
        Ok(2.0 * bytes as f64 * f64::from(ROUNDS) / seconds)
    }

    /// Bytes per second from page-locked memory of the host to the device, while as many come back. `None` where the
    /// host's memory cannot be locked.
    pub fn link_rate(&self) -> Result<Option<f64>, DeviceError> {
        self.enter()?;
        let [up, down] = [self.in_order(), self.beside()];
        let (Some(here), there) = (up.lock(LINK_BYTES), down.lock(LINK_BYTES)) else {
            return Ok(None);
        };
        let Some(there) = there else {
            up.unlock(here);
            return Ok(None);
        };
        let measured = self.both_ways(&here, &there);
        up.unlock(here);
        down.unlock(there);
        measured.map(Some)
    }

    fn both_ways(&self, here: &Pinned, there: &Pinned) -> Result<f64, DeviceError> {
        let [up, down] = [self.in_order(), self.beside()];
        let (to, from) = (self.take(LINK_BYTES as u64)?, self.take(LINK_BYTES as u64)?);
        self.wait()?;
        let mut start = Instant::now();
        for round in 0..=LINK_ROUNDS {
            // The first one does not count.
            if round == 1 {
                start = Instant::now();
            }
            up.send(here, LINK_BYTES, to)?;
            down.receive(from, there, LINK_BYTES)?;
            up.wait(here)?;
            down.wait(there)?;
        }
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        self.give_back(to)?;
        self.give_back(from)?;
        Ok(f64::from(LINK_ROUNDS) * LINK_BYTES as f64 / seconds)
    }
}
