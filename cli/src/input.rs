//! From the command line to a resolved calculation.

use crate::args::Subject;
use crate::codes;
use crate::failure::{Exit, Failure};
use crate::render::Voice;
use crate::write;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use torre_compiler::driver;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::world::World;
use torre_grammar::diag::Diagnostic;
use torre_grammar::source::Source;
use torre_runtime::budget;
use torre_runtime::run::results_folder::real;
use torre_runtime::world::{FileWorld, read_source};

/// Reads a source file.
pub fn source(path: &Path) -> Result<Source, Failure> {
    read_source(path).map_err(|error| {
        let message = format!("cannot read `{}`: {error}", path.display());
        Failure::new(Exit::Program, Diagnostic::error(codes::UNREADABLE, message))
    })
}

/// The options of the command line for the calculation.
pub fn options(subject: &Subject, memory: Option<u64>) -> Options {
    Options {
        problem: subject.problem.clone(),
        precision: subject.precision.into(),
        overrides: subject.set.clone(),
        memory,
    }
}

/// Refuses a result in the place of the program, or of a module, an array or a table that it reads.
pub fn spare(written: &Path, subject: &Subject) -> Result<(), Failure> {
    let spare = |read: &Path| {
        write::spare(written, read)?;
        write::spare(&real(written), &real(read))
    };
    spare(&subject.file)?;
    // A file that is not there is not read.
    if !written.exists() {
        return Ok(());
    }
    let world = FileWorld::beside(&subject.file);
    // The command itself says what is wrong with a program.
    let Ok(source) = source(&subject.file) else {
        return Ok(());
    };
    let Ok(program) = driver::program(&world, &source) else {
        return Ok(());
    };
    modules_named(&source, &world)
        .iter()
        .try_for_each(|read| spare(read))?;
    let problems = match &subject.problem {
        Some(problem) => vec![problem.clone()],
        None => program.problems(),
    };
    for problem in problems {
        let options = Options {
            problem: Some(problem),
            ..options(subject, None)
        };
        if let Ok(resolved) = program.resolve(&options) {
            spare_read(&resolved, &world, spare)?;
        }
    }
    Ok(())
}

/// The files of the modules beside a program that it names, or that one of these names, whether or not a problem needs
/// them.
fn modules_named(source: &Source, world: &FileWorld) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![source.clone()];
    while let Some(text) = open.pop() {
        for name in first_names(text.text()) {
            let file = world.path(&format!("{name}.torre"));
            if found.insert(file) {
                open.extend(world.module(source, &[name]));
            }
        }
    }
    found
}

/// The first names of all paths `name::...` in a text.
fn first_names(text: &str) -> BTreeSet<&str> {
    let paths = text.match_indices("::").filter_map(|(at, _)| {
        let before = text[..at].trim_end();
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let rest = before.trim_end_matches(is_part);
        let name = &before[rest.len()..];
        (!name.is_empty() && !rest.trim_end().ends_with("::")).then_some(name)
    });
    paths.collect()
}

/// Calls `spare` with each file that a problem reads.
fn spare_read(
    resolved: &Resolved,
    world: &FileWorld,
    spare: impl Fn(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let modules = resolved.sources.iter().map(|s| PathBuf::from(s.name()));
    let arrays = resolved.scheme.files.iter().map(|f| world.path(&f.path));
    let tables = resolved.tables.iter().map(|t| world.path(t.name()));
    let mut read = modules.chain(arrays).chain(tables);
    read.try_for_each(|read| spare(&read))
}

/// A program that is to be run, with all that it was read from.
pub struct Input {
    pub world: FileWorld,
    pub source: Source,
    pub options: Options,
    pub resolved: Resolved,
}

impl Input {
    /// Reads, parses and resolves a program whose fields are to be in memory, and shows its warnings.
    pub fn read(subject: &Subject, voice: &Voice) -> Result<Self, Failure> {
        let memory = budget::available().map(|a| a.bytes);
        Self::read_within(subject, memory, voice)
    }

    /// The same for a program whose size is not held against this machine: its fields are in files, or its code is for
    /// another program.
    pub fn read_of_any_size(subject: &Subject, voice: &Voice) -> Result<Self, Failure> {
        Self::read_within(subject, None, voice)
    }

    fn read_within(subject: &Subject, memory: Option<u64>, voice: &Voice) -> Result<Self, Failure> {
        let world = FileWorld::beside(&subject.file);
        let source = source(&subject.file)?;
        let options = options(subject, memory);
        let resolved = driver::load(&world, &source, &options)?;
        voice.show(&resolved.warnings);
        Ok(Self {
            world,
            source,
            options,
            resolved,
        })
    }

    /// The tables that the program reads: their files, and their texts.
    pub fn tables(&self) -> impl Iterator<Item = (PathBuf, &Source)> {
        let tables = self.resolved.tables.iter();
        tables.map(|table| (self.world.path(table.name()), table))
    }
}

/// The same for commands that only look at the program: sizes are not held against this machine.
pub fn inspected(subject: &Subject, voice: &Voice) -> Result<Resolved, Failure> {
    Input::read_of_any_size(subject, voice).map(|input| input.resolved)
}
