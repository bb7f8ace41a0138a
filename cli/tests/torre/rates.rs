//! Learned rates: the records of runs, and their use in commands.

use crate::support::*;
use serde_json::Value;
use std::path::PathBuf;

/// A grid for which the model prefers tiles to sweeps, on the machine below.
const LARGE: &str = "domain=3000x2500";

/// One on which a run takes about a second.
const SMALL: &str = "domain=600x500";

/// Measurements of an undisturbed machine.
const MACHINE: &str = "l1 32768
l2 1048576
l3 33554432
l2_rate 2e11
l3_rate 1.96e11
l3_rate_all 3.92e11
l3_rate_far 1.9e11
memory_rate 5.5e10
memory_rate_all 1.1e11
vector_rate 9e9
vector_rate_all 1.8e10
vector_rate_slowest 9e9
vector_bytes 64
";

/// A wave, whose schedules are predicted in no time.
const WAVES: &str = "
use std::wave::wave_2d
problem waves {
  scheme   wave_2d
  domain   600 x 500
  boundary x: pmc, y: periodic
  init     u = exp(-((x - 90) / 4)^2 - ((y - 70) / 6)^2)
  steps    20000
}
";

/// A user's folder for caches, with the program in it.
struct Cache(tempfile::TempDir);

impl Cache {
    /// A folder of the user in which this machine is known.
    fn new() -> Self {
        let cache = Self(tempfile::tempdir().unwrap());
        let measured = machine_file();
        let head = measured.lines().next().unwrap();
        plant_machine(cache.0.path(), &format!("{head}\n{MACHINE}"));
        std::fs::write(cache.program(), WAVES).unwrap();
        cache
    }

    fn program(&self) -> String {
        let path = self.0.path().join("waves.torre");
        path.to_str().unwrap().to_owned()
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("torre/rates.txt")
    }

    /// Runs a command with a value of `TORRE_RATES`: exit status, stdout and stderr.
    fn run(&self, words: &[&str], rates: &str) -> (Option<i32>, String, String) {
        let output = torre()
            .args(words)
            .env("XDG_CACHE_HOME", self.0.path())
            .env("TORRE_RATES", rates)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// The same, which must succeed: stdout and stderr.
    #[track_caller]
    fn succeed(&self, words: &[&str], rates: &str) -> (String, String) {
        let (status, stdout, stderr) = self.run(words, rates);
        assert_eq!(status, Some(0), "{words:?}: {stderr}");
        (stdout, stderr)
    }

    /// The report of a command, by learned rates.
    #[track_caller]
    fn report(&self, words: &[&str]) -> Value {
        let words = [words, &["--report", "json"]].concat();
        serde_json::from_str(&self.succeed(&words, "learned").0).unwrap()
    }

    /// Records as if runs on the processor had made them, by the cases and ratios of each.
    fn plant(&self, records: &[(&Value, &str, &str)]) {
        let machine = self.report(&["machine"]);
        let computer = machine["learned"]["processor"].as_str().unwrap();
        self.plant_on(computer, records);
    }

    fn plant_on(&self, computer: &str, records: &[(&Value, &str, &str)]) {
        let lines: String = records
            .iter()
            .map(|(case, kind, ratios)| {
                let sizes: Vec<String> = case["sizes"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|size| match *kind == "layerwise" {
                        true => "0".to_owned(),
                        false => size.as_f64().unwrap().to_string(),
                    })
                    .collect();
                format!(
                    "{computer}\t{}\t{kind}\t{}\t{}\t{}\t{ratios}\n",
                    case["family"].as_str().unwrap(),
                    sizes.join(" "),
                    case["log2_cells"],
                    ratios.split(' ').count(),
                )
            })
            .collect();
        let text = format!("torre rates 1\n{lines}end {}\n", records.len());
        std::fs::write(self.file(), text).unwrap();
    }
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn planted_runs_change_what_is_expected_and_enough_of_them_the_choice() {
    let cache = Cache::new();
    let program = cache.program();
    let plan = ["plan", &program, "--set", LARGE];
    let before = cache.report(&plan);
    let schedule = before["schedule"].as_str().unwrap();
    assert!(schedule != "layerwise", "{schedule}");
    assert!(before["learned_gcells_per_s"].is_null());
    assert_eq!(before["learned"]["runs"], 0);
    let case = &before["learned"]["case"];
    assert_eq!(case["kind"], "tiles");
    let (text, note) = cache.succeed(&plan, "learned");
    assert!(
        !text.contains("learned") && !note.contains("learned"),
        "{text}{note}"
    );
    // One run of each: another expectation, and no other choice.
    cache.plant(&[(case, "tiles", "0.4"), (case, "layerwise", "1.5")]);
    let after = cache.report(&plan);
    assert_eq!(after["schedule"], before["schedule"]);
    assert_eq!(
        after["predicted_gcells_per_s"],
        before["predicted_gcells_per_s"]
    );
    let ratio = number(&after["learned"]["ratio"]);
    assert!((0.38..0.6).contains(&ratio), "{ratio}");
    let learned = number(&after["learned_gcells_per_s"]);
    let predicted = number(&after["predicted_gcells_per_s"]);
    assert!((learned / predicted / ratio - 1.0).abs() < 1e-9);
    assert_eq!(after["learned"]["runs"], 2);
    assert_eq!(after["learned"]["runs_of_case"], 1);
    assert!(after["learned"]["instead_of"].is_null());
    let others = after["alternatives"].as_array().unwrap();
    let plain = others.iter().find(|other| other["schedule"] == "layerwise");
    let plain = plain.unwrap();
    assert!(number(&plain["learned_gcells_per_s"]) > number(&plain["predicted_gcells_per_s"]));
    let (text, note) = cache.succeed(&plan, "learned");
    let line = text
        .lines()
        .find(|line| line.starts_with("  learned "))
        .unwrap();
    assert!(
        line.ends_with("learned from 2 runs on this machine, 1 of them of this case"),
        "{line}"
    );
    assert!(text.contains("Gcells/s  learned  memory"), "{text}");
    assert!(
        !text.contains("instead of") && !note.contains("learned"),
        "{text}{note}"
    );
    // Two of each: sweeps are expected to be faster now.
    cache.plant(&[(case, "tiles", "0.1 0.1"), (case, "layerwise", "3 3")]);
    let after = cache.report(&plan);
    assert_eq!(after["schedule"], "layerwise");
    assert_eq!(
        after["learned"]["instead_of"]["schedule"],
        before["schedule"]
    );
    let instead = &after["learned"]["instead_of"];
    assert!(number(&instead["learned_gcells_per_s"]) < number(&after["learned_gcells_per_s"]));
    assert!(number(&instead["predicted_gcells_per_s"]) > number(&after["predicted_gcells_per_s"]));
    let (text, _) = cache.succeed(&plan, "learned");
    let expected = format!("by learned rates `layerwise` is taken instead of `{schedule}`");
    assert!(text.contains(&expected), "{text}");
    // Runs say it and do it as well.
    let run = ["run", &program, "--set", LARGE, "--set", "steps=2"];
    let (text, note) = cache.succeed(&run, "learned");
    assert!(note.contains(&expected), "{note}");
    assert!(text.contains(", layerwise, f32, "), "{text}");
    assert!(text.contains(" Gcells/s, modelled; "), "{text}");
    assert_eq!(cache.report(&run)["schedule"], "layerwise");
    // A schedule that was asked for stays, and its rate is corrected.
    let own = cache.report(&[&plan[..], &["--schedule", "skewed(P = 16, TH = 16)"]].concat());
    assert!(own["schedule"].as_str().unwrap().starts_with("skewed("));
    assert!(number(&own["learned"]["ratio"]) < 0.6);
}

#[test]
fn learned_rates_are_left_out_where_they_are_not_wanted_or_of_something_else() {
    let cache = Cache::new();
    let program = cache.program();
    let plan = ["plan", &program, "--set", LARGE];
    let before = cache.report(&plan);
    let case = &before["learned"]["case"];
    let strong = [(case, "tiles", "0.1 0.1"), (case, "layerwise", "3 3")];
    cache.plant(&strong);
    assert_ne!(cache.report(&plan)["schedule"], before["schedule"]);
    let modelled = |words: &[&str], variable: &str| -> Value {
        let words = [words, &["--report", "json"]].concat();
        serde_json::from_str(&cache.succeed(&words, variable).0).unwrap()
    };
    let same = |report: &Value, why: &str| {
        for key in ["schedule", "predicted_gcells_per_s", "learned_gcells_per_s"] {
            assert_eq!(report[key], before[key], "{why}: {key}");
        }
        assert_eq!(report["learned"]["runs"], 0, "{why}");
    };
    same(&modelled(&plan, "modelled"), "the variable");
    let asked = [&plan[..], &["--rates", "modelled"]].concat();
    same(&modelled(&asked, "learned"), "the option");
    let asked = [&plan[..], &["--rates", "learned"]].concat();
    assert_eq!(modelled(&asked, "modelled")["schedule"], "layerwise");
    let (status, _, error) = cache.run(&plan, "some");
    assert_eq!(status, Some(2));
    assert!(
        error.contains("`TORRE_RATES` is `learned` or `modelled`"),
        "{error}"
    );
    // Other threads, other measurements and other versions are other computers.
    let threads = [&plan[..], &["--threads", "3"]].concat();
    let three = cache.report(&threads);
    assert_eq!(
        three["learned"]["runs"],
        u64::from(before["threads"] == 3) * 4
    );
    let path = cache.0.path().join("torre/machine.txt");
    let machine = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, machine.replace("1.96e11", "1.961e11")).unwrap();
    assert_eq!(cache.report(&plan)["learned"]["runs"], 0);
    std::fs::write(&path, machine).unwrap();
    // Another back end.
    let interp = [&plan[..], &["--backend", "interp"]].concat();
    same(&cache.report(&interp), "the interpreter");
    // A GPU that is only described.
    let described = [&plan[..], &["--backend", "cuda", "--target", "sm_90"]].concat();
    let first = cache.report(&described);
    let device = &first["device"];
    let computer = format!(
        "1 x {}, {} multiprocessors, torre {}",
        device["name"].as_str().unwrap(),
        device["multiprocessors"],
        env!("CARGO_PKG_VERSION")
    );
    let case = &first["learned"]["case"];
    let kind = case["kind"].as_str().unwrap();
    cache.plant_on(&computer, &[(case, kind, "0.1 0.1")]);
    assert_eq!(cache.report(&described), first);
    // A damaged file.
    cache.plant(&strong);
    let text = std::fs::read_to_string(cache.file()).unwrap();
    std::fs::write(cache.file(), text.replace("end 2", "end 3")).unwrap();
    same(&cache.report(&plan), "damage");
    let (_, note) = cache.succeed(&plan, "learned");
    assert!(note.contains("rates.txt` is damaged"), "{note}");
    let (_, note) = cache.succeed(&plan, "modelled");
    assert!(!note.contains("damaged"), "{note}");
    let (text, _) = cache.succeed(&["machine"], "learned");
    assert!(text.contains("rates.txt` is damaged"), "{text}");
}

#[test]
fn a_run_records_its_rate_and_is_forgotten() {
    if !has_llvm() {
        return;
    }
    let cache = Cache::new();
    let program = cache.program();
    let run = ["run", &program, "--threads", "1", "--set", SMALL];
    let with = |more: &[&'static str]| cache.report(&[&run[..], more].concat());
    let reason = |report: &Value| {
        assert_eq!(report["learned"]["recorded"], false);
        assert!(!cache.file().exists());
        report["learned"]["not_recorded_because"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        reason(&with(&["--rates", "modelled"])),
        "rates are modelled"
    );
    assert_eq!(
        reason(&with(&["--set", "steps=3"])),
        "it computed for less than 0.3 s"
    );
    let compared = with(&["--set", "steps=9", "--verify"]);
    assert!(reason(&compared).starts_with("it was compared"));
    // Others may disturb it, which a run sees.
    let recorded = (0..8).find_map(|_| {
        let report = with(&["--schedule", "layerwise"]);
        match report["learned"]["recorded"].as_bool() {
            Some(true) => Some(report),
            _ => {
                assert!(number(&report["seconds"]) > 0.3, "{report}");
                assert_eq!(reason(&report), "others used the machine");
                None
            }
        }
    });
    let Some(report) = recorded else {
        return println!("skipped: others use the machine all the time");
    };
    let ratio = number(&report["gcells_per_s"]) / number(&report["predicted_gcells_per_s"]);
    let machine = cache.report(&["machine"]);
    let records = machine["learned"]["records"].as_array().unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["runs"], 1);
    assert_eq!(records[0]["case"], report["learned"]["case"]);
    assert_eq!(records[0]["case"]["log2_cells"], 18);
    assert!((number(&records[0]["ratio"]) / ratio - 1.0).abs() < 1e-6);
    // The next one knows it.
    let plan = [&["plan"], &run[1..], &["--schedule", "layerwise"]].concat();
    let plan = cache.report(&plan);
    assert_eq!(plan["learned"]["runs_of_case"], 1);
    let left = number(&plan["learned"]["ratio"]) / ratio;
    assert!((0.7..1.4).contains(&left), "{left}");
    let (text, _) = cache.succeed(&["machine"], "learned");
    assert!(text.contains("learned     from 1 run, "), "{text}");
    let (text, _) = cache.succeed(&["machine", "--forget"], "learned");
    assert!(text.contains("learned     none yet, in "), "{text}");
    assert!(!cache.file().exists());
}

#[test]
fn a_run_compares_schedules_and_its_values_stay_the_same() {
    if !has_llvm() {
        return;
    }
    let cache = Cache::new();
    let program = cache.program();
    let run = |wish: &str, more: &[&str]| {
        let out = cache.0.path().join(format!("out-{wish}"));
        let output = torre()
            .args(["run", &program, "--set", SMALL, "--set", "steps=40001"])
            .args(["--save-final", "--overwrite", "--report", "json", "--out"])
            .arg(&out)
            .args(more)
            .env("XDG_CACHE_HOME", cache.0.path())
            .env("TORRE_RATES", "learned")
            .env("TORRE_TUNING", wish)
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        (
            output.status.code(),
            output.stdout,
            error,
            out.join("fields/u.npy"),
        )
    };
    let report = |wish: &str, more: &[&str]| -> (Value, Vec<u8>) {
        let (status, stdout, error, values) = run(wish, more);
        assert_eq!(status, Some(0), "{error}");
        let report = serde_json::from_slice(&stdout).unwrap();
        (report, std::fs::read(values).unwrap())
    };
    let (plain, expected) = report("never", &[]);
    assert!(plain.get("tuning").is_none(), "{plain}");
    let (tried, values) = report("always", &[]);
    assert!(values == expected, "tuning changed values");
    let timings = tried["tuning"].as_array().unwrap();
    assert!((2..=4).contains(&timings.len()), "{tried}");
    let names: Vec<&str> = timings
        .iter()
        .map(|timing| timing["schedule"].as_str().unwrap())
        .collect();
    assert_eq!(names[0], plain["schedule"]);
    assert!(!names[1..].contains(&names[0]), "{names:?}");
    let steps: Vec<u64> = timings
        .iter()
        .map(|timing| timing["steps"].as_u64().unwrap())
        .collect();
    assert!(steps[0] > 0 && steps[1] > 0, "{tried}");
    let taken: Vec<&Value> = timings
        .iter()
        .filter(|timing| timing["taken"] == true)
        .collect();
    assert_eq!(taken.len(), 1, "{timings:?}");
    assert_eq!(taken[0]["schedule"], tried["schedule"]);
    assert_eq!(taken[0]["schedule_text"], tried["schedule_text"]);
    // Others may have used the machine.
    if tried["learned"]["recorded"] == true {
        let records = cache.report(&["machine"])["learned"]["records"].clone();
        assert!(records.as_array().unwrap().len() >= 2, "{records}");
    }
    // Nothing is tried where the schedule was asked for, and not in short runs.
    for (wish, more) in [
        ("always", vec!["--schedule", "layerwise"]),
        ("always", vec!["--rates", "modelled"]),
        ("always", vec!["--backend", "cranelift"]),
        ("", vec![]),
    ] {
        let (report, values) = report(wish, &more);
        assert!(report.get("tuning").is_none(), "{more:?}: {report}");
        assert!(values == expected);
    }
    let (status, _, error, _) = run("sometimes", &[]);
    assert_eq!(status, Some(2), "{error}");
    assert!(
        error.contains("`TORRE_TUNING` is `always` or `never`"),
        "{error}"
    );
}
