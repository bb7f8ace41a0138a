//! Errors of files, as data; the text is written once, in `Display`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::checkpoint::CheckpointFault;
use super::npy::NpyFault;

/// A file operation that failed: the path, the attempt, and the cause.
#[derive(Debug)]
pub struct FileError {
    /// The final name of the file or folder, as the user knows it.
    pub path: PathBuf,
    /// The operation that was attempted.
    pub attempt: Attempt,
    /// Why it failed.
    pub cause: Cause,
}

/// An operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Making a new file or folder under its temporary name.
    Create,
    /// Writing its content.
    Write,
    /// Giving it its final name.
    Rename,
    /// Opening it for reading.
    Open,
    /// Reading its content.
    Read,
    /// Removing files that an earlier run left.
    Remove,
    /// Having a folder for a run alone.
    Claim,
}

/// Why a file operation failed.
#[derive(Debug)]
pub enum Cause {
    /// The operating system refused.
    Io(io::Error),
    /// The content is no `.npy` that can be read.
    Npy(NpyFault),
    /// The content is no checkpoint that this run can take.
    Checkpoint(CheckpointFault),
    /// Arrays that must have one shape, or one number of axes, do not.
    Shape {
        /// The shape that would fit.
        expected: Vec<usize>,
        /// The shape that came.
        found: Vec<usize>,
    },
    /// The folder at this path was not written by Torre, so it is not replaced.
    ForeignFolder {
        /// The file that such a folder would contain.
        marker: &'static str,
    },
    /// A name that the format cannot hold.
    Name(String),
    /// A device, a pipe or something else that is neither a file nor a folder.
    Irregular,
    /// A file that a run has open is not at its path any more.
    Gone,
    /// Another run writes to this folder; it says which one it is.
    InUse(String),
    /// The folder has results of another run: the differences to this one's.
    OtherResults(String),
}

impl FileError {
    /// An error with a cause that the format knows.
    pub fn new(path: &Path, attempt: Attempt, cause: Cause) -> Self {
        Self {
            path: path.to_path_buf(),
            attempt,
            cause,
        }
    }

    /// Wraps an error of the operating system; for `map_err`.
    pub fn io(path: &Path, attempt: Attempt) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(path, attempt, Cause::Io(error))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Write => "write",
            Self::Rename => "finish",
            Self::Open => "open",
            Self::Read => "read",
            Self::Remove => "remove",
            Self::Claim => "use",
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Npy(fault) => fault.fmt(f),
            Self::Checkpoint(fault) => fault.fmt(f),
            Self::Shape { expected, found } => {
                write!(
                    f,
                    "an array has shape {found:?} where {expected:?} is needed"
                )
            }
            Self::ForeignFolder { marker } => write!(
                f,
                "a folder without `{marker}` exists there and is not replaced"
            ),
            Self::Irregular => f.write_str("it is no regular file"),
            Self::Gone => f.write_str("it was removed, moved or replaced while the run went on"),
            Self::InUse(run) if run.is_empty() => f.write_str("another run writes to it"),
            Self::InUse(run) => write!(f, "another run writes to it ({run})"),
            Self::OtherResults(what) => write!(f, "it has results {what}"),
            Self::Name(name) => write!(f, "the name {name:?} cannot be stored in this format"),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            attempt,
            cause,
        } = self;
        write!(f, "cannot {attempt} `{}`: {cause}", path.display())
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Io(error) => Some(error),
            _ => None,
        }
    }
}
