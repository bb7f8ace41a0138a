//! A broken rule.

use std::fmt;

/// A rule that a tower program breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub rule: u32,
    pub alignment: usize,
    /// Of the period.
    pub stage: usize,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            rule,
            alignment,
            stage,
            message,
        } = self;
        write!(
            f,
            "rule {rule} of tower programs, alignment {alignment}, stage {stage}: {message}"
        )
    }
}

impl std::error::Error for Fault {}

pub(super) fn fault(rule: u32, alignment: usize, stage: usize, message: String) -> Fault {
    Fault {
        rule,
        alignment,
        stage,
        message,
    }
}
