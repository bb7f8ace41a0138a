//! The result of tuning.

use std::time::Duration;

/// The timings of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Steps of a timing.
    pub steps: u64,
    pub times: Vec<Duration>,
    /// Whether others used the machine in one of them.
    pub disturbed: bool,
}

impl Tried {
    /// All of its steps.
    pub fn all_steps(&self) -> u64 {
        self.steps * self.times.len() as u64
    }

    /// The time of all of its steps.
    pub fn time(&self) -> Duration {
        self.times.iter().sum()
    }
}

/// The result of tuning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuningResult {
    /// The candidate with which the run went on.
    pub taken: usize,
    /// The timings of each candidate.
    pub tried: Vec<Tried>,
}
