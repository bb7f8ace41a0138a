//! Records that kernels gather on the device, and their way to the host.
//!
//! ```text
//! device   gather, gather, ..  into one half | gather, gather, ..  into the other half | gather, ..
//! bus                                        | the first half                          | the second half
//! host     starts of kernels, far ahead      | starts ..                    | end, begin | starts ..
//! ```
//! A half is filled again when its reading has ended, so at most one is under way.

use super::device::{Address, Device, DeviceError, Reading};

/// Records of one kind; `W` describes each of them.
#[derive(Debug)]
pub(super) struct Records<W> {
    /// Where the half that is filled begins, and the other one.
    halves: [Address; 2],
    /// Bytes of a half.
    capacity: u64,
    /// Bytes of the half that have records.
    filled: u64,
    waiting: Vec<W>,
    under_way: Option<(Reading, Batch<W>)>,
}

/// Records that came back together.
#[derive(Debug)]
pub(super) struct Batch<W> {
    pub bytes: Vec<u8>,
    pub records: Vec<W>,
}

impl<W> Records<W> {
    /// Takes memory for two halves of `capacity` bytes.
    pub fn new(device: &dyn Device, capacity: u64) -> Result<Self, DeviceError> {
        Ok(Self {
            halves: [device.take(capacity)?, device.take(capacity)?],
            capacity,
            filled: 0,
            waiting: Vec::new(),
            under_way: None,
        })
    }

    /// Bytes that may wait together.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether there is room for `bytes` bytes without a wait for the device, if they fit at all.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.filled + bytes <= self.capacity || self.under_way.is_none()
    }

    /// A place for `bytes` bytes, no more than the capacity; and the records that came back to make room for them.
    pub fn room(
        &mut self,
        device: &dyn Device,
        bytes: u64,
    ) -> Result<(Address, Option<Batch<W>>), DeviceError> {
        let mut back = None;
        if self.filled + bytes > self.capacity {
            back = self.end(device)?;
            self.begin(device)?;
        }
        Ok((self.halves[0].offset(self.filled as i64), back))
    }

    /// Notes that a kernel was started that fills the room of [`Records::room`].
    pub fn push(&mut self, bytes: u64, records: W) {
        self.filled += bytes;
        self.waiting.push(records);
    }

    /// Begins to read the records that wait, if no others are under way.
    pub fn begin(&mut self, device: &dyn Device) -> Result<(), DeviceError> {
        if self.under_way.is_some() || self.filled == 0 {
            return Ok(());
        }
        let reading = device.begin_read(self.halves[0], self.filled)?;
        let batch = Batch {
            bytes: vec![0; self.filled as usize],
            records: std::mem::take(&mut self.waiting),
        };
        self.under_way = Some((reading, batch));
        self.filled = 0;
        self.halves.swap(0, 1);
        Ok(())
    }

    /// The records that are under way, after a wait for them.
    pub fn end(&mut self, device: &dyn Device) -> Result<Option<Batch<W>>, DeviceError> {
        let Some((reading, mut batch)) = self.under_way.take() else {
            return Ok(None);
        };
        device.end_read(reading, &mut batch.bytes)?;
        Ok(Some(batch))
    }
}
