//! Runs that are stopped, killed and continued end with the same files as other runs.

use crate::support::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_resumed_run_gives_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 40);
    for format in ["npy", "zarr", "vtk"] {
        for precision in ["f32", "f64"] {
            let path = |name: &str| folder.path().join(format!("{name}-{format}-{precision}"));
            let (whole, parts, state) = (path("whole"), path("parts"), path("state"));
            let common =
                format!("run {{0}} --quiet --save-final --format {format} --precision {precision}");
            succeed(&format!("{common} --out {{1}}"), &[&source, &whole]);
            let stop = "--set steps=13 --checkpoint {2}";
            succeed(
                &format!("{common} --out {{1}} {stop}"),
                &[&source, &parts, &state],
            );
            // By another back end, with a check, writing checkpoints on its way.
            let resume = "--set steps=29 --resume {2} --checkpoint {2} --every 5 --verify";
            succeed(
                &format!("{common} --out {{1}} --backend cranelift {resume}"),
                &[&source, &parts, &state],
            );
            succeed(
                &format!("{common} --out {{1}} --resume {{2}}"),
                &[&source, &parts, &state],
            );
            let (whole, mut parts) = (results(&whole), results(&parts));
            if format == "zarr" {
                // A run that may be continued keeps the files of which a longer one makes its store.
                parts.retain(|name, _| !(name.starts_with("volumes/") && name.ends_with(".npy")));
            }
            assert_same_files(&whole, &parts, format);
        }
    }
}

/// The line of a plane wave is no part of a checkpoint: a run that goes on computes it again.
#[test]
fn fields_come_in_after_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("pulse.torre");
    let text = "use std::acoustics::acoustics_2d
problem pulse {
  scheme acoustics_2d
  domain 40 x 30
  boundary all: cpml(5)
  incident wave { direction (2, 1); drive p = exp(-((t - 6)/2)^2) }
  incident beam { p = sin(y / 9) * sin(t - x); v.x = sin(y / 9) * sin(t - x); v.y = 0 }
  total x = 10..30, y = 10..20 from wave
  total x = 12..20, y = 9..21 from beam
  output slice psi of p x = 3 in layer(x) every 10
  output volume psi of v.y every 30
  probe psi of p at (2, 2) every 7
  record energy = sum(p^2) every 7
  steps 60
}
";
    std::fs::write(&source, text).unwrap();
    let path = |name: &str| folder.path().join(name);
    let (whole, parts, state) = (path("whole"), path("parts"), path("state"));
    let common = "run {0} --quiet --save-final";
    succeed(&format!("{common} --out {{1}}"), &[&source, &whole]);
    succeed(
        &format!("{common} --out {{1}} --set steps=23 --checkpoint {{2}}"),
        &[&source, &parts, &state],
    );
    succeed(
        &format!("{common} --out {{1}} --backend cranelift --resume {{2}} --verify"),
        &[&source, &parts, &state],
    );
    let (whole, parts) = (results(&whole), results(&parts));
    for file in [
        "slices/psi_of_p-x3-00000060.npy",
        "probes.npy",
        "series.npy",
    ] {
        assert!(whole.contains_key(file), "{file}");
    }
    let table = String::from_utf8_lossy(&whole["probes.csv"]);
    assert!(
        table.starts_with("t,psi of p in layers along x_2_2,"),
        "{table}"
    );
    assert_eq!(table.lines().count(), 1 + 60 / 7);
    assert_same_files(&whole, &parts, "npy");
    let other = path("other.torre");
    std::fs::write(&other, text.replace("(2, 1)", "(1, 2)")).unwrap();
    let error = fail(1, "run {0} --quiet --resume {1}", &[&other, &state]);
    assert!(error.contains("E0803"), "{error}");
}

#[test]
fn a_checkpoint_of_another_calculation_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 10);
    let state = folder.path().join("state");
    succeed("run {0} --quiet --checkpoint {1}", &[&source, &state]);
    let error = fail(
        1,
        "run {0} --quiet --resume {1} --set dt=0.3",
        &[&source, &state],
    );
    assert!(
        error.contains("E0803") && error.contains("another scheme, another domain"),
        "{error}"
    );
    let error = fail(
        1,
        "run {0} --quiet --resume {1} --precision f64",
        &[&source, &state],
    );
    assert!(error.contains("E0803"), "{error}");
    let error = fail(
        1,
        "run {0} --quiet --resume {1} --set steps=5",
        &[&source, &state],
    );
    assert!(error.contains("after the last of this run, 5"), "{error}");
    let file = state.join("state.checkpoint");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let error = fail(1, "run {0} --quiet --resume {1}", &[&source, &state]);
    assert!(error.contains("damaged"), "{error}");
}

#[test]
fn a_killed_run_leaves_whole_files_and_can_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 400, 240);
    let path = |name: &str| folder.path().join(name);
    let (whole, parts, state) = (path("whole"), path("parts"), path("state"));
    let common = "run {0} --quiet --save-final --threads 1";
    let start = Instant::now();
    succeed(&format!("{common} --out {{1}}"), &[&source, &whole]);
    let usual = start.elapsed().max(Duration::from_millis(40));
    let mut kills = 0;
    for attempt in 0u32..60 {
        let mut command = torre();
        command
            .args([
                "run",
                "--quiet",
                "--save-final",
                "--threads",
                "1",
                "--every",
                "5",
            ])
            .arg(&source)
            .arg("--out")
            .arg(&parts)
            .arg("--checkpoint")
            .arg(&state)
            .stdin(Stdio::null());
        if state.join("state.checkpoint").exists() {
            command.arg("--resume").arg(&state);
        }
        let mut child = command.spawn().unwrap();
        // Somewhere between the start and beyond the usual end; later attempts get more time, so that the end is
        // reached.
        let part = f64::from(attempt.wrapping_mul(2_654_435_761) >> 16 & 0xff) / 256.0;
        let limit = usual.mul_f64(0.2 + part + f64::from(attempt) / 10.0);
        let begun = Instant::now();
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if begun.elapsed() > limit {
                // SIGKILL: no handler can tidy up.
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::yield_now();
        };
        for folder in [&parts, &state] {
            if folder.exists() {
                for (name, bytes) in files(folder) {
                    if !is_temporary(&name) {
                        assert_complete(&name, &bytes);
                    }
                }
            }
        }
        match ended {
            Some(status) => {
                assert!(status.success());
                break;
            }
            None => kills += 1,
        }
    }
    println!("{kills} kills");
    assert!(kills > 0);
    assert_same_files(&results(&whole), &results(&parts), "after kills");
}

/// Waits until a condition holds, which it does within a minute.
#[track_caller]
fn await_that(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
}

/// The outcome of a run that ends soon.
fn outcome(mut child: Child) -> Output {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
        }
        std::thread::yield_now();
    }
    child.wait_with_output().unwrap()
}

/// Sends a signal to a run.
fn send(child: &Child, signal: &str) {
    let mut command = std::process::Command::new("kill");
    let sent = command.args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn an_interrupt_ends_a_run_at_once_and_tidily() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 400, 4_000_000);
    let out = folder.path().join("out");
    let mut child = ended_by_signals(torre())
        .args(["run", "--quiet"])
        .arg(&source)
        .arg("--out")
        .arg(&out)
        .spawn()
        .unwrap();
    let first = out.join("volumes");
    await_that(|| first.exists());
    send(&child, "-INT");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    for (name, bytes) in files(&out) {
        assert!(!is_temporary(&name), "{name}");
        assert_complete(&name, &bytes);
    }
}

/// As `nohup` has it: a run goes on at signals that its parent had ignored.
#[test]
fn ignored_signals_do_not_end_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 100, 4_000_000);
    let out = folder.path().join("out");
    let program = torre().get_program().to_owned();
    let mut child = ended_by_signals(std::process::Command::new("sh"))
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(program)
        .args(["run", "--quiet"])
        .arg(&source)
        .arg("--out")
        .arg(&out)
        .spawn()
        .unwrap();
    let first = out.join("volumes");
    await_that(|| first.exists());
    let written = || std::fs::read_dir(&first).map_or(0, Iterator::count);
    let before = written();
    send(&child, "-HUP");
    await_that(|| written() > before + 2);
    assert_eq!(child.try_wait().unwrap(), None);
    send(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

fn run_with_fields(format: &str) -> String {
    format!(
        "run {{0}} --quiet --threads 1 --backend cranelift --save-final --format {format} --out {{1}}"
    )
}

/// The results in a folder of a run with checkpoints, as without: it keeps frames beside a store of volumes.
fn results_without_checkpoints(folder: &Path, format: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = results(folder);
    if format == "zarr" {
        found.retain(|name, _| !(name.starts_with("volumes/") && name.ends_with(".npy")));
    }
    found
}

/// The end of a run reads earlier frames for its pictures and stores; the work of the run does not depend on them.
#[test]
fn a_damaged_frame_costs_neither_the_state_nor_the_fields() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 24);
    for format in ["npy", "zarr", "vtk"] {
        let path = |name: &str| folder.path().join(format!("{name}-{format}"));
        let (whole, out, state) = (path("whole"), path("out"), path("state"));
        let common = run_with_fields(format);
        succeed(&common, &[&source, &whole]);
        let first = format!("{common} --set steps=13 --checkpoint {{2}}");
        succeed(&first, &[&source, &out, &state]);
        let frame = out.join("volumes/u-00000008.npy");
        let bytes = std::fs::read(&frame).unwrap();
        std::fs::write(&frame, &bytes[..bytes.len() / 2]).unwrap();
        let resume = format!("{common} --resume {{2}} --checkpoint {{2}}");
        let error = fail(1, &resume, &[&source, &out, &state]);
        assert!(
            error.contains("E0801") && error.contains("u-00000008.npy"),
            "{error}"
        );
        let fields = |folder| {
            let mut all = results(folder);
            all.retain(|name, _| name.starts_with("fields"));
            all
        };
        assert!(!fields(&whole).is_empty());
        assert_same_files(&fields(&out), &fields(&whole), format);
        // It is the state of the end: there are no steps to do again.
        let error = fail(
            1,
            &format!("{resume} --set steps=20"),
            &[&source, &out, &state],
        );
        assert!(
            error.contains("is at step 24") || error.contains("of 24 steps"),
            "{error}"
        );
        std::fs::write(&frame, &bytes).unwrap();
        let report = path("report");
        let again = format!("{resume} --report {{3}}");
        succeed(&again, &[&source, &out, &state, &report]);
        let report: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        assert_eq!(report["steps_run"], 0);
        let out = results_without_checkpoints(&out, format);
        assert_same_files(&results(&whole), &out, format);
    }
}

/// Its file alone is larger than files may be, as on a full disk of its own.
#[test]
fn results_do_not_depend_on_the_checkpoint_of_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 3000, 24);
    for format in ["npy", "zarr", "vtk"] {
        let path = |name: &str| folder.path().join(format!("{name}-{format}"));
        let (whole, out, state) = (path("whole"), path("out"), path("state"));
        let common = run_with_fields(format);
        succeed(&common, &[&source, &whole]);
        let largest = files(&whole).values().map(Vec::len).max().unwrap() as u64;
        let run = format!("{common} --checkpoint {{2}}");
        let short = limited(torre(), largest + 1000);
        let output = run_by(short, &run, &[&source, &out, &state]);
        let error = unwrapped(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.contains("E0802") && error.contains("state.checkpoint"),
            "{error}"
        );
        assert!(!state.exists(), "nothing is in it");
        let written = results_without_checkpoints(&out, format);
        assert_same_files(&results(&whole), &written, format);
        let report = std::fs::read(out.join("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["complete"], false);
        assert_eq!(report["steps_run"], 24);
        let listed = report["files"].to_string();
        assert!(listed.contains("fields") && !listed.contains("state.checkpoint"));
        // It is the same run, and may be done again.
        succeed(&run, &[&source, &out, &state]);
    }
}

/// The same for the state of a window over files: it holds the records of probes at all steps, results a few of them.
#[test]
fn results_do_not_depend_on_the_state_of_a_window() {
    let (folder, source) = written(
        "use std::wave::wave_2d
problem pond {
  scheme wave_2d
  domain 30 x 60
  init u = exp(-((x - 10)/4)^2 - ((y - 30)/6)^2)
  probe u in x = 5..25, y = 31 every 1000
  output slice u x = 20 every 500
  steps 4000
}
",
    );
    let path = |name: &str| folder.path().join(name);
    let (whole, out) = (path("whole"), path("out"));
    let (window, other, state) = (path("window"), path("other"), path("state"));
    let source = Path::new(&source);
    let run = format!("{} --window {{2}}", run_with_fields("npy"));
    succeed(&run, &[source, &whole, &other]);
    let bytes = |folder: &Path| {
        files(folder)
            .into_iter()
            .map(|(name, bytes)| (name, bytes.len()))
    };
    let of_window = bytes(&other).filter(|(name, _)| name.starts_with("fields"));
    let largest = bytes(&whole)
        .chain(of_window)
        .map(|(_, n)| n)
        .max()
        .unwrap();
    let records = 20 * 4000 * 8;
    assert!(largest + 1000 < records, "{largest}");
    for (more, lost) in [("", "window"), ("--checkpoint {3}", "state")] {
        let run = format!("{run} {more} --overwrite");
        let short = limited(torre(), largest as u64 + 1000);
        let output = run_by(short, &run, &[source, &out, &window, &state]);
        let error = unwrapped(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{error}");
        let named = path(lost).join("state.checkpoint").display().to_string();
        assert!(error.contains("E0802") && error.contains(&named), "{error}");
        assert_same_files(&results(&whole), &results(&out), lost);
        let report = std::fs::read(out.join("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["complete"], false);
        assert_eq!(report["steps_run"], 4000);
        assert!(!report["files"].to_string().contains("state.checkpoint"));
    }
    // The state before is there, and the run may go on with it.
    succeed(&format!("{run} --resume {{2}}"), &[source, &out, &window]);
    assert_same_files(&results(&whole), &results(&out), "resumed");
}

/// Also with `--overwrite`: a window over files keeps its state until another run can begin.
#[test]
fn a_refused_run_leaves_the_state_of_a_window() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 24);
    let path = |name: &str| folder.path().join(name);
    let (checkpoint, parts, window) = (path("checkpoint"), path("parts"), path("window"));
    let common = "run {0} --quiet --threads 1 --backend cranelift";
    let first = format!("{common} --set steps=20 --out {{1}} --checkpoint {{2}}");
    succeed(&first, &[&source, &path("first"), &checkpoint]);
    let over = format!("{common} --out {{1}} --window {{2}} --memory 4MB");
    succeed(
        &format!("{over} --set steps=13"),
        &[&source, &parts, &window],
    );
    let refused = format!("{over} --overwrite --set steps=10 --resume {{3}}");
    let error = fail(1, &refused, &[&source, &parts, &window, &checkpoint]);
    assert!(error.contains("is at step 20"), "{error}");
    // In a folder of its own nothing is left.
    let other = path("other");
    fail(
        1,
        &refused,
        &[&source, &path("beside"), &other, &checkpoint],
    );
    let left = std::fs::read_dir(&other).map_or(0, Iterator::count);
    assert_eq!(left, 0);
    let resume = format!("{over} --resume {{2}}");
    succeed(&resume, &[&source, &parts, &window]);
}

/// Each byte of the file with the fields counts: a state goes on with the fields that it was written for, or not at
/// all.
#[test]
fn changed_files_of_fields_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 24);
    let path = |name: &str| folder.path().join(name);
    let (whole, parts, window) = (path("whole"), path("parts"), path("window"));
    let common = "run {0} --quiet --save-final --threads 1 --backend cranelift --out {1}";
    succeed(common, &[&source, &whole]);
    let over = format!("{common} --window {{2}} --memory 4MB");
    let first = format!("{over} --set steps=13");
    succeed(&first, &[&source, &parts, &window]);
    let resume = format!("{over} --resume {{2}}");
    let state = std::fs::read(window.join("state.checkpoint")).unwrap();
    let named = String::from_utf8_lossy(&state).contains("\"fields\":1");
    let file = window.join(if named { "fields.1" } else { "fields.0" });
    let bytes = std::fs::read(&file).unwrap();
    for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[at] ^= 64;
        std::fs::write(&file, &changed).unwrap();
        let error = fail(1, &resume, &[&source, &parts, &window]);
        assert!(
            error.contains("E0803") && error.contains("is damaged"),
            "{at}: {error}"
        );
        assert!(std::fs::read(&file).unwrap() == changed, "{at}");
    }
    std::fs::write(&file, &bytes).unwrap();
    succeed(&resume, &[&source, &parts, &window]);
    assert_same_files(
        &results(&whole),
        &results(&parts),
        "with the fields as they were",
    );
}

/// A state in files that are not there any more, or not this run's any more, is none.
#[test]
fn a_run_whose_files_or_lock_are_removed_ends_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 400, 4_000_000);
    for lost in [".torre.lock", ""] {
        let window = folder.path().join(format!("window{lost}"));
        let child = torre()
            .args(["run", "--quiet", "--threads", "1", "--backend", "cranelift"])
            .arg(&source)
            .arg("--window")
            .arg(&window)
            .args(["--memory", "4MB"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let state = window.join("state.checkpoint");
        await_that(|| state.exists());
        let removed = || match lost {
            "" => std::fs::remove_dir_all(&window),
            lost => std::fs::remove_file(window.join(lost)),
        };
        // The run may make a file in the folder meanwhile.
        await_that(|| removed().is_ok());
        let output = outcome(child);
        let error = unwrapped(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("E0802"), "{error}");
    }
}

/// The disk of files that are used as memory may fail at any access, which the system says by a signal.
#[cfg(target_os = "linux")]
#[test]
fn faults_of_files_end_a_run_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 400, 4_000_000);
    let window = folder.path().join("window");
    let mut command = torre();
    command.args(["run", "--threads", "1", "--backend", "cranelift"]);
    command.arg(&source).arg("--window").arg(&window);
    command.args(["--memory", "4MB"]).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let state = window.join("state.checkpoint");
    await_that(|| state.exists());
    send(&child, "-BUS");
    let output = outcome(child);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("E0802") && error.contains("memory"),
        "{error}"
    );
}

/// A plot leaves nothing under a temporary name, and no lock.
#[test]
fn interrupted_plots_end_tidily() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 400, 240);
    let out = folder.path().join("out");
    succeed("run {0} --quiet --out {1}", &[&source, &out]);
    let mut command = ended_by_signals(torre());
    command.args(["plot", "--quiet", "--movie"]).arg(&source);
    let mut child = command.arg("--out").arg(&out).spawn().unwrap();
    // The first of two animations.
    let first = out.join("slices/u-x20.apng");
    await_that(|| first.exists());
    send(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    for (name, bytes) in files(&out) {
        assert!(!is_temporary(&name), "{name}");
        assert_complete(&name, &bytes);
    }
}
