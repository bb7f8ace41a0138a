//! The device: memory that lasts from launch to launch.

use crate::counts::Counts;
use crate::error::{Fault, FaultKind};
use crate::launch::{Options, Param, launch};
use crate::memory::{Buffer, Memory};
use crate::module::Entry;

/// Numbers that buffers hold.
pub trait Element: Copy {
    /// Appends the bytes.
    fn put(self, bytes: &mut Vec<u8>);
    /// Reads from exactly as many bytes as the type has.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($ty:ty),*) => {
        $(impl Element for $ty {
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn get(bytes: &[u8]) -> Self {
                let mut value = [0; size_of::<$ty>()];
                value.copy_from_slice(bytes);
                <$ty>::from_le_bytes(value)
            }
        })*
    };
}

elements!(u8, u16, u32, u64, i32, i64, f32, f64);

/// A device with global memory.
#[derive(Debug, Default)]
pub struct Device {
    memory: Memory,
}

impl Device {
    /// A device without buffers.
    pub fn new() -> Device {
        Device::default()
    }

    /// A buffer whose bytes are all ones, so that floats in it are NaN.
    pub fn alloc(&mut self, bytes: usize) -> Buffer {
        self.memory.alloc(vec![0xff; bytes])
    }

    /// A buffer of which only bytes that were written may be read.
    pub fn alloc_tracked(&mut self, bytes: usize) -> Buffer {
        self.memory.alloc_tracked(vec![0xff; bytes])
    }

    /// A buffer with these values.
    pub fn upload<T: Element>(&mut self, values: &[T]) -> Buffer {
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|value| value.put(&mut bytes));
        self.memory.alloc(bytes)
    }

    /// A buffer of these bytes.
    pub fn upload_bytes(&mut self, bytes: Vec<u8>) -> Buffer {
        self.memory.alloc(bytes)
    }

    /// Writes bytes from an offset of a buffer on.
    pub fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), Fault> {
        let end = offset
            .checked_add(bytes.len())
            .filter(|end| *end <= buffer.bytes());
        let (Some(index), Some(end)) = (self.memory.get(buffer), end) else {
            let message = format!("{} bytes at {offset} of a buffer", bytes.len());
            return Err(Fault::new(FaultKind::OutOfBounds, message));
        };
        let allocation = &mut self.memory.buffers[index];
        allocation.bytes[offset..end].copy_from_slice(bytes);
        if let Some(written) = &mut allocation.written {
            written[offset..end].fill(true);
        }
        Ok(())
    }

    /// The bytes of a buffer; none if it belongs to another device.
    pub fn read(&self, buffer: Buffer) -> &[u8] {
        self.memory
            .get(buffer)
            .map_or(&[], |index| &self.memory.buffers[index].bytes)
    }

    /// The values in a buffer.
    pub fn download<T: Element>(&self, buffer: Buffer) -> Vec<T> {
        self.read(buffer)
            .chunks_exact(size_of::<T>())
            .map(T::get)
            .collect()
    }

    /// Runs a kernel on `grid` blocks of `block` threads, with `dynamic_shared` bytes for its `.extern .shared`
    /// variable. Variables of the module have their initial values in every launch.
    pub fn launch(
        &mut self,
        entry: &Entry,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared: u32,
        params: &[Param],
        options: &Options,
    ) -> Result<Counts, Fault> {
        launch(
            &mut self.memory,
            entry,
            grid,
            block,
            dynamic_shared,
            params,
            options,
        )
    }
}

impl From<Buffer> for Param {
    fn from(buffer: Buffer) -> Param {
        Param::U64(buffer.address())
    }
}
