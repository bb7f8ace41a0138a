//! Files of records in the user's cache folder: texts that people can read, with a line for each record.

use rustix::io::Errno;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;
use torre_trust::{Fault, Folder, Refusal};

/// How long another process is waited for, which changes a file in milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The age after which a temporary file is taken for one that a killed process left behind.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Longer files are not read.
pub(super) const MAX_BYTES: u64 = 1 << 18;

/// The number of records that are kept: the ones that were changed last.
pub(super) const RECORDS: usize = 256;

/// A record that is a line of a file.
pub trait Line: Sized + PartialEq {
    /// The name of the file, without its ending `.txt`, and a word of its first line.
    const NAME: &str;
    /// A number in the first line. Files with another one say nothing.
    const VERSION: u32;

    /// The line, without its end.
    fn line(&self) -> String;

    /// The record of a line; `None` if it cannot be one.
    fn read(line: &str) -> Option<Self>;

    /// Whether both are about the same subject; a file has one record of each.
    fn is_of(&self, other: &Self) -> bool;

    /// What a file has after this record, where it had an older one of the same subject.
    fn follow(self, known: Self) -> Self;
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines<L> {
    /// Records that were changed last come last.
    pub records: Vec<L>,
    /// The file is none of Torre's, or damaged, or a record cannot be: none of it counts.
    pub damaged: bool,
}

impl<L> Default for Lines<L> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            damaged: false,
        }
    }
}

impl<L: Line> Lines<L> {
    fn head() -> String {
        format!("torre {} {}", L::NAME, L::VERSION)
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        let damaged = Self {
            damaged: true,
            ..Self::default()
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            return damaged;
        };
        let head = Self::head();
        let rest = text.split_once('\n').filter(|(first, _)| *first == head);
        let Some((_, rest)) = rest else {
            // A file of another version is whole, and says nothing here.
            let first = text.lines().next().unwrap_or_default();
            let number = first
                .strip_prefix("torre ")
                .and_then(|rest| rest.strip_prefix(L::NAME)?.strip_prefix(' '))
                .map(str::parse::<u32>);
            return Self {
                damaged: first == head || !matches!(number, Some(Ok(_))),
                ..Self::default()
            };
        };
        // The last line tells whether all are there.
        let Some((lines, count)) = rest.rsplit_once("end ") else {
            return damaged;
        };
        let records: Option<Vec<L>> = lines.lines().map(L::read).collect();
        match records {
            Some(records) if count == format!("{}\n", records.len()) => Self {
                records,
                damaged: false,
            },
            _ => damaged,
        }
    }

    pub(super) fn text(&self) -> String {
        let lines = self.records.iter().map(|record| record.line() + "\n");
        let lines: String = lines.collect();
        format!("{}\n{lines}end {}\n", Self::head(), self.records.len())
    }

    pub(super) fn add(&mut self, record: L) {
        let known = self.records.iter().position(|known| known.is_of(&record));
        let last = match known {
            Some(at) => record.follow(self.records.remove(at)),
            None => record,
        };
        self.records.push(last);
        let older = self.records.len().saturating_sub(RECORDS);
        self.records.drain(..older);
    }
}

/// A file of records, or none.
#[derive(Debug)]
pub struct LineFile<L> {
    pub(super) folder: Result<Folder, Refusal>,
    records: PhantomData<L>,
}

impl<L: Line> LineFile<L> {
    /// The file of the user, beside the measurements of the machine: under the rules of `torre_trust`.
    pub fn of_user() -> Self {
        Self::within(Folder::of_user(&["torre"]))
    }

    /// The file in the folder `torre` below another one, which is made if need be.
    pub fn below(base: &Path) -> Self {
        Self::within(Folder::below(base, &["torre"]))
    }

    fn within(folder: Result<Folder, Refusal>) -> Self {
        Self {
            folder,
            records: PhantomData,
        }
    }

    pub(super) fn name() -> String {
        format!("{}.txt", L::NAME)
    }

    /// The lock that is held while the file is changed.
    fn lock() -> String {
        format!("{}.lock", L::NAME)
    }

    /// Where the file is; an error where the folder is not relied on.
    pub fn path(&self) -> Result<PathBuf, &Refusal> {
        Ok(self.folder.as_ref()?.path().join(Self::name()))
    }

    /// The records so far. A file that other users may have written is not read.
    pub fn read(&self) -> Lines<L> {
        let Ok(folder) = &self.folder else {
            return Lines::default();
        };
        match folder.read(&Self::name(), MAX_BYTES) {
            Ok((_, bytes)) => Lines::read(&bytes),
            Err(refusal) => Lines {
                damaged: matches!(
                    refusal,
                    Refusal::Place {
                        fault: Fault::Size(_),
                        ..
                    }
                ),
                ..Lines::default()
            },
        }
    }

    /// Adds a record to the ones that other processes may have added meanwhile; a damaged file is begun anew. Returns
    /// whether it was kept.
    pub fn add(&self, record: L) -> bool {
        let Ok(folder) = &self.folder else {
            return false;
        };
        if L::read(&record.line()).as_ref() != Some(&record) {
            return false;
        }
        let Ok(_lock) = folder.lock(&Self::lock(), PATIENCE) else {
            return false;
        };
        let name = Self::name();
        // A file that cannot be read is not one without records.
        if let Err(Refusal::Place {
            fault: Fault::Io(error),
            ..
        }) = folder.read(&name, MAX_BYTES)
            && error != Errno::NOENT
        {
            return false;
        }
        let _ = folder.remove_abandoned(|found| found == name, ABANDONED);
        let mut lines = self.read();
        lines.add(record);
        folder.write(&name, lines.text().as_bytes()).is_ok()
    }

    /// Forgets all records. Returns whether there is no file any more.
    pub fn forget(&self) -> bool {
        let Ok(folder) = &self.folder else {
            return true;
        };
        let _lock = folder.lock(&Self::lock(), PATIENCE);
        let _ = folder.remove(&Self::name());
        folder.read(&Self::name(), u64::MAX).is_err()
    }
}
