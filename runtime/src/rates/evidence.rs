//! How far evidence spreads: the best linear prediction of the error of the model, from the errors that were measured.
//!
//! The logarithm of measured over expected is taken to be a sum of parts, independent and normal with mean 0: one of
//! the computer, one of the family, one of the kind of schedule, one of both together, one of the kind and the size
//! of the grid, one of all that a case has, and the noise of a run. Cases that have a part in common learn from each
//! other as much as that part is of their errors; sizes that differ by a factor have their part in common as far as
//! they are near. So with little evidence a ratio stays near the ratio of the computer, and with none it is 1. The
//! uncertainty of the difference of two schedules is known, too: the choice changes where the difference would have to
//! be an unlikely error.

use super::case::{Case, distance};
use super::case_runs::CaseRuns;

/// Standard deviations of the parts, in logarithms: estimates from the ratios of `bench/NOTES.md`, which differ by
/// about 0.4 between processors, by 0.6 between towers and sweeps on one of them, and by 0.15 between schemes.
const COMPUTER: f64 = 0.3;
const FAMILY: f64 = 0.15;
const KIND: f64 = 0.3;
const KIND_AND_FAMILY: f64 = 0.15;
const KIND_AND_CLASS: f64 = 0.15;
const OWN: f64 = 0.1;
/// The same of the noise of a run.
const NOISE: f64 = 0.15;

/// Logarithms to base 2 over which sizes of grids and of tiles have most of their part in common.
const CLASSES: f64 = 1.5;
const SIZES: f64 = 1.0;

/// Runs of a case from which on it has a say in the choice: one may have been disturbed.
const RUNS: usize = 2;

/// A choice changes for a gain of more than this beyond the uncertainty, in logarithms.
const GAIN: f64 = 0.03;

/// Schedules that tuning compares with the one that would run.
const OTHERS: usize = 3;

/// A schedule is tried if it is expected to reach this share of the rate of the one that would run.
const FAST: f64 = 0.75;

/// A schedule is known to be slower if it is so by more than this many standard deviations.
const LIKELY: f64 = 2.0;

/// No ratio is corrected by more than this factor, up or down.
const MOST: f64 = 16.0;

/// The runs of one computer.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    records: Vec<CaseRuns>,
    /// Of all records.
    all: Posterior,
    /// Of the records that count in the choice.
    sure: Posterior,
}

/// The correction of the prediction of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    /// Corrected over modelled rate.
    pub ratio: f64,
    /// Runs that it rests on.
    pub runs: u64,
    /// The runs of them with the same family, schedule and size of the grid.
    pub alike: u64,
}

impl Evidence {
    /// The evidence of records of one computer.
    pub fn new(records: Vec<CaseRuns>) -> Self {
        let sure = records.iter().filter(|record| record.ratios.len() >= RUNS);
        Self {
            all: Posterior::new(records.iter()),
            sure: Posterior::new(sure),
            records,
        }
    }

    pub fn records(&self) -> &[CaseRuns] {
        &self.records
    }

    /// The learned rate of a case; `None` if nothing ran on the computer yet.
    pub fn learned(&self, case: &Case) -> Option<Learned> {
        let runs = self.records.iter().map(|record| record.runs).sum();
        let alike = self.records.iter().find(|record| record.case == *case);
        let ratio = self.all.mean(&self.all.covariances(case)).exp();
        (runs > 0).then(|| Learned {
            ratio: ratio.clamp(1.0 / MOST, MOST),
            runs,
            alike: alike.map_or(0, |record| record.runs),
        })
    }

    /// Of cases with the rates that the model expects of them, the one to take. The first one is the model's choice:
    /// it stays, unless another one is expected to be faster by more than the uncertainty of the two.
    pub fn choice(&self, cases: &[(Case, f64)]) -> usize {
        let Some(((first, modelled), _)) = cases.split_first() else {
            return 0;
        };
        if self.sure.cases.is_empty() {
            return 0;
        }
        let first = self.sure.seen(first);
        let mut best = (GAIN, 0);
        for (index, (case, rate)) in cases.iter().enumerate().skip(1) {
            let seen = self.sure.seen(case);
            let gain = (rate / modelled).ln() + seen.mean - first.mean;
            let surplus = gain - seen.difference(&first).sqrt();
            if surplus > best.0 {
                best = (surplus, index);
            }
        }
        best.1
    }

    /// Of cases with the rates that the model expects of them, the cases to try beside its own one: indices
    /// of cases that are expected to be fast, are far from each other, and are not known to be slower.
    pub fn worth_trying(&self, cases: &[(Case, f64)], own: usize) -> Vec<usize> {
        let Some((own, rate)) = cases.get(own) else {
            return Vec::new();
        };
        let first = self.all.seen(own);
        // The logarithm of the rate over that of the own one, with its standard deviation.
        let gain = |(case, modelled): &(Case, f64)| {
            let seen = self.all.seen(case);
            let gain = (modelled / rate).ln() + seen.mean - first.mean;
            (gain, seen.difference(&first).sqrt())
        };
        let gains = cases.iter().map(gain).enumerate();
        let mut order: Vec<(usize, (f64, f64))> = gains
            .filter(|(_, (gain, error))| *gain >= FAST.ln() && gain + LIKELY * error >= 0.0)
            .collect();
        order.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0));
        let (mut seen, mut tried) = (vec![own], Vec::new());
        for (index, _) in order {
            let case = &cases[index].0;
            if tried.len() < OTHERS && seen.iter().all(|other| case.is_far_from(other)) {
                seen.push(case);
                tried.push(index);
            }
        }
        tried
    }
}

/// Errors of the model, given some records.
#[derive(Clone, Debug, Default)]
struct Posterior {
    cases: Vec<Case>,
    /// The covariances of the measured errors as the product of a lower triangle with its transpose, row by row.
    triangle: Vec<Vec<f64>>,
    /// The inverse of the covariances, applied to the measured errors.
    weights: Vec<f64>,
}

/// A case as records see it.
struct Seen<'a> {
    case: &'a Case,
    mean: f64,
    /// The triangle's inverse, applied to the covariances with the records.
    reduced: Vec<f64>,
}

impl Posterior {
    fn new<'a>(records: impl Iterator<Item = &'a CaseRuns>) -> Self {
        let mut posterior = Self::default();
        let mut errors = Vec::new();
        for record in records {
            // With the noise in it, the covariances of the measured errors stay positive definite.
            let noise = NOISE * NOISE / record.ratios.len().max(1) as f64;
            let mut row = posterior.reduced(&posterior.covariances(&record.case));
            let rest = covariance(&record.case, &record.case) + noise;
            let rest = rest - row.iter().map(|x| x * x).sum::<f64>();
            row.push(rest.max(noise / 2.0).sqrt());
            posterior.triangle.push(row);
            posterior.cases.push(record.case.clone());
            errors.push(record.ratio().ln());
        }
        let mut weights = posterior.reduced(&errors);
        for i in (0..weights.len()).rev() {
            let later = (i + 1..weights.len()).map(|j| posterior.triangle[j][i] * weights[j]);
            weights[i] = (weights[i] - later.sum::<f64>()) / posterior.triangle[i][i];
        }
        posterior.weights = weights;
        posterior
    }

    fn covariances(&self, case: &Case) -> Vec<f64> {
        let cases = self.cases.iter();
        cases.map(|other| covariance(case, other)).collect()
    }

    fn mean(&self, covariances: &[f64]) -> f64 {
        product(covariances, &self.weights)
    }

    /// Applies the triangle's inverse.
    fn reduced(&self, values: &[f64]) -> Vec<f64> {
        let mut reduced: Vec<f64> = Vec::with_capacity(values.len() + 1);
        for (row, value) in self.triangle.iter().zip(values) {
            let own = reduced.len();
            reduced.push((value - product(&row[..own], &reduced)) / row[own]);
        }
        reduced
    }

    fn seen<'a>(&self, case: &'a Case) -> Seen<'a> {
        let covariances = self.covariances(case);
        Seen {
            case,
            mean: self.mean(&covariances),
            reduced: self.reduced(&covariances),
        }
    }
}

impl Seen<'_> {
    /// The variance of the difference of the errors of two cases.
    fn difference(&self, other: &Seen<'_>) -> f64 {
        let of = |a: &Seen<'_>, b: &Seen<'_>| {
            covariance(a.case, b.case) - product(&a.reduced, &b.reduced)
        };
        (of(self, self) + of(other, other) - 2.0 * of(self, other)).max(0.0)
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The covariance of the errors of two cases on a computer.
fn covariance(a: &Case, b: &Case) -> f64 {
    let near = |distance: f64, over: f64| (-distance * distance / (2.0 * over * over)).exp();
    let mut sum = COMPUTER * COMPUTER;
    let alike = a.family == b.family;
    if alike {
        sum += FAMILY * FAMILY;
    }
    if a.kind != b.kind {
        return sum;
    }
    let classes = near(f64::from(a.class) - f64::from(b.class), CLASSES);
    sum += KIND * KIND + KIND_AND_CLASS * KIND_AND_CLASS * classes;
    if alike {
        let sizes = near(distance(&a.sizes, &b.sizes), SIZES);
        sum += KIND_AND_FAMILY * KIND_AND_FAMILY + OWN * OWN * classes * sizes;
    }
    sum
}

#[cfg(test)]
mod tests;
