//! Tile programs: which rows are advanced when.
//!
//! A [`TileProgram`] is a tiling in integers. Each distinct (form, slope) of the tiling's faces is a [`Plane`]; an
//! event (an update at a frame position p, at stage number k counted from the start of the run) has the *depth*
//! `slope * k + lead - form(p)` along it, in units that make all numbers integers; leads belong to updates. Depth never
//! falls from an event to one that depends on it. A tile is one interval of depths per plane:
//! `[pitch * i, pitch * (i + 1))` for each cut, intersected over the levels; tiles run in ascending order of i.
//!
//! Two tiles may depend on each other only if the indices of the earlier one are nowhere above the indices of the later
//! one. So a tile may run when its neighbours one index lower along each cut, and the tiles of the time block before,
//! are done; all others follow.

#[cfg(any(test, feature = "testing"))]
pub mod check;
mod count;
mod course;
mod lower;
mod print;
mod pyramid;
mod sets;
mod shape;
mod sheets;
mod span;
mod strips;
mod verify;
mod walk;

#[cfg(any(test, feature = "testing"))]
pub use check::{PyramidReport, TileFault, TileReport, check, check_pyramids};
pub use course::Work;
pub(crate) use lower::in_integers;
pub use lower::{Checked, NoTiles, lower};
pub use pyramid::{AxisTile, PyramidProgram};
pub use shape::{CutKey, Part, Shape, Shapes};
pub use sheets::{Joint, SheetSet, members};
pub use strips::{Outermost, Strips, TimeBlock, Waits, time_blocks_at_once};
pub use verify::verify;
pub use walk::{ClassSet, Segment, Tile};

use crate::kernel::UpdateSet;
use crate::lattice::{PerAxis, Region};

/// The tiles of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct TileProgram {
    /// Steps in a time block.
    pub height: u64,
    pub planes: Vec<Plane>,
    /// Outermost first; each cut names a plane and its pitch.
    pub levels: Vec<Vec<PlaneCut>>,
    /// Per stage of a step, the updates that always lie in the same tiles; at most 64 classes.
    pub stages: Vec<Vec<Class>>,
    /// Per axis the length of the ring in half cells, if the axis is folded.
    pub ring: PerAxis<Option<i64>>,
    /// The periodic axes that are not folded: the program's executor has to close the ring.
    pub open: PerAxis<bool>,
    /// Where the frame leaves the outer axis open and all tiles of the outermost level run along it in one direction:
    /// the plane of a face against that direction, at which the ring may be cut.
    pub seam: Option<usize>,
    /// How many cells away an update reads at the most, along each axis.
    pub reach: PerAxis<i64>,
    /// Whether the grid has a middle axis: rows then follow each other along it, otherwise along the outer axis.
    pub three_axes: bool,
}

/// A linear form with a slope, in integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plane {
    /// Per half cell.
    pub form: PerAxis<i64>,
    /// Per stage.
    pub slope: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneCut {
    /// Index into the planes.
    pub plane: usize,
    /// In the plane's units of depth; positive.
    pub pitch: i64,
}

/// Updates of a stage with the same frame position, region and leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    pub updates: UpdateSet,
    /// As kernels run it.
    pub region: Region,
    /// Frame position in half cells.
    pub position: PerAxis<i64>,
    /// Per plane, in its units of depth.
    pub leads: Vec<i64>,
}
