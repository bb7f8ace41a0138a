//! Runs the tiles of a program on some threads.
//!
//! Threads take the tracks of [`Strips`] from a [`Board`], tile by tile. A tile runs when the strips of
//! [`Strips::waits`] have passed the same place. That this is enough is tested by `torre_compiler::tile::check` on
//! random tilings.

use super::batch::{Batch, Collector};
use super::board::Board;
use super::engine::{Engine, Scratch};
use super::kernel_table::{Advance, KernelTable};
use super::threads;
use super::waiting::Patience;
use crate::simulation::NoThreads;
use crate::simulation::guard::Sample;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use torre_compiler::kernel::UpdateSet;
use torre_compiler::lattice::{Axis, Group, Interval};
use torre_compiler::real::Real;
use torre_compiler::scheme::ZoneSet;
use torre_compiler::tile::{
    Checked, ClassSet, CutKey, Part, Segment, Shape, Shapes, Strips, TileProgram, Work,
    time_blocks_at_once,
};

/// The batches of each stage of a tile.
type Stages = Rc<Vec<Vec<Batch>>>;

/// Runs of cut parts that are kept.
const MOST_CUT_RUNS: usize = 1 << 18;
/// The memory of a batch, in runs.
const BATCH: usize = 8;

/// The kernels of the updates of some classes.
struct ClassKernel {
    classes: ClassSet,
    updates: UpdateSet,
    kernels: Vec<usize>,
}

/// Kernels for each set of classes that has been met, per stage and phase.
struct ClassKernels {
    phases: u64,
    met: Vec<Vec<ClassKernel>>,
}

impl ClassKernels {
    fn new(program: &TileProgram, phases: u64) -> Self {
        let count = program.stages.len() * phases as usize;
        Self {
            phases,
            met: (0..count).map(|_| Vec::new()).collect(),
        }
    }

    /// The kernels of a batch in a step.
    fn find(
        &mut self,
        program: &TileProgram,
        table: &KernelTable,
        batch: &Batch,
        step: u64,
    ) -> &ClassKernel {
        let phase = step % self.phases;
        let stage_phase = batch.stage.index() * self.phases as usize + phase as usize;
        let met = &mut self.met[stage_phase];
        let found = match met.iter().position(|m| m.classes == batch.classes) {
            Some(found) => found,
            None => {
                let updates = program.updates(batch.stage, batch.classes);
                met.push(ClassKernel {
                    classes: batch.classes,
                    updates,
                    kernels: table.find(batch.stage, step, updates, ZoneSet::default()),
                });
                met.len() - 1
            }
        };
        &met[found]
    }
}

/// The batches of a part of a tile that ends of the grid cut.
struct CutBatches {
    /// Keeps its place in memory, by which it is known.
    _shape: Rc<Shape>,
    /// The part's cell when they were made.
    origin: Group,
    stages: Stages,
}

/// Parts that have their batches in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CutParts {
    /// The shape's place in memory.
    shape: usize,
    cut: CutKey,
    /// The number of stages.
    stages: i64,
}

/// The batches of parts of tiles, made when they are met for the first time.
struct PartBatches {
    shapes: Shapes,
    /// The batches of whole parts, by their shape.
    whole: Vec<(Rc<Shape>, Stages)>,
    cut: BTreeMap<CutParts, CutBatches>,
    /// The runs of cut parts.
    cut_runs: usize,
    collector: Collector,
}

impl PartBatches {
    fn new(program: &TileProgram, collector: Collector) -> Self {
        Self {
            shapes: Shapes::new(program),
            whole: Vec::new(),
            cut: BTreeMap::new(),
            cut_runs: 0,
            collector,
        }
    }

    /// The batches of a part in a number of stages, by stage, and the cell that their rows are relative to.
    fn of_part(&mut self, part: &Part, stages: i64) -> (Stages, Group) {
        let origin = Group::new(part.origin[Axis::OUTER], part.origin[Axis::MIDDLE]);
        match part.whole() {
            true => (self.of_shape(&part.shape, stages), origin),
            false => self.of_cut(part, origin, stages),
        }
    }

    fn of_shape(&mut self, shape: &Rc<Shape>, stages: i64) -> Stages {
        if let Some((_, batches)) = self.whole.iter().find(|(s, _)| Rc::ptr_eq(s, shape)) {
            return Rc::clone(batches);
        }
        let mut stage = |number| {
            let segments = shape.of_stage(number);
            segments.iter().for_each(|s| self.collector.add(s));
            std::mem::take(&mut self.collector.batches)
        };
        let batches = Rc::new((0..stages).map(&mut stage).collect());
        self.whole.push((Rc::clone(shape), Rc::clone(&batches)));
        batches
    }

    /// The batches of a part that is cut, and from the part for which they were made to this one. Tiles along an end
    /// are cut alike, and time block after time block.
    fn of_cut(&mut self, part: &Part, origin: Group, stages: i64) -> (Stages, Group) {
        let key = CutParts {
            shape: Rc::as_ptr(&part.shape) as usize,
            cut: part.cut_key(),
            stages,
        };
        if let Some(known) = self.cut.get(&key) {
            let Group { x, y } = known.origin;
            return (
                Rc::clone(&known.stages),
                Group::new(origin.x - x, origin.y - y),
            );
        }
        let mut stage = |number| {
            for segment in part.shape.of_stage(number) {
                let add = &mut |s: &Segment| self.collector.add(s);
                self.shapes.place(part, segment, 0, add);
            }
            std::mem::take(&mut self.collector.batches)
        };
        let stages: Stages = Rc::new((0..stages).map(&mut stage).collect());
        if self.cut_runs > MOST_CUT_RUNS {
            self.cut.clear();
            self.cut_runs = 0;
        }
        let batches = stages.iter().flatten();
        self.cut_runs += batches.map(|batch| BATCH + batch.runs.len()).sum::<usize>();
        let made = CutBatches {
            _shape: Rc::clone(&part.shape),
            origin,
            stages: Rc::clone(&stages),
        };
        self.cut.insert(key, made);
        (stages, Group::default())
    }
}

/// The state of a thread that runs tiles.
struct TileWorker {
    kernels: ClassKernels,
    batches: PartBatches,
    scratch: Scratch,
    /// The tiles inside of an outermost tile.
    course: Vec<Work>,
    /// The first of the stages whose values are looked at, which are the stages of the last step of a time block.
    looked_from: i64,
    /// The rows that are looked at.
    sample: Option<Sample>,
    /// Cell-stages done since the progress was told.
    cells: u64,
}

impl TileWorker {
    fn new(program: &TileProgram, phases: u64, collector: Collector) -> Self {
        Self {
            kernels: ClassKernels::new(program, phases),
            batches: PartBatches::new(program, collector),
            scratch: Scratch::default(),
            course: Vec::new(),
            looked_from: i64::MAX,
            sample: None,
            cells: 0,
        }
    }
}

impl<T: Real> Engine<'_, T> {
    /// Runs steps `from..until` tile by tile on some threads.
    ///
    /// # Safety
    /// No other thread touches the cells meanwhile.
    pub unsafe fn run_tiles(
        &self,
        program: &Checked<TileProgram>,
        threads: usize,
        from: u64,
        until: u64,
    ) -> Result<(), NoThreads> {
        let at_once = program.height.saturating_mul(time_blocks_at_once(program));
        let mut start = from;
        while start < until {
            let end = until.min(start.saturating_add(at_once));
            // SAFETY: passed on.
            unsafe { self.run_time_blocks(program, threads, start, end) }?;
            if self.progress.guard.tripped() {
                break;
            }
            start = end;
        }
        Ok(())
    }

    unsafe fn run_time_blocks(
        &self,
        program: &TileProgram,
        threads: usize,
        from: u64,
        until: u64,
    ) -> Result<(), NoThreads> {
        let strips = Strips::new(program, until - from);
        let board = Board::new(program, &strips);
        let threads = threads.min(board.tracks()).max(1);
        let patience = Patience::of(threads);
        threads::run(threads, |_| {
            let collector = Collector::new(self.layout, self.kernels.run_axis, self.chunk);
            let phases = u64::from(self.scheme.phases());
            let mut worker = TileWorker::new(program, phases, collector);
            let mut kept = None;
            while let Some(task) = board.next(kept.take(), patience) {
                let numbers = strips.time_blocks[strips.time_block(task.strip())].numbers;
                let mut course = std::mem::take(&mut worker.course);
                let (tile, sheets) = (&task.tile, task.sheets());
                let shapes = &mut worker.batches.shapes;
                shapes.course(program, tile, numbers, sheets, &mut course);
                for work in course.drain(..) {
                    // SAFETY: the tiling is legal and tasks wait for the tasks on which they depend, so no other thread
                    // touches the values that this one reads or writes; ghosts lie no farther from a reader than their
                    // source.
                    unsafe { self.run_tile(program, &mut worker, from, &work, numbers) }
                }
                worker.course = course;
                let cells = std::mem::take(&mut worker.cells);
                self.progress.done.fetch_add(cells, Ordering::Relaxed);
                kept = board.done(task);
            }
        })
    }

    /// Runs a tile, or some of its parts, stage by stage.
    ///
    /// # Safety
    /// As for `Engine::advance`.
    unsafe fn run_tile(
        &self,
        program: &TileProgram,
        worker: &mut TileWorker,
        from: u64,
        work: &Work,
        numbers: Interval,
    ) {
        if self.progress.guard.tripped() {
            return;
        }
        let per_step = program.stages_per_step();
        let [first, end] = [numbers.lo, numbers.hi].map(|n| from + (n / per_step) as u64);
        worker.looked_from = numbers.hi - per_step;
        let guard = &self.progress.guard;
        worker.sample = guard.after_time_block(self.scheme, end, end - first);
        match &work.parts {
            // SAFETY: passed on.
            Some(parts) => unsafe {
                self.run_parts(program, worker, from, parts, work.stages, numbers)
            },
            None => {
                let mut number = numbers.lo;
                program.walk_on(&work.tile, numbers, work.sheets, &mut |segment| {
                    if number != segment.number {
                        // SAFETY: passed on.
                        unsafe { self.run_collected(program, worker, from) }
                        number = segment.number;
                    }
                    worker.batches.collector.add(segment);
                });
                // SAFETY: passed on.
                unsafe { self.run_collected(program, worker, from) }
            }
        }
    }

    /// Runs some stages of the parts of a tile, one by one, counted from the first of `numbers`.
    ///
    /// # Safety
    /// As for `Engine::advance`.
    unsafe fn run_parts(
        &self,
        program: &TileProgram,
        worker: &mut TileWorker,
        from: u64,
        parts: &[Part],
        stages: Interval,
        numbers: Interval,
    ) {
        let batches: Vec<(Stages, Group)> = parts
            .iter()
            .map(|part| worker.batches.of_part(part, numbers.len()))
            .collect();
        for number in stages.lo..stages.hi {
            for (part, (stages, origin)) in parts.iter().zip(&batches) {
                let place = BatchPlace {
                    stage: numbers.lo,
                    origin: *origin,
                };
                for batch in &stages[number as usize] {
                    let range = match part.whole() {
                        true => worker.batches.shapes.cut(part, batch.range),
                        false => batch.range,
                    };
                    // SAFETY: passed on.
                    unsafe { self.run_batch(program, worker, from, batch, range, place) }
                }
            }
        }
    }

    /// Runs the batches that have been collected of one stage.
    ///
    /// # Safety
    /// As for `Engine::advance`.
    unsafe fn run_collected(&self, program: &TileProgram, worker: &mut TileWorker, from: u64) {
        let place = BatchPlace {
            stage: 0,
            origin: Group::default(),
        };
        let batches = std::mem::take(&mut worker.batches.collector.batches);
        for batch in &batches {
            // SAFETY: passed on.
            unsafe { self.run_batch(program, worker, from, batch, batch.range, place) }
        }
        worker.batches.collector.reuse(batches);
    }

    /// # Safety
    /// As for `Engine::advance`.
    unsafe fn run_batch(
        &self,
        program: &TileProgram,
        worker: &mut TileWorker,
        from: u64,
        batch: &Batch,
        range: Interval,
        place: BatchPlace,
    ) {
        let number = batch.number + place.stage;
        let step = from + (number / program.stages_per_step()) as u64;
        let found = worker.kernels.find(program, &self.kernels, batch, step);
        let updates = found.updates;
        let advance = Advance {
            stage: batch.stage,
            step,
            updates,
        };
        // SAFETY: passed on.
        unsafe {
            let (origin, scratch) = (place.origin, &mut worker.scratch);
            self.advance_batch(&found.kernels, advance, batch, range, origin, scratch);
            if let Some(sample) = &worker.sample
                && number >= worker.looked_from
            {
                for run in 0..batch.runs.len() {
                    let rows = batch.rows(run, self.kernels.run_axis, range, place.origin);
                    self.look(batch.stage, step, updates, rows, sample);
                }
            }
        };
        let groups: i64 = batch.runs.iter().map(|r| r.groups).sum();
        worker.cells += (groups * range.len().max(0)) as u64 * u64::from(updates.0.count_ones());
    }
}

/// Where batches lie.
#[derive(Clone, Copy)]
struct BatchPlace {
    /// The stage that their numbers count from.
    stage: i64,
    /// The cell that their rows are relative to.
    origin: Group,
}
