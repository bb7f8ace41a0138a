//! The temporary names that this process is writing to, so that an interrupt can remove them.

use super::name::{ATTEMPTS, discard, temporary_name};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The temporary names that are being written. Held whenever a name is made, finished or removed.
static NAMES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn names() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // The set is whole after every statement.
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets an interrupt remove a file too that is not being written.
pub fn watch(path: &Path) {
    names().insert(path.to_owned());
}

/// Removes such a file.
pub fn unwatch(path: &Path) -> io::Result<()> {
    let mut names = names();
    names.remove(path);
    fs::remove_file(path)
}

/// Leaves such a file where it is.
pub fn forget(path: &Path) {
    names().remove(path);
}

/// A temporary name in use; the file or folder with it is removed when this is dropped unfinished.
#[derive(Debug)]
pub struct Live {
    path: PathBuf,
    finished: bool,
}

/// Makes something new under a temporary name for `target`. `make` returns `None` where the name has to be given up.
pub fn begin<R>(
    target: &Path,
    make: impl Fn(&Path) -> io::Result<Option<R>>,
) -> io::Result<(Live, R)> {
    let mut failed = io::ErrorKind::AlreadyExists.into();
    for _ in 0..ATTEMPTS {
        let path = temporary_name(target)?;
        let mut names = names();
        match make(&path) {
            Ok(Some(made)) => {
                names.insert(path.clone());
                let live = Live {
                    path,
                    finished: false,
                };
                return Ok((live, made));
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => failed = error,
            Err(error) => return Err(error),
        }
    }
    Err(failed)
}

impl Live {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Does something with the name that an interrupt must not divide.
    pub fn whole<R>(&self, work: impl FnOnce(&Path) -> R) -> R {
        let _names = names();
        work(&self.path)
    }

    /// Gives the file or folder its final name. `rename` says whether nothing has the temporary name any more; a file
    /// or folder that still has it, or has it after an error, is removed with this.
    pub fn finish(&mut self, rename: impl FnOnce(&Path) -> io::Result<bool>) -> io::Result<()> {
        let mut names = names();
        if rename(&self.path)? {
            names.remove(&self.path);
            self.finished = true;
        }
        Ok(())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.finished {
            let mut names = names();
            names.remove(&self.path);
            discard(remove(&self.path));
        }
    }
}

/// Removes a file, or a folder with all that is in it; a link itself.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Gives up everything that is being written, before the process ends: removes it, and lets no other thread begin or
/// finish a file any more. Waits for a renaming or for a chunk of a store.
pub fn abandon() {
    let names = names();
    for path in names.iter() {
        discard(remove(path));
    }
    std::mem::forget(names);
}

/// The same without a wait: where a thread is at a name now, all stays as it is, and a later run removes it.
pub fn try_abandon() {
    let Ok(names) = NAMES.try_lock() else { return };
    for path in names.iter() {
        discard(remove(path));
    }
    std::mem::forget(names);
}
