//! Lines along the inner axis that are longer than what a block holds, one part after the other: *spans*.
//!
//! A span is a part of the lines that one start of a time block advances; its ends lean against time. In stage n of a time block, span p advances the
//! indices from low(p) - lean(n) to low(p + 1) - lean(n); the first one has no lower end, the last one no upper end.
//!
//! ```text
//! stage
//!   3   | 0 0 0 0 | 1 1 1 1 1 1 | 2 2 2 2 2 2 2 2
//!   2   | 0 0 0 0 0 0 | 1 1 1 1 1 1 | 2 2 2 2 2 2
//!   1   | 0 0 0 0 0 0 0 | 1 1 1 1 1 1 | 2 2 2 2 2       only reads below: the faces need not lean here as much
//!   0   | 0 0 0 0 0 0 0 0 0 | 1 1 1 1 1 1 | 2 2 2
//!       0         threads of span 1: [- - - - - - - -]                   -> index
//! ```
//!
//! From stage to stage, faces move as far as the later stage reads above, and as far as the earlier one reads below. Then what a stage
//! reads above was written by the span itself or one before it, and what it reads below no span before it has overwritten. So when a span has ended
//! for a whole time block, the next one may run the same time block, by the same towers.
//!
//! A thread has one index for the whole time block, from the span's *base* on. What it has no part in, it keeps as memory has it: by the same
//! rule that is the version in which threads beside it read it. As faces lean, the threads of a span overlap with those of the one before it.
//! They load only what some thread with a part needs of a row while the tower has it ([`Spans::needed`]): its own value, or one that it reads beside;
//! and copy what it needs so of some row of those that enter together ([`Spans::window`]). All others compute with what their slots and registers happen
//! to hold, which nobody reads and nobody stores; and warps of which no thread has anything to do in a period only keep order with others ([`Spans::busy`]).
//!
//! The first span and the last one have the ends of lines, with all that has a ghost beyond them, so each makes its own as whole lines do
//! ([`super::beyond`]).

use super::super::ir::{Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::flow;
use super::line::WARP;
use super::plan::{Copy, Plan, Uses};
use super::write::Writer;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval, div_ceil};
use crate::layout::{GPU_ALIGNMENT, Layout, PIECE};
use crate::scheme::Scheme;
use crate::tile::residency::Towers;

/// How lines are cut into spans, whatever the height of a time block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    /// Threads that compute, as many as indices of each span.
    pub threads: i64,
    /// The largest extent of a line.
    length: i64,
    /// How far faces move before each stage of a step, and how far that reads below and above.
    lean: Vec<i64>,
    reach: Vec<[i64; 2]>,
    /// The indices that have no ghost beyond an end of the line.
    inner: Interval,
    /// Bases are multiples of so many values, if possible, or of half as many, and so on down to the second number.
    units: [i64; 2],
}

/// A span in time blocks of some height, as kernels are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first thread's index.
    pub base: i32,
    /// Where the lower face begins, and how far above it the upper one does.
    pub low: i32,
    pub width: i32,
}

/// How much longer a span takes if its warps access parts of lines of the cache: lines of 1000 values on an H200, 5 spans of 224 so and 4 of 288
/// not, 102 and 119e9 cell-steps per second.
const SPLIT: f64 = 1.25;
/// Bytes of the parts of a line of the cache that are moved by themselves.
const SECTOR: usize = 32;
/// An index beyond all lines.
const FAR: i64 = 1 << 28;

/// Parameters of a kernel for spans: [`Span::words`].
pub(super) const PARAMS: [Type; 3] = [Type::I32; 3];

impl Span {
    /// The parameters of a kernel, after all others.
    pub fn words(&self) -> [i32; PARAMS.len()] {
        [self.base, self.low, self.width]
    }
}

impl Spans {
    /// Spans for blocks with so many warps that compute. `None` where lines are periodic, or threads read too far.
    pub fn new(scheme: &Scheme, layout: &Layout, warps: u32) -> Option<Spans> {
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
        let both = |stage| [-1, 1].map(|sign| reach(scheme, stage, sign));
        let units = [GPU_ALIGNMENT, PIECE].map(|bytes| (bytes / layout.element_bytes) as i64);
        Some(Spans {
            threads: i64::from(warps) * WARP,
            length,
            lean: lean(scheme),
            reach: (0..scheme.stages.len()).map(both).collect(),
            inner,
            units,
        })
    }

    /// How far faces have moved in a stage of a time block; for stages of a period, relative to its first one, which may be negative.
    pub fn lean(&self, stage: i64) -> i64 {
        let stages = self.lean.len().max(1) as i64;
        let step: i64 = self.lean.iter().sum();
        let within = stage.rem_euclid(stages) as usize;
        let within: i64 = self.lean.iter().take(within + 1).sum();
        stage.div_euclid(stages) * step + within
    }

    /// How far the ends of what a span needs of a value lie below its lower and its upper face at the start of the period that sees the value. Faces
    /// move as far as stages read, so of all stages the last one decides on the lower end, and the first one on the upper.
    pub(super) fn needed(&self, uses: Uses) -> [i64; 2] {
        let reach = |n: usize, side: usize| {
            let stage = uses.stages[n].rem_euclid(self.reach.len().max(1) as i64);
            let reach = self.reach.get(stage as usize);
            reach.filter(|_| uses.tapped[n]).map_or(0, |r| r[side])
        };
        let [first, last] = uses.stages.map(|stage| self.lean(stage));
        [last + reach(1, 0), first - reach(0, 1)]
    }

    /// The same of all that a stage copies: each condition more takes time of those who copy. `None` where it copies nothing.
    pub(super) fn window(&self, copies: &[Copy]) -> Option<[i64; 2]> {
        let needed = copies.iter().map(|copy| self.needed(copy.uses));
        needed.reduce(|[a, b], [c, d]| [a.max(c), b.min(d)])
    }

    /// The same of all that threads do in a period: those with a part in one of its stages, with what these need of the threads beside, and those
    /// that have a value which someone needs then or later, or which is to be stored.
    pub(super) fn busy(&self, plan: &Plan) -> [i64; 2] {
        let count = plan.stages.len() as i64;
        let stages = (0..).zip(&plan.stages).flat_map(|(n, stage)| {
            let own = Uses {
                stages: [n; 2],
                tapped: [true; 2],
            };
            let left = stage.leave.values().map(move |before| Uses {
                stages: [n - before, n],
                tapped: [false; 2],
            });
            // What the last stage copies belongs to the next period.
            let next = if n + 1 == count { count } else { 0 };
            let copies = stage.loads.iter().map(move |copy| Uses {
                stages: copy.uses.stages.map(|stage| stage - next),
                ..copy.uses
            });
            let again = stage.again.iter().map(|copy| copy.uses);
            [own].into_iter().chain(left).chain(copies).chain(again)
        });
        let kept = plan.carried.iter().map(|carried| carried.uses);
        let held = plan.held.iter().map(|copy| copy.uses);
        let all = stages.chain(kept).chain(held).map(|uses| self.needed(uses));
        let both = all.reduce(|[a, b], [c, d]| [a.max(c), b.min(d)]);
        both.unwrap_or([0; 2])
    }

    /// Values of a row that both of two spans beside each other load, on average over what enters alternately: memory gives [`SECTOR`] bytes at a time.
    pub fn in_common<'p>(&self, plans: impl Iterator<Item = &'p Plan>) -> f64 {
        let stages = plans.flat_map(|plan| &plan.stages);
        let both = stages.filter_map(|stage| {
            let [lower, upper] = self.window(&stage.loads)?;
            Some((lower - upper, stage.loads.len() as i64))
        });
        let (sum, count) = both.fold((0, 0), |(sum, n), (both, rows)| {
            (sum + both * rows, n + rows)
        });
        let sector = self.units[1] * (SECTOR / PIECE) as i64;
        sum as f64 / count.max(1) as f64 + (sector - 1) as f64
    }

    /// The spans of time blocks of so many stages; `None` where they lean too much for so few threads.
    pub fn of(&self, stages: u64) -> Option<Vec<Span>> {
        let (_, places) = self.cheapest(stages)?;
        let ends = places.iter().skip(1).map(|[_, low]| *low).chain([FAR]);
        let span = |(&[base, low], end): (&[i64; 2], i64)| {
            Some(Span {
                base: i32::try_from(base).ok()?,
                low: i32::try_from(low).ok()?,
                width: i32::try_from(end - low).ok()?,
            })
        };
        places.iter().zip(ends).map(span).collect()
    }

    /// What a time block of so many stages takes, by that of a span whose warps access whole lines of the cache.
    pub fn weight(&self, stages: u64) -> Option<f64> {
        self.cheapest(stages).map(|(weight, _)| weight)
    }

    /// That, and where spans begin, their threads and their lower faces: as few spans as possible, but for those whose warps access parts of lines.
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

    /// Where the threads of the last span begin, at a multiple of so many values.
    fn last(&self, unit: i64) -> i64 {
        div_ceil((self.length - self.threads).max(0), unit) * unit
    }

    /// The same where lines have ghosts, whatever the height of a time block: the largest unit that leaves most threads something else than indices of
    /// the span before.
    pub(super) fn last_with_ghosts(&self) -> i64 {
        let most = self.threads / 4;
        let unit = self.halved_units().find(|unit| *unit <= most);
        self.last(unit.unwrap_or(self.units[1]))
    }

    /// From the largest one on.
    fn halved_units(&self) -> impl Iterator<Item = i64> {
        let [most, least] = self.units;
        std::iter::successors(Some(most), |unit| Some(unit / 2)).take_while(move |u| *u >= least)
    }

    /// Where the threads of spans begin, if faces move so far in a time block: each as far behind the one before it as can be. All that a span reads its
    /// threads have, but beyond the ends of lines; only the first span and the last one have what has ghosts; and the last one has something for its
    /// last warp.
    fn bases(&self, lean: i64, unit: i64) -> Option<Vec<i64>> {
        let Spans {
            threads,
            length,
            inner,
            ..
        } = *self;
        let fits = length <= threads;
        if fits {
            return (length > threads - WARP).then(|| vec![0]);
        }
        // What makes ghosts knows where they are.
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

    /// The same with where the lower faces of spans begin, such that all have as much to do as can be: few warps take longer than their share. No span
    /// begins farther up than before, and the last one where it did.
    fn even(&self, mut bases: Vec<i64>, lean: i64, unit: i64) -> Vec<[i64; 2]> {
        let count = bases.len();
        // The least bases with which those behind reach the end.
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

    /// Threads have indices below this, the largest extent included: those of the last span end with the line, or go on behind it.
    pub(super) fn end(&self) -> i64 {
        let behind = self.length - self.threads;
        match behind >= 0 && behind % self.units[0] == 0 {
            true => self.length,
            false => self.length + self.threads,
        }
    }

    /// Pieces of a row that a span copies, none of them beyond the end of the line and what is seen there; `copied`: indices from the base on.
    pub(super) fn pieces(&self, k: &mut Kernel<'_>, base: Operand, copied: Interval) -> Operand {
        let piece = self.units[1];
        let beyond = copied.hi - self.threads;
        let all = div_ceil(self.length + beyond - copied.lo, piece);
        let [each, all] = [copied.len() / piece, all].map(|n| Operand::i32(n as i32));
        let before = k.int(IntOp::Div, base, Operand::i32(piece as i32));
        let left = k.int(IntOp::Sub, all, before);
        k.int(IntOp::Min, each, left)
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
    let reads = updates.iter().flat_map(|update| update.body.reads());
    let far = reads.map(|read| sign * i64::from(read.offset[Axis::INNER]));
    far.max().unwrap_or(0).max(0)
}

/// Whether all updates need the old values of what they write: a thread of a span keeps these where it has no part in an update.
pub fn keep_old(towers: &Towers) -> bool {
    let lives = towers.alignments.iter().flat_map(|a| &a.lives);
    let mut touches = lives.flat_map(|life| &life.touches);
    touches.all(|touch| touch.write.is_none() || touch.old)
}

/// Where a thread, or what it copies, is between the faces of its span: its index from the lower one on at the start of a period.
#[derive(Clone, Copy)]
pub(super) struct Between(pub Operand);

impl Writer<'_> {
    fn span_param(&self, k: &Kernel<'_>, number: usize) -> Operand {
        k.param(flow::params(self.sheets) + number)
    }

    /// The first thread's index, where lines are cut into spans.
    pub(super) fn base(&self, k: &Kernel<'_>) -> Option<Operand> {
        self.spans.map(|_| self.span_param(k, 0))
    }

    /// Where an index is at the start of a period of the time block; `None` where lines are whole.
    pub(super) fn between(
        &self,
        k: &mut Kernel<'_>,
        period: Operand,
        index: Operand,
    ) -> Option<Between> {
        self.spans?;
        let low = self.span_param(k, 1);
        let by = self.period_lean();
        let moved = k.int(IntOp::Mul, period, Operand::i32(by as i32));
        let from = k.int(IntOp::Sub, index, low);
        Some(Between(k.int(IntOp::Add, from, moved)))
    }

    /// Where the span's base is then.
    pub(super) fn base_between(&self, k: &mut Kernel<'_>, period: Operand) -> Option<Between> {
        let base = self.base(k)?;
        self.between(k, period, base)
    }

    /// How far faces move in a period.
    pub(super) fn period_lean(&self) -> i64 {
        let stages = self.plan.stages.len() as i64;
        self.spans
            .map_or(0, |spans| spans.lean(stages) - spans.lean(0))
    }

    /// Whether the thread has a part in some stage from one of a period to a later one.
    pub(super) fn takes_part(
        &self,
        k: &mut Kernel<'_>,
        place: Between,
        stages: [i64; 2],
    ) -> Operand {
        let [first, last] = stages.map(|n| self.spans.map_or(0, |spans| spans.lean(n)));
        self.lies(k, place, [last, first], 1)
    }

    /// Whether some of so many indices lie between ends that are so far below the lower and the upper face.
    pub(super) fn lies(
        &self,
        k: &mut Kernel<'_>,
        Between(from): Between,
        [lower, upper]: [i64; 2],
        indices: i64,
    ) -> Operand {
        let from = k.int(IntOp::Add, from, Operand::i32((lower + indices - 1) as i32));
        let mut width = self.span_param(k, 2);
        let more = lower - upper + indices - 1;
        if more > 0 {
            width = k.int(IntOp::Add, width, Operand::i32(more as i32));
        }
        k.compare(IntCmp::Below, from, width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::{Precision, StageId};
    use crate::testing::{Limits, Rng, maxwell, random_scheme};
    use std::collections::BTreeMap;

    fn spans(scheme: &Scheme, warps: u32) -> Option<(Layout, Spans)> {
        let layout = Layout::for_gpu(scheme).ok()?;
        let spans = Spans::new(scheme, &layout, warps)?;
        Some((layout, spans))
    }

    #[test]
    fn fdtd42_leans_three_cells_a_step() {
        let scheme = maxwell(4, Precision::F32, [24, 24, 768]);
        let (_, spans) = spans(&scheme, 9).expect("spans");
        assert_eq!([-1, 0, 1, 2, 15].map(|n| spans.lean(n)), [0, 2, 3, 5, 24]);
        let bases = |stages| {
            let all = spans.of(stages).expect("spans");
            all.iter().map(|span| span.base).collect::<Vec<i32>>()
        };
        assert_eq!(bases(16), [0, 224, 480]);
        // What leans too much takes one more, and what leans farther than threads reach has none.
        assert_eq!(bases(64).len(), 4);
        assert_eq!(spans.of(192), None);
    }

    #[test]
    fn spans_share_a_line_evenly() {
        let places = |length, stages| {
            let scheme = maxwell(4, Precision::F32, [24, 24, length]);
            let (_, spans) = spans(&scheme, 8).expect("spans");
            let all = spans.of(stages).expect("spans");
            let places = all.iter().skip(1).map(|span| [span.base, span.low]);
            places.collect::<Vec<_>>()
        };
        assert_eq!(places(768, 32), [[160, 224], [352, 416], [512, 608]]);
        // Where there is little room, spans are as long as possible.
        assert_eq!(places(448, 32), [[192, 256]]);
        assert_eq!(
            places(1000, 32),
            [[192, 256], [384, 448], [576, 640], [768, 832]]
        );
    }

    /// Whatever lines, leans and ghosts are: faces lie where the threads on both sides are, and each span is behind the one before it.
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
            let spans = Spans {
                threads,
                length,
                lean: vec![2, 1],
                reach: vec![[1, 2]; 2],
                inner: Interval::new(ends[0], length - ends[1]),
                units,
            };
            for unit in spans.halved_units() {
                let Some(bases) = spans.bases(lean, unit) else {
                    continue;
                };
                let places = spans.even(bases.clone(), lean, unit);
                assert_eq!(places.len(), bases.len());
                assert_eq!(places.last().map(|p| p[0]), bases.last().copied());
                for (n, pair) in places.windows(2).enumerate() {
                    let [[before, low], [base, face]] = [pair[0], pair[1]];
                    assert!(
                        low < face && before < base && base <= bases[n + 1],
                        "{spans:?}"
                    );
                    assert!(base + lean <= face && face <= before + threads, "{spans:?}");
                    assert!(base >= spans.inner.lo, "{spans:?}");
                    several += 1;
                    tight += usize::from(base == bases[n + 1]);
                }
            }
        }
        assert!(several > 100_000 && tight < several, "{several} {tight}");
    }

    /// A line, by spans one after the other: each read finds the version that stages one after the other leave.
    fn check(scheme: &Scheme, layout: &Layout, spans: &Spans, steps: i64) -> Option<usize> {
        let count = scheme.stages.len() as i64;
        let all = spans.of((steps * count) as u64)?;
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
        for (p, span) in all.iter().enumerate() {
            let [base, low, width] = span.words().map(i64::from);
            let threads = Interval::new(base, base + spans.threads);
            for n in 0..steps * count {
                let low = low - spans.lean(n);
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
                            assert!(!inside || threads.contains(at), "{at} of {span:?}");
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
        assert_eq!(Some(&found), written.last(), "each index has one span");
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
            let Some((layout, spans)) = spans(&scheme, warps) else {
                continue;
            };
            if let Some(count) = check(&scheme, &layout, &spans, steps) {
                tried += usize::from(count > 1);
                most = most.max(count);
            }
        }
        assert!(tried > 100 && most > 4, "{tried} {most}");
    }
}
