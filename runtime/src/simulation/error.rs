//! Why a run ended early.

use super::device_error::DeviceError;
use super::guard::BlowUp;
use super::setup_error::{NoThreads, SetupError};
use crate::output::FileError;
use std::fmt;

/// Why a run ended early.
#[derive(Debug)]
pub enum RunError {
    Setup(SetupError),
    File(FileError),
    Device(DeviceError),
    /// Not all threads could be started.
    Threads(NoThreads),
    /// `--verify` found a difference.
    Difference(Difference),
    /// Values are infinite, or close to it, or none.
    BlowUp(BlowUp),
    /// The checkpoint is later than the problem's end.
    Finished {
        step: u64,
        steps: u64,
    },
}

impl From<FileError> for RunError {
    fn from(error: FileError) -> Self {
        RunError::File(error)
    }
}

impl From<NoThreads> for RunError {
    fn from(error: NoThreads) -> Self {
        RunError::Threads(error)
    }
}

impl From<DeviceError> for RunError {
    fn from(error: DeviceError) -> Self {
        RunError::Device(error)
    }
}

impl From<SetupError> for RunError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Threads(error) => RunError::Threads(error),
            error => RunError::Setup(error),
        }
    }
}

/// The first value that differs, and how many do.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The holder of the value: a component, a probe, a slice.
    pub holder: String,
    /// Cell index; of a probe, nothing.
    pub at: Vec<i64>,
    /// Steps done when it was seen; of a probe, the step of the value.
    pub step: u64,
    /// Of the run and of the check.
    pub values: [f64; 2],
    /// Differing values of the same component, probe or slice.
    pub count: u64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [found, expected] = self.values;
        write!(f, "{}", self.holder)?;
        if !self.at.is_empty() {
            let at: Vec<String> = self.at.iter().map(i64::to_string).collect();
            write!(f, " at ({})", at.join(", "))?;
        }
        write!(
            f,
            " after step {} is {found:e} where the check has {expected:e}",
            self.step
        )?;
        match self.count {
            0 | 1 => Ok(()),
            n => write!(f, ", and {} more values of it differ", n - 1),
        }
    }
}
