//! Schemes on domains with fewer extents than they have axes, and definitions for any number of axes.

use crate::support::*;
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::resolve::Options;

fn scheme_of(text: &str, name: &str) -> String {
    let printed = resolved(text).scheme.to_string();
    printed.replacen(&format!("scheme {name}"), "scheme", 1)
}

fn wave(name: &str, domain: &str) -> String {
    let text = format!(
        "use std::wave::{name}
         problem p {{ scheme {name} {{ dt = 0.3, order = 4, h = 2 }}; domain {domain}; boundary all: pec; coef c = 1 \
         + x; steps 1 }}"
    );
    scheme_of(&text, name)
}

#[test]
fn a_domain_with_fewer_extents_has_fewer_axes() {
    assert_eq!(wave("wave", "20 x 30"), wave("wave_2d", "20 x 30"));
    assert_eq!(wave("wave", "20"), wave("wave_1d", "20"));
    assert_eq!(wave("wave_2d", "20"), wave("wave_1d", "20"));
    assert_ne!(wave("wave", "20 x 30 x 8"), wave("wave", "20 x 30"));
}

/// Fields keep all components, at their positions along the axes that there are.
#[test]
fn vectors_keep_their_components() {
    let maxwell = "use std::maxwell::maxwell
        problem p { scheme maxwell { hx = 0.5, hy = 0.25 }; domain 20 x 30; source E.z at (3, 4) += t; steps 1 }";
    let written = "scheme written {
          axes x, y
          param hx = 0.5
          param hy = 0.25
          param dt = 0.4 * 0.25
          field E : { x on [1/2, 0], y on [0, 1/2], z on nodes }
          field H : { x on [0, 1/2], y on [1/2, 0], z on cells } at 1/2
          step {
            H -= dt * [d(E.z, y), -d(E.z, x), d(E.y, x) - d(E.x, y)]
            E += dt * [d(H.z, y), -d(H.z, x), d(H.y, x) - d(H.x, y)]
          }
        }
        problem p { scheme written; domain 20 x 30; source E.z at (3, 4) += t; steps 1 }";
    assert_eq!(scheme_of(maxwell, "maxwell"), scheme_of(written, "written"));
    let line = "use std::maxwell::maxwell
        problem p { scheme maxwell { h = 0.5 }; domain 20; boundary x: pec; probe E, H at x = 0.9; steps 1 }";
    let r = resolved(line);
    let names: Vec<&str> = r.problem.probes.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        ["E.x_1", "E.y_2", "E.z_2", "H.x_2", "H.y_1", "H.z_1"]
    );
    assert_eq!(r.scheme.grid.present().collect::<Vec<_>>(), [Axis::INNER]);
}

const ALL: &str = "
scheme s {
  axes x, y, z
  param hz = 3
  coef k on cells = 1 + x + 10 * z + nz + lz
  coef q : vector on faces = [1, 2, 3 + z]
  field u : scalar on cells
  field S : tensor on cells
  field w : scalar on [0, 1/2, 1/2]
  step {
    u += avg(w, x) * k + u[0, 1, 1] + dc(u, z) + d2(u, z) + dimensions
    w += q.x * avg(w, z, 4) + avg(S.xz, z, [0.75])
    S = sym(u, u, u, 0, w, 0)
  }
}
";

#[test]
fn nothing_depends_on_absent_axes() {
    let written = "
scheme s {
  axes x, y
  coef k on cells = 1 + x + 0 + 1 + 3
  field u : scalar on cells
  field S : { xx on cells, yy on cells, zz on cells, yz on [1/2, 0], xz on [0, 1/2], xy on nodes }
  field w : scalar on [0, 1/2]
  step {
    u += avg(w, x) * k + u[0, 1] + 3
    w += w + 1.5 * S.xz
    S = [u, u, u, 0, w, 0]
  }
}
";
    let of = |text: &str| {
        scheme_of(
            &format!("{text}problem p {{ scheme s; domain 8 x 6; steps 1 }}"),
            "s",
        )
    };
    let (found, expected) = (of(ALL), of(written));
    // A coefficient that is known at once has the same value, but is computed otherwise.
    let code = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|l| !l.trim_start().starts_with("m0 "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(code(&found), code(&expected));
}

/// Also where the difference that needs a next value is 0, or is a part of a definition or of a `let`.
#[test]
fn statements_run_in_one_order_for_all_numbers_of_extents() {
    for slope in ["dc(b@next, z)", "slope(b@next)", "part"] {
        let of = |domain: &str, last: &str| {
            format!(
                "def slope(f) = 2 * dc(f, z)
                 scheme s {{
                   axes x, z
                   field a : scalar on nodes
                   field b : scalar on nodes
                   step {{
                     allow W0301
                     let part = dc(b@next, z)
                     a += 0.1 * (1 - {slope})
                     b += 0.1 * dc({last}, x)
                   }}
                 }}
                 problem p {{ scheme s; domain {domain}; steps 1 }}"
            )
        };
        let order = |domain: &str| -> Vec<usize> {
            let scheme = resolved(&of(domain, "a")).scheme;
            let updates = scheme.stages.iter().flat_map(|s| &s.updates);
            updates.map(|u| u.target.index()).collect()
        };
        assert_eq!(order("8 x 6"), [1, 0], "{slope}");
        assert_eq!(order("8"), [1, 0], "{slope}");
        for domain in ["8 x 6", "8"] {
            let text = of(domain, "a@next");
            let error = refused_with(&TestWorld::default(), &text, &Options::default());
            assert!(show(&error).contains("dependence cycle"), "{slope}");
        }
    }
}

#[test]
fn problems_see_only_the_axes_of_their_domain() {
    let of = |text: &str| format!("{ALL}problem p {{ scheme s; domain 8 x 6; steps 1; {text} }}");
    let options = Options::default();
    let refused = |text: &str| show(&refused_with(&TestWorld::default(), &of(text), &options));
    let r = resolved(&of(
        "boundary all: pec\nprobe u at x = 2.5\noutput slice u y = 2\ninit u = z",
    ));
    assert_eq!(r.problem.probes.len(), 6);
    assert_eq!(
        r.problem.outputs[0].region[Axis::OUTER],
        Interval::new(0, 8)
    );
    let notes = show(&r.warnings);
    assert!(
        notes.contains("note N0502: the domain has 2 extents: nothing depends on `z`"),
        "{notes}"
    );
    for text in [
        "boundary z: pec",
        "source u in z = 0 += 1",
        "output slice u z = 0",
        "probe u at z = 0",
    ] {
        let message = refused(text);
        assert!(
            message.contains("error E0112: the domain has no extent along `z`"),
            "{text}: {message}"
        );
    }
    let message = refused("probe u at (1, 2, 0)");
    assert!(
        message.contains("3 indices are given, but the domain has 2 axes"),
        "{message}"
    );
    let text = format!("{ALL}problem p {{ scheme s; domain 8 x 6 x 2 x 2; steps 1 }}");
    let message = show(&refused_with(&TestWorld::default(), &text, &options));
    assert!(
        message.contains("error E0504: the domain has 4 extents, but the scheme has 3 axes"),
        "{message}"
    );
}

#[test]
fn what_a_number_chooses_need_not_make_sense_otherwise() {
    let text = "
def div(F) = (if dimensions == 3 then d(F.x, x) + d(F.z, z) else d(F.x, x))
scheme s {
  axes x
  param n = 2
  field u : scalar on nodes
  field v : scalar on cells
  step { u += if n > 1 then dc(u, x) else v; v += div([u]) }
}
problem p { scheme s; domain 8; steps 1 }";
    resolved(text);
    let options = Options {
        overrides: vec![("n".to_string(), "1".to_string())],
        ..Options::default()
    };
    let message = show(&refused_with(&TestWorld::default(), text, &options));
    assert!(message.contains("error E0202"), "{message}");
    let fixed = text.replace("if n > 1 then", "if x > 1 then");
    let message = show(&refused_with(
        &TestWorld::default(),
        &fixed,
        &Options::default(),
    ));
    assert!(message.contains("error E0201"), "{message}");
}

/// One name stands for any number of axes, and each axis has its own cell size.
#[test]
fn operators_work_for_any_number_of_axes() {
    let text = "use std::grad::grad
use std::div::div
use std::laplacian::laplacian
scheme s {
  axes x, y
  param hx = 2
  param hy = 4
  field u : scalar on cells
  field v : vector on faces
  step { v = grad(u); u = div(v) + laplacian(u) }
}
scheme t {
  axes x, y
  param hx = 2
  param hy = 4
  field u : scalar on cells
  field v : vector on faces
  step { v = [d(u, x), d(u, y)]; u = d(v.x, x) + d(v.y, y) + (d2(u, x) + d2(u, y)) }
}
scheme r { axes x; field u : scalar on cells; field v : vector on faces; step { v = grad(u); u = div(v) + \
laplacian(u) } }
scheme q { axes x; field u : scalar on cells; field v : vector on faces; step { v = [d(u, x)]; u = d(v.x, x) + d2(u, \
x) } }
";
    let of = |name: &str, domain: &str| {
        scheme_of(
            &format!("{text}problem p {{ scheme {name}; domain {domain}; steps 1 }}"),
            name,
        )
    };
    assert_eq!(of("s", "8 x 6"), of("t", "8 x 6"));
    assert_eq!(of("r", "8"), of("q", "8"));
    assert!(of("s", "8 x 6").contains("0.25"), "{}", of("s", "8 x 6"));
}
