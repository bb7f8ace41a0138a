//! How the processor executes a schedule.

use std::fmt;
use torre_compiler::schedule::{Boxes, Schedule};
use torre_compiler::tile::{Checked, PyramidProgram, TileProgram};

/// The order in which the processor advances rows.
#[derive(Clone, Debug)]
pub enum Execution {
    /// Each stage over the whole grid, then the next.
    Layerwise,
    /// The tiles of a program.
    Tiles(Checked<TileProgram>),
    /// Overlapped tiles.
    Pyramids(Box<PyramidProgram>),
    /// Each stage over the whole grid in boxes.
    Boxes(Boxes),
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Execution::Layerwise => writeln!(f, "layerwise"),
            Execution::Tiles(program) => program.fmt(f),
            Execution::Pyramids(program) => program.fmt(f),
            Execution::Boxes(boxes) => writeln!(f, "{}", Schedule::Boxes(boxes.clone())),
        }
    }
}

impl Execution {
    /// Steps that it takes at once.
    pub fn height(&self) -> u64 {
        match self {
            Execution::Layerwise | Execution::Boxes(_) => 1,
            Execution::Tiles(program) => program.height,
            Execution::Pyramids(program) => program.height,
        }
    }
}
