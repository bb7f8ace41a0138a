//! The files of a run: slices and volumes while it goes on, probes and final fields at its end.
//!
//! | file | holds |
//! |---|---|
//! | `slices/NAME-STEP.npy`, `.png` | one plane, or the values along a line for two axes; step 0 of what does not change |
//! | `volumes/NAME-STEP.npy`, `.vti` | a component or a box of it; `volumes/NAME.pvd` lists the `.vti` with their times |
//! | `volumes.zarr` | all volumes over time in one store; until the run ends they are `.npy`, and with checkpoints they stay |
//! | `fields/NAME.npy`, `.vti`, `fields.zarr` | the components at the end |
//! | `probes.csv`, `.npy`, `.png` | all probes, one record per step |
//! | `series.csv`, `.npy`, `.png` | all reductions over time |
//! | `report.json` | which run this is, and from its end on how it went |
//!
//! STEP has 8 digits or more, so that files sort by their steps.

use super::error::RunError;
use super::fields::{FieldRows, shape_of};
use super::pictures::{Drawing, plot, start_picture};
use super::places::{attributes, dimensions, staggering, vtk_grid};
use super::record::{self, REPORT, Record};
use super::series::SeriesRecords;
use super::simulation::{Simulation, Value};
use crate::host::receivers::Picture;
use crate::output::atomic::{remove_leftovers, write_file};
use crate::output::checkpoint::Identity;
use crate::output::npy::{self, NpyReader};
use crate::output::probes::ProbeTable;
use crate::output::zarr::ZarrStore;
use crate::output::{Attempt, Cause, FileError, Rows, View, vtk};
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use torre_compiler::lattice::Region;
use torre_compiler::problem::{Output, OutputKind, Problem};
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

/// What is written beside what the problem says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub format: VolumeFormat,
    /// Slices and volumes of the start values, as those of step 0.
    pub save_initial: bool,
    /// Every component at the end.
    pub save_final: bool,
    /// The volumes that a Zarr store is made of stay, because a longer run may continue this one.
    pub keep_volumes: bool,
}

/// Where results go.
#[derive(Debug)]
pub struct Outputs {
    folder: PathBuf,
    format: VolumeFormat,
    /// Whether slices and volumes of the start values are written, as those of step 0.
    save_initial: bool,
    /// Whether every component is written at the end.
    save_final: bool,
    /// Whether the volumes that a Zarr store is made of stay, because a longer run may continue this one.
    keep_volumes: bool,
    /// The files that there are, by their paths in the folder.
    written: RefCell<BTreeSet<String>>,
}

/// Frames of an output that a folder lacks, as they were written before a checkpoint, elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The output's name.
    pub output: String,
    pub frames: u64,
    /// The first and the last step of them.
    pub steps: [u64; 2],
}

impl Outputs {
    /// Makes the folder, and removes what a killed run left under temporary names.
    pub fn create(folder: &Path, wanted: Wanted) -> Result<Self, FileError> {
        let Wanted {
            format,
            save_initial,
            save_final,
            keep_volumes,
        } = wanted;
        std::fs::create_dir_all(folder).map_err(FileError::io(folder, Attempt::Create))?;
        let outputs = Self {
            folder: folder.to_path_buf(),
            format,
            save_initial,
            save_final,
            keep_volumes,
            written: RefCell::default(),
        };
        for part in ["", "slices", "volumes", "fields"] {
            remove_leftovers(&outputs.folder.join(part));
        }
        Ok(outputs)
    }

    /// The folder of all results.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Which run writes here.
    pub fn record(&self, identity: &Identity, problem: &Problem) -> Record {
        let kinds = [self.save_initial, self.save_final];
        Record::new(identity, problem, &format!("{:?} {kinds:?}", self.format))
    }

    /// Makes the folder that of this run, which is refused beside results of another one unless `overwrite` removes them.
    /// `report` is the report as far as it is known. A run that goes on from a checkpoint after `resumed` steps learns
    /// which frames are missing.
    pub fn begin(
        &self,
        record: &Record,
        problem: &Problem,
        resumed: Option<u64>,
        overwrite: bool,
        report: &Json,
    ) -> Result<Vec<Missing>, FileError> {
        match record.check(&self.folder, resumed.is_some()) {
            Err(_) if overwrite => record::clear(&self.folder)?,
            checked => checked?,
        }
        self.report(report)?;
        let Some(steps) = resumed.filter(|steps| *steps > 0) else {
            return Ok(Vec::new());
        };
        let there = self.frames_there();
        let outputs = problem.outputs.iter();
        let missing = outputs.filter_map(|output| self.missing(output, steps, &there));
        Ok(missing.collect())
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
    fn frame_steps(&self, output: &Output, steps: u64) -> impl Iterator<Item = u64> + use<> {
        let (first, every) = (u64::from(!self.save_initial), output.every);
        (first..=steps / every).map(move |n| n * every)
    }

    /// Notes the frames of the first steps that are there, and says which are not.
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
            let names = names.into_iter().filter(|name| there.contains(name));
            self.written.borrow_mut().extend(names);
        }
        missing
    }

    /// Writes the report, with the list of all files of results in it.
    pub fn report(&self, report: &Json) -> Result<(), FileError> {
        self.note(REPORT);
        let text = format!("{:#}\n", self.listed(report));
        write_file(&self.folder.join(REPORT), text.as_bytes())
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

    /// Whether a whole component is written after a step.
    pub fn due(&self, problem: &Problem, step: u64) -> bool {
        let volume =
            |o: &Output| matches!(o.kind, OutputKind::Volume) && step.is_multiple_of(o.every);
        step >= problem.steps && self.save_final || problem.outputs.iter().any(volume)
    }

    /// Writes slices and volumes of the start values, if they are wanted.
    pub fn start<T: Value>(&self, simulation: &mut dyn Simulation<T>) -> Result<(), RunError> {
        if !self.save_initial {
            return Ok(());
        }
        simulation.fetch()?;
        let outputs = simulation.problem().outputs.iter().enumerate();
        let pictures: Vec<Picture> = outputs
            .filter_map(|(number, output)| start_picture(simulation, number, output))
            .collect();
        Ok(self.write(simulation, &pictures)?)
    }

    /// Writes pictures, and the volumes that are due now.
    pub fn write<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        pictures: &[Picture],
    ) -> Result<(), FileError> {
        for picture in pictures {
            self.slice(simulation, picture)?;
        }
        let step = simulation.steps();
        for output in &simulation.problem().outputs {
            if matches!(output.kind, OutputKind::Volume) && step.is_multiple_of(output.every) {
                self.volume(simulation, output)?;
            }
        }
        Ok(())
    }

    fn slice<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        picture: &Picture,
    ) -> Result<(), FileError> {
        let output = &simulation.problem().outputs[picture.output];
        let (drawing, values) = Drawing::of_picture(simulation.scheme(), output, picture);
        let names = self.slice_names(&output.name, picture.step);
        self.plane::<T>(simulation.scheme(), &names, &drawing, values)
    }

    /// Writes a plane as an array and as a picture.
    fn plane<T: Value>(
        &self,
        scheme: &Scheme,
        [values_name, picture_name]: &[String; 2],
        drawing: &Drawing,
        values: Vec<f64>,
    ) -> Result<(), FileError> {
        let values: Vec<T> = values.into_iter().map(Real::from_f64).collect();
        if let Some(view) = View::contiguous(&values, &drawing.shape(scheme)) {
            npy::write(&self.folder.join(values_name), &view)?;
            self.note(values_name);
            if drawing.write(&self.folder.join(picture_name), scheme, &view)? {
                self.note(picture_name);
            }
        }
        Ok(())
    }

    /// Writes what does not change, under the names of step 0.
    pub fn statics<T: Value>(
        &self,
        scheme: &Scheme,
        problem: &Problem,
        files: &dyn Files,
    ) -> Result<(), FileError> {
        for output in &problem.statics {
            let mut values = Vec::with_capacity(output.region.volume() as usize);
            for_each_index(output.region, |at| {
                let value = coef_value(scheme, files, output.position, &output.value, at);
                values.push(value);
            });
            if let OutputKind::Slice { .. } = output.kind {
                let names = self.slice_names(&output.name, 0);
                self.plane::<T>(scheme, &names, &Drawing::of_static(output), values)?;
                continue;
            }
            let values: Vec<T> = values.into_iter().map(Real::from_f64).collect();
            let shape = shape_of(scheme, output.region);
            let Some(view) = View::contiguous(&values, &shape) else {
                continue;
            };
            let name = self.volume_name(&output.name, 0);
            let path = self.folder.join(&name);
            if let VolumeFormat::Vtk = self.format {
                let grid = vtk_grid(scheme, output.position, output.region, None);
                let rows: &dyn Rows<T> = &view;
                vtk::write(&path, &grid, &[(&output.name, T::any(rows))])?;
            } else {
                npy::write(&path, &view)?;
            }
            self.note(&name);
        }
        Ok(())
    }

    fn slice_names(&self, output: &str, step: u64) -> [String; 2] {
        let stem = format!("slices/{}", frame_name(output, step));
        ["npy", "png"].map(|extension| format!("{stem}.{extension}"))
    }

    fn volume_name(&self, output: &str, step: u64) -> String {
        let extension = match self.format {
            VolumeFormat::Npy | VolumeFormat::Zarr => "npy",
            VolumeFormat::Vtk => "vti",
        };
        format!("volumes/{}.{extension}", frame_name(output, step))
    }

    /// The files of an output after a step, its values first.
    fn frame_names(&self, output: &Output, step: u64) -> Vec<String> {
        match output.kind {
            OutputKind::Slice { .. } => self.slice_names(&output.name, step).into(),
            OutputKind::Volume => vec![self.volume_name(&output.name, step)],
        }
    }

    fn volume<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        output: &Output,
    ) -> Result<(), FileError> {
        let rows = FieldRows::within(simulation, output.component, 0, output.region);
        let name = self.volume_name(&output.name, simulation.steps());
        let path = self.folder.join(&name);
        match self.format {
            VolumeFormat::Npy | VolumeFormat::Zarr => npy::write(&path, &rows)?,
            VolumeFormat::Vtk => {
                image(&path, simulation, (output.component, output.region), &rows)?
            }
        }
        self.note(&name);
        Ok(())
    }

    /// Writes what is known at the end only.
    pub fn finish<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        series: Option<&SeriesRecords<'_>>,
    ) -> Result<(), FileError> {
        self.probes(simulation)?;
        if let Some(series) = series {
            self.series(simulation, series)?;
        }
        match self.format {
            VolumeFormat::Npy => {}
            VolumeFormat::Vtk => self.collections(simulation)?,
            VolumeFormat::Zarr => self.store::<T>(simulation)?,
        }
        if self.save_final {
            self.fields(simulation)?;
        }
        Ok(())
    }

    fn probes<T: Value>(&self, simulation: &dyn Simulation<T>) -> Result<(), FileError> {
        let problem = simulation.problem();
        let curves = problem.probes.iter().enumerate().map(|(i, probe)| {
            let record = simulation.probe(i);
            let due = record
                .iter()
                .skip(probe.every as usize - 1)
                .step_by(probe.every as usize);
            Curve {
                name: probe.name.clone(),
                every: probe.every,
                values: due.map(|value| Real::from_f64(*value)).collect(),
            }
        });
        self.table::<T, T>(simulation, "probes", "Probes", curves.collect())
    }

    fn series<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        records: &SeriesRecords<'_>,
    ) -> Result<(), FileError> {
        let series = simulation.problem().series.iter().enumerate();
        let curves = series.map(|(i, series)| Curve {
            name: series.name.clone(),
            every: series.every,
            values: records.of(i),
        });
        self.table::<T, f64>(simulation, "series", "Reductions", curves.collect())
    }

    /// Writes values over time as a table in two formats and as a picture.
    fn table<T: Value, V: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        stem: &str,
        title: &str,
        curves: Vec<Curve<V>>,
    ) -> Result<(), FileError> {
        if curves.is_empty() {
            return Ok(());
        }
        let names = curves.iter().map(|c| c.name.clone()).collect();
        let mut table = ProbeTable::<V>::new("t", names);
        let mut steps = Vec::new();
        for step in 1..=simulation.steps() {
            if !curves.iter().any(|c| step.is_multiple_of(c.every)) {
                continue;
            }
            steps.push(step);
            let values: Vec<V> = curves.iter().map(|c| c.after(step)).collect();
            let time = step as f64 * simulation.scheme().grid.dt;
            let fits = table.push(time, &values);
            debug_assert!(fits);
        }
        let every: Vec<u64> = curves.iter().map(|c| c.every).collect();
        drop(curves);
        let [csv, npy, png] = ["csv", "npy", "png"].map(|ending| format!("{stem}.{ending}"));
        table.write_csv(&self.folder.join(&csv))?;
        self.note(&csv);
        table.write_npy(&self.folder.join(&npy))?;
        self.note(&npy);
        let title = format!("{title} of {}", simulation.problem().name);
        plot(&self.folder.join(&png), title, &table, &steps, &every)?;
        self.note(&png);
        Ok(())
    }

    fn fields<T: Value>(&self, simulation: &dyn Simulation<T>) -> Result<(), FileError> {
        let scheme = simulation.scheme();
        let each = |extension: &'static str| {
            scheme.component_ids().map(move |id| {
                let name = file_name(&scheme.component(id).name);
                (id, format!("fields/{name}.{extension}"))
            })
        };
        match self.format {
            VolumeFormat::Npy => {
                for (id, name) in each("npy") {
                    let rows = FieldRows::new(simulation, id, 0);
                    npy::write(&self.folder.join(&name), &rows)?;
                    self.note(&name);
                }
            }
            VolumeFormat::Vtk => {
                for (id, name) in each("vti") {
                    let rows = FieldRows::new(simulation, id, 0);
                    let path = self.folder.join(&name);
                    image(&path, simulation, (id, scheme.extent(id)), &rows)?;
                    self.note(&name);
                }
            }
            VolumeFormat::Zarr => {
                let path = self.folder.join("fields.zarr");
                let mut store = ZarrStore::create(&path, "time", None, attributes(scheme))?;
                for id in scheme.component_ids() {
                    let rows = FieldRows::new(simulation, id, 0);
                    let component = scheme.component(id);
                    let dimensions = dimensions(scheme, component.position, scheme.extent(id));
                    let mut attributes = staggering(scheme, id);
                    let time = physical_time(scheme, id, simulation.steps() as i64);
                    attributes.insert("time".into(), time.into());
                    store.write(&component.name, &rows, &dimensions, attributes)?;
                }
                store.commit()?;
                self.note("fields.zarr");
            }
        }
        Ok(())
    }

    /// The volumes that lie in the folder, with their times.
    fn frames<'a>(
        &'a self,
        scheme: &'a Scheme,
        output: &'a Output,
        steps: u64,
    ) -> impl Iterator<Item = (f64, String)> + 'a {
        self.frame_steps(output, steps)
            .map(move |step| {
                let time = physical_time(scheme, output.component, step as i64);
                (time, self.volume_name(&output.name, step))
            })
            .filter(|(_, name)| self.folder.join(name).is_file())
    }

    fn collections<T: Value>(&self, simulation: &dyn Simulation<T>) -> Result<(), FileError> {
        for output in volumes(simulation) {
            let frames: Vec<(f64, String)> = self
                .frames(simulation.scheme(), output, simulation.steps())
                .collect();
            // Paths in a collection are relative to it.
            let beside = |name: &'_ String| name.rsplit('/').next().unwrap_or(name).to_owned();
            let names: Vec<String> = frames.iter().map(|(_, name)| beside(name)).collect();
            let times = frames.iter().map(|(time, _)| *time);
            let list: Vec<(f64, &str)> = times.zip(names.iter().map(String::as_str)).collect();
            let name = format!("volumes/{}.pvd", file_name(&output.name));
            vtk::write_collection(&self.folder.join(&name), &list)?;
            self.note(&name);
        }
        Ok(())
    }

    /// Puts the volumes written so far into one store.
    fn store<T: Value>(&self, simulation: &dyn Simulation<T>) -> Result<(), FileError> {
        if volumes(simulation).next().is_none() {
            return Ok(());
        }
        let scheme = simulation.scheme();
        let path = self.folder.join("volumes.zarr");
        let mut store = ZarrStore::create(&path, "time", None, attributes(scheme))?;
        let mut spent = Vec::new();
        for output in volumes(simulation) {
            let shape = shape_of(scheme, output.region);
            let position = scheme.component(output.component).position;
            let series = store.add_series(
                &output.name,
                T::TYPE,
                &shape,
                &dimensions(scheme, position, output.region),
                staggering(scheme, output.component),
            )?;
            for (time, name) in self.frames(scheme, output, simulation.steps()) {
                let path = self.folder.join(&name);
                let mut reader = NpyReader::open(&path)?;
                let found = &reader.header().shape;
                if *found != shape {
                    let cause = Cause::Shape {
                        expected: shape,
                        found: found.clone(),
                    };
                    return Err(FileError::new(&path, Attempt::Read, cause));
                }
                let values: Vec<T> = reader.read_all()?;
                if let Some(view) = View::contiguous(&values, &shape) {
                    store.append(series, time, &view)?;
                }
                spent.push(name);
            }
        }
        store.commit()?;
        self.note("volumes.zarr");
        if self.keep_volumes {
            return Ok(());
        }
        for name in spent {
            let path = self.folder.join(&name);
            std::fs::remove_file(&path).map_err(FileError::io(&path, Attempt::Remove))?;
            self.written.borrow_mut().remove(&name);
        }
        // Stays where something else lies in it.
        let _ = std::fs::remove_dir(self.folder.join("volumes"));
        Ok(())
    }
}

/// Values over time.
struct Curve<V> {
    name: String,
    every: u64,
    /// Value i is that after step `(i + 1) * every`.
    values: Vec<V>,
}

impl<V: Value> Curve<V> {
    /// What is not due together with others is no number.
    fn after(&self, step: u64) -> V {
        let index = (step / self.every) as usize;
        let due = step.is_multiple_of(self.every);
        let value = index.checked_sub(1).and_then(|i| self.values.get(i));
        value
            .copied()
            .filter(|_| due)
            .unwrap_or(Real::from_f64(f64::NAN))
    }
}

fn volumes<T>(simulation: &dyn Simulation<T>) -> impl Iterator<Item = &Output> {
    let outputs = simulation.problem().outputs.iter();
    outputs.filter(|o| matches!(o.kind, OutputKind::Volume))
}

/// What the files of an output after a step are called, without their endings.
fn frame_name(output: &str, step: u64) -> String {
    format!("{}-{step:08}", file_name(output))
}

/// Writes a component as an image for ParaView, at its true place.
fn image<T: Value>(
    path: &Path,
    simulation: &dyn Simulation<T>,
    (id, region): (ComponentId, Region),
    rows: &FieldRows<'_, T>,
) -> Result<(), FileError> {
    let scheme = simulation.scheme();
    let time = physical_time(scheme, id, simulation.steps() as i64);
    let grid = vtk_grid(scheme, scheme.component(id).position, region, Some(time));
    let name = &scheme.component(id).name;
    let rows: &dyn Rows<T> = rows;
    vtk::write(path, &grid, &[(name, T::any(rows))])
}

/// A name as a file's name: what could be misread becomes `_`.
pub fn file_name(name: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "._-=,".contains(c);
    let name: String = name
        .chars()
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    match name.starts_with('.') {
        true => format!("_{name}"),
        false => name,
    }
}
