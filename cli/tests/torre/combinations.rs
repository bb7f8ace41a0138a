//! Stability where branches, regions and coefficients act together, and the parts that the answer leaves out.

use crate::support::*;

/// Sound in 140 cells, with other updates of `v` and `p`, and other definitions.
fn sound(definitions: &str, dt: f64, updates: &str) -> String {
    format!(
        "scheme sound {{\n  axes x\n  param h = 1\n  param dt = {dt}\n  {definitions}\n  field p : scalar on cells\n  \
         field v : scalar on nodes at 1/2\n  step {{\n    allow W0301\n    {updates}\n  }}\n}}\n\
         problem pulse {{\n  scheme sound\n  domain 140\n  boundary x: zero\n  init p = exp(-(x-40)^2/9)\n  \
         steps 40\n}}\n"
    )
}

/// The limits that the analysis finds: with the coefficients of any one cell, and with the largest values.
fn limits(program: &str) -> [Option<f64>; 2] {
    let (_folder, file) = written(program);
    let json = succeed(&format!("analyze {file} --report json"), &[]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["all_combinations_known"], true, "{report}");
    ["limit", "limit_with_all_extremes"].map(|of| report[of]["value"].as_f64())
}

#[test]
fn each_combination_of_branches_and_regions_is_looked_at() {
    let branches = sound(
        "",
        0.8,
        "v -= dt * d(p, x)
    where x < 80 { p -= dt * d(v, x) }
    else where x < 95 { p -= 3 * dt * d(v, x) }
    else { p -= 0.5 * dt * d(v, x) }",
    );
    let overlap = sound(
        "region A = sin(x/6) > 0\n  region B = cos(x/6) > 0",
        1.0,
        "where A { v -= 0.8 * dt * d(p, x) }
    where B { v -= 0.8 * dt * d(p, x) }
    p -= dt * d(v, x)",
    );
    let within_a_branch = sound(
        "coef kap on cells = if x < 80 then 20 else if x < 110 then 2 else 1",
        0.6,
        "v -= dt * d(p, x)
    where x < 80 { p -= 0.01 * dt * kap * d(v, x) }
    else { p -= 2 * dt * kap * d(v, x) }",
    );
    for (program, limit) in [
        (branches, 3.0_f64.recip().sqrt()),
        (overlap, 1.6_f64.recip().sqrt()),
        (within_a_branch, 0.5),
    ] {
        let [own, _] = limits(&program);
        let own = own.unwrap();
        assert!((own - limit).abs() < 1e-6, "{own} {limit}");
        let (_folder, file) = written(&program);
        let error = fail(1, &format!("check {file}"), &[]);
        assert!(error.contains("E0815"), "{error}");
    }
}

#[test]
fn coefficients_of_opposite_signs_add_up() {
    for (sign, b) in [("-", "-0.4"), ("+", "0.4")] {
        let program = sound(
            &format!(
                "coef a = if x < 30 then 0.45 else if x < 60 then 0.4 else 0\n  \
                 coef b = if x < 30 then 0 else if x < 60 then {b} else 0"
            ),
            1.0,
            &format!("v = 0\n    p += dt * (a * d2(p, x) {sign} b * d2(p, x))"),
        );
        let [own, _] = limits(&program);
        assert!((own.unwrap() - 0.625).abs() < 1e-6, "{own:?}");
    }
}

#[test]
fn all_extremes_are_taken_in_each_branch() {
    let program = sound(
        "coef rho on nodes = if x < 20 then 0.5 else 1\n  coef kap on cells = if x > 100 then 1.9 else 1",
        0.3,
        "v -= dt / rho * d(p, x)
    where x < 60 { p -= dt * kap * d(v, x) }
    else { p -= 3 * dt * kap * d(v, x) }",
    );
    let [own, all] = limits(&program).map(Option::unwrap);
    assert!((own - 5.7_f64.recip().sqrt()).abs() < 1e-6, "{own}");
    assert!((all - 11.4_f64.recip().sqrt()).abs() < 1e-6, "{all}");
}

#[test]
fn two_balls_that_overlap_are_found_in_a_large_domain() {
    let program = "scheme balls {
  axes x, y, z
  param h = 1
  param dt = 0.1
  region A = (x-100)^2 + (y-300)^2 + (z-200)^2 < 400
  region B = (x-130)^2 + (y-300)^2 + (z-200)^2 < 400
  field u : scalar on cells
  step {
    allow W0301
    u += dt * d2(u, x)
    where A { u += dt * d2(u, y) }
    where B { u += dt * d2(u, y) }
  }
}
problem heat {
  scheme balls
  domain 600 x 600 x 600
  boundary all: periodic
  steps 1
}
";
    let (_folder, file) = written(program);
    let json = succeed(&format!("analyze {file} --report json"), &[]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["sets_of_coefficients"], 4, "{report}");
    assert_eq!(report["all_combinations_known"], true, "{report}");
}

/// Sound with a step of 0.2 in a domain of some cells along each axis, where further statements act in some boxes: the
/// first and the last coordinate along each axis, and the factor of `p`.
fn sound_with_boxes(axes: &str, cells: i64, boxes: &[(Vec<[i64; 2]>, f64)]) -> String {
    let axes: Vec<&str> = axes.split_whitespace().collect();
    let joined = |part: &dyn Fn(&str) -> String, with: &str| {
        let parts: Vec<String> = axes.iter().map(|a| part(a)).collect();
        parts.join(with)
    };
    let statement = |(region, factor): &(Vec<[i64; 2]>, f64)| {
        let sides = axes.iter().zip(region);
        let sides = sides.map(|(a, [lo, hi])| format!("{a} > {lo} and {a} < {hi}"));
        let sides: Vec<String> = sides.collect();
        format!(
            "    where {} {{ p -= {factor} * dt * div }}\n",
            sides.join(" and ")
        )
    };
    let statements: String = boxes.iter().map(statement).collect();
    format!(
        "scheme sound {{\n  axes {}\n  param h = 1\n  param dt = 0.2\n  field p : scalar on cells\n  \
         field v : vector on faces at 1/2\n  step {{\n    allow W0301\n    v -= dt * [{}]\n    let div = {}\n    \
         p -= dt * div\n{statements}  }}\n}}\nproblem pulse {{\n  scheme sound\n  domain {}\n  \
         boundary all: odd\n  init p = exp(-x^2)\n  steps 10\n}}\n",
        axes.join(", "),
        joined(&|a| format!("d(p, {a})"), ", "),
        joined(&|a| format!("d(v.{a}, {a})"), " + "),
        joined(&|_| cells.to_string(), " x "),
    )
}

#[test]
fn each_of_dozens_of_boxes_is_looked_at() {
    let spread = |number: i64, axis: i64| {
        let lo = 25 * ([7, 3, 5][axis as usize] * number % 11) + number % 4 + axis;
        [lo, lo + 9]
    };
    for axes in ["x y", "x y z"] {
        let dimensions = axes.split_whitespace().count() as i64;
        let body = |number: i64| (0..dimensions).map(|axis| spread(number, axis)).collect();
        let mut boxes: Vec<(Vec<[i64; 2]>, f64)> = (0..36).map(|n| (body(n), 2.0)).collect();
        // The overlap of two boxes alone has the limit.
        for by in [0, 5] {
            let sides = (0..dimensions).map(|_| [280 + by, 290 + by]);
            boxes.push((sides.collect(), 8.0));
        }
        let [own, _] = limits(&sound_with_boxes(axes, 300, &boxes));
        let limit = (17.0 * dimensions as f64).recip().sqrt();
        assert!(
            (own.unwrap() - limit).abs() < 1e-6,
            "{axes}: {own:?} {limit}"
        );
    }
}

#[test]
fn a_body_beside_the_ends_of_others_is_no_sliver() {
    let mut boxes = vec![(vec![[10, 16], [10, 20]], 5.0)];
    boxes.extend((0..5).map(|n| (vec![[11 + n, 50 + n], [30 + 10 * n, 38 + 10 * n]], 2.0)));
    let program = sound_with_boxes("x y", 90, &boxes);
    let [own, _] = limits(&program);
    assert!(
        (own.unwrap() - 12.0_f64.recip().sqrt()).abs() < 1e-6,
        "{own:?}"
    );
    let (_folder, file) = written(&program);
    let shown = run(&format!("analyze {file}"), &[]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(!shown.contains("alone is not part"), "{shown}");
}

#[test]
fn a_component_that_grows_by_itself_is_no_sum() {
    let updates = |e: &str| format!("v -= dt * d(p, x)\n    p -= dt * d(v, x)\n    e = {e}");
    let field = "field e : scalar on cells";
    for e in ["e^3 + p * p", "2 * e + p * p"] {
        let (_folder, file) = written(&sound(field, 0.5, &updates(e)));
        let error = fail(1, &format!("analyze {file}"), &[]);
        assert!(error.contains("the update of `e` is not linear"), "{error}");
        let shown = run(&format!("check {file}"), &[]);
        let shown = String::from_utf8_lossy(&shown.stderr).into_owned();
        assert!(shown.contains("stability is not known"), "{shown}");
    }
    for e in ["e + p * p", "0.5 * e + p * p", "p * p", "e + abs(p)"] {
        let (_folder, file) = written(&sound(field, 0.5, &updates(e)));
        let shown = succeed(&format!("analyze {file}"), &[]);
        assert!(shown.contains("the sums `e` are not linear"), "{shown}");
    }
}

#[test]
fn waves_with_losses_keep_their_speed() {
    for loss in ["0.12", "0.13", "0.5"] {
        let program = format!(
            "scheme lossy {{
  axes x
  param h = 1
  param dt = 0.1
  param loss = {loss}
  field u : scalar on nodes
  field k : scalar on nodes
  step {{
    k = -(dc(u, x) + loss*u)
    u += dt*(-(dc(u + dt/2*k, x) + loss*(u + dt/2*k)))
  }}
}}
problem p {{
  scheme lossy
  domain 64
  boundary x: periodic
  init u = sin(x)
  steps 20
}}
"
        );
        let (_folder, file) = written(&program);
        let shown = succeed(&format!("analyze {file}"), &[]);
        assert!(
            shown.contains("\n  waves of speed 1: phase velocity"),
            "{shown}"
        );
        assert!(shown.contains("\n                     40  0.99"), "{shown}");
    }
}

/// The weights of the old values of a sum are 1 in each cell, and more where bounds of boxes or extremes of
/// coefficients are taken together.
#[test]
fn sums_with_varying_weights_hide_no_unstable_wave() {
    let diffused = "scheme s {
  axes x
  coef a on nodes = 2 * exp(-((x-12)/20)^2)
  coef b on cells = exp(-((x-36)/20)^2)
  coef k on nodes = 0.2 + 0.1*sin(x)
  field u : scalar on nodes
  field v : scalar on cells at 1/2
  field T : scalar on nodes
  step {
    allow W0301
    v -= b*1.2*d(u, x)
    u -= a*1.2*d(v, x)
    T += k*d2(T, x) + 0.01*u^2
  }
}
problem p { scheme s; domain 100; boundary all: periodic; init u = sin(x); steps 30 }
";
    let heated = "use std::maxwell::maxwell_tm
scheme heated : maxwell_tm {
  coef k on nodes = if x > 20 then 0.1 else 0.2
  field T : scalar on nodes
  step {
    allow W0301
    T@next = (1 - 4*k)*T + k*(T[1, 0] + T[-1, 0] + T[0, 1] + T[0, -1]) + 0.01*Ez^2
  }
}
problem p { scheme heated { dt = 0.9 }; domain 48 x 44; boundary all: periodic; init Ez = sin(x); steps 30 }
";
    for program in [diffused, heated] {
        let (_folder, file) = written(program);
        let error = fail(1, &format!("check {file}"), &[]);
        assert!(error.contains("E0815"), "{error}");
    }
}

/// Uniform values grow as the equations have it, and short waves may not.
#[test]
fn all_commands_judge_a_reaction_alike() {
    let program = |dt: f64| {
        format!(
            "scheme s {{\n  axes x\n  param dt = {dt}\n  field u : scalar on nodes\n  step {{\n    allow W0301\n    \
             u += dt * (0.7 * u + 0.5 * d2(u, x))\n  }}\n}}\n\
             problem p {{ scheme s; domain 32; boundary x: periodic; init u = sin(x); steps 3 }}\n"
        )
    };
    for dt in [0.1, 0.35, 1.5] {
        let (_folder, file) = written(&program(dt));
        let shown = succeed(&format!("analyze {file}"), &[]);
        assert!(shown.contains("this step is stable"), "{shown}");
        assert!(shown.contains("largest stable dt 1.53846"), "{shown}");
        let shown = run(&format!("check {file}"), &[]);
        assert!(shown.status.success(), "{dt}");
    }
    for dt in [1.6, 2.0] {
        let (_folder, file) = written(&program(dt));
        let shown = succeed(&format!("analyze {file}"), &[]);
        assert!(
            shown.contains("this step is unstable: waves of 2 cells"),
            "{shown}"
        );
        let error = fail(1, &format!("check {file}"), &[]);
        assert!(error.contains("E0815"), "{error}");
        assert!(
            error.contains("the largest stable `dt` is 1.53846"),
            "{error}"
        );
    }
}

/// Statements in many cells that do not touch each other: not all of them are looked at, and some might make a body.
#[test]
fn a_note_tells_of_combinations_that_were_not_looked_for() {
    let few = sound(
        "",
        0.3,
        "v -= dt * d(p, x)
    where sin(1.3 * x) > 0.2 { v -= 0.01 * dt * d(p, x) }
    where sin(2.3 * x) > 0.2 { v -= 0.01 * dt * d(p, x) }
    p -= dt * d(v, x)",
    );
    let many = "scheme sound {
  axes x, y
  param h = 1
  param dt = 0.4
  region grains = x - 2 * floor(x / 2) < 1 and y - 2 * floor(y / 2) < 1
  field p : scalar on cells
  field v : vector on faces at 1/2
  step {
    allow W0301
    v -= dt * [d(p, x), d(p, y)]
    let div = d(v.x, x) + d(v.y, y)
    p -= dt * div
    where grains { p -= 0.1 * dt * div }
  }
}
problem pulse {
  scheme sound
  domain 200 x 120
  boundary all: periodic
  steps 1
}
"
    .to_owned();
    for (program, is_complete) in [(few, true), (many, false)] {
        let (folder, file) = written(&program);
        for command in ["check", "run"] {
            let results = folder.path().join("results");
            let arguments = match command {
                "run" => format!("run {file} -o {}", results.display()),
                _ => format!("check {file}"),
            };
            let shown = run(&arguments, &[]);
            assert!(shown.status.success(), "{shown:?}");
            let shown = String::from_utf8_lossy(&shown.stderr).into_owned();
            let told = shown.contains("not for all combinations of statements and branches");
            assert_eq!(told, !is_complete, "{shown}");
        }
        let json = succeed(&format!("analyze {file} --report json"), &[]);
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(report["all_combinations_known"], is_complete, "{report}");
    }
}
