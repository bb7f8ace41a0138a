//! Reasons for which time blocks cannot be compiled for a device.

use std::fmt;
use torre_compiler::backend::llvm::library::Error;
use torre_compiler::{patch, tower};

/// Why time blocks could not be compiled.
#[derive(Debug)]
pub enum TimeBlockError {
    /// The tower program breaks a rule: a defect of Torre.
    Towers(tower::Fault),
    /// The patch program breaks a rule: a defect, too.
    Patches(patch::Fault),
    /// LLVM does not take the code.
    Code(Error),
    /// A time block has too many towers, or the order has queues from which no block would take.
    Order,
}

impl From<Error> for TimeBlockError {
    fn from(error: Error) -> Self {
        TimeBlockError::Code(error)
    }
}

impl fmt::Display for TimeBlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeBlockError::Towers(fault) => write!(f, "the tower program is wrong: {fault}"),
            TimeBlockError::Patches(fault) => write!(f, "the patch program is wrong: {fault}"),
            TimeBlockError::Code(error) => error.fmt(f),
            TimeBlockError::Order => f.write_str("a time block has too many towers to be counted"),
        }
    }
}

impl std::error::Error for TimeBlockError {}
