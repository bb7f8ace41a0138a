//! Spectra of planes, boxes and states: their values, their bits, and the flux that they give.

use crate::support::*;
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::fs;
use std::path::Path;

/// Each spectrum beside frames of the same values.
const WAVES: &str = "
scheme damped {
  axes x, y, z
  param h  = 0.5
  param dt = 0.2
  field u : scalar on cells
  field v : vector on faces at 1/2
  region wall = x < 3
  step {
    v -= dt * [d(u, x), d(u, y), d(u, z)]
    u -= dt * (d(v.x, x) + d(v.y, y) + slow(d(v.z, z), wall))
  }
}
def slow(p, wall) {
  state q in wall
  q@next = 0.5 * q + p
  p - 0.1 * q
}
problem s {
  scheme   damped
  domain   14 x 13 x 12
  boundary x: odd, y: periodic, z: even
  init     u = exp(-((x - 3)^2 + (y - 3)^2 + (z - 2)^2))
  output   slice u, v.x y = 5 in x = 2..11 every 3
  output   spectrum u, v.x y = 5 in x = 2..11 for f = linspace(0.1, 0.4, 4) every 3
  output   volume u in x = 4..6, z = 3..7 every 4
  output   spectrum u in x = 4..6, z = 3..7 for f = [0.25, -0.1, 0] every 4
  output   slice q of u z = 4 every 4
  output   spectrum q of u z = 4 for f = 0.2 every 4
  steps    36
}
";

/// The shape and the numbers of an array of complex numbers.
fn complex(bytes: &[u8]) -> (String, Vec<[f64; 2]>) {
    let head = String::from_utf8_lossy(&bytes[..128]).into_owned();
    assert!(head.contains("'<c16'"), "{head}");
    let shape = head.split("'shape': (").nth(1).unwrap();
    let shape = shape.split(')').next().unwrap().to_owned();
    let parts: Vec<f64> = npy_values(bytes).chunks_exact(8).map(double).collect();
    (shape, parts.chunks_exact(2).map(|p| [p[0], p[1]]).collect())
}

fn double(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(bytes.try_into().unwrap())
}

/// The spectrum of frames, one frequency after the other: the i-th frame is that after step `(i + 1) * every`.
struct Expected<'a> {
    files: &'a BTreeMap<String, Vec<u8>>,
    frames: &'a str,
    every: usize,
    dt: f64,
    /// How much earlier values are than the step.
    earlier: f64,
}

impl Expected<'_> {
    fn at(&self, frequencies: &[f64]) -> Vec<[f64; 2]> {
        let named = |name: &&String| name.starts_with(self.frames) && name.ends_with(".npy");
        let frames: Vec<&String> = self.files.keys().filter(named).collect();
        assert!(frames.len() > 5, "{frames:?}");
        let mut sums = Vec::new();
        for f in frequencies {
            let mut own: Vec<[f64; 2]> = Vec::new();
            for (i, name) in frames.iter().enumerate() {
                let time = ((i + 1) * self.every) as f64 * self.dt - self.earlier;
                let phase = TAU * f * time;
                let values = npy_values(&self.files[*name]).chunks_exact(8).map(double);
                let values: Vec<f64> = values.collect();
                own.resize(values.len(), [0.0; 2]);
                for (sum, value) in own.iter_mut().zip(values) {
                    sum[0] += value * phase.cos() * self.every as f64 * self.dt;
                    sum[1] += value * phase.sin() * self.every as f64 * self.dt;
                }
            }
            sums.extend(own);
        }
        sums
    }
}

fn assert_close(found: &[[f64; 2]], expected: &[[f64; 2]], case: &str) {
    assert_eq!(found.len(), expected.len(), "{case}");
    let largest = expected
        .iter()
        .flatten()
        .fold(0.0, |l: f64, v| l.max(v.abs()));
    assert!(largest > 1e-4, "{case}: {largest}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let distance = (a[0] - b[0]).hypot(a[1] - b[1]);
        assert!(distance < 1e-13 * largest, "{case}, {i}: {a:?} {b:?}");
    }
}

#[test]
fn spectra_are_those_of_frames_at_the_times_of_their_values() {
    let (folder, source) = written(WAVES);
    let out = folder.path().join("out");
    let run = "run {0} --quiet --out {1} --precision f64 --threads 2";
    succeed(run, &[Path::new(&source), &out]);
    let files = files(&out);
    let own = [("u-y5", 0.0), ("v.x-y5", 0.1)];
    for (name, earlier) in own {
        let (shape, found) = complex(&files[&format!("spectra/{name}.npy")]);
        assert_eq!(shape, "4, 9, 12", "{name}");
        let frames = Expected {
            files: &files,
            frames: &format!("slices/{name}-"),
            every: 3,
            dt: 0.2,
            earlier,
        };
        assert_close(&found, &frames.at(&[0.1, 0.2, 0.3, 0.4]), name);
    }
    let (shape, found) = complex(&files["spectra/u.npy"]);
    assert_eq!(shape, "3, 2, 13, 4");
    let frames = Expected {
        files: &files,
        frames: "volumes/u-",
        every: 4,
        dt: 0.2,
        earlier: 0.0,
    };
    assert_close(&found, &frames.at(&[0.25, -0.1, 0.0]), "u");
    let (shape, found) = complex(&files["spectra/q_of_u-z4.npy"]);
    assert_eq!(shape, "1, 14, 13");
    let frames = Expected {
        frames: "slices/q_of_u-z4-",
        ..frames
    };
    assert_close(&found, &frames.at(&[0.2]), "q of u");
    let pictures = ["spectra/u-y5-0000.png", "spectra/v.x-y5-0003.png"];
    assert!(pictures.iter().all(|name| files.contains_key(*name)));
    let report: serde_json::Value = serde_json::from_slice(&files["report.json"]).unwrap();
    let listed = report["files"].as_array().unwrap();
    assert!(listed.iter().any(|name| name == "spectra/v.x-y5.npy"));
    let outputs = report["outputs"].as_array().unwrap();
    let frequencies: Vec<&serde_json::Value> = outputs
        .iter()
        .map(|output| &output["frequencies"])
        .filter(|f| !f.is_null())
        .collect();
    assert_eq!(frequencies.len(), 4);
    // Beside frames of the same names.
    let identity = report["identity"]["each_output"].as_object().unwrap();
    for name in ["u", "u-y5", "v.x-y5", "q of u-z4"] {
        let names: Vec<&String> = identity.keys().collect();
        let own = |key: &str| identity.get(key).and_then(|hash| hash.as_str());
        let (frame, spectrum) = (own(name), own(&format!("spectra/{name}")));
        assert!(spectrum.is_some() && frame != spectrum, "{name}: {names:?}");
    }
    assert_eq!(*frequencies[2], serde_json::json!([0.25, -0.1, 0.0]));
}

/// The same bits by every schedule and back end, after checkpoints, over files, and where nothing else is written.
#[test]
fn spectra_have_the_same_bits_by_all_means() {
    let (folder, source) = written(WAVES);
    let at = |name: &str| folder.path().join(name);
    let spectra = |name: &str| {
        let mut found = files(&at(name));
        found.retain(|name, _| name.starts_with("spectra/"));
        found
    };
    let run = |options: &str, paths: &[&Path]| {
        let paths: Vec<&Path> = [Path::new(&source)]
            .into_iter()
            .chain(paths.iter().copied())
            .collect();
        succeed(&format!("run {{0}} --quiet {options}"), &paths);
    };
    run("--backend reference --out {1}", &[&at("reference")]);
    let expected = spectra("reference");
    assert!(expected.len() > 3, "{:?}", expected.keys());
    let ways = [
        (
            "layerwise",
            "--schedule layerwise --threads 1 --backend interp",
        ),
        (
            "towers",
            "--schedule torre(D=1,TH=4) --threads 3 --backend cranelift",
        ),
        (
            "verified",
            "--schedule torre(D=2,TH=2) --threads 2 --backend cranelift --verify",
        ),
    ];
    for (name, options) in ways {
        run(&format!("{options} --out {{1}}"), &[&at(name)]);
        assert_same_files(&expected, &spectra(name), name);
    }
    // Half of the steps without results, the rest in another order.
    let cranelift = "--backend cranelift";
    run(
        &format!("{cranelift} --set steps=17 --checkpoint {{1}}"),
        &[&at("state")],
    );
    run(
        &format!("{cranelift} --schedule torre(D=1,TH=4) --resume {{1}} --out {{2}}"),
        &[&at("state"), &at("resumed")],
    );
    assert_same_files(&expected, &spectra("resumed"), "resumed");
    run(
        &format!("{cranelift} --set steps=17 --window {{1}}"),
        &[&at("window")],
    );
    run(
        &format!("{cranelift} --window {{1}} --resume {{1}} --out {{2}}"),
        &[&at("window"), &at("files")],
    );
    assert_same_files(&expected, &spectra("files"), "files");
    // Sums begin with the first step, so a state without them is of another calculation.
    let fewer = WAVES.replace(
        "for f = [0.25, -0.1, 0] every 4",
        "for f = [0.25, -0.1] every 4",
    );
    fs::write(&source, fewer).unwrap();
    let more = "run {0} --quiet --backend cranelift --resume {1} --out {2}";
    let paths = [Path::new(&source), &at("state"), &at("other")];
    let error = fail(1, more, &paths);
    assert!(error.contains("E0803"), "{error}");
}

/// Of planes at each frequency, of a line over frequency, of a single value as a curve, in a folder with nothing else.
#[test]
fn spectra_are_drawn_again() {
    let (folder, source) = written(
        "use std::wave::wave_2d
problem pond {
  scheme wave_2d
  domain 30 x 20
  source u at (9, 8) += exp(-((t - 6)/2)^2)
  output spectrum u for f = [0.3, 0.1]
  output spectrum u x = 15 for f = linspace(0.1, 0.4, 7)
  output spectrum u in x = 12, y = 9 for f = [0.2, 0.1, 0.4]
  steps 60
}
",
    );
    let (source, out) = (Path::new(&source), folder.path().join("out"));
    succeed(
        "run {0} --quiet --backend cranelift --out {1}",
        &[source, &out],
    );
    let before = results(&out);
    let pictures: Vec<&String> = before.keys().filter(|name| name.ends_with("png")).collect();
    let expected = [
        "spectra/u-0000.png",
        "spectra/u-0001.png",
        "spectra/u-2.png",
        "spectra/u-x15.png",
    ];
    assert_eq!(pictures, expected);
    let plot = |more: &str| succeed(&format!("plot {{0}} --out {{1}} {more}"), &[source, &out]);
    for name in expected {
        fs::remove_file(out.join(name)).unwrap();
    }
    plot("");
    assert_same_files(&before, &results(&out), "drawn again");
    plot("--down y --range spectra/u=0..9 --range spectra/u-2=0..2");
    let other = results(&out);
    for name in expected {
        assert!(before[name] != other[name], "{name}");
    }
    plot("--range spectra/u-x15=0..2");
    let other = results(&out);
    for name in expected {
        assert_eq!(
            before[name] == other[name],
            name != "spectra/u-x15.png",
            "{name}"
        );
    }
    let wrong = "plot {0} --out {1} --range u=0..2";
    let error = fail(2, wrong, &[source, &out]);
    assert!(error.contains("spectra/u-x15"), "{error}");
    // An array of other frequencies is none of this problem.
    let array = out.join("spectra/u.npy");
    let bytes = fs::read(&array).unwrap();
    fs::write(&array, &bytes[..bytes.len() - 16]).unwrap();
    let error = fail(1, "plot {0} --out {1}", &[source, &out]);
    assert!(
        error.contains("u.npy") && error.contains("cut short"),
        "{error}"
    );
}

/// The example's grating sends all that comes in either on or back: flux through planes, of fields at times and places
/// half a step and half a cell from each other.
#[test]
fn transmission_and_reflection_of_the_grating_are_the_incident_flux() {
    let folder = tempfile::tempdir().unwrap();
    let example = root().join("examples/19-grating.torre");
    let flux = |name: &str, options: &str| {
        let out = folder.path().join(name);
        succeed(
            &format!("run {{0}} --quiet --out {{1}} {options}"),
            &[&example, &out],
        );
        let files = files(&out);
        [("Ez-x20", "H.y"), ("Ez-x90", "H.y-2")].map(|(electric, magnetic)| {
            let (shape, e) = complex(&files[&format!("spectra/{electric}.npy")]);
            assert_eq!(shape, "36, 20");
            let (shape, h) = complex(&files[&format!("spectra/{magnetic}.npy")]);
            assert_eq!(shape, "36, 2, 20");
            let at = |f: usize| -> f64 {
                let sum = |y: usize| {
                    let e = e[f * 20 + y];
                    let [lower, upper] = [0, 1].map(|x| h[(f * 2 + x) * 20 + y]);
                    let h = [0, 1].map(|part| 0.5 * (lower[part] + upper[part]));
                    -0.5 * (e[0] * h[0] + e[1] * h[1])
                };
                (0..20).map(sum).sum()
            };
            (0..36).map(at).collect::<Vec<f64>>()
        })
    };
    let [scattered, incident] = flux("empty", "--set index=1");
    let [reflected, transmitted] = flux("rods", "");
    let mut least = 1f64;
    for f in 0..36 {
        let whole = incident[f];
        assert!(scattered[f].abs() < 1e-12 * whole, "{f}: {}", scattered[f]);
        let sum = (transmitted[f] - reflected[f]) / whole;
        assert!((sum - 1.0).abs() < 1e-3, "{f}: {sum}");
        least = least.min(transmitted[f] / whole);
    }
    // The row of rods has a resonance.
    assert!(least < 0.2, "{least}");
}
