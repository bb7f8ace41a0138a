//! Sources that interior periods run.

use crate::incident::FarRows;
use crate::scheme::{ComponentId, StageId};

/// A source in many groups, which interior periods run: after the update of a component in a stage it
/// adds to the values that lie in its box. The box and the added values are data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeSource {
    pub stage: StageId,
    pub component: ComponentId,
    pub adds: Adds,
}

/// The amount that a volume source adds to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// `round(profile * wave)`, with one wave for all places.
    Product,
    /// A wave for each place: the correction near the faces of a box of total fields. Rows near faces across the first
    /// two axes, which are met by towers of some variants only, have one at each place, others near the ends of the box
    /// along the inner axis.
    Correction(FarRows),
}

impl VolumeSource {
    /// Whether it acts after an update of a component in a stage.
    pub fn is_after(&self, stage: StageId, component: ComponentId) -> bool {
        (self.stage, self.component) == (stage, component)
    }

    /// Whether it corrects rows far from faces by waves that can be copied.
    pub fn is_copied(&self) -> bool {
        self.adds == Adds::Correction(FarRows::Alike)
    }
}
