//! Problems: settings, domains, sources, results, files.

use crate::support::*;
use torre_compiler::host::{At, HostExpr};
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::problem::{OutputKind, StaticValue};
use torre_compiler::reference::Reference;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::{Boundary, Precision};
use torre_compiler::statics::{NoFiles, coef_value, init_value, start_of};

const WAVE: &str = "
const scale = 2
scheme wave {
  axes x, y
  param h = 0.5
  param dt = 0.5 * h
  param c = 1.0
  coef eps on cells = 1.0
  field u : scalar on nodes levels 2
  field E : vector on edges
  step {
    u@next = 2 * u - u@prev + (c * dt)^2 * (d2(u, x) + d2(u, y))
    E.x += d(u, x) / avg(eps, y)
    E.y += d(u, y) / avg(eps, x)
  }
}
";

fn wave(problem: &str, overrides: &[(&str, &str)]) -> Resolved {
    let text = format!("{WAVE}problem p {{\n{problem}\n}}");
    let world = TestWorld {
        arrays: vec![("eps.npy", "<f8", vec![16, 8])],
        ..TestWorld::default()
    };
    let options = Options {
        precision: Precision::F64,
        overrides: overrides
            .iter()
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect(),
        ..Options::default()
    };
    resolved_with(&world, &text, &options)
}

fn at(position: [f64; 3], time: f64) -> At {
    At { position, time }
}

#[test]
fn the_command_line_wins_over_the_problem_and_both_over_the_scheme() {
    let problem = "const n = 8\nscheme wave { h = n / 4 }\ndomain 2 * n x n\nsteps 5 * n";
    let r = wave(problem, &[]);
    assert_eq!(r.scheme.grid.spacing[Axis::OUTER], 2.0);
    assert_eq!(r.scheme.grid.dt, 1.0);
    assert_eq!(r.scheme.grid.cells, PerAxis([16, 1, 8]));
    assert_eq!(r.problem.steps, 40);
    let r = wave(
        problem,
        &[
            ("h", "scale * 4"),
            ("dt", "h / 8"),
            ("domain", "10x 12"),
            ("steps", "7"),
        ],
    );
    assert_eq!(r.scheme.grid.spacing[Axis::INNER], 8.0);
    assert_eq!(r.scheme.grid.dt, 1.0);
    assert_eq!(r.scheme.grid.cells, PerAxis([10, 1, 12]));
    assert_eq!(r.problem.steps, 7);
}

#[test]
fn constants_of_a_problem_may_use_parameters() {
    let r = wave(
        "scheme wave\ndomain 16 x 8\nconst width = 8 * h\nsteps width\nsource u at (width, 2) += 1",
        &[],
    );
    assert_eq!(r.problem.steps, 4);
    assert_eq!(
        r.problem.sources[0].region[Axis::OUTER],
        Interval::new(4, 5)
    );
}

#[test]
fn boundaries_are_per_side() {
    let r = wave(
        "scheme wave\ndomain 16 x 8\nboundary x: pec | pmc, y: periodic\nsteps 1",
        &[],
    );
    let boundary = r.scheme.grid.boundary;
    assert_eq!(boundary[Axis::OUTER], [Boundary::Pec, Boundary::Pmc]);
    assert_eq!(boundary[Axis::INNER], [Boundary::Periodic; 2]);
    assert_eq!(boundary[Axis::MIDDLE], [Boundary::Zero; 2]);
}

#[test]
fn initial_values_see_place_and_time() {
    let r = wave(
        "scheme wave\ndomain 16 x 8\ninit u = x + 10 * t\ninit u@prev = y\ninit E = [x, 0]\nsteps 1",
        &[],
    );
    let init = &r.problem.init;
    let value = |i: usize, point: At| match &init[i].value {
        StaticValue::Expr(e) => e.eval(&point),
        StaticValue::File(_) => f64::NAN,
    };
    assert_eq!(init.iter().map(|i| i.age).collect::<Vec<_>>(), [0, 1, 0, 0]);
    assert_eq!(value(0, at([3.0, 0.0, 4.0], 0.5)), 8.0);
    assert_eq!(value(1, at([3.0, 0.0, 4.0], 0.5)), 4.0);
    assert_eq!(value(2, at([3.0, 0.0, 4.0], 0.5)), 3.0);
    assert_eq!(r.scheme.component(init[3].component).name, "E.y");
}

/// The versions between two steps start as the earlier one.
#[test]
fn initial_values_of_components_that_advance_twice_count_steps() {
    let text = "scheme s { axes x; param h = 1; param dt = 0.5
        field u : scalar on nodes levels 2; field w : scalar on nodes
        step { w = u@prev; u = u + 0; u = 2 * u } }
        problem p { scheme s; domain 8; init u = 100 + t; init u@prev = 7; steps 1 }
        problem q { scheme s; domain 8; init u = 100 + t; steps 1 }";
    for (problem, earlier) in [("p", 7.0), ("q", 99.5)] {
        let options = Options {
            problem: Some(problem.to_string()),
            ..Options::default()
        };
        let r = resolved_with(&TestWorld::default(), text, &options);
        let mut ids = r.scheme.component_ids();
        let id = ids.find(|id| r.scheme.component(*id).name == "u");
        let id = id.expect("a field");
        let start = |version: u8| {
            let start = start_of(&r.scheme, &r.problem, id, version).expect("a value");
            init_value(&r.scheme, &NoFiles, &start, PerAxis([3, 0, 0]))
        };
        let versions = r.scheme.component(id).time_levels;
        assert!(versions > 2, "{versions}");
        let values: Vec<f64> = (0..versions).map(start).collect();
        assert_eq!(values[0], 100.0);
        assert!(values[1..3].iter().all(|v| *v == earlier), "{values:?}");
    }
}

#[test]
fn sources_are_split_into_place_and_time() {
    let r = wave(
        "scheme wave\ndomain 16 x 8
  source u at (3, 4) += sin(t)
  source E.x in x = 2..5 += x * cos(t) / 2
  source u where x >= 2 and x * y < 4 += sin(x - t)
  source E += [1, t]
  steps 1",
        &[],
    );
    let s = &r.problem.sources;
    assert_eq!(s.len(), 5);
    assert_eq!(
        s[0].region,
        PerAxis([
            Interval::new(3, 4),
            Interval::new(0, 1),
            Interval::new(4, 5)
        ])
    );
    assert_eq!(s[0].profile, HostExpr::Number(1.0));
    assert_eq!(s[0].stage.0, 0);
    assert_eq!(s[1].region[Axis::OUTER], Interval::new(2, 5));
    assert_eq!(s[1].region[Axis::INNER], Interval::new(0, 8));
    assert!(!s[1].wave.depends_on_place() && !s[1].profile.depends_on_time());
    assert_eq!(s[1].stage.0, 1);
    // h is 1/2, so x >= 2 begins at index 4; the rest is a condition.
    assert_eq!(s[2].region[Axis::OUTER], Interval::new(4, 16));
    let rest = s[2].condition.as_ref().expect("x * y < 4 is no box");
    assert_eq!(rest.eval(&at([2.0, 0.0, 1.0], 0.0)), 1.0);
    assert_eq!(rest.eval(&at([2.0, 0.0, 2.0], 0.0)), 0.0);
    assert!(s[2].wave.depends_on_place());
    assert_eq!(s[4].wave, HostExpr::Time);
}

#[test]
fn results_have_names() {
    let r = wave(
        "scheme wave\ndomain 16 x 8
  probe u at (3, 4)
  probe E at (3, 4) as ear
  output slice u y = 3 every 5
  output slice u y = 3 every 7
  output volume E
  steps 1",
        &[],
    );
    let probes: Vec<&str> = r.problem.probes.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(probes, ["u_3_4", "ear.x", "ear.y"]);
    let outputs: Vec<&str> = r.problem.outputs.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(outputs, ["u-y3", "u-y3-2", "E.x", "E.y"]);
    assert_eq!(r.problem.outputs[1].every, 7);
    assert!(matches!(
        r.problem.outputs[0].kind,
        OutputKind::Slice {
            axis: Axis::INNER,
            index: 3
        }
    ));
}

#[test]
fn means_of_files_read_neighbours() {
    let r = wave(
        "scheme wave\ndomain 16 x 8\ncoef eps = file(\"eps.npy\")\nsteps 1",
        &[],
    );
    assert_eq!(r.scheme.files.len(), 1);
    let shown: Vec<String> = r.scheme.coefs.iter().map(|c| c.value.to_string()).collect();
    assert_eq!(
        shown,
        [
            "(1.0 / ((0.5 * f0[0, 0, -1]) + (0.5 * f0[0, 0, 0])))",
            "(1.0 / ((0.5 * f0[-1, 0, 0]) + (0.5 * f0[0, 0, 0])))",
        ]
    );
}

#[test]
fn moved_coordinates_are_those_of_the_neighbour() {
    // With a cell size that is no power of two, x + h/2 is not the neighbour's coordinate in the last bit.
    let r = wave(
        "scheme wave { h = 0.1 }\ndomain 64 x 8\ncoef eps = x\nsteps 1",
        &[],
    );
    let mean = &r.scheme.coefs[1];
    for i in 1..64 {
        let x = |n: f64| n * 0.1;
        let expected = 1.0 / (0.5 * x(f64::from(i) - 0.5) + 0.5 * x(f64::from(i) + 0.5));
        let at = PerAxis([i64::from(i), 0, 0]);
        let found = coef_value(&r.scheme, &NoFiles, mean.position, &mean.value, at);
        assert_eq!(found.to_bits(), expected.to_bits(), "{i}");
    }
}

#[test]
fn uniform_coefficients_leave_no_array() {
    assert!(
        wave(
            "scheme wave\ndomain 16 x 8\ncoef eps = 2 * scale\nsteps 1",
            &[]
        )
        .scheme
        .coefs
        .is_empty()
    );
}

#[test]
fn memory_is_checked_before_it_is_taken() {
    let text = format!("{WAVE}problem p {{ scheme wave; domain 10000 x 10000; steps 1 }}");
    let options = Options {
        precision: Precision::F64,
        memory: Some(2_000_000_000),
        ..Options::default()
    };
    let shown = show(&refused_with(&TestWorld::default(), &text, &options));
    assert!(
        shown.contains("error E0508: this needs 3.2 GB of memory, but there are 2.0 GB"),
        "{shown}"
    );
    let hint = shown
        .split("--set domain=")
        .nth(1)
        .and_then(|rest| rest.split('`').next())
        .expect("a domain is suggested");
    assert!(shown.contains("`--precision f32` needs half"));
    let fits = Options {
        overrides: vec![("domain".to_string(), hint.to_string())],
        ..options
    };
    resolved_with(&TestWorld::default(), &text, &fits);
}

#[test]
fn schedules_are_found_in_the_file_and_beside_the_scheme() {
    let text = "
use std::maxwell::{maxwell42, maxwell22}
schedule here for maxwell42 { z: span }
schedule other for maxwell22 { z: span }
schedule any { z: span }
problem p { scheme maxwell42; domain 8 x 8 x 8; steps 1 }";
    let names: Vec<String> = resolved(text)
        .schedules
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["here", "any"]);
}

#[test]
fn schemes_can_be_named_in_full() {
    let r = resolved(
        "problem p { scheme std::maxwell::maxwell42 { h = std::constants::c0 }; domain 8 x 8 x 8; steps 1 }",
    );
    assert_eq!(r.scheme.name, "maxwell42");
    assert_eq!(r.scheme.grid.spacing[Axis::OUTER], 299792458.0);
}

#[test]
fn reductions_have_a_term_for_each_position() {
    use torre_compiler::problem::Reduction;
    let program = |record: &str| {
        wave(
            &format!(
                "scheme wave\ndomain 8 x 6\nboundary all: pec\nregion left = x < 2\n{record}\nsteps 9"
            ),
            &[],
        )
    };
    let series = |record: &str| program(record).problem.series.remove(0);
    let sum = series("record energy = sum(0.5 * (E.x^2 + E.y^2) - u^2 + 2 * u) every 3");
    assert_eq!(
        (sum.name.as_str(), sum.reduction, sum.every),
        ("energy", Reduction::Sum, 3)
    );
    // E.x, E.y, and u twice.
    assert_eq!(sum.terms.len(), 3);
    let most = series("record most = max(abs(u) * (1 + t)) in x = 2..5, left");
    assert_eq!(most.reduction, Reduction::Max);
    assert_eq!(most.terms[0].region[Axis::OUTER], Interval::new(2, 4));
    // Values that the boundary holds at 0 do not count.
    let least = series("record least = min(E.x)");
    assert_eq!(least.terms[0].region[Axis::INNER], Interval::new(1, 6));
    let mixed = series("record mixed = sum(avg(E.x, x) * u + 3)");
    assert_eq!(mixed.terms.len(), 1);
    // Numbers lie with the terms of their own sum.
    let nested = series("record a = sum(E.x + 2 * (u - 1))").terms;
    let alone = series("record a = sum(2 * u - 2)").terms;
    assert_eq!(format!("{:?}", &nested[1..]), format!("{alone:?}"));
    // Parentheses make a sum of first terms, as of later terms.
    let mut ahead = series("record a = sum((E.x - 2 + E.x) + 3 * u)").terms;
    ahead.reverse();
    let behind = series("record a = sum(3 * u + (E.x - 2 + E.x))").terms;
    assert_eq!(format!("{ahead:?}"), format!("{behind:?}"));
    let refused = |record: &str| {
        let text = format!("{WAVE}problem p {{\nscheme wave\ndomain 8 x 6\n{record}\nsteps 9\n}}");
        show(&refused_with(
            &TestWorld::default(),
            &text,
            &Options::default(),
        ))
    };
    for (record, code) in [
        ("record a = sum(E.x * u)", "E0201"),
        ("record a = max(E.x + u)", "E0201"),
        ("record a = sum(E)", "E0401"),
        ("record a = sum(u@prev)", "E0303"),
        ("record a = u", "E0518"),
        ("record a = sum(u, u)", "E0518"),
        ("record a = sum(E.x + E.y + 1)", "E0518"),
        ("record a = sum(u + (E.x + E.y + 1))", "E0518"),
        ("record a = sum(u - 2 + E.x)", "E0518"),
        ("record a = sum(2)", "E0518"),
        ("record a = sum(u)\nrecord a = max(u)", "E0511"),
        // Tables have the times under this name.
        ("record t = sum(u)", "E0511"),
        ("probe u at (2, 3) as t", "E0511"),
        ("record a = sum(nothing)", "E0101"),
        ("record a = sum(u) every 0", "E0512"),
    ] {
        let found = refused(record);
        assert!(found.contains(code), "{record}: {found}");
    }
}

#[test]
fn nothing_that_a_problem_says_is_replaced_by_itself() {
    let shown = |lines: &str| {
        let text = format!("{WAVE}problem p {{\nscheme wave\ndomain 8 x 6\n{lines}\nsteps 9\n}}");
        show(&checked(&TestWorld::default(), &text))
    };
    for (lines, name) in [
        ("init u = x\ninit u = y", "init u"),
        ("init u@prev = x\ninit u@prev = y", "init u@prev"),
        ("init E.x = x\ninit E.x = y", "init E.x"),
        ("init E.x = x\ninit E = [x, y]", "init E.x"),
        ("coef eps = 2\ncoef eps = 1", "coef eps"),
    ] {
        let found = shown(lines);
        let message = format!("`{name}` is given twice");
        assert!(
            found.contains("E0503") && found.contains(&message),
            "{lines}: {found}"
        );
    }
    for lines in [
        "init u = x\ninit u@prev = y",
        "init E = [x, y]\ninit E.x = 2 * x",
    ] {
        let found = shown(lines);
        assert!(!found.contains("E0503"), "{lines}: {found}");
    }
}

#[test]
fn numbers_in_messages_are_short() {
    let text = "scheme s { axes x; param dt = 1e-320; field u : scalar on nodes; step { u = u } }";
    let found = show(&checked(&TestWorld::default(), text));
    assert!(found.contains("this is 1e-320"), "{found}");
}

#[test]
fn a_definition_hides_none_of_its_parameters() {
    for (text, name) in [
        ("def f(a, a) = a", "a"),
        ("def f(a, b = 1, b = 2) = a * b", "b"),
        ("layer l(n, n) : pec { d(f, a, order) }", "n"),
        (
            "def f(u, body) { state s in body\nstate s in body\ns@next = u\ns@next }",
            "s",
        ),
        (
            "def f(u, body) { state u in body\nu@next = 1\nu@next }",
            "u",
        ),
    ] {
        let found = show(&checked(&TestWorld::default(), text));
        let message = format!("error E0103: `{name}` is defined twice");
        assert!(found.starts_with(&message), "{text}: {found}");
    }
    let several = "def f(u, body) { state s, r in body\ns@next = u\nr@next = u\ns@next + r }";
    assert_eq!(show(&checked(&TestWorld::default(), several)), "");
}

/// Declarations of a kind are met before those of another kind, wherever they stand.
#[test]
fn the_first_of_two_definitions_is_that_of_the_text() {
    let text = "scheme s {
  axes x
  field u : scalar on nodes
  region u = x > 3
  step { u = u }
}";
    let found = show(&checked(&TestWorld::default(), text));
    let again = "error E0103: `u` is defined twice
  test.torre `u`: defined again here
  test.torre `u`: first defined here
";
    assert!(found.contains(again), "{found}");
    let all = checked(&TestWorld::default(), text);
    let twice = all.0.iter().find(|d| d.code.0 == "E0103").unwrap();
    assert!(twice.labels[0].span.start > twice.labels[1].span.start);
}

/// A wrong side is no reason to say nothing about the rest of a problem.
#[test]
fn a_problem_with_a_wrong_side_is_checked_to_its_end() {
    let codes = |boundary: &str| -> Vec<String> {
        let text = format!(
            "{WAVE}problem p {{
scheme wave
domain 8 x 6
boundary {boundary}
init q = 1
probe u at (30, 2)
source u += rickre(t)
steps 9
}}"
        );
        let all = checked(&TestWorld::default(), &text);
        all.0.iter().map(|d| d.code.0.to_string()).collect()
    };
    let rest = ["E0101", "E0506", "E0101"];
    for boundary in ["x: pecc", "x: periodic | pec", "y: pec, all: foo"] {
        let found = codes(boundary);
        assert_eq!(found[0], "E0505", "{boundary}: {found:?}");
        assert_eq!(found[1..], rest, "{boundary}: {found:?}");
    }
    // Sides with arguments give names to values.
    assert_eq!(codes("x: blohc(1)"), ["E0505"]);
    assert_eq!(codes("x: pec"), rest);
}

#[test]
fn names_that_a_problem_gets_wrong_are_helped() {
    let refused = |lines: &str| {
        let text = format!(
            "{WAVE}problem p {{ scheme wave {{ hh = 3 }}; domain 8 x 6; region disc = x > 2\n{lines}\nsteps 9 }}"
        );
        show(&checked(&TestWorld::default(), &text))
    };
    for (lines, message) in [
        // The name, not the value behind it.
        ("", "  test.torre `hh`: set here"),
        ("coef index = 2", "hint: its coefficients are eps"),
        ("coef esp = 2", "hint: did you mean `eps`?"),
        (
            "output volume disk",
            "there is no field, coefficient or region `disk`\n  test.torre `disk`: not found\n  \
             hint: did you mean `disc`?",
        ),
        ("output volume q", "hint: the fields are u, E"),
        (
            "source u in rim += 1",
            "a part of the grid by `region rim = ...`",
        ),
    ] {
        let found = refused(lines);
        assert!(found.contains(message), "{lines}: {found}");
    }
}

#[test]
fn settings_of_other_things_than_parameters_say_what_these_are() {
    let text = format!("{WAVE}problem p {{ scheme wave; domain 8 x 6; const own = 2; steps 9 }}");
    for (name, hint) in [
        (
            "eps",
            "`eps` is a coefficient, no parameter; its parameters are h, dt, c",
        ),
        (
            "scale",
            "`scale` is a constant, no parameter; its parameters are h, dt, c",
        ),
        (
            "own",
            "`own` is a constant, no parameter; its parameters are h, dt, c",
        ),
        (
            "x",
            "`x` is an axis, no parameter; its parameters are h, dt, c",
        ),
        ("step", "did you mean `steps`?"),
        ("q", "its parameters are h, dt, c"),
    ] {
        let options = Options {
            overrides: vec![(name.to_string(), "1".to_string())],
            ..Options::default()
        };
        let refused = refused_with(&TestWorld::default(), &text, &options);
        let found = show(&refused);
        assert!(
            found.starts_with("error E0701") && found.contains(&format!("hint: {hint}\n")),
            "{name}: {found}"
        );
    }
}

/// A comparison with NaN fails, and then the second argument is taken.
#[test]
fn of_a_number_and_nan_the_second_is_taken() {
    let r = resolved(
        "scheme s { axes x
  field n : scalar on nodes
  field one : scalar on nodes
  field a : scalar on nodes
  field b : scalar on nodes
  step { allow W0301
    allow W0401
    a = min(n, one)
    b = max(one, n) } }
problem p { scheme s; domain 4; init n = log(-1); init one = 1; steps 1 }",
    );
    let mut reference: Reference<'_, f32> = Reference::new(&r.scheme, &r.problem, &NoFiles);
    reference.run();
    let of = |name: &str| {
        let mut ids = r.scheme.component_ids();
        let id = ids.find(|id| r.scheme.component(*id).name == name);
        reference.value(id.expect("a component"), PerAxis([0, 0, 2]))
    };
    assert_eq!(of("a"), 1.0);
    assert!(of("b").is_nan());
}

#[test]
fn a_domain_is_set_for_the_axes_of_the_problem() {
    let setting = |domain: &str, set: &str| {
        let text =
            format!("use std::maxwell::maxwell\nproblem p {{ scheme maxwell; {domain}; steps 1 }}");
        let options = Options {
            overrides: vec![("domain".to_string(), set.to_string())],
            ..Options::default()
        };
        show(&refused_with(&TestWorld::default(), &text, &options))
    };
    for (domain, set, message) in [
        (
            "domain 40 x 30",
            "50x30x4",
            "set for 3 axes, but the problem's domain has 2",
        ),
        (
            "domain 40 x 30 x 9",
            "50x30",
            "set for 2 axes, but the problem's domain has 3",
        ),
    ] {
        let shown = setting(domain, set);
        assert!(shown.contains(message), "{shown}");
    }
}
