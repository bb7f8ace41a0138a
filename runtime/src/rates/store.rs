//! The records in the user's cache folder: a text that people can read, a line for each record.

use super::case::{Case, Family, Kind};
use crate::gpu::Facts;
use crate::host::measure::Measured;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use torre_trust::{Fault, Folder, Refusal};

/// The first line of a file; the number changes with the form of the lines, and with the model's predictions.
const HEAD: &str = "torre rates 1";

/// The file, and the lock that is held while it is changed.
const FILE: &str = "rates.txt";
const LOCK: &str = "rates.lock";

/// How long another process is waited for, which changes the file in milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The age after which a temporary file is taken for one that a killed process left behind.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Longer files are not read.
const MAX_BYTES: u64 = 1 << 18;

/// The number of records that are kept: the ones that were changed last.
const RECORDS: usize = 256;

/// Ratios that a record keeps, the last ones.
const RATIOS: usize = 5;

/// Ratios that are possible: beyond, something else than the model was wrong.
const POSSIBLE: std::ops::RangeInclusive<f64> = 0.02..=50.0;

/// Bytes of a name that comes from elsewhere.
const NAME: usize = 200;

/// A computer, with all properties beside the case on which predictions depend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computer(String);

impl Computer {
    /// A processor; `None` if its measurements are doubtful, as predictions are doubtful then.
    pub fn of_processor(measured: &Measured) -> Option<Self> {
        (!measured.doubtful).then(|| Self::named(&measured.key()))
    }

    /// Some GPUs of a kind.
    pub fn of_devices(facts: &Facts, count: usize) -> Self {
        let Facts {
            name,
            multiprocessors,
            ..
        } = facts;
        Self::named(&format!(
            "{count} x {name}, {multiprocessors} multiprocessors"
        ))
    }

    /// One as a record has it.
    pub(super) fn read(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// With the version of Torre, whose model and kernels count.
    fn named(name: &str) -> Self {
        let name: String = name
            .chars()
            .map(|c| match c {
                ' '..='~' => c,
                _ => ' ',
            })
            .take(NAME)
            .collect();
        Self(format!("{name}, torre {}", env!("CARGO_PKG_VERSION")))
    }
}

impl fmt::Display for Computer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The runs of a case on a computer.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub computer: Computer,
    pub case: Case,
    /// All of them.
    pub runs: u64,
    /// Measured over expected rate of the last ones, the newest last; at least one.
    pub ratios: Vec<f64>,
}

impl Record {
    /// The record of a single run.
    pub fn new(computer: Computer, case: Case, ratio: f64) -> Self {
        Self {
            computer,
            case,
            runs: 1,
            ratios: vec![ratio],
        }
    }

    /// The middle one of the last ratios; the larger of two, as disturbances make runs slow.
    pub fn ratio(&self) -> f64 {
        let mut ratios = self.ratios.clone();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(1.0)
    }

    fn line(&self) -> String {
        let list = |values: &[f64]| -> String {
            let values: Vec<String> = values.iter().map(f64::to_string).collect();
            values.join(" ")
        };
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
            self.computer,
            self.case.family,
            self.case.kind,
            list(&self.case.sizes),
            self.case.class,
            self.runs,
            list(&self.ratios),
        )
    }

    fn read(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [computer, family, kind, sizes, class, runs, ratios] = fields[..] else {
            return None;
        };
        let list = |text: &str| -> Option<Vec<f64>> {
            text.split(' ').map(|value| value.parse().ok()).collect()
        };
        let sizes = <[f64; 4]>::try_from(list(sizes)?).ok()?;
        let ratios = list(ratios)?;
        let class: u32 = class.parse().ok()?;
        let runs: u64 = runs.parse().ok()?;
        let possible = (1..=RATIOS).contains(&ratios.len())
            && ratios.iter().all(|ratio| POSSIBLE.contains(ratio))
            && sizes.iter().all(|size| (0.0..=1e9).contains(size))
            && class < 64
            && (ratios.len() as u64..1 << 40).contains(&runs);
        possible.then_some(Self {
            computer: Computer::read(computer),
            case: Case {
                family: Family::named(family),
                kind: Kind::named(kind)?,
                sizes,
                class,
            },
            runs,
            ratios,
        })
    }
}

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Records that were changed last come last.
    pub records: Vec<Record>,
    /// The file is none of Torre's, or damaged, or a record cannot be: none of it counts.
    pub damaged: bool,
}

impl Found {
    /// The records of a computer.
    pub fn of(&self, computer: &Computer) -> Vec<Record> {
        let records = self.records.iter();
        let own = records.filter(|record| record.computer == *computer);
        own.cloned().collect()
    }

    fn read(bytes: &[u8]) -> Self {
        let damaged = Self {
            damaged: true,
            ..Self::default()
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            return damaged;
        };
        let Some((HEAD, rest)) = text.split_once('\n') else {
            // A file of another version is whole, and says nothing here.
            let head = text.lines().next().unwrap_or_default();
            let number = head.strip_prefix("torre rates ").map(str::parse::<u32>);
            return Self {
                damaged: head == HEAD || !matches!(number, Some(Ok(_))),
                ..Self::default()
            };
        };
        // The last line tells whether all are there.
        let Some((lines, count)) = rest.rsplit_once("end ") else {
            return damaged;
        };
        let records: Option<Vec<Record>> = lines.lines().map(Record::read).collect();
        match records {
            Some(records) if count == format!("{}\n", records.len()) => Self {
                records,
                damaged: false,
            },
            _ => damaged,
        }
    }

    fn text(&self) -> String {
        let lines: String = self.records.iter().map(Record::line).collect();
        format!("{HEAD}\n{lines}end {}\n", self.records.len())
    }

    /// Adds a run.
    fn add(&mut self, run: Record) {
        let known = self
            .records
            .iter()
            .position(|r| r.computer == run.computer && r.case == run.case);
        let merged = match known {
            Some(at) => {
                let mut record = self.records.remove(at);
                record.runs += run.runs;
                record.ratios.extend(run.ratios);
                let older = record.ratios.len().saturating_sub(RATIOS);
                record.ratios.drain(..older);
                record
            }
            None => run,
        };
        self.records.push(merged);
        let older = self.records.len().saturating_sub(RECORDS);
        self.records.drain(..older);
    }
}

/// The file of records, or none.
#[derive(Debug)]
pub struct Store(Result<Folder, Refusal>);

impl Store {
    /// The store of the user, beside the measurements of the machine: under the rules of `torre_trust`.
    pub fn of_user() -> Self {
        Self(Folder::of_user(&["torre"]))
    }

    /// The store in the folder `torre` below another one, which is made if need be.
    pub fn below(base: &Path) -> Self {
        Self(Folder::below(base, &["torre"]))
    }

    /// Where the file is; an error where the folder is not relied on.
    pub fn path(&self) -> Result<PathBuf, &Refusal> {
        Ok(self.0.as_ref()?.path().join(FILE))
    }

    /// The records so far. A file that other users may have written is not read.
    pub fn read(&self) -> Found {
        let Ok(folder) = &self.0 else {
            return Found::default();
        };
        match folder.read(FILE, MAX_BYTES) {
            Ok((_, bytes)) => Found::read(&bytes),
            Err(refusal) => Found {
                damaged: matches!(
                    refusal,
                    Refusal::Place {
                        fault: Fault::Size(_),
                        ..
                    }
                ),
                ..Found::default()
            },
        }
    }

    /// Adds a run to the records, with the ones that other processes may have added meanwhile; a damaged file is begun
    /// anew. Returns whether it was kept.
    pub fn add(&self, run: Record) -> bool {
        let Ok(folder) = &self.0 else {
            return false;
        };
        if Record::read(run.line().trim_end()).as_ref() != Some(&run) {
            return false;
        }
        let Ok(_lock) = folder.lock(LOCK, PATIENCE) else {
            return false;
        };
        let _ = folder.remove_abandoned(|name| name == FILE, ABANDONED);
        let mut found = self.read();
        found.add(run);
        folder.write(FILE, found.text().as_bytes()).is_ok()
    }

    /// Forgets all runs. Returns whether there is no file any more.
    pub fn forget(&self) -> bool {
        let Ok(folder) = &self.0 else {
            return true;
        };
        let _lock = folder.lock(LOCK, PATIENCE);
        let _ = folder.remove(FILE);
        folder.read(FILE, u64::MAX).is_err()
    }
}

#[cfg(test)]
mod tests;
