//! Frames of earlier steps in the results of a run that goes on.

use crate::support::*;

/// The store is made of the volumes beside it when a run ends.
#[test]
fn a_store_does_not_lose_the_frames_of_an_earlier_end() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 24);
    let path = |name: &str| folder.path().join(name);
    let (out, checkpoint) = (path("out"), path("checkpoint"));
    let common = "run {0} --quiet --threads 1 --backend cranelift --format zarr --out {1}";
    let first = format!("{common} --set steps=13 --checkpoint {{2}}");
    succeed(&first, &[&source, &out, &checkpoint]);
    assert!(out.join("volumes.zarr").exists());
    std::fs::remove_dir_all(out.join("volumes")).unwrap();
    let before = files(&out);
    let resume = format!("{common} --resume {{2}}");
    // Other results beside the store change nothing about its frames.
    for more in [
        "",
        "--save-final",
        "--save-initial",
        "--set steps=13 --save-final",
    ] {
        let error = fail(
            1,
            &format!("{resume} {more}"),
            &[&source, &out, &checkpoint],
        );
        let said = "volumes.zarr` would lose a frame of `u`";
        assert!(unwrapped(&error).contains(said), "{more}: {error}");
        assert_same_files(&files(&out), &before, more);
    }
    let text = std::fs::read_to_string(&source).unwrap();
    let renamed = text.replace(
        "output   volume u every 8",
        "output   volume u every 8\n  output   volume u in x = 2..9 every 8",
    );
    assert_ne!(text, renamed);
    std::fs::write(&source, renamed).unwrap();
    let error = fail(1, &resume, &[&source, &out, &checkpoint]);
    assert!(
        unwrapped(&error).contains("would lose a frame of `u`"),
        "{error}"
    );
    std::fs::write(&source, text).unwrap();
    // A store that cannot be read may have such frames.
    for damaged in ["zarr.json", "time/c/0"] {
        let file = out.join("volumes.zarr").join(damaged);
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let error = fail(1, &resume, &[&source, &out, &checkpoint]);
        let said = unwrapped(&error);
        assert!(
            said.contains("would be replaced unread") && said.contains(damaged),
            "{error}"
        );
        std::fs::write(&file, &whole).unwrap();
    }
    succeed(
        &format!("{resume} --overwrite"),
        &[&source, &out, &checkpoint],
    );
    // A run that goes on elsewhere has a store of the later frames alone, which the same command makes anew.
    let (elsewhere, first) = (path("elsewhere"), files(&checkpoint));
    let again = &[source.as_path(), &elsewhere, &checkpoint];
    succeed(&resume, again);
    succeed(&resume, again);
    assert_same_files(&files(&checkpoint), &first, "the checkpoint");
}

/// The end of a run over files is a state from which the same command goes on, so its frames stay beside the store.
#[test]
fn frames_of_a_run_over_files_stay_beside_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 24);
    let path = |name: &str| folder.path().join(name);
    let (out, state, whole) = (path("out"), path("state"), path("whole"));
    let common = "run {0} --quiet --threads 1 --backend cranelift --format zarr --out {1}";
    let window = format!("{common} --window {{2}}");
    succeed(
        &format!("{window} --set steps=13"),
        &[&source, &out, &state],
    );
    succeed(
        &format!("{window} --resume {{2}}"),
        &[&source, &out, &state],
    );
    succeed(common, &[&source, &whole]);
    let store = |folder: &std::path::Path| files(&folder.join("volumes.zarr"));
    assert_same_files(&store(&out), &store(&whole), "store");
}

/// A pond, and how it is written anew with other outputs.
fn pond_with_outputs(folder: &std::path::Path) -> (std::path::PathBuf, impl Fn(&str)) {
    let source = pond(folder, 50, 24);
    let text = std::fs::read_to_string(&source).unwrap();
    let file = source.clone();
    let write = move |outputs: &str| {
        let own = text.replace("output   volume u every 8", outputs);
        std::fs::write(&file, own).unwrap();
    };
    (source, write)
}

/// Frames before a checkpoint are those of the same output, or the run is refused.
#[test]
fn frames_of_another_output_are_not_mixed_in() {
    let folder = tempfile::tempdir().unwrap();
    let (source, write) = pond_with_outputs(folder.path());
    let path = |name: &str| folder.path().join(name);
    let (out, checkpoint) = (path("out"), path("checkpoint"));
    let common = "run {0} --quiet --threads 1 --backend cranelift --out {1}";
    write("output volume u in x = 0..20 every 8");
    let first = format!("{common} --set steps=8 --checkpoint {{2}}");
    succeed(&first, &[&source, &out, &checkpoint]);
    let before = files(&out);
    let resume = format!("{common} --resume {{2}} --checkpoint {{2}}");
    for outputs in [
        "output volume u in x = 20..40 every 8",
        "output volume u in x = 0..30 every 8",
    ] {
        write(outputs);
        let error = fail(1, &resume, &[&source, &out, &checkpoint]);
        assert!(
            error.contains("E0812") && error.contains("another output `u`"),
            "{error}"
        );
        assert_same_files(&files(&out), &before, outputs);
        let error = fail(1, "plot {0} --out {1}", &[&source, &out]);
        assert!(error.contains("another output `u`"), "{error}");
    }
    // A run without the output between the two changes nothing.
    write("");
    let between = format!("{resume} --set steps=16");
    succeed(&between, &[&source, &out, &checkpoint]);
    write("output volume u in x = 20..40 every 8");
    let error = fail(1, &resume, &[&source, &out, &checkpoint]);
    assert!(error.contains("another output `u`"), "{error}");
    // Other steps, and other outputs beside it.
    write("output volume u in x = 0..20 every 4\n  output slice u x = 30 every 8");
    succeed(&resume, &[&source, &out, &checkpoint]);
}

/// A run that goes on with other steps, or without an output, does not make the store smaller.
#[test]
fn a_store_keeps_the_frames_of_earlier_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (source, write) = pond_with_outputs(folder.path());
    let path = |name: &str| folder.path().join(name);
    let (out, checkpoint, whole) = (path("out"), path("checkpoint"), path("whole"));
    let common = "run {0} --quiet --threads 1 --backend cranelift --format zarr --out {1}";
    let both = "output volume u every 4\n  output volume u in x = 2..9 every 4";
    write(both);
    succeed(
        &format!("{common} --save-initial --set steps=12 --checkpoint {{2}}"),
        &[&source, &out, &checkpoint],
    );
    let before = files(&out);
    let resume = format!("{common} --resume {{2}}");
    write("output volume u every 8");
    let error = fail(1, &resume, &[&source, &out, &checkpoint]);
    let said = "would lose 4 frames of `u-2`, which is no output of this run";
    assert!(
        error.contains("E0812") && unwrapped(&error).contains(said),
        "{error}"
    );
    assert_same_files(&files(&out), &before, "refused");
    // Steps 16 and 24 beside the earlier steps, and step 0 without its option.
    write(&both.replace("every 4", "every 8"));
    for _ in 0..2 {
        succeed(&resume, &[&source, &out, &checkpoint]);
        let times = std::fs::read(out.join("volumes.zarr/time/c/0")).unwrap();
        assert_eq!(times.len() / 8, 6);
    }
    // The frames are equal to frames of a run that was never interrupted.
    write(both);
    let all = format!("{common} --save-initial --checkpoint {{2}}");
    succeed(&all, &[&source, &whole, &path("other")]);
    for step in [0, 4, 8, 12, 16, 24] {
        let name = format!("volumes/u-{step:08}.npy");
        let read = |folder: &std::path::Path| std::fs::read(folder.join(&name)).unwrap();
        assert!(read(&out) == read(&whole), "{name}");
    }
}

/// The same run done anew writes its own frames alone; the other frames stay in the store as long as the folder has
/// them.
#[test]
fn a_run_that_begins_anew_loses_no_frames_of_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let (source, write) = pond_with_outputs(folder.path());
    let path = |name: &str| folder.path().join(name);
    let (out, checkpoint) = (path("out"), path("checkpoint"));
    let anew = "run {0} --quiet --threads 1 --backend cranelift --format zarr --out {1}";
    write("output volume u every 4");
    succeed(
        &format!("{anew} --save-initial --set steps=12 --checkpoint {{2}}"),
        &[&source, &out, &checkpoint],
    );
    write("output volume u every 8");
    succeed(
        &format!("{anew} --resume {{2}}"),
        &[&source, &out, &checkpoint],
    );
    let store = || files(&out.join("volumes.zarr"));
    let whole = store();
    for again in ["once", "twice", "three times"] {
        succeed(anew, &[&source, &out]);
        assert_same_files(&store(), &whole, again);
        for step in [0, 4, 8, 12, 16, 24] {
            let there = out.join(format!("volumes/u-{step:08}.npy")).exists();
            assert_eq!(there, step % 8 != 0 || step == 0, "{again}: {step}");
        }
    }
    // Without these frames the store cannot be made again.
    std::fs::remove_file(out.join("volumes/u-00000004.npy")).unwrap();
    let error = fail(1, anew, &[&source, &out]);
    let said = "volumes.zarr` would lose a frame of `u`, which";
    assert!(
        error.contains("E0812") && unwrapped(&error).contains(said),
        "{error}"
    );
    assert_same_files(&store(), &whole, "refused");
    succeed(&format!("{anew} --overwrite"), &[&source, &out]);
    let times = std::fs::read(out.join("volumes.zarr/time/c/0")).unwrap();
    assert_eq!(times.len() / 8, 5);
}
