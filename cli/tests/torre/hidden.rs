//! Waves that grow in one part of a scheme or of its domain are found, whatever else a step does.

use crate::support::*;

/// A scheme on some axes, with definitions and updates, and a problem with its domain.
fn program(axes: &str, dt: f64, definitions: &str, updates: &str, domain: &str) -> String {
    format!(
        "scheme s {{\n  axes {axes}\n  param h = 1\n  param dt = {dt}\n  {definitions}\n  step {{\n    \
         allow W0301\n    {updates}\n  }}\n}}\n\
         problem q {{\n  scheme s\n  domain {domain}\n  boundary all: periodic\n  steps 1\n}}\n"
    )
}

const SOUND: &str = "field p : scalar on cells\n  field v : scalar on nodes at 1/2";
const SOUND_2D: &str = "field p : scalar on cells\n  field v : vector on faces at 1/2";

/// Whether `check` and `analyze` both take a step to be stable.
#[track_caller]
fn is_stable(program: &str) -> bool {
    let (_folder, file) = written(program);
    let checked = run(&format!("check {file}"), &[]);
    let shown = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(
        checked.status.success(),
        !shown.contains("E0815"),
        "{shown}"
    );
    let report = analysed(program);
    let is_stable = report["stable"].as_bool().expect("a verdict");
    assert_eq!(
        is_stable,
        checked.status.success(),
        "{program}\n{report}\n{shown}"
    );
    is_stable
}

#[track_caller]
fn analysed(program: &str) -> serde_json::Value {
    let (_folder, file) = written(program);
    let json = succeed(&format!("analyze {file} --report json"), &[]);
    serde_json::from_str(&json).expect("a report")
}

#[track_caller]
fn limit(program: &str) -> f64 {
    analysed(program)["limit"]["value"]
        .as_f64()
        .expect("a limit")
}

/// Sums in every second cell change nothing about the waves of a medium that is too fast for the step.
#[test]
fn statements_on_which_no_wave_depends_hide_no_medium() {
    let with = |statement: &str| {
        let definitions = format!(
            "coef k on cells = if x < 20 then 9 else 1\n  {SOUND}\n  field acc : scalar on cells"
        );
        let updates = format!(
            "v -= dt * d(p, x)\n    p -= dt * k * d(v, x)\n    \
             where x < 20 and x - 2 * floor(x / 2) < 1 {{ {statement} }}"
        );
        program("x", 0.4, &definitions, &updates, "60")
    };
    for statement in ["acc += p^2", "acc += dt * p", "acc += 0.1 * d2(acc, x) + p"] {
        let hidden = with(statement);
        assert!(!is_stable(&hidden), "{statement}");
        assert!((limit(&hidden) - 1.0 / 3.0).abs() < 1e-6, "{statement}");
    }
    // A comb that changes the waves themselves by next to nothing.
    assert!(!is_stable(&with("p = 0.9999999 * p")));
    // A sheet of one cell in a plate.
    let sheet = program(
        "x, y",
        0.4,
        &format!("{SOUND_2D}\n  field acc : scalar on cells"),
        "v -= dt * [d(p, x, 4), d(p, y, 4)]
    let div = d(v.x, x, 4) + d(v.y, y, 4)
    p -= dt * div
    where x > 20 and x < 27 { p -= 8 * dt * div }
    where x > 23 and x < 24 { acc += p^2 }",
        "60 x 20",
    );
    assert!(!is_stable(&sheet));
}

/// Lines of one cell with the statements of a body: waves grow in the body alone with a step of 0.25, and in lines with
/// one of 0.4.
#[test]
fn lines_hide_no_body() {
    let lines: Vec<String> = (0..12)
        .map(|n| format!("(x > {0}3 and x < {0}4 and y > 10)", n))
        .collect();
    let comb = "(y > 10 and x < 120 and x - 10 * floor(x / 10) < 1)".to_owned();
    for pieces in [lines.join(" or "), comb] {
        let with = |dt: f64, body: &str| {
            let definitions = format!("region wires = {pieces}{body}\n  {SOUND_2D}");
            program(
                "x, y",
                dt,
                &definitions,
                "v -= dt * [d(p, x), d(p, y)]
    let div = d(v.x, x) + d(v.y, y)
    p -= dt * div
    where wires { p -= 8 * dt * div }",
                "200 x 120",
            )
        };
        let body = " or (x > 140 and x < 148 and y > 20 and y < 28)";
        let block = with(0.25, body);
        assert!(!is_stable(&block), "{pieces}");
        assert!(
            (limit(&block) - 18.0_f64.recip().sqrt()).abs() < 1e-6,
            "{pieces}"
        );
        for (dt, expected) in [(0.25, true), (0.4, false)] {
            assert_eq!(is_stable(&with(dt, "")), expected, "{dt}: {pieces}");
        }
    }
}

/// Two regions each advance another field faster, and a cell with a face beyond the seam has both. Waves grow there
/// with a step of 0.24, and not with 0.2.
#[test]
fn waves_that_grow_at_seams_are_found() {
    let regions = "v -= dt * d(p, x)
    where x >= 40 { v -= 8 * dt * d(p, x) }
    p -= dt * d(v, x)
    where x < 40 { p -= 8 * dt * d(v, x) }";
    let branches = "where x >= 40 { v -= 9 * dt * d(p, x) } else { v -= dt * d(p, x) }
    where x < 40 { p -= 9 * dt * d(v, x) } else { p -= dt * d(v, x) }";
    for updates in [regions, branches] {
        for (dt, expected) in [(0.3, false), (0.24, false), (0.2, true)] {
            let found = is_stable(&program("x", dt, SOUND, updates, "80"));
            assert_eq!(found, expected, "{dt}: {updates}");
        }
    }
}

/// Statements of few cells that are not linear, on which no wave depends, or that are in the way of a wave.
#[test]
fn statements_that_are_not_linear_hide_no_wave() {
    let definitions = "coef a on nodes = 2 * exp(-((x-12)/20)^2)
  coef b on cells = exp(-((x-36)/20)^2)
  field u : scalar on nodes
  field v : scalar on cells at 1/2
  field w : scalar on nodes";
    for statement in ["w = 0.1 * w^3 + u", "u -= 1e-3 * u^3"] {
        let updates = format!(
            "v -= b * 1.1 * d(u, x)\n    u -= a * 1.1 * d(v, x)\n    where sin(x / 2) > 0.99 {{ {statement} }}"
        );
        assert!(
            !is_stable(&program("x", 1.0, definitions, &updates, "100")),
            "{statement}"
        );
    }
}

/// Sound is the fastest everywhere, and values beside it grow in one place.
#[test]
fn fast_waves_hide_no_slow_ones() {
    let definitions = format!(
        "coef a = 0.42 * exp(-((x-12)/18)^2)\n  coef b = 0.42 * exp(-((x-36)/18)^2)\n  {SOUND_2D}\n  \
         field T : scalar on cells"
    );
    let sound = "v -= dt * [d(p, x), d(p, y)]\n    p -= dt * (d(v.x, x) + d(v.y, y))";
    for heat in [
        "T += a * d2(T, x) + b * d2(T, y)",
        "T += a * d2(T, x) + b * d2(T, y) + 0.1 * p",
    ] {
        let updates = format!("{sound}\n    {heat}");
        assert!(
            !is_stable(&program("x, y", 0.65, &definitions, &updates, "100 x 16")),
            "{heat}"
        );
    }
    // Both depend on each other in a few cells.
    let coupled = format!(
        "{sound}\n    T += a * d2(T, x) + b * d2(T, y) + 0.1 * p\n    where x > 80 {{ p += 1e-3 * T }}"
    );
    assert!(!is_stable(&program(
        "x, y",
        0.65,
        &definitions,
        &coupled,
        "100 x 16"
    )));
}

/// Values that grow as their equation has it are no waves of sound.
#[test]
fn growth_of_one_field_is_none_of_others() {
    let definitions = format!("{SOUND}\n  field g : scalar on cells");
    for growth in [
        "where x > 20 and x < 24 { g += 0.15 * dt * g }",
        "g += 0.15 * dt * g",
        "g = 1.2 * g",
    ] {
        let updates = format!("v -= dt * d(p, x)\n    p -= dt * d(v, x)\n    {growth}");
        let at = |dt: f64| program("x", dt, &definitions, &updates, "80");
        assert!(!is_stable(&at(1.001)), "{growth}");
        if growth.contains("+=") {
            assert!((limit(&at(1.01)) - 1.0).abs() < 1e-6, "{growth}");
            assert!(is_stable(&at(0.9)), "{growth}");
        }
    }
}

/// Coefficients that vary, of which the last one has the largest value somewhere, beside others in the same sum.
fn with_coefficients(number: usize) -> String {
    let decoy = |n: usize| {
        format!(
            "coef c{n} = 1e-6 * exp(-((x-{}.5)/{})^2)",
            13 + n % 100,
            3 + n / 100
        )
    };
    let coefs: Vec<String> = (0..number).map(decoy).collect();
    let terms: Vec<String> = (0..number).map(|n| format!("c{n} * v")).collect();
    // Expressions have a limited number of operations in a row.
    let sums: Vec<String> = terms
        .chunks(100)
        .map(|terms| format!("({})", terms.join(" + ")))
        .collect();
    let definitions = format!(
        "{}\n  coef k = 0.2 + 0.5 * exp(-((x-130)/8)^2)\n  field v : scalar on cells",
        coefs.join("\n  ")
    );
    let updates = format!("v += k * d2(v, x) - ({})", sums.join(" + "));
    program("x", 0.8, &definitions, &updates, "200")
}

#[test]
fn all_of_many_coefficients_are_looked_at() {
    for number in [30, 100] {
        let many = with_coefficients(number);
        assert!(!is_stable(&many), "{number}");
        assert_eq!(analysed(&many)["coefficients_not_searched"], 0);
    }
}

/// The product of the weights of old values counts where a sum has two statements.
#[test]
fn a_sum_in_two_statements_is_a_sum() {
    let with = |updates: &str| {
        let definitions = format!("{SOUND}\n  field e : scalar on cells");
        let updates = format!("v -= dt * d(p, x)\n    p -= dt * d(v, x)\n    {updates}");
        program("x", 0.5, &definitions, &updates, "100")
    };
    for updates in [
        "e = 2 * e\n    e = 0.5 * e + p^2",
        "e = 0.5 * e + p^2\n    e = 1.5 * e",
    ] {
        let sum = with(updates);
        assert!(is_stable(&sum), "{updates}");
        assert_eq!(analysed(&sum)["left_out"], serde_json::json!(["e"]));
    }
    let (_folder, file) = written(&with("e = 2 * e\n    e = 0.6 * e + p^2"));
    let error = fail(1, &format!("analyze {file}"), &[]);
    assert!(error.contains("the update of `e` is not linear"), "{error}");
}
