//! The expected time of compilation, which `auto` weighs against the time that a schedule saves.
//!
//! Code is made for each operation of a kernel several times: for whole vectors, for parts of vectors at the ends of
//! rows, and for vectors in bands of zones. LLVM takes about the same time for each of them. Kernels of tiles are many:
//! one for each set of updates that runs together, for each set of zones.

use torre_compiler::backend::rows::RowProgram;
use torre_compiler::kernel::{KernelSet, RowKernel};
use torre_compiler::scheme::Scheme;

/// Seconds of LLVM for an operation in vectors: 65,000 lines of IR for 64 kernels of elastic waves in layers took 5.8
/// on a Zen 3, and 1.8 lines are an operation.
const OPERATION: f64 = 1.6e-4;
/// Seconds for the loops of a kernel.
const KERNEL: f64 = 6e-3;
/// Vectors in bands that have code of their own; where there are more, all share one.
const MOST_PLACES: i64 = 8;

/// The seconds that LLVM is expected to take for a set of kernels in vectors of some bytes.
pub fn expected_seconds(scheme: &Scheme, set: &KernelSet, vector_bytes: usize) -> f64 {
    let lanes = (vector_bytes / scheme.precision.bytes()).max(1) as i64;
    let programs = RowProgram::all(scheme, set).zip(&set.kernels);
    let seconds = programs.map(|(program, kernel)| {
        let whole = 2 * program.common as i64;
        let in_bands = match program.in_bands.is_empty() {
            true => 0,
            false => (1 + places(set, kernel, lanes)) * program.ops.len() as i64,
        };
        KERNEL + OPERATION * (whole + in_bands) as f64
    });
    seconds.sum()
}

/// The vectors in bands for which a kernel has code.
fn places(set: &KernelSet, kernel: &RowKernel, lanes: i64) -> i64 {
    let banded = set.bands.banded(kernel.zones);
    let bands = banded.iter().flat_map(|zone| set.bands.of(zone));
    let vectors = bands.map(|band| {
        let first = band.range.lo.div_euclid(lanes) * lanes;
        (band.range.hi - first + lanes - 1) / lanes
    });
    match vectors.sum() {
        all if all > MOST_PLACES => 1,
        all => all,
    }
}
