//! The order of execution: faces of tiles, their legality, and the choice of sizes.

pub mod face;
pub mod frame;
pub mod notation;
pub mod template;
pub mod tiling;

pub use frame::Frame;
pub use template::{Parts, Template, TiledTemplate, Title};
pub use tiling::{Boxes, Cut, Illegal, Level, Pyramid, Schedule, Tiling, check_tiling};
