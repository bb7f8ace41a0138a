//! What the code of all threads depends on, and the values of a thread.

use crate::backend::gpu::ir::{Operand, Type};
use crate::layout::Layout;
use crate::patch::PatchProgram;
use crate::scheme::Scheme;

/// What the code of all threads depends on.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub scheme: &'a Scheme,
    pub layout: &'a Layout,
    pub program: &'a PatchProgram,
    pub real: Type,
    /// Bytes of a value.
    pub bytes: i64,
}

/// What a tile may meet, of which there is a code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surroundings {
    /// Cells alone.
    Bare,
    /// Ends of the grid, zones, sources and probes.
    Ends,
}

/// The values of a thread: per row and cell of its patch.
pub struct Values {
    pub rows: Vec<Vec<Operand>>,
    /// Per coefficient of the program; none where they are in shared memory.
    pub coefs: Vec<Vec<Operand>>,
}
