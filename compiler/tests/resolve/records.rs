//! The places at which records have values.

use crate::support::*;
use torre_compiler::lattice::{Axis, Interval};

const SCHEME: &str = "
scheme s {
  axes x, y
  coef k on nodes = 1 + x
  field u : scalar on nodes
  field p : scalar on cells
  boundary wall: u odd, p odd
  step { u = u
         p = p }
}
";

/// The indices along x of the only term of a record.
fn places(boundary: &str, record: &str) -> [i64; 2] {
    let text = format!(
        "{SCHEME}problem r {{\nscheme s\ndomain 8 x 6\nboundary x: {boundary}, y: periodic\n\
         record r = {record}\nsteps 1\n}}"
    );
    let series = resolved(&text).problem.series.remove(0);
    assert_eq!(series.terms.len(), 1, "{record}");
    let region = series.terms[0].region;
    assert_eq!(region[Axis::INNER], Interval::new(0, 6), "{record}");
    let Interval { lo, hi } = region[Axis::OUTER];
    [lo, hi]
}

/// Values that the boundary holds at 0 do not count, and all others on the plane of a mirror do, also where a field at
/// their position would be 0.
#[test]
fn planes_of_mirrors_count_where_an_expression_is_not_0() {
    let (inside, whole) = ([1, 8], [0, 9]);
    for (boundary, record, expected) in [
        ("odd", "sum(u)", inside),
        ("odd", "min(abs(u))", inside),
        ("odd", "max(-2 * k * u^2)", inside),
        ("odd", "sum(u * avg(avg(p, x), y))", inside),
        ("odd", "sum(d(p, x))", inside),
        ("odd", "sum(d(avg(u, x), x))", whole),
        ("odd", "sum(avg(d(u, x), x)^2)", whole),
        ("odd", "sum(d2(u, x) + sin(u))", inside),
        ("odd", "sum(if u > 0 then u else 0)", inside),
        ("odd", "sum(avg(avg(p, x), y))", whole),
        ("odd", "max(u + avg(avg(p, x), y))", whole),
        ("odd", "sum(u - 1)", whole),
        ("odd", "min(cos(u))", whole),
        ("odd", "sum(k * u^0)", whole),
        // At cells no plane has a value.
        ("odd", "sum(p - 1)", [0, 8]),
        ("odd", "sum(avg(avg(u, x), y))", [0, 8]),
        // Fields at nodes are even, and means of values between them odd.
        ("even", "sum(u)", whole),
        ("even", "max(avg(avg(p, x), y))", inside),
        ("even", "sum(d(d(u, x), x))", whole),
        ("odd | even", "sum(u)", [1, 9]),
        ("odd | even", "sum(avg(avg(p, x), y))", [0, 8]),
        ("zero", "sum(u - 1)", [0, 8]),
        ("periodic", "sum(avg(avg(p, x), y))", [0, 8]),
        // Parities of the scheme's own.
        ("wall", "sum(u)", inside),
        ("wall", "sum(avg(avg(p, x), y))", inside),
        ("wall", "sum(avg(avg(p * p, x), y))", whole),
        ("wall", "sum(avg(avg(p * d(d(p, x), x), x), y))", whole),
    ] {
        let found = places(boundary, record);
        assert_eq!(found, expected, "{boundary}: {record}");
    }
}
