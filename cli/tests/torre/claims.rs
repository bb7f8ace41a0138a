//! Folders that another run takes while a run goes on.

use crate::support::*;
use std::fs;

/// Results and checkpoints each have a lock of their own. A run whose lock was removed leaves to another run what that
/// one has written since.
#[test]
fn a_run_that_lost_a_folder_to_another_run_leaves_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let source = long_pond(folder.path());
    let path = |name: &str| folder.path().join(name);
    let other = "run {0} --quiet --threads 1 --backend cranelift --set steps=80 --overwrite";
    for (lost, more) in [
        ("out", "--out {1}"),
        ("state", "--checkpoint {1} --out {2}"),
    ] {
        let [out, state] = ["out", "state"].map(path);
        let mut running = start_with_checkpoints(&source, [&out, &state]);
        let lost = path(lost);
        fs::remove_file(lost.join(".torre.lock")).unwrap();
        succeed(
            &format!("{other} {more}"),
            &[&source, &lost, &path("elsewhere")],
        );
        let error = running.error();
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
