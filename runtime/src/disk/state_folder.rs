//! The folder of a calculation whose array is on a disk: two files in turns, and which of them has the state.
//!
//! ```text
//! fields.0, fields.1    arrays; a pass reads the one with the state, and writes the other one
//! state.checkpoint      after a pass, once its array is on the disk: the step, which file, and the records of probes;
//!                       the file's checksum
//! ```
//! The file that `state.checkpoint` names is not changed before a newer one names the other.

use super::array_file::{ArrayFile, BLOCK};
use crate::output::atomic::make_folder;
use crate::output::checkpoint::{self, Checkpoint, CheckpointFault, Identity};
use crate::output::checksum::Xxh64;
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

/// The folder of a run.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    files: [Arc<ArrayFile>; 2],
    /// Which of them has the state.
    current: usize,
    identity: Identity,
    arrangement: String,
    /// Whether ghosts along the inner axis in the file with the state are up to date.
    ghosts_kept: bool,
}

/// Bytes that the files of an array take.
pub fn needed(layout: &Layout) -> u64 {
    2 * layout.bytes().next_multiple_of(BLOCK)
}

/// Bytes that files in a folder could take: the free bytes of its disk for this user, and the bytes of files of an
/// earlier run, which are replaced. `None` where the system does not say.
pub fn on_disk(folder: &Path) -> Option<u64> {
    let exists = folder.ancestors().find(|above| above.is_dir());
    let at = exists.unwrap_or(Path::new("."));
    let free = statvfs(at).ok()?;
    let own = FIELDS
        .iter()
        .filter_map(|name| fs::symlink_metadata(folder.join(name)).ok())
        .map(|file| file.blocks().saturating_mul(512))
        .fold(0, u64::saturating_add);
    let free = free.f_bavail.saturating_mul(free.f_frsize);
    Some(free.saturating_add(own))
}

/// How values are arranged: arrays of other layouts are no states of a run.
fn arrangement(layout: &Layout) -> String {
    format!("{:016x}", Xxh64::of(format!("{layout:?}").as_bytes()))
}

/// The file of start values in a folder that may have the state of another run, which stays until the new one begins.
#[derive(Debug)]
pub struct NewState {
    path: PathBuf,
    file: Arc<ArrayFile>,
    /// Its number: that of the file which an earlier state does not need.
    current: usize,
    bytes: u64,
    identity: Identity,
    arrangement: String,
    /// Paths that are removed if the run does not begin: the file, and the folder where there was none.
    made: Vec<PathBuf>,
}

impl NewState {
    /// Makes a file of zeros.
    pub fn new(path: &Path, layout: &Layout, identity: &Identity) -> Result<NewState, FileError> {
        let is_new = !path.exists();
        make_folder(path).map_err(FileError::io(path, Attempt::Create))?;
        let earlier = Checkpoint::open(&path.join(STATE)).ok();
        let earlier = earlier.and_then(|state| state.header().notes.get(NOTE)?.as_u64());
        let current = usize::from(earlier == Some(0));
        let file = path.join(FIELDS[current]);
        let mut made = vec![file.clone()];
        made.extend(is_new.then(|| path.to_owned()));
        let created = ArrayFile::create(&file, layout.bytes());
        Ok(NewState {
            path: path.to_owned(),
            file: Arc::new(created.inspect_err(|_| undo(&made))?),
            current,
            bytes: layout.bytes(),
            identity: identity.clone(),
            arrangement: arrangement(layout),
            made,
        })
    }

    pub fn file(&self) -> &ArrayFile {
        &self.file
    }

    /// Removes the state of an earlier run: the file has the values of the new one.
    pub fn begin(mut self) -> Result<StateFolder, FileError> {
        let state = self.path.join(STATE);
        match fs::remove_file(&state) {
            Ok(()) => fs::File::open(&self.path)
                .and_then(|folder| folder.sync_all())
                .map_err(FileError::io(&state, Attempt::Remove))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(FileError::io(&state, Attempt::Remove)(error)),
        }
        let other = self.path.join(FIELDS[1 - self.current]);
        self.made.insert(0, other.clone());
        let other = Arc::new(ArrayFile::create(&other, self.bytes)?);
        self.made.clear();
        let own = self.file.clone();
        Ok(StateFolder {
            path: self.path.clone(),
            files: match self.current {
                0 => [own, other],
                _ => [other, own],
            },
            current: self.current,
            identity: self.identity.clone(),
            arrangement: self.arrangement.clone(),
            ghosts_kept: true,
        })
    }
}

impl Drop for NewState {
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
    /// Begins anew: a state that the folder has is gone.
    pub fn create(
        path: &Path,
        layout: &Layout,
        identity: &Identity,
    ) -> Result<StateFolder, FileError> {
        NewState::new(path, layout, identity)?.begin()
    }

    /// Goes on with the state that the folder has, by code with these ghosts along the inner axis.
    pub fn open(
        path: &Path,
        layout: &Layout,
        identity: &Identity,
        ghosts: RowGhosts,
    ) -> Result<StateFolder, FileError> {
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
        let open = |n: usize| {
            let path = path.join(FIELDS[n]);
            let opened = ArrayFile::open(&path, layout.bytes());
            match n == current {
                true => opened,
                false => opened.or_else(|_| ArrayFile::create(&path, layout.bytes())),
            }
        };
        let files = [Arc::new(open(0)?), Arc::new(open(1)?)];
        let name = || FIELDS[current].to_owned();
        let Some(sum) = notes.get(SUM) else {
            return Err(refuse(CheckpointFault::NoSum(name())));
        };
        let sum = sum
            .as_str()
            .and_then(|sum| u64::from_str_radix(sum, 16).ok());
        let sum = sum.ok_or_else(|| refuse(CheckpointFault::Header(SUM)))?;
        if !files[current].has_sum(sum)? {
            return Err(refuse(CheckpointFault::File(name())));
        }
        Ok(StateFolder {
            path: path.to_owned(),
            files,
            current,
            identity: identity.clone(),
            arrangement: expected,
            ghosts_kept,
        })
    }

    /// Whether a folder has a state, of whichever run and kind, whole or not.
    pub fn has_state(path: &Path) -> bool {
        fs::symlink_metadata(path.join(STATE)).is_ok()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file with the state, and the one that the next pass writes.
    pub fn files(&self) -> [Arc<ArrayFile>; 2] {
        [self.current, 1 - self.current].map(|n| self.files[n].clone())
    }

    /// A pass by code with these ghosts has written the other file: that is the state now, though no checkpoint says
    /// so yet.
    pub fn exchange(&mut self, ghosts: RowGhosts) {
        self.current = 1 - self.current;
        self.ghosts_kept = ghosts != RowGhosts::OnArrival;
    }

    /// Records in the folder that the current file has the state after `step` steps, with the records up to then.
    pub fn commit(&self, step: u64, records: &[(String, Vec<f64>)]) -> Result<(), FileError> {
        let file = &self.files[self.current];
        file.sync()?;
        let sum = file.whole_sum()?;
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
        )
    }
}
