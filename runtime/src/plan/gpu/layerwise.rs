//! What a layerwise run on a device is expected to do: the kernels of a step, one after the other.
//!
//! A kernel moves whole arrays, and nothing stays on the chip from one kernel to the next but what the cache of all
//! multiprocessors holds. It takes the time of its bytes, from memory or from that cache, and of its start; the host
//! needs a while for each start, too, which it hides as far as the device is busy.

use super::layers;
use crate::gpu::DeviceModel;
use crate::program::layerwise_bytes_per_cell_step;
use std::collections::{BTreeMap, BTreeSet};
use torre_compiler::backend::gpu::layerwise::{Shape, march};
use torre_compiler::cost::{Choice, Prediction};
use torre_compiler::ghost::AxisGhosts;
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::schedule::Schedule;
use torre_compiler::scheme::{Read, Scheme, StageId, ZoneSet};
use torre_compiler::tile::{Block, stage_blocks};

// Fitted to 68 rates on H200s, whose plain copies run at 4.27 TB/s: schemes with one axis to three, 48^3 to 16384^2
// cells, f32 and f64, with ends of zeros, mirrors, rings and layers. The root of the mean square of the logarithm of
// measured by expected is 0.06, the largest difference 17 %.

/// Seconds that the host takes to start a kernel.
const START: f64 = 3.65e-6;
/// Seconds of a kernel before and after it moves anything.
const GAP: f64 = 1.45e-6;
/// Seconds of a kernel that copies rows to their ghosts, which reads their places first.
const GHOSTS: f64 = 3.6e-6;
/// Rate of all bytes that come from memory, by that of plain copies, if that were all that a kernel does.
const SHARE: f64 = 1.02;
/// Bytes per cycle of a multiprocessor to and from the cache of all of them, in the same way: 7.2 TB/s for all.
const CACHED: f64 = 27.7;
/// All that a run touches, by the size of that cache, where half of the bytes come from memory; and the width of the
/// change, as a logarithm.
const HELD: f64 = 0.65;
const CHANGE: f64 = 0.1;
/// How sharply the longer one of two times that overlap counts: of bytes from memory and from the cache, and of host and
/// device.
const BYTES: f64 = 2.4;
const STARTS: f64 = 6.0;

/// A kernel of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Kernel {
    /// Bytes that it moves: those of all rows that it reads and writes, once each.
    bytes: f64,
    /// Bytes that pass between its multiprocessors and their cache: rows that threads near each other read, and those
    /// that a thread keeps, come once for each block and march.
    cached: f64,
    /// Seconds beside them.
    beside: f64,
}

/// The layerwise schedule, with the rate that is expected of it.
pub fn layerwise(scheme: &Scheme, model: &DeviceModel) -> Choice {
    let amended: f64 = layers::bytes(scheme).iter().sum();
    let bytes = layerwise_bytes_per_cell_step(scheme) + amended;
    let cells: f64 = scheme.grid.cells.0.iter().map(|&n| n as f64).product();
    let facts = &model.facts;
    let held = Layout::for_gpu(scheme).map_or(f64::INFINITY, |layout| layout.bytes() as f64);
    let held = held / facts.l2.max(1) as f64;
    let missed = 1.0 / (1.0 + (HELD / held).powf(1.0 / CHANGE));
    let cache = CACHED * f64::from(facts.multiprocessors.max(1)) * facts.clock.max(1) as f64;
    let time = |kernel: Kernel| {
        let memory = missed * kernel.bytes / (SHARE * model.copy_rate);
        let moving = longer([memory, kernel.cached / cache], BYTES);
        longer([START, kernel.beside + moving], STARTS)
    };
    let step: f64 = kernels(scheme, model).into_iter().map(time).sum();
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

/// About the longer one of two times; the shorter one counts where they are alike.
fn longer(times: [f64; 2], power: f64) -> f64 {
    let [a, b] = times.map(|time| time.powf(power));
    (a + b).powf(1.0 / power)
}

/// The kernels of a step without sources and records.
fn kernels(scheme: &Scheme, model: &DeviceModel) -> Vec<Kernel> {
    let mut all = Vec::new();
    for stage in scheme.stage_ids() {
        let blocks = stage_blocks(scheme, stage);
        all.extend(
            blocks
                .iter()
                .map(|block| updating(scheme, model, stage, block)),
        );
        all.extend(amending(scheme, stage));
        if has_ghosts(scheme, stage) {
            all.push(Kernel {
                beside: GHOSTS,
                ..Kernel::default()
            });
        }
    }
    all
}

/// The kernel that runs some updates of a stage in a part of the grid.
fn updating(scheme: &Scheme, model: &DeviceModel, stage: StageId, block: &Block) -> Kernel {
    let updates = &scheme.stages[stage.index()].updates;
    let mut coefs = BTreeSet::new();
    // Of each row that is read, how far apart reads lie along the outer and the middle axis.
    let mut spans: BTreeMap<_, [[i32; 2]; 2]> = BTreeMap::new();
    for update in block.updates.iter().map(|i| &updates[i]) {
        coefs.extend(update.body.coefs().chain(update.mask));
        for read in update.body.reads() {
            let at = offsets(read);
            let ends = spans
                .entry((read.component, read.age))
                .or_insert(at.map(|n| [n; 2]));
            for (ends, n) in ends.iter_mut().zip(at) {
                *ends = [ends[0].min(n), ends[1].max(n)];
            }
        }
    }
    let shape = Shape::of(scheme);
    let march = march(scheme, shape, block.region, model.facts.threads_at_once());
    let beyond = [march, i64::from(shape.threads[1])].map(|n| n as f64);
    let again = |ends: &[[i32; 2]; 2]| {
        let shares = [0, 1].map(|n| 1.0 + f64::from(ends[n][1] - ends[n][0]) / beyond[n]);
        shares.iter().product::<f64>()
    };
    let once = (coefs.len() + block.updates.iter().count()) as f64;
    let row = block.region.volume() as f64 * scheme.precision.bytes() as f64;
    Kernel {
        bytes: (once + spans.len() as f64) * row,
        cached: (once + spans.values().map(again).sum::<f64>()) * row,
        beside: GAP,
    }
}

fn offsets(read: &Read) -> [i32; 2] {
    [Axis::OUTER, Axis::MIDDLE].map(|axis| read.offset[axis])
}

/// The kernels that amend what a stage has stored.
fn amending(scheme: &Scheme, stage: StageId) -> Vec<Kernel> {
    let updates = scheme.stages[stage.index()].updates.iter();
    let zones = updates.fold(ZoneSet::default(), |set, u| set.union(u.zones()));
    let count: usize = zones.iter().map(|zone| scheme.zone(zone).boxes.len()).sum();
    let cells: f64 = scheme.grid.cells.0.iter().map(|&n| n as f64).product();
    let bytes: f64 = layers::bytes_of(scheme, stage).iter().sum();
    let bytes = bytes * cells / count.max(1) as f64;
    let kernel = Kernel {
        bytes,
        cached: bytes,
        beside: GAP,
    };
    vec![kernel; count]
}

/// Whether rows are copied to ghosts after a stage; those along the inner axis are stored with the values.
fn has_ghosts(scheme: &Scheme, stage: StageId) -> bool {
    let updates = &scheme.stages[stage.index()].updates;
    updates.iter().any(|update| {
        let of = |axis| AxisGhosts::new(scheme, update.target, axis);
        [Axis::OUTER, Axis::MIDDLE]
            .into_iter()
            .any(|axis| !of(axis).is_empty())
    })
}
