//! Records of runs: the measured rate over the modelled one.

use super::{Made, Outcome, Run, Value};
use crate::rates::Expected;
use serde_json::{Value as Json, json};
use torre_runtime::host::contention::Waiting;
use torre_runtime::rates::{CaseRuns, LEAST};
use torre_runtime::simulation::TuningResult;

/// Time blocks between two pauses from which on a short last one does not matter on a processor; the model of GPUs
/// counts short ones.
const WHOLE: u64 = 3;

/// Why a run is not recorded.
type Reason = &'static str;

impl<T: Value> Run<'_, T> {
    /// Records the rates of a run that has computed for some time, if nothing disturbed it: of the schedule with which
    /// it ended, and of others that it has tried.
    pub(super) fn learn(
        &self,
        made: &Made,
        outcome: &Outcome,
        steps: u64,
        waiting: &Waiting,
        tuning: Option<&TuningResult>,
    ) -> Result<(), Reason> {
        if !self.rates.is_learning() {
            return Err("rates are modelled");
        }
        if outcome.blow_up.is_some() {
            return Err("a blow-up ended it");
        }
        if self.executor.expected().is_none() {
            return Err("the model expects nothing of this back end");
        }
        if !made.as_planned {
            return Err("it was not executed as the model has it");
        }
        if self.check.is_some() || self.args.timeline.is_some() {
            return Err("it was compared, or its operations were timed");
        }
        let (own_steps, stepping) = self.own_part(outcome, steps, tuning);
        if stepping < LEAST {
            return Err("it computed for less than 0.3 s");
        }
        let height = self.taken(tuning).map_or(1, |(plan, _)| plan.height());
        if height > 1 && own_steps < WHOLE * height * outcome.stretches {
            return Err("pauses cut its time blocks short");
        }
        if waiting.is_busy() {
            return Err("others used the machine");
        }
        let Some(computer) = self.executor.computer() else {
            return Err("others used the machine when it was measured");
        };
        let record = |expected: &Expected, rate: f64| {
            let ratio = rate / expected.modelled;
            let run = CaseRuns::new(computer.clone(), expected.case.clone(), ratio);
            self.rates.record(run)
        };
        let (_, expected) = self.choice(tuning);
        let mut is_kept = expected.is_some_and(|e| record(e, self.rate(own_steps, stepping)));
        let timings = tuning.into_iter().flat_map(|tuning| self.timings(tuning));
        for timings in timings.filter(|timings| !timings.is_taken) {
            let tried = timings.tried;
            if tried.time() >= LEAST && !tried.disturbed {
                let rate = self.rate(tried.all_steps(), tried.time());
                is_kept &= record(timings.expected, rate);
            }
        }
        match is_kept {
            true => Ok(()),
            false => Err("the record could not be written"),
        }
    }

    /// The learned rate before a run, as JSON, and whether the run was recorded.
    pub(super) fn learned_json(before: Json, record: Result<(), Reason>) -> Json {
        let mut all = match before {
            Json::Null => json!({}),
            before => before,
        };
        let recorded = json!({"recorded": record.is_ok(), "not_recorded_because": record.err()});
        crate::report::extend(&mut all, recorded);
        all
    }
}
