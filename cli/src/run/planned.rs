//! Decisions before a run: the processor or a GPU, the schedule, the window, and the check.

use super::clock::Clock;
use super::executor::{Executor, OnProcessor, Storage};
use super::{Check, Run, timeline, tuning};
use crate::args::{self, BackendArg};
use crate::failure::Failure;
use crate::input::Input;
use crate::rates::Rates;
use crate::render::Voice;
use crate::schedule::{self, Compiler, Other, Planned};
use crate::sweep::{self, PlannedSweep};
use crate::target::{Asked, OnGpu, Target};
use crate::window::{self, Held};
use torre_compiler::resolve::Resolved;
use torre_runtime::host::{Tuned, threads};
use torre_runtime::run::{Pauses, checkpoint, verify};
use torre_runtime::simulation::Value;

/// The number of threads of the processor.
fn threads_of(args: &args::Run, resolved: &Resolved) -> usize {
    match args.how.backend {
        BackendArg::Reference => 1,
        // Its operations take long, so that waits hardly count.
        BackendArg::Interp if args.threads.threads.is_none() => threads::available(),
        _ => schedule::threads(args.threads.threads, resolved),
    }
}

/// Where a run may go.
struct Where {
    target: Target,
    /// The expected rate of the processor, if it could run the whole.
    here: Option<f64>,
}

impl<'a, T: Value> Run<'a, T> {
    /// Decides on a run, and notes the decisions that a user has to know.
    pub(super) fn new(
        args: &'a args::Run,
        voice: &'a Voice,
        input: &'a Input,
        mut clock: Clock,
    ) -> Result<Self, Failure> {
        let Input {
            source, resolved, ..
        } = input;
        let threads = threads_of(args, resolved);
        let start = args.resume.as_deref().and_then(checkpoint::step_in);
        let start = start.unwrap_or(0).min(resolved.problem.steps);
        // Sweeps over files wait for disks.
        let rates = match args.holding.folder() {
            Some(_) => Rates::modelled(),
            None => Rates::asked(args.rates.rates, &args.how, voice)?,
        };
        let asked = Asked {
            how: &args.how,
            schedule: &args.schedule,
            source,
            resolved,
            holding: &args.holding,
            every: args.every,
            rates: &rates,
        };
        let target = args.how.target(args.threads.threads)?;
        let sweep = match target {
            Target::Gpu => None,
            _ => Self::sweep_of(args, voice, resolved, start)?,
        };
        let order = match sweep {
            Some(_) => sweep::SCHEDULE,
            None => &args.schedule,
        };
        let planned = match (args.how.backend.choice(), target) {
            (None, _) | (_, Target::Gpu) => None,
            (Some(backend), _) => {
                let planned = schedule::plan(order, source, resolved, threads, &rates)?;
                let compiler = Compiler::of(args.how.backend);
                Some((backend, planned.weighed(resolved, compiler)?))
            }
        };
        let on_processor = planned.as_ref().map(|(_, planned)| planned);
        let blocking = on_processor.map(|planned| planned.machine.blocking());
        let here = on_processor.filter(|_| sweep.is_none());
        let here = here.map(|planned| planned.expected.rate());
        let gpu = Self::gpu_of(args, voice, &asked, start, Where { target, here })?;
        let tuned = tuning::wished()?;
        let executor = match (gpu, planned) {
            (Some(gpu), _) => Executor::Gpu(Box::new(gpu)),
            (None, Some((backend, planned))) => {
                let storage = match sweep {
                    Some(sweep) => Storage::Files(sweep),
                    None => Storage::Memory {
                        tuned,
                        others: Self::compared(args, &planned, tuned, resolved, &rates),
                    },
                };
                let processor = OnProcessor::new(backend, planned, storage, resolved);
                Executor::Processor(Box::new(processor))
            }
            (None, None) => Executor::Reference,
        };
        let choice = executor.processor().map(|processor| &processor.plan.choice);
        let choice = choice.or(executor.gpu().map(|gpu| &gpu.plan.choice));
        if let (Some(expected), Some(choice)) = (executor.expected(), choice) {
            let changes = expected.change(choice);
            changes.iter().for_each(|text| voice.note(text));
        }
        let Resolved {
            scheme, problem, ..
        } = resolved;
        let small = verify::is_small(scheme, problem.steps) && args.resume.is_none();
        let check = match executor {
            _ if small => Check::Reference,
            Executor::Gpu(_) => Check::Processor,
            Executor::Reference | Executor::Processor(_) => Check::Interpreter,
        };
        clock.planning = clock.total() - clock.reading;
        Ok(Self {
            clock,
            executor,
            args,
            voice,
            input,
            scheme,
            problem,
            rates,
            threads,
            blocking,
            check: args.verify.then_some(check),
            start,
            precision: std::marker::PhantomData,
        })
    }

    /// The plans that tuning compares with the one of the processor.
    fn compared(
        args: &args::Run,
        planned: &Planned,
        tuned: Option<Tuned>,
        resolved: &Resolved,
        rates: &Rates,
    ) -> Vec<Other> {
        let is_tuned = match tuned {
            _ if args.verify || !rates.is_learning() => false,
            None => false,
            Some(Tuned::AllRuns) => true,
            Some(Tuned::LongRuns) => tuning::is_long(resolved, &planned.expected),
        };
        match (is_tuned, tuned) {
            (false, _) => Vec::new(),
            (true, Some(Tuned::LongRuns)) => {
                let compiler = Compiler::of(args.how.backend);
                planned.soon_compiled(planned.others(resolved), resolved, compiler)
            }
            (true, _) => planned.others(resolved),
        }
    }

    /// The GPU that computes a run from step `start` on, with its plan, and notes on it.
    fn gpu_of(
        args: &args::Run,
        voice: &Voice,
        asked: &Asked<'_>,
        start: u64,
        Where { target, here }: Where,
    ) -> Result<Option<OnGpu>, Failure> {
        let mut gpu = match (target, here) {
            (Target::Gpu, _) => Some(asked.open()?),
            (Target::Either, Some(here)) => asked.faster(here, voice),
            (Target::Either | Target::Processor, _) => None,
        };
        timeline::check(args, gpu.as_ref().and_then(|gpu| gpu.held.as_ref()))?;
        if let Some(gpu) = &mut gpu {
            let steps = asked.resolved.problem.steps;
            let left = steps.saturating_sub(start);
            // Of a resumed run too little may be left for trials.
            let share = if args.resume.is_some() { 0.0 } else { 1.0 };
            gpu.space_planes(asked, share, voice)?;
            let window = match &mut gpu.held {
                Some(Held::Window(plan)) => {
                    plan.copied = plan.copied_in(left, steps);
                    Some(window::note(plan, &args.holding))
                }
                _ => None,
            };
            let notes = gpu.plan.note.iter().chain(&window);
            notes.for_each(|note| voice.note(note));
        }
        Ok(gpu)
    }

    /// The passes over files of a run on the processor that begins at a step, if its values are in files.
    fn sweep_of(
        args: &args::Run,
        voice: &Voice,
        resolved: &Resolved,
        start: u64,
    ) -> Result<Option<PlannedSweep>, Failure> {
        let holding = &args.holding;
        let reference = args.how.backend == BackendArg::Reference;
        if !holding.is_window_in_files() || reference {
            return match holding.is_given() {
                true => Err(Failure::usage(window::ONLY_CUDA)),
                false => Ok(None),
            };
        }
        sweep::check_options(holding, &args.schedule)?;
        let plan = sweep::plan(
            holding,
            resolved,
            start,
            Pauses {
                every: args.every,
                frames: args.out.is_some(),
            },
        )?;
        if let Some(note) = sweep::note(&plan, resolved, holding) {
            voice.note(note);
        }
        Ok(Some(plan))
    }
}
