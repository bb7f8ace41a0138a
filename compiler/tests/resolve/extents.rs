//! Names of the domain's extents, and definitions in any order.

use crate::support::*;
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::reference::Reference;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::{ComponentId, Precision};
use torre_compiler::statics::NoFiles;

const STRING: &str = "
scheme membrane {
  axes r, z
  param dt = 0.5 * min(hr, hz)
  param h  = 0.25
  param hz = lz / nz
  param c  = 1
  const depth = 2
  coef near = if r < lr / 2 then c else nz
  field u : scalar on nodes levels 2
  step { u@next = 2 * u - u@prev + dt^2 * near * (d2(u, r) + d2(u, z)) }
}
";

fn membrane(problem: &str, overrides: &[(&str, &str)]) -> Resolved {
    let text = format!("{STRING}problem p {{\n{problem}\n}}");
    let owned = |(n, v): &(&str, &str)| (n.to_string(), v.to_string());
    let options = Options {
        precision: Precision::F64,
        overrides: overrides.iter().map(owned).collect(),
        ..Options::default()
    };
    resolved_with(&TestWorld::default(), &text, &options)
}

fn refused(problem: &str) -> String {
    let text = format!("{STRING}problem p {{\n{problem}\n}}");
    show(&refused_with(
        &TestWorld::default(),
        &text,
        &Options::default(),
    ))
}

/// An axis without an extent has one cell of the size that the scheme says, in parameters and everywhere else.
#[test]
fn an_axis_without_an_extent_has_the_size_of_a_cell() {
    for (sizes, h) in [
        ("param h = 0.02", 0.02),
        ("param h = 1; param hy = 0.5", 0.5),
        ("", 1.0),
    ] {
        let text = |extent: &str| {
            format!(
                "scheme s {{ axes x, y; {sizes}
  param p = ly + 2*hy
  coef k on nodes = ly + 2*hy
  field u : scalar on nodes
  step {{ u = 4*p + 2*(ly + 2*hy) + k }}
}}
problem p {{ scheme s; domain 3{extent}; steps 1; source u += ly + 2*hy }}"
            )
        };
        for extent in ["", " x 1"] {
            let r = resolved(&text(extent));
            let source = &r.problem.sources[0];
            assert_eq!(source.profile.as_number(), Some(3.0 * h), "{sizes}");
            let mut reference: Reference<'_, f32> = Reference::new(&r.scheme, &r.problem, &NoFiles);
            reference.run();
            let found = reference.value(ComponentId(0), PerAxis::splat(0));
            assert_eq!(found, (8.0 * 3.0 * h) as f32, "{sizes}{extent}");
        }
    }
}

#[test]
fn extents_follow_the_axes_names() {
    let r = membrane(
        "const middle = nr / 2
  scheme membrane { hz = 2 / nz }
  domain 32 x 16
  source u at (middle, nz - 1) += lz
  steps nr * nz",
        &[],
    );
    assert_eq!(r.problem.steps, 512);
    let source = &r.problem.sources[0];
    assert_eq!(source.region[Axis::OUTER], Interval::new(16, 17));
    assert_eq!(source.region[Axis::INNER], Interval::new(15, 16));
    assert_eq!(source.profile.as_number(), Some(2.0));
    // `h` is the size of the cells along r, which has no parameter of its own.
    assert_eq!(r.scheme.grid.spacing[Axis::OUTER], 0.25);
    assert_eq!(r.scheme.grid.spacing[Axis::INNER], 0.125);
    assert_eq!(r.scheme.grid.dt, 0.0625);
    assert_eq!(
        r.scheme.coefs[0].value.to_string(),
        "(if (pos.outer < 4.0) then 1.0 else 16.0)"
    );
}

#[test]
fn the_domain_may_depend_on_parameters_that_do_not_depend_on_it() {
    let problem = "scheme membrane { h = 0.5, hz = h }\ndomain 8 / h x nr / 2\nsteps nz";
    let r = membrane(problem, &[]);
    assert_eq!(r.scheme.grid.cells[Axis::OUTER], 16);
    assert_eq!(r.problem.steps, 8);
    let r = membrane(problem, &[("domain", "6x4"), ("c", "nr + nz")]);
    assert_eq!(r.problem.steps, 4);
    assert!(r.scheme.coefs[0].value.to_string().contains("then 10.0"));
}

#[test]
fn circles_are_refused() {
    // `hz` is `lz / nz`, and `lz` is `nz * hz`.
    let text = refused("scheme membrane\ndomain 8 x 8\nsteps 1");
    assert!(
        text.contains("error E0107: `hz` is defined by itself"),
        "{text}"
    );
    let text = refused("scheme membrane { hz = 1, c = nr }\ndomain 8 * c x 8\nsteps 1");
    assert!(
        text.contains("error E0107: `c` is defined by itself"),
        "{text}"
    );
    let text =
        refused("const a = b\nconst b = a\nscheme membrane { hz = 1 }\ndomain 8 x 8\nsteps 1");
    assert!(
        text.contains("error E0107: `a` is defined by itself"),
        "{text}"
    );
    assert_eq!(text.matches("error").count(), 1, "{text}");
}

#[test]
fn other_names_hide_extents() {
    let r = membrane(
        "const nr = 3\nscheme membrane { hz = 1 }\ndomain 8 x 8\nsteps nr",
        &[],
    );
    assert_eq!(r.problem.steps, 3);
    let text = format!(
        "const nz = 5\n{STRING}problem p {{ scheme membrane {{ hz = 1 }}; domain 8 x 8; steps nz }}"
    );
    assert_eq!(resolved(&text).problem.steps, 5);
}

#[test]
fn definitions_do_not_see_extents() {
    let text = "
def half(a) = a * nx / 2
scheme s { axes x; field u : scalar on nodes; step { u = half(u) } }
problem p { scheme s; domain 8; steps 1 }";
    let d = refused_with(&TestWorld::default(), text, &Options::default());
    let text = show(&d);
    assert!(
        text.contains("error E0101: there is no `nx` here"),
        "{text}"
    );
    assert!(text.contains("add a parameter and pass `nx`"), "{text}");
}

#[test]
fn a_scheme_with_extents_is_checked_without_a_problem() {
    let text = "
scheme s {
  axes x
  param h = 1 / nx
  field u : scalar on nodes
  step { where x < lx / 2 { u = 2 * u } }
}";
    assert_eq!(show(&checked(&TestWorld::default(), text)), "");
}
