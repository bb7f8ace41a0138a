//! Quotients and roots of zeros, of numbers whose results are too large or too small, and of infinities.

use super::*;

/// A value for each index along an axis.
fn by_index(axis: &str, values: &[String]) -> String {
    let Some((last, others)) = values.split_last() else {
        return "0".to_owned();
    };
    let cases = others.iter().enumerate();
    let cases = cases.map(|(n, value)| format!("if {axis} < {n} + 0.5 then {value} else "));
    cases.chain([last.clone()]).collect()
}

/// Cubes of the values are zeros of both signs, subnormal and infinite among others.
#[test]
fn quotients_and_roots_have_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    for (precision, tiny, huge) in [(Precision::F32, 14, 13), (Precision::F64, 106, 110)] {
        let sizes = [
            "0".to_owned(),
            format!("1e-{}", tiny + 3),
            format!("1e-{tiny}"),
            format!("3e-{}", tiny - 2),
            "0.7".to_owned(),
            "3".to_owned(),
            format!("1e{}", huge - 1),
            format!("1e{huge}"),
        ];
        let negative = sizes.iter().map(|size| format!("-({size})"));
        let values: Vec<String> = sizes.iter().cloned().chain(negative).collect();
        let [a, b] = ["x", "y"].map(|axis| by_index(axis, &values));
        let count = values.len();
        let text = format!(
            "scheme quotients {{
  axes x, y
  field a : scalar on nodes
  field b : scalar on nodes
  field both : scalar on nodes
  field third : scalar on nodes
  field part : scalar on nodes
  field root : scalar on nodes
  step {{
    both = a * a * a / (b * b * b)
    third = a * a * a / 3
    part = 0.1 / (b * b * b)
    root = sqrt(a * a * a)
  }}
}}
problem table {{
  scheme quotients
  domain {count} x {count}
  init a = {a}
  init b = {b}
  steps 1
}}
"
        );
        let resolved = resolved_in(&text, precision);
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        let shape = Shape::of(scheme);
        let result = compare_any(library, &device, scheme, problem, &NoFiles, shape, None);
        assert_eq!(result, Ok(()), "{precision}");
    }
}
