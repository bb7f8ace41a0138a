//! The entries of `report.json` are enough to repeat a run, and results state the places and times of their values.

use crate::support::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

const PROGRAM: &str = r#"
use std::wave::wave_2d
use media::hill

problem pond {
  scheme   wave_2d { order = 4 }
  domain   40 x 30
  boundary x: zero | pec, y: periodic
  coef     c = file("c.npy")
  init     u = hill((x - 20) / 4) * hill((y - 15) / 3)
  source   u at (30, 20) += table("wave.csv")
  probe    u at (25, 11) as near
  output   slice u x = 20 every 3
  output   volume u every 5
  steps    10
}
"#;

pub fn npy(shape: &str, values: &[f64]) -> Vec<u8> {
    let mut head = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    while (head.len() + 11) % 64 != 0 {
        head.push(' ');
    }
    head.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((head.len() as u16).to_le_bytes());
    bytes.extend(head.as_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

/// The program with its module, its array and its table.
fn program(folder: &Path) -> PathBuf {
    let path = folder.join("pond.torre");
    fs::write(&path, PROGRAM).unwrap();
    fs::write(folder.join("media.torre"), "def hill(s) = exp(-s^2)\n").unwrap();
    fs::write(folder.join("wave.csv"), "0, 0\n1, 0.01\n2, 0\n").unwrap();
    fs::write(folder.join("c.npy"), npy("40, 30", &[0.5; 40 * 30])).unwrap();
    path
}

fn report(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap()
}

fn hash(path: &Path) -> String {
    let digest = Sha256::digest(fs::read(path).unwrap());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_report_has_all_that_is_needed_to_repeat_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(folder.path());
    let out = folder.path().join("out");
    let options = "run {0} --backend cranelift --threads 2 --set dt=0.25 --set steps=12 --out {1}";
    succeed(options, &[&source, &out]);
    let report = report(&out);
    let sources = report["sources"].as_array().unwrap();
    let named = |name: &Path| {
        let name = name.to_str().unwrap();
        let found = sources.iter().find(|s| s["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {sources:?}"))
    };
    let module = folder.path().join("media.torre");
    for file in [&source, &module] {
        assert_eq!(named(file)["sha256"], hash(file), "{file:?}");
    }
    assert!(sources.iter().any(|s| s["name"] == "std::wave"));
    let inputs = report["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), 2);
    for (input, name) in inputs.iter().zip(["c.npy", "wave.csv"]) {
        let file = folder.path().join(name);
        assert_eq!(input["file"], file.to_str().unwrap());
        assert_eq!(input["bytes"], fs::metadata(&file).unwrap().len());
        assert_eq!(input["sha256"], hash(&file));
    }
    assert_eq!(report["set"]["dt"], "0.25");
    assert_eq!(report["parameters"]["dt"], 0.25);
    assert_eq!(report["parameters"]["order"], 4.0);
    assert_eq!(report["dt"], 0.25);
    assert_eq!(report["steps"], 12);
    assert_eq!(report["cell_size"]["y"], 1.0);
    assert_eq!(report["extent"]["x"], 40.0);
    let sides = |axis: &str| report["boundaries"][axis].clone();
    assert_eq!(sides("x"), serde_json::json!(["zero", "pec"]));
    assert_eq!(sides("y"), serde_json::json!(["periodic", "periodic"]));
    assert!(report["command"].as_array().unwrap().len() > 5);
    assert!(report["host"]["processor"].is_string());
    assert!(report["started_unix_s"].as_u64().unwrap() > 1_600_000_000);
    let axis = &report["components"][0]["axes"][0];
    assert_eq!((&axis["axis"], &axis["start"]), (&"x".into(), &0.0.into()));
    assert_eq!(report["outputs"][0]["across"], "x");
    assert_eq!(report["outputs"][0]["at"], 20.0);
    // The parts are within the whole.
    let times = report["wall_seconds"].as_object().unwrap();
    let seconds = |name: &str| times[name].as_f64().unwrap();
    let parts = times.keys().filter(|name| *name != "total");
    let sum: f64 = parts.map(|name| seconds(name)).sum();
    assert!(sum <= seconds("total") * 1.001 && sum > seconds("total") * 0.5);
    assert!(seconds("stepping") > 0.0 && seconds("writing") > 0.0);
    assert_eq!(report["seconds"].as_f64(), Some(seconds("stepping")));
}

/// Sides have the words of the problem, not the ones of other physics with the same values.
#[test]
fn reports_name_sides_as_the_problem_does() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("sides.torre");
    let text = "
scheme sound {
  axes x, y, z
  param dt = 0.4
  boundary free: p odd
  field v : vector on faces at 1/2
  field p : scalar on cells
  step {
    v -= dt * [d(p, x), d(p, y), d(p, z)]
    p -= dt * (d(v.x, x) + d(v.y, y) + d(v.z, z))
  }
}
problem sides {
  scheme sound
  domain 12 x 10 x 9
  boundary x: odd | cpml(3), y: free | pmc
  steps 2
}
";
    fs::write(&source, text).unwrap();
    let out = folder.path().join("out");
    succeed("run {0} --quiet --out {1}", &[&source, &out]);
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("report.json")).unwrap()).unwrap();
    let expected = serde_json::json!({
        "x": ["odd", "cpml(3)"], "y": ["free", "pmc"], "z": ["zero", "zero"],
    });
    assert_eq!(report["boundaries"], expected);
}

#[test]
fn the_schedule_of_a_report_gives_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(folder.path());
    let out = |n: usize| folder.path().join(format!("out-{n}"));
    let schedules = [
        "auto",
        "layerwise",
        "x: skewed(P = 6) lean -x height 4",
        "x: diamond(P = 8) height 4; x: skewed(P = 3)",
        "(x, y): pyramid(base = 9) height 2",
        "(x, y): box(7)",
    ];
    for (number, schedule) in schedules.into_iter().enumerate() {
        let run = |schedule: &str, out: &Path| {
            let mut command = torre();
            command.args(["run", source.to_str().unwrap(), "--backend", "interp"]);
            command.args(["--schedule", schedule, "--out", out.to_str().unwrap()]);
            let output = command.output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{schedule}: {message}");
            report(out)
        };
        let (first, again) = (out(2 * number), out(2 * number + 1));
        let told = run(schedule, &first);
        let text = told["schedule_text"].as_str().unwrap();
        assert!(
            !schedule.contains("lean -x") || text.contains("lean -x"),
            "{text}"
        );
        let repeated = run(text, &again);
        assert_eq!(repeated["schedule_text"], text, "{schedule}");
        assert_same_files(&results(&first), &results(&again), schedule);
    }
}

#[test]
fn step_0_is_written_and_files_sort_by_their_steps() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(folder.path());
    let out = folder.path().join("out");
    let state = folder.path().join("state");
    for format in ["npy", "vtk", "zarr"] {
        let options = format!(
            "run {{0}} --backend cranelift --save-initial --overwrite --format {format} --set steps=60 --out {{1}}"
        );
        succeed(&options, &[&source, &out]);
        let names: Vec<String> = results(&out).into_keys().collect();
        let steps = |kind: &str, ending: &str| -> Vec<u64> {
            let own = names
                .iter()
                .filter(|n| n.starts_with(kind) && n.ends_with(ending))
                // All frames of the line over time.
                .filter(|n| *n != "slices/u-x20.png");
            own.map(|name| {
                let digits = name.rsplit_once('-').unwrap().1.split_once('.').unwrap().0;
                assert_eq!(digits.len(), 8, "{name}");
                digits.parse().unwrap()
            })
            .collect()
        };
        let every = |n: usize| -> Vec<u64> { (0..=60).step_by(n).collect() };
        assert_eq!(steps("slices/", ".npy"), every(3), "{format}");
        assert_eq!(steps("slices/", ".png"), every(3), "{format}");
        match format {
            "npy" => assert_eq!(steps("volumes/", ".npy"), every(5)),
            "vtk" => {
                assert_eq!(steps("volumes/", ".vti"), every(5));
                let list = fs::read_to_string(out.join("volumes/u.pvd")).unwrap();
                assert!(list.contains("timestep=\"0.0\""), "{list}");
            }
            _ => {
                let text = fs::read(out.join("volumes.zarr/zarr.json")).unwrap();
                let group: Value = serde_json::from_slice(&text).unwrap();
                let arrays = &group["consolidated_metadata"]["metadata"];
                assert_eq!(arrays["u"]["shape"], serde_json::json!([13, 40, 30]));
                assert_eq!(
                    arrays["u"]["attributes"]["stagger"],
                    serde_json::json!([0.0, 0.0])
                );
                let times = fs::read(out.join("volumes.zarr/time/c/0")).unwrap();
                assert_eq!(&times[..16], [0.0f64, 2.5].map(f64::to_le_bytes).concat());
            }
        }
    }
    // The start values are the program's: in double precision to the last bit.
    let options = "run {0} --backend interp --precision f64 --save-initial --overwrite --out {1} --checkpoint {2} \
        --every 5";
    succeed(options, &[&source, &out, &state]);
    let values = fs::read(out.join("volumes/u-00000000.npy")).unwrap();
    let values: Vec<f64> = npy_values(&values)
        .chunks_exact(8)
        .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
        .collect();
    assert_eq!(values.len(), 40 * 30);
    assert_eq!(
        (values[20 * 30 + 15], values[20 * 30 + 18]),
        (1.0, (-1f64).exp())
    );
    let slice = fs::read(out.join("slices/u-x20-00000000.npy"));
    let slice = slice.unwrap_or_else(|_| panic!("{:?}", results(&out).keys()));
    let line: Vec<u8> = values[600..630]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    assert_eq!(npy_values(&slice), line);
    // A run that goes on elsewhere says that the frame of step 0 is missing, too.
    let other = folder.path().join("other");
    let options = "run {0} --backend interp --precision f64 --save-initial --set steps=20 --resume {1} --out {2}";
    let output = run(options, &[&source, &state, &other]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    assert!(message.contains("steps 0 to 10"), "{message}");
}

#[test]
fn values_that_are_no_numbers_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.torre");
    let out = folder.path().join("out");
    let mut counted = 0;
    // A value becomes infinite in the last step, where samples of rows may or may not meet it.
    for x in 20..28 {
        let text = format!(
            "use std::wave::wave_2d\nproblem p {{\n  scheme wave_2d\n  domain 64 x 64\n  \
             source u at ({x}, 35) += 1 / (t - 10)\n  init u = 3 * x\n  steps 20\n}}\n"
        );
        fs::write(&path, text).unwrap();
        let options = "run {0} --backend cranelift --overwrite --save-final --out {1}";
        let message = fail(4, options, &[&path, &out]);
        assert!(
            message.contains("E0817") && message.contains("after step 20"),
            "{message}"
        );
        let told = report(&out);
        match told["complete"] == true {
            true => {
                counted += 1;
                assert_eq!((&told["infinite"], &told["nan"]), (&1.into(), &0.into()));
                assert_eq!(told["values"][0]["component"], "u");
                assert_eq!(told["values"][0]["infinite"], 1);
                assert!(told["values"][0]["largest"].as_f64().unwrap() > 100.0);
                assert!(out.join("fields/u.npy").exists());
            }
            false => {
                assert_eq!(told["blow_up"]["component"], "u");
                assert_eq!(told["blow_up"]["step"], 20);
                assert_eq!(told["blow_up"]["value"], "inf");
            }
        }
    }
    assert!(counted > 0, "all were met by samples");
    let options =
        "run {0} --backend cranelift --overwrite --allow-nonfinite --set steps=24 --out {1}";
    fail(4, options, &[&path, &out]);
    let told = report(&out);
    let lost = told["nan"].as_u64().unwrap() + told["infinite"].as_u64().unwrap();
    assert!(lost > 10 && told["complete"] == true, "{told}");
    // Where all is well, nothing is counted.
    succeed(
        "run {0} --backend cranelift --overwrite --set steps=9 --out {1}",
        &[&path, &out],
    );
    assert_eq!(report(&out)["nan"], 0);
    assert_eq!(report(&out)["infinite"], 0);
}

/// Signs of names that could be misread are others in the names of files, and long names are cut.
#[test]
fn the_report_names_the_files_of_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let long = "b".repeat(200);
    let text = format!(
        "
use std::maxwell::maxwell_te
problem ball {{
  scheme maxwell_te
  domain 20 x 18
  boundary x: cpml(4), y: cpml(3) | cpml(4)
  region {long} = x < 9
  source Hz at (9, 9) += sin(0.4 * t)
  output volume psi of E.x every 4
  output volume Hz every 4
  output volume {long}
  output slice Hz x = 5 every 2
  output spectrum Hz y = 5 for f = [0.1]
  steps 8
}}
"
    );
    let source = folder.path().join("ball.torre");
    fs::write(&source, text).unwrap();
    let out = folder.path().join("out");
    succeed("run {0} --quiet --out {1}", &[&source, &out]);
    let report = report(&out);
    let outputs = report["outputs"].as_array().unwrap();
    let texts = |list: &serde_json::Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let files = texts(&report["files"]);
    let mut bases = Vec::new();
    for output in outputs {
        let base = output["file"].as_str().unwrap();
        let ends = files.iter().filter_map(|file| file.strip_prefix(base));
        let ends: Vec<&str> = ends.filter(|end| end.starts_with(['-', '.'])).collect();
        assert!(!ends.is_empty(), "{base}: {files:?}");
        bases.push(base);
    }
    let layer = "volumes/psi_of_E.x_in_layer_below_y";
    for base in [layer, "volumes/Hz", "slices/Hz-x5", "spectra/Hz-y5"] {
        assert!(bases.contains(&base), "{bases:?}");
    }
}
