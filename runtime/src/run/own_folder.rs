//! The folder of results of a run, which writes there as long as it has it.

use crate::output::FileError;
use crate::output::claim::Claim;
use crate::output::open::Place;
use std::path::{Path, PathBuf};

/// A folder of results. Each file that is written has its path from [`Self::place`].
#[derive(Clone, Debug)]
pub struct OwnFolder {
    path: PathBuf,
    /// The lock of the folder, if the run has one.
    lock: Option<Place>,
}

impl OwnFolder {
    /// A folder without a lock.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            lock: None,
        }
    }

    /// The folder as long as the run has it by its claim.
    pub fn claimed(mut self, claim: &Claim) -> Self {
        self.lock = claim.guard();
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file that is read.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// The path of a file that is written or removed now. An error where the lock of the folder was removed, moved or
    /// replaced: another run may write there.
    pub fn place(&self, name: &str) -> Result<PathBuf, FileError> {
        self.check()?;
        Ok(self.path.join(name))
    }

    /// The same error, before a file that was begun gets its name.
    pub fn check(&self) -> Result<(), FileError> {
        self.lock.as_ref().map_or(Ok(()), Place::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::claim::LOCK;

    #[test]
    fn a_folder_whose_lock_is_lost_has_no_places() {
        let folder = tempfile::tempdir().unwrap();
        let claim = Claim::take(folder.path(), "x").unwrap();
        let own = OwnFolder::new(folder.path()).claimed(&claim);
        assert_eq!(own.place("a.png").unwrap(), folder.path().join("a.png"));
        std::fs::remove_file(folder.path().join(LOCK)).unwrap();
        own.place("a.png").unwrap_err();
        own.check().unwrap_err();
        assert_eq!(own.join("a.npy"), folder.path().join("a.npy"));
        // Without a claim there is nothing to lose.
        OwnFolder::new(folder.path()).place("a.png").unwrap();
    }
}
