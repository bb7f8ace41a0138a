//! Plans of windows and of several GPUs on the command line, without any GPU.

use crate::gpu::QUIET;
use crate::support::*;

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
    // Where one time block runs at a time, options for several are refused.
    for (more, why) in [
        ("--in-flight 3", "all values fit into the GPU's memory"),
        ("--columns 8 --window none", "`--window none`"),
    ] {
        let plan = format!("plan {{0}} --backend cuda --target sm_90 {schedule} {large} {more}");
        let error = fail(2, &plan, &[&file]);
        assert!(error.contains("E0809") && error.contains(why), "{error}");
        let option = more.split(' ').next().unwrap();
        assert!(error.contains(&format!("`{option}`")), "{error}");
    }
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

/// What is said of a run that goes on is about its own steps.
#[test]
fn passes_of_a_resumed_run_are_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let source = pond(folder.path(), 50, 40);
    let [window, report] = ["window", "report.json"].map(|name| folder.path().join(name));
    let found = || {
        let text = std::fs::read(&report).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&text).unwrap();
        report["window"].clone()
    };
    let run = |more: &str| {
        let run = format!(
            "run {{0}} --threads 1 --backend cranelift --window {{1}} --memory 4MB --report {{2}} {more}"
        );
        let output = run_by(torre(), &run, &[&source, &window, &report]);
        let said = unwrapped(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{said}");
        (said, found())
    };
    // A reduction after each step ends a pass.
    let (said, first) = run("--set steps=24");
    assert!(said.contains("24 passes"), "{said}");
    let (said, rest) = run("--resume {1}");
    assert!(said.contains("16 passes"), "{said}");
    assert_eq!([&first["passes"], &rest["passes"]], [24, 16]);
    let written = |of: &serde_json::Value| of["written_bytes"].as_u64().unwrap();
    assert_eq!(written(&first) * 16, written(&rest) * 24);
    assert_eq!(first["steps_of_a_pass"], 1);
    let (said, none) = run("--resume {1}");
    assert_eq!(none["passes"], 0, "{said}");
}

/// The memory that is named is enough.
#[test]
fn the_least_memory_of_a_sweep_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("quiet.torre");
    std::fs::write(&source, QUIET).unwrap();
    for domain in ["600x100x60", "600x30x20", "300x300x300"] {
        let plan = |memory: &str| {
            format!("plan {{0}} --set domain={domain} --window ./files --memory {memory}")
        };
        let error = unwrapped(&fail(1, &plan("10kB"), &[&source]));
        assert!(error.contains("E0806"), "{error}");
        let least = error.split("takes ").nth(1).unwrap();
        let least = least.split(" of memory").next().unwrap().replace(' ', "");
        let text = succeed(&plan(&least), &[&source]);
        assert!(text.contains("sweeps over files"), "{text}");
    }
}

/// Time blocks are lower where results are due, and passes shorter; none is longer than the run.
#[test]
fn passes_of_windows_have_the_steps_of_their_time_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quiet.torre");
    let steps_of_a_pass = |text: &str, more: &str| {
        std::fs::write(&file, text).unwrap();
        let plan = format!(
            "plan {{0}} --backend cuda --target sm_90 --schedule torre(D=2,TH=16) --set domain=2400x600x128 --memory \
             1.2GB --window host --in-flight 3 --report json {more}"
        );
        let report: serde_json::Value = serde_json::from_str(&succeed(&plan, &[&file])).unwrap();
        report["window"]["steps_of_a_pass"].clone()
    };
    assert_eq!(steps_of_a_pass(QUIET, ""), 48);
    assert_eq!(steps_of_a_pass(QUIET, "--set steps=24"), 24);
    let volume = QUIET.replace("  steps ", "  output volume E.z every 20\n  steps ");
    assert_eq!(steps_of_a_pass(&volume, ""), 30);
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

/// The number behind some words of a message.
#[track_caller]
fn number_behind(text: &str, words: &str) -> u64 {
    let rest = text.split(words).nth(1);
    let digits = rest.and_then(|rest| rest.split(' ').next());
    let number = digits.and_then(|digits| digits.parse().ok());
    number.unwrap_or_else(|| panic!("no number behind `{words}` in {text}"))
}

/// Where sizes are left open, the message names the bytes of the slabs that need least.
#[test]
fn refused_slabs_say_the_least_memory_that_some_need() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quiet.torre");
    std::fs::write(&file, QUIET).unwrap();
    let needed = |more: &str| {
        let plan = format!(
            "plan {{0}} --backend cuda --target sm_90 --schedule torre(D=2,TH=8) --set domain=2400x600x128 --memory \
             60MB --window slabs {more}"
        );
        let error = unwrapped(&fail(1, &plan, &[&file]));
        assert!(error.contains("E0853"), "{error}");
        number_behind(&error, "buffers of two slabs take ")
    };
    let all = needed("");
    for columns in [1, 8, 64] {
        let own = needed(&format!("--columns {columns}"));
        assert!(all <= own, "{columns}: {all} {own}");
    }
}

/// A refusal names more bytes than the GPU has.
#[test]
fn refused_pyramids_need_more_than_there_is() {
    let plan = |cells: u32| {
        let plan = format!(
            "plan examples/02-wave2d.torre --backend cuda --target sm_90 --schedule pyramid(B=16,TH=4) --set \
             domain={cells}x65536"
        );
        let output = run(&plan, &[]);
        unwrapped(&String::from_utf8(output.stderr).unwrap())
    };
    let sizes = (40_000..400_000).step_by(4_000);
    let errors = sizes
        .map(plan)
        .find(|error| error.contains("for two arrays"));
    let error = errors.expect("a domain that is too large");
    let needed = number_behind(&error, "pyramids need ");
    let there = number_behind(&error, "and the GPU has ");
    assert!(needed > there, "{error}");
}
