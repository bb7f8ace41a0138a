//! Lines along the inner axis that are too long for a block of threads, one part after the other: *z blocks*.
//!
//! A z block is a part of the lines that one launch of a time block advances; its faces lean against time. In stage n
//! of a time block, z block p advances the indices from low(p) - lean(n) to low(p + 1) - lean(n); the first one has no
//! lower face, the last one no upper face.
//!
//! ```text
//! stage
//!   3   | 0 0 0 0 | 1 1 1 1 1 1 | 2 2 2 2 2 2 2 2
//!   2   | 0 0 0 0 0 0 | 1 1 1 1 1 1 | 2 2 2 2 2 2
//!   1   | 0 0 0 0 0 0 0 | 1 1 1 1 1 1 | 2 2 2 2 2       only reads below: the faces need not lean here as much
//!   0   | 0 0 0 0 0 0 0 0 0 | 1 1 1 1 1 1 | 2 2 2
//!       0      threads of z block 1: [- - - - - - - -]                   -> index
//! ```
//!
//! From stage to stage, faces move as far as the later stage reads above, and as far as the earlier one reads below.
//! Then values that a stage reads above were written by the z block itself or one before it, and values that it reads
//! below have been overwritten by no z block before it. So when a z block has ended for a whole time block, the next
//! one may run the same time block, by the same towers.
//!
//! A thread has one index for the whole time block, from the z block's *base* on. A value in whose update it has no
//! part, it keeps as memory has it. By the same rule, that is the version which threads beside it read. As faces lean,
//! the threads of a z block overlap with the threads of the one before it. Of a row they load only the values that some
//! thread with a part needs while the tower has the row ([`ZBlocks::needed`]): its own value, or one that it reads at
//! another index. They copy the values that are needed of any of the rows that enter together ([`ZBlocks::window`]).
//! All other threads compute with the arbitrary contents of their registers and shared rows; no thread reads or stores
//! their results. Warps in which no thread has a part in a period only synchronise with others ([`ZBlocks::busy`]).
//!
//! The first z block and the last one have the ends of lines, with all values that have ghosts beyond them, so each
//! makes its own as whole lines do.

use super::slabs::WARP;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval, div_ceil};
use crate::layout::{GPU_ALIGNMENT, Layout, PIECE};
use crate::scheme::{Scheme, Update};
use crate::tower::allocate::{Allocation, SharedCopy, Use, Uses};

/// How lines are cut into z blocks, for any height of a time block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZBlocks {
    /// Threads that compute, as many as indices of each z block.
    pub threads: i64,
    /// The largest extent of a line.
    length: i64,
    /// How far faces move before each stage of a step, and how far that reads below and above.
    lean: Vec<i64>,
    reach: Vec<Reach>,
    /// The indices that have no ghost beyond an end of the line.
    inner: Interval,
    /// Bases are multiples of the first number of values, if possible, or of half of it, and so on down to the second
    /// number.
    units: [i64; 2],
}

/// A z block of time blocks of some height, as kernels take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZBlock {
    /// The first thread's index.
    pub base: i32,
    /// Where the lower face begins, and how far above it the upper one does.
    pub low: i32,
    pub width: i32,
}

/// How far a stage reads along the inner axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reach {
    below: i64,
    above: i64,
}

/// The ends of a range of indices between the faces of a z block: how far they lie below its lower and its upper face.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends {
    pub lower: i64,
    pub upper: i64,
}

impl Ends {
    fn hull(self, other: Ends) -> Ends {
        Ends {
            lower: self.lower.max(other.lower),
            upper: self.upper.min(other.upper),
        }
    }
}

/// How much longer a z block takes if its warps access parts of lines of the cache: lines of 1000 values on an H200, 5
/// z blocks of 224 so and 4 of 288 not, 102 and 119e9 cell-steps per second.
const SPLIT: f64 = 1.25;
/// Bytes of the parts of a line of the cache that are moved by themselves.
const SECTOR: usize = 32;
/// An index beyond all lines.
const FAR: i64 = 1 << 28;

impl ZBlocks {
    /// Z blocks for blocks with `warps` compute warps. `None` where lines are periodic, or threads read too far.
    pub fn new(scheme: &Scheme, layout: &Layout, warps: u32) -> Option<ZBlocks> {
        let farthest = layout.reach[Axis::INNER].map(i64::from);
        let length = layout.extent[Axis::INNER];
        let far = farthest.into_iter().max() >= Some(WARP);
        if scheme.grid.is_periodic(Axis::INNER) || warps == 0 || far || length >= FAR / 4 {
            return None;
        }
        let mut inner = Interval::new(0, length);
        for (source, ghost) in scheme
            .component_ids()
            .flat_map(|id| AxisGhosts::new(scheme, id, Axis::INNER).pairs())
        {
            match ghost.index < source {
                true => inner.lo = inner.lo.max(source + 1),
                false => inner.hi = inner.hi.min(source),
            }
        }
        let both = |stage| Reach {
            below: reach(scheme, stage, -1),
            above: reach(scheme, stage, 1),
        };
        let units = [GPU_ALIGNMENT, PIECE].map(|bytes| (bytes / layout.element_bytes) as i64);
        Some(ZBlocks {
            threads: i64::from(warps) * WARP,
            length,
            lean: lean(scheme),
            reach: (0..scheme.stages.len()).map(both).collect(),
            inner,
            units,
        })
    }

    /// How far faces have moved in a stage of a time block; for stages of a period, relative to its first one, which
    /// may be negative.
    pub fn lean(&self, stage: i64) -> i64 {
        let stages = self.lean.len().max(1) as i64;
        let step: i64 = self.lean.iter().sum();
        let within = stage.rem_euclid(stages) as usize;
        let within: i64 = self.lean.iter().take(within + 1).sum();
        stage.div_euclid(stages) * step + within
    }

    /// How far the ends of the indices at which a z block needs a value lie below its lower and its upper face, at the
    /// start of the period that sees the value. Faces move as far as stages read, so of all stages the last one decides
    /// on the lower end, and the first one on the upper.
    pub fn needed(&self, uses: Uses) -> Ends {
        let reach = |used: Use| {
            let stage = used.stage.rem_euclid(self.reach.len().max(1) as i64);
            let reach = self.reach.get(stage as usize).copied();
            reach.filter(|_| used.cross_lane).unwrap_or_default()
        };
        Ends {
            lower: self.lean(uses.last.stage) + reach(uses.last).below,
            upper: self.lean(uses.first.stage) - reach(uses.first).above,
        }
    }

    /// The same of all that a stage copies: each condition more takes time of producer warps. `None` where it copies
    /// nothing.
    pub fn window(&self, copies: &[SharedCopy]) -> Option<Ends> {
        let needed = copies.iter().map(|copy| self.needed(copy.uses));
        needed.reduce(Ends::hull)
    }

    /// The same for the indices whose threads have work in a period: threads with a part in one of its stages, threads
    /// beside them whose values they need, and threads with a value that some thread needs then or later, or that is to
    /// be stored.
    pub fn busy(&self, allocation: &Allocation) -> Ends {
        let count = allocation.stages.len() as i64;
        let stages = (0..).zip(&allocation.stages).flat_map(|(n, stage)| {
            let own = Uses::cross_lane(n);
            let left = stage.leaving.values();
            let left = left.map(move |before| Uses::between(n - before, n));
            // Copies of the last stage belong to the next period.
            let next = if n + 1 == count { count } else { 0 };
            let loads = stage
                .loads
                .iter()
                .map(move |copy| copy.uses.seen_from(next));
            let again = stage.republish.iter().map(|copy| copy.uses);
            [own].into_iter().chain(left).chain(loads).chain(again)
        });
        let kept = allocation.carried.iter().map(|carried| carried.uses);
        let held = allocation.held.iter().map(|copy| copy.uses);
        let all = stages.chain(kept).chain(held).map(|uses| self.needed(uses));
        all.reduce(Ends::hull).unwrap_or_default()
    }

    /// Values of a row that both of two z blocks beside each other load, on average over the rows that enter in turn.
    /// Memory gives [`SECTOR`] bytes at a time.
    pub fn in_common<'p>(&self, allocations: impl Iterator<Item = &'p Allocation>) -> f64 {
        let stages = allocations.flat_map(|allocation| &allocation.stages);
        let both = stages.filter_map(|stage| {
            let Ends { lower, upper } = self.window(&stage.loads)?;
            Some((lower - upper, stage.loads.len() as i64))
        });
        let (sum, count) = both.fold((0, 0), |(sum, n), (both, rows)| {
            (sum + both * rows, n + rows)
        });
        let sector = self.units[1] * (SECTOR / PIECE) as i64;
        sum as f64 / count.max(1) as f64 + (sector - 1) as f64
    }

    /// The z blocks of time blocks of `stages` stages; `None` where they lean too much for their number of threads.
    pub fn of(&self, stages: u64) -> Option<Vec<ZBlock>> {
        let (_, places) = self.cheapest(stages)?;
        let ends = places.iter().skip(1).map(|[_, low]| *low).chain([FAR]);
        let z_block = |(&[base, low], end): (&[i64; 2], i64)| {
            Some(ZBlock {
                base: i32::try_from(base).ok()?,
                low: i32::try_from(low).ok()?,
                width: i32::try_from(end - low).ok()?,
            })
        };
        places.iter().zip(ends).map(z_block).collect()
    }

    /// The cost of a time block of `stages` stages, in units of a z block whose warps access whole lines of the cache.
    pub fn weight(&self, stages: u64) -> Option<f64> {
        self.cheapest(stages).map(|(weight, _)| weight)
    }

    /// The same cost, and where the threads and the lower face of each z block begin, for the unit of bases with the
    /// least cost.
    fn cheapest(&self, stages: u64) -> Option<(f64, Vec<[i64; 2]>)> {
        let lean = self.lean(i64::try_from(stages).ok().filter(|n| *n < FAR)?);
        let found = self.halved_units().filter_map(|unit| {
            let bases = self.bases(lean, unit)?;
            let each = if unit == self.units[0] { 1.0 } else { SPLIT };
            let weight = bases.len() as f64 * each;
            Some((weight, self.even(bases, lean, unit)))
        });
        // The first one of several.
        found.min_by(|(a, _), (b, _)| a.total_cmp(b))
    }

    /// Where the threads of the last z block begin, at a multiple of `unit` values.
    fn last(&self, unit: i64) -> i64 {
        div_ceil((self.length - self.threads).max(0), unit) * unit
    }

    /// The same where lines have ghosts, for any height of a time block: the largest unit with which most threads
    /// have other indices than the threads of the z block before.
    pub fn last_with_ghosts(&self) -> i64 {
        let most = self.threads / 4;
        let unit = self.halved_units().find(|unit| *unit <= most);
        self.last(unit.unwrap_or(self.units[1]))
    }

    /// From the largest one on.
    fn halved_units(&self) -> impl Iterator<Item = i64> {
        let [most, least] = self.units;
        std::iter::successors(Some(most), |unit| Some(unit / 2)).take_while(move |u| *u >= least)
    }

    /// Where the threads of z blocks begin, if faces move by `lean` in a time block: each as far behind the one before
    /// it as possible. The threads of a z block have all values that it reads, except beyond the ends of lines. Only
    /// the first z block and the last one have values with ghosts. The last warp of the last z block has a part, too.
    fn bases(&self, lean: i64, unit: i64) -> Option<Vec<i64>> {
        let ZBlocks {
            threads,
            length,
            inner,
            ..
        } = *self;
        let fits = length <= threads;
        if fits {
            return (length > threads - WARP).then(|| vec![0]);
        }
        // The code that makes ghosts relies on this place.
        let ghosts = inner != Interval::new(0, length);
        let last = match ghosts {
            true => self.last_with_ghosts(),
            false => self.last(unit),
        };
        let most = (inner.hi - threads).div_euclid(unit) * unit;
        let mut bases = vec![0];
        let mut base = 0;
        while base < last {
            if base > most {
                return None;
            }
            let next = base + threads - lean;
            let next = match next >= last {
                true => last,
                false => most.min(next.div_euclid(unit) * unit),
            };
            if next <= base || next < inner.lo {
                return None;
            }
            bases.push(next);
            base = next;
        }
        Some(bases)
    }

    /// The same with where the lower faces of z blocks begin, such that all have as much to do as can be: few warps
    /// take longer than their share. No z block begins farther up than before, and the last one where it did.
    fn even(&self, mut bases: Vec<i64>, lean: i64, unit: i64) -> Vec<[i64; 2]> {
        let count = bases.len();
        // The least bases with which the z blocks behind reach the end.
        let mut least = bases.clone();
        for n in (1..count.saturating_sub(1)).rev() {
            let far = (least[n + 1] + lean - self.threads).max(self.inner.lo);
            least[n] = div_ceil(far, unit) * unit;
        }
        let mut places = vec![[0, -FAR]];
        for n in 1..count {
            let share = self.length * n as i64 / count as i64 + lean / 2;
            // A face that begins between two warps has fewer of them beside it that only keep values.
            let share = (share + WARP / 2).div_euclid(WARP) * WARP;
            let low = div_ceil(least[n] + lean, WARP) * WARP;
            let face = share.max(low).min(bases[n - 1] + self.threads);
            if n + 1 < count {
                bases[n] = bases[n].min((face - lean).div_euclid(unit) * unit);
            }
            places.push([bases[n], face]);
        }
        places
    }

    /// Values of the pieces in which rows are copied.
    pub fn piece(&self) -> i64 {
        self.units[1]
    }

    /// Pieces of a row from index 0 of a line to its end, with the values that are read beyond it; `copied`: indices
    /// from a base on.
    pub fn pieces(&self, copied: Interval) -> i64 {
        let beyond = copied.hi - self.threads;
        div_ceil(self.length + beyond - copied.lo, self.piece())
    }

    /// Threads have indices below this, the largest extent included: the threads of the last z block end with the line,
    /// or go on behind it.
    pub fn end(&self) -> i64 {
        let behind = self.length - self.threads;
        match behind >= 0 && behind % self.units[0] == 0 {
            true => self.length,
            false => self.length + self.threads,
        }
    }
}

/// How far faces move before each stage of a step.
fn lean(scheme: &Scheme) -> Vec<i64> {
    let count = scheme.stages.len();
    let before = |stage: usize| (stage + count - 1) % count;
    (0..count)
        .map(|stage| reach(scheme, stage, 1).max(reach(scheme, before(stage), -1)))
        .collect()
}

/// How far a stage reads above, or below where the sign is negative.
fn reach(scheme: &Scheme, stage: usize, sign: i64) -> i64 {
    let updates = &scheme.stages[stage].updates;
    let reads = updates.iter().flat_map(Update::reads);
    let far = reads.map(|read| sign * i64::from(read.offset[Axis::INNER]));
    far.max().unwrap_or(0).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::{Precision, StageId};
    use crate::testing::{Limits, Rng, maxwell, random_scheme};
    use std::collections::BTreeMap;

    fn z_blocks(scheme: &Scheme, warps: u32) -> Option<(Layout, ZBlocks)> {
        let layout = Layout::for_gpu(scheme).ok()?;
        let z_blocks = ZBlocks::new(scheme, &layout, warps)?;
        Some((layout, z_blocks))
    }

    #[test]
    fn fdtd42_leans_three_cells_a_step() {
        let scheme = maxwell(4, Precision::F32, [24, 24, 768]);
        let (_, z_blocks) = z_blocks(&scheme, 9).expect("z_blocks");
        assert_eq!(
            [-1, 0, 1, 2, 15].map(|n| z_blocks.lean(n)),
            [0, 2, 3, 5, 24]
        );
        let bases = |stages| {
            let all = z_blocks.of(stages).expect("z_blocks");
            all.iter().map(|z_block| z_block.base).collect::<Vec<i32>>()
        };
        assert_eq!(bases(16), [0, 224, 480]);
        // A lean that is too large takes one z block more, and one that is larger than the threads of a block has none.
        assert_eq!(bases(64).len(), 4);
        assert_eq!(z_blocks.of(192), None);
    }

    #[test]
    fn spans_share_a_line_evenly() {
        let places = |length, stages| {
            let scheme = maxwell(4, Precision::F32, [24, 24, length]);
            let (_, z_blocks) = z_blocks(&scheme, 8).expect("z_blocks");
            let all = z_blocks.of(stages).expect("z_blocks");
            let places = all
                .iter()
                .skip(1)
                .map(|z_block| [z_block.base, z_block.low]);
            places.collect::<Vec<_>>()
        };
        assert_eq!(places(768, 32), [[160, 224], [352, 416], [512, 608]]);
        // Where there is little room, z blocks are as long as possible.
        assert_eq!(places(448, 32), [[192, 256]]);
        assert_eq!(
            places(1000, 32),
            [[192, 256], [384, 448], [576, 640], [768, 832]]
        );
    }

    /// For all lines, leans and ghosts, faces lie where the threads on both sides are, and each z block is behind the
    /// one before it.
    #[test]
    fn threads_lie_around_faces() {
        let mut rng = Rng::new(7);
        let (mut several, mut tight) = (0, 0);
        for _ in 0..200_000 {
            let threads = rng.within(1, 9) * WARP;
            let length = threads + rng.within(-WARP, 1500);
            let ends = [0, 1].map(|_| if rng.once_in(2) { 0 } else { rng.within(1, 4) });
            let units = [[32, 4], [16, 2]][rng.within(0, 1) as usize];
            let lean = rng.within(0, threads);
            let z_blocks = ZBlocks {
                threads,
                length,
                lean: vec![2, 1],
                reach: vec![Reach { below: 1, above: 2 }; 2],
                inner: Interval::new(ends[0], length - ends[1]),
                units,
            };
            for unit in z_blocks.halved_units() {
                let Some(bases) = z_blocks.bases(lean, unit) else {
                    continue;
                };
                let places = z_blocks.even(bases.clone(), lean, unit);
                assert_eq!(places.len(), bases.len());
                assert_eq!(places.last().map(|p| p[0]), bases.last().copied());
                for (n, pair) in places.windows(2).enumerate() {
                    let [[before, low], [base, face]] = [pair[0], pair[1]];
                    assert!(
                        low < face && before < base && base <= bases[n + 1],
                        "{z_blocks:?}"
                    );
                    assert!(
                        base + lean <= face && face <= before + threads,
                        "{z_blocks:?}"
                    );
                    assert!(base >= z_blocks.inner.lo, "{z_blocks:?}");
                    several += 1;
                    tight += usize::from(base == bases[n + 1]);
                }
            }
        }
        assert!(several > 100_000 && tight < several, "{several} {tight}");
    }

    /// A line, by z blocks one after the other: each read finds the version that stages one after the other leave.
    fn check(scheme: &Scheme, layout: &Layout, z_blocks: &ZBlocks, steps: i64) -> Option<usize> {
        let count = scheme.stages.len() as i64;
        let all = z_blocks.of((steps * count) as u64)?;
        let line = layout.extent[Axis::INNER];
        let stage = |n: i64| StageId((n % count) as u32);
        let phase = |n: i64| (n / count % i64::from(scheme.phases().max(1))) as u32;
        // The stage that wrote a row at an index last: before a stage if all runs stage by stage, and now.
        let mut written: Vec<BTreeMap<(u32, i64), i64>> = vec![BTreeMap::new()];
        for n in 0..steps * count {
            let mut now = written[n as usize].clone();
            for update in &scheme.stages[stage(n).index()].updates {
                let row = layout.target_row(scheme, stage(n), phase(n), update.target);
                let Interval { lo, hi } = update.region[Axis::INNER];
                now.extend((lo..hi).map(|z| ((row.0, z), n)));
            }
            written.push(now);
        }
        let mut found: BTreeMap<(u32, i64), i64> = BTreeMap::new();
        for (p, z_block) in all.iter().enumerate() {
            let [base, low, width] = [z_block.base, z_block.low, z_block.width].map(i64::from);
            let threads = Interval::new(base, base + z_blocks.threads);
            for n in 0..steps * count {
                let low = low - z_blocks.lean(n);
                let window = Interval::new(low, low + width).intersect(Interval::new(0, line));
                let expected = &written[n as usize];
                let updates = &scheme.stages[stage(n).index()].updates;
                for update in updates {
                    let own = window.intersect(update.region[Axis::INNER]);
                    for z in own.lo..own.hi {
                        assert!(threads.contains(z));
                        for read in update.body.reads() {
                            let at = z + i64::from(read.offset[Axis::INNER]);
                            let inside = (0..line).contains(&at);
                            assert!(!inside || threads.contains(at), "{at} of {z_block:?}");
                            assert!(inside || (at < 0 && p == 0) || p + 1 == all.len());
                            let row = layout.read_row(scheme, stage(n), phase(n), read);
                            assert_eq!(found.get(&(row.0, at)), expected.get(&(row.0, at)));
                        }
                    }
                }
                for update in updates {
                    let row = layout.target_row(scheme, stage(n), phase(n), update.target);
                    let own = window.intersect(update.region[Axis::INNER]);
                    found.extend((own.lo..own.hi).map(|z| ((row.0, z), n)));
                }
            }
        }
        assert_eq!(Some(&found), written.last(), "each index has one z_block");
        Some(all.len())
    }

    #[test]
    fn reads_of_random_schemes_find_their_versions() {
        let limits = Limits {
            dimensions: 3,
            components: 3,
            stages: 3,
            ops: 8,
            length: 20,
            width: 4,
            reach: 3,
        };
        let (mut tried, mut most) = (0, 0);
        for seed in 0..600 {
            let mut rng = Rng::new(seed);
            let mut scheme = random_scheme(&mut rng, &limits);
            if scheme.grid.dimensions() < 3 || scheme.grid.is_periodic(Axis::INNER) {
                continue;
            }
            let longer = rng.within(40, 130);
            crate::testing::lengthen(&mut scheme, Axis::INNER, longer);
            let steps = i64::from(scheme.phases().max(1)) * rng.within(1, 3);
            let warps = rng.within(1, 2) as u32;
            let Some((layout, z_blocks)) = z_blocks(&scheme, warps) else {
                continue;
            };
            if let Some(count) = check(&scheme, &layout, &z_blocks, steps) {
                tried += usize::from(count > 1);
                most = most.max(count);
            }
        }
        assert!(tried > 100 && most > 4, "{tried} {most}");
    }
}
