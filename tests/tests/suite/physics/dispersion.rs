//! Numerical dispersion: on a periodic lattice the sampled plane wave `cos(k.r - w t)` solves the difference equations
//! exactly if w and k obey the scheme's dispersion relation
//!
//! `(2/dt sin(w dt/2))^2 = c^2 sum_a K(k_a)^2` (see [`torre_suite::physics::theory`]).
//!
//! The run starts from that wave, with the amplitudes that belong to it. Then the frequency of the values in time must
//! be w, and after any number of steps every component must still be the wave. Both hold up to rounding.

use std::f64::consts::TAU;
use torre_suite::physics::case::Case;
use torre_suite::physics::measure;
use torre_suite::physics::model::{Lattice, Model, models};
use torre_suite::physics::theory;

const CELLS: [i64; 3] = [12, 10, 14];
const MODES: [f64; 3] = [2.0, 1.0, -3.0];
const H: f64 = 0.5;
const STEPS: usize = 60;

/// The wave vector of the test: k h is 1.05, 0.63, -1.35.
fn wave_vector(axes: usize) -> [f64; 3] {
    std::array::from_fn(|a| {
        if a < axes {
            TAU * MODES[a] / (CELLS[a] as f64 * H)
        } else {
            0.0
        }
    })
}

fn check(model: &Model, order: u32) {
    let name = format!("{} {} order {order}", model.scheme, model.wave);
    let k = wave_vector(model.axes);
    let dt = 0.9 * model.longest_step(H, order);
    let symbol = model.symbol(k, H, order);
    let rate = model.rate(symbol);
    let w = theory::omega(rate, dt);
    let amplitudes = (model.amplitudes)(symbol, rate);
    let lattice = Lattice {
        order,
        cells: CELLS,
        h: H,
        dt: Some(dt),
    };
    let case = Case::new(&model.plane_wave(&lattice, k, w, &amplitudes));
    let mut run = case.start();

    let (strongest, _) = amplitudes
        .iter()
        .filter(|(c, _)| case.has(c))
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
        .expect("a model has components");
    let watched = [0, 5, 9];
    let mut series = vec![Vec::new(); watched.len()];
    for _ in 0..STEPS {
        run.step();
        let values = run.values(strongest);
        for (s, i) in series.iter_mut().zip(watched) {
            s.push(values[i]);
        }
    }
    let measured = measure::frequency(&series, dt);
    let error = (measured / w - 1.0).abs();
    assert!(
        error < 1e-9,
        "{name}: frequency {measured}, theory {w}, error {error:e}"
    );

    // The relations of the other orders and of the continuous wave are so far away that they cannot be mistaken for
    // this one.
    let others = [2, 4, 6, 8]
        .into_iter()
        .filter(|&o| o != order)
        .map(|o| theory::omega(model.rate(model.symbol(k, H, o)), dt))
        .chain([model.speed * k.iter().map(|k| k * k).sum::<f64>().sqrt()]);
    for other in others {
        let distance = (measured / other - 1.0).abs();
        assert!(distance > 1e-5, "{name}: {measured} is also {other}");
    }

    for (component, amplitude) in amplitudes.iter().filter(|(c, _)| case.has(c)) {
        let t = case.time(component, STEPS as u64);
        let places = case.places(component);
        let scale = amplitudes.iter().map(|a| a.1.abs()).fold(0.0, f64::max);
        for (place, value) in places.iter().zip(run.values(component)) {
            let phase: f64 = (0..model.axes).map(|a| k[a] * place[a]).sum();
            let exact = amplitude * (phase - w * t).cos();
            assert!(
                (value - exact).abs() < 1e-11 * scale,
                "{name}: {component} at {place:?} is {value}, theory {exact}"
            );
        }
    }
}

fn check_module(module: &str) {
    let models: Vec<Model> = models()
        .into_iter()
        .filter(|m| m.module == module)
        .collect();
    assert!(!models.is_empty());
    for model in models {
        for &order in model.orders {
            check(&model, order);
        }
    }
}

#[test]
fn of_the_wave_equation() {
    check_module("wave");
}

#[test]
fn of_sound() {
    check_module("acoustics");
}

#[test]
fn of_light() {
    check_module("maxwell");
}

#[test]
fn of_elastic_waves() {
    check_module("elastic");
}

/// With losses, `E_new = a E_old + b rot H` with `a = (2 eps - sigma dt) / (2 eps + sigma dt)` and
/// `b = 2 dt / (2 eps + sigma dt)`, and `H_new = H_old - dt/mu rot E`, a standing wave obeys
/// `u(n+1) = (1 + a - b dt/mu K^2) u(n) - a u(n-1)`. The factor a is exp(-sigma dt / eps) up to the third order in dt,
/// so amplitudes fall as exp(-sigma t / (2 eps)).
#[test]
fn of_lossy_light() {
    let (cells, h, dt, eps, mu, sigma) = (16, 0.5, 0.3, 2.0, 1.5, 0.1);
    let k = TAU * 2.0 / (16.0 * h);
    let text = format!(
        "use std::maxwell::maxwell_1d
         problem test {{
           scheme maxwell_1d {{ h = {h:?}, dt = {dt:?}, order = 4 }}
           domain {cells}
           boundary x: periodic
           coef eps = {eps:?}
           coef mu = {mu:?}
           coef sigma = {sigma:?}
           init Ez = cos({k:?} * x)
           steps 1
         }}"
    );
    let case = Case::new(&text);
    let mut run = case.start();
    let mut series = vec![run.values("Ez")[0]];
    for _ in 0..200 {
        run.step();
        series.push(run.values("Ez")[0]);
    }
    let a = (2.0 * eps - sigma * dt) / (2.0 * eps + sigma * dt);
    let b = 2.0 * dt / (2.0 * eps + sigma * dt);
    let kk = theory::kappa(k, h, 4);
    // The first difference equation that holds for all three values starts after the first step: H begins with 0, not
    // with a wave.
    let (first, second) = measure::recurrence(&series[1..]);
    let expected = 1.0 + a - b * dt / mu * kk * kk;
    assert!((first - expected).abs() < 1e-9, "{first} {expected}");
    assert!((second + a).abs() < 1e-9, "{second} {}", -a);
    assert!((a / (-sigma * dt / eps).exp() - 1.0).abs() < 1e-6);
}
