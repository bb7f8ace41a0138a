//! Why a checkpoint is refused.

use crate::output::array::ElementType;
use std::fmt;

/// The version that is written and read.
pub const VERSION: u32 = 1;

/// Why a checkpoint is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointFault {
    /// The file does not start as checkpoints do.
    Magic,
    /// A version that this program does not read.
    Version(u32),
    /// The header's length or checksum is wrong, or it is no JSON.
    HeaderDamaged,
    /// This entry of the header is missing or has a wrong form.
    Header(&'static str),
    /// The file is shorter or longer than its header says.
    Length {
        /// Bytes that the header implies.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// Written for another scheme, problem or precision.
    Other {
        /// Which of them.
        what: &'static str,
        /// The value in the run.
        expected: String,
        /// The value in the file.
        found: String,
    },
    /// No array of this name.
    NoArray(String),
    /// The array has another type or shape than the run needs.
    Array {
        /// Its name.
        name: String,
        /// Type and shape that the run has.
        expected: (ElementType, Vec<usize>),
        /// Type and shape that the file has.
        found: (ElementType, Vec<usize>),
    },
    /// The values of this array are damaged.
    Checksum(String),
    /// The values in this file beside the checkpoint are not the ones that it was written for.
    File(String),
    /// No checksum of this file beside the checkpoint: an earlier version wrote none after passes of GPUs.
    NoSum(String),
    /// Nothing says that ghosts along the inner axis in this file beside the checkpoint are up to date, and the run
    /// reads them.
    Ghosts(String),
    /// The fields are in files beside the checkpoint.
    InFiles,
    /// The fields are in the checkpoint, and not in files beside it.
    InCheckpoint,
}

impl CheckpointFault {
    /// Whether the file differs from the one that was written.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Magic
                | Self::HeaderDamaged
                | Self::Length { .. }
                | Self::Checksum(_)
                | Self::File(_)
        )
    }
}

impl fmt::Display for CheckpointFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("not a checkpoint of Torre"),
            Self::Version(version) => write!(
                f,
                "the checkpoint has version {version} of the format, this program reads {VERSION}"
            ),
            Self::HeaderDamaged => f.write_str("the header of the checkpoint is damaged"),
            Self::Header(entry) => {
                write!(f, "the header of the checkpoint has no valid {entry:?}")
            }
            Self::Length { expected, found } => write!(
                f,
                "the checkpoint has {found} bytes where its header needs {expected}"
            ),
            Self::Other {
                what,
                expected,
                found,
            } => {
                let what = match *what {
                    "scheme" => {
                        "scheme, another domain, or other parameters, media or values of files"
                    }
                    "problem" => "problem, with other start values, sources, probes or records",
                    what => what,
                };
                write!(
                    f,
                    "the checkpoint was written for another {what} ({}, this run has {expected})",
                    found.escape_debug()
                )
            }
            Self::File(name) => write!(
                f,
                "the file `{name}` beside the checkpoint is damaged: its checksum differs"
            ),
            Self::NoSum(name) => write!(
                f,
                "the checkpoint has no checksum of the file `{name}` beside it: an earlier version of Torre wrote it"
            ),
            Self::Ghosts(name) => write!(
                f,
                "ghosts along the inner axis in the file `{name}` beside the checkpoint may be out of date, and the \
                 towers of this run read them in memory"
            ),
            Self::InFiles => f.write_str("the fields of this state are in files beside it"),
            Self::InCheckpoint => f.write_str(
                "the fields of this state are in the checkpoint, not in files beside it",
            ),
            Self::NoArray(name) => write!(f, "the checkpoint has no array `{name}`"),
            Self::Array {
                name,
                expected,
                found,
            } => write!(
                f,
                "the array `{name}` of the checkpoint is {} {:?}, this run needs {} {:?}",
                found.0, found.1, expected.0, expected.1
            ),
            Self::Checksum(name) => write!(
                f,
                "the array `{}` of the checkpoint is damaged: its checksum differs",
                name.escape_debug()
            ),
        }
    }
}

impl std::error::Error for CheckpointFault {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkpoint may come from others.
    #[test]
    fn text_of_a_file_does_not_reach_a_terminal_as_it_is() {
        let text = || "\u{1b}[31mred\u{7}".to_owned();
        let other = CheckpointFault::Other {
            what: "scheme",
            expected: "0123".to_owned(),
            found: text(),
        };
        for fault in [other, CheckpointFault::Checksum(text())] {
            let said = fault.to_string();
            assert!(
                said.contains("[31mred") && !said.contains(char::is_control),
                "{said:?}"
            );
        }
    }
}
