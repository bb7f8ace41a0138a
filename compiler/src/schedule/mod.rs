//! The order of execution: faces of tiles and their legality.

pub mod face;
pub mod frame;
pub mod tiling;

pub use frame::Frame;
pub use tiling::{Cut, Illegal, Level, Schedule, Tiling, check_tiling};
