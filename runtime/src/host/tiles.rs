//! Runs the tiles of a program on some threads.
//!
//! Threads take the tracks of [`Strips`] from a [`Board`], tile by tile. A tile runs when the strips of
//! [`Strips::waits`] have passed the same place; `torre_compiler::tile::check` proves for a program that this is
//! enough.

use super::batch::{Batch, Collector};
use super::board::Board;
use super::engine::{Engine, Scratch};
use super::kernel_table::Advance;
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
    Checked, ClassSet, Cut, Part, Segment, Shape, Shapes, Strips, TileProgram, Work,
    time_blocks_at_once,
};

/// The batches of each stage of a tile.
type Stages = Rc<Vec<Vec<Batch>>>;

/// Runs of cut parts that are kept.
const MOST_CUT_RUNS: usize = 1 << 18;
/// The memory of a batch, in runs.
const BATCH: usize = 8;

/// The batches of a part of a tile that ends of the grid cut.
struct CutBatches {
    /// Keeps its place in memory, by which it is known.
    _shape: Rc<Shape>,
    /// The part's cell when they were made.
    origin: Group,
    stages: Stages,
}

/// Kernels for each set of classes that has been met, per stage and phase.
pub(super) struct ClassKernels {
    phases: u64,
    entries: Vec<Vec<(ClassSet, UpdateSet, Vec<usize>)>>,
    /// Cell-stages done since the progress was told.
    cells: u64,
    shapes: Shapes,
    /// The batches of shapes that have been met, by stage.
    batches: Vec<(Rc<Shape>, Stages)>,
    /// Batches of cut parts, by the shape's place in memory and by the cut that parts have in common.
    cut: BTreeMap<(usize, Cut, i64), CutBatches>,
    /// The runs of these.
    cut_runs: usize,
    collector: Collector,
    /// The tiles inside of an outermost tile.
    course: Vec<Work>,
    /// The first of the stages whose values are looked at, which are the stages of the last step of a time block; and
    /// the rows that are looked at.
    looked_from: i64,
    sample: Option<Sample>,
    scratch: Scratch,
}

impl ClassKernels {
    fn new(program: &TileProgram, phases: u64, collector: Collector) -> Self {
        Self {
            phases,
            entries: vec![Vec::new(); program.stages.len() * phases as usize],
            cells: 0,
            shapes: Shapes::new(program),
            batches: Vec::new(),
            cut: BTreeMap::new(),
            cut_runs: 0,
            collector,
            course: Vec::new(),
            looked_from: i64::MAX,
            sample: None,
            scratch: Scratch::default(),
        }
    }

    /// The batches of a shape, made when it is met for the first time.
    fn batches(&mut self, shape: &Rc<Shape>, stages: i64) -> Stages {
        if let Some((_, batches)) = self.batches.iter().find(|(s, _)| Rc::ptr_eq(s, shape)) {
            return Rc::clone(batches);
        }
        let mut stage = |number| {
            let segments = shape.of_stage(number);
            segments.iter().for_each(|s| self.collector.add(s));
            std::mem::take(&mut self.collector.batches)
        };
        let batches = Rc::new((0..stages).map(&mut stage).collect());
        self.batches.push((Rc::clone(shape), Rc::clone(&batches)));
        batches
    }

    /// The batches of a part that is cut, and from the part for which they were made to this one. Tiles along an end
    /// are cut alike, and time block after time block.
    fn cut_batches(&mut self, part: &Part, stages: i64) -> (Stages, Group) {
        let origin = Group::new(part.origin[Axis::OUTER], part.origin[Axis::MIDDLE]);
        let key = (Rc::as_ptr(&part.shape) as usize, part.alike(), stages);
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
            let mut kernels = ClassKernels::new(program, phases, collector);
            let mut kept = None;
            while let Some(task) = board.next(kept.take(), patience) {
                let numbers = strips.time_blocks[strips.time_block(task.strip())].numbers;
                let mut course = std::mem::take(&mut kernels.course);
                let (tile, sheets) = (&task.tile, task.sheets());
                kernels
                    .shapes
                    .course(program, tile, numbers, sheets, &mut course);
                for work in course.drain(..) {
                    // SAFETY: the tiling is legal and tasks wait for the tasks on which they depend, so no other thread
                    // touches the values that this one reads or writes; ghosts lie no farther from a reader than their
                    // source.
                    unsafe { self.run_tile(program, &mut kernels, from, &work, numbers) }
                }
                kernels.course = course;
                self.progress
                    .done
                    .fetch_add(kernels.cells, Ordering::Relaxed);
                kernels.cells = 0;
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
        kernels: &mut ClassKernels,
        from: u64,
        work: &Work,
        numbers: Interval,
    ) {
        if self.progress.guard.tripped() {
            return;
        }
        let per_step = program.stages_per_step();
        let [first, end] = [numbers.lo, numbers.hi].map(|n| from + (n / per_step) as u64);
        kernels.looked_from = numbers.hi - per_step;
        let guard = &self.progress.guard;
        kernels.sample = guard.after_time_block(self.scheme, end, end - first);
        match &work.parts {
            // SAFETY: passed on.
            Some(parts) => unsafe {
                self.run_parts(program, kernels, from, parts, work.stages, numbers)
            },
            None => {
                let mut number = numbers.lo;
                program.walk_on(&work.tile, numbers, work.sheets, &mut |segment| {
                    if number != segment.number {
                        // SAFETY: passed on.
                        unsafe { self.run_collected(program, kernels, from) }
                        number = segment.number;
                    }
                    kernels.collector.add(segment);
                });
                // SAFETY: passed on.
                unsafe { self.run_collected(program, kernels, from) }
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
        kernels: &mut ClassKernels,
        from: u64,
        parts: &[Part],
        stages: Interval,
        numbers: Interval,
    ) {
        let batches: Vec<(Stages, Group)> = parts
            .iter()
            .map(|part| match part.whole() {
                true => {
                    let origin = Group::new(part.origin[Axis::OUTER], part.origin[Axis::MIDDLE]);
                    (kernels.batches(&part.shape, numbers.len()), origin)
                }
                false => kernels.cut_batches(part, numbers.len()),
            })
            .collect();
        for number in stages.lo..stages.hi {
            for (part, (stages, origin)) in parts.iter().zip(&batches) {
                let place = BatchPlace {
                    stage: numbers.lo,
                    origin: *origin,
                };
                for batch in &stages[number as usize] {
                    let range = match part.whole() {
                        true => kernels.shapes.cut(part, batch.range),
                        false => batch.range,
                    };
                    // SAFETY: passed on.
                    unsafe { self.run_batch(program, kernels, from, batch, range, place) }
                }
            }
        }
    }

    /// Runs the batches that have been collected of one stage.
    ///
    /// # Safety
    /// As for `Engine::advance`.
    unsafe fn run_collected(&self, program: &TileProgram, kernels: &mut ClassKernels, from: u64) {
        let place = BatchPlace {
            stage: 0,
            origin: Group::default(),
        };
        let batches = std::mem::take(&mut kernels.collector.batches);
        for batch in &batches {
            // SAFETY: passed on.
            unsafe { self.run_batch(program, kernels, from, batch, batch.range, place) }
        }
        kernels.collector.reuse(batches);
    }

    /// # Safety
    /// As for `Engine::advance`.
    unsafe fn run_batch(
        &self,
        program: &TileProgram,
        kernels: &mut ClassKernels,
        from: u64,
        batch: &Batch,
        range: Interval,
        place: BatchPlace,
    ) {
        let number = batch.number + place.stage;
        let step = from + (number / program.stages_per_step()) as u64;
        let phase = step % kernels.phases;
        let stage_phase = batch.stage.index() * kernels.phases as usize + phase as usize;
        let entries = &mut kernels.entries[stage_phase];
        let found = match entries.iter().position(|(c, _, _)| *c == batch.classes) {
            Some(i) => i,
            None => {
                let updates = program.updates(batch.stage, batch.classes);
                let list = self
                    .kernels
                    .find(batch.stage, step, updates, ZoneSet::default());
                entries.push((batch.classes, updates, list));
                entries.len() - 1
            }
        };
        let (_, updates, list) = &entries[found];
        let advance = Advance {
            stage: batch.stage,
            step,
            updates: *updates,
        };
        // SAFETY: passed on.
        unsafe {
            let (origin, scratch) = (place.origin, &mut kernels.scratch);
            self.advance_batch(list, advance, batch, range, origin, scratch);
            if let Some(sample) = &kernels.sample
                && number >= kernels.looked_from
            {
                for run in 0..batch.runs.len() {
                    let rows = batch.rows(run, self.kernels.run_axis, range, place.origin);
                    self.look(batch.stage, step, *updates, rows, sample);
                }
            }
        };
        let groups: i64 = batch.runs.iter().map(|r| r.groups).sum();
        kernels.cells += (groups * range.len().max(0)) as u64 * u64::from(updates.0.count_ones());
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
