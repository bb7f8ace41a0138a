//! Runs whose values become infinite end, with any back end, and report the place.

use crate::support::*;
use std::path::{Path, PathBuf};

/// Programs with one, two and three axes whose values grow by a factor of about 2 in each step.
fn programs(folder: &Path) -> Vec<(PathBuf, Vec<&'static str>)> {
    let write = |axes: usize, domain: &str| {
        let scheme = ["wave_1d", "wave_2d", "wave"][axes - 1];
        let dt = [1.06, 0.75, 0.62][axes - 1];
        let text = format!(
            "use std::wave::{scheme}\nproblem grows {{\n  scheme {scheme} {{ dt = {dt} }}\n  domain {domain}\n  \
             init u = exp(-((x - 9) / 2)^2)\n  steps 4000\n}}\n"
        );
        let path = folder.join(format!("{axes}.torre"));
        std::fs::write(&path, text).unwrap();
        path
    };
    vec![
        (
            write(1, "70"),
            vec![
                "layerwise",
                "x: diamond(D = 8) height 16",
                "x: pyramid(base = 20) height 4",
            ],
        ),
        (
            write(2, "40 x 30"),
            vec![
                "layerwise",
                "x: diamond(D = 8) height 8",
                "(x, y): pyramid(base = 12) height 4",
            ],
        ),
        (
            write(3, "20 x 18 x 24"),
            vec![
                "layerwise",
                "torre(D = 2, TH = 8)",
                "torre(D = 2, TH = 1)",
                "(x, y): pyramid(base = 8) height 2",
                "(x, y): box(8)",
            ],
        ),
    ]
}

/// The step in a message.
fn step(message: &str) -> u64 {
    let after = message
        .split("after step ")
        .nth(1)
        .unwrap_or_else(|| panic!("{message}"));
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn every_order_of_execution_ends_soon_and_says_where() {
    let folder = tempfile::tempdir().unwrap();
    for (program, schedules) in programs(folder.path()) {
        let path = program.to_str().unwrap();
        let run = |options: &[&str]| {
            let output = torre()
                .args(["run", path, "--allow-unstable"])
                .args(options)
                .output()
                .unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            (output.status.code(), stderr)
        };
        let (status, message) = run(&["--backend", "reference"]);
        assert_eq!(status, Some(4), "{message}");
        assert!(
            message.contains("E0817") && message.contains("`u` is "),
            "{message}"
        );
        // The reference looks at every value after every step.
        let first = step(&message);
        assert!(first > 20 && first < 1500, "{message}");
        for schedule in schedules {
            for threads in ["1", "3"] {
                let options = [
                    "--backend",
                    "interp",
                    "--schedule",
                    schedule,
                    "--threads",
                    threads,
                ];
                let (status, message) = run(&options);
                assert_eq!(status, Some(4), "{schedule}: {message}");
                let found = step(&message);
                // All rows have been looked at after 256 steps; values spread, so that it takes less.
                assert!(
                    (first..=first + 256).contains(&found),
                    "{schedule}: {first} {found}"
                );
            }
        }
        let (status, message) = run(&[
            "--backend",
            "cranelift",
            "--set",
            &format!("steps={}", first - 1),
        ]);
        assert_eq!(status, Some(0), "{message}");
        let more = format!("steps={}", first + 270);
        let (status, message) = run(&[
            "--backend",
            "cranelift",
            "--set",
            &more,
            "--allow-nonfinite",
        ]);
        assert_eq!(status, Some(4), "{message}");
        assert!(message.contains("note E0817: values are NaN or infinite at the end"));
        assert_eq!(step(&message), first + 270, "{message}");
    }
}

#[test]
fn a_source_that_is_infinite_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.torre");
    let text = "use std::wave::wave_2d\nproblem p {\n  scheme wave_2d\n  domain 64 x 64\n  \
                source u at (33, 35) += 1 / (t - 20)\n  steps 400\n}\n";
    std::fs::write(&path, text).unwrap();
    let error = fail(4, "run {0} --backend cranelift --threads 2", &[&path]);
    // Steps of 1/2: the source is infinite at the 40th.
    assert!((40..=80).contains(&step(&error)), "{error}");
}

#[test]
fn results_up_to_then_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (program, _) = programs(folder.path()).swap_remove(1);
    let text = std::fs::read_to_string(&program).unwrap();
    let text = text.replace("  steps", "  output volume u every 20\n  steps");
    std::fs::write(&program, text).unwrap();
    let out = folder.path().join("out");
    fail(
        4,
        "run {0} --allow-unstable --backend cranelift --out {1}",
        &[&program, &out],
    );
    let volumes = std::fs::read_dir(out.join("volumes")).unwrap().count();
    assert!(volumes >= 2, "{volumes}");
    let report = std::fs::read(out.join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["complete"], false);
    let found = &report["blow_up"];
    assert_eq!(found["component"], "u");
    let step = found["step"].as_u64().unwrap();
    assert!(step > 20);
    let value = &found["value"];
    assert!(
        value.as_f64().is_some_and(|value| value.abs() > 1e30)
            || ["NaN", "inf", "-inf"].iter().any(|text| value == text),
        "{value}"
    );
    // All else that a run says of itself.
    assert_eq!(report["steps_run"], step);
    let whole = folder.path().join("whole");
    let fewer = format!(
        "run {{0}} --allow-unstable --backend cranelift --set steps={} --out {{1}}",
        step / 20 * 20 - 20
    );
    succeed(&fewer, &[&program, &whole]);
    let whole: serde_json::Value =
        serde_json::from_slice(&std::fs::read(whole.join("report.json")).unwrap()).unwrap();
    for (name, value) in whole.as_object().unwrap() {
        let own = report
            .get(name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        let unknown = ["gcells_per_s", "nan", "infinite", "values"].contains(&name.as_str());
        assert_eq!(own.is_null(), unknown || value.is_null(), "{name}: {own}");
    }
}

/// Probes, slices and reductions of the steps before are those of a run that goes on.
#[test]
fn results_of_the_steps_before_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    for (axes, (program, schedules)) in programs(folder.path()).into_iter().enumerate() {
        let plain = std::fs::read_to_string(&program).unwrap();
        let places = [
            "(9), (50), (0)",
            "(9, 12), (30, 20), (0, 5)",
            "(9, 9, 9), (15, 12, 20), (0, 5, 5)",
        ][axes];
        let probes = places
            .replace("), (", ") as far\n  probe u at (")
            .replacen(") as far", ")", 1);
        let slice = [
            "",
            "output slice u y = 12 every 10",
            "output slice u z = 11 every 10",
        ][axes];
        let outputs = format!("  probe u at {probes} as still\n  {slice}\n  steps");
        let recorded = format!("  record most = max(u) every 7\n{outputs}");
        for (outputs, schedules) in [(outputs, schedules), (recorded, vec!["layerwise"])] {
            std::fs::write(&program, plain.replace("  steps", &outputs)).unwrap();
            let all = folder.path().join(format!("all{axes}"));
            let run = |more: &[&str], out: &Path| {
                let mut command = torre();
                command.args([
                    "run",
                    program.to_str().unwrap(),
                    "--allow-unstable",
                    "--overwrite",
                ]);
                command.args([
                    "--backend",
                    "interp",
                    "--threads",
                    "2",
                    "--out",
                    out.to_str().unwrap(),
                ]);
                let output = command.args(more).output().unwrap();
                let message = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(4), "{message}");
                step(&message)
            };
            let soonest = run(&["--schedule", "layerwise"], &all);
            let steps = format!("steps={}", soonest + 300);
            run(&["--allow-nonfinite", "--set", &steps], &all);
            for schedule in schedules {
                let out = folder.path().join(format!("early{axes}"));
                let found = run(&["--schedule", schedule], &out);
                let lines = |folder: &Path, name: &str| -> Vec<String> {
                    let text = std::fs::read_to_string(folder.join(name)).unwrap();
                    text.lines().map(str::to_owned).collect()
                };
                let early = lines(&out, "probes.csv");
                assert!(lines(&all, "probes.csv").starts_with(&early), "{schedule}");
                // Values become infinite some steps after they pass 1e30, and a strip may be two time blocks of 16
                // steps behind another one.
                let rows = early.len() as u64 - 1;
                assert!(
                    rows + 48 > soonest && rows <= found,
                    "{schedule}: {rows}, {soonest}, {found}"
                );
                if axes > 0 {
                    let slices = out.join("slices");
                    let frames: Vec<_> = std::fs::read_dir(&slices).unwrap().collect();
                    let arrays: Vec<_> = frames
                        .into_iter()
                        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                        .filter(|name| name.ends_with(".npy"))
                        .collect();
                    assert!(
                        arrays.len() as u64 * 10 + 100 > found,
                        "{schedule}: {arrays:?}, {found}"
                    );
                    for name in arrays {
                        let [early, all] = [&slices, &all.join("slices")]
                            .map(|f| std::fs::read(f.join(&name)).unwrap());
                        assert!(early == all, "{schedule}: {name}");
                    }
                }
                if outputs.contains("record") {
                    let early = lines(&out, "series.csv");
                    assert!(lines(&all, "series.csv").starts_with(&early), "{schedule}");
                    assert!(early.len() as u64 * 7 + 7 > soonest, "{early:?}");
                }
            }
        }
    }
}
