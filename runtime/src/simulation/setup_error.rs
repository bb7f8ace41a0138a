//! Why a calculation cannot start.

use std::fmt;
use std::io;
use torre_compiler::incident::Refusal;
use torre_compiler::layout::TooLarge;
use torre_compiler::scheme::Scheme;

/// Not all threads of a run could be started.
#[derive(Debug)]
pub struct NoThreads {
    pub wanted: usize,
    pub started: usize,
    pub error: io::Error,
}

impl fmt::Display for NoThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            wanted,
            started,
            error,
        } = self;
        write!(
            f,
            "only {started} of {wanted} threads could be started: {error}"
        )
    }
}

impl std::error::Error for NoThreads {}

/// Why a calculation cannot start.
#[derive(Debug)]
pub enum SetupError {
    /// The sizes are too large for addresses.
    TooLarge,
    /// The memory could not be had.
    Memory { bytes: u64, error: io::Error },
    /// An initial value is NaN, infinite or beyond the range of the precision.
    InitialNotFinite {
        /// The name of its component.
        component: String,
        /// Its cell indices, in the order of the scheme's axes.
        at: Vec<i64>,
        /// In double precision.
        value: f64,
        /// The path of the file that it comes from.
        file: Option<String>,
    },
    /// The same of a coefficient that an update takes there.
    CoefNotFinite {
        /// Its name in the user's problem.
        coef: String,
        at: Vec<i64>,
        value: f64,
        file: Option<String>,
    },
    /// Not all threads could be started.
    Threads(NoThreads),
    /// An incident field is not possible: the reason, and a remedy.
    Incident(String, &'static str),
}

impl SetupError {
    /// An incident field of a scheme's problem cannot be.
    pub fn incident(scheme: &Scheme, refusal: &Refusal) -> SetupError {
        SetupError::Incident(refusal.fault.describe(scheme), refusal.fault.hint())
    }
}

impl From<NoThreads> for SetupError {
    fn from(error: NoThreads) -> Self {
        SetupError::Threads(error)
    }
}

impl From<TooLarge> for SetupError {
    fn from(_: TooLarge) -> Self {
        SetupError::TooLarge
    }
}
