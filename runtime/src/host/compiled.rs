//! A calculation in memory that kernels advance, by one schedule or by the fastest of several.

use super::calculation::Calculation;
use super::contention;
use super::execution::Execution;
use super::tuning::{Timed, Tuning};
use crate::simulation::{Picture, Progress, RunError, SetupError, Simulation, TuningResult, Value};
use std::time::Instant;
use torre_compiler::kernel::{Code, KernelSet};
use torre_compiler::lattice::PerAxis;
use torre_compiler::problem::Problem;
use torre_compiler::scheme::{ComponentId, Scheme, StateId};

/// A calculation in memory, advanced by kernels.
pub struct Compiled<'a, T> {
    pub calculation: Calculation<'a, T>,
    pub set: &'a KernelSet,
    pub code: &'a dyn Code,
    pub execution: &'a Execution,
    pub threads: usize,
    /// Schedules of which the fastest one is taken, instead of `execution`.
    pub tuning: Option<Tuning<'a>>,
}

impl<T: Value> Compiled<'_, T> {
    /// Runs up to `until` by one schedule, or for a timing of tuning.
    fn run_stretch(&mut self, until: u64, progress: &Progress) -> Result<(), SetupError> {
        let Self {
            calculation,
            set,
            code,
            execution,
            threads,
            tuning,
        } = self;
        let Some(tuning) = tuning else {
            return calculation.run(set, *code, execution, *threads, until, progress);
        };
        let from = calculation.steps();
        let (execution, steps) = tuning.next(until - from);
        let start = Instant::now();
        let (ran, waiting) = contention::during_runs(|| {
            calculation.run(set, *code, execution, *threads, from + steps, progress)
        });
        tuning.took(Timed {
            steps,
            time: start.elapsed(),
            disturbed: waiting.is_busy(),
        });
        ran
    }
}

impl<T: Value> Simulation<T> for Compiled<'_, T> {
    fn scheme(&self) -> &Scheme {
        self.calculation.scheme
    }

    fn problem(&self) -> &Problem {
        self.calculation.problem
    }

    fn steps(&self) -> u64 {
        self.calculation.steps()
    }

    fn next_pause(&self) -> u64 {
        self.calculation.next_pause()
    }

    #[inline(never)]
    fn run(&mut self, until: u64, progress: &Progress) -> Result<(), RunError> {
        while self.calculation.steps() < until && progress.guard.found().is_none() {
            self.run_stretch(until, progress)?;
        }
        match progress.guard.found() {
            Some(found) => Err(RunError::BlowUp(found)),
            None => Ok(()),
        }
    }

    fn row(&self, id: ComponentId, age: u8, x: i64, y: i64) -> &[T] {
        self.calculation.aged_row(id, age, x, y)
    }

    fn state(&self, id: StateId, at: PerAxis<i64>) -> T {
        self.calculation.state_value(id, at).unwrap_or_default()
    }

    fn probe(&self, index: usize) -> Vec<f64> {
        self.calculation.probe(index)
    }

    fn take_pictures(&mut self) -> Vec<Picture> {
        self.calculation.take_pictures()
    }

    fn steps_recorded(&self) -> u64 {
        self.calculation.recorded()
    }

    fn tuning(&self) -> Option<TuningResult> {
        self.tuning.as_ref().map(Tuning::result)
    }

    fn take_complete_pictures(&mut self) -> Vec<Picture> {
        self.calculation.take_complete_pictures()
    }
}
