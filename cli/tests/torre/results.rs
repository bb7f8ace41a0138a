//! What a run writes: probes at some steps, parts of fields, coefficients.

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
    let axis = |name: &str, start: f64, count: u64| serde_json::json!({ "axis": name, "start": start, "spacing": 0.5, "count": count });
    let (part, line) = (named("v.y"), named("k-y2"));
    assert_eq!(
        part["axes"],
        serde_json::json!([axis("x", 3.25, 4), axis("y", 2.5, 3)])
    );
    assert_eq!(part["every"], 10);
    assert_eq!(line["axes"][0]["count"], 4);
    assert!(line["component"].is_null() && line["every"].is_null());
    assert_eq!((&line["across"], &line["index"]), (&"y".into(), &2.into()));
    // Of each record only what is due; 10 steps in all.
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
        // What a source puts there is what a probe finds.
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
