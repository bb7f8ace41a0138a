//! Warnings about cell sizes and time steps with other names; trials of small pieces.

use crate::support::*;
use torre_compiler::analysis::trial;
use torre_compiler::host::HostExpr;
use torre_compiler::lattice::PerAxis;
use torre_compiler::problem::StaticValue;
use torre_compiler::statics::NoFiles;

fn codes(head: &str, step: &str) -> Vec<String> {
    let text = format!(
        "scheme s {{\n  axes x, y\n  {head}\n  field v : scalar on nodes at 1/2\n  \
         field p : scalar on [1/2, 0]\n  step {{\n    {step}\n  }}\n}}\n"
    );
    let found = checked(&TestWorld::default(), &text);
    assert!(!found.has_errors(), "{}", show(&found));
    found.0.iter().map(|d| d.code.0.to_string()).collect()
}

const LEAP: &str = "v -= 0.1 * d(p, x)\n    p -= 0.1 * d(v, x)";

#[test]
fn look_alikes_are_pointed_at_where_1_is_taken() {
    let both = ["W0402".to_string(), "W0403".to_string()];
    assert_eq!(codes("param dx = 1\n  param tau = 1", LEAP), both);
    assert_eq!(codes("const spacing_x = 2\n  const dtau = 1", LEAP), both);
    assert_eq!(codes("coef h = 1 + x\n  coef dt = 1 + x", LEAP), both);
    assert_eq!(
        codes("coef h = 2\n  coef k = hx\n  coef dt = 1", LEAP),
        both
    );
    // The size along one axis does not count along the other one.
    assert_eq!(codes("param hy = 1\n  param dt = 1", LEAP), both[..1]);
}

#[test]
fn nothing_is_said_where_sizes_are_known_or_not_needed() {
    let none: [String; 0] = [];
    assert_eq!(
        codes(
            "param h = 1\n  param dt = 1\n  param dx = h\n  param tau = dt",
            LEAP
        ),
        none
    );
    assert_eq!(
        codes("param hx = 1\n  param dt = 1\n  param dy = 1", LEAP),
        none
    );
    assert_eq!(codes("param c = 1", LEAP), none);
    // Reads at offsets, and means, are divided by nothing.
    let raw = "v -= 0.1 * (p[+1/2, 0] - p[-1/2, 0])\n    p -= 0.1 * avg(v, x)";
    assert_eq!(codes("param dx = 1\n  param dt = 1", raw), none);
}

#[test]
fn a_problem_is_warned_of_the_scheme_that_it_uses() {
    let text = "scheme s {\n  axes x\n  param dx = 0.1\n  field u : scalar on nodes levels 2\n  \
                step { u@next = 2 * u - u@prev + 0.25 * d2(u, x) }\n}\n\
                problem p {\n  scheme s { dx = 0.2 }\n  domain 9\n  steps 1\n}\n";
    let warnings = resolved(text).warnings;
    assert_eq!(warnings.0.len(), 1, "{}", show(&warnings));
    assert_eq!(warnings.0[0].code.0, "W0402");
}

#[test]
fn a_coefficient_called_h_is_no_cell_size() {
    let text = "scheme s {\n  axes x\n  param dt = 1\n  coef h = 2\n  field u : scalar on nodes\n  \
                step { u += 0.1 * h * (u[1] - 2 * u[0] + u[-1]) }\n}\n\
                problem p {\n  scheme s\n  domain 9\n  init u = hx + 10 * lx\n  steps 1\n}\n";
    let found = resolved(text);
    let sizes = |code: &str| ["W0402", "W0403"].contains(&code);
    let warned = found.warnings.0.iter().any(|d| sizes(d.code.0));
    assert!(!warned, "{}", show(&found.warnings));
    assert_eq!(found.scheme.grid.spacing.0, [1.0; 3]);
    let start = &found.problem.init[0].value;
    let is_91 = matches!(start, StaticValue::Expr(HostExpr::Number(n)) if *n == 91.0);
    assert!(is_91, "{start:?}");
}

#[test]
fn coordinates_in_cells_of_size_1_are_pointed_at() {
    let text = |init: &str| {
        format!(
            "scheme s {{\n  axes x\n  param dx = 0.01\n  param dt = 1\n  field u : scalar on cells levels 2\n  \
             step {{ u@next = u@prev - 0.5 / dx * (u[1] - u[-1]) }}\n}}\n\
             problem p {{\n  scheme s\n  domain 9\n  init u = {init}\n  steps 1\n}}\n"
        )
    };
    let warned = |init: &str| {
        let list = resolved(&text(init)).warnings.0;
        list.iter()
            .map(|d| format!("{}: {}", d.code.0, d.message))
            .collect::<Vec<String>>()
    };
    assert_eq!(
        warned("if x < 0.05 then 1 else 0"),
        ["W0402: coordinates along x take cells of size 1, but `dx` looks like a cell size"]
    );
    assert!(warned("1").is_empty(), "{:?}", warned("1"));
}

/// The cell size along one axis is none along another one.
#[test]
fn a_size_along_one_axis_is_told_from_none() {
    let warned = |axis: &str| {
        let text = format!(
            "scheme s {{\n  axes x, y\n  param hx = 0.5\n  param dt = 0.1\n  field u : scalar on nodes levels 2\n  \
             step {{ u@next = 2 * u - u@prev + dt^2 * d2(u, {axis}) }}\n}}\n\
             problem p {{\n  scheme s\n  domain 9 x 9\n  steps 1\n}}\n"
        );
        let list = resolved(&text).warnings.0.into_iter();
        list.map(|d| format!("{}: {}", d.code.0, d.labels[0].text))
            .collect::<Vec<String>>()
    };
    assert_eq!(warned("y"), ["W0402: is the cell size along x alone"]);
    assert!(warned("x").is_empty(), "{:?}", warned("x"));
}

/// A trial of a small piece takes few steps, too: each takes time of its own.
#[test]
fn a_trial_of_slow_growth_is_not_made() {
    let r = resolved(
        "scheme s { axes x; coef k on nodes = if x < 3 then 0.25 else 0.3
  field u : scalar on nodes
  step { allow W0301
    u += k * d2(u, x) } }
problem p { scheme s; domain 7; steps 8 }",
    );
    let at = PerAxis([3, 0, 0]);
    let slow = trial(&r.scheme, &NoFiles, at.into(), 2e-6).expect("a trial");
    assert_eq!((slow.steps, slow.rate), (0, None));
    let fast = trial(&r.scheme, &NoFiles, at.into(), 1e-3).expect("a trial");
    assert_eq!(fast.steps, 40_000);
}
