//! What is asked of time blocks in flight.

#[cfg(doc)]
use crate::gpu::device::Facts;
#[cfg(doc)]
use torre_compiler::pipeline::Window;

/// How many time blocks are in flight, and what the device holds meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Time blocks at a time.
    pub blocks: usize,
    /// Planes across the first axis of a group of towers.
    pub group: i64,
    /// Groups whose planes are loaded ahead.
    pub ahead: i64,
    /// See [`Window::spread`].
    pub spread: bool,
    /// Planes of the device's buffer; `None`: the device holds the whole array.
    pub places: Option<i64>,
    /// Planes of the bases of overlapped slabs, which have two buffers of so many places; `None`: a window that moves.
    pub slabs: Option<i64>,
    /// Planes go around in the buffer, which has a multiple of so many bytes ([`Facts::mapping`]); `None`: they slide.
    pub circular: Option<u64>,
}
