//! Frequencies of waves as functions of their wave number, followed from long waves to short ones.

use super::step::{Block, Step};
use crate::lattice::PerAxis;
use num_complex::Complex64;

/// The longest wave that is looked at, in cells.
const LONGEST: f64 = 512.0;
/// The longest wave of tables, in cells.
pub const LONGEST_LISTED: f64 = 40.0;
/// Phases per step below which frequencies are not told from 0: an eigenvalue that lacks an eigenvector is off by 2e-8.
const STILL: f64 = 1e-6;
/// The share of a frequency that is real where values oscillate.
const OSCILLATES: f64 = 1e-3;
/// The same share where values oscillate and rounding is not the cause.
const SURELY_OSCILLATES: f64 = 0.1;
/// The distance of the second wave number that is looked at from the first one, over the first one.
const NEAR: f64 = 1e-3;
/// Rounding may change eigenvalues that lack an eigenvector by so much.
const ROUNDING: f64 = 4e-8;
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
    /// The number of the longest wave of this kind: its frequency is told from 0.
    pub longest: usize,
    /// Still longer waves only decay, as waves with losses do, or follow no power.
    pub is_other_when_longer: bool,
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
            1 => oscillates(omega),
            _ => omega.re.abs() > omega.im.abs(),
        }
    }

    /// Whether a wave with a frequency is of another kind than long waves of this one: it oscillates where these only
    /// decay, or only decays where these move. A value that changes its sign in each step of `dt` does not oscillate.
    pub fn is_other(&self, omega: Complex64, dt: f64) -> bool {
        let alternates = (omega.re.abs() * dt - std::f64::consts::PI).abs() < STILL;
        match oscillates(self.long()) {
            true => self.moves() && !oscillates(omega),
            false => !alternates && surely_oscillates(omega),
        }
    }

    /// The frequency of the longest wave.
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

/// The slope of a function of the squared wave number at 0: that of the polynomial through its values at some samples.
pub fn slope<const N: usize>(
    wave_numbers: &[f64],
    samples: [usize; N],
    value: impl Fn(usize) -> f64,
) -> f64 {
    let squares = samples.map(|i| wave_numbers[i] * wave_numbers[i]);
    let weight = |i: usize| {
        let others = || (0..N).filter(|j| *j != i).map(|j| squares[j]);
        let at_0: f64 = others().map(|s| s / (s - squares[i])).product();
        -at_0 * others().map(|s| 1.0 / s).sum::<f64>()
    };
    (0..N).map(|i| value(samples[i]) * weight(i)).sum()
}

/// A wave number, and the wave numbers of waves that are shorter by half an octave and by an octave, if the list has
/// them.
fn octave(wave_numbers: &[f64], first: usize) -> Option<[usize; 3]> {
    let after = |factor: f64| wave_numbers.partition_point(|k| *k < factor * wave_numbers[first]);
    let samples = [first, after(std::f64::consts::SQRT_2), after(2.0)];
    let [_, middle, last] = samples;
    (first < middle && middle < last && last < wave_numbers.len()).then_some(samples)
}

/// The speed of long waves whose frequencies are in proportion to the wave number, from waves of one length and of half
/// of it. Losses a and b of two fields that drive each other change frequencies, to
/// (Re w)^2 = c^2 k^2 - ((a - b) / 2)^2, and leave the slope of the square. `None` where there are no such waves.
pub fn speed(omega: &[Complex64], wave_numbers: &[f64], first: usize) -> Option<f64> {
    let samples = octave(wave_numbers, first)?;
    let square = slope(wave_numbers, samples, |i| omega[i].re * omega[i].re);
    (square > 0.0).then(|| square.sqrt())
}

/// Whether the squares of real frequencies rise in proportion to squares of wave numbers, from an octave of long waves
/// on, and from 0 or less: waves with losses move then, too. Uniform values that oscillate are none of these.
fn is_proportional(omega: &[Complex64], wave_numbers: &[f64], first: usize) -> bool {
    let Some(samples) = octave(wave_numbers, first) else {
        return false;
    };
    if samples.iter().any(|i| !oscillates(omega[*i])) {
        return false;
    }
    let [a, b, c] = samples.map(|i| (wave_numbers[i].powi(2), omega[i].re.powi(2)));
    let between = |p: (f64, f64), q: (f64, f64)| (q.1 - p.1) / (q.0 - p.0);
    let (low, high) = (between(a, b), between(b, c));
    low > 0.0 && (high / low - 1.0).abs() <= SLACK && a.1 <= (1.0 + 2.0 * SLACK) * low * a.0
}

/// Whether a frequency is real, with losses or without.
fn oscillates(omega: Complex64) -> bool {
    omega.re.abs() > OSCILLATES * omega.norm()
}

/// Whether values oscillate, and rounding is not the cause.
pub fn surely_oscillates(omega: Complex64) -> bool {
    omega.re.abs() > SURELY_OSCILLATES * omega.norm()
}

/// The power of the wave number to which frequencies are in proportion from a wave on. `None` where they are in
/// proportion to none, or where waves half as long oscillate and these do not.
fn power(omega: &[Complex64], wave_numbers: &[f64], first: usize) -> Option<u32> {
    if is_proportional(omega, wave_numbers, first) {
        return Some(1);
    }
    let after = |factor: f64| wave_numbers.partition_point(|k| *k < factor * wave_numbers[first]);
    let second = after(2.0);
    let ratio = omega.get(second)?.norm() / omega[first].norm();
    let shorter = after(2.25).min(omega.len() - 1);
    if !oscillates(omega[first]) && surely_oscillates(omega[shorter]) {
        return None;
    }
    let power = ratio.ln() / (wave_numbers[second] / wave_numbers[first]).ln();
    let whole = power.round();
    ((power - whole).abs() <= SLACK && whole >= 0.0).then_some(whole as u32)
}

/// The number of the longest wave of tables, if longer ones are in the list, too.
fn longest_listed(wave_numbers: &[f64]) -> Option<usize> {
    let least = LONGEST / LONGEST_LISTED * wave_numbers[0] * (1.0 - 1e-9);
    let number = wave_numbers.partition_point(|k| *k < least);
    (number < wave_numbers.len()).then_some(number)
}

/// The frequency over the power of the wave number to which it is in proportion, for infinitely long waves. A part that
/// is in proportion to another power, as numerical dissipation is, is 0 there.
pub fn long_waves(branch: &Branch, wave_numbers: &[f64]) -> Complex64 {
    let long = extrapolated(branch, wave_numbers);
    if !branch.moves() {
        return long;
    }
    let speed = match branch.power {
        1 => speed(&branch.omega, wave_numbers, branch.longest),
        _ => None,
    };
    let re = speed.map_or(long.re, |c| c.copysign(branch.long().re));
    let im = octave(wave_numbers, branch.longest).map_or(long.im, |[first, _, last]| {
        let ratio = branch.omega[last].im / branch.omega[first].im;
        let power = ratio.ln() / (wave_numbers[last] / wave_numbers[first]).ln();
        match (power - f64::from(branch.power)).abs() <= SLACK {
            true => long.im,
            false => 0.0,
        }
    });
    Complex64::new(re, im)
}

/// The same with both parts in proportion to that power.
fn extrapolated(branch: &Branch, wave_numbers: &[f64]) -> Complex64 {
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
        let long = power(&omega, wave_numbers, longest).map(|power| (power, longest));
        // Losses stop long waves first.
        let listed = longest_listed(wave_numbers)
            .filter(|&n| n > longest && is_proportional(&omega, wave_numbers, n))
            .map(|n| (1, n));
        let is_other_when_longer =
            listed.is_some() && (long.is_none() || !oscillates(omega[longest]));
        let Some((power, longest)) = (if is_other_when_longer { listed } else { long }) else {
            self.irregular += 1;
            return;
        };
        let branch = Branch {
            power,
            omega,
            longest,
            is_other_when_longer,
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
    let eigenvalues = |k: f64| {
        let theta = PerAxis::from_fn(|a| k * direction[a] * medium.spacing[a]);
        medium.step.amplification(block, theta).eigenvalues()
    };
    let first = *wave_numbers.first()?;
    let starts = eigenvalues(first)?;
    let near = (1.0 + NEAR) * first;
    let values = eigenvalues(near)?;
    let mut curves: Vec<Curve> = assigned(&starts, &values)
        .into_iter()
        .zip(&starts)
        .map(|(number, start)| Curve {
            values: vec![*start],
            near: values[number],
        })
        .collect();
    for (i, &k) in wave_numbers.iter().enumerate().skip(1) {
        let values = eigenvalues(k)?;
        let expected = curves
            .iter()
            .map(|c| c.expected(&wave_numbers[..i], near, k));
        let expected: Vec<Complex64> = expected.collect();
        for (curve, number) in curves.iter_mut().zip(assigned(&expected, &values)) {
            curve.values.push(values[number]);
        }
    }
    Some(curves.into_iter().map(|curve| curve.values).collect())
}

/// An eigenvalue as far as it has been followed.
struct Curve {
    values: Vec<Complex64>,
    /// The value very near to the first one: waves of nearly the same speed are told from each other by their slopes.
    near: Complex64,
}

impl Curve {
    /// The value to expect at a wave number, from the values at `before`: a polynomial continues their logarithms.
    fn expected(&self, before: &[f64], near: f64, k: f64) -> Complex64 {
        let (values, count) = (&self.values, before.len());
        let samples: Vec<(f64, Complex64)> = match count {
            1 => vec![(near, self.near), (before[0], values[0])],
            _ => (count.saturating_sub(3)..count)
                .map(|i| (before[i], values[i]))
                .collect(),
        };
        let last = values[count - 1];
        if samples.iter().any(|(_, value)| value.norm() <= 1e-3) {
            return last;
        }
        if count == 1 && (self.near - last).norm() <= ROUNDING {
            return self.by_power(before[0], near, k).unwrap_or(last);
        }
        let weight = |at: f64| {
            let others = samples.iter().filter(|(other, _)| *other != at);
            others
                .map(|(other, _)| (k - other) / (at - other))
                .product::<f64>()
        };
        let logarithms = samples
            .iter()
            .map(|(at, value)| (value / last).ln() * weight(*at));
        last * logarithms.sum::<Complex64>().exp()
    }

    /// The same for values that hardly differ at the first two wave numbers, as in small steps. Rounding may be the
    /// cause of the difference: `None` unless frequencies are in proportion to a power of the wave number.
    fn by_power(&self, first: f64, near: f64, k: f64) -> Option<Complex64> {
        let [a, b] = [self.values[0], self.near].map(Complex64::ln);
        let power = (b.norm() / a.norm()).ln() / (near / first).ln();
        let whole = power.round();
        let is_whole = (power - whole).abs() <= SLACK && whole >= 1.0;
        is_whole.then(|| (a * (k / first).powf(whole)).exp())
    }
}

/// For each expected value the number of the value that it is: the nearest pairs first.
fn assigned(expected: &[Complex64], values: &[Complex64]) -> Vec<usize> {
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (e, wanted) in expected.iter().enumerate() {
        let values = values.iter().enumerate();
        pairs.extend(values.map(|(v, value)| ((wanted - value).norm(), e, v)));
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut assigned = vec![None; expected.len()];
    let mut is_free = vec![true; values.len()];
    for (_, e, v) in pairs {
        if assigned[e].is_none() && is_free[v] {
            (assigned[e], is_free[v]) = (Some(v), false);
        }
    }
    // There are as many values as expected ones.
    assigned
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect()
}
