//! The interface of a GPU for runs. The CUDA driver implements it ([`super::cuda`]); tests have an implementation of
//! their own.

pub use crate::simulation::DeviceError;

use std::time::Duration;
use torre_compiler::backend::gpu::abi::Argument;

/// A place in a device's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Address {
    /// A place `bytes` bytes farther.
    pub fn offset(self, bytes: i64) -> Address {
        Address(self.0.wrapping_add_signed(bytes))
    }
}

/// A kernel that a device has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(pub usize);

/// Something that a device's earlier work leads up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub u64);

/// A copy to the host that has begun.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what was read is had by `Device::end_read`"]
pub struct Reading(pub u64);

/// How many threads run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    pub blocks: [u32; 3],
    /// Of a block.
    pub threads: [u32; 3],
    /// Bytes of shared memory that a block gets beyond the memory that the kernel declares.
    pub shared: u32,
}

/// Facts about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// As its maker calls it.
    pub name: String,
    /// Compute capability, major * 10 + minor.
    pub capability: u32,
    /// The newest CUDA that its driver knows: 12080 is 12.8.
    pub cuda: u32,
    pub multiprocessors: u32,
    /// Threads that a multiprocessor holds.
    pub threads: u32,
    /// Cycles of a multiprocessor per second, at most.
    pub clock: u64,
    /// Bytes of its memory.
    pub memory: u64,
    /// Bytes of the cache that all multiprocessors share.
    pub l2: u64,
    /// The partition of that cache that is near each multiprocessor, by its number; empty or all 0 where there is one,
    /// or nothing is known. A partition keeps copies of the lines that the multiprocessors near it use: lines that all
    /// use take room in all of them.
    pub l2_partition: Vec<u32>,
    /// Bytes of which memory is a multiple that the device maps at several addresses; `None` where it cannot.
    pub mapping: Option<u64>,
}

impl Facts {
    /// Partitions of the cache that all multiprocessors share.
    pub fn partitions(&self) -> u32 {
        self.l2_partition.iter().max().map_or(1, |last| last + 1)
    }

    /// Threads that all multiprocessors hold.
    pub fn threads_at_once(&self) -> u64 {
        u64::from(self.multiprocessors) * u64::from(self.threads)
    }
}

/// A device whose work is done in the order in which it was asked for. Copies from and to the host wait for all work
/// before; copies that [`Device::begin_read`] begins go on beside later work.
pub trait Device: Send + Sync {
    fn facts(&self) -> &Facts;
    /// Bytes of memory that could be taken now.
    fn free_memory(&self) -> Result<u64, DeviceError>;
    /// Takes memory, aligned to 256 bytes and filled with zeros; it is given back with the device.
    fn take(&self, bytes: u64) -> Result<Address, DeviceError>;
    /// Takes memory that lies twice in a row: byte `n` and byte `bytes + n` are the same. `bytes` is a multiple of
    /// [`Facts::mapping`]. It is given back with the device.
    ///
    /// A kernel uses each byte at one of both places. Work that begins after the kernel sees its values at the other
    /// place, too.
    fn take_circular(&self, bytes: u64) -> Result<Address, DeviceError>;
    /// Gives memory back that was taken, but for circular one.
    fn give_back(&self, memory: Address) -> Result<(), DeviceError>;
    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), DeviceError>;
    fn read(&self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;
    /// Begins to read memory as it is after the work asked for up to now, while other work goes on. No work changes
    /// that memory before the reading has ended.
    fn begin_read(&self, from: Address, bytes: u64) -> Result<Reading, DeviceError>;
    /// Waits for a reading, and puts the bytes into memory of their size.
    fn end_read(&self, reading: Reading, bytes: &mut [u8]) -> Result<(), DeviceError>;
    /// Copies within the device's memory, between places that do not overlap.
    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError>;
    /// Translates PTX and finds kernels in it, in the order of their names.
    fn load(&self, ptx: &str, names: &[String]) -> Result<Vec<Function>, DeviceError>;
    /// Bytes of memory that a thread of a kernel has of its own, for values that registers do not hold.
    fn spilled(&self, function: Function) -> Result<u64, DeviceError>;
    /// Starts a kernel.
    ///
    /// # Safety
    /// The parameters are the kernel's, and it accesses only memory that was taken.
    unsafe fn start(
        &self,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError>;
    /// Starts a kernel whose blocks may begin before the work asked for earlier is done: the kernel itself waits for
    /// the end of that work.
    ///
    /// # Safety
    /// As for [`Device::start`].
    unsafe fn start_early(
        &self,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError>;
    /// Starts a kernel whose blocks wait for each other: all of them run at the same time, or none does.
    ///
    /// # Safety
    /// As for [`Device::start`].
    unsafe fn start_together(
        &self,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError>;
    /// Marks the end of the work that was asked for up to now.
    fn mark(&self) -> Result<Mark, DeviceError>;
    /// Waits until the work before a mark is done.
    fn reach(&self, mark: Mark) -> Result<(), DeviceError>;
    /// Waits like [`Device::reach`] for both marks, and says how long the device took from one to the other.
    fn between(&self, from: Mark, to: Mark) -> Result<Duration, DeviceError>;
}
