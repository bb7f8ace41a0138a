//! Calculations on NVIDIA GPUs.
//!
//! ```text
//! CudaDevice::open(number)                    the driver, opened at run time             cuda: Device
//! code::ptx(library, scheme, set, ..)         kernels for it                             code
//! OnDevice::new(calculation, device, ptx)     values on the device                       simulation: Simulation
//!   step: updates, sources, images            starts of kernels, from tables             code, around
//!   band: many steps by towers                one start of a kernel                      towers
//!   records: probes, slices                   come back many steps at a time             simulation
//! ```
//!
//! Whatever acts on single values is the same as on the host, and gives the same bits.

pub mod around;
pub mod code;
pub mod cuda;
pub mod device;
pub mod predict;
mod simulation;
pub mod towers;

pub use code::DeviceProgram;
pub use cuda::CudaDevice;
pub use device::{Device, DeviceError, Facts};
pub use simulation::OnDevice;
pub use towers::TowerProgram;
