//! Opening files of the user's, and whether they still are where they were opened.

use super::error::{Attempt, Cause, FileError};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Opens a regular file for reading. A pipe or a device is an error: it could be waited for without an end, and its
/// content can be read only once.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    let kind = file.metadata()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(file),
        (_, true) => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        )),
    }
}

/// An open file and its path.
#[derive(Clone, Debug)]
pub struct Place {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Place {
    /// The place of a file that was opened at a path.
    pub fn of(file: &File, path: &Path) -> io::Result<Self> {
        let now = file.metadata()?;
        Ok(Self {
            path: path.to_owned(),
            device: now.dev(),
            inode: now.ino(),
        })
    }

    /// Whether the path leads to this file, and not to another one or nowhere.
    pub fn is_kept(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|named| (named.dev(), named.ino()) == (self.device, self.inode))
    }

    /// An error where the path does not lead to this file any more.
    pub fn check(&self) -> Result<(), FileError> {
        match self.is_kept() {
            true => Ok(()),
            false => Err(FileError::new(&self.path, Attempt::Write, Cause::Gone)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_removed_or_replaced_lose_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["file", "other"].map(|name| folder.path().join(name));
        fs::write(&path, "x").unwrap();
        let place = Place::of(&File::open(&path).unwrap(), &path).unwrap();
        place.check().unwrap();
        fs::rename(&path, &other).unwrap();
        let error = place.check().unwrap_err().to_string();
        assert!(error.contains("removed"), "{error}");
        fs::write(&path, "x").unwrap();
        assert!(!place.is_kept());
        fs::rename(&other, &path).unwrap();
        place.check().unwrap();
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for path in [&pipe, Path::new("/dev/zero")] {
            let error = open(path).unwrap_err();
            assert_eq!(error.to_string(), "it is no regular file");
        }
        let error = open(folder.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        open(&link).unwrap();
    }
}
