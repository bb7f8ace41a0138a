//! Calculations in main memory on the CPU's cores.

mod batch;
mod boxes;
pub mod calculation;
pub mod engine;
pub mod ghosts;
pub mod guard;
pub mod hooks;
pub mod measure;
pub mod memory;
mod pyramids;
pub mod threads;
mod tiles;

pub use calculation::{Calculation, SetupError};
pub use engine::{Order, Progress};
pub use guard::BlowUp;
pub use threads::NoThreads;
