//! Which run the results in a folder belong to, as `report.json` in it says from the first step on.

use crate::output::checkpoint::Identity;
use crate::output::checksum::Xxh64;
use crate::output::open::open;
use crate::output::zarr::METADATA;
use crate::output::{Attempt, Cause, ElementType, FileError};
use rustix::fs::{Access, access};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use torre_compiler::problem::Problem;

/// The name of the report in a folder of results.
pub const REPORT: &str = "report.json";

/// Longer reports are not read.
const MAX_BYTES: u64 = 256 << 20;

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

/// Files of results lie in the folder itself, in a folder of it, or in a store, whose files are deeper by as many
/// levels as an array has axes, and two more.
const MOST_AROUND: usize = 7;
/// The endings of files in the folders.
const ENDINGS: [&str; 5] = ["npy", "png", "apng", "vti", "pvd"];

/// Which run results belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub identity: Identity,
    /// Steps of the problem.
    pub steps: u64,
    /// Hash of the outputs, their steps and their format.
    pub outputs: String,
    /// Hashes of the values that outputs show, whenever they are written, by the names of the outputs: also of those of
    /// earlier runs whose frames are in the folder. Reports of earlier versions have none.
    pub shown: BTreeMap<String, String>,
}

/// How a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    Anew,
    /// After a checkpoint: it needs the results that were written before.
    Resumed,
}

impl Begun {
    /// `resumed`: the step of the checkpoint, if there is one.
    pub fn of(resumed: Option<u64>) -> Self {
        match resumed {
            Some(_) => Self::Resumed,
            None => Self::Anew,
        }
    }
}

/// The treatment of the results of another run in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    Kept,
    Removed,
}

/// The contents of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No results.
    Nothing,
    /// Results of which nothing is known.
    Unknown,
    Results(Record),
}

impl Record {
    /// `manner` says in which format results are, and which are written beside the ones that the problem lists.
    pub fn new(identity: &Identity, problem: &Problem, manner: &str) -> Self {
        let Problem {
            outputs, statics, ..
        } = problem;
        let shown = problem.frames().map(|output| {
            let of = (output.component, output.state, output.kind, output.region);
            (output.name.clone(), hash(&format!("{of:?}")))
        });
        // Each run writes them anew.
        let constant = statics
            .iter()
            .map(|output| (output.name.clone(), hash("constant")));
        Self {
            identity: identity.clone(),
            steps: problem.steps,
            outputs: hash(&format!("{outputs:?} {statics:?} {manner}")),
            shown: shown.chain(constant).collect(),
        }
    }

    /// The same with the outputs of earlier runs whose frames stay in a folder.
    pub fn beside(mut self, folder: &Path, begun: Begun) -> Self {
        if let Found::Results(other) = Self::find(folder)
            && self.differences(&other, begun).is_empty()
        {
            for (name, shown) in other.shown {
                self.shown.entry(name).or_insert(shown);
            }
        }
        self
    }

    /// The entries of a report about it, beside the number of steps and the precision.
    pub fn json(&self) -> Value {
        json!({
            "scheme": self.identity.scheme,
            "problem": self.identity.problem,
            "outputs": self.outputs,
            "each_output": self.shown,
        })
    }

    fn read(folder: &Path) -> Option<Self> {
        let file = open(&folder.join(REPORT)).ok()?;
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        let report: Value = serde_json::from_str(&text).ok()?;
        let identity = report.get("identity")?;
        let hash = |key: &str| Some(identity.get(key)?.as_str()?.to_owned());
        let shown = match identity.get("each_output") {
            Some(shown) => serde_json::from_value(shown.clone()).ok()?,
            None => BTreeMap::new(),
        };
        Some(Self {
            identity: Identity {
                scheme: hash("scheme")?,
                problem: hash("problem")?,
                precision: match report.get("precision")?.as_str()? {
                    "f32" => ElementType::F32,
                    "f64" => ElementType::F64,
                    _ => return None,
                },
            },
            steps: report.get("steps")?.as_u64()?,
            outputs: hash("outputs")?,
            shown,
        })
    }

    /// The run to which results in a folder belong.
    pub fn find(folder: &Path) -> Found {
        if let Some(record) = Self::read(folder) {
            return Found::Results(record);
        }
        let mut names = FILES.iter().chain(&FOLDERS).chain(&STORES);
        let has = |name: &&str| {
            let path = folder.join(name);
            let entries = fs::read_dir(&path);
            let is_empty = entries.is_ok_and(|mut entries| entries.next().is_none());
            !is_empty && fs::symlink_metadata(path).is_ok()
        };
        match names.any(has) {
            true => Found::Unknown,
            false => Found::Nothing,
        }
    }

    /// Whether this run may write beside the contents of a folder.
    pub fn check(&self, folder: &Path, begun: Begun) -> Result<(), FileError> {
        let differences = match Self::find(folder) {
            Found::Nothing => return Ok(()),
            Found::Unknown => vec!["of an unknown run".to_owned()],
            Found::Results(other) => self.differences(&other, begun),
        };
        match differences.is_empty() {
            true => Ok(()),
            false => {
                let cause = Cause::OtherResults(differences.join(", "));
                Err(FileError::new(folder, Attempt::Claim, cause))
            }
        }
    }

    /// The differences between the results of another run and this one's.
    fn differences(&self, other: &Self, begun: Begun) -> Vec<String> {
        let resumed = begun == Begun::Resumed;
        let mut differences = Vec::new();
        let (own, found) = (&self.identity, &other.identity);
        if own.scheme != found.scheme {
            differences.push(
                "of another scheme or domain, or with other parameters or values of files"
                    .to_owned(),
            );
        }
        if own.problem != found.problem {
            differences
                .push("with other start values, sources, probes, records or spectra".to_owned());
        }
        if own.precision != found.precision {
            differences.push(format!("in {}", found.precision));
        }
        // A run that goes on has more steps than the one before.
        let longer = other.steps > self.steps;
        if longer || !resumed && other.steps != self.steps {
            differences.push(format!(
                "of {} steps (this run has {})",
                other.steps, self.steps
            ));
        }
        if !resumed && other.outputs != self.outputs {
            differences.push("with other outputs".to_owned());
        }
        if resumed {
            // Frames of both would have the same names.
            let changed = self.shown.iter().filter(|(name, shown)| {
                let other = other.shown.get(*name);
                other.is_some_and(|other| other != *shown)
            });
            differences.extend(changed.map(|(name, _)| format!("with another output `{name}`")));
        }
        differences
    }
}

fn hash(text: &str) -> String {
    format!("{:016x}", Xxh64::of(text.as_bytes()))
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

/// The folder with results, of whichever run, among which a file lies.
pub fn results_around(file: &Path) -> Option<PathBuf> {
    let file = real(file);
    let around = file.ancestors().skip(1).take(MOST_AROUND);
    let mut of_runs = around.filter(|folder| Record::read(folder).is_some());
    of_runs
        .find(|folder| is_place_of_results(folder, &file))
        .map(Path::to_owned)
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
/// could not be; the report goes last, so that what is left after a failure still belongs to its run.
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
    for name in FILES
        .iter()
        .filter(|name| **name != REPORT)
        .chain([&REPORT])
    {
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
pub fn folder_in_place_of_file(folder: &Path) -> Option<PathBuf> {
    let files = FILES.iter().map(|name| folder.join(name));
    files.into_iter().find(|path| path.is_dir())
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

    fn record(steps: u64) -> Record {
        Record {
            identity: Identity {
                scheme: "1".to_owned(),
                problem: "2".to_owned(),
                precision: ElementType::F32,
            },
            steps,
            outputs: "3".to_owned(),
            shown: [("u".to_owned(), "4".to_owned())].into(),
        }
    }

    fn store(folder: &Path, record: &Record) {
        let report = json!({
            "steps": record.steps,
            "precision": record.identity.precision.name(),
            "identity": record.json(),
        });
        fs::write(folder.join(REPORT), report.to_string()).unwrap();
    }

    #[test]
    fn results_of_another_run_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let own = record(10);
        assert_eq!(Record::find(folder), Found::Nothing);
        fs::create_dir(folder.join("slices")).unwrap();
        assert_eq!(Record::find(folder), Found::Nothing);
        store(folder, &own);
        assert_eq!(Record::find(folder), Found::Results(own.clone()));
        own.check(folder, Begun::Anew).unwrap();
        let said = |other: &Record, begun| {
            store(folder, other);
            own.check(folder, begun)
                .err()
                .map(|error| error.to_string())
        };
        let changed = |change: fn(&mut Record)| {
            let mut other = record(10);
            change(&mut other);
            other
        };
        for (other, begun, expected) in [
            (
                changed(|r| r.identity.scheme.push('x')),
                Begun::Resumed,
                Some("another scheme"),
            ),
            (
                changed(|r| r.identity.problem.push('x')),
                Begun::Resumed,
                Some("other start values"),
            ),
            (
                changed(|r| r.identity.precision = ElementType::F64),
                Begun::Resumed,
                Some("in f64"),
            ),
            (
                changed(|r| r.outputs.push('x')),
                Begun::Anew,
                Some("other outputs"),
            ),
            (changed(|r| r.outputs.push('x')), Begun::Resumed, None),
            (
                changed(|r| _ = r.shown.insert("u".to_owned(), "5".to_owned())),
                Begun::Resumed,
                Some("another output `u`"),
            ),
            (changed(|r| r.shown.clear()), Begun::Resumed, None),
            (
                changed(|r| _ = r.shown.insert("v".to_owned(), "5".to_owned())),
                Begun::Resumed,
                None,
            ),
            (changed(|r| r.steps = 9), Begun::Anew, Some("of 9 steps")),
            (changed(|r| r.steps = 9), Begun::Resumed, None),
            (
                changed(|r| r.steps = 11),
                Begun::Resumed,
                Some("of 11 steps"),
            ),
            (changed(|_| ()), Begun::Anew, None),
        ] {
            let found = said(&other, begun);
            match expected {
                Some(text) => assert!(
                    found.as_ref().is_some_and(|f| f.contains(text)),
                    "{found:?}"
                ),
                None => assert_eq!(found, None),
            }
        }
        // Frames of outputs that later runs do not have stay in the folder.
        store(
            folder,
            &changed(|r| r.shown = [("v".to_owned(), "5".to_owned())].into()),
        );
        let both = own.clone().beside(folder, Begun::Resumed);
        let names: Vec<&String> = both.shown.keys().collect();
        assert_eq!(names, ["u", "v"]);
        // Reports of earlier versions do not say it.
        let mut report: Value =
            serde_json::from_slice(&fs::read(folder.join(REPORT)).unwrap()).unwrap();
        let identity = report["identity"].as_object_mut().unwrap();
        identity.remove("each_output").unwrap();
        fs::write(folder.join(REPORT), report.to_string()).unwrap();
        own.check(folder, Begun::Resumed).unwrap();
        for damaged in ["", "{", "[]", r#"{"steps": 1}"#] {
            fs::write(folder.join(REPORT), damaged).unwrap();
            assert_eq!(Record::find(folder), Found::Unknown, "{damaged}");
            assert!(own.check(folder, Begun::Resumed).is_err());
        }
    }

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
        assert_eq!(Record::find(folder), Found::Unknown);
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
