//! Copying rows from memory to their slots.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::CHUNK;
use super::line::{rank, word_of};
use super::plan::Copy;
use super::spans::Between;
use super::write::{Period, Writer};

/// How threads share the copying of rows: chunks of 16 bytes, groups of whole warps that take rows alternately.
#[derive(Clone, Copy)]
pub(super) struct Chunks {
    group: Operand,
    groups: i64,
    /// Chunks of a thread, its group's threads apart.
    rounds: i64,
    /// Threads of a group.
    threads: i64,
    /// The thread's first chunk.
    first: Operand,
    /// The first chunk of slot 0, and the thread's first one.
    start: Operand,
    to: Operand,
    /// From index 0 of a row to the thread's first chunk, in bytes.
    pub by: Operand,
    /// Ranges of the chunks of a row, where a block has a part of the line: all, and those of its own part.
    shared: Option<[[Operand; 2]; 2]>,
}

impl<'a> Writer<'a> {
    /// Computes what one of so many threads that copy rows has to know.
    pub fn copying(
        &self,
        k: &mut Kernel<'_>,
        shared: Operand,
        thread: Operand,
        threads: i64,
    ) -> Writer<'a> {
        let lead = k.offset(shared, self.bytes(self.slot.lead));
        let copied = self.slot.copied;
        let each = self.bytes(copied.len()) / CHUNK;
        let warps = crate::lattice::div_ceil(each, 32) * 32;
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
        let by = k.int(IntOp::Add, by, Operand::i64(self.bytes(copied.lo)));
        let to = k.advance(lead, by, 1);
        let mut part = None;
        let mut ends = None;
        if let Some(split) = self.split {
            let rank = rank(k);
            let is_first = k.compare(IntCmp::Eq, rank, Operand::i32(0));
            ends = Some([is_first, split.is_last(k, rank)]);
            let less = self.bytes(split.part) - self.bytes(split.last);
            let last = crate::lattice::div_ceil(self.bytes(copied.len()) - less, CHUNK);
            let count = split.of_part(k, rank, each, last);
            part = Some((split.first(k, rank), split.part, count));
        }
        if let (Some(spans), Some(base)) = (self.spans, self.base(k)) {
            part = Some((base, spans.threads, spans.pieces(k, base, copied)));
        }
        let (mut from, mut shared) = (by, None);
        if let Some((first, own, count)) = part {
            let first = k.resize(first, Type::I64);
            let first = k.int(IntOp::Mul, first, Operand::i64(self.bytes(1)));
            from = k.int(IntOp::Add, by, first);
            let [below, above] =
                [-copied.lo, copied.hi - own].map(|n| Operand::i32((self.bytes(n) / CHUNK) as i32));
            let end = k.int(IntOp::Sub, count, above);
            let own = [below, end];
            let mut all = [Operand::i32(0), count];
            if let (Some([is_first, is_last]), true) = (ends, self.beyond.is_some()) {
                // What lies beyond the ends of the line is not in memory.
                all = [
                    k.choose(is_first, below, all[0]),
                    k.choose(is_last, end, all[1]),
                ];
            }
            shared = Some([all, own]);
        }
        let chunks = Chunks {
            group,
            groups,
            rounds: crate::lattice::div_ceil(each, group_threads),
            threads: group_threads,
            first: place,
            start: k.offset(lead, self.bytes(copied.lo)),
            to,
            by: from,
            shared,
        };
        Writer {
            chunks: Some(chunks),
            ghosts: self.ghosts.clone(),
            ends: None,
            ..*self
        }
    }

    /// The same period for each of its stages, such that the assembler does not keep where rows are from one stage to the next: where threads
    /// copy several pieces of a row, there are no registers for that.
    pub fn distinct(&self, k: &mut Kernel<'_>, period: Period, stage: usize) -> Period {
        let several = self.chunks.is_some_and(|chunks| chunks.rounds > 1);
        if stage == 0 || !several {
            return period;
        }
        let zero = k.unknown_zero(stage.is_multiple_of(2));
        let chunk = k.advance_by_word(period.chunk, zero);
        Period { chunk, ..period }
    }

    /// Starts copying rows to their slots, if that is what the thread is for.
    pub fn copy(&self, k: &mut Kernel<'_>, period: Period, copies: &[Copy]) {
        let Some(chunks) = self.chunks else {
            return;
        };
        // What nobody reads beyond the block's part another block may store meanwhile; and nobody needs it.
        let less = crate::lattice::div_ceil(self.own_chunks(), chunks.threads) < chunks.rounds;
        let whole = chunks.shared.is_none() && !less;
        let (all, own): (Vec<&Copy>, Vec<&Copy>) =
            copies.iter().partition(|copy| copy.tapped || whole);
        let place = self.place(k, period, &chunks);
        let needed = self.spans.and_then(|spans| spans.window(copies));
        let needed = place.zip(needed);
        self.copy_some(k, period, &chunks, &all, (false, needed));
        self.copy_some(k, period, &chunks, &own, (true, needed));
    }

    /// Where the thread's first chunk is, if lines are cut into spans. It is computed anew each time: there are no registers for it.
    fn place(&self, k: &mut Kernel<'_>, period: Period, chunks: &Chunks) -> Option<Between> {
        let Between(base) = period.base?;
        let to = k.again(chunks.to);
        let [from, to] = [chunks.start, to].map(|pointer| word_of(k, pointer));
        let bytes = k.int(IntOp::Sub, to, from);
        let each = Operand::i32(self.bytes(1) as i32);
        let values = k.int(IntOp::Div, bytes, each);
        let below = Operand::i32(self.slot.copied.lo as i32);
        let values = k.int(IntOp::Add, values, below);
        Some(Between(k.int(IntOp::Add, base, values)))
    }

    /// Pieces of a row without what lies beyond its ends.
    fn own_chunks(&self) -> i64 {
        crate::lattice::div_ceil(self.bytes(self.slot.length), CHUNK)
    }

    /// `own`: only the block's part of the line; `needed`: where the thread's first chunk is, and what a span needs
    /// ([`Spans::window`](super::spans::Spans::window)).
    fn copy_some(
        &self,
        k: &mut Kernel<'_>,
        period: Period,
        chunks: &Chunks,
        copies: &[&Copy],
        (own, needed): (bool, Option<(Between, [i64; 2])>),
    ) {
        let mut each = self.bytes(self.slot.copied.len()) / CHUNK;
        let mut skipped = 0;
        if own && chunks.shared.is_none() {
            skipped = self.bytes(-self.slot.copied.lo) / CHUNK;
            each = self.own_chunks();
        }
        for group in 0..chunks.groups {
            let mine = copies.iter().skip(group as usize);
            let mine: Vec<&&Copy> = mine.step_by(chunks.groups as usize).collect();
            if mine.is_empty() {
                continue;
            }
            let mut this = Operand::int(Type::I1, 1);
            if chunks.groups > 1 {
                this = k.compare(IntCmp::Eq, chunks.group, Operand::i32(group as i32));
            }
            let rounds = crate::lattice::div_ceil(each, chunks.threads);
            // Whether the thread copies a chunk so many behind its first one.
            let copies = |k: &mut Kernel<'_>, before: Operand| {
                let mut has = this;
                let chunk = k.int(IntOp::Add, chunks.first, before);
                if let Some([all, part]) = chunks.shared {
                    let [first, end] = if own { part } else { all };
                    let there = k.compare(IntCmp::Lt, chunk, end);
                    has = k.int(IntOp::And, has, there);
                    if first.as_int() != Some(0) {
                        let there = k.compare(IntCmp::Ge, chunk, first);
                        has = k.int(IntOp::And, has, there);
                    }
                } else if each % chunks.threads != 0 {
                    let there = k.compare(IntCmp::Lt, chunk, Operand::i32(each as i32));
                    has = k.int(IntOp::And, has, there);
                }
                if let Some((Between(piece), needed)) = needed {
                    let values = CHUNK / self.bytes(1);
                    let by = k.int(IntOp::Mul, before, Operand::i32(values as i32));
                    let piece = Between(k.int(IntOp::Add, piece, by));
                    let there = self.lies(k, piece, needed, values);
                    has = k.int(IntOp::And, has, there);
                }
                has
            };
            let mut first = chunks.to;
            if chunks.shared.is_some() || chunks.rounds > 1 {
                // There are more slots than registers for where they begin.
                first = k.again(first);
            }
            let places = |k: &mut Kernel<'_>, copy: &Copy, [from, to]: [Operand; 2], by: i64| {
                let slot = self.bytes(copy.slot as i64 * self.slot.stride);
                let from = k.offset(from, self.distance(copy.place) + by);
                (from, k.offset(to, slot + by))
            };
            // What is not there is zero.
            let there = |k: &mut Kernel<'_>, copy: &Copy| {
                period.clip.map(|clip| clip.has(k, self, copy.place))
            };
            if rounds == 1 || self.spans.is_some() {
                let round = |k: &mut Kernel<'_>, before: Operand| {
                    let has = copies(k, before);
                    k.when(has, |k| {
                        let by = k.int(IntOp::Mul, before, Operand::i32(CHUNK as i32));
                        let both = [period.chunk, first].map(|at| k.advance_by_word(at, by));
                        for copy in &mine {
                            let (from, to) = places(k, copy, both, skipped * CHUNK);
                            let there = there(k, copy);
                            self.copy_chunk(k, from, to, there);
                        }
                    });
                };
                let [zero, end, step] =
                    [0, rounds * chunks.threads, chunks.threads].map(|n| Operand::i32(n as i32));
                match rounds {
                    1 => round(k, zero),
                    // All rounds have one code, as instructions are fetched; where blocks share lines, that would take more registers.
                    _ => k.repeat(zero, end, step, Some(1), round),
                }
                continue;
            }
            let rounds: Vec<(i64, Operand)> = (0..rounds)
                .map(|round| {
                    let before = round * chunks.threads;
                    let has = copies(k, Operand::i32(before as i32));
                    ((skipped + before) * CHUNK, has)
                })
                .collect();
            // Row by row, without jumps: between the rounds, there would be more places of rows than registers.
            for copy in &mine {
                let there = there(k, copy);
                for &(by, has) in &rounds {
                    let (from, to) = places(k, copy, [period.chunk, first], by);
                    match self.asynchronous {
                        true => k.copy_if(has, from, to, there),
                        false => k.when(has, |k| self.copy_chunk(k, from, to, there)),
                    }
                }
            }
        }
    }

    /// `there`: where this does not hold, zeros are copied.
    fn copy_chunk(&self, k: &mut Kernel<'_>, from: Operand, to: Operand, there: Option<Operand>) {
        if self.asynchronous {
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
        let lanes = CHUNK as u32 / self.real.bytes();
        let vector = Type::vector(self.scheme.precision, lanes);
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
    pub fn arrived(&self, k: &mut Kernel<'_>) {
        if self.asynchronous && self.chunks.is_some() {
            k.call("llvm.nvvm.cp.async.wait.all", &[]);
        }
    }

    /// Zeros in all slots: what lies beyond the ends of rows.
    pub fn clear(
        &self,
        k: &mut Kernel<'_>,
        shared: Operand,
        slots: usize,
        thread: Operand,
        threads: i64,
    ) {
        let words = self.bytes(self.slot.elements(slots)) / 4;
        let step = Operand::i32(threads as i32);
        k.repeat(
            thread,
            Operand::i32(words as i32),
            step,
            Some(1),
            |k, word| {
                let word = k.resize(word, Type::I64);
                let to = k.advance(shared, word, 4);
                k.store(Operand::i32(0), to, 4, Access::Plain);
            },
        );
    }
}
