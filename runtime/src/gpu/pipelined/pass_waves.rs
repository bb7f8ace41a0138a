//! The waves of the steps of a pass, as devices read them.

use crate::host::threads;
use std::ops::Range;
use torre_compiler::injection::{Driven, Injections};

/// The waves of a calculation's sources, of which some steps are kept: all slabs of a pass do the same steps.
#[derive(Debug)]
pub(super) struct PassWaves {
    injections: Injections,
    /// The steps whose waves were computed last.
    steps: Range<u64>,
    /// Their waves, one step after the other.
    bytes: Vec<u8>,
}

impl PassWaves {
    pub fn new(injections: Injections) -> Self {
        Self {
            injections,
            steps: 0..0,
            bytes: Vec::new(),
        }
    }

    /// Waves of a step.
    pub fn per_step(&self) -> usize {
        self.injections.waves_per_step()
    }

    /// The waves of some steps; computed unless the last call was for the same steps.
    pub fn bytes(&mut self, of: &Driven<'_>, steps: Range<u64>) -> &[u8] {
        if self.steps != steps {
            self.bytes.clear();
            let threads = threads::available();
            self.injections
                .wave_bytes(of, steps.clone(), threads, &mut self.bytes);
            self.steps = steps;
        }
        &self.bytes
    }
}
