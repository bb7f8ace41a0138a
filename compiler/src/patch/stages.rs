//! Plans of the stages of a round: updates with their reads, and rows that are published and stored after them.

use super::shape::Read;
use crate::scheme::{ComponentId, StageId, ZoneId};

/// An update of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatePlan {
    /// Its number in the stage.
    pub update: usize,
    pub component: ComponentId,
    /// The row that it writes.
    pub target: usize,
    /// For each operation of its body, its read of a component.
    pub reads: Vec<Option<Read>>,
    /// The amendments of the update, in their order.
    pub amendments: Vec<AmendmentPlan>,
}

/// An amendment of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmendmentPlan {
    pub zone: ZoneId,
    /// For each operation of its body, its read of a component.
    pub reads: Vec<Option<Read>>,
}

impl UpdatePlan {
    /// Its reads of components, in zones too.
    pub fn all_reads(&self) -> impl Iterator<Item = &Read> {
        let amended = self.amendments.iter().flat_map(|a| &a.reads);
        self.reads.iter().chain(amended).flatten()
    }
}

/// A stage of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagePlan {
    /// The step of the round.
    pub phase: u32,
    pub stage: StageId,
    pub updates: Vec<UpdatePlan>,
    /// Whether a barrier comes before it publishes, as threads may still read the slots.
    pub frees: bool,
    /// Rows of which cells are published after it.
    pub publish: Vec<usize>,
    /// Rows that are final in the round and not held beyond it: stored here, if they will be read.
    pub leave: Vec<usize>,
    /// Whether a barrier ends it.
    pub barrier: bool,
}

impl StagePlan {
    /// The reads of its updates of components, in zones too.
    pub fn all_reads(&self) -> impl Iterator<Item = &Read> {
        self.updates.iter().flat_map(UpdatePlan::all_reads)
    }
}
