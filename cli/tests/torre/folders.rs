//! Folders of results: one run at a time, one program, and nothing left behind.

use crate::support::*;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Starts a run that takes long, and waits until it has its folder.
fn start(command: &mut Command, out: &Path) -> Running {
    start_until(command, &out.join("report.json"))
}

fn report(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap()
}

/// A run that lost its folder, or the lock in it, writes nothing there any more.
#[test]
fn a_run_whose_folder_or_lock_is_removed_ends_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = long_pond(folder.path());
    for lost in ["out", "out/.torre.lock", "state", "state/.torre.lock"] {
        let [out, state] = ["out", "state"].map(|name| folder.path().join(name));
        let mut running = start_with_checkpoints(&source, [&out, &state]);
        let lost = folder.path().join(lost);
        let begun = Instant::now();
        // The run may make a file in the folder meanwhile.
        while lost.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            _ = fs::remove_file(&lost);
            _ = fs::remove_dir_all(&lost);
        }
        let error = unwrapped(&running.error());
        assert!(error.contains("E0802"), "{error}");
        // A file that is written while its folder is removed cannot get its name.
        let said = "it was removed, moved or replaced";
        assert!(
            error.contains(said) || error.contains("No such file"),
            "{error}"
        );
        for left in [&out, &state] {
            _ = fs::remove_dir_all(left);
        }
    }
}

#[test]
fn a_folder_belongs_to_one_run_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 300, 4_000_000);
    let (out, state) = (folder.path().join("out"), folder.path().join("state"));
    let mut command = torre();
    command.args(["run", "--quiet", "--threads", "1"]);
    command.arg(&source).arg("--out").arg(&out);
    command
        .arg("--checkpoint")
        .arg(&state)
        .args(["--every", "100000"]);
    let running = start(&mut command, &out);
    let id = running.0.id();
    assert_eq!(report(&out)["complete"], false);
    for arguments in [
        "run {0} --quiet --set steps=3 --out {1}",
        "run {0} --quiet --set steps=3 --out {1} --overwrite",
        "run {0} --quiet --set steps=3 --checkpoint {1}",
        "run {0} --quiet --set steps=3 --out {1}/../state",
        "run {0} --quiet --set steps=3 --checkpoint {2}",
    ] {
        let error = fail(1, arguments, &[&source, &out, &state]);
        assert!(error.contains("E0811"), "{arguments}: {error}");
        let expected = format!("another run writes to it (pond.torre, process {id}");
        assert!(error.replace("\n  | ", " ").contains(&expected), "{error}");
    }
    // The lock of a process ends with it, however it ends.
    drop(running);
    assert!(out.join(".torre.lock").exists());
    succeed(
        "run {0} --quiet --set steps=3 --out {1} --overwrite --checkpoint {2}",
        &[&source, &out, &state],
    );
    assert!(!out.join(".torre.lock").exists() && !state.join(".torre.lock").exists());
    // Results and checkpoints may share a folder.
    let both = folder.path().join("both");
    succeed(
        "run {0} --quiet --set steps=3 --out {1} --checkpoint {1}",
        &[&source, &both],
    );
}

/// Runs a command in a namespace of processes of its own, as a container does; nothing where that is not allowed.
fn in_container(command: &Command) -> Option<Command> {
    let mut contained = Command::new("unshare");
    contained.args(["--pid", "--fork", "--kill-child"]);
    let allowed = Command::new("unshare")
        .args(["--pid", "--fork", "true"])
        .stderr(Stdio::null())
        .status();
    if !allowed.is_ok_and(|status| status.success()) {
        println!("skipped: namespaces of processes are not allowed");
        return None;
    }
    contained
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => contained.env(name, value),
            None => contained.env_remove(name),
        };
    }
    contained.current_dir(root());
    Some(contained)
}

#[test]
fn a_run_in_another_container_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 300, 4_000_000);
    let out = folder.path().join("out");
    let mut command = torre();
    command.args(["run", "--quiet", "--threads", "1"]);
    command.arg(&source).arg("--out").arg(&out);
    let Some(mut contained) = in_container(&command) else {
        return;
    };
    let _running = start(&mut contained, &out);
    let error = fail(
        1,
        "run {0} --quiet --set steps=3 --out {1}",
        &[&source, &out],
    );
    assert!(error.contains("E0811"), "{error}");
    // And the other way round, where the process of the first run has no ID at all.
    let second = folder.path().join("second");
    let mut command = torre();
    command.args(["run", "--quiet", "--threads", "1"]);
    command.arg(&source).arg("--out").arg(&second);
    let _other = start(&mut command, &second);
    let output = in_container(&command).unwrap().output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains("E0811"),
        "{error}"
    );
}

#[test]
fn pairs_of_runs_lose_no_frames() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 60, 48);
    let whole = folder.path().join("whole");
    let common = "run {0} --quiet --format zarr --out {1}";
    succeed(common, &[&source, &whole]);
    let whole = results(&whole);
    let mut refused = 0;
    for pair in 0..6 {
        let out = folder.path().join(format!("out-{pair}"));
        let run = || {
            let mut command = torre();
            command.args(["run", "--quiet", "--format", "zarr"]);
            command.arg(&source).arg("--out").arg(&out);
            command.stderr(Stdio::piped()).spawn().unwrap()
        };
        let outputs = [run(), run()].map(|child| child.wait_with_output().unwrap());
        assert!(outputs.iter().any(|output| output.status.success()));
        for output in outputs.iter().filter(|output| !output.status.success()) {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(error.contains("E0811"), "{error}");
            refused += 1;
        }
        assert_same_files(&whole, &results(&out), "a pair");
    }
    println!("{refused} refused");
}

/// A state that a run is at work on is in use, and nobody is told to remove it.
#[test]
fn fields_of_a_run_that_goes_on_are_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 4_000_000);
    let window = folder.path().join("window");
    let mut command = torre();
    let arguments = "run --quiet --threads 1 --backend cranelift --memory 4MB --window";
    command.args(arguments.split(' ')).arg(&window).arg(&source);
    let running = start_until(&mut command, &window.join("state.checkpoint"));
    let again = "run {0} --quiet --threads 1 --backend cranelift --memory 4MB --window {1}";
    let error = fail(1, again, &[&source, &window]);
    drop(running);
    assert!(error.contains("E0811"), "{error}");
    // Afterwards it is a state with which a run may go on.
    let error = fail(1, again, &[&source, &window]);
    assert!(error.contains("E0812"), "{error}");
}

#[test]
fn results_of_another_run_are_not_mixed_with() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 40);
    let out = folder.path().join("out");
    let run = "run {0} --quiet --out {1}";
    succeed(run, &[&source, &out]);
    let first = results(&out);
    // The same once more.
    succeed(run, &[&source, &out]);
    assert_same_files(&first, &results(&out), "the same");
    for (more, expected) in [
        ("--set steps=17", "of 40 steps"),
        (
            "--set dt=0.3",
            "another scheme or domain, or with other parameters",
        ),
        ("--precision f64", "in f32"),
        ("--save-final", "with other outputs"),
        ("--format zarr", "with other outputs"),
    ] {
        let error = fail(1, &format!("{run} {more}"), &[&source, &out]);
        let error = error.replace("\n  | ", " ");
        assert!(
            error.contains("E0812") && error.contains(expected),
            "{more}: {error}"
        );
        assert!(error.contains("--overwrite"), "{error}");
        assert_same_files(&first, &results(&out), more);
    }
    // Nothing of the longer run stays, and nothing else goes.
    fs::write(out.join("slices/notes.txt"), "mine").unwrap();
    let short = folder.path().join("short");
    let more = "--set steps=17 --overwrite";
    succeed(&format!("{run} {more}"), &[&source, &out]);
    succeed(&format!("{run} {more}"), &[&source, &short]);
    let mut found = results(&out);
    assert_eq!(found.remove("slices/notes.txt").unwrap(), b"mine");
    assert_same_files(&results(&short), &found, "overwritten");
    // Results without a report could be anything.
    fs::remove_file(out.join("report.json")).unwrap();
    let error = fail(1, &format!("{run} --set steps=17"), &[&source, &out]);
    assert!(
        error.contains("E0812") && error.contains("an unknown run"),
        "{error}"
    );
    // A run that was killed says which one it was.
    let killed = folder.path().join("killed");
    let mut command = torre();
    command.args(["run", "--quiet", "--set", "steps=4000000"]);
    command.arg(&source).arg("--out").arg(&killed);
    drop(start(&mut command, &killed));
    let error = fail(1, run, &[&source, &killed]);
    assert!(error.contains("of 4000000 steps"), "{error}");
}

#[test]
fn a_run_that_goes_on_elsewhere_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 40);
    let path = |name: &str| folder.path().join(name);
    let (out, state, other) = (path("out"), path("state"), path("other"));
    let paths = [&*source, &out, &state, &other];
    succeed(
        "run {0} --quiet --set steps=17 --out {1} --checkpoint {2}",
        &paths,
    );
    let run = |arguments: &str| {
        let output = run(arguments, &paths);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = run("run {0} --resume {2} --out {3}");
    assert!(
        said.contains("lacks 5 frames, of steps 3 to 15, of"),
        "{said}"
    );
    assert!(
        said.contains("lacks 2 frames, of steps 8 to 16, of"),
        "{said}"
    );
    // Where they are, nothing is said, and a longer run may go on beside a shorter one.
    let said = run("run {0} --resume {2} --out {1}");
    assert!(!said.contains("lacks"), "{said}");
    // But not beside frames after its end.
    let error = fail(
        1,
        "run {0} --quiet --resume {2} --out {1} --set steps=20",
        &paths,
    );
    assert!(
        error.contains("E0812") && error.contains("of 40 steps"),
        "{error}"
    );
}

/// The lock is removed at the end, and a report in its place would be.
#[test]
fn reports_spare_locks() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 8);
    let out = folder.path().join("out");
    let run = "run {0} --quiet --out {1} --report {2}";
    let error = fail(1, run, &[&source, &out, &out.join(".torre.lock")]);
    assert!(error.contains("E0814"), "{error}");
}

#[test]
fn a_refused_run_leaves_no_folders() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 8);
    let [out, state] = ["out", "out/state"].map(|name| folder.path().join(name));
    let run = "run {0} --quiet --out {1} --checkpoint {2}";
    let unstable = format!("{run} --set dt=5");
    let error = fail(1, &unstable, &[&source, &out, &state]);
    assert!(error.contains("E0815"), "{error}");
    assert!(!out.exists());
    // A state in the place of results.
    let error = fail(1, run, &[&source, &out, &out.join("slices")]);
    assert!(error.contains("E0814"), "{error}");
    assert!(!out.exists());
}

/// Two names may lead to a folder that is not there yet.
#[test]
fn a_window_and_checkpoints_never_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 8);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    let error = fail(
        2,
        "run {0} --quiet --backend cranelift --window {1} --checkpoint {2}",
        &[&source, &folder.path().join("new"), &link.join("new")],
    );
    assert!(error.contains("name the same folder"), "{error}");
}

/// A report takes the place of no result and no state of another run, and leaves them as they were.
#[test]
fn reports_spare_the_results_of_other_runs() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 8);
    let path = |name: &str| folder.path().join(name);
    let other = path("other");
    succeed(
        "run {0} --quiet --out {1} --checkpoint {2}",
        &[&source, &other, &path("state")],
    );
    let before = [&other, &path("state")].map(|folder| files(folder));
    let results = ["report.json", "probes.csv"].map(|name| other.join(name));
    let slice = files(&other)
        .into_keys()
        .find(|name| name.starts_with("slices/"));
    let slice = other.join(slice.expect("a slice"));
    let state = path("state").join("state.checkpoint");
    for file in results.iter().chain([&slice, &state]) {
        for run in ["run {0} --quiet", "run {0} --quiet --out {2} --overwrite"] {
            let run = format!("{run} --set steps=5 --report {{1}}");
            let error = fail(1, &run, &[&source, file, &path("own")]);
            assert!(error.contains("E0814"), "{error}");
        }
    }
    let after = [&other, &path("state")].map(|folder| files(folder));
    assert!(before == after);
    // A report without results may be written again, and new files beside results, too.
    for _ in 0..2 {
        for file in [path("alone/report.json"), other.join("more.json")] {
            succeed("run {0} --quiet --report {1}", &[&source, &file]);
        }
    }
}

#[test]
fn the_report_lists_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 40);
    for format in ["npy", "zarr", "vtk"] {
        let path = |name: &str| folder.path().join(format!("{name}-{format}"));
        let (out, state, extra) = (path("out"), path("state"), path("report.json"));
        let paths = [&*source, &out, &state, &extra];
        let common = format!("run {{0}} --quiet --save-final --format {format} --out {{1}}");
        let check = |out: &Path, more: &[&Path]| {
            let report = report(out);
            assert_eq!(report["complete"], true);
            let listed = report["files"].as_array().unwrap();
            let mut listed: Vec<&str> = listed.iter().map(|name| name.as_str().unwrap()).collect();
            for path in more {
                let at = listed.iter().position(|name| Path::new(name) == *path);
                listed.remove(at.expect("a file outside"));
            }
            // A store is one result.
            let mut found: Vec<String> = files(out)
                .into_keys()
                .map(|name| match name.find(".zarr/") {
                    Some(at) => name[..at + 5].to_owned(),
                    None => name,
                })
                .collect();
            found.dedup();
            assert_eq!(listed, found);
        };
        succeed(&format!("{common} --report {{3}}"), &paths);
        check(&out, &[&extra]);
        let copy: Value = serde_json::from_slice(&fs::read(&extra).unwrap()).unwrap();
        assert_eq!(copy, report(&out));
        // In parts.
        let parts = path("parts");
        let paths = [&*source, &parts, &state];
        succeed(
            &format!("{common} --set steps=17 --checkpoint {{2}}"),
            &paths,
        );
        check(&parts, &[&state.join("state.checkpoint")]);
        succeed(&format!("{common} --resume {{2}}"), &paths);
        check(&parts, &[]);
    }
}

#[test]
fn what_killed_processes_left_is_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 10);
    let at = |name: &str| folder.path().join(name);
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    // With the ID of a process that lives, as it may in another container.
    let now = format!("{}-{}-9", &boot[..8], std::process::id());
    let left = |name: &str, of: &str| {
        let path = at(&format!("{name}.{of}.part"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "half").unwrap();
        if of != now {
            let file = fs::File::options().write(true).open(&path).unwrap();
            let time = SystemTime::now() - Duration::from_secs(100_000);
            file.set_modified(time).unwrap();
        }
        path
    };
    for of in [now.as_str(), "0123abcd-77-0"] {
        let window = format!("window-{of}");
        let state = format!("{window}/state.checkpoint");
        let mut all = vec![
            left("r.json", of),
            left("e.txt", of),
            left("out/report.json", of),
            left("out/slices/a-00000001.npy", of),
            left("out/volumes/a-00000001.npy", of),
            left("out/fields/u.npy", of),
            left("state/state.checkpoint", of),
        ];
        let other = left("other.json", of);
        let store = at(&format!("out/volumes.zarr.{now}.part"));
        fs::create_dir_all(store.join("u/c")).unwrap();
        all.push(store);
        succeed("emit {0} --stage scheme -o {1}", &[&source, &at("e.txt")]);
        succeed(
            "run {0} --quiet --overwrite --out {1} --checkpoint {2} --report {3}",
            &[&source, &at("out"), &at("state"), &at("r.json")],
        );
        let over = "run {0} --quiet --threads 1 --backend cranelift --window {1}";
        let paths: &[&Path] = &[&source, &at(&window)];
        let part = left(&state, of);
        succeed(over, paths);
        assert!(!part.exists());
        all.push(left(&state, of));
        succeed(&format!("{over} --resume {{1}} --set steps=12"), paths);
        if has_llvm() {
            all.push(left("built/pond.o", of));
            all.push(left("built/pond.h", of));
            succeed("build {0} --quiet -o {1}", &[&source, &at("built")]);
        }
        for path in all {
            assert!(!path.exists(), "{}", path.display());
        }
        assert!(other.exists(), "of a file that is not written");
    }
}

/// Neither do results of other commands.
#[test]
fn commands_spare_the_results_of_runs() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 8);
    let [out, state] = ["out", "state"].map(|name| folder.path().join(name));
    succeed(
        "run {0} --quiet --out {1} --checkpoint {2}",
        &[&source, &out, &state],
    );
    let before = files(folder.path());
    for file in [
        out.join("report.json"),
        out.join("probes.csv"),
        state.join("state.checkpoint"),
    ] {
        for command in [
            "plan {0} --report {1}",
            "bench {0} --report {1}",
            "analyze {0} --report {1}",
            "emit {0} --stage scheme -o {1}",
        ] {
            let error = fail(1, command, &[&source, &file]);
            assert!(error.contains("E0814"), "{command}: {error}");
        }
    }
    let picture = out.join("probes.png");
    let error = fail(1, "check {0} --picture {1}", &[&source, &picture]);
    assert!(error.contains("E0814"), "{error}");
    assert!(files(folder.path()) == before);
    // A problem whose description would be the report of a run.
    let text = std::fs::read_to_string(&source).unwrap();
    let named = folder.path().join("named.torre");
    let problem = text.split("problem ").nth(1).unwrap();
    let name = problem.split_whitespace().next().unwrap();
    let from = format!("problem {name} ");
    std::fs::write(&named, text.replace(&from, "problem report ")).unwrap();
    let error = fail(1, "build {0} -o {1}", &[&named, &out]);
    assert!(error.contains("E0814"), "{error}");
    succeed("plan {0} --report {1}", &[&source, &out.join("plan.json")]);
}

#[test]
fn two_results_have_two_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.svg");
    let same = folder.path().join("./x.svg");
    let analyze = "analyze examples/01-wave1d.torre -o {0} --report {1}";
    let error = fail(2, analyze, &[&file, &same]);
    assert!(
        error.contains("E0809") && error.contains("same file"),
        "{error}"
    );
    assert!(!file.exists());
}

/// The names of built files come from the problem.
#[test]
fn built_files_take_no_place_of_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (program, table) = (path("p.h"), path("p.json"));
    let text = "scheme s {
  axes x
  param dt = 0.5
  field u : scalar on nodes
  step { u = 0.5 * u + 0.1 }
}
problem p {
  scheme s
  domain 8
  init u = table(\"p.json\", x)
  steps 3
}
";
    std::fs::write(&program, text).unwrap();
    std::fs::write(&table, "0, 0\n8, 1\n").unwrap();
    let before = files(folder.path());
    let error = fail(1, "build {0} -o {1}", &[&program, folder.path()]);
    assert!(error.contains("E0814"), "{error}");
    std::fs::rename(&program, path("other.torre")).unwrap();
    let error = fail(
        1,
        "build {0} -o {1}",
        &[&path("other.torre"), folder.path()],
    );
    assert!(error.contains("E0814"), "{error}");
    std::fs::rename(path("other.torre"), &program).unwrap();
    assert!(files(folder.path()) == before);
    if has_llvm() {
        succeed("build {0} --quiet -o {1}", &[&program, &path("built")]);
    }
}
