//! What a run on a device is expected to do: layerwise, and by towers.

use super::chip::Chip;
use super::device::Facts;
use super::plan::Fit;
use super::towers::usual_order;
use crate::program::layerwise_bytes_per_cell_step;
use torre_compiler::backend::nvptx::tower::{Kernels, StagePlan};
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::schedule::{Choice, Prediction, Schedule};
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::residency::{Towers, is_tapped};
use torre_compiler::tile::stage_blocks;

// Fitted to rates on an H200, whose plain copies run at 4.28 TB/s: 59 schedules of FDTD(4,2) in f32 and f64, with and without media, and of the
// scalar wave of orders 2 and 8, D = 1 to 4, TH = 8 to 128. The root of the mean square of the logarithm of measured by expected is 0.15.

/// Share of the rate of plain copies that layerwise kernels reach: 51.3e9 cell-steps per second of 72 bytes, 25.0e9 of 144; 0.64 for the
/// wave of order 8, 0.90 for that of order 2 and for elasticity.
const SHARE: f64 = 0.87;
/// The same for all that towers load and store, while the cache of all multiprocessors has it.
const FLOW: f64 = 1.43;
/// What may pass between a store and the load of it by the next column, by that cache's size, before anything comes from memory; and how
/// much more until all of it does.
const KEPT: [f64; 2] = [0.43, 4.1];
/// Share of the peak rate of instructions that a stage's straight-line code reaches. By reckoning.
const ISSUE: f64 = 0.7;
/// Seconds of a stage in which its block neither loads nor computes.
const LATENCY: f64 = 0.37e-6;
/// Seconds that a tower takes before its first stage.
const BEGIN: f64 = 1.9e-6;
/// Stages that a column has to be ahead of the next one.
const WAIT: f64 = 0.55;
/// Turns of a whole tower in the time of one that an end of the grid cuts, which runs row by row in memory.
const CUT: f64 = 2.9;

/// Seconds between the starts of two kernels that have little to do.
const START: f64 = 3e-6;
/// Bytes of shared memory that a multiprocessor reads or writes per cycle.
const SHARED_WIDTH: f64 = 128.0;

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

/// Accesses to shared memory per cell-step of towers: reads of other indices along the vector axis, and rows that are put there or taken
/// from there.
pub fn shared_accesses(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    kernels: &Kernels,
) -> f64 {
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    let reads = updates.flat_map(|u| u.body.reads());
    let tapped = reads.filter(|read| is_tapped(scheme, layout, read)).count();
    let plans = kernels.towers.iter().map(|k| &k.plan);
    let moved = |s: &StagePlan| s.loads.len() + s.enter.len() + s.publish.len() + s.again.len();
    let rows: usize = plans.flat_map(|p| &p.stages).map(moved).sum();
    let alignments = kernels.towers.len().max(1) as f64;
    tapped as f64 + rows as f64 / (alignments * towers.cells() * towers.steps as f64)
}

/// What bands of towers are expected to do, `height` steps each, if sources and probes cut a share of the turns.
///
/// A multiprocessor takes for a stage of each of its blocks the longest of: its bytes, at a rate near that of the shared cache as far as
/// what one column stores is still there when the next one loads it; its instructions; what nothing hides. Columns of [`usual_order`]'s width follow
/// each other: with all multiprocessors busy, the next one is a *lag* of height * stages * width / multiprocessors stages behind, and if
/// that is less than it has to be, some wait. Towers that an end of the grid cuts count several times, and a band ends when its last tower
/// has.
pub fn towers(scheme: &Scheme, fit: &Fit, height: u64, cut: f64, chip: &Chip) -> Prediction {
    let element = scheme.precision.bytes() as f64;
    let cells: [f64; 3] = scheme.grid.cells.0.map(|n| n as f64);
    let towers = &fit.towers;
    let (steps, stages) = (height as f64, scheme.stages.len() as f64);
    let blocks = chip.resident(&fit.flow, fit.registers) as f64;
    // Those that run the blocks of a tower are like one that does more at once.
    let together = f64::from(fit.flow.cluster.max(1));
    let processors = (f64::from(chip.facts.multiprocessors.max(1)) / together)
        .floor()
        .max(1.0);
    let own = towers.bytes_per_cell(scheme);
    let column: f64 = towers.moved_by_column().iter().sum();
    let column = column * element / (towers.cells() * towers.steps as f64);
    // Cell-steps of a stage of a tower, a step's work being shared evenly among its stages.
    let stage = towers.cells() * cells[Axis::VECTOR.index()] / stages;

    let arithmetic: usize = scheme
        .stages
        .iter()
        .flat_map(|s| &s.updates)
        .map(|u| u.body.arithmetic())
        .sum();
    let cycles =
        arithmetic as f64 / chip.lanes(scheme.precision) + fit.accesses * element / SHARED_WIDTH;
    let compute = cycles / (together * ISSUE * chip.facts.clock.max(1) as f64);
    let width = usual_order(fit.flow.cluster).width as f64;
    let lag = steps * stages * width / (processors * blocks);
    let passed = lag * processors * blocks * stage * own;
    let [kept, more] = KEPT;
    let lost = ((passed / chip.facts.l2.max(1) as f64 - kept) / more).clamp(0.0, 1.0);
    let near = (1.0 - lost) * own / (FLOW * chip.copy_rate);
    let far = lost * column / (SHARE * chip.copy_rate);
    let flow = stage * (near + far) * processors;
    let compute_stage = stage * compute;
    // Per stage of one tower, where a multiprocessor runs several: what one waits for, others use.
    let time = (LATENCY + flow).max(blocks * flow.max(compute_stage)) / blocks;

    let [x, y] = [Axis::LEAN, Axis::DIAMOND].map(|axis| cells[axis.index()]);
    let by = towers.advance.map(|n| n.abs() as f64);
    let reach = (2.0 * towers.cells()).sqrt() + by[0].max(by[1]);
    let all = (x + reach) * (y + reach);
    let whole = (x - reach).max(0.0) * (y - reach).max(0.0);
    let whole = whole * (1.0 - cut);
    let running = (whole + CUT * (all - whole)) / towers.cells();
    let busy = (lag / WAIT).min(running / (processors * blocks)).min(1.0);
    let tower = steps * stages * time + BEGIN / blocks;
    let band = START + tower * blocks + tower * running / (processors * busy);
    Prediction {
        rate: x * y * cells[Axis::VECTOR.index()] * steps / band,
        compute,
        cache_bytes: own,
        memory_bytes: column,
        footprint: f64::from(fit.flow.shared),
    }
}

/// A run of which a share of the steps is by towers, and the rest layerwise.
pub fn mixed(towers: Prediction, layerwise: &Prediction, share: f64) -> Prediction {
    let mean = |a: f64, b: f64| share * a + (1.0 - share) * b;
    Prediction {
        rate: 1.0 / mean(1.0 / towers.rate, 1.0 / layerwise.rate),
        cache_bytes: mean(towers.cache_bytes, layerwise.cache_bytes),
        memory_bytes: mean(towers.memory_bytes, layerwise.memory_bytes),
        ..towers
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
        assert!((4.8e10..5.1e10).contains(&large), "{large:e}");
        let (small, starts) = rate([16, 16, 16]);
        assert!(starts >= 2.0);
        let expected = 4096.0 / (starts * START);
        assert!((small - expected).abs() < 0.02 * expected, "{small:e}");
    }
}
