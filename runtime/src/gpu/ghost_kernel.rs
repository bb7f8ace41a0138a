//! A kernel that makes ghosts, which time blocks have left out of date in memory.

use super::device::{Address, Device, DeviceError, Function, Threads};
use torre_compiler::backend::gpu::abi::GhostsOf;

/// The kernel, and how it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GhostKernel {
    function: Function,
    threads: Threads,
}

impl GhostKernel {
    /// A kernel that is started with `blocks` blocks of `threads` threads.
    pub fn new(function: Function, blocks: [u32; 3], threads: [u32; 3]) -> GhostKernel {
        GhostKernel {
            function,
            threads: Threads {
                blocks,
                threads,
                shared: 0,
            },
        }
    }

    /// Makes the ghosts of an array of the layout.
    pub fn make(&self, device: &dyn Device, array: Address) -> Result<(), DeviceError> {
        let arguments = GhostsOf { array: array.0 }.arguments();
        // SAFETY: the kernel's parameter is the array, all places are in the layout.
        unsafe { device.start(self.function, self.threads, &arguments) }
    }
}
