//! Runs in the user's cache folder. The version of the file changes with the form of the lines, and with the model's
//! predictions.

use super::case::{Case, Family, Kind};
use super::computer::Computer;
use super::line_file::{Line, LineFile, Lines};

/// The file of runs.
pub type Store = LineFile<CaseRuns>;

/// The runs of the file.
pub type Found = Lines<CaseRuns>;

/// Ratios that a record keeps, the last ones.
const RATIOS: usize = 5;

/// Ratios that are possible: beyond, something else than the model was wrong.
const POSSIBLE: std::ops::RangeInclusive<f64> = 0.02..=50.0;

/// The runs of a case on a computer.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseRuns {
    pub computer: Computer,
    pub case: Case,
    /// All of them.
    pub runs: u64,
    /// Measured over expected rate of the last ones, the newest last; at least one.
    pub ratios: Vec<f64>,
}

impl CaseRuns {
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
}

impl Line for CaseRuns {
    const NAME: &str = "rates";
    const VERSION: u32 = 1;

    fn line(&self) -> String {
        let list = |values: &[f64]| -> String {
            let values: Vec<String> = values.iter().map(f64::to_string).collect();
            values.join(" ")
        };
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}",
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
    fn is_of(&self, other: &Self) -> bool {
        self.computer == other.computer && self.case == other.case
    }

    fn follow(self, mut known: Self) -> Self {
        known.runs += self.runs;
        known.ratios.extend(self.ratios);
        let older = known.ratios.len().saturating_sub(RATIOS);
        known.ratios.drain(..older);
        known
    }
}

impl Found {
    /// The records of a computer.
    pub fn of(&self, computer: &Computer) -> Vec<CaseRuns> {
        let records = self.records.iter();
        let own = records.filter(|record| record.computer == *computer);
        own.cloned().collect()
    }
}

#[cfg(test)]
mod tests;
