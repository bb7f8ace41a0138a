//! The order of accuracy: how fast frequencies converge as cells or steps become smaller.

use super::dispersion::{Direction, Sized};
use super::waves::{Branches, wave_numbers};
use num_complex::Complex64;
use std::f64::consts::TAU;

/// Halvings from which orders are taken.
const HALVINGS: i32 = 5;

/// The power of cell size or time step by which errors fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Power(u32),
    /// There is no error.
    Exact,
    /// The size cannot be changed, or errors follow no power.
    Unknown,
}

/// The power by which frequencies converge when a size is halved again and again, the lowest one over all waves.
pub(super) fn order(
    present: &Sized,
    directions: &[Direction],
    cell: f64,
    halved: impl FnMut(i32) -> Option<Sized>,
) -> Order {
    let levels = (1..=HALVINGS).map(halved);
    lowest(present, directions, cell, levels, convergence)
}

/// The same for steps and cells that are halved in turn: `halved` has the halvings of cells and of steps.
pub(super) fn order_together(
    present: &Sized,
    directions: &[Direction],
    cell: f64,
    mut halved: impl FnMut(i32, i32) -> Option<Sized>,
) -> Order {
    let levels = (0..HALVINGS).flat_map(|n| [(n, n + 1), (n + 1, n + 1)]);
    let levels = levels.map(|(space, time)| halved(space, time));
    lowest(present, directions, cell, levels, convergence_together)
}

/// The lowest order of all waves, each of which is that of its frequencies at present and at further levels.
fn lowest(
    present: &Sized,
    directions: &[Direction],
    cell: f64,
    levels: impl Iterator<Item = Option<Sized>>,
    order: impl Fn(&[Complex64]) -> Order,
) -> Order {
    let Some(levels) = levels.collect::<Option<Vec<Sized>>>() else {
        return Order::Unknown;
    };
    // Six points per wavelength: short enough for errors of high orders to be seen.
    let numbers = wave_numbers(cell, TAU / (6.0 * cell), &[]);
    let mut lowest: Option<Order> = None;
    for direction in directions {
        let all = std::iter::once(present).chain(&levels);
        let found: Option<Vec<Branches>> =
            all.map(|s| s.branches(direction.unit, &numbers)).collect();
        let Some(found) = found else {
            return Order::Unknown;
        };
        let kinds = found[0].list.len();
        if found.iter().any(|f| f.list.len() != kinds) {
            return Order::Unknown;
        }
        for kind in 0..kinds {
            let values: Option<Vec<Complex64>> = found
                .iter()
                .map(|f| f.list[kind].omega.last().copied())
                // Two kinds that decay when they are long may be one wave in both directions when they are short.
                .map(|omega| omega.map(|w| Complex64::new(w.re.abs(), w.im)))
                .collect();
            let own = values.map_or(Order::Unknown, |v| order(&v));
            lowest = Some(match (lowest, own) {
                (None, own) => own,
                (Some(Order::Unknown), _) | (_, Order::Unknown) => Order::Unknown,
                (Some(Order::Exact), own) => own,
                (Some(known), Order::Exact) => known,
                (Some(Order::Power(a)), Order::Power(b)) => Order::Power(a.min(b)),
            });
        }
    }
    lowest.unwrap_or(Order::Unknown)
}

/// The power of 2 by which the differences of a sequence shrink.
fn convergence(values: &[Complex64]) -> Order {
    whole(shrinkage(values.windows(2), size(values)))
}

/// The same where every second value is one of the sequence, and the values between have half the step and the same
/// cells. Only errors that shrink alike cancel: where one of both shrinks more slowly than their sum, it is small
/// still, and will be the larger one.
fn convergence_together(values: &[Complex64]) -> Order {
    let size = size(values);
    let sequence: Vec<Complex64> = values.iter().copied().step_by(2).collect();
    let both = shrinkage(sequence.windows(2), size);
    let time = shrinkage(values.windows(2).step_by(2), size);
    let space = shrinkage(values.windows(2).skip(1).step_by(2), size);
    let (Some(both), Some(time), Some(space)) = (both, time, space) else {
        return Order::Unknown;
    };
    let slower = time.min(space);
    let cancels = (time - space).abs() < 0.5;
    whole(Some(match slower < both - 0.5 && !cancels {
        true => slower,
        false => both,
    }))
}

/// The largest absolute value.
fn size(values: &[Complex64]) -> f64 {
    values.iter().map(|v| v.norm()).fold(0.0, f64::max)
}

/// The power of 2 by which the differences between pairs of values shrink, infinite where there are none. `None`: they
/// follow no power.
fn shrinkage<'a>(pairs: impl Iterator<Item = &'a [Complex64]>, size: f64) -> Option<f64> {
    let differences: Vec<f64> = pairs.map(|w| (w[0] - w[1]).norm()).collect();
    if differences.iter().all(|d| *d < 1e-11 * size) {
        return Some(f64::INFINITY);
    }
    let exact = |d: &&[f64]| d[1] > 1e-10 * size;
    let powers: Vec<f64> = differences
        .windows(2)
        .filter(exact)
        .map(|d| (d[0] / d[1]).log2())
        .collect();
    // Powers themselves converge, by a factor of 4 or 2 per halving.
    match powers[..] {
        [] => None,
        [only] => Some(only),
        [.., before, last] if (last - before).abs() > 0.5 => None,
        [.., before, last] => Some(last + (last - before) / 3.0),
    }
}

/// The order with a power, if that is close to a whole number.
fn whole(power: Option<f64>) -> Order {
    match power {
        Some(f64::INFINITY) => Order::Exact,
        Some(p) if (p - p.round()).abs() < 0.2 && p.round() >= 1.0 => {
            Order::Power(p.round() as u32)
        }
        _ => Order::Unknown,
    }
}
