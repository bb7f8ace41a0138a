//! How far the fastest long waves get in a step, in cells: the Courant number.

use super::places::{Places, setting};
use super::step::Step;
use super::waves::{Branch, Medium, branches};
use crate::lattice::PerAxis;
use crate::scheme::Scheme;
use crate::statics::Files;
use num_complex::Complex64;
use std::f64::consts::TAU;

/// The waves that are looked at, in cells: shorter ones than elsewhere, because in single precision the weights of
/// second differences do not add up to 0, which shows in the longest waves first.
const LENGTH: f64 = 32.0;

/// The fastest long waves along the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Whether they move, with a speed, or decay, with a diffusivity.
    pub moves: bool,
    /// Their frequency over the wave number to the power 1 or 2.
    pub coefficient: f64,
    /// `coefficient * dt / h` where they move and `coefficient * dt / h^2` where they decay, with the smallest cell
    /// size h.
    pub number: f64,
}

/// Samples of wave numbers in an octave.
const PER_OCTAVE: usize = 14;

/// The frequency over the power of the wave number to which it is in proportion, for infinitely long waves: a parabola
/// in the square of the wave number through three samples, so that errors of the second and of the fourth order cancel.
fn long_waves(branch: &Branch, numbers: &[f64]) -> Complex64 {
    let samples = [0, PER_OCTAVE / 2, PER_OCTAVE];
    let squares = samples.map(|i| numbers[i] * numbers[i]);
    let values = samples.map(|i| branch.omega[i] / numbers[i].powi(branch.power as i32));
    let weight = |i: usize| {
        let others = (0..3).filter(|j| *j != i);
        let factors = others.map(|j| squares[j] / (squares[j] - squares[i]));
        factors.product::<f64>()
    };
    (0..3).map(|i| values[i] * weight(i)).sum()
}

/// The pace of the fastest waves over all places. `None` where long waves are neither.
pub fn pace(scheme: &Scheme, files: &dyn Files, places: &Places) -> Option<Pace> {
    let grid = &scheme.grid;
    let smallest = grid
        .present()
        .map(|a| grid.spacing[a])
        .fold(f64::INFINITY, f64::min);
    let mut best: Option<Pace> = None;
    for place in &places.list {
        let step = Step::new(scheme, &setting(scheme, files, place.at)).ok()?;
        let blocks = step.blocks();
        let medium = Medium {
            step: &step,
            blocks: &blocks,
            spacing: grid.spacing,
            dt: grid.dt,
        };
        for axis in grid.present() {
            let mut direction = PerAxis::splat(0.0);
            direction[axis] = 1.0;
            let first = TAU / (LENGTH * grid.spacing[axis]);
            let numbers: Vec<f64> = (0..=PER_OCTAVE + 2)
                .map(|i| first * f64::powf(2.0, i as f64 / PER_OCTAVE as f64))
                .collect();
            for sign in [1.0, -1.0] {
                let direction = direction.map(|d| sign * d);
                for branch in branches(&medium, direction, &numbers)?.list {
                    let long = long_waves(&branch, &numbers);
                    let (coefficient, power) = match (branch.moves(), branch.power) {
                        (true, 1) => (long.re.abs(), 1),
                        (false, 2) => (long.im.abs(), 2),
                        _ => continue,
                    };
                    let found = Pace {
                        moves: branch.moves(),
                        coefficient,
                        number: coefficient * grid.dt / smallest.powi(power),
                    };
                    // Where some waves move and others decay, the moving ones count.
                    let rank = |p: &Pace| (p.moves, p.number);
                    if best.is_none_or(|b| rank(&found) > rank(&b)) {
                        best = Some(found);
                    }
                }
            }
        }
    }
    best
}
