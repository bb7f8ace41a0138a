//! Cylindrical waves, and Fourier sums of series.

use num_complex::Complex64;
use std::f64::consts::{FRAC_PI_2, PI};

/// The Hankel function of the first kind, by its integral over exp(i x cosh t - order t) along a path on which it
/// decays. Its real part is the Bessel function.
pub fn hankel(order: f64, x: f64) -> Complex64 {
    let i = Complex64::i();
    let step = 4e-3;
    let sum: Complex64 = (-2_000..=2_000)
        .map(|n| {
            let s = f64::from(n) * step;
            let t = s + i * FRAC_PI_2 * s.tanh();
            let along = 1.0 + i * FRAC_PI_2 / s.cosh().powi(2);
            (i * x * t.cosh() - order * t).exp() * along * step
        })
        .sum();
    (-i * order * FRAC_PI_2).exp() / (PI * i) * sum
}

/// The sum of u(n) exp(i w n dt) dt: the amplitude of exp(-i w t).
pub fn transform(u: &[f64], w: f64, dt: f64) -> Complex64 {
    let turn = |n: usize| (Complex64::i() * w * n as f64 * dt).exp() * dt;
    u.iter().enumerate().map(|(n, u)| turn(n) * u).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hankel_functions_are_those_of_tables() {
        // J and Y of M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, tables 9.1 and 9.2.
        for (order, x, j, y) in [
            (0.0, 1.0, 0.765_197_686_6, 0.088_256_964_2),
            (1.0, 1.0, 0.440_050_585_7, -0.781_212_821_3),
            (0.0, 10.0, -0.245_935_764_5, 0.055_671_167_3),
            (1.0, 10.0, 0.043_472_746_2, 0.249_015_424_2),
        ] {
            let found = hankel(order, x);
            let error = (found - Complex64::new(j, y)).norm();
            assert!(error < 1e-9, "{order} {x}: {found}");
        }
    }
}
