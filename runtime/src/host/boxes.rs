//! Runs each stage over the whole grid in boxes, then the next.

use super::engine::{Engine, Scratch};
use super::stages::{Stage, stages};
use super::threads;
use super::waiting::Barrier;
use crate::simulation::NoThreads;
use std::sync::atomic::{AtomicU64, Ordering};
use torre_compiler::kernel::StageBox;
use torre_compiler::lattice::{Interval, PerAxis, Region, div_ceil};
use torre_compiler::real::Real;
use torre_compiler::schedule::Boxes;

/// The boxes of a region.
struct Grid {
    whole: Region,
    size: PerAxis<i64>,
    count: PerAxis<u64>,
}

impl Grid {
    fn new(whole: Region, sizes: PerAxis<Option<i64>>) -> Grid {
        let size = PerAxis::from_fn(|a| sizes[a].unwrap_or(whole[a].len()).max(1));
        Grid {
            whole,
            size,
            count: PerAxis::from_fn(|a| div_ceil(whole[a].len(), size[a]) as u64),
        }
    }

    fn len(&self) -> u64 {
        self.count.0.iter().product()
    }

    /// The last axis fastest.
    fn get(&self, index: u64) -> Region {
        let [_, y, z] = self.count.0;
        let place = PerAxis([index / (y * z), index / z % y, index % z]);
        PerAxis::from_fn(|a| {
            let lo = self.whole[a].lo + place[a] as i64 * self.size[a];
            Interval::new(lo, lo + self.size[a]).intersect(self.whole[a])
        })
    }
}

impl<T: Real> Engine<'_, T> {
    /// Runs steps `from..until` stage by stage, in boxes that threads take in turn.
    ///
    /// # Safety
    /// No other thread touches the cells meanwhile.
    pub unsafe fn run_boxes(
        &self,
        boxes: &Boxes,
        threads: usize,
        from: u64,
        until: u64,
    ) -> Result<(), NoThreads> {
        let stages = stages(self.scheme);
        let (outer, inner) = match boxes.levels.split_first() {
            Some((outer, inner)) => (*outer, inner),
            None => (PerAxis::splat(None), &[][..]),
        };
        let whole = PerAxis::from_fn(|a| Interval::new(0, self.layout.extent[a]));
        let grid = Grid::new(whole, outer);
        let count = grid.len();
        let threads = (threads as u64).min(count).max(1) as usize;
        let barrier = Barrier::new(threads);
        let next = AtomicU64::new(0);
        threads::run(threads, |_| {
            let mut scratch = Scratch::default();
            let mut task = next.fetch_add(1, Ordering::Relaxed);
            let mut end = 0;
            for step in from..until {
                if self.progress.guard.ends_before(step) {
                    break;
                }
                for stage in &stages {
                    end += count;
                    // A task beyond the stage belongs to the next one.
                    while task < end {
                        let part = grid.get(task + count - end);
                        // SAFETY: boxes are disjoint, which `stages` asks for, and the barrier separates the stages.
                        unsafe { self.run_box(stage, step, part, inner, &mut scratch) };
                        task = next.fetch_add(1, Ordering::Relaxed);
                    }
                    barrier.wait();
                }
            }
        })
    }

    /// # Safety
    /// As for [`Engine::advance`].
    unsafe fn run_box(
        &self,
        stage: &Stage,
        step: u64,
        part: Region,
        inner: &[PerAxis<Option<i64>>],
        scratch: &mut Scratch,
    ) {
        if let Some((sizes, inner)) = inner.split_first() {
            let grid = Grid::new(part, *sizes);
            for index in 0..grid.len() {
                // SAFETY: passed on.
                unsafe { self.run_box(stage, step, grid.get(index), inner, scratch) };
            }
            return;
        }
        let mut cells = 0;
        for block in &stage.blocks {
            let region = block.region.intersect(part);
            if !region.is_empty() {
                cells += StageBox { region, ..*block }.cell_stages();
                // SAFETY: passed on.
                unsafe { self.advance(stage.id, step, block.updates, region, scratch) };
            }
        }
        self.progress.done.fetch_add(cells, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::lattice::Axis;

    #[test]
    fn boxes_cover_a_region_once() {
        let whole = PerAxis([
            Interval::new(2, 9),
            Interval::new(0, 1),
            Interval::new(0, 10),
        ]);
        let grid = Grid::new(whole, PerAxis([Some(3), None, Some(4)]));
        let all: Vec<Region> = (0..grid.len()).map(|i| grid.get(i)).collect();
        assert_eq!(all.len(), 9);
        assert_eq!(all.iter().map(|r| r.volume()).sum::<u64>(), whole.volume());
        assert!(
            all.iter()
                .all(|r| r[Axis::OUTER].len() <= 3 && !r.is_empty())
        );
    }
}
