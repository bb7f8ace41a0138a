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
    mut halved: impl FnMut(i32) -> Option<Sized>,
) -> Order {
    let mut levels = Vec::new();
    for n in 1..=HALVINGS {
        match halved(n) {
            Some(sized) => levels.push(sized),
            None => return Order::Unknown,
        }
    }
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
                .collect();
            let own = values.map_or(Order::Unknown, |v| convergence(&v));
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
    let size = values.iter().map(|v| v.norm()).fold(0.0, f64::max);
    let differences: Vec<f64> = values.windows(2).map(|w| (w[0] - w[1]).norm()).collect();
    if differences.iter().all(|d| *d < 1e-11 * size) {
        return Order::Exact;
    }
    let exact = |d: &&[f64]| d[1] > 1e-10 * size;
    let powers: Vec<f64> = differences
        .windows(2)
        .filter(exact)
        .map(|d| (d[0] / d[1]).log2())
        .collect();
    // Powers themselves converge, by a factor of 4 or 2 per halving.
    let power = match powers[..] {
        [] => return Order::Unknown,
        [only] => only,
        [.., before, last] if (last - before).abs() > 0.5 => return Order::Unknown,
        [.., before, last] => last + (last - before) / 3.0,
    };
    let whole = power.round();
    if (power - whole).abs() < 0.2 && whole >= 1.0 {
        Order::Power(whole as u32)
    } else {
        Order::Unknown
    }
}
