//! The theory of central differences on uniform lattices, independent of the compiler: its coefficients come from the
//! literature.
//!
//! A staggered difference of order 2m with coefficients c_1 .. c_m,
//!
//! `(D f)(x) = 1/h sum_j c_j [f(x + (j - 1/2) h) - f(x - (j - 1/2) h)]`,
//!
//! takes exp(i k x) to i K(k) exp(i k x) with `K(k) = 2/h sum_j c_j sin((j - 1/2) k h)` ([`kappa`]). A centred second
//! difference with weights w_1 .. w_m at distance 1 .. m takes it to -K2(k) exp(i k x) with
//! `K2(k) = 2/h^2 sum_j w_j (1 - cos(j k h))` ([`kappa2`]).
//!
//! The leapfrog difference in time takes exp(-i w t) to -i W exp(-i w t), with `W = 2/dt sin(w dt / 2)`. So a plane
//! wave of a first-order system with speed c obeys `W^2 = c^2 sum_a K(k_a)^2`, one of the wave equation
//! `W^2 = c^2 sum_a K2(k_a)` ([`omega`]).

/// Coefficients c_1, c_2, ... of the staggered difference: B. Fornberg and M. Ghrist, SIAM J. Numer. Anal. 37 (1999)
/// 105-130.
pub fn staggered(order: u32) -> &'static [f64] {
    match order {
        2 => &[1.0],
        4 => &[9.0 / 8.0, -1.0 / 24.0],
        6 => &[75.0 / 64.0, -25.0 / 384.0, 3.0 / 640.0],
        8 => &[
            1225.0 / 1024.0,
            -245.0 / 3072.0,
            49.0 / 5120.0,
            -5.0 / 7168.0,
        ],
        _ => panic!("no staggered difference of order {order} in the tables"),
    }
}

/// Weights w_1, w_2, ... of the centred second difference: B. Fornberg, Math. Comp. 51 (1988) 699-706, table 1.
pub fn second(order: u32) -> &'static [f64] {
    match order {
        2 => &[1.0],
        4 => &[4.0 / 3.0, -1.0 / 12.0],
        6 => &[3.0 / 2.0, -3.0 / 20.0, 1.0 / 90.0],
        8 => &[8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0],
        _ => panic!("no second difference of order {order} in the tables"),
    }
}

/// K(k) of the staggered difference.
pub fn kappa(k: f64, h: f64, order: u32) -> f64 {
    let sum: f64 = (1..)
        .zip(staggered(order))
        .map(|(j, c)| c * ((f64::from(j) - 0.5) * k * h).sin())
        .sum();
    2.0 / h * sum
}

/// K2(k) of the centred second difference.
pub fn kappa2(k: f64, h: f64, order: u32) -> f64 {
    let sum: f64 = (1..)
        .zip(second(order))
        .map(|(j, w)| w * (1.0 - (f64::from(j) * k * h).cos()))
        .sum();
    2.0 / (h * h) * sum
}

/// The frequency w of `2/dt sin(w dt / 2) = rate`.
pub fn omega(rate: f64, dt: f64) -> f64 {
    2.0 / dt * (0.5 * dt * rate).asin()
}

/// The largest stable `c dt / h` of a staggered scheme: W is at most 2/dt, and K at most 2/h sum |c_j|.
pub fn staggered_limit(order: u32, axes: usize) -> f64 {
    let sum: f64 = staggered(order).iter().map(|c| c.abs()).sum();
    1.0 / (sum * (axes as f64).sqrt())
}

/// The largest stable `c dt / h` of the wave equation.
pub fn second_limit(order: u32, axes: usize) -> f64 {
    let highest = kappa2(std::f64::consts::PI, 1.0, order);
    2.0 / (highest * axes as f64).sqrt()
}
