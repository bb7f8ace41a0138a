//! Bytes of a file that go through page-locked memory, piece by piece: threads read or write them ahead of or behind
//! the device.
//!
//! A pass takes all bytes of a range once, from its end down or from its beginning up, or around from somewhere in it.
//! Pieces are aligned parts of the file. A piece has a slot of memory from when it is read until the device has copied
//! it, or from when the device begins to copy parts of it until it is written. Slots are taken in turns.

use super::chain::Locked;
use crate::disk::ArrayFile;
use crate::gpu::device::DeviceError;
use crate::gpu::queues::{Queues, Signal};
use crate::simulation::RunError;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Where a slot is in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its contents are not needed any more, once a copy of the device is over.
    Free(Option<Signal>),
    /// A thread reads or writes, or the device copies to it.
    Busy,
    /// Read, or to be written once a copy of the device is over.
    Full(Option<Signal>),
}

/// State that threads and their master share.
#[derive(Debug)]
struct Shared {
    stages: Vec<Stage>,
    /// The part of each slot that is to be written.
    parts: Vec<Range<u64>>,
    /// The piece that the next thread takes, by its number in the pass.
    next: u64,
    /// Pieces of the pass.
    count: u64,
    /// Nothing more comes.
    ended: bool,
    failed: Option<RunError>,
}

/// The pieces of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Bytes of the file.
    pub range: Range<u64>,
    /// Bytes of a piece, a multiple of a block.
    pub each: u64,
    /// From the end down.
    pub down: bool,
    /// The byte of the range at which the pass begins and, when it has gone around, ends; an end of the range if it
    /// does not go around. The piece that has bytes on both sides comes twice.
    pub cut: u64,
}

/// Pieces that follow each other: the bytes that they have, and numbers in the pass.
struct Stretch {
    range: Range<u64>,
    numbers: Range<u64>,
}

impl Pieces {
    /// The pieces on both sides of the cut, in the order of the pass.
    fn stretches(&self) -> [Stretch; 2] {
        let [low, high] = [self.range.start..self.cut, self.cut..self.range.end];
        let [first, second] = if self.down { [low, high] } else { [high, low] };
        let count = |range: &Range<u64>| match range.is_empty() {
            true => 0,
            false => (range.end - 1) / self.each - range.start / self.each + 1,
        };
        let (begun, more) = (count(&first), count(&second));
        [
            Stretch {
                range: first,
                numbers: 0..begun,
            },
            Stretch {
                range: second,
                numbers: begun..begun + more,
            },
        ]
    }

    /// The stretch for which something holds; the second one otherwise.
    fn stretch(&self, holds: impl Fn(&Stretch) -> bool) -> Stretch {
        let [first, second] = self.stretches();
        if holds(&first) { first } else { second }
    }

    pub fn count(&self) -> u64 {
        self.stretches()[1].numbers.end
    }

    /// The first byte of a piece, by its number in the pass.
    pub fn start(&self, number: u64) -> u64 {
        let Stretch { range, numbers } = self.stretch(|of| of.numbers.contains(&number));
        let number = number - numbers.start;
        let index = match self.down {
            true => range.end.saturating_sub(1) / self.each - number,
            false => range.start / self.each + number,
        };
        index * self.each
    }

    /// The number of the piece that has a byte.
    pub fn of(&self, byte: u64) -> u64 {
        let Stretch { range, numbers } = self.stretch(|of| of.range.contains(&byte));
        numbers.start
            + match self.down {
                true => range.end.saturating_sub(1) / self.each - byte / self.each,
                false => byte / self.each - range.start / self.each,
            }
    }

    /// Parts of pieces, in the order of the pass, that make up a range on one side of the cut: the number of the piece,
    /// and bytes of the file.
    pub fn parts(&self, range: Range<u64>) -> Vec<(u64, Range<u64>)> {
        if range.is_empty() {
            return Vec::new();
        }
        let [low, high] = [self.of(range.start), self.of(range.end - 1)];
        let numbers = low.min(high)..=low.max(high);
        let part = |number: u64| {
            let start = self.start(number);
            (
                number,
                start.max(range.start)..(start + self.each).min(range.end),
            )
        };
        numbers.map(part).collect()
    }

    /// Whether a part is the last one of its piece in the order of the pass.
    pub fn ends(&self, number: u64, part: &Range<u64>) -> bool {
        let start = self.start(number);
        let range = self.stretch(|of| of.numbers.contains(&number)).range;
        match self.down {
            true => part.start <= start.max(range.start),
            false => part.end >= (start + self.each).min(range.end),
        }
    }
}

/// Page-locked memory for pieces, and the threads that fill or empty it.
pub(super) struct Stream<'a> {
    /// Stages say which thread may access the memory of each.
    slots: Vec<Locked<'a>>,
    shared: Mutex<Shared>,
    changed: Condvar,
}

impl<'a> Stream<'a> {
    pub fn new(device: &'a dyn Queues, slots: usize, each: u64) -> Result<Stream<'a>, DeviceError> {
        let slots = (0..slots.max(2)).map(|_| Locked::new(device, each));
        let slots = slots.collect::<Result<Vec<Locked<'a>>, _>>()?;
        Ok(Stream {
            shared: Mutex::new(Shared {
                stages: vec![Stage::Free(None); slots.len()],
                parts: vec![0..0; slots.len()],
                next: 0,
                count: 0,
                ended: true,
                failed: None,
            }),
            changed: Condvar::new(),
            slots,
        })
    }

    /// Whether all slots are locked.
    pub fn is_locked(&self) -> bool {
        self.slots.iter().all(Locked::is_locked)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&'s self, shared: MutexGuard<'s, Shared>) -> MutexGuard<'s, Shared> {
        let shared = self.changed.wait(shared);
        shared.unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a pass of `count` pieces. No thread is at work, and no copy under way.
    pub fn begin(&self, count: u64) {
        let mut shared = self.shared();
        shared.stages.fill(Stage::Free(None));
        (shared.next, shared.count) = (0, count);
        shared.ended = false;
    }

    /// Forgets the copies from slots that no thread has taken since; all of them are over.
    pub fn settle(&self, device: &dyn Queues) {
        for stage in &mut self.shared().stages {
            if let Stage::Free(signal) = stage {
                signal.take().into_iter().for_each(|s| device.forget(s));
            }
        }
    }

    /// Says that no more pieces come: threads end with the full ones, or at once after a failure.
    pub fn end(&self) {
        self.shared().ended = true;
        self.changed.notify_all();
    }

    pub fn fail(&self, error: RunError) {
        let mut shared = self.shared();
        shared.failed.get_or_insert(error);
        shared.ended = true;
        drop(shared);
        self.changed.notify_all();
    }

    /// Why a thread gave up.
    pub fn failure(&self) -> Option<RunError> {
        self.shared().failed.take()
    }

    fn slot(&self, number: u64) -> usize {
        (number % self.slots.len() as u64) as usize
    }

    fn set(&self, number: u64, stage: Stage) {
        self.shared().stages[self.slot(number)] = stage;
        self.changed.notify_all();
    }

    /// Waits until a slot is as wanted; where the memory of the slot begins.
    fn await_slot(
        &self,
        number: u64,
        wanted: impl Fn(Stage) -> bool,
    ) -> Result<*mut u8, DeviceError> {
        let slot = self.slot(number);
        let mut shared = self.shared();
        while shared.failed.is_none() && !shared.ended && !wanted(shared.stages[slot]) {
            shared = self.wait(shared);
        }
        match wanted(shared.stages[slot]) && shared.failed.is_none() {
            true => Ok(self.slots[slot].at(0)),
            false => Err(given_up()),
        }
    }

    /// Waits until a piece is there.
    pub fn full(&self, number: u64) -> Result<*mut u8, DeviceError> {
        self.await_slot(number, |stage| matches!(stage, Stage::Full(_)))
    }

    /// Gives the slot of a piece to a later one, after a copy from it.
    pub fn release(&self, number: u64, signal: Signal) {
        self.set(number, Stage::Free(Some(signal)));
    }

    /// Waits until a slot for a piece is free, and takes it.
    pub fn room(&self, number: u64) -> Result<*mut u8, DeviceError> {
        let place = self.await_slot(number, |stage| stage == Stage::Free(None))?;
        self.set(number, Stage::Busy);
        Ok(place)
    }

    /// Where a piece lies that is being filled.
    pub fn place(&self, number: u64) -> *mut u8 {
        self.slots[self.slot(number)].at(0)
    }

    /// Has a part of a piece written, after a copy to it.
    pub fn submit(&self, number: u64, part: Range<u64>, signal: Signal) {
        let slot = self.slot(number);
        self.shared().parts[slot] = part;
        self.set(number, Stage::Full(Some(signal)));
    }

    /// Takes the next piece whose slot is as wanted; `None` when there is none any more.
    fn take(&self, wanted: impl Fn(Stage) -> bool) -> Option<(u64, Stage, Range<u64>)> {
        let mut shared = self.shared();
        loop {
            let number = shared.next;
            let slot = self.slot(number);
            if shared.failed.is_some() || number >= shared.count {
                return None;
            }
            let stage = shared.stages[slot];
            if wanted(stage) {
                shared.next += 1;
                shared.stages[slot] = Stage::Busy;
                return Some((number, stage, shared.parts[slot].clone()));
            }
            if shared.ended {
                return None;
            }
            shared = self.wait(shared);
        }
    }

    /// The bytes of a slot.
    ///
    /// # Safety
    /// The slot is with this thread, and no copy of the device uses it.
    #[expect(clippy::mut_from_ref, reason = "stages say whose the slot is")]
    unsafe fn bytes_of(&self, number: u64) -> &mut [u8] {
        let slot = &self.slots[self.slot(number)];
        // SAFETY: the slot has this number of bytes as long as the stream lives.
        unsafe { std::slice::from_raw_parts_mut(slot.at(0), slot.len()) }
    }

    /// A thread that reads pieces, until all are read or nothing more is wanted.
    pub fn read_pieces(&self, device: &dyn Queues, file: &ArrayFile, pieces: &Pieces) {
        let free = |stage| matches!(stage, Stage::Free(_));
        while let Some((number, stage, _)) = self.take(free) {
            let read = || -> Result<(), RunError> {
                if let Stage::Free(Some(signal)) = stage {
                    arrive(device, signal)?;
                }
                let start = pieces.start(number);
                let end = (start + pieces.each).min(file.bytes());
                // SAFETY: the slot was free, and the copy from it is over.
                let bytes = unsafe { self.bytes_of(number) };
                Ok(file.read(start, &mut bytes[..(end - start) as usize])?)
            };
            match read() {
                Ok(()) => self.set(number, Stage::Full(None)),
                Err(error) => return self.fail(error),
            }
        }
    }

    /// A thread that writes pieces, until all are written.
    pub fn write_pieces(&self, device: &dyn Queues, file: &ArrayFile, pieces: &Pieces) {
        let full = |stage| matches!(stage, Stage::Full(_));
        while let Some((number, stage, part)) = self.take(full) {
            let write = || -> Result<(), RunError> {
                if let Stage::Full(Some(signal)) = stage {
                    arrive(device, signal)?;
                }
                let start = pieces.start(number);
                let inside = (part.start - start) as usize..(part.end - start) as usize;
                // SAFETY: the slot was full, and the copies to it are over.
                let bytes = unsafe { self.bytes_of(number) };
                Ok(file.write_summed(part.start, &bytes[inside])?)
            };
            match write() {
                Ok(()) => self.set(number, Stage::Free(None)),
                Err(error) => return self.fail(error),
            }
        }
    }
}

/// Waits for a signal for which no other thread asks.
fn arrive(device: &dyn Queues, signal: Signal) -> Result<(), DeviceError> {
    let arrived = device.arrive(signal);
    device.forget(signal);
    arrived
}

/// The error of the master of threads when one of them gave up; the thread itself reports the reason.
fn given_up() -> DeviceError {
    DeviceError::Failed {
        operation: "reading or writing the files of the fields",
        message: "a thread gave up".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of ranges that follow each other make up all pieces, either way, and around from any byte.
    #[test]
    fn parts_make_up_pieces() {
        for down in [false, true] {
            for cut in 30..=175 {
                let pieces = Pieces {
                    range: 30..175,
                    each: 20,
                    down,
                    cut,
                };
                let low = if cut > 30 { (cut - 1) / 20 } else { 0 };
                let high = if cut < 175 { 9 - cut / 20 } else { 0 };
                assert_eq!(pieces.count(), low + high, "{cut}");
                let around = |byte: u64| {
                    let from = 30 + (byte + cut - 30) % 145;
                    from..from + 1
                };
                // Byte by byte, from the cut on.
                let mut ranges: Vec<Range<u64>> = (0..145).map(around).collect();
                if down {
                    ranges.reverse();
                }
                let parts = ranges.iter().flat_map(|range| pieces.parts(range.clone()));
                let (mut ended, mut bytes, mut last) = (Vec::new(), 0, 0);
                for (number, part) in parts {
                    bytes += part.end - part.start;
                    assert!(pieces.start(number) <= part.start);
                    assert!(part.end <= pieces.start(number) + 20);
                    assert!(last <= number, "{cut} {number}");
                    last = number;
                    if pieces.ends(number, &part) {
                        ended.push(number);
                    }
                }
                assert_eq!(bytes, 145);
                assert_eq!(ended, (0..low + high).collect::<Vec<_>>(), "{cut}");
            }
            let pieces = Pieces {
                range: 30..175,
                each: 20,
                down,
                cut: if down { 175 } else { 30 },
            };
            let ranges = [30..31, 31..60, 60..60, 60..141, 141..175];
            let parts = ranges.iter().flat_map(|range| pieces.parts(range.clone()));
            let bytes: u64 = parts.map(|(_, part)| part.end - part.start).sum();
            assert_eq!((pieces.count(), bytes), (8, 145));
        }
    }
}
