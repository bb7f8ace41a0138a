//! `torre check`: all diagnostics, nothing else.

use crate::args::{self, Unstable};
use crate::failure::Failure;
use crate::input;
use crate::plot;
use crate::render::Voice;
use crate::stability::Subject;
use crate::write;
use serde_json::{Value, json};
use std::path::Path;
use torre_compiler::driver;
use torre_compiler::resolve::{Options, Program, Resolved};
use torre_grammar::diag::{Diagnostic, Diagnostics, Severity};
use torre_grammar::source::Source;
use torre_runtime::files::LoadedFiles;
use torre_runtime::output::atomic::remove_leftovers_of;
use torre_runtime::run::setup;
use torre_runtime::world::FileWorld;

pub fn check(args: &args::Check, voice: &Voice) -> Result<(), Failure> {
    let subject = &args.subject;
    let world = FileWorld::beside(&subject.file);
    let source = match input::source(&subject.file) {
        Err(failure) if args.report.is_some() => return report(&failure.diagnostics),
        source => source?,
    };
    let options: Options = input::options(subject, None);
    let program = driver::program(&world, &source);
    // With a problem or settings only that calculation is looked at; without them the whole file is.
    let (mut diagnostics, problems) = match (&program, &subject.problem, subject.set.is_empty()) {
        (Err(diagnostics), ..) => (diagnostics.clone(), Vec::new()),
        (Ok(program), None, true) => (
            program.check(&options),
            program.problems().into_iter().map(Some).collect(),
        ),
        (Ok(program), ..) => match program.resolve(&options) {
            Ok(resolved) => (resolved.warnings, vec![subject.problem.clone()]),
            Err(diagnostics) => (diagnostics, Vec::new()),
        },
    };
    let voiced = Voice::new(voice.quiet || args.report.is_some());
    if let Ok(program) = &program
        && !diagnostics.has_errors()
    {
        let text = Text {
            world: &world,
            source: &source,
            program,
        };
        for problem in problems {
            let options = Options {
                problem,
                ..options.clone()
            };
            match look(&text, &options, &voiced, args.unstable) {
                Ok(found) => diagnostics.0.extend(found),
                Err(failure) if args.report.is_some() => {
                    diagnostics.0.extend(failure.diagnostics.0);
                }
                Err(failure) => return Err(failure),
            }
        }
        if let Some(path) = &args.picture {
            draw(&text, &options, path, args.down.as_deref())?;
        }
    }
    if args.report.is_some() {
        return report(&diagnostics);
    }
    let (errors, warnings) = count(&diagnostics);
    match errors {
        0 => {
            voice.show(&diagnostics);
            let name = subject.file.display();
            match warnings {
                0 => voice.note(format_args!("{name}: no errors")),
                n => voice.note(format_args!("{name}: no errors, {n} warning{}", plural(n))),
            }
            Ok(())
        }
        _ => Err(diagnostics.into()),
    }
}

/// Writes all diagnostics to stdout.
fn report(diagnostics: &Diagnostics) -> Result<(), Failure> {
    let list: Vec<Value> = diagnostics.0.iter().map(as_json).collect();
    write::result(&format!("{:#}\n", Value::from(list)))?;
    match diagnostics.has_errors() {
        true => Err(Failure::silent()),
        false => Ok(()),
    }
}

/// The program as it was read.
struct Text<'a> {
    world: &'a FileWorld,
    source: &'a Source,
    program: &'a Program<'a>,
}

/// Reports the step and the cells of a problem, and their faults.
fn look(
    text: &Text<'_>,
    options: &Options,
    voice: &Voice,
    unstable: Unstable,
) -> Result<Option<Diagnostic>, Failure> {
    let resolved = text.program.resolve(options)?;
    let files = LoadedFiles::load(text.world, &resolved.scheme)?;
    let subject = Subject {
        world: text.world,
        source: text.source,
        program: Some(text.program),
        options,
        resolved: &resolved,
        files: &files,
    };
    Ok(subject.announce(voice, unstable).unwrap_or_else(Some))
}

/// Draws a problem as it is set up.
fn draw(
    text: &Text<'_>,
    options: &Options,
    path: &Path,
    down: Option<&str>,
) -> Result<(), Failure> {
    let resolved = text.program.resolve(options)?;
    let files = LoadedFiles::load(text.world, &resolved.scheme)?;
    let down = plot::downward(down, &resolved.scheme)?;
    remove_leftovers_of(path);
    let Resolved {
        scheme,
        problem,
        sides,
        ..
    } = &resolved;
    let canvas = setup(scheme, problem, sides, &files, down);
    Ok(canvas.write(path)?)
}

fn count(diagnostics: &Diagnostics) -> (usize, usize) {
    let count = |severity| {
        let list = diagnostics.0.iter();
        list.filter(|d| d.severity == severity).count()
    };
    (count(Severity::Error), count(Severity::Warning))
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// Lines and columns count from 1, columns in characters; offsets are bytes.
fn as_json(diagnostic: &Diagnostic) -> Value {
    let labels: Vec<Value> = diagnostic
        .labels
        .iter()
        .map(|label| {
            let text = label.source.text();
            let start = (label.span.start as usize).min(text.len());
            let before = text.get(..start).unwrap_or("");
            let line = before.rfind('\n').map_or(0, |i| i + 1);
            json!({
                "file": label.source.name(),
                "line": before.matches('\n').count() + 1,
                "column": before[line..].chars().count() + 1,
                "start": label.span.start,
                "end": label.span.end,
                "text": label.text,
            })
        })
        .collect();
    json!({
        "code": diagnostic.code.0,
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "labels": labels,
    })
}
