//! Calculations in main memory on the CPU's cores.

mod batch;
mod board;
mod boxes;
pub mod calculation;
mod compiled;
pub mod contention;
pub mod corrections;
mod effects;
pub mod engine;
mod execution;
mod fill;
pub mod ghosts;
pub mod injection;
mod kernel_table;
pub mod measure;
pub mod memory;
mod pyramids;
pub mod receivers;
mod row;
mod shares;
mod speeds;
mod stages;
pub mod sweep;
pub mod threads;
mod tiles;
mod topology;
mod tuning;
mod vectors;
mod waiting;

pub use calculation::Calculation;
pub use compiled::Compiled;
pub use execution::Execution;
pub use fill::{StartValues, TinyCoef, check_start_values};
pub use tuning::{Candidate, Timed, Tuned, Tuning};
