//! `torre fmt`: canonical layout.

use crate::args;
use crate::codes;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::render::Voice;
use crate::shell;
use std::path::Path;
use torre_grammar::codes::TOO_LARGE;
use torre_grammar::diag::{Diagnostic, Diagnostics};
use torre_grammar::{MAX_BYTES, parse, print};
use torre_runtime::output::atomic::{AtomicFile, remove_leftovers_of};
use torre_runtime::output::{Attempt, FileError};

/// Lays out each file; one that cannot be parsed is left as it is, and the others are done nevertheless.
pub fn format(args: &args::Fmt, voice: &Voice) -> Result<(), Failure> {
    let mut wrong = Diagnostics::default();
    for path in &args.files {
        let source = match input::source(path) {
            Ok(source) => source,
            Err(failure) => {
                wrong.0.extend(failure.diagnostics.0);
                continue;
            }
        };
        let text = match parse(&source) {
            Ok(ast) => print(&ast),
            Err(diagnostics) => {
                wrong.0.extend(diagnostics.0);
                continue;
            }
        };
        if text == source.text() {
            continue;
        }
        let name = path.display();
        if text.len() > MAX_BYTES {
            let message = format!("`{name}` would be too large in canonical layout");
            let hint = format!("a source text may have {} MiB", MAX_BYTES >> 20);
            wrong.push(Diagnostic::error(TOO_LARGE, message).hint(hint));
            continue;
        }
        if args.check {
            let message = format!("`{name}` is not in canonical layout");
            let hint = format!("run `torre fmt {}`", shell::word(path));
            wrong.push(Diagnostic::error(codes::LAYOUT, message).hint(hint));
            continue;
        }
        match replace(path, &text) {
            Ok(()) => voice.note(format_args!("{name}: laid out")),
            Err(error) => wrong.0.extend(Failure::from(error).diagnostics.0),
        }
    }
    match wrong.0.is_empty() {
        true => Ok(()),
        false => Err(Failure {
            diagnostics: wrong,
            exit: Exit::Program,
        }),
    }
}

/// Replaces a file's text; a link stays a link, and the permissions of the file stay the same.
fn replace(path: &Path, text: &str) -> Result<(), FileError> {
    let file = path
        .canonicalize()
        .map_err(FileError::io(path, Attempt::Open))?;
    let metadata = file
        .metadata()
        .map_err(FileError::io(path, Attempt::Open))?;
    if metadata.permissions().readonly() {
        let refused = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        return Err(FileError::io(path, Attempt::Write)(refused));
    }
    // Whether the user may write to it.
    std::fs::OpenOptions::new()
        .write(true)
        .open(&file)
        .map_err(FileError::io(path, Attempt::Write))?;
    remove_leftovers_of(&file);
    let mut replacement = AtomicFile::create(&file)?;
    replacement.set_permissions(metadata.permissions())?;
    replacement.put(text.as_bytes())?;
    replacement.commit()
}
