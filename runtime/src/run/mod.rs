//! A run from its start to its end: stepping, and the work in between.
//!
//! ```text
//! loop  run to the next pause      a volume, a reduction or a checkpoint is due, pictures pile up, or the problem ends
//!       compare with a check       with `--verify`: every value, bit by bit
//!       record reductions          from the values after this step
//!       write due results          pictures, volumes, then the checkpoint that says so; a GPU goes on meanwhile
//!       or the guard stops it      slices, probes and reductions of the steps before
//! end   all values counted, probes, reductions, final fields, then stores, lists and pictures of all frames
//! ```
//! A checkpoint is written after all results that are due up to its step, so a run that continues from it writes the
//! rest. The last one comes before the results of the end: these read frames of earlier times, which may be damaged,
//! and a run that continues after the last step writes them. Where it cannot be written, they are written all the same.
//! The state that a calculation in files keeps itself is confirmed at the same points, and at the end by the same rule.

pub mod census;
pub mod checkpoint;
mod fields;
pub mod gallery;
mod in_files;
mod literal;
pub mod memory;
mod outlines;
pub mod outputs;
mod own_folder;
pub mod owner;
mod pictures;
mod places;
mod records;
pub mod results_folder;
pub mod series;
mod setup;
pub mod spectra;
mod sweep_plan;
pub mod verify;

pub use census::{Count, census};
pub use checkpoint::Checkpoints;
pub use gallery::{Pictures, Range};
pub use in_files::InFiles;
pub use literal::Literal;
pub use outputs::{Missing, Outputs, VolumeFormat, Wanted};
pub use owner::Owner;
pub use records::Records;
pub use series::SeriesRecords;
pub use setup::setup;
pub use spectra::Spectra;
pub use sweep_plan::{PIECE as SWEEP_PIECE, Passes, Pauses, SweepPlan};

use crate::output::FileError;
use crate::simulation::{BlowUp, Progress, RunError, Simulation, Value, Values, slice_shape};
use std::time::{Duration, Instant};
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::scheme::Scheme;

/// Pictures that may wait in memory before the run pauses to write them, in bytes.
pub(crate) const WAITING_PICTURES: u64 = 256 << 20;

/// The outputs, records and observers of a run.
#[derive(Clone, Copy, Default)]
pub struct Company<'a> {
    pub outputs: Option<&'a Outputs>,
    pub checkpoints: Option<&'a Checkpoints>,
    pub records: Records<'a>,
    /// Threads that count values at the end.
    pub threads: usize,
}

impl Company<'_> {
    /// Whether anything takes the values of outputs.
    fn takes_outputs(&self) -> bool {
        self.outputs.is_some() || self.records.spectra.is_some()
    }
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    pub times: Times,
    /// How many times it went on, to the next pause or to its end.
    pub stretches: u64,
    /// The values of all components after the last step; none where a blow-up ended the run early.
    pub counts: Vec<Count>,
    /// Whether a checkpoint was written, be it of the end or an earlier one.
    pub saved: bool,
    /// The states of the end that were not written.
    pub unsaved: Unsaved,
    /// The blow-up that ended the run early.
    pub blow_up: Option<BlowUp>,
}

/// Why states of the end were not written.
#[derive(Debug, Default)]
pub struct Unsaved {
    /// The checkpoint.
    pub checkpoint: Option<FileError>,
    /// The state that the calculation keeps itself.
    pub state: Option<RunError>,
}

impl Unsaved {
    /// Whether a state is missing.
    pub fn any(&self) -> bool {
        self.checkpoint.is_some() || self.state.is_some()
    }

    /// The first error.
    pub fn into_error(self) -> Option<RunError> {
        self.checkpoint.map(RunError::from).or(self.state)
    }
}

/// Wall times of the parts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// A GPU also steps while files are written; that time counts for both.
    pub stepping: Duration,
    /// Results.
    pub writing: Duration,
    pub checkpoints: Duration,
    /// The time of `--verify`.
    pub verifying: Duration,
    /// Counting the values at the end, and bringing them from a device.
    pub counting: Duration,
}

/// Runs a part, and adds its time.
fn timed<R>(total: &mut Duration, part: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = part();
    *total += start.elapsed();
    result
}

/// How far the parts of a run have come, for observers.
#[derive(Default)]
pub struct Watch {
    /// The run itself.
    pub run: Progress,
    /// Its check.
    pub check: Progress,
}

/// Runs to the problem's end. `check` is the same calculation by other means, at the same step: every value of both is
/// compared. A blow-up ends it early, which is an outcome.
#[inline(never)]
pub fn execute<T: Value>(
    simulation: &mut dyn Simulation<T>,
    mut check: Option<&mut dyn Simulation<T>>,
    company: Company<'_>,
    watch: &Watch,
) -> Result<Outcome, RunError> {
    let mut times = Times::default();
    let (mut stretches, mut saved) = (0, false);
    let steps = simulation.problem().steps;
    if let Some(outputs) = company.outputs
        && simulation.steps() == 0
    {
        timed(&mut times.writing, || outputs.start(simulation))?;
    }
    timed(&mut times.checkpoints, || {
        confirm_state(simulation, &company)
    })?;
    loop {
        let done = simulation.steps();
        if done < steps {
            let until = next_stop(simulation, &company);
            stretches += 1;
            match timed(&mut times.stepping, || simulation.run(until, &watch.run)) {
                Err(RunError::BlowUp(found)) => {
                    if let Some(outputs) = company.outputs {
                        timed(&mut times.writing, || {
                            outputs.end_early(simulation, company.records.series, &found)
                        })?;
                    }
                    return Ok(Outcome {
                        times,
                        stretches,
                        counts: Vec::new(),
                        saved,
                        unsaved: Unsaved::default(),
                        blow_up: Some(found),
                    });
                }
                ran => ran?,
            }
        }
        let pictures = simulation.take_pictures();
        let ended = simulation.steps() >= steps;
        if !ended {
            let values = match check {
                Some(_) => Values::All,
                None => values_due(simulation, &company),
            };
            simulation.run_ahead(next_stop(simulation, &company), &values)?;
        }
        let mut counts = Vec::new();
        if ended {
            timed(&mut times.counting, || -> Result<(), RunError> {
                simulation.fetch()?;
                counts = census(simulation, company.threads);
                Ok(())
            })?;
        }
        if let Some(check) = &mut check {
            timed(&mut times.verifying, || -> Result<(), RunError> {
                check.run(simulation.steps(), &watch.check)?;
                check.fetch()?;
                let checked = check.take_pictures();
                let compared = verify::compare(simulation, *check)
                    .and_then(|()| verify::compare_pictures(simulation, &pictures, &checked));
                // Runs whose slices nothing takes do not pause for them.
                let compared = compared.and_then(|()| match company.takes_outputs() {
                    true => verify::find_missing_pictures(simulation, &pictures, &checked),
                    false => Ok(()),
                });
                compared.map_err(RunError::Difference)
            })?;
        }
        if let Some(series) = company.records.series {
            timed(&mut times.writing, || {
                series.take(simulation, company.threads)
            });
        }
        if let Some(spectra) = company.records.spectra {
            timed(&mut times.writing, || {
                spectra.take(simulation, &pictures, company.threads)
            });
        }
        if let Some(outputs) = company.outputs {
            timed(&mut times.writing, || -> Result<(), FileError> {
                match simulation.steps() > done {
                    true => outputs.write(simulation, &pictures),
                    false => Ok(()),
                }
            })?;
        }
        let mut unsaved = Unsaved::default();
        if let Some(checkpoints) = company.checkpoints
            && checkpoints.due(simulation.steps(), steps)
        {
            let written = timed(&mut times.checkpoints, || {
                checkpoints.write(simulation, company.records)
            });
            saved |= written.is_ok();
            match ended {
                // The disk of the results may have room.
                true => unsaved.checkpoint = written.err(),
                false => written?,
            }
        }
        let confirmed = timed(&mut times.checkpoints, || {
            confirm_state(simulation, &company)
        });
        match ended {
            true => unsaved.state = confirmed.err(),
            false => confirmed?,
        }
        if ended && let Some(outputs) = company.outputs {
            let finished = timed(&mut times.writing, || {
                outputs.finish(simulation, company.records)
            });
            if let Err(error) = finished {
                return Err(unsaved.into_error().unwrap_or(error.into()));
            }
        }
        if ended {
            times.stepping += simulation.overlapped();
            return Ok(Outcome {
                times,
                stretches,
                counts,
                saved,
                unsaved,
                blow_up: None,
            });
        }
    }
}

/// Confirms the state that a calculation keeps itself: all results up to it are written.
fn confirm_state<T: Value>(
    simulation: &mut dyn Simulation<T>,
    company: &Company<'_>,
) -> Result<(), RunError> {
    if !simulation.keeps_states() {
        return Ok(());
    }
    let records = checkpoint::kept_records(simulation.problem(), company.records);
    simulation.confirm_state(records)
}

/// The values from which results are made after the current step, which is not the last one.
fn values_due<T: Value>(simulation: &dyn Simulation<T>, company: &Company<'_>) -> Values {
    let (step, problem) = (simulation.steps(), simulation.problem());
    let checkpoint = company.checkpoints;
    if checkpoint.is_some_and(|c| c.due(step, problem.steps)) {
        return Values::All;
    }
    let recorded = match company.records.series {
        Some(_) => series::values_due(simulation.scheme(), problem, step),
        None => Values::nothing(),
    };
    match company.takes_outputs() {
        true => recorded.and(Values::Parts(outputs::parts_due(problem, step))),
        false => recorded,
    }
}

/// The step at which the run has to pause next.
fn next_stop<T: Value>(simulation: &dyn Simulation<T>, company: &Company<'_>) -> u64 {
    let done = simulation.steps();
    let mut stop = match company.takes_outputs() {
        true => simulation.next_pause(),
        false => simulation.problem().steps,
    };
    stop = stop.min(simulation.next_state());
    if company.records.series.is_some() {
        stop = stop.min(series::next(simulation.problem(), done));
    }
    if let Some(checkpoints) = company.checkpoints {
        stop = stop.min(checkpoints.next(done));
    }
    let per_step = picture_bytes_per_step(simulation.scheme(), simulation.problem());
    let affordable = (WAITING_PICTURES as f64 / per_step.max(1e-9)) as u64;
    let stride = simulation.stride().max(1);
    let affordable = (affordable / stride).max(1).saturating_mul(stride);
    stop.min(done.saturating_add(affordable))
}

/// Bytes of recorded pictures per step, on average.
fn picture_bytes_per_step(scheme: &Scheme, problem: &Problem) -> f64 {
    let bytes = |o: &torre_compiler::problem::Output| match o.kind {
        OutputKind::Slice { axis, .. } if !o.needs_values() => {
            let shape = slice_shape(scheme, o.component, axis);
            shape.iter().map(|&n| n as f64).product::<f64>() * 8.0 / o.every as f64
        }
        _ => 0.0,
    };
    problem.outputs.iter().map(bytes).sum()
}
