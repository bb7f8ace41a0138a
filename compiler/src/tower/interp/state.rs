//! The state of a tower on its way through a time block.

use super::line::Line;
use crate::tower::SharedCopy;
use crate::tower::residency::RowRef;
use std::collections::BTreeMap;

/// The registers of the lanes of a tower.
pub(super) type Registers<T> = BTreeMap<RowRef, Line<T>>;

/// Copies from memory that are under way: with the values, if these were read as early as possible.
pub(super) type UnderWay<T> = Vec<(SharedCopy, Option<Line<T>>)>;

/// A tower that a worker runs.
pub(super) struct Tower<T> {
    pub task: usize,
    /// The next stage, from the start of the time block on.
    pub next: i64,
    pub registers: Registers<T>,
    pub under_way: UnderWay<T>,
    /// Waves that were copied, by slots.
    pub waves: BTreeMap<usize, SlotWaves>,
}

/// The waves of a slot, by indices along the inner axis.
pub(super) type SlotWaves = BTreeMap<i64, f64>;
