//! Whether a run fits into memory.

use super::executor::Executor;
use super::{Check, Run};
use crate::codes;
use crate::failure::Failure;
use crate::report::bytes;
use torre_compiler::layout::Layout;
use torre_compiler::problem::Source;
use torre_compiler::scheme::Precision;
use torre_grammar::diag::Diagnostic;
use torre_runtime::budget::{self, Bound};
use torre_runtime::files::LoadedFiles;
use torre_runtime::run::Literal;
use torre_runtime::run::memory::{Manner, Needs, acting, anywhere, in_boxes};
use torre_runtime::simulation::{SetupError, Value};

/// A part of the memory of a run, in bytes.
struct Part {
    bytes: u64,
    name: &'static str,
    /// A remedy if the run fits without it.
    hint: &'static str,
}

impl<T: Value> Run<'_, T> {
    /// Refuses a run that does not fit, before any memory is taken. Conditions of sources are not known yet.
    pub(super) fn check_memory(&self) -> Result<(), Failure> {
        self.check_with(&in_boxes, LoadedFiles::bytes(self.scheme))
    }

    /// The same, once the files are there that conditions of sources may depend on. Cells are counted if it matters.
    pub(super) fn check_conditions(&self, files: &LoadedFiles) -> Result<(), Failure> {
        let mut sources = self.problem.sources.iter();
        if !sources.any(|source| source.condition.is_some())
            || self.check_with(&anywhere, 0).is_ok()
        {
            return Ok(());
        }
        self.check_with(&|source| acting(self.scheme, files, source), 0)
    }

    fn check_with(&self, cells: &dyn Fn(&Source) -> u64, files: u64) -> Result<(), Failure> {
        let Some(available) = budget::available() else {
            return Ok(());
        };
        let parts = self.parts(cells, files)?;
        let needed = parts
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(part.bytes));
        if needed <= available.bytes {
            return Ok(());
        }
        let list: Vec<String> = parts
            .iter()
            .filter(|part| part.bytes > 0)
            .map(|part| format!("{} for {}", bytes(part.bytes), part.name))
            .collect();
        let bound = match available.bound {
            Bound::Machine => "this machine has",
            Bound::Group => "the limit of the process's group leaves",
        };
        let message = format!(
            "`{}` needs {} of memory ({}), and {bound} {}",
            self.problem.name,
            bytes(needed),
            list.join(", "),
            bytes(available.bytes),
        );
        let fits = |needed: u64| needed <= available.bytes;
        let helpful =
            |part: &&Part| !part.hint.is_empty() && fits(needed.saturating_sub(part.bytes));
        let hint = match parts.iter().find(helpful) {
            Some(part) => part.hint,
            None if self.scheme.precision == Precision::F64 && fits(needed / 2) => {
                "it fits with `--precision f32`"
            }
            None => "make the domain smaller: `--set domain=AxBxC`",
        };
        Err(Diagnostic::error(codes::MEMORY, message).hint(hint).into())
    }

    /// The parts of the memory of the run; the parts that are given up most easily come first.
    fn parts(&self, cells: &dyn Fn(&Source) -> u64, files: u64) -> Result<Vec<Part>, Failure> {
        let layout = Layout::new(self.scheme).map_err(SetupError::from)?;
        let plan = self.executor.processor().map(|processor| &processor.plan);
        let more = plan.map_or(0, |plan| plan.more_bytes(&layout, self.threads));
        let reference = matches!(self.executor, Executor::Reference);
        let fields = match reference {
            true => Literal::<T>::bytes(self.scheme),
            false if self.args.holding.folder().is_some() => self.piece_bytes(),
            false => layout.bytes().saturating_add(more),
        };
        let check = match self.check {
            None => 0,
            Some(Check::Reference) => Literal::<T>::bytes(self.scheme),
            Some(Check::Interpreter | Check::Processor) => layout.bytes(),
        };
        let twice = matches!(self.check, Some(Check::Interpreter | Check::Processor));
        let manner = Manner {
            tabulated: u64::from(!reference) + u64::from(twice),
            recorded: 1 + u64::from(self.check.is_some()),
            results: self.args.out.as_ref().map(|_| self.args.format.into()),
            save_final: self.args.save_final,
            checkpoints: self.args.checkpoint.is_some(),
            in_files: self.args.holding.folder().is_some(),
            resumed: self.args.resume.is_some(),
        };
        let needs = Needs::of(self.scheme, self.problem, manner, cells);
        let part = |bytes, name, hint| Part { bytes, name, hint };
        Ok(vec![
            part(check, "the check", "it fits without `--verify`"),
            part(
                needs.probes,
                "the records of probes and reductions",
                "a value is kept for each probe and step, and for each recorded reduction: have fewer of them",
            ),
            part(
                needs.spectra,
                "the sums of spectra",
                "16 bytes are kept for each value and frequency: have fewer of them",
            ),
            part(
                needs.pictures,
                "slices that wait to be written",
                "it fits without slices: have fewer or smaller ones",
            ),
            part(
                needs.sources,
                "the tables of sources",
                "it fits without the sources: let them act in a smaller region",
            ),
            part(needs.files, "reading and writing files", ""),
            part(files, "the arrays that the program reads", ""),
            part(fields, "the fields", ""),
        ])
    }
}
