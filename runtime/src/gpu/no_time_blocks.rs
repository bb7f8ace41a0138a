//! Why towers or pyramids do not run the time blocks of a problem.

use std::fmt;

/// Why towers or pyramids do not run the time blocks of a problem, though a device can run them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTimeBlocks {
    /// These happen in every step, and towers do none of them.
    EveryStep(Vec<&'static str>),
    /// The towers were compiled for other volume sources.
    OtherSources,
    /// The tables of volume sources take more than half of the device's memory, or cannot be addressed.
    LargeSources,
    /// A volume source has a value that is no number.
    NotANumber,
    /// A time block of `steps` steps has too many towers, or its towers do not go around a periodic axis.
    Towers { steps: u64 },
    /// Sources and probes do not lie in towers, or their tables are too large.
    Points,
    /// Z blocks lean too much in time blocks of `steps` steps.
    Lean { steps: u64 },
    /// The device has no memory for a second array of `bytes` bytes, with which time blocks of `steps` steps use the
    /// two arrays in turns.
    SecondArray { steps: u64, bytes: u64 },
    /// The device has no memory for the tables of time blocks of `steps` steps.
    Memory { steps: u64 },
}

impl fmt::Display for NoTimeBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTimeBlocks::EveryStep(reasons) => f.write_str(&reasons.join(" and ")),
            NoTimeBlocks::OtherSources => f.write_str("the towers were compiled for other sources"),
            NoTimeBlocks::LargeSources => {
                f.write_str("the tables of sources in many cells are too large")
            }
            NoTimeBlocks::NotANumber => f.write_str("a source has a value that is no number"),
            NoTimeBlocks::Towers { steps } => write!(
                f,
                "time blocks of {steps} steps have too many towers, or do not close around a periodic axis"
            ),
            NoTimeBlocks::Points => {
                f.write_str("sources and probes do not lie in towers, or are too many for them")
            }
            NoTimeBlocks::Lean { steps } => {
                write!(f, "z blocks lean too much in time blocks of {steps} steps")
            }
            NoTimeBlocks::SecondArray { steps, bytes } => write!(
                f,
                "the device has no {bytes} bytes for a second array, into which time blocks of {steps} steps store"
            ),
            NoTimeBlocks::Memory { steps } => write!(
                f,
                "the device has no memory for the tables of time blocks of {steps} steps"
            ),
        }
    }
}

impl std::error::Error for NoTimeBlocks {}
