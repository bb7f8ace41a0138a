//! How far the fastest long waves get in a step, in cells: the Courant number.

use super::cells::setting;
use super::places::Places;
use super::step::Step;
use super::waves::{Branch, Branches, Medium, branches, slope};
use crate::lattice::{Axis, PerAxis};
use crate::scheme::Scheme;
use crate::statics::Files;
use std::f64::consts::TAU;

/// The lengths of the waves that are looked at, in cells: shorter than elsewhere, because in single precision the
/// weights of second differences do not add up to 0, which shows in the longest waves first. Longer waves are looked at
/// where a step is too long for these.
const LENGTHS: [f64; 4] = [32.0, 128.0, 512.0, 2048.0];

/// The fastest long waves along the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Whether they move, with a speed, or decay, with a diffusivity.
    pub moves: bool,
    /// Their frequency over the wave number to the power 1 or 2, the largest over all axes.
    pub coefficient: f64,
    /// The largest of `c * dt / h` over all axes where they move, and of `c * dt / h^2` where they decay, with the
    /// coefficient c of waves along the axis and its cell size h.
    pub number: f64,
}

impl Pace {
    /// With others of the same kind.
    fn with(self, other: &Self) -> Self {
        Self {
            moves: self.moves,
            coefficient: self.coefficient.max(other.coefficient),
            number: self.number.max(other.number),
        }
    }
}

/// Samples of wave numbers in an octave.
const PER_OCTAVE: usize = 14;

/// Wave numbers that are samples of a branch: with this number of samples, the errors of four even orders cancel.
const SAMPLES: [usize; 5] = [0, 4, 8, 12, 16];

/// Waves along a direction, with their wave numbers. Of a step that is too long for some kinds of waves longer ones are
/// looked at, where more kinds are found.
fn long_branches(medium: &Medium, axis: Axis, sign: f64) -> Option<(Branches, Vec<f64>)> {
    let mut direction = PerAxis::splat(0.0);
    direction[axis] = sign;
    let mut best: Option<(Branches, Vec<f64>)> = None;
    let left_out = |b: &Branches| b.fast + b.irregular;
    for length in LENGTHS {
        let first = TAU / (length * medium.spacing[axis]);
        let numbers: Vec<f64> = (0..=PER_OCTAVE + 2)
            .map(|i| first * f64::powf(2.0, i as f64 / PER_OCTAVE as f64))
            .collect();
        let found = branches(medium, direction, &numbers)?;
        if best
            .as_ref()
            .is_none_or(|(b, _)| left_out(&found) < left_out(b))
        {
            best = Some((found, numbers));
        }
        if best.as_ref().is_some_and(|(b, _)| left_out(b) == 0) {
            break;
        }
    }
    best
}

/// The pace of one kind of waves. `None` where long waves neither move nor decay.
fn pace_of(branch: &Branch, numbers: &[f64]) -> Option<(bool, f64)> {
    // Losses slow the waves down that are as long as they are, and leave the fronts.
    let moves = SAMPLES.iter().all(|i| branch.moves_at(*i));
    match (moves, branch.power) {
        (true, 1) => {
            let square = slope(numbers, SAMPLES, |i| branch.omega[i].re.powi(2));
            (square > 0.0).then(|| (true, square.sqrt()))
        }
        (_, 2) if !branch.moves() => {
            let rate = slope(numbers, SAMPLES, |i| branch.omega[i].im);
            Some((false, rate.abs()))
        }
        _ => None,
    }
}

/// The pace of the fastest waves over all places. `None` where long waves are neither.
pub fn pace(scheme: &Scheme, files: &dyn Files, places: &Places) -> Option<Pace> {
    let grid = &scheme.grid;
    let mut best: Option<Pace> = None;
    // A cell and a face of another medium have no waves of their own.
    let alone = places
        .list
        .iter()
        .filter(|p| p.cell.upper == PerAxis::splat(false));
    for place in alone {
        let own = setting(scheme, files, place.cell);
        let step = Step::of_part(scheme, &own, &place.part).ok()?;
        let blocks = step.blocks();
        let medium = Medium {
            step: &step,
            blocks: &blocks,
            spacing: grid.spacing,
            dt: grid.dt,
        };
        for (axis, sign) in grid.present().flat_map(|a| [(a, 1.0), (a, -1.0)]) {
            let (found, numbers) = long_branches(&medium, axis, sign)?;
            for branch in &found.list {
                let Some((moves, coefficient)) = pace_of(branch, &numbers) else {
                    continue;
                };
                let power = if moves { 1 } else { 2 };
                let found = Pace {
                    moves,
                    coefficient,
                    number: coefficient * grid.dt / grid.spacing[axis].powi(power),
                };
                // Where some waves move and others decay, the moving ones count.
                best = Some(match best {
                    Some(b) if b.moves == moves => b.with(&found),
                    Some(b) if b.moves => b,
                    _ => found,
                });
            }
        }
    }
    best
}
