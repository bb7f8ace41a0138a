//! Whether the baseline and Torre compute the same.

use crate::args::Args;
use crate::baseline::{Baseline, Builder};
use crate::cases::Case;
use crate::machine::Cores;
use crate::program::{Kernels, Running, load};
use crate::tiling::{Tiles, all_tiles};
use torre_compiler::real::Real;
use torre_compiler::scheme::Precision;

/// More than a tiling's height, and not a multiple of it.
const STEPS: u64 = 21;

/// How close the results came.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The largest difference of C and Torre, relative to the largest value of the field.
    pub error: f64,
    /// The difference that rounding may explain.
    pub tolerance: f64,
    /// Whether every tiling gave the bits of the layerwise run.
    pub bitwise: bool,
}

impl Agreement {
    pub fn holds(&self) -> bool {
        self.error <= self.tolerance && self.bitwise
    }
}

/// The cells of a grid for the baseline, which knows three axes.
pub fn three(cells: &[i64]) -> [i64; 3] {
    match *cells {
        [x, y, z] => [x, y, z],
        [x, z] => [x, 1, z],
        _ => [1, 1, cells.iter().product()],
    }
}

/// Runs a case on a small grid by C, layerwise and in tiles, and compares all values.
pub fn verify(
    case: &Case,
    precision: Precision,
    args: &Args,
    builder: &Builder,
    cores: &Cores,
) -> Result<Agreement, String> {
    match precision {
        Precision::F32 => verify_in::<f32>(case, args, builder, cores),
        Precision::F64 => verify_in::<f64>(case, args, builder, cores),
    }
}

fn verify_in<T: Real>(
    case: &Case,
    args: &Args,
    builder: &Builder,
    cores: &Cores,
) -> Result<Agreement, String> {
    let precision = T::PRECISION;
    let cells: &[i64] = match case.axes {
        2 => &[41, 53],
        _ => &[21, 26, 37],
    };
    let threads = cores.count().min(2);
    let resolved = load(case, precision, cells)?;
    let texts = args.tilings(case);
    let tilings = all_tiles(&resolved.scheme, &texts)?;
    let kernels = Kernels::new(args.backend, &resolved.scheme, &tilings)?;
    let program = builder.build(case, precision, resolved.scheme.grid.dt)?;
    let mut baseline = Baseline::start(&program, precision, three(cells), threads)?;
    baseline.run(STEPS)?;
    let theirs = baseline.dump(case.fields.len())?;
    let results = |tiles: Option<&Tiles>| {
        let mut run = Running::<T>::new(case, &resolved, &kernels, threads)?;
        run.run(tiles, threads, STEPS, cores);
        let fields = 0..case.fields.len();
        Ok::<_, String>(fields.map(|f| run.field(f)).collect::<Vec<_>>())
    };
    let ours = results(None)?;
    let mut error = 0.0f64;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if ours.len() != theirs.len() {
            return Err("fields of C and Torre differ in size".to_string());
        }
        let scale = ours.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for (a, b) in ours.iter().zip(theirs) {
            let own = (a - b).abs() / scale;
            // NaN is the worst of errors.
            error = if own.is_nan() {
                f64::INFINITY
            } else {
                error.max(own)
            };
        }
    }
    let bits = |fields: &[Vec<f64>]| -> Vec<u64> {
        let values = fields.iter().flatten();
        values.map(|v| v.to_bits()).collect()
    };
    let layerwise = bits(&ours);
    let mut bitwise = true;
    for tiles in &tilings {
        bitwise &= bits(&results(Some(tiles))?) == layerwise;
    }
    let epsilon = match precision {
        Precision::F32 => f64::from(f32::EPSILON),
        Precision::F64 => f64::EPSILON,
    };
    Ok(Agreement {
        error,
        // Each step adds a few roundings.
        tolerance: 8.0 * STEPS as f64 * epsilon,
        bitwise,
    })
}
