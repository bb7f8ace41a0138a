//! Errors are reported before the work begins, or at once when it fails; nothing hangs or panics.

use crate::support::*;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

fn program(folder: &Path, body: &str) -> PathBuf {
    let path = folder.join("pond.torre");
    let text = format!(
        "use std::wave::wave_2d\n\nproblem pond {{\n  scheme wave_2d\n  init u = exp(-((x - 20) / 4)^2)\n{body}\n}}\n"
    );
    fs::write(&path, text).unwrap();
    path
}

/// Commands that write the file `{1}` for the program `{0}`.
const WRITING: [&str; 6] = [
    "run {0} --quiet --report {1}",
    "plan {0} --quiet --report {1}",
    "bench {0} --quiet --seconds 0.1 --report {1}",
    "emit {0} --stage ast -o {1}",
    "cone {0} -o {1}",
    "analyze {0} --report {1}",
];

#[test]
fn memory_beside_the_fields_is_known_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let facts: serde_json::Value =
        serde_json::from_str(&succeed("machine --report json", &[])).unwrap();
    let Some(memory) = facts["memory_bytes"].as_u64() else {
        return println!("skipped: the memory of this machine is not known");
    };
    let refused = |body: &str, more: &str, expected: &str| {
        let source = program(folder.path(), body);
        let out = folder.path().join("out");
        let error = fail(
            1,
            &format!("run {{0}} --quiet {more} --out {{1}}"),
            &[&source, &out],
        );
        let error = unwrapped(&error);
        assert!(
            error.contains("E0806") && error.contains(expected),
            "{error}"
        );
        // Nothing was begun.
        assert!(!out.exists());
    };
    let steps = memory / 10;
    refused(
        &format!("  domain 50 x 50\n  probe u at (1, 1) as a\n  steps {steps}"),
        "",
        "for the records of probes and reductions",
    );
    // Half of the memory for the fields, which have 8 bytes per cell and more, and twice as much for the source.
    let side = ((memory / 20) as f64).sqrt() as u64;
    let large = format!("  domain {side} x {side}\n  steps 10");
    refused(
        &format!("{large}\n  source u in x = 1..{} += sin(t)", side - 1),
        "",
        "for the tables of sources",
    );
    let slices = "  output slice u x = 1 every 1\n".repeat(40);
    let long = memory / 200;
    refused(
        &format!("  domain 4 x {long}\n{slices}  steps 10"),
        "",
        "for slices that wait to be written",
    );
    refused(
        &format!("{large}\n  output volume u every 5"),
        "--format zarr --verify --backend interp",
        "for reading and writing files",
    );
}

#[test]
fn places_for_files_are_tried_before_the_first_step() {
    let folder = tempfile::tempdir().unwrap();
    // It would run for hours.
    let source = program(folder.path(), "  domain 200 x 200\n  steps 400000000");
    let file = folder.path().join("file");
    fs::write(&file, "text").unwrap();
    let below = file.join("below");
    for (place, path) in [
        ("--out", &below),
        ("--checkpoint", &below),
        ("--report", &below),
        ("--out", &file),
        ("--report", &folder.path().to_path_buf()),
        ("--report", &PathBuf::from("/proc/none/report.json")),
        ("--out", &PathBuf::from("/proc/none")),
        ("--checkpoint", &PathBuf::from("/proc/none")),
    ] {
        let start = Instant::now();
        let error = fail(
            1,
            &format!("run {{0}} --quiet {place} {{1}}"),
            &[&source, path],
        );
        assert!(error.contains("E0802"), "{place}: {error}");
        let says = error.contains("/file` is a file and no folder");
        assert_eq!(says, path.starts_with(&file), "{place}: {error}");
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    for place in ["--out {1}", "--checkpoint {1}/a", "--report {1}/a.json"] {
        let error = fail(1, &format!("run {{0}} --quiet {place}"), &[&source, &link]);
        let says = unwrapped(&error).contains("/link` is a symbolic link that leads nowhere");
        assert!(says && error.contains("E0802"), "{place}: {error}");
    }
}

#[test]
fn a_signal_ends_a_run_while_many_files_are_written() {
    let folder = tempfile::tempdir().unwrap();
    // Each pause has tens of thousands of pictures to write.
    let body = "  domain 30 x 70\n  output slice u x = 20 every 1\n  output volume u every 40000\n  steps 400000000";
    let source = program(folder.path(), body);
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let out = folder.path().join(signal);
        let mut child = ended_by_signals(torre())
            .args(["run", "--quiet", "--threads", "1", "--format", "zarr"])
            .arg(&source)
            .arg("--out")
            .arg(&out)
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let slices = out.join("slices");
        while !slices.exists() && begun.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        let start = Instant::now();
        let ended = child.wait().unwrap();
        let time = start.elapsed();
        assert_eq!(ended.code(), Some(status), "{signal}");
        assert!(time < Duration::from_secs(2), "{signal}: {time:?}");
        for name in files(&out).keys() {
            assert!(
                !name.ends_with(".part") && !name.ends_with(".lock"),
                "{name}"
            );
        }
    }
}

#[test]
fn a_full_stdout_is_an_error() {
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["machine"],
        &["machine", "--report", "json"],
        &["check", "examples/01-wave1d.torre", "--report", "json"],
        &["cone", "examples/01-wave1d.torre"],
        &["plan", "examples/01-wave1d.torre"],
        &["plan", "examples/01-wave1d.torre", "--report", "json"],
        &["emit", "examples/01-wave1d.torre", "--stage", "scheme"],
        &["run", "examples/01-wave1d.torre"],
        &["run", "examples/01-wave1d.torre", "--report", "json"],
    ] {
        let output = torre().args(arguments).stdout(full()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(
            error.contains("E0802") && error.contains("stdout"),
            "{arguments:?}: {error}"
        );
    }
}

/// Runs the command in a shell, with something said about it there, and gives its status and stderr.
fn in_shell(script: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_torre")])
        .args(arguments)
        .current_dir(root())
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("TORRE_RATES", "modelled")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), error)
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_stdout_is_an_error() {
    let example = "examples/01-wave1d.torre";
    for arguments in [
        &["--version"][..],
        &["plan", example],
        &["emit", example, "--stage", "scheme"],
        &["run", example, "--quiet", "--report", "json"],
    ] {
        let (status, error) = in_shell("exec \"$0\" \"$@\" >&-", arguments);
        assert_eq!(status, Some(1), "{arguments:?}: {error}");
        assert!(
            error.contains("E0802") && error.contains("stdout"),
            "{arguments:?}: {error}"
        );
    }
    // One that has nothing to say there.
    let (status, error) = in_shell(
        "exec \"$0\" \"$@\" >&-",
        &["run", example, "--quiet", "--set", "steps=3"],
    );
    assert_eq!(status, Some(0), "{error}");
}

#[test]
fn files_beyond_the_limit_of_the_system_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(
        folder.path(),
        "  domain 500 x 500\n  output volume u every 3\n  steps 3",
    );
    let out = folder.path().join("out");
    let (source, out) = (source.to_str().unwrap(), out.to_str().unwrap());
    let (status, error) = in_shell(
        "ulimit -f 100; exec \"$0\" \"$@\"",
        &["run", source, "--backend", "interp", "--out", out],
    );
    assert_eq!(status, Some(1), "{error}");
    assert!(error.contains("E0802"), "{error}");
    let left = files(Path::new(out));
    assert!(!left.keys().any(|name| is_temporary(name)), "{left:?}");
}

/// Under any limit of addresses a run succeeds, or says that it gets no memory; it is never aborted.
#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let large = "  domain 2000 x 2000\n  steps 1\n";
    for (body, schedule, expected) in [
        // Tables of a source.
        ("  source u += sin(x * t)", "layerwise", "beside the fields"),
        // A list of all values that do not change.
        ("  output volume c", "layerwise", "beside the fields"),
        // A second array.
        (
            "",
            "pyramid(B = 64, TH = 1)",
            "for the fields cannot be had",
        ),
    ] {
        let source = program(folder.path(), &format!("{large}{body}"));
        let mut messages = String::new();
        let mut limit = 80_000;
        loop {
            let script = format!("ulimit -v {limit}; exec \"$0\" \"$@\"");
            let output = Command::new("sh")
                .args(["-c", &script, env!("CARGO_BIN_EXE_torre")])
                .args(["run", "--quiet", "--backend", "interp", "--threads", "1"])
                .args(["--schedule", schedule, "--overwrite", "--out"])
                .args([&out, &source])
                .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
                .env("TORRE_RATES", "modelled")
                .output()
                .unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            if output.status.code() == Some(0) {
                break;
            }
            // Below some limit the program cannot be loaded.
            let told = output.status.code() == Some(1) && error.contains("E0806");
            let loaded = output.status.code() != Some(127);
            assert!(
                told || !loaded,
                "{limit} kB, {body}: {:?} {error}",
                output.status
            );
            messages.push_str(&error);
            limit += 12_000;
            assert!(limit < 2_000_000, "{body}: {error}");
        }
        assert!(messages.contains(expected), "{body}: {messages}");
    }
}

#[test]
fn threads_that_cannot_be_started_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = program(folder.path(), "  domain 5000 x 20\n  steps 3");
    for schedule in ["layerwise", "auto"] {
        // Each thread takes 300 MB of addresses for its stack, so that enough is left for the other memory of a thread.
        let output = Command::new("sh")
            .args(["-c", "ulimit -v 3000000; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_torre"))
            .args(["run", "--backend", "interp", "--threads", "4096"])
            .args(["--schedule", schedule])
            .arg(&source)
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("TORRE_RATES", "modelled")
            .env("RUST_MIN_STACK", "300000000")
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{schedule}: {error}");
        assert!(
            error.contains("E0813") && error.contains("of 4096 threads"),
            "{error}"
        );
        assert!(!error.contains("panicked"), "{error}");
    }
}

#[test]
fn diagnostics_reach_any_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.torre");
    let head = "scheme s {\n  axes x\n  field u : scalar on nodes levels 2\n  step {\n";
    for columns in [100, 2000, 65_500, 65_536, 200_000] {
        let blanks = " ".repeat(columns);
        let wrong = |blanks: &str| format!("{head}{blanks}v += 1\n  }}\n}}\n");
        fs::write(&path, wrong(&blanks)).unwrap();
        let error = fail(1, "check {0}", &[&path]);
        assert!(
            error.contains("E01") && !error.contains("panicked"),
            "{error}"
        );
        assert!(error.contains(&format!(":5:{}", columns + 1)), "{error}");
        // Beside a long line, in one with other characters, and without an end.
        let comment = format!(
            "    // {}\n    v += 1 // {}\n  }}\n}}\n",
            "é".repeat(columns),
            "ü".repeat(columns)
        );
        let open = format!("{head}    u@next = {}v", "é ".repeat(columns));
        for text in [format!("{head}{comment}"), open] {
            fs::write(&path, text).unwrap();
            let error = fail(1, "check {0}", &[&path]);
            assert!(
                error.contains("E0") && !error.contains("panicked"),
                "{error}"
            );
        }
    }
    // A bracket that is open for 100,000 columns, and something wrong far behind it.
    let far = format!("{head}    u@next = ({}]\n  }}\n}}\n", "u + ".repeat(30_000));
    fs::write(&path, far).unwrap();
    let error = fail(1, "check {0}", &[&path]);
    assert!(
        !error.contains("panicked") && error.contains("E00"),
        "{error}"
    );
}

#[test]
fn pipes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let pipe = at("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let source = program(folder.path(), "  domain 50 x 50\n  steps 3");
    let array = at("array.torre");
    fs::write(
        &array,
        "scheme s {\n  axes x\n  coef c on nodes = file(\"pipe\")\n  field u : scalar on nodes levels 2\n  \
         step { u@next = c * u - u@prev }\n}\nproblem p {\n  scheme s\n  domain 10\n  steps 1\n}\n",
    )
    .unwrap();
    let state = at("state");
    fs::create_dir(&state).unwrap();
    mkfifoat(CWD, state.join("state.checkpoint"), Mode::RUSR | Mode::WUSR).unwrap();
    for (arguments, code) in [
        ("check {1}", "E0801"),
        ("run {1} --quiet", "E0801"),
        ("emit {1} --stage ast", "E0801"),
        ("fmt {1}", "E0801"),
        ("run {2} --quiet", "no regular file"),
        ("run {0} --quiet --resume {3}", "E0801"),
        ("run {0} --quiet --report {1}", "E0802"),
        ("emit {0} --stage ast -o {1}", "E0802"),
        ("cone {0} -o {1}", "E0802"),
    ] {
        let error = fail(1, arguments, &[&source, &pipe, &array, &state]);
        let error = unwrapped(&error);
        assert!(
            error.contains(code) && error.contains("no regular file"),
            "{arguments}: {error}"
        );
    }
    use std::os::unix::fs::FileTypeExt;
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn results_never_take_the_place_of_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let body = "  domain 50 x 50\n  steps 3";
    let source = program(folder.path(), body);
    let text = fs::read(&source).unwrap();
    let same = folder.path().join("x/../pond.torre");
    fs::create_dir(folder.path().join("x")).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    let linked = link.join("pond.torre");
    for path in [&source, &same, &linked] {
        for arguments in WRITING {
            let error = fail(1, arguments, &[&source, path]);
            assert!(error.contains("E0814"), "{arguments}: {error}");
            assert_eq!(fs::read(&source).unwrap(), text);
        }
    }
    // An array where results would go.
    let out = folder.path().join("out");
    succeed("run {0} --quiet --save-final --out {1}", &[&source, &out]);
    let array = fs::read(out.join("fields/u.npy")).unwrap();
    let again = folder.path().join("again.torre");
    let from_file = String::from_utf8(text).unwrap();
    let from_file = from_file.replace("exp(-((x - 20) / 4)^2)", "file(\"out/fields/u.npy\")");
    fs::write(&again, from_file).unwrap();
    for more in ["", "--overwrite"] {
        let error = fail(
            1,
            &format!("run {{0}} --quiet --out {{1}} {more}"),
            &[&again, &out],
        );
        assert!(error.contains("E0814"), "{error}");
    }
    assert_eq!(fs::read(out.join("fields/u.npy")).unwrap(), array);
    succeed(
        "run {0} --quiet --out {1}",
        &[&again, &folder.path().join("other")],
    );
    // A table there: the records of the probes of an earlier run.
    fs::write(out.join("probes.csv"), "0, 0\n1, 0.5\n").unwrap();
    let driven = format!("{body}\n  source u at (9, 9) += table(\"out/probes.csv\")");
    let driven = program(folder.path(), &driven);
    let error = fail(1, "run {0} --quiet --overwrite --out {1}", &[&driven, &out]);
    assert!(error.contains("E0814"), "{error}");
}

#[test]
fn results_never_take_the_place_of_what_a_program_uses() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let source = program(folder.path(), "  domain 50 x 50\n  steps 3");
    succeed(
        "run {0} --quiet --save-final --out {1}",
        &[&source, &at("out")],
    );
    fs::copy(at("out/fields/u.npy"), at("u.npy")).unwrap();
    fs::write(at("wave.csv"), "0, 0\n1, 0.5\n").unwrap();
    fs::write(at("more.torre"), "def strength(v) = 2 * v\n").unwrap();
    let user = at("user.torre");
    let text = fs::read_to_string(&source).unwrap();
    let text = text.replace("exp(-((x - 20) / 4)^2)", "file(\"u.npy\")");
    let text = text.replace(
        "  steps 3",
        "  source u at (9, 9) += strength(table(\"wave.csv\"))\n  steps 3",
    );
    fs::write(&user, format!("use more::strength\n{text}")).unwrap();
    for name in ["u.npy", "wave.csv", "more.torre"] {
        let read = at(name);
        let before = fs::read(&read).unwrap();
        for arguments in WRITING {
            let error = fail(1, arguments, &[&user, &read]);
            assert!(error.contains("E0814"), "{arguments} {name}: {error}");
            assert_eq!(fs::read(&read).unwrap(), before, "{arguments} {name}");
        }
    }
    // Other files give way.
    let other = at("other");
    fs::write(&other, "old").unwrap();
    succeed("emit {0} --stage ast -o {1}", &[&user, &other]);
    assert_ne!(fs::read(&other).unwrap(), b"old");
}

#[test]
fn reports_take_no_place_of_results_and_states() {
    let folder = tempfile::tempdir().unwrap();
    let body = "  domain 50 x 50\n  probe u at (3, 4)\n  steps 4";
    let source = program(folder.path(), body);
    let [out, state] = ["out", "state"].map(|name| folder.path().join(name));
    // Before the folders are there, and after a run.
    for again in [false, true] {
        for name in [
            "out/probes.csv",
            "out/slices/mine.json",
            "state/state.checkpoint",
        ] {
            let report = folder.path().join(name);
            let before = fs::read(&report).ok();
            let error = fail(
                1,
                "run {0} --quiet --out {1} --checkpoint {2} --report {3}",
                &[&source, &out, &state, &report],
            );
            assert!(error.contains("E0814"), "{name}: {error}");
            assert_eq!(fs::read(&report).ok(), before, "{name}");
            assert_eq!(out.exists(), again);
        }
        // The report of the folder itself is no other one.
        let report = out.join("report.json");
        succeed(
            "run {0} --quiet --out {1} --checkpoint {2} --report {3}",
            &[&source, &out, &state, &report],
        );
    }
    let error = fail(
        1,
        "run {0} --quiet --resume {1} --report {2}",
        &[&source, &state, &state.join("state.checkpoint")],
    );
    assert!(error.contains("E0814"), "{error}");
    let table = folder.path().join("wave.csv");
    fs::write(&table, "0, 0\n1, 0.5\n").unwrap();
    let driven = format!("{body}\n  source u at (9, 9) += table(\"wave.csv\")");
    let driven = program(folder.path(), &driven);
    let error = fail(1, "run {0} --quiet --report {1}", &[&driven, &table]);
    assert!(error.contains("E0814"), "{error}");
}

/// Nothing is in the way of the next attempt.
#[test]
#[cfg(target_os = "linux")]
fn a_program_that_cannot_be_written_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("first.torre");
    let arguments = ["new", file.to_str().unwrap()];
    // Files of no size are all that may be written, as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let (status, error) = in_shell(script, &arguments);
    assert_eq!(status, Some(1), "{error}");
    assert!(error.contains("E0802"), "{error}");
    assert!(!file.exists());
    let (status, error) = in_shell("exec \"$0\" \"$@\"", &arguments);
    assert_eq!(status, Some(0), "{error}");
}
