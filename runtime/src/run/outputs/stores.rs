//! Files that hold several arrays: stores and lists of volumes over time, and the fields at the end.

use super::{Outputs, Quantity, VolumeFormat, file_name, folder_of, image, series};
use crate::output::npy::{self, NpyReader};
use crate::output::zarr::{TIME, ZarrStore};
use crate::output::{Attempt, Cause, FileError, vtk};
use crate::run::fields::{FieldRows, shape_of, shaped};
use crate::run::places::{attributes, dimensions, staggering};
use crate::run::results_folder::{
    FIELDS_STORE, VOLUMES_STORE, check_folder, folder_in_place_of_file,
};
use crate::simulation::{Simulation, Value};
use std::collections::BTreeSet;
use torre_compiler::problem::{Output, OutputKind, Problem};
use torre_compiler::scheme::Scheme;
use torre_compiler::statics::physical_time;

impl Outputs {
    /// Refuses files and folders under the names of results, which would only be noticed when these are written at the
    /// end.
    pub(super) fn check_names(&self, problem: &Problem) -> Result<(), FileError> {
        if let Some(path) = folder_in_place_of_file(self.folder.path()) {
            let error = std::io::ErrorKind::IsADirectory.into();
            return Err(FileError::io(&path, Attempt::Create)(error));
        }
        for name in self.folders_of_results(problem) {
            check_folder(&self.folder.join(name))?;
        }
        if self.format != VolumeFormat::Zarr {
            return Ok(());
        }
        let has_volumes = volumes(problem).next().is_some();
        for (store, written) in [
            (VOLUMES_STORE, has_volumes),
            (FIELDS_STORE, self.save_final),
        ] {
            if written {
                ZarrStore::check(&self.folder.join(store))?;
            }
        }
        Ok(())
    }

    /// The folders that the run's results go to.
    fn folders_of_results(&self, problem: &Problem) -> BTreeSet<&'static str> {
        let frames = problem.frames().map(|output| folder_of(output.kind));
        let constant = problem.statics.iter().map(|o| folder_of(o.kind));
        let mut folders: BTreeSet<_> = frames.chain(constant).collect();
        if problem.spectra().next().is_some() {
            folders.insert("spectra");
        }
        if self.save_final && self.format != VolumeFormat::Zarr {
            folders.insert("fields");
        }
        folders
    }

    /// Writes every component as it is now.
    pub(super) fn fields<T: Value>(&self, simulation: &dyn Simulation<T>) -> Result<(), FileError> {
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
                    npy::write(&self.folder.place(&name)?, &rows)?;
                    self.note(&name);
                }
            }
            VolumeFormat::Vtk => {
                for (id, name) in each("vti") {
                    let rows = FieldRows::new(simulation, id, 0);
                    let path = self.folder.place(&name)?;
                    let quantity = Quantity {
                        name: &scheme.component(id).name,
                        component: id,
                        region: scheme.extent(id),
                    };
                    image(&path, simulation, &quantity, &rows)?;
                    self.note(&name);
                }
            }
            VolumeFormat::Zarr => {
                let path = self.folder.place(FIELDS_STORE)?;
                let mut store = ZarrStore::create(&path, TIME, None, attributes(scheme))?;
                for id in scheme.component_ids() {
                    let rows = FieldRows::new(simulation, id, 0);
                    let component = scheme.component(id);
                    let dimensions = dimensions(scheme, component.position, scheme.extent(id));
                    let mut attributes = staggering(scheme, id);
                    let time = physical_time(scheme, id, simulation.steps() as i64);
                    attributes.insert("time".into(), time.into());
                    store.write(&component.name, &rows, &dimensions, attributes)?;
                }
                self.folder.check()?;
                store.commit()?;
                self.note(FIELDS_STORE);
            }
        }
        Ok(())
    }

    /// The volumes of an output that lie in the folder, with their times.
    fn frames<'a>(
        &'a self,
        scheme: &'a Scheme,
        output: &'a Output,
        steps: u64,
    ) -> impl Iterator<Item = (f64, String)> + 'a {
        let steps = self.steps_there(output, steps, self.ending()).into_iter();
        steps.map(move |step| {
            let time = physical_time(scheme, output.component, step as i64);
            (time, self.volume_name(output, step))
        })
    }

    /// Lists the volumes with their times, for ParaView.
    pub(super) fn collections<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
    ) -> Result<(), FileError> {
        for output in volumes(simulation.problem()) {
            let frames: Vec<(f64, String)> = self
                .frames(simulation.scheme(), output, simulation.steps())
                .collect();
            // Paths in a collection are relative to it.
            let beside = |name: &'_ String| name.rsplit('/').next().unwrap_or(name).to_owned();
            let names: Vec<String> = frames.iter().map(|(_, name)| beside(name)).collect();
            let times = frames.iter().map(|(time, _)| *time);
            let list: Vec<(f64, &str)> = times.zip(names.iter().map(String::as_str)).collect();
            let name = format!("{}.pvd", series(output));
            vtk::write_collection(&self.folder.place(&name)?, &list)?;
            self.note(&name);
        }
        Ok(())
    }

    /// Puts the volumes written so far into one store.
    pub(super) fn store<T: Value>(&self, simulation: &dyn Simulation<T>) -> Result<(), FileError> {
        if volumes(simulation.problem()).next().is_none() {
            return Ok(());
        }
        let scheme = simulation.scheme();
        let path = self.folder.place(VOLUMES_STORE)?;
        let mut store = ZarrStore::create(&path, TIME, None, attributes(scheme))?;
        let mut spent = Vec::new();
        for output in volumes(simulation.problem()) {
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
                store.append(series, time, &shaped(&values, &shape, &path)?)?;
            }
            // Frames of earlier runs are in the store from then on, too, as long as they stay in the folder.
            let own = self.frame_steps(output, simulation.steps());
            spent.extend(own.map(|step| self.volume_name(output, step)));
        }
        self.folder.check()?;
        store.commit()?;
        self.note(VOLUMES_STORE);
        if self.keep_volumes {
            return Ok(());
        }
        for name in spent {
            let path = self.folder.place(&name)?;
            std::fs::remove_file(&path).map_err(FileError::io(&path, Attempt::Remove))?;
            self.written.borrow_mut().remove(&name);
        }
        // Stays where something else lies in it.
        let _ = std::fs::remove_dir(self.folder.join("volumes"));
        Ok(())
    }
}

/// The outputs that are volumes.
pub(super) fn volumes(problem: &Problem) -> impl Iterator<Item = &Output> {
    let outputs = problem.frames();
    outputs.filter(|o| matches!(o.kind, OutputKind::Volume))
}
