//! Predictions of runs by towers on a device.

use super::boxes::Boxes;
use super::layers::{Added, Layers};
use super::{Fit, usual_order};
use crate::gpu::DeviceModel;
use crate::gpu::device::Facts;
use torre_compiler::cost::{Choice, Prediction};
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::scheme::{Boundary, Precision, Scheme};
use torre_compiler::tower::{
    AllocatedTowers, Order, StageAllocation, Traffic, View, is_cross_lane,
};

// Fitted to rates on an H200, whose plain copies run at 4.26 TB/s: 130 schedules of FDTD(4,2), in media and with walls,
// and of elasticity, in f32 and f64, W = 4 to 6, TH = 8 to 32, strips of 2 to 12 towers for each of two partitions,
// lines of one block, of two, and in z blocks of 4 to 9 warps; and in f64 33 schedules of FDTD(4,2), W = 4 to 6, lines
// of 128, 256 and 500 values. Waits and code are fitted to 240 rates, most of them those of `tests/measured.rs`, in
// which (2,2) and layers along one axis, two or three have the same weight as all else. The root of the mean square of
// the logarithm of measured by expected is 0.08.

/// Share of the rate of plain copies that towers reach when they load from memory and store there.
const SHARE: f64 = 0.87;
/// Bytes per cycle of a multiprocessor that towers load and store, if that were all they do, while the cache of all
/// multiprocessors has it: 12.6 TB/s for all of an H200, and of an H100, whose memory is slower.
const FLOW: f64 = 48.2;
/// The bytes that may pass between a store and the load of the value by the next column before some loads come from
/// memory, as a share of a partition of that cache; and how many more until all do.
const KEPT: [f64; 2] = [0.35, 1.56];
/// Share of the traffic of a tower at an end of a column that comes from memory: the strip beside it has run long
/// before.
const STRIP: f64 = 0.2;
/// Share of the peak rate of instructions that straight-line code reaches, if that were all there is.
const ISSUE: f64 = 0.567;
/// Warps of a block that could compute in the time that it loses between stages, and how many more of a z block.
const BETWEEN: f64 = 1.1;
const BETWEEN_FACES: [f64; 2] = [0.0, 0.7];
/// Seconds of a stage for which a block waits for another one, and for its loads to arrive, if that were all.
const LATENCY: f64 = 0.475e-6;
/// How much longer for each other block with which it shares lines, for each column of cells of a tower and each cell
/// of a line to which updates read, in both directions and at their own place: the blocks exchange ends of rows.
const AMONG: f64 = 12.8e-9;
/// Seconds of a multiprocessor for a stage of each of its blocks, beside all else: 43 runs of FDTD(2,2), FDTD(4,2) and
/// heat on 64^3 to 160^3 cells of an H100, and FDTD(2,2) on 64^3 to 96^3 of an H200.
const EACH: f64 = 0.048e-6;
/// Instructions of the periods of all alignments that the first cache for them holds, and bytes of instructions per
/// cycle where a period has more.
const CODE: [f64; 2] = [2000.0, 4.8];
/// The same where rows are amended, for the instructions of one alignment: a tower runs its own many times, and warps
/// at the ends of lines evict the code that others share.
const AMENDED_CODE: [f64; 2] = [1900.0, 4.1];
/// Instructions of a period with amendments that the next cache holds, and bytes of the others that come per cycle, in
/// addition.
const FAR_CODE: [f64; 2] = [3330.0, 3.65];
/// Share of the code of each other alignment that evicts a tower's own code where rows are amended.
const OTHER_ALIGNMENTS: f64 = 0.1;
/// Instructions of the periods of all variants and alignments that stay near a multiprocessor while its towers run one
/// or another, and bytes per cycle of others, which come from the L2 cache where a tower begins that runs a variant for
/// few towers.
const COLD_CODE: [f64; 2] = [10200.0, 0.42];
/// Registers of a thread for amendments in variants that only some towers run, besides the values that it keeps; and
/// how much longer these towers take, by the registers that a thread lacks, as a share of the registers that it has.
/// With 112 registers and layers along two axes W = 4, which keeps 43 words, has 592 bytes of a thread in memory and
/// loses 5 % to layers; W = 5, which keeps 70, loses 25 %.
const SOME_AMENDED: [f64; 2] = [70.0, 7.3];
/// The number of cells that an update reads from which on a thread needs more registers for each word that it keeps,
/// and how many: operands of long sums are loaded ahead. By NVIDIA's assembler, waves of order 8, which read 26, have
/// no value in memory with 128 registers where 72 words are kept, with 212 where 118 are, and 57 with 255 where 176
/// are.
const LONG_SUM: usize = 20;
const OF_LONG_SUM: f64 = 1.75;
/// How much longer a stage takes, by the registers that a thread lacks, as a share of the registers that it has: on an
/// H200 D = 3/2 for waves of order 8, with some 53 of 308 in memory, reaches 0.61 of the rate that is expected without
/// spills on lines of 256, 0.63 of 512, 0.76 of 128. It is not known why; moving these values once in a stage takes 3
/// %.
const SPILLED: f64 = 3.0;
/// Seconds that a tower takes before its first stage.
const BEGIN: f64 = 3.0e-6;
/// Stages that a column has to be ahead of the next one, and seconds that are enough.
const WAIT: [f64; 2] = [0.53, 1.1e-6];
/// Periods of a whole tower in the time of one that an end of the grid cuts, which runs row by row in memory, and of
/// one of which an end cuts rows off by predicates.
const CUT: [f64; 2] = [2.55, 1.4];
/// Seconds, for each stage of a time block and each byte of a value of the rows that a tower reads in a step, for which
/// all wait where a strip begins or ends with towers that are cut: 110 microseconds for both ends and 16 stages, for
/// FDTD(4,2) with D = 2 in f32, 256 to 1536 cells along both axes.
const STRIP_END: f64 = 0.875e-9;

/// Instructions that a multiprocessor begins per cycle, each for a warp, and bytes of an instruction.
pub(super) const WARPS: f64 = 4.0;
const INSTRUCTION: f64 = 16.0;
/// Multiprocessors of the groups of a GPU; all blocks of a cluster run in one. An H200 has such, others similar ones.
const GROUPS: [f64; 8] = [16.0, 16.0, 16.0, 16.0, 16.0, 16.0, 18.0, 18.0];
/// Bytes that the cache of all multiprocessors gives or takes at a time, at most.
const PIECE: f64 = 128.0;
/// Such pieces for the ghosts of a row.
const ENDS: f64 = 4.0;
/// Around a ring whose length the pitch of faces does not divide, widths of whole towers in the time of the narrow part
/// of a column: others wait for it.
const NARROW: f64 = 24.0;
/// Seconds of a stage for each row that arrives with ghosts along the inner axis, which towers make: in whole lines,
/// and in z blocks.
const GHOST_ROW: [f64; 2] = [3.0e-9, 1.0e-8];
/// Threads of a warp.
const WARP: f64 = 32.0;

/// Seconds between the starts of two kernels that have little to do.
const START: f64 = 3e-6;

/// Arithmetic instructions of a cell-step.
pub(super) fn arithmetic(scheme: &Scheme) -> usize {
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    updates.map(|u| u.body.arithmetic()).sum()
}

/// Accesses to shared memory per cell-step of towers: reads of other indices along the inner axis, and rows that are
/// put there or taken from there.
pub fn shared_accesses(scheme: &Scheme, layout: &Layout, allocated: &AllocatedTowers) -> f64 {
    let AllocatedTowers {
        towers,
        allocations,
        ..
    } = allocated;
    let View { scheme, layout } = &towers.numbering.view(scheme, layout);
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    let reads = updates.flat_map(|u| u.body.reads());
    let cross_lane = reads
        .filter(|read| is_cross_lane(scheme, layout, read))
        .count();
    let moved = |s: &StageAllocation| {
        s.loads.len() + s.entering.len() + s.publish.len() + s.republish.len()
    };
    let stages = allocations.iter().flat_map(|a| &a.stages);
    let rows: usize = stages.map(moved).sum();
    let alignments = allocations.len().max(1) as f64;
    cross_lane as f64 + rows as f64 / (alignments * towers.cells() * towers.steps as f64)
}

/// Bytes that plain copies move in the time that layerwise kernels take for a place near faces of boxes of total
/// fields: 0.41 milliseconds a step for 25 million places, 512^3 cells on an H200.
const CORRECTED: f64 = 70.0;

/// The same where values are corrected at `places` places near faces of boxes of total fields.
pub fn correcting(layerwise: Choice, scheme: &Scheme, places: u64, copy_rate: f64) -> Choice {
    let cells = scheme.grid.cell_count();
    let mut prediction = layerwise.prediction;
    let step = cells / prediction.rate + places as f64 * CORRECTED / copy_rate;
    prediction.rate = cells / step;
    Choice {
        prediction,
        ..layerwise
    }
}

/// Registers that a thread lacks for its values, as a share of the registers that it has.
fn spilled(scheme: &Scheme, fit: &Fit) -> f64 {
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    let reads = updates.map(|update| update.body.reads().count()).max();
    if reads.unwrap_or(0) < LONG_SUM {
        return 0.0;
    }
    let words = (fit.kept * scheme.precision.bytes()) as f64 / 4.0;
    let registers = f64::from(fit.block.roles.registers);
    (words * OF_LONG_SUM / registers - 1.0).max(0.0)
}

/// How a problem slows towers down.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slowdown {
    /// Share of the periods that points keep from running as interior ones.
    pub cut: f64,
    /// Instructions of a cell-step for volume sources.
    pub volumes: f64,
    /// The cost of boxes of total fields.
    pub boxes: Boxes,
}

/// The prediction of time blocks of towers of `height` steps each, if the problem slows them down as given.
///
/// For a stage of each of its blocks, a multiprocessor has four things to do, which overlap in part: the time is the
/// cube root of the sum of their cubes. They are its bytes, at a rate near the shared cache's as far as values that one
/// column stores are still there when the next one loads them; its instructions, and fetching them where a period has
/// more than the cache for them holds; latencies that nothing hides. Columns of [`usual_order`]'s width follow each
/// other: with all multiprocessors of a partition busy, the next one is a *lag* of height * stages * width /
/// multiprocessors stages behind, and if that is little, many wait. Towers that an end of the grid cuts count several
/// times, and a time block ends when its last tower has.
pub fn towers(
    scheme: &Scheme,
    fit: &Fit,
    height: u64,
    slowdown: Slowdown,
    model: &DeviceModel,
) -> Prediction {
    let times = TowerTimes::new(scheme, fit, height, slowdown, model);
    let layers = &times.layers;
    let [some, more] = times.of_stage();
    let time = some + layers.share * (more - some);
    let time = time * slowdown.boxes.times() * (1.0 + SPILLED * spilled(scheme, fit));
    let [x, y, z] = times.cells;
    Prediction {
        rate: x * y * z * times.steps / times.of_time_block(time),
        compute: times.computing(Added::default()),
        cache_bytes: times.own + layers.bytes,
        memory_bytes: times.column + layers.bytes,
        footprint: f64::from(fit.block.shared_bytes),
    }
}

/// The quantities from which the time of time blocks of towers follows.
struct TowerTimes<'p> {
    scheme: &'p Scheme,
    fit: &'p Fit,
    slowdown: Slowdown,
    model: &'p DeviceModel,
    layers: Layers,
    /// Steps of a time block, and stages of a step.
    steps: f64,
    stages: f64,
    cells: [f64; 3],
    /// Values of a line that a launch advances.
    length: f64,
    /// Launches of a time block: threads that wait for their part of a z block take as long as others.
    launches: f64,
    /// The share of these values that a launch stores.
    part: f64,
    /// Blocks that a multiprocessor runs.
    blocks: f64,
    /// Blocks of a cluster. The multiprocessors that run them are like one that does more at once.
    together: f64,
    /// Such multiprocessors.
    multiprocessors: f64,
    clock: f64,
    /// Bytes per cell-step that a tower moves, and that a column does.
    own: f64,
    column: f64,
    /// Cell-steps of a stage of a tower, a step's work being shared evenly among its stages.
    stage: f64,
    order: Order,
    /// Towers of a strip, as far as the grid has them.
    width: f64,
}

impl<'p> TowerTimes<'p> {
    fn new(
        scheme: &'p Scheme,
        fit: &'p Fit,
        height: u64,
        slowdown: Slowdown,
        model: &'p DeviceModel,
    ) -> TowerTimes<'p> {
        let element = scheme.precision.bytes() as f64;
        let cells: [f64; 3] = scheme.grid.cells.0.map(|n| n as f64);
        let (towers, block) = (&fit.allocated.towers, &fit.block);
        let (steps, stages) = (height as f64, scheme.stages.len() as f64);
        let all = steps as u64 * scheme.stages.len() as u64;
        let values = cells[Axis::INNER.index()];
        let (length, launches) = match block.lines.z_blocks() {
            Some(z_blocks) => (f64::from(block.values), z_blocks.weight(all).unwrap_or(1.0)),
            None => (values, 1.0),
        };
        // A launch loads more values than it stores: twice the ones that z blocks have in common.
        let [part, twice] = match fit.z_blocks(scheme, height) {
            Some(count) => {
                let count = count.max(1) as f64;
                let twice = (count - 1.0) * fit.in_common / values;
                [values / (count * length), 1.0 + twice]
            }
            None => [1.0; 2],
        };
        let bytes = |Traffic { loads, stores }: Traffic| {
            (loads * twice + stores) * element / (towers.cells() * towers.steps as f64)
        };
        let [own, column] = [towers.traffic(), towers.traffic_of_column()].map(bytes);
        // Threads get all registers that one block of a cluster leaves them.
        let blocks = match block.lines.cluster() {
            1 => model.resident(block, fit.registers) as f64,
            _ => 1.0,
        };
        let together = f64::from(block.lines.cluster());
        let used = GROUPS.map(|n| (n / together).floor() * together);
        let whole_clusters = used.iter().sum::<f64>() / GROUPS.iter().sum::<f64>();
        let multiprocessors =
            f64::from(model.facts.multiprocessors.max(1)) * whole_clusters / together;
        let order = usual_order(scheme, towers, block, height, &model.facts);
        let most = cells[Axis::MIDDLE.index()] / (2.0 * towers.cells()).sqrt();
        TowerTimes {
            scheme,
            fit,
            slowdown,
            model,
            layers: Layers::new(scheme, towers, height),
            steps,
            stages,
            cells,
            length,
            launches,
            part,
            blocks,
            together,
            multiprocessors: multiprocessors.floor().max(1.0),
            clock: model.facts.clock.max(1) as f64,
            own,
            column,
            stage: towers.cells() * length / stages,
            order,
            width: (order.width as f64).min(most),
        }
    }

    /// Seconds of instructions of a cell-step, with the instructions that amendments add.
    fn computing(&self, added: Added) -> f64 {
        let (block, precision) = (&self.fit.block, self.scheme.precision);
        let each = arithmetic(self.scheme) as f64 * (WARPS * WARP / self.model.lanes(precision))
            + self.fit.accesses
            + self.slowdown.volumes;
        // Threads beyond the end of a part compute, too.
        let warps = (f64::from(block.values) / WARP).ceil();
        let double = usize::from(precision == Precision::F64);
        let faces = if block.lines.z_blocks().is_some() {
            BETWEEN_FACES[double]
        } else {
            0.0
        };
        let threads = (warps + BETWEEN + faces) * WARP * self.together;
        (each + added.run) * threads
            / self.length
            / (WARPS * WARP * self.together * ISSUE * self.clock)
    }

    /// Instructions of a period of one alignment, with the code that amendments add.
    fn code(&self, added: Added) -> f64 {
        let towers = &self.fit.allocated.towers;
        let each = arithmetic(self.scheme) as f64 + self.fit.accesses + added.code;
        towers.cells() * towers.steps as f64 * each
    }

    /// Seconds in which a stage of a tower fetches its instructions, with the code that amendments add.
    fn fetching(&self, added: Added) -> f64 {
        let towers = &self.fit.allocated.towers;
        let code = self.code(added);
        let cycles = |instructions: f64, rate: f64| instructions * INSTRUCTION / rate;
        let cycles = if added.code > 0.0 {
            let [[held, rate], [near, far_rate]] = [AMENDED_CODE, FAR_CODE];
            let others = towers.alignments.len() as f64 - 1.0;
            let code = code * (1.0 + OTHER_ALIGNMENTS * others);
            let all = if code > held { cycles(code, rate) } else { 0.0 };
            all + cycles((code - near).max(0.0), far_rate)
        } else {
            let [held, rate] = CODE;
            let all = code * towers.alignments.len() as f64;
            if all > held { cycles(code, rate) } else { 0.0 }
        };
        cycles / (towers.steps as f64 * self.stages * self.clock)
    }

    /// Seconds in which the bytes of a stage of a tower move, with states that amendments read and write, which come
    /// from memory.
    fn flowing(&self, added: Added) -> f64 {
        let facts = &self.model.facts;
        let passed = self.steps * self.stages * self.width * self.stage * self.part * self.own;
        let [kept, more] = KEPT;
        let held = facts.l2.max(1) as f64 / f64::from(facts.partitions());
        let lost = ((passed / held - kept) / more).clamp(0.0, 1.0);
        let lost = lost + (1.0 - lost) * STRIP / self.order.width as f64;
        // Ghosts at both ends of a line, where they are in memory, are pieces of a row of their own. Small pieces cost
        // more than others.
        let ends = self.scheme.grid.boundary[Axis::INNER] != [Boundary::Zero; 2];
        let ends = ends && self.fit.block.ghosts.is_none();
        let line = self.length * self.scheme.precision.bytes() as f64;
        let pieces = if ends { 1.0 + ENDS * PIECE / line } else { 1.0 };
        let cache = FLOW * f64::from(facts.multiprocessors.max(1)) * self.clock;
        let near = (1.0 - lost) * self.own * pieces / cache;
        let far = (lost * self.column / SHARE + added.bytes) / self.model.copy_rate;
        self.stage * self.part * (near + far) * self.multiprocessors
    }

    /// Seconds of a stage of one tower, where a multiprocessor runs several: while one waits, others work. In the first
    /// variant, and where towers meet zones that not all towers meet.
    fn of_stage(&self) -> [f64; 2] {
        let reach = self.scheme.reach()[Axis::INNER];
        let read = 1.0 + f64::from(reach.iter().sum::<i32>());
        let among = AMONG * self.fit.allocated.towers.cells() * read;
        let latency = LATENCY + among * (self.together - 1.0);
        let [some, more] = self.layers.added.map(|added| {
            let parts = [
                latency,
                self.blocks * self.flowing(added),
                self.blocks * self.stage * self.computing(added),
                self.blocks * self.fetching(added),
            ];
            let time = parts.map(|t| t.powi(3)).iter().sum::<f64>().cbrt();
            (time + self.making_ghosts()) / self.blocks + EACH
        });
        [some, more * self.spilling() + self.fetching_anew()]
    }

    /// Seconds of a stage in which a warp at an end of a line makes ghosts of rows that arrive.
    fn making_ghosts(&self) -> f64 {
        // Others work meanwhile.
        if self.fit.block.ghosts.is_none() || self.blocks > 1.0 {
            return 0.0;
        }
        let z_blocks = self.fit.block.lines.z_blocks().is_some();
        let stages = self
            .fit
            .allocated
            .allocations
            .iter()
            .flat_map(|a| &a.stages);
        let rows = stages.clone().flat_map(|stage| &stage.loads);
        let rows = rows.filter(|copy| copy.cross_lane).count();
        GHOST_ROW[usize::from(z_blocks)] * rows as f64 / stages.count().max(1) as f64
    }

    /// How much longer a stage takes in variants that only some towers run, where registers are too few for them.
    fn spilling(&self) -> f64 {
        let [amended, slower] = SOME_AMENDED;
        let words = (self.fit.kept * self.scheme.precision.bytes()) as f64 / 4.0;
        let registers = f64::from(self.fit.block.roles.registers);
        1.0 + slower * ((words + amended) / registers - 1.0).max(0.0)
    }

    /// Seconds of a stage in which towers that run a variant for few towers fetch code that others have evicted.
    fn fetching_anew(&self) -> f64 {
        let towers = &self.fit.allocated.towers;
        let [first, some] = self.layers.added.map(|added| self.code(added));
        let others = towers.variants.all.len().saturating_sub(1) as f64;
        let all = (first + others * some) * towers.alignments.len() as f64;
        let [held, rate] = COLD_CODE;
        let evicted = (1.0 - held / all).max(0.0);
        evicted * some * INSTRUCTION / (rate * self.clock * self.steps * self.stages)
    }

    /// The towers of a time block, of which towers that an end of the grid cuts count several times.
    fn running(&self) -> f64 {
        let towers = &self.fit.allocated.towers;
        let [x, y, _] = self.cells;
        let by = towers.advance.array().map(|n| n.abs() as f64);
        let wide = (2.0 * towers.cells()).sqrt();
        let reach = wide + by[0].max(by[1]);
        // Around a ring there is one end instead of two.
        let beyond = match towers.rings.cells[1] {
            Some(_) if towers.rings.narrow => NARROW * wide,
            Some(_) => 0.0,
            None => reach,
        };
        let all = (x + reach) * (y + beyond);
        let inner = (x - reach).max(0.0) * (y - reach).max(0.0);
        let [rows, clipped] = CUT;
        let cut = self.slowdown.cut;
        let running = inner * (1.0 - cut + rows * cut) + clipped * (all - inner);
        running / towers.cells()
    }

    /// Seconds of a time block for which all wait where strips begin or end with towers that are cut.
    fn waits(&self) -> f64 {
        let (scheme, towers) = (self.scheme, &self.fit.allocated.towers);
        let [x, y, _] = self.cells;
        // Strips end at the sides of the grid, at each as often as it is long; around a ring of the middle axis, at the
        // others only.
        let clips = towers.predicating_ends(scheme);
        let along_x = towers.rings.cells[1].map_or(x, |_| 0.0);
        let sides = [(0, y), (1, along_x)];
        let closed = sides.map(|(axis, long)| {
            // Strips lie at a mirror of the middle axis all along; towers only begin or end at one of the outer axis.
            let waits = |side: usize| {
                !clips[axis][side] || axis == 1 && towers.mirrored.is_closed(axis, side)
            };
            long * (0..2).filter(|side| waits(*side)).count() as f64
        });
        let closed = closed.iter().sum::<f64>() / (2.0 * sides.iter().map(|s| s.1).sum::<f64>());
        let wide = (2.0 * towers.cells()).sqrt();
        let strips = (x + y) / (wide * self.width).max(1.0);
        let updates = scheme.stages.iter().flat_map(|s| &s.updates);
        let reads = updates.flat_map(|u| u.body.reads()).count() as f64 + self.layers.loads;
        let element = scheme.precision.bytes() as f64;
        let ends = STRIP_END * element * towers.cells() * reads * self.steps * self.stages;
        // Blocks that wait near one partition hold up blocks near others in part.
        2.0 * ends * closed * strips * 2.0 / (1.0 + f64::from(self.order.partitions))
    }

    /// Seconds in which a time block loads all fields and coefficients from memory and stores the fields there, once:
    /// the cache of all multiprocessors has nothing of the time block before.
    fn through_memory(&self) -> f64 {
        let levels = self.scheme.components.iter().map(|c| c.time_levels);
        let fields: f64 = levels.map(f64::from).sum();
        let values = 2.0 * fields + self.scheme.full_coefs() as f64;
        let cells: f64 = self.cells.iter().product();
        let bytes = cells * values * self.scheme.precision.bytes() as f64;
        bytes / (SHARE * self.model.copy_rate)
    }

    /// Seconds of a time block, with the seconds of a stage of one tower.
    fn of_time_block(&self, time: f64) -> f64 {
        let (steps, stages, blocks) = (self.steps, self.stages, self.blocks);
        let partitions = f64::from(self.order.partitions);
        let lag = steps * stages * self.width * partitions / (self.multiprocessors * blocks);
        let running = self.running();
        let [stages_ahead, enough] = WAIT;
        let ahead = stages_ahead.min(enough / (time * blocks));
        let busy = (running / (self.multiprocessors * blocks)).min(1.0) / 1f64.hypot(ahead / lag);
        let tower = steps * stages * time + BEGIN / blocks;
        let starts = if self.fit.allocated.towers.rings.seam.is_some() {
            2.0
        } else {
            1.0
        };
        let time_block = starts * (START + tower * blocks)
            + tower * running / (self.multiprocessors * busy)
            + self.waits();
        let times = [self.launches * time_block, self.through_memory()];
        times.map(|t| t.powi(3)).iter().sum::<f64>().cbrt()
    }
}

/// A part of a run: a share of its steps, and the prediction of a run of such steps alone.
#[derive(Clone, Debug)]
pub struct PartOfRun {
    pub share: f64,
    pub prediction: Prediction,
}

/// A run of some parts whose other steps are layerwise; `highest`: a run by the highest time blocks alone.
pub fn mixed(highest: Prediction, parts: &[PartOfRun], layerwise: &Prediction) -> Prediction {
    let left = 1.0 - parts.iter().map(|part| part.share).sum::<f64>();
    let mean = |of: fn(&Prediction) -> f64| {
        let parts = parts.iter().map(|part| part.share * of(&part.prediction));
        parts.sum::<f64>() + left.max(0.0) * of(layerwise)
    };
    Prediction {
        rate: 1.0 / mean(|of| 1.0 / of.rate),
        cache_bytes: mean(|of| of.cache_bytes),
        memory_bytes: mean(|of| of.memory_bytes),
        ..highest
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
