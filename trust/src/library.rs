//! Libraries, which run code when they are opened.

use crate::refusal::{Fault, Refusal};
use crate::user::User;
use crate::walk::{LOOK, Owners, Walk};
use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, fstat, openat};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The origin of the choice of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A search found it: its owner has to be relied on.
    BySearch,
    /// The user named it, and so says that its owner is relied on.
    ByUser,
    /// It belongs to the toolchain that built the program: every user who may replace it could have changed the
    /// program.
    ByBuild,
}

/// Checks a library, and returns the path without links by which it may be opened.
///
/// The path may be used after the check: files that could be replaced meanwhile can only be replaced by owners who are
/// relied on. The library may itself open others beside it and in the `lib` beside its folder (`$ORIGIN/../lib`, the
/// run path of Rust's LLVM), so no other user may make files there either.
pub fn check_library(file: &Path, named: Named) -> Result<PathBuf, Refusal> {
    let file = fs::canonicalize(file).map_err(|error| Refusal::from_std(file, &error))?;
    if named == Named::ByBuild {
        return Ok(file);
    }
    let user = User::of_process()?;
    let walk = walk(&user, named);
    let (Some(above), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(Refusal::at(&file, Fault::NoFile));
    };
    let folder = walk.to(above)?;
    let shared = |path: &Path| Err(Refusal::at(path, Fault::Shared));
    match folder.shared {
        [true, _] => return shared(above),
        [_, true] => return shared(above.parent().unwrap_or(above)),
        [false, false] => {}
    }
    let beside = above.with_file_name("lib");
    if fs::symlink_metadata(&beside).is_ok() && walk.to(&beside)?.shared[0] {
        return shared(&beside);
    }
    let fd = openat(&folder.fd, name, LOOK, Mode::empty()).map_err(Refusal::io(&file))?;
    let stat = fstat(&fd).map_err(Refusal::io(&file))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::at(&file, Fault::NoFile));
    }
    walk.check_owner(&stat, &file)?;
    user.check_writers(fd.as_fd(), &stat)
        .map_err(|fault| Refusal::at(&file, fault))?;
    Ok(file)
}

fn walk(user: &User, named: Named) -> Walk<'_> {
    // The code of the running executable's owner runs already.
    let executable = || Some(fs::metadata("/proc/self/exe").ok()?.uid());
    Walk {
        user,
        owners: match named {
            Named::ByUser | Named::ByBuild => Owners::Anyone,
            Named::BySearch => executable().map_or(Owners::NobodyElse, Owners::This),
        },
        create: false,
    }
}

/// Checks the files that the loader would find for a library in the folders of `LD_LIBRARY_PATH`, which the user names;
/// the other places that it searches are the system's. `starts` are the beginnings of the names that the library may
/// have.
pub fn check_library_path(starts: &[&str]) -> Result<(), Refusal> {
    match env::var_os("LD_LIBRARY_PATH") {
        Some(places) => check_places(&places, starts),
        None => Ok(()),
    }
}

fn check_places(places: &OsStr, starts: &[&str]) -> Result<(), Refusal> {
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_bytes();
        // The loader skips a link that leads nowhere.
        starts
            .iter()
            .any(|start| name.starts_with(start.as_bytes()))
            && path.exists()
    };
    for place in places.as_bytes().split(|byte| b":;".contains(byte)) {
        // An empty entry is the current folder.
        let place = match place {
            [] => Path::new("."),
            place => Path::new(OsStr::from_bytes(place)),
        };
        // The loader of glibc looks for variants for newer processors first.
        let mut folders = entries(&place.join("glibc-hwcaps"));
        folders.push(place.to_owned());
        for folder in folders {
            for file in entries(&folder).into_iter().filter(is_one) {
                check_library(&file, Named::ByUser)?;
                // The loader goes by this path, so no link of it may be replaced either.
                let folder = std::path::absolute(&folder)
                    .map_err(|error| Refusal::from_std(&folder, &error))?;
                let user = User::of_process()?;
                if walk(&user, Named::ByUser).to(&folder)?.shared[0] {
                    return Err(Refusal::at(&folder, Fault::Shared));
                }
            }
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A library in a folder of its own below a scratch folder, and the scratch folder.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("lib");
        fs::create_dir(&folder).unwrap();
        chmod(&folder, 0o755);
        let file = folder.join("libx.so.1");
        fs::write(&file, "x").unwrap();
        chmod(&file, 0o644);
        (scratch, file)
    }

    #[track_caller]
    fn refused(file: &Path, at: &Path, fault: Fault) {
        for named in [Named::BySearch, Named::ByUser] {
            assert_eq!(check_library(file, named), Err(Refusal::at(at, fault)));
        }
    }

    #[test]
    fn a_library_is_reached_by_its_path_without_links() {
        let (scratch, file) = place();
        let link = scratch.path().join("libx.so");
        symlink(&file, &link).unwrap();
        let file = fs::canonicalize(&file).unwrap();
        for named in [Named::BySearch, Named::ByUser] {
            assert_eq!(check_library(&link, named), Ok(file.clone()));
        }
        assert!(check_library(&scratch.path().join("none"), Named::ByUser).is_err());
        let folder = file.with_file_name("libx.so.2");
        fs::create_dir(&folder).unwrap();
        refused(&folder, &folder, Fault::NoFile);
    }

    #[test]
    fn a_library_that_others_may_replace_is_refused() {
        let (scratch, file) = place();
        let scratch = fs::canonicalize(scratch.path()).unwrap();
        let file = fs::canonicalize(file).unwrap();
        let lib = file.parent().unwrap();
        chmod(&file, 0o646);
        refused(&file, &file, Fault::Everyone);
        chmod(&file, 0o644);
        chmod(lib, 0o777);
        refused(&file, lib, Fault::Everyone);
        // Others cannot replace the library there, but plant one that it opens.
        chmod(lib, 0o1777);
        refused(&file, lib, Fault::Shared);
        chmod(lib, 0o755);
        chmod(&scratch, 0o1777);
        refused(&file, &scratch, Fault::Shared);
        chmod(&scratch, 0o755);
        assert!(check_library(&file, Named::BySearch).is_ok());
        // The `lib` beside a library's folder is searched for libraries that it needs.
        let other = scratch.join("other");
        fs::create_dir(&other).unwrap();
        let copy = other.join("libx.so.1");
        fs::copy(&file, &copy).unwrap();
        assert!(check_library(&copy, Named::BySearch).is_ok());
        chmod(lib, 0o777);
        refused(&copy, lib, Fault::Everyone);
    }

    #[test]
    fn an_owner_that_is_not_relied_on_has_to_be_named() {
        let (_scratch, file) = place();
        let file = fs::canonicalize(file).unwrap();
        if std::os::unix::fs::chown(&file, Some(54321), None).is_err() {
            return println!("skipped: needs the rights of root");
        }
        let fault = Refusal::at(&file, Fault::Owner(54321));
        assert_eq!(check_library(&file, Named::BySearch), Err(fault));
        assert_eq!(check_library(&file, Named::ByUser), Ok(file));
    }

    #[test]
    fn libraries_on_the_loaders_path_are_checked() {
        let (scratch, file) = place();
        let lib = fs::canonicalize(file.parent().unwrap()).unwrap();
        let check = |place: &Path| check_places(place.as_os_str(), &["libx.so"]);
        let everyone = |path: &Path| Err(Refusal::at(path, Fault::Everyone));
        assert_eq!(check(&lib), Ok(()));
        chmod(&lib, 0o777);
        assert_eq!(check(&lib), everyone(&lib));
        assert_eq!(
            check(Path::new(&format!("/usr:{}", lib.display()))),
            everyone(&lib)
        );
        // Another library may lie anywhere.
        assert_eq!(check_places(lib.as_os_str(), &["liby.so"]), Ok(()));
        // A variant for a newer processor is found first.
        let variant = lib.join("glibc-hwcaps/x86-64-v3");
        fs::create_dir_all(&variant).unwrap();
        fs::rename(&file, variant.join("libx.so.1")).unwrap();
        assert_eq!(check(&lib), everyone(&lib));
        chmod(&lib, 0o755);
        assert_eq!(check(&lib), Ok(()));
        // The library is safe, but the link to it can be replaced.
        let open = fs::canonicalize(scratch.path()).unwrap().join("open");
        fs::create_dir(&open).unwrap();
        symlink(variant.join("libx.so.1"), open.join("libx.so")).unwrap();
        assert_eq!(check(&open), Ok(()));
        chmod(&open, 0o777);
        assert_eq!(check(&open), everyone(&open));
        fs::remove_file(variant.join("libx.so.1")).unwrap();
        assert_eq!(check(&open), Ok(()), "a link that leads nowhere");
    }
}
