//! Speeds, Courant numbers, damping and limits that `analyze` finds, against closed forms.

use crate::support::*;
use std::f64::consts::TAU;
use torre_compiler::analysis::{
    Analysis, Lattice, Limit, Order, Pace, Sample, Side, Sizes, analyze,
};
use torre_compiler::driver::Variable;
use torre_compiler::resolve::Options;
use torre_compiler::scheme::Precision;
use torre_compiler::statics::NoFiles;
use torre_grammar::source::Source;

/// The analysis of a scheme with periodic sides and one axis, or of the number of sides; the limit is that of `varied`.
fn analysed(axes: &str, params: &str, step: &str, varied: &str) -> Analysis {
    let domain = vec!["16"; axes.split(',').count()].join(" x ");
    let text = format!(
        "scheme s {{\n  axes {axes}\n  {params}\n  step {{ allow W0301\n    {step}\n  }}\n}}\n\
         problem p {{\n  scheme s\n  domain {domain}\n  boundary all: periodic\n  steps 1\n}}\n"
    );
    let world = TestWorld::default();
    let source = Source::new("test", text);
    let options = Options {
        precision: Precision::F64,
        ..Options::default()
    };
    let variable =
        Variable::new(&world, &source, &options).unwrap_or_else(|d| panic!("{}", show(&d)));
    let start = variable.parameter(varied);
    let mut with = |value: f64| variable.with(&[(varied, value)]);
    let mut resolve = |lattice: &Lattice| variable.sized(lattice);
    let sizes = Sizes {
        start: start.unwrap_or(1.0),
        with_step: match start {
            Some(_) => Some(&mut with),
            None => None,
        },
        resolve: &mut resolve,
        without_phases: None,
    };
    analyze(&variable.base().scheme, &NoFiles, sizes).unwrap_or_else(|e| panic!("{e:?}"))
}

#[track_caller]
fn expect_close(found: f64, expected: f64, error: f64) {
    let own = (found / expected - 1.0).abs();
    assert!(own < error, "{found}, expected {expected}, error {own:e}");
}

/// The pace, with the speed or diffusivity of the only table.
fn pace(found: &Analysis) -> (Pace, f64) {
    let dispersion = found.dispersion.as_ref().expect("a dispersion");
    assert_eq!(
        (dispersion.irregular, dispersion.kinds.len()),
        (0, 1),
        "{dispersion:?}"
    );
    let kind = &dispersion.kinds[0];
    assert!(kind.moves && kind.power == 1, "{kind:?}");
    (found.pace.expect("waves"), kind.coefficients[0])
}

/// Samples along the first direction, by points per wavelength.
fn samples(found: &Analysis, points: f64) -> Sample {
    let dispersion = found.dispersion.as_ref().expect("a dispersion");
    let mut table = dispersion.kinds[0].table[0].iter();
    *table
        .find(|s| (s.points - points).abs() < 1e-9)
        .expect("a sample")
}

/// Waves w = c k - i s, and waves of which one field has all losses.
#[test]
fn losses_leave_the_speed_as_it_is() {
    for (s, m) in [
        (0.005, 0.005),
        (0.02, 0.02),
        (0.05, 0.05),
        (0.1, 0.1),
        (0.01, 0.02),
        (0.015, 0.0),
    ] {
        let params = format!(
            "param h = 1\n  param dt = 0.5\n  param s = {s}\n  param m = {m}\n  \
             field E : scalar on nodes\n  field H : scalar on cells at 1/2"
        );
        let step = "H = (H * (1 - m*dt/2) - dt * d(E, x)) / (1 + m*dt/2)\n    \
                    E = (E * (1 - s*dt/2) - dt * d(H, x)) / (1 + s*dt/2)";
        let (pace, speed) = pace(&analysed("x", &params, step, "dt"));
        expect_close(speed, 1.0, 1e-5);
        // With the same losses the lattice has the speed 1 / (1 - (s dt / 2)^2)^(1/2).
        expect_close(pace.number, 0.5, 5e-4);
        expect_close(pace.coefficient, 1.0, 5e-4);
    }
}

#[test]
fn reactions_leave_the_speed_of_transport_as_it_is() {
    for s in [0.001, 0.01, 0.1] {
        let params = format!(
            "param h = 1\n  param dt = 0.5\n  param s = {s}\n  field u : scalar on nodes levels 2"
        );
        let step = "u@next = u - dt/h*(u - u[-1]) - s*dt*u";
        let (pace, speed) = pace(&analysed("x", &params, step, "dt"));
        expect_close(speed, 1.0, 1e-4);
        // lambda = 1 - s dt - C (1 - exp(-i theta)) has the angle C theta / (1 - s dt) for long waves.
        expect_close(pace.number, 0.5 / (1.0 - 0.5 * s), 1e-6);
    }
}

#[test]
fn uniform_oscillations_are_no_waves_of_a_speed() {
    let params =
        "param h = 0.5\n  param dt = 0.2\n  param m = 0.7\n  field u : scalar on nodes levels 2";
    let found = analysed(
        "x",
        params,
        "u@next = 2*u - u@prev + dt^2*(d2(u,x) - m^2*u)",
        "dt",
    );
    let dispersion = found.dispersion.expect("a dispersion");
    assert_eq!(dispersion.kinds[0].power, 0);
}

/// Half a cell per step: the factor of a step is cos(theta / 2), and a period of N points has 2 N steps.
#[test]
fn numerical_dissipation_is_none_of_long_waves() {
    let params = "field u : scalar on nodes levels 2";
    let found = analysed("x", params, "u@next = 0.5*u + 0.5*u[-1]", "dt");
    for points in [3.0, 5.0, 10.0, 40.0] {
        let expected = (TAU / points / 2.0).cos().powf(2.0 * points);
        expect_close(samples(&found, points).remains, expected, 1e-6);
    }
    let (_, speed) = pace(&found);
    expect_close(speed, 0.5, 1e-8);
}

/// Lax and Wendroff: errors of cells and steps cancel.
#[test]
fn waves_are_compared_with_the_order_of_cells_and_steps_together() {
    let params =
        "param h = 0.5\n  param dt = 0.2\n  param c = 1.5\n  field u : scalar on nodes levels 2";
    let step = "u@next = u - c*dt*dc(u,x) + (c*dt)^2/2*d2(u,x)";
    let found = analysed("x", params, step, "dt");
    let courant: f64 = 0.6;
    for points in [3.0, 5.0, 10.0] {
        let theta = TAU / points;
        let re = 1.0 - courant.powi(2) * (1.0 - theta.cos());
        let im = courant * theta.sin();
        let angle = im.atan2(re);
        let sample = samples(&found, points);
        expect_close(sample.ratio, angle / (courant * theta), 2e-6);
        let remains = re.hypot(im).powf(TAU / angle);
        expect_close(sample.remains, remains, 2e-5);
    }
}

/// The fastest waves go along the axis with larger cells, and get over fewer of these.
#[test]
fn courant_numbers_are_of_the_cells_along_the_waves() {
    for (cy, number, speed) in [(0.05, 0.5, 1.0), (0.15, 0.75, 1.0)] {
        let params = format!(
            "param hx = 1\n  param hy = 0.1\n  param dt = 0.5\n  param cy = {cy}\n  field p : scalar on cells\n  \
             field v : scalar on [0, 1/2] at 1/2\n  field w : scalar on [1/2, 0] at 1/2"
        );
        let step = "v -= dt*d(p,x)\n    w -= cy^2*dt*d(p,y)\n    p -= dt*(d(v,x) + d(w,y))";
        let pace = analysed("x, y", &params, step, "").pace.expect("waves");
        expect_close(pace.number, number, 1e-6);
        expect_close(pace.coefficient, speed, 1e-6);
    }
}

/// The wave equation in two axes is stable up to dt = h / 2^(1/2).
#[test]
fn limits_are_looked_for_in_both_directions() {
    for (h, dt, varied, side) in [
        (0.5, 0.5, "h", Side::Smallest),
        (1.0, 0.5, "h", Side::Smallest),
        (1.0, 0.5, "dt", Side::Largest),
    ] {
        let params =
            format!("param h = {h}\n  param dt = {dt}\n  field u : scalar on nodes levels 2");
        let step = "u@next = 2*u - u@prev + dt^2*(d2(u,x)+d2(u,y))";
        let found = analysed("x, y", &params, step, varied).limit;
        let Some(Limit::Step {
            dt: value,
            side: own,
            weak: false,
            ..
        }) = found
        else {
            panic!("{h} {varied}: {found:?}");
        };
        assert_eq!(own, side);
        let expected = match side {
            Side::Largest => h / 2f64.sqrt(),
            Side::Smallest => dt * 2f64.sqrt(),
        };
        expect_close(value, expected, 5e-7);
    }
}

/// Diffusion with steps so short that errors of cells, which are of a higher order, are the larger ones.
#[test]
fn small_errors_of_a_low_order_are_not_taken_for_none() {
    let dt = 0.002;
    let params = format!("param h = 1\n  param dt = {dt}\n  field u : scalar on nodes");
    let found = analysed("x", &params, "u += dt*d2(u,x)", "dt");
    for points in [6.0, 12.0, 40.0] {
        let theta = TAU / points;
        let lambda = 1.0 - 4.0 * dt * (theta / 2.0).sin().powi(2);
        let exact = -lambda.ln() / (dt * theta * theta);
        expect_close(samples(&found, points).ratio, exact, 2e-6);
    }
    let dispersion = found.dispersion.expect("a dispersion");
    assert_eq!(dispersion.in_space, Order::Power(2));
    assert_eq!(dispersion.in_time, Order::Power(1));
    assert_eq!(dispersion.higher_together(), None);
}

/// Errors of both, of different orders, that happen to be alike in some of the halvings.
#[test]
fn errors_that_cancel_once_have_no_higher_order() {
    let params = "param h = 1\n  param dt = 0.2\n  field u : scalar on nodes";
    let third = "(u[2] - 2*u[1] + 2*u[-1] - u[-2]) / (2*h^3)";
    let step = format!("u += dt*0.1*(d2(u,x) - {third})");
    let found = analysed("x", params, &step, "dt").dispersion;
    let found = found.expect("a dispersion");
    assert_eq!(
        (found.in_space, found.in_time),
        (Order::Power(2), Order::Power(1))
    );
    assert_eq!(found.higher_together(), None);
}

/// Lax and Friedrichs: the error is h^2 k^2 / (2 dt), which has no order in steps alone, and 1 in both.
#[test]
fn errors_that_grow_with_shorter_steps_have_an_order_in_both() {
    let params = "param h = 1\n  param dt = 0.5\n  field u : scalar on nodes";
    let found = analysed("x", params, "u = (u[1] + u[-1])/2 - dt*dc(u,x)", "dt");
    for points in [6.0, 12.0, 40.0] {
        let k = TAU / points;
        let (re, im) = (k.cos(), 0.5 * k.sin());
        let remains = re.hypot(im).powf(TAU / im.atan2(re));
        expect_close(samples(&found, points).remains, remains, 1e-4);
    }
}

/// The telegrapher's equations: waves that are longer than 4 pi / g only decay.
fn telegraph(g: f64) -> Analysis {
    let params = format!(
        "param h = 1\n  param dt = 0.5\n  param g = {g}\n  \
         field p : scalar on cells\n  field v : scalar on [0] at 1/2"
    );
    let step = "v = (v*(1 - g*dt/2) - dt*d(p, x)) / (1 + g*dt/2)\n    p -= dt*d(v, x)";
    analysed("x", &params, step, "dt")
}

#[test]
fn losses_that_stop_only_long_waves_leave_a_phase_velocity() {
    for g in [0.05, 0.2, 0.3] {
        let found = telegraph(g);
        let (_, speed) = pace(&found);
        expect_close(speed, 1.0, 1e-5);
        for points in [3.0, 6.0, 20.0, 40.0] {
            // The product of both eigenvalues is alpha, and their sum 1 + alpha - s.
            let k = TAU / points;
            let alpha = (1.0 - 0.25 * g) / (1.0 + 0.25 * g);
            let s = (k / 2.0).sin().powi(2) / (1.0 + 0.25 * g);
            let angle = ((1.0 + alpha - s) / (2.0 * alpha.sqrt())).acos();
            let exact = (k * k - 0.25 * g * g).sqrt();
            expect_close(samples(&found, points).ratio, 2.0 * angle / exact, 2e-6);
        }
        let dispersion = found.dispersion.expect("a dispersion");
        assert_eq!(dispersion.in_space, Order::Power(2));
        assert_eq!(dispersion.in_time, Order::Power(2));
        let curve = dispersion.kinds[0].curves[0].iter();
        assert!(curve.clone().all(|s| s.points < 40.1 && s.ratio > 0.0));
    }
}

/// Waves of 25 points or more only decay, and shorter ones do not.
#[test]
fn waves_that_change_between_decay_and_oscillation_have_no_table() {
    let found = telegraph(0.5);
    let dispersion = found.dispersion.expect("a dispersion");
    assert_eq!((dispersion.irregular, dispersion.kinds.len()), (2, 0));
    assert_eq!(dispersion.in_space, Order::Power(2));
    assert_eq!(dispersion.in_time, Order::Power(2));
    let pace = found.pace.expect("a pace");
    assert!(!pace.moves);
    expect_close(pace.coefficient, 2.0, 1e-3);
}

/// Sound in a porous body: the slow wave of long waves is diffusion.
#[test]
fn slow_waves_of_porous_bodies_have_a_phase_velocity() {
    let params = "param h = 1\n  param dt = 0.4\n  \
                  field v : scalar on [0] at 1/2\n  field q : scalar on [0] at 1/2\n  \
                  field u : scalar on cells\n  field p : scalar on cells\n  field dq : scalar on [0]";
    let step = "allow W0303\n    let m = 3 - 0.64/2 + dt*0.4/2\n    \
                dq = (dt*(-d(p,x) - 0.4*q) - 0.4*dt*d(u,x))/m\n    q += dq\n    \
                v += (dt*d(u,x) - 0.8*dq)/2\n    u += dt*(2.5*d(v,x) + 0.8*d(q,x))\n    \
                p -= dt*(0.8*d(v,x) + d(q,x))";
    let dispersion = analysed("x", params, step, "dt").dispersion;
    let dispersion = dispersion.expect("a dispersion");
    assert_eq!(dispersion.irregular, 0);
    assert_eq!(dispersion.in_space, Order::Power(2));
    assert_eq!(dispersion.in_time, Order::Power(2));
    let kinds: Vec<(bool, u32)> = dispersion
        .kinds
        .iter()
        .map(|k| (k.moves, k.power))
        .collect();
    assert_eq!(kinds, [(true, 1); 2]);
}

/// Waves that move along one axis and only decay across it have no phase velocity there.
#[test]
fn waves_stand_across_the_wind() {
    let found = analysed(
        "x, y",
        "param h = 1; param dt = 0.2; field u : scalar on nodes",
        "u += dt*(0.5*(d2(u, x) + d2(u, y)) - dc(u, x))",
        "dt",
    );
    let dispersion = found.dispersion.as_ref().expect("a dispersion");
    let names: Vec<&str> = dispersion
        .directions
        .iter()
        .map(|d| d.name.as_str())
        .collect();
    assert_eq!(names, ["x", "y", "x+y"]);
    let [kind] = dispersion.kinds.as_slice() else {
        panic!("{dispersion:?}");
    };
    expect_close(kind.coefficients[0], 1.0, 1e-4);
    assert_eq!(kind.coefficients[1], 0.0);
    expect_close(kind.coefficients[2], 0.5f64.sqrt(), 1e-4);
    assert!(
        kind.table[1].is_empty() && kind.curves[1].is_empty(),
        "{kind:?}"
    );
    assert_eq!(kind.table[0].len(), kind.table[2].len());
    let samples = kind.table.iter().chain(&kind.curves).flatten();
    assert!(
        samples
            .clone()
            .all(|s| s.ratio.is_finite() && s.remains.is_finite())
    );
    assert!(
        kind.around
            .iter()
            .flatten()
            .all(|(_, ratio)| (0.1..2.0).contains(ratio))
    );
}
