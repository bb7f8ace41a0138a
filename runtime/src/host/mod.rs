//! Calculations in main memory on the CPU's cores.

mod batch;
mod boxes;
pub mod calculation;
pub mod corrections;
mod effects;
pub mod engine;
pub mod ghosts;
pub mod guard;
pub mod injection;
mod kernel_table;
pub mod measure;
pub mod memory;
mod pyramids;
pub mod receivers;
mod row;
pub mod threads;
mod tiles;
mod vectors;
mod waiting;

pub use calculation::{Calculation, SetupError};
pub use engine::{Order, Progress};
pub use guard::BlowUp;
pub use threads::NoThreads;
