//! Gaps between planes that were timed, in the user's cache folder, a record for each kernel. See
//! [`crate::gpu::GapTrial`]. The version of the file changes with the form of the lines, and with gaps that are tried.

use super::computer::Computer;
use super::line_file::{Line, LineFile};
use crate::gpu::TimedGap;

/// The file of gaps.
pub type GapStore = LineFile<GapRecord>;

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

impl Line for GapRecord {
    const NAME: &str = "planes";
    const VERSION: u32 = 1;

    fn line(&self) -> String {
        let timed = self.timed.iter();
        let timed = timed.map(|timed| format!("{} {}", timed.gap, timed.seconds));
        let timed: Vec<String> = timed.collect();
        let (computer, key) = (&self.computer, &self.key);
        format!("{computer}\t{key}\t{}", timed.join(" "))
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

    fn is_of(&self, other: &Self) -> bool {
        self.computer == other.computer && self.key == other.key
    }

    fn follow(self, _: Self) -> Self {
        self
    }
}

impl GapStore {
    /// The gaps that were timed with a kernel on a computer.
    pub fn find(&self, computer: &Computer, key: &str) -> Option<Vec<TimedGap>> {
        let same = |record: &GapRecord| record.computer == *computer && record.key == key;
        let mut records = self.read().records.into_iter();
        records.find(same).map(|record| record.timed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::line_file::Lines;
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
        assert!(store.add(one.clone()) && store.add(other.clone()));
        assert_eq!(store.find(&one.computer, "0a"), Some(one.timed.clone()));
        let newer = record("0a", &[0, 1]);
        assert!(store.add(newer.clone()));
        assert_eq!(store.find(&one.computer, "0a"), Some(newer.timed));
        assert_eq!(store.find(&one.computer, "0b"), Some(other.timed));
        assert_eq!(store.find(&Computer::read("another"), "0b"), None);
        assert!(store.forget());
        assert_eq!(store.find(&one.computer, "0a"), None);
    }

    #[test]
    fn damaged_files_and_impossible_records_say_nothing() {
        let records = [record("0a", &[0, 3]), record("ff", &[2])];
        let whole = Lines {
            records: records.to_vec(),
            damaged: false,
        };
        let whole = whole.text();
        assert_eq!(Lines::<GapRecord>::read(whole.as_bytes()).records, records);
        for cut in 0..whole.len() {
            assert_eq!(
                Lines::<GapRecord>::read(&whole.as_bytes()[..cut]).records,
                [],
                "{cut}"
            );
        }
        for (from, to) in [
            ("planes 1", "planes 2"),
            ("\tff", "\tfg"),
            ("\t2 ", "\t-2 "),
            ("\t2 ", "\t"),
            ("end 2", "end 3"),
        ] {
            assert!(whole.contains(from), "{from}");
            assert_eq!(
                Lines::<GapRecord>::read(whole.replace(from, to).as_bytes()).records,
                [],
                "{from}"
            );
        }
        let folder = tempfile::tempdir().expect("a folder");
        let store = GapStore::below(folder.path());
        assert!(!store.add(record("not a key", &[0])));
    }
}
