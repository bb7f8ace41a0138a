//! Gaps between planes that were timed, in the user's cache folder: a text that people can read, a line for each
//! kernel. See [`crate::gpu::GapTrial`].

use super::store::Computer;
use crate::gpu::TimedGap;
use std::path::Path;
use std::time::Duration;
use torre_trust::{Folder, Refusal};

/// The first line of a file; the number changes with the form of the lines, and with gaps that are tried.
const HEAD: &str = "torre planes 1";

/// The file, and the lock that is held while it is changed.
const FILE: &str = "planes.txt";
const LOCK: &str = "planes.lock";

/// How long another process is waited for, which changes the file in milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The age after which a temporary file is taken for one that a killed process left behind.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Longer files are not read.
const MAX_BYTES: u64 = 1 << 18;

/// The number of records that are kept: the last ones.
const RECORDS: usize = 256;

/// Gaps of a record, and their size.
const GAPS: usize = 64;
const LARGEST: i64 = 1 << 20;

/// The gaps that were timed with a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct GapRecord {
    /// A single GPU.
    pub computer: Computer,
    /// See [`crate::gpu::GapTrial::key`].
    pub key: String,
    pub timed: Vec<TimedGap>,
}

impl GapRecord {
    fn line(&self) -> String {
        let timed = self.timed.iter();
        let timed = timed.map(|timed| format!("{} {}", timed.gap, timed.seconds));
        let timed: Vec<String> = timed.collect();
        let (computer, key) = (&self.computer, &self.key);
        format!("{computer}\t{key}\t{}\n", timed.join(" "))
    }

    fn read(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [computer, key, timed] = fields[..] else {
            return None;
        };
        let words: Vec<&str> = timed.split(' ').collect();
        let pairs = words.chunks(2).map(|pair| {
            let [gap, seconds] = pair else {
                return None;
            };
            let (gap, seconds) = (gap.parse().ok()?, seconds.parse().ok()?);
            let possible = (0..=LARGEST).contains(&gap) && (0.0..1e6).contains(&seconds);
            possible.then_some(TimedGap { gap, seconds })
        });
        let timed: Vec<TimedGap> = pairs.collect::<Option<_>>()?;
        let hexadecimal = !key.is_empty() && key.bytes().all(|b| b.is_ascii_hexdigit());
        (hexadecimal && timed.len() <= GAPS).then(|| Self {
            computer: Computer::read(computer),
            key: key.to_owned(),
            timed,
        })
    }
}

/// The records of a file; none of a file that is damaged or of another version.
fn read(bytes: &[u8]) -> Vec<GapRecord> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let Some((HEAD, rest)) = text.split_once('\n') else {
        return Vec::new();
    };
    // The last line tells whether all are there.
    let Some((lines, count)) = rest.rsplit_once("end ") else {
        return Vec::new();
    };
    let records: Option<Vec<GapRecord>> = lines.lines().map(GapRecord::read).collect();
    let whole = |records: &Vec<GapRecord>| count == format!("{}\n", records.len());
    records.filter(whole).unwrap_or_default()
}

fn text(records: &[GapRecord]) -> String {
    let lines: String = records.iter().map(GapRecord::line).collect();
    format!("{HEAD}\n{lines}end {}\n", records.len())
}

/// The file of records, or none.
#[derive(Debug)]
pub struct GapStore(Result<Folder, Refusal>);

impl GapStore {
    /// The store of the user, beside learned rates: under the rules of `torre_trust`.
    pub fn of_user() -> Self {
        Self(Folder::of_user(&["torre"]))
    }

    /// The store in the folder `torre` below another one, which is made if need be.
    pub fn below(base: &Path) -> Self {
        Self(Folder::below(base, &["torre"]))
    }

    fn records(&self) -> Vec<GapRecord> {
        let folder = self.0.as_ref().ok();
        let found = folder.and_then(|folder| folder.read(FILE, MAX_BYTES).ok());
        found.map_or(Vec::new(), |(_, bytes)| read(&bytes))
    }

    /// The gaps that were timed with a kernel on a computer.
    pub fn find(&self, computer: &Computer, key: &str) -> Option<Vec<TimedGap>> {
        let same = |record: &GapRecord| record.computer == *computer && record.key == key;
        let mut records = self.records().into_iter();
        records.find(same).map(|record| record.timed)
    }

    /// Keeps a record, in place of an older one. Returns whether it was kept.
    pub fn keep(&self, record: GapRecord) -> bool {
        let Ok(folder) = &self.0 else {
            return false;
        };
        if GapRecord::read(record.line().trim_end()).as_ref() != Some(&record) {
            return false;
        }
        let Ok(_lock) = folder.lock(LOCK, PATIENCE) else {
            return false;
        };
        let _ = folder.remove_abandoned(|name| name == FILE, ABANDONED);
        let mut records = self.records();
        let other = |old: &GapRecord| old.computer != record.computer || old.key != record.key;
        records.retain(other);
        records.push(record);
        let older = records.len().saturating_sub(RECORDS);
        records.drain(..older);
        folder.write(FILE, text(&records).as_bytes()).is_ok()
    }

    /// Forgets all gaps. Returns whether there is no file any more.
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
mod tests {
    use super::*;

    fn record(key: &str, gaps: &[i64]) -> GapRecord {
        let timed = gaps.iter().map(|&gap| TimedGap {
            gap,
            seconds: 0.1 / (gap + 1) as f64,
        });
        GapRecord {
            computer: Computer::read("1 x H200, 132 multiprocessors, torre 0"),
            key: key.to_owned(),
            timed: timed.collect(),
        }
    }

    #[test]
    fn records_come_back_and_replace_older_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = GapStore::below(folder.path());
        let (one, other) = (record("0a", &[0, 3, 9]), record("0b", &[0]));
        assert!(store.keep(one.clone()) && store.keep(other.clone()));
        assert_eq!(store.find(&one.computer, "0a"), Some(one.timed.clone()));
        let newer = record("0a", &[0, 1]);
        assert!(store.keep(newer.clone()));
        assert_eq!(store.find(&one.computer, "0a"), Some(newer.timed));
        assert_eq!(store.find(&one.computer, "0b"), Some(other.timed));
        assert_eq!(store.find(&Computer::read("another"), "0b"), None);
        assert!(store.forget());
        assert_eq!(store.find(&one.computer, "0a"), None);
    }

    #[test]
    fn damaged_files_and_impossible_records_say_nothing() {
        let records = [record("0a", &[0, 3]), record("ff", &[2])];
        let whole = text(&records);
        assert_eq!(read(whole.as_bytes()), records);
        for cut in 0..whole.len() {
            assert_eq!(read(&whole.as_bytes()[..cut]), [], "{cut}");
        }
        for (from, to) in [
            ("planes 1", "planes 2"),
            ("\tff", "\tfg"),
            ("\t2 ", "\t-2 "),
            ("\t2 ", "\t"),
            ("end 2", "end 3"),
        ] {
            assert!(whole.contains(from), "{from}");
            assert_eq!(read(whole.replace(from, to).as_bytes()), [], "{from}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let store = GapStore::below(folder.path());
        assert!(!store.keep(record("not a key", &[0])));
    }
}
