//! `torre analyze`, and its results in `check` and `run`.

use crate::support::*;
use std::path::Path;

const MAXWELL: &str = "examples/08-maxwell42.torre";

fn book() -> String {
    std::fs::read_to_string(root().join("docs/src/analysis.md")).unwrap()
}

#[test]
fn the_book_shows_what_the_command_prints_and_draws() {
    let chapter = book();
    let shown = chapter
        .split("$ torre analyze examples/08-maxwell42.torre\n")
        .nth(1)
        .unwrap();
    let shown = shown.split("```").next().unwrap();
    assert!(shown.contains("this step is stable"), "{shown}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    let printed = succeed(&format!("analyze {MAXWELL} -o {{0}}"), &[&file]);
    assert_eq!(printed, shown);
    let drawn = std::fs::read_to_string(&file).unwrap();
    assert_whole(&drawn, MAXWELL);
    let name = "docs/src/pictures/analysis-maxwell42.svg";
    let kept = std::fs::read_to_string(root().join(name)).unwrap_or_default();
    assert!(
        drawn == kept,
        "{name} differs: torre analyze {MAXWELL} -o {name}"
    );
}

/// A picture ends, and has a place for everything in it.
#[track_caller]
fn assert_whole(svg: &str, name: &str) {
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    for broken in ["NaN", "inf"] {
        assert!(!svg.contains(broken), "{name}: {broken}");
    }
}

#[test]
fn pictures_of_pixels_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.png");
    succeed("analyze examples/13-diffusion.torre -o {0}", &[&file]);
    assert!(std::fs::read(&file).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn the_report_has_all_numbers() {
    let json = succeed(
        &format!("analyze {MAXWELL} --set h=1 --set dt=0.4 --report json"),
        &[],
    );
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["stable"], true);
    let limit = report["limit"]["value"].as_f64().unwrap();
    assert!(
        (limit * 3f64.sqrt() * 7.0 / 6.0 - 1.0).abs() < 1e-6,
        "{limit}"
    );
    assert_eq!(report["accuracy"]["order_in_space"], 4);
    assert_eq!(report["accuracy"]["order_in_time"], 2);
    let waves = report["accuracy"]["waves"][0]["table"].as_array().unwrap();
    assert_eq!(waves.len(), 3);
    assert_eq!(report["pace"]["kind"], "Courant number");
}

#[test]
fn steps_cells_and_courant_numbers_are_printed() {
    for command in ["check", "run --set steps=1 --set domain=16x20x24"] {
        let (command, options) = command.split_once(' ').unwrap_or((command, ""));
        let source = edited(
            MAXWELL,
            &[
                ("(100, 64, 64)", "(4, 4, 4)"),
                ("(64, 64, 64) +", "(4, 4, 4) +"),
                ("z = 128", "z = 8"),
            ],
        );
        let output = run(&format!("{command} {{0}} {options}"), &[source.1.as_path()]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        let line = stderr
            .lines()
            .find(|l| l.starts_with("pulse: "))
            .unwrap_or_else(|| panic!("{stderr}"));
        assert!(
            line.contains("dt 9e-9, cells of 2e-8 x 2e-8 x 2e-8, extent "),
            "{line}"
        );
        assert!(line.ends_with(", Courant number 0.45"), "{line}");
    }
}

/// An example with changes, in a folder that lives as long as the first part.
fn edited(example: &str, changes: &[(&str, &str)]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut text = std::fs::read_to_string(root().join(example)).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{example} has no {from}");
        text = text.replace(from, to);
    }
    let path = folder.path().join("edited.torre");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn unstable_steps_are_refused_unless_they_are_allowed() {
    let wave = "examples/02-wave2d.torre --set dt=0.62 --set steps=2";
    for command in ["check", "run"] {
        let error = fail(1, &format!("{command} {wave}"), &[]);
        assert!(error.contains("E0815"), "{error}");
        assert!(
            error.contains("waves of 2 cells along x, y grow by a factor of"),
            "{error}"
        );
        assert!(
            error.contains("the largest stable `dt` is 0.612372"),
            "{error}"
        );
        let output = run(&format!("{command} {wave} --allow-unstable"), &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && stderr.contains("E0815"),
            "{stderr}"
        );
        succeed(
            &format!("{command} examples/02-wave2d.torre --set dt=0.61 --set steps=2"),
            &[],
        );
    }
    let report = run(&format!("check {wave} --report json"), &[]);
    assert_eq!(report.status.code(), Some(1));
    let list: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(list[0]["code"], "E0815");
    assert!(report.stderr.is_empty());
}

#[test]
fn a_step_that_no_update_depends_on_is_named() {
    let forgotten = crate::media::ABOUT_AN_AXIS
        .replace("v -= dt * [", "v -= [")
        .replace("p -= dt * (d(r * v.r, r) / r", "p -= (d(v.r, r)");
    let (_folder, file) = written(&forgotten);
    let error = fail(1, &format!("check {file}"), &[]);
    assert!(
        error.contains("the updates do not depend on `dt`: is it missing from them?"),
        "{error}"
    );
}

#[test]
fn the_medium_stays_where_the_lattice_is_refined() {
    // A potential about the middle of the domain: at the end of the frozen cell it is 50, and the frequency of waves of
    // k is 50 + k^2 / 2.
    let (_folder, file) = written(
        "scheme waves {
  axes x
  param h  = 0.1
  param dt = 0.004
  coef V = 0.5 * (x - lx/2)^2
  field R : scalar on nodes
  field I : scalar on nodes at 1/2
  step {
    I -= dt * (V * R - 0.5 * d2(R, x))
    R += dt * (V * I - 0.5 * d2(I, x))
  }
}
problem swing { scheme waves; domain 200; boundary x: odd; init R = exp(-(x - 8)^2 / 2); steps 10 }
",
    );
    let shown = succeed(&format!("analyze {file}"), &[]);
    assert!(shown.contains("largest stable dt 0.008 "), "{shown}");
    assert!(
        shown.contains("order 2 in space, order 2 in time\n"),
        "{shown}"
    );
    // Three points per wavelength: (2 / dt) asin(dt (50 + 1.5 / h^2) / 2) over 50 + (2 pi / 3 h)^2 / 2.
    assert!(
        shown.contains("\n                      3  0.763979\n"),
        "{shown}"
    );
}

#[test]
fn an_order_of_cells_and_steps_together_is_found() {
    // The modified equation: the error of the step cancels that of the cells.
    let (_folder, file) = written(
        "scheme modified {
  axes x, y
  param h  = 0.1
  param dt = 0.05
  field u : scalar on nodes levels 2
  step {
    let twice = d2(d2(u, x), x) + 2 * d2(d2(u, x), y) + d2(d2(u, y), y)
    u@next = 2 * u - u@prev + dt^2 * (d2(u, x, 4) + d2(u, y, 4)) + dt^4/12 * twice
  }
}
problem drum { scheme modified; domain 40 x 40; boundary all: periodic; init u = sin(x); steps 10 }
",
    );
    let shown = succeed(&format!("analyze {file}"), &[]);
    assert!(
        shown.contains("order 2 in space, order 2 in time\n  order 4 in both together\n"),
        "{shown}"
    );
    let wave = succeed("analyze examples/02-wave2d.torre", &[]);
    assert!(!wave.contains("together"), "{wave}");
}

#[test]
fn frequencies_in_proportion_to_the_square_are_exact() {
    // Euler and Bernoulli's beam.
    let (_folder, file) = written(
        "scheme beam {
  axes x
  param h  = 0.01
  param dt = 0.4 * h^2
  field w : scalar on nodes levels 2
  step { w@next = 2 * w - w@prev - dt^2 * d2(d2(w, x), x) }
}
problem hinged { scheme beam; domain 100; boundary x: odd; init w = sin(pi * x); steps 10 }
",
    );
    let shown = succeed(&format!("analyze {file}"), &[]);
    let coefficient = shown
        .split_once("waves with frequencies ")
        .and_then(|(_, rest)| rest.split_once(" k^2"))
        .map(|(number, _)| number.parse::<f64>().unwrap());
    assert!(
        coefficient.is_some_and(|c| (c - 1.0).abs() < 2e-5),
        "{shown}"
    );
}

#[test]
fn waves_are_uniform_around_a_ring_of_one_cell() {
    let program = "scheme plate {
  axes x, y
  param dt = 0.99
  field u : scalar on nodes levels 2
  step { u@next = 2 * u - u@prev + dt^2 * (d2(u, x) + d2(u, y)) }
}
problem line {
  scheme plate
  domain 30 x 1
  boundary x: pec, y: periodic
  init u = exp(-((x - 15) / 3)^2)
  steps 200
}
";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("line.torre");
    std::fs::write(&path, program).unwrap();
    let path = path.display();
    succeed(&format!("run {path} --verify"), &[]);
    let error = fail(1, &format!("check {path} --set dt=1.01"), &[]);
    assert!(error.contains("the largest stable `dt` is 1,"), "{error}");
    let error = fail(1, &format!("check {path} --set domain=30x2"), &[]);
    assert!(error.contains("stable `dt` is 0.707107"), "{error}");
    let text = succeed(&format!("analyze {path}"), &[]);
    assert!(text.contains("waves of speed 1: phase velocity"), "{text}");
}

#[test]
fn nonlinear_statements_are_named() {
    let error = fail(1, "analyze examples/15-gray-scott.torre", &[]);
    assert_eq!(error.matches("E0816\n").count(), 2, "{error}");
    assert!(
        error.contains("a product of field values, of `u`, `v`"),
        "{error}"
    );
    let output = run("run examples/16-burgers.torre --set steps=2", &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success());
    assert!(
        stderr.contains("stability is not known: the update of `u` is not linear"),
        "{stderr}"
    );
}

#[test]
fn sums_of_products_that_nothing_depends_on_are_left_out() {
    let sums = "use std::maxwell::maxwell_1d
scheme summed : maxwell_1d {
  field turned : scalar on nodes
  field spectrum : scalar on nodes
  field power : scalar on nodes
  step {
    turned = turned
    spectrum += dt * Ez * turned
    power += dt * Ez^2
  }
}
problem p {
  scheme   summed
  domain   100
  boundary x: cpml(10)
  source   Ez at (50) += exp(-((t - 10) / 3)^2)
  source   turned = cos(0.3 * t)
  steps    20
}
";
    let (_folder, file) = written(sums);
    let shown = succeed(&format!("analyze {file}"), &[]);
    assert!(
        shown.contains("  this step is stable\n  Courant number 0.7;")
            && shown.contains(
                "\n  the sums `spectrum`, `power` are not linear, and not part of this answer"
            ),
        "{shown}"
    );
    let error = fail(1, &format!("run {file} --set dt=1.01"), &[]);
    assert!(error.contains("the largest stable `dt` is 1,"), "{error}");
    // Where the sum acts on waves, and where it grows by itself, it is part of the scheme.
    for changed in [
        "field extra : scalar on nodes\n  step {\n    Ez += power",
        "step {\n    power += power^2",
    ] {
        let (_folder, file) = written(&sums.replace("step {", changed));
        let error = fail(1, &format!("analyze {file}"), &[]);
        assert!(error.contains("E0816"), "{error}");
    }
}

#[test]
fn another_parameter_may_be_varied() {
    let shown = succeed("analyze examples/01-wave1d.torre --vary c", &[]);
    assert!(
        shown.contains("largest stable c 1 (this one is 0.9 of it)"),
        "{shown}"
    );
    for h in ["0.5", "1"] {
        let wave = format!("analyze examples/02-wave2d.torre --vary h --set h={h} --set dt=0.5");
        let shown = succeed(&wave, &[]);
        assert!(shown.contains("\n  smallest stable h 0.8"), "{shown}");
        let json = succeed(&format!("{wave} --report json"), &[]);
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(report["limit"]["kind"], "smallest", "{report}");
    }
    let error = fail(2, "analyze examples/01-wave1d.torre --vary speed", &[]);
    assert!(error.contains("has no parameter `speed`"), "{error}");
    fail(
        2,
        "analyze examples/01-wave1d.torre --vary c --set c=0",
        &[],
    );
}

#[test]
fn every_example_that_is_linear_is_analysed_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    let nonlinear = ["14-kerr", "15-gray-scott", "16-burgers"];
    for (name, _) in examples() {
        let path = format!("examples/{name}.torre");
        assert!(Path::new(&root().join(&path)).exists());
        if nonlinear.contains(&name.as_str()) {
            fail(1, &format!("analyze {path}"), &[]);
        } else if path != MAXWELL {
            let shown = succeed(&format!("analyze {path} -o {{0}}"), &[&file]);
            assert!(shown.contains("this step is stable"), "{shown}");
            assert_whole(&std::fs::read_to_string(&file).unwrap(), &name);
            // Layers change no waves: their profiles give no places to look at, nor a limit for all of them at once.
            match name.as_str() {
                "17-scattering" => assert!(shown.contains("(2 sets were looked at)"), "{shown}"),
                "18-own-layer" => assert!(!shown.contains("sets were looked at"), "{shown}"),
                _ => continue,
            }
            assert!(!shown.contains("the largest values of all"), "{shown}");
        }
    }
}

#[test]
fn slow_growth_is_tried_as_long_as_it_takes() {
    // Sound in an atmosphere that gravity stratifies: waves that go up grow, and others fade.
    let (_folder, file) = written(
        "scheme stratified {
  axes z
  param h  = 0.1
  param dt = 0.05
  coef rho = exp(-z)
  field w : scalar on nodes at 1/2
  field p : scalar on cells
  field r : scalar on cells
  step {
    w -= dt * (d(p, z) + avg(r, z)) / rho
    p -= dt * (1.4 * rho * d(w, z) - avg(w, z) * rho)
    r -= dt * d(rho * w, z)
  }
}
problem q { scheme stratified; domain 100; boundary z: odd; init p = exp(-((z - 2)/0.3)^2); steps 20 }
",
    );
    let output = run(&format!("run {file}"), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr
            .contains("values do not grow with the coefficients that the 100 cells around it have"),
        "{stderr}"
    );
}

/// Waves with few steps to a period are waves of the equations all the same; the second kind of waves of three time
/// levels is none, however short the steps.
#[test]
fn fast_waves_are_told_from_waves_of_the_scheme_alone() {
    let (_folder, file) = written(
        "scheme oscillators {
  axes x
  param h  = 1
  param dt = 0.5
  param m  = 1
  field u : scalar on nodes levels 2
  step { u@next = 2*u - u@prev + dt^2 * (d2(u, x) - m^2 * u) }
}
scheme leap {
  axes x
  param h  = 1
  param dt = 0.5
  field u : scalar on nodes levels 2
  step { u@next = u@prev - 2 * dt * dc(u, x) }
}
problem fast { scheme oscillators; domain 50; boundary x: periodic; steps 1 }
problem three { scheme leap; domain 50; boundary x: periodic; steps 1 }
",
    );
    let accuracy = |of: &str| -> serde_json::Value {
        let json = succeed(&format!("analyze {file} {of} --report json"), &[]);
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["accuracy"].clone()
    };
    let kinds = |found: &serde_json::Value| {
        ["irregular_kinds", "unresolved_kinds", "spurious_kinds"].map(|key| found[key].as_u64())
    };
    let fast = accuracy("--problem fast");
    assert_eq!(kinds(&fast), [Some(0); 3], "{fast}");
    assert_eq!(fast["order_in_time"], 2);
    assert_eq!(fast["waves"][0]["power"], 0);
    let faster = accuracy("--problem fast --set m=3.5");
    assert_eq!(kinds(&faster), [Some(0), Some(2), Some(0)], "{faster}");
    let three = accuracy("--problem three");
    assert_eq!(kinds(&three), [Some(0), Some(0), Some(1)], "{three}");
}

/// Where losses turn oscillation into decay among the waves of tables, no order is made up.
#[test]
fn losses_that_follow_no_power_have_no_order() {
    let lossy = |sigma: f64| {
        written(&format!(
            "use std::maxwell::maxwell_1d
problem p {{ scheme maxwell_1d {{ dt = 0.5 }}; domain 50; coef sigma = {sigma}; steps 1 }}
"
        ))
    };
    for (sigma, irregular) in [(0.05, 0), (0.5, 2), (1.0, 2)] {
        let (_folder, file) = lossy(sigma);
        let json = succeed(&format!("analyze {file} --report json"), &[]);
        let found: serde_json::Value = serde_json::from_str(&json).unwrap();
        let found = &found["accuracy"];
        assert_eq!(found["irregular_kinds"], irregular, "{found}");
        assert_eq!(found["standing_kinds"], 0);
        for order in ["order_in_space", "order_in_time"] {
            assert!(found[order].is_null() || found[order] == 2, "{found}");
        }
    }
}

#[test]
fn states_are_no_part_of_the_answer() {
    let (_folder, file) = written(
        "use std::maxwell::maxwell_tm
problem p { scheme maxwell_tm; domain 30 x 30; boundary x: cpml(5), y: pec; steps 1 }
",
    );
    let printed = succeed(&format!("analyze {file}"), &[]);
    let note = "states in layers along x and their effects there are not part of this answer";
    assert!(printed.contains(note), "{printed}");
}

/// Many values of a cell that depend on each other: a run says that it does not wait.
#[test]
fn large_matrices_are_left_to_the_analysis() {
    let fields: Vec<String> = (0..60)
        .map(|i| format!("  field u{i} : scalar on nodes"))
        .collect();
    let step: Vec<String> = (0..60)
        .map(|i| format!("    u{i} += 0.1 * d2(u{}, x)", (i + 1) % 60))
        .collect();
    let (_folder, path) = written(&format!(
        "scheme s {{\n  axes x\n{}\n  step {{\n    allow W0301\n{}\n  }}\n}}\n\
         problem p {{\n  scheme s\n  domain 16\n  boundary x: periodic\n  steps 1\n}}\n",
        fields.join("\n"),
        step.join("\n")
    ));
    let out = run("check {0}", &[Path::new(&path)]);
    let text = unwrapped(&String::from_utf8_lossy(&out.stderr));
    let expected = "stability is not known: 60 values of a cell of `s` depend on each other, which takes long: \
                    `torre analyze` looks at it";
    assert!(text.contains(expected), "{text}");
    assert!(out.status.success());
}

/// The left half takes longer steps than most schemes do, and the right half none.
#[test]
fn all_waves_of_each_medium_are_looked_at() {
    let (_folder, file) = written(
        "scheme two {
  axes x, y
  param dt = 0.3
  coef k = if x < 32 then 0.6 else 0.0
  coef c = if x < 32 then 0.0 else 0.2
  field u : scalar on nodes
  step {
    allow W0301
    u += dt * (k * (d2(u, x, order = 4) + d2(u, y, order = 4)) - c * dc(u, y))
  }
}
problem p { scheme two; domain 64 x 64; boundary x: pec, y: periodic; init u = 1; steps 100 }
",
    );
    let error = fail(1, &format!("check {file}"), &[]);
    assert!(
        error.contains("E0815") && error.contains("waves of 4 cells along y grow"),
        "{error}"
    );
    let text = succeed(&format!("analyze {file}"), &[]);
    assert!(text.contains("this step is unstable"), "{text}");
}

/// Waves of one length and an oscillator pump each other, where phases of a coarse grid do not lie.
#[test]
fn growth_of_waves_of_one_length_is_found() {
    let (_folder, file) = written(
        "scheme coupled {
  axes x
  param dt = 0.5
  param a = 0.03
  field f : { p on nodes, q on nodes } levels 2
  step { f@next = 2 * f - f@prev + dt^2 * [d2(f.p, x) + a * f.q, -f.q - a * f.p] }
}
problem p { scheme coupled; domain 1000; boundary x: periodic; init f.p = 1; steps 100 }
",
    );
    let error = fail(1, &format!("check {file} --precision f64"), &[]);
    assert!(
        error.contains("waves of 6 cells along x grow by 0.778 % per step"),
        "{error}"
    );
}

/// Sides with parities of their own: the answer covers them where the scheme with these parities is symmetric.
#[test]
fn mirrors_with_named_parities_are_covered_if_the_scheme_is_symmetric() {
    let (_folder, file) = written(
        "scheme sound {
  axes x
  param dt = 0.5
  boundary rigid: p even, v odd
  boundary soft: p odd, v even
  boundary none: p odd, v odd
  field v : scalar on [0] at 1/2
  field p : scalar on cells
  step {
    v -= dt * d(p, x)
    p -= dt * d(v, x)
  }
}
scheme upwind {
  axes x
  boundary own: u even
  field u : scalar on nodes
  step { u -= 0.5 * (u - u[-1]) }
}
problem rigid { scheme sound; domain 50; boundary x: rigid; steps 1 }
problem soft { scheme sound; domain 50; boundary x: soft | rigid; steps 1 }
problem none { scheme sound; domain 50; boundary x: rigid | none; steps 1 }
problem one_way { scheme upwind; domain 50; boundary x: own; steps 1 }
",
    );
    let named = [
        ("rigid", false),
        ("soft", false),
        ("none", true),
        ("one_way", true),
    ];
    for (problem, is_left_out) in named {
        let printed = succeed(&format!("analyze {file} --problem {problem}"), &[]);
        let note = "the scheme is not symmetric about mirrors across x";
        assert_eq!(printed.contains(note), is_left_out, "{problem}: {printed}");
    }
}
