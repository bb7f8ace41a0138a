//! Where a libLLVM may lie, and which of the libraries found is taken.
//!
//! The order: the library that `$TORRE_LLVM` names, and then nothing else; the directory of the executable and the
//! `lib` beside it, where a release puts its own copy; the Rust toolchain that built Torre; any other toolchain of
//! rustup; the system's LLVM packages; the system's library directories. The current directory and `$PATH` are never
//! searched, since opening a library runs its code. For the same reason a library that other users may replace is not
//! opened (`torre_trust`). The library of the toolchain that built Torre is an exception: every user who may replace it
//! could have changed Torre.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};

use torre_trust::{Named, Refusal, check_library};

use super::api::{Api, GetVersion, version_from};
use super::error::{Attempt, NotFound, unsupported};
use super::version::SUPPORTED_VERSIONS;

/// The environment variable that names the library to take.
const OVERRIDE: &str = "TORRE_LLVM";

/// The system's library directories, in the order of the distributions that use them.
const SYSTEM_DIRECTORIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib64",
    "/usr/local/lib",
];

/// The places to search.
pub struct Places {
    /// A library or a directory that the user named: if it does not serve, that is an error.
    pub chosen: Option<PathBuf>,
    /// Directories, the preferred one first.
    pub directories: Vec<PathBuf>,
}

impl Places {
    /// The places for this process, from its environment.
    pub fn of_process() -> Self {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let mut directories = Vec::new();
        if let Ok(executable) = env::current_exe()
            && let Some(directory) = executable.parent()
        {
            directories.push(directory.to_owned());
            directories.push(directory.join("../lib"));
        }
        directories.push(Path::new(env!("TORRE_BUILD_SYSROOT")).join("lib"));
        let rustup = variable("RUSTUP_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(Path::new(&variable("HOME")?).join(".rustup")));
        if let Some(rustup) = rustup {
            directories.extend(toolchains(&rustup.join("toolchains")));
        }
        for major in SUPPORTED_VERSIONS.rev() {
            directories.push(format!("/usr/lib/llvm-{major}/lib").into());
            directories.push(format!("/usr/lib/llvm/{major}/lib64").into());
            directories.push(format!("/usr/lib64/llvm{major}/lib64").into());
        }
        directories.extend(SYSTEM_DIRECTORIES.map(PathBuf::from));
        // A relative path would mean the current directory.
        directories.retain(|directory| directory.is_absolute());
        Self {
            chosen: variable(OVERRIDE).map(PathBuf::from),
            directories,
        }
    }
}

/// The library directories of rustup's toolchains, in the order of their names.
fn toolchains(directory: &Path) -> BTreeSet<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return BTreeSet::new();
    };
    entries
        .flatten()
        .map(|entry| entry.path().join("lib"))
        .collect()
}

/// A library that serves.
pub struct Opened {
    pub api: Api,
    pub path: PathBuf,
}

/// Opens the first library that serves, or tells everything that was tried.
pub fn open(places: &Places) -> Result<Opened, NotFound> {
    let mut candidates = Vec::new();
    let mut empty = Vec::new();
    match &places.chosen {
        Some(chosen) if chosen.is_dir() => list(chosen, &mut candidates, &mut empty),
        Some(chosen) => candidates.push(chosen.clone()),
        None => {
            for directory in &places.directories {
                list(directory, &mut candidates, &mut empty);
            }
        }
    }
    let named = |file: &Path| match places.chosen {
        Some(_) => Named::ByUser,
        None if file.starts_with(env!("TORRE_BUILD_SYSROOT")) => Named::ByBuild,
        None => Named::BySearch,
    };
    let mut rejected = Vec::new();
    let mut seen = BTreeSet::new();
    for path in candidates {
        // One file is often found under several names. A missing one is told by the attempt to open it.
        let file = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !seen.insert(file.clone()) {
            continue;
        }
        match open_one(&file, named(&file)) {
            Ok(api) => return Ok(Opened { api, path }),
            Err(reason) => rejected.push(Attempt { path, reason }),
        }
    }
    Err(NotFound {
        rejected: rejected.into(),
        empty: empty.into(),
    })
}

/// Appends the files of a directory that look like libLLVM, the newest first; a directory without any goes to `empty`.
fn list(directory: &Path, candidates: &mut Vec<PathBuf>, empty: &mut Vec<PathBuf>) {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(is_llvm))
        .collect();
    // `libLLVM.so.22.1` comes before `libLLVM.so` and before Rust's `libLLVM-22-rust-*.so`, which is a linker script.
    found.sort_by(|a, b| (major_in_name(b), b.as_path()).cmp(&(major_in_name(a), a.as_path())));
    if found.is_empty() {
        empty.push(directory.to_owned());
    }
    candidates.extend(found);
}

/// Whether a file's name is one under which libLLVM is installed.
fn is_llvm(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == "libLLVM.so"
        || name.starts_with("libLLVM.so.")
        || (name.starts_with("libLLVM-") && name.contains(".so"))
}

/// The major version that a file's name states: 22 for `libLLVM.so.22.1` and `libLLVM-22.so`, none for `libLLVM.so`.
fn major_in_name(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_string_lossy();
    let rest = name
        .strip_prefix("libLLVM.so.")
        .or_else(|| name.strip_prefix("libLLVM-"))?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

/// Opens one library, asks its version and binds the table; the error is the reason why it does not serve.
fn open_one(path: &Path, named: Named) -> Result<Api, String> {
    // Opening a library runs its code, so one whose name tells the wrong version stays closed. `libLLVM.so.1` tells
    // none: it is a name of a Debian package's link.
    let major = path
        .canonicalize()
        .ok()
        .and_then(|file| major_in_name(&file));
    if let Some(major) = major
        && !SUPPORTED_VERSIONS.contains(&major)
    {
        return Err(unsupported(&major.to_string()));
    }
    let path = check_library(path, named).map_err(|refusal| match refusal {
        Refusal::Place { path: at, fault } if at == path => fault.to_string(),
        refusal => format!("is not opened: {refusal}"),
    })?;
    // SAFETY: opening runs the initialisers of the file, an unknown library. It lies where the user or the system
    // installs libraries, under LLVM's name, and no other user could have put it there. `RTLD_LOCAL` keeps its symbols
    // from mixing with the symbols of another LLVM in this process, such as a graphics driver's.
    let handle = unsafe { Handle::open(Some(&path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| with_cause(&error))?;
    // SAFETY: LLVM has declared this function so since it exists, and a library without it is no LLVM of use to us.
    let get_version = unsafe { handle.get::<GetVersion>(b"LLVMGetVersion\0") }
        .map(|symbol| *symbol)
        .map_err(|_| "has no function `LLVMGetVersion`; it is too old".to_owned())?;
    let version = version_from(get_version);
    if !SUPPORTED_VERSIONS.contains(&version.major) {
        return Err(unsupported(&version.to_string()));
    }
    // SAFETY: it is an LLVM of a major version whose C API the table declares.
    let api = unsafe { Api::bind(&handle) }
        .map_err(|name| format!("LLVM {version} without the function `{name}`"))?;
    // The table's pointers are valid as long as the library is open: it is never closed.
    std::mem::forget(handle);
    Ok(api)
}

/// An error with its cause, in which the loader gives the reason.
fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fresh directory of this test, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            // Not in the temporary folder itself, where others may make files.
            let name = format!("torre-search-{name}-{}/lib", std::process::id());
            let path = env::temp_dir().join(name);
            fs::create_dir_all(&path).expect("a temporary directory");
            Self(path)
        }

        fn file(&self, name: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, "not a library").expect("a temporary file");
            path
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(self.0.parent().unwrap_or(&self.0));
        }
    }

    fn failure(chosen: Option<PathBuf>, directories: Vec<PathBuf>) -> NotFound {
        let places = Places {
            chosen,
            directories,
        };
        match open(&places) {
            Ok(opened) => panic!("{} is not expected to serve", opened.path.display()),
            Err(tried) => tried,
        }
    }

    #[test]
    fn a_name_tells_its_major_version() {
        let major = |name: &str| major_in_name(Path::new(name));
        assert_eq!(major("/usr/lib/libLLVM.so.22.1"), Some(22));
        assert_eq!(major("/x/libLLVM.so.22.1-rust-1.95.0-stable"), Some(22));
        assert_eq!(major("/x/libLLVM-14.0.6.so.1"), Some(14));
        assert_eq!(major("/x/libLLVM.so"), None);
        assert!(is_llvm(OsStr::new("libLLVM-22-rust-1.95.0-stable.so")));
        assert!(!is_llvm(OsStr::new("libLLVMCore.a")));
        assert!(!is_llvm(OsStr::new("libLLVM-22.a")));
    }

    #[test]
    fn a_failed_search_lists_every_place_and_reason() {
        let scratch = Scratch::new("list");
        let old = scratch.file("libLLVM-14.so.1");
        let broken = scratch.file("libLLVM.so.22.1");
        scratch.file("libLLVMCore.a");
        let missing = scratch.0.join("missing");
        let tried = failure(None, vec![scratch.0.clone(), missing.clone()]);
        assert_eq!(tried.rejected[0].path, broken);
        assert_eq!(tried.rejected[1].path, old);
        assert_eq!(
            tried.rejected[1].reason,
            "is LLVM 14; versions 22 to 23 serve"
        );
        assert_eq!(tried.rejected.len(), 2);
        assert_eq!(tried.empty.to_vec(), vec![missing.clone()]);
        let text = tried.to_string();
        assert!(text.starts_with("no LLVM 22 to 23 was found\n"), "{text}");
        for part in [
            broken.display().to_string(),
            old.display().to_string(),
            format!("{}: no libLLVM there", missing.display()),
            "TORRE_LLVM".to_owned(),
        ] {
            assert!(text.contains(&part), "{part} in {text}");
        }
    }

    #[test]
    fn a_chosen_library_that_does_not_serve_is_an_error_without_a_search() {
        let scratch = Scratch::new("chosen");
        let chosen = scratch.0.join("libLLVM.so");
        let all = Places::of_process().directories;
        let tried = failure(Some(chosen.clone()), all.clone());
        assert_eq!(tried.rejected.len(), 1);
        assert_eq!(tried.rejected[0].path, chosen);
        assert!(tried.empty.is_empty());
        let tried = failure(Some(scratch.0.clone()), all);
        assert_eq!(tried.empty.to_vec(), vec![scratch.0.clone()]);
    }

    #[test]
    fn a_library_that_others_may_replace_stays_closed() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new("shared");
        let file = scratch.file("libLLVM.so.22.1");
        let chmod = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode")
        };
        let reason = |chosen| {
            let places = vec![scratch.0.clone()];
            failure(chosen, places).rejected[0].reason.clone()
        };
        chmod(&file, 0o666);
        for chosen in [None, Some(file.clone())] {
            assert_eq!(reason(chosen), "may be written by everybody");
        }
        chmod(&file, 0o644);
        chmod(&scratch.0, 0o777);
        for chosen in [None, Some(file.clone())] {
            let expected = format!(
                "is not opened: `{}` may be written by everybody",
                scratch.0.display()
            );
            assert_eq!(reason(chosen), expected);
        }
        // Then it is opened, and turns out to be none.
        chmod(&scratch.0, 0o755);
        assert!(!reason(None).contains("written"));
    }

    #[test]
    fn one_file_under_two_names_is_tried_once() {
        let scratch = Scratch::new("names");
        let file = scratch.file("libLLVM.so.22.1");
        std::os::unix::fs::symlink(&file, scratch.0.join("libLLVM.so")).expect("a link");
        assert_eq!(failure(None, vec![scratch.0.clone()]).rejected.len(), 1);
    }

    #[test]
    fn every_place_of_a_process_is_absolute() {
        let places = Places::of_process();
        assert!(places.directories.iter().all(|place| place.is_absolute()));
    }
}
