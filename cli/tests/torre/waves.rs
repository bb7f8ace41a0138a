//! `torre analyze` tells waves of nearly the same speed from each other.

use crate::support::*;

fn report(arguments: &str) -> serde_json::Value {
    let json = succeed(&format!("analyze {arguments} --report json"), &[]);
    serde_json::from_str(&json).unwrap()
}

/// Speeds of all kinds of waves along a direction, or diffusivities, the largest first.
fn coefficients(report: &serde_json::Value, direction: &str) -> Vec<f64> {
    let waves = report["accuracy"]["waves"].as_array().unwrap();
    let of = |wave: &serde_json::Value| {
        let table = wave["table"].as_array().unwrap();
        let row = table.iter().position(|row| row["direction"] == direction);
        wave["coefficients"][row.unwrap()].as_f64().unwrap()
    };
    let mut found: Vec<f64> = waves.iter().map(of).collect();
    found.sort_by(|a, b| b.total_cmp(a));
    found
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64]) {
    let close = |(a, b): (&f64, &f64)| (a / b - 1.0).abs() < 1e-4;
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(close),
        "{found:?} are not {expected:?}"
    );
}

/// The inverse squared index of the extraordinary wave in the plane of x and z is the mean of both, weighted by the
/// squared parts of the direction (Fresnel).
#[test]
fn both_waves_of_a_crystal_have_their_speeds() {
    let (_folder, file) = written(
        "use std::curl::curl
scheme crystal {
  axes x, y, z
  param dt = 0.5
  param index = 1.1
  coef eps : vector on edges = [1, 1, index^2]
  field E : vector on edges
  field H : vector on faces at 1/2
  step {
    H -= dt * curl(E, 2)
    let c = curl(H, 2)
    E += dt * [c.x / eps.x, c.y / eps.y, c.z / eps.z]
  }
}
problem p { scheme crystal; domain 20 x 20 x 20; boundary all: periodic; steps 1 }
",
    );
    for index in [1.01, 1.03, 1.1, 1.3] {
        let found = report(&format!("{file} --set index={index}"));
        let slow = 1.0 / (index * index);
        assert_close(&coefficients(&found, "x"), &[1.0, f64::sqrt(slow)]);
        let between = f64::sqrt(0.5 * (1.0 + slow));
        assert_close(&coefficients(&found, "x+z"), &[1.0, between]);
        assert_close(&[found["pace"]["number"].as_f64().unwrap()], &[0.5]);
    }
}

/// Also where a step is so small that waves hardly change in it.
#[test]
fn waves_of_two_fields_have_their_speeds_and_diffusivities() {
    let (_folder, file) = written(
        "scheme moving {
  axes x
  param dt = 0.5
  param c = 1.05
  field f : { p on nodes, q on nodes } levels 2
  step {
    f@next = 2 * f - f@prev +
      dt^2 * [c^2 * d2(f.p, x) + 1e-6 * d2(f.q, x), d2(f.q, x) + 1e-6 * d2(f.p, x)]
  }
}
scheme spreading {
  axes x
  param dt = 0.1
  param D = 1.05
  field f : { p on nodes, q on nodes }
  step {
    allow W0301
    f += dt * [D * d2(f.p, x) + 1e-6 * d2(f.q, x), d2(f.q, x) + 1e-6 * d2(f.p, x)]
  }
}
problem waves { scheme moving; domain 100; boundary x: periodic; steps 1 }
problem heat { scheme spreading; domain 100; boundary x: periodic; steps 1 }
",
    );
    for (c, dt) in [(1.05, 0.5), (1.02, 0.5), (1.07, 0.5), (1.02, 0.002)] {
        let found = report(&format!("{file} --problem waves --set c={c} --set dt={dt}"));
        assert_close(&coefficients(&found, "x"), &[c, 1.0]);
        assert_close(&[found["pace"]["coefficient"].as_f64().unwrap()], &[c]);
    }
    for (d, dt) in [(1.05, 0.1), (1.2, 0.1), (1.05, 0.001)] {
        let found = report(&format!("{file} --problem heat --set D={d} --set dt={dt}"));
        assert_close(&coefficients(&found, "x"), &[d, 1.0]);
        assert_close(&[found["pace"]["coefficient"].as_f64().unwrap()], &[d]);
    }
}

/// Squared speeds are the eigenvalues of Christoffel's matrix.
#[test]
fn the_three_waves_of_a_triclinic_medium_have_their_speeds() {
    let stiffness = |i: usize, j: usize| match i == j {
        true => [10, 16, 21, 25, 28, 30][i],
        false => 1,
    };
    let row = |i: usize| {
        let terms: Vec<String> = (0..6)
            .map(|j| format!("{} * e{}", stiffness(i, j), j + 1))
            .collect();
        format!("    s{} += dt * ({})", i + 1, terms.join(" + "))
    };
    let rows: Vec<String> = (0..6).map(row).collect();
    let (_folder, file) = written(&format!(
        "scheme triclinic {{
  axes x, y, z
  param dt = 0.1
  field v : {{ a on cells, b on cells, c on cells }} at 1/2
  field s1 : scalar on cells
  field s2 : scalar on cells
  field s3 : scalar on cells
  field s4 : scalar on cells
  field s5 : scalar on cells
  field s6 : scalar on cells
  step {{
    v += [dt * (dc(s1, x) + dc(s6, y) + dc(s5, z)),
          dt * (dc(s6, x) + dc(s2, y) + dc(s4, z)),
          dt * (dc(s5, x) + dc(s4, y) + dc(s3, z))]
    let e1 = dc(v.a, x)
    let e2 = dc(v.b, y)
    let e3 = dc(v.c, z)
    let e4 = dc(v.b, z) + dc(v.c, y)
    let e5 = dc(v.a, z) + dc(v.c, x)
    let e6 = dc(v.a, y) + dc(v.b, x)
{}
  }}
}}
problem p {{ scheme triclinic; domain 64 x 64 x 64; boundary all: periodic; steps 1 }}
",
        rows.join("\n")
    ));
    let found = report(&file);
    let speeds = coefficients(&found, "x");
    assert_eq!(speeds.len(), 3, "{speeds:?}");
    assert_close(&[speeds.iter().map(|c| c * c).sum()], &[10.0 + 30.0 + 28.0]);
    for speed in &speeds {
        // The determinant of [[a, 1, 1], [1, b, 1], [1, 1, c]].
        let [a, b, c] = [10.0, 30.0, 28.0].map(|diagonal| diagonal - speed * speed);
        let determinant = a * b * c - a - b - c + 2.0;
        assert!(determinant.abs() < 0.1, "{speeds:?}: {determinant}");
    }
    assert_close(
        &[found["pace"]["coefficient"].as_f64().unwrap()],
        &speeds[..1],
    );
}

/// Growth that waves of the equations have, too, is no instability. Here 47 fields depend on each other, and it takes
/// seconds to compare steps.
#[test]
fn checks_and_analyses_agree_on_large_schemes() {
    const FIELDS: usize = 47;
    let lines = |line: &dyn Fn(usize) -> String| -> String { (0..FIELDS).map(line).collect() };
    let fields = lines(&|i| format!("  field u{i} : scalar on nodes\n"));
    let curvatures = lines(&|i| format!("    let a{i} = d2(u{i}, x)\n"));
    let next = lines(&|i| {
        let other = (i + 1) % FIELDS;
        format!("    let b{i} = u{i} + dt * (0.001 * u{other} - a{i} - d2(a{i}, x))\n")
    });
    let updates = lines(&|i| format!("    u{i} = b{i}\n"));
    let (_folder, file) = written(&format!(
        "scheme s {{\n  axes x\n  param h = 1\n  param dt = 0.001\n{fields}  step {{\n    allow W0301\n\
         {curvatures}{next}{updates}  }}\n}}\n\
         problem p {{ scheme s; domain 64; boundary x: periodic; init u0 = sin(x / 4); steps 2 }}\n"
    ));
    let own = "as those of the equations do";
    let shown = succeed(&format!("analyze {file}"), &[]);
    assert!(shown.contains(own), "{shown}");
    let output = run(&format!("check {file}"), &[]);
    let said = unwrapped(&String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && said.contains(own), "{said}");
}
