//! `torre new`: a first program.

use crate::args;
use crate::codes;
use crate::failure::Failure;
use crate::render::Voice;
use crate::shell;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use torre_grammar::diag::Diagnostic;

/// The programs for one, two and three axes, with `NAME` in place of the name.
const PROGRAMS: [&str; 3] = [
    include_str!("new/1.torre"),
    include_str!("new/2.torre"),
    include_str!("new/3.torre"),
];

/// How source files end.
const EXTENSION: &str = "torre";

/// Writes a program that runs as it is, but never over a file.
pub fn new(args: &args::New, voice: &Voice) -> Result<(), Failure> {
    let Some(path) = file(&args.name) else {
        let message = format!("`{}` is no name of a file", args.name.display());
        let hint =
            "`torre new NAME` writes NAME.torre; NAME may be in a folder, and has no line breaks";
        return Err(Diagnostic::error(codes::UNWRITABLE, message)
            .hint(hint)
            .into());
    };
    let text = program(args.dims, &path);
    let shown = path.display();
    let opened = OpenOptions::new().write(true).create_new(true).open(&path);
    let written = opened.and_then(|mut file| {
        let written = file.write_all(text.as_bytes());
        if written.is_err() {
            // A part of a program, or an empty one, would be in the way of the next attempt.
            let _ = fs::remove_file(&path);
        }
        written
    });
    written.map_err(|error| {
        let message = format!("cannot create `{shown}`: {error}");
        let refused = Diagnostic::error(codes::UNWRITABLE, message);
        match error.kind() {
            ErrorKind::AlreadyExists => {
                refused.hint("`torre new NAME` writes NAME.torre, where there is no such file yet")
            }
            _ => refused,
        }
    })?;
    voice.note(format_args!(
        "{shown} is there. Try:\n  torre run {} --out out",
        shell::word(&path)
    ));
    Ok(())
}

/// The file of a name, which may have the ending of programs already. A path that ends as those of folders do is no
/// name of a file, nor is one that ends the comment in which the program has it.
fn file(name: &Path) -> Option<PathBuf> {
    let text = name.to_string_lossy();
    let folders = ["", ".", ".."].map(|last| format!("{MAIN_SEPARATOR}{last}"));
    let is_folder = folders.iter().any(|end| text.ends_with(end)) || name.file_name().is_none();
    if is_folder || text.chars().any(char::is_control) {
        return None;
    }
    let mut name = name.to_owned();
    if name.extension().is_none_or(|e| e != EXTENSION) {
        name.as_mut_os_string().push(format!(".{EXTENSION}"));
    }
    Some(name)
}

/// The program for a number of axes, with its problem named after the file where that is a name.
fn program(axes: u8, path: &Path) -> String {
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
    let problem = match is_name(stem) {
        true => stem,
        false => "first",
    };
    let [_, _, three] = PROGRAMS;
    let text = PROGRAMS
        .get(usize::from(axes) - 1)
        .copied()
        .unwrap_or(three);
    let shown = path.display().to_string();
    text.replace("NAME.torre", &shown)
        .replace("problem NAME", &format!("problem {problem}"))
}

/// Whether a word can be the name of a problem.
fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    let starts = letters.next().is_some_and(|c| c.is_ascii_alphabetic());
    starts
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !torre_grammar::KEYWORDS.contains(&word)
}
