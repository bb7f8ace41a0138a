//! Times of the parts of a command.

use std::time::{Duration, Instant};

/// When the command started, and how long its first parts took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: Instant,
    pub(super) reading: Duration,
    pub(super) planning: Duration,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self {
            started: Instant::now(),
            reading: Duration::ZERO,
            planning: Duration::ZERO,
        }
    }

    pub(super) fn total(&self) -> Duration {
        self.started.elapsed()
    }
}
