//! Cavities: in a box of mirrors the modes are products of sines and cosines, which the mirrors of the lattice continue
//! exactly; so the sampled modes solve the difference equations, with the frequency of the plane wave of the same wave
//! numbers `k_a = pi m_a / (N_a h)`.

use std::f64::consts::PI;
use torre_suite::physics::case::Case;
use torre_suite::physics::measure;
use torre_suite::physics::theory;

/// A mode of a metal box that varies along all axes:
/// `E.x = Ax cos(kx x) sin(ky y) sin(kz z) cos(w t)` and cyclic, with K.A = 0, and
/// `H.x = -(Ky Az - Kz Ay) / W sin(kx x) cos(ky y) cos(kz z) sin(w t)` and cyclic.
#[test]
fn a_metal_box_swings_at_the_frequency_of_theory() {
    let cells = [16, 12, 20];
    let modes = [1.0, 2.0, 3.0];
    let dt = 0.4;
    for order in [2, 4, 6] {
        let k: [f64; 3] = std::array::from_fn(|a| PI * modes[a] / cells[a] as f64);
        let symbol = k.map(|k| theory::kappa(k, 1.0, order));
        let rate = symbol.iter().map(|k| k * k).sum::<f64>().sqrt();
        let w = theory::omega(rate, dt);
        let a = [symbol[1], -symbol[0], 0.0];
        let b: [f64; 3] = std::array::from_fn(|i| {
            let (j, l) = ((i + 1) % 3, (i + 2) % 3);
            -(symbol[j] * a[l] - symbol[l] * a[j]) / rate
        });
        let axes = ["x", "y", "z"];
        let product = |i: usize, own: &str, others: &str| {
            let factors: Vec<String> = (0..3)
                .map(|j| {
                    format!(
                        "{}({:?} * {})",
                        if i == j { own } else { others },
                        k[j],
                        axes[j]
                    )
                })
                .collect();
            factors.join(" * ")
        };
        let mut text = format!(
            "use std::maxwell::maxwell
             problem test {{
               scheme maxwell {{ order = {order}, dt = {dt:?} }}
               domain 16 x 12 x 20
               boundary x: pec, y: pec, z: pec
               steps 1
            "
        );
        for i in 0..3 {
            let (e, h) = (product(i, "cos", "sin"), product(i, "sin", "cos"));
            text += &format!("init E.{} = ({:?}) * {e} * cos({w:?} * t)\n", axes[i], a[i]);
            text += &format!("init H.{} = ({:?}) * {h} * sin({w:?} * t)\n", axes[i], b[i]);
        }
        let case = Case::new(&(text + "}"));
        let mut run = case.start();
        let watched: Vec<usize> = case
            .places("E.x")
            .iter()
            .enumerate()
            .filter(|(_, p)| p[0] == 3.5 && p[1] == 3.0 && (p[2] == 4.0 || p[2] == 9.0))
            .map(|(i, _)| i)
            .collect();
        let mut series = vec![Vec::new(); watched.len()];
        for _ in 0..80 {
            run.step();
            let values = run.values("E.x");
            for (s, &i) in series.iter_mut().zip(&watched) {
                s.push(values[i]);
            }
        }
        let measured = measure::frequency(&series, dt);
        assert!(
            (measured / w - 1.0).abs() < 1e-9,
            "order {order}: {measured}, theory {w}"
        );
        // The box of continuous theory: the rest is dispersion.
        let box_mode = k.iter().map(|k| k * k).sum::<f64>().sqrt();
        let expected = w / box_mode - 1.0;
        assert!((measured / box_mode - 1.0 - expected).abs() < 1e-9);
        assert!(
            expected.abs() < if order == 2 { 2e-2 } else { 5e-3 },
            "order {order}: {expected}"
        );
    }
}

/// A pulse in a closed box of two axes rings with all its modes: the peaks of the spectrum are the frequencies of the
/// box, `f = sqrt((m/a)^2 + (n/b)^2) / 2`, none missing and none besides.
#[test]
fn a_pulse_rings_at_all_frequencies_of_the_box() {
    let (a, b, dt) = (25.0, 16.0, 0.2);
    let text = "use std::maxwell::maxwell_tm
         problem test {
           scheme maxwell_tm { order = 4, dt = 0.2 }
           domain 25 x 16
           boundary x: pec, y: pec
           init Ez = exp(-((x - 5.3)^2 + (y - 4.1)^2) / 4)
           steps 1
         }";
    let case = Case::new(text);
    let mut run = case.start();
    let at = case
        .places("Ez")
        .iter()
        .position(|p| p[0] == 4.0 && p[1] == 3.0)
        .expect("a node of the box");
    let series: Vec<f64> = (0..16384)
        .map(|_| {
            run.step();
            run.values("Ez")[at]
        })
        .collect();
    let highest = 0.08;
    let mut modes: Vec<(f64, f64)> = Vec::new();
    for m in 1..20 {
        for n in 1..20 {
            let k = [PI * f64::from(m) / a, PI * f64::from(n) / b];
            let f = k[0].hypot(k[1]) / (2.0 * PI);
            if f < highest {
                let rate = theory::kappa(k[0], 1.0, 4).hypot(theory::kappa(k[1], 1.0, 4));
                modes.push((f, theory::omega(rate, dt) / (2.0 * PI)));
            }
        }
    }
    modes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let found = measure::peaks(&series, dt, highest, 1e-3);
    assert_eq!(found.len(), modes.len(), "{found:?} {modes:?}");
    for (f, (continuous, discrete)) in found.iter().zip(modes) {
        assert!(
            (f / discrete - 1.0).abs() < 2e-5,
            "{f}, dispersion relation {discrete}"
        );
        assert!(
            (f / continuous - 1.0).abs() < 1e-3,
            "{f}, theory {continuous}"
        );
    }
}

/// Between an electric and a magnetic mirror lies an odd number of quarter waves: `k = (m + 1/2) pi / (N h)`.
#[test]
fn quarter_waves_fit_between_unlike_mirrors() {
    let dt = 0.6;
    for (module, scheme, component, start) in [
        ("maxwell", "maxwell_1d", "Ez", "sin"),
        ("wave", "wave_1d", "u", "sin"),
        // The pressure is on cells: even at the wall, odd at the soft end.
        ("acoustics", "acoustics_1d", "p", "cos"),
    ] {
        let k = 3.5 * PI / 30.0;
        let w = if module == "wave" {
            theory::omega(theory::kappa2(k, 1.0, 6).sqrt(), dt)
        } else {
            theory::omega(theory::kappa(k, 1.0, 6), dt)
        };
        // From rest: components that are not named start at 0 half a step early, which adds a wave of the same
        // frequency.
        let text = format!(
            "use std::{module}::{scheme}
             problem test {{
               scheme {scheme} {{ order = 6, dt = {dt:?} }}
               domain 30
               boundary x: pec | pmc
               init {component} = {start}({k:?} * x) * cos({w:?} * t)
               steps 1
             }}"
        );
        let case = Case::new(&text);
        let mut run = case.start();
        let mut series = vec![Vec::new(); 3];
        for _ in 0..100 {
            run.step();
            let values = run.values(component);
            for (s, i) in series.iter_mut().zip([4, 11, 20]) {
                s.push(values[i]);
            }
        }
        let measured = measure::frequency(&series, dt);
        assert!(
            (measured / w - 1.0).abs() < 1e-9,
            "{scheme}: {measured}, theory {w}"
        );
    }
}
