//! The cache of compiled objects: objects that are found, refused and removed; and how other users may try to have
//! their code run or the user's files removed.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;
use torre_compiler::backend::llvm::library::{
    Cpu, Jit, Level, Library, Object, Options, Passes, Target, Version,
};
use torre_runtime::cache::{Cache, Key, Origin, compile};

const LIMIT: u64 = 1 << 20;

fn scratch() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A constant function: the value tells which object it is.
fn ir(value: i32) -> String {
    format!("define i32 @f() {{ ret i32 {value} }}")
}

fn key(value: i32) -> Key {
    let version = Version {
        major: 22,
        minor: 1,
        patch: 2,
    };
    Key::new(version, &ir(value), &v3(), &Options::CPU)
}

fn v3() -> Target {
    Cpu::named("x86-64-v3").unwrap().target
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Sets the time of the last change `seconds` seconds back.
fn age(path: &Path, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    let time = SystemTime::now() - Duration::from_secs(seconds);
    file.set_modified(time).unwrap();
}

fn object(byte: u8, bytes: usize) -> Object {
    // SAFETY: these are only kept and compared, never loaded.
    unsafe { Object::from_bytes(vec![byte; bytes]) }
}

/// The files of the cache below a folder.
fn files(directory: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.path().join("objects")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_second_compilation_is_found_and_runs() {
    let directory = scratch();
    let library = Library::open().unwrap_or_else(|error| panic!("{error}"));
    let target = Cpu::host(library).unwrap().target;
    let build = || {
        let cache = Cache::below(directory.path(), LIMIT);
        compile(&cache, library, &ir(41), &target, &Options::CPU).unwrap()
    };
    let (first, origin) = build();
    assert_eq!(origin, Origin::Compiled);
    let (second, origin) = build();
    assert_eq!(origin, Origin::Cached);
    assert_eq!(first, second);
    type F = unsafe extern "C" fn() -> i32;
    // SAFETY: `@f` has this signature, and its code was compiled for this CPU.
    let f = unsafe { Jit::load(library, &second).unwrap().entry::<F>("f") }.unwrap();
    // SAFETY: it takes nothing.
    assert_eq!(unsafe { f() }, 41);

    // A damaged file is compiled anew and replaced.
    let file = files(&directory).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 0x10;
    fs::write(&file, bytes).unwrap();
    assert_eq!(build(), (first.clone(), Origin::Compiled));
    assert_eq!(build(), (first, Origin::Cached));
}

#[test]
fn an_error_is_not_kept() {
    let directory = scratch();
    let library = Library::open().unwrap_or_else(|error| panic!("{error}"));
    let cache = Cache::below(directory.path(), LIMIT);
    assert!(compile(&cache, library, "nonsense", &v3(), &Options::CPU).is_err());
    assert!(files(&directory).is_empty());
}

#[test]
fn everything_that_code_depends_on_is_in_the_key() {
    let version = |patch| Version {
        major: 22,
        minor: 1,
        patch,
    };
    let changed = |change: fn(&mut Target, &mut Options)| {
        let (mut target, mut options) = (v3(), Options::CPU);
        change(&mut target, &mut options);
        Key::new(version(2), "ir", &target, &options)
    };
    let keys = [
        changed(|_, _| {}),
        changed(|target, _| target.triple.push('x')),
        changed(|target, _| target.cpu.push('x')),
        changed(|target, _| target.features.push('x')),
        changed(|_, options| options.passes = Passes::PTX),
        changed(|_, options| options.level = Level::None),
        Key::new(version(3), "ir", &v3(), &Options::CPU),
        Key::new(version(2), "ir ", &v3(), &Options::CPU),
    ];
    for (i, a) in keys.iter().enumerate() {
        for b in &keys[..i] {
            assert_ne!(a, b);
        }
    }
    assert_eq!(keys[0], changed(|_, _| {}));
}

#[test]
fn a_directory_that_does_not_serve_is_no_cache() {
    let directory = scratch();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let shared = directory.path().join("shared");
    fs::create_dir(&shared).unwrap();
    chmod(&shared, 0o777);
    let occupied = directory.path().join("occupied");
    fs::create_dir(&occupied).unwrap();
    fs::write(occupied.join("objects"), "").unwrap();
    assert!(Cache::off().refusal().is_none());
    let refused = [&file, &file.join("below"), &shared, &occupied].map(|base| {
        let cache = Cache::below(base, LIMIT);
        assert!(cache.refusal().is_some(), "{}", base.display());
        cache
    });
    for cache in refused.into_iter().chain([Cache::off()]) {
        assert_eq!(cache.directory(), None);
        cache.put(key(1), &object(1, 10));
        assert_eq!(cache.get(key(1)), None);
    }
    assert!(fs::read_dir(&shared).unwrap().next().is_none());
}

#[test]
fn a_directory_that_vanishes_is_an_empty_cache() {
    let directory = scratch();
    let cache = Cache::below(directory.path(), LIMIT);
    cache.put(key(1), &object(1, 10));
    assert_eq!(cache.get(key(1)), Some(object(1, 10)));
    fs::remove_dir_all(directory.path().join("objects")).unwrap();
    assert_eq!(cache.get(key(1)), None);
    cache.put(key(1), &object(1, 10));
    assert_eq!(cache.get(key(1)), None);
}

#[test]
fn the_objects_unused_for_longest_are_removed() {
    let directory = scratch();
    let cache = Cache::below(directory.path(), 4000);
    for i in 0..3 {
        cache.put(key(i), &object(i as u8, 1000));
    }
    // The first one was written longest ago.
    let written = SystemTime::now() - Duration::from_secs(100);
    for i in 0..3 {
        let object = object(i as u8, 1000);
        let name = files(&directory)
            .into_iter()
            .find(|path| fs::read(path).unwrap().ends_with(object.bytes()));
        let file = File::options().write(true).open(name.unwrap()).unwrap();
        let age = Duration::from_secs(i as u64);
        file.set_modified(written + age).unwrap();
    }
    // Using the first one makes it the newest.
    assert_eq!(cache.get(key(0)), Some(object(0, 1000)));
    cache.put(key(3), &object(3, 1000));
    assert_eq!(cache.get(key(1)), None);
    for i in [0, 2, 3] {
        assert_eq!(cache.get(key(i)), Some(object(i as u8, 1000)), "{i}");
    }
    // An object that is larger than the whole cache does not evict the others.
    cache.put(key(4), &object(4, 4000));
    assert_eq!(files(&directory).len(), 3);
}

#[test]
fn temporary_files_of_killed_processes_are_removed() {
    let directory = scratch();
    let cache = Cache::below(directory.path(), LIMIT);
    cache.put(key(1), &object(1, 10));
    let name = files(&directory)[0].file_name().unwrap().to_owned();
    let name = name.to_str().unwrap();
    let at = |name: String| directory.path().join("objects").join(name);
    let old = at(format!(".{name}.1.0"));
    let new = at(format!(".{name}.1.1"));
    let foreign = at(".history.1.0".to_owned());
    for path in [&old, &new, &foreign] {
        fs::write(path, "half").unwrap();
    }
    for path in [&old, &foreign] {
        age(path, 7200);
    }
    cache.put(key(1), &object(1, 10));
    assert!(!old.exists() && new.exists() && foreign.exists());
}

#[test]
fn users_of_one_directory_see_whole_objects_only() {
    let directory = scratch();
    thread::scope(|scope| {
        for thread in 0..4 {
            let directory = directory.path();
            scope.spawn(move || {
                // Small enough that objects are evicted all the time.
                let cache = Cache::below(directory, 200_000);
                for round in 0..100 {
                    let i = (thread + round) % 5;
                    let expected = object(i as u8, 50_000 + i as usize);
                    if let Some(found) = cache.get(key(i)) {
                        assert_eq!(found, expected);
                    } else {
                        cache.put(key(i), &expected);
                    }
                }
            });
        }
    });
    assert!(files(&directory).iter().all(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        !name.starts_with('.')
    }));
}

/// A folder that has another object, `object(9, 10)`, under `key(1)`: an object that an attacker would like to have
/// loaded.
fn planted(directory: &Path) -> PathBuf {
    Cache::below(directory, LIMIT).put(key(1), &object(9, 10));
    directory.join("objects")
}

#[test]
fn a_folder_behind_a_link_is_neither_read_nor_tidied() {
    let directory = scratch();
    let foreign = directory.path().join("foreign");
    let objects = planted(&foreign);
    // Files of all kinds, older and larger than a cache would keep.
    for name in ["thesis.tex", "thesis.object", ".thesis.1.0"] {
        let path = objects.join(name);
        fs::write(&path, vec![0; 1000]).unwrap();
        age(&path, 100_000);
    }
    let before = fs::read_dir(&objects).unwrap().count();
    let home = directory.path().join("home");
    fs::create_dir(&home).unwrap();
    symlink(&objects, home.join("objects")).unwrap();
    let cache = Cache::below(&home, 500);
    assert!(cache.refusal().is_some());
    cache.put(key(1), &object(1, 10));
    cache.put(key(2), &object(2, 10));
    assert_eq!(cache.get(key(1)), None);
    assert_eq!(fs::read_dir(&objects).unwrap().count(), before);
}

#[test]
fn files_that_are_no_objects_are_never_removed() {
    let directory = scratch();
    let cache = Cache::below(directory.path(), 400);
    cache.put(key(1), &object(1, 250));
    let object_name = files(&directory)[0].file_name().unwrap().to_owned();
    let at = |name: &str| directory.path().join("objects").join(name);
    for name in [
        "thesis.tex",
        "thesis.object",
        ".thesis.1.0",
        ".thesis.object",
    ] {
        fs::write(at(name), vec![0; 1000]).unwrap();
        age(&at(name), 100_000);
    }
    // A folder and a link with the name of an object.
    let other = |digit: &str| {
        let name = object_name.to_str().unwrap();
        at(&format!("{digit}{}", &name[1..]))
    };
    let digits: Vec<&str> = ["0", "1", "2"]
        .into_iter()
        .filter(|digit| !object_name.to_str().unwrap().starts_with(digit))
        .collect();
    fs::create_dir(other(digits[0])).unwrap();
    symlink(at("thesis.tex"), other(digits[1])).unwrap();
    cache.put(key(2), &object(2, 250));
    assert_eq!(cache.get(key(1)), None, "there is room for one object");
    assert_eq!(cache.get(key(2)), Some(object(2, 250)));
    assert_eq!(files(&directory).len(), 7);
}

#[test]
fn what_was_planted_while_a_folder_was_open_is_never_loaded() {
    let directory = scratch();
    let objects = planted(directory.path());
    let file = files(&directory).pop().unwrap();
    let get = || Cache::below(directory.path(), LIMIT).get(key(1));
    assert_eq!(get(), Some(object(9, 10)), "as long as it is the user's");
    // While others may write, and in a cache that is already open.
    let open = Cache::below(directory.path(), LIMIT);
    for place in [directory.path(), &objects, &file] {
        let mode = fs::metadata(place).unwrap().permissions();
        chmod(place, 0o777);
        assert_eq!(get(), None, "{}", place.display());
        if place != directory.path() {
            assert_eq!(open.get(key(1)), None, "{}", place.display());
        }
        fs::set_permissions(place, mode).unwrap();
        assert_eq!(get(), Some(object(9, 10)));
    }
    // Later, when the folder is closed again.
    if chown(&file, Some(54321), None).is_ok() {
        assert_eq!(get(), None);
        // It is replaced by the user's own, since the folder is the user's.
        let cache = Cache::below(directory.path(), LIMIT);
        cache.put(key(1), &object(1, 10));
        assert_eq!(cache.get(key(1)), Some(object(1, 10)));
    } else {
        println!("skipped: files of other users, which need the rights of root");
    }
    let file = files(&directory).pop().unwrap();
    fs::hard_link(&file, directory.path().join("second")).unwrap();
    assert_eq!(get(), None, "it may have been linked here");
}

#[test]
fn what_is_no_file_or_too_large_is_not_waited_for() {
    let directory = scratch();
    let cache = Cache::below(directory.path(), LIMIT);
    cache.put(key(1), &object(1, 10));
    let file = files(&directory).pop().unwrap();
    let start = Instant::now();
    fs::remove_file(&file).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(cache.get(key(1)), None);
    fs::remove_file(&file).unwrap();
    File::create(&file).unwrap().set_len(1 << 40).unwrap();
    chmod(&file, 0o600);
    assert_eq!(cache.get(key(1)), None);
    // A file of that size pushes nothing out for long.
    cache.put(key(2), &object(2, 10));
    assert_eq!(cache.get(key(2)), Some(object(2, 10)));
    assert!(!file.exists(), "it is the first to be removed");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_parent_that_is_swapped_runs_nothing_foreign() {
    let directory = scratch();
    let at = |name: &str| directory.path().join(name);
    Cache::below(&at("torre"), LIMIT).put(key(1), &object(1, 10));
    // Things that an attacker puts in the place of the cache: a link, and folders that others may write to.
    let foreign = at("foreign");
    planted(&foreign);
    fs::create_dir(at("link")).unwrap();
    symlink(foreign.join("objects"), at("link/objects")).unwrap();
    planted(&at("open"));
    chmod(&at("open"), 0o777);
    chmod(&planted(&at("open inside")), 0o777);
    for kind in ["link", "open", "open inside"] {
        let ended = AtomicBool::new(false);
        let (mut found, mut refused, mut foreign_code) = (0, 0, 0);
        thread::scope(|scope| {
            let swaps = scope.spawn(|| {
                let mut swaps = 0;
                while !ended.load(Ordering::Relaxed) || swaps < 200 {
                    use rustix::fs::{CWD, RenameFlags, renameat_with};
                    renameat_with(CWD, at("torre"), CWD, at(kind), RenameFlags::EXCHANGE).unwrap();
                    swaps += 1;
                }
                // The cache is in its place at the end.
                if swaps % 2 == 1 {
                    fs::rename(at("torre"), at("aside")).unwrap();
                    fs::rename(at(kind), at("torre")).unwrap();
                    fs::rename(at("aside"), at(kind)).unwrap();
                }
            });
            let end = Instant::now() + Duration::from_secs(20);
            while found + refused + foreign_code < 300
                || (found == 0 || refused == 0) && Instant::now() < end
            {
                match Cache::below(&at("torre"), LIMIT).get(key(1)) {
                    Some(loaded) if loaded == object(1, 10) => found += 1,
                    Some(_) => foreign_code += 1,
                    None => refused += 1,
                }
            }
            ended.store(true, Ordering::Relaxed);
            swaps.join().unwrap();
        });
        println!("{kind}: {found} found, {refused} refused");
        assert_eq!(foreign_code, 0, "{kind}");
        assert!(found > 0 && refused > 0, "{kind}: {found}, {refused}");
    }
}
