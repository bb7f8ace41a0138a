//! Runs kernels over rows in some order: the part of a run that takes the time.

use super::batch::Batch;
use super::effects::{AdvancedRow, AdvancedRows, EffectContext, Effects};
use super::ghosts::Ghosts;
use super::kernel_table::{Advance, Found, KernelTable};
use super::memory::Cells;
use super::shares::Shares;
use super::stages::stages;
use super::threads;
use super::waiting::Barrier;
use crate::simulation::guard::{Sample, irregular};
use crate::simulation::{BlowUp, NoThreads, Progress};
use std::sync::atomic::Ordering;
use torre_compiler::kernel::{Code, Run, RunStart, StageBox, UpdateSet, ZoneParts};
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis, Region};
use torre_compiler::layout::{ALIGNMENT, Layout};
use torre_compiler::problem::Problem;
use torre_compiler::real::Real;
use torre_compiler::scheme::{Scheme, StageId, ZoneSet};
use torre_compiler::statics::Files;

/// The least pieces of a layerwise stage that threads take from each other, in planes, as a piece reads the planes
/// beside it once more.
const LEAST_PLANES: i64 = 8;
/// The same on one axis, in vectors, which take about as long as it takes to have a piece.
const LEAST_VECTORS: i64 = 64;

/// The memory that a thread keeps while it advances rows.
#[derive(Default)]
pub(super) struct Scratch {
    /// Runs that were cut at the ends of zones.
    parts: ZoneParts,
    found: Found,
}

/// The data of a run, shared by its threads.
pub struct Engine<'a, T> {
    pub scheme: &'a Scheme,
    pub problem: &'a Problem,
    pub files: &'a dyn Files,
    pub layout: &'a Layout,
    pub ghosts: &'a Ghosts,
    pub effects: &'a Effects,
    pub cells: Cells<T>,
    pub code: &'a dyn Code,
    pub kernels: KernelTable,
    /// Groups that are advanced before the work that follows their kernels.
    pub chunk: i64,
    pub progress: &'a Progress,
    /// Steps that are done at the end of the run.
    pub until: u64,
}

impl<T: Real> Engine<'_, T> {
    /// Advances blocks of a stage. Where there are several they take turns at each index of the outer axis: a block may
    /// be little more than the ends of rows of another one, which still are in a cache then.
    ///
    /// # Safety
    /// As for [`Engine::advance`].
    unsafe fn advance_blocks(
        &self,
        stage: StageId,
        step: u64,
        blocks: &[StageBox],
        scratch: &mut Scratch,
    ) {
        let hull = |axis: Axis| {
            let own = blocks.iter().map(|block| block.region[axis]);
            own.fold(Interval::default(), Interval::hull)
        };
        let (outer, middle) = match blocks.len() > 1 && self.kernels.run_axis == Axis::MIDDLE {
            true => (hull(Axis::OUTER), hull(Axis::MIDDLE)),
            false => {
                for block in blocks {
                    // SAFETY: passed on.
                    unsafe { self.advance(stage, step, block.updates, block.region, scratch) }
                }
                return;
            }
        };
        for strip in strips(middle, self.kernels.widths[stage.index()]) {
            for x in outer.lo..outer.hi {
                for block in blocks {
                    let mut rows = block.region;
                    rows[Axis::OUTER] = rows[Axis::OUTER].intersect(Interval::new(x, x + 1));
                    rows[Axis::MIDDLE] = rows[Axis::MIDDLE].intersect(strip);
                    if !rows.is_empty() {
                        // SAFETY: passed on.
                        unsafe { self.advance(stage, step, block.updates, rows, scratch) }
                    }
                }
            }
        }
    }

    /// Advances `updates` of a stage over the rows of a block: one index of the axis that is not the run axis, if the
    /// grid has one.
    ///
    /// # Safety
    /// No other thread touches meanwhile the values that the updates read and write there, ghosts included.
    pub(super) unsafe fn advance(
        &self,
        stage: StageId,
        step: u64,
        updates: UpdateSet,
        rows: Region,
        scratch: &mut Scratch,
    ) {
        let advance = Advance {
            stage,
            step,
            updates,
        };
        let is_bare = self.kernels.split.is_bare(rows);
        let guard = &self.progress.guard;
        let sample = guard.after_step(self.scheme, step, self.until);
        let run_axis = self.kernels.run_axis;
        let width = self.kernels.widths[stage.index()];
        if run_axis == Axis::MIDDLE && !is_strip(rows[run_axis], width) {
            for range in strips(rows[run_axis], width) {
                let mut strip = rows;
                strip[run_axis] = range;
                // SAFETY: passed on.
                unsafe { self.advance(stage, step, updates, strip, scratch) };
            }
            return;
        }
        let outer = match run_axis {
            Axis::MIDDLE => rows[Axis::OUTER],
            _ => Interval::new(0, 1),
        };
        // The work that follows a kernel finds its rows in the cache if few rows lie between; within a stage the order
        // is free.
        let most = match self.effects.active(stage, step, &rows) || self.ghosts.rows_may_have(rows)
        {
            true => self.chunk,
            false => i64::MAX,
        };
        for x in outer.lo..outer.hi {
            let mut part = rows;
            if run_axis == Axis::MIDDLE {
                part[Axis::OUTER] = Interval::new(x, x + 1);
            }
            let mut lo = rows[run_axis].lo;
            while lo < rows[run_axis].hi {
                let hi = rows[run_axis].hi.min(lo.saturating_add(most));
                part[run_axis] = Interval::new(lo, hi);
                let origin = Group::new(part[Axis::OUTER].lo, part[Axis::MIDDLE].lo);
                let range = part[Axis::INNER];
                let run = Run {
                    offset: 0,
                    groups: hi - lo,
                };
                if is_bare {
                    let base = self.group(origin.x, origin.y);
                    let bare = ZoneSet::default();
                    let found = &mut scratch.found;
                    for &kernel in found.kernels(&self.kernels, advance, bare) {
                        // SAFETY: the rows lie in the layout, the ranges in the targets' extents; the caller excludes
                        // other threads.
                        unsafe { self.code.run(kernel, base, &[run], range) }
                    }
                } else {
                    let start = RunStart {
                        place: origin,
                        offset: run.offset,
                        groups: run.groups,
                    };
                    let starts = std::iter::once(start);
                    // SAFETY: passed on.
                    unsafe { self.advance_zoned(advance, origin, starts, range, scratch) }
                }
                // SAFETY: passed on.
                unsafe {
                    self.finish(stage, step, updates, part);
                    if let Some(sample) = &sample {
                        self.look(stage, step, updates, part, sample);
                    }
                }
                lo = hi;
            }
        }
    }

    /// As [`Engine::advance`], the rows of a batch moved to an origin and cut to a range of the inner axis.
    ///
    /// # Safety
    /// As there; the kernels belong to the updates.
    pub(super) unsafe fn advance_batch(
        &self,
        kernels: &[usize],
        advance: Advance,
        batch: &Batch,
        range: Interval,
        origin: Group,
        scratch: &mut Scratch,
    ) {
        let base = self.group(origin.x, origin.y);
        let bounds = batch.bounds(range, origin);
        let Advance {
            stage,
            step,
            updates,
        } = advance;
        let piece = self.kernels.piece;
        let mut lo = range.lo;
        if !self.kernels.split.is_bare(bounds) {
            let places = batch.places.iter().zip(&batch.runs);
            let starts = places.map(|(place, run)| RunStart {
                place: *place + origin,
                offset: run.offset,
                groups: run.groups,
            });
            // SAFETY: passed on.
            unsafe { self.advance_zoned(advance, origin, starts, range, scratch) }
            lo = range.hi;
        }
        while lo < range.hi {
            let hi = range.hi.min((lo.div_euclid(piece) + 1) * piece);
            for &kernel in kernels {
                // SAFETY: the rows lie in the layout, the ranges in the targets' extents; the caller excludes other
                // threads.
                unsafe {
                    self.code
                        .run(kernel, base, &batch.runs, Interval::new(lo, hi))
                }
            }
            lo = hi;
        }
        let active = self.effects.active(stage, step, &bounds);
        if active || self.ghosts.rows_may_have(bounds) {
            for run in 0..batch.runs.len() {
                let rows = batch.rows(run, self.kernels.run_axis, range, origin);
                if active || self.ghosts.rows_may_have(rows) {
                    // SAFETY: passed on.
                    unsafe { self.finish(stage, step, updates, rows) }
                }
            }
        }
    }

    /// Advances runs of which some lie in zones; their offsets count from group `origin`.
    ///
    /// # Safety
    /// As for [`Engine::advance`].
    unsafe fn advance_zoned(
        &self,
        advance: Advance,
        origin: Group,
        starts: impl Iterator<Item = RunStart> + Clone,
        range: Interval,
        scratch: &mut Scratch,
    ) {
        let base = self.group(origin.x, origin.y);
        let relevant = self.kernels.relevant(advance.stage, advance.updates);
        let piece = self.kernels.piece;
        let split = &self.kernels.split;
        let Scratch { parts, found } = scratch;
        split.split(self.layout, relevant, origin, starts, range, parts);
        for part in parts.iter() {
            let kernels = found.kernels(&self.kernels, advance, part.zones);
            let mut lo = part.range.lo;
            while lo < part.range.hi {
                let hi = part.range.hi.min((lo.div_euclid(piece) + 1) * piece);
                for &kernel in kernels {
                    // SAFETY: the rows lie in the layout, the ranges in the targets' extents; the caller excludes other
                    // threads.
                    unsafe { part.run(self.code, kernel, base, Interval::new(lo, hi)) }
                }
                lo = hi;
            }
        }
    }

    /// Looks at a sample of the rows that were just advanced.
    ///
    /// # Safety
    /// As for [`Engine::advance`].
    pub(super) unsafe fn look(
        &self,
        stage: StageId,
        step: u64,
        updates: UpdateSet,
        rows: Region,
        sample: &Sample,
    ) {
        let [outer, middle, range] = rows.0;
        let targets = &self.kernels.targets[self.kernels.stage_phase(stage, step)];
        for x in sample.along(Axis::OUTER, outer) {
            for y in sample.along(Axis::MIDDLE, middle) {
                for update in updates.iter() {
                    let (target, row) = targets[update];
                    for piece in sample.pieces(range) {
                        let start = self.layout.element(row, PerAxis([x, y, piece.lo]));
                        // SAFETY: the row lies in the layout, and the caller keeps other threads from writing it.
                        let values = unsafe { self.cells.row(start, piece.len()) };
                        if let Some(i) = irregular(values) {
                            let at = PerAxis([x, y, piece.lo + i as i64]);
                            let value = values[i].to_f64();
                            let found = BlowUp::new(self.scheme, target, at, step + 1, value);
                            self.progress.guard.trip(found);
                        }
                    }
                }
            }
        }
    }

    /// Where a group starts; it need not lie in the array.
    fn group(&self, x: i64, y: i64) -> *mut u8 {
        self.cells.address(self.layout.group(x, y))
    }

    /// Sources, ghosts and records of rows that were just advanced; kernels have written the ghosts along the inner
    /// axis.
    ///
    /// # Safety
    /// As for [`Engine::advance`].
    unsafe fn finish(&self, stage: StageId, step: u64, updates: UpdateSet, rows: Region) {
        let active = self.effects.active(stage, step, &rows);
        let edges = self.ghosts.rows_may_have(rows);
        if !active && !edges {
            return;
        }
        let context = EffectContext {
            scheme: self.scheme,
            problem: self.problem,
            files: self.files,
            layout: self.layout,
        };
        let targets = &self.kernels.targets[self.kernels.stage_phase(stage, step)];
        let [outer, middle, range] = rows.0;
        let rows_of = |group: Group| {
            updates.iter().map(move |update| {
                let (component, row) = targets[update];
                AdvancedRow {
                    stage,
                    step,
                    component,
                    row,
                    group,
                    range,
                }
            })
        };
        let (layout, cells) = (self.layout, self.cells);
        for x in outer.lo..outer.hi {
            for y in middle.lo..middle.hi {
                let group = Group { x, y };
                let injects = active && self.effects.injects(stage, group);
                if injects || edges && self.ghosts.group_may_have(group) {
                    for advanced in rows_of(group) {
                        let AdvancedRow { component, row, .. } = advanced;
                        // SAFETY: the caller excludes other threads from these rows and their ghosts.
                        unsafe {
                            if injects {
                                self.effects.inject(&context, cells, &advanced);
                                self.ghosts
                                    .update(layout, cells, component, row, group, range);
                            } else {
                                self.ghosts
                                    .copy_row(layout, cells, component, row, group, range);
                            }
                        }
                    }
                }
                if active && self.effects.probes(stage, group) {
                    for advanced in rows_of(group) {
                        // SAFETY: as above.
                        unsafe { self.effects.record(layout, cells, &advanced) };
                    }
                }
            }
        }
        if active && self.effects.slices(stage, step) {
            for (component, row) in updates.iter().map(|update| targets[update]) {
                let advanced = AdvancedRows {
                    stage,
                    step,
                    component,
                    row,
                    rows,
                };
                // SAFETY: as above.
                unsafe { self.effects.record_slices(layout, cells, &advanced) }
            }
        }
    }

    /// Runs steps `from..until` stage by stage on some threads.
    ///
    /// # Safety
    /// No other thread touches the cells meanwhile.
    pub unsafe fn run_layerwise(
        &self,
        threads: usize,
        from: u64,
        until: u64,
    ) -> Result<(), NoThreads> {
        let stages = stages(self.scheme);
        let split = match self.scheme.grid.axes[Axis::OUTER] {
            Some(_) => Axis::OUTER,
            None => Axis::INNER,
        };
        let threads = threads
            .min(usize::try_from(self.layout.extent[split]).unwrap_or(1))
            .max(1);
        let (grain, least) = match split {
            Axis::INNER => {
                let vector = (ALIGNMENT / self.layout.element_bytes) as i64;
                (vector, LEAST_VECTORS * vector)
            }
            _ => (1, LEAST_PLANES),
        };
        let shares = Shares::new(self.layout.extent[split], threads, grain, least);
        let barrier = Barrier::new(threads);
        threads::run(threads, |thread| {
            let mut scratch = Scratch::default();
            let mut stages_done = 0;
            for step in from..until {
                if self.progress.guard.ends_before(step) {
                    break;
                }
                for stage in &stages {
                    for part in shares.of(thread, stages_done) {
                        let cut = |block: &StageBox| {
                            let mut region = block.region;
                            region[split] = region[split].intersect(part);
                            StageBox { region, ..*block }
                        };
                        let own: Vec<StageBox> = (stage.blocks.iter().map(cut))
                            .filter(|block| !block.region.is_empty())
                            .collect();
                        // SAFETY: shares of threads are disjoint, which `stages` asks for, and the barrier separates
                        // the stages.
                        unsafe { self.advance_blocks(stage.id, step, &own, &mut scratch) };
                        let cells = own.iter().map(StageBox::cell_stages);
                        let done = &self.progress.done;
                        done.fetch_add(cells.sum(), Ordering::Relaxed);
                    }
                    stages_done += 1;
                    barrier.wait();
                }
            }
        })
    }
}

/// Whether some rows along the middle axis are not worth cutting into strips of a width.
fn is_strip(rows: Interval, width: i64) -> bool {
    rows.len() <= width + width / 2
}

/// Strips of rows along the middle axis: values that are read at several places of the outer axis are still in a
/// level-2 cache when they are read again.
fn strips(rows: Interval, width: i64) -> impl Iterator<Item = Interval> {
    let each = if is_strip(rows, width) {
        rows.len()
    } else {
        width
    };
    let strip = move |lo| Interval::new(lo, rows.hi.min(lo + each));
    (rows.lo..rows.hi).step_by(each.max(1) as usize).map(strip)
}
