//! Decisions before a run: the processor or a GPU, the schedule, the window, and the check.

use super::clock::Clock;
use super::{Check, Run, timeline, tuning};
use crate::args::{self, BackendArg};
use crate::failure::Failure;
use crate::input::Input;
use crate::rates::{Expected, Rates};
use crate::render::Voice;
use crate::schedule::{self, Planned};
use crate::sweep::{self, PlannedSweep};
use crate::target::{Asked, OnGpu, Target};
use crate::window::{self, Held};
use torre_compiler::resolve::Resolved;
use torre_runtime::host::threads;
use torre_runtime::plan::Plan;
use torre_runtime::rates::Computer;
use torre_runtime::run::{Pauses, Tuned, Value, verify};

/// The plan of the processor, where it computes by a schedule.
struct Chosen {
    plan: Option<Plan>,
    /// The expected rate, of the processor or of a GPU, and the computer on which it is to be measured.
    expected: Option<(Expected, Option<Computer>)>,
}

impl Chosen {
    /// `gpu`: where one computes; a sweep over files is slower than `planned` expects.
    fn new(
        gpu: Option<&OnGpu>,
        planned: Option<Planned>,
        sweep: Option<&PlannedSweep>,
        resolved: &Resolved,
    ) -> Chosen {
        if let Some(gpu) = gpu {
            let computer = gpu.learned_rates.computer.clone();
            return Chosen {
                plan: None,
                expected: Some((gpu.expected.clone(), computer)),
            };
        }
        let Some(planned) = planned else {
            return Chosen {
                plan: None,
                expected: None,
            };
        };
        let mut expected = planned.expected;
        if let Some(sweep) = sweep {
            expected.modelled = sweep::expected_rate(sweep, resolved, expected.modelled);
        }
        Chosen {
            plan: Some(planned.plan),
            expected: Some((expected, planned.learned_rates.computer)),
        }
    }
}

/// The number of threads of the processor.
fn threads_of(args: &args::Run, resolved: &Resolved) -> usize {
    match args.how.backend {
        BackendArg::Reference => 1,
        // Its operations take long, so that waits hardly count.
        BackendArg::Interp if args.threads.is_none() => threads::available(),
        _ => schedule::threads(args.threads, resolved),
    }
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
        let target = args.how.target(args.threads)?;
        let sweep = match target {
            Target::Gpu => None,
            _ => Self::sweep_of(args, voice, resolved)?,
        };
        let order = match sweep {
            Some(_) => sweep::SCHEDULE,
            None => &args.schedule,
        };
        let planned = match (args.how.backend, target) {
            (BackendArg::Reference, _) | (_, Target::Gpu) => None,
            _ => Some(schedule::plan(order, source, resolved, threads, &rates)?),
        };
        let blocking = planned.as_ref().map(|planned| planned.machine.blocking());
        let here = planned.as_ref().filter(|_| sweep.is_none());
        let here = here.map(|planned| planned.expected.rate());
        let gpu = Self::gpu_of(args, voice, &asked, target, here)?;
        let tuned = tuning::wished()?;
        let alone = gpu.is_none() && sweep.is_none() && !args.verify;
        let others = match (&planned, tuned) {
            (Some(planned), Some(tuned)) if alone && rates.is_learning() => {
                match tuned == Tuned::AllRuns || tuning::is_long(resolved, &planned.expected) {
                    true => planned.others(resolved),
                    false => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        let Chosen { plan, expected } =
            Chosen::new(gpu.as_ref(), planned, sweep.as_ref(), resolved);
        let choice = plan.as_ref().map(|plan| &plan.choice);
        let choice = choice.or(gpu.as_ref().map(|gpu| &gpu.plan.choice));
        if let (Some((expected, _)), Some(choice)) = (&expected, choice) {
            let changes = expected.change(choice);
            changes.iter().for_each(|text| voice.note(text));
        }
        let Resolved {
            scheme, problem, ..
        } = resolved;
        let small = verify::is_small(scheme, problem.steps) && args.resume.is_none();
        let check = match &gpu {
            _ if small => Check::Reference,
            Some(_) => Check::Processor,
            None => Check::Interpreter,
        };
        clock.planning = clock.total() - clock.reading;
        Ok(Self {
            clock,
            gpu,
            args,
            voice,
            input,
            scheme,
            problem,
            plan,
            tuned,
            others,
            sweep,
            rates,
            expected,
            threads,
            blocking,
            check: args.verify.then_some(check),
            precision: std::marker::PhantomData,
        })
    }

    /// The GPU that computes, with its plan, and notes on it; `here` is the expected rate of the processor, if it could
    /// run the whole.
    fn gpu_of(
        args: &args::Run,
        voice: &Voice,
        asked: &Asked<'_>,
        target: Target,
        here: Option<f64>,
    ) -> Result<Option<OnGpu>, Failure> {
        let mut gpu = match (target, here) {
            (Target::Gpu, _) => Some(asked.open()?),
            (Target::Either, Some(here)) => asked.faster(here, voice),
            (Target::Either | Target::Processor, _) => None,
        };
        timeline::check(args, gpu.as_ref().and_then(|gpu| gpu.held.as_ref()))?;
        if let Some(gpu) = &mut gpu {
            // How much of a resumed run is left is not known yet.
            let share = if args.resume.is_some() { 0.0 } else { 1.0 };
            gpu.space_planes(asked, share, voice)?;
            let window = match &gpu.held {
                Some(Held::Window(plan)) => Some(window::note(plan, &args.holding)),
                _ => None,
            };
            let notes = gpu.plan.note.iter().chain(&window);
            notes.for_each(|note| voice.note(note));
        }
        Ok(gpu)
    }

    /// The passes over files of a run on the processor, if its values are in files.
    fn sweep_of(
        args: &args::Run,
        voice: &Voice,
        resolved: &Resolved,
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
            Pauses {
                every: args.every,
                frames: args.out.is_some(),
            },
        )?;
        voice.note(sweep::note(&plan, resolved, holding));
        Ok(Some(plan))
    }
}
