//! Runs the tiles of a program on some threads.
//!
//! A thread takes [`Strips`] in the order of their numbers and runs each one's tiles in order. Before a tile it waits until the strips
//! of [`Strips::waits`] have passed the same place; `torre_compiler::tile::check` proves for a program that this is enough. As a
//! strip waits only for strips taken earlier, some strip can always run.

use super::engine::Engine;
use super::threads::{self, Pause};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use torre_compiler::kernel::UpdateSet;
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::real::Real;
use torre_compiler::tile::{BANDS_AT_ONCE, ClassSet, Segment, Shapes, Strips, Tile, TileProgram};

/// How far a strip has come: places below are done.
#[repr(align(128))]
struct Counter(AtomicI64);

const DONE: i64 = i64::MAX;

/// Kernels for each set of classes that has been met, per stage and phase.
pub(super) struct ClassKernels {
    phases: u64,
    entries: Vec<Vec<(ClassSet, UpdateSet, Vec<usize>)>>,
    /// Cell-stages done since the progress was told.
    cells: u64,
    shapes: Shapes,
}

impl ClassKernels {
    pub(super) fn new(program: &TileProgram, phases: u64) -> Self {
        Self {
            phases,
            entries: vec![Vec::new(); program.stages.len() * phases as usize],
            cells: 0,
            shapes: Shapes::new(program),
        }
    }
}

impl<T: Real> Engine<'_, T> {
    /// Runs steps `from..until` tile by tile on some threads.
    ///
    /// # Safety
    /// Nobody else touches the cells meanwhile.
    pub unsafe fn run_tiles(&self, program: &TileProgram, threads: usize, from: u64, until: u64) {
        let mut start = from;
        while start < until {
            let end = until.min(start.saturating_add(program.height.saturating_mul(BANDS_AT_ONCE)));
            // SAFETY: passed on.
            unsafe { self.run_bands(program, threads, start, end) };
            start = end;
        }
    }

    unsafe fn run_bands(&self, program: &TileProgram, threads: usize, from: u64, until: u64) {
        let strips = Strips::new(program, until - from);
        let counters: Vec<Counter> = (0..strips.len())
            .map(|_| Counter(AtomicI64::new(-1)))
            .collect();
        let next = AtomicUsize::new(0);
        threads::run(threads.min(strips.len()).max(1), |_| {
            let mut kernels = ClassKernels::new(program, u64::from(self.scheme.phases()));
            loop {
                let strip = next.fetch_add(1, Ordering::Relaxed);
                if strip >= strips.len() {
                    return;
                }
                let numbers = strips.bands[strips.band(strip)].numbers;
                let counter = &counters[strip].0;
                let waits = strips.waits(strip);
                strips.tiles(program, strip, &mut |place, _, tile| {
                    counter.store(place, Ordering::Release);
                    for other in waits.iter() {
                        let mut pause = Pause::default();
                        while counters[other].0.load(Ordering::Acquire) <= place {
                            pause.wait();
                        }
                    }
                    program.tiles_inside(tile, 1, numbers, &mut |inner| {
                        // SAFETY: the tiling is legal and strips wait for what they depend on, so no other thread touches what
                        // this tile reads or writes; images lie no farther from a reader than their source.
                        unsafe { self.run_tile(program, &mut kernels, from, inner, numbers) }
                    });
                    self.progress
                        .done
                        .fetch_add(kernels.cells, Ordering::Relaxed);
                    kernels.cells = 0;
                });
                counter.store(DONE, Ordering::Release);
            }
        });
    }

    /// Runs a tile stage by stage.
    ///
    /// # Safety
    /// As for `Engine::advance`.
    unsafe fn run_tile(
        &self,
        program: &TileProgram,
        kernels: &mut ClassKernels,
        from: u64,
        tile: &Tile,
        numbers: Interval,
    ) {
        if let Some((shape, origin)) = kernels.shapes.find(tile, numbers) {
            for segment in &shape.segments {
                let mut placed = kernels.shapes.place(segment, origin);
                placed.number += numbers.lo;
                if !placed.rows[Axis::VECTOR].is_empty() {
                    // SAFETY: passed on.
                    unsafe { self.run_segment(program, kernels, from, &placed) }
                }
            }
            return;
        }
        program.walk(tile, numbers, &mut |segment| {
            // SAFETY: passed on.
            unsafe { self.run_segment(program, kernels, from, segment) }
        });
    }

    /// # Safety
    /// As for `Engine::advance`.
    unsafe fn run_segment(
        &self,
        program: &TileProgram,
        kernels: &mut ClassKernels,
        from: u64,
        segment: &Segment,
    ) {
        let step = from + (segment.number / program.stages_per_step()) as u64;
        let phase = step % kernels.phases;
        let slot = segment.stage.index() * kernels.phases as usize + phase as usize;
        let entries = &mut kernels.entries[slot];
        let found = match entries.iter().position(|(c, _, _)| *c == segment.classes) {
            Some(i) => i,
            None => {
                let updates = program.updates(segment.stage, segment.classes);
                let list = self.kernels.find(segment.stage, step, updates);
                entries.push((segment.classes, updates, list));
                entries.len() - 1
            }
        };
        let (_, updates, list) = &entries[found];
        // SAFETY: passed on.
        unsafe { self.advance_with(list, segment.stage, step, *updates, segment.rows) };
        kernels.cells += segment.rows.volume() * u64::from(updates.0.count_ones());
    }
}
