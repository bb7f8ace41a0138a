//! Predicts the rate of a schedule from the bytes that it moves between levels of memory.
//!
//! Time per cell-step is the square root of the sum of the squares of three times, each of which goes on beside the
//! others but does not hide them wholly:
//! - a core's own time: its operations, as many multiply-adds of vectors; the lines that come from its level-2 cache
//!   and go back to it, since a level-1 cache holds little more than the rows around one index; and the hand-over of
//!   tiles from thread to thread,
//! - bytes between a core and the shared cache,
//! - bytes from and to main memory.
//!
//! Threads share the first two as far as strips keep them busy ([`threads`]). Bytes follow from walking a tile in the
//! middle of the grid ([`touched`]): the rows that the first step touches, and the rows that each further step adds at
//! the tile's front. A tile whose rows fit a cache loads each of them once.
//!
//! Four numbers are fitted, [`OPERATION`], both of [`LINE_BYTE`], and [`SWEPT`], to 181 measured rates of schedules of
//! five schemes, on a Zen 4 and a Zen 5 with one and two threads and on Xeons with 1, 2 and 16. [`RUN`], [`PLACED`],
//! [`HANDOVER`] and [`BEGIN`] are measured on some of them.

pub mod machine;
#[cfg(test)]
mod measured;
mod pyramids;
mod threads;
mod touched;

pub use machine::{Blocking, Machine};

use crate::distinct::distinct;
use crate::kernel::{UpdateSet, run_axis, stage_boxes};
use crate::lattice::Axis;
use crate::layout::Layout;
use crate::schedule::tiling::{Level, Tiling};
use crate::schedule::{Frame, Schedule, Template, TiledTemplate, template};
use crate::scheme::{Read, Scheme, StageId};
use crate::tile::{Strips, in_integers};
use pyramids::{predict_boxes, predict_pyramids};
use std::collections::BTreeMap;
use std::fmt;
use touched::{Touched, touched};

/// Share of a core's cache that a tile's rows may fill before they push each other out, and the share from which on
/// they are gone when they are wanted again. Between the two the bytes are taken in proportion.
const OWN: [f64; 2] = [0.6, 1.6];
/// The same for a level-1 cache and the rows around an index, when the kernel comes to the next index.
const NEAREST: [f64; 2] = [0.4, 1.2];
/// The same for the cache that all cores share and all rows of an outer tile, which the next one wants again.
const SHARED: [f64; 2] = [0.4, 1.0];
/// The same for that cache and the rows that an inner tile advances from stage to stage, in the tiles of all threads:
/// rows that are wanted again soon stay longest.
const SHARED_OWN: [f64; 2] = [0.6, 1.4];
/// Share of the shared cache that a whole grid may fill to stay there.
const USABLE: f64 = 0.6;
/// Tiles are chosen if they are expected to be this much faster: where 1.1 to 1.2 were expected, 1.06 to 1.6 were
/// measured.
const WORTHWHILE: f64 = 1.05;
/// The time of an operation, in vector multiply-adds: sums and products go to more units than these.
const OPERATION: f64 = 0.5;
/// The time of a byte between a core and its level-2 cache: a share of the time that it takes in a sweep, which writes
/// as much as it reads, and seconds that are alike on all processors, whatever rate sweeps reach.
const LINE_BYTE: [f64; 2] = [0.65, 4.5e-12];
/// The cost of the start and the end of a row, in vectors.
const ROW_ENDS: f64 = 2.5;
/// Seconds for a run of groups.
const RUN: f64 = 15e-9;
/// Seconds in which a thread takes a run of groups from the shape of its tile on grids with one axis or two, where a
/// stage of a tile is one run or two.
const PLACED: f64 = 50e-9;
/// Seconds in which a thread takes an outermost tile there and leaves it, whether the tile has rows or not: alone, and
/// for each other thread, which looks at the same counters.
const HANDOVER: [f64; 2] = [0.3e-6, 0.15e-6];
/// Seconds that a thread loses at an outermost tile beside others: it waits for a neighbour that ends a little later,
/// and its first rows come from the cache of another core.
const BEGIN: f64 = 15e-6;
/// Share of the traffic of an outermost tile that still comes from main memory where the shared cache holds the rows
/// that its neighbour left.
const BESIDE: f64 = 0.75;
/// The time of a sweep for bytes from main memory, relative to that of a copy, which has one stream of addresses.
const SWEPT: f64 = 1.5;

/// The prediction for a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Cell-steps per second, all threads.
    pub rate: f64,
    /// Seconds per cell-step that a thread spends itself: operations, lines of its level-2 cache, and the hand-over of
    /// tiles. Not divided by the number of threads.
    pub compute: f64,
    /// Bytes per cell-step between a core and the shared cache.
    pub cache_bytes: f64,
    /// Bytes per cell-step between caches and main memory.
    pub memory_bytes: f64,
    /// Bytes that a thread's outermost tile touches.
    pub footprint: f64,
}

/// A rate in cell-steps per second as all reports show it: in Gcells/s, 1e9 cell-steps per second, with three
/// significant digits.
pub fn gcells(rate: f64) -> String {
    let value = rate * 1e-9;
    if !value.is_normal() {
        return format!("{value}");
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 12);
    format!("{value:.*}", digits as usize)
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  rate      {:>8} Gcells/s", gcells(self.rate))?;
        writeln!(
            f,
            "  computing {:8.3} ns per cell-step of a thread",
            self.compute * 1e9
        )?;
        writeln!(
            f,
            "  caches    {:8.1} bytes per cell-step",
            self.cache_bytes
        )?;
        writeln!(
            f,
            "  memory    {:8.1} bytes per cell-step",
            self.memory_bytes
        )?;
        writeln!(f, "  tile      {:8.2} MB", self.footprint * 1e-6)
    }
}

/// Seconds per cell-step of all stages where a core's own cache holds all values. Loads from a level-1 cache
/// are done meanwhile, by units of their own.
///
/// `runs` is the number of runs of a stage for each cell, at whose ends rows of neighbours come that no other index of
/// the run needs.
fn compute_time(scheme: &Scheme, machine: &Machine, length: f64, runs: f64) -> f64 {
    let bytes = scheme.precision.bytes() as f64;
    let [share, byte] = LINE_BYTE;
    let line_byte = share / machine.l2_rate + byte;
    let lanes = machine.vector_bytes as f64 / bytes;
    let vectors = (length / lanes).max(1.0);
    let ends = (vectors + ROW_ENDS) / vectors;
    let stage_time = |stage: StageId| {
        let updates = &scheme.stages[stage.index()].updates;
        let operations: usize = updates.iter().map(|u| u.body.arithmetic()).sum();
        let Lines { once, each } = lines_of(scheme, stage);
        let gone = lost(each * length * bytes, machine.l1, NEAREST);
        let lines = once + (each - once) * (gone + runs * length).min(1.0);
        OPERATION * ends * operations as f64 / lanes / machine.vector_rate
            + lines * bytes * line_byte
            + runs * RUN
    };
    scheme.stage_ids().map(stage_time).sum()
}

/// The time of transfers and computing that go on at the same time: they hide each other in part.
fn together(times: [f64; 3]) -> f64 {
    times.iter().map(|time| time.powi(2)).sum::<f64>().sqrt()
}

/// How far a level of memory is from holding `bytes`: 0, all stays; 1, all is gone before it is wanted again.
fn lost(bytes: f64, capacity: u64, [kept, gone]: [f64; 2]) -> f64 {
    ((bytes / capacity as f64 - kept) / (gone - kept)).clamp(0.0, 1.0)
}

/// The bytes that a layerwise run moves between memory and the processor per cell and step, where nothing stays in a
/// cache from one stage to the next: each stage reads all rows that it needs and writes all that it computes.
pub fn layerwise_bytes(scheme: &Scheme) -> f64 {
    let cells = scheme.grid.cell_count();
    let mut elements = 0.0;
    for stage in scheme.stage_ids() {
        for own in stage_boxes(scheme, stage) {
            let rows = rows_of(scheme, stage, own.updates);
            elements += rows * own.region.volume() as f64 / cells;
        }
    }
    elements * scheme.precision.bytes() as f64
}

/// Predicts layerwise execution.
pub fn predict_layerwise(scheme: &Scheme, layout: &Layout, machine: &Machine) -> Prediction {
    let length = scheme.grid.cells[Axis::INNER] as f64;
    let compute = compute_time(scheme, machine, length, 0.0);
    let threads = machine.threads as f64;
    let whole = layout.bytes() as f64;
    let memory_bytes = match whole < USABLE * machine.l3 as f64 {
        true => 0.0,
        false => layerwise_bytes(scheme),
    };
    // Planes are larger than a core's cache, unless it holds a thread's part of the grid.
    let cache_bytes = line_elements(scheme)
        * scheme.precision.bytes() as f64
        * lost(whole / threads, machine.l2, OWN);
    let prediction = Prediction {
        rate: 0.0,
        compute,
        cache_bytes,
        memory_bytes,
        footprint: whole,
    };
    // Each thread has an equal part of the grid, and waits for the slowest one after each stage.
    with_computing(
        prediction,
        compute,
        threads * machine.least_speed(),
        machine,
    )
}

/// A sweep with another time for computing, by as many threads of full speed.
fn with_computing(mut sweep: Prediction, compute: f64, busy: f64, machine: &Machine) -> Prediction {
    sweep.compute = compute;
    sweep.rate = 1.0
        / together([
            compute / busy,
            sweep.cache_bytes / machine.shared_cache() / busy,
            SWEPT * sweep.memory_bytes / machine.memory(),
        ]);
    sweep
}

/// Elements that come from a core's cache and go back to it for each cell of a stage.
struct Lines {
    /// Where a level-1 cache holds the rows of neighbours along the axis of the kernel's runs: each row comes once for
    /// each offset along the outermost axis that is another one.
    once: f64,
    /// Where it does not: once for each offset.
    each: f64,
}

fn lines_of(scheme: &Scheme, stage: StageId) -> Lines {
    let updates = &scheme.stages[stage.index()].updates;
    let along = run_axis(scheme);
    let elements = |held: bool| {
        let offset = |read: &Read, axis: Axis| match held && axis == along {
            true => 0,
            false => read.offset[axis],
        };
        let reads = updates.iter().flat_map(|u| u.body.reads());
        let read = distinct(reads.map(|r| {
            let [x, y] = [Axis::OUTER, Axis::MIDDLE].map(|axis| offset(r, axis));
            (r.component, r.age, x, y)
        }));
        let coefs = updates.iter().flat_map(|u| u.body.coefs().chain(u.mask));
        (read.len() + distinct(coefs).len() + updates.len()) as f64
    };
    Lines {
        once: elements(true),
        each: elements(false),
    }
}

/// Elements per cell-step that come from a core's cache and go back to it, where rows of neighbours stay in a level-1
/// cache.
fn line_elements(scheme: &Scheme) -> f64 {
    scheme.stage_ids().map(|s| lines_of(scheme, s).once).sum()
}

/// Rows that a stage's updates move per cell: read, and written back.
fn rows_of(scheme: &Scheme, stage: StageId, updates: UpdateSet) -> f64 {
    let all = &scheme.stages[stage.index()].updates;
    let own = || updates.iter().map(|i| &all[i]);
    let read = distinct(own().flat_map(|u| u.body.reads().map(|r| (r.component, r.age))));
    let coefs = distinct(own().flat_map(|u| u.body.coefs().chain(u.mask)));
    (read.len() + coefs.len() + updates.iter().count()) as f64
}

/// Elements that tiles touch, by the cuts that make them, and by heights where they count; and threads that tiles keep
/// busy, by the outermost cuts and the height.
#[derive(Debug, Default)]
struct Measured {
    touched: BTreeMap<(String, Option<u64>), Touched>,
    busy: BTreeMap<(String, u64), f64>,
}

/// The cuts of some levels as text.
fn cuts(levels: &[Level]) -> String {
    let cuts = levels.iter().flat_map(|level| &level.cuts);
    let cuts: Vec<String> = cuts.map(|cut| cut.to_string()).collect();
    cuts.join("; ")
}

/// Bytes of a cell-step, or of a tile, where these are named.
struct Bytes {
    /// Of a step of an inner tile.
    own: f64,
    /// That each inner tile loads and stores if it finds nothing in a cache.
    inner: f64,
    /// That outer tiles load and store, where their rows stay in the shared cache.
    kept: f64,
    /// Of the rows of an outer tile.
    footprint: f64,
    /// That a step loads and stores if no row stays from stage to stage.
    layerwise: f64,
}

impl Bytes {
    /// Bytes from and to main memory of a cell-step, where the shared cache does not hold the grid.
    fn memory(&self, machine: &Machine) -> f64 {
        // Inner tiles run one after the other through the whole height, so each finds the rows that its neighbours left
        // only if all rows of the outer tile are still there; else it loads them for itself, if at least the rows of a
        // step stay.
        let threads = machine.threads as f64;
        let gone = lost(self.footprint * threads, machine.l3, SHARED);
        let beside = self.kept * (BESIDE + gone * (1.0 - BESIDE));
        let each = beside + gone * (self.inner - self.kept).max(0.0);
        let gone = lost(self.own * threads, machine.l3, SHARED_OWN);
        each + gone * (self.layerwise - each).max(0.0)
    }
}

/// The expected rate of a tiling by levels of cuts. `measured`: of other tilings of the family, with cuts in common.
fn predict_tiling(
    scheme: &Scheme,
    layout: &Layout,
    frame: &Frame,
    tiling: &Tiling,
    machine: &Machine,
    measured: &mut Measured,
) -> Prediction {
    let program = in_integers(scheme, frame, tiling);
    if program.is_endless() {
        return Prediction::NEVER;
    }
    let height = tiling.height as f64;
    let bytes = scheme.precision.bytes() as f64;
    let of_outermost = tiling.levels.len().min(1);
    let mut measure = |levels: usize| {
        let height = touched::end(&program, levels).then_some(tiling.height);
        *measured
            .touched
            .entry((cuts(&tiling.levels[..levels]), height))
            .or_insert_with(|| touched(scheme, layout, &program, levels))
    };
    let [outermost, innermost] = [of_outermost, tiling.levels.len()].map(&mut measure);
    if outermost.is_empty() || innermost.is_empty() {
        return Prediction::NEVER;
    }
    let threads = machine.threads as f64;
    let runs = innermost.runs() / scheme.stages.len().max(1) as f64;
    // On grids with three axes runs are taken many at a time, and few tiles are without any.
    let placed = match program.three_axes {
        true => 0.0,
        false => {
            let tiles = Strips::new(&program, tiling.height).most_tiles() as f64;
            let cell_steps = scheme.grid.cell_count() * height;
            let [alone, beside] = HANDOVER;
            let handover = alone + beside * (threads - 1.0).max(0.0);
            innermost.runs() * PLACED + tiles * handover / cell_steps.max(1.0)
        }
    };
    let begun = match machine.threads {
        0 | 1 => 0.0,
        _ => outermost.tiles(height) * BEGIN,
    };
    let piece = machine.blocking().piece(scheme).unwrap_or(i64::MAX) as f64;
    let length = innermost.length.min(piece);
    let pieces = innermost.length / length.max(1.0);
    let compute = compute_time(scheme, machine, length, runs * pieces) + placed + begun;
    let footprint = outermost.footprint(height) * bytes;
    let layerwise = layerwise_elements(scheme) * bytes;
    let lines = line_elements(scheme) * bytes;
    // A core's cache holds the rows of a step of an inner tile, or they come from the shared cache stage by stage.
    let (own, inner) = (innermost.step * bytes, innermost.traffic(height) * bytes);
    let gone = lost(own, machine.l2, OWN);
    let cache_bytes = inner + gone * (lines - inner).max(0.0);
    let memory_bytes = match (layout.bytes() as f64) < USABLE * machine.l3 as f64 {
        true => 0.0,
        false => Bytes {
            own,
            inner,
            kept: outermost.traffic(height) * bytes,
            footprint,
            layerwise,
        }
        .memory(machine),
    };
    let busy = *measured
        .busy
        .entry((cuts(&tiling.levels[..of_outermost]), tiling.height))
        .or_insert_with(|| threads::busy(&program, &machine.speeds()));
    let time = together([
        compute / busy,
        cache_bytes / machine.shared_cache() / busy,
        memory_bytes / machine.memory(),
    ]);
    Prediction {
        rate: 1.0 / time,
        compute,
        cache_bytes,
        memory_bytes,
        footprint,
    }
}

impl Prediction {
    /// Of a schedule that does not come to an end, which is refused when it is planned, or of one that updates nothing.
    const NEVER: Prediction = Prediction {
        rate: 0.0,
        compute: f64::INFINITY,
        cache_bytes: 0.0,
        memory_bytes: 0.0,
        footprint: 0.0,
    };
}

fn layerwise_elements(scheme: &Scheme) -> f64 {
    scheme
        .stage_ids()
        .map(|s| {
            rows_of(
                scheme,
                s,
                UpdateSet::all(scheme.stages[s.index()].updates.len()),
            )
        })
        .sum()
}

/// Predicts any schedule.
pub fn predict(
    scheme: &Scheme,
    layout: &Layout,
    frame: &Frame,
    schedule: &Schedule,
    machine: &Machine,
) -> Prediction {
    predict_with(
        scheme,
        layout,
        frame,
        schedule,
        machine,
        &mut Measured::default(),
    )
}

fn predict_with(
    scheme: &Scheme,
    layout: &Layout,
    frame: &Frame,
    schedule: &Schedule,
    machine: &Machine,
    measured: &mut Measured,
) -> Prediction {
    let layerwise = || predict_layerwise(scheme, layout, machine);
    match schedule {
        Schedule::Layerwise => layerwise(),
        Schedule::Tiled(tiling) => predict_tiling(scheme, layout, frame, tiling, machine, measured),
        // One whose tiles are too large for addresses is refused when it is planned.
        Schedule::Pyramids(pyramid) => {
            predict_pyramids(scheme, layout, pyramid, machine).unwrap_or_else(layerwise)
        }
        Schedule::Boxes(boxes) => predict_boxes(scheme, layout, boxes, machine),
    }
}

/// A schedule with its prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The sizes that were chosen, for people.
    pub name: String,
    pub schedule: Schedule,
    pub prediction: Prediction,
}

/// All members of a family, best prediction first. Illegal ones, by a slope that the user gave, are left in:
/// `check_tiling` reports them.
pub fn candidates(
    scheme: &Scheme,
    layout: &Layout,
    frame: &Frame,
    template: &Template,
    machine: &Machine,
) -> Vec<Choice> {
    let layerwise = || Choice {
        name: "layerwise".to_string(),
        schedule: Schedule::Layerwise,
        prediction: predict_layerwise(scheme, layout, machine),
    };
    let mut measured = Measured::default();
    let mut tiled = |t: &TiledTemplate| -> Vec<Choice> {
        let members = t.members(frame).into_iter();
        let choice = |(name, schedule)| Choice {
            prediction: predict_with(scheme, layout, frame, &schedule, machine, &mut measured),
            name,
            schedule,
        };
        members.map(choice).collect()
    };
    let mut all = match template {
        Template::Layerwise => vec![layerwise()],
        Template::Tiled(t) => tiled(t),
        Template::Auto => {
            let mut all = vec![layerwise()];
            for family in template::families(scheme) {
                all.extend(tiled(&family));
            }
            all
        }
    };
    all.sort_by(|a, b| b.prediction.rate.total_cmp(&a.prediction.rate));
    if *template == Template::Auto
        && let Some(plain) = all.iter().position(|c| c.schedule == Schedule::Layerwise)
        && all[0].prediction.rate < WORTHWHILE * all[plain].prediction.rate
    {
        let plain = all.remove(plain);
        all.insert(0, plain);
    }
    all
}
