//! Reflections of a film of glass and of a metal, against the formulas of Airy and Fresnel. A plane wave comes into a
//! box of total fields that holds them, so that outside there are only reflections.

use num_complex::Complex64;
use std::f64::consts::TAU;
use torre_suite::physics::bessel::transform;
use torre_suite::physics::case::Case;

const DT: f64 = 0.5;

/// The amplitudes of the wave at a place, for some wavelengths.
fn amplitudes(scheme: &str, place: usize, waves: &[f64]) -> Vec<Complex64> {
    let text = format!(
        "use std::maxwell::maxwell_1d
         use std::sources::ricker
         {scheme}
           domain 240
           boundary x: cpml(20)
           incident wave {{ direction (1); drive Ez = ricker(t, f0 = 1/80) }}
           total x = 40..200 from wave
           steps 1
         }}"
    );
    let case = Case::new(&text);
    let mut run = case.start();
    let series: Vec<f64> = (0..1700)
        .map(|_| {
            run.step();
            run.values("Ez")[place]
        })
        .collect();
    let of = |wave: &f64| transform(&series, TAU / wave, DT);
    waves.iter().map(of).collect()
}

/// The part of the power that comes back, of waves that are known.
fn reflected(scheme: &str, incident: &[Complex64]) -> Vec<f64> {
    let back = amplitudes(scheme, 30, &waves());
    let ratio = |(a, b): (&Complex64, &Complex64)| (a / b).norm_sqr();
    back.iter().zip(incident).map(ratio).collect()
}

fn glass(order: u32, eps: &str) -> String {
    format!("problem p {{ scheme maxwell_1d {{ order = {order}, dt = {DT} }}; coef eps = {eps}")
}

/// Waves in vacuum, from 40 to 160 cells.
fn waves() -> Vec<f64> {
    (0..=24).map(|n| 40.0 + 5.0 * f64::from(n)).collect()
}

/// The largest error, for waves of some cells at least.
fn largest(found: &[f64], exact: impl Fn(f64) -> f64, least: f64) -> f64 {
    let all = found.iter().zip(waves()).filter(|(_, wave)| *wave >= least);
    let error = |(found, wave): (&f64, f64)| (found - exact(wave)).abs();
    all.map(error).fold(0.0, f64::max)
}

/// A film of the index 2, 40 cells thick.
#[test]
fn a_film_reflects_by_the_formula_of_airy() {
    let airy = |wave: f64| {
        let r = -1.0 / 3.0;
        let turn = (Complex64::i() * 2.0 * 2.0 * TAU / wave * 40.0).exp();
        (r * (1.0 - turn) / (1.0 - r * r * turn)).norm_sqr()
    };
    for (order, most) in [(2, [0.025, 0.005]), (4, [0.012, 0.004])] {
        let incident = amplitudes(&glass(order, "1"), 100, &waves());
        let of = |film: &str| reflected(&glass(order, film), &incident);
        let found = of("if x > 100 and x < 140 then 4 else 1");
        for (least, most) in [40.0, 80.0].into_iter().zip(most) {
            let error = largest(&found, airy, least);
            println!("order {order}, waves from {least} cells: {error}");
            assert!(error < most, "order {order}: {error}");
        }
        if order == 2 {
            let other = of("if x > 100 and x < 141 then 4 else 1");
            assert!(largest(&other, airy, 40.0) > most[0]);
        }
    }
}

/// A metal whose current is a state in its region.
fn metal(order: u32, plasma: f64) -> String {
    format!(
        "def current(E, plasma, loss, dt, body) {{
           state J in body
           J@next = (2 - loss*dt) / (2 + loss*dt) * J + 2*plasma^2*dt / (2 + loss*dt) * E
           J@next
         }}
         scheme metal {{
           axes x
           param dt = {DT}
           region body = x > 100.5 and x < 170
           field Ez : scalar on nodes
           field Hy : scalar on cells at 1/2
           step {{
             Hy += dt * d(Ez, x, {order})
             Ez += dt * (d(Hy, x, {order}) - current(Ez, {plasma}, 0.02, dt, body))
           }}
         }}
         problem p {{ scheme metal"
    )
}

#[test]
fn a_metal_reflects_by_the_formula_of_fresnel() {
    let fresnel = |wave: f64| {
        let w = TAU / wave;
        let eps = 1.0 - 0.09 / (w * w + Complex64::i() * 0.02 * w);
        let n = eps.sqrt();
        ((1.0 - n) / (1.0 + n)).norm_sqr()
    };
    for order in [2, 4] {
        let incident = amplitudes(&metal(order, 0.0), 100, &waves());
        let of = |plasma: f64| reflected(&metal(order, plasma), &incident);
        let error = largest(&of(0.3), fresnel, 40.0);
        println!("order {order}: {error}");
        assert!(error < 0.005, "order {order}: {error}");
        if order == 2 {
            let other = largest(&of(0.33), fresnel, 40.0);
            assert!(other > 0.005, "{other}");
        }
    }
}
