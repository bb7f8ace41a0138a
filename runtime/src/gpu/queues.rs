//! Queues of work beside a device's own: copies and kernels that run side by side, ordered by signals.

use super::device::{Address, Device, DeviceError, Function, Mark, Threads};
use torre_compiler::backend::gpu::abi::Argument;

/// A queue of work. Its operations run in order; between queues, only signals define an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkQueue(pub usize);

impl WorkQueue {
    /// The queue of operations that are started without a queue.
    pub const OWN: WorkQueue = WorkQueue(0);
}

/// Something that a queue's earlier work leads up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(pub u64);

/// A device with several queues of work.
pub trait Queues: Device {
    /// Makes another queue; it is given back with the device.
    fn queue(&self) -> Result<WorkQueue, DeviceError>;
    /// Starts a kernel.
    ///
    /// # Safety
    /// The parameters are the kernel's, and it accesses only memory that was taken.
    unsafe fn start_in(
        &self,
        queue: WorkQueue,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError>;
    /// Copies from the host.
    ///
    /// # Safety
    /// There are `bytes` bytes, and no thread writes them until the copy is done.
    unsafe fn upload(
        &self,
        queue: WorkQueue,
        from: *const u8,
        to: Address,
        bytes: u64,
    ) -> Result<(), DeviceError>;
    /// Copies to the host.
    ///
    /// # Safety
    /// There are `bytes` bytes, and nothing else accesses them until the copy is done.
    unsafe fn download(
        &self,
        queue: WorkQueue,
        from: Address,
        to: *mut u8,
        bytes: u64,
    ) -> Result<(), DeviceError>;
    /// Copies within the device's memory, between places that do not overlap.
    fn copy_in(
        &self,
        queue: WorkQueue,
        from: Address,
        to: Address,
        bytes: u64,
    ) -> Result<(), DeviceError>;
    /// Marks the end of the operations in a queue up to now.
    fn signal(&self, queue: WorkQueue) -> Result<Signal, DeviceError>;
    /// Lets a queue wait for a signal before its next operation.
    fn follow(&self, queue: WorkQueue, signal: Signal) -> Result<(), DeviceError>;
    /// Waits for a signal.
    fn arrive(&self, signal: Signal) -> Result<(), DeviceError>;
    /// Says that a signal will not be asked for again.
    fn forget(&self, signal: Signal);
    /// Marks the time at which the operations in a queue up to now are done; [`Device::reach`] forgets it.
    fn mark_in(&self, queue: WorkQueue) -> Result<Mark, DeviceError>;
    /// Waits for both marks, and says how many seconds the second one is after the first one, by the device's clock. A
    /// number below 0 says that it was before. Both stay.
    fn seconds(&self, from: Mark, to: Mark) -> Result<f64, DeviceError>;
    /// Locks pages of the host, so that the device copies them by itself and copies go on beside other work. `false` if
    /// they cannot be locked: copies are as right then, but slower.
    ///
    /// # Safety
    /// There are `bytes` bytes, until they are unlocked.
    unsafe fn lock(&self, from: *mut u8, bytes: u64) -> Result<bool, DeviceError>;
    /// Unlocks the memory that was locked from there on; no copy uses it.
    ///
    /// # Safety
    /// It was locked.
    unsafe fn unlock(&self, from: *mut u8) -> Result<(), DeviceError>;
}

/// Waits for the work of queues of a device that goes away. A failure here cannot be reported.
pub(super) fn end_work(device: &dyn Queues, queues: impl IntoIterator<Item = WorkQueue>) {
    for queue in queues {
        if let Ok(signal) = device.signal(queue) {
            let _ = device.arrive(signal);
            device.forget(signal);
        }
    }
}

/// Lines of bytes at equal distances, the same on two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLines {
    /// Bytes of a line.
    pub length: u64,
    /// Bytes from a line to the next.
    pub stride: u64,
    pub count: u64,
}

impl ByteLines {
    /// Bytes from the beginning of the first line to the end of the last one.
    pub fn reach(&self) -> u64 {
        match self.count {
            0 => 0,
            count => (count - 1) * self.stride + self.length,
        }
    }
}

/// Several devices whose queues wait for each other, and which copy to each other.
pub trait Peers: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;
    /// A device, by a number below their count.
    fn device(&self, number: usize) -> &dyn Queues;
    /// Lets a queue of a device wait for a signal of another device before its next operation.
    fn follow_peer(
        &self,
        number: usize,
        queue: WorkQueue,
        of: usize,
        signal: Signal,
    ) -> Result<(), DeviceError>;
    /// Copies lines of one device to another one, by a queue of the former; places belong to the first line on both.
    fn send(
        &self,
        devices: [usize; 2],
        queue: WorkQueue,
        places: [Address; 2],
        lines: ByteLines,
    ) -> Result<(), DeviceError>;
}
