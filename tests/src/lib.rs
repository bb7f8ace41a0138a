//! The test suite over the whole of Torre: what tests in `tests/` share.

pub mod interpreted;
pub mod physics;
pub mod random;

use std::path::{Path, PathBuf};

/// The programs of `examples/`, in the order of their names.
pub fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let entries = std::fs::read_dir(&folder).expect("the folder of examples");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "torre"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}
