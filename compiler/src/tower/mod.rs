//! From the tiles of a schedule to the work of towers on a GPU, without a word about any code for one.
//!
//! ```text
//! geometry, towers, unfit              tiles as towers: how they lie and move
//! ring, seam, width                    how they close around periodic axes
//! residency, allocate                  the rows that a tower keeps, and the place of each value
//! zones, zone_coefs                    variants of periods with the amendments of some zones
//! volume_source, wave_slots            sources that interior periods run, and slots for their waves
//! numbering                            the threads of a line, and the values that they have
//! block                                a block of threads: lines, shared rows, roles of warps
//! boundary                             the rows of periods that ends of the grid cut
//! mirrored_reads                       reads beyond mirrors of rows that predicated periods have anyway
//! end_zeros                            zeros beyond the ends of rows that rows in shared memory bring
//! order, program                       row operations in their order: a `TowerProgram`
//! print, verify, interp                the program as text, its rules, and its values without code for a GPU
//!
//! tiles, bounds                        the towers of a time block, and which of their periods are interior
//! tasks, zigzag                        these towers in an order; by stripes of several devices
//! points                               their sources and probes
//! planes, tally                        the planes that they access, and their number, without a list of them
//! ```
//!
//! The first half makes a tower program. The second half finds the towers that a time block has, and their work.

mod allocate;
pub mod block;
mod boundary;
mod bounds;
mod end_zeros;
mod geometry;
mod group;
mod group_box;
#[cfg(any(test, feature = "testing"))]
mod interp;
mod mirrored_reads;
mod numbering;
mod order;
mod planes;
mod points;
mod print;
mod program;
mod residency;
mod ring;
mod seam;
mod tally;
mod tasks;
mod tiles;
mod towers;
mod unfit;
mod verify;
mod volume_source;
mod waits;
mod wave_slots;
mod width;
mod zigzag;
mod zone_coefs;
mod zones;

pub use allocate::{Allocation, Carried, SharedCopy, StageAllocation, Uses, Written};
pub use boundary::{BoundaryRows, BoundaryUpdate, LineParts};
pub use bounds::{Bounds, Placement, without_ghosts, written_groups};
pub use group::{Group, PerFace};
pub use group_box::GroupBox;
#[cfg(any(test, feature = "testing"))]
pub use interp::{Injected, Recorded, TowerInterp, VolumeCells};
pub(crate) use mirrored_reads::Operands;
pub use mirrored_reads::{MirroredBody, MirroredRead, MirroredReads, RowGhost};
pub use numbering::{Numbering, View};
pub use planes::{PlaneAccess, Planes};
pub use points::{PhasedRow, PointCell, PointInjection, PointPlan, PointRow, Points, TaskStage};
pub use print::Printed;
pub use program::{
    AllocatedTowers, Amend, Amended, NoProgram, Operand, PeriodProgram, RowOp, StageProgram,
    TowerProgram, Update,
};
pub use residency::{
    LiveRange, Residency, RowRef, RowUpdate, StageAt, StageRows, Touch, is_cross_lane, keeps_old,
    reach, row_coefs,
};
pub use ring::Rings;
pub use seam::{Seam, SeamSide};
pub use tally::{Tally, TowersByPlane, TowersOfPlane, tally};
pub use tasks::{
    GroupedTasks, Grouping, Order, Task, TaskList, grouped_tasks, last_column, striped_tasks, tasks,
};
pub use tiles::Launches;
pub use towers::{Located, Towers, Traffic};
pub use unfit::Unfit;
pub use verify::{Fault, verify};
pub use volume_source::{Adds, VolumeSource};
pub use wave_slots::{BESIDE, WAVE, WaveCopy, WaveSlots};
pub use width::Width;
pub use zigzag::{StripeLaunch, Zigzag};
pub use zone_coefs::{ZoneCoefs, ZoneLine};
pub use zones::{Memory, Variant, Variants, memory_of};
