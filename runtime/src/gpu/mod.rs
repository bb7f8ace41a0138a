//! Calculations on NVIDIA GPUs.
//!
//! ```text
//! DevicePlanner::best(template)               layerwise, or which towers                  plan, from predict, chip, apart
//! CudaDevice::open(number)                    the driver, opened at run time             cuda: Device
//! code::ptx(library, scheme, set, ..)         kernels for it                             code
//! OnDevice::new(calculation, device, ptx)     values on the device                       simulation: Simulation
//!   step: updates, sources, ghosts            starts of kernels, from tables             code, around
//!   time block: many steps by towers                one start of a kernel                      towers, sheets
//!   records: probes, slices                   come back many steps at a time             simulation, records
//!   copies from and to the host               through page-locked memory                 transfer
//! ```
//!
//! Whatever acts on single values is the same as on the host, and gives the same bits.

mod apart;
pub mod around;
mod chip;
pub mod code;
pub mod cuda;
pub mod device;
mod lookout;
pub mod partitions;
pub mod plan;
pub mod predict;
mod records;
mod sheets;
mod simulation;
pub mod towers;
mod transfer;

pub use apart::{Apart, Heights};
pub use chip::Chip;
pub use code::DeviceProgram;
pub use cuda::CudaDevice;
pub use device::{Device, DeviceError, Facts};
pub use plan::{DevicePlan, DevicePlanner, NoPlan};
pub use sheets::Dense;
pub use simulation::OnDevice;
pub use towers::{Lines, TowerProgram};
