//! Times from source text to machine code.

use crate::args::Args;
use crate::cases::Case;
use crate::program::{Backend, kernels, load};
use crate::report::Samples;
use crate::tiling::all_tiles;
use std::time::Instant;
use torre_compiler::scheme::Precision;

/// Medians in milliseconds.
#[derive(Clone, Debug)]
pub struct Times {
    /// From text to the scheme.
    pub front: f64,
    /// Cones, and from tilings to tile programs.
    pub schedule: f64,
    /// Kernels of a layerwise run, and of one in tiles as well.
    pub kernels: [usize; 2],
    /// Their machine code, per back end; `None`: it is not there.
    pub llvm: [Option<f64>; 2],
    pub cranelift: [Option<f64>; 2],
}

/// Compiles a case some times.
pub fn compile(case: &Case, precision: Precision, args: &Args) -> Result<Times, String> {
    let cells = vec![64; case.axes];
    let texts = args.tilings(case);
    let rounds = args.rounds.min(5);
    let mut front = Vec::new();
    let mut schedule = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        let resolved = load(case, precision, &cells)?;
        front.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        all_tiles(&resolved.scheme, &texts)?;
        schedule.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let scheme = load(case, precision, &cells)?.scheme;
    let tilings = all_tiles(&scheme, &texts)?;
    let sets = [kernels(&scheme, &[])?, kernels(&scheme, &tilings)?];
    let time = |backend: Backend, set| {
        let mut times = Vec::new();
        for _ in 0..rounds {
            let start = Instant::now();
            // A back end that is not there is a result, not a failure.
            backend.compile(&scheme, set).ok()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        median(times)
    };
    Ok(Times {
        front: median(front).unwrap_or(0.0),
        schedule: median(schedule).unwrap_or(0.0),
        kernels: [sets[0].kernels.len(), sets[1].kernels.len()],
        llvm: [0, 1].map(|i| time(Backend::Llvm, &sets[i])),
        cranelift: [0, 1].map(|i| time(Backend::Cranelift, &sets[i])),
    })
}

fn median(values: Vec<f64>) -> Option<f64> {
    Samples::new(values).map(|s| s.median())
}
