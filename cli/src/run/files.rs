//! Calculations whose arrays are in files of a folder.

use super::{Made, Prepared, Run};
use crate::codes;
use crate::failure::Failure;
use crate::machine;
use crate::window::{self, Held};
use std::path::Path;
use torre_compiler::layout::Layout;
use torre_grammar::diag::Diagnostic;
use torre_runtime::cache::Origin;
use torre_runtime::disk::{ArrayFile, RowGhosts, StateFolder};
use torre_runtime::gpu::piece_bytes;
use torre_runtime::host::{Calculation, memory::Memory};
use torre_runtime::program::Compiled;
use torre_runtime::run::results_folder::real;
use torre_runtime::run::{InFiles, SweepPlan};
use torre_runtime::simulation::Value;

/// Whether two paths lead to the same folder, also where it is not there yet.
fn same(one: &Path, other: &Path) -> bool {
    real(one) == real(other)
}

impl<T: Value> Run<'_, T> {
    /// Whether the run goes on with the state that its own folder has.
    pub(super) fn goes_on(&self, folder: &Path) -> bool {
        let resumed = self.args.resume.as_deref();
        resumed.is_some_and(|resumed| same(resumed, folder))
    }

    /// Bytes of memory that a calculation over files takes.
    pub(super) fn piece_bytes(&self) -> u64 {
        match self.executor.held() {
            Some(Held::Window(plan)) => {
                let pieces = piece_bytes(plan.how.group as u64 * plan.plane_bytes);
                let again = plan.again as u64 * plan.plane_bytes;
                pieces.saturating_add(again.saturating_mul(plan.devices as u64))
            }
            _ => self.executor.sweep().map_or(0, |sweep| sweep.plan.bytes),
        }
    }

    /// Says that files cannot be accessed directly.
    pub(super) fn say_cached(&self) {
        self.voice
            .note("the file system has no direct access, so files go through the system's cache");
    }

    /// Refuses options that are not possible with the files of a folder, before anything is written.
    pub(super) fn check_files(&self) -> Result<(), Failure> {
        let args = self.args;
        let Some(folder) = args.holding.folder() else {
            return Ok(());
        };
        for (option, other) in [("--out", &args.out), ("--checkpoint", &args.checkpoint)] {
            if other.as_deref().is_some_and(|other| same(other, folder)) {
                return Err(Failure::usage(format!(
                    "`--window` and `{option}` name the same folder"
                )));
            }
        }
        if self.goes_on(folder) && args.verify {
            return Err(Failure::usage(
                "`--verify` does not go with a state in files: it has no other values to begin with",
            ));
        }
        Ok(())
    }

    /// Refuses to begin anew in a folder with a state, or with files under the names of arrays that are none, once it
    /// is known that no other run has it.
    pub(super) fn spare_fields(&self) -> Result<(), Failure> {
        let args = self.args;
        let Some(folder) = args.holding.folder() else {
            return Ok(());
        };
        if self.goes_on(folder) || args.overwrite {
            return Ok(());
        }
        let foreign = StateFolder::foreign_array(folder);
        let has_state = StateFolder::has_state(folder);
        let folder = folder.display();
        let (message, hint) = match foreign {
            _ if has_state => (
                format!("`{folder}` has the state of a run"),
                format!(
                    "`--resume {folder}` goes on with it; remove the folder to begin anew, or say `--overwrite` beside \
                     `--out`"
                ),
            ),
            Some(file) => (
                format!("`{}` is no array of a run", file.display()),
                "move it away, name another folder with `--window`, or say `--overwrite` beside `--out`".to_owned(),
            ),
            None => return Ok(()),
        };
        Err(Diagnostic::error(codes::OTHER_RESULTS, message)
            .hint(hint)
            .into())
    }

    /// The calculation at the step where the run begins, and its folder if its array is in files, over which code with
    /// these ghosts along the inner axis goes.
    pub(super) fn calculation<'b>(
        &'b self,
        prepared: &Prepared<'b>,
        layout: &Layout,
        ghosts: RowGhosts,
    ) -> Result<(Calculation<'b, T>, Option<StateFolder>), Failure> {
        let (scheme, problem, files) = (self.scheme, self.problem, prepared.files);
        let (layout, identity) = (layout.clone(), &prepared.identity);
        let Some(folder) = self.args.holding.folder() else {
            let calculation = Calculation::arranged(layout, scheme, problem, files, self.threads);
            let mut calculation = calculation?;
            self.warn_of_tiny(calculation.tiny.as_ref());
            prepared.folders.resume(&mut calculation)?;
            return Ok((calculation, None));
        };
        let over = |file: &ArrayFile| -> Result<Calculation<'b, T>, Failure> {
            let memory = Memory::of_file(file.map(layout.bytes())?, &layout);
            let layout = layout.clone();
            Ok(Calculation::of_memory(
                memory, layout, scheme, problem, files,
            )?)
        };
        if self.goes_on(folder) {
            let state = StateFolder::open(folder, &layout, identity, ghosts)?;
            let state = prepared.folders.claimed(state);
            let mut calculation = over(state.file())?;
            prepared.folders.resume_in_place(&mut calculation)?;
            return Ok((calculation, Some(state)));
        }
        // Start values and checkpoints may be refused, which leaves the folder as it was.
        let state = StateFolder::create(folder, &layout, identity)?;
        let state = prepared.folders.claimed(state);
        let mut calculation = over(state.file())?;
        calculation.fill(self.threads)?;
        self.warn_of_tiny(calculation.tiny.as_ref());
        prepared.folders.resume(&mut calculation)?;
        Ok((calculation, Some(state)))
    }

    /// Runs over files, plane after plane.
    pub(super) fn run_sweep(
        &self,
        prepared: &Prepared<'_>,
        compiled: &Compiled,
        plan: SweepPlan,
    ) -> Result<(), Failure> {
        let (mut calculation, folder) =
            self.calculation(prepared, &prepared.set.layout, RowGhosts::InMemory)?;
        calculation.blocking = self.blocking.unwrap_or(calculation.blocking);
        let Some(folder) = folder else {
            return Err(Failure::usage(window::ONLY_CUDA));
        };
        if !folder.is_direct() {
            self.say_cached();
        }
        let made = Made {
            backend: compiled.backend.to_string(),
            code: compiled.code.description(),
            compiling: compiled.time,
            cached: compiled.origin == Some(Origin::Cached),
            field_bytes: calculation.memory_bytes(),
            spilled: 0,
            devices: vec![machine::cpu_name()],
            as_planned: false,
        };
        let mut simulation = InFiles {
            calculation,
            set: prepared.set,
            code: &*compiled.code,
            threads: self.threads,
            plan,
            folder,
            records: Vec::new(),
        };
        self.run_checked(&mut simulation, prepared, made)
    }
}
