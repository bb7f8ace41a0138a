//! `torre bench`: the schedules that are measured, and the report. The rates are not tested: they depend on the
//! machine.

use crate::support::*;
use serde_json::Value;

const WAVE: &str = "bench examples/02-wave2d.torre --seconds 0.02 --rounds 2 --threads 2";
fn bench(arguments: &str) -> Value {
    let report = succeed(&format!("{arguments} --quiet --report json"), &[]);
    serde_json::from_str(&report).unwrap()
}

/// The schedules by name, without the order of their rates.
fn names(report: &Value) -> Vec<String> {
    let all = report["schedules"].as_array().unwrap();
    let mut names: Vec<String> = all
        .iter()
        .map(|s| s["schedule"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn layerwise_and_the_best_are_measured_in_turns() {
    let report = bench(WAVE);
    let all = report["schedules"].as_array().unwrap();
    assert_eq!(all.len(), 4);
    assert_eq!(report["cells"], 40_000.0);
    assert_eq!(report["threads"], 2);
    assert_eq!(report["verified"], false);
    assert!(report["machine"]["l2_bytes"].as_u64().unwrap() > 0);
    let number = |schedule: &Value, key: &str| schedule[key].as_f64().unwrap();
    let rates: Vec<f64> = all.iter().map(|s| number(s, "gcells_per_s")).collect();
    assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
    for schedule in all {
        let rate = number(schedule, "gcells_per_s");
        let [low, high] =
            ["lowest_gcells_per_s", "highest_gcells_per_s"].map(|key| number(schedule, key));
        assert!(0.0 < low && low <= rate && rate <= high, "{schedule}");
        assert_eq!(schedule["rounds_gcells_per_s"].as_array().unwrap().len(), 2);
        let predicted = number(schedule, "predicted_gcells_per_s");
        let ratio = number(schedule, "measured_to_predicted");
        assert!((ratio * predicted / rate - 1.0).abs() < 1e-9);
        assert!(schedule["steps_per_round"].as_u64().unwrap() > 0);
    }
    let layerwise = all.iter().find(|s| s["schedule"] == "layerwise").unwrap();
    assert_eq!(layerwise["to_layerwise"], 1.0);
    assert_eq!(layerwise["tiling"], "layerwise");
}

#[test]
fn schedules_that_are_named_are_measured_once_each() {
    let command = |more: &[&str]| {
        let output = torre()
            .args(["bench", "examples/02-wave2d.torre", "--quiet"])
            .args(["--seconds", "0.01", "--rounds", "1", "--report", "json"])
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{more:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let twice = "diamond(P = 16, TH = 8)";
    let report = command(&[
        "--schedule",
        twice,
        "--schedule",
        "layerwise",
        "--schedule",
        twice,
        "--schedule",
        "skewed(P = 8, TH = 4)",
    ]);
    assert_eq!(
        names(&report),
        [
            "diamond(P = 16, TH = 8, Z = 0)",
            "layerwise",
            "skewed(P = 8, TH = 4, Z = 0)"
        ]
    );
    let open = "diamond(P = 8..9, TH = 4..5)";
    let sizes = |more: &[&str]| names(&command(&[&["--schedule", open], more].concat())).len();
    assert_eq!(sizes(&[]), 2);
    assert_eq!(sizes(&["--count", "2"]), 3);
    // Two widths and two heights; three of them with layerwise.
    let all = sizes(&["--all"]);
    assert!((3..=17).contains(&all), "{all}");
    // Rates of the schedules that take steps in time blocks count whole time blocks.
    for schedule in command(&["--schedule", twice])["schedules"]
        .as_array()
        .unwrap()
    {
        if schedule["schedule"] != "layerwise" {
            assert_eq!(schedule["steps_per_round"].as_u64().unwrap() % 8, 0);
        }
    }
}

#[test]
fn schedules_are_verified_on_every_back_end() {
    let mut backends = vec!["interp", "cranelift"];
    if has_llvm() {
        backends.push("llvm");
    }
    for backend in backends {
        for precision in ["f32", "f64"] {
            let seconds = "--seconds 0.01 --rounds 1 --threads 2 --count 2 --verify";
            // Interpreted, small; sources, and records that are left out.
            let wave = "bench examples/07-acoustics2d.torre --set domain=240x60";
            let report = bench(&format!(
                "{wave} {seconds} --backend {backend} --precision {precision}"
            ));
            assert_eq!(report["verified"], true, "{backend}");
            assert_eq!(report["backend"], backend);
            assert_eq!(report["precision"], precision);
            assert_eq!(names(&report).len(), 3);
        }
    }
}

#[test]
fn text_and_files_say_the_same_in_three_dimensions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.json");
    let (name, text) = examples()
        .into_iter()
        .find(|(name, _)| name == "08-maxwell42")
        .unwrap();
    let source = place_example(folder.path(), &name, &text);
    let text = succeed(
        "bench {0} --seconds 0.01 --rounds 1 --count 1 --report {1}",
        &[&source, &file],
    );
    assert!(text.contains("52 x 40 x 36 cells, f32"), "{text}");
    assert!(
        text.contains("  layerwise\n") && text.contains("  torre("),
        "{text}"
    );
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(names(&report).len(), 2);
    for name in names(&report) {
        assert!(text.contains(&name), "{text}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for wrong in [
        "--seconds 0",
        "--seconds nan",
        "--rounds 0",
        "--count 0",
        "--count 2 --all",
        "--backend reference",
    ] {
        fail(2, &format!("bench examples/02-wave2d.torre {wrong}"), &[]);
    }
    let output = torre()
        .args(["bench", "examples/02-wave2d.torre", "--schedule"])
        .arg("x: diamond(P = 16) slope 1 height 4")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("E0852"));
    let error = fail(
        1,
        "bench examples/15-gray-scott.torre --set domain=400000x400000",
        &[],
    );
    assert!(error.contains("memory"), "{error}");
}
