//! Tile programs: which rows are advanced when.

mod blocks;

pub use blocks::{Block, row_region, stage_blocks};

/// The tiles of a schedule.
#[derive(Clone, Debug)]
pub struct TileProgram {}
