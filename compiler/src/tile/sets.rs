//! Which sets of updates run together: the kernels that a tile program needs.

use super::{ClassSet, TileProgram};
use crate::distinct::distinct;
use crate::kernel::RowKernel;
use crate::lattice::Interval;
use crate::scheme::{Scheme, StageId, ZoneSet};

/// Inner tiles that are walked to see which sets occur; more add compile time, not correctness.
const MOST_TILES: usize = 48;

impl TileProgram {
    /// Kernels for the sets of updates that occur inside of the grid, and for each class alone: with these, every set
    /// can be run, if not always in one go.
    pub fn kernels(&self, scheme: &Scheme) -> Vec<RowKernel> {
        let mut kernels = Vec::new();
        for (stage, found) in (0..).map(StageId).zip(self.common_sets()) {
            let singles = (0..self.stages[stage.index()].len()).map(|i| 1 << i);
            let sets = found.into_iter().chain(singles);
            let sets = distinct(sets.map(|set| self.updates(stage, set)));
            for phase in 0..scheme.phases() {
                kernels.extend(sets.iter().map(|&updates| RowKernel {
                    stage,
                    phase,
                    updates,
                    zones: ZoneSet::default(),
                }));
            }
        }
        kernels
    }

    /// Per stage, the sets of classes that run together in tiles around the middle of the grid.
    fn common_sets(&self) -> Vec<Vec<ClassSet>> {
        let mut sets = vec![Vec::new(); self.stages.len()];
        let numbers = self.first_time_block();
        let mut tiles = 0;
        for offset in 0..4i64 {
            let mut tile = self.whole();
            for (i, cut) in self.levels.first().into_iter().flatten().enumerate() {
                let range = self.indices(&tile, *cut, numbers);
                let middle = (range.lo + range.hi) / 2 - (offset >> i & 1);
                self.narrow(&mut tile, *cut, middle);
            }
            self.tiles_inside(&tile, 1, numbers, &mut |inner| {
                tiles += 1;
                if tiles <= MOST_TILES * (offset as usize + 1) {
                    self.walk(inner, numbers, &mut |segment| {
                        let known = &mut sets[segment.stage.index()];
                        if !known.contains(&segment.classes) {
                            known.push(segment.classes);
                        }
                    });
                }
            });
        }
        sets
    }

    /// The stages of the first time block, at most four steps of it: the shape repeats.
    fn first_time_block(&self) -> Interval {
        let steps = self.height.min(4) as i64;
        Interval::new(0, steps * self.stages_per_step())
    }
}
