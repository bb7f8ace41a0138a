//! A folder of results belongs to one run at a time.
//!
//! The run that writes to a folder has a lock (`flock`) on the file `.torre.lock` in it. Unlike the ID of a process, a
//! lock means the same in every container, and it ends with the process, however that ends. The file says which run
//! it is; it is removed at the end, and a run that is killed leaves it without a lock.

use super::atomic::{forget, make_folder, unwatch, watch};
use super::error::{Attempt, Cause, FileError};
use super::open::Place;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name of the file that is locked, which is removed at the end of a run.
pub const LOCK: &str = ".torre.lock";

/// The most bytes of a run's description of itself.
const MAX_BYTES: u64 = 500;

/// Files that others removed while they were being locked; more than a few are no accident.
const ATTEMPTS: usize = 100;

/// A folder that no other run writes to as long as this lives.
#[derive(Debug)]
pub struct Claim {
    file: File,
    folder: PathBuf,
    place: Place,
    locked: bool,
    _made: Made,
}

/// Folders that were made for a claim. Empty folders are removed at the end, as after a run that was refused.
#[derive(Debug)]
struct Made {
    /// The innermost first.
    folders: Vec<PathBuf>,
}

impl Made {
    /// The folders that have to be made for a folder.
    fn before(folder: &Path) -> Self {
        let absent = folder.ancestors().take_while(|path| {
            let is_named = !path.as_os_str().is_empty();
            is_named && !path.exists()
        });
        Self {
            folders: absent.map(Path::to_owned).collect(),
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for folder in &self.folders {
            // Stays unless it is empty.
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Claim {
    /// Makes a folder if need be and claims it. `run` says which run this is, in a few words.
    pub fn take(folder: &Path, run: &str) -> Result<Self, FileError> {
        let fail = || FileError::io(folder, Attempt::Claim);
        let made = Made::before(folder);
        let path = folder.join(LOCK);
        for attempt in 1..=ATTEMPTS {
            match make_folder(folder) {
                // A run that was refused removed one of the folders above it meanwhile.
                Err(error) if attempt < ATTEMPTS && was_removed(&error) => continue,
                done => done.map_err(FileError::io(folder, Attempt::Create))?,
            }
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .custom_flags(flags.bits() as i32)
                .open(&path);
            let file = match file {
                // The run that made the folder removed it meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file.map_err(fail())?,
            };
            let now = file.metadata().map_err(fail())?;
            if !now.is_file() {
                return Err(FileError::new(&path, Attempt::Claim, Cause::Irregular));
            }
            let locked = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => true,
                Err(Errno::WOULDBLOCK) => {
                    let cause = Cause::InUse(description(&file));
                    return Err(FileError::new(folder, Attempt::Claim, cause));
                }
                // A disk that knows no locks.
                Err(_) => false,
            };
            // The run that had it may have removed it meanwhile.
            let place = Place::of(&file, &path).map_err(fail())?;
            if place.is_kept() {
                let mut claim = Self {
                    file,
                    folder: folder.to_owned(),
                    place,
                    locked,
                    _made: made,
                };
                claim.describe(run).map_err(fail())?;
                if locked {
                    watch(&path);
                }
                return Ok(claim);
            }
        }
        let cause = Cause::InUse(String::new());
        Err(FileError::new(folder, Attempt::Claim, cause))
    }

    /// Claims several folders, each of them once.
    pub fn take_all(folders: &[&Path], run: &str) -> Result<Vec<Self>, FileError> {
        let mut claims: Vec<Self> = Vec::new();
        for folder in folders {
            let real = fs::canonicalize(folder).ok();
            let known =
                |claim: &Self| real.is_some() && fs::canonicalize(&claim.folder).ok() == real;
            if !claims.iter().any(known) {
                claims.push(Self::take(folder, run)?);
            }
        }
        // They end in this order: a folder inside of another one is removed before it.
        claims.reverse();
        Ok(claims)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where its lock is, if it keeps other runs away: without it, another run can claim the folder.
    pub fn guard(&self) -> Option<Place> {
        self.locked.then(|| self.place.clone())
    }

    /// Whether other runs are kept away. Some disks of networks know no locks.
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    fn describe(&mut self, run: &str) -> std::io::Result<()> {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = match host.trim() {
            "" => String::new(),
            host => format!(" on {host}"),
        };
        let text = format!("{run}, process {}{host}\n", std::process::id());
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // While it is locked: no other process can have it. Without locks another process may use the same file.
        if self.locked {
            let path = self.folder.join(LOCK);
            match self.place.is_kept() {
                true => _ = unwatch(&path),
                // Another file with this name is the lock of another run.
                false => forget(&path),
            }
        }
    }
}

/// Whether making a folder may have failed because another run removed it, or one above it, at the same moment.
fn was_removed(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists)
}

/// The description that a run wrote of itself, without characters that could confuse a terminal.
fn description(file: &File) -> String {
    let mut text = Vec::new();
    // Without it there is less to say.
    let _ = file.take(MAX_BYTES).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn in_use(result: Result<Claim, FileError>) -> String {
        match result.map_err(|error| error.cause) {
            Err(Cause::InUse(run)) => run,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_folder_has_one_run() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a/b");
        let one = Claim::take(&folder, "pond.torre").unwrap();
        assert!(one.is_locked());
        let run = in_use(Claim::take(&folder, "other"));
        let expected = format!("pond.torre, process {}", std::process::id());
        assert!(run.starts_with(&expected), "{run}");
        // By another path too.
        let link = scratch.path().join("link");
        symlink(&folder, &link).unwrap();
        in_use(Claim::take(&link, "other"));
        drop(one);
        assert!(!scratch.path().join("a").exists());
        fs::create_dir_all(&folder).unwrap();
        drop(Claim::take(&folder, "x").unwrap());
        assert!(fs::read_dir(&folder).unwrap().next().is_none());
        // Left by a run that was killed.
        fs::write(
            folder.join(LOCK),
            "a longer text than what comes now, process 123456789",
        )
        .unwrap();
        let again = Claim::take(&folder, "x").unwrap();
        let run = in_use(Claim::take(&folder, "other"));
        assert!(
            run.starts_with("x, process") && !run.contains("longer"),
            "{run}"
        );
        drop(again);
    }

    /// After a user removed the lock, a second run has the folder.
    #[test]
    fn a_lost_lock_is_not_that_of_another_run() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let lost = Claim::take(folder, "one").unwrap();
        lost.guard().unwrap().check().unwrap();
        fs::remove_file(folder.join(LOCK)).unwrap();
        let other = Claim::take(folder, "two").unwrap();
        lost.guard().unwrap().check().unwrap_err();
        drop(lost);
        other.guard().unwrap().check().unwrap();
        in_use(Claim::take(folder, "three"));
    }

    #[test]
    fn one_folder_under_two_names_is_claimed_once() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a");
        let same = scratch.path().join("b/../a");
        fs::create_dir(scratch.path().join("b")).unwrap();
        let other = scratch.path().join("c");
        let claims = Claim::take_all(&[&folder, &same, &other], "x").unwrap();
        assert_eq!(claims.len(), 2);
        in_use(Claim::take(&other, "y"));
    }

    #[test]
    fn a_lock_is_no_way_to_other_files() {
        let scratch = tempfile::tempdir().unwrap();
        let precious = scratch.path().join("precious");
        fs::write(&precious, "text").unwrap();
        let folder = scratch.path().join("a");
        fs::create_dir(&folder).unwrap();
        symlink(&precious, folder.join(LOCK)).unwrap();
        Claim::take(&folder, "x").unwrap_err();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
        fs::remove_file(folder.join(LOCK)).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.join(LOCK), rustix::fs::Mode::RWXU).unwrap();
        Claim::take(&folder, "x").unwrap_err();
        Claim::take(&precious.join("below"), "x").unwrap_err();
    }

    /// Each of them may remove folders above that another one needs.
    #[test]
    fn runs_that_come_and_go_have_folders_beside_each_other() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join("a/b").join(name);
        std::thread::scope(|scope| {
            for name in ["c", "d"] {
                scope.spawn(move || {
                    for _ in 0..500 {
                        drop(Claim::take(&path(name), "x").unwrap());
                    }
                });
            }
        });
    }

    #[test]
    fn runs_that_come_and_go_never_share_a_folder() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let scratch = tempfile::tempdir().unwrap();
        let inside = AtomicUsize::new(0);
        let taken = std::thread::scope(|scope| {
            let each = || {
                let mut taken = 0;
                for _ in 0..500 {
                    if let Ok(claim) = Claim::take(scratch.path(), "x") {
                        let others = inside.fetch_add(1, Ordering::SeqCst);
                        taken += 1;
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(claim);
                        if others != 0 {
                            return None;
                        }
                    }
                }
                Some(taken)
            };
            let threads = [scope.spawn(each), scope.spawn(each), scope.spawn(each)];
            threads.map(|thread| thread.join().unwrap())
        });
        let taken: usize = taken.map(|n| n.expect("one at a time")).iter().sum();
        assert!(taken > 0);
    }
}
