//! The places of results in a folder.

use crate::output::zarr::METADATA;
use crate::output::{Attempt, FileError};
use rustix::fs::{Access, access};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the report in a folder of results.
pub const REPORT: &str = "report.json";

/// Files of results that lie in the folder itself.
const FILES: [&str; 7] = [
    REPORT,
    "probes.csv",
    "probes.npy",
    "probes.png",
    "series.csv",
    "series.npy",
    "series.png",
];

/// Folders of results.
const FOLDERS: [&str; 4] = ["slices", "volumes", "fields", "spectra"];

const STORES: [&str; 2] = [VOLUMES_STORE, FIELDS_STORE];

/// The store of all volumes.
pub(super) const VOLUMES_STORE: &str = "volumes.zarr";
/// The store of the components at the end.
pub(super) const FIELDS_STORE: &str = "fields.zarr";
/// The file that makes a folder a store.
const STORE_MARKER: &str = METADATA;

/// The endings of files in the folders.
const ENDINGS: [&str; 5] = ["npy", "png", "apng", "vti", "pvd"];

/// Whether a folder has results, of any run.
pub(super) fn has_results(folder: &Path) -> bool {
    let mut names = FILES.iter().chain(&FOLDERS).chain(&STORES);
    names.any(|name| {
        let path = folder.join(name);
        let entries = fs::read_dir(&path);
        let is_empty = entries.is_ok_and(|mut entries| entries.next().is_none());
        !is_empty && fs::symlink_metadata(path).is_ok()
    })
}

/// Whether a file lies, or would lie, where results in a folder do, so that a run could replace it.
pub fn is_place_of_results(folder: &Path, file: &Path) -> bool {
    let (folder, file) = (real(folder), real(file));
    // Folders of results may be links to others.
    let within = |name: &str| real(&folder.join(name));
    FILES.iter().any(|name| within(name) == file)
        || FOLDERS
            .iter()
            .chain(&STORES)
            .any(|name| file.starts_with(within(name)))
}

/// A path without links, as far as it is there.
pub fn real(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path,
    }
}

/// Removes all results from a folder, of any run. Files with other names stay. Nothing is removed where something of it
/// could not be; the report goes last, so that the rest after a failure still belongs to its run.
pub fn clear(folder: &Path) -> Result<(), FileError> {
    let mut inside = vec![folder.to_owned()];
    for name in FOLDERS.iter().chain(&STORES) {
        let path = folder.join(name);
        if own_folder(&path).map_err(not_removed(&path))? {
            inside.push(path);
        }
    }
    for path in &inside {
        let allowed = access(path, Access::WRITE_OK | Access::EXEC_OK);
        gone(allowed.map_err(io::Error::from)).map_err(not_removed(path))?;
    }
    for name in FOLDERS {
        let path = folder.join(name);
        let entries = match own_folder(&path).map_err(not_removed(&path))? {
            true => fs::read_dir(&path).map_err(not_removed(&path))?,
            false => continue,
        };
        for entry in entries {
            let entry = entry.map_err(not_removed(&path))?.path();
            let ending = entry.extension().and_then(|ending| ending.to_str());
            if ending.is_some_and(|ending| ENDINGS.contains(&ending)) && !entry.is_dir() {
                gone(fs::remove_file(&entry)).map_err(not_removed(&entry))?;
            }
        }
        // Stays where something else lies in it.
        let _ = fs::remove_dir(&path);
    }
    for name in STORES {
        let path = folder.join(name);
        if own_folder(&path).map_err(not_removed(&path))? && path.join(STORE_MARKER).is_file() {
            gone(fs::remove_dir_all(&path)).map_err(not_removed(&path))?;
        }
    }
    let other_files = FILES.iter().filter(|name| **name != REPORT);
    for name in other_files.chain([&REPORT]) {
        let path = folder.join(name);
        gone(fs::remove_file(&path)).map_err(not_removed(&path))?;
    }
    Ok(())
}

/// An error of a path that is removed.
fn not_removed(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    FileError::io(path, Attempt::Remove)
}

/// A folder in the place of a file of results, which could not be written.
pub(super) fn folder_in_place_of_file(folder: &Path) -> Option<PathBuf> {
    let mut files = FILES.iter().map(|name| folder.join(name));
    files.find(|path| path.is_dir())
}

/// An error where a path is taken, and not by a folder in which files can be made, or by a link to one.
pub(super) fn check_folder(path: &Path) -> Result<(), FileError> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    let checked = match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            access(path, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
        }
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            "it is a file and no folder",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it is a symbolic link that leads nowhere",
        )),
        Err(error) => Err(error),
    };
    checked.map_err(FileError::io(path, Attempt::Write))
}

/// Whether a folder is there, and no link to another one: the target of a link is not removed.
fn own_folder(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(io::Error::other(
            "it is a symbolic link, and what lies behind it may be in use elsewhere",
        )),
        Ok(found) => Ok(found.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A file that is not there counts as removed.
fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_removes_results_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let results = [
            "probes.csv",
            "slices/a-1.npy",
            "slices/a-1.png",
            "volumes/a.pvd",
            "fields/a.vti",
        ];
        let store = ["volumes.zarr/zarr.json", "volumes.zarr/u/c/0"];
        let others = [
            "notes.txt",
            "probes.txt",
            "slices/mine.txt",
            "fields.zarr/mine",
            "volumes/x.npy/y",
        ];
        for name in results.iter().chain(&store).chain(&others) {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        assert!(has_results(folder));
        clear(folder).unwrap();
        assert!(
            results
                .iter()
                .chain(&store)
                .all(|name| !folder.join(name).exists())
        );
        assert!(others.iter().all(|name| folder.join(name).exists()));
        assert!(!folder.join("fields").exists() && !folder.join("volumes.zarr").exists());
        // The target of a link stays.
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("b-1.npy"), "x").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.join("fields")).unwrap();
        clear(folder).unwrap_err();
        for (name, inside) in [
            ("fields/b-1.npy", true),
            ("slices/mine.txt", true),
            ("notes.txt", false),
        ] {
            assert_eq!(
                is_place_of_results(folder, &folder.join(name)),
                inside,
                "{name}"
            );
        }
        assert!(is_place_of_results(
            folder,
            &elsewhere.path().join("b-1.npy")
        ));
        assert!(elsewhere.path().join("b-1.npy").exists());
    }
}
