//! Every example and every scheme of the standard library resolves.

use crate::support::*;
use std::path::Path;
use torre_compiler::resolve::Options;
use torre_compiler::scheme::Precision;

#[test]
fn examples_resolve() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut count = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the examples are there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "torre"))
        .collect();
    files.sort();
    let world = TestWorld {
        arrays: vec![("media/rods.npy", "<f4", vec![150, 150])],
        ..TestWorld::default()
    };
    for path in files {
        let text = std::fs::read_to_string(&path).expect("readable");
        for precision in [Precision::F32, Precision::F64] {
            let options = Options {
                precision,
                ..Options::default()
            };
            println!("{}", path.display());
            let resolved = resolved_with(&world, &text, &options);
            println!("{}\n{}", resolved.scheme, show(&resolved.warnings));
            println!("{:?}", resolved.problem);
        }
        count += 1;
    }
    assert!(count >= 16);
}

#[test]
fn the_standard_library_is_right() {
    for (name, text) in MODULES {
        let diagnostics = checked(&TestWorld::default(), text);
        assert!(diagnostics.0.is_empty(), "{name}: {}", show(&diagnostics));
    }
}
