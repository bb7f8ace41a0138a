//! What is said about programs that are wrong.

use crate::support::*;
use torre_compiler::resolve::Options;

#[test]
fn a_mean_is_suggested_where_positions_differ() {
    let text = "
scheme s {
  axes x, y
  field a : scalar on nodes
  field b : scalar on cells
  step { a += b }
}
problem p { scheme s; domain 8 x 8; steps 1 }";
    let shown = show(&refused_with(
        &TestWorld::default(),
        text,
        &Options::default(),
    ));
    assert_eq!(
        shown,
        "error E0202: `a` lies at [0, 0], but this value at [1/2, 1/2]
  test.torre `b`: at [1/2, 1/2]
  hint: take the mean along x and y: `avg(avg(b, x), y)`, or the value half a cell away: `b[+1/2, +1/2]`
"
    );
}

#[test]
fn a_wave_needs_two_versions() {
    let scheme = resolved(
        "
scheme s {
  axes x
  field u : scalar on nodes levels 2
  step { u = 2 * u - u@prev + 0.25 * d2(u, x) }
}
problem p { scheme s; domain 8; steps 1 }",
    )
    .scheme;
    assert_eq!(scheme.components[0].slots, 2);
}
