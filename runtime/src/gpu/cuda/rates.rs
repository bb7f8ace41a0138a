//! How fast copies are.

use super::super::device::{Device, DeviceError};
use super::pinned::Pinned;
use super::{Address, CudaDevice, CudaPeers, check, sys};
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
}

impl CudaPeers {
    /// Bytes per second from page-locked memory of the host to each device, while as many come back, and all devices
    /// do so at the same time: they have the host's memory in common. `None` where that cannot be locked, or a device
    /// has no memory for the copies.
    pub fn link_rate(&self) -> Result<Option<f64>, DeviceError> {
        let mut links = Vec::new();
        let made = self.devices().iter().try_fold(true, |locked, device| {
            let link = Link::new(device)?;
            let own = link.is_some();
            links.extend(link);
            Ok(locked && own)
        });
        let rate = made.and_then(|locked| locked.then(|| both_ways(&links)).transpose());
        // All of them end, also after a failure.
        let ended = links.into_iter().map(Link::end);
        let ended = ended.fold(Ok(()), Result::and);
        let rate = rate?;
        ended.map(|()| rate)
    }
}

/// Memory between which copies go both ways.
struct Link<'a> {
    device: &'a CudaDevice,
    /// The host's.
    sent: Pinned,
    received: Pinned,
    /// The device's.
    to: Address,
    from: Address,
}

impl Link<'_> {
    fn new(device: &CudaDevice) -> Result<Option<Link<'_>>, DeviceError> {
        device.enter()?;
        let [up, down] = [device.in_order(), device.beside()];
        let Some(sent) = up.lock(LINK_BYTES) else {
            return Ok(None);
        };
        let Some(received) = down.lock(LINK_BYTES) else {
            up.unlock(sent);
            return Ok(None);
        };
        let bytes = LINK_BYTES as u64;
        let taken = device.take(bytes).and_then(|to| match device.take(bytes) {
            Ok(from) => Ok([to, from]),
            Err(error) => device.give_back(to).and(Err(error)),
        });
        let [to, from] = match taken {
            Ok(taken) => taken,
            Err(error) => {
                up.unlock(sent);
                down.unlock(received);
                return match error {
                    DeviceError::Memory { .. } => Ok(None),
                    error => Err(error),
                };
            }
        };
        let link = Link {
            device,
            sent,
            received,
            to,
            from,
        };
        match device.wait() {
            Ok(()) => Ok(Some(link)),
            Err(error) => link.end().and(Err(error)),
        }
    }

    fn begin(&self) -> Result<(), DeviceError> {
        self.device.enter()?;
        let [up, down] = [self.device.in_order(), self.device.beside()];
        up.send(&self.sent, LINK_BYTES, self.to)?;
        down.receive(self.from, &self.received, LINK_BYTES)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        self.device.enter()?;
        self.device.in_order().wait(&self.sent)?;
        self.device.beside().wait(&self.received)
    }

    /// Gives all memory back, once copies are over.
    fn end(self) -> Result<(), DeviceError> {
        self.wait()?;
        self.device.in_order().unlock(self.sent);
        self.device.beside().unlock(self.received);
        let given = self.device.give_back(self.to);
        given.and(self.device.give_back(self.from))
    }
}

/// Bytes per second of each link and way.
fn both_ways(links: &[Link<'_>]) -> Result<f64, DeviceError> {
    let mut start = Instant::now();
    for round in 0..=LINK_ROUNDS {
        // The first one does not count.
        if round == 1 {
            start = Instant::now();
        }
        links.iter().try_for_each(Link::begin)?;
        links.iter().try_for_each(Link::wait)?;
    }
    let seconds = start.elapsed().as_secs_f64().max(1e-9);
    Ok(f64::from(LINK_ROUNDS) * LINK_BYTES as f64 / seconds)
}
