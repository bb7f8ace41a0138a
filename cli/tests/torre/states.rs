//! A run that is refused changes nothing, and no run replaces the state of another calculation.

use crate::support::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs that are refused after their folder was found in order, with a folder that has results.
#[test]
fn a_refused_run_leaves_results_alone() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 40);
    let (out, state) = (folder.path().join("out"), folder.path().join("state"));
    let run = "run {0} --quiet --out {1}";
    succeed(
        &format!("{run} --checkpoint {{2}}"),
        &[&source, &out, &state],
    );
    // Cut short.
    let checkpoint = state.join("state.checkpoint");
    let bytes = fs::read(&checkpoint).unwrap();
    fs::write(&checkpoint, &bytes[..bytes.len() - 1]).unwrap();
    let before = files(&out);
    let target = "--backend cranelift --target x86-64-v3";
    for (status, more) in [
        (2, target.to_owned()),
        (2, format!("{target} --overwrite --precision f64")),
        (1, "--resume {2}".to_owned()),
        (1, "--resume {2} --overwrite".to_owned()),
        (1, "--resume {2} --set steps=60".to_owned()),
    ] {
        fail(status, &format!("{run} {more}"), &[&source, &out, &state]);
        assert_same_files(&before, &files(&out), &more);
    }
    let output = torre()
        .args(["run", "--quiet", "--overwrite", "--backend", "llvm"])
        .args(["--set", "dt=0.3"])
        .arg(&source)
        .arg("--out")
        .arg(&out)
        .env("TORRE_LLVM", "/nonexistent")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_same_files(&before, &files(&out), "a library that is not there");
}

/// The problem with its state in a checkpoint, and in files.
struct States {
    source: PathBuf,
    checkpoint: PathBuf,
    window: PathBuf,
}

impl States {
    fn new(folder: &Path, steps: u32) -> Self {
        let states = Self {
            source: pond(folder, 50, 40),
            checkpoint: folder.join("checkpoint"),
            window: folder.join("window"),
        };
        for option in ["--checkpoint {1}", "--window {2}"] {
            states.succeed(&format!("--set steps={steps} {option}"), Path::new(""));
        }
        states
    }

    fn succeed(&self, more: &str, out: &Path) {
        succeed(
            &format!("run {{0}} --quiet {more}"),
            &[&self.source, &self.checkpoint, &self.window, out],
        );
    }

    /// What is said about options that are refused; the states stay as they are.
    fn refused(&self, more: &str) -> String {
        let found = || [files(&self.checkpoint), files(&self.window)];
        let before = found();
        let error = fail(
            1,
            &format!("run {{0}} --quiet {more}"),
            &[&self.source, &self.checkpoint, &self.window],
        );
        for (before, after) in before.iter().zip(&found()) {
            assert_same_files(before, after, more);
        }
        unwrapped(&error)
    }
}

#[test]
fn a_state_of_another_calculation_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let states = States::new(folder.path(), 20);
    for more in [
        "--checkpoint {1} --set dt=0.3",
        "--checkpoint {1} --precision f64",
        "--checkpoint {2}",
        "--window {1}",
        "--window {2}",
        "--window {2} --set dt=0.3",
    ] {
        let error = states.refused(more);
        assert!(
            error.contains("E0812") && error.contains("has the state of"),
            "{more}: {error}"
        );
    }
    // Each kind of state goes on in its own way.
    let error = states.refused("--resume {2}");
    assert!(
        error.contains("in files beside it") && error.contains("--window DIR --resume DIR"),
        "{error}"
    );
    let error = states.refused("--window {1} --resume {1}");
    assert!(error.contains("not in files beside it"), "{error}");
    // A state that cannot be read was one, and what lies beside it may be of use.
    let path = states.window.join("state.checkpoint");
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[30] ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert!(states.refused("--window {2}").contains("E0812"));
    let error = states.refused("--window {2} --resume {2}");
    assert!(
        error.contains("is damaged") && error.contains("another checkpoint"),
        "{error}"
    );
    fs::write(&path, &whole).unwrap();
    // The same calculation once more, and another one that is to replace it.
    states.succeed("--checkpoint {1}", Path::new(""));
    let out = folder.path().join("out");
    states.succeed("--checkpoint {1} --set dt=0.3 --out {3} --overwrite", &out);
    states.succeed("--window {2} --set dt=0.3 --out {3} --overwrite", &out);
}

/// A run that is to replace a state in files, and gets no memory to begin with, leaves a state from which one goes on.
#[test]
fn a_run_that_does_not_begin_leaves_the_state_that_it_would_replace() {
    let folder = tempfile::tempdir().unwrap();
    let states = States::new(folder.path(), 1);
    let (window, out) = (&states.window, folder.path().join("out"));
    let large = "--set domain=2000x2000 --window {2}";
    states.succeed(
        &format!("{large} --set steps=1 --overwrite --out {{3}}"),
        &out,
    );
    let before = files(window);
    let replaced = |found: &BTreeMap<String, Vec<u8>>| {
        found.get("state.checkpoint").expect("a state") != &before["state.checkpoint"]
    };
    let (mut limit, mut kept) = (44_000, 0);
    loop {
        let script = format!("ulimit -v {limit}; exec \"$0\" \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_torre")])
            .args([
                "run",
                "--quiet",
                "--backend",
                "interp",
                "--threads",
                "1",
                "--verify",
            ])
            .args([
                "--set",
                "domain=2000x2000",
                "--set",
                "dt=0.2",
                "--set",
                "steps=1",
            ])
            .args(["--overwrite", "--out"])
            .args([&out, Path::new("--window"), window, &states.source])
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("TORRE_RATES", "modelled")
            .output()
            .unwrap();
        if output.status.success() {
            break;
        }
        let found = files(window);
        if !replaced(&found) && String::from_utf8_lossy(&output.stderr).contains("E0806") {
            states.succeed(
                &format!("{large} --resume {{2}} --set steps=2"),
                Path::new(""),
            );
            kept += 1;
        }
        for (name, bytes) in &before {
            fs::write(window.join(name), bytes).unwrap();
        }
        limit += 20_000;
        assert!(
            limit < 2_000_000,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert!(kept > 0 && replaced(&files(window)));
}

#[test]
fn a_state_in_files_keeps_reductions() {
    let folder = tempfile::tempdir().unwrap();
    let states = States::new(folder.path(), 20);
    let path = |name: &str| folder.path().join(name);
    let (whole, parts) = (path("whole"), path("parts"));
    states.succeed("--out {3}", &whole);
    states.succeed("--window {2} --resume {2} --out {3}", &parts);
    for name in ["series.csv", "series.npy", "probes.csv", "probes.npy"] {
        let [whole, parts] = [&whole, &parts].map(|folder| fs::read(folder.join(name)).unwrap());
        assert!(whole == parts, "{name}");
    }
}

/// Fields in files are limited by the disk, not by memory.
#[test]
fn fields_in_files_may_exceed_memory() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 40);
    let window = folder.path().join("window");
    let huge = "run {0} --quiet --set domain=4000000x1000000";
    let error = unwrapped(&fail(1, huge, &[&source]));
    assert!(
        error.contains("E0508") && error.contains("memory"),
        "{error}"
    );
    let error = fail(1, &format!("{huge} --window {{1}}"), &[&source, &window]);
    let error = unwrapped(&error);
    assert!(error.contains("E0819") && error.contains("disk"), "{error}");
}

/// Runs the command where a folder is a disk of one megabyte, as far as the system allows that.
#[cfg(target_os = "linux")]
fn on_small_disk(disk: &Path, arguments: &str, paths: &[&Path]) -> Option<std::process::Output> {
    let mut inside = Command::new("unshare");
    let script = "mount -t tmpfs -o size=1m none \"$0\" && exec \"$@\"";
    inside.args(["-r", "-m", "sh", "-c", script]).arg(disk);
    let may = inside.arg("true").output();
    if !may.is_ok_and(|output| output.status.success()) {
        println!("skipped: no disk can be made");
        return None;
    }
    let mut inside = Command::new("unshare");
    inside.args(["-r", "-m", "sh", "-c", script]).arg(disk);
    inside.arg(env!("CARGO_BIN_EXE_torre"));
    inside.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    inside.env("TORRE_RATES", "modelled");
    Some(run_by(inside, arguments, paths))
}

/// A run that could not write its checkpoints is refused before its first step, not after its last one.
#[cfg(target_os = "linux")]
#[test]
fn checkpoints_fit_on_their_disk() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 40);
    let [disk, out] = ["disk", "out"].map(|name| folder.path().join(name));
    let state = disk.join("state");
    fs::create_dir(&disk).unwrap();
    let run = "run {0} --quiet --threads 1 --backend cranelift --checkpoint {1} --out {2}";
    for (more, said) in [
        // 1.44 MB; 0.8 MB; twice that, while one checkpoint takes the place of another.
        ("--set domain=600x300", Some("the checkpoint takes 1.45 MB")),
        ("--set domain=400x250 --overwrite", None),
        (
            "--set domain=400x250 --every 20",
            Some("one replaces the other, take 1.61 MB"),
        ),
        ("--set domain=400x250 --every 40", None),
    ] {
        let arguments = format!("{run} {more}");
        let Some(output) = on_small_disk(&disk, &arguments, &[&source, &state, &out]) else {
            return;
        };
        let error = unwrapped(&String::from_utf8_lossy(&output.stderr));
        let Some(said) = said else {
            assert_eq!(output.status.code(), Some(0), "{more}: {error}");
            continue;
        };
        assert_eq!(output.status.code(), Some(1), "{more}: {error}");
        assert!(
            error.contains("E0819") && error.contains(said),
            "{more}: {error}"
        );
    }
}

/// Folders above are made for a run, too.
#[test]
fn a_refused_run_leaves_no_folders() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 16);
    let [out, state] = ["a/b/out", "a/c/state"].map(|name| folder.path().join(name));
    let refused = "run {0} --quiet --set dt=50 --out {1} --checkpoint {2}";
    let error = fail(1, refused, &[&source, &out, &state]);
    assert!(error.contains("E0815"), "{error}");
    assert!(!folder.path().join("a").exists());
    fs::create_dir(folder.path().join("a")).unwrap();
    fail(1, refused, &[&source, &out, &state]);
    assert_eq!(fs::read_dir(folder.path().join("a")).unwrap().count(), 0);
}

/// The reason why a state cannot be read is said.
#[test]
fn a_checkpoint_that_cannot_be_read_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 16);
    let state = folder.path().join("state");
    let run = "run {0} --quiet --threads 1 --backend cranelift --checkpoint {1}";
    succeed(run, &[&source, &state]);
    let file = state.join("state.checkpoint");
    let whole = fs::read(&file).unwrap();
    for (said, is_link) in [
        ("where its header needs", false),
        ("Too many levels of symbolic links", true),
    ] {
        if is_link {
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink(&file, &file).unwrap();
        } else {
            fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        }
        let error = unwrapped(&fail(1, run, &[&source, &state]));
        let is_unread = error.contains("has a state that cannot be read: ");
        assert!(error.contains("E0812") && is_unread, "{error}");
        assert!(error.contains(said), "{error}");
    }
}
