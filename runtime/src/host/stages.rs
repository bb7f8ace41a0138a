//! The stages of a step with their boxes, for executions that go stage by stage.

use torre_compiler::kernel::{StageBox, stage_boxes};
use torre_compiler::scheme::{Scheme, StageId};

/// A stage of a step.
pub(super) struct Stage {
    pub id: StageId,
    /// The boxes in which its updates run.
    pub blocks: Vec<StageBox>,
}

/// The stages of a step, in their order.
///
/// Several threads may advance disjoint rows of a stage, or disjoint ranges of a row, at the same time: a stage never
/// reads a value that another row's update of the same stage writes (rule 4 of schemes), and ghosts belong to one
/// source each. All of them wait for each other before the next stage begins.
pub(super) fn stages(scheme: &Scheme) -> Vec<Stage> {
    let stage = |id| Stage {
        id,
        blocks: stage_boxes(scheme, id),
    };
    scheme.stage_ids().map(stage).collect()
}
