//! The results of a run: probes at some steps, parts of fields, coefficients.

use crate::support::*;
use std::path::Path;

const PROGRAM: &str = "
scheme sound {
  axes x, y
  param h  = 0.5
  param dt = 0.25
  boundary fixed: v odd
  region body = nowhere
  coef k = 1 + x
  field v : vector on faces at 1/2
  field p : scalar on cells
  step {
    v -= dt * [d(p, x), d(p, y)]
    p -= dt * (d(v.x, x) + d(v.y, y))
  }
}
problem s {
  scheme   sound
  domain   20 x 12
  boundary all: fixed
  region   body = (x - 4)^2 + (y - 3)^2 < 1
  source   p at x = 8, y = 3 = sin(t)
  source   p in body -= 0.01 * t
  probe    p at x = 8, y = 3 as drive
  probe    p in x = 8..10, y = 5 as line every 4
  output   slice p, k y = 2 in x = 2..6 every 5
  output   volume v in body every 10
  output   volume body
  steps    until 2.5
}
";

fn program(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("s.torre");
    std::fs::write(&path, PROGRAM).unwrap();
    path
}

/// The shape in the head of a `.npy` file.
fn shape(bytes: &[u8]) -> String {
    let head = String::from_utf8_lossy(&bytes[..128]);
    let shape = head.split("'shape': (").nth(1).unwrap();
    shape
        .split(')')
        .next()
        .unwrap()
        .trim_end_matches(',')
        .to_owned()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let values = npy_values(bytes).chunks_exact(4);
    values
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

/// Programs whose records can be computed from volumes that they write.
const RECORDED: &str = "
scheme sound {
  axes x, y, z
  param h  = 0.5
  param dt = 0.25
  coef k = 1 + x
  field v : vector on faces at 1/2
  field p : scalar on cells
  step {
    v -= dt * [d(p, x), d(p, y), d(p, z)]
    p -= dt * (d(v.x, x) + d(v.y, y) + d(v.z, z))
  }
}
problem s {
  scheme   sound
  domain   24 x 23 x 9
  boundary x: periodic, y: odd, z: even
  region   ball = (x - 4)^2 + (y - 3)^2 + (z - 2)^2 < 4
  init     p = exp(-((x - 5)^2 + (y - 4)^2 + z^2))
  record   energy = sum(0.5 * (k * p^2 + v.x^2 + v.y^2) + 0.5 * v.z^2) every 6
  record   least = min(p - 0.01 * t) in ball every 6
  record   flow = sum(v.x * avg(p, x)) in x = 2..20, y = 3
  record   between = sum(avg(p, y)^2) every 6
  output   volume p every 6
  output   volume v every 6
  steps    18
}
";

#[test]
fn reductions_have_the_same_bits_by_all_means() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("r.torre");
    std::fs::write(&source, RECORDED).unwrap();
    let run = |name: &str, options: &str| {
        let out = folder.path().join(name);
        succeed(
            &format!("run {{0}} --quiet --out {{1}} {options}"),
            &[&source, &out],
        );
        files(&out)
    };
    let expected = run("reference", "--backend reference");
    for (name, options) in [
        (
            "layerwise",
            "--backend interp --schedule layerwise --threads 1",
        ),
        ("tiles", "--backend interp --threads 3 --verify"),
        (
            "compiled",
            "--backend cranelift --schedule torre(D=1,TH=4) --threads 2",
        ),
    ] {
        let found = run(name, options);
        for file in ["series.csv", "series.npy"] {
            assert_eq!(found[file], expected[file], "{name}: {file}");
        }
        assert!(found.contains_key("series.png"));
    }
    // The same from the volumes, to rounding.
    let csv = String::from_utf8(expected["series.csv"].clone()).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(lines[0], ["t", "energy", "least", "flow", "between"]);
    assert_eq!(lines.len(), 19);
    for step in [6, 12, 18] {
        let values = |name: &str| {
            let bytes = &expected[&format!("volumes/{name}-{step:08}.npy")];
            let extent: Vec<usize> = shape(bytes)
                .split(", ")
                .map(|n| n.parse().unwrap())
                .collect();
            let values: Vec<f64> = floats(bytes).into_iter().map(f64::from).collect();
            (values, extent)
        };
        let (p, extent) = values("p");
        let at = |n: usize| {
            let [ny, nz] = [extent[1], extent[2]];
            [n / (ny * nz), n / nz % ny, n % nz].map(|i| 0.5 * (i as f64 + 0.5))
        };
        let mut energy: f64 = p
            .iter()
            .enumerate()
            .map(|(n, p)| (1.0 + at(n)[0]) * p * p)
            .sum();
        for name in ["v.x", "v.y", "v.z"] {
            energy += values(name).0.iter().map(|v| v * v).sum::<f64>();
        }
        let time = 0.25 * f64::from(step);
        let inside =
            |[x, y, z]: [f64; 3]| (x - 4.0).powi(2) + (y - 3.0).powi(2) + (z - 2.0).powi(2) < 4.0;
        let ball = p.iter().enumerate().filter(|(n, _)| inside(at(*n)));
        let least = ball
            .map(|(_, p)| p - 0.01 * time)
            .fold(f64::INFINITY, f64::min);
        let (vx, extent) = values("v.x");
        let [ny, nz] = [extent[1], extent[2]];
        let mut flow = 0.0;
        for x in 2..20 {
            for z in 0..nz {
                let at = |x: usize| (x * ny + 3) * nz + z;
                flow += vx[at(x)] * 0.5 * (p[at(x - 1)] + p[at(x)]);
            }
        }
        // On both planes across y the mean is the value beside them.
        let mut between = 0.0;
        for x in 0..24 {
            for y in 0..=ny {
                for z in 0..nz {
                    let at = |y: usize| p[(x * ny + y) * nz + z];
                    let mean = 0.5 * (at(y.saturating_sub(1)) + at(y.min(ny - 1)));
                    between += mean * mean;
                }
            }
        }
        let line = &lines[step as usize];
        let expected = [0.5 * energy, least, flow, between];
        for (text, value) in line[1..].iter().zip(expected) {
            let found: f64 = text.parse().unwrap();
            let tolerance = 1e-12 * energy;
            assert!((found - value).abs() < tolerance, "{step}: {found} {value}");
        }
    }
    // Between, nothing is recorded but the flow.
    assert!(lines[7][1].parse::<f64>().is_ok_and(f64::is_nan));
    assert!(lines[7][3].parse::<f64>().is_ok_and(|v| !v.is_nan()));
}

/// A coefficient that changes with time, as the book writes it: a field that a source sets.
const PUMPED: &str = "
scheme modulated {
  axes x
  param h  = 1.0
  param dt = 0.5
  field c2 : scalar on cells
  field p : scalar on cells
  field v : scalar on [0] at 1/2
  step {
    c2 = c2
    v -= dt * d(p, x)
    p -= dt * c2 * d(v, x)
  }
}
problem pump {
  scheme   modulated
  domain   200
  boundary x: periodic
  init     p = exp(-((x - 100) / 5)^2)
  source   c2 = 1 + 0.2 * sin(x / 10) * cos(0.3 * t)
  probe    c2 at (3) as c
  steps    100
}
";

#[test]
fn a_source_sets_a_coefficient_that_changes_with_time() {
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("p.torre"), folder.path().join("out"));
    std::fs::write(&source, PUMPED).unwrap();
    for options in [
        "--backend interp",
        "--backend cranelift",
        "--backend interp --schedule layerwise",
    ] {
        succeed(
            &format!("run {{0}} --quiet --verify --overwrite --out {{1}} {options}"),
            &[&source, &out],
        );
        let csv = std::fs::read_to_string(out.join("probes.csv")).unwrap();
        assert_eq!(csv.lines().count(), 101);
        for line in csv.lines().skip(1) {
            let (t, c) = line.split_once(',').unwrap();
            let (t, c): (f64, f32) = (t.parse().unwrap(), c.parse().unwrap());
            assert_eq!(
                c,
                (1.0 + 0.2 * (3.5f64 / 10.0).sin() * (0.3 * t).cos()) as f32
            );
        }
    }
}

#[test]
fn parts_and_coefficients_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (program(folder.path()), folder.path().join("out"));
    let arguments = "run {0} --backend interp --verify --save-final --quiet --out {1}";
    succeed(arguments, &[&source, &out]);
    let found = files(&out);
    let shapes: Vec<(&str, String)> = found
        .iter()
        .filter(|(name, _)| name.ends_with(".npy") && !name.starts_with("probes"))
        .map(|(name, bytes)| (name.as_str(), shape(bytes)))
        .collect();
    let expected = [
        ("fields/p.npy", "20, 12"),
        ("fields/v.x.npy", "20, 12"),
        ("fields/v.y.npy", "20, 12"),
        ("slices/k-y2-00000000.npy", "4"),
        ("slices/p-y2-00000005.npy", "4"),
        ("slices/p-y2-00000010.npy", "4"),
        ("volumes/body-00000000.npy", "20, 12"),
        ("volumes/v.x-00000010.npy", "3, 4"),
        ("volumes/v.y-00000010.npy", "4, 3"),
    ];
    assert_eq!(
        shapes,
        expected.map(|(name, shape)| (name, shape.to_owned()))
    );
    assert!(
        found.contains_key("slices/p-y2-00000005.png")
            && found.contains_key("slices/k-y2-00000000.png")
    );
    // Values at x = 1.25, 1.75, 2.25, 2.75.
    assert_eq!(
        floats(&found["slices/k-y2-00000000.npy"]),
        [2.25, 2.75, 3.25, 3.75]
    );
    let p = floats(&found["fields/p.npy"]);
    let line: Vec<f32> = (2..6).map(|x| p[x * 12 + 2]).collect();
    assert_eq!(floats(&found["slices/p-y2-00000010.npy"]), line);
    let vy = floats(&found["fields/v.y.npy"]);
    let part: Vec<f32> = (6..10)
        .flat_map(|x| (5..8).map(move |y| x * 12 + y))
        .map(|i| vy[i])
        .collect();
    assert_eq!(floats(&found["volumes/v.y-00000010.npy"]), part);
    let body = floats(&found["volumes/body-00000000.npy"]);
    assert_eq!(body.iter().filter(|b| **b == 1.0).count(), 12);
    // The report says where these values lie.
    let report: serde_json::Value = serde_json::from_slice(&found["report.json"]).unwrap();
    let outputs = report["outputs"].as_array().unwrap();
    let named = |name: &str| outputs.iter().find(|o| o["name"] == name).unwrap();
    let axis = |name: &str, start: f64, count: u64| {
        let spacing = 0.5;
        serde_json::json!({ "axis": name, "start": start, "spacing": spacing, "count": count })
    };
    let (part, line) = (named("v.y"), named("k-y2"));
    assert_eq!(
        part["axes"],
        serde_json::json!([axis("x", 3.25, 4), axis("y", 2.5, 3)])
    );
    assert_eq!(part["every"], 10);
    assert_eq!(line["axes"][0]["count"], 4);
    assert!(line["component"].is_null() && line["every"].is_null());
    assert_eq!((&line["across"], &line["index"]), (&"y".into(), &2.into()));
    // Of each record only the values that are due; 10 steps in all.
    let csv = String::from_utf8(found["probes.csv"].clone()).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(lines[0], ["t", "drive", "line_8", "line_9"]);
    assert_eq!(lines.len(), 11);
    for (step, line) in lines.iter().enumerate().skip(1) {
        let due = step % 4 == 0;
        assert_eq!(
            line[2].parse::<f64>().is_ok_and(|v| !v.is_nan()),
            due,
            "{line:?}"
        );
        // A probe finds the value that a source puts there.
        let time = 0.25 * step as f64;
        assert_eq!(line[1].parse::<f32>().unwrap(), time.sin() as f32);
    }
}

#[test]
fn every_format_has_parts() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(folder.path());
    for format in ["zarr", "vtk"] {
        let out = folder.path().join(format);
        let arguments = format!("run {{0}} --backend interp --quiet --format {format} --out {{1}}");
        succeed(&arguments, &[&source, &out]);
        let found = files(&out);
        match format {
            "zarr" => {
                let meta = String::from_utf8(found["volumes.zarr/v.y/zarr.json"].clone()).unwrap();
                let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
                assert_eq!(meta["shape"], serde_json::json!([1, 4, 3]));
                assert!(found.contains_key("volumes/body-00000000.npy"));
            }
            _ => {
                let text = |name: &str| String::from_utf8_lossy(&found[name]).into_owned();
                // The box begins at the sixth value along x, at 3.25, and at y = 2.5.
                assert!(
                    text("volumes/v.y-00000010.vti").contains("3.25 2.5"),
                    "{}",
                    text("volumes/v.y-00000010.vti")
                );
                assert!(text("volumes/body-00000000.vti").contains("0.25 0.25"));
            }
        }
    }
}

#[test]
fn notes_take_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(folder.path());
    let output = run("check {0}", &[&source]);
    let text = String::from_utf8(output.stderr).unwrap();
    let note = "s.torre:21: note N0501: `p` is taken at x = 8.25, y = 3.25, its nearest place\n";
    assert!(text.contains(note), "{text}");
    let quiet = run("check {0} --quiet", &[&source]);
    assert!(quiet.stderr.is_empty());
}

/// Planes in which the boundary holds all values at 0 have slices like all others, by every back end and schedule.
#[test]
fn slices_of_walls_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("walls.torre");
    let text = PROGRAM
        .replace("p, k y = 2 in x = 2..6 every 5", "v.x x = 0 every 2")
        .replace("volume v in body every 10", "slice v.y y = 0 every 3");
    std::fs::write(&path, text).unwrap();
    let expected = folder.path().join("reference");
    succeed("run {0} --out {1} --backend reference", &[&path, &expected]);
    let expected = results(&expected);
    let slices = expected.keys().filter(|name| name.starts_with("slices/"));
    assert_eq!(slices.filter(|name| name.ends_with(".npy")).count(), 5 + 3);
    let window = folder.path().join("window");
    for (n, options) in [
        "--backend interp --verify",
        "--backend cranelift --schedule diamond(P=8,TH=4) --verify",
        "--backend cranelift --schedule pyramid(B=4,TH=4,Z=4)",
        "--backend cranelift --window {2}",
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.path().join(n.to_string());
        succeed(
            &format!("run {{0}} --out {{1}} {options}"),
            &[&path, &out, &window],
        );
        assert_same_files(&expected, &results(&out), options);
    }
}

/// Tiles cut updates of a stage apart: an update without a layer runs where a layer amends another update.
#[test]
fn layers_have_the_same_bits_in_tiles() {
    if !has_llvm() {
        return;
    }
    let maxwell = "use std::maxwell::maxwell
problem p {
  scheme maxwell
  domain 28 x 12 x 24
  boundary x: cpml(6)
  init E.y = exp(-((x - 10)^2 + (y - 13)^2 + (z - 12)^2)/9)
  steps 20
}
";
    let elastic = "use std::elastic::elastic
problem p {
  scheme elastic
  domain 48 x 40 x 17
  boundary x: cpml(2), y: periodic, z: periodic
  init v.y = sin(3*x + 2*z + y*y)
  steps 4
}
";
    for (program, schedule) in [
        (maxwell, "x: diamond(6) height 4; z: box(2)"),
        (maxwell, "x: skewed(3) height 5; z: skewed(5)"),
        (elastic, "torre(W = 4, G = 2, TH = 2, Z = 1)"),
        (elastic, "torre(W = 8, G = 1, TH = 1, Z = 8)"),
    ] {
        let (folder, file) = written(program);
        let arguments = ["run", &file, "--backend", "llvm", "--verify", "--schedule"];
        let output = torre()
            .args(arguments)
            .args([schedule, "--out"])
            .arg(folder.path().join("out"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{schedule}: {said}");
    }
}

/// Records of probes of fields at whole and half steps, played again by the expressions of the chapter on files.
#[test]
fn a_record_is_played_again_by_the_expressions_of_the_book() {
    let text = std::fs::read_to_string(root().join("docs/src/files.md")).unwrap();
    let spans = text.split('`').skip(1).step_by(2);
    let expressions: Vec<&str> = spans
        .filter(|span| span.starts_with("table(\"out/probes.csv\""))
        .collect();
    let of = |component: &str| {
        let column = |e: &&&str| e.contains(&format!("column = \"{component}."));
        let found = expressions.iter().find(column);
        *found.unwrap_or_else(|| panic!("no record of {component}: {expressions:?}"))
    };
    let [e, h] = ["E", "H"].map(of);
    let e = e.replace("E.z_64_64", "u_1");
    let h = h.replace("H.x_64_64", "v_1");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("replay.torre");
    let problem = |name: &str, u: &str, v: &str| {
        format!(
            "problem {name} {{
  scheme two
  domain 4
  boundary all: periodic
  source v = {v}
  source u = {u}
  probe v at (1)
  probe u at (1)
  steps 8
}}
"
        )
    };
    let scheme = "scheme two {
  axes x
  param dt = 0.125
  field v : scalar on nodes at 1/2
  field u : scalar on nodes
  step {
    v = v
    u = u
  }
}
";
    let first = problem("first", "sin(7*t)", "sin(7*t)");
    let again = problem("again", &e, &h);
    std::fs::write(&program, format!("{scheme}{first}{again}")).unwrap();
    let out = folder.path().join("out");
    let records = ["first", "again"].map(|name| {
        let arguments = format!("run {{0}} --problem {name} --precision f64 --threads 1 --quiet");
        let own = folder.path().join(name);
        succeed(&format!("{arguments} --out {{1}}"), &[&program, &own]);
        if name == "first" {
            std::fs::rename(&own, &out).unwrap();
            return std::fs::read_to_string(out.join("probes.csv")).unwrap();
        }
        std::fs::read_to_string(own.join("probes.csv")).unwrap()
    });
    assert_eq!(records[0], records[1]);
}

/// Names that differ in signs that names of files do not have, and the name of a region.
#[test]
fn outputs_of_states_in_different_regions_have_files_of_their_own() {
    let (folder, file) = written(
        "def mem(f, part) {
  state P in part
  P@next = 0.9 * P + 0.1 * f
  P@next
}
scheme s {
  axes x
  region end = x > 8
  field p : scalar on cells
  field v : scalar on nodes at 1/2
  step {
    v -= 0.1 * d(p, x)
    p -= 0.1 * d(v, x) + 0.01 * mem(p, x < 4) + 0.01 * mem(p, x > 4) + 0.01 * mem(p, end)
  }
}
problem a {
  scheme s
  domain 12
  init p = sin(x)
  output volume P of p every 4
  steps 4
}
",
    );
    let out = folder.path().join("out");
    succeed(&format!("run {file} --allow-unstable --out {{0}}"), &[&out]);
    let names = std::fs::read_dir(out.join("volumes")).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with("-00000004.npy"))
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "P_of_p_in__x___4_-00000004.npy",
            "P_of_p_in__x___4_-2-00000004.npy",
            "P_of_p_in_end-00000004.npy"
        ]
    );
}
