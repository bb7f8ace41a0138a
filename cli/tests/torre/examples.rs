//! Every example gives the same files, bit by bit, on every back end.

use crate::support::*;

fn compare(precision: &str) {
    let folder = tempfile::tempdir().unwrap();
    let llvm = has_llvm();
    for (name, text) in examples() {
        // 03 and 08 move their fields in the text, and probes may lie outside of the smaller domains.
        let text = text
            .replace("(70, 32, 32)", "(60, 20, 18)")
            .replace("(64, 20, 18)", "(30, 20, 18)");
        let source = place_example(folder.path(), &name, &text);
        let expected = folder.path().join(format!("{name}-reference"));
        let common =
            format!("run {{0}} --quiet --set steps=6 --precision {precision} --save-final");
        succeed(
            &format!("{common} --backend reference --out {{1}}"),
            &[&source, &expected],
        );
        let expected = results(&expected);
        assert!(expected.keys().any(|file| file.starts_with("fields/")));
        for (backend, threads) in [("interp", 1), ("cranelift", 2), ("llvm", 2), ("llvm", 1)] {
            if backend == "llvm" && !llvm {
                continue;
            }
            let out = folder.path().join(format!("{name}-{backend}-{threads}"));
            succeed(
                &format!("{common} --backend {backend} --threads {threads} --out {{1}}"),
                &[&source, &out],
            );
            assert_same_files(&expected, &results(&out), &format!("{name} by {backend}"));
        }
    }
}

#[test]
fn all_back_ends_agree_in_single_precision() {
    compare("f32");
}

#[test]
fn all_back_ends_agree_in_double_precision() {
    compare("f64");
}

#[test]
fn verification_passes_and_is_reported() {
    let report = succeed(
        "run examples/02-wave2d.torre --set steps=9 --verify --report json",
        &[],
    );
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["verified"], "the reference");
    let report = succeed(
        "run examples/13-diffusion.torre --set steps=4000 --verify --report json --precision f64",
        &[],
    );
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["verified"], "the interpreter, layerwise");
}

#[test]
fn all_examples_are_without_errors() {
    for (name, _) in examples() {
        let file = format!("examples/{name}.torre");
        succeed(&format!("check {file}"), &[]);
        let report = succeed(&format!("check {file} --report json"), &[]);
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        // Methods of first order in time say that they are.
        assert_eq!(report.as_array().unwrap().len(), 0, "{name}: {report}");
    }
}

#[test]
fn reports_have_what_benchmarks_rely_on() {
    let folder = tempfile::tempdir().unwrap();
    let text = succeed(
        "run examples/06-maxwell-tm2d.torre --set steps=4 --report json --out {0}",
        &[folder.path()],
    );
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in [
        "cells",
        "steps",
        "seconds",
        "gcells_per_s",
        "backend",
        "schedule",
        "precision",
        "predicted_gcells_per_s",
        "bytes_per_cell_step",
        "compile_seconds",
        "peak_memory_bytes",
        "devices",
    ] {
        assert!(report.get(key).is_some(), "{key}");
    }
    assert_eq!(report["cells"], 300 * 200);
    assert_eq!(report["steps"], 4);
    let file = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
    assert_eq!(file, text);
}
