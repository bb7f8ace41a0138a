//! A Gaussian beam that comes in as a given field, against the exact beam: the sum of plane waves that has the same
//! waist.
//!
//! The field that is given is the paraxial one, with the scheme's own wave number. It leaves the box as far as it is no
//! solution.

use num_complex::Complex64;
use std::f64::consts::TAU;
use torre_suite::physics::case::Case;
use torre_suite::physics::theory;

const WAIST: f64 = 14.0;
const DT: f64 = 0.5;
const WAVE: f64 = 10.0;
/// The focus, half of which is in the domain.
const FOCUS: [f64; 2] = [44.0, 0.0];

/// The exact beam at a place, of which the phase at the focus is 0.
fn beam(k: f64, [x, y]: [f64; 2]) -> Complex64 {
    let step = 1e-3 * k;
    let waves = (-900..=900).map(|n| {
        let q = f64::from(n) * step;
        let along = (k * k - q * q).sqrt();
        let weight = (-(q * WAIST / 2.0).powi(2)).exp() * step * WAIST / TAU.sqrt() / 2f64.sqrt();
        Complex64::new(0.0, along * x + q * y).exp() * weight
    });
    waves.sum()
}

#[test]
fn a_gaussian_beam_comes_in_and_goes_out() {
    let k = TAU / WAVE;
    let w = theory::omega(theory::kappa(k, 1.0, 4), DT);
    let [fx, fy] = FOCUS;
    let rayleigh = k * WAIST * WAIST / 2.0;
    let case = Case::new(&format!(
        "use std::maxwell::maxwell_tm
         use std::sources::ramp
         def spread(p) = 1 + (p / {rayleigh})^2
         def phase(p, q, t) = {k} * p - {w} * t + {k} * q^2 * p / (2 * (p^2 + {rayleigh}^2)) - 0.5 * atan2(p, \
         {rayleigh})
         def height(p, q, t) = ramp(t - p - 36, 30) / sqrt(sqrt(spread(p))) * exp(-q^2 / ({WAIST}^2 * spread(p)))
         problem p {{
           scheme maxwell_tm {{ order = 4, dt = {DT} }}
           domain 88 x 56
           boundary x: cpml(10), y: pmc | cpml(10)
           incident beam {{
             Ez = height(x - {fx}, y - {fy}, t) * cos(phase(x - {fx}, y - {fy}, t))
             H.y = -height(x - {fx}, y - {fy}, t) * cos(phase(x - {fx}, y - {fy}, t))
             H.x = height(x - {fx}, y - {fy}, t) * (y - {fy}) * (
               {k} * (x - {fx}) / ({w} * ((x - {fx})^2 + {rayleigh}^2)) * cos(phase(x - {fx}, y - {fy}, t))
               - 2 / ({w} * {WAIST}^2 * spread(x - {fx})) * sin(phase(x - {fx}, y - {fy}, t))
             )
           }}
           total x = 14..74, y = 0..42 from beam
           steps 1
         }}"
    ));
    let places = case.places("Ez");
    let mut run = case.start();
    let period = TAU / w / DT;
    let (before, window) = (260u64, period.round() as u64);
    let mut sums = vec![Complex64::default(); places.len()];
    for step in 1..=before + window {
        run.step();
        if step > before {
            let turn = Complex64::new(0.0, w * case.time("Ez", step)).exp() * 2.0 / window as f64;
            for (sum, value) in sums.iter_mut().zip(run.values("Ez")) {
                *sum += turn * value;
            }
        }
    }
    let (mut error, mut outside) = (0.0f64, 0.0f64);
    for ([x, y, _], sum) in places.into_iter().zip(sums) {
        if (14.0..=74.0).contains(&x) && (0.0..=42.0).contains(&y) {
            if (x + y) % 5.0 != 0.0 {
                continue;
            }
            error = error.max((sum - beam(k, [x - fx, y - fy])).norm());
        } else {
            outside = outside.max(sum.norm());
        }
    }
    println!("error {error}, outside {outside}");
    assert!(error < 0.03, "{error}");
    assert!(outside < 0.03, "{outside}");
}
