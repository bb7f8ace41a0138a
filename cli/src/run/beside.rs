//! Files that a run writes beside its folders: they take the place of nothing that it reads or writes there,
//! and of no result and no state of another run. Nor do folders of states.

use super::Run;
use crate::args;
use crate::failure::Failure;
use crate::write;
use std::path::{Path, PathBuf};
use torre_runtime::run::results_folder::{REPORT, is_place_of_results, real};
use torre_runtime::simulation::Value;

impl<T: Value> Run<'_, T> {
    /// Refuses names for the report, the timeline and folders of states that something else has.
    pub(super) fn check_beside(&self) -> Result<(), Failure> {
        let states = self.args.checkpoint.as_deref().into_iter();
        for folder in states.chain(self.args.holding.folder()) {
            let mut out = self.args.out.iter();
            if let Some(out) = out.find(|out| is_place_of_results(out, folder)) {
                return Err(write::takes_place(folder, out));
            }
        }
        let report = args::report_file(self.args.report.as_deref());
        let timeline = self.args.timeline.as_deref();
        write::refuse_same_file(["--report", "--timeline"], [report, timeline])?;
        for file in [report, timeline].into_iter().flatten() {
            for read in self.inputs() {
                write::spare(file, &read)?;
                write::spare(&real(file), &real(&read))?;
            }
        }
        // The report of a folder is the same as this one.
        let own = |out: &PathBuf| report.is_some_and(|r| real(r) == real(&out.join(REPORT)));
        let report = report.filter(|_| !self.args.out.as_ref().is_some_and(own));
        let mut files = [report, timeline].into_iter().flatten();
        files.try_for_each(|file| self.spare_results(file))
    }

    /// The arrays and tables that the program reads.
    fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        let arrays = self.scheme.files.iter();
        let arrays = arrays.map(|file| self.input.world.path(&file.path));
        arrays.chain(self.input.tables().map(|(path, _)| path))
    }

    fn spare_results(&self, file: &Path) -> Result<(), Failure> {
        let args = self.args;
        let out = args.out.iter();
        let results = out.filter(|folder| is_place_of_results(folder, file));
        let states = [&args.checkpoint, &args.resume].into_iter().flatten();
        let states = states.map(PathBuf::as_path).chain(args.holding.folder());
        let states = states.filter(|folder| write::is_state(folder, file));
        match results.map(PathBuf::as_path).chain(states).next() {
            Some(folder) => Err(write::takes_place(file, folder)),
            // Files of other runs are spared where they are.
            None => write::spare_results(file),
        }
    }
}
