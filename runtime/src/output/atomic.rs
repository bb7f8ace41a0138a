//! Files and folders that appear under their final name only when they are complete.
//!
//! The content goes to `NAME.BOOT-PID-N.part` beside the final name, is synchronised to the disk and then renamed, and
//! the folder is synchronised so that the new name survives a loss of power. Dropping an unfinished file removes it,
//! and so does an interrupt ([`abandon`]); a killed process leaves a `.part`, which [`leftovers`] clears. As long as a
//! `.part` is being written, its writer has a lock on it, which tells it from one that was left.

mod folder;
mod leftovers;
mod live;
mod name;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub use folder::AtomicFolder;
pub use leftovers::{remove_leftovers, remove_leftovers_of};
pub use live::{abandon, try_abandon};
pub(super) use live::{forget, unwatch, watch};
pub use name::{SUFFIX, make_folder};

use super::error::{Attempt, Cause, FileError};
use live::Live;
use name::{make_parent, parent, sync_folder};

/// A file being written under a temporary name.
#[derive(Debug)]
pub struct AtomicFile {
    /// None only after `commit` took it.
    file: Option<BufWriter<File>>,
    live: Live,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will be called `target`; makes the folders above it.
    pub fn create(target: &Path) -> Result<Self, FileError> {
        let fail = |cause| FileError::new(target, Attempt::Create, cause);
        let io = |error| fail(Cause::Io(error));
        // A device or a pipe is not replaced by a file: that was not meant.
        let device = fs::metadata(target).is_ok_and(|old| !old.is_file() && !old.is_dir());
        if device || leads_to_an_open_file(target) {
            return Err(fail(Cause::Irregular));
        }
        make_parent(target).map_err(io)?;
        let make = |path: &Path| {
            let file = OpenOptions::new().write(true).create_new(true).open(path)?;
            Ok(leftovers::lock_new(&file).then_some(file))
        };
        let (live, file) = live::begin(target, make).map_err(io)?;
        Ok(Self {
            file: Some(BufWriter::with_capacity(1 << 16, file)),
            live,
            target: target.to_path_buf(),
        })
    }

    /// Gives the file permissions before it has its final name.
    pub fn set_permissions(&mut self, permissions: fs::Permissions) -> Result<(), FileError> {
        let set = |file: &mut BufWriter<File>| file.get_ref().set_permissions(permissions);
        self.open_file()
            .and_then(set)
            .map_err(FileError::io(&self.target, Attempt::Write))
    }

    /// The final name.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes `bytes`, with an error that names the file.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.write_all(bytes)
            .map_err(FileError::io(&self.target, Attempt::Write))
    }

    /// Makes the content durable and gives the file its final name, replacing a file with that name.
    pub fn commit(mut self) -> Result<(), FileError> {
        let Some(buffer) = self.file.take() else {
            return Ok(());
        };
        // The file is open until it has its final name, and with it the lock.
        let file = buffer
            .into_inner()
            .map_err(|error| error.into_error())
            .map_err(FileError::io(&self.target, Attempt::Write))?;
        file.sync_all()
            .map_err(FileError::io(&self.target, Attempt::Write))?;
        self.live
            .finish(|temporary| fs::rename(temporary, &self.target).map(|()| true))
            .and_then(|()| sync_folder(parent(&self.target)))
            .map_err(FileError::io(&self.target, Attempt::Rename))
    }

    fn open_file(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.file
            .as_mut()
            .ok_or_else(|| io::Error::other("the file is already finished"))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open_file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open_file()?.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.open_file()?.seek(to)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // Without a flush of the buffer: the content is given up.
            drop(file.into_parts());
        }
    }
}

/// Links that are followed before there are too many.
const LINKS: usize = 40;

/// Whether a name is a link of the system's to an open file of a process, as `/dev/stdout` is. A result in its place
/// would be there for all processes, whatever it leads to now.
fn leads_to_an_open_file(target: &Path) -> bool {
    let mut at = target.to_path_buf();
    for _ in 0..LINKS {
        let Ok(next) = fs::read_link(&at) else {
            return false;
        };
        let folder = fs::canonicalize(parent(&at)).unwrap_or_default();
        if folder == Path::new("/dev") || folder.starts_with("/proc") {
            return true;
        }
        at = parent(&at).join(next);
    }
    true
}

/// Writes a whole small file.
pub fn write_file(target: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut file = AtomicFile::create(target)?;
    file.put(bytes)?;
    file.commit()
}

/// Whether a file of this name could be written: makes the folders above it, and tries.
pub fn try_file(target: &Path) -> Result<(), FileError> {
    if target.is_dir() {
        let error = io::Error::from(io::ErrorKind::IsADirectory);
        return Err(FileError::io(target, Attempt::Create)(error));
    }
    AtomicFile::create(target).map(drop)
}

#[cfg(test)]
mod tests;
