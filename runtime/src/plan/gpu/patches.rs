//! Pyramids that blocks of threads keep in registers: their shapes, what they need, and what they are expected to do.

use super::shapes;
use super::work::Work;
use super::{DevicePlanner, NoPlan, Refusal};
use crate::gpu::Heights;
use torre_compiler::cost::{Choice, Prediction};
use torre_compiler::lattice::{Axis, PerAxis, div_ceil};
use torre_compiler::patch::{
    AXES, CoefPlace, MOST_TILES, Misfit, PatchProgram, Shape, WARP, creep,
};
use torre_compiler::schedule::{Pyramid, Schedule};
use torre_compiler::scheme::{Precision, Scheme};

/// Steps of time blocks that `auto` tries.
const HEIGHTS: [u64; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128];
/// Those that it tries with three axes.
const LOW: [u64; 3] = [1, 2, 3];
/// Blocks that a multiprocessor may hold.
const RESIDENT: [u32; 4] = [4, 3, 2, 1];
/// Programs that are made for `auto`, and for bases that are given.
const MADE: usize = 6;

/// What a thread can have, and what is left of shared memory beside that of blocks.
const MOST_REGISTERS: u64 = 255;
const PER_BLOCK: u64 = 1 << 10;

// What is expected, as fitted to 83 shapes of schemes with two axes on an H200 and an H100, which it meets within
// 13 % (root of the mean square); in f64 corrected by 50 more of two H200, which it meets within 16 % but for elastic
// waves by more than 8 warps.

/// Instructions that a multiprocessor begins per cycle, each for a warp, and at most for each warp.
const ISSUE: f64 = 4.07;
const EACH: f64 = 0.8;
/// Blocks that a multiprocessor runs at a time, at most.
const MOST_BLOCKS: f64 = 32.0;
/// Instructions of a step of a patch that are fetched in time, and by how many more all take twice as long.
const FETCHED: f64 = 600.0;
const UNFETCHED: f64 = 1500.0;
/// Warps of a block beyond which all take longer, and the share that as many again add; and that in f64 with
/// coefficients in shared memory, where blocks of 12 and 16 warps are far slower for elastic waves.
const CROWD: f64 = 8.0;
const CROWDED: [f64; 2] = [0.2, 0.5];
/// Instructions of a cell for each value that threads exchange, for each coefficient in shared memory, and for each stage
/// beside its arithmetic.
const EXCHANGED: f64 = 0.22;
const SHARED: f64 = 0.2;
const MORE: f64 = 1.4;
/// Cycles of a stage for which a block waits.
const MEET: f64 = 60.0;
/// Seconds of a launch.
const START: f64 = 5.1e-6;
/// Seconds of an exchange of tiles that stay, and how much longer their stages take than those in the middle of a large
/// grid: all wait for those at its ends.
const EXCHANGE: f64 = 1.5e-6;
const ENDS: f64 = 1.85;
/// With three axes: seconds of an exchange, and for each byte of a halo; and how much longer stages take, in which more
/// comes from other threads and conditions are for each cell. From 6 runs of 4 shapes on an H100, which it meets within
/// 12 % (root of the mean square).
const EXCHANGE_IN_SPACE: f64 = 4.5e-6;
const RIMS: f64 = 1.0 / 30e9;
const IN_SPACE: f64 = 1.7;
/// Blocks that a multiprocessor holds with three axes, at most.
const MOST_BLOCKS_IN_SPACE: u32 = 4;
/// Share of the shorter one of computing and copying that blocks of a multiprocessor do not hide, and that the warps of
/// one block do not, in f32 and f64.
const APART: f64 = 0.62;
const ALONE: [f64; 2] = [0.83, 1.0];
/// Share by which blocks of the last round of a launch are faster where a multiprocessor has fewer of them.
const LAST: f64 = 0.4;

/// The pyramids of a schedule.
#[derive(Clone, Debug)]
pub struct PatchPlan {
    pub pyramid: Pyramid,
    pub program: PatchProgram,
    /// Registers that a thread needs, about.
    pub registers: u64,
    /// Of a block.
    pub shared_bytes: u64,
    /// Of all rooms for states of zones.
    pub room_bytes: u64,
}

/// A shape for some pyramids, as far as is known before there is a program.
#[derive(Clone, Debug)]
struct Sketch {
    shape: Shape,
    pyramid_base: [i64; 3],
    height: u64,
    prediction: Prediction,
}

/// Words of values that a thread of a program holds.
fn words_of(scheme: &Scheme, program: &PatchProgram) -> f64 {
    (program.values() * scheme.precision.bytes()) as f64 / 4.0
}

/// Bytes of all rooms of a program.
fn room_bytes(scheme: &Scheme, program: &PatchProgram) -> u64 {
    program
        .rooms
        .bytes(&program.shape, scheme.precision.bytes())
}

/// Registers that a thread can have if a multiprocessor holds so many blocks.
fn registers_of(shape: &Shape, registers: u32) -> u64 {
    let threads = shape.all_threads() as u64 * u64::from(shape.blocks.max(1));
    (u64::from(registers) / threads / 8 * 8).min(MOST_REGISTERS)
}

impl DevicePlanner<'_> {
    /// Whether there are pyramids in the place of towers: for schemes with one or two axes.
    pub(super) fn has_patches(&self) -> bool {
        !self.has_towers()
    }

    /// Why a problem keeps pyramids from running at all.
    pub(super) fn no_patches(&self) -> Option<Refusal> {
        let (bytes, memory) = (self.planner.layout.bytes(), self.model.facts.memory);
        if bytes.saturating_mul(2) > memory / 16 * 15 {
            return Some(Refusal::SecondArray { bytes, memory });
        }
        let points = self.interruptions.too_many_cells;
        points.then_some(Refusal::Points)
    }

    /// The plan of pyramids of some base and height, and what it is expected to do.
    pub fn patch_plan(&self, pyramid: &Pyramid) -> Result<(PatchPlan, Prediction), Refusal> {
        if let Some(refusal) = self.no_patches() {
            return Err(refusal);
        }
        let Some(base) = self.asked(pyramid) else {
            return Err(Refusal::Patches(Misfit::Size));
        };
        let sketches = self.sketches(&[pyramid.height], base);
        let mut refusal = None;
        for sketch in sketches.iter().take(8 * MADE) {
            match self.made(sketch, pyramid) {
                Ok(found) => return Ok(found),
                Err(other) => refusal = refusal.or(Some(other)),
            }
        }
        Err(refusal.unwrap_or_else(|| self.too_wide(pyramid, base)))
    }

    /// The pyramids that are expected to be fastest.
    pub(super) fn usual_patches(&self) -> Vec<Choice> {
        if self.no_patches().is_some() {
            return Vec::new();
        }
        let heights: &[u64] = match self.has_patches() {
            true => &HEIGHTS,
            false => &LOW,
        };
        let mut found: Vec<Choice> = Vec::new();
        for sketch in self.sketches(heights, [None; 3]) {
            let base = sketch.pyramid_base;
            let pyramid = self.pyramid(base, sketch.height);
            let schedule = Schedule::Pyramids(pyramid.clone());
            if found.iter().any(|c| c.schedule == schedule) {
                continue;
            }
            // Another shape may be better for the same pyramids.
            if let Ok((_, prediction)) = self.patch_plan(&pyramid) {
                let height = sketch.height;
                let [b, y, z] = base;
                let name = match self.planner.scheme.grid.dimensions() {
                    1 => format!("pyramid(B = {z}, TH = {height})"),
                    3 if y != b => self.by_axes(base, height),
                    _ => format!("pyramid(B = {b}, TH = {height}, Z = {z})"),
                };
                found.push(Choice {
                    name,
                    schedule,
                    prediction: self.with_interruptions(prediction, pyramid.height),
                });
            }
            if found.len() == MADE {
                break;
            }
        }
        found
    }

    /// A choice of pyramids.
    pub(super) fn patch_member(&self, name: String, pyramid: &Pyramid) -> Result<Choice, NoPlan> {
        let plan = self.patch_plan(pyramid);
        let (_, prediction) = plan.map_err(|refusal| self.refused(&name, refusal))?;
        Ok(Choice {
            prediction: self.with_interruptions(prediction, pyramid.height),
            name,
            schedule: Schedule::Pyramids(pyramid.clone()),
        })
    }

    fn with_interruptions(&self, prediction: Prediction, height: u64) -> Prediction {
        let heights = patch_heights(self.planner.scheme, height);
        let share = self.interruptions.share_of(heights, self.problem.steps);
        super::predict::mixed(prediction, &self.layerwise.prediction, share)
    }

    /// Pyramids as one writes them axis by axis.
    fn by_axes(&self, base: [i64; 3], height: u64) -> String {
        let grid = &self.planner.scheme.grid;
        let of = |n: usize| format!("{}: pyramid(base = {})", grid.axis_name(AXES[n]), base[n]);
        let [x, y, z] = [0, 1, 2].map(of);
        format!("{x} height {height}; {y}; {z}")
    }

    /// Bases along the axes, as far as they are given; `None` if one is not positive.
    fn asked(&self, pyramid: &Pyramid) -> Option<[Option<i64>; 3]> {
        let base = AXES.map(|axis| pyramid.base[axis]);
        let positive = base.iter().flatten().all(|base| *base >= 1);
        (positive && pyramid.height >= 1).then_some(base)
    }

    /// Shapes for pyramids of some heights, the one that is expected to be fastest first.
    fn sketches(&self, heights: &[u64], base: [Option<i64>; 3]) -> Vec<Sketch> {
        let (scheme, layout) = (self.planner.scheme, &self.planner.layout);
        let work = Work::new(scheme, layout);
        let round = u64::from(scheme.phases()).max(1);
        let mut heights: Vec<u64> = heights
            .iter()
            .map(|height| (height / round).max(1) * round)
            .collect();
        heights.dedup();
        let mut sketches = Vec::new();
        let shapes = shapes::all(scheme);
        for height in heights {
            let halo = self.halo(height);
            for &shape in &shapes {
                let base = self.base_of(&shape, halo, base);
                let sketch = base.and_then(|base| self.sketch(&work, shape, base, height));
                sketches.extend(sketch);
            }
        }
        sketches.sort_by(|a, b| b.prediction.rate.total_cmp(&a.prediction.rate));
        sketches
    }

    /// The base of a tile whose halo is known, as wide as it allows where nothing is asked for; `None` if there is none.
    fn base_of(
        &self,
        shape: &Shape,
        halo: [[i64; 2]; 3],
        asked: [Option<i64>; 3],
    ) -> Option<[i64; 3]> {
        let layout = &self.planner.layout;
        let tile = shape.tile();
        let three = !self.has_patches();
        let line = 4.min(shape.patch[2]);
        let mut base = [1; 3];
        for (n, axis) in AXES.into_iter().enumerate() {
            if self.planner.scheme.grid.axes[axis].is_none() {
                continue;
            }
            let halo = match axis {
                Axis::INNER => halo[n].map(|n| div_ceil(n, line) * line),
                _ => halo[n],
            };
            let extent = layout.extent[axis];
            let reach: i64 = layout.reach[axis].map(i64::from).iter().sum();
            let ring = self.planner.scheme.grid.is_periodic(axis);
            let whole = !ring && extent + reach <= tile[n] && asked[n].is_none_or(|b| b >= extent);
            let room = tile[n] - halo.iter().sum::<i64>();
            base[n] = match (whole, asked[n]) {
                (true, _) => extent,
                (false, Some(base)) => base.min(extent),
                // Bases of equal width, from a patch on; with three axes from what is accessed together on.
                (false, None) if room > 0 => {
                    let tiles = div_ceil(extent, room);
                    let from = match (three, axis) {
                        (false, _) => shape.patch[n],
                        (true, Axis::INNER) => line,
                        (true, _) => 1,
                    };
                    let even = div_ceil(div_ceil(extent, tiles), from) * from;
                    even.min(room)
                }
                (false, None) => return None,
            };
            if !whole && base[n] > room {
                return None;
            }
        }
        let tiles = [0, 1, 2].map(|n| div_ceil(layout.extent[AXES[n]], base[n]));
        let possible = match three {
            false => tiles[0] <= MOST_TILES,
            true => tiles.iter().product::<i64>() <= self.most_at_once(MOST_BLOCKS_IN_SPACE),
        };
        possible.then_some(base)
    }

    /// Tiles that run at the same time where a multiprocessor holds so many blocks.
    fn most_at_once(&self, blocks: u32) -> i64 {
        i64::from(self.model.facts.multiprocessors) * i64::from(blocks.max(1))
    }

    /// How far wrong values come in time blocks of some height.
    fn halo(&self, height: u64) -> [[i64; 2]; 3] {
        let (scheme, layout) = (self.planner.scheme, &self.planner.layout);
        AXES.map(|axis| match scheme.grid.axes[axis] {
            Some(_) => creep(scheme, layout, axis, height),
            None => [0; 2],
        })
    }

    /// The plan of pyramids of a shape, whatever it needs: the assembler may have to keep values in memory.
    pub fn shaped(&self, shape: Shape, height: u64) -> Result<(PatchPlan, Prediction), Refusal> {
        let (scheme, layout) = (self.planner.scheme, &self.planner.layout);
        let round = u64::from(scheme.phases()).max(1);
        let height = (height / round).max(1) * round;
        let base = self.base_of(&shape, self.halo(height), [None; 3]);
        let base = base.ok_or(Refusal::Patches(Misfit::Size))?;
        let pyramid = self.pyramid(base, height);
        let program = PatchProgram::new(scheme, layout, &pyramid, shape);
        let program = self.at_once(program.map_err(Refusal::Patches)?)?;
        let most = registers_of(&shape, self.model.gpu.registers);
        let shared_bytes = program.shared_bytes(scheme.precision.bytes());
        let work = Work::new(scheme, layout);
        let needed = work.registers(words_of(scheme, &program)).ceil() as u64;
        let prediction = self.predict_patches(&work, &shape, base, height);
        let plan = PatchPlan {
            pyramid,
            room_bytes: room_bytes(scheme, &program),
            program,
            registers: needed.min(most),
            shared_bytes,
        };
        Ok((plan, prediction))
    }

    /// The program whose tiles stay on the chip if all of them run at the same time; with three axes they have to.
    fn at_once(&self, mut program: PatchProgram) -> Result<PatchProgram, Refusal> {
        let (tiles, most) = (program.tiles(), self.most_at_once(program.shape.blocks));
        if tiles <= most {
            program.stay(&self.planner.layout);
        }
        match (program.three, &program.stays) {
            (true, None) if tiles > most => Err(Refusal::Patches(Misfit::Many { tiles, most })),
            (true, None) => Err(Refusal::Patches(Misfit::Neighbours)),
            _ => Ok(program),
        }
    }

    /// Pyramids of some base and height.
    fn pyramid(&self, base: [i64; 3], height: u64) -> Pyramid {
        let present = |axis: Axis| self.planner.scheme.grid.axes[axis].is_some();
        Pyramid {
            height,
            base: PerAxis([0, 1, 2].map(|n| present(AXES[n]).then_some(base[n]))),
        }
    }

    /// A shape for pyramids of some base and height, with as many blocks at a time as are expected to be best.
    fn sketch(&self, work: &Work, shape: Shape, base: [i64; 3], height: u64) -> Option<Sketch> {
        let model = self.model;
        let threads = shape.all_threads() as f64;
        let cells = shape.count() as f64;
        let needed = work.registers(work.words_of(&shape));
        if needed > MOST_REGISTERS as f64 {
            return None;
        }
        let bytes = 4.0 * work.words;
        let [px, py, pz] = shape.patch;
        let along = |n: usize, section: i64| match shape.threads[n] {
            1 => 0.0,
            _ => work.across[n] * section as f64,
        };
        let slots = along(0, py * pz) + along(1, px * pz);
        let slots = if self.has_patches() {
            slots
        } else {
            slots.min(work.held * cells)
        };
        let coef_cells = match shape.coefs {
            CoefPlace::Registers => 0.0,
            CoefPlace::Shared => work.loaded_coefs as f64 * cells,
        };
        let ghosts = match self.has_patches() {
            true => 0.0,
            false => shapes::ghosts(self.planner.scheme, &shape),
        };
        let shared = ((slots + coef_cells) * threads + ghosts) * bytes;
        let tiles = [0, 1, 2].map(|n| div_ceil(self.planner.layout.extent[AXES[n]], base[n]));
        let tiles = tiles.iter().product::<i64>();
        let fits = |blocks: u32| {
            let shape = Shape { blocks, ..shape };
            let most = u64::from(model.gpu.shared_per_block) + PER_BLOCK;
            let each = shared as u64 + PER_BLOCK;
            let stays = self.has_patches() || tiles <= self.most_at_once(blocks);
            stays
                && needed <= registers_of(&shape, model.gpu.registers) as f64
                && each * u64::from(blocks) <= most
                && threads as u32 * blocks <= model.gpu.threads
        };
        // Of those that are as good, the last one is taken: the one with most blocks.
        let blocks = RESIDENT.into_iter().rev();
        let blocks = blocks.filter(|blocks| fits(*blocks));
        let made = blocks.map(|blocks| {
            let shape = Shape { blocks, ..shape };
            Sketch {
                shape,
                pyramid_base: base,
                height,
                prediction: self.predict_patches(work, &shape, base, height),
            }
        });
        made.max_by(|a, b| a.prediction.rate.total_cmp(&b.prediction.rate))
    }

    /// The program of a sketch, if it fits.
    fn made(&self, sketch: &Sketch, pyramid: &Pyramid) -> Result<(PatchPlan, Prediction), Refusal> {
        let (scheme, layout) = (self.planner.scheme, &self.planner.layout);
        let program = PatchProgram::new(scheme, layout, pyramid, sketch.shape);
        let program = self.at_once(program.map_err(Refusal::Patches)?)?;
        let work = Work::new(scheme, layout);
        let registers = work.registers(words_of(scheme, &program)).ceil() as u64;
        let shared_bytes = program.shared_bytes(scheme.precision.bytes());
        let blocks = u64::from(sketch.shape.blocks.max(1));
        let most = registers_of(&sketch.shape, self.model.gpu.registers);
        if registers > most {
            let needed = registers;
            return Err(Refusal::Patches(Misfit::Registers { needed, most }));
        }
        let most = (u64::from(self.model.gpu.shared_per_block) + PER_BLOCK) / blocks - PER_BLOCK;
        if shared_bytes > most {
            let bytes = shared_bytes;
            return Err(Refusal::Patches(Misfit::Shared { bytes, most }));
        }
        let memory = self.model.facts.memory;
        let rooms = room_bytes(scheme, &program);
        if rooms.saturating_add(2 * layout.bytes()) > memory / 16 * 15 {
            return Err(Refusal::Rooms {
                bytes: rooms,
                memory,
            });
        }
        let plan = PatchPlan {
            pyramid: pyramid.clone(),
            program,
            registers,
            shared_bytes,
            room_bytes: rooms,
        };
        Ok((plan, sketch.prediction.clone()))
    }

    /// Why no shape holds pyramids of this base.
    fn too_wide(&self, pyramid: &Pyramid, base: [Option<i64>; 3]) -> Refusal {
        let (scheme, layout) = (self.planner.scheme, &self.planner.layout);
        let shapes = shapes::all(scheme);
        for (n, axis) in AXES.into_iter().enumerate() {
            if scheme.grid.axes[axis].is_none() {
                continue;
            }
            let halo = creep(scheme, layout, axis, pyramid.height);
            let needed = base[n].unwrap_or(1) + halo.iter().sum::<i64>();
            let most = shapes.iter().map(|s| s.tile()[n]).max().unwrap_or(0);
            if needed > most {
                return Refusal::Patches(Misfit::Base { axis, needed, most });
            }
        }
        let tiles = [0, 1, 2].map(|n| {
            let widest = shapes.iter().map(|s| s.tile()[n]).max().unwrap_or(1);
            div_ceil(layout.extent[AXES[n]], base[n].unwrap_or(widest))
        });
        let (tiles, most) = (
            tiles.iter().product(),
            self.most_at_once(MOST_BLOCKS_IN_SPACE),
        );
        if !self.has_patches() && tiles > most {
            return Refusal::Patches(Misfit::Many { tiles, most });
        }
        let most = MOST_REGISTERS;
        let needed = most + 1;
        Refusal::Patches(Misfit::Registers { needed, most })
    }
}

/// The heights of time blocks of pyramids.
pub fn patch_heights(scheme: &Scheme, height: u64) -> Heights {
    let round = u64::from(scheme.phases()).max(1);
    Heights::of_rounds((height / round).max(1) * round, round)
}

impl DevicePlanner<'_> {
    /// Blocks that a multiprocessor runs side by side. Blocks of one warp are asked for few at a time, so that their
    /// threads have all registers that they need, and there is room for more; for others it is what they are asked
    /// for.
    fn resident_blocks(&self, work: &Work, shape: &Shape) -> f64 {
        let asked = f64::from(shape.blocks.max(1));
        if shape.warps() > 1 {
            return asked;
        }
        let threads = shape.all_threads() as f64;
        let registers = (work.registers(work.words_of(shape)) / 8.0).ceil() * 8.0;
        let room = f64::from(self.model.gpu.registers) / (threads * registers.max(1.0));
        room.floor().min(MOST_BLOCKS).max(asked)
    }

    /// What time blocks of pyramids are expected to do.
    ///
    /// A multiprocessor computes the tiles of its blocks one instruction after the other, and waits for a while in each
    /// stage; loads and stores of one block are hidden behind what others compute. A launch with few tiles takes as
    /// long as its last round of them; where all run at once they stay, and exchange what they need of each other. Tiles
    /// in zones take longer ([`super::zones`]).
    fn predict_patches(
        &self,
        work: &Work,
        shape: &Shape,
        base: [i64; 3],
        height: u64,
    ) -> Prediction {
        let (scheme, layout, model) = (self.planner.scheme, &self.planner.layout, self.model);
        let tile = shape.tile();
        let cells = tile.iter().product::<i64>() as f64;
        let stored = base.iter().product::<i64>() as f64;
        let steps = height as f64;
        let lanes = model.lanes(scheme.precision).max(1.0);
        let arithmetic = work.arithmetic * (128.0 / lanes).max(1.0);
        let fine = scheme.precision == Precision::F64;
        let count = shape.count() as f64;
        // What other rows have is stored and loaded, lanes shuffled, once for each word.
        let rows = |n: usize| if shape.threads[n] == 1 { 0.0 } else { 2.0 };
        let weights = [rows(0), rows(1), 1.0];
        let exchanged = (0..3).map(|n| weights[n] * work.across[n] / shape.patch[n] as f64);
        let exchanged = exchanged.sum::<f64>() * work.words;
        let shared = match shape.coefs {
            CoefPlace::Registers => 0.0,
            CoefPlace::Shared => work.coefs * work.words,
        };
        let beside = EXCHANGED * exchanged + SHARED * shared + MORE * work.stages;
        // Warps go through the same code, that of a patch, once in each step, each at its own place. An instruction is
        // fetched once, however long it takes.
        let code = work.arithmetic + beside;
        let fetching = code * (code * count - FETCHED).max(0.0) / UNFETCHED;
        let instructions = arithmetic + beside + fetching;
        let crowded = CROWDED[usize::from(fine && shape.coefs == CoefPlace::Shared)];
        let crowded = 1.0 + crowded * (shape.warps() as f64 / CROWD - 1.0).max(0.0);
        let clock = model.facts.clock as f64 * 0.88;
        let element = scheme.precision.bytes() as f64;
        let loaded = work.held + work.loaded_coefs as f64;
        // What tiles load of each other comes from the cache.
        let bytes = stored * ((loaded + work.held) * element + work.zones.bytes);
        let processors = f64::from(model.facts.multiprocessors.max(1));
        let copy = bytes / (model.copy_rate / processors);
        let of_axes = [0, 1, 2].map(|n| div_ceil(layout.extent[AXES[n]], base[n].max(1)));
        let tiles = of_axes.iter().product::<i64>() as f64;
        // By how much tiles in zones take longer, and how many of all there are.
        let longer = steps * work.zones.cycles(shape) / clock;
        let moving = |stays: bool| work.zones.moving(shape, stays);
        let in_zones = work.zones.share(shape, base, of_axes);
        // Tiles stay on the chip where all of them run at once.
        let stays = tiles <= processors * f64::from(shape.blocks.max(1));
        let blocks = match stays {
            true => f64::from(shape.blocks.max(1)),
            false => self.resident_blocks(work, shape),
        };
        let waves = (tiles / (processors * blocks)).max(1.0);
        let together = (tiles / processors).min(blocks).max(1.0).ceil();
        let issue = ISSUE.min(EACH * shape.warps() as f64 * together);
        let compute = steps * cells / WARP as f64 * instructions / issue * crowded;
        // A warp alone meets no others.
        let meet = if shape.warps() > 1 { MEET } else { 0.0 };
        let computing = (together * compute + steps * work.stages * meet) / clock;
        let copying = together * copy;
        let apart = match together > 1.0 {
            true => APART,
            false => ALONE[usize::from(fine)],
        };
        let wave = computing.max(copying) + apart * computing.min(copying);
        let time = if stays {
            let rims = match self.has_patches() {
                true => 0.0,
                false => RIMS * (cells - stored) * work.held * element,
            };
            let (slower, exchange) = match self.has_patches() {
                true => (1.0, EXCHANGE),
                false => (IN_SPACE, EXCHANGE_IN_SPACE),
            };
            slower * ENDS * computing + exchange + together * rims + longer + moving(true)
        } else if waves < 4.0 {
            // In the last round some multiprocessors have fewer blocks, which are faster alone.
            let fewer = (tiles / processors).ceil() / blocks;
            let rounds = waves.ceil() - LAST * (waves.ceil() - fewer);
            rounds * wave + START + longer + moving(false)
        } else {
            waves * (wave + in_zones * (longer + moving(false))) + START
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
}
