//! Pyramids that blocks of threads keep in registers: their shapes, their needs, and their predictions.

use super::shapes;
use super::work::{LOW, Work};
use super::{DevicePlanner, NoDevicePlan, Refusal};
use crate::gpu::Heights;
use torre_compiler::cone::Rational;
use torre_compiler::cost::{Choice, Prediction};
use torre_compiler::lattice::{Axis, PerAxis, div_ceil};
use torre_compiler::patch::{AXES, CoefPlace, MOST_TILES, Misfit, PatchProgram, Shape, creep};
use torre_compiler::schedule::{Parts, Pyramid, Schedule, TiledTemplate};
use torre_compiler::scheme::Scheme;

/// Steps of time blocks that `auto` tries.
const HEIGHTS: [u64; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128];
/// Blocks that a multiprocessor may hold.
pub(super) const RESIDENT: [u32; 4] = [4, 3, 2, 1];
/// Programs that are made for `auto`, and for bases that are given.
const MADE: usize = 6;

/// The most registers of a thread, and the bytes of shared memory that are reserved for each block.
pub(super) const MOST_REGISTERS: u64 = 255;
/// Registers by which a thread may need more than the most: the assembler keeps few values in memory then, in a cache.
const BEYOND: u64 = 4;
const PER_BLOCK: u64 = 1 << 10;

/// Warps of a block whose rows have the same slots one after the other, at least: others wait longer for code.
const FEWEST_WARPS: i64 = 8;

/// Blocks that a multiprocessor holds with three axes, at most.
pub(super) const MOST_BLOCKS_IN_SPACE: u32 = 4;

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

/// Registers that a thread can have if a multiprocessor holds `shape.blocks` blocks.
pub(super) fn registers_of(shape: &Shape, registers: u32) -> u64 {
    let threads = shape.all_threads() as u64 * u64::from(shape.blocks.max(1));
    (u64::from(registers) / threads / 8 * 8).min(MOST_REGISTERS)
}

/// Registers that a thread may need where it can have `most`.
pub(super) fn may_need(most: u64) -> u64 {
    match most {
        MOST_REGISTERS => most + BEYOND,
        _ => most,
    }
}

/// The sizes of pyramids that are given.
struct GivenSizes {
    base: [Option<i64>; 3],
    height: Option<u64>,
}

/// The sizes that a family of pyramids has, one after the other, where some of its sizes are left open; nothing where
/// all are given.
fn partly_given(family: &TiledTemplate) -> Vec<GivenSizes> {
    let Parts::Pyramids(bases) = &family.parts else {
        return Vec::new();
    };
    if family.sizes.iter().all(|size| size.is_given) {
        return Vec::new();
    }
    // A size of 0 is left open.
    let mut closed = family.clone();
    for size in closed.sizes.iter_mut().filter(|size| !size.is_given) {
        size.values = vec![Rational::ZERO];
    }
    let given = |values: Vec<Rational>| {
        let value = |index: Option<usize>| Some(values.get(index?)?.floor()).filter(|v| *v > 0);
        GivenSizes {
            base: AXES.map(|axis| value(bases[axis])),
            height: value(family.height).and_then(|height| u64::try_from(height).ok()),
        }
    };
    closed.combinations().into_iter().map(given).collect()
}

impl DevicePlanner<'_> {
    /// Whether there are pyramids in the place of towers: for schemes with one or two axes.
    pub(super) fn has_patches(&self) -> bool {
        !self.has_towers()
    }

    /// Bytes of the GPU's memory for arrays: a sixteenth stays for tables and the driver.
    fn memory_of_arrays(&self) -> u64 {
        self.model.facts.memory / 16 * 15
    }

    /// Why a problem keeps pyramids from running at all.
    pub(super) fn no_patches(&self) -> Option<Refusal> {
        let bytes = self.planner.layout.bytes().saturating_mul(2);
        let memory = self.memory_of_arrays();
        if bytes > memory {
            return Some(Refusal::SecondArray { bytes, memory });
        }
        let points = self.interruptions.too_many_cells;
        points.then_some(Refusal::Points)
    }

    /// The plan of pyramids of some base and height, and its prediction.
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
        self.fastest_patches(self.usual_heights(), [None; 3])
    }

    /// The pyramids of a family that are expected to be fastest, where sizes are left open: these are chosen for the
    /// GPU. None where all sizes are given.
    pub(super) fn open_patches(&self, family: &TiledTemplate) -> Vec<Choice> {
        let all = partly_given(family).into_iter();
        let fastest = all.flat_map(|GivenSizes { base, height }| match height {
            Some(height) => self.fastest_patches(&[height], base),
            None => self.fastest_patches(self.usual_heights(), base),
        });
        fastest.collect()
    }

    /// Why there are no pyramids of a family with open sizes, if it is one and none of them suits: without sizes that
    /// are for processors.
    pub(super) fn no_open_patches(&self, family: &TiledTemplate) -> Option<NoDevicePlan> {
        let GivenSizes { base, height } = partly_given(family).into_iter().next()?;
        let usual = self.usual_heights().iter().copied().min();
        let lowest = height.or(usual).unwrap_or(1);
        let refusal = self.no_patches().unwrap_or_else(|| {
            let sketches = self.sketches(&[lowest], base);
            let refused = sketches.iter().take(8 * MADE).find_map(|sketch| {
                let pyramid = self.pyramid(sketch.pyramid_base, sketch.height);
                self.made(sketch, &pyramid).err()
            });
            refused.unwrap_or_else(|| self.too_wide(&self.pyramid([1; 3], lowest), base))
        });
        Some(self.refused(&family.given(), refusal))
    }

    /// Steps of time blocks that are tried where none are given.
    fn usual_heights(&self) -> &'static [u64] {
        match self.has_patches() {
            true => &HEIGHTS,
            false => &LOW,
        }
    }

    /// The pyramids of some heights that are expected to be fastest, with bases along the axes as far as these are
    /// given.
    fn fastest_patches(&self, heights: &[u64], base: [Option<i64>; 3]) -> Vec<Choice> {
        if self.no_patches().is_some() {
            return Vec::new();
        }
        let mut found: Vec<Choice> = Vec::new();
        for sketch in self.sketches(heights, base) {
            let base = sketch.pyramid_base;
            let pyramid = self.pyramid(base, sketch.height);
            let schedule = Schedule::Pyramids(pyramid.clone());
            if found.iter().any(|c| c.schedule == schedule) {
                continue;
            }
            // Another shape may be better for the same pyramids.
            if let Ok((plan, prediction)) = self.patch_plan(&pyramid) {
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
                    prediction: self.with_interruptions(prediction, &plan),
                });
            }
            if found.len() == MADE {
                break;
            }
        }
        found
    }

    /// A choice of pyramids.
    pub(super) fn patch_member(
        &self,
        name: String,
        pyramid: &Pyramid,
    ) -> Result<Choice, NoDevicePlan> {
        let plan = self.patch_plan(pyramid);
        let (plan, prediction) = plan.map_err(|refusal| self.refused(&name, refusal))?;
        Ok(Choice {
            prediction: self.with_interruptions(prediction, &plan),
            name,
            schedule: Schedule::Pyramids(pyramid.clone()),
        })
    }

    /// The prediction of a run whose time blocks are lower where something is due.
    fn with_interruptions(&self, whole: Prediction, plan: &PatchPlan) -> Prediction {
        let (scheme, layout) = (self.planner.scheme, &self.planner.layout);
        let heights = patch_heights(scheme, plan.pyramid.height);
        let shares = self.interruptions.shares_of(heights, self.problem.steps);
        let work = Work::new(scheme, layout);
        let base = AXES.map(|axis| plan.pyramid.base[axis].unwrap_or(1));
        let shape = &plan.program.shape;
        let parts = self.parts(&shares, |height| match height {
            _ if height == plan.pyramid.height => whole.clone(),
            lower => self.predict_patches(&work, shape, base, lower),
        });
        super::predict::mixed(whole, &parts, &self.layerwise.prediction)
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

    /// The base of a tile whose halo is known, as wide as it allows where nothing is asked for; `None` if there is
    /// none.
    pub(super) fn base_of(
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
                // Bases of equal width, from a patch on; with three axes, and around rings, from the cells that are
                // accessed together on. As many cells as bases are longer than a ring make all rims wider.
                (false, None) if room > 0 => {
                    let tiles = div_ceil(extent, room);
                    let from = match (three || ring, axis) {
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

    /// Tiles that run at the same time where a multiprocessor holds `blocks` of them.
    pub(super) fn most_at_once(&self, blocks: u32) -> i64 {
        i64::from(self.model.facts.multiprocessors) * i64::from(blocks.max(1))
    }

    /// How far wrong values come in time blocks of some height.
    pub(super) fn halo(&self, height: u64) -> [[i64; 2]; 3] {
        let (scheme, layout) = (self.planner.scheme, &self.planner.layout);
        AXES.map(|axis| match scheme.grid.axes[axis] {
            Some(_) => creep(scheme, layout, axis, height),
            None => [0; 2],
        })
    }

    /// The plan of pyramids of a shape, without a limit of registers: the assembler may have to keep values in memory.
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
        let needed = work.registers(&shape, words_of(scheme, &program));
        let needed = needed.ceil() as u64;
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

    /// Bytes of shared memory of a block, about.
    pub(super) fn shared_of(&self, work: &Work, shape: &Shape) -> f64 {
        let [px, py, pz] = shape.patch;
        let across = match shape.reuses_slots {
            false => &work.across,
            true => &work.most_across,
        };
        let along = |n: usize, section: i64| match shape.threads[n] {
            1 => 0.0,
            _ => across[n] * section as f64,
        };
        let slots = along(0, py * pz) + along(1, px * pz);
        let cells = shape.count() as f64;
        let (slots, ghosts) = match self.has_patches() {
            true => (slots, 0.0),
            false => {
                let ghosts = shapes::ghosts(self.planner.scheme, shape);
                (slots.min(work.held * cells), ghosts)
            }
        };
        let coefs = match shape.coefs {
            CoefPlace::Registers => 0.0,
            CoefPlace::Shared => (work.loaded_coefs * shape.count()) as f64,
        };
        ((slots + coefs) * shape.all_threads() as f64 + ghosts) * 4.0 * work.words
    }

    /// A shape whose rows have the same slots one after the other, if all tiles run at the same time and a block has
    /// enough shared memory only then.
    pub(super) fn on_chip(&self, work: &Work, shape: Shape, tiles: i64) -> Shape {
        let most = f64::from(self.model.gpu.shared_per_block);
        let may_stay = self.has_patches() && tiles <= self.most_at_once(1);
        let again = may_stay && shape.warps() >= FEWEST_WARPS;
        Shape {
            reuses_slots: again && self.shared_of(work, &shape) > most,
            ..shape
        }
    }

    /// A shape for pyramids of some base and height, with as many blocks at a time as are expected to be best.
    fn sketch(&self, work: &Work, shape: Shape, base: [i64; 3], height: u64) -> Option<Sketch> {
        let tiles = self.tiles(base);
        let shape = self.on_chip(work, shape, tiles);
        let needed = work.registers(&shape, work.words_of(&shape));
        if needed > may_need(MOST_REGISTERS) as f64 {
            return None;
        }
        let shared = self.shared_of(work, &shape) as u64;
        let fits = |blocks: u32| {
            let stays = self.has_patches() || tiles <= self.most_at_once(blocks);
            stays && self.holds(&shape, blocks, needed, shared)
        };
        // Of equally good ones, the last one is taken: the one with most blocks.
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
        let registers = work.registers(&sketch.shape, words_of(scheme, &program));
        let registers = registers.ceil() as u64;
        let shared_bytes = program.shared_bytes(scheme.precision.bytes());
        let blocks = u64::from(sketch.shape.blocks.max(1));
        let most = registers_of(&sketch.shape, self.model.gpu.registers);
        let may = may_need(most);
        if registers > may {
            let needed = registers;
            return Err(Refusal::Patches(Misfit::Registers { needed, may }));
        }
        let room = (u64::from(self.model.gpu.shared_per_block) + PER_BLOCK) / blocks - PER_BLOCK;
        if shared_bytes > room {
            let (bytes, most) = (shared_bytes, room);
            return Err(Refusal::Patches(Misfit::Shared { bytes, most }));
        }
        let memory = self.memory_of_arrays();
        let rooms = room_bytes(scheme, &program);
        let bytes = rooms.saturating_add(2 * layout.bytes());
        if bytes > memory {
            return Err(Refusal::Rooms {
                bytes,
                rooms,
                memory,
            });
        }
        let plan = PatchPlan {
            pyramid: pyramid.clone(),
            program,
            registers: registers.min(most),
            shared_bytes,
            room_bytes: rooms,
        };
        Ok((plan, sketch.prediction.clone()))
    }

    /// Tiles of a base.
    pub(super) fn tiles(&self, base: [i64; 3]) -> i64 {
        let extent = &self.planner.layout.extent;
        let along = [0, 1, 2].map(|n| div_ceil(extent[AXES[n]], base[n]));
        along.iter().product()
    }

    /// Whether a multiprocessor holds `blocks` blocks, whose threads need `registers` registers, at the same time.
    pub(super) fn holds(&self, shape: &Shape, blocks: u32, registers: f64, shared: u64) -> bool {
        let gpu = &self.model.gpu;
        let shape = Shape { blocks, ..*shape };
        registers <= may_need(registers_of(&shape, gpu.registers)) as f64
            && (shared + PER_BLOCK) * u64::from(blocks)
                <= u64::from(gpu.shared_per_block) + PER_BLOCK
            && shape.all_threads() as u32 * blocks <= gpu.threads
    }
}

/// The heights of time blocks of pyramids.
pub fn patch_heights(scheme: &Scheme, height: u64) -> Heights {
    let round = u64::from(scheme.phases()).max(1);
    Heights::of_rounds((height / round).max(1) * round, round)
}
