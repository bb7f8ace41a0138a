//! A line force in an endless elastic body, against Green's function: the layers let its waves go, and the scheme
//! carries them.
//!
//! A force exp(-i w t) along y at the origin moves the body by u = g_s / mu + (d/dy)^2 (g_s - g_p) / (rho w^2), with g
//! = i/4 H0(k r) for S and for P waves; at a place across the force (d/dy)^2 g = g'(r) / r.

use num_complex::Complex64;
use std::f64::consts::TAU;
use torre_suite::physics::bessel::hankel;
use torre_suite::physics::case::Case;

/// The velocity across the force at a distance, for P waves of speed sqrt(3), S waves and a density of 1.
fn velocity(distance: f64, w: f64) -> Complex64 {
    let i = Complex64::i();
    let (s, p) = (w, w / 3f64.sqrt());
    let slope = |k: f64| -0.25 * i * k * hankel(1.0, k * distance);
    let u = 0.25 * i * hankel(0.0, s * distance) + (slope(s) - slope(p)) / (distance * w * w);
    -i * w * u
}

/// With `TORRE_TEST_SOAK`, as it takes seconds.
#[test]
fn a_line_force_makes_the_waves_of_its_green_function() {
    if std::env::var("TORRE_TEST_SOAK").is_err() {
        return;
    }
    let errors = [(20, 0.02), (40, 0.005)].map(|(wave, most)| {
        let (f0, dt) = (1.0 / f64::from(wave), 0.3125);
        let case = Case::new(&format!(
            "use std::elastic::elastic_2d
             use std::sources::ramped_harmonic
             problem force {{
               scheme elastic_2d {{ dt = {dt} }}
               domain 120 x 90
               boundary all: cpml(20)
               source v.y at (34, 45) += dt * ramped_harmonic(t - dt/2, f0 = {f0})
               steps 1
             }}"
        ));
        let w = TAU * f0;
        let period = (f64::from(wave) / dt).round() as u64;
        // The slowest wave, and the time after the ramp.
        let steps = ((3.0 * 51.0 + 7.0 * f64::from(wave)) / dt) as u64;
        let mut run = case.start();
        let mut found = Complex64::default();
        for step in 1..=steps + period {
            run.step();
            if step > steps {
                let value = run.values("v.y")[(34 + 51) * case.width("v.y") + 45];
                let turned = (Complex64::i() * w * case.time("v.y", step)).exp();
                found += value * turned * 2.0 / period as f64;
            }
        }
        // The force is the sine, i exp(-i w t).
        let exact = Complex64::i() * velocity(51.0, w);
        let error = (found - exact).norm() / exact.norm();
        assert!(error < most, "wave {wave}: {error}, {found} for {exact}");
        error
    });
    assert!(errors[1] < errors[0]);
}
