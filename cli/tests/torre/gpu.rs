//! GPUs on the command line: code for them needs none, and where a run finds none, it says so.

use crate::support::*;

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
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quiet.torre");
    std::fs::write(&file, QUIET).unwrap();
    let towers = "emit {0} --target sm_90 --schedule torre(D=2,TH=4)";
    let ptx = succeed(&format!("{towers} --stage ptx"), &[&file]);
    assert!(ptx.contains(".entry torre_towers"), "{ptx}");
    let plan = succeed(&format!("{towers} --stage plan"), &[&file]);
    assert!(plan.contains("164 rows"), "{plan}");
}

/// A problem with nothing but values.
pub const QUIET: &str = "
use std::maxwell::maxwell42
schedule towers for maxwell42 {
  (x, y): diamond(D = 1) lean +x height 64
}
problem quiet {
  scheme   maxwell42 { h = 1 }
  domain   1536 x 1536 x 256
  boundary x: pec, y: pec, z: pec
  steps    1000
}
";

#[test]
fn towers_are_planned_without_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quiet.torre");
    std::fs::write(&file, QUIET).unwrap();
    let plan = |more: &str| {
        let plan = format!("plan {{0}} --backend cuda --target sm_90 {more}");
        succeed(&plan, &[&file])
    };
    let text = plan("");
    for line in [
        "  height 8; x+y slope 3/2 pitch 6, x-y slope 3/2 pitch 6\n",
        "  rate ",
        "  caches        45.3 bytes per cell-step\n",
        "  tower            6 cells wide, D = 2: 18 columns of cells, 8 steps high; ",
        "  threads        384 of a block\n",
        "  shared      189 kB of a block, 164 rows\n",
        "  kept           103 values of a thread, ",
        "  device    H200, 132 multiprocessors, ",
        " that were considered",
        "  torre(D = 2, TH = 16)\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(text.starts_with("torre(D = 2, TH = 8)\n"), "{text}");
    let report: serde_json::Value = serde_json::from_str(&plan("--report json")).unwrap();
    assert_eq!(report["schedule"], "torre(D = 2, TH = 8)");
    assert_eq!(report["towers"]["size"], 2.0);
    assert_eq!(report["towers"]["shared_rows"], 164);
    assert_eq!(report["target"], "sm_90");
    let predicted = |report: &serde_json::Value| report["predicted_gcells_per_s"].as_f64();
    let others = report["alternatives"].as_array().unwrap();
    let plain = others
        .iter()
        .find(|o| o["schedule"] == "layerwise")
        .unwrap();
    assert!(predicted(&report) > predicted(plain));
    // A block of the program, and less memory for the same.
    assert!(plan("--schedule towers").starts_with("towers(height = 64, D = 1)\n"));
    assert!(plan("--schedule layerwise").starts_with("layerwise\n  rate "));
    // Copies of ghosts keep a layerwise run from its rate there: an H100 does 27 layerwise and 45 by towers.
    assert!(plan("--set domain=64x64x20000").starts_with("torre(D = 1, TH = 8)\n"));
    // Towers around small rings wait for each other: 14 and 9.4.
    let walls = "x: pec, y: pec, z: pec";
    std::fs::write(&file, QUIET.replace(walls, "all: periodic")).unwrap();
    assert!(plan("--set domain=64x64x64").starts_with("layerwise\n"));
}

#[test]
fn what_keeps_a_run_from_towers_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loud.torre");
    let write = |more: &str| {
        let text = QUIET.replace("  steps", &format!("{more}\n  steps"));
        std::fs::write(&file, text).unwrap();
    };
    let plan = |more: &str| {
        let plan = format!("plan {{0}} --backend cuda --target sm_90 --schedule {more}");
        let output = run(&plan, &[&file]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    write(
        "  source   E.z at (5, 21, 9) += 1\n  probe    E.y at (6, 1, 10)\n  output   slice E.z z = 20 every 20",
    );
    let both = ["auto", "torre(D=2,TH=32)"];
    assert_eq!(both.map(plan), ["", ""]);
    write("  source   E.z in z = 8..9 += sin(t)");
    assert_eq!(both.map(plan), ["", ""]);
    write("  output   slice E.z z = 20 every 3");
    let note = plan("torre(D=2,TH=32)");
    assert!(
        note.contains("only 0 % of the steps run by towers up to 32 steps high"),
        "{note}"
    );
    write("  source   E.z in z = 8..9 += sin(t - x)");
    for schedule in both {
        let note = plan(schedule);
        let reason =
            "sources act, or probes record, in too many cells, so a GPU goes stage by stage";
        assert!(note.contains(reason), "{note}");
    }
    for quiet in ["layerwise", "auto --quiet"] {
        assert_eq!(plan(quiet), "");
    }
}

#[test]
fn schedules_that_a_gpu_cannot_run_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quiet.torre");
    std::fs::write(&file, QUIET).unwrap();
    for (target, schedule, limit, fits) in [
        (
            "sm_90",
            "torre(D=3)",
            "bytes of shared memory for 290 rows, and a block has 232448",
            "`torre(W = 5)`, `torre(D = 2)` fit",
        ),
        (
            "sm_80",
            "torre(D=3)",
            "shared memory for 290 rows",
            "`torre(D = 2)` fit",
        ),
        (
            "sm_90",
            "torre(D=2,TH=8,G=2)",
            "do not run tiles inside",
            "one level",
        ),
        (
            "sm_90",
            "torre(D=2,TH=8,Z=64)",
            "cut along the last axis",
            "leaves the last axis whole",
        ),
        (
            "sm_90",
            "pyramid(B=8,TH=2)",
            "with three axes pyramids stay on the chip",
            "`torre(D = 2)`",
        ),
        ("sm_90", "box(B=8)", "do not run boxes", "`torre(D = 2)`"),
        ("sm_90", "torre(W=1,TH=8)", "so narrow", "`torre(D = 1)`"),
    ] {
        let plan = format!("plan {{0}} --backend cuda --target {target} --schedule {schedule}");
        let error = fail(1, &plan, &[&file]);
        for part in ["E0853", limit, fits] {
            assert!(error.contains(part), "{schedule}: {part} in {error}");
        }
        let emit = format!("emit {{0}} --stage ptx --target {target} --schedule {schedule}");
        assert!(fail(1, &emit, &[&file]).contains("E0853"), "{schedule}");
    }
    let plan = "plan {0} --backend cuda --target sm_90 --schedule";
    // Only rings along the last axis cannot be cut into spans.
    let ring = QUIET.replace("z: pec", "z: periodic");
    std::fs::write(&file, ring).unwrap();
    let long = fail(
        1,
        &format!("{plan} torre(D=1) --set domain=64x64x20000"),
        &[&file],
    );
    assert!(
        long.contains("a thread for each of the 20000 values"),
        "{long}"
    );
    // The scheme's own limits come before the limits of the GPU.
    let slow = QUIET.replace("lean +x", "slope 1");
    std::fs::write(&file, slow).unwrap();
    assert!(fail(1, &format!("{plan} towers"), &[&file]).contains("E0852"));
    let periodic = QUIET.replace("y: pec", "y: periodic");
    std::fs::write(&file, periodic).unwrap();
    let short = format!("{plan} torre(D=2) --set domain=64x20x64");
    let short = fail(1, &short, &[&file]);
    assert!(
        short.contains("a periodic axis is shorter than four towers"),
        "{short}"
    );
    let periodic = QUIET.replace("x: pec", "x: periodic");
    std::fs::write(&file, periodic).unwrap();
    let short = format!("{plan} torre(D=2,TH=64) --set domain=200x64x64");
    let short = fail(1, &short, &[&file]);
    assert!(
        short.contains("towers of 64 steps reach once around the first axis"),
        "{short}"
    );
    let flat = fail(
        1,
        "plan examples/02-wave2d.torre --backend cuda --target sm_90 --schedule diamond(P=8,TH=8,Z=0)",
        &[],
    );
    assert!(flat.contains("one or two axes"), "{flat}");
    assert!(fail(2, "plan {0} --backend cuda --target sm_42", &[&file]).contains("E0805"));
    assert!(fail(2, "plan {0} --target x86-64-v3", &[&file]).contains("E0809"));
    succeed("plan {0} --target sm_90", &[&file]);
}

/// Schemes with two axes or one go by pyramids, which are planned, shown, and refused where they do not fit.
#[test]
fn schemes_with_two_axes_go_by_pyramids() {
    let wave = "examples/02-wave2d.torre --target sm_90";
    let domain = "--set domain=4096x4096";
    let auto = succeed(&format!("plan {wave} --backend cuda {domain}"), &[]);
    assert!(
        auto.contains("pyramids") && auto.contains("cells each"),
        "{auto}"
    );
    let small = format!("plan {wave} --backend cuda --set domain=512x512");
    assert!(succeed(&small, &[]).contains("tiles stay on the chip"));
    let asked = "--schedule pyramid(B=48,TH=4,Z=96)";
    let plan = succeed(&format!("plan {wave} --backend cuda {domain} {asked}"), &[]);
    assert!(
        plan.contains("bases of 48 x 96 cells in tiles of"),
        "{plan}"
    );
    let program = succeed(&format!("emit {wave} --stage towers {domain} {asked}"), &[]);
    assert!(
        program.contains("publish") && program.contains("barrier"),
        "{program}"
    );
    let wide = format!("plan {wave} --backend cuda {domain} --schedule pyramid(B=300,TH=4,Z=96)");
    let wide = fail(1, &wide, &[]);
    assert!(
        wide.contains("E0853") && wide.contains("smaller base"),
        "{wide}"
    );
    let layers = "plan examples/17-scattering.torre --target sm_90 --backend cuda";
    let layers = succeed(&format!("{layers} --set domain=600x600"), &[]);
    assert!(layers.contains("tiles with cells of zones"), "{layers}");
    let line = "plan examples/01-wave1d.torre --target sm_90 --backend cuda --set domain=1000000";
    assert!(succeed(line, &[]).contains("bases of 1 x"));
}

/// Offsets in a tower program are of its own rows.
#[test]
fn towers_say_which_rows_are_packed() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("p.torre");
    let towers = |sides: &str| {
        let text = format!(
            "use std::maxwell::maxwell42\nproblem p {{ scheme maxwell42; domain 64 x 64 x 256\n\
             boundary all: {sides}; steps 9 }}\n"
        );
        std::fs::write(&source, text).unwrap();
        succeed(
            "emit {0} --stage towers --target sm_90 --schedule torre(D=2)",
            &[&source],
        )
    };
    let said = "rows: packed; thread n has index n + 1 of E.x, E.y, H.z and of";
    assert!(towers("pec | pmc").contains(said));
    assert!(!towers("pmc | pec").contains("packed"));
}

#[test]
fn without_a_gpu_a_run_on_one_ends_with_3() {
    if gpus() > 0 {
        println!("skipped: there is a GPU");
        return;
    }
    for command in ["run", "plan", "bench"] {
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
