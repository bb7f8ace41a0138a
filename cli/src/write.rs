//! Results on stdout and in files.

use crate::args::report_file;
use crate::codes;
use crate::failure::Failure;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use torre_grammar::diag::Diagnostic;
use torre_runtime::disk::STATE_FILES;
use torre_runtime::output::atomic::{remove_leftovers_of, try_file, write_file};
use torre_runtime::output::claim::LOCK;
use torre_runtime::run::owner::results_around;
use torre_runtime::run::results_folder::real;

/// Whether the process began without stdout (`>&-`).
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Is called before `main` and what Rust does before it: that opens `/dev/null` in the place of a closed stdout.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static ASK: extern "C" fn() = ask;

#[cfg(target_os = "linux")]
extern "C" fn ask() {
    // SAFETY: asks for the flags of a number that may be no open file, and touches no memory.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
        CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Lets a closed pipe (`torre emit ... | head`) end the process as it ends other commands, instead of failing a write;
/// and lets a write beyond the largest file that the system allows (`ulimit -f`) fail, instead of ending the process.
pub fn take_signals_of_writes() {
    // SAFETY: both actions are valid ones, and no other thread runs yet.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Lets a write to a closed pipe fail instead, which loses a message and no work.
pub fn outlive_readers() {
    // SAFETY: the action is a valid one.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Whether there is a stdout.
pub fn stdout_is_open() -> io::Result<()> {
    match CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::other("it is closed")),
        false => Ok(()),
    }
}

/// Writes a result to stdout.
pub fn result(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = stdout_is_open()
        .and_then(|()| out.write_all(text.as_bytes()))
        .and_then(|()| out.flush());
    match written {
        // The reader has all that it wants.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| stdout_failed(&error)),
    }
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

/// Refuses a file that takes the place of a result, a state or a lock of a run.
pub fn spare_results(written: &Path) -> Result<(), Failure> {
    let folder = match (written.exists(), written.parent()) {
        (_, Some(parent)) if written.file_name() == Some(LOCK.as_ref()) => Some(parent.to_owned()),
        (false, _) => None,
        (_, Some(parent)) if is_state(parent, written) => Some(parent.to_owned()),
        _ => results_around(written),
    };
    match folder {
        None => Ok(()),
        Some(folder) => Err(takes_place(written, &folder)),
    }
}

/// Whether a file is a state in a folder of states: of checkpoints, or of a window.
pub fn is_state(folder: &Path, file: &Path) -> bool {
    let same = |name: &str| real(&folder.join(name)) == real(file);
    STATE_FILES.iter().any(|name| same(name))
}

/// A file that could take the place of results or states in a folder.
pub fn takes_place(written: &Path, folder: &Path) -> Failure {
    let (written, folder) = (written.display(), folder.display());
    let message = format!("`{written}` could take the place of a file of `{folder}`");
    Diagnostic::error(codes::OVERWRITES, message)
        .hint("give it another name")
        .into()
}

/// Refuses two options that name the same file.
pub fn refuse_same_file(options: [&str; 2], paths: [Option<&Path>; 2]) -> Result<(), Failure> {
    let [one, other] = options;
    match paths {
        [Some(a), Some(b)] if real(a) == real(b) => Err(Failure::usage(format!(
            "`{one}` and `{other}` name the same file"
        ))),
        _ => Ok(()),
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
