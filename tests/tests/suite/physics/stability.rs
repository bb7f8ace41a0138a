//! Results of `torre analyze` for schemes whose theory is known: largest stable steps, orders, and phase velocities.

use std::collections::BTreeMap;
use std::f64::consts::{PI, TAU};
use std::path::Path;
use torre_compiler::analysis::{
    Analysis, Kind, Lattice, Limit, NoStep, Operation, Order, Patience, Reference, Sizes, analyze,
    places,
};
use torre_compiler::driver::{Variable, load};
use torre_compiler::resolve::Options;
use torre_compiler::scheme::Precision;
use torre_compiler::statics::NoFiles;
use torre_grammar::source::Source;
use torre_runtime::files::LoadedFiles;
use torre_runtime::world::FileWorld;
use torre_suite::physics::model::{Lattice as Placed, Model, models};
use torre_suite::physics::theory;

/// The analysis of the only problem of a text; the limit is that of `varied`.
fn analysis(text: &str, varied: &str) -> Result<Analysis, NoStep> {
    let world = FileWorld::beside(Path::new(""));
    let source = Source::new("test", text);
    let options = Options {
        precision: Precision::F64,
        ..Options::default()
    };
    let variable = Variable::new(&world, &source, &options)
        .unwrap_or_else(|d| panic!("{}", d.0.first().map_or("", |d| &d.message)));
    let scheme = &variable.base().scheme;
    let files = LoadedFiles::load(&world, scheme).unwrap_or_else(|e| panic!("{e}"));
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
        without_phases: variable.base().without_phases.as_ref(),
    };
    analyze(scheme, &files, sizes)
}

fn found(text: &str) -> Analysis {
    analysis(text, "dt").unwrap_or_else(|e| panic!("{e:?}"))
}

#[track_caller]
fn expect_limit(name: &str, found: Option<Limit>, expected: f64) {
    let Some(Limit::Step {
        dt, weak: false, ..
    }) = found
    else {
        panic!("{name}: {found:?}, expected {expected}");
    };
    let error = (dt / expected - 1.0).abs();
    assert!(
        error < 5e-7,
        "{name}: {dt}, expected {expected}, error {error:e}"
    );
}

const H: f64 = 0.5;

/// A scheme of the library at 0.9 of its limit.
fn of_model(model: &Model, order: u32) -> Analysis {
    let lattice = Placed {
        order,
        cells: [24; 3],
        h: H,
        dt: Some(0.9 * model.longest_step(H, order)),
    };
    found(&(model.noise(&lattice)))
}

/// The kind of waves with a speed.
fn with_speed(found: &Analysis, speed: f64) -> &Kind {
    let dispersion = found.dispersion.as_ref().expect("a dispersion");
    dispersion
        .kinds
        .iter()
        .find(|k| k.moves && k.power == 1 && (k.coefficients[0] / speed - 1.0).abs() < 1e-6)
        .unwrap_or_else(|| panic!("no waves of speed {speed} among {:?}", dispersion.kinds))
}

/// One wave of a scheme.
fn check(model: &Model, order: u32, found: &Analysis) {
    let name = format!("{} {} order {order}", model.scheme, model.wave);
    let longest = model.longest_step(H, order);
    let dt = 0.9 * longest;
    expect_limit(&name, found.limit, longest);
    assert!(found.stability.is_stable(), "{name}");
    assert_eq!(found.safe_limit, None, "{name}");
    assert_eq!(found.unmirrored, [], "{name}");
    // Uniform values of the wave equation may grow with time.
    let drift = if model.second { [1, 0] } else { [0, 0] };
    assert_eq!(found.drift, drift, "{name}");
    let pace = found.pace.expect("waves move");
    let courant = model.fastest * dt / H;
    assert!(
        (pace.number / courant - 1.0).abs() < 1e-6,
        "{name}: {pace:?}"
    );

    let dispersion = found.dispersion.as_ref().expect("a dispersion");
    assert_eq!(dispersion.reference, Reference::Refined);
    assert_eq!(dispersion.in_space, Order::Power(order), "{name}");
    assert_eq!(dispersion.in_time, Order::Power(2), "{name}");
    assert_eq!(dispersion.spurious, 0, "{name}");
    assert_eq!(dispersion.directions.len(), model.axes, "{name}");
    let kind = with_speed(found, model.speed);
    for (direction, table) in dispersion.directions.iter().zip(&kind.table) {
        assert!(table.len() >= 10, "{name}");
        for sample in table {
            let k = TAU / (sample.points * H);
            let mut vector = [0.0; 3];
            // Axes have roles from the outer to the inner one.
            let present: Vec<f64> = match model.axes {
                1 => vec![direction.unit.0[2]],
                2 => vec![direction.unit.0[0], direction.unit.0[2]],
                _ => direction.unit.0.to_vec(),
            };
            for (v, unit) in vector.iter_mut().zip(present) {
                *v = k * unit;
            }
            let rate = model.rate(model.symbol(vector, H, order));
            let exact = theory::omega(rate, dt) / (model.speed * k);
            let error = (sample.ratio / exact - 1.0).abs();
            assert!(
                error < 2e-6,
                "{name} along {}: {sample:?}, theory {exact}",
                direction.name
            );
            assert!((sample.remains - 1.0).abs() < 1e-6, "{name}: {sample:?}");
        }
    }
}

fn check_module(module: &str) {
    let mut analysed: BTreeMap<(&str, u32), Analysis> = BTreeMap::new();
    for model in models().into_iter().filter(|m| m.module == module) {
        for &order in model.orders {
            let key = (model.scheme, order);
            let found = analysed
                .entry(key)
                .or_insert_with(|| of_model(&model, order));
            check(&model, order, found);
        }
    }
    assert!(!analysed.is_empty());
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

/// A problem with a scheme of its own, periodic on all sides.
fn own(axes: usize, params: &str, step: &str) -> String {
    let names = &["x", "y", "z"][..axes];
    let sides: Vec<String> = names.iter().map(|a| format!("{a}: periodic")).collect();
    format!(
        "scheme s {{\n  axes {}\n  {params}\n  step {{\n    {step}\n  }}\n}}\n\
         problem p {{\n  scheme s\n  domain {}\n  boundary {}\n  steps 1\n}}\n",
        names.join(", "),
        vec!["16"; axes].join(" x "),
        sides.join(", ")
    )
}

#[test]
fn of_diffusion() {
    for (axes, laplacian) in [
        (1, "d2(u, x)"),
        (2, "d2(u, x) + d2(u, y)"),
        (3, "d2(u, x) + d2(u, y) + d2(u, z)"),
    ] {
        let params = "param h = 0.5\n  param dt = 0.01\n  field u : scalar on nodes";
        let found = found(&own(
            axes,
            params,
            &format!("u += dt * 1.7 * ({laplacian})"),
        ));
        expect_limit("diffusion", found.limit, 0.25 / (1.7 * 2.0 * axes as f64));
        let dispersion = found.dispersion.expect("a dispersion");
        assert_eq!(dispersion.in_space, Order::Power(2));
        assert_eq!(dispersion.in_time, Order::Power(1));
        let kind = &dispersion.kinds[0];
        assert!(!kind.moves && kind.power == 2, "{kind:?}");
        for sample in &kind.table[0] {
            // lambda = 1 - 4 r sin^2(theta / 2) against exp(-D k^2 dt).
            let theta = TAU / sample.points;
            let r = 1.7 * 0.01 / 0.25;
            let lambda = 1.0 - 4.0 * r * (theta / 2.0).sin().powi(2);
            let exact = -lambda.ln() / (r * theta * theta);
            assert!(
                (sample.ratio / exact - 1.0).abs() < 1e-4,
                "{sample:?} {exact}"
            );
        }
    }
}

#[test]
fn of_advection() {
    let params =
        |more: &str| format!("param h = 0.5\n  param dt = 0.1\n  field u : scalar on nodes{more}");
    let c = "2.5 * dt / h";
    let upwind = found(&own(1, &params(""), &format!("u -= {c} * (u - u[-1])")));
    expect_limit("upwind", upwind.limit, 0.2);
    let dispersion = upwind.dispersion.as_ref().expect("a dispersion");
    assert_eq!(dispersion.in_space, Order::Power(1));
    assert_eq!(dispersion.in_time, Order::Power(1));
    let directions: Vec<&str> = dispersion
        .directions
        .iter()
        .map(|d| d.name.as_str())
        .collect();
    assert_eq!(directions, ["x"], "waves travel in one direction");
    let sample = dispersion.kinds[0].table[0]
        .iter()
        .find(|s| s.points == 10.0);
    let theta = TAU / 10.0;
    let lambda2 = 1.0 - 4.0 * 0.5 * 0.5 * (theta / 2.0_f64).sin().powi(2);
    // Half a cell per step, so a period of 10 cells has 20 steps, less or more by the error of the phase.
    let remains = sample.expect("ten points").remains;
    assert!(
        (remains / lambda2.sqrt().powf(20.0) - 1.0).abs() < 0.05,
        "{remains}"
    );

    let lax_friedrichs = format!("u = (u[+1] + u[-1]) / 2 - {c} / 2 * (u[+1] - u[-1])");
    expect_limit(
        "Lax-Friedrichs",
        found(&own(1, &params(""), &lax_friedrichs)).limit,
        0.2,
    );
    let lax_wendroff =
        format!("u = u - {c} / 2 * (u[+1] - u[-1]) + ({c})^2 / 2 * (u[+1] - 2 * u + u[-1])");
    expect_limit(
        "Lax-Wendroff",
        found(&own(1, &params(""), &lax_wendroff)).limit,
        0.2,
    );

    // A leapfrog step has a second solution that alternates in time.
    let leapfrog = found(&own(
        1,
        &params(" levels 2"),
        "u@next = u@prev - 2 * dt * 2.5 * dc(u, x)",
    ));
    expect_limit("leapfrog", leapfrog.limit, 0.2);
    assert_eq!(leapfrog.dispersion.map(|d| d.spurious), Some(1));

    // Euler's step with a central difference grows at every step size.
    let euler = found(&own(1, &params(""), "u -= dt * 2.5 * dc(u, x)"));
    assert!(!euler.stability.is_stable());
    let Some(Limit::Step { weak, dt, .. }) = euler.limit else {
        panic!("{:?}", euler.limit);
    };
    // (1 + a^2)^(1/2) = exp(1e-7), with a the Courant number.
    let expected = 2e-7_f64.sqrt() * 0.2;
    assert!(
        weak && (dt / expected - 1.0).abs() < 0.01,
        "{:?}",
        euler.limit
    );
}

/// The difference of Tam and Webb is steepest between the points of any simple grid of wave numbers.
#[test]
fn of_a_difference_that_is_steepest_inside_the_zone() {
    let coefficients = [0.770882380518, -0.166705904415, 0.0208431427703];
    let symbol = |theta: f64| -> f64 {
        let parts = (1..).zip(coefficients);
        parts
            .map(|(n, c)| 2.0 * c * (f64::from(n) * theta).sin())
            .sum()
    };
    let steepest = (0..1_000_000)
        .map(|i| symbol(PI * f64::from(i) / 1e6))
        .fold(0.0, f64::max);
    for (axes, sum) in [
        (1, "dc_drp(u, x)"),
        (2, "dc_drp(u, x) + 0.7 * dc_drp(u, y)"),
        (3, "dc_drp(u, x) + 0.7 * dc_drp(u, y) - 0.3 * dc_drp(u, z)"),
    ] {
        let params = "param h = 0.5\n  param dt = 0.1\n  field u : scalar on nodes levels 2";
        let step = format!("u@next = u@prev - 2 * dt * ({sum})");
        let text = format!("use std::diff::dc_drp\n{}", own(axes, params, &step));
        let speeds = [1.0, 1.7, 2.0][axes - 1];
        expect_limit("DRP", found(&text).limit, 0.5 / (steepest * speeds));
    }
}

#[test]
fn of_losses_and_gains() {
    let light = |sigma: &str| {
        format!(
            "use std::maxwell::maxwell_1d\nproblem p {{\n  scheme maxwell_1d {{ h = 0.5, dt = 0.3, order = 4 }}\n  \
             domain 32\n  \
             boundary x: pec\n  coef sigma = {sigma}\n  steps 1\n}}\n"
        )
    };
    // A current at the middle of the step leaves the limit as it is.
    for sigma in ["0.3", "2", "if x < 5 then 0 else 1"] {
        let found = found(&light(sigma));
        expect_limit(sigma, found.limit, 0.5 * 6.0 / 7.0);
        assert_eq!(found.stability.own, 0.0);
    }
    // A medium that amplifies: uniform values grow by exp(sigma t) as they should, and the step is no less stable for
    // it.
    let gain = found(&light("-0.01"));
    assert!(gain.stability.is_stable(), "{:?}", gain.stability);
    assert!(
        (gain.stability.own / 0.003 - 1.0).abs() < 1e-3,
        "{:?}",
        gain.stability
    );
    // Where waves may grow as uniform values do, the limit moves by less than a millionth.
    let limit = match gain.limit {
        Some(Limit::Step { dt, .. }) => dt / (0.5 * 6.0 / 7.0),
        _ => 0.0,
    };
    assert!((limit - 1.0).abs() < 1e-6, "{limit}");

    // An oscillation that Euler's step makes grow, and a decay that it overshoots, are instabilities though they are
    // uniform.
    let params = "param dt = 0.1\n  field u : scalar on nodes\n  field v : scalar on nodes";
    let swing = "u += dt * v\n    v = v - dt * (u - dt * v)";
    let swing = found(&own(1, params, swing));
    assert!(!swing.stability.is_stable(), "{:?}", swing.stability);
    let decay = own(
        1,
        "param dt = 0.1\n  field u : scalar on nodes",
        "u -= dt * 5 * u",
    );
    let decay = found(&decay);
    expect_limit("decay", decay.limit, 0.4);
}

/// A limit is that of the scheme, from whatever step it is looked for, and the step is stable if it is below.
#[test]
fn of_uniform_values_that_grow() {
    let limit_from = |name: &str, step: &str, dt: f64, expected: f64| {
        let params = format!("param dt = {dt}\n  field u : scalar on nodes");
        let found = found(&own(1, &params, step));
        expect_limit(&format!("{name} from {dt}"), found.limit, expected);
        let is_stable = found.stability.is_stable();
        assert_eq!(
            is_stable,
            dt < expected,
            "{name} from {dt}: {:?}",
            found.stability
        );
    };
    let reaction = "u += dt * (0.7 * u + 0.5 * d2(u, x))";
    for dt in [1e-9, 1e-4, 0.1, 0.35, 1.0, 1.5, 1.6, 3.0, 40.0] {
        // Short waves decay, until they alternate more and more.
        limit_from("reaction and diffusion", reaction, dt, 2.0 / 1.3);
    }
    let slow = "u += dt * (1e-3 * u + 0.5 * d2(u, x))";
    for dt in [1e-5, 0.1, 0.9, 1.001, 1.01] {
        limit_from("slow reaction", slow, dt, 2.0 / 1.999);
    }
    // A decay that a long step turns into growth without a change of sign.
    let decay = "u = u - dt * u + dt^2 / 2 * u";
    for dt in [0.1, 1.9, 2.05, 2.1, 2.3] {
        limit_from("decay of second order", decay, dt, 2.0);
    }
    for dt in [1e-6, 0.1, 0.35, 2.0] {
        let params = format!("param dt = {dt}\n  field u : scalar on nodes");
        let found = found(&own(1, &params, "u += dt * 0.7 * u"));
        assert_eq!(found.limit, Some(Limit::None), "{dt}");
        assert!(found.stability.is_stable(), "{dt}");
    }
}

#[test]
fn of_media_that_vary() {
    let sound = |rho: &str, kappa: &str| {
        format!(
            "use std::acoustics::acoustics_2d\nproblem p {{\n  scheme acoustics_2d {{ h = 2, dt = 1e-4, order = 4 \
             }}\n  \
             domain 300 x 150\n  coef rho = {rho}\n  coef kappa = {kappa}\n  steps 1\n}}\n"
        )
    };
    let limit = |speed: f64| 2.0 / (speed * 7.0 / 6.0 * 2.0_f64.sqrt());
    // Neither the density nor the bulk modulus is extreme where sound is fastest.
    let layers = |values: [&str; 4]| {
        let [a, b, c, d] = values;
        format!("if y < 60 then {a} else if y < 120 then {b} else if y < 180 then {c} else {d}")
    };
    let rho = layers(["1000", "3000", "2000", "3000"]);
    let kappa = layers([
        "1000 * 1500^2",
        "3000 * 2500^2",
        "2000 * 3500^2",
        "3000 * 3000^2",
    ]);
    let layered = found(&sound(&rho, &kappa));
    expect_limit("layers", layered.limit, limit(3500.0));
    // The lowest density with the highest modulus would be faster.
    expect_limit(
        "extremes",
        layered.safe_limit,
        limit((27e9_f64 / 1000.0).sqrt()),
    );
    assert!(layered.stability.is_stable() && layered.stability.is_stable_in_any_case());
    // A small body somewhere, and a peak between smooth slopes.
    let body = found(&sound(
        "1000",
        "1000 * (if (x - 333)^2 + (y - 77)^2 < 9 then 4000 else 1500)^2",
    ));
    expect_limit("body", body.limit, limit(4000.0));
    let slope = found(&sound(
        "1000",
        "1000 * (1500 + 1000 * exp(-((x - 201)^2 + (y - 101)^2) / 5000))^2",
    ));
    expect_limit("slope", slope.limit, limit(2500.0));
}

#[test]
fn of_statements_in_regions() {
    let params =
        "param dt = 0.1\n  field u : scalar on nodes levels 1\n  field v : scalar on cells at 1/2";
    let both = "v -= dt * d(u, x)\n    where x < 8 { u -= dt * d(v, x) }\n    where not (x < 8) { u -= dt * 9 * d(v, \
        x) }";
    // The faster part decides, and the two updates do not act on one place.
    let found = analysis(&own(1, params, both), "dt").unwrap();
    expect_limit("regions", found.limit, 1.0 / 3.0);
    assert_eq!(found.stability.thin, []);
    let edge = |factor: f64| {
        let step = format!(
            "v -= dt * d(u, x)\n    where x < 1 {{ u = {factor} * u[+1] }}\n    \
             where not (x < 1) {{ u -= dt * d(v, x) }}"
        );
        analysis(&own(1, params, &step), "dt").unwrap()
    };
    let found = edge(0.5);
    expect_limit("edge", found.limit, 1.0);
    assert_eq!(found.stability.thin.len(), 1, "{:?}", found.stability.thin);
    // Values at the edge grow.
    assert!(!edge(5.0).stability.is_stable());
}

/// All zones share the work of looking for combinations of statements, whatever their number.
#[test]
fn of_many_zones_in_bounded_time() {
    let bands = |axis: &str, count: i32| -> String {
        let band = |n: i32| {
            format!(
                "where {axis} > {} and {axis} < {} {{ u += 0.01 * dt * d2(u, {axis}) }}\n    ",
                50 * n,
                50 * n + 25
            )
        };
        (0..count).map(band).collect()
    };
    let curves: String = (1..=6)
        .map(|n| {
            format!(
                "where sin({n}.7 * x / 10 + y / {}) > 0.3 {{ u += 0.001 * dt * d2(u, y) }}\n    ",
                n + 2
            )
        })
        .collect();
    let work = |count: i32| {
        let step = format!(
            "u += dt * d2(u, x)\n    {}{}{curves}",
            bands("x", count),
            bands("y", count)
        );
        let text = own(2, "param dt = 0.1\n  field u : scalar on nodes", &step)
            .replace("domain 16 x 16", "domain 200 x 200");
        let world = FileWorld::beside(Path::new(""));
        let source = Source::new("test", text.as_str());
        let resolved = load(&world, &source, &Options::default())
            .unwrap_or_else(|d| panic!("{}", d.0[0].message));
        places(&resolved.scheme, &NoFiles, Patience::Short)
            .unwrap()
            .work
    };
    let [one, many] = [0, 4].map(work);
    assert!(many < 2 * one.max(4_000_000), "{one} {many}");
}

/// Places and regions in lengths stay in their cells, for all cell sizes with which the scheme is compared.
#[test]
fn of_places_in_lengths() {
    let params = "param h = 0.5\n  param dt = 0.1\n  field u : scalar on nodes\n  field v : scalar on cells at 1/2";
    let uniform = "v -= dt * d(u, x)\n    u -= dt * 9 * d(v, x)";
    let expected = found(&own(1, params, uniform));
    let orders = |found: &Analysis| {
        let dispersion = found.dispersion.as_ref().expect("a dispersion");
        assert_eq!(dispersion.reference, Reference::Refined);
        let kinds = dispersion.kinds.iter();
        let tables = kinds.map(|kind| kind.table.clone()).collect::<Vec<_>>();
        (dispersion.in_space, dispersion.in_time, tables)
    };
    let ends = "probe u at x = 7.6\n  source u at x = 6.1 += sin(t)\n  init u = x\n  steps 1";
    let with_places = own(1, params, uniform).replace("steps 1", ends);
    assert_eq!(orders(&found(&with_places)), orders(&expected));
    // The fast part is the right one, which shrinking cells would leave.
    let parts = "v -= dt * d(u, x)\n    where x < 4.05 { u -= dt * d(v, x) }\n    where not (x < 4.05) { u -= dt * 9 \
        * d(v, x) }";
    let in_parts = found(&own(1, params, parts));
    expect_limit("parts", in_parts.limit, 0.5 / 3.0);
    assert_eq!(orders(&in_parts), orders(&expected));
}

#[test]
fn of_schemes_without_a_step() {
    let string = own(
        1,
        "param c = 0.9\n  field u : scalar on nodes levels 2",
        "u@next = 2 * u - u@prev + c^2 * d2(u, x)",
    );
    let found = analysis(&string, "dt").unwrap();
    assert_eq!(found.limit, None);
    assert!(found.stability.is_stable());
    let dispersion = found.dispersion.as_ref().expect("a dispersion");
    assert_eq!(dispersion.reference, Reference::LongWaves);
    let found = analysis(&string, "c").unwrap();
    expect_limit("c", found.limit, 1.0);
}

#[test]
fn of_values_that_drive_others() {
    let params = "param dt = 0.3\n  field u : scalar on nodes\n  field v : scalar on cells at 1/2\n  field sum : \
        scalar on nodes";
    let step = "v -= dt * d(u, x)\n    u -= dt * d(v, x)\n    sum += dt * u";
    let found = found(&own(1, params, step));
    // Uniform u stands still, and its sum over time grows; waves do not.
    assert!(found.stability.is_stable());
    assert_eq!(found.drift, [1, 0]);
    expect_limit("driven", found.limit, 1.0);
}

#[test]
fn of_mirrors() {
    let boundary = |text: String| text.replace("boundary x: periodic", "boundary x: pec");
    let params = "param dt = 0.1\n  field u : scalar on nodes";
    let upwind = found(&boundary(own(1, params, "u -= dt * (u - u[-1])")));
    assert_eq!(upwind.unmirrored.len(), 1);
    let diffusion = found(&boundary(own(1, params, "u += dt * d2(u, x)")));
    assert_eq!(diffusion.unmirrored, []);
}

#[test]
fn of_nonlinear_schemes_it_says_why_not() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    for (file, expected) in [
        ("14-kerr", vec![(2, Operation::Quotient)]),
        (
            "15-gray-scott",
            vec![(0, Operation::Product), (1, Operation::Product)],
        ),
        ("16-burgers", vec![(0, Operation::Product)]),
    ] {
        let text = std::fs::read_to_string(examples.join(format!("{file}.torre"))).unwrap();
        match analysis(&text, "dt") {
            Err(NoStep::Nonlinear(updates)) => {
                let why: Vec<(usize, Operation)> =
                    updates.iter().map(|u| (u.stage, u.why.operation)).collect();
                assert_eq!(why, expected, "{file}");
            }
            other => panic!("{file}: {other:?}"),
        }
    }
    // Where the nonlinear part has no weight, a scheme is linear.
    let kerr = std::fs::read_to_string(examples.join("14-kerr.torre")).unwrap();
    let linear = found(&kerr.replace("0.05 else 0", "0 else 0"));
    expect_limit("kerr", linear.limit, 6.0 / 7.0);
}
