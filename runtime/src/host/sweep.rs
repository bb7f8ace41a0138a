//! Runs many steps in one sweep along the first axis, so that only some planes have to be in memory.
//!
//! Slabs of planes go up the first axis. Every stage of every step runs some planes behind the stage before it: as many
//! as it reads to the side at most, through mirrors, too. So when a stage runs in a slab, the values that it reads are
//! there, and the values that it overwrites are not needed any more. Planes below the last stage are final.

use super::engine::{Engine, Scratch};
use super::shares::Shares;
use super::stages::stages;
use super::threads;
use super::waiting::Barrier;
use crate::simulation::NoThreads;
use std::sync::atomic::{AtomicI64, Ordering};
use torre_compiler::kernel::StageBox;
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::real::Real;
use torre_compiler::scheme::{ComponentId, Read, Scheme};

/// Cells of a slab, about: enough for threads to share.
const SLAB: i64 = 1 << 20;

/// The least pieces of a stage in a slab that threads take from each other: rows of a plane, or planes where they have
/// no rows.
const LEAST_ROWS: i64 = 8;

/// Planes that come and go.
pub trait PlanesOnDemand: Sync {
    /// Waits until all planes below one are there; `false`: they will not be.
    fn need(&self, below: i64) -> bool;
    /// Says that planes below one are not needed any more, and that they are final.
    fn done(&self, below: i64);
}

/// How a sweep advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Planes that a stage is behind the one before it.
    pub lag: i64,
    /// Planes of a slab.
    pub slab: i64,
    /// Stages of a step.
    pub stages: i64,
}

impl Sweep {
    pub fn new(scheme: &Scheme) -> Sweep {
        let half = |id| i32::from(scheme.component(id).position[Axis::OUTER].is_half());
        let distance = |target: ComponentId, read: &Read| {
            let offset = read.offset[Axis::OUTER];
            // The offset of the ghost of a value behind an upper mirror, read by a value on the plane of the mirror.
            let ghost = offset + half(read.component) - half(target);
            offset.abs().max(ghost)
        };
        let updates = scheme.stages.iter().flat_map(|stage| &stage.updates);
        let reads = updates.flat_map(|u| u.reads().map(move |r| distance(u.target, r)));
        let cells = scheme.grid.cells;
        let plane = cells[Axis::MIDDLE] * cells[Axis::INNER];
        Sweep {
            lag: reads.max().unwrap_or(0).max(1).into(),
            slab: (SLAB / plane.max(1)).clamp(1, cells[Axis::OUTER].max(1)),
            stages: scheme.stages.len() as i64,
        }
    }

    /// Planes by which the last stage of `steps` steps is behind the first one.
    pub fn behind(&self, steps: u64) -> i64 {
        let stages = (steps as i64).saturating_mul(self.stages);
        self.lag.saturating_mul((stages - 1).max(0))
    }

    /// Planes that are in memory at a time while `steps` steps are done.
    pub fn planes(&self, steps: u64) -> i64 {
        self.behind(steps)
            .saturating_add(self.slab)
            .saturating_add(2 * self.lag)
    }
}

/// A sweep over planes that come and go.
#[derive(Clone, Copy)]
pub struct SweepOver<'a> {
    pub sweep: &'a Sweep,
    pub planes: &'a dyn PlanesOnDemand,
    pub threads: usize,
}

impl<T: Real> Engine<'_, T> {
    /// Runs steps `from..until` in one sweep on some threads; `false` where planes did not come, or values were none.
    ///
    /// # Safety
    /// No other thread touches planes that were needed and not said to be done. The first axis is not periodic.
    pub unsafe fn run_sweep(
        &self,
        over: SweepOver<'_>,
        from: u64,
        until: u64,
    ) -> Result<bool, NoThreads> {
        let SweepOver {
            sweep,
            planes,
            threads,
        } = over;
        let stages = stages(self.scheme);
        // Threads share the rows of a plane where it has some, else the planes of a slab.
        let extent = self.layout.extent;
        let (split, length) = match self.scheme.grid.axes[Axis::MIDDLE] {
            Some(_) => (Axis::MIDDLE, extent[Axis::MIDDLE]),
            None => (Axis::OUTER, sweep.slab),
        };
        let threads = threads.min(usize::try_from(length).unwrap_or(1)).max(1);
        let shares = Shares::new(length, threads, 1, LEAST_ROWS);
        let barrier = Barrier::new(threads);
        // The first plane of the slab before which the sweep ends. A thread that is still in a slab where no stage acts
        // may look when the end of the next one is known.
        let ended = AtomicI64::new(i64::MAX);
        let end = extent[Axis::OUTER] + sweep.behind(until - from);
        threads::run(threads, |thread| {
            let mut scratch = Scratch::default();
            let mut stages_done = 0;
            let mut lo = 0;
            while lo < end {
                let hi = (lo + sweep.slab).min(end);
                if thread == 0 {
                    let there = planes.need((hi + sweep.lag).min(extent[Axis::OUTER]));
                    let ends = !there || self.progress.guard.tripped();
                    if ends {
                        ended.store(lo, Ordering::SeqCst);
                    }
                }
                barrier.wait();
                if ended.load(Ordering::SeqCst) <= lo {
                    break;
                }
                let mut behind = 0;
                for step in from..until {
                    for stage in &stages {
                        let slab = Interval::new(lo - behind, hi - behind);
                        behind += sweep.lag;
                        if slab.hi <= 0 {
                            continue;
                        }
                        if slab.lo >= extent[Axis::OUTER] {
                            continue;
                        }
                        let mut cells = 0;
                        let first = if split == Axis::OUTER { slab.lo } else { 0 };
                        for part in shares.of(thread, stages_done) {
                            let part = Interval::new(first + part.lo, first + part.hi);
                            for block in &stage.blocks {
                                let mut region = block.region;
                                region[Axis::OUTER] = region[Axis::OUTER].intersect(slab);
                                region[split] = region[split].intersect(part);
                                if region.is_empty() {
                                    continue;
                                }
                                let own = StageBox { region, ..*block };
                                cells += own.cell_stages();
                                // SAFETY: shares of threads in a slab are disjoint, which `stages` asks for, and
                                // barriers separate stages. A stage is far enough behind the stage before that the
                                // latter has written all that the former reads, and has read all that it overwrites.
                                unsafe {
                                    self.advance(stage.id, step, own.updates, region, &mut scratch)
                                };
                            }
                        }
                        stages_done += 1;
                        self.progress.done.fetch_add(cells, Ordering::Relaxed);
                        barrier.wait();
                    }
                }
                if thread == 0 {
                    planes.done(hi - sweep.behind(until - from) - sweep.lag);
                }
                lo = hi;
            }
        })?;
        Ok(ended.load(Ordering::SeqCst) == i64::MAX)
    }
}
