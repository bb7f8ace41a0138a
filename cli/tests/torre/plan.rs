//! `torre plan`, `torre machine` and the later stages of `torre emit`: texts about schedules without a run.

use crate::support::*;
use serde_json::Value;
use std::path::Path;

const MAXWELL: &str = "examples/08-maxwell42.torre";

fn command(words: &[&str]) -> (Option<i32>, String, String) {
    let output = torre().args(words).output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Time blocks are planned step by step, so that their heights are bounded, and whole, in all shapes.
#[test]
fn heights_beyond_a_bound_and_parts_of_steps_are_refused() {
    let (wave, high) = ("examples/02-wave2d.torre", "at most 16384 steps high");
    let whole = "a height is a whole number of steps, at least 1";
    let open = "leaves more than 16384 combinations of sizes open";
    for (example, schedule, message) in [
        (wave, "pyramid(B = 16, TH = 1e6)", high),
        (wave, "pyramid(B = 16, TH = 16385)", high),
        (wave, "pyramid(TH = 4..900000)", high),
        (wave, "(x, y): pyramid(base = 32) height 1000000", high),
        (wave, "diamond(P = 32, TH = 16385)", high),
        (wave, "skewed(P = 32, TH = 1e12)", high),
        (wave, "x: diamond(P = 32) height 8..20000", high),
        (MAXWELL, "torre(D = 2, TH = 16385)", high),
        (MAXWELL, "torre(D = 2, TH = 16.5)", whole),
        (MAXWELL, "torre(D = 2, TH = 0)", whole),
        (wave, "pyramid(B = 16, TH = 5/2)", whole),
        (wave, "x: diamond(P = 32) height 1/2", whole),
        (MAXWELL, "torre(D=1..99, G=1..99, TH=1..99, Z=1..99)", open),
    ] {
        let (status, _, errors) = command(&["plan", example, "--schedule", schedule]);
        assert_eq!(status, Some(1), "{schedule}: {errors}");
        assert!(errors.contains("E0851"), "{schedule}: {errors}");
        assert!(errors.contains(message), "{schedule}: {errors}");
    }
    let (status, _, errors) = command(&["plan", wave, "--schedule", "diamond(P = 32, TH = 16384)"]);
    assert_eq!(status, Some(0), "{errors}");
}

/// Sizes of pyramids that are left open are chosen for the GPU, not from the list for processors.
#[test]
fn open_sizes_of_pyramids_suit_a_gpu() {
    let plan = |example: &str, schedule: &str| {
        let gpu = [
            "--backend",
            "cuda",
            "--target",
            "sm_90",
            "--rates",
            "modelled",
        ];
        let words = [&["plan", example, "--schedule", schedule], &gpu[..]].concat();
        let (status, text, errors) = command(&words);
        assert_eq!(status, Some(0), "{errors}");
        text.lines().next().unwrap_or_default().to_owned()
    };
    let line = "examples/04-maxwell1d.torre";
    for (schedule, start, end) in [
        ("pyramid", "pyramid(B = ", ")"),
        ("pyramid(TH = 4)", "pyramid(B = ", ", TH = 4)"),
        ("pyramid(B = 100..200, TH = 2..4)", "pyramid(B = ", ")"),
        ("x: pyramid(base = 100)", "pyramid(B = 100, TH = ", ")"),
    ] {
        let found = plan(line, schedule);
        let size = found.trim_start_matches(start).split([',', ')']).next();
        let base: i64 = size.and_then(|n| n.parse().ok()).unwrap_or_default();
        assert!(
            found.starts_with(start) && found.ends_with(end) && base < 1024,
            "{found}"
        );
    }
    let plane = plan("examples/05-maxwell-te2d.torre", "pyramid(B = 24)");
    assert!(
        plane.starts_with("pyramid(B = 24, TH = ") && !plane.contains("Z = 0"),
        "{plane}"
    );
}

/// Where no pyramid suits, the message speaks of the sizes that were given, not of sizes for processors, and of axes as
/// the scheme calls them.
#[test]
fn refusals_of_open_pyramids_name_what_was_given() {
    let refused = |schedule: &str, named: &str, reason: &str| {
        let gpu = ["--backend", "cuda", "--target", "sm_90"];
        let words = [&["plan", MAXWELL, "--schedule", schedule], &gpu[..]].concat();
        let (status, _, errors) = command(&words);
        assert_eq!(status, Some(1), "{errors}");
        let named = format!("cannot run `{named}`: ");
        assert!(
            errors.contains(&named) && errors.contains(reason),
            "{errors}"
        );
        assert!(!errors.contains("outer"), "{errors}");
    };
    refused(
        "pyramid",
        "pyramid",
        "registers for the values of a pyramid",
    );
    refused(
        "pyramid(TH = 100)",
        "pyramid(TH = 100)",
        "cells wide along x",
    );
    refused("pyramid(B = 100)", "pyramid(B = 100)", "cells wide along x");
    refused(
        "pyramid(B = 100, TH = 1, Z = 100)",
        "pyramid(B = 100, TH = 1, Z = 100)",
        "cells wide along x",
    );
}

/// A refusal of pyramids has the room that they need and may have, and names pyramids that the GPU runs.
#[test]
fn refusals_of_pyramids_have_true_numbers_and_name_pyramids_that_fit() {
    let elastic = "plan examples/11-elastic2d.torre --set domain=4096x4096 --precision f64";
    let wave = "plan examples/02-wave2d.torre --set domain=4096x4096";
    let gpu = "--backend cuda --target sm_90 --schedule";
    let mut needs = Vec::new();
    for (plan, base, room) in [
        (elastic, 32, "registers"),
        (elastic, 60, "registers"),
        (elastic, 90, "registers"),
        (wave, 150, "registers"),
        (wave, 200, "registers"),
    ] {
        let schedule = format!("pyramid(B={base},TH=4,Z={base})");
        let errors = unwrapped(&fail(1, &format!("{plan} {gpu} {schedule}"), &[]));
        let reason = errors.split("`: ").nth(1).unwrap_or_default();
        let reason = reason.lines().next().unwrap_or_default();
        let words = reason.split(|c: char| !c.is_ascii_digit());
        let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        assert!(reason.contains(room), "{errors}");
        assert!(numbers.len() == 2 && numbers[0] > numbers[1], "{errors}");
        needs.push(numbers[0]);
        let fits = errors.split("as in `").nth(1);
        let fits = fits.and_then(|text| text.split('`').next());
        let fits = fits.unwrap_or_else(|| panic!("{errors}")).replace(' ', "");
        let planned = succeed(&format!("{plan} {gpu} {fits}"), &[]);
        let first = planned.lines().next().map(|line| line.replace(' ', ""));
        assert_eq!(first, Some(fits));
    }
    // Larger bases need more.
    assert!(needs[1] < needs[2] && needs[3] < needs[4], "{needs:?}");
}

/// Where the model chooses the schedule and no window fits, the message names the window that takes least, also where
/// pyramids would be fastest.
#[test]
fn refusals_of_windows_name_the_window_that_takes_least() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bare.torre");
    let text = "use std::maxwell::maxwell\n\
        problem bare {\n  scheme maxwell\n  domain 32 x 32 x 32\n  steps 960\n}\n";
    std::fs::write(&file, text).unwrap();
    let gpu = "plan {0} --backend cuda --target sm_90";
    let fastest = succeed(gpu, &[&file]);
    assert!(fastest.contains("pyramid"), "{fastest}");
    for domain in ["32x32x32", "64x64x64", "256x128x64"] {
        let plan = format!("{gpu} --set domain={domain} --window host");
        let errors = unwrapped(&fail(1, &format!("{plan} --memory 10kB"), &[&file]));
        let least = errors.split("least calculation window takes ").nth(1);
        let least = least.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let least = least.unwrap_or_else(|| panic!("{errors}")).div_ceil(1000);
        let window = succeed(&format!("{plan} --memory {least}kB"), &[&file]);
        assert!(window.contains("  window "), "{window}");
        fail(1, &format!("{plan} --memory {}kB", least - 1), &[&file]);
    }
}

#[test]
fn plans_are_written_for_people_and_for_programs() {
    // Both plan for the same machine, which another test may measure again meanwhile.
    let folder = tempfile::tempdir().unwrap();
    plant_machine(folder.path(), &machine_file());
    let plan = |more: &[&str]| {
        let output = torre()
            .args(["plan", MAXWELL, "--threads", "2"])
            .args(more)
            .env("XDG_CACHE_HOME", folder.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let text = plan(&[]);
    let report: Value = serde_json::from_str(&plan(&["--report", "json"])).unwrap();
    let name = report["schedule"].as_str().unwrap();
    assert!(text.starts_with(name), "{text}");
    assert!(text.contains(report["tiling"].as_str().unwrap()), "{text}");
    for line in [
        "  rate ",
        "  memory ",
        "  fields ",
        "  machine ",
        "  kernels ",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(text.contains("256 x 256 x 256 cells"), "{text}");
    assert_eq!(report["threads"], 2);
    assert_eq!(report["domain"], serde_json::json!([256, 256, 256]));
    assert!(report["predicted_gcells_per_s"].as_f64().unwrap() > 0.0);
    assert!(report["bytes_per_cell_step"]["memory"].as_f64().unwrap() > 0.0);
    assert!(report["field_memory_bytes"].as_u64().unwrap() > 24 << 24);
    assert!(report["machine"]["memory_gb_per_s"].as_f64().unwrap() > 0.0);
    let others = report["alternatives"].as_array().unwrap();
    // On a busy machine the model may like the plain order best.
    let is_plain = |value: &serde_json::Value| value["schedule"] == "layerwise";
    assert!(is_plain(&report) || others.iter().any(is_plain));
    assert!(others.iter().all(|other| other["schedule"] != name));
}

#[test]
fn a_plan_of_a_schedule_without_open_sizes_has_no_alternatives() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    let (status, text, _) = command(&[
        "plan",
        MAXWELL,
        "--schedule",
        "torre(D = 2, TH = 8)",
        "--report",
        file.to_str().unwrap(),
    ]);
    assert_eq!(status, Some(0));
    assert!(
        text.starts_with("torre(W = 6, G = 1, TH = 8, Z = 0)\n"),
        "{text}"
    );
    assert!(!text.contains("considered"), "{text}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(report["alternatives"].as_array().unwrap().len(), 0);
    let (status, _, error) = command(&[
        "plan",
        MAXWELL,
        "--schedule",
        "(x, y): diamond(W = 6) slope 1 height 8",
    ]);
    assert_eq!(status, Some(1));
    assert!(error.contains("E0852"), "{error}");
}

/// A schedule that is written out is named by its text, with the sizes that were chosen.
#[test]
fn schedules_that_are_written_out_are_named_by_their_text() {
    let wave = "examples/02-wave2d.torre";
    let own = "x: diamond(P=8)  height 4; y: skewed(W = 2*32)";
    let plan = |schedule: &str, gpu: &[&str]| {
        let words = [&["plan", wave, "--schedule", schedule], gpu].concat();
        let (_, text, errors) = command(&words);
        format!("{text}{errors}")
    };
    assert!(plan(own, &[]).starts_with(&format!("{own}\n")));
    let gpu = ["--backend", "cuda", "--target", "sm_90"];
    let refused = plan(own, &gpu);
    assert!(
        refused.contains(&format!("cannot run `{own}`")),
        "{refused}"
    );
    let refused = plan("(x, y): pyramid(base = 150)", &gpu);
    assert!(
        refused.contains("cannot run `(x, y): pyramid(base = 150)`"),
        "{refused}"
    );
    let open = plan("x: diamond(P = 7..8)\ny: skewed(64)", &[]);
    for (size, height) in [(7, 4), (8, 4), (8, 32)] {
        let member = format!("x: diamond(P = {size}) height {height}; y: skewed(64)\n");
        assert!(open.contains(&member), "{member} in {open}");
    }
    let run = [
        "run",
        wave,
        "--schedule",
        own,
        "--set",
        "steps=4",
        "--report",
        "json",
    ];
    let (_, text, _) = command(&run);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["schedule"], own);
}

/// With a source, records, and an end of each kind.
const SMALL: &str = "
use std::maxwell::maxwell42
use std::sources::ricker
problem small {
  scheme   maxwell42 { h = 1 }
  domain   26 x 22 x 40
  boundary x: pec, y: periodic, z: pec | pmc
  init     E.z = exp(-((x - 12)^2 + (y - 3)^2 + (z - 20)^2) / 9)
  source   E.z at (5, 21, 9) += ricker(t, f0 = 0.1)
  probe    E.y at (6, 1, 10)
  output   slice E.x z = 12 every 3
  steps    8
}
";

#[test]
fn pyramids_and_boxes_are_planned_drawn_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("picture.svg");
    let program = folder.path().join("small.torre");
    std::fs::write(&program, SMALL).unwrap();
    let program = program.to_str().unwrap();
    for (schedule, shown) in [
        (
            "(x, y): pyramid(base = 10) height 3",
            "height 3; pyramids of base 10 x 10 x *",
        ),
        (
            "pyramid(B = 9, TH = 2, Z = 20)",
            "height 2; pyramids of base 9 x 9 x 20",
        ),
        (
            "y: pyramid(base = 5); x: pyramid(base = 8) height 4",
            "height 4; pyramids of base 8 x 5 x *",
        ),
        ("box(B = 7, Z = 16)", "stage by stage; boxes of 7 x 7 x 16"),
        (
            "x: box(8); (x, z): box(3)",
            "stage by stage; boxes of 8 x * x *; boxes of 3 x * x 3",
        ),
        (
            "(x, y): diamond(W = 6) height 3; z: box(16)",
            "height 3; x+y slope 3/2 pitch 6, x-y slope 3/2 pitch 6; t slope 1 pitch 1; z slope 3/2 pitch 16",
        ),
    ] {
        let (status, text, error) = command(&["plan", program, "--schedule", schedule]);
        assert_eq!(status, Some(0), "{schedule}: {error}");
        assert!(text.contains(shown), "{schedule}: {text}");
        let (status, _, error) = command(&["run", program, "--verify", "--schedule", schedule]);
        assert_eq!(status, Some(0), "{schedule}: {error}");
        let drawn = ["-o", file.to_str().unwrap()];
        let (status, _, error) =
            command(&["cone", program, "--schedule", schedule, drawn[0], drawn[1]]);
        assert_eq!(status, Some(0), "{schedule}: {error}");
        let picture = std::fs::read_to_string(&file).unwrap();
        assert!(picture.contains("tile of"), "{schedule}");
    }
    for (schedule, wrong) in [
        (
            "x: pyramid(base = 8) height 2; x: pyramid(base = 4)",
            "a pyramid holds no other level",
        ),
        (
            "x: pyramid(base = 8) height 2; z: skewed(P = 4)",
            "do not combine",
        ),
        (
            "x: pyramid(base = 5/2) height 2",
            "`base` is a whole number",
        ),
        ("x: pyramid(base = 0) height 2", "`base` must be positive"),
        ("x: pyramid(W = 8) height 2", "`pyramid` has no size `W`"),
        (
            "x: pyramid(base = 8) slope 2 height 2",
            "`slope` says nothing",
        ),
        ("x: box(8) height 2", "a box is one stage high"),
        ("x: box(8); x: skewed(P = 4) height 2", "holds no tiles"),
        ("x: box", "`box` needs one size"),
        ("pyramid(B = 8, D = 2)", "`pyramid` has no size `D`"),
        ("torre(D = 2, D = 3)", "`D` is given twice"),
        ("pyramid(B = 8, TH = 2, TH = 4)", "`TH` is given twice"),
        ("(x, x): pyramid(base = 8) height 2", "`x` is given twice"),
        (
            "x: skewed(P = 4) lean +x lean -x height 2",
            "`lean` is given twice",
        ),
        (
            "x: skewed(P = 4) slope 2 slope 3 height 2",
            "`slope` is given twice",
        ),
    ] {
        let (status, _, error) = command(&["plan", MAXWELL, "--schedule", schedule]);
        assert_eq!(status, Some(1), "{schedule}");
        assert!(
            error.contains("E0851") && error.contains(wrong),
            "{schedule}: {error}"
        );
    }
}

/// Tiles along one axis between faces of two directions are as many as the square of its length over theirs.
#[test]
fn diamonds_that_are_far_too_small_are_refused() {
    let plan = "plan examples/04-maxwell1d.torre --set domain=100000 --schedule";
    let error = fail(1, &format!("{plan} diamond(P=1,TH=4)"), &[]);
    assert!(error.contains("E0852"), "{error}");
    succeed(&format!("{plan} diamond(P=1024,TH=4)"), &[]);
}

/// A tile may be wider than any grid.
#[test]
fn tiles_may_be_wider_than_the_grid() {
    let run = "run examples/02-wave2d.torre --set domain=160x160 --set steps=8 --threads 1 --verify --schedule {0}";
    let schedule = "x: skewed(P = 1000000) slope 3000 height 4";
    let text = succeed(run, &[Path::new(schedule)]);
    assert!(text.contains("verified"), "{text}");
}

/// Slopes may be steep and tiles small, but not both: nearly all tiles would be empty.
#[test]
fn schedules_with_too_many_tiles_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flat.torre");
    let text =
        "use std::maxwell::maxwell\nproblem p { scheme maxwell; domain 20 x 20; steps 40 }\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let endless =
        "x: skewed(P = 999999) slope 1000000 height 16384; x: skewed(P = 1/64) slope 1000000";
    for (schedule, code, wrong) in [
        (endless, "E0852", "far more tiles than updates"),
        // The scheme has this axis, and the domain has not.
        (
            "x: skewed(P = 4) height 2; z: span",
            "E0851",
            "the domain has no axis `z`",
        ),
    ] {
        let (status, _, error) = command(&["plan", file, "--schedule", schedule]);
        assert_eq!(status, Some(1), "{schedule}");
        assert!(error.contains(code) && error.contains(wrong), "{error}");
    }
    let steep = "x: skewed(P = 999999) slope 1000000 height 16";
    let (status, _, error) = command(&["plan", file, "--schedule", steep]);
    assert_eq!(status, Some(0), "{error}");
}

#[test]
fn stages_that_depend_on_a_schedule_show_it() {
    let emit = |stage: &str, schedule: &str| {
        let (status, text, error) =
            command(&["emit", MAXWELL, "--stage", stage, "--schedule", schedule]);
        assert_eq!(status, Some(0), "{stage}: {error}");
        text
    };
    let torre = "torre(D = 2, G = 2, TH = 8)";
    assert_eq!(
        emit("schedule", torre),
        "height 8; x+y slope 3/2 pitch 12, x-y slope 3/2 pitch 12; x+y slope 3/2 pitch 6, x-y slope 3/2 pitch 6\n"
    );
    assert_eq!(emit("schedule", "layerwise"), "layerwise\n");
    let open = emit("schedule", "torre(D = 2)");
    assert!(open.starts_with("height "), "{open}");
    let tiles = emit("tiles", torre);
    for line in [
        "  level 0: plane 0 pitch 24, plane 1 pitch 24\n",
        "  level 1: plane 0 pitch 12, plane 1 pitch 12\n",
        "  stage s1\n    class 0: updates 0 in ",
    ] {
        assert!(tiles.contains(line), "{tiles}");
    }
    assert_eq!(emit("tiles", "layerwise"), "layerwise\n");
    let plan = emit("plan", torre);
    assert!(plan.starts_with("height 8; "), "{plan}");
    assert!(
        plan.contains("\nmemory: ") && plan.contains(" r2 E.z\n"),
        "{plan}"
    );
    assert!(plan.contains("\nkernels\n  s0_p0_u1: H.x\n"), "{plan}");
    // Tiles run other sets of updates together than whole stages do.
    let sets = |schedule: &str| emit("plan", schedule).matches("\n  s").count();
    assert!(sets(torre) > sets("layerwise"));
    assert_ne!(emit("clif", torre), emit("clif", "layerwise"));
    if has_llvm() {
        let kernels = |text: String| text.matches("define ").count();
        assert_eq!(kernels(emit("llvm", torre)), sets(torre));
        assert!(emit("asm", torre).contains("torre_s0_p0_u5:"));
    }
}

#[test]
fn the_machine_is_measured_once_and_again_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let machine = |more: &[&str]| {
        let output = torre()
            .arg("machine")
            .args(more)
            .env("XDG_CACHE_HOME", folder.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let first = machine(&[]);
    assert!(first.contains("GB/s from L2"), "{first}");
    let measured = || {
        let report: Value = serde_json::from_str(&machine(&["--report", "json"])).unwrap();
        report["measured"].clone()
    };
    let kept = measured();
    assert!(kept["l3_gb_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(kept, measured());
    let stored = folder.path().join("torre/machine.txt");
    let text = std::fs::read_to_string(&stored).unwrap();
    std::fs::remove_file(&stored).unwrap();
    machine(&["--measure"]);
    let again = std::fs::read_to_string(&stored).unwrap();
    assert_eq!(again.lines().next(), text.lines().next());
}

#[test]
fn two_first_starts_at_once_measure_once() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        torre()
            .args(["machine", "--report", "json"])
            .env("XDG_CACHE_HOME", folder.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    // Side by side, each would find half of the memory's bandwidth, and never the same numbers.
    let measured = [start(), start(), start()].map(|child| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["measured"].clone()
    });
    assert!(measured[0]["l3_gb_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(measured[0], measured[1]);
    assert_eq!(measured[0], measured[2]);
}

#[test]
fn a_folder_of_others_is_not_relied_on_and_the_command_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let facts = |home: Option<&std::path::Path>| {
        let mut command = torre();
        command.arg("machine").env_remove("XDG_CACHE_HOME");
        match home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let text = facts(Some(folder.path()));
    let made = folder.path().join(".cache/torre");
    assert!(text.contains(made.to_str().unwrap()), "{text}");
    for place in [&made, &made.join("objects"), &folder.path().join(".cache")] {
        let mode = std::fs::metadata(place).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", place.display());
    }
    // A measurement that any user may have planted.
    let planted = std::fs::read_to_string(made.join("machine.txt")).unwrap();
    let planted: String = planted
        .lines()
        .map(|line| match line.split_once(' ') {
            Some(("memory_rate", _)) => "memory_rate 1.23456e15\n".to_owned(),
            _ => format!("{line}\n"),
        })
        .collect();
    std::fs::write(made.join("machine.txt"), planted).unwrap();
    assert!(facts(Some(folder.path())).contains("1234560 from memory"));
    std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o777)).unwrap();
    let text = facts(Some(folder.path()));
    assert!(!text.contains("1234560 from memory"), "{text}");
    assert!(text.contains("none: `"), "{text}");
    assert!(text.contains("may be written by everybody"), "{text}");
    assert!(facts(None).contains("none: neither `XDG_CACHE_HOME` nor `HOME`"));
}

/// Threads wait for each other after each stage: a grid of few cells has one, and a grid of many all of them.
#[test]
fn threads_are_as_many_as_are_worthwhile() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("plain.torre");
    let text =
        "use std::wave::wave_2d\nproblem plain { scheme wave_2d; domain 20 x 20; steps 9 }\n";
    std::fs::write(&program, text).unwrap();
    let program = program.to_str().unwrap();
    let threads = |more: &[&str]| {
        let plan = ["plan", program, "--report", "json"];
        let (status, report, error) = command(&[&plan[..], more].concat());
        assert_eq!(status, Some(0), "{error}");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        report["threads"].as_u64().unwrap()
    };
    let all = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    assert_eq!(threads(&[]), 1);
    assert_eq!(threads(&["--threads", "3"]), 3);
    assert_eq!(threads(&["--set", "domain=8000x8000"]), all.min(1000));
}
