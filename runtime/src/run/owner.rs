//! The run that the results in a folder belong to, as `report.json` in it says from the first step on.

use super::results_folder::{REPORT, has_results, is_place_of_results, real};
use crate::output::checkpoint::Identity;
use crate::output::checksum::Xxh64;
use crate::output::open::open;
use crate::output::{Attempt, Cause, ElementType, FileError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use torre_compiler::problem::Problem;

/// Longer reports are not read.
const MAX_BYTES: u64 = 256 << 20;

/// Files of results lie in the folder itself, in a folder of it, or in a store, whose files are deeper by as many
/// levels as an array has axes, and two more.
const MOST_AROUND: usize = 7;

/// The folder of spectra, which stands before their names.
const SPECTRA: &str = "spectra";

/// The run that results belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
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
    Results(Owner),
}

impl Owner {
    /// `manner` says in which format results are, and which are written beside the ones that the problem lists.
    pub fn new(identity: &Identity, problem: &Problem, manner: &str) -> Self {
        let Problem {
            outputs, statics, ..
        } = problem;
        let shown = problem.frames().map(|output| {
            let of = (output.component, output.state, output.kind, output.region);
            (output.name.clone(), hash(&format!("{of:?}")))
        });
        // A frame may have the same name; samples and frequencies are values of a spectrum.
        let spectra = problem.spectra().map(|(_, output, _)| {
            let name = format!("{SPECTRA}/{}", output.name);
            (name, hash(&format!("{output:?}")))
        });
        // Each run writes them anew.
        let constant = statics
            .iter()
            .map(|output| (output.name.clone(), hash("constant")));
        Self {
            identity: identity.clone(),
            steps: problem.steps,
            outputs: hash(&format!("{outputs:?} {statics:?} {manner}")),
            shown: shown.chain(spectra).chain(constant).collect(),
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
        if let Some(owner) = Self::read(folder) {
            return Found::Results(owner);
        }
        match has_results(folder) {
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

/// The folder with results, of whichever run, among which a file lies.
pub fn results_around(file: &Path) -> Option<PathBuf> {
    let file = real(file);
    let around = file.ancestors().skip(1).take(MOST_AROUND);
    let mut of_runs = around.filter(|folder| Owner::read(folder).is_some());
    of_runs
        .find(|folder| is_place_of_results(folder, &file))
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn owner(steps: u64) -> Owner {
        Owner {
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

    fn store(folder: &Path, owner: &Owner) {
        let report = json!({
            "steps": owner.steps,
            "precision": owner.identity.precision.name(),
            "identity": owner.json(),
        });
        fs::write(folder.join(REPORT), report.to_string()).unwrap();
    }

    #[test]
    fn results_of_another_run_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let own = owner(10);
        assert_eq!(Owner::find(folder), Found::Nothing);
        fs::create_dir(folder.join("slices")).unwrap();
        assert_eq!(Owner::find(folder), Found::Nothing);
        store(folder, &own);
        assert_eq!(Owner::find(folder), Found::Results(own.clone()));
        own.check(folder, Begun::Anew).unwrap();
        let said = |other: &Owner, begun| {
            store(folder, other);
            own.check(folder, begun)
                .err()
                .map(|error| error.to_string())
        };
        let changed = |change: fn(&mut Owner)| {
            let mut other = owner(10);
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
            assert_eq!(Owner::find(folder), Found::Unknown, "{damaged}");
            assert!(own.check(folder, Begun::Resumed).is_err());
        }
    }
}
