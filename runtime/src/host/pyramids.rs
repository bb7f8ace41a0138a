//! Runs overlapped tiles.
//!
//! There are two arrays for the whole domain. In a time block, threads take tiles: each loads the tile's input from one
//! array into memory of its own, advances it there to the end of the time block, and stores its base into the other
//! array. Then the arrays change roles. A tile's own memory has the layout of the program, and kernels are compiled for
//! that.
//!
//! Sources act in every copy of a value; probes and slices record the copy in the base that owns it. Around periodic
//! ends, a tile holds several *views* of the domain: the domain itself, and the domain moved by its length.

use super::calculation::Calculation;
use super::effects::{AdvancedRow, AdvancedRows, EffectContext, Effects};
use super::ghosts::Ghosts;
use super::kernel_table::KernelTable;
use super::memory::{Cells, Memory};
use super::threads;
use super::waiting::Barrier;
use crate::simulation::guard::{Sample, irregular};
use crate::simulation::{BlowUp, NoThreads, Progress, SetupError};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use torre_compiler::kernel::{Code, KernelSet, Run, StageBox, run_axis, stage_boxes};
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis, Region, div_floor};
use torre_compiler::layout::{Layout, RowId};
use torre_compiler::real::Real;
use torre_compiler::scheme::{Boundary, ComponentId, Scheme, StageId, ZoneSet};
use torre_compiler::tile::{AxisTile, PyramidProgram};

/// The memory that pyramids need beside the calculation's array.
pub(super) struct Buffers {
    second: Memory,
    /// One for each thread.
    own: Vec<Memory>,
}

impl Buffers {
    fn new(
        first: &Memory,
        layout: &Layout,
        program: &PyramidProgram,
        threads: usize,
    ) -> Result<Buffers, SetupError> {
        let made = || -> io::Result<Buffers> {
            let second = Memory::new(layout)?;
            let own = (0..threads).map(|_| Memory::new(&program.layout));
            let own = own.collect::<io::Result<_>>()?;
            Ok(Buffers { second, own })
        };
        let mut made = made().map_err(|error| {
            let own = program.layout.bytes().saturating_mul(threads as u64);
            let bytes = layout.bytes().saturating_add(own);
            SetupError::Memory { bytes, error }
        })?;
        // Coefficients are never stored again.
        made.second.content_mut().copy_from_slice(first.content());
        Ok(made)
    }

    fn serves(&self, program: &PyramidProgram, threads: usize) -> bool {
        let bytes = program.layout.bytes();
        self.own.len() >= threads && self.own.iter().all(|m| m.bytes() >= bytes)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.second.bytes() + self.own.iter().map(Memory::bytes).sum::<u64>()
    }
}

impl<T: Real> Calculation<'_, T> {
    /// Runs until `until` steps are done, in overlapped tiles.
    pub(super) fn run_pyramids(
        &mut self,
        set: &KernelSet,
        code: &dyn Code,
        program: &PyramidProgram,
        threads: usize,
        until: u64,
        progress: &Progress,
    ) -> Result<(), SetupError> {
        assert_eq!(set.layout, program.layout);
        let threads = (threads as u64).min(program.count()).max(1) as usize;
        let kept = self.buffers.take().filter(|b| b.serves(program, threads));
        let mut buffers = match kept {
            Some(kept) => kept,
            None => Buffers::new(&self.memory, &self.layout, program, threads)?,
        };
        // Within a tile, values around a periodic end are computed.
        let mut open = self.scheme.clone();
        for axis in Axis::ALL.into_iter().filter(|&a| program.unrolled[a]) {
            open.grid.boundary[axis] = [Boundary::Zero; 2];
        }
        let stages: Vec<Vec<StageBox>> = self
            .scheme
            .stage_ids()
            .map(|s| stage_boxes(self.scheme, s))
            .collect();
        let table = KernelTable::new(self.scheme, set, self.blocking);
        let phases = u64::from(self.scheme.phases());
        let kernels = (0..phases)
            .map(|phase| {
                let of_stage = |(stage, blocks): (StageId, &Vec<StageBox>)| {
                    let find = |block: &StageBox| {
                        table.find(stage, phase, block.updates, ZoneSet::default())
                    };
                    blocks.iter().map(find).collect()
                };
                self.scheme.stage_ids().zip(&stages).map(of_stage).collect()
            })
            .collect();
        let first = self.memory.cells::<T>();
        let work = Work {
            calculation: self,
            program,
            own_ghosts: Ghosts::new(&open, &self.layout),
            code,
            stages,
            kernels,
            piece: table.piece,
            progress,
        };
        let arrays = [first, buffers.second.cells::<T>()];
        let own: Vec<Cells<T>> = buffers.own.iter_mut().map(|m| m.cells::<T>()).collect();
        // SAFETY: `&mut self` keeps all other threads away from the arrays until the run's threads have ended.
        let time_blocks = unsafe { work.time_blocks(arrays, &own[..threads], until) }?;
        if time_blocks % 2 == 1 {
            std::mem::swap(&mut self.memory, &mut buffers.second);
        }
        self.buffers = Some(buffers);
        self.end_stretch(until, progress);
        Ok(())
    }
}

struct Work<'a, 'b, T> {
    calculation: &'a Calculation<'b, T>,
    program: &'a PyramidProgram,
    own_ghosts: Ghosts,
    code: &'a dyn Code,
    /// Per stage, where which updates run.
    stages: Vec<Vec<StageBox>>,
    /// Per phase, stage and block.
    kernels: Vec<Vec<Vec<Vec<usize>>>>,
    /// Indices of the inner axis that rows are advanced over at a time.
    piece: i64,
    progress: &'a Progress,
}

/// A tile at work.
struct Tile<T> {
    axes: PerAxis<AxisTile>,
    base: Region,
    /// Its memory.
    own: Cells<T>,
}

impl<T: Real> Work<'_, '_, T> {
    fn scheme(&self) -> &Scheme {
        self.calculation.scheme
    }

    fn effects(&self) -> &Effects {
        &self.calculation.effects
    }

    /// Runs all time blocks, from the first array to the second one and back; returns how many there were.
    ///
    /// # Safety
    /// No other thread touches the arrays meanwhile.
    unsafe fn time_blocks(
        &self,
        arrays: [Cells<T>; 2],
        own: &[Cells<T>],
        until: u64,
    ) -> Result<u64, NoThreads> {
        let from = self.calculation.steps();
        let height = self.program.height;
        let time_blocks = (until - from).div_ceil(height);
        let count = self.program.count();
        let barrier = Barrier::new(own.len());
        let next = AtomicU64::new(0);
        threads::run(own.len(), |thread| {
            let mut task = next.fetch_add(1, Ordering::Relaxed);
            for time_block in 0..time_blocks {
                let start = from + time_block * height;
                if self.progress.guard.ends_before(start) {
                    break;
                }
                let steps = height.min(until - start);
                let [source, target] = match time_block % 2 {
                    0 => arrays,
                    _ => [arrays[1], arrays[0]],
                };
                // A task beyond the time block belongs to the next one.
                while task < (time_block + 1) * count {
                    let place = self.program.place(task - time_block * count);
                    // SAFETY: tiles of a time block write disjoint bases with their ghosts, and memory of their own;
                    // the values that they read are not written until the barrier.
                    unsafe { self.tile(place, own[thread], source, target, start, steps) };
                    task = next.fetch_add(1, Ordering::Relaxed);
                }
                barrier.wait();
            }
        })?;
        Ok(time_blocks)
    }

    /// # Safety
    /// No other thread writes the source, this tile's base in the target, or its own memory.
    unsafe fn tile(
        &self,
        place: PerAxis<i64>,
        own: Cells<T>,
        source: Cells<T>,
        target: Cells<T>,
        start: u64,
        steps: u64,
    ) {
        let axes = PerAxis::from_fn(|a| self.program.axis_tile(self.scheme(), a, place[a]));
        let base = PerAxis::from_fn(|a| axes[a].base);
        let tile = Tile { axes, base, own };
        let per_step = self.stages.len();
        // A time block that ends early does the last steps of a whole one.
        let skipped = (self.program.height - steps) as usize * per_step;
        // SAFETY: passed on.
        unsafe {
            self.load(&tile, source);
            for step in 0..steps {
                for stage in 0..per_step {
                    let number = skipped + step as usize * per_step + stage;
                    let rows = PerAxis::from_fn(|a| tile.axes[a].stages[number]);
                    self.stage(&tile, StageId(stage as u32), start + step, rows);
                }
            }
            self.store(&tile, target);
            let guard = &self.progress.guard;
            if let Some(sample) = guard.after_time_block(self.scheme(), start + steps, steps) {
                self.look(&tile, start + steps, &sample);
            }
        }
        let blocks = self.stages.iter().flatten();
        let own = blocks.map(|block| StageBox {
            region: block.region.intersect(base),
            ..*block
        });
        let cells: u64 = own.map(|block| block.cell_stages()).sum();
        self.progress
            .done
            .fetch_add(cells * steps, Ordering::Relaxed);
    }

    /// How many domains away the places of an interval of a tile lie: one part for each, as the domain counts them.
    fn views(&self, axis: Axis, interval: Interval) -> Vec<(i64, Interval)> {
        if !self.program.unrolled[axis] {
            return vec![(0, interval)];
        }
        let n = self.scheme().grid.cells[axis];
        let whole = Interval::new(0, n);
        let turns = div_floor(interval.lo, n)..=div_floor(interval.hi - 1, n);
        turns
            .map(|turn| {
                let moved = Interval::new(interval.lo - turn * n, interval.hi - turn * n);
                (turn * n, moved.intersect(whole))
            })
            .filter(|(_, part)| !part.is_empty())
            .collect()
    }

    /// All combinations of views along the axes: how far each is moved, and its part of a region.
    fn all_views(&self, region: Region) -> Vec<(PerAxis<i64>, Region)> {
        let [xs, ys, zs] = Axis::ALL.map(|a| self.views(a, region[a]));
        let mut all = Vec::with_capacity(1);
        for &(dx, x) in &xs {
            for &(dy, y) in &ys {
                for &(dz, z) in &zs {
                    all.push((PerAxis([dx, dy, dz]), PerAxis([x, y, z])));
                }
            }
        }
        all
    }

    /// Copies the tile's input with its coefficients into its memory.
    ///
    /// # Safety
    /// No other thread writes the source or the tile's memory.
    unsafe fn load(&self, tile: &Tile<T>, source: Cells<T>) {
        let (full, layout) = (&self.calculation.layout, &self.program.layout);
        let loaded = PerAxis::from_fn(|a| tile.axes[a].loaded);
        for (moved, part) in self.all_views(loaded) {
            let [xs, ys, zs] = part.0;
            let at = |x, y, z| {
                let global = PerAxis([x, y, z]);
                PerAxis::from_fn(|a| global[a] + moved[a] - tile.axes[a].first)
            };
            for x in xs.lo..xs.hi {
                for y in ys.lo..ys.hi {
                    for row in (0..layout.rows).map(RowId) {
                        let from = full.element(row, PerAxis([x, y, zs.lo]));
                        let to = layout.element(row, at(x, y, zs.lo));
                        // SAFETY: the input lies in the arrays of both layouts.
                        unsafe { tile.own.copy(to, source, from, zs.len()) };
                    }
                }
            }
        }
    }

    /// Copies the tile's base to where it belongs, with its ghosts there.
    ///
    /// # Safety
    /// No other thread touches the base in the target, nor its ghosts.
    unsafe fn store(&self, tile: &Tile<T>, target: Cells<T>) {
        let (full, layout) = (&self.calculation.layout, &self.program.layout);
        for id in self.scheme().component_ids() {
            let live = self
                .scheme()
                .grid
                .live(self.scheme().component(id).position);
            let [xs, ys, zs] = tile.base.intersect(self.scheme().extent(id)).0;
            for x in xs.lo..xs.hi {
                for y in ys.lo..ys.hi {
                    for time_level in 0..u64::from(self.scheme().component(id).time_levels) {
                        let row = layout.row(id, time_level);
                        let global = PerAxis([x, y, zs.lo]);
                        let to = full.element(row, global);
                        let at = PerAxis::from_fn(|a| global[a] - tile.axes[a].first);
                        let from = layout.element(row, at);
                        // SAFETY: the base lies in the arrays of both layouts.
                        unsafe {
                            target.copy(to, tile.own, from, zs.len());
                            // Zeros on a plane are ghosts of nothing: they have no sign that a mirror could turn.
                            if live[Axis::OUTER].contains(x) && live[Axis::MIDDLE].contains(y) {
                                let ghosts = &self.calculation.ghosts;
                                ghosts.update(full, target, id, row, Group { x, y }, zs);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Looks at a sample of the rows of the tile's base.
    ///
    /// # Safety
    /// No other thread writes the tile's memory.
    unsafe fn look(&self, tile: &Tile<T>, steps: u64, sample: &Sample) {
        let (scheme, layout) = (self.scheme(), &self.program.layout);
        for id in scheme.component_ids() {
            let version = steps * u64::from(scheme.updates_per_step(id));
            let row = layout.row(id, version);
            let [xs, ys, zs] = tile.base.intersect(scheme.extent(id)).0;
            for x in sample.along(Axis::OUTER, xs) {
                for y in sample.along(Axis::MIDDLE, ys) {
                    for piece in sample.pieces(zs) {
                        let global = PerAxis([x, y, piece.lo]);
                        let at = PerAxis::from_fn(|a| global[a] - tile.axes[a].first);
                        // SAFETY: the base lies in the tile's memory.
                        let values = unsafe { tile.own.row(layout.element(row, at), piece.len()) };
                        if let Some(i) = irregular(values) {
                            let at = PerAxis([x, y, piece.lo + i as i64]);
                            let value = values[i].to_f64();
                            let found = BlowUp::new(scheme, id, at, steps, value);
                            self.progress.guard.trip(found);
                        }
                    }
                }
            }
        }
    }

    /// Advances the region of a stage.
    ///
    /// # Safety
    /// No other thread touches the tile's memory.
    unsafe fn stage(&self, tile: &Tile<T>, stage: StageId, step: u64, region: Region) {
        if region.is_empty() {
            return;
        }
        let layout = &self.program.layout;
        let kernels = &self.kernels[(step % self.kernels.len() as u64) as usize][stage.index()];
        let run = run_axis(self.scheme());
        for (moved, part) in self.all_views(region) {
            let shift = PerAxis::from_fn(|a| moved[a] - tile.axes[a].first);
            for (block, kernels) in self.stages[stage.index()].iter().zip(kernels) {
                let rows = block.region.intersect(part);
                if rows.is_empty() {
                    continue;
                }
                let own = PerAxis::from_fn(|a| {
                    Interval::new(rows[a].lo + shift[a], rows[a].hi + shift[a])
                });
                let [xs, ys, zs] = own.0;
                // One call for all groups: the outer axis is the one along which they do not follow each other.
                let bytes = layout.element_bytes as i64 * layout.stride[Axis::OUTER];
                let runs: Vec<Run> = match run {
                    Axis::MIDDLE => (0..xs.len())
                        .map(|x| Run {
                            offset: x * bytes,
                            groups: ys.len(),
                        })
                        .collect(),
                    _ => vec![Run {
                        offset: 0,
                        groups: xs.len(),
                    }],
                };
                let base = tile.own.address(layout.group(xs.lo, ys.lo));
                let piece = self.piece;
                let mut lo = zs.lo;
                while lo < zs.hi {
                    let hi = zs.hi.min((lo.div_euclid(piece) + 1) * piece);
                    for &kernel in kernels {
                        // SAFETY: the rows with all that they read lie in the tile's memory.
                        unsafe { self.code.run(kernel, base, &runs, Interval::new(lo, hi)) }
                    }
                    lo = hi;
                }
                let by = Axis::ALL.iter().map(|&a| shift[a] * layout.stride[a]).sum();
                let view = tile.own.shifted(by);
                let recorded = (moved == PerAxis::splat(0)).then_some(tile.base);
                for update in block.updates.iter() {
                    let updates = &self.scheme().stages[stage.index()].updates;
                    // SAFETY: passed on.
                    unsafe {
                        self.finish(view, stage, step, updates[update].target, rows, recorded)
                    }
                }
            }
        }
    }

    /// Sources, ghosts and records of rows that were just advanced.
    ///
    /// # Safety
    /// No other thread touches the tile's memory.
    unsafe fn finish(
        &self,
        view: Cells<T>,
        stage: StageId,
        step: u64,
        target: ComponentId,
        rows: Region,
        recorded: Option<Region>,
    ) {
        let ghosts = &self.own_ghosts;
        let ghosted = ghosts.component_has_inner_ghosts(target)
            || ghosts.component_has_row_ghosts(target) && ghosts.rows_may_have(rows);
        if !ghosted && !self.effects().has(stage) {
            return;
        }
        let layout = &self.program.layout;
        let phase = (step % self.kernels.len() as u64) as u32;
        let row = layout.target_row(self.scheme(), stage, phase, target);
        let context = EffectContext {
            scheme: self.scheme(),
            problem: self.calculation.problem,
            files: self.calculation.files,
            layout,
        };
        let [xs, ys, range] = rows.0;
        for x in xs.lo..xs.hi {
            for y in ys.lo..ys.hi {
                let advanced = AdvancedRow {
                    stage,
                    step,
                    component: target,
                    row,
                    group: Group { x, y },
                    range,
                };
                let owned =
                    |base: &Region| base[Axis::OUTER].contains(x) && base[Axis::MIDDLE].contains(y);
                // SAFETY: the rows and their ghosts lie in the tile's memory.
                unsafe {
                    if self.effects().injects(stage, Group { x, y }) {
                        self.effects().inject(&context, view, &advanced);
                    }
                    if ghosted {
                        ghosts.update(layout, view, target, row, Group { x, y }, range);
                    }
                    if let Some(base) = recorded.filter(owned)
                        && self.effects().probes(stage, Group { x, y })
                    {
                        let range = range.intersect(base[Axis::INNER]);
                        let own = AdvancedRow { range, ..advanced };
                        self.effects().record(layout, view, &own);
                    }
                }
            }
        }
        if let Some(base) = recorded {
            let own = AdvancedRows {
                stage,
                step,
                component: target,
                row,
                rows: rows.intersect(base),
            };
            // SAFETY: as above.
            unsafe { self.effects().record_slices(layout, view, &own) }
        }
    }
}
