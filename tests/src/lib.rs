//! The test suite over the whole of Torre: the code that tests in `tests/` share.

mod circle;
pub mod interpreted;
pub mod physics;
pub mod random;
pub mod timelines;

use std::path::{Path, PathBuf};
use torre_grammar::source::Source;
use torre_runtime::world::read_source;

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

/// The text of an example, on a domain that can be interpreted in seconds; its sources, probes and slices lie in it.
pub fn small_example(path: &Path) -> Source {
    let source = read_source(path).expect("a readable text");
    let changes: &[(&str, &str)] = match path.file_stem().and_then(|name| name.to_str()) {
        Some("03-wave3d-order8") => &[("96 x 64 x 64", "72 x 40 x 36")],
        Some("08-maxwell42") => &[
            ("256 x 256 x 256", "52 x 40 x 36"),
            ("(64, 64, 64)", "(21, 20, 18)"),
            ("(100, 64, 64)", "(30, 20, 18)"),
            ("z = 128", "z = 17"),
            ("64*h", "20*h"),
        ],
        Some("12-elastic3d") => &[
            ("72 x 72 x 72", "40 x 44 x 40"),
            ("(36, 36, 36)", "(20, 22, 20)"),
            ("(36, 50, 36)", "(20, 30, 20)"),
            ("z < 54", "z < 30"),
            ("z = 36", "z = 20"),
        ],
        _ => return source,
    };
    let mut text = source.text().to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{} has no {from}", path.display());
        text = text.replace(from, to);
    }
    Source::new(source.name(), text)
}

/// Values that the boundary holds at 0 on planes, and reads of their images behind other sides.
pub const HELD: &str = "
scheme held {
  axes x, y
  param dt = 1
  boundary hard: u odd
  field u : scalar on nodes
  field E : vector on edges
  step {
    E = [u[-3/2, 0], u[0, -3/2]]
    u += 0.1 * (d(E.x, x) + d(E.y, y))
  }
}
problem p {
  scheme held
  domain 5 x 6
  boundary x: hard, y: hard
  init u = 1 + x + y
  steps 3
}";
