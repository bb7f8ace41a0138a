//! Folders that another run takes while a run goes on.

use crate::support::*;
use std::fs;
use std::process::Stdio;

/// Results and checkpoints each have a lock of their own. A run whose lock was removed leaves to another run what that
/// one has written since.
#[test]
fn a_run_that_lost_a_folder_to_another_run_leaves_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 300, 40_000_000);
    let every = fs::read_to_string(&source).unwrap();
    fs::write(&source, every.replace("every 8", "every 80")).unwrap();
    let path = |name: &str| folder.path().join(name);
    let other = "run {0} --quiet --threads 1 --backend cranelift --set steps=80 --overwrite";
    for (lost, more) in [
        ("out", "--out {1}"),
        ("state", "--checkpoint {1} --out {2}"),
    ] {
        let [out, state] = ["out", "state"].map(path);
        let mut command = torre();
        command.args(["run", "--quiet", "--threads", "1", "--backend", "cranelift"]);
        command.arg(&source).arg("--out").arg(&out);
        command.arg("--checkpoint").arg(&state);
        command.args(["--every", "160"]).stderr(Stdio::piped());
        let mut running = start_until(&mut command, &state.join("state.checkpoint"));
        let lost = path(lost);
        fs::remove_file(lost.join(".torre.lock")).unwrap();
        succeed(
            &format!("{other} {more}"),
            &[&source, &lost, &path("elsewhere")],
        );
        let mut error = String::new();
        let stderr = running.0.stderr.as_mut().unwrap();
        std::io::Read::read_to_string(stderr, &mut error).unwrap();
        assert_eq!(running.0.wait().unwrap().code(), Some(1), "{error}");
        let said = "it was removed, moved or replaced";
        assert!(
            error.contains("E0802") && unwrapped(&error).contains(said),
            "{error}"
        );
        // Its own results are those of 80 steps: a checkpoint, or the frame of the end.
        let left = files(&lost);
        let alone = path("alone");
        succeed(
            &format!("{other} {more}"),
            &[&source, &alone, &path("elsewhere")],
        );
        for (name, bytes) in files(&alone) {
            let timed = name.ends_with(".json");
            assert!(timed || left.get(&name) == Some(&bytes), "{name}");
        }
        for left in [&out, &state, &alone] {
            _ = fs::remove_dir_all(left);
        }
    }
}
