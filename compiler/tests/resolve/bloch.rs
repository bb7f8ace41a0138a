//! Bloch-periodic sides: which fields there are then, and which schemes can have them.

use crate::support::*;
use torre_compiler::resolve::Options;
use torre_compiler::scheme::Boundary;

fn text(boundary: &str, statement: &str) -> String {
    format!(
        "use std::maxwell::maxwell_tm
problem p {{
  scheme maxwell_tm
  domain 8 x 12
  boundary {boundary}
  {statement}
  steps 4
}}
"
    )
}

fn refused(text: &str) -> String {
    let (world, options) = (TestWorld::default(), Options::default());
    show(&refused_with(&world, text, &options))
}

#[test]
fn fields_get_imaginary_parts() {
    let statements = "init Ez_im = 1
  source Ez at (3, 6) += sin(t)
  source Ez_im at (3, 6) += cos(t)
  probe Ez, H_im.y at (2, 6)
  output slice psi of Ez_im y = 2 in layer(y)
  record energy = sum(Ez^2 + Ez_im^2)";
    let bloch = resolved(&text("x: bloch(0.3), y: cpml(3)", statements));
    let names: Vec<&str> = bloch
        .scheme
        .components
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    let expected = ["Ez", "H.x", "H.y", "Ez_im", "H_im.x", "H_im.y"];
    assert_eq!(names, expected);
    assert_eq!(bloch.scheme.grid.boundary.0[0], [Boundary::Periodic; 2]);
    let [a, b] = bloch.problem.sources.as_slice() else {
        panic!("two sources");
    };
    assert!(a.stage == b.stage && a.component != b.component);
    let output = &bloch.problem.outputs[0];
    assert_eq!(
        output.quantity(&bloch.scheme),
        "psi of Ez_im in layers along y"
    );
    // Layers are made for the waves of the scheme, for any phase, and nothing else is read across other axes.
    let reads = |phase: f64| {
        let boundary = format!("x: bloch({phase}), y: cpml(3)");
        let scheme = resolved(&text(&boundary, "")).scheme;
        let coefs: Vec<String> = scheme
            .coefs
            .iter()
            .map(|c| format!("{:?}", c.value))
            .collect();
        let updates = scheme.stages.iter().flat_map(|s| &s.updates);
        let reads: Vec<usize> = updates.map(|u| u.body.reads().count()).collect();
        (coefs, reads)
    };
    let (with, without) = (reads(1.1), reads(0.0));
    assert_eq!(with.0, without.0);
    assert_ne!(with.1, without.1);
    let periodic = resolved(&text("x: periodic, y: cpml(3)", "")).scheme;
    let coefs: Vec<String> = periodic
        .coefs
        .iter()
        .map(|c| format!("{:?}", c.value))
        .collect();
    assert_eq!(with.0, coefs);
}

#[test]
fn sides_and_schemes_that_cannot_have_phases_are_refused() {
    for boundary in [
        "x: bloch(0.3) | pec, y: pec",
        "x: bloch(0.3) | periodic, y: pec",
        "x: bloch(0.3) | bloch(0.4), y: pec",
        "x: bloch(1/0), y: pec",
    ] {
        let said = refused(&text(boundary, ""));
        assert!(
            said.contains("E0505") || said.contains("E0402"),
            "{boundary}: {said}"
        );
    }
    assert!(refused(&text("x: bloch, y: pec", "")).contains("E0110"));
    resolved(&text("all: bloch(0.3), y: pec", ""));
    let of = |update: &str| {
        format!(
            "scheme s {{
  axes x
  field u : scalar on nodes
  field u_im : scalar on nodes
  step {{
    u += {update}
    u_im = 0.5 * u_im
  }}
}}
problem p {{
  scheme s
  domain 9
  boundary x: bloch(0.1)
  steps 3
}}
"
        )
    };
    for (update, reason) in [
        ("0.1 * d2(u, x) * u", "linear"),
        ("0.1 * d2(u, x) + 1", "linear"),
        ("0.1 * abs(u)", "linear"),
        ("0.1 * d2(u, x)", "something else of this name"),
    ] {
        let said = refused(&of(update));
        assert!(
            said.contains("E0505") && said.contains(reason),
            "{update}: {said}"
        );
    }
}

/// An error in the scheme leaves out imaginary parts; it is the only one.
#[test]
fn parts_that_an_error_leaves_out_are_no_unknown_names() {
    let text = "use std::wave::wave_1d
problem p {
  scheme wave_1d { order = 8 }
  domain 3
  boundary x: bloch(0.5)
  init u_im = 1
  probe u_im at (1)
  output volume u_im
  record a = max(abs(u_im))
  steps 3
}
";
    let found = refused_with(&TestWorld::default(), text, &Options::default());
    let codes: Vec<&str> = found.0.iter().map(|d| d.code.0).collect();
    assert_eq!(codes, ["E0507"], "{}", show(&found));
    let wrong = text
        .replace("domain 3", "domain 30")
        .replace("init u_im", "init w_im");
    let found = refused_with(&TestWorld::default(), &wrong, &Options::default());
    assert!(
        show(&found).contains("there is no field `w_im`"),
        "{}",
        show(&found)
    );
}
