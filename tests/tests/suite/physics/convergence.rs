//! Order of convergence: the error of a continuous plane wave after a fixed time falls as h^p for a scheme of order p
//! in space. The time step follows h^(p/2), so that the second-order error in time falls alike. The order in time is
//! measured by itself.

use std::f64::consts::TAU;
use torre_suite::physics::case::Case;
use torre_suite::physics::measure;
use torre_suite::physics::model::{Lattice, Model, models};

/// The root mean square error of all components on `n` cells of a unit box, after half a period, over the largest
/// amplitude.
fn error(model: &Model, order: u32, n: i64, dt: f64) -> f64 {
    let h = 1.0 / n as f64;
    let k: [f64; 3] = std::array::from_fn(|a| if a < model.axes { TAU } else { 0.0 });
    let w = model.rate(k);
    let steps = (0.5 * TAU / w / dt).round().max(1.0);
    let dt = 0.5 * TAU / w / steps;
    let amplitudes = (model.amplitudes)(k, w);
    let lattice = Lattice {
        order,
        cells: [n; 3],
        h,
        dt: Some(dt),
    };
    let case = Case::new(&model.plane_wave(&lattice, k, w, &amplitudes));
    let mut run = case.start();
    for _ in 0..steps as u64 {
        run.step();
    }
    let scale = amplitudes.iter().map(|a| a.1.abs()).fold(0.0, f64::max);
    let (mut sum, mut count) = (0.0, 0);
    for (component, amplitude) in amplitudes.iter().filter(|(c, _)| case.has(c)) {
        let t = case.time(component, steps as u64);
        for (place, value) in case.places(component).iter().zip(run.values(component)) {
            let phase: f64 = (0..model.axes).map(|a| k[a] * place[a]).sum();
            sum += (value - amplitude * (phase - w * t).cos()).powi(2);
            count += 1;
        }
    }
    (sum / f64::from(count)).sqrt() / scale
}

fn check(model: &Model, order: u32) {
    let (coarse, fine) = match model.axes {
        1 => (16, 32),
        2 => (12, 18),
        _ => (10, 12),
    };
    // On the coarse lattice the error in time, (w dt)^2 / 24, is a quarter of that in space and of opposite sign.
    let k: [f64; 3] = std::array::from_fn(|a| if a < model.axes { TAU } else { 0.0 });
    let (w, discrete) = (
        model.rate(k),
        model.rate(model.symbol(k, 1.0 / coarse as f64, order)),
    );
    let first = (6.0 * (1.0 - discrete / w)).sqrt() / w;
    let ratio = coarse as f64 / fine as f64;
    let second = first * ratio.powf(f64::from(order) / 2.0);
    let e1 = error(model, order, coarse, first);
    let e2 = error(model, order, fine, second);
    let p = measure::order(e1, e2, coarse, fine);
    assert!(
        (p - f64::from(order)).abs() < 0.3,
        "{} {} order {order}: measured {p} from {e1:e} to {e2:e}",
        model.scheme,
        model.wave
    );
}

fn check_module(module: &str) {
    for model in models().into_iter().filter(|m| m.module == module) {
        for &order in model.orders.iter().filter(|&&o| o <= 6) {
            check(&model, order);
        }
    }
}

#[test]
fn in_space_of_the_wave_equation() {
    check_module("wave");
}

#[test]
fn in_space_of_sound() {
    check_module("acoustics");
}

#[test]
fn in_space_of_light() {
    check_module("maxwell");
}

#[test]
fn in_space_of_elastic_waves() {
    check_module("elastic");
}

/// On one lattice, the frequency differs from that of the semi-discrete equations by an amount that falls as dt^2.
#[test]
fn in_time() {
    let (n, h, order) = (16, 1.0 / 16.0, 4);
    for model in models().into_iter().filter(|m| m.axes == 1) {
        let k = [TAU * 2.0, 0.0, 0.0];
        let rate = model.rate(model.symbol(k, h, order));
        let distance = |part: f64| {
            let dt = part * model.longest_step(h, order);
            // Any start will do: the frequency is the scheme's own.
            let amplitudes = (model.amplitudes)(k, rate);
            let lattice = Lattice {
                order,
                cells: [n; 3],
                h,
                dt: Some(dt),
            };
            let case = Case::new(&model.plane_wave(&lattice, k, rate, &amplitudes));
            let mut run = case.start();
            let mut series = vec![Vec::new(); 2];
            for _ in 0..400 {
                run.step();
                let values = run.values(amplitudes[0].0);
                series[0].push(values[0]);
                series[1].push(values[3]);
            }
            measure::frequency(&series, dt) - rate
        };
        let p = (distance(0.5) / distance(0.25)).log2();
        assert!((p - 2.0).abs() < 0.1, "{}: order {p} in time", model.scheme);
    }
}
