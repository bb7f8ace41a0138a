//! Parameters that layers and definitions take, and differences that layers do not change.

use crate::support::*;
use torre_compiler::resolve::Options;

/// Waves on two axes, with differences along `x` in a layer and a source.
const TEXT: &str = "
use std::sources::ricker

def doubled(u, a, factor = 2) {
  // Factors of such a size are a mistake.
  require factor > 0 and factor < 9
  require a > -1
  let more = factor / 2
  more * u * a
}
scheme sound {
  axes x, y
  param dt = 0.3
  coef k on cells = 1 + 0.1 * x
  field v : vector on faces at 1/2
  field p : scalar on cells
  step {
    v.x -= dt * (ALONG_X)
    v.y -= dt * (ALONG_Y)
    p -= dt * (d(v.x, x) + d(v.y, y) + DEF)
  }
}
problem p {
  scheme sound
  domain 40 x 30
  boundary x: SIDE
  source p at (20, 15) += ricker(t, f0 = F0)
  steps 10
}
";

struct Parts {
    along_x: &'static str,
    along_y: &'static str,
    def: &'static str,
    side: &'static str,
    f0: &'static str,
}

const PLAIN: Parts = Parts {
    along_x: "d(p, x)",
    along_y: "d(p, y)",
    def: "doubled(p, 0.1)",
    side: "cpml(5)",
    f0: "0.1",
};

fn text(parts: &Parts) -> String {
    TEXT.replace("ALONG_X", parts.along_x)
        .replace("ALONG_Y", parts.along_y)
        .replace("DEF", parts.def)
        .replace("SIDE", parts.side)
        .replace("F0", parts.f0)
}

fn refused(parts: &Parts) -> String {
    let refused = refused_with(&TestWorld::default(), &text(parts), &Options::default());
    show(&refused)
}

fn warnings(parts: &Parts) -> String {
    show(&resolved(&text(parts)).warnings)
}

#[test]
fn layers_refuse_parameters_without_a_meaning() {
    for (side, requirement, value) in [
        ("cpml(5, c = 0)", "c > 0", "`c` is 0"),
        ("cpml(5, c = -2)", "c > 0", "`c` is -2"),
        ("cpml(5, power = -1)", "power >= 0", "`power` is -1"),
        (
            "cpml(5, strength = -0.5)",
            "strength >= 0",
            "`strength` is -0.5",
        ),
        (
            "pec | cpml(5, stretch = 0.5)",
            "stretch >= 1",
            "`stretch` is 0.5",
        ),
        (
            "cpml(5, shift = 0 * log(0)) | pec",
            "shift >= 0",
            "`shift` is NaN",
        ),
    ] {
        let error = refused(&Parts { side, ..PLAIN });
        assert!(error.contains("E0114"), "{side}: {error}");
        let message = format!("`cpml` requires `{requirement}`");
        assert!(error.contains(&message), "{side}: {error}");
        assert!(error.contains(value), "{side}: {error}");
    }
    for side in ["cpml(0)", "cpml(2.5)", "cpml(-3)", "cpml(21)"] {
        let error = refused(&Parts { side, ..PLAIN });
        assert!(error.contains("E0517"), "{side}: {error}");
    }
    for side in [
        "cpml(20)",
        "cpml(39) | pec",
        "cpml(5, c = 0.1, power = 0, strength = 0, stretch = 1, shift = 0)",
    ] {
        assert_eq!(warnings(&Parts { side, ..PLAIN }), "", "{side}");
    }
}

#[test]
fn definitions_refuse_parameters_that_they_do_not_take() {
    for (def, message) in [
        (
            "doubled(p, 0.1, factor = -1)",
            "requires `factor > 0 and factor < 9`",
        ),
        ("doubled(p, 0.1, 9)", "here `factor` is 9"),
        ("doubled(p, -1)", "`doubled` requires `a > -1`"),
    ] {
        let error = refused(&Parts { def, ..PLAIN });
        assert!(
            error.contains("E0114") && error.contains(message),
            "{error}"
        );
    }
    let error = refused(&Parts { f0: "0", ..PLAIN });
    assert!(error.contains("`ricker` requires `f0 > 0`"), "{error}");
    // Values that depend on the place are not looked at.
    for def in [
        "doubled(p, k)",
        "doubled(p, x - 100)",
        "doubled(p, 0.1, factor = 8)",
    ] {
        assert_eq!(warnings(&Parts { def, ..PLAIN }), "", "{def}");
    }
    // Requirements see parameters alone, and definitions that nothing uses are looked at, too.
    let unused = text(&PLAIN).replace("require a > -1", "require more > 0");
    let error = show(&refused_with(
        &TestWorld::default(),
        &unused,
        &Options::default(),
    ));
    assert!(error.contains("there is no `more` here"), "{error}");
}

#[test]
fn raw_differences_along_the_axis_of_a_layer_are_reported() {
    for along_x in [
        "p[1/2, 0] - p[-1/2, 0]",
        "k[1/2, 0] * p[1/2, 0] - 3 * p[-1/2, 0] * 2",
        "d(p, x) + (p[3/2, 0] - p[-3/2, 0]) / 24",
        "p[1/2, 0] / 2 - p[-1/2, 0] + p[-1/2, 0]",
        "-p[-1/2, 0] - -p[1/2, 0]",
    ] {
        let found = warnings(&Parts { along_x, ..PLAIN });
        assert!(found.contains("W0506"), "{along_x}: {found}");
        assert!(found.contains("the layers along `x`"), "{along_x}: {found}");
        assert!(found.contains("`d(f, x, order)`"), "{along_x}: {found}");
        // Without a layer there is nothing to say.
        let side = "pec";
        assert_eq!(
            warnings(&Parts {
                along_x,
                side,
                ..PLAIN
            }),
            "",
            "{along_x}"
        );
        let silenced =
            text(&Parts { along_x, ..PLAIN }).replace("step {", "step {\n    allow W0506");
        assert_eq!(show(&resolved(&silenced).warnings), "", "{along_x}");
    }
    for parts in [
        Parts {
            along_y: "p[0, 1/2] - p[0, -1/2]",
            ..PLAIN
        },
        Parts {
            along_x: "0.5 * (p[1/2, 0] + p[-1/2, 0])",
            ..PLAIN
        },
        Parts {
            along_x: "d(p, x, [9/8, -1/24])",
            ..PLAIN
        },
        Parts {
            along_x: "(k[1/2, 0] - k[-1/2, 0]) * p[1/2, 0]",
            ..PLAIN
        },
        Parts {
            along_x: "d(p, x) - avg(p, x)",
            ..PLAIN
        },
    ] {
        assert_eq!(warnings(&parts), "", "{} {}", parts.along_x, parts.along_y);
    }
}

/// Values of a layer would hide them.
#[test]
fn parameters_of_layers_have_names_of_their_own() {
    let text = |parameter: &str| {
        format!(
            "layer fading(n, {parameter} = 0.3) : zero {{
  state lost
  lost@next = (lost + {parameter} * depth * d(f, a, order)) / (1 + {parameter} * depth)
  d(f, a, order) - lost@next
}}
scheme s {{
  axes x
  param dt = 0.5
  field u : scalar on nodes
  field v : scalar on cells at 1/2
  step {{ v += dt * d(u, x); u += dt * d(v, x) }}
}}
problem p {{ scheme s; domain 40; boundary x: fading(8, {parameter} = 2); init u = x; steps 9 }}
"
        )
    };
    resolved(&text("rate"));
    for name in ["depth", "f", "a", "order", "h", "dt"] {
        let of_state = text("rate").replace("lost", name);
        let let_line = format!("layer fading(n, rate = 0.3) : zero {{\n  let {name} = 2 * rate");
        let of_let = text("rate").replace("layer fading(n, rate = 0.3) : zero {", &let_line);
        for text in [text(name), of_state, of_let] {
            let said = show(&refused_with(
                &TestWorld::default(),
                &text,
                &Options::default(),
            ));
            assert!(
                said.contains(&format!("`{name}` is built in and cannot be defined")),
                "{said}"
            );
        }
    }
}

/// Layers are placed after numbers.
#[test]
fn numbers_are_made_of_no_layers() {
    for value in ["depth(x)", "layer(x)"] {
        for declared in ["param", "const"] {
            let text = format!(
                "scheme s {{
  axes x
  {declared} k = {value}
  field u : scalar on nodes
  step {{ u = k * u }}
}}
problem p {{ scheme s; domain 40; boundary x: cpml(8); init u = x; steps 9 }}
"
            );
            let said = show(&refused_with(
                &TestWorld::default(),
                &text,
                &Options::default(),
            ));
            assert!(said.contains("E0402"), "{value}: {said}");
        }
    }
}

/// Records have plain differences in layers.
#[test]
fn records_of_differences_are_those_without_layers() {
    let problem = |side: &str| {
        let text = format!(
            "scheme s {{
  axes x
  param dt = 0.5
  field u : scalar on nodes
  field v : scalar on cells at 1/2
  step {{ v += dt * d(u, x); u += dt * d(v, x) }}
}}
problem p {{
  scheme s
  domain 40
  boundary x: {side}
  init u = exp(-((x - 20) / 3)^2)
  record whole = sum(d(u, x)^2)
  record raw = sum((u[1/2] - u[-1/2])^2) every 2
  record part = sum(d(u, x)) in x = 2..25
  steps 9
}}
"
        );
        let found = resolved(&text);
        assert!(found.warnings.0.is_empty(), "{}", show(&found.warnings));
        format!("{:?}", found.problem.series)
    };
    assert_eq!(problem("cpml(8)"), problem("zero"));
}

/// A layer is made for the fastest waves in the layers of its axis: a fast body elsewhere does not change it.
#[test]
fn a_fast_body_changes_the_layers_that_it_meets() {
    let dump = |centre: &str, layers: &str| {
        let text = format!(
            "
use std::acoustics::acoustics_2d
problem p {{
  scheme   acoustics_2d {{ dt = 0.03 }}
  domain   60 x 60
  boundary {layers}
  coef     kappa = if (x - {centre})^2 + (y - 30)^2 < 9 then 100 else 1
  steps    10
}}"
        );
        resolved(&text).scheme.to_string()
    };
    let usual = |c: &str| format!("x: cpml(10{c}), y: cpml(10{c})");
    assert_eq!(dump("30", &usual("")), dump("30", &usual(", c = 1")));
    // Along x the body lies in a layer.
    let met = "x: cpml(10, c = 10), y: cpml(10, c = 1)";
    assert_eq!(dump("8", &usual("")), dump("8", met));
}
