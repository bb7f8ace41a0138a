//! Producer warps copy rows from memory to their shared rows.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::cluster::{first_index, is_last, of_slab, word_of};
use super::context::{Context, word};
use super::copied::Copier;
use super::predicate::Predicate;
use super::steer::{distinct, rank};
use super::z_block::{self, Between};
use crate::lattice::div_ceil;
use crate::tower::SharedCopy;
use crate::tower::block::{CHUNK, Ends, WARP};

/// How producer threads share the copying of rows: chunks of 16 bytes, groups of whole warps that take rows
/// alternately.
#[derive(Clone, Copy)]
pub(super) struct Producer {
    group: Operand,
    groups: i64,
    /// Chunks of a thread, its group's threads from each other.
    rounds: i64,
    /// Threads of a group.
    threads: i64,
    /// The thread's first chunk.
    first: Operand,
    /// The first chunk of shared row 0, and the thread's first one.
    start: Operand,
    to: Operand,
    /// From index 0 of a row to the thread's first chunk, in bytes.
    by: Operand,
    /// Where a block has a part of the line.
    part: Option<Part>,
    /// The copies of waves to slots.
    pub waves: Copier,
}

/// Ranges of the chunks of a row.
#[derive(Clone, Copy)]
struct Part {
    all: [Operand; 2],
    /// The chunks of the block's own part of the line.
    own: [Operand; 2],
}

/// The period for which rows are copied.
#[derive(Clone, Copy)]
pub(super) struct LoadPeriod {
    /// Row 0 of the origin's group at the thread's first chunk.
    pub chunk: Operand,
    /// `None`: nothing cuts rows off.
    pub predicate: Option<Predicate>,
    /// Where the block's first index is, if lines are cut into z blocks.
    pub base: Option<Between>,
}

/// A part of a line that a block has: its first index, its values, and the chunks of a row that it copies.
struct Owned {
    first: Operand,
    own: i64,
    chunks: Operand,
    /// Whether it is the first and the last part of the line, where blocks share lines.
    ends: Option<[Operand; 2]>,
}

impl Owned {
    /// `None` where a block has whole lines.
    fn of_block(k: &mut Kernel<'_>, context: &Context<'_>) -> Option<Owned> {
        let copied = context.block().shared_row.copied;
        if let Some(slabs) = context.slabs() {
            let rank = rank(k);
            let is_first = k.compare(IntCmp::Eq, rank, Operand::i32(0));
            let ends = Some([is_first, is_last(k, slabs, rank)]);
            let each = context.bytes(copied.len()) / CHUNK;
            let less = context.bytes(slabs.width) - context.bytes(slabs.last);
            let last = div_ceil(context.bytes(copied.len()) - less, CHUNK);
            let chunks = of_slab(k, slabs, rank, each, last);
            return Some(Owned {
                first: first_index(k, slabs, rank),
                own: slabs.width,
                chunks,
                ends,
            });
        }
        let z_blocks = context.z_blocks()?;
        let base = z_block::base(k, context)?;
        Some(Owned {
            first: base,
            own: z_blocks.threads,
            chunks: z_block::pieces(k, z_blocks, base, copied),
            ends: None,
        })
    }
}

impl Part {
    fn new(k: &mut Kernel<'_>, context: &Context<'_>, owned: &Owned) -> Part {
        let copied = context.block().shared_row.copied;
        let [below, above] =
            [-copied.lo, copied.hi - owned.own].map(|n| word(context.bytes(n) / CHUNK));
        let end = k.int(IntOp::Sub, owned.chunks, above);
        let mut all = [Operand::i32(0), owned.chunks];
        if let (Some([is_first, is_last]), true) = (owned.ends, context.ghosts().is_some()) {
            // Values beyond the ends of the line are not in memory.
            all = [
                k.choose(is_first, below, all[0]),
                k.choose(is_last, end, all[1]),
            ];
        }
        Part {
            all,
            own: [below, end],
        }
    }
}

/// Rows that are copied in the same way.
struct Batch<'c> {
    copies: Vec<&'c SharedCopy>,
    /// Only the block's part of the line.
    own: bool,
    /// Elements by which they begin behind the place of index 0 in memory, at most.
    begin: i64,
    /// Where the thread's first chunk is, and the indices that a z block needs.
    needed: Option<(Between, Ends)>,
}

impl Producer {
    /// The values of producer thread `thread` of `threads`.
    pub fn new(
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        shared: Operand,
        thread: Operand,
        threads: i64,
    ) -> Producer {
        let row = context.block().shared_row;
        let at_zero = k.offset(shared, context.bytes(row.before));
        let copied = row.copied;
        let each = context.bytes(copied.len()) / CHUNK;
        let warps = div_ceil(each, WARP) * WARP;
        // Threads that make no whole group join the only one.
        let groups = (threads / warps).max(1);
        let group_threads = if groups > 1 { warps } else { threads };
        let (mut group, mut place) = (Operand::i32(0), thread);
        if groups > 1 {
            let size = Operand::i32(group_threads as i32);
            group = k.int(IntOp::Div, thread, size);
            place = k.int(IntOp::Rem, thread, size);
        }
        let first = k.resize(place, Type::I64);
        let by = k.int(IntOp::Mul, first, Operand::i64(CHUNK));
        let by = k.int(IntOp::Add, by, Operand::i64(context.bytes(copied.lo)));
        let to = k.advance(at_zero, by, 1);
        let (mut from, mut part) = (by, None);
        if let Some(owned) = Owned::of_block(k, context) {
            let first = k.resize(owned.first, Type::I64);
            let first = k.int(IntOp::Mul, first, Operand::i64(context.bytes(1)));
            from = k.int(IntOp::Add, by, first);
            part = Some(Part::new(k, context, &owned));
        }
        Producer {
            group,
            groups,
            rounds: div_ceil(each, group_threads),
            threads: group_threads,
            first: place,
            start: k.offset(at_zero, context.bytes(copied.lo)),
            to,
            by: from,
            part,
            waves: Copier {
                shared,
                thread,
                threads,
            },
        }
    }

    /// Row 0 of an origin's group at the thread's first chunk.
    pub fn at(&self, k: &mut Kernel<'_>, origin: Operand) -> Operand {
        k.advance(origin, self.by, 1)
    }

    /// The same period for each of its stages: where threads copy several pieces of a row, there are no registers for
    /// the places of rows.
    pub fn for_stage(&self, k: &mut Kernel<'_>, period: LoadPeriod, stage: usize) -> LoadPeriod {
        if stage == 0 || self.rounds <= 1 {
            return period;
        }
        LoadPeriod {
            chunk: distinct(k, period.chunk, stage),
            ..period
        }
    }

    /// Starts copying rows to their shared rows.
    pub fn copy(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        period: LoadPeriod,
        copies: &[SharedCopy],
    ) {
        // Values beyond the block's part that no thread of the block reads are not copied: another block may store them
        // meanwhile.
        let less = div_ceil(own_chunks(context), self.threads) < self.rounds;
        let whole = self.part.is_none() && !less;
        let (all, own): (Vec<&SharedCopy>, Vec<&SharedCopy>) =
            copies.iter().partition(|copy| copy.cross_lane || whole);
        let place = self.place(k, context, period);
        let needed = context.z_blocks().and_then(|z| z.window(copies));
        let needed = place.zip(needed);
        let begin = |copy: &&SharedCopy| context.layout.row_begin(copy.row.row);
        for (copies, own) in [(all, false), (own, true)] {
            // Packed rows end later than others.
            let (early, late) = copies.into_iter().partition(|copy| begin(copy) == 0);
            for (copies, begin) in [(early, 0), (late, context.layout.most_begin())] {
                let batch = Batch {
                    copies,
                    own,
                    begin,
                    needed,
                };
                self.copy_batch(k, context, period, &batch);
            }
        }
    }

    /// Where the thread's first chunk is, if lines are cut into z blocks. It is computed anew each time: there are no
    /// registers for it.
    fn place(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        period: LoadPeriod,
    ) -> Option<Between> {
        let Between(base) = period.base?;
        let to = k.again(self.to);
        let [from, to] = [self.start, to].map(|pointer| word_of(k, pointer));
        let bytes = k.int(IntOp::Sub, to, from);
        let each = Operand::i32(context.bytes(1) as i32);
        let values = k.int(IntOp::Div, bytes, each);
        let below = Operand::i32(context.block().shared_row.copied.lo as i32);
        let values = k.int(IntOp::Add, values, below);
        Some(Between(k.int(IntOp::Add, base, values)))
    }

    /// Starts copying the rows of a batch, shared out among the groups of threads.
    fn copy_batch(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        period: LoadPeriod,
        batch: &Batch<'_>,
    ) {
        let shape = context.block().shared_row;
        let mut each = context.bytes(shape.copied.len()) / CHUNK;
        let mut skipped = 0;
        if batch.own && self.part.is_none() {
            skipped = context.bytes(-shape.copied.lo) / CHUNK;
            each = own_chunks(context);
        }
        // Towers that make ghosts make the zeros beyond ends of rows that arrive, too. Others copy both.
        let shorter = context.layout.most_begin() - batch.begin;
        if shorter > 0 && context.ghosts().is_some() {
            each = div_ceil(context.bytes(shape.length + batch.begin), CHUNK);
        }
        for group in 0..self.groups {
            let mine = batch.copies.iter().skip(group as usize);
            let mine: Vec<&SharedCopy> = mine.step_by(self.groups as usize).copied().collect();
            if mine.is_empty() {
                continue;
            }
            let mut this = Operand::int(Type::I1, 1);
            if self.groups > 1 {
                this = k.compare(IntCmp::Eq, self.group, Operand::i32(group as i32));
            }
            let share = Share {
                producer: self,
                context,
                period,
                batch,
                copies: mine,
                this,
                skipped,
                each,
            };
            share.copy(k);
        }
    }
}

/// The rows of a batch that a group of threads copies. A thread copies in each round the chunk that is a number of
/// chunks behind its first one.
struct Share<'s, 'a> {
    producer: &'s Producer,
    context: &'s Context<'a>,
    period: LoadPeriod,
    batch: &'s Batch<'s>,
    copies: Vec<&'s SharedCopy>,
    /// Whether the thread is one of the group.
    this: Operand,
    /// Chunks of a row that nobody copies, before the others, and the others.
    skipped: i64,
    each: i64,
}

impl Share<'_, '_> {
    fn copy(&self, k: &mut Kernel<'_>) {
        let rounds = div_ceil(self.each, self.producer.threads);
        let mut first = self.producer.to;
        if self.producer.part.is_some() || self.producer.rounds > 1 {
            // There are more shared rows than registers for where they begin.
            first = k.again(first);
        }
        let threads = self.producer.threads;
        if rounds > 1 && self.context.z_blocks().is_none() {
            self.copy_by_rows(k, first, rounds);
            return;
        }
        let round = |k: &mut Kernel<'_>, before: Operand| self.copy_round(k, first, before);
        let [zero, end, step] = [0, rounds * threads, threads].map(word);
        match rounds {
            1 => round(k, zero),
            // All rounds have one code, as instructions are fetched; where blocks share lines, that would take more
            // registers.
            _ => k.repeat(zero, end, step, Some(1), round),
        }
    }

    /// Copies a chunk of each row: the one that is `before` chunks behind the thread's first one, which goes to `first`
    /// in shared row 0.
    fn copy_round(&self, k: &mut Kernel<'_>, first: Operand, before: Operand) {
        let has = self.has(k, before);
        k.when(has, |k| {
            let by = k.int(IntOp::Mul, before, Operand::i32(CHUNK as i32));
            let both = [self.period.chunk, first].map(|at| k.advance_by_word(at, by));
            for copy in &self.copies {
                let (from, to) = self.places(k, copy, both, self.skipped * CHUNK);
                let there = self.is_in_memory(k, copy);
                copy_chunk(k, self.context, from, to, there);
            }
        });
    }

    /// Copies the chunks of all rounds row by row, without jumps: between the rounds, there would be more places of
    /// rows than registers. `first`: as above.
    fn copy_by_rows(&self, k: &mut Kernel<'_>, first: Operand, rounds: i64) {
        let rounds: Vec<(i64, Operand)> = (0..rounds)
            .map(|round| {
                let before = round * self.producer.threads;
                let has = self.has(k, word(before));
                ((self.skipped + before) * CHUNK, has)
            })
            .collect();
        for copy in &self.copies {
            let there = self.is_in_memory(k, copy);
            for &(by, has) in &rounds {
                let (from, to) = self.places(k, copy, [self.period.chunk, first], by);
                match self.context.block().abilities.asynchronous {
                    true => k.copy_if(has, from, to, there),
                    false => k.when(has, |k| copy_chunk(k, self.context, from, to, there)),
                }
            }
        }
    }

    /// Whether the thread copies the chunk that is `before` chunks behind its first one.
    fn has(&self, k: &mut Kernel<'_>, before: Operand) -> Operand {
        let has = self.has_chunk(k, before);
        let Some((Between(piece), needed)) = self.batch.needed else {
            return has;
        };
        let values = CHUNK / self.context.bytes(1);
        let by = k.int(IntOp::Mul, before, Operand::i32(values as i32));
        let piece = Between(k.int(IntOp::Add, piece, by));
        let there = piece.lies(k, self.context, needed, values);
        k.int(IntOp::And, has, there)
    }

    /// Whether the thread is one of the group, and the rows have the chunk that is `before` chunks behind its first
    /// one.
    fn has_chunk(&self, k: &mut Kernel<'_>, before: Operand) -> Operand {
        let mut has = self.this;
        let chunk = k.int(IntOp::Add, self.producer.first, before);
        if let Some(Part { all, own }) = self.producer.part {
            let [first, end] = if self.batch.own { own } else { all };
            let there = k.compare(IntCmp::Lt, chunk, end);
            has = k.int(IntOp::And, has, there);
            if first.as_int() != Some(0) {
                let there = k.compare(IntCmp::Ge, chunk, first);
                has = k.int(IntOp::And, has, there);
            }
        } else if self.each % self.producer.threads != 0 {
            let there = k.compare(IntCmp::Lt, chunk, Operand::i32(self.each as i32));
            has = k.int(IntOp::And, has, there);
        }
        has
    }

    /// Where a chunk of a row is and goes, `by` bytes behind places in row 0 and in shared row 0.
    fn places(
        &self,
        k: &mut Kernel<'_>,
        copy: &SharedCopy,
        [from, to]: [Operand; 2],
        by: i64,
    ) -> (Operand, Operand) {
        let stride = self.context.block().shared_row.stride;
        let row = self.context.bytes(copy.shared as i64 * stride);
        // Copies begin where rows in memory do.
        let begin = self.context.layout.row_begin(copy.row.row);
        let distance = self.context.distance(copy.row) - self.context.bytes(begin);
        let from = k.offset(from, distance + by);
        (from, k.offset(to, row + by))
    }

    /// Whether a row is in memory, where something cuts rows off: the values of others are zero.
    fn is_in_memory(&self, k: &mut Kernel<'_>, copy: &SharedCopy) -> Option<Operand> {
        let predicate = self.period.predicate;
        predicate.map(|p| p.has(k, self.context, copy.row))
    }
}

/// Pieces of a row without values beyond its ends.
fn own_chunks(context: &Context<'_>) -> i64 {
    let values = context.block().shared_row.length + context.layout.most_begin();
    div_ceil(context.bytes(values), CHUNK)
}

/// `there`: where this does not hold, zeros are copied.
fn copy_chunk(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    from: Operand,
    to: Operand,
    there: Option<Operand>,
) {
    if context.block().abilities.asynchronous {
        match there {
            None => k.call("llvm.nvvm.cp.async.cg.shared.global.16", &[to, from]),
            Some(there) => {
                let bytes = Operand::i32(CHUNK as i32);
                let bytes = k.choose(there, bytes, Operand::i32(0));
                k.call(
                    "llvm.nvvm.cp.async.cg.shared.global.16.s",
                    &[to, from, bytes],
                );
            }
        }
        return;
    }
    let lanes = CHUNK as u32 / context.real.bytes();
    let vector = Type::vector(context.scheme.precision, lanes);
    let copy = |k: &mut Kernel<'_>| {
        let value = k.load(vector, from, CHUNK as u32, Access::Plain);
        k.store(value, to, CHUNK as u32, Access::Plain);
    };
    let Some(there) = there else {
        copy(k);
        return;
    };
    for by in (0..CHUNK).step_by(4) {
        let to = k.offset(to, by);
        k.store(Operand::i32(0), to, 4, Access::Plain);
    }
    k.when(there, copy);
}

/// All copies of the thread have arrived.
pub(super) fn wait_for_copies(k: &mut Kernel<'_>, context: &Context<'_>) {
    if context.block().abilities.asynchronous {
        k.call("llvm.nvvm.cp.async.wait.all", &[]);
    }
}

/// Writes zeros to all shared rows, for values beyond the ends of rows.
pub(super) fn clear(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    shared: Operand,
    thread: Operand,
    threads: i64,
) {
    let block = context.block();
    let words = context.bytes(block.shared_row.elements(block.shared_rows)) / 4;
    k.repeat(thread, word(words), word(threads), Some(1), |k, word| {
        let word = k.resize(word, Type::I64);
        let to = k.advance(shared, word, 4);
        k.store(Operand::i32(0), to, 4, Access::Plain);
    });
}
