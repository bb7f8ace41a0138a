//! The rate of kernels in a level-2 cache: the bound of a schedule that hides all memory, per core.

use crate::args::Args;
use crate::baseline::Builder;
use crate::cases::Case;
use crate::compare::{Comparison, Failure, compare};
use crate::machine::{Cores, cache_bytes};
use crate::program::load;
use torre_compiler::layout::Layout;
use torre_compiler::scheme::Precision;

/// The largest grid of a few shapes whose array takes at most three quarters of the cache.
pub fn grid(case: &Case, precision: Precision) -> Result<Vec<i64>, String> {
    let room = cache_bytes(2).unwrap_or(1 << 20) / 4 * 3;
    let fits = |cells: &[i64]| {
        load(case, precision, cells)
            .is_ok_and(|r| Layout::new(&r.scheme).is_ok_and(|layout| layout.bytes() <= room))
    };
    // Long rows first: short ones show the ends of loops.
    for length in [512, 256, 128, 64] {
        for side in (4..=24).rev() {
            let cells = match case.axes {
                2 => vec![side, length],
                _ => vec![side, side, length],
            };
            if fits(&cells) {
                return Ok(cells);
            }
        }
    }
    Err("no grid fits into the cache".to_string())
}

/// Measures a case layerwise on that grid, on one thread.
pub fn ceiling(
    case: &Case,
    precision: Precision,
    args: &Args,
    builder: &Builder,
    cores: &Cores,
) -> Result<(Vec<i64>, Comparison), Failure> {
    let cells = grid(case, precision)?;
    let args = Args {
        threads: vec![1],
        // No levels: all steps of a time block in order, as layerwise.
        tilings: vec!["64".to_string()],
        heights: Vec::new(),
        ..args.clone()
    };
    let mut found = compare(case, precision, &cells, &args, builder, cores)?;
    match found.pop() {
        Some((_, comparison)) => Ok((cells, comparison)),
        None => Err("nothing was measured".to_string().into()),
    }
}
