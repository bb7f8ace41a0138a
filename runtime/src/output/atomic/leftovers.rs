//! Temporary files and folders that no process writes any more.
//!
//! A writer locks its file or folder (`flock`), also against processes in other containers, for which IDs of processes
//! say nothing. A file that can be locked is left over. Locks of a network's disk may hold within one machine only. So
//! a file that was begun on another machine, or before this one was started, is removed only after some time without a
//! change; so is a file that cannot be locked at all.

use super::live::remove;
use super::name::{SUFFIX, boot, parent};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The least time without a change of a file that another boot began.
const OTHER_BOOT: Duration = Duration::from_secs(3600);

/// The least time without a change of a file that cannot be locked.
const WITHOUT_LOCK: Duration = Duration::from_secs(24 * 3600);

/// Locks a file or folder that was just made, until it is closed. False if another process took it for a leftover
/// meanwhile: it is about to be removed.
pub(super) fn lock_new(file: &File) -> bool {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => false,
        // Where there are no locks, age has to do.
        Err(_) => true,
        Ok(()) => file.metadata().is_ok_and(|metadata| metadata.nlink() > 0),
    }
}

/// Removes the temporary files and folders in `folder` (not below) that no process writes any more, and returns their
/// paths. A file that cannot be removed stays, without harm.
pub fn remove_leftovers(folder: &Path) -> Vec<PathBuf> {
    remove_those(folder, |_| true)
}

/// The same for temporary files of one file only.
pub fn remove_leftovers_of(target: &Path) -> Vec<PathBuf> {
    match target.file_name().and_then(|name| name.to_str()) {
        Some(name) => remove_those(parent(target), |of| of == name),
        None => Vec::new(),
    }
}

fn remove_those(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(temporary) = name.to_str().and_then(Temporary::parse) else {
            continue;
        };
        let path = entry.path();
        // Locked until it is removed, so that a process that has just made it notices.
        if wanted(temporary.of)
            && let Some(_locked) = left(&path, &temporary)
            && remove(&path).is_ok()
        {
            removed.push(path);
        }
    }
    removed.sort();
    removed
}

/// Locks a temporary file or folder that no process writes any more; nothing where one may.
fn left(path: &Path, temporary: &Temporary<'_>) -> Option<File> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() && !found.is_dir() {
        return None;
    }
    // A network's disk locks only files that are open for writing, which a folder never is.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .write(found.is_file())
        .custom_flags(flags.bits() as i32)
        .open(path)
        .ok()?;
    let now = opened.metadata().ok()?;
    if (now.dev(), now.ino()) != (found.dev(), found.ino()) {
        return None;
    }
    let age = SystemTime::now().duration_since(found.modified().ok()?);
    let unchanged = |time| age.is_ok_and(|age| age > time);
    let left = match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => boot() == Some(temporary.boot) || unchanged(OTHER_BOOT),
        Err(Errno::WOULDBLOCK) => false,
        Err(_) => unchanged(WITHOUT_LOCK),
    };
    left.then_some(opened)
}

/// The parts of a temporary name.
struct Temporary<'a> {
    /// The final name.
    of: &'a str,
    boot: &'a str,
}

impl<'a> Temporary<'a> {
    /// Reads `NAME.BOOT-PID-N.part`.
    fn parse(name: &'a str) -> Option<Self> {
        let (of, rest) = name.strip_suffix(SUFFIX)?.rsplit_once('.')?;
        let mut parts = rest.split('-');
        let (boot, pid, number) = (parts.next()?, parts.next()?, parts.next()?);
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let hex = boot.len() == 8 && boot.bytes().all(|b| b.is_ascii_hexdigit());
        let plain = hex && digits(pid) && digits(number) && parts.next().is_none();
        (plain && !of.is_empty()).then_some(Self { of, boot })
    }
}
