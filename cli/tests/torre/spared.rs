//! Files that a command would have to replace, and may not.

use crate::support::*;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Makes something at a path; the other path is that of a folder elsewhere.
type Make = fn(&Path, &Path);

/// What lies behind a link may be in use elsewhere; nothing else is removed then.
#[test]
fn results_behind_links_are_not_removed_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 16);
    let [out, far] = ["out", "far"].map(|name| folder.path().join(name));
    for name in [&out, &far] {
        std::fs::create_dir(name).unwrap();
    }
    symlink(&far, out.join("slices")).unwrap();
    let run = "run {0} --quiet --threads 1 --backend cranelift --out {1}";
    succeed(run, &[&source, &out]);
    let before = files(&out);
    assert!(before.keys().any(|name| name.ends_with("report.json")));
    let again = format!("{run} --set steps=8 --overwrite");
    let error = fail(1, &again, &[&source, &out]);
    assert!(unwrapped(&error).contains("symbolic link"), "{error}");
    assert_same_files(&files(&out), &before, "behind a link");
}

/// A run learns before its first step that a store cannot have its name.
#[test]
fn stores_take_no_place_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 16);
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("far")).unwrap();
    let kinds: [(&str, Make); 3] = [
        ("file", |at, _| std::fs::write(at, "mine").unwrap()),
        ("folder", |at, _| {
            std::fs::create_dir(at).unwrap();
            std::fs::write(at.join("notes.txt"), "mine").unwrap();
        }),
        ("link", |at, far| symlink(far, at).unwrap()),
    ];
    for (kind, make) in kinds {
        for (store, more) in [
            ("volumes.zarr", ""),
            ("volumes.zarr", "--overwrite"),
            ("fields.zarr", "--save-final"),
        ] {
            let out = path("out");
            std::fs::create_dir(&out).unwrap();
            make(&out.join(store), &path("far"));
            let before = files(&out);
            let run = "run {0} --quiet --threads 1 --backend cranelift --format zarr --out {1}";
            let error = fail(1, &format!("{run} {more}"), &[&source, &out]);
            assert!(error.contains(store), "{kind}: {error}");
            assert_same_files(&files(&out), &before, kind);
            std::fs::remove_dir_all(&out).unwrap();
        }
    }
}

/// A run learns before its first step that it could not write to a folder of results.
#[test]
fn folders_of_results_are_tried_before_the_first_step() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 16);
    let text = std::fs::read_to_string(&source).unwrap();
    let more = "output   volume u every 8\n  output   spectrum u x = 9 for f = 0.02";
    let text = text.replace("output   volume u every 8", more);
    std::fs::write(&source, text).unwrap();
    let out = folder.path().join("out");
    let run = "run {0} --quiet --threads 1 --backend cranelift --out {1}";
    let kinds: [(&str, Make); 2] = [
        ("it is a file", |at, _| std::fs::write(at, "mine").unwrap()),
        ("leads nowhere", |at, far| symlink(far, at).unwrap()),
    ];
    for (said, make) in kinds {
        for (name, more) in [
            ("slices", ""),
            ("volumes", ""),
            ("volumes", "--format zarr"),
            ("spectra", "--overwrite"),
            ("fields", "--save-final"),
        ] {
            std::fs::create_dir(&out).unwrap();
            make(&out.join(name), &folder.path().join("far"));
            let error = unwrapped(&fail(1, &format!("{run} {more}"), &[&source, &out]));
            let all = ["E0802", name, said]
                .iter()
                .all(|part| error.contains(part));
            assert!(all, "{name} {said}: {error}");
            let names = std::fs::read_dir(&out).unwrap().count();
            assert_eq!(names, 1, "{name} {said}");
            std::fs::remove_dir_all(&out).unwrap();
        }
    }
}

/// Which modules a program reads is known only where one problem is named.
#[test]
fn emitted_text_takes_no_place_of_modules() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let scheme = "scheme s { axes x; param dt = 0.5; field u : scalar on nodes; step { u = 0.5 * u + 0.1 } }\n";
    let problems = "use own::s
problem a { scheme s; domain 8; steps 3 }
problem b { scheme s; domain 9; steps 3 }
";
    std::fs::write(path("own.torre"), scheme).unwrap();
    std::fs::write(path("program.torre"), problems).unwrap();
    symlink(path("program.torre"), path("link.torre")).unwrap();
    let before = files(folder.path());
    for written in ["own.torre", "program.torre", "link.torre"] {
        for more in ["", "--problem a"] {
            let command = format!("emit {{0}} --stage ast -o {{1}} {more}");
            let error = fail(1, &command, &[&path("program.torre"), &path(written)]);
            assert!(error.contains("E0814"), "{written} {more}: {error}");
        }
    }
    let command = "emit {0} --stage ast -o {1}";
    for library in [
        "use own::s\nscheme r : s { }\n",
        "use own :: s\nscheme r : s { }\n",
    ] {
        std::fs::write(path("library.torre"), library).unwrap();
        let error = fail(1, command, &[&path("library.torre"), &path("own.torre")]);
        assert!(error.contains("E0814"), "{error}");
    }
    // The name of another module ends with this one's.
    std::fs::write(path("n.torre"), "const x = 1\n").unwrap();
    succeed(command, &[&path("library.torre"), &path("n.torre")]);
    std::fs::remove_file(path("library.torre")).unwrap();
    std::fs::remove_file(path("n.torre")).unwrap();
    assert_same_files(&files(folder.path()), &before, "emitted");
    for _ in 0..2 {
        succeed(command, &[&path("program.torre"), &path("new.torre")]);
    }
}

/// The arrays of a window have names that other files may have.
#[test]
fn windows_take_no_place_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 16);
    let path = |name: &str| folder.path().join(name);
    let window = path("window");
    std::fs::create_dir(&window).unwrap();
    std::fs::write(window.join("fields.1"), "mine").unwrap();
    let before = files(folder.path());
    let run = "run {0} --quiet --threads 1 --backend cranelift --window {1}";
    let error = fail(1, run, &[&source, &window]);
    assert!(
        error.contains("E0812") && error.contains("fields.1"),
        "{error}"
    );
    assert_same_files(&files(folder.path()), &before, "foreign");
    // One that the program reads is spared in any case.
    let reading = path("reading.torre");
    let text =
        "scheme s { axes x, y; param dt = 0.5; field u : scalar on nodes; step { u = 0.5 * u + 0.1 } }
problem p { scheme s; domain 4 x 3; init u = file(\"window/fields.1\"); steps 3 }
";
    std::fs::write(&reading, text).unwrap();
    let array = npy_of_f32("(4, 3)", &[0.0; 12]);
    std::fs::write(window.join("fields.1"), array).unwrap();
    let before = files(folder.path());
    let over = format!("{run} --overwrite --out {{2}}");
    let error = fail(1, &over, &[&reading, &window, &path("out")]);
    assert!(error.contains("E0814"), "{error}");
    assert_same_files(&files(folder.path()), &before, "read");
    succeed(&over, &[&source, &window, &path("out")]);
}
