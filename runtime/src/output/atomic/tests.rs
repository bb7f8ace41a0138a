use super::name::boot;
use super::*;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_complete_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("deep/er/a.npy");
    let mut file = AtomicFile::create(&target).unwrap();
    file.put(b"first").unwrap();
    file.flush().unwrap();
    assert!(!target.exists());
    let during = names(target.parent().unwrap());
    assert!(
        during.len() == 1 && during[0].ends_with(SUFFIX),
        "{during:?}"
    );
    drop(file);
    assert!(names(target.parent().unwrap()).is_empty());

    write_file(&target, b"second").unwrap();
    write_file(&target, b"third").unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"third");
    assert_eq!(names(target.parent().unwrap()), ["a.npy"]);
}

#[test]
fn an_abandoned_replacement_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a");
    write_file(&target, b"old").unwrap();
    let mut file = AtomicFile::create(&target).unwrap();
    file.put(&vec![1; 1 << 20]).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"old");
    drop(file);
    assert_eq!(fs::read(&target).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a"]);
}

/// `/dev/stdout` is such a link.
#[test]
#[cfg(target_os = "linux")]
fn a_link_to_an_open_file_is_not_replaced() {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let open = fs::File::create(folder.path().join("open")).unwrap();
    let link = folder.path().join("link");
    symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), &link).unwrap();
    let further = folder.path().join("further");
    symlink("link", &further).unwrap();
    for target in [&link, &further] {
        let refused = AtomicFile::create(target).unwrap_err();
        assert!(matches!(refused.cause, Cause::Irregular), "{refused}");
        try_file(target).unwrap_err();
    }
    assert_eq!(names(folder.path()), ["further", "link", "open"]);
    // Other links give way to the file.
    let plain = folder.path().join("plain");
    symlink("open", &plain).unwrap();
    write_file(&plain, b"text").unwrap();
    assert!(!plain.is_symlink());
    assert!(fs::read(folder.path().join("open")).unwrap().is_empty());
}

#[test]
fn two_writers_of_one_name_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a");
    let mut one = AtomicFile::create(&target).unwrap();
    let mut two = AtomicFile::create(&target).unwrap();
    one.put(b"one").unwrap();
    two.put(b"two").unwrap();
    one.commit().unwrap();
    two.commit().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"two");
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn folders_replace_only_their_kind() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    for text in ["old", "new"] {
        let store = AtomicFolder::create(&target, "mark").unwrap();
        store.write("mark", b"").unwrap();
        store.write("c/0/0", text.as_bytes()).unwrap();
        assert_ne!(fs::read(target.join("c/0/0")).ok(), Some(text.into()));
        store.commit().unwrap();
        assert_eq!(fs::read(target.join("c/0/0")).unwrap(), text.as_bytes());
    }
    assert_eq!(names(folder.path()), ["store"]);

    let thesis = folder.path().join("thesis");
    fs::create_dir(&thesis).unwrap();
    drop(AtomicFolder::create(&thesis, "mark").unwrap());
    fs::write(thesis.join("chapter"), "text").unwrap();
    let refused = AtomicFolder::create(&thesis, "mark").unwrap_err();
    assert!(matches!(refused.cause, Cause::ForeignFolder { .. }));
    assert!(refused.to_string().contains("thesis"), "{refused}");
    // A folder that fills up meanwhile is not replaced either.
    let late = folder.path().join("late");
    let store = AtomicFolder::create(&late, "mark").unwrap();
    fs::create_dir(&late).unwrap();
    fs::write(late.join("chapter"), "text").unwrap();
    store.commit().unwrap_err();
    assert_eq!(names(&late), ["chapter"]);
    assert_eq!(names(folder.path()), ["late", "store", "thesis"]);
}

/// Sets the time of the last change `seconds` seconds back.
fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    let file = match path.is_dir() {
        true => File::open(path),
        false => File::options().write(true).open(path),
    };
    file.unwrap().set_modified(time).unwrap();
}

#[test]
fn leftovers_that_nobody_writes_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mine = AtomicFile::create(&at("living.npy")).unwrap();
    let mine_too = AtomicFolder::create(&at("living.zarr"), "mark").unwrap();
    let Some(boot) = boot() else { return };
    // The ID of a living process, as it may be that of a dead one in another container.
    let pid = std::process::id();
    let dead = at(&format!("E.z.npy.{boot}-{pid}-1000000.part"));
    let dead_store = at(&format!("out.zarr.{boot}-{pid}-1000001.part"));
    // Of another machine, or of this one before it was started.
    let recent = at("E.z.npy.0123abcd-4194999-0.part");
    let old = at("E.z.npy.0123abcd-4194999-1.part");
    let old_store = at("out.zarr.0123abcd-1-2.part");
    let foreign = at("E.z.npy.gggggggg-4194999-0.part");
    let others = [
        &foreign,
        &at("note.part"),
        &at("b.npy"),
        &at(".0123abcd-1-1.part"),
    ];
    for path in [&dead, &recent, &old].into_iter().chain(others) {
        fs::write(path, "x").unwrap();
    }
    for store in [&dead_store, &old_store] {
        fs::create_dir(store).unwrap();
        fs::write(store.join("c"), "x").unwrap();
    }
    let link = at(&format!("link.{boot}-{pid}-1000002.part"));
    std::os::unix::fs::symlink(at("b.npy"), &link).unwrap();
    for path in [&old, &old_store, &foreign] {
        age(path, 100_000);
    }
    assert_eq!(
        remove_leftovers_of(&at("living.npy")),
        [""; 0].map(PathBuf::from)
    );
    let mut expected = [dead, dead_store, old, old_store];
    expected.sort();
    let of = remove_leftovers_of(&at("E.z.npy"));
    assert_eq!(of, [&expected[0], &expected[1]].map(Clone::clone));
    assert_eq!(remove_leftovers(folder.path()), expected[2..]);
    assert!(recent.exists() && link.is_symlink() && others.iter().all(|path| path.exists()));
    assert!(remove_leftovers(&at("missing")).is_empty());
    mine.commit().unwrap();
    mine_too.write("mark", b"").unwrap();
    mine_too.commit().unwrap();
    assert!(at("living.npy").is_file() && at("living.zarr/mark").is_file());
}

#[test]
fn files_that_are_cleared_away_while_they_begin_begin_anew() {
    let folder = tempfile::tempdir().unwrap();
    let ended = std::sync::atomic::AtomicBool::new(false);
    let failed = std::thread::scope(|scope| {
        let cleaner = scope.spawn(|| {
            let mut removed = 0;
            while !ended.load(Ordering::Relaxed) {
                removed += remove_leftovers(folder.path()).len();
            }
            removed
        });
        let begun = std::time::Instant::now();
        let mut failed = None;
        let mut number = 0;
        while failed.is_none() && (number < 20 || begun.elapsed() < Duration::from_millis(500)) {
            number += 1;
            let store = AtomicFolder::create(&folder.path().join("store"), "mark");
            failed = write_file(&folder.path().join("file"), b"x")
                .and_then(|()| {
                    let store = store?;
                    store.write("mark", b"")?;
                    store.commit()
                })
                .err();
        }
        ended.store(true, Ordering::Relaxed);
        println!("{number} times, {} removed", cleaner.join().unwrap());
        failed
    });
    assert!(failed.is_none(), "{}", failed.unwrap());
    assert_eq!(names(folder.path()), ["file", "store"]);
}

#[test]
fn a_store_has_its_name_all_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    let fill = |text: &str| {
        let store = AtomicFolder::create(&target, "mark").unwrap();
        store.write("mark", text.as_bytes()).unwrap();
        store
    };
    fill("first").commit().unwrap();
    let ended = std::sync::atomic::AtomicBool::new(false);
    let (looks, misses) = std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let (mut looks, mut misses) = (0, 0);
            while !ended.load(Ordering::Relaxed) {
                looks += 1;
                misses += u64::from(!target.join("mark").is_file());
            }
            (looks, misses)
        });
        for _ in 0..30 {
            fill("next").commit().unwrap();
        }
        ended.store(true, Ordering::Relaxed);
        looker.join().unwrap()
    });
    assert!(looks > 0);
    assert_eq!(misses, 0, "of {looks}");
    assert_eq!(names(folder.path()), ["store"]);
}

#[test]
fn where_names_cannot_be_exchanged_a_store_steps_aside() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("store");
    let unsupported = |_: &Path, _: &Path| Err(rustix::io::Errno::INVAL.into());
    for text in ["old", "new"] {
        let store = AtomicFolder::create(&target, "mark").unwrap();
        store.write("mark", text.as_bytes()).unwrap();
        store.commit_by(unsupported).unwrap();
        assert_eq!(fs::read_to_string(target.join("mark")).unwrap(), text);
        assert_eq!(names(folder.path()), ["store"]);
    }
    // After a kill in between, the older one is not taken for a leftover.
    let aside = folder::name_aside(&target).unwrap();
    fs::rename(&target, &aside).unwrap();
    assert_eq!(remove_leftovers(folder.path()), [""; 0].map(PathBuf::from));
    fs::rename(&aside, &target).unwrap();
    // Any other error leaves the older one where it is.
    let store = AtomicFolder::create(&target, "mark").unwrap();
    store.write("mark", b"newer").unwrap();
    let denied = |_: &Path, _: &Path| Err(rustix::io::Errno::ACCESS.into());
    let error = store.commit_by(denied).unwrap_err();
    assert_eq!(error.attempt, Attempt::Rename);
    assert_eq!(fs::read_to_string(target.join("mark")).unwrap(), "new");
    assert_eq!(names(folder.path()), ["store"]);
}

#[test]
fn devices_and_pipes_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    for path in [&pipe, &link] {
        let error = write_file(path, b"x").unwrap_err();
        assert!(matches!(error.cause, Cause::Irregular), "{error}");
    }
    assert_eq!(names(folder.path()), ["link", "pipe"]);
    try_file(&folder.path().join("new/file")).unwrap();
    assert_eq!(names(&folder.path().join("new")), [""; 0]);
    assert!(try_file(folder.path()).is_err());
    assert!(try_file(&pipe).is_err());
}

/// Names the folder for `a_process_to_be_interrupted`.
const INTERRUPTED: &str = "TORRE_TEST_INTERRUPTED_WRITER";

#[test]
fn a_process_to_be_interrupted() {
    // Does something only in the process that the next test starts.
    let Some(folder) = std::env::var_os(INTERRUPTED) else {
        return;
    };
    let folder = Path::new(&folder);
    write_file(&folder.join("whole"), b"whole").unwrap();
    let mut file = AtomicFile::create(&folder.join("file")).unwrap();
    file.put(&vec![1; 1 << 20]).unwrap();
    let store = AtomicFolder::create(&folder.join("store"), "mark").unwrap();
    store.write("c/0", b"chunk").unwrap();
    std::thread::scope(|scope| {
        // Goes on writing until the end of the process.
        scope.spawn(|| {
            for number in 0.. {
                store.write(&format!("c/{number}"), b"chunk").unwrap();
                write_file(&folder.join("whole"), b"whole").unwrap();
            }
        });
        std::thread::sleep(Duration::from_millis(30));
        abandon();
        std::process::exit(7);
    });
}

#[test]
fn an_interrupt_leaves_whole_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "output::atomic::tests::a_process_to_be_interrupted",
        ])
        .env(INTERRUPTED, folder.path())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
    assert_eq!(names(folder.path()), ["whole"]);
    assert_eq!(fs::read(folder.path().join("whole")).unwrap(), b"whole");
}

/// Names the folder for `a_process_to_be_killed`.
const KILLED: &str = "TORRE_TEST_KILLED_WRITER";

#[test]
fn a_process_to_be_killed() {
    // Does something only in the process that the next test starts.
    let Some(folder) = std::env::var_os(KILLED) else {
        return;
    };
    let folder = Path::new(&folder);
    let mut file = AtomicFile::create(&folder.join("a.npy")).unwrap();
    file.put(&vec![1; 1 << 20]).unwrap();
    let store = AtomicFolder::create(&folder.join("a.zarr"), "mark").unwrap();
    store.write("c/0", b"chunk").unwrap();
    println!("\nready");
    // Until the kill; if the other process is gone, the input ends.
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn a_killed_process_leaves_the_old_file_and_only_temporary_names() {
    use std::io::BufRead;
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.npy");
    write_file(&target, b"old").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "output::atomic::tests::a_process_to_be_killed"])
        .arg("--nocapture")
        .env(KILLED, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = io::BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line == "ready");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ready);
    assert_eq!(fs::read(&target).unwrap(), b"old");
    let left = names(folder.path());
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(
        left[1..].iter().all(|name| name.ends_with(SUFFIX)),
        "{left:?}"
    );
    if boot().is_some() {
        assert_eq!(remove_leftovers(folder.path()).len(), 2);
        assert_eq!(names(folder.path()), ["a.npy"]);
    }
}

#[test]
fn errors_name_the_path_and_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    let error = AtomicFile::create(&folder.path().join("file/a.npy")).unwrap_err();
    assert_eq!(error.attempt, Attempt::Create);
    assert!(error.to_string().contains("file/a.npy"), "{error}");
    fs::create_dir(folder.path().join("taken")).unwrap();
    let error = write_file(&folder.path().join("taken"), b"").unwrap_err();
    assert_eq!(error.attempt, Attempt::Rename);
    assert_eq!(names(folder.path()), ["file", "taken"]);
    assert!(AtomicFile::create(Path::new("/")).is_err());
}
