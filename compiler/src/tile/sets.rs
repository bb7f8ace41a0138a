//! Which sets of updates run together: the kernels that a tile program needs.

use super::{ClassSet, TileProgram};
use crate::kernel::{RowKernel, UpdateSet};
use crate::lattice::Interval;
use crate::scheme::{Scheme, StageId, ZoneSet};
use std::collections::BTreeSet;

/// Inner tiles that are walked to see which sets occur; more add compile time, not correctness.
const MOST_TILES: usize = 48;

impl TileProgram {
    /// Kernels for the sets of updates that occur inside of the grid, and for each class alone: with these, every set
    /// can be run, if not always in one go.
    pub fn kernels(&self, scheme: &Scheme) -> Vec<RowKernel> {
        let mut sets: Vec<BTreeSet<UpdateSet>> = vec![BTreeSet::new(); self.stages.len()];
        for (stage, found) in self.common_sets().into_iter().enumerate() {
            let id = StageId(stage as u32);
            let singles = (0..self.stages[stage].len()).map(|i| 1 << i);
            for set in found.into_iter().chain(singles) {
                sets[stage].insert(self.updates(id, set));
            }
        }
        let mut kernels = Vec::new();
        for (stage, sets) in sets.into_iter().enumerate() {
            for phase in 0..scheme.phases() {
                kernels.extend(sets.iter().map(|&updates| RowKernel {
                    stage: StageId(stage as u32),
                    phase,
                    updates,
                    zones: ZoneSet::default(),
                }));
            }
        }
        kernels
    }

    /// Per stage, the sets of classes that run together in tiles around the middle of the grid.
    fn common_sets(&self) -> Vec<BTreeSet<ClassSet>> {
        let mut sets = vec![BTreeSet::new(); self.stages.len()];
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
                        sets[segment.stage.index()].insert(segment.classes);
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
