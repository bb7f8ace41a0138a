//! The scattered field of a cylinder of glass, against the series of cylindrical waves (Lord Rayleigh, Phil. Mag. 12,
//! 1881, 81).

use num_complex::Complex64;
use std::f64::consts::TAU;
use torre_suite::physics::bessel::{hankel, transform};
use torre_suite::physics::case::Case;

const RADIUS: f64 = 8.0;
const INDEX: f64 = 2.0;
const CENTRE: usize = 30;
const DT: f64 = 0.5;

/// Places around the cylinder, outside of the box of total fields, from its centre.
const PLACES: [[i64; 2]; 6] = [[14, 0], [14, 8], [4, 14], [-4, 14], [-14, 8], [-14, 0]];

/// Ez at places in some steps of a run, with a glass of a permittivity. The half below y = 0 mirrors the half above.
fn series(eps: f64, places: &[[i64; 2]], steps: u32) -> Vec<Vec<f64>> {
    let case = Case::new(&format!(
        "use std::maxwell::maxwell_tm
         use std::sources::ricker
         problem cylinder {{
           scheme maxwell_tm {{ order = 4, dt = {DT} }}
           domain 60 x 30
           boundary x: cpml(10), y: pmc | cpml(10)
           // The share of glass in a cell, about.
           coef eps = 1 + ({eps} - 1) * min(max({RADIUS} + 0.5 - sqrt((x - {CENTRE})^2 + y^2), 0), 1)
           incident wave {{ direction (1, 0); drive Ez = ricker(t, f0 = 1/32) }}
           total x = 19..41, y = 0..11 from wave
           steps 1
         }}"
    ));
    let mut run = case.start();
    let mut series = vec![Vec::new(); places.len()];
    for _ in 0..steps {
        run.step();
        for ([x, y], values) in places.iter().zip(&mut series) {
            let row = (CENTRE as i64 + x) as usize * case.width("Ez");
            values.push(run.values("Ez")[row + *y as usize]);
        }
    }
    series
}

/// The scattered wave at the places, over the incident one at the centre.
fn exact(w: f64, index: f64) -> [Complex64; PLACES.len()] {
    let (outer, inner) = (w * RADIUS, index * w * RADIUS);
    let slope = |n: f64, x: f64| (hankel(n - 1.0, x) - hankel(n + 1.0, x)) / 2.0;
    let parts: Vec<Complex64> = (0..7)
        .map(|n| {
            let order = f64::from(n);
            let (h, dh) = (hankel(order, outer), slope(order, outer));
            let (g, dg) = (hankel(order, inner).re, index * slope(order, inner).re);
            let both = if n == 0 { 1.0 } else { 2.0 };
            -both * Complex64::i().powi(n) * (dh.re * g - h.re * dg) / (dh * g - h * dg)
        })
        .collect();
    PLACES.map(|[x, y]| {
        let (r, angle) = ((x as f64).hypot(y as f64), (y as f64).atan2(x as f64));
        let terms = parts.iter().zip(0..).map(|(part, n)| {
            let n = f64::from(n);
            part * hankel(n, w * r) * (n * angle).cos()
        });
        terms.sum()
    })
}

#[test]
fn a_cylinder_scatters_the_series_of_cylindrical_waves() {
    let scattered = series(INDEX * INDEX, &PLACES, 600);
    // The pulse is over early.
    let incident = &series(1.0, &[[0, 0]], 350)[0];
    let error = |wave: f64, index: f64| {
        let w = TAU / wave;
        let expected = exact(w, index);
        let incident = transform(incident, w, DT);
        let found = scattered.iter().map(|u| transform(u, w, DT) / incident);
        let largest = expected.iter().fold(0.0f64, |m, e| m.max(e.norm()));
        let errors = found.zip(&expected).map(|(a, b)| (a - b).norm());
        errors.fold(0.0, f64::max) / largest
    };
    // In the glass waves are half as long.
    for (wave, most) in [(48.0, 0.01), (32.0, 0.015), (24.0, 0.03)] {
        let found = error(wave, INDEX);
        println!("waves of {wave} cells: {found}");
        assert!(found < most, "waves of {wave} cells: {found}");
    }
    let other = error(48.0, 1.03 * INDEX);
    assert!(other > 0.015, "{other}");
}
