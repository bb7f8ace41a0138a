//! Rows of a group, and where their values begin.

use crate::scheme::StateId;
use std::fmt;

/// A row of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// Where index 0 of rows lies, in elements behind the place that it has in other layouts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedRows {
    /// Per row of a group; rows that are not there have 0.
    pub rows: Vec<i64>,
    /// Per state.
    pub states: Vec<i64>,
}

impl PackedRows {
    pub fn row(&self, row: RowId) -> i64 {
        self.rows.get(row.0 as usize).copied().unwrap_or(0)
    }

    pub fn state(&self, state: StateId) -> i64 {
        self.states.get(state.index()).copied().unwrap_or(0)
    }
}
