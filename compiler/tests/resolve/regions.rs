//! Regions with names, and statements in branches.

use crate::support::*;
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::reference::{Reference, for_each_index};
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::Precision;
use torre_compiler::statics::{NoFiles, source_acts};

fn double(text: &str) -> Resolved {
    let options = Options {
        precision: Precision::F64,
        ..Options::default()
    };
    resolved_with(&TestWorld::default(), text, &options)
}

fn refused(text: &str) -> String {
    let options = Options::default();
    show(&refused_with(&TestWorld::default(), text, &options))
}

const HEAT: &str = "
scheme heat {
  axes x, y
  param r = 3
  region rim  = nowhere
  region disc = (x - lx/2)^2 + (y - ly/2)^2 < r^2
  coef k = if disc and not rim then 0.2 else 0.1
  field u : scalar on nodes
  field v : scalar on nodes
  step {
    u += k * (d2(u, x) + d2(u, y))
    where rim { v += u }
  }
}
";

fn heat(problem: &str) -> Resolved {
    double(&format!(
        "{HEAT}problem p {{\nscheme heat\ndomain 12 x 10\nsteps 1\n{problem}\n}}"
    ))
}

/// As coefficients do.
#[test]
fn a_region_of_a_problem_lies_where_the_scheme_says() {
    let world = TestWorld {
        arrays: vec![("body.npy", "<f4", vec![12, 10])],
        ..TestWorld::default()
    };
    let text = |region: &str| {
        let scheme = HEAT.replace("region rim  = nowhere", "region rim on nodes = nowhere");
        format!("{scheme}problem p {{\nscheme heat\ndomain 12 x 10\nsteps 1\n{region}\n}}")
    };
    let options = Options::default();
    resolved_with(
        &world,
        &text("region rim = file(\"body.npy\") > 3"),
        &options,
    );
    let said = show(&refused_with(
        &world,
        &text("region rim on cells = file(\"body.npy\") > 3"),
        &options,
    ));
    assert!(said.contains("E0"), "{said}");
    let unplaced = show(&refused_with(
        &world,
        &text("region disc = file(\"body.npy\") > 3"),
        &options,
    ));
    assert!(unplaced.contains("E0604"), "{unplaced}");
}

#[test]
fn boxes_stay_boxes() {
    let r = heat(
        "region left = x < 4
  region low = not (left or y >= 3)
  region rim = left and y >= 8
  source u in low, y = 2..3 += 1
  source u in x = 5, not left += t
  source u where low or left += 1",
    );
    let of_rim = &r.scheme.stages[1].updates[0];
    assert_eq!(of_rim.region[Axis::OUTER], Interval::new(0, 4));
    assert_eq!(of_rim.region[Axis::INNER], Interval::new(8, 10));
    assert_eq!(of_rim.mask, None);
    let [a, b, c] = r.problem.sources.as_slice() else {
        panic!()
    };
    assert_eq!(a.condition, None);
    assert_eq!(a.region[Axis::OUTER], Interval::new(4, 12));
    assert_eq!(a.region[Axis::INNER], Interval::new(2, 3));
    assert_eq!(b.condition, None);
    assert_eq!(b.region[Axis::OUTER], Interval::new(5, 6));
    assert_eq!(b.region[Axis::INNER], Interval::new(0, 10));
    // A union of boxes is no box.
    assert!(c.condition.is_some());
    let acts = |i, j| source_acts(&r.scheme, &NoFiles, c, PerAxis([i, 0, j]));
    assert!(acts(3, 9) && acts(11, 2) && !acts(4, 3));
}

#[test]
fn a_region_that_is_nowhere_costs_nothing() {
    let r = heat("source u in disc += 1");
    assert!(r.scheme.stages[1].updates[0].region.is_empty());
    assert_eq!(r.scheme.coefs.len(), 1);
    let condition = r.scheme.coefs[0].value.to_string();
    assert!(
        condition.starts_with("(if ((((pos.outer - 6.0) ^ 2.0)"),
        "{condition}"
    );
    assert_eq!(
        r.problem.sources[0]
            .condition
            .as_ref()
            .map(ToString::to_string),
        Some("((((pos.outer - 6.0) ^ 2.0) + ((pos.inner - 5.0) ^ 2.0)) < 9.0)".to_string())
    );
    assert!(!show(&r.warnings).contains("W050"));
}

#[test]
fn regions_are_indicators() {
    let r = heat("init u = 2 + 3 * disc");
    let reference: Reference<'_, f64> = Reference::new(&r.scheme, &r.problem, &NoFiles);
    let u = r.scheme.component_ids().next().expect("a component");
    assert_eq!(reference.value(u, PerAxis([6, 0, 5])), 5.0);
    assert_eq!(reference.value(u, PerAxis([9, 0, 5])), 2.0);
}

#[test]
fn regions_with_a_position_are_read_there() {
    let text = |target: &str| {
        format!(
            "
scheme s {{
  axes x
  field u : scalar on nodes
  field v : scalar on cells
  coef eps on cells = x
  region dense on cells = eps > 2
  step {{ where dense {{ {target} = 1 }}; u = u }}
}}
problem p {{ scheme s; domain 8; steps 1 }}"
        )
    };
    let r = double(&text("v"));
    assert_eq!(
        r.scheme.stages[0].updates[0].region[Axis::INNER],
        Interval::new(2, 8)
    );
    let message = refused(&text("u"));
    assert!(
        message.contains("error E0202: `u` lies at [0], but this value at [1/2]"),
        "{message}"
    );
}

#[test]
fn regions_are_no_numbers() {
    let message = refused(
        "scheme s { axes x; param a = 1 + disc; region disc = x < 2; field u : scalar on nodes; step { u = a } }
problem p { scheme s; domain 8; steps 1 }",
    );
    assert!(message.contains("error E0402"), "{message}");
    assert!(message.contains("`disc` is a region"), "{message}");
    let message = refused(
        "scheme s { axes x; region a = b; region b = a; field u : scalar on nodes; step { u = 1 } }
problem p { scheme s; domain 8; steps 1 }",
    );
    assert!(
        message.contains("error E0107: `a` is defined by itself"),
        "{message}"
    );
}

/// A scheme with one step of this text, from noise.
fn step(body: &str) -> Resolved {
    double(&format!(
        "scheme s {{
  axes x, y
  region in_disc = (x - 5)^2 + (y - 4)^2 < 9
  field u : scalar on nodes levels 2
  field w : scalar on nodes
  step {{ {body} }}
}}
problem p {{
  scheme s
  domain 11 x 9
  init u = sin(x + 3*y^2)
  init u@prev = cos(2*x + y)
  init w = sin(x * y)
  steps 1
}}"
    ))
}

/// The values of a component after a step.
fn after(r: &Resolved, name: &str) -> Vec<(PerAxis<i64>, f64)> {
    let mut reference: Reference<'_, f64> = Reference::new(&r.scheme, &r.problem, &NoFiles);
    reference.run();
    let found = r
        .scheme
        .component_ids()
        .find(|c| r.scheme.component(*c).name == name);
    let id = found.expect("a component of this name");
    let mut values = Vec::new();
    for_each_index(r.scheme.extent(id), |at| {
        values.push((at, reference.value(id, at)))
    });
    values
}

/// Each branch has the bits that it has without the others, and values advance once.
#[test]
fn branches_compute_what_they_compute_alone() {
    let a = "u@next = 2*u - u@prev + 0.1 * (d2(u, x) + d2(u, y))";
    let b = "u@next = u + 0.3 * (u - u@prev) * 0.7";
    let c = "u@next = u * u";
    let branched = step(&format!(
        "where in_disc {{ {a} }} else where x < 3 {{ {b} }} else {{ {c} }}; w = u + w"
    ));
    assert_eq!(branched.scheme.stages.len(), 2);
    assert_eq!(branched.scheme.components[0].time_levels, 2);
    let alone = [a, b, c].map(|body| after(&step(&format!("{body}; w = u + w")), "u"));
    let mut seen = [0; 3];
    for (i, (at, value)) in after(&branched, "u").into_iter().enumerate() {
        let PerAxis([x, _, y]) = at;
        let branch = match (x - 5).pow(2) + (y - 4).pow(2) < 9 {
            true => 0,
            false if x < 3 => 1,
            false => 2,
        };
        seen[branch] += 1;
        assert_eq!(value.to_bits(), alone[branch][i].1.to_bits(), "{at:?}");
    }
    assert!(seen.iter().all(|n| *n > 8), "{seen:?}");
}

/// So do amendments: in a layer, too, each branch has the bits that it has alone.
#[test]
fn branches_in_layers_compute_what_they_compute_alone() {
    let step = |body: &str| {
        double(&format!(
            "scheme s {{
  axes x, y
  param dt = 0.3
  coef k on nodes = 1.2 + 0.3*sin(cos(1.5*y) + x)
  coef m on nodes = 0.7 + 0.2*cos(x*y)
  field p : scalar on [0, 1/2]
  field v : scalar on nodes at 1/2
  step {{ {body}; p += d(v, y) }}
}}
problem p {{
  scheme s
  domain 41 x 53
  boundary y: cpml(20, c = 1)
  init p = sin(x + 3*y^2)
  init v = cos(2*x*y)
  steps 1
}}"
        ))
    };
    let bodies = [
        "v -= dt/7*k*d(p, y)",
        "v += 0.3*dt*m*k*d(p, y)",
        "v -= dt*d(p, y)",
        "v = 0.1*v",
    ];
    let [a, b, c, d] = bodies;
    let branched = step(&format!(
        "where x < 3 {{ {a} }} else where y < 6 {{ {b} }} else where x > 7 {{ {c} }} else {{ {d} }}"
    ));
    let alone = bodies.map(|body| after(&step(body), "v"));
    for (i, (at, value)) in after(&branched, "v").into_iter().enumerate() {
        let PerAxis([x, _, y]) = at;
        let branch = match x < 3 {
            true => 0,
            false if y < 6 => 1,
            false if x > 7 => 2,
            false => 3,
        };
        assert_eq!(value.to_bits(), alone[branch][i].1.to_bits(), "{at:?}");
    }
}

/// Statements that only one branch has keep their places between the statements of both.
#[test]
fn what_one_branch_advances_alone_runs_in_its_place() {
    let r = step("where in_disc { u@next = w; w = 2 * w } else { u@next = 3 * w }; w = w + 1");
    let order: Vec<&str> = r
        .scheme
        .stages
        .iter()
        .map(|s| r.scheme.component(s.updates[0].target).name.as_str())
        .collect();
    assert_eq!(order, ["u", "w", "w"]);
    assert!(r.scheme.stages[1].updates[0].mask.is_some());
    let before = after(&step("u = u; w = w"), "w");
    let (u, w) = (after(&r, "u"), after(&r, "w"));
    for (i, (at, old)) in before.into_iter().enumerate() {
        let inside = (at[Axis::OUTER] - 5).pow(2) + (at[Axis::INNER] - 4).pow(2) < 9;
        let (factor, next) = if inside {
            (1.0, 2.0 * old + 1.0)
        } else {
            (3.0, old + 1.0)
        };
        assert_eq!((u[i].1, w[i].1), (factor * old, next), "{at:?}");
    }
}

#[test]
fn branches_that_do_not_fit_are_refused() {
    let text = |body: &str| {
        format!(
            "scheme s {{ axes x; field u : scalar on nodes; field E : vector on nodes; step {{ {body} }} }}
problem p {{ scheme s; domain 8; steps 1 }}"
        )
    };
    let message = refused(&text(
        "where x < 3 { u = 1; E = [2] } else { E = [1]; u = 2 }",
    ));
    assert!(
        message.contains("error E0414: the branches of this `where` advance"),
        "{message}"
    );
    let message = refused(&text("where x < 3 { u = 1; u = 2 } else { u = 2 }; E = E"));
    assert!(message.contains("error E0414"), "{message}");
}

#[test]
fn a_statement_that_acts_nowhere_is_warned_of() {
    let warned = |condition: &str| {
        let text = format!(
            "scheme s {{
  axes x, y
  param h = 0.1
  region rim = nowhere
  field u : scalar on nodes levels 2
  field v : vector on faces
  step {{
    u@next = 2 * u - u@prev + 0.001 * d2(u, x)
    where {condition} {{
      u = 0
      v = [0, 0]
    }}
  }}
}}
problem p {{ scheme s; domain 20 x 20; steps 1 }}"
        );
        let found = checked(&TestWorld::default(), &text);
        let with = found.0.iter().filter(|d| d.code.0 == "W0502");
        let messages: Vec<String> = with.map(|d| d.message.clone()).collect();
        messages
    };
    let [u, v] = ["u", "v.x"].map(|n| format!("no value of `{n}` lies where this statement acts"));
    // Between the values, and beyond them.
    assert_eq!(warned("x == 0.13"), [u.clone(), v.clone()]);
    assert_eq!(warned("x > lx"), [u.clone(), v]);
    // At some component, or where a constant says so.
    assert_eq!(warned("x == 0.05"), [u]);
    assert!(warned("x < h/2").is_empty());
    assert!(warned("rim").is_empty());
    assert!(
        warned("x^2 + y^2 < 0").is_empty(),
        "not told by single coordinates"
    );
}

/// Where a `where` becomes a choice between values, and in the box around it, places are the same.
#[test]
fn sources_lie_where_their_update_acts() {
    let scheme = |condition: &str, levels: &str| {
        format!(
            "scheme s {{ axes x, y; field u : scalar on nodes
  step {{ allow W0301
    where {condition} {{ u += 0.1*{levels} }} }} }}
problem p {{ scheme s; domain 32 x 32; steps 3
  region disc = (x - 16)^2 + (y - 16)^2 < 6.25
"
        )
    };
    let disc = "(x - 16)^2 + (y - 16)^2 < 6.25";
    // The same places by functions, of which bounds of whole boxes tell less.
    let hill = "exp(-((x - 16)^2 + (y - 16)^2)) > exp(-6.25)";
    let wave = "sin(3.14159265 * (x - 10.5)) * (x - 12) > 0";
    for levels in ["u", "(d2(u, x) + d2(u, y))"] {
        for (condition, source) in [
            ("x > 10", "at (3, 3)"),
            ("x > 10", "in x = 8..12"),
            (disc, "at (14, 14)"),
            (disc, "at (3, 3)"),
            (disc, "where x < 16"),
            (hill, "at (14, 14)"),
            (hill, "where x < 16"),
            (wave, "at (14, 3)"),
            (wave, "in x = 14..18, y = 3..8"),
        ] {
            let shown = refused(&format!(
                "{}source u {source} += 1 }}",
                scheme(condition, levels)
            ));
            assert!(shown.contains("E0514"), "{condition}, {source}: {shown}");
        }
        for (condition, source, places) in [
            ("x > 10", "at (13, 3)", 1),
            ("x > 10", "where x > 11 and y < 2", 40),
            (disc, "at (14, 15)", 1),
            (disc, "in disc", 21),
            (disc, "where (x - 16)^2 + (y - 16)^2 < 4", 9),
            (hill, "at (14, 15)", 1),
            (hill, "in disc", 21),
            (disc, "where (x - 16)^2 + tan((y - 16)/9)^2 * 81 < 4", 9),
            (wave, "at (13, 3)", 1),
        ] {
            let r = double(&format!(
                "{}source u {source} += 1 }}",
                scheme(condition, levels)
            ));
            let mut found = 0;
            for_each_index(r.problem.sources[0].region, |i| {
                found += usize::from(source_acts(&r.scheme, &NoFiles, &r.problem.sources[0], i));
            });
            assert_eq!(found, places, "{condition}, {source}");
        }
    }
}

/// A source acts after the last statement at all of its places, also where conditions go around a periodic axis, read a
/// table, or are not finite.
#[test]
fn sources_act_after_the_last_statement_at_their_places() {
    let world = TestWorld {
        tables: vec![("bump.csv", "0, 0\n3, 1\n6, 0\n")],
        ..TestWorld::default()
    };
    for (condition, inside, outside) in [
        ("x > 0 and x < 4", 3, 4),
        ("sin(x) > 0", 3, 4),
        ("cos(x) < 0 and tan(x) < 0", 2, 4),
        ("avg(k, x) > 3.5", 7, 3),
        ("avg(k, x) == 4", 0, 1),
        ("k[+5/2] < 2", 7, 4),
        ("table(\"bump.csv\", x) > 0.5", 3, 1),
        ("1 / (x - 3)^2 > 1", 3, 4),
        ("log(x - 4) > 0", 6, 4),
        ("x^0.5 > 1.8", 4, 3),
        ("atan2(x - 3.5, 1) > 0", 4, 3),
    ] {
        for (at, stage) in [(inside, 2), (outside, 0)] {
            let text = format!(
                "scheme s {{
  axes x
  coef k on cells = x
  field u : scalar on nodes
  field w : scalar on nodes
  step {{
    allow W0301
    u += 1
    w = u
    where {condition} {{ u = 3 * u }}
  }}
}}
problem p {{ scheme s; domain 8; boundary x: periodic; steps 1; source u at ({at}) += 10 }}"
            );
            let r = resolved_with(&world, &text, &Options::default());
            let found = r.problem.sources[0].stage.index();
            assert_eq!(found, stage, "{condition} at {at}");
        }
    }
}
