//! Folders that appear under their final name when they are complete.

use super::leftovers;
use super::live::{self, Live};
use super::name::{discard, make_parent, parent, sync_folder, temporary_name};
use crate::output::error::{Attempt, Cause, FileError};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder being filled under a temporary name.
#[derive(Debug)]
pub struct AtomicFolder {
    live: Live,
    /// Open as long as the folder is written, and with it the lock.
    _lock: File,
    target: PathBuf,
    marker: &'static str,
}

impl AtomicFolder {
    /// Refuses what [`Self::create`] would refuse because of a file or folder of that name.
    pub fn check(target: &Path, marker: &'static str) -> Result<(), FileError> {
        check_replaceable(target, target, marker, Attempt::Create)
    }

    /// Starts a folder that will be called `target`. A folder of that name is replaced in `commit` only if it is
    /// empty or contains the file `marker`, so that a wrong path never costs a user their data.
    pub fn create(target: &Path, marker: &'static str) -> Result<Self, FileError> {
        Self::check(target, marker)?;
        let fail = FileError::io(target, Attempt::Create);
        let make = |path: &Path| {
            fs::create_dir(path)?;
            match File::open(path) {
                Ok(folder) => Ok(leftovers::lock_new(&folder).then_some(folder)),
                // Taken for a leftover and removed already.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        let (live, lock) = make_parent(target)
            .and_then(|()| live::begin(target, make))
            .map_err(fail)?;
        Ok(Self {
            live,
            _lock: lock,
            target: target.to_path_buf(),
            marker,
        })
    }

    /// The final name.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes a whole file inside the folder and makes it durable; makes the folders above it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let write = |temporary: &Path| {
            let path = temporary.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let mut file = File::create(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        self.live
            .whole(write)
            .map_err(FileError::io(&self.target.join(name), Attempt::Write))
    }

    /// Gives the folder its final name, and removes an older one, with which it changes places.
    pub fn commit(self) -> Result<(), FileError> {
        self.commit_by(exchange)
    }

    /// The same, with a function that lets two names change places.
    pub(super) fn commit_by(
        mut self,
        exchange: impl Fn(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let (target, marker) = (&self.target, self.marker);
        let fail = || FileError::io(target, Attempt::Rename);
        check_replaceable(target, target, marker, Attempt::Rename)?;
        sync_tree(self.live.path()).map_err(fail())?;
        let mut late = None;
        let replace = |temporary: &Path| match fs::symlink_metadata(target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::rename(temporary, target).map(|()| true)
            }
            Err(error) => Err(error),
            Ok(_) => match exchange(temporary, target) {
                Ok(()) => {
                    // The name may stand for another folder by now.
                    late = check_replaceable(temporary, target, marker, Attempt::Rename).err();
                    match late {
                        Some(_) => exchange(temporary, target).map(|()| false),
                        None => Ok(false),
                    }
                }
                Err(error) if is_unsupported(&error) => {
                    step_aside(temporary, target).map(|()| false)
                }
                Err(error) => Err(error),
            },
        };
        let replaced = self.live.finish(replace);
        if let Some(error) = late {
            return Err(error);
        }
        replaced.map_err(fail())?;
        // An older folder has the temporary name now. Another process may be clearing it away too.
        match live::remove(self.live.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::io(target, Attempt::Remove)(error));
            }
            _ => {}
        }
        sync_folder(parent(target)).map_err(fail())
    }
}

/// Lets two names change places in one step, so that there is always something complete under each.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Whether a file system, such as that of a network, or a kernel cannot exchange names.
fn is_unsupported(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP]
        .map(Some)
        .contains(&errno)
}

/// Replaces a folder where names cannot be exchanged: the older one steps aside first, and ends up with the temporary
/// name. A kill between the two steps leaves both complete, the older one under a name that is nobody's leftover.
fn step_aside(temporary: &Path, target: &Path) -> io::Result<()> {
    let aside = name_aside(target)?;
    fs::rename(target, &aside)?;
    if let Err(error) = fs::rename(temporary, target) {
        discard(fs::rename(&aside, target));
        return Err(error);
    }
    fs::rename(aside, temporary)
}

/// `NAME.BOOT-PID-N.old` beside `target`, new with each call.
pub(super) fn name_aside(target: &Path) -> io::Result<PathBuf> {
    Ok(temporary_name(target)?.with_extension("old"))
}

/// Whether the folder at `path`, for the user at `target`, may be replaced, or none is there.
fn check_replaceable(
    path: &Path,
    target: &Path,
    marker: &'static str,
    attempt: Attempt,
) -> Result<(), FileError> {
    if path.is_symlink() {
        let error = io::Error::other("it is a symbolic link, which a folder would replace");
        return Err(FileError::io(target, attempt)(error));
    }
    let mut entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(FileError::io(target, attempt)(error)),
    };
    if path.join(marker).is_file() || entries.next().is_none() {
        return Ok(());
    }
    Err(FileError::new(
        target,
        attempt,
        Cause::ForeignFolder { marker },
    ))
}

fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        }
    }
    sync_folder(folder)
}
