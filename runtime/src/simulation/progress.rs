//! How far a run has come.

use super::guard::Guard;
use std::sync::atomic::AtomicU64;

/// How far a run has come; other threads may look at it.
#[derive(Default)]
pub struct Progress {
    /// Cell-stages done: cells of an update's region times stages.
    pub done: AtomicU64,
    /// Looks whether values stay finite.
    pub guard: Guard,
}

impl Progress {
    /// The progress of a run that is to end where values become infinite or NaN.
    pub fn guarded() -> Self {
        Self {
            guard: Guard::awake(),
            ..Self::default()
        }
    }
}
