//! The state of a tower on its way through a time block.

use super::line::Line;
use crate::scheme::StateId;
use crate::tower::SharedCopy;
use crate::tower::program::Amended;
use crate::tower::residency::RowRef;
use std::collections::BTreeMap;

/// The registers of the lanes of a tower.
pub(super) type Registers<T> = BTreeMap<RowRef, Line<T>>;

/// Copies from memory that are under way: with the values, if these were read as early as possible.
pub(super) type UnderWay<T> = Vec<(SharedCopy, Option<Line<T>>)>;

/// The first operations of a stage, and the state of the stage after them.
pub(super) struct Begun<T> {
    pub ops: usize,
    /// Old values of rows whose new ones are not final yet.
    pub old: Registers<T>,
    /// States that amendments have asked for.
    pub states: BTreeMap<(Amended, StateId), Line<T>>,
    /// Shared rows as they will be when the stage is over.
    pub published: Vec<(usize, Line<T>)>,
}

impl<T> Default for Begun<T> {
    fn default() -> Begun<T> {
        Begun {
            ops: 0,
            old: Registers::new(),
            states: BTreeMap::new(),
            published: Vec::new(),
        }
    }
}

/// A tower that a worker runs.
pub(super) struct Tower<T> {
    pub task: usize,
    /// The next stage, from the start of the time block on.
    pub next: i64,
    pub registers: Registers<T>,
    pub under_way: UnderWay<T>,
    /// Operations of the next stage that the tower has run already.
    pub begun: Option<Begun<T>>,
    /// Waves that were copied, by slots.
    pub waves: BTreeMap<usize, SlotWaves>,
}

/// The waves of a slot, by indices along the inner axis.
pub(super) type SlotWaves = BTreeMap<i64, f64>;
