//! What a layerwise run on a device is expected to do.

use super::device::Facts;
use crate::program::layerwise_bytes_per_cell_step;
use torre_compiler::schedule::{Choice, Prediction, Schedule};
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::stage_blocks;

/// Share of the rate of plain copies that kernels reach which read many arrays: by hand-made kernels for FDTD(4,2) on an H200.
const SHARE: f64 = 0.78;

/// Seconds between the starts of two kernels that have little to do.
const START: f64 = 3e-6;

/// The layerwise schedule, with the rate that follows from its bytes: each stage reads and writes whole arrays, and nothing stays on
/// the chip from one stage to the next. `copy_rate`: bytes read and written per second.
pub fn layerwise(scheme: &Scheme, copy_rate: f64) -> Choice {
    let bytes = layerwise_bytes_per_cell_step(scheme);
    let cells: f64 = scheme.grid.cells.0.iter().map(|&n| n as f64).product();
    let starts: usize = scheme
        .stage_ids()
        .map(|stage| stage_blocks(scheme, stage).len())
        .sum();
    let step = cells * bytes / (SHARE * copy_rate) + starts as f64 * START;
    Choice {
        name: "layerwise".to_owned(),
        schedule: Schedule::Layerwise,
        prediction: Prediction {
            rate: cells / step,
            compute: 0.0,
            cache_bytes: bytes,
            memory_bytes: bytes,
            footprint: 0.0,
        },
    }
}

/// A device in a line.
pub fn line(facts: &Facts) -> String {
    format!(
        "{}, {} multiprocessors, compute capability {}.{}, CUDA {}.{}",
        facts.name,
        facts.multiprocessors,
        facts.capability / 10,
        facts.capability % 10,
        facts.cuda / 1000,
        facts.cuda % 1000 / 10,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::scheme::Precision;
    use torre_compiler::testing::maxwell;

    /// Large grids run at the rate of memory, small ones at that of starts.
    #[test]
    fn the_rate_follows_from_bytes_and_starts() {
        let rate = |cells| {
            let scheme = maxwell(4, Precision::F32, cells);
            let starts = scheme
                .stage_ids()
                .map(|stage| stage_blocks(&scheme, stage).len())
                .sum::<usize>() as f64;
            (layerwise(&scheme, 4.1e12).prediction.rate, starts)
        };
        let (large, _) = rate([1536, 1536, 256]);
        assert!((4.3e10..4.6e10).contains(&large), "{large:e}");
        let (small, starts) = rate([16, 16, 16]);
        assert!(starts >= 2.0);
        let expected = 4096.0 / (starts * START);
        assert!((small - expected).abs() < 0.02 * expected, "{small:e}");
    }
}
