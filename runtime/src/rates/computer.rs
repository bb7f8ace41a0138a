//! Computers, as records tell them apart.

use crate::gpu::Facts;
use crate::host::measure::Measured;
use std::fmt;

/// Bytes of a name that comes from elsewhere.
pub(super) const NAME: usize = 200;

/// A computer, with all properties beside the case on which predictions depend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computer(String);

impl Computer {
    /// A processor; `None` if its measurements are doubtful, as predictions are doubtful then.
    pub fn of_processor(measured: &Measured) -> Option<Self> {
        (!measured.doubtful).then(|| Self::named(&measured.key()))
    }

    /// Some GPUs of a kind.
    pub fn of_devices(facts: &Facts, count: usize) -> Self {
        let Facts {
            name,
            multiprocessors,
            ..
        } = facts;
        Self::named(&format!(
            "{count} x {name}, {multiprocessors} multiprocessors"
        ))
    }

    /// One as a record has it.
    pub(super) fn read(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// With the version of Torre, whose model and kernels count.
    fn named(name: &str) -> Self {
        let name: String = name
            .chars()
            .map(|c| match c {
                ' '..='~' => c,
                _ => ' ',
            })
            .take(NAME)
            .collect();
        Self(format!("{name}, torre {}", env!("CARGO_PKG_VERSION")))
    }
}

impl fmt::Display for Computer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
