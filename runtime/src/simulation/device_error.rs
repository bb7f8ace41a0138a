//! Why a device does not run a calculation.

use std::fmt;

/// Why a device cannot do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// The driver's library is not there.
    NoDriver,
    /// The driver's library could be replaced by others.
    Refused(torre_trust::Refusal),
    /// The driver has no device.
    NoDevice,
    /// There are fewer devices.
    NoSuchDevice {
        number: usize,
        count: usize,
    },
    /// The driver is too old.
    OldDriver {
        cuda: u32,
        needed: u32,
    },
    /// No code can be generated for it.
    Unsupported {
        name: String,
        capability: u32,
    },
    Memory {
        needed: u64,
        available: u64,
    },
    /// The driver does not take the code; a defect of Torre, or a limit of the device.
    Code {
        message: String,
    },
    /// Too many cells along an axis for one start of a kernel.
    TooLong,
    /// The driver reports an error.
    Failed {
        /// The operation that was tried.
        operation: &'static str,
        message: String,
    },
}

/// A version of CUDA as people write it.
fn version(cuda: u32) -> String {
    format!("{}.{}", cuda / 1000, cuda % 1000 / 10)
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Refused(refusal) => {
                write!(f, "the NVIDIA driver is not opened: {refusal}")
            }
            DeviceError::NoDriver => {
                f.write_str("the CUDA driver is not there: no libcuda.so was found")
            }
            DeviceError::NoDevice => f.write_str("the CUDA driver finds no GPU"),
            DeviceError::NoSuchDevice { number, count } => write!(
                f,
                "there is no GPU {number}: the CUDA driver finds {count}, counted from 0"
            ),
            DeviceError::OldDriver { cuda, needed } => write!(
                f,
                "the CUDA driver knows CUDA {}, and {} is needed",
                version(*cuda),
                version(*needed)
            ),
            DeviceError::Unsupported { name, capability } => write!(
                f,
                "no code can be generated for {name} with compute capability {}.{} under this driver",
                capability / 10,
                capability % 10
            ),
            DeviceError::Memory { needed, available } => write!(
                f,
                "{needed} bytes of the GPU's memory are needed, and {available} are available"
            ),
            DeviceError::Code { message } => {
                write!(f, "the CUDA driver does not take the kernels: {message}")
            }
            DeviceError::TooLong => f.write_str(
                "the grid has more cells along an axis than a kernel can be started for",
            ),
            DeviceError::Failed { operation, message } => {
                write!(f, "{operation} failed: {message}")
            }
        }
    }
}

impl std::error::Error for DeviceError {}
