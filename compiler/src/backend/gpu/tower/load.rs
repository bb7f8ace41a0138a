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
}

/// Rows that are copied in the same way.
struct Batch<'c> {
    copies: Vec<&'c SharedCopy>,
    /// Only the block's part of the line.
    own: bool,
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
        let lead = k.offset(shared, context.bytes(row.lead));
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
        let to = k.advance(lead, by, 1);
        let mut owned = None;
        let mut ends = None;
        if let Some(slabs) = context.slabs() {
            let rank = rank(k);
            let is_first = k.compare(IntCmp::Eq, rank, Operand::i32(0));
            ends = Some([is_first, is_last(k, slabs, rank)]);
            let less = context.bytes(slabs.width) - context.bytes(slabs.last);
            let last = div_ceil(context.bytes(copied.len()) - less, CHUNK);
            let chunks = of_slab(k, slabs, rank, each, last);
            owned = Some(Owned {
                first: first_index(k, slabs, rank),
                own: slabs.width,
                chunks,
            });
        }
        if let (Some(z_blocks), Some(base)) = (context.z_blocks(), z_block::base(k, context)) {
            owned = Some(Owned {
                first: base,
                own: z_blocks.threads,
                chunks: z_block::pieces(k, z_blocks, base, copied),
            });
        }
        let (mut from, mut part) = (by, None);
        if let Some(Owned { first, own, chunks }) = owned {
            let first = k.resize(first, Type::I64);
            let first = k.int(IntOp::Mul, first, Operand::i64(context.bytes(1)));
            from = k.int(IntOp::Add, by, first);
            let [below, above] =
                [-copied.lo, copied.hi - own].map(|n| word(context.bytes(n) / CHUNK));
            let end = k.int(IntOp::Sub, chunks, above);
            let own = [below, end];
            let mut all = [Operand::i32(0), chunks];
            if let (Some([is_first, is_last]), true) = (ends, context.ghosts().is_some()) {
                // Values beyond the ends of the line are not in memory.
                all = [
                    k.choose(is_first, below, all[0]),
                    k.choose(is_last, end, all[1]),
                ];
            }
            part = Some(Part { all, own });
        }
        Producer {
            group,
            groups,
            rounds: div_ceil(each, group_threads),
            threads: group_threads,
            first: place,
            start: k.offset(lead, context.bytes(copied.lo)),
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
        for (copies, own) in [(all, false), (own, true)] {
            let batch = Batch {
                copies,
                own,
                needed,
            };
            self.copy_batch(k, context, period, &batch);
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

    /// Whether `this` holds and the rows of a batch, of `each` chunks, have the one that is `before` chunks behind the
    /// thread's first one.
    fn has_chunk(
        &self,
        k: &mut Kernel<'_>,
        batch: &Batch<'_>,
        this: Operand,
        each: i64,
        before: Operand,
    ) -> Operand {
        let mut has = this;
        let chunk = k.int(IntOp::Add, self.first, before);
        if let Some(Part { all, own }) = self.part {
            let [first, end] = if batch.own { own } else { all };
            let there = k.compare(IntCmp::Lt, chunk, end);
            has = k.int(IntOp::And, has, there);
            if first.as_int() != Some(0) {
                let there = k.compare(IntCmp::Ge, chunk, first);
                has = k.int(IntOp::And, has, there);
            }
        } else if each % self.threads != 0 {
            let there = k.compare(IntCmp::Lt, chunk, Operand::i32(each as i32));
            has = k.int(IntOp::And, has, there);
        }
        has
    }

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
        for group in 0..self.groups {
            let mine = batch.copies.iter().skip(group as usize);
            let mine: Vec<&&SharedCopy> = mine.step_by(self.groups as usize).collect();
            if mine.is_empty() {
                continue;
            }
            let mut this = Operand::int(Type::I1, 1);
            if self.groups > 1 {
                this = k.compare(IntCmp::Eq, self.group, Operand::i32(group as i32));
            }
            let rounds = div_ceil(each, self.threads);
            let copies = |k: &mut Kernel<'_>, before: Operand| {
                let has = self.has_chunk(k, batch, this, each, before);
                let Some((Between(piece), needed)) = batch.needed else {
                    return has;
                };
                let values = CHUNK / context.bytes(1);
                let by = k.int(IntOp::Mul, before, Operand::i32(values as i32));
                let piece = Between(k.int(IntOp::Add, piece, by));
                let there = piece.lies(k, context, needed, values);
                k.int(IntOp::And, has, there)
            };
            let mut first = self.to;
            if self.part.is_some() || self.rounds > 1 {
                // There are more shared rows than registers for where they begin.
                first = k.again(first);
            }
            let places = |k: &mut Kernel<'_>, copy: &SharedCopy, [from, to]: [Operand; 2], by| {
                let row = context.bytes(copy.shared as i64 * shape.stride);
                let from = k.offset(from, context.distance(copy.row) + by);
                (from, k.offset(to, row + by))
            };
            // Values that are not in memory are zero.
            let there = |k: &mut Kernel<'_>, copy: &SharedCopy| {
                period.predicate.map(|p| p.has(k, context, copy.row))
            };
            if rounds == 1 || context.z_blocks().is_some() {
                let round = |k: &mut Kernel<'_>, before: Operand| {
                    let has = copies(k, before);
                    k.when(has, |k| {
                        let by = k.int(IntOp::Mul, before, Operand::i32(CHUNK as i32));
                        let both = [period.chunk, first].map(|at| k.advance_by_word(at, by));
                        for copy in &mine {
                            let (from, to) = places(k, copy, both, skipped * CHUNK);
                            let there = there(k, copy);
                            copy_chunk(k, context, from, to, there);
                        }
                    });
                };
                let [zero, end, step] = [0, rounds * self.threads, self.threads].map(word);
                match rounds {
                    1 => round(k, zero),
                    // All rounds have one code, as instructions are fetched; where blocks share lines, that would take
                    // more registers.
                    _ => k.repeat(zero, end, step, Some(1), round),
                }
                continue;
            }
            let rounds: Vec<(i64, Operand)> = (0..rounds)
                .map(|round| {
                    let before = round * self.threads;
                    let has = copies(k, word(before));
                    ((skipped + before) * CHUNK, has)
                })
                .collect();
            // Row by row, without jumps: between the rounds, there would be more places of rows than registers.
            for copy in &mine {
                let there = there(k, copy);
                for &(by, has) in &rounds {
                    let (from, to) = places(k, copy, [period.chunk, first], by);
                    match context.block().options.asynchronous {
                        true => k.copy_if(has, from, to, there),
                        false => k.when(has, |k| copy_chunk(k, context, from, to, there)),
                    }
                }
            }
        }
    }
}

/// Pieces of a row without values beyond its ends.
fn own_chunks(context: &Context<'_>) -> i64 {
    div_ceil(context.bytes(context.block().shared_row.length), CHUNK)
}

/// `there`: where this does not hold, zeros are copied.
fn copy_chunk(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    from: Operand,
    to: Operand,
    there: Option<Operand>,
) {
    if context.block().options.asynchronous {
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
    if context.block().options.asynchronous {
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
