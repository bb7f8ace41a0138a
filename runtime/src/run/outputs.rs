//! The files of a run: slices and volumes while it goes on, probes and final fields at its end.
//!
//! | file | holds |
//! |---|---|
//! | `slices/NAME-STEP.npy`, `.png` | one plane, or values along a line for two axes; step 0 of constant fields |
//! | `volumes/NAME-STEP.npy`, `.vti` | a component or a box of it; `volumes/NAME.pvd` lists the `.vti` by their times |
//! | `volumes/NAME-STEP.png` | its picture where its values lie in a plane or on a line, beside an `.npy` |
//! | `slices/NAME.png`, `volumes/NAME.png` | the frames of a line over time |
//! | `slices/NAME.apng`, `volumes/NAME.apng` | the frames as an animation |
//! | `spectra/NAME.npy` | the spectrum of a plane or a box: complex numbers, one frequency after the other |
//! | `volumes.zarr` | all volumes over time in one store; `.npy` until the run ends, with checkpoints then, too |
//! | `fields/NAME.npy`, `.vti`, `fields.zarr` | the components at the end |
//! | `probes.csv`, `.npy`, `.png` | all probes, one record per step |
//! | `series.csv`, `.npy`, `.png` | all reductions over time |
//! | `report.json` | which run this is, and from its end on how it went |
//!
//! STEP has 8 digits or more, so that files sort by their steps.

mod missing;
mod names;
mod spectra;
mod stores;
mod tables;

use super::fields::{FieldRows, StateRows, shape_of, shaped};
use super::gallery::{self, Gallery, Pictures};
use super::own_folder::OwnFolder;
use super::owner::{Begun, Others, Owner};
use super::pictures::{Shown, part_of, plane_shape, start_picture};
use super::places::vtk_grid;
use super::records::Records;
use super::results_folder::{self, REPORT};
use super::series::SeriesRecords;
use crate::output::atomic::{make_folder, remove_leftovers, write_file};
use crate::output::checkpoint::Identity;
use crate::output::claim::Claim;
use crate::output::npy;
use crate::output::{Attempt, FileError, Rows, array, vtk};
use crate::simulation::{BlowUp, Part, PartOf, Picture, RunError, Simulation, Value};
pub use missing::Missing;
use names::{file_name, folder_of, static_stem, stem};
pub use names::{series, static_series};
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use torre_compiler::lattice::Region;
use torre_compiler::problem::{Output, OutputKind, Problem, StaticOutput};
use torre_compiler::real::Real;
use torre_compiler::reference::for_each_index;
use torre_compiler::scheme::{ComponentId, Scheme};
use torre_compiler::statics::{Files, coef_value, physical_time};

/// The format of volumes and final fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeFormat {
    Npy,
    Zarr,
    Vtk,
}

/// Results that are written beside the problem's outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub format: VolumeFormat,
    /// Slices and volumes of the start values, as step 0.
    pub save_initial: bool,
    /// Every component at the end.
    pub save_final: bool,
    /// The volumes that a Zarr store is made of stay, because a longer run may continue this one.
    pub keep_volumes: bool,
    pub pictures: Pictures,
}

/// Where results go.
#[derive(Debug)]
pub struct Outputs {
    folder: OwnFolder,
    format: VolumeFormat,
    /// Whether slices and volumes of the start values are written, as step 0.
    save_initial: bool,
    /// Whether every component is written at the end.
    save_final: bool,
    /// Whether the volumes that a Zarr store is made of stay, because a longer run may continue this one.
    keep_volumes: bool,
    /// The files that there are, by their paths in the folder.
    written: RefCell<BTreeSet<String>>,
    gallery: RefCell<Gallery>,
}

impl Outputs {
    /// Makes the folder, and removes files that a killed run left under temporary names.
    pub fn create(folder: &Path, wanted: Wanted) -> Result<Self, FileError> {
        let Wanted {
            format,
            save_initial,
            save_final,
            keep_volumes,
            pictures,
        } = wanted;
        make_folder(folder).map_err(FileError::io(folder, Attempt::Create))?;
        let outputs = Self {
            folder: OwnFolder::new(folder),
            format,
            save_initial,
            save_final,
            keep_volumes,
            written: RefCell::default(),
            gallery: RefCell::new(Gallery::new(folder, pictures)),
        };
        for part in ["", "slices", "volumes", "fields", "spectra"] {
            remove_leftovers(&outputs.folder.join(part));
        }
        Ok(outputs)
    }

    /// Results are written as long as the run has the folder by its claim.
    pub fn claimed(mut self, claim: &Claim) -> Self {
        self.folder = self.folder.claimed(claim);
        let gallery = self.gallery.get_mut();
        gallery.folder = self.folder.clone();
        self
    }

    /// The folder of all results.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The run that writes here.
    pub fn owner(&self, identity: &Identity, problem: &Problem) -> Owner {
        let kinds = [self.save_initial, self.save_final];
        Owner::new(identity, problem, &format!("{:?} {kinds:?}", self.format))
    }

    /// Refuses a run whose stores could not get their names, and one beside results of another run unless they are
    /// overwritten. `resumed`: as for [`Self::begin`].
    pub fn check(
        &self,
        owner: &Owner,
        problem: &Problem,
        resumed: Option<u64>,
        others: Others,
    ) -> Result<(), FileError> {
        self.check_names(problem)?;
        match others {
            Others::Removed => Ok(()),
            Others::Kept => owner.check(self.folder.path(), Begun::of(resumed)),
        }
    }

    /// Makes the folder that of this run, which is refused beside results of another one unless they are overwritten.
    /// `report` is the report as far as it is known. A run that goes on from a checkpoint after `resumed` steps learns
    /// which frames are missing.
    pub fn begin(
        &self,
        owner: &Owner,
        problem: &Problem,
        resumed: Option<u64>,
        others: Others,
        report: &Json,
    ) -> Result<Vec<Missing>, FileError> {
        self.folder.check()?;
        match owner.check(self.folder.path(), Begun::of(resumed)) {
            Err(_) if others == Others::Removed => results_folder::clear(self.folder.path())?,
            checked => checked?,
        }
        self.report(report)?;
        let Some(steps) = resumed.filter(|steps| *steps > 0) else {
            return Ok(Vec::new());
        };
        self.note_frames(problem, steps);
        Ok(self.missing_frames(problem, steps))
    }

    /// Writes the report, with the list of all files of results in it.
    pub fn report(&self, report: &Json) -> Result<(), FileError> {
        self.note(REPORT);
        let text = format!("{:#}\n", self.listed(report));
        write_file(&self.folder.place(REPORT)?, text.as_bytes())
    }

    /// A report with the list of all files of results put before the files that it names.
    pub fn listed(&self, report: &Json) -> Json {
        let mut report = report.clone();
        let files: Vec<String> = self.written.borrow().iter().cloned().collect();
        if let Json::Object(entries) = &mut report {
            let others = entries.get("files").and_then(Json::as_array).cloned();
            let all = files.into_iter().map(Json::from);
            let all = all.chain(others.into_iter().flatten()).collect();
            entries.insert("files".to_owned(), all);
        }
        report
    }

    /// Notes that a file is there.
    fn note(&self, name: &str) {
        self.written.borrow_mut().insert(name.to_owned());
    }

    /// Writes slices and volumes of the start values, if they are wanted.
    #[inline(never)]
    pub fn start<T: Value>(&self, simulation: &mut dyn Simulation<T>) -> Result<(), RunError> {
        if !self.save_initial {
            return Ok(());
        }
        simulation.fetch()?;
        let outputs = simulation.problem().outputs.iter().enumerate();
        let frames = outputs.filter(|(_, output)| output.spectrum.is_none());
        let pictures: Vec<Picture> = frames
            .filter_map(|(number, output)| start_picture(simulation, number, output))
            .collect();
        Ok(self.write(simulation, &pictures)?)
    }

    /// Writes pictures, and the volumes that are due now.
    #[inline(never)]
    pub fn write<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        pictures: &[Picture],
    ) -> Result<(), FileError> {
        for picture in pictures {
            self.slice(simulation, picture)?;
        }
        let step = simulation.steps();
        for output in simulation.problem().frames() {
            if !output.needs_values() || !step.is_multiple_of(output.every) {
                continue;
            }
            let (id, region) = (output.component, output.region);
            match output.state {
                Some(state) => {
                    let rows = StateRows::within(simulation, state, region);
                    self.values(simulation, output, &rows)?;
                }
                None => {
                    let rows = FieldRows::within(simulation, id, 0, region);
                    self.values(simulation, output, &rows)?;
                }
            }
        }
        Ok(())
    }

    fn slice<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        picture: &Picture,
    ) -> Result<(), FileError> {
        let scheme = simulation.scheme();
        let output = &simulation.problem().outputs[picture.output];
        if output.spectrum.is_some() {
            return Ok(());
        }
        let values = part_of(scheme, output, picture);
        let shape = plane_shape(scheme, output.kind, output.region);
        let stem = stem(output, picture.step);
        self.array::<T>(&stem, &shape, &values)?;
        self.show(scheme, output, picture.step, &values)
    }

    /// Writes values as an array.
    fn array<T: Value>(
        &self,
        stem: &str,
        shape: &[usize],
        values: &[f64],
    ) -> Result<(), FileError> {
        let values: Vec<T> = values.iter().map(|v| Real::from_f64(*v)).collect();
        let name = format!("{stem}.npy");
        let path = self.folder.place(&name)?;
        npy::write(&path, &shaped(&values, shape, &path)?)?;
        self.note(&name);
        Ok(())
    }

    /// Draws a frame that was written just now.
    fn show(
        &self,
        scheme: &Scheme,
        output: &Output,
        step: u64,
        values: &[f64],
    ) -> Result<(), FileError> {
        let stem = &*stem(output, step);
        let frame = gallery::Frame { step, stem };
        let mut gallery = self.gallery.borrow_mut();
        if let Some(name) = gallery.show(scheme, output, frame, values)? {
            self.note(&name);
        }
        Ok(())
    }

    /// Gives all frames of an output one range, and puts them together, also those of earlier runs that lie in the
    /// folder.
    fn finish_pictures(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        steps: u64,
    ) -> Result<(), FileError> {
        for output in problem.frames() {
            let there = self.steps_there(output, steps, "npy").into_iter();
            let stems: Vec<(u64, String)> = there.map(|step| (step, stem(output, step))).collect();
            let frames: Vec<gallery::Frame> = stems
                .iter()
                .map(|(step, stem)| gallery::Frame { step: *step, stem })
                .collect();
            let base = series(output);
            let mut gallery = self.gallery.borrow_mut();
            for name in gallery.finish(scheme, output, &frames, &base)? {
                self.note(&name);
            }
        }
        Ok(())
    }

    /// Draws all pictures of a finished run again, from its arrays; gives their number.
    pub fn draw_again(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
    ) -> Result<usize, FileError> {
        self.gallery.borrow_mut().outline(scheme, problem, files);
        for output in &problem.statics {
            let stem = static_stem(output);
            if self.folder.join(format!("{stem}.png")).is_file() {
                let values = static_values(scheme, files, output);
                let gallery = self.gallery.borrow();
                if let Some(name) = gallery.show_static(scheme, output, &stem, &values)? {
                    self.note(&name);
                }
            }
        }
        self.finish_pictures(scheme, problem, problem.steps)?;
        self.draw_spectra(scheme, problem)?;
        Ok(self.written.borrow().len())
    }

    /// Writes fields that do not change, under the names of step 0.
    #[inline(never)]
    pub fn statics<T: Value>(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
    ) -> Result<(), FileError> {
        let mut gallery = self.gallery.borrow_mut();
        gallery.outline(scheme, problem, files);
        for output in &problem.statics {
            let (values, stem) = (static_values(scheme, files, output), static_stem(output));
            let is_volume = matches!(output.kind, OutputKind::Volume);
            if let (VolumeFormat::Vtk, true) = (self.format, is_volume) {
                let name = format!("{stem}.vti");
                let grid = vtk_grid(scheme, output.position, output.region, None);
                let values: Vec<T> = values.iter().map(|v| Real::from_f64(*v)).collect();
                let shape = shape_of(scheme, output.region);
                let path = self.folder.place(&name)?;
                let rows: &dyn Rows<T> = &shaped(&values, &shape, &path)?;
                vtk::write(&path, &grid, &[(&output.name, T::any(rows))])?;
                self.note(&name);
            } else {
                let shape = plane_shape(scheme, output.kind, output.region);
                self.array::<T>(&stem, &shape, &values)?;
            }
            if let Some(name) = gallery.show_static(scheme, output, &stem, &values)? {
                self.note(&name);
            }
        }
        Ok(())
    }

    /// The ending of the files of volumes.
    fn ending(&self) -> &'static str {
        match self.format {
            VolumeFormat::Npy | VolumeFormat::Zarr => "npy",
            VolumeFormat::Vtk => "vti",
        }
    }

    fn volume_name(&self, output: &Output, step: u64) -> String {
        format!("{}.{}", stem(output, step), self.ending())
    }

    /// The files that an output may have after a step, its values first.
    fn frame_names(&self, output: &Output, step: u64) -> Vec<String> {
        let values = match output.kind {
            OutputKind::Slice { .. } => format!("{}.npy", stem(output, step)),
            OutputKind::Volume => self.volume_name(output, step),
        };
        let others = ["npy", "png"].map(|ending| format!("{}.{ending}", stem(output, step)));
        let others = others.into_iter().filter(|name| *name != values);
        [values.clone()].into_iter().chain(others).collect()
    }

    /// Writes an output as a slice or a volume.
    fn values<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        output: &Output,
        rows: &dyn Rows<T>,
    ) -> Result<(), FileError> {
        match output.kind {
            OutputKind::Volume => self.volume(simulation, output, rows),
            OutputKind::Slice { .. } => {
                let (scheme, step) = (simulation.scheme(), simulation.steps());
                let values: Vec<f64> = array::collect(rows).into_iter().map(Real::to_f64).collect();
                let shape = plane_shape(scheme, output.kind, output.region);
                self.array::<T>(&stem(output, step), &shape, &values)?;
                self.show(scheme, output, step, &values)
            }
        }
    }

    fn volume<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        output: &Output,
        rows: &dyn Rows<T>,
    ) -> Result<(), FileError> {
        let (scheme, step) = (simulation.scheme(), simulation.steps());
        let name = self.volume_name(output, step);
        let path = self.folder.place(&name)?;
        match self.format {
            VolumeFormat::Npy | VolumeFormat::Zarr => npy::write(&path, rows)?,
            VolumeFormat::Vtk => image(&path, simulation, &Quantity::of(scheme, output), rows)?,
        }
        self.note(&name);
        if Shown::of_output(scheme, output).is_none() {
            return Ok(());
        }
        let values: Vec<f64> = array::collect(rows).into_iter().map(Real::to_f64).collect();
        if let VolumeFormat::Vtk = self.format {
            // Pictures are drawn from it again when their range is known.
            let shape = shape_of(scheme, output.region);
            self.array::<T>(&stem(output, step), &shape, &values)?;
        }
        self.show(scheme, output, step, &values)
    }

    /// Writes the results of a run up to the step at which a blow-up ended it, as far as they are complete: slices,
    /// probes and reductions. A GPU may have done more steps. Pictures keep the range of the frames before them, as the
    /// last values would hide all others.
    #[inline(never)]
    pub fn end_early<T: Value>(
        &self,
        simulation: &mut dyn Simulation<T>,
        series: Option<&SeriesRecords<'_>>,
        found: &BlowUp,
    ) -> Result<(), FileError> {
        let pictures = simulation.take_complete_pictures().into_iter();
        for picture in pictures.filter(|picture| picture.step <= found.step) {
            self.slice(simulation, &picture)?;
        }
        let probes = 0..simulation.problem().probes.len();
        let first = |index| {
            let record = simulation.probe(index);
            record.iter().position(|value| value.is_nan())
        };
        let regular = probes
            .filter_map(first)
            .min()
            .map_or(u64::MAX, |n| n as u64);
        let recorded = simulation.steps_recorded().min(found.step).min(regular);
        self.probes(simulation, series, recorded)?;
        match series {
            Some(series) => self.series(simulation, series),
            None => Ok(()),
        }
    }

    /// Writes results that are known at the end only; at first the ones that need no frames of earlier times.
    #[inline(never)]
    pub fn finish<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        Records { series, spectra }: Records<'_>,
    ) -> Result<(), FileError> {
        self.probes(simulation, series, simulation.steps())?;
        if let Some(series) = series {
            self.series(simulation, series)?;
        }
        if let Some(spectra) = spectra {
            self.spectra(simulation, spectra)?;
        }
        if self.save_final {
            self.fields(simulation)?;
        }
        let problem = simulation.problem();
        self.finish_pictures(simulation.scheme(), problem, simulation.steps())?;
        match self.format {
            VolumeFormat::Npy => Ok(()),
            VolumeFormat::Vtk => self.collections(simulation),
            VolumeFormat::Zarr => self.store::<T>(simulation),
        }
    }
}

/// The values of the outputs that are taken from them after a step.
pub(super) fn parts_due(problem: &Problem, step: u64) -> Vec<Part> {
    let outputs = problem.outputs.iter();
    let due = outputs.filter(|o| o.needs_values() && step.is_multiple_of(o.every));
    let part = |output: &Output| Part {
        of: match output.state {
            Some(state) => PartOf::State(state),
            None => PartOf::Newest(output.component),
        },
        region: output.region,
    };
    due.map(part).collect()
}

/// The values of an output that does not change.
fn static_values(scheme: &Scheme, files: &dyn Files, output: &StaticOutput) -> Vec<f64> {
    let mut values = Vec::with_capacity(output.region.volume() as usize);
    for_each_index(output.region, |at| {
        let value = coef_value(scheme, files, output.position, &output.value, at);
        values.push(value);
    });
    values
}

/// The name and the place of values.
struct Quantity<'a> {
    name: &'a str,
    /// Which has their position and time.
    component: ComponentId,
    region: Region,
}

impl<'a> Quantity<'a> {
    fn of(scheme: &'a Scheme, output: &Output) -> Self {
        Self {
            name: output.quantity(scheme),
            component: output.component,
            region: output.region,
        }
    }
}

/// Writes values as an image for ParaView, at their true place.
fn image<T: Value>(
    path: &Path,
    simulation: &dyn Simulation<T>,
    quantity: &Quantity<'_>,
    rows: &dyn Rows<T>,
) -> Result<(), FileError> {
    let scheme = simulation.scheme();
    let id = quantity.component;
    let time = physical_time(scheme, id, simulation.steps() as i64);
    let position = scheme.component(id).position;
    let grid = vtk_grid(scheme, position, quantity.region, Some(time));
    vtk::write(path, &grid, &[(quantity.name, T::any(rows))])
}
