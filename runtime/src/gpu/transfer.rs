//! Copies between the host and a device, through page-locked memory.
//!
//! A GPU moves page-locked memory by itself, at the rate of the bus. Other memory is copied by the driver, piece by
//! piece through locked memory of its own, by one thread, at a fraction of that rate, while the caller waits. So two
//! pieces of locked memory are used alternately: the device moves one while the host fills or empties the
//! other. Where no memory can be locked, copies are the driver's.

use super::device::{Address, DeviceError};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Bytes that are moved at a time, at most.
pub(super) const PIECE: usize = 32 << 20;

/// Copies up to this size the driver takes along with its commands, without waiting for anything.
pub(super) const SMALL: usize = 64 << 10;

/// Threads that fill or empty a piece: one of them moves less than a bus does.
const THREADS: usize = 4;

/// Bytes for which a thread is worth its start.
const WORTH_A_THREAD: usize = 2 << 20;

/// A bus that moves bytes. Its copies are done in the order in which they are begun.
pub(super) trait Bus {
    /// Page-locked memory of the host. It takes part in one copy at a time.
    type Memory;
    /// Locks `bytes` bytes; `None` if they cannot be had.
    fn lock(&self, bytes: usize) -> Option<Self::Memory>;
    /// Gives locked memory back that no copy uses.
    fn unlock(&self, memory: Self::Memory);
    /// Puts bytes at the beginning of locked memory that no copy uses.
    fn fill(&self, memory: &mut Self::Memory, from: &[u8]);
    /// Takes bytes from the beginning of locked memory that no copy uses.
    fn empty(&self, memory: &Self::Memory, to: &mut [u8]);
    /// Begins to copy the first bytes of locked memory to the device.
    fn send(&self, memory: &Self::Memory, bytes: usize, to: Address) -> Result<(), DeviceError>;
    /// Begins to copy bytes of the device to the beginning of locked memory.
    fn receive(
        &self,
        from: Address,
        memory: &Self::Memory,
        bytes: usize,
    ) -> Result<(), DeviceError>;
    /// Waits until the last copy that this memory took part in is done.
    fn wait(&self, memory: &Self::Memory) -> Result<(), DeviceError>;
    /// Copies any memory to the device; it may be changed afterwards.
    fn send_plain(&self, bytes: &[u8], to: Address) -> Result<(), DeviceError>;
    /// Copies from the device to any memory, and waits for it.
    fn receive_plain(&self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;
}

/// Locked memory in which one piece of a copy lies.
#[derive(Debug)]
struct Stage<M> {
    /// With its size.
    memory: Option<(M, usize)>,
    /// A copy was begun, and not waited for.
    busy: bool,
}

/// Two pieces of locked memory that take turns. They are locked when they are first needed, and no larger than that.
#[derive(Debug)]
pub(super) struct Staging<M> {
    stages: [Stage<M>; 2],
    /// The one that is used next.
    next: usize,
    piece: usize,
    /// Memory could not be locked, and is not asked for again.
    refused: bool,
}

/// A copy from the device that has begun.
#[derive(Debug)]
pub(super) struct Download {
    from: Address,
    bytes: usize,
    /// The pieces that are under way, in their order: in which stage, and how many bytes.
    begun: VecDeque<(usize, usize)>,
    /// Bytes of all pieces that were begun.
    asked: usize,
}

impl<M> Staging<M> {
    pub fn new() -> Self {
        Self::in_pieces(PIECE)
    }

    fn in_pieces(piece: usize) -> Self {
        let stage = || Stage {
            memory: None,
            busy: false,
        };
        Self {
            stages: [stage(), stage()],
            next: 0,
            piece,
            refused: false,
        }
    }

    /// Copies to the device: returns when everything has left `bytes`, and waits only for stages that earlier pieces
    /// use.
    pub fn upload(
        &mut self,
        bus: &impl Bus<Memory = M>,
        bytes: &[u8],
        to: Address,
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        for piece in bytes.chunks(self.piece) {
            let place = to.offset(done as i64);
            done += piece.len();
            let number = self.next;
            if !self.make_ready(bus, number, piece.len())? {
                bus.send_plain(piece, place)?;
                continue;
            }
            self.next = 1 - number;
            let stage = &mut self.stages[number];
            if let Some((memory, _)) = &mut stage.memory {
                bus.fill(memory, piece);
                stage.busy = true;
                bus.send(memory, piece.len(), place)?;
            }
        }
        Ok(())
    }

    /// Begins to copy from the device, as far as there are stages. Another copy through them begins when this one has
    /// ended or failed.
    pub fn begin(
        &mut self,
        bus: &impl Bus<Memory = M>,
        from: Address,
        bytes: usize,
    ) -> Result<Download, DeviceError> {
        let mut download = Download {
            from,
            bytes,
            begun: VecDeque::new(),
            asked: 0,
        };
        for stage in 0..self.stages.len() {
            self.begin_piece(bus, &mut download, stage)?;
        }
        Ok(download)
    }

    /// Begins with the next piece of a copy, if there is one, and memory for it.
    fn begin_piece(
        &mut self,
        bus: &impl Bus<Memory = M>,
        download: &mut Download,
        number: usize,
    ) -> Result<(), DeviceError> {
        let bytes = (download.bytes - download.asked).min(self.piece);
        if bytes == 0 || !self.make_ready(bus, number, bytes)? {
            return Ok(());
        }
        let stage = &mut self.stages[number];
        if let Some((memory, _)) = &stage.memory {
            stage.busy = true;
            let from = download.from.offset(download.asked as i64);
            bus.receive(from, memory, bytes)?;
            download.begun.push_back((number, bytes));
            download.asked += bytes;
        }
        Ok(())
    }

    /// Ends a copy from the device that began here, into memory of its size.
    pub fn end(
        &mut self,
        bus: &impl Bus<Memory = M>,
        mut download: Download,
        to: &mut [u8],
    ) -> Result<(), DeviceError> {
        if to.len() != download.bytes {
            return Err(wrong_size());
        }
        let mut rest = to;
        while let Some((number, bytes)) = download.begun.pop_front() {
            let (piece, after) = rest.split_at_mut(bytes);
            rest = after;
            let stage = &mut self.stages[number];
            if let Some((memory, _)) = &stage.memory {
                bus.wait(memory)?;
                stage.busy = false;
                bus.empty(memory, piece);
            }
            self.begin_piece(bus, &mut download, number)?;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => bus.receive_plain(download.from.offset(download.asked as i64), rest),
        }
    }

    /// Waits until a stage is free, and ensures that it has room for `bytes` bytes; `false` if it cannot have it.
    fn make_ready(
        &mut self,
        bus: &impl Bus<Memory = M>,
        number: usize,
        bytes: usize,
    ) -> Result<bool, DeviceError> {
        let stage = &mut self.stages[number];
        if let (Some((memory, _)), true) = (&stage.memory, stage.busy) {
            bus.wait(memory)?;
            stage.busy = false;
        }
        if stage
            .memory
            .as_ref()
            .is_some_and(|(_, size)| *size >= bytes)
        {
            return Ok(true);
        }
        if self.refused {
            return Ok(false);
        }
        if let Some((memory, _)) = stage.memory.take() {
            bus.unlock(memory);
        }
        let size = bytes.next_power_of_two().max(SMALL).min(self.piece);
        stage.memory = bus.lock(size).map(|memory| (memory, size));
        self.refused = stage.memory.is_none();
        Ok(!self.refused)
    }

    /// The locked memory, to be given back.
    pub fn into_memory(self) -> impl Iterator<Item = M> {
        self.stages
            .into_iter()
            .filter_map(|stage| Some(stage.memory?.0))
    }
}

/// The memory for a reading has another size than the reading.
fn wrong_size() -> DeviceError {
    DeviceError::Failed {
        operation: "reading the GPU's memory",
        message: "there is room for another number of bytes".to_owned(),
    }
}

/// Copies within the host's memory by several threads, if that is worth it; both have the same size.
pub(super) fn copy_widely(from: &[u8], to: &mut [u8]) {
    let each = from.len().div_ceil(THREADS).max(WORTH_A_THREAD);
    // Threads take parts until there are none, so that it does not matter how many can be started.
    let parts = Mutex::new(from.chunks(each).zip(to.chunks_mut(each)));
    let work = || {
        let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((from, to)) = next() {
            to.copy_from_slice(from);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..from.len().div_ceil(each.max(1)) {
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

#[cfg(test)]
mod tests;
