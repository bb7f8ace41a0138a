//! The folder of a calculation whose array is on a disk: two files in turns, and which of them has the state.
//!
//! ```text
//! fields.0, fields.1    arrays; a pass reads the one with the state, and writes the other one
//! state.checkpoint      after a pass, once its array is on the disk: the step, which file, and the records of probes;
//!                       the file's checksum
//! ```
//! The file that `state.checkpoint` names is not changed before a newer one names the other.

use super::array_file::{ArrayFile, BLOCK};
use crate::output::atomic::{make_folder, remove_leftovers};
use crate::output::checkpoint::{self, Checkpoint, CheckpointFault, Identity};
use crate::output::checksum::Xxh64;
use crate::output::claim::Claim;
use crate::output::open::Place;
use crate::output::{AnyRows, Attempt, Cause, FileError, View};
use rustix::fs::statvfs;
use serde_json::{Map, Value, json};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use torre_compiler::layout::Layout;

/// The file in which a run finds the state.
const STATE: &str = "state.checkpoint";
const FIELDS: [&str; 2] = ["fields.0", "fields.1"];
/// Files in folders of states: of checkpoints, and of windows.
pub const STATE_FILES: [&str; 3] = [STATE, FIELDS[0], FIELDS[1]];
/// The entry of a checkpoint that says which file has the state; others have none.
pub const NOTE: &str = "fields";
const ARRANGEMENT: &str = "arrangement";
/// The entry with the checksum of that file.
const SUM: &str = "sum";
/// The entry that says whether ghosts along the inner axis in that file are up to date.
const GHOSTS: &str = "ghosts";
const UP_TO_DATE: &str = "up to date";
const OUT_OF_DATE: &str = "out of date";

/// How code that goes over the files comes by ghosts along the inner axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowGhosts {
    /// There are none.
    Absent,
    /// It reads them in memory, and makes those of all rows that it stores.
    InMemory,
    /// It makes them where rows arrive. In memory they are out of date after a pass.
    OnArrival,
}

/// The folder of a run. One that begins anew leaves the state of an earlier run alone until it has a state itself, and
/// the folder as it was if it does not come that far.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    /// The file with the state, and its number.
    file: Arc<ArrayFile>,
    current: usize,
    /// The file that the next pass writes, once there is one: it may have the state of an earlier run.
    other: Option<Arc<ArrayFile>>,
    bytes: u64,
    identity: Identity,
    arrangement: String,
    /// Whether ghosts along the inner axis in the file with the state are up to date.
    ghosts_kept: bool,
    /// The lock that keeps other runs away, where that is known.
    lock: Option<Place>,
    /// Paths that are removed if the run does not begin: the file, and the folder where there was none.
    made: Vec<PathBuf>,
}

/// Bytes that the files of an array take.
pub fn needed(layout: &Layout) -> u64 {
    2 * layout.bytes().next_multiple_of(BLOCK)
}

/// The free space of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Which disk it is.
    pub disk: u64,
    /// Free bytes for this user.
    pub free: u64,
}

impl DiskSpace {
    /// The free space of the disk of a folder, which need not be there yet. `None` where the system does not say.
    pub fn of(folder: &Path) -> Option<Self> {
        let exists = folder.ancestors().find(|above| above.is_dir());
        let at = exists.unwrap_or(Path::new("."));
        let found = statvfs(at).ok()?;
        // Folders that the system makes up, such as `/proc`, have no size.
        (found.f_blocks > 0).then_some(Self {
            disk: fs::metadata(at).ok()?.dev(),
            free: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }
}

/// Bytes of the files of an earlier run in a folder, which are replaced: of arrays, or of a checkpoint.
fn replaced(folder: &Path, names: &[&str]) -> u64 {
    let files = names
        .iter()
        .map(|name| fs::symlink_metadata(folder.join(name)));
    let files = files
        .flatten()
        .map(|file| file.blocks().saturating_mul(512));
    files.fold(0, u64::saturating_add)
}

/// Bytes of arrays in a folder.
pub fn replaced_arrays(folder: &Path) -> u64 {
    replaced(folder, &FIELDS)
}

/// Bytes of a checkpoint in a folder.
pub fn replaced_state(folder: &Path) -> u64 {
    replaced(folder, &[STATE])
}

/// How values are arranged: arrays of other layouts are no states of a run.
fn arrangement(layout: &Layout) -> String {
    format!("{:016x}", Xxh64::of(format!("{layout:?}").as_bytes()))
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        undo(&self.made);
    }
}

/// Removes a file, and a folder if it is empty. A failure here only leaves them.
fn undo(made: &[PathBuf]) {
    for path in made {
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
}

impl StateFolder {
    /// Begins anew, with a file of zeros: the one that a state of the folder does not need. Removes files that a killed
    /// run left in the folder under temporary names.
    pub fn create(
        path: &Path,
        layout: &Layout,
        identity: &Identity,
    ) -> Result<StateFolder, FileError> {
        let is_new = !path.exists();
        make_folder(path).map_err(FileError::io(path, Attempt::Create))?;
        remove_leftovers(path);
        let earlier = match Checkpoint::open(&path.join(STATE)) {
            Ok(state) => state.header().notes.get(NOTE).and_then(Value::as_u64),
            // Which file a state needs is not known where the system does not give it.
            Err(error) if Self::has_state(path) && matches!(error.cause, Cause::Io(_)) => {
                return Err(error);
            }
            Err(_) => None,
        };
        let current = usize::from(earlier == Some(0));
        let file = path.join(FIELDS[current]);
        let mut made = vec![file.clone()];
        made.extend(is_new.then(|| path.to_owned()));
        let created = ArrayFile::create(&file, layout.bytes());
        Ok(StateFolder {
            path: path.to_owned(),
            file: Arc::new(created.inspect_err(|_| undo(&made))?),
            current,
            other: None,
            bytes: layout.bytes(),
            identity: identity.clone(),
            arrangement: arrangement(layout),
            ghosts_kept: true,
            lock: None,
            made,
        })
    }

    /// Goes on with the state that the folder has, by code with these ghosts along the inner axis. Removes the same
    /// files as [`Self::create`].
    pub fn open(
        path: &Path,
        layout: &Layout,
        identity: &Identity,
        ghosts: RowGhosts,
    ) -> Result<StateFolder, FileError> {
        remove_leftovers(path);
        let state = path.join(STATE);
        let mut checkpoint = Checkpoint::open(&state)?;
        checkpoint.expect(identity)?;
        checkpoint.verify()?;
        let refuse = |fault| FileError::new(&state, Attempt::Read, Cause::Checkpoint(fault));
        let notes = &checkpoint.header().notes;
        if !notes.contains_key(NOTE) {
            return Err(refuse(CheckpointFault::InCheckpoint));
        }
        let current = notes.get(NOTE).and_then(Value::as_u64);
        let current = current.filter(|n| *n < 2);
        let current = current.ok_or_else(|| refuse(CheckpointFault::Header(NOTE)))? as usize;
        let expected = arrangement(layout);
        let found = notes.get(ARRANGEMENT).and_then(Value::as_str).unwrap_or("");
        if found != expected {
            return Err(refuse(CheckpointFault::Other {
                what: "arrangement of values",
                found: found.to_owned(),
                expected,
            }));
        }
        // Earlier versions did not say it.
        let found = notes.get(GHOSTS).and_then(Value::as_str);
        let ghosts_kept = found == Some(UP_TO_DATE);
        if ghosts == RowGhosts::InMemory && !ghosts_kept {
            return Err(refuse(CheckpointFault::Ghosts(FIELDS[current].to_owned())));
        }
        let open = |n: usize| ArrayFile::open(&path.join(FIELDS[n]), layout.bytes());
        let file = Arc::new(open(current)?);
        let name = || FIELDS[current].to_owned();
        let Some(sum) = notes.get(SUM) else {
            return Err(refuse(CheckpointFault::NoSum(name())));
        };
        let sum = sum
            .as_str()
            .and_then(|sum| u64::from_str_radix(sum, 16).ok());
        let sum = sum.ok_or_else(|| refuse(CheckpointFault::Header(SUM)))?;
        if !file.has_sum(sum)? {
            return Err(refuse(CheckpointFault::File(name())));
        }
        Ok(StateFolder {
            path: path.to_owned(),
            file,
            current,
            other: open(1 - current).ok().map(Arc::new),
            bytes: layout.bytes(),
            identity: identity.clone(),
            arrangement: expected,
            ghosts_kept,
            lock: None,
            made: Vec::new(),
        })
    }

    /// States are written as long as the run has the folder by its claim.
    pub fn claimed(mut self, claim: &Claim) -> StateFolder {
        self.lock = claim.guard();
        self
    }

    /// Whether a folder has a state, of whichever run and kind, whole or not.
    pub fn has_state(path: &Path) -> bool {
        fs::symlink_metadata(path.join(STATE)).is_ok()
    }

    /// The first file in a folder that has the name of an array and cannot be one. Arrays consist of whole blocks; a
    /// run that ended before its first state leaves them.
    pub fn foreign_array(path: &Path) -> Option<PathBuf> {
        let mut files = FIELDS.iter().map(|name| path.join(name));
        files.find(|file| {
            let found = fs::symlink_metadata(file);
            found.is_ok_and(|found| !found.is_file() || found.len() % BLOCK != 0)
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file with the state.
    pub fn file(&self) -> &Arc<ArrayFile> {
        &self.file
    }

    /// The file that the next pass writes.
    pub fn other(&mut self) -> Result<Arc<ArrayFile>, FileError> {
        if let Some(other) = &self.other {
            return Ok(other.clone());
        }
        if !self.made.is_empty() {
            // The state of an earlier run may be in that file, and no state of this one has replaced it.
            self.remove_state()?;
        }
        let path = self.path.join(FIELDS[1 - self.current]);
        let other = Arc::new(ArrayFile::create(&path, self.bytes)?);
        self.made.clear();
        self.other = Some(other.clone());
        Ok(other)
    }

    /// Whether accesses to files go past the system's cache.
    pub fn is_direct(&self) -> bool {
        let other = self.other.as_ref();
        self.file.is_direct() && other.is_none_or(|other| other.is_direct())
    }

    fn remove_state(&self) -> Result<(), FileError> {
        let state = self.path.join(STATE);
        let removed = fs::remove_file(&state).and_then(|()| fs::File::open(&self.path)?.sync_all());
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(FileError::io(&state, Attempt::Remove)(error))
            }
            _ => Ok(()),
        }
    }

    /// A pass by code with these ghosts has written the other file: that is the state now, though no checkpoint says
    /// so yet.
    pub fn exchange(&mut self, ghosts: RowGhosts) {
        if let Some(other) = &mut self.other {
            std::mem::swap(&mut self.file, other);
            self.current = 1 - self.current;
        }
        self.ghosts_kept = ghosts != RowGhosts::OnArrival;
    }

    /// Records in the folder that the current file has the state after `step` steps, with the records up to then. An
    /// error if that file or the lock was removed or replaced: the folder may be gone, or that of another run.
    pub fn commit(&mut self, step: u64, records: &[&(String, Vec<f64>)]) -> Result<(), FileError> {
        self.file.check_place()?;
        if let Some(lock) = &self.lock {
            lock.check()?;
        }
        self.file.sync()?;
        let sum = self.file.whole_sum()?;
        let records: Vec<(&String, View<'_, f64>)> = records
            .iter()
            .map(|(name, record)| (name, View::line(record)))
            .collect();
        let arrays: Vec<(&str, AnyRows<'_>)> = records
            .iter()
            .map(|(name, rows)| (name.as_str(), AnyRows::F64(rows)))
            .collect();
        let mut notes = Map::new();
        notes.insert(NOTE.to_owned(), json!(self.current));
        notes.insert(ARRANGEMENT.to_owned(), json!(self.arrangement));
        notes.insert(SUM.to_owned(), json!(format!("{sum:016x}")));
        let ghosts = match self.ghosts_kept {
            true => UP_TO_DATE,
            false => OUT_OF_DATE,
        };
        notes.insert(GHOSTS.to_owned(), json!(ghosts));
        checkpoint::write(
            &self.path.join(STATE),
            &self.identity,
            step,
            &notes,
            &arrays,
        )?;
        self.made.clear();
        Ok(())
    }
}
