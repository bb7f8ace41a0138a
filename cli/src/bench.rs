//! `torre bench`: schedules side by side on this machine.
//!
//! All schedules advance one calculation in turns: round by round, A B C A B C. So they see the same fields, and what else happens on
//! the machine hits them alike. Nothing is recorded meanwhile; sources act.

use crate::args;
use crate::codes;
use crate::columns::{Set, table};
use crate::failure::Failure;
use crate::input;
use crate::machine;
use crate::plan::choice_json;
use crate::render::Voice;
use crate::report::{self, bytes};
use crate::schedule;
use crate::write;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use torre_compiler::problem::Problem;
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::{Choice, Machine, Template};
use torre_compiler::scheme::{Precision, Scheme};
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Source;
use torre_runtime::budget;
use torre_runtime::cache::Cache;
use torre_runtime::host::{Calculation, Progress, SetupError, threads};
use torre_runtime::plan::{Plan, Planner};
use torre_runtime::program::{self, BackendChoice, Compiled, LoadedFiles};
use torre_runtime::run::{Compiled as Advanced, Value as Number, verify};

/// Members of `auto` that are measured if nothing is said.
const BEST: usize = 3;
/// Steps after which the calculation starts again, if the problem's own end comes earlier: waves of sources are kept per step.
const STEPS: u64 = 1 << 18;
/// The share of a turn that a first run takes at least, from which the steps of a turn are found.
const TRIAL: f64 = 0.2;

pub fn bench(args: &args::Bench, voice: &Voice) -> Result<(), Failure> {
    let Some(backend) = args.how.backend.choice() else {
        return Err(Failure::usage(
            "the reference and GPUs go stage by stage and know no schedules: `torre run --backend reference` or `cuda` times them",
        ));
    };
    let source = input::source(&args.what.file)?;
    let (world, resolved) = input::resolved(&args.what, voice)?;
    let threads = args.threads.map_or_else(threads::available, |n| n as usize);
    let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
    let machine = schedule::machine(threads);
    let plans = contestants(args, &source, &resolved, &planner, &machine)?
        .into_iter()
        .map(|choice| planner.plan(choice))
        .collect::<Result<Vec<Plan>, _>>()
        .map_err(|error| schedule::refused(error, &planner))?;
    check_memory(args, &resolved, &planner, &plans, threads)?;
    let files = LoadedFiles::load(&world, &resolved.scheme)?;
    let highest = plans.iter().map(Plan::height).max().unwrap_or(1);
    let problem = Problem {
        steps: resolved.problem.steps.max(STEPS).max(highest),
        probes: Vec::new(),
        outputs: Vec::new(),
        ..resolved.problem.clone()
    };
    let bench = Bench {
        args,
        voice,
        scheme: &resolved.scheme,
        problem: &problem,
        files: &files,
        machine: &machine,
        codes: compile(args, voice, &resolved.scheme, &plans, backend)?,
        plans,
    };
    let results = match resolved.scheme.precision {
        Precision::F32 => bench.run::<f32>()?,
        Precision::F64 => bench.run::<f64>()?,
    };
    if !write::report(args.report.as_deref(), &bench.json(&results))? {
        write::result(&bench.text(&results));
    }
    Ok(())
}

/// Layerwise, and the members of the families that are asked for.
fn contestants(
    args: &args::Bench,
    source: &Source,
    resolved: &Resolved,
    planner: &Planner<'_>,
    machine: &Machine,
) -> Result<Vec<Choice>, Failure> {
    let mut found = planner.choices(&Template::Layerwise, machine);
    let auto = ["auto".to_owned()];
    let texts = match args.schedule.is_empty() {
        true => &auto[..],
        false => &args.schedule[..],
    };
    for text in texts {
        let template = schedule::template(text, source, resolved, planner)?;
        let most = match (args.all, args.count, &template) {
            (true, _, _) => usize::MAX,
            (false, Some(n), _) => n as usize,
            (false, None, Template::Auto) => BEST,
            (false, None, _) => 1,
        };
        let mut taken: Vec<Choice> = Vec::new();
        for choice in planner.choices(&template, machine) {
            if taken.len() >= most {
                break;
            }
            // Of members that the model does not tell apart, the first is enough, unless all are wanted.
            let alike = |other: &Choice| other.prediction == choice.prediction;
            let known = |other: &Choice| other.schedule == choice.schedule;
            if found.iter().any(known) || !args.all && taken.iter().any(alike) {
                continue;
            }
            taken.push(choice);
        }
        found.extend(taken);
    }
    Ok(found)
}

/// Refuses what does not fit before any memory is taken.
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

/// Compiles the kernels of each plan; plans with the same kernels share them. Returns the code and, for each plan, which is its own.
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

struct Bench<'a> {
    args: &'a args::Bench,
    voice: &'a Voice,
    scheme: &'a Scheme,
    /// Without probes and outputs.
    problem: &'a Problem,
    files: &'a LoadedFiles,
    machine: &'a Machine,
    plans: Vec<Plan>,
    codes: Codes,
}

/// What was measured of one plan.
struct Outcome {
    plan: usize,
    /// In each round.
    steps: u64,
    /// Cell-steps per second of each round.
    rates: Vec<f64>,
}

impl Outcome {
    fn sorted(&self) -> Vec<f64> {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates
    }

    fn median(&self) -> f64 {
        let rates = self.sorted();
        let n = rates.len();
        match n {
            0 => 0.0,
            _ => 0.5 * (rates[(n - 1) / 2] + rates[n / 2]),
        }
    }

    /// The slowest and the fastest round.
    fn range(&self) -> [f64; 2] {
        let rates = self.sorted();
        [rates.first(), rates.last()].map(|rate| rate.copied().unwrap_or(0.0))
    }

    /// From the slowest to the fastest round, as a part of the median.
    fn spread(&self) -> f64 {
        let [low, high] = self.range();
        (high - low) / self.median()
    }
}

impl Bench<'_> {
    /// Measures all plans; the fastest comes first.
    fn run<T: Number>(&self) -> Result<Vec<Outcome>, Failure> {
        if self.args.verify {
            self.verify::<T>()?;
        }
        let turn = self.args.seconds / f64::from(self.args.rounds);
        self.voice.note(format_args!(
            "measuring {} schedules for {} s each",
            self.plans.len(),
            self.args.seconds
        ));
        let mut field = Field::<T> {
            bench: self,
            calculation: None,
        };
        let mut outcomes = Vec::new();
        for plan in 0..self.plans.len() {
            outcomes.push(Outcome {
                plan,
                steps: field.steps_of_turn(plan, turn)?,
                rates: Vec::new(),
            });
        }
        for _ in 0..self.args.rounds {
            for outcome in &mut outcomes {
                let time = field.advance(outcome.plan, outcome.steps)?;
                outcome
                    .rates
                    .push(self.cells() * outcome.steps as f64 / time.as_secs_f64());
            }
        }
        outcomes.sort_by(|a, b| b.median().total_cmp(&a.median()));
        Ok(outcomes)
    }

    fn calculation<T: Number>(&self) -> Result<Calculation<'_, T>, SetupError> {
        Calculation::new(self.scheme, self.problem, self.files, self.machine.threads)
    }

    /// A calculation that a plan advances.
    fn advanced<T: Number>(&self, plan: usize) -> Result<Advanced<'_, T>, SetupError> {
        Ok(Advanced {
            calculation: self.calculation()?,
            set: &self.plans[plan].kernels,
            code: &*self.codes.all[self.codes.of[plan]].code,
            order: self.plans[plan].order(),
            threads: self.machine.threads,
        })
    }

    /// Compares every value of all plans with the first one, which is layerwise, after a whole band and a step of the next.
    fn verify<T: Number>(&self) -> Result<(), Failure> {
        use torre_runtime::run::Simulation;
        let highest = self.plans.iter().map(Plan::height).max().unwrap_or(1);
        let until = highest.saturating_add(1).min(self.problem.steps);
        let mut check = self.advanced::<T>(0)?;
        check.run(until, &Progress::default())?;
        for (number, plan) in self.plans.iter().enumerate().skip(1) {
            let mut run = self.advanced::<T>(number)?;
            run.run(until, &Progress::default())?;
            verify::compare(&run, &check).map_err(|difference| {
                let name = schedule::title(&plan.choice);
                Diagnostic::error(
                    codes::DIFFERENCE,
                    format!("`{name}` is not layerwise: {difference}"),
                )
                .hint("this is a defect of Torre, not of your program: please report it")
            })?;
        }
        Ok(())
    }

    fn cells(&self) -> f64 {
        let cells = self.scheme.grid.cells.0;
        cells.iter().map(|&n| n as f64).product()
    }

    /// The layerwise rate.
    fn layerwise(&self, outcomes: &[Outcome]) -> f64 {
        let own = outcomes.iter().find(|outcome| outcome.plan == 0);
        own.map_or(f64::NAN, Outcome::median)
    }

    fn code(&self) -> String {
        let code = self.codes.all.first();
        code.map_or_else(String::new, |c| c.code.description())
    }

    fn text(&self, outcomes: &[Outcome]) -> String {
        let layerwise = self.layerwise(outcomes);
        let head = [
            "Mcells/s",
            "spread",
            "expected",
            "of expected",
            "of layerwise",
            "schedule",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        for outcome in outcomes {
            let plan = &self.plans[outcome.plan];
            let (rate, expected) = (outcome.median(), plan.choice.prediction.rate);
            rows.push([
                format!("{:.1}", rate * 1e-6),
                format!("{:.1} %", 100.0 * outcome.spread()),
                format!("{:.1}", expected * 1e-6),
                format!("{:.2}", rate / expected),
                format!("{:.2}", rate / layerwise),
                schedule::title(&plan.choice),
            ]);
        }
        let domain = report::domain(self.scheme);
        let domain: Vec<String> = domain.iter().map(i64::to_string).collect();
        let (left, right) = (Set::Left, Set::Right);
        format!(
            "{}: {} cells, {}, {} thread{}, {}\n\n{}{}",
            self.problem.name,
            domain.join(" x "),
            self.scheme.precision,
            self.machine.threads,
            if self.machine.threads == 1 { "" } else { "s" },
            self.code(),
            table([right, right, right, right, right, left], &rows),
            match self.args.verify {
                true => "\nall gave the same bits as layerwise in a short run\n",
                false => "",
            },
        )
    }

    fn json(&self, outcomes: &[Outcome]) -> String {
        let layerwise = self.layerwise(outcomes);
        let schedules = outcomes.iter().map(|outcome| {
            let plan = &self.plans[outcome.plan];
            let compiled = &self.codes.all[self.codes.of[outcome.plan]];
            let rate = outcome.median();
            let [low, high] = outcome.range();
            let rates: Vec<f64> = outcome.rates.iter().map(|r| r * 1e-9).collect();
            let mut value = choice_json(&plan.choice);
            let measured = json!({
                "gcells_per_s": rate * 1e-9,
                "lowest_gcells_per_s": low * 1e-9,
                "highest_gcells_per_s": high * 1e-9,
                "rounds_gcells_per_s": rates,
                "steps_per_round": outcome.steps,
                "measured_to_predicted": rate / plan.choice.prediction.rate,
                "to_layerwise": rate / layerwise,
                "kernels": plan.kernels.kernels.len(),
                "compile_seconds": compiled.time.as_secs_f64(),
            });
            if let (Value::Object(all), Value::Object(measured)) = (&mut value, measured) {
                all.extend(measured);
            }
            value
        });
        let schedules: Vec<Value> = schedules.collect();
        let value = json!({
            "torre": env!("CARGO_PKG_VERSION"),
            "scheme": self.scheme.name,
            "problem": self.problem.name,
            "domain": report::domain(self.scheme),
            "cells": self.cells(),
            "precision": self.scheme.precision.to_string(),
            "backend": self.codes.all.first().map(|c| c.backend.to_string()),
            "code": self.code(),
            "threads": self.machine.threads,
            "machine": machine::json(self.machine),
            "seconds_per_schedule": self.args.seconds,
            "rounds": self.args.rounds,
            "verified": self.args.verify,
            "schedules": schedules,
        });
        format!("{value:#}\n")
    }
}

/// The calculation that all plans advance in turns.
struct Field<'a, T> {
    bench: &'a Bench<'a>,
    /// `None`: not yet made.
    calculation: Option<Calculation<'a, T>>,
}

impl<'a, T: Number> Field<'a, T> {
    /// Advances so many steps by a plan and returns the time. Where the problem ends before, the calculation starts again.
    fn advance(&mut self, plan: usize, steps: u64) -> Result<Duration, Failure> {
        let bench = self.bench;
        let end = bench.problem.steps;
        let fits = |c: &Calculation<'a, T>| c.steps().saturating_add(steps) <= end;
        if !self.calculation.as_ref().is_some_and(fits) {
            // The memory of the old one is needed for the new one.
            self.calculation = None;
        }
        let calculation = match &mut self.calculation {
            Some(calculation) => calculation,
            none => none.insert(bench.calculation()?),
        };
        let until = calculation.steps() + steps;
        let own = &bench.plans[plan];
        let code = &bench.codes.all[bench.codes.of[plan]].code;
        let threads = bench.machine.threads;
        let start = Instant::now();
        calculation.run(
            &own.kernels,
            &**code,
            own.order(),
            threads,
            until,
            &Progress::default(),
        );
        Ok(start.elapsed())
    }

    /// The steps that take about so many seconds: whole bands, at least one.
    fn steps_of_turn(&mut self, plan: usize, seconds: f64) -> Result<u64, Failure> {
        let height = self.bench.plans[plan].height().max(1);
        let most = self.bench.problem.steps / height;
        let mut bands = 1;
        loop {
            let time = self.advance(plan, bands * height)?.as_secs_f64();
            let more = bands.saturating_mul(2);
            if time >= TRIAL * seconds || more > most {
                let wanted = seconds / (time / bands as f64).max(1e-9);
                return Ok((wanted.round() as u64).clamp(1, most.max(1)) * height);
            }
            bands = more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn rounds_are_summed_up() {
        let outcome = |rates: &[f64]| Outcome {
            plan: 0,
            steps: 1,
            rates: rates.to_vec(),
        };
        let odd = outcome(&[3.0, 1.0, 2.0]);
        assert_eq!(
            (odd.median(), odd.range(), odd.spread()),
            (2.0, [1.0, 3.0], 1.0)
        );
        assert_eq!(outcome(&[4.0, 2.0]).median(), 3.0);
        assert_eq!(outcome(&[5.0]).spread(), 0.0);
    }
}
