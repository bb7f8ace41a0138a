//! Schemes as they come out: the normal form, time levels, coefficients, regions and masks.

use crate::support::*;
use torre_compiler::resolve::Options;
use torre_compiler::scheme::Precision;

fn dump(text: &str) -> String {
    resolved_with(
        &TestWorld::default(),
        text,
        &Options {
            precision: Precision::F64,
            ..Options::default()
        },
    )
    .scheme
    .to_string()
}

#[test]
fn wave_with_two_levels() {
    insta::assert_snapshot!(dump(
        "
scheme string {
  axes x
  param c = 0.5
  field u : scalar on nodes levels 2
  step { u@next = 2 * u - u@prev + c^2 * d2(u, x, order = 4) }
}
problem p { scheme string; domain 100; boundary x: pec | pmc; steps 1 }"
    ));
}

#[test]
fn maxwell42() {
    insta::assert_snapshot!(dump(
        "
use std::maxwell::maxwell42
problem p { scheme maxwell42; domain 32 x 24 x 16; boundary x: pec, y: periodic, z: pec | pmc; steps 1 }"
    ));
}

#[test]
fn maxwell_te_with_losses() {
    insta::assert_snapshot!(dump(
        "
use std::maxwell::maxwell_te
problem p {
  scheme maxwell_te
  domain 32 x 24
  coef eps = 1 + x
  coef sigma = 0.5 * y
  steps 1
}"
    ));
}

#[test]
fn maxwell_tm_in_vacuum() {
    insta::assert_snapshot!(dump(
        "
use std::maxwell::maxwell_tm
problem p { scheme maxwell_tm; domain 32 x 24; steps 1 }"
    ));
}

#[test]
fn elastic_with_layers() {
    insta::assert_snapshot!(dump(
        "
use std::elastic::elastic_2d
problem p {
  scheme elastic_2d { order = 2 }
  domain 32 x 24
  coef mu = if y < 10 then 1.0 else 2.0
  coef lambda = if y < 10 then 1.0 else 3.0
  steps 1
}"
    ));
}

#[test]
fn regions_masks_and_choices() {
    insta::assert_snapshot!(dump(
        "
scheme s {
  axes x, y
  param h = 0.1
  field u : scalar on nodes
  field w : scalar on cells levels 2
  step {
    where x >= 3 * h and not y > 0.5 { u += 1 }
    where x^2 + y^2 < 1 and y < 2 { u -= 0.5 * avg(avg(w, x), y) }
    where x < 0.3 { w = 2 * w - w@prev }
  }
}
problem p { scheme s; domain 32 x 24; steps 1 }"
    ));
}

#[test]
fn products_are_computed_as_written() {
    insta::assert_snapshot!(dump(
        "
scheme s {
  axes x
  coef k = 1 + x
  field u : scalar on nodes
  step { u += k * u * d2(u, x) - max(u, 0)^3 / sqrt(abs(u[-1])) + (if u > 1 and not u[+1] <= 2 then u else -k) }
}
problem p { scheme s; domain 32; steps 1 }"
    ));
}
