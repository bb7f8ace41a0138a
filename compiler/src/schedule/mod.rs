//! The order of execution: faces of tiles and their legality.

pub mod face;
