//! Runs the tiles of a program on some threads.
//!
//! The unit of scheduling is a *strip*: the outermost tiles of one band that share the index of the first cut. A thread takes
//! strips in the order (band, index) and runs each one's tiles in lexicographic order of the remaining cuts. Before a tile it
//! waits until two other strips have passed the same place: the one with the next lower index in the same band, and the one with
//! the same index in the band before. All other dependences follow from these (see [`torre_compiler::tile`]). As a strip waits only for
//! strips taken earlier, some strip can always run.

use super::engine::Engine;
use super::threads::{self, Pause};
use std::sync::atomic::{AtomicI64, Ordering};
use torre_compiler::kernel::UpdateSet;
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::real::Real;
use torre_compiler::tile::{ClassSet, PlaneCut, Segment, Shapes, Tile, TileProgram};

/// Bands that run between two barriers at the most; bounds the memory for counters.
const BANDS_AT_ONCE: u64 = 256;

/// A band's strips.
struct Band {
    /// Stages since the start of the run.
    numbers: Interval,
    /// Indices along the first cut.
    strips: Interval,
    /// Of the first strip in the list of counters.
    first: usize,
}

/// How far a strip has come: places below are done.
#[repr(align(128))]
struct Counter(AtomicI64);

const DONE: i64 = i64::MAX;

/// Counts the places of a strip's tiles, ascending in running order and the same for all strips.
struct Places {
    /// Per remaining cut of the outermost level, all indices that occur.
    ranges: Vec<Interval>,
}

impl Places {
    fn of(&self, indices: &[i64]) -> i64 {
        self.ranges
            .iter()
            .zip(indices)
            .fold(0, |place, (range, i)| place * range.len() + (i - range.lo))
    }
}

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
        let per_step = program.stages_per_step();
        let (first_cut, other_cuts): (Option<PlaneCut>, &[PlaneCut]) =
            match program.levels.first().and_then(|cuts| cuts.split_first()) {
                Some((first, others)) => (Some(*first), others),
                None => (None, &[]),
            };
        let whole = program.whole();
        let mut bands: Vec<Band> = Vec::new();
        let mut strips = 0usize;
        let mut step = from;
        while step < until {
            let end = until.min(step + program.height);
            let numbers = Interval::new(
                (step - from) as i64 * per_step,
                (end - from) as i64 * per_step,
            );
            let range = match first_cut {
                Some(cut) => program.indices(&whole, cut, numbers),
                None => Interval::new(0, 1),
            };
            bands.push(Band {
                numbers,
                strips: range,
                first: strips,
            });
            strips += range.len() as usize;
            step = end;
        }
        let all = Interval::new(0, (until - from) as i64 * per_step);
        let places = Places {
            ranges: other_cuts
                .iter()
                .map(|cut| program.indices(&whole, *cut, all))
                .collect(),
        };
        let counters: Vec<Counter> = (0..strips).map(|_| Counter(AtomicI64::new(-1))).collect();
        let next = AtomicI64::new(0);
        threads::run(threads.min(strips).max(1), |_| {
            let mut kernels = ClassKernels::new(program, u64::from(self.scheme.phases()));
            let mut band = 0;
            loop {
                let taken = next.fetch_add(1, Ordering::Relaxed) as usize;
                if taken >= strips {
                    return;
                }
                while taken >= bands[band].first + bands[band].strips.len() as usize {
                    band += 1;
                }
                let own = &bands[band];
                let index = own.strips.lo + (taken - own.first) as i64;
                let left = (index > own.strips.lo).then(|| &counters[taken - 1].0);
                let below = band.checked_sub(1).and_then(|b| {
                    let before = &bands[b];
                    let same = index.min(before.strips.hi - 1) - before.strips.lo;
                    (same >= 0).then(|| &counters[before.first + same as usize].0)
                });
                let mut strip = Strip {
                    waits: [left, below],
                    counter: &counters[taken].0,
                    places: &places,
                    cuts: other_cuts,
                    numbers: own.numbers,
                    indices: Vec::new(),
                };
                let mut tile = whole.clone();
                if let Some(cut) = first_cut {
                    program.narrow(&mut tile, cut, index);
                }
                strip.run(program, &tile, &mut |tile| {
                    program.tiles_inside(tile, 1, own.numbers, &mut |inner| {
                        // SAFETY: the tiling is legal and strips wait for what they depend on, so no other thread touches what
                        // this tile reads or writes; images lie no farther from a reader than their source.
                        unsafe { self.run_tile(program, &mut kernels, from, inner, own.numbers) }
                    });
                    self.progress
                        .done
                        .fetch_add(kernels.cells, Ordering::Relaxed);
                    kernels.cells = 0;
                });
                strip.counter.store(DONE, Ordering::Release);
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

struct Strip<'a> {
    waits: [Option<&'a AtomicI64>; 2],
    counter: &'a AtomicI64,
    places: &'a Places,
    cuts: &'a [PlaneCut],
    numbers: Interval,
    /// Of the tile that runs now, per remaining cut.
    indices: Vec<i64>,
}

impl Strip<'_> {
    /// Runs the outermost tiles inside of `tile` in order.
    fn run(&mut self, program: &TileProgram, tile: &Tile, visit: &mut impl FnMut(&Tile)) {
        let Some(&cut) = self.cuts.get(self.indices.len()) else {
            let place = self.places.of(&self.indices);
            self.counter.store(place, Ordering::Release);
            for other in self.waits.iter().flatten() {
                let mut pause = Pause::default();
                while other.load(Ordering::Acquire) <= place {
                    pause.wait();
                }
            }
            visit(tile);
            return;
        };
        let range = program.indices(tile, cut, self.numbers);
        for index in range.lo..range.hi {
            let mut part = tile.clone();
            program.narrow(&mut part, cut, index);
            self.indices.push(index);
            self.run(program, &part, visit);
            self.indices.pop();
        }
    }
}
