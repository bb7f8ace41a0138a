//! Every example compiles, runs in a small version, and does something finite.

use std::path::{Path, PathBuf};
use torre_runtime::world::read_source;
use torre_suite::physics::case::Case;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// Settings for the test, so that it takes a moment: a domain that holds all places that the example names, and few
/// steps.
fn settings(name: &str) -> Vec<(&'static str, &'static str)> {
    let domain = match name {
        "03-wave3d-order8" => Some("72x40x40"),
        "08-maxwell42" => Some("104x70x132"),
        "12-elastic3d" => Some("40x54x40"),
        _ => None,
    };
    let steps = match name {
        "03-wave3d-order8" => "8",
        "08-maxwell42" => "2",
        "12-elastic3d" => "6",
        "01-wave1d" | "04-maxwell1d" | "14-kerr" | "16-burgers" => "200",
        // The wave comes in after some steps.
        "17-scattering" | "19-grating" => "40",
        _ => "8",
    };
    domain
        .map(|d| ("domain", d))
        .into_iter()
        .chain([("steps", steps)])
        .collect()
}

/// The texts of the library and the examples are laid out as the formatter does it.
#[test]
fn every_text_is_in_canonical_layout() {
    let mut count = 0;
    for folder in [folder(), folder().join("../stdlib")] {
        for entry in std::fs::read_dir(&folder).expect("a folder of texts") {
            let path = entry.expect("an entry of the folder").path();
            if path.extension().is_none_or(|e| e != "torre") {
                continue;
            }
            let source = read_source(&path).expect("a readable text");
            let ast = torre_grammar::parse(&source).expect("a text without errors");
            let printed = torre_grammar::print(&ast);
            assert!(
                printed == source.text(),
                "{}: `torre fmt` would change it",
                path.display()
            );
            count += 1;
        }
    }
    assert!(count >= 27, "{count}");
}

#[test]
fn every_example_runs() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the folder of examples")
        .filter_map(|entry| {
            let path = entry.expect("an entry of the folder").path();
            let torre = path.extension().is_some_and(|e| e == "torre");
            torre.then(|| {
                path.file_stem()
                    .expect("a file name")
                    .to_string_lossy()
                    .into_owned()
            })
        })
        .collect();
    names.sort();
    assert!(names.len() >= 16, "{names:?}");
    for name in names {
        let path = folder().join(format!("{name}.torre"));
        let case = Case::file(&path, &settings(&name));
        assert!(case.warnings().is_empty(), "{name}: {:?}", case.warnings());
        let mut run = case.start();
        for _ in 0..case.problem().steps {
            run.step();
        }
        let mut largest = 0f64;
        for c in case.components() {
            for v in run.values(c) {
                assert!(v.is_finite(), "{name}: {c} is {v}");
                largest = largest.max(v.abs());
            }
        }
        assert!(largest > 0.0, "{name}: nothing happens");
    }
}
