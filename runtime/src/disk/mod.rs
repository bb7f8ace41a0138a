//! Arrays on a disk: the values of a calculation that has no room for them in memory.
//!
//! [`ArrayFile`] is one file with an array as its layout arranges it, accessed past the system's cache where that is
//! possible. [`StateFolder`] has two of them in turns: a pass over the domain reads one and writes the other, so that
//! the end of each pass is a state from which a run goes on, however it ended.

mod array_file;
mod state_folder;

pub use array_file::{ArrayFile, BLOCK};
pub use state_folder::{
    DiskSpace, NOTE, RowGhosts, STATE_FILES, StateFolder, needed, replaced_arrays, replaced_state,
};
