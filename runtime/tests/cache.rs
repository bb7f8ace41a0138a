//! The cache of compiled objects: what is found, what is refused, and what is removed.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

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

fn object(byte: u8, bytes: usize) -> Object {
    // SAFETY: these are only kept and compared, never loaded.
    unsafe { Object::from_bytes(vec![byte; bytes]) }
}

fn files(directory: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.path()).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_second_compilation_is_found_and_runs() {
    let directory = scratch();
    let library = Library::open().unwrap_or_else(|error| panic!("{error}"));
    let target = Cpu::host(library).unwrap().target;
    let build = || {
        let cache = Cache::at(directory.path(), LIMIT);
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
    let cache = Cache::at(directory.path(), LIMIT);
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
    fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
    for cache in [
        Cache::off(),
        Cache::at(&file, LIMIT),
        Cache::at(&file.join("below"), LIMIT),
        Cache::at(&shared, LIMIT),
    ] {
        assert_eq!(cache.directory(), None);
        cache.put(key(1), &object(1, 10));
        assert_eq!(cache.get(key(1)), None);
    }
    assert!(fs::read_dir(&shared).unwrap().next().is_none());
}

#[test]
fn a_directory_that_vanishes_is_an_empty_cache() {
    let directory = scratch();
    let path = directory.path().join("below");
    let cache = Cache::at(&path, LIMIT);
    cache.put(key(1), &object(1, 10));
    assert_eq!(cache.get(key(1)), Some(object(1, 10)));
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(cache.get(key(1)), None);
    cache.put(key(1), &object(1, 10));
    assert_eq!(cache.get(key(1)), None);
}

#[test]
fn the_objects_unused_for_longest_are_removed() {
    let directory = scratch();
    let cache = Cache::at(directory.path(), 4000);
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
    // What is larger than the whole cache does not push the others out.
    cache.put(key(4), &object(4, 4000));
    assert_eq!(files(&directory).len(), 3);
}

#[test]
fn temporary_files_of_killed_processes_are_removed() {
    let directory = scratch();
    let cache = Cache::at(directory.path(), LIMIT);
    let old = directory.path().join(".a.object.1.0");
    let new = directory.path().join(".b.object.1.0");
    for path in [&old, &new] {
        fs::write(path, "half").unwrap();
    }
    let file = File::options().write(true).open(&old).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(7200))
        .unwrap();
    cache.put(key(1), &object(1, 10));
    assert!(!old.exists() && new.exists());
}

#[test]
fn users_of_one_directory_see_whole_objects_only() {
    let directory = scratch();
    thread::scope(|scope| {
        for thread in 0..4 {
            let directory = directory.path();
            scope.spawn(move || {
                // Small enough that objects are evicted all the time.
                let cache = Cache::at(directory, 200_000);
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
