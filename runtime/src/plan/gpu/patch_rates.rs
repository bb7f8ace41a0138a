//! Pyramids on a GPU: the rates that are expected of them.

use super::DevicePlanner;
use super::predict::WARPS;
use super::work::Work;
use super::zones::Between;
use torre_compiler::backend::gpu::Feature;
use torre_compiler::cost::Prediction;
use torre_compiler::lattice::div_ceil;
use torre_compiler::patch::{AXES, CoefPlace, Shape, WARP};
use torre_compiler::scheme::Precision;

/// The constants of the prediction.
struct Fitted {
    /// Instructions that a multiprocessor begins per cycle, each for a warp, and at most for each warp.
    issue: f64,
    each: f64,
    /// Instructions of a step of a patch that are fetched in time, and by how many more all take twice as long.
    fetched: f64,
    unfetched: f64,
    /// Share by which all takes longer with twice as many warps of a block as [`CROWD`], and that in f64 with
    /// coefficients in shared memory, where blocks of 12 and 16 warps are far slower for elastic waves.
    crowded: [f64; 2],
    /// Instructions of a cell for each value that threads exchange, for each coefficient in shared memory, and for
    /// each stage beside its arithmetic.
    exchanged: f64,
    shared: f64,
    more: f64,
    /// Cycles of a stage for which a block waits at its barrier.
    barrier: f64,
    /// Seconds of a launch whose blocks begin before the launch before has ended.
    start: f64,
    /// Where tiles stay: seconds of an exchange, and more for each other block of a multiprocessor; for each access of
    /// a lane to values that a tile holds, as some lanes of most warps store or load alone, with three axes for each
    /// value; for each byte of a halo; and how much longer stages take than stages in the middle of a large grid, as
    /// all wait for the stages at its ends.
    exchange: f64,
    other: f64,
    held: f64,
    rims: f64,
    ends: f64,
    /// Share of the shorter one of computing and copying that blocks of a multiprocessor do not hide, and that the
    /// warps of one block do not, in f32 and f64.
    not_hidden: f64,
    not_hidden_alone: [f64; 2],
    /// The latter where there are less than [`FEW`] rounds of tiles: first loads and last stores are hidden by nothing.
    not_hidden_few: [f64; 2],
    /// Share of its bytes that a value of a halo costs beside the bytes of bases: it comes from the cache.
    halo: f64,
}

/// Two axes: fitted to 217 rates of 7 schemes, 512^2 to 16384^2 cells, in f32 and f64 on several H200 and an H100, and
/// to choices among shapes of the same case. The root of the mean square of the logarithm is 0.072. The fetch of code
/// costs with the square of its length, from the first instruction on.
const PLANE: Fitted = Fitted {
    issue: 3.84,
    each: 0.44,
    fetched: 0.0,
    unfetched: 13600.0,
    crowded: [0.25, 0.46],
    exchanged: 0.79,
    shared: 0.92,
    more: 1.3,
    barrier: 0.0,
    start: 4.7e-6,
    exchange: 1.64e-6,
    other: 0.93e-6,
    held: 0.06e-9,
    rims: 0.0,
    ends: 1.06,
    not_hidden: 0.325,
    not_hidden_alone: [0.49, 0.6],
    not_hidden_few: [0.78, 0.67],
    halo: 0.47,
};

/// Three axes: fitted to 15 runs of 9 shapes of FDTD(2,2) and FDTD(4,2) on an H200, which it meets within 12 % (root of
/// the mean square). One axis: to 22 runs of 7 shapes of waves, also within 12 %.
const OTHER: Fitted = Fitted {
    issue: 4.07,
    each: 0.8,
    fetched: 600.0,
    unfetched: 1500.0,
    crowded: [0.2, 0.5],
    exchanged: 0.22,
    shared: 0.2,
    more: 1.4,
    barrier: 60.0,
    start: 3.5e-6,
    exchange: 1.0e-6,
    other: 0.0,
    held: 0.173e-9,
    rims: 1.0 / 60e9,
    ends: 1.2,
    not_hidden: 0.62,
    not_hidden_alone: [0.83, 1.0],
    not_hidden_few: [0.83, 1.0],
    halo: 0.0,
};

/// Share of the greatest clock at which multiprocessors run while the constants hold, fitted with them: 1.74 of the
/// 1.98 GHz of an H200, whose driver lowers clocks to stay below a limit of power.
const CLOCK: f64 = 0.88;
/// Blocks that a multiprocessor runs at a time, at most.
const MOST_BLOCKS: f64 = 32.0;
/// [`Fitted::unfetched`] of tiles whose rows have the same slots one after the other: one of 40 cells of elastic waves
/// was measured.
const UNFETCHED_AGAIN: f64 = 8000.0;
/// Warps of a block beyond which all take longer.
const CROWD: f64 = 8.0;
/// Seconds of a launch that are hidden where its blocks begin before the launch before has ended.
const EARLY: f64 = 1.6e-6;
/// Registers of a thread beyond which tiles that stay may have values in memory, as exchanges need registers, too, and
/// by how much they compute longer: TE waves of order 2 do 0.86 of what is expected otherwise, of order 4 all of it.
const TIGHT: f64 = 232.0;
const TIGHTER: f64 = 0.04;
/// Bytes that a lane accesses at a time, at most.
const ACCESSED: f64 = 16.0;
/// Instructions of blocks of one warp, which wait for no others, by the instructions that other blocks would have. In
/// f64 they take no longer, but less of copies is hidden. From 22 runs of 7 shapes of waves along one axis, which it
/// meets within 12 %.
const LONE: f64 = 0.9;
const NOT_HIDDEN_LONE: f64 = 0.85;
/// Rounds in which such blocks end one after the other.
const ENDING: f64 = 0.2;
/// Rounds of tiles in which the last one counts as a whole; where there are more, tiles are spread evenly.
const MANY: f64 = 12.0;
/// Rounds of tiles below which [`Fitted::not_hidden_few`] holds.
const FEW: f64 = 4.0;
/// Bytes of shared memory that blocks have to leave of the memory that the first cache shares with it, and by how much
/// tiles take longer otherwise, where they do not stay: elastic waves by two blocks of 106 kB do 0.82 and 0.85 of what
/// is expected without, and by two of 93 kB, with the same code, all of it. That the cache is the reason is a guess.
const LEFT: f64 = 32768.0;
const CRAMMED: f64 = 1.2;
/// Rounds up to which all tiles wait for a tile in a zone, and rounds from which on others run meanwhile.
const BESIDE_ZONES: [f64; 2] = [2.0, 3.0];

/// The tiles of a time block, and how multiprocessors run them.
struct Tiles<'a> {
    work: &'a Work,
    shape: &'a Shape,
    base: [i64; 3],
    height: u64,
    /// Rounds in which blocks that run at once take all tiles, at least 1.
    rounds: f64,
    /// Tiles that a multiprocessor runs side by side.
    together: f64,
    /// Seconds for which a multiprocessor computes these.
    computing: f64,
    /// Seconds for which it copies their values.
    copying: f64,
    /// Share of tiles that lie in zones.
    in_zones: f64,
    /// Seconds by which these take longer.
    longer: f64,
}

impl DevicePlanner<'_> {
    fn fitted(&self) -> &'static Fitted {
        match self.planner.scheme.grid.dimensions() {
            2 => &PLANE,
            _ => &OTHER,
        }
    }

    /// Blocks that a multiprocessor runs side by side. Blocks of one warp are asked for few at a time, so that their
    /// threads have all registers that they need, and there is room for more; other blocks are as many as asked for.
    fn resident_blocks(&self, work: &Work, shape: &Shape) -> f64 {
        let asked = f64::from(shape.blocks.max(1));
        if shape.warps() > 1 {
            return asked;
        }
        let threads = shape.all_threads() as f64;
        let registers = (work.registers(shape, work.words_of(shape)) / 8.0).ceil() * 8.0;
        let room = f64::from(self.model.gpu.registers) / (threads * registers.max(1.0));
        room.floor().min(MOST_BLOCKS).max(asked)
    }

    /// Instructions of a warp for each cell of its lanes in a step.
    fn instructions(&self, work: &Work, shape: &Shape) -> f64 {
        let lanes = self.model.lanes(self.planner.scheme.precision).max(1.0);
        // The warps that could begin an instruction in a cycle have more lanes than there are units for it.
        let slots = work.arithmetic * (WARPS * WARP as f64 / lanes).max(1.0);
        // Values of other rows are stored and loaded, and values of lanes shuffled, once for each word.
        let rows = |n: usize| if shape.threads[n] == 1 { 0.0 } else { 2.0 };
        let weights = [rows(0), rows(1), 1.0];
        let exchanged = (0..3).map(|n| weights[n] * work.across[n] / shape.patch[n] as f64);
        let exchanged = exchanged.sum::<f64>() * work.words;
        let shared = match shape.coefs {
            CoefPlace::Registers => 0.0,
            CoefPlace::Shared => work.coefs * work.words,
        };
        let fitted = self.fitted();
        let beside =
            fitted.exchanged * exchanged + fitted.shared * shared + fitted.more * work.stages;
        // Warps go through the same code, that of a patch, once in each step, each at its own place. An instruction is
        // fetched once, however long it takes.
        let code = work.arithmetic + beside;
        let unfetched = match shape.reuses_slots {
            true => UNFETCHED_AGAIN,
            false => fitted.unfetched,
        };
        let fetching = code * (code * shape.count() as f64 - fitted.fetched).max(0.0) / unfetched;
        let computed = match shape.warps() {
            1 => LONE * (work.arithmetic + beside),
            _ => slots + beside,
        };
        computed + fetching
    }

    /// The clock at which multiprocessors run.
    fn patch_clock(&self) -> f64 {
        self.model.facts.clock as f64 * CLOCK
    }

    /// The prediction of time blocks of pyramids.
    ///
    /// A multiprocessor computes the tiles of its blocks one instruction after the other, and waits for a while in each
    /// stage; loads and stores of one block are hidden behind the computation of others. A launch with few tiles takes
    /// as long as its last round of them; where all run at once they stay, and exchange the values that they need of
    /// each other. Tiles in zones take longer ([`super::zones`]).
    pub(super) fn predict_patches(
        &self,
        work: &Work,
        shape: &Shape,
        base: [i64; 3],
        height: u64,
    ) -> Prediction {
        let (scheme, layout, model) = (self.planner.scheme, &self.planner.layout, self.model);
        let cells = shape.tile().iter().product::<i64>() as f64;
        let stored = base.iter().product::<i64>() as f64;
        let steps = height as f64;
        let element = scheme.precision.bytes() as f64;
        let loaded = work.held + work.loaded_coefs as f64;
        // Values that tiles load of each other come from the cache.
        let halo = self.fitted().halo * (cells - stored) * loaded * element;
        let bytes = stored * ((loaded + work.held) * element + work.zones.bytes) + halo;
        let multiprocessors = f64::from(model.facts.multiprocessors.max(1));
        let copy = bytes / (model.copy_rate / multiprocessors);
        let of_axes = [0, 1, 2].map(|n| div_ceil(layout.extent[AXES[n]], base[n].max(1)));
        let count = of_axes.iter().product::<i64>() as f64;
        // Tiles stay on the chip where all of them run at once.
        let stays = count <= multiprocessors * f64::from(shape.blocks.max(1));
        let blocks = match stays {
            true => f64::from(shape.blocks.max(1)),
            false => self.resident_blocks(work, shape),
        };
        let together = (count / multiprocessors).min(blocks).max(1.0).ceil();
        let tiles = Tiles {
            work,
            shape,
            base,
            height,
            rounds: (count / (multiprocessors * blocks)).max(1.0),
            together,
            computing: self.computing_time(work, shape, height, together),
            copying: together * copy,
            in_zones: work.zones.share(shape, base, of_axes),
            longer: steps * work.zones.cycles(shape) / self.patch_clock(),
        };
        let time = match stays {
            true => self.staying_time(&tiles),
            false => self.launched_time(&tiles),
        };
        let domain = AXES.iter().map(|axis| layout.extent[*axis] as f64);
        let domain = domain.product::<f64>();
        let own = bytes / (stored * steps);
        Prediction {
            rate: domain * steps / time,
            compute: 0.0,
            cache_bytes: own,
            memory_bytes: own,
            footprint: cells * loaded * element,
        }
    }

    /// Seconds for which a multiprocessor computes `together` tiles that run side by side.
    fn computing_time(&self, work: &Work, shape: &Shape, height: u64, together: f64) -> f64 {
        let fitted = self.fitted();
        let fine = self.planner.scheme.precision == Precision::F64;
        let cells = shape.tile().iter().product::<i64>() as f64;
        let steps = height as f64;
        let instructions = self.instructions(work, shape);
        let crowded = fitted.crowded[usize::from(fine && shape.coefs == CoefPlace::Shared)];
        let crowded = 1.0 + crowded * (shape.warps() as f64 / CROWD - 1.0).max(0.0);
        let issue = fitted
            .issue
            .min(fitted.each * shape.warps() as f64 * together);
        let compute = steps * cells / WARP as f64 * instructions / issue * crowded;
        let barrier = match shape.warps() {
            // A warp alone waits for no others.
            1 => 0.0,
            _ => fitted.barrier,
        };
        let barriers = work.stages * if shape.reuses_slots { 2.0 } else { 1.0 };
        (together * compute + steps * barriers * barrier) / self.patch_clock()
    }

    /// Seconds of a time block of tiles that stay on the chip.
    fn staying_time(&self, tiles: &Tiles<'_>) -> f64 {
        let fitted = self.fitted();
        let &Tiles { work, shape, .. } = tiles;
        let element = self.planner.scheme.precision.bytes() as f64;
        let all = shape.tile().iter().product::<i64>();
        let cells = all as f64;
        let rims = element * work.halo(tiles.base, tiles.height, all);
        let accessed = match self.has_patches() {
            true => (ACCESSED / element).min(shape.patch[2] as f64),
            false => 1.0,
        };
        let own = fitted.held * cells * work.held / accessed + fitted.rims * rims;
        let registers = work.registers(shape, work.words_of(shape));
        let tight = self.has_patches() && registers > TIGHT;
        let ends = fitted.ends + if tight { TIGHTER } else { 0.0 };
        let exchange =
            fitted.exchange + fitted.other * (tiles.together - 1.0) + tiles.together * own;
        ends * tiles.computing + exchange + tiles.longer + work.zones.moving(shape, Between::Chip)
    }

    /// Seconds of a time block of tiles that a launch runs in rounds.
    fn launched_time(&self, tiles: &Tiles<'_>) -> f64 {
        let (fitted, gpu) = (self.fitted(), &self.model.gpu);
        let &Tiles {
            work,
            shape,
            rounds,
            together,
            ..
        } = tiles;
        let lone = shape.warps() == 1;
        let counted = match rounds < MANY {
            true if lone => rounds + ENDING,
            true => rounds.ceil(),
            false => rounds,
        };
        // Few tiles of a last round copy faster, where each is alone.
        let copied = if together > 1.0 { counted } else { rounds };
        let (computing, copying) = (counted * tiles.computing, copied * tiles.copying);
        let not_hidden = self.not_hidden(tiles);
        let all = computing.max(copying) + not_hidden * computing.min(copying);
        // Others run beside the tiles in zones where there are many.
        let many = (rounds - BESIDE_ZONES[0]) / (BESIDE_ZONES[1] - BESIDE_ZONES[0]);
        let many = many.clamp(0.0, 1.0);
        let met = 1.0 - many + many * rounds * tiles.in_zones;
        let start = match gpu.has(Feature::EarlyLaunch) {
            true => fitted.start,
            false => fitted.start + EARLY,
        };
        let shared = self.shared_of(work, shape) * f64::from(shape.blocks.max(1));
        let crammed = self.has_patches() && shared + LEFT > f64::from(gpu.shared_per_block);
        let all = if crammed { CRAMMED * all } else { all };
        all + start + met * (tiles.longer + work.zones.moving(shape, Between::Memory))
    }

    /// The share of the shorter one of computing and copying that nothing hides.
    fn not_hidden(&self, tiles: &Tiles<'_>) -> f64 {
        let fitted = self.fitted();
        let fine = self.planner.scheme.precision == Precision::F64;
        match tiles.together > 1.0 {
            true if tiles.shape.warps() == 1 && fine => NOT_HIDDEN_LONE,
            true => fitted.not_hidden,
            false if tiles.rounds < FEW => fitted.not_hidden_few[usize::from(fine)],
            false => fitted.not_hidden_alone[usize::from(fine)],
        }
    }
}
