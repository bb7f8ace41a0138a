//! Calculations in main memory on the CPU's cores.

mod batch;
mod board;
mod boxes;
pub mod calculation;
pub mod contention;
pub mod corrections;
mod effects;
pub mod engine;
mod execution;
mod fill;
pub mod ghosts;
pub mod guard;
pub mod injection;
mod kernel_table;
pub mod measure;
pub mod memory;
mod pyramids;
pub mod receivers;
mod row;
mod setup_error;
mod shares;
pub mod sweep;
pub mod threads;
mod tiles;
mod topology;
mod vectors;
mod waiting;

pub use calculation::{Calculation, SetupError};
pub use engine::Progress;
pub use execution::Execution;
pub use fill::TinyCoef;
pub use guard::BlowUp;
pub use threads::NoThreads;
