//! Results on stdout and in files.

use crate::args::report_file;
use crate::codes;
use crate::failure::Failure;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use torre_grammar::diag::Diagnostic;
use torre_runtime::output::atomic::{remove_leftovers_of, try_file, write_file};

/// Lets a closed pipe (`torre emit ... | head`) end the process as it ends other commands, instead of failing a write.
pub fn end_quietly_on_closed_pipes() {
    // SAFETY: the default action is a valid one, and no other thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Writes a result to stdout.
pub fn result(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| stdout_failed(&error))
}

/// A result that did not reach stdout.
pub fn stdout_failed(error: &io::Error) -> Failure {
    Diagnostic::error(
        codes::UNWRITABLE,
        format!("cannot write to stdout: {error}"),
    )
    .into()
}

/// Writes a result to a file, in the place of an older one. Files that a killed process left of it are removed.
pub fn file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    remove_leftovers_of(path);
    Ok(write_file(path, bytes)?)
}

/// Writes a result to a file, or to stdout where none is named.
pub fn result_to(place: Option<&Path>, text: &str) -> Result<(), Failure> {
    match place {
        Some(path) => file(path, text.as_bytes()),
        None => result(text),
    }
}

/// Writes a report to a file, or to stdout where it is called `json`; tells whether stdout has it.
pub fn report(place: Option<&Path>, json: &str) -> Result<bool, Failure> {
    match (place, report_file(place)) {
        (_, Some(path)) => file(path, json.as_bytes()).map(|()| false),
        (Some(_), None) => result(json).map(|()| true),
        (None, None) => Ok(false),
    }
}

/// Whether a file can be written later.
pub fn try_later(path: &Path) -> Result<(), Failure> {
    Ok(try_file(path)?)
}

/// Refuses to write in the place of a file that is read.
pub fn spare(written: &Path, read: &Path) -> Result<(), Failure> {
    match named(written) == named(read) {
        false => Ok(()),
        true => Err(Diagnostic::error(
            codes::OVERWRITES,
            format!("`{}` is read, and would be replaced", written.display()),
        )
        .hint("give the result another name")
        .into()),
    }
}

/// The folder of a path without links, with the name in it: the file that a new file of this path would replace.
fn named(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder
        .canonicalize()
        .or_else(|_| std::path::absolute(folder))
        .unwrap_or_else(|_| folder.to_owned());
    match path.file_name() {
        Some(name) => folder.join(name),
        None => folder,
    }
}
