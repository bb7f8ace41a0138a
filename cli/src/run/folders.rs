//! The folders that a run writes to: they belong to it, and what it may not write is known before the first step.

use super::Run;
use crate::args;
use crate::codes;
use crate::failure::Failure;
use crate::report;
use crate::write;
use serde_json::json;
use std::path::{Path, PathBuf};
use torre_grammar::diag::Diagnostic;
use torre_runtime::output::checkpoint::Identity;
use torre_runtime::output::claim::Claim;
use torre_runtime::program::LoadedFiles;
use torre_runtime::run::record::{self, Record};
use torre_runtime::run::{Checkpoints, Missing, Outputs, Value, checkpoint};

/// Where results and checkpoints go.
pub(super) struct Folders {
    pub outputs: Option<Outputs>,
    pub checkpoints: Option<Checkpoints>,
    /// Which run the results are of, if there are any.
    pub record: Option<Record>,
    /// As long as the run lasts.
    _claims: Vec<Claim>,
}

impl<T: Value> Run<'_, T> {
    /// Claims the folders, and tries what will be written at the end.
    pub(super) fn claim(&self) -> Result<Vec<Claim>, Failure> {
        if let Some(file) = args::report_file(self.args.report.as_deref()) {
            write::try_later(file)?;
        }
        let args = self.args;
        let folders: Vec<&Path> = [&args.out, &args.checkpoint]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect();
        let name = args.what.file.file_name().unwrap_or_default();
        let claims = Claim::take_all(&folders, &name.to_string_lossy())?;
        for claim in claims.iter().filter(|claim| !claim.is_locked()) {
            self.voice.note(format_args!(
                "the disk of `{}` knows no locks: another run that writes there is not noticed",
                claim.folder().display()
            ));
        }
        Ok(claims)
    }

    /// Prepares the folders for this run, and says what they will lack.
    pub(super) fn folders(
        &self,
        claims: Vec<Claim>,
        files: &LoadedFiles,
        identity: &Identity,
    ) -> Result<Folders, Failure> {
        let args = self.args;
        let resumed = match &args.resume {
            Some(folder) => Some(checkpoint::step(folder, identity)?),
            None => None,
        };
        let every = args.every.unwrap_or(0);
        let checkpoints = args
            .checkpoint
            .as_ref()
            .map(|folder| Checkpoints::new(folder, every, identity.clone()));
        let mut record = None;
        let outputs = match &args.out {
            Some(folder) => {
                self.spare_inputs(folder, files)?;
                let keep = args.checkpoint.is_some() || args.resume.is_some();
                let outputs = Outputs::create(folder, args.format.into(), args.save_final, keep)?;
                let own = outputs.record(identity, self.problem);
                let report = json!({
                    "torre": env!("CARGO_PKG_VERSION"),
                    "complete": false,
                    "identity": own.json(),
                    "scheme": self.scheme.name,
                    "problem": self.problem.name,
                    "domain": report::domain(self.scheme),
                    "steps": self.problem.steps,
                    "precision": self.scheme.precision.to_string(),
                });
                let missing =
                    outputs.begin(&own, self.problem, resumed, args.overwrite, &report)?;
                for missing in missing {
                    self.say_missing(folder, &missing);
                }
                record = Some(own);
                Some(outputs)
            }
            None => None,
        };
        if outputs.is_none() && !(self.problem.outputs.is_empty() && self.problem.probes.is_empty())
        {
            self.voice
                .note("results are not written: name a folder for them with `--out DIR`");
        }
        Ok(Folders {
            outputs,
            checkpoints,
            record,
            _claims: claims,
        })
    }

    fn say_missing(&self, folder: &Path, missing: &Missing) {
        let [first, last] = missing.steps;
        let frames = match missing.frames {
            1 => format!("the frame of step {first}"),
            n => format!("{n} frames, of steps {first} to {last},"),
        };
        self.voice.note(format_args!(
            "`{}` lacks {frames} of `{}`: they come before the checkpoint, and were written elsewhere",
            folder.display(),
            missing.output,
        ));
    }

    /// Refuses results in the place of what the run reads.
    fn spare_inputs(&self, folder: &Path, files: &LoadedFiles) -> Result<(), Failure> {
        let source = self.args.what.file.as_path();
        let inside = files
            .paths()
            .chain([source])
            .find(|path| record::is_place_of_results(folder, path));
        match inside {
            None => Ok(()),
            Some(path) => Err(Diagnostic::error(
                codes::OVERWRITES,
                format!(
                    "results in `{}` could take the place of `{}`, which is read",
                    folder.display(),
                    path.display()
                ),
            )
            .hint("choose another folder with `--out`, or move the file")
            .into()),
        }
    }
}
