//! Calculations on NVIDIA GPUs.
//!
//! ```text
//! CudaDevice::open(number)                    the driver, opened at run time              cuda: Device
//! DeviceModel::of(device, ..)                 the model of it for planning                device_model, l2_partitions
//! code::ptx(library, scheme, set, ..)         kernels for whole stages                    code
//! CompiledTowers::new(library, program, ..)   a tower program's kernels                   towers
//! CompiledPatches::new(library, program, ..)  a patch program's kernels                   patches
//! OnDevice::new(calculation, device, ptx)     values on the device                        simulation: Simulation
//!   step: updates, injections, ghosts         launches of kernels, with tables            code, step_tables
//!   time block: many steps by towers          few launches                                time_blocks, tower_blocks
//!     by pyramids                             one launch, into a second array             patches
//!   between time blocks                       slices, volumes, the end of a run           interruptions
//!   waves of sources and incident fields      computed ahead by a thread of the host      waves
//!   records: probes, slices                   come back many steps at a time              simulation, records
//!   copies from and to the host               through page-locked memory                  transfer
//! GapTrial::time(library, device, gaps)       the distance of planes that is the fastest  gaps
//! Pipelined::new(calculation, devices, ..)    time blocks in flight, windows              pipelined: Simulation
//! Striped::new(calculation, peers, ..)        several devices, a stripe of the grid each  striped: Simulation; queues
//!   with_timeline()                           when operations of either of them ran       recorder; crate::timeline
//! ```
//!
//! Operations on single values are the same as on the host, and give the same bits.

pub mod code;
pub mod cuda;
pub mod device;
mod device_model;
mod gaps;
mod gather;
mod ghost_kernel;
mod interruptions;
pub mod l2_partitions;
mod lookout;
mod no_time_blocks;
pub mod patches;
mod pipelined;
pub mod queues;
mod recorder;
mod records;
mod runs;
mod simulation;
pub mod step_tables;
mod striped;
mod time_block_error;
mod time_blocks;
mod tower_blocks;
pub mod towers;
mod transfer;
mod volumes;
mod waves;

pub use code::DeviceProgram;
pub use cuda::{CudaDevice, CudaPeers};
pub use device::{Device, DeviceError, Facts};
pub use device_model::DeviceModel;
pub use gaps::{GapTrial, NoTrial, TimedGap, best_gap};
pub use interruptions::{EvenHeights, HeightShares, Heights, Interruptions};
pub use no_time_blocks::NoTimeBlocks;
pub use patches::{CompiledPatches, PatchBlocks};
pub use pipelined::{Devices, HeldPlanes, InFlight, PIECE, Pipelined, device_bytes, piece_bytes};
pub use queues::{Peers, Queues};
pub use simulation::{OnDevice, resident_bytes};
pub use striped::{Striped, StripedProgram, Striping, striped_bytes};
pub use time_block_error::TimeBlockError;
pub use time_blocks::{CompiledBlocks, TimeBlocks};
pub use tower_blocks::TowerBlocks;
pub use towers::{CompiledTowers, TimeBlockOrder};
pub use volumes::VolumeChoice;
