//! The standard library's operators, waves and constants, and the limits of stability.

use torre_suite::physics::case::Case;
use torre_suite::physics::model::{Lattice, Model, models};

/// The values that an expression of the place and of time has on the cells of one axis of ten nodes, as initial values.
fn evaluate(uses: &str, expression: &str) -> Vec<f64> {
    let case = Case::new(&format!(
        "{uses}
         scheme line {{
           axes x
           param h = 0.1
           field u : scalar on nodes
           step {{ u = 0 }}
         }}
         problem test {{
           scheme line
           domain 21
           init u = {expression}
           steps 1
         }}"
    ));
    case.start().values("u").to_vec()
}

fn assert_near(values: &[f64], expected: impl Fn(f64) -> f64, tolerance: f64) {
    for (i, value) in values.iter().enumerate() {
        let x = 0.1 * i as f64;
        let expected = expected(x);
        assert!(
            (value - expected).abs() <= tolerance,
            "at {x}: {value}, expected {expected}"
        );
    }
}

#[test]
fn waves_are_what_their_names_say() {
    let uses =
        "use std::sources::{gaussian, gaussian_derivative, ricker, ramp, ramped_harmonic, packet}";
    let tau = std::f64::consts::TAU;
    let bell = |x: f64| (-((x - 1.0) / 0.3).powi(2)).exp();
    assert_near(
        &evaluate(uses, "gaussian(x, t0 = 1, width = 0.3)"),
        bell,
        1e-15,
    );
    assert_near(
        &evaluate(uses, "packet(x, f0 = 2, t0 = 1, width = 0.3)"),
        |x| bell(x) * (2.0 * tau * (x - 1.0)).sin(),
        1e-14,
    );
    let mexican = |x: f64, t0: f64| {
        let s = (0.5 * tau * 0.8 * (x - t0)).powi(2);
        (1.0 - 2.0 * s) * (-s).exp()
    };
    assert_near(
        &evaluate(uses, "ricker(x, f0 = 0.8, t0 = 1)"),
        |x| mexican(x, 1.0),
        1e-14,
    );
    assert_near(
        &evaluate(uses, "ricker(x, 0.8)"),
        |x| mexican(x, 2.0),
        1e-14,
    );
    assert_near(
        &evaluate(uses, "ramp(x, 1)"),
        |x| {
            let s = x.min(1.0);
            s * s * s * (10.0 - 15.0 * s + 6.0 * s * s)
        },
        1e-14,
    );
    assert_near(
        &evaluate(uses, "ramped_harmonic(x + 3, f0 = 1)"),
        |x| (tau * x).sin(),
        1e-13,
    );
    // The derivative of the Gaussian peaks at 1, where theory says, and is its slope.
    let peak = evaluate(
        uses,
        "gaussian_derivative(x - 0.3 / sqrt(2), t0 = 1, width = 0.3)",
    );
    assert!((peak[10] - 1.0).abs() < 1e-14, "{}", peak[10]);
    let factor = 0.3 * (0.5f64).exp() / 2f64.sqrt();
    assert_near(
        &evaluate(uses, "gaussian_derivative(x, t0 = 1, width = 0.3)"),
        |x| factor * (bell(x + 1e-6) - bell(x - 1e-6)) / 2e-6,
        1e-8,
    );
}

/// Relations between the constants that hold for all their digits.
#[test]
fn constants_agree_with_each_other() {
    let uses = "use std::constants::{c0, planck, hbar, elementary_charge, boltzmann, avogadro, eps0, mu0, z0, \
        fine_structure, electron_mass, proton_mass, bohr_radius}";
    let one = |expression: &str, tolerance: f64| {
        let value = evaluate(uses, expression)[0];
        assert!((value - 1.0).abs() < tolerance, "{expression} = {value}");
    };
    one("eps0 * mu0 * c0^2", 1e-9);
    one("z0 / 376.730313412", 1e-9);
    one(
        "elementary_charge^2 / (4 * pi * eps0 * hbar * c0) / fine_structure",
        1e-9,
    );
    one(
        "hbar / (electron_mass * c0 * fine_structure) / bohr_radius",
        1e-9,
    );
    one("planck / (2 * pi * hbar)", 1e-15);
    one("boltzmann * avogadro / 8.31446261815324", 1e-14);
    one("proton_mass / electron_mass / 1836.152673426", 1e-9);
}

/// The step of a scheme of one field `u` on nodes and one `v` on cells, as the compiler prints it.
fn step(uses: &str, right_side: &str) -> String {
    let case = Case::new(&format!(
        "{uses}
         scheme pair {{
           axes x, y
           param h = 0.5
           field u : scalar on nodes
           field v : scalar on [1/2, 0]
           field w : scalar on cells
           step {{ {right_side} }}
         }}
         problem test {{
           scheme pair
           domain 20 x 20
           steps 1
         }}"
    ));
    case.scheme().to_string()
}

#[test]
fn named_differences_are_those_of_their_order() {
    let uses = "use std::diff::{d_yee, d_fang, d_levander, d_six, d_eight, dc_drp, mean, mean2}";
    for (named, order) in [
        ("d_yee", 2),
        ("d_fang", 4),
        ("d_levander", 4),
        ("d_six", 6),
        ("d_eight", 8),
    ] {
        let by_name = step(uses, &format!("v += {named}(u, x)"));
        let by_order = step(uses, &format!("v += d(u, x, order = {order})"));
        assert_eq!(by_name, by_order, "{named}");
        assert_ne!(
            by_name,
            step(uses, &format!("v += d(u, x, order = {})", order + 2))
        );
    }
    assert_eq!(step(uses, "v += mean(u, x)"), step(uses, "v += avg(u, x)"));
    assert_eq!(
        step(uses, "w += mean2(u, x, y)"),
        step(uses, "w += avg(avg(u, x), y)")
    );
    assert_ne!(
        step(uses, "u += dc_drp(u, x)"),
        step(uses, "u += dc(u, x, order = 6)")
    );
}

/// The largest value of any component after `steps` steps from noise of size 1.
fn growth(model: &Model, order: u32, dt: Option<f64>, steps: usize) -> f64 {
    let lattice = Lattice {
        order,
        cells: [8; 3],
        h: 1.0,
        dt,
    };
    let case = Case::new(&model.noise(&lattice));
    let mut run = case.start();
    for _ in 0..steps {
        run.step();
    }
    let mut largest = 0f64;
    for c in case.components() {
        for v in run.values(c) {
            largest = if v.is_finite() {
                largest.max(v.abs())
            } else {
                f64::INFINITY
            };
        }
    }
    largest
}

/// A scheme is stable up to the time step that theory allows, and no further. On 8 cells per axis the wave of highest
/// frequency fits in.
#[test]
fn the_limits_of_stability_are_those_of_theory() {
    for model in models() {
        if model.axes == 3 && model.scheme != "wave" && model.scheme != "maxwell" {
            continue;
        }
        for &order in model.orders {
            let limit = model.longest_step(1.0, order);
            let name = format!("{} order {order}", model.scheme);
            let below = growth(&model, order, Some(0.995 * limit), 150);
            assert!(below < 1e3, "{name}: grows to {below:e} below the limit");
            let above = growth(&model, order, Some(1.02 * limit), 150);
            assert!(above > 1e6, "{name}: only {above:e} above the limit");
        }
    }
}

#[test]
fn default_steps_are_stable_up_to_order_8() {
    for model in models() {
        let largest = *model.orders.iter().max().expect("a model has orders");
        let grown = growth(
            &Model {
                media: &[],
                ..model
            },
            largest,
            None,
            100,
        );
        assert!(grown < 1e3, "grows to {grown:e}");
    }
}
