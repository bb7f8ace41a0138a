//! Frames of outputs that a folder lacks when a run goes on.

use super::{Outputs, VolumeFormat, file_name, frame};
use crate::output::error::FileError;
use crate::output::zarr::series_of;
use crate::run::results_folder::VOLUMES_STORE;
use std::collections::BTreeSet;
use torre_compiler::problem::{Output, OutputKind, Problem};
use torre_compiler::scheme::Scheme;

/// Frames of an output that a folder lacks, as they were written before a checkpoint, elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The output's name.
    pub output: String,
    pub frames: u64,
    /// The first and the last step of them.
    pub steps: [u64; 2],
}

/// Frames of a series that a store would lose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The series' name.
    pub output: String,
    pub frames: u64,
}

impl Outputs {
    /// The first series of the store of an earlier run that would lose frames of steps before this one goes on: the
    /// store is made anew of the volumes in the folder. An error where the store cannot be read.
    pub fn would_lose(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        resumed: Option<u64>,
    ) -> Result<Option<Lost>, FileError> {
        let resumed = resumed.filter(|steps| *steps > 0);
        let (Some(done), VolumeFormat::Zarr) = (resumed, self.format) else {
            return Ok(None);
        };
        let there = self.frames_there();
        let lost = |(name, times): (String, Vec<f64>)| {
            let mut volumes = problem.frames();
            let own = volumes.find(|o| o.name == name && matches!(o.kind, OutputKind::Volume));
            // How much earlier than its step a value is, in steps; both are possible for an output that was removed.
            let earlier = match own {
                Some(own) => vec![scheme.component(own.component).time.as_f64()],
                None => vec![0.0, 0.5],
            };
            let is_lost = |time: &&f64| {
                let steps = earlier
                    .iter()
                    .map(|e| (**time / scheme.grid.dt + e).round());
                let mut steps = steps.map(|step| step.max(0.0) as u64);
                let base = format!("volumes/{}", file_name(&name));
                let file = |step| format!("{}.npy", frame(&base, step));
                steps.all(|step| step <= done && !there.contains(&file(step)))
            };
            let frames = times.iter().filter(is_lost).count() as u64;
            (frames > 0).then_some(Lost {
                output: name,
                frames,
            })
        };
        let store = self.folder.join(VOLUMES_STORE);
        Ok(series_of(&store)?.into_iter().find_map(lost))
    }

    /// The frames of the first steps that the folder lacks.
    pub(super) fn missing_frames(&self, problem: &Problem, steps: u64) -> Vec<Missing> {
        let there = self.frames_there();
        let missing = problem
            .frames()
            .filter_map(|output| self.missing(output, steps, &there));
        missing.collect()
    }

    /// The names of all files that could be frames.
    fn frames_there(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for folder in ["slices", "volumes"] {
            let entries = std::fs::read_dir(self.folder.join(folder));
            for entry in entries.into_iter().flatten().flatten() {
                if let Some(name) = entry.file_name().to_str() {
                    names.insert(format!("{folder}/{name}"));
                }
            }
        }
        names
    }

    /// The steps up to `steps` after which an output is written.
    pub(super) fn frame_steps(
        &self,
        output: &Output,
        steps: u64,
    ) -> impl Iterator<Item = u64> + use<> {
        let (first, every) = (u64::from(!self.save_initial), output.every);
        (first..=steps / every).map(move |n| n * every)
    }

    /// The frames of the first steps that are not there.
    fn missing(&self, output: &Output, steps: u64, there: &BTreeSet<String>) -> Option<Missing> {
        let mut missing = None;
        for step in self.frame_steps(output, steps) {
            let names = self.frame_names(output, step);
            if !there.contains(&names[0]) {
                let missing = missing.get_or_insert(Missing {
                    output: output.name.clone(),
                    frames: 0,
                    steps: [step; 2],
                });
                missing.frames += 1;
                missing.steps[1] = step;
            }
        }
        missing
    }

    /// Takes the frames of the first steps that are there into the list of files of results.
    pub(super) fn note_frames(&self, problem: &Problem, steps: u64) {
        let there = self.frames_there();
        let names = problem.frames().flat_map(|output| {
            let frames = self.frame_steps(output, steps);
            frames.flat_map(|step| self.frame_names(output, step))
        });
        let found = names.filter(|name| there.contains(name));
        self.written.borrow_mut().extend(found);
    }
}
