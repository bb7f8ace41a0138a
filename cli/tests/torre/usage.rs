//! The output of the command, and its exit status.

use crate::support::*;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Compares with a file of `tests/expected`; a difference shows both.
#[track_caller]
fn expect(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/expected")
        .join(file);
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == found,
        "cli/tests/expected/{file} has\n{expected}\nbut now it is\n{found}"
    );
}

#[test]
fn help_is_as_expected() {
    expect("help.txt", &succeed("--help", &[]));
    expect("help-run.txt", &succeed("run --help", &[]));
}

#[test]
fn wrong_usage_ends_with_2() {
    for arguments in [
        "",
        "fly",
        "run",
        "run examples/01-wave1d.torre --backend quantum",
        "run examples/01-wave1d.torre --set h",
        "run examples/01-wave1d.torre --threads 0",
        "run examples/01-wave1d.torre --every 5",
        "run examples/01-wave1d.torre --save-final",
        "run examples/01-wave1d.torre --backend reference --verify",
        "run examples/01-wave1d.torre --backend reference --target x86-64-v3",
        "run examples/01-wave1d.torre --backend reference --schedule torre",
        "run examples/01-wave1d.torre --backend interp --target x86-64-v3",
        "run examples/01-wave1d.torre --backend llvm --devices 0",
        "bench examples/01-wave1d.torre --backend cuda --devices 0,1",
        "run examples/01-wave1d.torre --devices first",
        "explain E9999",
        "new --dims 5",
        "run examples/01-wave1d.torre --window host",
        "run examples/01-wave1d.torre --memory 20GB",
        "plan examples/01-wave1d.torre --memory much",
        "plan examples/01-wave1d.torre --window host",
        "emit examples/08-maxwell42.torre --stage ptx --window host",
        "emit examples/08-maxwell42.torre --stage pipeline --target sm_90",
        "emit examples/01-wave1d.torre --stage soul",
        "emit examples/01-wave1d.torre --stage tiles --target sm_90",
        "emit examples/01-wave1d.torre --stage ast --target x86-64-v3",
        "emit examples/01-wave1d.torre --stage ptx --target sm_1",
        "bench examples/01-wave1d.torre --backend interp --devices 0",
        "cone examples/01-wave1d.torre --out cone.png",
        "analyze examples/01-wave1d.torre --out errors.PDF",
        "check examples/01-wave1d.torre --picture set-up.svg",
        "fmt",
    ] {
        fail(2, arguments, &[]);
    }
    for arguments in [
        "run examples/01-wave1d.torre --checkpoint state --every 0",
        "bench examples/01-wave1d.torre --count 0",
    ] {
        let error = fail(2, arguments, &[]);
        assert!(error.contains("expected 1 or more"), "{error}");
    }
    if has_llvm() {
        let error = fail(
            2,
            "run examples/01-wave1d.torre --backend llvm --target pdp11",
            &[],
        );
        assert!(error.contains("no processor `pdp11` is known"), "{error}");
    }
}

#[test]
fn errors_in_the_program_end_with_1_and_are_all_shown() {
    let folder = tempfile::tempdir().unwrap();
    // Diagnostics name the file as the user did, so the command runs beside it.
    std::fs::write(folder.path().join("wrong.torre"), WRONG).unwrap();
    let check = |arguments: &[&str]| {
        let output = torre()
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (stdout, stderr) = check(&["check", "wrong.torre"]);
    assert_eq!(stdout, "");
    expect("wrong.txt", &stderr);
    let (stdout, stderr) = check(&["check", "wrong.torre", "--report", "json"]);
    assert_eq!(stderr, "");
    let list: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let codes: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["code"].as_str().unwrap())
        .collect();
    assert!(codes.len() >= 3, "{codes:?}");
    assert_eq!(list[0]["labels"][0]["line"], 7);

    std::fs::write(
        folder.path().join("syntax.torre"),
        "scheme a {\n  axes x,,\n",
    )
    .unwrap();
    for command in [
        &["check", "syntax.torre"][..],
        &["run", "syntax.torre"],
        &["cone", "syntax.torre"],
        &["emit", "syntax.torre", "--stage", "ast"],
        &["fmt", "syntax.torre"],
    ] {
        let (stdout, stderr) = check(command);
        assert_eq!(stdout, "");
        assert!(stderr.contains("E00"), "{stderr}");
    }
}

const WRONG: &str = "use std::curl::curl

scheme s {
  axes x, y
  field E : vector on edges
  step {
    E += crul(E)
    E.x = d(E.y, x)
  }
}

problem p {
  scheme s
  domain 8 x 8
  probe  E.z at (1, 2)
  steps  3
}
";

#[test]
fn unreadable_files_end_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let error = fail(1, "check {0}/absent.torre", &[folder.path()]);
    assert!(error.contains("E0801"), "{error}");
    let bytes = folder.path().join("bytes.torre");
    std::fs::write(&bytes, b"// caf\xe9\n").unwrap();
    let error = fail(1, "fmt {0}", &[&bytes]);
    assert!(error.contains("not text in UTF-8"), "{error}");
    assert_eq!(std::fs::read(&bytes).unwrap(), b"// caf\xe9\n");
    fail(1, "check {0}", &[folder.path()]);
}

#[test]
fn what_cannot_fit_is_refused_before_memory_is_taken() {
    let error = fail(
        1,
        "run examples/15-gray-scott.torre --set domain=4000000x4000000",
        &[],
    );
    assert!(error.contains("memory"), "{error}");
    let error = fail(
        1,
        "run examples/15-gray-scott.torre --set domain=40000000000000x40000000000000",
        &[],
    );
    assert!(error.contains("E0"), "{error}");
}

#[test]
fn a_missing_library_ends_with_3_and_has_a_substitute() {
    let command = |backend: &str| {
        torre()
            .args(["run", "examples/01-wave1d.torre", "--set", "steps=3"])
            .args(["--backend", backend, "--report", "json"])
            .env("TORRE_LLVM", "/nonexistent")
            .output()
            .unwrap()
    };
    let asked = command("llvm");
    assert_eq!(asked.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&asked.stderr).contains("E0804"));
    let automatic = command("auto");
    assert!(automatic.status.success());
    let stderr = String::from_utf8_lossy(&automatic.stderr);
    assert!(stderr.contains("so `cranelift` is used"), "{stderr}");
    let report: serde_json::Value = serde_json::from_slice(&automatic.stdout).unwrap();
    assert_eq!(report["backend"], "cranelift");
}

#[test]
fn quiet_runs_say_nothing() {
    let output = run("run examples/13-diffusion.torre --set steps=2 --quiet", &[]);
    assert!(output.status.success());
    assert_eq!((output.stdout.len(), output.stderr.len()), (0, 0));
}

#[test]
fn formatting_is_checked_and_done_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.torre");
    let link = folder.path().join("link.torre");
    std::fs::write(&file, "const   a=1 // one\n").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let error = fail(1, "fmt --check {0}", &[&file]);
    assert!(error.contains("E0810"), "{error}");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "const   a=1 // one\n"
    );
    succeed("fmt {0}", &[&link]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("const a = 1"), "{text}");
    assert!(link.is_symlink());
    succeed("fmt --check {0}", &[&file]);
    assert_eq!(succeed("fmt {0}", &[&file]), "");
    // Permissions stay, and a file that is not to be written is not replaced.
    let mode = |mode| std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    for (own, replaced) in [(0o600, true), (0o444, false)] {
        std::fs::write(&file, "const   a=1\n").unwrap();
        mode(own);
        let status = run("fmt {0}", &[&file]).status;
        assert_eq!(status.success(), replaced);
        let left = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(left & 0o777, own);
        assert_eq!(
            std::fs::read_to_string(&file).unwrap() == "const a = 1\n",
            replaced
        );
        mode(0o600);
    }
}

/// A text that no command would read takes the place of none that is read.
#[test]
fn formatting_makes_no_file_too_large() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.torre");
    // Comments, which take far less time than statements, are most of it.
    let comment = format!("// {}\n", "x".repeat(96));
    let text: String = (0..1_000).map(|n| format!("const a{n:05}=1\n")).collect();
    let text = text + &comment.repeat(10_325);
    assert!(text.len() < 1 << 20 && text.len() + 2 * 1_000 > 1 << 20);
    std::fs::write(&file, &text).unwrap();
    for command in ["fmt {0}", "fmt --check {0}"] {
        let error = fail(1, command, &[&file]);
        assert!(error.contains("E0010"), "{error}");
        assert!(std::fs::read_to_string(&file).unwrap() == text);
    }
}

#[test]
fn every_stage_is_shown() {
    let emit = |stage: &str| {
        succeed(
            &format!("emit examples/04-maxwell1d.torre --stage {stage}"),
            &[],
        )
    };
    assert!(emit("ast").contains("problem "));
    assert!(emit("scheme").starts_with("scheme "));
    assert!(emit("cones").starts_with("cones of "));
    assert!(emit("clif").contains("function u0:0("));
    if has_llvm() {
        assert!(emit("llvm").contains("define "));
        assert!(emit("asm").contains("torre_s0_p0_u1:"));
    }
}

#[test]
fn the_program_of_the_readme_is_right() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let program = text.split("```torre\n").nth(1).unwrap();
    let program = program.split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("readme.torre");
    std::fs::write(&source, program).unwrap();
    let report = succeed("check {0} --report json", &[&source]);
    assert_eq!(report, "[]\n");
    succeed("run {0} --quiet --set steps=1", &[&source]);
}

/// A program that cannot be read has a report as one with faults has.
#[test]
fn a_check_of_an_absent_file_has_a_report() {
    let output = run("check nowhere.torre --report json", &[]);
    assert_eq!(output.status.code(), Some(1));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found[0]["code"], "E0801");
    assert_eq!(found[0]["severity"], "error");
    assert!(output.stderr.is_empty());
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    use std::process::Stdio;
    let mut child = torre()
        .args(["emit", "examples/12-elastic3d.torre", "--stage", "scheme"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// The readers of messages and of the outcome may end before the run.
#[test]
fn a_run_outlives_the_readers_of_its_messages() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 8);
    let state = folder.path().join("state");
    let closed = || std::io::pipe().unwrap().1;
    // A note says that results are not written.
    let mut command = torre();
    command
        .arg("run")
        .arg(&source)
        .arg("--checkpoint")
        .arg(&state);
    let status = command.stdout(closed()).stderr(closed()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(state.join("state.checkpoint").exists());
}

/// A file with some problems, each of which is small.
fn many(folder: &Path, count: usize) -> PathBuf {
    let problem = |n: usize| {
        format!(
            "problem p{n} {{\n  scheme maxwell_tm\n  domain 16 x 16\n  boundary all: cpml(3)\n  \
             source Ez at (8, 8) += exp(-((t - 2) / 0.5)^2)\n  steps 10\n}}\n"
        )
    };
    let problems: String = (0..count).map(problem).collect();
    let path = folder.join(format!("many-{count}.torre"));
    std::fs::write(&path, format!("use std::maxwell::maxwell_tm\n{problems}")).unwrap();
    path
}

/// Seconds of a processor that checking a file takes.
fn seconds_to_check(file: &Path) -> f64 {
    let mut command = torre();
    command.arg("check").arg(file).arg("--quiet");
    #[expect(clippy::zombie_processes, reason = "`wait4` waits for it")]
    let child = command.spawn().unwrap();
    let (mut status, id) = (0, child.id() as libc::pid_t);
    // SAFETY: all bits of the structure may be 0.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is that of this function, and nothing else waits for it.
    let ended = unsafe { libc::wait4(id, &mut status, 0, &mut used) };
    assert_eq!((ended, status), (id, 0));
    used.ru_utime.tv_sec as f64 + used.ru_utime.tv_usec as f64 / 1e6
}

/// A file is parsed once, whichever number of problems it has: four times as many take about four times as long.
#[test]
fn checking_takes_time_in_proportion_to_problems() {
    let folder = tempfile::tempdir().unwrap();
    let [few, more] = [50, 200].map(|count| seconds_to_check(&many(folder.path(), count)));
    assert!(more < 8.0 * few, "{few} s, {more} s");
}

/// Places in other sources, and places far from each other in one, are shown by themselves.
#[test]
fn places_of_messages_are_shown_by_themselves() {
    let problem = "problem p { scheme wave_2d; domain 40 x 40; boundary all: cpml(8); steps 5 }";
    let (_folder, source) = written(&format!("use std::wave::wave_2d\n{problem}"));
    let error = fail(1, "check {0}", &[Path::new(&source)]);
    assert!(
        error.contains("E0517") && error.contains("in `std::wave`"),
        "{error}"
    );
    assert!(!error.contains("Advice"), "{error}");
    let filler = "// a line between\n".repeat(30);
    let text = format!(
        "def rate(u) = u + d(u, x)\n{filler}scheme s {{
           axes x
           param h = 1
           field u : scalar on nodes
           step {{ u += rate(u) }}
         }}
         problem p {{ scheme s; domain 40; steps 5 }}"
    );
    let (_folder, source) = written(&text);
    let error = fail(1, "check {0}", &[Path::new(&source)]);
    assert!(
        error.contains("E0201") && error.contains("rate(u)"),
        "{error}"
    );
    assert!(error.matches("a line between").count() < 6, "{error}");
}

/// A terminal obeys control characters, and their authors are not relied on.
#[test]
fn messages_escape_control_characters_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let text = "scheme s { axes x; field u : scalar on cells; step { allow W0301; u = u } }
problem p { scheme s; domain 8; init u = table(\"tb.csv\", x); steps 1 }\n";
    let source = folder.path().join("p.torre");
    let table = folder.path().join("tb.csv");
    std::fs::write(&source, text).unwrap();
    let shows = |parts: &[&str]| {
        let error = fail(1, "check {0}", &[&source]);
        let is_plain = |c: char| !c.is_control() || "\n\t".contains(c);
        assert!(error.chars().all(is_plain), "{error:?}");
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    };
    std::fs::write(&table, "0,1\n1,\x1b[31mred\x1b]0;title\x07\n").unwrap();
    shows(&["\\u{1b}[31mred\\u{1b}]0"]);
    std::fs::write(&table, "0,1\r1,2\r").unwrap();
    shows(&["`1\\r1`"]);
    // Beside the place of an error, too, and in lines that are too long to be drawn.
    for far in [0, 2000] {
        let comment = format!("unknown /* \x1b[2J \u{9b}2J */ {}", " ".repeat(far));
        std::fs::write(&source, text.replace("table(", &format!("{comment} + f("))).unwrap();
        shows(&["unknown /* \\u{1b}[2J"]);
    }
}
