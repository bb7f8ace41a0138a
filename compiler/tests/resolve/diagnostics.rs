//! Diagnostics of wrong programs.

use crate::support::*;
use torre_compiler::resolve::{Options, check};
use torre_compiler::scheme::Precision;
use torre_grammar::source::Source;

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
    assert_eq!(scheme.components[0].time_levels, 2);
}

fn shown(text: &str) -> String {
    show(&checked(&TestWorld::default(), text))
}

#[test]
fn errors_inside_definitions_show_their_uses() {
    let text = "
def inner(a) = a + missing
def outer(b) = inner(b) * 2
scheme s {
  axes x
  field u : scalar on nodes
  step { u -= outer(u) }
}";
    assert_eq!(
        shown(text),
        "error E0101: there is no `missing` here
  test.torre `missing`: not found
  test.torre `inner(b)`: used here
  test.torre `outer(u)`: used here
"
    );
}

#[test]
fn errors_inside_modules_show_their_uses() {
    let text = "
use std::curl::curl
scheme s {
  axes x, y, z
  field E : vector on edges
  field p : scalar on cells
  step { E += curl(p) }
}";
    let all = shown(text);
    assert!(
        all.starts_with(
            "error E0109: a scalar has no component `z`
  std::curl `z`: no such component
  test.torre `curl(p)`: used here
"
        ),
        "{all}"
    );
}

#[test]
fn definitions_do_not_see_the_scheme_that_uses_them() {
    let text = "
def advance(f) = f * dt
scheme s {
  axes x
  param dt = 0.5
  field u : scalar on nodes
  step { u += advance(u) }
}";
    assert_eq!(
        shown(text),
        "error E0101: there is no `dt` here
  test.torre `dt`: not found
  test.torre `advance(u)`: used here
  hint: definitions see only their parameters: add a parameter and pass `dt`
"
    );
}

#[test]
fn several_errors_are_told_at_once() {
    let text = "
scheme s {
  axes x
  field u : scalar on nodes
  step {
    u += a
    u += d(u, x)
    let c = b
    u += c + c
    v += 1
  }
}
def unused(q) = q + r";
    let codes: Vec<&str> = checked(&TestWorld::default(), text)
        .0
        .iter()
        .map(|d| d.code.0)
        .collect();
    assert_eq!(codes, ["E0101", "E0202", "E0101", "E0101", "E0101"]);
}

#[test]
fn an_absent_axis_is_explained() {
    let text = "
def laplacian(u) = d2(u, x) + d2(u, z)
scheme s {
  axes x, y
  field u : scalar on nodes
  step { u += laplacian(u) }
}";
    let all = shown(text);
    assert!(all.contains("there is no `z` here"), "{all}");
    assert!(all.contains("the axes of the scheme are x, y"), "{all}");
}

#[test]
fn next_values_run_their_statements_first() {
    let scheme = resolved(
        "
scheme s {
  axes x
  field a : scalar on nodes
  field b : scalar on nodes
  field c : scalar on nodes
  step {
    a += b@next
    c += a
    b += c
  }
}
problem p { scheme s; domain 8; steps 1 }",
    )
    .scheme;
    let order: Vec<&str> = scheme
        .stages
        .iter()
        .map(|s| scheme.component(s.updates[0].target).name.as_str())
        .collect();
    assert_eq!(order, ["b", "a", "c"]);
}

#[test]
fn time_levels_are_as_few_as_can_be() {
    let time_levels = |step: &str, levels: u32| {
        let text = format!(
            "scheme s {{ axes x; field u : scalar on nodes levels {levels}; field v : scalar on nodes; step {{ {step} \
             }} }}
problem p {{ scheme s; domain 8; steps 1 }}"
        );
        let scheme = resolved(&text).scheme;
        (
            scheme.components[0].time_levels,
            scheme.components[1].time_levels,
        )
    };
    // In place: only the own value is read.
    assert_eq!(time_levels("u = 2 * u + v", 1), (1, 1));
    // Neighbours must not be overwritten.
    assert_eq!(time_levels("u += 0.1 * d2(u, x)", 1), (2, 1));
    // The value before is read at the own place only, where the new one replaces it.
    assert_eq!(time_levels("u = 2 * u - u@prev + d2(u, x)", 2), (2, 1));
    // The value before is read elsewhere too.
    assert_eq!(time_levels("u = 2 * u + d2(u@prev, x)", 2), (3, 1));
    // A later statement reads the value before.
    assert_eq!(time_levels("u += 1\n v += u@prev[1]", 2), (2, 1));
    // Neighbours of a value that is advanced by another statement are its new ones.
    assert_eq!(time_levels("u += d2(v, x)\n v += d2(u, x)", 1), (1, 1));
}

/// The only stage of a program, as text.
fn body_of(program: &str) -> String {
    let text = resolved(program).scheme.to_string();
    let (_, body) = text.split_once("stage s0").expect("there is a stage");
    body.to_owned()
}

#[test]
fn what_depends_on_the_place_alone_is_added_last() {
    let body = body_of(
        "
scheme s {
  axes x
  field u : scalar on nodes
  step { u = x^2 + 0.5 * u - 3 }
}
problem p { scheme s; domain 8; steps 1 }",
    );
    assert_eq!(
        body,
        "
    u in [0..8]
      %0 = u[0]
      %1 = 0.5
      %2 = mul %1 %0
      %3 = m0
      %4 = add %2 %3
      store %4
"
    );
}

#[test]
fn twice_a_value_less_the_one_before_is_one_operation() {
    let body = body_of(
        "
scheme s {
  axes x
  coef c = 1 + x
  field u : scalar on nodes levels 2
  step { u@next = 2 * u - u@prev + c * d2(u, x) }
}
problem p { scheme s; domain 8; steps 1 }",
    );
    assert_eq!(
        body,
        "
    u in [0..8]
      %0 = u[0]
      %1 = 2.0
      %2 = u[0]@1
      %3 = neg %2
      %4 = fma %1 %0 %3
      %5 = u[-1]
      %6 = -2.0
      %7 = fma %6 %0 %5
      %8 = u[1]
      %9 = 1.0
      %10 = fma %9 %8 %7
      %11 = m0
      %12 = fma %11 %10 %4
      %13 = flush %12
      store %13
"
    );
}

/// `aa` beside `aa` and `a` beside `aaa`: files of one component would take the place of the other's.
#[test]
fn axes_of_which_two_components_would_have_one_name_are_refused() {
    let messages = |axes: &str| -> Vec<String> {
        let text = format!(
            "
scheme s {{
  axes {axes}
  field u : scalar on nodes
  step {{ u = 0.5 * u }}
}}"
        );
        let found = checked(&TestWorld::default(), &text).0;
        found.into_iter().map(|d| d.message).collect()
    };
    let alike = "with these axes two components of a tensor are called `aaaa`";
    assert_eq!(messages("a, aa, aaa"), [alike]);
    // `aba` is the component of `a` and `ba`, and that of `ab` and `a`.
    assert_eq!(messages("a, ba, ab"), [alike.replace("aaaa", "aba")]);
    for axes in ["a, aa", "x, y, z", "ab, a, b"] {
        assert!(messages(axes).is_empty(), "{axes}: {:?}", messages(axes));
    }
    // A name that occurs twice is another mistake.
    let twice = messages("a, a");
    assert!(twice.len() == 1 && twice[0] != alike, "{twice:?}");
}

#[test]
fn one_mistake_in_a_use_is_told_once() {
    let text = "
use std::curl::curl
scheme s {
  axes x, y, z
  field E : vector on edges
  field H : vector on faces at 1/2
  step {
    H -= curl(E, order = 3)
    E += curl(H, order = 5)
  }
}";
    let messages: Vec<String> = checked(&TestWorld::default(), text)
        .0
        .into_iter()
        .map(|d| d.message)
        .collect();
    assert_eq!(
        messages,
        [
            "there is no difference of order 3",
            "there is no difference of order 5"
        ]
    );
}

#[test]
fn mistakes_of_a_problem_do_not_hide_each_other() {
    let text = "
scheme s {
  axes x, y
  coef k = 1
  field u : scalar on nodes
  step { u -= k * u }
}
problem p {
  scheme s { hh = 3 }
  domain 10 x 10
  coef kk = 2
  init u = v
  source w at (1, 1) += 1
  probe u at (10, 1)
  output slice u z = 1
  steps -1
}";
    let codes: Vec<&str> = checked(&TestWorld::default(), text)
        .0
        .iter()
        .map(|d| d.code.0)
        .collect();
    assert_eq!(
        codes,
        [
            "E0701", "E0513", "E0101", "E0101", "E0506", "E0112", "E0512"
        ]
    );
}

#[test]
fn offsets_that_are_too_far_are_told_from_offsets_between_values() {
    let of = |offset: &str| {
        shown(&format!(
            "scheme s {{ axes x; field u : scalar on nodes; step {{ u = u[{offset}] }} }}"
        ))
    };
    let far = of("1e9");
    assert!(far.contains("is too far") && !far.contains("1/2"), "{far}");
    assert!(of("1/3").contains("offsets are multiples of 1/2"));
}

#[test]
fn conditions_on_time_are_told_from_conditions_on_values() {
    let of = |condition: &str| {
        shown(&format!(
            "scheme s {{ axes x; field u : scalar on nodes; step {{ where {condition} {{ u = 1 }} }} }}"
        ))
    };
    let timed = of("t > 3");
    assert!(timed.contains("a source can change with time"), "{timed}");
    assert!(of("u > 3").contains("for a choice by field values"));
}

#[test]
fn a_difference_of_whole_cells_is_pointed_at() {
    let hints = |value: &str| -> Vec<String> {
        let text = format!(
            "
scheme s {{
  axes x, y
  param dt = 0.1
  field u : scalar on nodes
  field v : scalar on [0, 1/2] at 1/2
  step {{ v += {value}; u = u }}
}}"
        );
        let found = checked(&TestWorld::default(), &text).0;
        found.into_iter().filter_map(|d| d.hint).collect()
    };
    let difference = "the difference between two cells is, but for its sign, `d(u, y)`, which is divided by the cell \
                      size, or `u[0, +1/2] - u[0, -1/2]`";
    for value in ["dt * (u[0, 1] - u)", "u[0, -1] - u", "-(u - u[0, 1]) / 2"] {
        assert!(
            hints(value).iter().any(|hint| hint == difference),
            "{value}: {:?}",
            hints(value)
        );
    }
    for value in ["dt * (u[0, 2] - u)", "u[1, 0] - u", "u[0, 1] + u"] {
        let hints = hints(value);
        assert!(
            hints[0].starts_with("take the mean along y"),
            "{value}: {hints:?}"
        );
    }
}

#[test]
fn numbers_that_lose_digits_are_pointed_at() {
    let warned = |number: &str, precision: Precision| -> Vec<String> {
        let text = format!(
            "
scheme s {{
  axes x
  field u : scalar on nodes
  step {{ u = {number} * u }}
}}
problem p {{ scheme s; domain 8; steps 1 }}"
        );
        let source = Source::new("test.torre", text);
        let ast = torre_grammar::parse(&source).expect("a program");
        let options = Options {
            precision,
            ..Options::default()
        };
        let found = check(&TestWorld::default(), &source, &ast, &options).0;
        let lost = found.into_iter().filter(|d| d.code.0 == "W0404");
        lost.map(|d| d.message).collect()
    };
    let few = "a number of the update of `u`, 3.854e-44, is 3.924e-44 in f32";
    assert_eq!(warned("3.854e-44", Precision::F32), [few]);
    let none = "a number of the update of `u`, 1e-50, is 0 in f32";
    assert_eq!(warned("1e-50", Precision::F32), [none]);
    // Nearly as many digits as others, and digits that are there.
    for (number, precision) in [
        ("1e-38", Precision::F32),
        ("0", Precision::F32),
        ("3.854e-44", Precision::F64),
    ] {
        assert_eq!(warned(number, precision), [""; 0], "{number}");
    }
}
