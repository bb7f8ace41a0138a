//! The executors of a run: the reference, the processor or GPUs, each with its plan.

use crate::rates::Expected;
use crate::schedule::{Other, Planned};
use crate::sweep::{self, PlannedSweep};
use crate::target::OnGpu;
use crate::window::Held;
use torre_compiler::resolve::Resolved;
use torre_runtime::host::Tuned;
use torre_runtime::plan::Plan;
use torre_runtime::program::BackendChoice;
use torre_runtime::rates::Computer;

/// An executor, with its plan and the rate that is expected of it.
pub(super) enum Executor {
    /// The reference knows no schedules, and nothing is expected of it.
    Reference,
    Processor(Box<OnProcessor>),
    Gpu(Box<OnGpu>),
}

/// The processor with kernels of a back end.
pub(super) struct OnProcessor {
    pub backend: BackendChoice,
    pub plan: Plan,
    pub expected: Expected,
    /// The computer on which the rate is to be measured.
    pub computer: Option<Computer>,
    pub storage: Storage,
}

/// Where the values of a run on the processor are.
pub(super) enum Storage {
    Memory {
        /// The runs that are tuned.
        tuned: Option<Tuned>,
        /// Plans that tuning compares with the run's own.
        others: Vec<Other>,
    },
    /// In files, over which the processor goes in passes.
    Files(PlannedSweep),
}

impl OnProcessor {
    /// A sweep over files is slower than `planned` expects.
    pub(super) fn new(
        backend: BackendChoice,
        planned: Planned,
        storage: Storage,
        resolved: &Resolved,
    ) -> Self {
        let mut expected = planned.expected;
        if let Storage::Files(sweep) = &storage {
            expected.modelled = sweep::expected_rate(sweep, resolved, expected.modelled);
        }
        Self {
            backend,
            plan: planned.plan,
            expected,
            computer: planned.learned_rates.computer,
            storage,
        }
    }

    /// Its plan, then the others that tuning compares with it.
    fn plans(&self) -> impl Iterator<Item = (&Plan, &Expected)> {
        let others = match &self.storage {
            Storage::Memory { others, .. } => &others[..],
            Storage::Files(_) => &[],
        };
        let others = others.iter().map(|other| (&other.plan, &other.expected));
        std::iter::once((&self.plan, &self.expected)).chain(others)
    }
}

impl Executor {
    pub(super) fn gpu(&self) -> Option<&OnGpu> {
        match self {
            Executor::Gpu(gpu) => Some(gpu),
            Executor::Reference | Executor::Processor(_) => None,
        }
    }

    pub(super) fn processor(&self) -> Option<&OnProcessor> {
        match self {
            Executor::Processor(processor) => Some(processor),
            Executor::Reference | Executor::Gpu(_) => None,
        }
    }

    /// The plan of the processor, then the others that are compared with it.
    pub(super) fn plans(&self) -> impl Iterator<Item = (&Plan, &Expected)> {
        self.processor().into_iter().flat_map(OnProcessor::plans)
    }

    /// The passes over files of a run on the processor.
    pub(super) fn sweep(&self) -> Option<&PlannedSweep> {
        match &self.processor()?.storage {
            Storage::Files(sweep) => Some(sweep),
            Storage::Memory { .. } => None,
        }
    }

    /// The values that the GPU holds, if they are stated.
    pub(super) fn held(&self) -> Option<&Held> {
        self.gpu()?.held.as_ref()
    }

    /// The rate that is expected of the executor's own plan.
    pub(super) fn expected(&self) -> Option<&Expected> {
        match self {
            Executor::Reference => None,
            Executor::Processor(processor) => Some(&processor.expected),
            Executor::Gpu(gpu) => Some(&gpu.expected),
        }
    }

    /// The computer on which the rate is to be measured.
    pub(super) fn computer(&self) -> Option<&Computer> {
        match self {
            Executor::Reference => None,
            Executor::Processor(processor) => processor.computer.as_ref(),
            Executor::Gpu(gpu) => gpu.learned_rates.computer.as_ref(),
        }
    }
}
