//! Every baseline computes the scheme of its case, and every default tiling gives the bits of the layerwise run.

use super::args;
use std::process::Command;
use torre_bench::args::parse;
use torre_bench::baseline::Builder;
use torre_bench::machine::Cores;
use torre_bench::verify::verify;

#[test]
fn baselines_compute_the_schemes_of_their_cases() {
    let args = args("--backend interp --quick");
    if Command::new(&args.compiler)
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: there is no C compiler `{}`", args.compiler);
        return;
    }
    let builder = Builder::new(&args.compiler, &args.flags).expect("a folder for programs");
    let cores = Cores::find();
    for case in &args.cases {
        for precision in args.precisions(case) {
            let found = verify(case, precision, &args, &builder, &cores);
            let found = found.unwrap_or_else(|e| panic!("{} {precision}: {e}", case.name));
            assert!(found.holds(), "{} {precision}: {found:?}", case.name);
        }
    }
}

#[test]
fn options_are_read_and_wrong_ones_refused() {
    let args = args("--case maxwell22,te2d-2 --sizes 64,32x48x80 --heights 4,8 --threads=1");
    let grids = |i: usize| args.grids(args.cases[i]);
    assert_eq!(grids(0), [vec![64, 64, 64], vec![32, 48, 80]]);
    // A size of three axes is none for two.
    assert_eq!(grids(1), [vec![64, 64]]);
    assert_eq!(
        args.tilings(args.cases[0]),
        [
            "4; x+y:24, x-y:24; x+y:6, x-y:6",
            "8; x+y:24, x-y:24; x+y:6, x-y:6"
        ]
    );
    for wrong in [
        "--case none",
        "--sizes 0",
        "--threads",
        "--seconds -1",
        "--speed 3",
        "fast",
    ] {
        let words: Vec<String> = wrong.split_whitespace().map(str::to_string).collect();
        assert!(parse(&words, 2).is_err(), "{wrong}");
    }
}
