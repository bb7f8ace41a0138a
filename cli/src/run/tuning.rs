//! The schedules that a long run compares, and the one with which it goes on.

use super::{Outcome, Run, Value};
use crate::failure::Failure;
use crate::rates::Expected;
use crate::schedule;
use serde_json::{Value as Json, json};
use std::env;
use std::time::Duration;
use torre_compiler::cost::gcells;
use torre_compiler::resolve::Resolved;
use torre_runtime::host::{Candidate, Tuned, Tuning};
use torre_runtime::plan::{Plan, Planner};
use torre_runtime::simulation::{Tried, TuningResult};

/// The environment variable that says which runs are tuned: `always` or `never`.
const VARIABLE: &str = "TORRE_TUNING";

/// The runs that are tuned, as the user wishes; `None`: no run.
pub(super) fn wished() -> Result<Option<Tuned>, Failure> {
    let text = env::var_os(VARIABLE).filter(|text| !text.is_empty());
    match text.as_ref().map(|text| text.to_string_lossy()).as_deref() {
        None => Ok(Some(Tuned::LongRuns)),
        Some("always") => Ok(Some(Tuned::AllRuns)),
        Some("never") => Ok(None),
        Some(text) => Err(Failure::usage(format!(
            "`{VARIABLE}` is `always` or `never`, and not `{text}`"
        ))),
    }
}

/// Whether a run is long enough for tuning.
pub(super) fn is_long(resolved: &Resolved, expected: &Expected) -> bool {
    let cells = resolved.scheme.grid.cell_count();
    let seconds = cells * resolved.problem.steps as f64 / expected.rate();
    seconds >= Tuning::shortest_run()
}

/// A schedule that tuning compares, with its timings.
pub(super) struct Timings<'b> {
    plan: &'b Plan,
    pub expected: &'b Expected,
    pub tried: &'b Tried,
    pub is_taken: bool,
}

impl<T: Value> Run<'_, T> {
    /// Tuning of a run that goes on after `done` steps, if it is one of the runs that are tuned.
    pub(super) fn tuning(&self, tuned: Option<Tuned>, done: u64) -> Option<Tuning<'_>> {
        let plans = self.executor.plans();
        let candidates: Vec<Candidate<'_>> = plans
            .map(|(plan, expected)| Candidate {
                execution: &plan.execution,
                height: plan.height(),
                step: self.cells() as f64 / expected.rate(),
            })
            .collect();
        Tuning::new(&candidates, self.problem.steps - done, tuned?)
    }

    /// The plan of the processor with which a run ended.
    pub(super) fn taken(&self, tuning: Option<&TuningResult>) -> Option<(&Plan, &Expected)> {
        let mut plans = self.executor.plans();
        plans.nth(tuning.map_or(0, |tuning| tuning.taken))
    }

    /// The timings of each schedule.
    pub(super) fn timings<'b>(
        &'b self,
        tuning: &'b TuningResult,
    ) -> impl Iterator<Item = Timings<'b>> {
        let tried = tuning.tried.iter().enumerate();
        let plans = self.executor.plans();
        plans
            .zip(tried)
            .map(|((plan, expected), (number, tried))| Timings {
                plan,
                expected,
                tried,
                is_taken: number == tuning.taken,
            })
    }

    /// Cell-steps per second.
    pub(super) fn rate(&self, steps: u64, time: Duration) -> f64 {
        self.cells() as f64 * steps as f64 / time.as_secs_f64()
    }

    /// The schedules that were compared, for a report: their rates, and the one that was taken.
    pub(super) fn tuning_json(&self, tuning: &TuningResult) -> Json {
        let planner = Planner::new(self.scheme).ok();
        let timings = self.timings(tuning).map(|timings| {
            let tried = timings.tried;
            let rates = tried.times.iter();
            let rates = rates.map(|time| self.rate(tried.steps, *time) * 1e-9);
            let choice = &timings.plan.choice;
            json!({
                "schedule": schedule::title(choice),
                "schedule_text": planner.as_ref().and_then(|p| schedule::text(choice, p)),
                "steps": tried.all_steps(),
                "seconds": tried.time().as_secs_f64(),
                "gcells_per_s": rates.collect::<Vec<f64>>(),
                "expected_gcells_per_s": timings.expected.rate() * 1e-9,
                "disturbed": tried.disturbed,
                "taken": timings.is_taken,
            })
        });
        timings.collect()
    }

    /// The same in a line; `None` if nothing was compared.
    pub(super) fn tuning_text(&self, tuning: &TuningResult) -> Option<String> {
        let (mut taken, mut others) = (None, Vec::new());
        for timings in self.timings(tuning) {
            let tried = timings.tried;
            if tried.times.is_empty() {
                continue;
            }
            let rate = gcells(self.rate(tried.all_steps(), tried.time()));
            let name = schedule::title(&timings.plan.choice);
            match timings.is_taken {
                true => taken = Some(format!("{name} {rate} Gcells/s")),
                false => others.push(format!("{name} {rate}")),
            }
        }
        let others = others.join(", ");
        (!others.is_empty()).then_some(format!("tuned: {}; not taken: {others}", taken?))
    }

    /// Steps and time of a run without the timings of schedules that it did not go on with.
    pub(super) fn own_part(
        &self,
        outcome: &Outcome,
        steps: u64,
        tuning: Option<&TuningResult>,
    ) -> (u64, Duration) {
        let timings = tuning.into_iter().flat_map(|tuning| self.timings(tuning));
        let rejected = timings.filter(|timings| !timings.is_taken);
        let whole = (steps, outcome.times.stepping);
        rejected.fold(whole, |(steps, time), Timings { tried, .. }| {
            (steps - tried.all_steps(), time.saturating_sub(tried.time()))
        })
    }
}
