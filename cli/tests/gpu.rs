//! GPUs on the command line: code for them needs none, and where a run finds none, it says so.

mod support;

use support::*;

/// The GPUs that `torre machine` finds.
fn gpus() -> usize {
    let facts: serde_json::Value =
        serde_json::from_str(&succeed("machine --report json", &[])).unwrap();
    facts["gpus"].as_array().map_or(0, Vec::len)
}

#[test]
fn code_for_gpus_needs_none() {
    if !has_llvm() {
        return;
    }
    for (file, target, precision, part) in [
        ("01-wave1d", "sm_80", "f32", "ld.global.nc.v4.b32"),
        ("05-maxwell-te2d", "sm_90", "f64", "ld.global.nc.v2.b64"),
        ("08-maxwell42", "sm_120", "f32", "fma.rn.f32"),
    ] {
        let emit = format!("emit examples/{file}.torre --precision {precision} --target {target}");
        let ptx = succeed(&format!("{emit} --stage ptx"), &[]);
        for part in [part, &format!(".target {target}"), ".entry torre_s0_p0"] {
            assert!(ptx.contains(part), "{file}: {part} in {ptx}");
        }
        let ir = succeed(&format!("{emit} --stage llvm"), &[]);
        assert!(ir.contains("define ptx_kernel void @torre_s0_p0"), "{ir}");
        assert_eq!(succeed(&format!("{emit} --stage asm"), &[]), ptx);
    }
    let tiles =
        "emit examples/08-maxwell42.torre --stage ptx --target sm_90 --schedule torre(D=2,TH=4)";
    let error = fail(2, tiles, &[]);
    assert!(error.contains("GPUs run no tiles"), "{error}");
}

#[test]
fn without_a_gpu_a_run_on_one_ends_with_3() {
    if gpus() > 0 {
        println!("skipped: there is a GPU");
        return;
    }
    for command in ["run", "plan"] {
        let error = fail(
            3,
            &format!("{command} examples/01-wave1d.torre --backend cuda"),
            &[],
        );
        let known = ["no libcuda.so was found", "finds no GPU", "is needed"];
        assert!(known.iter().any(|text| error.contains(text)), "{error}");
    }
}

#[test]
fn a_run_on_a_gpu_writes_the_same_files() {
    if gpus() == 0 || !has_llvm() {
        println!("skipped: {} runs on a GPU", examples().len());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in examples() {
        let source = place_example(folder.path(), &name, &text);
        let run = |backend: &str| {
            let out = folder.path().join(format!("{name}-{backend}"));
            let run = "run {0} --quiet --set steps=50 --save-final --out {1} --backend";
            succeed(&format!("{run} {backend}"), &[&source, &out]);
            results(&out)
        };
        assert_same_files(&run("llvm"), &run("cuda"), &name);
    }
}
