//! Schedules on the processor.

use super::contest::{Bench, Contestant, Field, contestants, differs, quiet};
use crate::args;
use crate::codes;
use crate::failure::Failure;
use crate::input::Input;
use crate::machine;
use crate::render::Voice;
use crate::report::bytes;
use crate::schedule;
use std::time::{Duration, Instant};
use torre_compiler::cost::Machine;
use torre_compiler::problem::Problem;
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::Template;
use torre_compiler::scheme::{Precision, Scheme};
use torre_grammar::diag::Diagnostic;
use torre_runtime::budget;
use torre_runtime::cache::Cache;
use torre_runtime::files::LoadedFiles;
use torre_runtime::host::{Calculation, Compiled as Advanced};
use torre_runtime::plan::{Plan, Planner};
use torre_runtime::program::{self, BackendChoice, Compiled};
use torre_runtime::run::verify;
use torre_runtime::simulation::{Progress, SetupError, Simulation, Value as Number};

/// Steps after which the calculation starts again, if the problem's own end comes earlier: waves of sources are kept
/// per step.
const STEPS: u64 = 1 << 18;

pub fn bench(args: &args::Bench, voice: &Voice, backend: BackendChoice) -> Result<(), Failure> {
    let Input {
        world,
        source,
        resolved,
        ..
    } = Input::read(&args.subject, voice)?;
    let threads = schedule::threads(args.threads.threads, &resolved);
    let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
    let machine = schedule::machine(threads);
    let layerwise = planner.choices(&Template::Layerwise, &machine);
    let choices = contestants(args, layerwise, |text| {
        let template = schedule::template(text, &source, &resolved, &planner)?;
        let choices = planner.choices(&template, &machine);
        Ok((template, choices))
    })?;
    let plans = choices
        .into_iter()
        .map(|choice| planner.plan(choice))
        .collect::<Result<Vec<Plan>, _>>()
        .map_err(|error| schedule::refused(error, &planner))?;
    check_memory(args, &resolved, &planner, &plans, threads)?;
    let files = LoadedFiles::load(&world, &resolved.scheme)?;
    let highest = plans.iter().map(Plan::height).max().unwrap_or(1);
    let problem = quiet(&resolved.problem, STEPS.max(highest));
    let codes = compile(args, voice, &resolved.scheme, &plans, backend)?;
    let contestant = |(number, plan): (usize, &Plan)| Contestant {
        choice: plan.choice.clone(),
        height: plan.height(),
        kernels: plan.kernels.kernels.len(),
        compiling: codes.own(number).time,
    };
    let bench = Bench {
        args,
        voice,
        scheme: &resolved.scheme,
        problem: &problem,
        contestants: plans.iter().enumerate().map(contestant).collect(),
        threads,
        backend: codes.own(0).backend.to_string(),
        code: codes.own(0).code.description(),
        machine: ("machine", machine::json(&machine)),
    };
    let on = OnProcessor {
        scheme: &resolved.scheme,
        problem: &problem,
        files: &files,
        machine: &machine,
        plans: &plans,
        codes: &codes,
    };
    match resolved.scheme.precision {
        Precision::F32 => on.run::<f32>(&bench),
        Precision::F64 => on.run::<f64>(&bench),
    }
}

/// Refuses calculations that do not fit, before any memory is taken.
fn check_memory(
    args: &args::Bench,
    resolved: &Resolved,
    planner: &Planner<'_>,
    plans: &[Plan],
    threads: usize,
) -> Result<(), Failure> {
    let Some(available) = budget::available() else {
        return Ok(());
    };
    let more = |plan: &Plan| plan.more_bytes(&planner.layout, threads);
    let more = plans.iter().map(more).max().unwrap_or(0);
    let fields = planner.layout.bytes().saturating_add(more);
    let check = if args.verify { fields } else { 0 };
    let files = LoadedFiles::bytes(&resolved.scheme);
    let needed = fields.saturating_add(check).saturating_add(files);
    if needed <= available.bytes {
        return Ok(());
    }
    let message = format!(
        "`{}` needs {} of memory, and {} is available",
        resolved.problem.name,
        bytes(needed),
        bytes(available.bytes),
    );
    let hint = match needed - check <= available.bytes {
        true => "it fits without `--verify`",
        false => "make the domain smaller: `--set domain=AxBxC`",
    };
    Err(Diagnostic::error(codes::MEMORY, message).hint(hint).into())
}

/// Compiles the kernels of each plan; plans with the same kernels share them. Returns the code and, for each plan,
/// which is its own.
fn compile(
    args: &args::Bench,
    voice: &Voice,
    scheme: &Scheme,
    plans: &[Plan],
    backend: BackendChoice,
) -> Result<Codes, Failure> {
    let cache = Cache::of_user();
    let mut codes = Codes::default();
    for (number, plan) in plans.iter().enumerate() {
        let own = &plan.kernels;
        let same = |earlier: &Plan| {
            earlier.kernels.kernels == own.kernels && earlier.kernels.layout == own.layout
        };
        if let Some(earlier) = plans[..number].iter().position(same) {
            codes.of.push(codes.of[earlier]);
            continue;
        }
        let compiled = program::compile(scheme, &plan.kernels, backend, &args.how.target, &cache)?;
        if let (Some(missing), true) = (&compiled.fallback, codes.all.is_empty()) {
            voice.note(format_args!(
                "LLVM is not there, so `{}` is used, which is slower; {missing}",
                compiled.backend
            ));
        }
        codes.of.push(codes.all.len());
        codes.all.push(compiled);
    }
    Ok(codes)
}

#[derive(Default)]
struct Codes {
    all: Vec<Compiled>,
    /// Per plan, the index of its code.
    of: Vec<usize>,
}

impl Codes {
    /// The code of a plan.
    fn own(&self, plan: usize) -> &Compiled {
        &self.all[self.of[plan]]
    }
}

/// The common part of all calculations.
struct OnProcessor<'a> {
    scheme: &'a Scheme,
    problem: &'a Problem,
    files: &'a LoadedFiles,
    machine: &'a Machine,
    plans: &'a [Plan],
    codes: &'a Codes,
}

impl<'a> OnProcessor<'a> {
    fn run<T: Number>(&self, bench: &Bench<'_>) -> Result<(), Failure> {
        if bench.args.verify {
            self.verify::<T>()?;
        }
        bench.run(&mut Turns::<T> {
            on: self,
            calculation: None,
        })
    }

    fn calculation<T: Number>(&self) -> Result<Calculation<'a, T>, SetupError> {
        let machine = self.machine;
        let mut calculation =
            Calculation::new(self.scheme, self.problem, self.files, machine.threads)?;
        calculation.blocking = machine.blocking();
        Ok(calculation)
    }

    /// A calculation that a plan advances.
    fn advanced<T: Number>(&self, plan: usize) -> Result<Advanced<'a, T>, SetupError> {
        Ok(Advanced {
            calculation: self.calculation()?,
            set: &self.plans[plan].kernels,
            code: &*self.codes.own(plan).code,
            execution: &self.plans[plan].execution,
            threads: self.machine.threads,
            tuning: None,
        })
    }

    /// Compares every value of all plans with the first one, which is layerwise, after a whole time block and a step of
    /// the next.
    fn verify<T: Number>(&self) -> Result<(), Failure> {
        let highest = self.plans.iter().map(Plan::height).max().unwrap_or(1);
        let until = highest.saturating_add(1).min(self.problem.steps);
        let mut check = self.advanced::<T>(0)?;
        check.run(until, &Progress::default())?;
        for (number, plan) in self.plans.iter().enumerate().skip(1) {
            let mut run = self.advanced::<T>(number)?;
            run.run(until, &Progress::default())?;
            verify::compare(&run, &check)
                .map_err(|difference| differs(&plan.choice, &difference))?;
        }
        Ok(())
    }
}

/// The calculation that all plans advance in turns.
struct Turns<'a, T> {
    on: &'a OnProcessor<'a>,
    /// `None`: not yet made.
    calculation: Option<Calculation<'a, T>>,
}

impl<'a, T: Number> Field for Turns<'a, T> {
    /// Where the problem ends before, the calculation starts again.
    fn advance(&mut self, plan: usize, steps: u64) -> Result<Duration, Failure> {
        let on = self.on;
        let end = on.problem.steps;
        let fits = |c: &Calculation<'a, T>| c.steps().saturating_add(steps) <= end;
        if !self.calculation.as_ref().is_some_and(fits) {
            // The memory of the old one is needed for the new one.
            self.calculation = None;
        }
        let calculation = match &mut self.calculation {
            Some(calculation) => calculation,
            none => none.insert(on.calculation()?),
        };
        let until = calculation.steps() + steps;
        let own = &on.plans[plan];
        let start = Instant::now();
        calculation.run(
            &own.kernels,
            &*on.codes.own(plan).code,
            &own.execution,
            on.machine.threads,
            until,
            &Progress::default(),
        )?;
        Ok(start.elapsed())
    }
}
