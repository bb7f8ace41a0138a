//! Patch programs: pyramids that a block of threads keeps in its registers, for schemes with one or two axes on GPUs.
//!
//! A block loads a *tile*, its base with a halo on all sides, advances all of it by the steps of a time block, and
//! stores the base into a second array. Tiles of a time block depend on the values before it alone, so that there is
//! one launch for all of them, and nothing waits.
//!
//! ```text
//! inner axis    a warp has a line of the tile, each thread some cells that follow each other
//! outer axis    each warp has some lines that follow each other
//! patch         the cells of a thread: all their values lie in its registers
//! ```
//! Updates of most cells of a patch read what the thread has itself. What another lane of the warp has comes by a
//! shuffle; lines of another warp by shared memory, where each thread *publishes* the cells of its patch that others
//! read, one *slot* each.
//!
//! All cells of a tile are computed in all stages. What reads beyond the tile is wrong from there on, and wrong values
//! come nearer to the base with each stage: the halo is as wide as they come in a time block. Beyond an end of the grid
//! cells hold what updates read there, zeros or ghosts; a periodic axis goes on beyond its end.
//!
//! A tile with cells of zones has a *room*, memory of its own for their states: those of its halo are computed
//! redundantly, as values are. It loads states into its room before a time block, and stores those of its base after it.
//!
//! Where all tiles run at the same time they may stay on the chip: a launch has many time blocks then, between which
//! tiles exchange the rims of their bases.

mod creep;
mod draw;
mod points;
mod print;
mod program;
mod rooms;
mod shape;
mod slots;
mod stay;
#[cfg(test)]
mod tests;
mod verify;

pub use creep::creep;
pub use draw::picture;
pub use points::{CellTable, Entry, EntryKind, Lists, TooManyPoints};
pub use program::{AmendmentPlan, MOST_TILES, Misfit, PatchProgram, StagePlan, UpdatePlan};
pub use rooms::{AMENDED, Rooms, TOGETHER};
pub use shape::{Along, CoefPlace, Read, Shape, WARP};
pub use slots::{Place, Slots};
pub use stay::{MOST_NEIGHBOURS, Staying};
pub use verify::{Fault, verify};
