//! Records of runs: the measured rate over the modelled one.

use super::{Made, Outcome, Plan, Run, Value};
use serde_json::{Value as Json, json};
use torre_runtime::host::contention::Waiting;
use torre_runtime::rates::{LEAST, Record};

/// Time blocks between two pauses from which on a short last one does not matter on a processor; the model of GPUs
/// counts short ones.
const WHOLE: u64 = 3;

/// Why a run is not recorded.
type Reason = &'static str;

impl<T: Value> Run<'_, T> {
    /// Records the rate of a run that has computed for some time, if nothing disturbed it.
    pub(super) fn learn(
        &self,
        made: &Made,
        outcome: &Outcome,
        steps: u64,
        waiting: &Waiting,
    ) -> Result<(), Reason> {
        if !self.rates.is_learning() {
            return Err("rates are modelled");
        }
        let Some((expected, computer)) = &self.expected else {
            return Err("the model expects nothing of this back end");
        };
        if !made.as_planned {
            return Err("it was not executed as the model has it");
        }
        if self.check.is_some() || self.args.timeline.is_some() {
            return Err("it was compared, or its operations were timed");
        }
        let stepping = outcome.times.stepping;
        if stepping < LEAST {
            return Err("it computed for less than 0.3 s");
        }
        let height = self.plan.as_ref().map_or(1, Plan::height);
        if height > 1 && steps < WHOLE * height * outcome.stretches {
            return Err("pauses cut its time blocks short");
        }
        if waiting.is_busy() {
            return Err("others used the machine");
        }
        let Some(computer) = computer else {
            return Err("others used the machine when it was measured");
        };
        let rate = self.cells() as f64 * steps as f64 / stepping.as_secs_f64();
        let ratio = rate / expected.modelled;
        let run = Record::new(computer.clone(), expected.case.clone(), ratio);
        match self.rates.record(run) {
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
