//! The work of a tile program, in numbers.

use crate::kernel::UpdateSet;
use std::collections::BTreeSet;
use std::fmt;

/// Counts of a run; all are exact and depend on the program alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TileReport {
    pub steps: u64,
    /// Updates at single cells.
    pub events: u64,
    /// Operands of events that are values of components, boundaries' zeros excepted.
    pub reads: u64,
    /// Outermost first; at least one.
    pub levels: Vec<LevelReport>,
    pub time_blocks: u64,
    /// All threads wait for each other after every [`super::super::time_blocks_at_once`] time blocks, and at the end.
    pub barriers: u64,
    pub strips: u64,
    /// Times that a strip looks whether another has passed a place.
    pub waits: u64,
    /// Rows along the inner axis that one set of updates runs over, in all stages.
    pub rows: u64,
    /// Runs of neighbouring rows: one call of a kernel advances one run.
    pub segments: u64,
    /// Per stage of a step, the sets of updates that run together.
    pub variants: Vec<BTreeSet<UpdateSet>>,
}

/// Counts of the tiles of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelReport {
    /// Tiles that have events.
    pub tiles: u64,
    /// Values that a tile reads before it computes them itself, each once per tile.
    pub loads: u64,
    /// Values that a tile computes and that outlive it: each place in memory once per tile.
    pub stores: u64,
}

impl fmt::Display for TileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "steps = {}", self.steps)?;
        writeln!(f, "events = {}", self.events)?;
        writeln!(f, "reads = {}", self.reads)?;
        for (i, level) in self.levels.iter().enumerate() {
            writeln!(
                f,
                "level {i}: tiles = {}, loads = {}, stores = {}",
                level.tiles, level.loads, level.stores
            )?;
        }
        writeln!(f, "time blocks = {}", self.time_blocks)?;
        writeln!(f, "barriers = {}", self.barriers)?;
        writeln!(f, "strips = {}", self.strips)?;
        writeln!(f, "waits = {}", self.waits)?;
        writeln!(f, "rows = {}", self.rows)?;
        writeln!(f, "segments = {}", self.segments)?;
        for (stage, sets) in self.variants.iter().enumerate() {
            write!(f, "variants of s{stage} = {}:", sets.len())?;
            for set in sets {
                write!(f, " {:x}", set.0)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
