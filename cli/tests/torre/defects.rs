//! Defects of Torre, as their messages tell of them: the cache of machine code has other code in the place of the
//! right one, with a header that fits.

use crate::support::*;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

const HEAT: &str = "
scheme heat {
  axes x, y
  param k = 0.1
  field u : scalar on nodes
  step { allow W0301
    u += k * (d2(u, x) + d2(u, y))
  }
}
problem heat {
  scheme heat
  domain 20 x 30
  init u = x
  steps 5
}
";

/// The key in the header of a file of code; the hash and the length of the code follow.
const KEY: std::ops::Range<usize> = 16..48;

struct Planted {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Planted {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        plant_machine(folder.path(), &machine_file());
        let program = folder.path().join("heat.torre");
        std::fs::write(&program, HEAT).unwrap();
        Self { folder, program }
    }

    fn run(&self, more: &str) -> (Option<i32>, String) {
        let output = torre()
            .env("XDG_CACHE_HOME", self.folder.path())
            .args(["run", self.program.to_str().unwrap(), "--quiet"])
            .args(["--backend", "llvm", "--schedule", "layerwise"])
            .args(more.split_whitespace())
            .output()
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), errors)
    }

    /// Compiled code, by its files.
    fn objects(&self) -> Vec<PathBuf> {
        let folder: &Path = &self.folder.path().join("torre/objects");
        let entries = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "object"));
        files
    }

    /// The only code that there is.
    fn object(&self) -> PathBuf {
        let [only] = self.objects().try_into().unwrap();
        only
    }
}

/// The values of a run that differ from the reference are found by `--verify`, and by nothing else.
#[test]
fn wrong_values_are_told_by_their_place() {
    if !has_llvm() {
        return;
    }
    let planted = Planted::new();
    assert_eq!(planted.run("").0, Some(0));
    let right = planted.object();
    assert_eq!(planted.run("--set k=0.2").0, Some(0));
    let mut objects = planted.objects();
    objects.retain(|path| *path != right);
    let [wrong] = objects.try_into().unwrap();
    let mut code: Vec<u8> = std::fs::read(wrong).unwrap();
    code[KEY].copy_from_slice(&std::fs::read(&right).unwrap()[KEY]);
    std::fs::write(&right, code).unwrap();
    let (status, errors) = planted.run("--verify");
    assert_eq!(status, Some(1), "{errors}");
    for part in [
        "E0808",
        "verification failed: u at (",
        "after step 5 is ",
        "more values of it differ",
        "please report it",
    ] {
        assert!(errors.contains(part), "{part} in {errors}");
    }
    assert_eq!(planted.run("").0, Some(0));
    assert_eq!(planted.run("--set k=0.2 --verify").0, Some(0));
}

/// Code that cannot be loaded is a failure of the back end; another one works.
#[test]
fn back_ends_that_fail_are_named() {
    if !has_llvm() {
        return;
    }
    let planted = Planted::new();
    assert_eq!(planted.run("").0, Some(0));
    let object = planted.object();
    let mut file = std::fs::read(&object).unwrap();
    let code = b"no code";
    file.truncate(KEY.end);
    file.extend(Sha256::digest(code));
    file.extend((code.len() as u64).to_le_bytes());
    file.extend(code);
    std::fs::write(&object, file).unwrap();
    let (status, errors) = planted.run("");
    assert_eq!(status, Some(1), "{errors}");
    for part in [
        "E0902",
        "the back end `llvm` failed: ",
        "another `--backend` may work",
    ] {
        assert!(errors.contains(part), "{part} in {errors}");
    }
    // Of a file that is cut short nothing is taken: the code is made anew.
    std::fs::write(&object, &std::fs::read(&object).unwrap()[..90]).unwrap();
    assert_eq!(planted.run("--verify").0, Some(0));
}
