//! A row that an update has computed.

use torre_compiler::lattice::{Group, Interval, Region};
use torre_compiler::layout::RowId;
use torre_compiler::scheme::{ComponentId, StageId};

/// A row, or a part of it, that an update has just computed.
#[derive(Clone, Copy, Debug)]
pub struct AdvancedRow {
    pub stage: StageId,
    /// From 0.
    pub step: u64,
    pub component: ComponentId,
    pub row: RowId,
    /// Indices along the outer and the middle axis.
    pub group: Group,
    /// Along the inner axis.
    pub range: Interval,
}

/// Rows of a component that an update has just computed.
#[derive(Clone, Copy, Debug)]
pub struct AdvancedRows {
    pub stage: StageId,
    /// From 0.
    pub step: u64,
    pub component: ComponentId,
    pub row: RowId,
    pub rows: Region,
}
