//! Bloch-periodic sides: the exact frequency of a mode with a phase, and fields in a cell of a crystal, which equal the
//! fields in as many cells as a wave needs to come back.

use std::f64::consts::TAU;
use torre_suite::physics::case::Case;
use torre_suite::physics::measure::frequency;
use torre_suite::physics::theory::{kappa, omega};

/// The transverse mode exp(i k x) of Maxwell's equations in vacuum: 2/dt sin(w dt/2) = |K(k)|.
#[test]
fn modes_with_a_phase_have_their_exact_frequency() {
    let case = |kx: f64, ky: f64| {
        Case::new(&format!(
            "use std::maxwell::maxwell42
             problem mode {{
               scheme maxwell42
               domain 4 x 5 x 4
               boundary x: bloch({kx}), y: bloch({ky}), z: periodic
               init E.z = 1
               steps 1
             }}"
        ))
    };
    for [kx, ky] in [[0.7, -0.4], [0.0, 2.9], [-1.3, 0.0]] {
        let case = case(kx, ky);
        let dt = case.scheme().grid.dt;
        let mut run = case.start();
        let mut series = Vec::new();
        for _ in 0..60 {
            run.step();
            let values = run.values("E.z");
            series.push(values[0]);
            let apart = values.iter().map(|v| (v - values[0]).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-13);
            assert!(run.values("E_im.z").iter().all(|v| v.abs() < 1e-12));
        }
        let expected = omega(kappa(kx, 1.0, 4).hypot(kappa(ky, 1.0, 4)), dt);
        let found = frequency(&[series], dt);
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

/// A crystal of `cells` equal cells along x, with absorbing layers along y.
fn crystal(cells: u32, side: &str, init: &str) -> Case {
    let q = TAU / 6.0;
    Case::new(&format!(
        "use std::acoustics::acoustics_2d
         const q = {q}
         problem crystal {{
           scheme acoustics_2d {{ order = 4, dt = 0.4 }}
           domain {} x 14
           boundary x: {side}, y: cpml(3)
           coef kappa = 1 + 0.3 * cos(q * x)
           coef rho = 1.2 + 0.2 * sin(q * x)
           {init}
           steps 1
         }}",
        6 * cells
    ))
}

#[test]
fn one_cell_of_a_crystal_gives_the_waves_of_many() {
    let k = TAU / 18.0;
    let [re, im] = [
        "cos(q * x + y / 3) * exp(-((y - 7) / 2)^2)",
        "0.5 * sin(q * x) * exp(-((y - 6) / 2)^2)",
    ];
    let one = crystal(
        1,
        &format!("bloch({k})"),
        &format!("init p = {re}\n init p_im = {im}"),
    );
    let three = crystal(
        3,
        "periodic",
        &format!("init p = cos({k} * x) * ({re}) - sin({k} * x) * ({im})"),
    );
    assert_eq!(one.scheme().states.len(), 2 * three.scheme().states.len());
    let [mut small, mut large] = [one.start(), three.start()];
    for _ in 0..60 {
        small.step();
        large.step();
    }
    for (name, twin) in [("p", "p_im"), ("v.x", "v_im.x"), ("v.y", "v_im.y")] {
        let (w, w_im, u) = (small.values(name), small.values(twin), large.values(name));
        let places = three.places(name);
        let worst = places.iter().zip(u).enumerate().map(|(n, ([x, ..], u))| {
            let expected = (k * x).cos() * w[n % w.len()] - (k * x).sin() * w_im[n % w.len()];
            (u - expected).abs()
        });
        let worst = worst.fold(0.0, f64::max);
        let largest = u.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        assert!(
            largest > 0.01 && worst < 1e-13,
            "{name}: {worst} of {largest}"
        );
        // A wrong phase would be seen.
        assert!(w_im.iter().any(|v| v.abs() > 1e-3));
    }
}

/// The magnetic field has no divergence, and its means are those of the wave: records read neighbours with the phase
/// between the places.
#[test]
fn records_of_differences_and_means_have_the_phase_of_the_wave() {
    let case = Case::new(
        "use std::maxwell::maxwell_tm
         problem wave {
           scheme maxwell_tm { h = 0.5, dt = 0.2 }
           domain 12 x 10
           boundary x: bloch(0.9), y: bloch(-0.4)
           init Ez = exp(-(x - 3)^2 - (y - 2)^2)
           record divergence = max(abs(d(H.x, x) + d(H.y, y)))
           record other = max(abs(d(H_im.x, x) + d(H_im.y, y)))
           record largest = max(abs(d(H.x, x)) + abs(d(H_im.x, x)))
           record mean = sum(avg(Ez, x)) in x = 5, y = 3
           record mean_im = sum(avg(Ez_im, x)) in x = 5, y = 3
           record ahead = sum(Ez[2, 0]) in x = 10, y = 3
           steps 1
         }",
    );
    let mut run = case.start();
    for _ in 0..40 {
        run.step();
    }
    assert!(run.record("largest") > 0.1);
    for name in ["divergence", "other"] {
        let found = run.record(name);
        assert!(found < 1e-13, "{name}: {found}");
    }
    let [re, im] = ["Ez", "Ez_im"].map(|name| run.values(name));
    let at = |x: usize| [re[x * 10 + 3], im[x * 10 + 3]];
    let turned = |[re, im]: [f64; 2], angle: f64| {
        let (sin, cos) = angle.sin_cos();
        [cos * re - sin * im, sin * re + cos * im]
    };
    let step = 0.9 * 0.5;
    let [below, above] = [turned(at(5), -0.5 * step), turned(at(6), 0.5 * step)];
    for (name, part) in [("mean", 0), ("mean_im", 1)] {
        let expected = 0.5 * (below[part] + above[part]);
        let found = run.record(name);
        assert!(
            (found - expected).abs() < 1e-14,
            "{name}: {found} {expected}"
        );
    }
    // Around the axis, too.
    let expected = turned(at(0), 2.0 * step)[0];
    let found = run.record("ahead");
    assert!((found - expected).abs() < 1e-14, "{found} {expected}");
}
