//! Patch programs: pyramids that a block of threads keeps in its registers, on GPUs.
//!
//! A block loads a *tile*, its base with a halo on all sides, advances all of it by the steps of a time block, and
//! stores the base into a second array. Tiles of a time block depend on the values before it alone, so that there is
//! one launch for all of them, and nothing waits.
//!
//! ```text
//! patch         the cells of a thread, some along each axis: all their values lie in its registers
//! row           threads beside each other along the inner axis: a warp, or a half, a quarter ... of one
//! block         rows beside each other along the outer axis, and along the middle one of schemes with three axes
//! ```
//! Updates of most cells of a patch read values of the thread itself. Values of another thread of the row come by a
//! shuffle, and values of another row by shared memory, where each thread *publishes* the cells of its patch that
//! others read, one *slot* each.
//!
//! All cells of a tile are computed in all stages. Values that read beyond the tile are wrong from there on, and wrong
//! values come nearer to the base with each stage: the halo is as wide as they come in a time block. Beyond an end of
//! the grid cells hold the values that updates read there, zeros or ghosts; a periodic axis goes on beyond its end.
//!
//! A tile with cells of zones has a *room*, memory of its own for their states: states of its halo are computed
//! redundantly, as values are. It loads states into its room before a time block, and stores the states of its base
//! after it.
//!
//! Where all tiles run at the same time they may stay on the chip: a launch has many time blocks then, between which
//! tiles exchange the rims of their bases. With three axes they run in no other way.

mod creep;
mod draw;
mod points;
mod print;
mod program;
mod rooms;
mod shape;
mod slots;
mod stages;
mod stay;
mod verify;

pub use creep::creep;
pub use draw::picture;
pub use points::{CellTable, Entry, EntryKind, Lists, TooManyPoints};
pub use program::{MOST_TILES, Misfit, PatchProgram, exchanged, halos_of_rows};
pub use rooms::{AMENDED, Rooms, TOGETHER};
pub use shape::{AXES, Along, CoefPlace, Read, Shape, WARP};
pub use slots::{Place, Slots};
pub use stages::{AmendmentPlan, StagePlan, UpdatePlan};
pub use stay::{MOST_NEIGHBOURS, Staying};
pub use verify::{Fault, verify};
