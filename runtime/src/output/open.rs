//! Opening files of the user's.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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

#[cfg(test)]
mod tests {
    use super::*;

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
