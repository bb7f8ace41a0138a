//! The model for pyramids and boxes.
//!
//! A pyramid does more work than its base has cells, and moves its input once and its base back: the higher it is, the
//! fewer bytes and the more work. A box moves as many bytes as a sweep; only its rows may be shorter.

use super::{
    Machine, OWN, Prediction, SHARED, USABLE, compute_time, layerwise_elements, lost,
    predict_layerwise, together, with_computing,
};
use crate::kernel::run_axis;
use crate::lattice::{Axis, Interval, PerAxis};
use crate::layout::Layout;
use crate::schedule::{Boxes, Pyramid};
use crate::scheme::Scheme;
use crate::tile::PyramidProgram;

/// Predicts pyramids by the tile in the middle of the grid.
pub(super) fn predict_pyramids(
    scheme: &Scheme,
    layout: &Layout,
    pyramid: &Pyramid,
    machine: &Machine,
) -> Option<Prediction> {
    let program = PyramidProgram::new(scheme, pyramid).ok()?;
    let tile = PerAxis::from_fn(|a| program.axis_tile(scheme, a, (program.tiles[a] - 1) / 2));
    let volume = |interval: &dyn Fn(Axis) -> Interval| -> f64 {
        Axis::ALL
            .iter()
            .map(|&a| interval(a).len() as f64)
            .product()
    };
    let base = volume(&|a| tile[a].base);
    let loaded = volume(&|a| tile[a].loaded);
    let updates: Vec<f64> = scheme
        .stages
        .iter()
        .map(|s| s.updates.len() as f64)
        .collect();
    let all: f64 = updates.iter().sum();
    let (mut work, mut runs, mut length) = (0.0, 0.0, 0.0);
    let numbers = tile[Axis::OUTER].stages.len();
    for number in 0..numbers {
        let at = |a: Axis| tile[a].stages[number];
        work += volume(&at) * updates[number % updates.len().max(1)] / all.max(1.0);
        runs += match run_axis(scheme) {
            Axis::MIDDLE => at(Axis::OUTER).len() as f64,
            _ => 1.0,
        };
        length += at(Axis::INNER).len() as f64 / numbers.max(1) as f64;
    }
    let height = program.height as f64;
    let done = (base * height).max(1.0);
    // Work per cell-step that is kept.
    let redundant = work / done;
    let runs = runs / work.max(1.0) / scheme.stages.len().max(1) as f64;
    let compute = compute_time(scheme, machine, length, runs) * redundant;
    let bytes = scheme.precision.bytes() as f64;
    let time_levels: f64 = scheme
        .components
        .iter()
        .map(|c| f64::from(c.time_levels))
        .sum();
    // In, and into memory of its own; out, and to where it belongs.
    let copied = (2.0 * loaded * f64::from(layout.rows) + 2.0 * base * time_levels) * bytes / done;
    let moved = (loaded * f64::from(layout.rows) + base * time_levels) * bytes / done;
    let own = program.layout.bytes() as f64;
    let threads = machine.threads as f64;
    let swept = layerwise_elements(scheme) * bytes * redundant;
    let cache_bytes = copied + lost(own, machine.l2, OWN) * swept;
    let memory_bytes = if 2.0 * layout.bytes() as f64 + own * threads < USABLE * machine.l3 as f64 {
        0.0
    } else {
        moved + lost(own * threads, machine.l3, SHARED) * swept
    };
    let busy = threads.min(program.count() as f64).max(1.0) * machine.mean_speed();
    let time = together([
        compute / busy,
        cache_bytes / machine.shared_cache() / busy,
        memory_bytes / machine.memory(),
    ]);
    Some(Prediction {
        rate: 1.0 / time,
        compute,
        cache_bytes,
        memory_bytes,
        footprint: own,
    })
}

/// Predicts a sweep in boxes.
pub(super) fn predict_boxes(
    scheme: &Scheme,
    layout: &Layout,
    boxes: &Boxes,
    machine: &Machine,
) -> Prediction {
    let cells = scheme.grid.cells;
    let smallest = PerAxis::from_fn(|a| {
        let sizes = boxes.levels.iter().filter_map(|level| level[a]);
        sizes.fold(cells[a], i64::min).max(1) as f64
    });
    let rows = match run_axis(scheme) {
        Axis::MIDDLE => smallest[Axis::MIDDLE],
        _ => smallest[Axis::OUTER],
    };
    let length = smallest[Axis::INNER];
    let compute = compute_time(scheme, machine, length, 1.0 / (rows * length).max(1.0));
    let largest: f64 = match boxes.levels.first() {
        Some(level) => Axis::ALL
            .iter()
            .map(|&a| level[a].unwrap_or(cells[a]).min(cells[a]) as f64)
            .product(),
        None => scheme.grid.cell_count(),
    };
    let count = (scheme.grid.cell_count() / largest.max(1.0)).max(1.0);
    // A thread that is free takes the next box.
    let busy = (machine.threads as f64).min(count) * machine.mean_speed();
    with_computing(
        predict_layerwise(scheme, layout, machine),
        compute,
        busy,
        machine,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::Precision;
    use crate::testing::maxwell;

    #[test]
    fn pyramids_have_a_best_height() {
        let machine = Machine {
            threads: 2,
            cores: 2,
            l1: 32 << 10,
            l2: 1 << 20,
            l3: 32 << 20,
            l2_rate: 130e9,
            l3_rate: 100e9,
            l3_rate_all: 200e9,
            l3_rate_far: 100e9,
            memory_rate: 20e9,
            memory_rate_all: 30e9,
            vector_rate: 9e9,
            vector_rate_all: 18e9,
            vector_rate_slowest: 9e9,
            vector_bytes: 64,
        };
        let scheme = maxwell(2, Precision::F32, [256, 256, 256]);
        let layout = Layout::new(&scheme).expect("a small size");
        let rates: Vec<f64> = [1, 2, 4, 8, 16, 32]
            .map(|height| {
                let base = PerAxis([Some(64), Some(64), Some(64)]);
                let pyramid = Pyramid { height, base };
                predict_pyramids(&scheme, &layout, &pyramid, &machine).expect("a small size")
            })
            .map(|prediction| prediction.rate)
            .to_vec();
        // Time against height is U-shaped: bytes fall, work rises.
        let best = (0..rates.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b]));
        let best = best.unwrap_or(0);
        assert!(0 < best && best + 1 < rates.len(), "{rates:?}");
        assert!(rates[..=best].is_sorted(), "{rates:?}");
        assert!(rates[best..].is_sorted_by(|a, b| a >= b), "{rates:?}");
    }
}
