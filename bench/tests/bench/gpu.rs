//! The section of GPUs on one that is interpreted.

use super::args;
use torre_bench::args::{Args, parse};
use torre_bench::gpu::all_points;
use torre_bench::gpu::points::{self, Setting};
use torre_bench::gpu::runs::Prepared;
use torre_compiler::backend::llvm::library::Library;
use torre_runtime::gpu::code::gpu_of;
use torre_suite::interpreted::Interpreted;

/// A device as if its copies ran at some rate.
fn setting<'a>(args: &'a Args, device: &'a Interpreted) -> Setting<'a> {
    Setting {
        args,
        device,
        copies: 1e9,
    }
}

#[test]
fn towers_have_the_bits_of_layerwise_kernels() {
    if let Err(error) = Library::open() {
        println!("skipped: {error}");
        return;
    }
    let words =
        "--check --gpu-case media,wave3d-2 --precision f32 --sizes 15x13x20 --towers 6,2,4,2,0,2";
    let args = args(words);
    let points = all_points(&args).expect("cases");
    assert_eq!(points.len(), 2);
    for point in &points {
        let device = Interpreted::new();
        let checks = points::check(point, setting(&args, &device), None).expect("towers run");
        assert_eq!(checks.len(), 1, "{point}");
        for check in checks {
            assert!(check.holds(), "{point}: {} {}", check.name, check.result());
        }
    }
}

#[test]
fn problems_in_files_are_checked() {
    if let Err(error) = Library::open() {
        println!("skipped: {error}");
        return;
    }
    // Mirrors, so the noise has ghosts; a probe, beside which no towers would run.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cavity.torre");
    let words = format!(
        "--check --portable --gpu-file {file} --precision f32 --towers 4,2,4,2,0,2 --set dt=0.3"
    );
    let args = args(&words);
    let points = all_points(&args).expect("the file is there");
    assert_eq!(points.len(), 1);
    assert_eq!(points[0].cells, [8, 7, 10]);
    let device = Interpreted::new();
    let checks = points::check(&points[0], setting(&args, &device), None).expect("towers run");
    assert_eq!(checks.len(), 1);
    for check in checks {
        assert!(check.holds(), "{} {}", check.name, check.result());
    }
    let args = self::args("--gpu-file nowhere.torre");
    assert!(all_points(&args).is_err());
}

#[test]
fn programs_are_measured_in_turn() {
    if let Err(error) = Library::open() {
        println!("skipped: {error}");
        return;
    }
    let args = args(
        "--gpu-case maxwell42 --precision f64 --sizes 12x12x10 --towers 6,2,4,2,0,2 --towers 6,8 --quick",
    );
    let point = &all_points(&args).expect("cases")[0];
    let device = Interpreted::new();
    let rates = points::measure(point, setting(&args, &device), None).expect("programs run");
    let names: Vec<&str> = rates.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["layerwise", "towers 6,2,4,2,0,2", "towers 6,8"]);
    for rate in &rates {
        let [least, median, most] = rate.gcells;
        assert!(0.0 < least && least <= median && median <= most, "{rate:?}");
    }
    for (i, modelled) in [true, false, true].into_iter().enumerate() {
        assert_eq!(rates[i].expected.is_some_and(|e| e > 0.0), modelled, "{i}");
    }
    assert_eq!(
        rates[1].over("layerwise", &rates[..1]),
        Some(rates[1].gcells[1] / rates[0].gcells[1])
    );
}

#[test]
fn the_model_chooses_towers_that_fit() {
    if let Err(error) = Library::open() {
        println!("skipped: {error}");
        return;
    }
    let device = Interpreted::new();
    let names = |words: &str| -> Vec<String> {
        let args = args(words);
        let point = &all_points(&args).expect("cases")[0];
        let case = (&point.case, point.precision, &point.cells);
        let gpu = gpu_of(&device).expect("a known GPU");
        let prepared = Prepared::new(case.0, case.1, case.2, gpu).expect("kernels");
        let model = prepared.model(&device, 1e12).expect("a known GPU");
        let found = prepared.schedules(&args.towers, args.division, &model);
        let found = found.expect("a grid that can be addressed");
        for scheduled in &found {
            assert!(scheduled.expected.is_some_and(|e| e > 0.0));
            prepared.blocks(scheduled, &model).expect("towers");
        }
        found.into_iter().map(|s| s.name).collect()
    };
    let best = names("--gpu-case maxwell42 --precision f32 --sizes 512x512x256");
    let all = names("--gpu-case maxwell42 --precision f32 --sizes 512x512x256 --towers every");
    assert_eq!(best, all[..1]);
    assert!(all.len() > 1, "{all:?}");
    // Lines of any length are cut into z blocks.
    let long = names("--gpu-case maxwell42 --precision f32 --sizes 64x64x20000");
    assert_eq!(long.len(), 1, "{long:?}");
}

#[test]
fn grids_come_from_the_command_line_or_the_case() {
    let of = |words: &str| -> Vec<String> {
        all_points(&args(words))
            .expect("cases")
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        of("--gpu-case maxwell42 --precision f64"),
        ["maxwell42 f64 1536x1536x128", "maxwell42 f64 1024x1024x256"]
    );
    assert_eq!(
        of("--gpu-case odd --precision f32 --sizes 64,10x20"),
        ["odd f32 64x64x64"]
    );
    assert_eq!(of("--gpu-case media --check").len(), 2);
    for wrong in ["--gpu-case none", "--towers 6", "--device -1", "--limit 0"] {
        let words: Vec<String> = wrong.split_whitespace().map(str::to_string).collect();
        assert!(parse(&words, 2).is_err(), "{wrong}");
    }
}
