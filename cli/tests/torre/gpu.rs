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
const QUIET: &str = "
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

/// A domain that is five times as large as the memory that is allowed.
#[test]
fn windows_are_planned_without_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quiet.torre");
    std::fs::write(&file, QUIET).unwrap();
    let schedule = "--schedule torre(D=2,TH=16)";
    let large = "--set domain=2400x600x128";
    let plan = |more: &str| {
        let plan = format!("plan {{0}} --backend cuda --target sm_90 {schedule} {large} {more}");
        succeed(&plan, &[&file])
    };
    assert!(!plan("").contains("  window "));
    assert!(plan("--window device").contains("time blocks, in groups of 48 planes\n"));
    for more in ["--memory 1.2GB", "--window host --memory 1.2GB"] {
        let text = plan(more);
        assert!(
            text.contains("  window ") && text.contains("  passes "),
            "{text}"
        );
    }
    let report = plan("--memory 1.2GB --in-flight 3 --report json");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let window = &report["window"];
    assert_eq!(window["steps_of_a_pass"], 48);
    let [places, least, planes] =
        ["buffer_planes", "least_planes", "planes"].map(|key| window[key].as_i64().unwrap());
    assert!(least <= places && 5 * places < 2 * planes, "{window}");
    assert!(
        window["device_memory_bytes"].as_u64().unwrap() <= 1_200_000_000,
        "{window}"
    );
    // Problems for which there can be no window.
    let refused = |more: &str| {
        let plan = format!("plan {{0}} --backend cuda --target sm_90 {schedule} {large} {more}");
        fail(1, &plan, &[&file])
    };
    let error = refused("--memory 50MB");
    assert!(
        error.contains("E0853") && error.contains("least calculation window"),
        "{error}"
    );
    let layerwise =
        format!("plan {{0}} --backend cuda --target sm_90 --schedule layerwise {large}");
    let error = fail(1, &format!("{layerwise} --memory 1.2GB"), &[&file]);
    assert!(
        error.contains("E0853") && error.contains("by towers only"),
        "{error}"
    );
    refused("--memory 1.2GB --window none");
    // Where the model chooses, and there are no towers to choose from, the message does not name its choice.
    for (more, hint) in [
        ("--window host", "only schemes with three axes have towers"),
        ("--window slabs", "only schemes with three axes have towers"),
        ("--devices 0,1", "use one GPU"),
    ] {
        let plan = format!("plan examples/02-wave2d.torre --backend cuda --target sm_90 {more}");
        let error = fail(1, &plan, &[]);
        assert!(error.contains("cannot run `auto`: "), "{error}");
        assert!(error.contains(hint), "{error}");
        let error = fail(1, &format!("{plan} --schedule pyramid(B=16,TH=4)"), &[]);
        assert!(
            error.contains("cannot run `pyramid(B = 16, TH = 4"),
            "{error}"
        );
    }
    // A window over the host's memory goes around the first axis, one over the device's does not.
    std::fs::write(&file, QUIET.replace("x: pec", "x: periodic")).unwrap();
    let around = plan("--memory 1.2GB");
    assert!(
        around.contains("  window ") && around.contains("  passes "),
        "{around}"
    );
    let error = refused("--window device");
    assert!(
        error.contains("E0853") && error.contains("goes around the first axis"),
        "{error}"
    );
    // Over files, too, with several GPUs; planes that a GPU has twice are written once.
    let over = |devices: &str| plan(&format!("--memory 1.2GB --window ./files {devices}"));
    let written = |text: &str| {
        let line = text.lines().find(|line| line.contains("  files "));
        line.expect("files").to_owned()
    };
    let [one, two] = ["", "--devices 0,1"].map(|devices| written(&over(devices)));
    assert!(
        one.contains(" written in a run") && one != two,
        "{one} {two}"
    );
}

/// Overlapped slabs of a domain five times as large as the memory that is allowed: bytes copied, cell-steps computed,
/// and their operations after a check.
#[test]
fn slabs_are_planned_without_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quiet.torre");
    std::fs::write(&file, QUIET).unwrap();
    let schedule = "--schedule torre(D=2,TH=8) --columns 8";
    let large = "--set domain=2400x600x128 --memory 3GB";
    let plan = |window: &str, more: &str| {
        let window = window.replace(' ', "");
        format!(
            "plan {{0}} --backend cuda --target sm_90 {schedule} {large} --window {window} {more}"
        )
    };
    let text = succeed(&plan("slabs", ""), &[&file]);
    for line in [
        "  slabs ",
        "  passes ",
        "  copied ",
        "  computed ",
        "; transfers allow ",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let report = |window: &str| {
        let text = succeed(&plan(window, "--report json"), &[&file]);
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        report["window"].clone()
    };
    let number = |of: &serde_json::Value, key: &str| of[key].as_f64().unwrap();
    let chosen = report("slabs");
    assert!(number(&chosen, "device_memory_bytes") <= 3e9, "{chosen}");
    let heights = [8, 16, 32, 48].map(|height| report(&format!("slabs(height = {height})")));
    for (of, steps) in heights.iter().zip([8, 16, 32, 48]) {
        assert_eq!(of["steps_of_a_pass"], steps);
        assert!(
            number(of, "predicted_gcells_per_s")
                <= 1.0001 * number(&chosen, "predicted_gcells_per_s"),
            "{of} {chosen}"
        );
    }
    // Higher passes copy less in a step, and compute more.
    for [low, high] in [0, 1, 2].map(|n| [&heights[n], &heights[n + 1]]) {
        let computed = "computed_per_cell_step";
        assert!(number(low, computed) < number(high, computed));
        assert!(number(low, "planes_of_a_base") > number(high, "planes_of_a_base"));
        let stored = "copied_bytes_each_way";
        assert!(number(low, stored) > number(high, stored));
    }
    for (window, reason) in [
        ("slabs(height = 12)", "whole time blocks"),
        ("slabs(base = 40, height = 32)", "too narrow"),
        (
            "slabs(base = 1200, height = 16)",
            "buffers of two slabs take",
        ),
        ("slabs(height = 400)", "buffers of two slabs take"),
    ] {
        let error = fail(1, &plan(window, ""), &[&file]);
        assert!(error.contains("E0853") && error.contains(reason), "{error}");
        assert!(error.contains("help: "), "{error}");
    }
    // The same over files.
    let over = plan("{1}", "");
    let text = succeed(
        &over,
        &[file.as_path(), std::path::Path::new("slabs in ./files")],
    );
    assert!(
        text.contains("  slabs ") && text.contains("  files ") && text.contains("  expected "),
        "{text}"
    );
    let two = plan("slabs", "--devices 0,1");
    let text = succeed(&two, &[&file]);
    assert!(text.contains("2 take slabs in turns"), "{text}");
    let over = plan("{1}", "--devices 0,1");
    let slabs = std::path::Path::new("slabs in ./files");
    let error = fail(1, &over, &[file.as_path(), slabs]);
    assert!(
        error.contains("E0853") && error.contains("one GPU"),
        "{error}"
    );
    let emit = format!(
        "emit {{0}} --stage pipeline --target sm_90 {schedule} --set domain=400x48x8 --window slabs(base=120,height=16)"
    );
    let text = succeed(&emit, &[&file]);
    for line in [
        ", 2 time blocks in flight\n",
        "\npass 1 slab ",
        "  block 1: 8 steps, groups ",
        "  loads     load ",
        "  stores    store ",
        "  blocks 1  run block 1 group ",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    std::fs::write(&file, QUIET.replace("x: pec", "x: periodic")).unwrap();
    let error = fail(1, &plan("slabs", ""), &[&file]);
    assert!(
        error.contains("E0853") && error.contains("around the first axis"),
        "{error}"
    );
}

/// Stripes, messages and rates of several GPUs, and their launches.
#[test]
fn several_devices_are_planned_without_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quiet.torre");
    std::fs::write(&file, QUIET).unwrap();
    let schedule = "--schedule torre(D=2,TH=8) --target sm_90";
    let plan = |devices: &str, more: &str| {
        format!(
            "plan {{0}} --backend cuda {schedule} --set domain=600x900x64 --devices {devices} {more}"
        )
    };
    let text = succeed(&plan("0,1,2", ""), &[&file]);
    for line in [
        "  in flight        4 time blocks",
        "  devices          3 with ",
        "  expected ",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let report = |devices: &str| {
        let text = succeed(&plan(devices, "--report json"), &[&file]);
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        report["window"].clone()
    };
    let [two, three] = ["0,1", "0,1,2"].map(report);
    let number = |of: &serde_json::Value, key: &str| of[key].as_f64().unwrap();
    assert_eq!(three["rows_of_devices"].as_array().unwrap().len(), 3);
    assert!(number(&three, "device_memory_bytes") < number(&two, "device_memory_bytes"));
    assert!(number(&three, "predicted_gcells_per_s") > number(&two, "predicted_gcells_per_s"));
    for (more, reason) in [
        ("--window none", "hold all values together"),
        ("--window device --memory 50MB", "a stripe takes"),
        ("--columns 512", "too narrow for several devices"),
    ] {
        let error = fail(1, &plan("0,1,2", more), &[&file]);
        assert!(error.contains("E0853") && error.contains(reason), "{error}");
    }
    // Where stripes do not fit, a window goes over the host's memory.
    for more in ["--window host", "--memory 290MB"] {
        let text = succeed(&plan("0,1,2", more), &[&file]);
        assert!(
            text.contains("  devices          3 take passes in turns\n"),
            "{text}"
        );
    }
    let emit = format!(
        "emit {{0}} --stage pipeline {schedule} --set domain=400x48x8 --devices 0,1 --window host --memory 20MB \
         --columns 4 --in-flight 2"
    );
    let text = succeed(&emit, &[&file]);
    for line in [
        " on each of 2 devices, which take passes in turns\n",
        "  device 1 loads load ",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let emit = format!(
        "emit {{0}} --stage pipeline {schedule} --set domain=90x120x8 --devices 0,1 --columns 2 --in-flight 2"
    );
    let text = succeed(&emit, &[&file]);
    for line in [
        "device 0: rows ",
        "  device 1 blocks 1  run block 1 launch ",
        "  device 0 up 0      send planes ",
        " to device 1  after ",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    // Stripes do not go around the first two axes; devices that take passes in turns do.
    for axis in ["x", "y"] {
        let ring = QUIET.replace(&format!("{axis}: pec"), &format!("{axis}: periodic"));
        std::fs::write(&file, ring).unwrap();
        let text = succeed(&plan("0,1", ""), &[&file]);
        assert!(
            text.contains("  devices          2 take passes in turns\n"),
            "{text}"
        );
        let error = fail(1, &plan("0,1", "--window device"), &[&file]);
        assert!(
            error.contains("E0853") && error.contains("may be periodic"),
            "{error}"
        );
    }
}

#[test]
fn pipelines_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quiet.torre");
    std::fs::write(&file, QUIET).unwrap();
    let text = succeed(
        "emit {0} --stage pipeline --target sm_90 --schedule torre(D=2,TH=16) --window host --memory 60MB --in-flight \
         2 --columns 8 --set domain=600x48x64",
        &[&file],
    );
    for line in [
        ", 2 time blocks in flight\n",
        "\npass 1\n",
        "  block 1: 16 steps, groups ",
        ", behind block 0 by 2 groups\n",
        "  loads     load ",
        "  stores    store ",
        "  blocks 1  run block 1 group ",
        " planes, which go around, 1 groups loaded ahead\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
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
    assert!(fail(2, "plan {0} --target sm_90", &[&file]).contains("E0809"));
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
        program.contains("publish") && program.contains("meet"),
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
