//! Stability in media that vary.

use crate::support::*;

/// Sound with symmetry about an axis, r from 0 on. In a medium with the coefficients of any one cell waves grow.
pub const ABOUT_AN_AXIS: &str = "scheme axial {
  axes r, z
  param h  = 0.1
  param dt = 0.05
  field v : vector on faces at 1/2
  field p : scalar on cells
  step {
    v -= dt * [d(p, r), d(p, z)]
    p -= dt * (d(r * v.r, r) / r + d(v.z, z))
  }
}
problem ball {
  scheme   axial
  domain   40 x 60
  boundary r: odd, z: odd
  init     p = exp(-(r^2 + (z - lz/2)^2) / 0.25)
  steps    20
}
";

#[test]
fn growth_in_a_uniform_medium_is_tried_with_the_real_one() {
    let (_folder, file) = written(ABOUT_AN_AXIS);
    let output = run(&format!("run {file} --verify"), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("ball: stability is not known: waves of ")
            && stderr.contains(
                "values do not grow with the coefficients that the 1024 cells around it have"
            ),
        "{stderr}"
    );
    let shown = succeed(&format!("analyze {file}"), &[]);
    assert!(
        shown.contains(
            "\n  values do not grow with the coefficients that the 1024 cells around it have"
        ),
        "{shown}"
    );
    assert!(
        shown.contains("\n  stability is not known: waves of ")
            && !shown.contains("no dt is stable"),
        "{shown}"
    );
    // A step that is too long there is refused, with one that is not.
    let error = fail(1, &format!("run {file} --set dt=0.1"), &[]);
    assert!(
        error.contains("E0815") && error.contains("with `dt` = 0.05 nothing grew there in a trial"),
        "{error}"
    );
}

/// Two light cells, of which one is stiff, too: the largest stable step of this lattice is 0.01971 (eigenvalues of its
/// matrix), and 0.01 in a uniform medium with the coefficients of the stiff cell and of a light face.
const BESIDE_A_STIFF_CELL: &str = "use std::acoustics::acoustics_1d
problem pair {
  scheme   acoustics_1d { h = 1, dt = 0.05 }
  domain   30
  boundary x: periodic
  coef     rho = if x > 9 and x < 11 then 0.01 else 1
  coef     kappa = if x > 9 and x < 10 then 100 else 1
  init     p = exp(-(x - 15)^2 / 4)
  steps    2000
}
";

#[test]
fn growth_at_an_interface_is_tried() {
    let (_folder, file) = written(BESIDE_A_STIFF_CELL);
    let output = run(&format!("run {file} --set dt=0.0195"), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("pair: stability is not known: waves of 2 cells along x grow by ")
            && stderr
                .contains("do not grow with the coefficients that the 30 cells around it have"),
        "{stderr}"
    );
    let error = fail(1, &format!("run {file} --set dt=0.02"), &[]);
    assert!(
        error.contains("E0815") && error.contains("the largest stable `dt` is 0.01 in a medium"),
        "{error}"
    );
    let shown = succeed(&format!("analyze {file} --set dt=0.0195"), &[]);
    assert!(
        shown.contains("\n  in a uniform medium: largest stable dt 0.01 (this one is 1.95 of it)"),
        "{shown}"
    );
    let quiet = run(&format!("check {file} --set dt=0.0099"), &[]);
    let stderr = String::from_utf8_lossy(&quiet.stderr);
    assert!(
        quiet.status.success() && !stderr.contains("not known"),
        "{stderr}"
    );
}

/// Two coefficients that vary against each other: where both are large, no cell has an extreme of one of them.
const FAST_SOMEWHERE: &str = "scheme sound {
  axes x
  param dt = 0.48
  coef a on cells = 10^(x/1000) * (x - 1000.25)/(x - 1000.25)
  coef b on nodes = 10^(-x/1000) * (1 + 4*exp(-((x - 1500)/8)^2))
  field u : scalar on nodes
  field v : scalar on cells at 1/2
  step {
    v -= dt * d(u, x) * a
    u -= dt * d(v, x) * b
  }
}
problem p {
  scheme   sound
  domain   2000
  boundary x: pec
  init     u = sin(x*x)
  steps    10
}
";

/// The cell with the fastest waves is found, also where a coefficient has no bounds in a box, as a quotient has whose
/// divisor may be 0.
#[test]
fn the_fastest_cell_is_found_where_coefficients_have_no_bounds() {
    let without = FAST_SOMEWHERE.replace(" * (x - 1000.25)/(x - 1000.25)", "");
    for text in [FAST_SOMEWHERE, &without] {
        let (_folder, file) = written(text);
        let error = fail(1, &format!("check {file}"), &[]);
        assert!(error.contains("E0815"), "{error}");
    }
}

/// Around a ring the light face of the stiff cell is that of the first cell. A cell elsewhere that is stiffer, and
/// heavy, takes longer steps.
#[test]
fn an_interface_between_the_ends_of_a_ring_counts() {
    for cells in [40, 600] {
        let (_folder, file) = written(&format!(
            "use std::acoustics::acoustics_1d
problem ring {{
  scheme   acoustics_1d {{ h = 1, dt = 0.05 }}
  domain   {cells}
  boundary x: periodic
  coef     kappa = if x > {} then 100 else if x > 10 and x < 11 then 200 else 1
  coef     rho = if x > {} or x < 1 then 0.01 else 1
  init     p = sin(x)
  steps    20
}}
",
            cells - 1,
            cells - 1
        ));
        for dt in [0.05, 0.02] {
            let error = fail(1, &format!("check {file} --set dt={dt}"), &[]);
            assert!(
                error.contains("E0815")
                    && error.contains("the largest stable `dt` is 0.01 in a medium"),
                "{error}"
            );
        }
        let output = run(&format!("check {file} --set dt=0.0195"), &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && stderr.contains("stability is not known"),
            "{stderr}"
        );
    }
}

#[test]
fn a_step_that_is_too_long_for_a_medium_beside_an_interface_is_refused() {
    let two = "use std::acoustics::acoustics_2d
problem two {
  scheme acoustics_2d { h = 1, dt = 0.15 }
  domain 60 x 60
  coef   rho = if x > 30 then 1000 else 1
  coef   kappa = if x > 30 then 20000 else 1
  init   p = exp(-((x - 15)^2 + (y - 20)^2) / 4)
  steps  20
}
";
    let (_folder, file) = written(two);
    // 1 / sqrt(2 * 20) in the heavy medium.
    let error = fail(1, &format!("check {file} --set dt=0.1585"), &[]);
    assert!(error.contains("E0815"), "{error}");
    let output = run(&format!("check {file} --set dt=0.135"), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.contains("stability is not known"),
        "{stderr}"
    );
}

#[test]
fn growth_with_every_step_is_refused_in_varying_media_too() {
    let (_folder, file) = written(
        "scheme drift {
  axes x
  param h  = 0.1
  param dt = 0.05
  coef c on nodes = 1 + 0.5 * sin(x)
  field u : scalar on nodes
  step {
    allow W0301
    u -= dt * c * dc(u, x)
  }
}
problem bump { scheme drift; domain 300; boundary x: periodic; init u = exp(-(x - 15)^2); steps 20 }
",
    );
    let error = fail(1, &format!("run {file}"), &[]);
    assert!(error.contains("E0815"), "{error}");
    assert!(!error.contains("nothing grows"), "{error}");
}

#[test]
fn media_from_files_count() {
    let bend = "examples/10-materials.torre";
    succeed(&format!("check {bend} --set dt=0.7"), &[]);
    let error = fail(1, &format!("check {bend} --set dt=0.71"), &[]);
    assert!(error.contains("with the coefficients of cell ("), "{error}");
}

/// The scheme with periodic sides in the place of sides with a phase reads the same files.
#[test]
fn a_crystal_from_a_file_is_analysed() {
    let (folder, file) = written(
        "use std::maxwell::maxwell_tm
problem crystal {
  scheme   maxwell_tm { h = 1, dt = 0.5 }
  domain   6 x 5
  boundary x: bloch(0.3), y: periodic
  coef     eps = file(\"eps.npy\")
  init     Ez = 1
  steps    4
}
",
    );
    let eps = crate::provenance::npy("6, 5", &[2.0; 30]);
    std::fs::write(folder.path().join("eps.npy"), eps).unwrap();
    let output = run(&format!("run {file} --verify"), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("Courant number 0.3536"), "{stderr}");
}

/// Growth that the equations have is no instability of a step; growth of a method, or without a bound for small cells,
/// is one.
#[test]
fn growth_of_the_equations_is_told_from_growth_of_the_step() {
    let one_axis = |fields: &str, step: &str| {
        format!(
            "scheme s {{
               axes x
               param h = 0.5
               param dt = 0.002
               allow W0301
               {fields}
               step {{
                 {step}
               }}
             }}
             problem p {{ scheme s; domain 100; boundary x: periodic; steps 10 }}"
        )
    };
    let u = "field u : scalar on nodes";
    let shear = "
        scheme s {
          axes x, y
          param h = 0.5
          param dt = 0.05
          coef rise = 0.4
          allow W0301
          field p : scalar on nodes
          field u : scalar on nodes
          field v : scalar on nodes
          step {
            p -= dt * (dc(u, x) + dc(v, y))
            u -= dt * (dc(p, x) + rise * v)
            v -= dt * dc(p, y)
          }
        }
        problem p { scheme s; domain 40 x 40; boundary all: periodic; steps 10 }";
    // A line that amplifies, as growth that oscillates.
    let laser = "
        use std::maxwell::maxwell_1d
        scheme laser : maxwell_1d {
          param h = 0.05
          param dt = 0.02
          coef inv = 0.4
          field J : scalar on nodes at 1/2
          field P : scalar on nodes
          step {
            J = ((1 - 0.3*dt/2) * J - dt * (inv * Ez + 36*P)) / (1 + 0.3*dt/2)
            P += dt * J
            Ez += dt * (d(Hy, x) - J)
          }
        }
        problem p { scheme laser; domain 400; boundary x: periodic; steps 10 }";
    let pattern = one_axis(u, "u += dt * (-0.8 * u - 2*d2(u, x) - d2(d2(u, x), x))");
    let grows = [
        ("pattern", pattern.as_str(), 0.2),
        ("laser", laser, 0.25),
        ("shear", shear, 0.2),
    ];
    for (name, text, rate) in grows {
        let (_folder, source) = written(text);
        let output = run("check {0}", &[std::path::Path::new(&source)]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {said}");
        let said = unwrapped(&said);
        let found = said.split("grow at the rate ").nth(1);
        let found = found.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        let found = found.unwrap_or_else(|| panic!("{name}: {said}"));
        assert!(
            (found / rate - 1.0).abs() < 0.015,
            "{name}: {found}, {said}"
        );
        let report = succeed(
            "analyze {0} --report json",
            &[std::path::Path::new(&source)],
        );
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let reported = report["growth_rate_of_equations"].as_f64().unwrap();
        assert!((reported / rate - 1.0).abs() < 0.015, "{name}: {reported}");
    }
    let advection = one_axis(u, "u -= dt * dc(u, x)");
    let downwind = one_axis(u, "u -= dt / h * (u[1] - u)");
    let backward = one_axis(u, "u -= dt * d2(u, x)");
    let elliptic = one_axis(
        "field u : scalar on nodes\nfield v : scalar on cells",
        "v -= dt * d(u, x)\nu += dt * d(v, x)",
    );
    // A parasite: every second value grows as the equation decays.
    let parasite = one_axis(
        "field u : scalar on nodes levels 2",
        "u@next = u@prev - 2*dt * (dc(u, x) + 0.3*u)",
    );
    // The same behind faster growth of the equations, with which it is coupled.
    let hidden = one_axis(
        "field u : scalar on nodes levels 2\nfield v : scalar on nodes levels 2\nfield w : scalar on nodes levels 2",
        "u@next = u@prev - 2*dt * (dc(u, x) - 0.3*u - 0.5*v - 0.01*w)\n\
         v@next = v@prev - 2*dt * (dc(v, x) - 0.3*v + 0.5*u)\n\
         w@next = w@prev - 2*dt * (dc(w, x) + 0.2*w - 0.01*u)",
    );
    // Smoothing with the wrong sign, without a factor of the cell.
    let filter = one_axis(u, "u -= dt * 0.1 * (u[-1] - 2*u + u[1])");
    // A medium with gain, beside one in which the step is not centred.
    let beside = one_axis(
        "coef gain = if x < 25 then 0.05 else 0\ncoef a = if x < 25 then 0 else 8\nfield u : scalar on nodes",
        "u += dt * (gain * u - a * dc(u, x))",
    );
    for (name, text) in [
        ("parasite", parasite),
        ("hidden", hidden),
        ("filter", filter),
        ("beside", beside),
        ("advection", advection),
        ("downwind", downwind),
        ("backward", backward),
        ("elliptic", elliptic),
    ] {
        let (_folder, source) = written(&text);
        let error = fail(1, "check {0}", &[std::path::Path::new(&source)]);
        assert!(error.contains("E0815"), "{name}: {error}");
    }
}

/// The step of plasma waves is at most 2 / sqrt(4 + wp^2), whichever cell has the worst wave of this step.
#[test]
fn the_limit_names_the_cell_that_sets_it() {
    let text = "scheme s {
  axes x
  param dt = 0.3
  coef wp = if x > 30 then 1.5 else 0.1
  field E : scalar on nodes
  field H : scalar on cells at 1/2
  field J : scalar on nodes at 1/2
  step {
    H += dt * d(E, x)
    J += dt * wp^2 * E
    E += dt * (d(H, x) - J)
  }
}
problem p { scheme s; domain 60; steps 10 }
";
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("plasma.torre");
    std::fs::write(&source, text).unwrap();
    for dt in ["0.3", "0.6", "0.9"] {
        let json = succeed(
            &format!("analyze {{0}} --set dt={dt} --report json"),
            &[&source],
        );
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        let limit = report["limit"]["value"].as_f64().unwrap();
        assert!((limit - 0.8).abs() < 1e-6, "{dt}: {limit}");
        let cell = report["limit"]["at_cell"][0].as_i64().unwrap();
        assert!(cell > 29, "{dt}: {cell}");
        let text = succeed(&format!("analyze {{0}} --set dt={dt}"), &[&source]);
        let line = text.lines().find(|line| line.contains("largest stable dt"));
        let named = format!("with the coefficients of cell ({cell})");
        assert!(line.is_some_and(|l| l.contains(&named)), "{dt}: {text}");
    }
}

/// E along a wave makes none, in a medium of a file as in one of the program.
#[test]
fn drives_are_looked_at_in_media_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let array = npy_of_f32("(60, 40)", &[1.0; 60 * 40]);
    std::fs::write(folder.path().join("ones.npy"), array).unwrap();
    let source = folder.path().join("drive.torre");
    let run = |eps: &str, drive: &str| {
        let text = format!(
            "use std::maxwell::maxwell_te
problem p {{
  scheme maxwell_te
  domain 60 x 40
  coef eps = {eps}
  incident w {{ direction (1, 0); {drive} }}
  total x = 14..46, y = 12..28 from w
  record m = max(abs(Hz))
  steps 2
}}
"
        );
        std::fs::write(&source, text).unwrap();
        let mut command = torre();
        command.args(["run", "--backend", "cranelift"]).arg(&source);
        let output = command.output().unwrap();
        let said = unwrapped(&String::from_utf8(output.stderr).unwrap());
        (output.status.success(), said)
    };
    for eps in ["1", "file(\"ones.npy\")"] {
        let (ran, said) = run(eps, "drive E.x = sin(t)");
        assert!(!ran && said.contains("makes no wave"), "{eps}: {said}");
        let (ran, said) = run(eps, "drive E = [sin(t), sin(t)]");
        let place = "drive.torre:6:12";
        assert!(
            ran && said.contains("W0505") && said.contains(place),
            "{eps}: {said}"
        );
        let allowed = format!("{eps}\n  allow W0505");
        let (ran, said) = run(&allowed, "drive E = [sin(t), sin(t)]");
        assert!(ran && !said.contains("W0505"), "{eps}: {said}");
        let (ran, said) = run(eps, "drive E.y = sin(t)");
        assert!(ran && !said.contains("W0505"), "{eps}: {said}");
    }
}
