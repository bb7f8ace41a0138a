//! Learned rates as commands use them: where they come from, the rate that they expect of a run, and records of runs.

use crate::args::{BackendArg, How, RatesArg};
use crate::devices::Devices;
use crate::failure::Failure;
use crate::render::Voice;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::env;
use torre_compiler::cost::{Choice, gcells};
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::Schedule;
use torre_runtime::host::measure::Measured;
use torre_runtime::program::TargetChoice;
use torre_runtime::rates::{
    Case, CaseRuns, Computer, Evidence, Found, Kind, Learned, Store, Subject,
};

/// The environment variable with the meaning of `--rates`.
const VARIABLE: &str = "TORRE_RATES";

/// The records of all computers, if they were asked for.
pub struct Rates {
    store: Option<Store>,
    found: Found,
}

impl Rates {
    /// None: the model decides alone.
    pub fn modelled() -> Self {
        Self {
            store: None,
            found: Found::default(),
        }
    }

    /// The learned rates of the user, unless `--rates` or the variable leaves them out. Back ends that the model does
    /// not know and code for other processors have none. A note names a damaged file.
    pub fn asked(asked: Option<RatesArg>, how: &How, voice: &Voice) -> Result<Self, Failure> {
        let wished = env::var_os(VARIABLE).filter(|text| !text.is_empty());
        let which = match (asked, wished) {
            (Some(which), _) => which,
            (None, None) => RatesArg::Learned,
            (None, Some(text)) => {
                let text = text.to_string_lossy();
                RatesArg::from_str(&text, false).map_err(|_| {
                    Failure::usage(format!(
                        "`{VARIABLE}` is `learned` or `modelled`, and not `{text}`"
                    ))
                })?
            }
        };
        let expected = [BackendArg::Auto, BackendArg::Llvm, BackendArg::Cuda];
        let shared = how
            .devices
            .as_ref()
            .is_some_and(|d| Devices::share(d) != 1.0);
        let known = expected.contains(&how.backend) && how.target == TargetChoice::Host && !shared;
        if which == RatesArg::Modelled || !known {
            return Ok(Self::modelled());
        }
        let store = Store::of_user();
        let found = store.read();
        if let (true, Ok(path)) = (found.damaged, store.path()) {
            voice.note(format_args!(
                "learned rates are left out: `{}` is damaged; the next run that records one replaces it",
                path.display()
            ));
        }
        Ok(Self {
            store: Some(store),
            found,
        })
    }

    /// The learned rates of a computer, for a calculation.
    pub fn learned_rates(&self, resolved: &Resolved, computer: Option<Computer>) -> LearnedRates {
        let records = computer.as_ref().map(|computer| self.found.of(computer));
        LearnedRates {
            subject: Subject::of(&resolved.scheme, &resolved.problem),
            evidence: Evidence::new(records.unwrap_or_default()),
            computer,
        }
    }

    /// Whether runs are recorded.
    pub fn is_learning(&self) -> bool {
        self.store.is_some()
    }

    /// Records a run. Returns whether it was kept.
    pub fn record(&self, run: CaseRuns) -> bool {
        self.store.as_ref().is_some_and(|store| store.add(run))
    }
}

/// The learned rates of one computer, for one calculation.
#[derive(Clone, Debug)]
pub struct LearnedRates {
    subject: Subject,
    evidence: Evidence,
    /// `None`: nothing was, and nothing is.
    pub computer: Option<Computer>,
}

impl LearnedRates {
    /// Nothing, for a calculation.
    pub fn none(resolved: &Resolved) -> Self {
        Rates::modelled().learned_rates(resolved, None)
    }

    /// The index of the schedule to take of some of which the model likes the first one best.
    pub fn pick(&self, choices: &[Choice]) -> usize {
        let cases: Vec<(Case, f64)> = choices
            .iter()
            .map(|choice| (self.case(&choice.schedule), choice.prediction.rate))
            .collect();
        self.evidence.choice(&cases)
    }

    /// The indices of the schedules that tuning compares with the one that was taken.
    pub fn worth_trying(&self, taken: &Choice, choices: &[Choice]) -> Vec<usize> {
        let own = choices.iter().position(|choice| choice == taken);
        let case = |choice: &Choice| (self.case(&choice.schedule), choice.prediction.rate);
        let cases: Vec<(Case, f64)> = choices.iter().map(case).collect();
        own.map_or(Vec::new(), |own| self.evidence.worth_trying(&cases, own))
    }

    /// Whether anything is known.
    pub fn any(&self) -> bool {
        !self.evidence.records().is_empty()
    }

    /// The learned rate of a schedule with all values in memory, in cell-steps per second.
    pub fn rate(&self, choice: &Choice) -> Option<f64> {
        let learned = self.evidence.learned(&self.case(&choice.schedule))?;
        Some(learned.ratio * choice.prediction.rate)
    }

    /// The expectation of a schedule with all values in memory.
    pub fn expected_of(&self, choice: &Choice) -> Expected {
        self.expected_as(Kind::of(&choice.schedule), choice, choice.prediction.rate)
    }

    fn case(&self, schedule: &Schedule) -> Case {
        self.subject.case(Kind::of(schedule), schedule)
    }

    /// The rate that is expected of the schedule that was taken, with all values in memory. The model likes the first
    /// of `choices` best.
    pub fn expected(&self, taken: &Choice, choices: &[Choice]) -> Expected {
        let kind = Kind::of(&taken.schedule);
        let instead_of = choices
            .first()
            .filter(|first| self.any() && first.schedule != taken.schedule);
        Expected {
            instead_of: instead_of.map(|first| Instead {
                schedule: first.name.clone(),
                modelled: first.prediction.rate,
                learned: self.rate(first),
            }),
            ..self.expected_as(kind, taken, taken.prediction.rate)
        }
    }

    /// The expected rate of a schedule that is executed as `kind`, with its modelled rate in cell-steps per
    /// second.
    pub fn expected_as(&self, kind: Kind, taken: &Choice, modelled: f64) -> Expected {
        let case = self.subject.case(kind, &taken.schedule);
        Expected {
            modelled,
            learned: self.evidence.learned(&case),
            instead_of: None,
            case,
        }
    }
}

/// The expectation for a run.
#[derive(Clone, Debug)]
pub struct Expected {
    pub case: Case,
    /// Cell-steps per second by the model.
    pub modelled: f64,
    /// How runs correct it, if there were any.
    learned: Option<Learned>,
    /// The model's own choice, where runs have changed it.
    instead_of: Option<Instead>,
}

/// A schedule that the model likes best, and runs do not.
#[derive(Clone, Debug)]
struct Instead {
    schedule: String,
    /// Cell-steps per second.
    modelled: f64,
    learned: Option<f64>,
}

impl Expected {
    /// Cell-steps per second, by all that is known.
    pub fn rate(&self) -> f64 {
        self.learned().unwrap_or(self.modelled)
    }

    /// The same by the model and by runs, if there were any.
    pub fn learned(&self) -> Option<f64> {
        Some(self.learned?.ratio * self.modelled)
    }

    /// The rate by earlier runs, and their number, if there were any.
    pub fn text(&self) -> Option<String> {
        let Learned { ratio, runs, alike } = self.learned?;
        let number = match runs {
            1 => "1 run".to_owned(),
            _ => format!("{runs} runs"),
        };
        Some(format!(
            "{} Gcells/s, {ratio:.2} of the modelled rate: learned from {number} on this machine, {alike} of them of \
             this case",
            gcells(ratio * self.modelled),
        ))
    }

    /// The choice and the best one by the model, if runs have changed the choice.
    pub fn change(&self, taken: &Choice) -> Option<String> {
        let instead = self.instead_of.as_ref()?;
        let rates = match (self.learned(), instead.learned) {
            (Some(own), Some(other)) => {
                format!(" ({} and {} Gcells/s)", gcells(own), gcells(other))
            }
            _ => String::new(),
        };
        Some(format!(
            "by learned rates `{}` is taken instead of `{}`{rates}; `--rates modelled` leaves them out",
            taken.name, instead.schedule,
        ))
    }

    /// The rate by earlier runs, and its case, for reports; unknown values are `null`.
    pub fn json(&self) -> Value {
        let instead_of = self.instead_of.as_ref().map(|instead| {
            json!({
                "schedule": instead.schedule,
                "predicted_gcells_per_s": instead.modelled * 1e-9,
                "learned_gcells_per_s": instead.learned.map(|rate| rate * 1e-9),
            })
        });
        json!({
            "ratio": self.learned.map(|learned| learned.ratio),
            "runs": self.learned.map_or(0, |learned| learned.runs),
            "runs_of_case": self.learned.map_or(0, |learned| learned.alike),
            "instead_of": instead_of,
            "case": case_json(&self.case),
        })
    }
}

fn case_json(case: &Case) -> Value {
    json!({
        "family": case.family.to_string(),
        "kind": case.kind.to_string(),
        "sizes": case.sizes,
        "log2_cells": case.class,
    })
}

/// The records of all computers, for `torre machine`: as JSON, with the name under which runs on the processor of a
/// measured machine are recorded, and in a line.
pub fn shown(store: &Store, measured: &Measured) -> (Value, String) {
    let found = store.read();
    let records: Vec<Value> = found
        .records
        .iter()
        .map(|record| {
            json!({
                "computer": record.computer.to_string(),
                "case": case_json(&record.case),
                "runs": record.runs,
                "ratio": record.ratio(),
            })
        })
        .collect();
    let path = store.path().map(|path| path.display().to_string());
    let ratios = || found.records.iter().map(CaseRuns::ratio);
    let runs: u64 = found.records.iter().map(|record| record.runs).sum();
    let text = match &path {
        Err(refusal) => format!("none: {refusal}"),
        Ok(path) if found.damaged => format!("none: `{path}` is damaged"),
        Ok(path) if runs == 0 => format!("none yet, in {path}"),
        Ok(path) => format!(
            "from {runs} run{}, {:.2} to {:.2} of modelled ones, in {path}",
            if runs == 1 { "" } else { "s" },
            ratios().fold(f64::INFINITY, f64::min),
            ratios().fold(0.0, f64::max),
        ),
    };
    let value = json!({
        "file": path.ok(),
        "damaged": found.damaged,
        "processor": Computer::of_processor(measured).map(|computer| computer.to_string()),
        "records": records,
    });
    (value, text)
}
