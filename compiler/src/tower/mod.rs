//! Towers.
mod allocate;
pub mod block;
mod boundary;
mod bounds;
mod geometry;
mod group;
mod group_box;
mod interp;
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
mod wave_slots;
mod zigzag;
mod zone_coefs;
mod zones;

pub use allocate::{Allocation, Carried, SharedCopy, StageAllocation, Uses, Written};
pub use boundary::{BoundaryRow, BoundaryRows, BoundaryUpdate, LineParts};
pub use bounds::{Bounds, Placement, without_ghosts, written_groups};
pub use group::{Group, PerFace};
pub use group_box::GroupBox;
pub use interp::{Injected, Recorded, TowerInterp, VolumeCells};
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
pub use seam::{Seam, Window};
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
pub use zigzag::{StripeLaunch, Zigzag};
pub use zone_coefs::{ZoneCoefs, ZoneLine};
pub use zones::{Memory, Variant, Variants, memory_of};
