//! The folders that a run writes to: they belong to it, and it checks before the first step that it may write them.

use super::{Prepared, Run};
use crate::args;
use crate::codes;
use crate::failure::Failure;
use crate::plot;
use crate::provenance::provenance;
use crate::report;
use crate::write;
use serde_json::{Map, Value as Json};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use torre_grammar::diag::Diagnostic;
use torre_runtime::disk::StateFolder;
use torre_runtime::files::LoadedFiles;
use torre_runtime::host::Calculation;
use torre_runtime::output::checkpoint::Identity;
use torre_runtime::output::claim::Claim;
use torre_runtime::run::checkpoint::{self, Earlier, Replaced};
use torre_runtime::run::owner::{Begun, Others, Owner};
use torre_runtime::run::results_folder::{is_place_of_results, real};
use torre_runtime::run::{Checkpoints, Missing, Outputs, Wanted};
use torre_runtime::simulation::{RunError, Value};

/// Where results and checkpoints go.
pub(super) struct Folders {
    pub outputs: Option<Outputs>,
    pub checkpoints: Option<Checkpoints>,
    /// The run that the results belong to, if there are any.
    pub owner: Option<Owner>,
    /// Where results come from; empty where nothing says so.
    pub provenance: Map<String, Json>,
    /// The report as it was before the first step.
    begun: Json,
    /// The step of the checkpoint with which the run goes on.
    resumed: Option<u64>,
    /// The checkpoint, until all of it was read: its file may be large, and another one take its name.
    pub earlier: RefCell<Option<Earlier>>,
    /// As long as the run lasts.
    claims: Vec<Claim>,
}

impl Folders {
    /// Takes the state of the checkpoint with which the run goes on, if it does, into a calculation.
    pub fn resume<T: Value>(&self, calculation: &mut Calculation<'_, T>) -> Result<(), RunError> {
        match &*self.earlier.borrow() {
            Some(earlier) => earlier.resume(calculation),
            None => Ok(()),
        }
    }

    /// The same for a calculation that has the values already.
    pub fn resume_in_place<T: Value>(
        &self,
        calculation: &mut Calculation<'_, T>,
    ) -> Result<(), RunError> {
        match &*self.earlier.borrow() {
            Some(earlier) => earlier.resume_in_place(calculation),
            None => Ok(()),
        }
    }

    /// The folder of a state under this run's claim.
    pub fn claimed(&self, state: StateFolder) -> StateFolder {
        match claim_of(&self.claims, state.path()) {
            Some(claim) => state.claimed(claim),
            None => state,
        }
    }
}

impl<T: Value> Run<'_, T> {
    /// Claims the folders, and tries the files that will be written at the end.
    pub(super) fn claim(&self) -> Result<Vec<Claim>, Failure> {
        if let Some(file) = args::report_file(self.args.report.as_deref()) {
            write::try_later(file)?;
        }
        if let Some(file) = &self.args.timeline {
            write::try_later(file)?;
        }
        let args = self.args;
        let folders: Vec<&Path> = [&args.out, &args.checkpoint]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .chain(args.holding.folder())
            .collect();
        let name = args.subject.file.file_name().unwrap_or_default();
        let claims = Claim::take_all(&folders, &name.to_string_lossy())?;
        for claim in claims.iter().filter(|claim| !claim.is_locked()) {
            self.voice.note(format_args!(
                "the disk of `{}` knows no locks: another run that writes there is not noticed",
                claim.folder().display()
            ));
        }
        Ok(claims)
    }

    /// The folders of this run. Nothing in them is changed as long as the run could still be refused.
    pub(super) fn folders(
        &self,
        claims: Vec<Claim>,
        files: &LoadedFiles,
        identity: &Identity,
    ) -> Result<Folders, Failure> {
        let args = self.args;
        for folder in args
            .holding
            .folder()
            .into_iter()
            .chain(args.checkpoint.as_deref())
        {
            self.spare_inputs(folder, files, write::is_state)?;
        }
        self.spare_fields()?;
        let earlier = match &args.resume {
            Some(folder) => Some(Earlier::open(folder, identity)?),
            None => None,
        };
        let resumed = earlier.as_ref().map(Earlier::step);
        if let Some(folder) = &args.checkpoint {
            self.spare_state(folder, identity)?;
        }
        let every = args.every.unwrap_or(0);
        let checkpoints = args.checkpoint.as_ref().map(|folder| {
            let checkpoints = Checkpoints::new(folder, every, identity.clone());
            match claim_of(&claims, folder) {
                Some(claim) => checkpoints.claimed(claim),
                None => checkpoints,
            }
        });
        let wanted = args.out.is_some() || args.report.is_some();
        let provenance = match wanted {
            true => provenance(self.input, files.paths()),
            false => Map::new(),
        };
        let mut begun = Json::Object(provenance.clone());
        begun["torre"] = env!("CARGO_PKG_VERSION").into();
        begun["complete"] = false.into();
        begun["scheme"] = self.scheme.name.clone().into();
        begun["problem"] = self.problem.name.clone().into();
        begun["domain"] = report::domain(self.scheme).into();
        begun["steps"] = self.problem.steps.into();
        begun["precision"] = self.scheme.precision.to_string().into();
        let mut owner = None;
        // A window over files has one, too.
        let leaves_state = args.checkpoint.is_some() || args.holding.folder().is_some();
        let outputs = match &args.out {
            Some(folder) => {
                self.spare_inputs(folder, files, is_place_of_results)?;
                let wanted = Wanted {
                    format: args.format.into(),
                    save_initial: args.save_initial,
                    save_final: args.save_final,
                    keep_volumes: leaves_state || args.resume.is_some(),
                    pictures: plot::pictures(&args.pictures, self.scheme, self.problem)?,
                };
                let outputs = Outputs::create(folder, wanted)?;
                let outputs = match claim_of(&claims, folder) {
                    Some(claim) => outputs.claimed(claim),
                    None => outputs,
                };
                let own = outputs.owner(identity, self.problem);
                outputs.check(&own, self.problem, resumed, self.others())?;
                self.spare_store(&outputs, resumed)?;
                let own = own.beside(folder, Begun::of(resumed));
                begun["identity"] = own.json();
                owner = Some(own);
                Some(outputs)
            }
            None => None,
        };
        if outputs.is_none() && self.problem.has_results() {
            self.voice
                .note("results are not written: name a folder for them with `--out DIR`");
        }
        Ok(Folders {
            outputs,
            checkpoints,
            owner,
            provenance,
            begun,
            resumed,
            earlier: RefCell::new(earlier),
            claims,
        })
    }

    fn others(&self) -> Others {
        match self.args.overwrite {
            true => Others::Removed,
            false => Others::Kept,
        }
    }

    /// Makes the folder of results that of this run, and says which results it will lack.
    pub(super) fn begin(&self, prepared: &Prepared<'_>) -> Result<(), Failure> {
        let folders = &prepared.folders;
        let (Some(outputs), Some(own)) = (&folders.outputs, &folders.owner) else {
            return Ok(());
        };
        let Folders { begun, resumed, .. } = folders;
        let missing = outputs.begin(own, self.problem, *resumed, self.others(), begun)?;
        for missing in missing {
            self.say_missing(outputs.folder(), &missing);
        }
        Ok(outputs.statics::<T>(self.scheme, self.problem, prepared.files)?)
    }

    /// Refuses checkpoints in the place of the state of another calculation.
    fn spare_state(&self, folder: &Path, identity: &Identity) -> Result<(), Failure> {
        if self.args.overwrite {
            return Ok(());
        }
        let whose = match checkpoint::replaced(folder, identity) {
            Replaced::Own => return Ok(()),
            Replaced::Other => "the state of another calculation".to_owned(),
            Replaced::InFiles => "the state of a run over files".to_owned(),
            Replaced::Unread(error) => format!("a state that cannot be read: {error}"),
        };
        let folder = folder.display();
        let message = format!("`{folder}` has {whose}");
        let hint = format!(
            "name another folder with `--checkpoint`, remove `{folder}/state.checkpoint`, or say `--overwrite` beside \
             `--out`"
        );
        Err(Diagnostic::error(codes::OTHER_RESULTS, message)
            .hint(hint)
            .into())
    }

    /// Refuses a store that would lack frames of the one that it replaces.
    fn spare_store(&self, outputs: &Outputs, resumed: Option<u64>) -> Result<(), Failure> {
        if self.others() == Others::Removed {
            return Ok(());
        }
        let folder = outputs.folder().display();
        let message = match outputs.would_lose(self.scheme, self.problem, resumed) {
            Ok(None) => return Ok(()),
            Ok(Some(lost)) => {
                let number = match lost.frames {
                    1 => "a frame".to_owned(),
                    n => format!("{n} frames"),
                };
                let why = match lost.is_own {
                    true => format!("which `{folder}/volumes` lacks"),
                    false => "which is no output of this run".to_owned(),
                };
                format!(
                    "`{folder}/volumes.zarr` would lose {number} of `{}`, {why}",
                    lost.output
                )
            }
            Err(error) => format!("`{folder}/volumes.zarr` would be replaced unread: {error}"),
        };
        let hint = "name another folder with `--out`, move the store away, or say `--overwrite`";
        Err(Diagnostic::error(codes::OTHER_RESULTS, message)
            .hint(hint)
            .into())
    }

    fn say_missing(&self, folder: &Path, missing: &Missing) {
        self.voice.note(format_args!(
            "`{}` lacks {} of `{}`, written before the checkpoint elsewhere or in another format",
            folder.display(),
            frames(missing),
            missing.output,
        ));
    }

    /// Refuses results and states in the place of files that the run reads. `is_place`: whether a file of the folder
    /// could be replaced.
    fn spare_inputs(
        &self,
        folder: &Path,
        files: &LoadedFiles,
        is_place: fn(&Path, &Path) -> bool,
    ) -> Result<(), Failure> {
        let source = self.args.subject.file.as_path();
        let tables = self.input.tables().map(|(path, _)| path);
        let inside = files
            .paths()
            .chain([source])
            .map(Path::to_owned)
            .chain(tables)
            .find(|path| is_place(folder, path));
        match inside {
            None => Ok(()),
            Some(path) => Err(Diagnostic::error(
                codes::OVERWRITES,
                format!(
                    "files of `{}` could take the place of `{}`, which is read",
                    folder.display(),
                    path.display()
                ),
            )
            .hint("choose another folder, or move the file")
            .into()),
        }
    }
}

/// The claim of a run to a folder.
fn claim_of<'a>(claims: &'a [Claim], folder: &Path) -> Option<&'a Claim> {
    let folder = real(folder);
    claims.iter().find(|claim| real(claim.folder()) == folder)
}

/// Missing frames in words.
fn frames(missing: &Missing) -> String {
    let [first, last] = missing.steps;
    match missing.frames {
        1 => format!("the frame of step {first}"),
        n => format!("{n} frames, of steps {first} to {last},"),
    }
}
