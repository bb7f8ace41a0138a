//! Predictions of layerwise runs on a device: the kernels of a step, one after the other.
//!
//! A kernel moves whole arrays, and nothing stays on the chip from one kernel to the next but the contents of the cache
//! of all multiprocessors. It takes the time of its bytes, from memory or from that cache, and of its start; the host
//! needs a while for each start, too, which it hides as far as the device is busy.

use super::layers;
use crate::gpu::DeviceModel;
use std::collections::{BTreeMap, BTreeSet};
use torre_compiler::cost::{Choice, Prediction, layerwise_bytes};
use torre_compiler::ghost::{AxisGhosts, Ghost};
use torre_compiler::kernel::{StageBox, stage_boxes};
use torre_compiler::lattice::{Axis, PerAxis, Region};
use torre_compiler::layerwise::{Covering, Shape};
use torre_compiler::layout::Layout;
use torre_compiler::schedule::Schedule;
use torre_compiler::scheme::{ComponentId, Read, Scheme, StageId, Update, ZoneSet};

// Fitted to 240 rates of bare grids on several H200, whose plain copies run at 4.27 TB/s: schemes with one axis to
// three, 32^3 to 16384^2 cells, f32 and f64, with ends of zeros and rings. The root of the mean square of the logarithm
// of measured by expected is 0.09. Hosts differ: on two of them a kernel without much to do takes 3.0 to 3.2 and 3.6 to
// 4.4 microseconds.

/// Seconds that the host takes to start a kernel.
const START: f64 = 3.1e-6;
/// Seconds of a kernel before and after it moves anything.
const GAP: f64 = 2.0e-6;
/// Rate of all bytes that come from memory, by that of plain copies, if that were all that a kernel does.
const SHARE: f64 = 1.0;
/// Bytes per cycle of a multiprocessor to and from the cache of all of them, in the same way: 8.8 TB/s for all.
const CACHED: f64 = 33.5;
/// All that a run touches, by the size of that cache, where half of the bytes come from memory; and the width of the
/// change, as a logarithm.
const HELD: f64 = 0.59;
const CHANGE: f64 = 0.17;
/// Bytes in the time that each end of a row takes beyond which it has ghosts, stored or read, in pieces of lines of the
/// cache.
const PIECE: f64 = 160.0;
/// Seconds in which a warp copies the next 32 values of a row to its ghosts, for as many values as were measured, and
/// bytes per second that all copy.
const COPY: f64 = 0.9e-6;
const MEASURED: f64 = 256.0;
const COPIES: f64 = 0.18e12;
/// Seconds of a thread of a kernel that amends values, or keeps them, of which a device runs many at a time: warps have
/// lanes beyond the ends of short rows, too. From 10 rates of FDTD with layers, and with a medium.
const THREAD: f64 = 2.0e-6;
/// How sharply the longer one of two times that overlap counts: of bytes from memory and from the cache, and of host
/// and device.
const BYTES: f64 = 2.0;
const STARTS: f64 = 6.0;

/// Threads of a warp.
const WARP: u64 = 32;

/// A kernel of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Kernel {
    /// Bytes that it moves: all rows that it reads and writes, once each.
    bytes: f64,
    /// Bytes that pass between its multiprocessors and their cache: blocks load some rows again that others have, too.
    cached: f64,
    /// Seconds of all its threads, as many at a time as there is room for, if they have one value each.
    threads: f64,
    /// Seconds beside them.
    beside: f64,
}

/// The layerwise schedule, with the rate that is expected of it.
pub fn layerwise(scheme: &Scheme, model: &DeviceModel) -> Choice {
    let amended: f64 = layers::bytes(scheme).iter().sum();
    let stages = scheme.stage_ids();
    let kept: f64 = stages
        .map(|stage| layers::kept_bytes_of(scheme, stage))
        .sum();
    let bytes = layerwise_bytes(scheme) + amended + kept;
    let cells = scheme.grid.cell_count();
    let facts = &model.facts;
    let rows = Layout::for_gpu(scheme).map_or(f64::INFINITY, |layout| f64::from(layout.rows));
    let held = cells * rows * scheme.precision.bytes() as f64 / facts.l2.max(1) as f64;
    let missed = 1.0 / (1.0 + (HELD / held).powf(1.0 / CHANGE));
    let cache = CACHED * f64::from(facts.multiprocessors.max(1)) * facts.clock.max(1) as f64;
    let time = |kernel: Kernel| {
        let memory = missed * kernel.bytes / (SHARE * model.copy_rate);
        let moving = longer([memory, kernel.cached / cache], BYTES);
        let moving = longer([moving, kernel.threads], BYTES);
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
        let blocks = stage_boxes(scheme, stage);
        all.extend(keeping(scheme, model, stage));
        all.extend(
            blocks
                .iter()
                .map(|block| updating(scheme, model, stage, block)),
        );
        all.extend(amending(scheme, model, stage));
        all.extend(copying(scheme, stage));
    }
    all
}

/// The kernel that runs some updates of a stage in a part of the grid.
fn updating(scheme: &Scheme, model: &DeviceModel, stage: StageId, block: &StageBox) -> Kernel {
    let updates = &scheme.stages[stage.index()].updates;
    let mut coefs = BTreeSet::new();
    // Of each row that is read, how far apart reads lie along the axes.
    let mut read: BTreeMap<_, PerAxis<[i32; 2]>> = BTreeMap::new();
    // Ends of rows with ghosts beyond them.
    let ends = |id| ends_with_ghosts(scheme, id, Axis::INNER);
    let mut pieces = 0;
    for update in block.updates.iter().map(|i| &updates[i]) {
        coefs.extend(update.body.coefs().chain(update.mask));
        pieces += ends(update.target);
        for Read {
            component,
            offset,
            age,
        } in update.body.reads()
        {
            let spans = read
                .entry((*component, *age))
                .or_insert(offset.map(|n| [n; 2]));
            *spans = PerAxis::from_fn(|axis| {
                let ([lo, hi], n) = (spans[axis], offset[axis]);
                [lo.min(n), hi.max(n)]
            });
        }
    }
    let span = |spans: &PerAxis<[i32; 2]>, axis: Axis| f64::from(spans[axis][1] - spans[axis][0]);
    let beside = |spans: &&PerAxis<[i32; 2]>| span(spans, Axis::INNER) > 0.0;
    let across = read.iter().filter(|(_, spans)| beside(spans));
    pieces += across.map(|((id, _), _)| ends(*id)).sum::<usize>();
    let shape = Shape::of(scheme);
    let threads = model.facts.threads_at_once();
    let covering = Covering::new(scheme, shape, block.region, threads);
    let (march, deep) = (covering.march as f64, f64::from(shape.threads[1]));
    let again = |spans| span(spans, Axis::OUTER) / march + span(spans, Axis::MIDDLE) / deep;
    let rows = (coefs.len() + block.updates.iter().count() + read.len()) as f64;
    let again = read.values().map(again).sum::<f64>();
    let volume = block.region.volume() as f64;
    let length = block.region[Axis::INNER].len().max(1) as f64;
    let element = scheme.precision.bytes() as f64;
    let pieces = pieces as f64 * PIECE * volume / length;
    // Lanes beyond the end of a row take as long as others.
    let lanes = covering.values as f64 / length;
    Kernel {
        bytes: rows * volume * element + pieces,
        cached: (rows + again) * volume * element * lanes + pieces,
        threads: 0.0,
        beside: GAP,
    }
}

/// Ends of an axis beyond which a component has ghosts.
fn ends_with_ghosts(scheme: &Scheme, id: ComponentId, axis: Axis) -> usize {
    let pairs = AxisGhosts::new(scheme, id, axis).pairs();
    let below = |ghost: &Ghost| ghost.index < 0;
    let [below, above] = [true, false].map(|side| pairs.iter().any(|(_, g)| below(g) == side));
    usize::from(below) + usize::from(above)
}

/// The kernels that copy values which amendments of a stage read and its updates overwrite.
fn keeping(scheme: &Scheme, model: &DeviceModel, stage: StageId) -> Vec<Kernel> {
    let needed = |update: &Update| {
        let own = update.amendments.iter();
        let own = own.filter(|amendment| scheme.needs_old(update, amendment));
        let zones = own.map(|amendment| ZoneSet::of(amendment.zone));
        zones.fold(ZoneSet::default(), ZoneSet::union)
    };
    let updates = scheme.stages[stage.index()].updates.iter();
    let zones = updates.fold(ZoneSet::default(), |set, u| set.union(needed(u)));
    in_zones(scheme, model, zones, layers::kept_bytes_of(scheme, stage))
}

/// The kernels that amend the values that a stage has stored.
fn amending(scheme: &Scheme, model: &DeviceModel, stage: StageId) -> Vec<Kernel> {
    let updates = scheme.stages[stage.index()].updates.iter();
    let zones = updates.fold(ZoneSet::default(), |set, u| set.union(u.zones()));
    let bytes = layers::bytes_of(scheme, stage).iter().sum();
    in_zones(scheme, model, zones, bytes)
}

/// A kernel for each box of some zones, which together move these bytes per cell of the grid.
fn in_zones(scheme: &Scheme, model: &DeviceModel, zones: ZoneSet, bytes: f64) -> Vec<Kernel> {
    let cells = scheme.grid.cell_count();
    let boxes = zones.iter().flat_map(|zone| &scheme.zone(zone).boxes);
    let boxes: Vec<&Region> = boxes.collect();
    let all: f64 = boxes.iter().map(|part| part.volume() as f64).sum();
    let of_box = |part: &&Region| {
        let volume = part.volume() as f64;
        let own = bytes * cells * volume / all.max(1.0);
        let length = part[Axis::INNER].len().max(1) as u64;
        let lanes = length.next_multiple_of(WARP) as f64 / length as f64;
        Kernel {
            bytes: own,
            cached: own,
            threads: THREAD * volume * lanes / model.facts.threads_at_once() as f64,
            beside: GAP,
        }
    };
    boxes.iter().map(of_box).collect()
}

/// The kernel that copies rows to ghosts beyond the ends of the outer and the middle axis after a stage, if there are
/// some; ghosts along the inner axis are stored with the values.
fn copying(scheme: &Scheme, stage: StageId) -> Option<Kernel> {
    let [x, y, z] = scheme.grid.cells.0.map(|n| n as f64);
    let updates = &scheme.stages[stage.index()].updates;
    let rows = updates.iter().map(|update| {
        let of = |axis| AxisGhosts::new(scheme, update.target, axis).pairs().len() as f64;
        let [outer, middle] = [Axis::OUTER, Axis::MIDDLE].map(of);
        outer * y + middle * x + outer * middle
    });
    let rows: f64 = rows.sum();
    let bytes = rows * z * scheme.precision.bytes() as f64;
    (rows > 0.0).then(|| Kernel {
        beside: COPY * z.min(MEASURED) / 32.0 + bytes / COPIES,
        ..Kernel::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::backend::gpu::Gpu;
    use torre_compiler::scheme::{Boundary, Precision};
    use torre_compiler::testing::{add_layers, everywhere, maxwell};

    /// FDTD with the same ends everywhere.
    fn fdtd(order: u32, cells: [i64; 3], boundary: Boundary) -> Scheme {
        let mut scheme = maxwell(order, Precision::F32, cells);
        scheme.grid.boundary = PerAxis([[boundary; 2]; 3]);
        everywhere(&mut scheme);
        scheme
    }

    fn step(scheme: &Scheme) -> f64 {
        let gpu = Gpu::named("sm_90").expect("a GPU");
        let model = DeviceModel::usual(gpu).expect("a usual GPU");
        let cells = scheme.grid.cell_count();
        cells / layerwise(scheme, &model).prediction.rate
    }

    /// Large grids run at the rate of memory, small ones at that of starts.
    #[test]
    fn the_rate_follows_from_bytes_and_starts() {
        let of = |cells| fdtd(4, cells, Boundary::Zero);
        let large = step(&of([1536, 1536, 256]));
        let rate = 1536.0 * 1536.0 * 256.0 / large;
        assert!((4.8e10..5.3e10).contains(&rate), "{rate:e}");
        let scheme = of([16, 16, 16]);
        let stages = scheme.stage_ids();
        let starts: usize = stages.map(|stage| stage_boxes(&scheme, stage).len()).sum();
        assert!(starts >= 2);
        let (small, expected) = (step(&scheme), starts as f64 * START);
        assert!((1.0..1.1).contains(&(small / expected)), "{small:e}");
    }

    /// A grid that fits the cache of all multiprocessors comes faster than from memory.
    #[test]
    fn grids_in_the_cache_run_faster() {
        let rate = |n: i64| {
            let scheme = fdtd(2, [n; 3], Boundary::Zero);
            (n as f64).powi(3) / step(&scheme)
        };
        let [held, large] = [96, 160].map(rate);
        assert!(held > 1.15 * large, "{held:e} {large:e}");
    }

    /// Rings have a kernel more for each stage, which takes the longer the longer rows are, and layers one for each
    /// box.
    #[test]
    fn ghosts_and_layers_add_kernels() {
        let with = |n, boundary| step(&fdtd(4, [n; 3], boundary));
        let more = |n| with(n, Boundary::Periodic) - with(n, Boundary::Zero);
        let [small, large] = [32, 128].map(more);
        assert!(
            small > 1.5 * START && large > 2.0 * small,
            "{small:e} {large:e}"
        );
        let bare = fdtd(4, [32; 3], Boundary::Zero);
        let mut layered = bare.clone();
        add_layers(&mut layered, PerAxis([4, 0, 0]));
        let added = step(&layered) - step(&bare);
        assert!((3.0..6.0).contains(&(added / START)), "{added:e}");
    }
}
