//! Frames of outputs that a folder lacks when a run goes on.

use super::names::stem;
use super::stores::volumes;
use super::{Outputs, VolumeFormat};
use crate::output::error::FileError;
use crate::output::zarr::series_of;
use crate::run::results_folder::VOLUMES_STORE;
use std::collections::BTreeSet;
use torre_compiler::problem::{Output, Problem};
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
    /// Whether the run has a volume of this name.
    pub is_own: bool,
}

impl Outputs {
    /// The first series of the store of an earlier run that would lose frames by this run: the store is made anew of
    /// the run's own outputs, from the volumes in the folder. A frame is kept if the folder has its volume, or if the
    /// run writes it again. An error where the store cannot be read.
    pub fn would_lose(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        resumed: Option<u64>,
    ) -> Result<Option<Lost>, FileError> {
        // A run without volumes leaves the store as it is.
        if self.format != VolumeFormat::Zarr || volumes(problem).next().is_none() {
            return Ok(None);
        }
        let done = resumed.unwrap_or(0);
        let lost = |(name, times): (String, Vec<f64>)| {
            let own = volumes(problem).find(|output| output.name == name);
            let frames = match own {
                Some(own) => {
                    let there = self.steps_there(own, problem.steps, self.ending());
                    // The frame of the start values is written by a run that begins with them.
                    let is_written = |step: &u64| {
                        let is_start = self.save_initial && done == 0 && *step == 0;
                        let is_ahead = *step > done && *step <= problem.steps;
                        (is_start || is_ahead) && step.is_multiple_of(own.every)
                    };
                    let earlier = scheme.component(own.component).time.as_f64();
                    let step =
                        |time: &f64| (time / scheme.grid.dt + earlier).round().max(0.0) as u64;
                    times
                        .iter()
                        .map(step)
                        .filter(|step| !there.contains(step) && !is_written(step))
                        .count()
                }
                None => times.len(),
            };
            (frames > 0).then_some(Lost {
                output: name,
                frames: frames as u64,
                is_own: own.is_some(),
            })
        };
        let found = series_of(&self.folder.join(VOLUMES_STORE))?;
        Ok(found.into_iter().find_map(lost))
    }

    /// The steps up to `steps` of the frames of an output that lie in the folder in files of some ending, from the run
    /// itself or from earlier runs, which had the same output with other steps.
    pub(super) fn steps_there(&self, output: &Output, steps: u64, ending: &str) -> BTreeSet<u64> {
        let there = self.frames_there();
        let step_of = |name: &String| {
            let step = name
                .rsplit_once('-')?
                .1
                .split_once('.')?
                .0
                .parse::<u64>()
                .ok()?;
            let is_frame = step <= steps && *name == format!("{}.{ending}", stem(output, step));
            (is_frame && self.folder.join(name).is_file()).then_some(step)
        };
        there.iter().filter_map(step_of).collect()
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
