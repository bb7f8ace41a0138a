//! Schedules that advance one calculation in turns, and the report of their rates.

use crate::args;
use crate::codes;
use crate::columns::{Set, table};
use crate::failure::Failure;
use crate::plan::choice_json;
use crate::render::Voice;
use crate::report;
use crate::report::extend;
use crate::schedule;
use crate::write;
use serde_json::{Value, json};
use std::time::Duration;
use torre_compiler::cost::{Choice, gcells};
use torre_compiler::problem::Problem;
use torre_compiler::schedule::Template;
use torre_compiler::scheme::Scheme;
use torre_grammar::diag::Diagnostic;
use torre_runtime::simulation::Difference;

/// Members of `auto` that are measured if nothing is said.
const BEST: usize = 3;
/// The share of a turn that a first run takes at least, from which the steps of a turn are found.
const TRIAL: f64 = 0.2;

/// The layerwise schedule, and the members of the families that are asked for; `members` lists the members of a
/// schedule as it is written, the best first.
pub fn contestants(
    args: &args::Bench,
    layerwise: Vec<Choice>,
    mut members: impl FnMut(&str) -> Result<(Template, Vec<Choice>), Failure>,
) -> Result<Vec<Choice>, Failure> {
    let mut found = layerwise;
    let auto = ["auto".to_owned()];
    let texts = match args.schedule.is_empty() {
        true => &auto[..],
        false => &args.schedule[..],
    };
    for text in texts {
        let (template, choices) = members(text)?;
        let most = match (args.all, args.count, &template) {
            (true, _, _) => usize::MAX,
            (false, Some(n), _) => n as usize,
            (false, None, Template::Auto) => BEST,
            (false, None, _) => 1,
        };
        let mut taken: Vec<Choice> = Vec::new();
        for choice in choices {
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

/// The problem without records, with enough steps.
pub fn quiet(problem: &Problem, steps: u64) -> Problem {
    Problem {
        steps: problem.steps.max(steps),
        ..problem.without_results()
    }
}

/// The error where a schedule gives other bits than layerwise.
pub fn differs(choice: &Choice, difference: &Difference) -> Failure {
    let name = schedule::title(choice);
    Diagnostic::error(
        codes::DIFFERENCE,
        format!("`{name}` is not layerwise: {difference}"),
    )
    .hint("this is a defect of Torre, not of your program: please report it")
    .into()
}

/// A schedule that is measured.
pub struct Contestant {
    pub choice: Choice,
    /// Steps that it takes at once.
    pub height: u64,
    /// Functions that were compiled, and how long that took.
    pub kernels: usize,
    pub compiling: Duration,
}

/// A calculation that all contestants advance in turns.
pub trait Field {
    /// Advances `steps` steps by a contestant and returns the time.
    fn advance(&mut self, contestant: usize, steps: u64) -> Result<Duration, Failure>;
}

pub struct Bench<'a> {
    pub args: &'a args::Bench,
    pub voice: &'a Voice,
    pub scheme: &'a Scheme,
    /// Without probes and outputs.
    pub problem: &'a Problem,
    /// The first one is layerwise.
    pub contestants: Vec<Contestant>,
    /// Threads of the processor.
    pub threads: usize,
    /// In short, and with versions.
    pub backend: String,
    pub code: String,
    /// The facts of the processor or device: its key in reports, and facts.
    pub machine: (&'static str, Value),
}

/// The measurements of one contestant.
struct Outcome {
    contestant: usize,
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
    /// Measures all contestants and writes the results.
    pub fn run(&self, field: &mut dyn Field) -> Result<(), Failure> {
        let results = self.measure(field)?;
        if !write::report(self.args.report.as_deref(), &self.json(&results))? {
            write::result(&self.text(&results))?;
        }
        Ok(())
    }

    /// The fastest one comes first.
    fn measure(&self, field: &mut dyn Field) -> Result<Vec<Outcome>, Failure> {
        let turn = self.args.seconds / f64::from(self.args.rounds);
        self.voice.note(format_args!(
            "measuring {} schedules for {} s each",
            self.contestants.len(),
            self.args.seconds
        ));
        let mut outcomes = Vec::new();
        for contestant in 0..self.contestants.len() {
            outcomes.push(Outcome {
                contestant,
                steps: self.steps_of_turn(field, contestant, turn)?,
                rates: Vec::new(),
            });
        }
        for _ in 0..self.args.rounds {
            for outcome in &mut outcomes {
                let time = field.advance(outcome.contestant, outcome.steps)?;
                outcome
                    .rates
                    .push(self.cells() * outcome.steps as f64 / time.as_secs_f64());
            }
        }
        outcomes.sort_by(|a, b| b.median().total_cmp(&a.median()));
        Ok(outcomes)
    }

    /// The steps that take about the wanted seconds: whole time blocks, at least one.
    fn steps_of_turn(
        &self,
        field: &mut dyn Field,
        contestant: usize,
        seconds: f64,
    ) -> Result<u64, Failure> {
        let height = self.contestants[contestant].height.max(1);
        let most = self.problem.steps / height;
        let mut time_blocks = 1;
        loop {
            let time = field
                .advance(contestant, time_blocks * height)?
                .as_secs_f64();
            let more = time_blocks.saturating_mul(2);
            if time >= TRIAL * seconds || more > most {
                let wanted = seconds / (time / time_blocks as f64).max(1e-9);
                return Ok((wanted.round() as u64).clamp(1, most.max(1)) * height);
            }
            time_blocks = more;
        }
    }

    fn cells(&self) -> f64 {
        let cells = self.scheme.grid.cells.0;
        cells.iter().map(|&n| n as f64).product()
    }

    /// The layerwise rate.
    fn layerwise(&self, outcomes: &[Outcome]) -> f64 {
        let own = outcomes.iter().find(|outcome| outcome.contestant == 0);
        own.map_or(f64::NAN, Outcome::median)
    }

    fn text(&self, outcomes: &[Outcome]) -> String {
        let layerwise = self.layerwise(outcomes);
        let head = [
            "Gcells/s",
            "spread",
            "expected",
            "of expected",
            "of layerwise",
            "schedule",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        for outcome in outcomes {
            let own = &self.contestants[outcome.contestant];
            let (rate, expected) = (outcome.median(), own.choice.prediction.rate);
            rows.push([
                gcells(rate),
                format!("{:.1} %", 100.0 * outcome.spread()),
                gcells(expected),
                format!("{:.2}", rate / expected),
                format!("{:.2}", rate / layerwise),
                schedule::title(&own.choice),
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
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            self.code,
            table(&[right, right, right, right, right, left], &rows),
            match self.args.verify {
                true => "\nall gave the same bits as layerwise in a short run\n",
                false => "",
            },
        )
    }

    fn json(&self, outcomes: &[Outcome]) -> String {
        let layerwise = self.layerwise(outcomes);
        let schedules = outcomes.iter().map(|outcome| {
            let own = &self.contestants[outcome.contestant];
            let rate = outcome.median();
            let [low, high] = outcome.range();
            let rates: Vec<f64> = outcome.rates.iter().map(|r| r * 1e-9).collect();
            let mut value = choice_json(&own.choice);
            let measured = json!({
                "gcells_per_s": rate * 1e-9,
                "lowest_gcells_per_s": low * 1e-9,
                "highest_gcells_per_s": high * 1e-9,
                "rounds_gcells_per_s": rates,
                "steps_per_round": outcome.steps,
                "measured_to_predicted": rate / own.choice.prediction.rate,
                "to_layerwise": rate / layerwise,
                "kernels": own.kernels,
                "compile_seconds": own.compiling.as_secs_f64(),
            });
            extend(&mut value, measured);
            value
        });
        let schedules: Vec<Value> = schedules.collect();
        let mut value = json!({
            "torre": env!("CARGO_PKG_VERSION"),
            "scheme": self.scheme.name,
            "problem": self.problem.name,
            "domain": report::domain(self.scheme),
            "cells": self.cells() as u64,
            "precision": self.scheme.precision.to_string(),
            "backend": self.backend,
            "code": self.code,
            "threads": self.threads,
            "seconds_per_schedule": self.args.seconds,
            "rounds": self.args.rounds,
            "verified": self.args.verify,
            "schedules": schedules,
        });
        let (key, facts) = &self.machine;
        extend(&mut value, json!({ *key: facts }));
        format!("{value:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn rounds_are_summed_up() {
        let outcome = |rates: &[f64]| Outcome {
            contestant: 0,
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
