//! The report of a run that has ended.

use super::{Check, Folders, Made, Run};
use crate::args;
use crate::device;
use crate::failure::Failure;
use crate::gap::Gap;
use crate::rates::Expected;
use crate::report::{self, Report};
use crate::schedule;
use crate::sweep;
use crate::window;
use crate::write;
use serde_json::Value as Json;
use std::path::Path;
use std::time::Duration;
use torre_compiler::cost::Choice;
use torre_runtime::budget;
use torre_runtime::gpu::Device;
use torre_runtime::plan::Planner;
use torre_runtime::plan::gpu::DevicePlanner;
use torre_runtime::run::{Outcome, Owner};
use torre_runtime::simulation::{TuningResult, Value};

impl<T: Value> Run<'_, T> {
    /// The schedule with which the run ended, and its expectation.
    pub(super) fn choice(
        &self,
        tuning: Option<&TuningResult>,
    ) -> (Option<&Choice>, Option<&Expected>) {
        if let Some((plan, expected)) = self.taken(tuning) {
            return (Some(&plan.choice), Some(expected));
        }
        let on_gpu = self.executor.gpu().map(|gpu| &gpu.plan.choice);
        (on_gpu, self.executor.expected())
    }

    /// The schedule as `--schedule` takes it.
    fn schedule_text(&self, choice: &Choice) -> Option<String> {
        match self.executor.gpu() {
            Some(gpu) => {
                let planner = DevicePlanner::new(self.scheme, self.problem, &gpu.model).ok()?;
                schedule::text(choice, &planner.planner)
            }
            None => schedule::text(choice, &Planner::new(self.scheme).ok()?),
        }
    }

    pub(super) fn report(
        &self,
        made: Made,
        outcome: &Outcome,
        steps_run: u64,
        folders: &Folders,
        tuning: Option<&TuningResult>,
    ) -> Report {
        let (choice, expected) = self.choice(tuning);
        let gap = self.executor.gpu().and_then(|gpu| gpu.gap.as_ref());
        let ended = outcome.blow_up.is_none();
        // Files of results are listed by their folder.
        let checkpoint = folders.checkpoints.as_ref().filter(|_| outcome.saved);
        let checkpoint = checkpoint.map(|c| c.path().to_owned());
        let report = args::report_file(self.args.report.as_deref());
        let files = checkpoint.into_iter().chain(report.map(Path::to_owned));
        let files = files.chain(self.args.timeline.clone().filter(|_| ended));
        Report {
            provenance: folders.provenance.clone(),
            times: outcome.times,
            reading: self.clock.reading,
            planning: self.clock.planning,
            preparing: Duration::ZERO,
            total: Duration::ZERO,
            counts: ended.then(|| outcome.counts.clone()),
            schedule_text: choice.and_then(|choice| self.schedule_text(choice)),
            identity: folders.owner.as_ref().map(Owner::json),
            complete: ended && !outcome.unsaved.any(),
            blow_up: outcome.blow_up.clone(),
            files: files.collect(),
            scheme: self.scheme.name.clone(),
            problem: self.problem.name.clone(),
            domain: report::domain(self.scheme),
            cells: self.cells(),
            steps: self.problem.steps,
            steps_run,
            precision: self.scheme.precision.to_string(),
            backend: made.backend,
            code: made.code,
            schedule: match choice {
                Some(choice) => schedule::title(choice),
                None => "step by step".to_owned(),
            },
            threads: self.threads,
            devices: made.devices,
            cuda: self
                .executor
                .gpu()
                .map(|gpu| device::cuda(gpu.device().facts())),
            compiling: made.compiling,
            cached: made.cached,
            field_bytes: made.field_bytes,
            spilled: made.spilled,
            peak_bytes: budget::peak(),
            bytes_per_cell_step: match choice {
                Some(choice) => vec![
                    ("memory".to_owned(), choice.prediction.memory_bytes),
                    ("cache".to_owned(), choice.prediction.cache_bytes),
                ],
                None => Vec::new(),
            },
            predicted_gcells_per_s: expected.map(|expected| expected.modelled * 1e-9),
            learned_gcells_per_s: expected.and_then(Expected::learned).map(|rate| rate * 1e-9),
            learned: expected.map_or(Json::Null, Expected::json),
            learned_text: expected.and_then(Expected::text),
            timeline: None,
            tuning: tuning.map(|tuning| self.tuning_json(tuning)),
            tuning_text: tuning.and_then(|tuning| self.tuning_text(tuning)),
            planes: gap.map(Gap::json),
            planes_text: gap.map(Gap::text),
            window: match self.executor.sweep() {
                Some(plan) => Some(sweep::json(plan, &self.input.resolved)),
                None => self.executor.held().map(window::json),
            },
            verified: self.check.filter(|_| ended).map(|check| match check {
                Check::Reference => "the reference".to_owned(),
                Check::Interpreter => "the interpreter, layerwise".to_owned(),
                Check::Processor => "the processor, layerwise".to_owned(),
            }),
        }
    }

    /// Writes the report where it is wanted; tells whether stdout is free for its short form.
    pub(super) fn publish(&self, report: &Json, folders: &Folders) -> Result<bool, Failure> {
        let mut listed = report.clone();
        if let Some(outputs) = &folders.outputs {
            outputs.report(report)?;
            listed = outputs.listed(report);
        }
        let json = format!("{listed:#}\n");
        let shown = write::report(self.args.report.as_deref(), &json)?;
        Ok(!shown && !self.voice.quiet)
    }
}
