//! Frequencies of waves as functions of their wave number, followed from long waves to short ones.

use super::matrix::Matrix;
use super::step::{Block, Step};
use crate::lattice::PerAxis;
use num_complex::Complex64;

/// The longest wave that is looked at, in cells.
const LONGEST: f64 = 512.0;
/// Phases per step below which frequencies are not told from 0: an eigenvalue that lacks an eigenvector is off by 2e-8.
const STILL: f64 = 1e-6;
/// The share of a frequency that is real where values oscillate.
const OSCILLATES: f64 = 1e-3;
/// How far exponents may be off whole numbers.
const SLACK: f64 = 0.1;

/// A step with the meaning of its phases.
pub struct Medium<'a> {
    pub step: &'a Step,
    pub blocks: &'a [Block],
    pub spacing: PerAxis<f64>,
    pub dt: f64,
}

/// How the frequency of a kind of waves depends on their wave number.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Long waves have frequencies in proportion to this power of the wave number.
    pub power: u32,
    /// Frequencies at all wave numbers: exp(-i omega t); a decaying wave's have a negative imaginary part.
    pub omega: Vec<Complex64>,
    /// The number of the longest wave whose frequency is told from 0.
    pub longest: usize,
}

impl Branch {
    /// Long waves move: their frequencies are real rather than imaginary. Where these are in proportion to the wave
    /// number, waves that fade move, too.
    pub fn moves(&self) -> bool {
        self.moves_at(self.longest)
    }

    /// The same for a wave of another length.
    pub fn moves_at(&self, number: usize) -> bool {
        let omega = self.omega[number];
        match self.power {
            1 => omega.re.abs() > OSCILLATES * omega.norm(),
            _ => omega.re.abs() > omega.im.abs(),
        }
    }

    /// The frequency of the longest wave that is told from one that stands still.
    fn long(&self) -> Complex64 {
        self.omega[self.longest]
    }
}

/// All kinds of waves along a direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Branches {
    /// The fastest first; of moving waves only the ones with positive frequencies.
    pub list: Vec<Branch>,
    /// Kinds that stand still, for all lengths of waves.
    pub still: usize,
    /// Kinds whose long waves have frequencies in proportion to no power of the wave number.
    pub irregular: usize,
    /// Kinds of which even long waves have a quarter of a period in a step, or more: products of the scheme, or waves
    /// that are not resolved in time.
    pub fast: usize,
}

/// Wave numbers from the longest wave up to `last`, by small factors first, then by small differences; `also` are
/// among them.
pub fn wave_numbers(cell: f64, last: f64, also: &[f64]) -> Vec<f64> {
    let mut list = Vec::new();
    let first = std::f64::consts::TAU / (LONGEST * cell);
    let mut k = first;
    while k < last {
        list.push(k);
        k += (0.05 * k).min(0.03 / cell);
    }
    list.push(last);
    list.extend(also.iter().copied().filter(|&k| k < last && k > first));
    list.sort_unstable_by(f64::total_cmp);
    list.dedup_by(|a, b| (*a - *b).abs() < 1e-9 * *b);
    list
}

/// Follows all waves along a direction (a unit vector). `None` if eigenvalues could not be computed.
pub fn branches(
    medium: &Medium,
    direction: PerAxis<f64>,
    wave_numbers: &[f64],
) -> Option<Branches> {
    let mut found = Branches::default();
    for block in medium.blocks {
        for curve in follow(medium, block, direction, wave_numbers)? {
            found.sort_in(curve, medium.dt, wave_numbers);
        }
    }
    // Waves that differ only when they are short are told from each other there.
    let middle = wave_numbers.len() / 2;
    let long = |of: &Branch| {
        let coefficient = of.long().norm() / wave_numbers[of.longest].powi(of.power as i32);
        (coefficient.ln() * 1e6).round()
    };
    found.list.sort_by(|a, b| {
        let long = long(b).total_cmp(&long(a));
        let short = b.omega[middle].norm().total_cmp(&a.omega[middle].norm());
        a.power.cmp(&b.power).then(long).then(short)
    });
    Some(found)
}

/// The frequency over the power of the wave number to which it is in proportion, for infinitely long waves.
pub fn long_waves(branch: &Branch, wave_numbers: &[f64]) -> Complex64 {
    let last = wave_numbers.len() - 1;
    let first = branch.longest;
    let second = wave_numbers
        .partition_point(|k| *k < 2.0 * wave_numbers[first])
        .min(last);
    let power = branch.power as i32;
    let [a, b] = [first, second].map(|i| branch.omega[i] / wave_numbers[i].powi(power));
    if second == first {
        return a;
    }
    // Errors of the second order cancel.
    let ratio = (wave_numbers[second] / wave_numbers[first]).powi(2);
    (a * ratio - b) / (ratio - 1.0)
}

impl Branches {
    /// Takes in a curve of eigenvalues.
    fn sort_in(&mut self, curve: Vec<Complex64>, dt: f64, wave_numbers: &[f64]) {
        let first = curve[0];
        // A value that is forgotten within a step is no wave.
        if first.norm() < 0.1 {
            return;
        }
        if first.re <= 0.0 {
            self.fast += 1;
            return;
        }
        let omega = unwrapped(&curve, dt);
        let Some(longest) = omega.iter().position(|w| w.norm() * dt > STILL) else {
            self.still += 1;
            return;
        };
        let second = wave_numbers.partition_point(|k| *k < 2.0 * wave_numbers[longest]);
        let ratio = omega.get(second).map(|w| w.norm() / omega[longest].norm());
        let power = ratio.map(|r| r.ln() / (wave_numbers[second] / wave_numbers[longest]).ln());
        let whole = power.filter(|p| (p - p.round()).abs() <= SLACK && p.round() >= 0.0);
        let Some(power) = whole else {
            self.irregular += 1;
            return;
        };
        let branch = Branch {
            power: power.round() as u32,
            omega,
            longest,
        };
        // The one with a negative frequency is the same wave in the other direction.
        if !branch.moves() || branch.long().re > 0.0 {
            self.list.push(branch);
        }
    }
}

/// i ln(lambda) / dt, without jumps.
fn unwrapped(curve: &[Complex64], dt: f64) -> Vec<Complex64> {
    let mut last = 0.0;
    curve
        .iter()
        .map(|lambda| {
            let mut angle = -lambda.arg();
            angle += ((last - angle) / std::f64::consts::TAU).round() * std::f64::consts::TAU;
            last = angle;
            Complex64::new(angle, lambda.norm().ln()) / dt
        })
        .collect()
}

/// The eigenvalues of a block along a direction, each followed by continuation.
fn follow(
    medium: &Medium,
    block: &Block,
    direction: PerAxis<f64>,
    wave_numbers: &[f64],
) -> Option<Vec<Vec<Complex64>>> {
    let matrix = |k: f64| -> Matrix {
        let theta = PerAxis::from_fn(|a| k * direction[a] * medium.spacing[a]);
        medium.step.amplification(block, theta)
    };
    let mut curves: Vec<Vec<Complex64>> = matrix(*wave_numbers.first()?)
        .eigenvalues()?
        .into_iter()
        .map(|v| vec![v])
        .collect();
    for (i, &k) in wave_numbers.iter().enumerate().skip(1) {
        let values = matrix(k).eigenvalues()?;
        let expected = curves.iter().map(|c| match c[..] {
            [.., before, last] if before.norm() > 1e-3 => {
                let step = (k - wave_numbers[i - 1]) / (wave_numbers[i - 1] - wave_numbers[i - 2]);
                last * (last / before).powf(step)
            }
            [.., last] => last,
            [] => Complex64::ZERO,
        });
        let expected: Vec<Complex64> = expected.collect();
        // The nearest pairs first.
        let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
        for (c, e) in expected.iter().enumerate() {
            pairs.extend(
                values
                    .iter()
                    .enumerate()
                    .map(|(v, x)| ((e - x).norm(), c, v)),
            );
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = (vec![true; curves.len()], vec![true; values.len()]);
        for (_, c, v) in pairs {
            if free.0[c] && free.1[v] {
                (free.0[c], free.1[v]) = (false, false);
                curves[c].push(values[v]);
            }
        }
    }
    Some(curves)
}
