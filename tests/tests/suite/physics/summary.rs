//! The summary of a step before each run: it takes little time, and is right for media, losses and sides of all kinds.

use std::path::Path;
use torre_compiler::analysis::{NoStep, Summary, summary};
use torre_compiler::driver::load;
use torre_compiler::resolve::Options;
use torre_compiler::scheme::Precision;
use torre_grammar::source::Source;
use torre_runtime::files::LoadedFiles;
use torre_runtime::world::FileWorld;

/// The summary of the only problem of a text.
fn short(text: &str) -> Result<Summary, NoStep> {
    let world = FileWorld::beside(Path::new(""));
    let options = Options {
        precision: Precision::F64,
        ..Options::default()
    };
    let resolved = load(&world, &Source::new("test", text), &options)
        .unwrap_or_else(|d| panic!("{}", d.0.first().map_or("", |d| &d.message)));
    let files = LoadedFiles::load(&world, &resolved.scheme).unwrap_or_else(|e| panic!("{e}"));
    summary(&resolved.scheme, resolved.without_phases.as_ref(), &files)
}

/// Fields in a row, each of which is advanced by the one `by` places further.
fn fields(number: usize, by: usize) -> String {
    let declared: Vec<String> = (0..number)
        .map(|i| format!("field u{i} : scalar on nodes"))
        .collect();
    let step: Vec<String> = (0..number)
        .map(|i| format!("u{i} += dt * d2(u{}, x)", (i + by) % number))
        .collect();
    let params = format!("param h = 1\n  param dt = 0.1\n  {}", declared.join("\n  "));
    format!(
        "scheme s {{\n  axes x\n  {params}\n  step {{\n    {}\n  }}\n}}\n\
         problem p {{\n  scheme s\n  domain 16\n  boundary x: periodic\n  steps 1\n}}\n",
        step.join("\n    ")
    )
}

#[test]
fn runs_do_not_wait_for_the_analysis_of_large_matrices() {
    match short(&fields(120, 1)) {
        Err(NoStep::TooSlow { values: 120 }) => {}
        other => panic!("{other:?}"),
    }
    // Values that do not depend on each other are soon looked at.
    let apart = short(&fields(120, 0)).expect("small matrices");
    assert!(apart.stability.is_stable());
    let few = short(&fields(12, 1)).expect("a small matrix");
    assert!(!few.stability.is_stable());
}

/// A stiff cell and a light face beside it, on either side.
#[test]
fn a_cell_is_looked_at_with_both_of_its_faces() {
    let with_stiff = |from: f64| {
        let text = format!(
            "use std::acoustics::acoustics_1d
             problem p {{
               scheme acoustics_1d {{ h = 1, dt = 0.05 }}
               domain 30
               boundary x: periodic
               coef rho = if x > 9 and x < 11 then 0.01 else 1
               coef kappa = if x > {from} and x < {} then 100 else 1
               steps 1
             }}",
            from + 1.0
        );
        short(&text).expect("a linear scheme").stability
    };
    let [left, right] = [9.0, 10.0].map(with_stiff);
    assert!(!left.is_stable() && !right.is_stable());
    assert!((left.worst.rate - right.worst.rate).abs() < 1e-9);
}

/// Losses, phases at the sides, and steps that are much too long change nothing about how fast fronts are.
#[test]
fn courant_numbers_are_those_of_fronts() {
    let lossy = |loss: f64| {
        format!(
            "use std::maxwell::maxwell_1d
             problem p {{
               scheme maxwell_1d {{ h = 1, dt = 0.7 }}
               domain 50
               boundary x: periodic
               coef sigma = {loss}
               steps 1
             }}"
        )
    };
    let shifted = |phase: f64| {
        format!(
            "use std::maxwell::maxwell_tm
             problem p {{
               scheme maxwell_tm {{ h = 0.5, dt = 0.25 }}
               domain 20 x 9
               boundary x: periodic, y: bloch({phase})
               steps 1
             }}"
        )
    };
    let long = |dt: f64| {
        format!(
            "use std::acoustics::acoustics_1d
             problem p {{
               scheme acoustics_1d {{ h = 1, dt = {dt} }}
               domain 60
               boundary x: periodic
               coef kappa = if x < 40 then 1 else 0.01
               steps 1
             }}"
        )
    };
    let cases = [0.01, 0.02, 0.1, 0.2].map(|loss| (lossy(loss), 0.7));
    let cases = cases
        .into_iter()
        .chain([0.001, 0.03, 0.7, 2.0].map(|k| (shifted(k), 0.5)));
    let cases = cases.chain([0.5, 3.0, 5.0, 8.0].map(|dt| (long(dt), dt)));
    for (text, expected) in cases {
        let pace = short(&text).expect("a linear scheme").pace.expect("waves");
        let error = (pace.number / expected - 1.0).abs();
        assert!(
            pace.moves && error < 2e-3,
            "{pace:?}, expected {expected}: {text}"
        );
    }
}
