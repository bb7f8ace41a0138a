//! The power that currents radiate. A dipole of the moment I l radiates k^2 |I l|^2 / (12 pi), and a line current I the
//! power k |I|^2 / 8 per length, where the impedance of vacuum is 1. A source does that work on the field of its own
//! cell, so no surface is needed around it.

use std::f64::consts::{PI, TAU};
use torre_suite::physics::case::Case;

/// The power of a source of waves of 20 cells that acts on the first value of a component.
fn power(problem: &str, component: &str) -> f64 {
    let case = Case::new(&format!(
        "use std::maxwell::maxwell
         use std::maxwell::maxwell_tm
         use std::sources::ramped_harmonic
         problem radiation {{
           {problem} += dt * ramped_harmonic(t - dt/2, f0 = 1/20, periods = 2)
           steps 1
         }}"
    ));
    let (w, dt, period) = (TAU / 20.0, 0.4, 50);
    let at = if component == "E.z" { 15 } else { 0 };
    let (before, mut work, mut old) = (3 * period, 0.0, 0.0);
    let mut run = case.start();
    for step in 1..=before + period {
        run.step();
        let new = run.values(component)[at];
        let time = case.time(component, step) - dt / 2.0;
        if step > before {
            work += (w * time).sin() * (old + new) / 2.0 / period as f64;
        }
        old = new;
    }
    work
}

/// A quarter of the plane, the source in its corner.
fn line_current(order: u32, layer: &str) -> f64 {
    let found = power(
        &format!(
            "scheme maxwell_tm {{ order = {order}, dt = 0.4 }}
             domain 22 x 22
             boundary x: pmc | {layer}, y: pmc | {layer}
             source Ez at (0, 0)"
        ),
        "Ez",
    );
    found / (TAU / 20.0 / 8.0)
}

#[test]
fn a_line_current_radiates_its_power() {
    for (order, most) in [(2, 0.01), (4, 0.004)] {
        let error = line_current(order, "cpml(12)") - 1.0;
        println!("order {order}: {error}");
        assert!(error.abs() < most, "order {order}: {error}");
    }
    let cavity = line_current(2, "pec") - 1.0;
    assert!(cavity.abs() > 0.1, "{cavity}");
}

/// With `TORRE_TEST_SOAK`, as it takes seconds.
#[test]
fn a_dipole_radiates_its_power() {
    if std::env::var("TORRE_TEST_SOAK").is_err() {
        return;
    }
    for (order, most) in [(2, 0.015), (4, 0.005)] {
        let found = power(
            &format!(
                "scheme maxwell {{ order = {order}, dt = 0.4 }}
                 domain 17 x 17 x 32
                 boundary x: pmc | cpml(10), y: pmc | cpml(10), z: cpml(10)
                 source E.z at (0, 0, 15)"
            ),
            "E.z",
        );
        let error = found / ((TAU / 20.0).powi(2) / (12.0 * PI)) - 1.0;
        println!("order {order}: {error}");
        assert!(error.abs() < most, "order {order}: {error}");
    }
}
