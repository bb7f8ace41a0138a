//! Positions, shapes and the weights of differences.

use crate::support::*;
use torre_compiler::lattice::Axis;
use torre_compiler::resolve::Options;
use torre_compiler::scheme::{Op, Precision, Scheme};

fn scheme(body: &str, domain: &str) -> Scheme {
    let text =
        format!("scheme s {{\n{body}\n}}\nproblem p {{ scheme s; domain {domain}; steps 1 }}");
    let options = Options {
        precision: Precision::F64,
        ..Options::default()
    };
    resolved_with(&TestWorld::default(), &text, &options).scheme
}

/// Offset along the last axis and weight of every tap of the first update, its own old value excepted.
fn taps(scheme: &Scheme) -> Vec<(i32, f64)> {
    let ops = &scheme.stages[0].updates[0].body.ops;
    let number = |v: torre_compiler::scheme::Value| match ops[v.index()] {
        Op::Const(c) => Some(c),
        _ => None,
    };
    let offset = |v: torre_compiler::scheme::Value| match ops[v.index()] {
        Op::Read(r) => Some(r.offset[Axis::INNER]),
        _ => None,
    };
    ops.iter()
        .filter_map(|op| match *op {
            Op::Mul(w, x) | Op::Fma(w, x, _) => Some((offset(x)?, number(w)?)),
            _ => None,
        })
        .collect()
}

fn update(operator: &str, from: &str, to: &str) -> Vec<(i32, f64)> {
    taps(&scheme(
        &format!(
            "axes x\nparam h = 0.5\nfield u : scalar on {to}\nfield v : scalar on {from}\nstep {{ u += {operator} }}"
        ),
        "64",
    ))
}

#[test]
fn staggered_differences() {
    assert_eq!(update("d(v, x)", "nodes", "cells"), [(0, -2.0), (1, 2.0)]);
    // 9/8 and 1/24, over h = 1/2.
    assert_eq!(
        update("d(v, x, 4)", "cells", "nodes"),
        [(-2, 1.0 / 12.0), (-1, -2.25), (0, 2.25), (1, -1.0 / 12.0)]
    );
    assert_eq!(
        update("d(v, x, order = 6)", "cells", "nodes"),
        [
            (-3, -2.0 * (3.0 / 640.0)),
            (-2, 2.0 * (25.0 / 384.0)),
            (-1, -2.0 * (75.0 / 64.0)),
            (0, 2.0 * (75.0 / 64.0)),
            (1, -2.0 * (25.0 / 384.0)),
            (2, 2.0 * (3.0 / 640.0)),
        ]
    );
    assert_eq!(update("d(v, x, 32)", "cells", "nodes").len(), 32);
}

#[test]
fn centred_differences_and_means() {
    assert_eq!(update("dc(v, x)", "nodes", "nodes"), [(-1, -1.0), (1, 1.0)]);
    assert_eq!(
        update("d2(v, x)", "nodes", "nodes"),
        [(-1, 4.0), (0, -8.0), (1, 4.0)]
    );
    assert_eq!(
        update("avg(v, x, 4)", "nodes", "cells"),
        [
            (-1, -1.0 / 16.0),
            (0, 9.0 / 16.0),
            (1, 9.0 / 16.0),
            (2, -1.0 / 16.0)
        ]
    );
}

#[test]
fn own_coefficients() {
    assert_eq!(
        update("d(v, x, [1.5, -0.25])", "cells", "nodes"),
        [(-2, 0.5), (-1, -3.0), (0, 3.0), (1, -0.5)]
    );
    assert_eq!(
        update("dc(v, x, [2])", "nodes", "nodes"),
        [(-1, -4.0), (1, 4.0)]
    );
    assert_eq!(
        update("avg(v, x, [0.25])", "nodes", "cells"),
        [(0, 0.25), (1, 0.25)]
    );
}

#[test]
fn weights_of_equal_taps_are_summed_exactly() {
    // d of d of order 2 is d2; thirds cancel without a trace.
    assert_eq!(
        update("d(d(v, x), x)", "nodes", "nodes"),
        update("d2(v, x)", "nodes", "nodes")
    );
    assert_eq!(
        update("v / 3 + v[1] - v / 3", "nodes", "nodes"),
        update("v[1]", "nodes", "nodes")
    );
    assert_eq!(
        update("d2(v, x, 4) - d2(v, x, 4) + 2 * v", "nodes", "nodes"),
        [(0, 2.0)]
    );
}

#[test]
fn positions_of_vectors_and_tensors() {
    let scheme = scheme(
        "axes x, y, z
field E : vector on edges
field H : vector on faces at 1/2
field A : vector on cells
field S : tensor on cells
field T : tensor on nodes
field f : { a on nodes, b on [1/2, 0, 1/2] }
step { E += E; H += H; A += A; S += S; T += T; f += f }",
        "4 x 4 x 4",
    );
    let shown: Vec<String> = scheme
        .components
        .iter()
        .map(|c| {
            let p = c.position.0.map(|h| if h.is_half() { '1' } else { '0' });
            format!("{} {}", c.name, String::from_iter(p))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "E.x 100", "E.y 010", "E.z 001", "H.x 011", "H.y 101", "H.z 110", "A.x 111", "A.y 111",
            "A.z 111", "S.xx 111", "S.yy 111", "S.zz 111", "S.yz 100", "S.xz 010", "S.xy 001",
            "T.xx 000", "T.yy 000", "T.zz 000", "T.yz 011", "T.xz 101", "T.xy 110", "f.a 000",
            "f.b 101"
        ]
    );
}

/// Sums, multiples, negatives, differences and offsets of fields with named components keep the names.
#[test]
fn values_keep_the_names_of_components() {
    let fields = "axes x, y
field q : { m on nodes, n on nodes, e on nodes }
field k : { m on nodes, n on nodes, e on nodes }
field r : { a on nodes, b on nodes, c on nodes }
field p : { a on nodes, b on nodes }\n";
    for value in [
        "2*q",
        "q + 0.5*k",
        "-q",
        "d2(q, x)",
        "q[1, 0]",
        "if x < 2 then q else k",
        "q + [1, 2, 3]",
        "q / 3 - k",
    ] {
        let text =
            format!("{fields}step {{ let v = {value}; q = [v.n, v.m, v.e]; k = k; r = r; p = p }}");
        let moved = scheme(&text, "4 x 5");
        assert_eq!(moved.components[0].name, "q.m");
        let reads = |stage: usize, update: usize| {
            let body = &moved.stages[stage].updates[update].body;
            let all = body
                .reads()
                .map(|r| moved.component(r.component).name.clone());
            all.filter(|name| name.starts_with("q."))
                .collect::<Vec<_>>()
        };
        assert!(reads(0, 0).iter().all(|name| name == "q.n"), "{value}");
        assert!(!reads(0, 0).is_empty());
        assert!(reads(0, 1).iter().all(|name| name == "q.m"), "{value}");
    }
    let refused = |value: &str, hint: &str| {
        let text =
            format!("{fields}step {{ let v = {value}; q = [v.m, v.m, v.m]; k = k; r = r; p = p }}");
        let found = refused_with(
            &TestWorld::default(),
            &format!("scheme s {{\n{text}\n}}\nproblem p {{ scheme s; domain 4 x 5; steps 1 }}"),
            &Options::default(),
        );
        assert_eq!(found.0[0].code.0, "E0109", "{}", show(&found));
        assert!(found.0[0].message.contains(hint), "{}", show(&found));
    };
    refused("q + r", "a list of 3 values has no names");
    refused("[1, 2, 3]", "a list of 3 values has no names");
    refused("2*r", "there is no component `m`");
    // Not the names of the axes.
    let text = format!("{fields}step {{ let v = 2*p; p = [v.x, v.y] }}");
    let found = refused_with(
        &TestWorld::default(),
        &format!("scheme s {{\n{text}\n}}\nproblem p {{ scheme s; domain 4 x 5; steps 1 }}"),
        &Options::default(),
    );
    let hints: Vec<_> = found.0.iter().filter_map(|d| d.hint.clone()).collect();
    assert!(
        hints.iter().any(|h| h == "the components are a, b"),
        "{}",
        show(&found)
    );
}

#[test]
fn axes_have_roles_by_number() {
    let one = scheme("axes r\nfield u : vector on edges\nstep { u.r += 1 }", "4");
    assert_eq!(one.grid.axis_name(Axis::INNER), "r");
    let two = scheme(
        "axes r, z\nfield S : tensor on nodes\nstep { S.zr += S.rr[1/2, 1/2] }",
        "4 x 5",
    );
    assert_eq!(two.grid.axis_name(Axis::OUTER), "r");
    assert_eq!(two.grid.axis_name(Axis::INNER), "z");
    assert_eq!(two.grid.axis_name(Axis::MIDDLE), "");
    assert_eq!(two.components[2].name, "S.rz");
    let long = scheme(
        "axes lon, lat\nfield S : tensor on nodes\nstep { S.latlon += S.lonlon[1/2, 1/2] }",
        "4 x 5",
    );
    assert_eq!(long.components[2].name, "S.lonlat");
}

#[test]
fn cell_sizes_are_per_axis() {
    let s = scheme(
        "axes x, y\nparam h = 2\nparam hy = 3\nfield u : scalar on nodes\nstep { u += x * y }",
        "4 x 4",
    );
    assert_eq!(s.grid.spacing[Axis::OUTER], 2.0);
    assert_eq!(s.grid.spacing[Axis::INNER], 3.0);
    assert_eq!(s.grid.dt, 1.0);
}

#[test]
fn vector_coefficients_act_by_component() {
    let text = "
scheme s {
  axes x, y
  coef eps : vector on edges = [1, 2]
  field E : vector on edges
  step { E += E / eps }
}
problem p { scheme s; domain 8 x 8; coef eps.y = 1 + x; steps 1 }";
    let scheme = resolved(text).scheme;
    let [x, y] = scheme.stages[0].updates.as_slice() else {
        panic!("two components");
    };
    assert!(matches!(x.body.ops[1], Op::Const(2.0)));
    assert!(matches!(y.body.ops[0], Op::Coef(_)));
    assert_eq!(scheme.coefs.len(), 1);
    assert_eq!(
        scheme.coefs[0].value.to_string(),
        "(1.0 + (1.0 / (1.0 + pos.outer)))"
    );
}

#[test]
fn too_many_components_are_refused() {
    let parts: Vec<String> = (0..65).map(|i| format!("c{i} on nodes")).collect();
    let text = format!(
        "scheme s {{ axes x; field f : {{ {} }}; step {{ f.c0 += 1 }} }}",
        parts.join(", ")
    );
    let diagnostics = checked(&TestWorld::default(), &text);
    assert_eq!(diagnostics.0[0].code.0, "E0413");
}

#[test]
fn single_precision_rounds_each_weight_once() {
    let text = "
scheme s {
  axes x
  param dt = 0.1
  field u : scalar on nodes
  field v : scalar on cells
  step { u += dt * d(v, x, 4) }
}
problem p { scheme s; domain 8; steps 1 }";
    let weights: Vec<f64> = taps(&resolved(text).scheme).iter().map(|t| t.1).collect();
    let w = |r: f64| f64::from((0.1 * r) as f32);
    assert_eq!(
        weights,
        [w(1.0 / 24.0), w(-9.0 / 8.0), w(9.0 / 8.0), w(-1.0 / 24.0)]
    );
}

/// Components go together in their order; names that say otherwise are no accident.
#[test]
fn components_in_another_order_are_refused() {
    let text = |statement: &str| {
        format!(
            "scheme s {{
  axes x
  field q : {{ e on nodes, f on nodes }}
  field r : {{ e on nodes, f on nodes }}
  field z : {{ f on nodes, e on nodes }}
  field y : {{ a on nodes, b on nodes }}
  step {{ {statement} }}
}}
problem p {{ scheme s; domain 9; init q = [x, 1]; steps 2 }}
"
        )
    };
    for right in [
        "r = q",
        "r = r + q",
        "y = q",
        "z = [q.f, q.e]",
        "y = 2 * q - r",
    ] {
        resolved(&text(right));
    }
    for wrong in [
        "z = q",
        "z += 2 * q",
        "r = q + z",
        "r = if x > 1 then q else z",
    ] {
        let options = Options::default();
        let said = show(&refused_with(&TestWorld::default(), &text(wrong), &options));
        assert!(
            said.contains("E0401") && said.contains("f, e"),
            "{wrong}: {said}"
        );
    }
}
