//! Coefficients that are no finite numbers at some places.

use crate::support::*;

/// Statements and states with coefficients that are infinite or NaN where they do not act.
const NOT_TAKEN: &[(&str, &str)] = &[
    (
        "a region that is a box",
        "scheme s {
  axes x
  field u : scalar on nodes
  field v : scalar on nodes
  step {
    allow W0301
    where x > 0.5 { u += 0.1 * v / x + 0.01 / x }
    v -= 0.1 * u
  }
}
problem p { scheme s; domain 70; init v = 1 + x; steps 9 }
",
    ),
    (
        "a region that is no box",
        "scheme s {
  axes x, y
  coef k = 1 / (x^2 + y^2 - 25) + sqrt(x - 2)
  field u : scalar on nodes
  field v : scalar on nodes
  step {
    allow W0301
    where x^2 + y^2 > 25 and x > y { u += 0.1 * k * v }
    v -= 0.1 * u
  }
}
problem p { scheme s; domain 30 x 40; init v = 1 + x*y; steps 9 }
",
    ),
    (
        "two branches",
        "scheme s {
  axes x, y
  param h = 0.5
  param dt = 0.2
  field Er : scalar on [1/2, 0]
  field Ez : scalar on [0, 1/2]
  field H : scalar on cells at 1/2
  step {
    H += dt*(d(Ez, x) - d(Er, y))
    Er -= dt*d(H, y)
    where x < h/4 { Ez += dt*4/h*H[1/2, 0] } else { Ez += dt/x*d(x*H, x) }
  }
}
problem p {
  scheme s
  domain 17 x 5
  boundary x: even | odd, y: periodic
  init Ez = exp(-x^2 - (y - 1)^2)
  steps 40
}
",
    ),
    (
        "a choice between field values",
        "scheme s {
  axes x
  coef k = 1 / (x - 3)
  field u : scalar on nodes
  field v : scalar on nodes
  step {
    allow W0301
    u += if x > 3.5 then 0.1 * k * v else 0.1 * v
    v -= 0.1 * u
  }
}
problem p { scheme s; domain 70; init v = 1 + x; steps 9 }
",
    ),
    (
        "states in regions",
        "def lag(v, body, k) {
  state m in body
  m@next = 0.5 * m + k * v
  m@next
}
scheme s {
  axes x, y
  region box = x > 3 and x < 9 and y > 2
  region disc = (x - 6)^2 + (y - 6)^2 < 12
  field u : scalar on nodes
  field v : scalar on nodes
  step {
    allow W0301
    u += 0.1 * (v[1, 0] - v) + 0.1 * lag(v, box, 1 / (x - 3)) + 0.1 * lag(v, disc, 0.1 / ((x - 3)^2 + (y - 3)^2))
    v += 0.1 * (u - u[-1, 0]) - 0.1 * lag(u, disc, sqrt(12 - (x - 6)^2 - (y - 6)^2))
  }
}
problem p { scheme s; domain 30 x 20; init v = 1 + x*y; steps 9 }
",
    ),
];

#[test]
fn coefficients_may_be_infinite_where_no_update_takes_them() {
    let llvm = has_llvm();
    for (case, text) in NOT_TAKEN {
        let (_folder, file) = written(text);
        succeed(&format!("check {file}"), &[]);
        succeed(&format!("run {file} --backend reference"), &[]);
        for backend in ["interp", "cranelift", "llvm"] {
            if backend == "llvm" && !llvm {
                continue;
            }
            for precision in ["f32", "f64"] {
                let run = format!("run {file} --backend {backend} --precision {precision}");
                let output = self::run(&format!("{run} --verify --threads 2"), &[]);
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{case}, {run}: {stderr}");
            }
        }
    }
}

/// The largest Courant number is that of the place nearest to the pole.
#[test]
fn steps_are_looked_at_where_coefficients_are_taken() {
    let (_, two_branches) = NOT_TAKEN[2];
    let varying = two_branches.replace("dt/x*d(x*H, x)", "dt*(1 + 2/x)*d(H, x)");
    let (_folder, file) = written(&varying);
    let output = run(&format!("check {file}"), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("Courant number 0.8944\n"), "{stderr}");
}

#[test]
fn coefficients_that_updates_take_are_finite() {
    let text = "scheme s {
  axes x
  coef k = 1
  field u : scalar on nodes
  field v : scalar on nodes
  step {
    allow W0301
    where x > 0.5 { u += 0.1 * k * v }
    v -= 0.1 * u
  }
}
problem p { scheme s; domain 8; coef k = 1 / (x - 1); init v = 1; steps 3 }
";
    let division = "a division by zero needs a condition, such as `if x > 0 then 1 / x else 0`";
    let taken = "; coefficients count at all places where an update takes them\n";
    let wider = "`--precision f64` has a wider range";
    for (from, to, message, hint) in [
        (
            "x - 1)",
            "x - 1)",
            "the coefficient k at cell (1) is inf",
            format!("{division}{taken}"),
        ),
        (
            "1 / (x - 1)",
            "10^(20 * x)",
            "the coefficient k at cell (2) is 1e40",
            format!("{wider}{taken}"),
        ),
        (
            "coef k = 1 / (x - 1); init v = 1",
            "init v = sqrt(x - 1)",
            "the initial value of v at cell (0) is NaN",
            format!("{division}\n"),
        ),
        (
            "coef k = 1 / (x - 1); init v = 1",
            "init v = 10^(20 * x)",
            "the initial value of v at cell (2) is 1e40",
            format!("{wider}\n"),
        ),
    ] {
        let (folder, file) = written(&text.replace(from, to));
        let run = format!("run {file} --backend interp");
        let out = folder.path().join("out");
        let build = format!("build {file} -o {}", out.display());
        for command in [run, build] {
            let error = fail(1, &command, &[]);
            assert!(
                error.contains("E0807") && error.contains(message) && error.contains(&hint),
                "{command}: {error}"
            );
        }
        assert!(!out.exists());
    }
    // The place that no update takes is allowed.
    let (_folder, file) = written(&text.replace("x - 1)", "x)"));
    succeed(&format!("run {file} --backend interp"), &[]);
}

/// The file is named where its value is not finite, not where it is divided by.
#[test]
fn files_of_values_that_are_not_finite_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut values = [1.0; 8];
    values[2] = f32::NAN;
    std::fs::write(folder.path().join("a.npy"), npy_of_f32("(8,)", &values)).unwrap();
    values[2] = 0.0;
    std::fs::write(folder.path().join("b.npy"), npy_of_f32("(8,)", &values)).unwrap();
    let source = folder.path().join("p.torre");
    let in_file = "help: the file needs a finite number there";
    let division = "help: a division by zero needs a condition";
    for (stmt, message, hint) in [
        (
            "init u = file(\"a.npy\")",
            "the initial value of u at cell (2), from `a.npy`, is NaN",
            in_file,
        ),
        (
            "init u = 1 + 2 * file(\"a.npy\")",
            "the initial value of u at cell (2), from `a.npy`, is NaN",
            in_file,
        ),
        (
            "coef k = 3 * file(\"a.npy\")",
            "at cell (2), from `a.npy`, is NaN",
            in_file,
        ),
        (
            "init u = 1 / file(\"b.npy\")",
            "the initial value of u at cell (2) is inf",
            division,
        ),
    ] {
        let text = format!(
            "scheme s {{
  axes x
  coef k on cells = 1
  field u : scalar on cells
  step {{ allow W0301; u = 0.5 * k * u }}
}}
problem p {{ scheme s; domain 8; {stmt}; steps 3 }}
"
        );
        std::fs::write(&source, text).unwrap();
        let out = folder.path().join("out");
        for command in ["run {0} --backend interp", "build {0} -o {1}"] {
            let error = fail(1, command, &[&source, &out]);
            assert!(
                error.contains("E0807") && error.contains(message) && error.contains(hint),
                "{command}, {stmt}: {error}"
            );
        }
    }
}
