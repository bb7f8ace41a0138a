//! A block of threads that runs towers: its lines along the inner axis, the contents of its shared memory, and the
//! roles of its warps.

mod chain;
mod ghosts;
mod lines;
mod roles;
mod shape;
mod shared;
mod slabs;
mod z_block;

pub use chain::WarpChain;
pub use ghosts::{
    BlockGhosts, GhostPass, InnerGhosts, LineFold, LineFolds, Reader, Shown, UpperFold,
};
pub use lines::{Division, Lines};
pub use roles::{Demand, HELPERS, MOST_REGISTERS, Moved, OTHERS, Roles};
pub use shape::{
    ACROSS, Abilities, Block, CLUSTER_BARRIERS, MOST_THREADS, Misfit, NEIGHBOURS, Options,
    PIPELINE_BARRIERS, TASK_WORDS, WARP_BYTES, amending_registers, boundary_rows,
};
pub use shared::{CHUNK, SharedRow};
pub use slabs::{MOST_SLABS, Slabs, WARP};
pub use z_block::{Ends, ZBlock, ZBlocks};
