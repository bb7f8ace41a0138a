//! Names of the files of outputs.

use crate::output::checksum::Xxh64;
use torre_compiler::problem::{Output, OutputKind, StaticOutput, is_in_file_names};

/// The folder of an output's files.
pub(super) fn folder_of(kind: OutputKind) -> &'static str {
    match kind {
        OutputKind::Slice { .. } => "slices",
        OutputKind::Volume => "volumes",
    }
}

/// The files of an output that does not change, without their endings.
pub(super) fn static_stem(output: &StaticOutput) -> String {
    frame(&static_series(output), 0)
}

/// The files of an output after a step, without their endings.
pub(super) fn stem(output: &Output, step: u64) -> String {
    frame(&series(output), step)
}

/// The files of an output together, without steps and endings.
pub fn series(output: &Output) -> String {
    let folder = match output.spectrum {
        Some(_) => "spectra",
        None => folder_of(output.kind),
    };
    format!("{folder}/{}", file_name(&output.name))
}

/// The same of an output that does not change.
pub fn static_series(output: &StaticOutput) -> String {
    format!("{}/{}", folder_of(output.kind), file_name(&output.name))
}

fn frame(series: &str, step: u64) -> String {
    format!("{series}-{step:08}")
}

/// Letters of a file's name before the step and the ending; file systems take 255, some of which temporary names need.
const LONGEST: usize = 160;

/// A name as a file's name: signs that could be misread become `_`, and the end of a long one becomes a number that
/// distinguishes it.
pub(super) fn file_name(name: &str) -> String {
    let sign = |c| if is_in_file_names(c) { c } else { '_' };
    let mut file: String = name.chars().map(sign).collect();
    if file.starts_with('.') {
        file.insert(0, '_');
    }
    if file.len() > LONGEST {
        file.truncate(LONGEST - 17);
        file.push_str(&format!("-{:016x}", Xxh64::of(name.as_bytes())));
    }
    file
}
