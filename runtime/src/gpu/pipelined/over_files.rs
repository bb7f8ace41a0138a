//! The files of a calculation window: copies between their pieces and the device.

use super::chain::Chain;
use super::kept::KeptPlanes;
use super::stream::{Pieces, Stream};
use crate::disk::StateFolder;
use crate::gpu::device::{Address, DeviceError};
use crate::gpu::queues::{Queues, WorkQueue};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a file that are read or written at a time.
pub const PIECE: u64 = 16 << 20;

/// Pieces that are read ahead, and as many that wait to be written, at most.
const SLOTS: u64 = 32;

/// Bytes of the host's memory for pieces of groups of `group` bytes.
pub fn piece_bytes(group: u64) -> u64 {
    2 * slots(group, PIECE) * PIECE
}

/// Slots with room for the loads of a group, so that reading goes on while a group is written.
pub fn slots(group: u64, each: u64) -> u64 {
    (group / each.max(1) + 2).clamp(4, SLOTS)
}

/// The files of a calculation window.
pub(super) struct OverFiles<'a> {
    pub folder: StateFolder,
    pub reading: Arc<Stream<'a>>,
    pub writing: Arc<Stream<'a>>,
    pub chain: Chain<'a>,
    /// Pieces of the pass that runs: the pieces that are read, and the pieces that are written.
    pub pieces: [Pieces; 2],
    /// Planes that passes around a periodic first axis, or by slabs, keep in memory.
    pub kept: Option<KeptPlanes<'a>>,
    /// The piece that is being filled, and which part of it is.
    pub filling: Option<(u64, Range<u64>)>,
    /// Bytes of the file that stores of the pass cover.
    pub stored: Option<Range<u64>>,
    /// No checkpoint says yet which file has the state.
    pub pending: bool,
    /// Records beside probes, as they were when results were written last.
    pub records: Vec<(String, Vec<f64>)>,
}

impl OverFiles<'_> {
    pub fn is_locked(&self) -> bool {
        let kept = self.kept.as_ref().is_none_or(KeptPlanes::is_locked);
        let streams = self.reading.is_locked() && self.writing.is_locked();
        kept && streams && self.chain.is_locked()
    }

    /// Copies bytes of the file to the device as they arrive.
    pub fn load(
        &self,
        device: &dyn Queues,
        queue: WorkQueue,
        range: Range<u64>,
        place: Address,
    ) -> Result<(), DeviceError> {
        let [pieces, _] = &self.pieces;
        for (number, part) in pieces.parts(range.clone()) {
            let slot = self.reading.full(number)?;
            let inside = (part.start - pieces.start(number)) as usize;
            let to = place.offset((part.start - range.start) as i64);
            // SAFETY: the part lies in the slot, which no thread changes before it is released.
            unsafe {
                let from = slot.add(inside);
                device.upload(queue, from, to, part.end - part.start)
            }?;
            if pieces.ends(number, &part) {
                self.reading.release(number, device.signal(queue)?);
            }
        }
        Ok(())
    }

    /// Copies bytes of the device to where they are written from.
    pub fn store(
        &mut self,
        device: &dyn Queues,
        queue: WorkQueue,
        range: Range<u64>,
        place: Address,
    ) -> Result<(), DeviceError> {
        let [_, pieces] = &self.pieces;
        for (number, part) in pieces.parts(range.clone()) {
            let slot = match &self.filling {
                Some((filling, _)) if *filling == number => self.writing.place(number),
                _ => self.writing.room(number)?,
            };
            let inside = (part.start - pieces.start(number)) as usize;
            let from = place.offset((part.start - range.start) as i64);
            // SAFETY: the part lies in the slot, which no other thread has before it is submitted.
            unsafe {
                let to = slot.add(inside);
                device.download(queue, from, to, part.end - part.start)
            }?;
            let hull = |other: &Range<u64>| other.start.min(part.start)..other.end.max(part.end);
            let filled = match self.filling.take() {
                Some((filling, filled)) if filling == number => hull(&filled),
                _ => part.clone(),
            };
            self.stored = Some(self.stored.as_ref().map_or(part.clone(), hull));
            match pieces.ends(number, &part) {
                true => self.writing.submit(number, filled, device.signal(queue)?),
                false => self.filling = Some((number, filled)),
            }
        }
        Ok(())
    }

    /// Has the last piece written, where stores do not reach its end.
    pub fn flush(&mut self, device: &dyn Queues, queue: WorkQueue) -> Result<(), DeviceError> {
        if let Some((number, filled)) = self.filling.take() {
            self.writing.submit(number, filled, device.signal(queue)?);
        }
        Ok(())
    }
}
