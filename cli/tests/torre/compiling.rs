//! The time of compilation beside that of a run, in the choice of `auto`.

use crate::support::*;
use serde_json::Value;

/// A machine with small caches and slow memory, on which tiles are expected to be much faster than sweeps.
const MACHINE: &str = "l1 32768
l2 1048576
l3 4194304
l2_rate 2e11
l3_rate 1.96e11
l3_rate_all 3.92e11
l3_rate_far 1.9e11
memory_rate 1e10
memory_rate_all 1e10
vector_rate 9e9
vector_rate_all 1.8e10
vector_rate_slowest 9e9
vector_bytes 64
";

/// Elastic waves in layers, by a method of Runge and Kutta with four stages: tiles have some hundred large kernels.
const ELASTIC: &str = "use std::div::div_tensor
use std::grad::strain
def hooke(D) = sym(
  3 * D.xx + D.yy + D.zz,
  3 * D.yy + D.xx + D.zz,
  3 * D.zz + D.xx + D.yy,
  2 * D.yz,
  2 * D.xz,
  2 * D.xy,
)
scheme runge_kutta {
  axes x, y, z
  param dt = 0.3
  field v : vector on faces
  field S : tensor on cells
  field a : vector on faces
  field A : tensor on cells
  field b : vector on faces
  field B : tensor on cells
  step {
    allow W0301
    a = v + dt/4 * div_tensor(S, 4)
    A = S + dt/4 * hooke(strain(v, 4))
    b = v + dt/3 * div_tensor(A, 4)
    B = S + dt/3 * hooke(strain(a, 4))
    a = v + dt/2 * div_tensor(B, 4)
    A = S + dt/2 * hooke(strain(b, 4))
    v += dt * div_tensor(A, 4)
    S += dt * hooke(strain(a, 4))
  }
}
problem quake {
  scheme   runge_kutta
  domain   24 x 24 x 24
  boundary all: cpml(6)
  init     v.x = exp(-((x - 12)^2 + (y - 12)^2 + (z - 12)^2) / 4)
  steps    100
}
";

#[test]
fn short_runs_take_no_schedule_that_compiles_long() {
    if !has_llvm() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let measured = machine_file();
    let head = measured.lines().next().unwrap();
    plant_machine(folder.path(), &format!("{head}\n{MACHINE}"));
    let program = folder.path().join("quake.torre");
    std::fs::write(&program, ELASTIC).unwrap();
    let plan = |more: &[&str]| {
        let output = torre()
            .arg("plan")
            .arg(&program)
            .args(["--threads", "2"])
            .args(more)
            .env("XDG_CACHE_HOME", folder.path())
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{error}");
        String::from_utf8(output.stdout).unwrap()
    };
    let report = |more: &[&str]| -> Value {
        let more = [more, &["--report", "json"]].concat();
        serde_json::from_str(&plan(&more)).unwrap()
    };
    let short = report(&[]);
    assert_eq!(short["schedule"], "layerwise", "{short}");
    let compiling = &short["compiling"];
    let other = &compiling["instead_of"];
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap();
    assert!(other["schedule"].as_str().unwrap().starts_with("torre("));
    assert!(number(other, "run_seconds") < number(compiling, "run_seconds"));
    assert!(number(other, "seconds") > 2.0 * number(compiling, "seconds"));
    let all = |of: &Value| number(of, "seconds") + number(of, "run_seconds");
    assert!(all(other) > all(compiling), "{compiling}");
    let text = plan(&[]);
    assert!(
        text.contains("  compiling ") && text.contains("  instead   of torre("),
        "{text}"
    );
    // A long run takes the tiles, and so does one whose kernels take no time.
    for more in [
        &["--set", "steps=1000000"][..],
        &["--backend", "cranelift"],
        &["--backend", "interp"],
    ] {
        let report = report(more);
        let schedule = report["schedule"].as_str().unwrap();
        assert!(schedule.starts_with("torre("), "{more:?}: {report}");
        assert!(report["compiling"]["instead_of"].is_null(), "{report}");
    }
    // A schedule that a user names is taken.
    let asked = report(&["--schedule", "torre(D = 2, TH = 8)"]);
    assert!(asked["schedule"].as_str().unwrap().starts_with("torre("));
}
