//! Strips: the unit in which threads take the outermost tiles, and the waits of each.
//!
//! A strip holds the outermost tiles of one time block that share the index of the first cut. Strips are numbered by
//! (time block, index). A strip's tiles run in lexicographic order of the remaining cuts; a tile's *place* in this
//! order is the same number in all strips. Before a tile, its strip waits until [`Strips::waits`] have passed the same
//! place. All other dependences follow, as indices fall along no cut from a tile to one that depends on it. A strip
//! waits only for strips with lower numbers, so that some strip can always run.
//!
//! A strip has a *track* for each sheet ([`super::sheets`]): the parts of its tiles that lie there. A track passes a
//! place when its part of the tile is done. Parts of a tile that are joined are one task of several tracks: it waits
//! until all of these have come to the tile, and for the same tracks of the strips that its strip waits for. Any other
//! part is a task of its own track, which waits for that track of other strips only. This is enough: where a dependence
//! goes from one sheet to another, both of its tiles come near the same end of the fold, so the later one is joined and
//! waits on both sheets.

use super::sheets::Joint;
use super::{PlaneCut, Tile, TileProgram};
use crate::lattice::Interval;
use std::ops::ControlFlow;

/// Time blocks that run between two barriers, at the most.
const MOST_AT_ONCE: u64 = 256;
/// Counters of all strips of these time blocks, of 128 bytes each, at the most; one time block may have more.
const COUNTERS: u64 = 1 << 20;

/// Time blocks that run between two barriers; bounds the memory for counters.
pub fn time_blocks_at_once(program: &TileProgram) -> u64 {
    let strips = Strips::new(program, program.height.max(1)).len() as u64;
    let counters = strips.saturating_mul(program.sheets() as u64);
    (COUNTERS / counters.max(1)).clamp(1, MOST_AT_ONCE)
}

/// A time block's strips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBlock {
    /// Stages since the start of the run.
    pub numbers: Interval,
    /// Indices along the first cut.
    pub strips: Interval,
    /// The number of its first strip.
    pub first: usize,
}

/// All strips of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Strips {
    pub time_blocks: Vec<TimeBlock>,
    count: usize,
    first_cut: Option<PlaneCut>,
    other_cuts: Vec<PlaneCut>,
    /// Per remaining cut of the outermost level, all indices that occur.
    ranges: Vec<Interval>,
}

/// The indices that tiles inside of a tile have along a cut: all of them, by [`TileProgram::indices`], as strips wait
/// for each other's tiles without rows as well; or fewer, by [`TileProgram::occupied`].
pub(crate) type Indices = fn(&TileProgram, &Tile, PlaneCut, Interval) -> Interval;

/// How the tiles inside of a tile are found.
#[derive(Clone, Copy)]
struct Inside<'a> {
    program: &'a TileProgram,
    numbers: Interval,
    indices: Indices,
}

/// An outermost tile of a strip.
#[derive(Clone, Debug, PartialEq)]
pub struct Outermost {
    pub place: i64,
    /// Along the remaining cuts.
    pub indices: Vec<i64>,
    pub tile: Tile,
    pub joint: Joint,
}

/// The strips that a strip waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// One index lower in the same time block.
    pub left: Option<usize>,
    /// The same index in the time block before, or the last one there.
    pub before: Option<usize>,
}

impl Waits {
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        [self.left, self.before].into_iter().flatten()
    }
}

impl Strips {
    /// The strips of a run of `steps` steps; the first time block starts with the run.
    pub fn new(program: &TileProgram, steps: u64) -> Strips {
        let per_step = program.stages_per_step();
        let whole = program.whole();
        let cuts = program.levels.first().map_or(&[][..], Vec::as_slice);
        let (first_cut, other_cuts) = match cuts.split_first() {
            Some((first, others)) => (Some(*first), others.to_vec()),
            None => (None, Vec::new()),
        };
        let mut time_blocks = Vec::new();
        let (mut count, mut step) = (0, 0);
        while step < steps {
            let end = steps.min(step.saturating_add(program.height.max(1)));
            let numbers = Interval::new(step as i64 * per_step, end as i64 * per_step);
            let strips = match first_cut {
                Some(cut) => program.indices(&whole, cut, numbers),
                None => Interval::new(0, 1),
            };
            time_blocks.push(TimeBlock {
                numbers,
                strips,
                first: count,
            });
            count += strips.len() as usize;
            step = end;
        }
        let all = Interval::new(0, steps as i64 * per_step);
        let ranges = other_cuts
            .iter()
            .map(|cut| program.indices(&whole, *cut, all))
            .collect();
        Strips {
            time_blocks,
            count,
            first_cut,
            other_cuts,
            ranges,
        }
    }

    /// The outermost tiles of a strip, in running order.
    pub fn of_strip(&self, program: &TileProgram, strip: usize) -> Vec<Outermost> {
        let numbers = self.time_blocks[self.time_block(strip)].numbers;
        let mut all = Vec::new();
        let own = TileProgram::indices;
        let _ = self.visit(program, strip, own, &mut |place, indices, tile| {
            all.push(Outermost {
                place,
                indices: indices.to_vec(),
                tile: tile.clone(),
                joint: program.joint(tile, numbers),
            });
            ControlFlow::Continue(())
        });
        all
    }

    /// How many strips there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// There is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// An upper bound for the number of outermost tiles; saturates.
    pub fn most_tiles(&self) -> u64 {
        self.ranges.iter().fold(self.count as u64, |n, range| {
            n.saturating_mul(range.len() as u64)
        })
    }

    /// The time block of a strip.
    pub fn time_block(&self, strip: usize) -> usize {
        self.time_blocks
            .partition_point(|b| b.first <= strip)
            .saturating_sub(1)
    }

    /// The index of a strip along the first cut.
    pub fn index(&self, strip: usize) -> i64 {
        let time_block = &self.time_blocks[self.time_block(strip)];
        time_block.strips.lo + (strip - time_block.first) as i64
    }

    /// The strips that must have passed a place before the tile at this place of `strip` may run.
    pub fn waits(&self, strip: usize) -> Waits {
        let time_block = self.time_block(strip);
        let own = &self.time_blocks[time_block];
        let index = self.index(strip);
        let before = time_block.checked_sub(1).and_then(|b| {
            let before = &self.time_blocks[b];
            let same = index.min(before.strips.hi - 1) - before.strips.lo;
            (same >= 0).then(|| before.first + same as usize)
        });
        Waits {
            left: (index > own.strips.lo).then(|| strip - 1),
            before,
        }
    }

    /// Visits the outermost tiles of a strip in running order, each with its place and its indices along the remaining
    /// cuts.
    pub fn tiles(
        &self,
        program: &TileProgram,
        strip: usize,
        visit: &mut impl FnMut(i64, &[i64], &Tile),
    ) {
        let own = TileProgram::indices;
        let _ = self.visit(program, strip, own, &mut |place, indices, tile| {
            visit(place, indices, tile);
            ControlFlow::Continue(())
        });
    }

    /// The same for some indices, until a visit breaks.
    pub(crate) fn visit(
        &self,
        program: &TileProgram,
        strip: usize,
        indices: Indices,
        visit: &mut impl FnMut(i64, &[i64], &Tile) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut tile = program.whole();
        if let Some(cut) = self.first_cut {
            program.narrow(&mut tile, cut, self.index(strip));
        }
        let inside = Inside {
            program,
            numbers: self.time_blocks[self.time_block(strip)].numbers,
            indices,
        };
        self.visit_inside(inside, &tile, &mut Vec::new(), visit)
    }

    fn visit_inside(
        &self,
        inside: Inside<'_>,
        tile: &Tile,
        indices: &mut Vec<i64>,
        visit: &mut impl FnMut(i64, &[i64], &Tile) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(&cut) = self.other_cuts.get(indices.len()) else {
            return visit(self.place(indices), indices, tile);
        };
        let range = (inside.indices)(inside.program, tile, cut, inside.numbers);
        for index in range.lo..range.hi {
            let mut part = tile.clone();
            inside.program.narrow(&mut part, cut, index);
            indices.push(index);
            let flow = self.visit_inside(inside, &part, indices, visit);
            indices.pop();
            flow?;
        }
        ControlFlow::Continue(())
    }

    /// Ascends in running order.
    fn place(&self, indices: &[i64]) -> i64 {
        self.ranges
            .iter()
            .zip(indices)
            .fold(0, |place, (range, i)| place * range.len() + (i - range.lo))
    }
}
