//! Results on stdout and in files.

use crate::failure::Failure;
use std::io::Write;
use std::path::Path;
use torre_runtime::output::atomic::write_file;

/// Lets a closed pipe (`torre emit ... | head`) end the process as it ends other commands, instead of failing a write.
pub fn end_quietly_on_closed_pipes() {
    // SAFETY: the default action is a valid one, and no other thread runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Writes a result to stdout.
pub fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    // What cannot be written to stdout cannot be said elsewhere.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a result to a file, or to stdout where none is named.
pub fn result_to(file: Option<&Path>, text: &str) -> Result<(), Failure> {
    match file {
        Some(path) => Ok(write_file(path, text.as_bytes())?),
        None => {
            result(text);
            Ok(())
        }
    }
}

/// Writes a report to a file, or to stdout where it is called `json`; tells whether stdout has it.
pub fn report(place: Option<&Path>, json: &str) -> Result<bool, Failure> {
    match place {
        Some(path) if path == Path::new("json") => {
            result(json);
            return Ok(true);
        }
        Some(path) => write_file(path, json.as_bytes())?,
        None => {}
    }
    Ok(false)
}
