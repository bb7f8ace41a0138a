//! Global memory: buffers with gaps between them, and where the state spaces lie.

use crate::error::{Fault, FaultKind};
use crate::op::Space;

/// The address of the first byte of a block's shared memory, so that 0 is no address.
pub(crate) const SHARED_BASE: u64 = 1024;
/// The address of the first byte of a thread's local memory.
pub(crate) const LOCAL_BASE: u64 = 4096;
/// The address of the first byte of the parameters.
pub(crate) const PARAM_BASE: u64 = 4096;
/// The beginning of generic addresses of shared memory.
pub(crate) const SHARED_WINDOW: u64 = 1 << 56;
/// The beginning of generic addresses of local memory.
pub(crate) const LOCAL_WINDOW: u64 = 2 << 56;
/// The beginning of generic addresses of parameters.
pub(crate) const PARAM_WINDOW: u64 = 3 << 56;

impl Space {
    /// The space of an address, and the beginning of its generic addresses: 0 where it is no such address, or one of
    /// global memory.
    pub(crate) fn of(self, address: u64) -> (Space, u64) {
        if self != Space::Generic {
            return (self, 0);
        }
        match address & 0xff << 56 {
            SHARED_WINDOW => (Space::Shared, SHARED_WINDOW),
            LOCAL_WINDOW => (Space::Local, LOCAL_WINDOW),
            PARAM_WINDOW => (Space::Param, PARAM_WINDOW),
            _ => (Space::Global, 0),
        }
    }
}

/// The first buffer's address, beyond 32 bits so that truncated addresses are found out.
const FIRST: u64 = 1 << 40;
/// Between buffers, so that addresses a little out of bounds hit none.
const GAP: u64 = 1 << 20;
/// The alignment of buffers.
const ALIGN: u64 = 256;

/// A buffer in global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    address: u64,
    bytes: usize,
}

impl Buffer {
    /// The address of its first byte, a multiple of 256.
    pub fn address(self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    pub fn bytes(self) -> usize {
        self.bytes
    }
}

/// Bytes and their state.
#[derive(Debug, Default)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) bytes: Vec<u8>,
    /// Which bytes have been written, where reading others is a fault.
    pub(crate) written: Option<Vec<bool>>,
    pub(crate) constant: bool,
}

/// All buffers, ascending by address.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) buffers: Vec<Allocation>,
    /// The buffer of the last access.
    last: usize,
}

impl Memory {
    pub(crate) fn alloc(&mut self, bytes: Vec<u8>) -> Buffer {
        let end = |buffer: &Allocation| buffer.base + buffer.bytes.len() as u64 + GAP;
        let base = self
            .buffers
            .last()
            .map_or(FIRST, end)
            .next_multiple_of(ALIGN);
        let buffer = Buffer {
            address: base,
            bytes: bytes.len(),
        };
        self.buffers.push(Allocation {
            base,
            bytes,
            ..Allocation::default()
        });
        buffer
    }

    /// A buffer of which only bytes that were written may be read.
    pub(crate) fn alloc_tracked(&mut self, bytes: Vec<u8>) -> Buffer {
        let written = vec![false; bytes.len()];
        let buffer = self.alloc(bytes);
        if let Some(allocation) = self.buffers.last_mut() {
            allocation.written = Some(written);
        }
        buffer
    }

    pub(crate) fn truncate(&mut self, buffers: usize) {
        self.buffers.truncate(buffers);
        self.last = 0;
    }

    pub(crate) fn get(&self, buffer: Buffer) -> Option<usize> {
        self.buffers
            .binary_search_by_key(&buffer.address, |allocation| allocation.base)
            .ok()
    }

    /// The buffer and offset of an access, if it lies in a buffer.
    pub(crate) fn find(&mut self, address: u64, bytes: usize) -> Result<(usize, usize), Fault> {
        if let Some(at) = self.inside(self.last, address, bytes) {
            return Ok((self.last, at));
        }
        let after = self
            .buffers
            .partition_point(|buffer| buffer.base <= address);
        let index = after.wrapping_sub(1);
        if let Some(at) = self.inside(index, address, bytes) {
            self.last = index;
            return Ok((index, at));
        }
        let near = match (self.buffers.get(index), self.buffers.get(after)) {
            (Some(buffer), _) if address - buffer.base <= buffer.bytes.len() as u64 + GAP / 2 => {
                format!(
                    "offset {} of a buffer of {} bytes",
                    address - buffer.base,
                    buffer.bytes.len()
                )
            }
            (_, Some(buffer)) if buffer.base - address <= GAP / 2 => {
                format!("{} bytes before a buffer", buffer.base - address)
            }
            _ => "no buffer is near".to_string(),
        };
        let message = format!("{bytes} bytes of global memory: {near}");
        Err(Fault::new(FaultKind::OutOfBounds, message).at(address))
    }

    fn inside(&self, index: usize, address: u64, bytes: usize) -> Option<usize> {
        let buffer = self.buffers.get(index)?;
        let at = usize::try_from(address.checked_sub(buffer.base)?).ok()?;
        (at.checked_add(bytes)? <= buffer.bytes.len()).then_some(at)
    }
}
