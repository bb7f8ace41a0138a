//! The fields of reports, as the book has them and as they are printed.

use crate::support::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The part of a chapter from a heading to the next one.
fn section(chapter: &str, heading: &str) -> String {
    let path = root().join("docs/src").join(chapter);
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap().to_owned()
}

/// The fields of the table with this head: the names in its first column.
fn fields(section: &str, head: &str) -> BTreeSet<String> {
    let mut lines = section.lines();
    lines.find(|line| *line == format!("| {head} | holds |"));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(1);
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let found: BTreeSet<String> = cells.flat_map(quoted).collect();
    assert!(!found.is_empty(), "{head}");
    found
}

/// The words between backquotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// The keys of all objects in a value, without objects whose keys are names of a program.
fn inner(value: &Value) -> BTreeSet<String> {
    const NAMES: [&str; 5] = ["parameters", "set", "cell_size", "extent", "boundaries"];
    match value {
        Value::Array(list) => list.iter().flat_map(inner).collect(),
        Value::Object(map) => {
            let below = map.iter().filter(|(key, _)| !NAMES.contains(&key.as_str()));
            let below = below.flat_map(|(_, value)| inner(value));
            keys(value).into_iter().chain(below).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// The keys of some reports together are the fields of a table, and all keys of what is in them are named in the text.
#[track_caller]
fn agree(reports: &[&Value], documented: &BTreeSet<String>, text: &str) {
    let printed: BTreeSet<String> = reports.iter().flat_map(|report| keys(report)).collect();
    assert_eq!(printed, *documented);
    let named: BTreeSet<String> = quoted(text).into_iter().collect();
    let printed = reports.iter().flat_map(|report| inner(report));
    let missing: Vec<String> = printed.filter(|key| !named.contains(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn report(arguments: &str, paths: &[&Path]) -> Value {
    let text = succeed(&format!("{arguments} --report json"), paths);
    serde_json::from_str(&text).unwrap()
}

const TOWERS: &str = "
use std::maxwell::maxwell
use std::layers::cpml
problem towers {
  scheme   maxwell { h = 1 }
  domain   2400 x 600 x 128
  boundary x: cpml(8), y: pec, z: pec
  source   E.z at (5, 21, 9) += sin(t)
  output   slice E.z z = 5 every 100
  steps    1000
}
";

const PLANE: &str = "
use std::maxwell::maxwell_tm
problem plane {
  scheme   maxwell_tm { h = 1 }
  domain   30 x 20
  boundary all: pec
  init     Ez = exp(-(x - 15)^2 - (y - 10)^2)
  incident wave { direction (1, 0); drive Ez = sin(0.2 * t) }
  total    x = 8..20, y = 6..14 from wave
  output   slice Ez x = 8 every 5
  output   slice eps x = 8
  steps    20
}
";

const LAYERS: &str = "
use std::maxwell::maxwell_tm
problem layers {
  scheme   maxwell_tm { h = 1 }
  domain   30 x 20
  boundary x: cpml(4), y: pec
  coef     eps = 2 + sin(x * y)
  coef     mu = 2 + sin(x)
  steps    20
}
";

#[test]
fn the_book_has_the_fields_of_all_reports() {
    let folder = tempfile::tempdir().unwrap();
    let [towers, plane, wrong] = ["towers", "plane", "wrong"].map(|name| folder.path().join(name));
    std::fs::write(&towers, TOWERS).unwrap();
    std::fs::write(&plane, PLANE).unwrap();
    std::fs::write(&wrong, PLANE.replace("h = 1", "g = 1")).unwrap();
    let disk = folder.path().join("disk");
    let runs = section("files.md", "The report");
    let all = std::fs::read_to_string(root().join("docs/src/reports.md")).unwrap();
    let all = format!("{all}{runs}");
    let of = |heading: &str| fields(&section("reports.md", heading), "field");

    let output = run("check {0} --report json", &[&wrong]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found: Vec<&Value> = found.as_array().unwrap().iter().collect();
    assert!(!found.is_empty());
    agree(&found, &of("check"), &all);
    agree(&[&report("machine", &[])], &of("machine"), &all);

    let on_gpu = "plan {0} --backend cuda --target sm_90";
    let by_towers = format!("{on_gpu} --schedule torre(D=2,TH=16)");
    let plans = [
        report("plan {0}", &[&plane]),
        report("plan {0} --window {1}", &[&plane, &disk]),
        report(on_gpu, &[&plane]),
        report(&by_towers, &[&towers]),
        report(&format!("{by_towers} --window host"), &[&towers]),
        report(
            &format!("{by_towers} --window slabs --memory 3GB"),
            &[&towers],
        ),
        report(&format!("{by_towers} --devices 0,1"), &[&towers]),
    ];
    let plans = plans.each_ref();
    agree(&plans, &of("plan"), &all);
    let windows = plans.map(|plan| &plan["window"]);
    let windows: Vec<&Value> = windows.into_iter().filter(|w| w.is_object()).collect();
    assert_eq!(windows.len(), 4);
    let window = fields(&section("reports.md", "plan"), "field of `window`");
    agree(&windows, &window, &all);
    for plan in plans {
        let [expected, in_memory] = ["predicted_gcells_per_s", "in_memory_gcells_per_s"];
        match plan["window"].get(expected) {
            Some(rate) => assert!(plan[expected] == *rate && plan[expected] != plan[in_memory]),
            None if plan["window"].is_null() => assert_eq!(plan[expected], plan[in_memory]),
            None => {
                let bound = &plan["window"]["transfers_allow_gcells_per_s"];
                let [expected, bound] = [&plan[expected], bound].map(|v| v.as_f64().unwrap());
                assert!(expected <= bound, "{plan}");
            }
        }
    }

    let measured = report("bench {0} --quiet --seconds 0.01 --rounds 1", &[&plane]);
    let bench = BTreeSet::from(["device".to_owned()]);
    let bench: BTreeSet<String> = of("bench").difference(&bench).cloned().collect();
    agree(&[&measured], &bench, &all);

    let analysis = report("analyze {0}", &[&plane]);
    agree(&[&analysis], &of("analyze"), &all);
    let accuracy = fields(&section("reports.md", "analyze"), "field of `accuracy`");
    agree(&[&analysis["accuracy"]], &accuracy, &all);

    let built = folder.path().join("built");
    let layers = folder.path().join("layers");
    std::fs::write(&layers, LAYERS).unwrap();
    succeed("build {0} -o {1}", &[&layers, &built]);
    let text = std::fs::read_to_string(built.join("layers.json")).unwrap();
    let built: Value = serde_json::from_str(&text).unwrap();
    assert!(!built["states"].as_array().unwrap().is_empty());
    agree(&[&built], &of("build"), &all);

    let runs_report = report("run {0} --quiet --window {1}", &[&plane, &disk]);
    let elsewhere = [
        "blow_up",
        "planes",
        "spilled_bytes_of_thread",
        "timeline",
        "tuning",
    ];
    let mut documented = fields(&runs, "field");
    for key in elsewhere {
        assert!(documented.remove(key), "{key}");
    }
    agree(&[&runs_report], &documented, &all);
    // A plan tells the same as the run.
    let planned = plans[1];
    assert_eq!(runs_report["window"], planned["window"]);
    let [run, plan] =
        [&runs_report, planned].map(|v| v["predicted_gcells_per_s"].as_f64().unwrap());
    assert!((run / plan - 1.0).abs() < 1e-9, "{run} {plan}");
}
