//! Why a place is not relied on.

use rustix::io::Errno;
use std::fmt;
use std::path::{Path, PathBuf};

/// A place that is not relied on, or a process that relies on none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The process itself: the reason follows "this process".
    Process(&'static str),
    /// Neither `XDG_CACHE_HOME` nor `HOME` is an absolute path.
    NoHome,
    Place {
        path: PathBuf,
        fault: Fault,
    },
}

/// A fault of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It belongs to this user.
    Owner(u32),
    /// Members of this group may write to it.
    Group(u32),
    /// All users may write to it.
    Everyone,
    /// All users may make files in it, as in `/tmp`, where only the user's should be.
    Shared,
    /// It is a symbolic link, where none is followed.
    Link,
    /// Symbolic links lead to symbolic links without an end.
    Links,
    NoFolder,
    NoFile,
    /// The file has several names: hard links.
    Names,
    /// The file has more bytes than it may have.
    Size(u64),
    /// Another process has held the lock for too long.
    Locked,
    Io(Errno),
}

impl Refusal {
    /// For `map_err`: a failed call on a path.
    pub(crate) fn io(path: &Path) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::at(path, Fault::Io(errno))
    }

    /// A failed call of the standard library on a path.
    pub(crate) fn from_std(path: &Path, error: &std::io::Error) -> Self {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        Self::at(path, Fault::Io(errno))
    }

    pub(crate) fn at(path: &Path, fault: Fault) -> Self {
        Self::Place {
            path: path.to_owned(),
            fault,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(user) => write!(f, "belongs to the user with ID {user}"),
            Self::Group(group) => write!(f, "may be written by the group with ID {group}"),
            Self::Everyone => f.write_str("may be written by everybody"),
            Self::Shared => f.write_str("lets everybody make files in it"),
            Self::Link => f.write_str("is a symbolic link"),
            Self::Links => f.write_str("is a symbolic link without an end"),
            Self::NoFolder => f.write_str("is no folder"),
            Self::NoFile => f.write_str("is no regular file"),
            Self::Names => f.write_str("has more than one name (hard links)"),
            Self::Size(bytes) => write!(f, "has {bytes} bytes, more than it may have"),
            Self::Locked => f.write_str("is locked by another process"),
            Self::Io(errno) => write!(f, "cannot be used: {}", std::io::Error::from(*errno)),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(reason) => write!(f, "this process {reason}"),
            Self::NoHome => f.write_str(
                "neither `XDG_CACHE_HOME` nor `HOME` names a folder by an absolute path",
            ),
            Self::Place { path, fault } => write!(f, "`{}` {fault}", path.display()),
        }
    }
}

impl std::error::Error for Refusal {}
