//! Stopping and going on: the state of a calculation in one file, so that a resumed run gives the same bits as one that
//! was never interrupted.

use super::fields::{FieldRows, StateRows, shape, shape_of};
use super::records::Records;
use super::spectra::Spectra;
use crate::disk::{NOTE, STATE_FILES};
use crate::files::LoadedFiles;
use crate::host::Calculation;
use crate::output::atomic::remove_leftovers;
use crate::output::checkpoint::{self as file, Checkpoint, CheckpointFault, Identity, probe_name};
use crate::output::checksum::Xxh64;
use crate::output::claim::Claim;
use crate::output::open::Place;
use crate::output::{AnyRows, Attempt, Cause, FileError, Rows, View};
use crate::simulation::{RunError, Simulation, Value};
use serde_json::Map;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use torre_compiler::lattice::Region;
use torre_compiler::problem::Problem;
use torre_compiler::scheme::{ComponentId, Scheme, StateId};

/// The name of the file in the folder that a user names.
const FILE: &str = STATE_FILES[0];

/// Where and when checkpoints are written.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    path: PathBuf,
    /// After each multiple of this number of steps; 0: only at the end.
    every: u64,
    identity: Identity,
    /// The lock of the folder, if the run has one.
    lock: Option<Place>,
}

impl Checkpoints {
    /// Removes files that a killed run left in the folder under temporary names.
    pub fn new(folder: &Path, every: u64, identity: Identity) -> Self {
        remove_leftovers(folder);
        Self {
            path: folder.join(FILE),
            every,
            identity,
            lock: None,
        }
    }

    /// Checkpoints are written as long as the run has the folder by its claim.
    pub fn claimed(mut self, claim: &Claim) -> Self {
        self.lock = claim.guard();
        self
    }

    /// The file that is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next step that is due.
    pub fn next(&self, done: u64) -> u64 {
        match self.every {
            0 => u64::MAX,
            n => (done / n + 1).saturating_mul(n),
        }
    }

    /// Whether a checkpoint is written after this step.
    pub fn due(&self, step: u64, last: u64) -> bool {
        step == last || self.every > 0 && step.is_multiple_of(self.every)
    }

    /// Writes the state after the steps done so far.
    #[inline(never)]
    pub fn write<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        kept: Records<'_>,
    ) -> Result<(), FileError> {
        if let Some(lock) = &self.lock {
            lock.check()?;
        }
        let scheme = simulation.scheme();
        let fields: Vec<(String, FieldRows<'_, T>)> = scheme
            .component_ids()
            .flat_map(|id| {
                (0..scheme.component(id).time_levels).map(move |age| {
                    (
                        array_name(scheme, id, age),
                        FieldRows::new(simulation, id, age),
                    )
                })
            })
            .collect();
        let problem = simulation.problem();
        let probes = 0..problem.probes.len();
        let probes = probes.map(|i| (probe_name(i), simulation.probe(i)));
        let mut records: Vec<(String, Vec<f64>)> = probes.collect();
        records.extend(kept_records(problem, kept));
        let probes: Vec<(&String, View<'_, f64>)> = records
            .iter()
            .map(|(name, record)| (name, View::line(record)))
            .collect();
        let states: Vec<(String, StateRows<'_, T>)> = all_states(simulation);
        let mut arrays: Vec<(&str, AnyRows<'_>)> = Vec::new();
        for (name, rows) in &states {
            let rows: &dyn Rows<T> = rows;
            arrays.push((name, T::any(rows)));
        }
        for (name, rows) in &fields {
            let rows: &dyn Rows<T> = rows;
            arrays.push((name, T::any(rows)));
        }
        for (name, rows) in &probes {
            arrays.push((name, AnyRows::F64(rows)));
        }
        file::write(
            &self.path,
            &self.identity,
            simulation.steps(),
            &Map::new(),
            &arrays,
        )
    }
}

/// The records beside probes, by the names of a checkpoint.
pub fn kept_records(problem: &Problem, kept: Records<'_>) -> Vec<(String, Vec<f64>)> {
    let mut records = Vec::new();
    if let Some(series) = kept.series {
        let reduced = (0..problem.series.len()).map(|i| (series_name(i), series.of(i)));
        let states = 0..problem.state_probes.len();
        let states = states.map(|i| (state_probe_name(i), series.of_state(i)));
        records.extend(reduced.chain(states));
    }
    if let Some(spectra) = kept.spectra {
        let sums = spectra.kept().into_iter().enumerate();
        records.extend(sums.map(|(i, sums)| (spectrum_name(i), sums)));
    }
    records
}

fn array_name(scheme: &Scheme, id: ComponentId, age: u8) -> String {
    format!("{}@{age}", scheme.component(id).name)
}

/// The boxes in which states are kept, for each state: the boxes of its zone, as far as its position has cells there.
pub fn state_boxes(scheme: &Scheme) -> impl Iterator<Item = (StateId, Region)> + '_ {
    let states = (0..scheme.states.len() as u32).map(StateId);
    states.flat_map(|id| {
        let state = &scheme.states[id.index()];
        let extent = scheme.grid.extent(state.position);
        let boxes = scheme.zone(state.zone).boxes.iter();
        let boxes = boxes.map(move |b| b.intersect(extent));
        boxes.filter(|b| !b.is_empty()).map(move |b| (id, b))
    })
}

fn state_name(scheme: &Scheme, id: StateId, region: Region) -> String {
    let corner: Vec<String> = (scheme.grid.present())
        .map(|axis| region[axis].lo.to_string())
        .collect();
    format!("state {} from {}", id.0, corner.join(" "))
}

/// The values of all states, with their names.
fn all_states<T: Value>(simulation: &dyn Simulation<T>) -> Vec<(String, StateRows<'_, T>)> {
    let scheme = simulation.scheme();
    let rows = state_boxes(scheme).map(|(id, region)| {
        let rows = StateRows::within(simulation, id, region);
        (state_name(scheme, id, region), rows)
    });
    rows.collect()
}

fn series_name(index: usize) -> String {
    format!("series {index}")
}

fn spectrum_name(index: usize) -> String {
    format!("spectrum {index}")
}

fn state_probe_name(index: usize) -> String {
    format!("state probe {index}")
}

/// The identity of a calculation, without its number of steps and the outputs that are written: a checkpoint of it can
/// be taken by any run with the same identity.
#[inline(never)]
pub fn identity<T: Value>(scheme: &Scheme, problem: &Problem, files: &LoadedFiles) -> Identity {
    let mut statics = Xxh64::default();
    for values in files.values() {
        for value in values {
            statics.update(&value.to_bits().to_le_bytes());
        }
    }
    let Problem {
        init,
        incidents,
        sources,
        probes,
        state_probes,
        series,
        ..
    } = problem;
    let mut text = format!("{init:?} {sources:?} {probes:?}");
    if !series.is_empty() {
        text.push_str(&format!(" {series:?}"));
    }
    if !state_probes.is_empty() {
        text.push_str(&format!(" {state_probes:?}"));
    }
    if !incidents.is_empty() {
        text.push_str(&format!(" {incidents:?}"));
    }
    for (_, output, _) in problem.spectra() {
        text.push_str(&format!(" {output:?}"));
    }
    let hash = |text: &str| format!("{:016x}", Xxh64::of(text.as_bytes()));
    Identity {
        scheme: hash(&format!("{scheme} {:016x}", statics.value())),
        problem: hash(&text),
        precision: T::TYPE,
    }
}

/// Bytes of the arrays of a checkpoint after some steps: nearly all of its file.
pub fn bytes(scheme: &Scheme, problem: &Problem, step: u64) -> u64 {
    let versions = scheme.component_ids().map(|id| {
        let levels = u64::from(scheme.component(id).time_levels);
        scheme.extent(id).volume().saturating_mul(levels)
    });
    let states = state_boxes(scheme).map(|(_, region)| region.volume());
    let values = versions.chain(states).fold(0, u64::saturating_add);
    values
        .saturating_mul(scheme.precision.bytes() as u64)
        .saturating_add(record_bytes(problem, step))
}

/// Bytes of the records in a state after some steps, where the fields are in files beside it.
pub fn record_bytes(problem: &Problem, step: u64) -> u64 {
    let probes = (problem.probes.len() as u64).saturating_mul(step);
    let series = problem.series.iter().map(|series| step / series.every);
    let states = problem.state_probes.iter().map(|probe| step / probe.every);
    let values = series.chain(states).fold(probes, u64::saturating_add);
    values
        .saturating_mul(8)
        .saturating_add(Spectra::bytes(problem))
}

/// The state in a folder, as a run sees it that would replace it.
#[derive(Debug)]
pub enum Replaced {
    /// None, or an earlier one of the same calculation.
    Own,
    /// One whose fields are in files beside it.
    InFiles,
    /// One of another calculation.
    Other,
    /// One that cannot be read, so that nothing is known about it.
    Unread(FileError),
}

/// The state that a checkpoint in a folder would replace.
pub fn replaced(folder: &Path, identity: &Identity) -> Replaced {
    let path = folder.join(FILE);
    if std::fs::symlink_metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Replaced::Own;
    }
    match Checkpoint::open(&path) {
        Ok(found) if found.header().notes.contains_key(NOTE) => Replaced::InFiles,
        Ok(found) if found.expect(identity).is_ok() => Replaced::Own,
        Ok(_) => Replaced::Other,
        Err(error) => Replaced::Unread(error),
    }
}

/// The step of the state in a folder, of whichever calculation, if it can be read.
pub fn step_in(folder: &Path) -> Option<u64> {
    let found = Checkpoint::open(&folder.join(FILE)).ok()?;
    Some(found.header().step)
}

/// The checkpoint of a folder with which a run goes on. Its file is opened once, so that all that is read is of one
/// step, also if the run that wrote it writes a later one meanwhile.
#[derive(Debug)]
pub struct Earlier {
    checkpoint: Checkpoint,
    path: PathBuf,
}

impl Earlier {
    /// Opens the checkpoint in a folder, if it is one of this calculation.
    pub fn open(folder: &Path, identity: &Identity) -> Result<Earlier, FileError> {
        let path = folder.join(FILE);
        let checkpoint = Checkpoint::open(&path)?;
        checkpoint.expect(identity)?;
        Ok(Earlier { checkpoint, path })
    }

    /// The step after which it was written.
    pub fn step(&self) -> u64 {
        self.checkpoint.header().step
    }

    /// The records of the series of a problem, and then of its probes of states, when it was written.
    pub fn series(&self, problem: &Problem) -> Result<Vec<Vec<f64>>, FileError> {
        let mut checkpoint = self.checkpoint.again()?;
        let series = problem.series.iter().enumerate();
        let series = series.map(|(index, series)| (series_name(index), series.every));
        let states = problem.state_probes.iter().enumerate();
        let states = states.map(|(index, probe)| (state_probe_name(index), probe.every));
        let mut records = Vec::new();
        for (name, every) in series.chain(states) {
            let length = (self.step() / every) as usize;
            let mut record: Vec<f64> = Vec::new();
            checkpoint.read(&name, &[length], |_, values| {
                record.extend_from_slice(values);
            })?;
            records.push(record);
        }
        Ok(records)
    }

    /// The sums of the spectra of a problem, and the step after which they were written.
    pub fn spectra(&self, problem: &Problem) -> Result<(u64, Vec<Vec<f64>>), FileError> {
        let mut checkpoint = self.checkpoint.again()?;
        let mut spectra = Vec::new();
        for (index, length) in Spectra::lengths(problem).enumerate() {
            let mut sums: Vec<f64> = Vec::new();
            checkpoint.read(&spectrum_name(index), &[length], |_, values| {
                sums.extend_from_slice(values);
            })?;
            spectra.push(sums);
        }
        Ok((self.step(), spectra))
    }

    /// Takes its state into a calculation.
    #[inline(never)]
    pub fn resume<T: Value>(&self, calculation: &mut Calculation<'_, T>) -> Result<(), RunError> {
        let mut checkpoint = self.checkpoint.again()?;
        if checkpoint.header().notes.contains_key(NOTE) {
            let cause = Cause::Checkpoint(CheckpointFault::InFiles);
            return Err(FileError::new(&self.path, Attempt::Read, cause).into());
        }
        checkpoint.verify()?;
        let step = self.step();
        let scheme = calculation.scheme;
        let problem = calculation.problem;
        if step > problem.steps {
            return Err(RunError::Finished {
                step,
                steps: problem.steps,
            });
        }
        // One version of one component is held at a time.
        let mut held: Vec<T> = Vec::new();
        let mut next = 0;
        let mut whose = None;
        calculation.restore(step, |id, age, _, _, row: &mut [T]| {
            if whose != Some((id, age)) {
                held.clear();
                let name = array_name(scheme, id, age);
                checkpoint.read(&name, &shape(scheme, id), |_, values| {
                    held.extend_from_slice(values);
                })?;
                whose = Some((id, age));
                next = 0;
            }
            row.copy_from_slice(&held[next..next + row.len()]);
            next += row.len();
            Ok::<_, FileError>(())
        })?;
        for (state, region) in state_boxes(scheme) {
            let mut values: Vec<T> = Vec::new();
            let name = state_name(scheme, state, region);
            checkpoint.read(&name, &shape_of(scheme, region), |_, row| {
                values.extend_from_slice(row);
            })?;
            calculation.restore_state(state, region, &values);
        }
        restore_probes(&mut checkpoint, calculation)
    }

    /// Takes its step and its records into a calculation that has its values already.
    #[inline(never)]
    pub fn resume_in_place<T: Value>(
        &self,
        calculation: &mut Calculation<'_, T>,
    ) -> Result<(), RunError> {
        let (step, steps) = (self.step(), calculation.problem.steps);
        if step > steps {
            return Err(RunError::Finished { step, steps });
        }
        calculation.set_steps(step);
        restore_probes(&mut self.checkpoint.again()?, calculation)
    }
}

fn restore_probes<T: Value>(
    checkpoint: &mut Checkpoint,
    calculation: &mut Calculation<'_, T>,
) -> Result<(), RunError> {
    let steps = calculation.steps() as usize;
    for index in 0..calculation.problem.probes.len() {
        let mut record: Vec<f64> = Vec::new();
        checkpoint.read(&probe_name(index), &[steps], |_, values| {
            record.extend_from_slice(values);
        })?;
        calculation.restore_probe(index, record);
    }
    Ok(())
}
