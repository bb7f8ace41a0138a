//! Ghosts along the inner axis of rows that arrive in shared memory.
//!
//! Where towers make them, the warp that reads ghosts copies each source to where the ghost lies in the shared row,
//! when the rows of a stage have arrived, and the warp meets before it reads. The places are known before; a list in
//! memory has them for each stage. So all threads of the warp share the work, for all rows and ends together: some
//! instructions for each 32 ghosts.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use super::context::{Context, Lane, word};
use super::steer::{rank, thread};
use super::z_block;
use crate::lattice::div_ceil;
use crate::layout::Layout;
use crate::tower::block::{InnerGhosts, Reader, SharedRow, WARP};
use crate::tower::{Allocation, SharedCopy};

/// An entry of the list: two words, the place of the source in bytes from the beginning of shared rows, with
/// [`NEGATED`] and [`ZERO`], and that of the ghost.
const ENTRY: u32 = 8;
/// The ghost has the other sign.
const NEGATED: u32 = 1 << 31;
/// It has no source, and is 0.
const ZERO: u32 = 1 << 30;

/// A range of the list.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: i64,
    count: i64,
}

/// Where some ghosts are in the list, for each reader.
type Batch = Vec<Part>;

/// The ghosts of the rows of an alignment.
#[derive(Clone, Debug)]
pub(super) struct ArrivingGhosts {
    readers: Vec<Reader>,
    /// Of the rows that a period begins with.
    held: Batch,
    /// Of the rows that arrive for each stage.
    stages: Vec<Batch>,
}

impl ArrivingGhosts {
    /// Appends to a list.
    pub fn new(
        ghosts: &InnerGhosts,
        layout: &Layout,
        shape: SharedRow,
        allocation: &Allocation,
        list: &mut Vec<i32>,
    ) -> ArrivingGhosts {
        let shown = ghosts.shown.iter().flatten();
        let mut readers: Vec<Reader> = shown.map(|shown| shown.reader).collect();
        readers.sort_unstable();
        readers.dedup();
        let mut batch = |copies: &[SharedCopy]| -> Batch {
            let of = |reader: &Reader| {
                let first = list.len() as i64 / 2;
                for copy in copies.iter().filter(|copy| copy.cross_lane) {
                    let Some(id) = layout.component_of(copy.row.row) else {
                        continue;
                    };
                    let place = |index: i64| {
                        let begin = shape.before + layout.row_begin(copy.row.row);
                        let from = begin + copy.shared as i64 * shape.stride;
                        (from + index - reader.first) as u32 * layout.element_bytes as u32
                    };
                    let shown = ghosts.shown[id.index()].iter();
                    for shown in shown.filter(|shown| shown.reader == *reader) {
                        let mut from = shown.source.map_or(ZERO, place);
                        if shown.negated {
                            from |= NEGATED;
                        }
                        list.extend([from, place(shown.index)].map(|word| word as i32));
                    }
                }
                Part {
                    first,
                    count: list.len() as i64 / 2 - first,
                }
            };
            readers.iter().map(of).collect()
        };
        let held = batch(&allocation.held);
        let count = allocation.stages.len();
        let before = (0..count).map(|n| (n + count - 1) % count);
        let stages = before.map(|n| batch(&allocation.stages[n].loads)).collect();
        ArrivingGhosts {
            readers,
            held,
            stages,
        }
    }

    /// Ends the list of some alignments: the threads of a warp look at entries together, and as often whichever reader
    /// they are.
    pub fn end(all: &[ArrivingGhosts], list: &mut Vec<i32>) {
        let batches = all
            .iter()
            .flat_map(|all| all.stages.iter().chain([&all.held]));
        let most = batches.flatten().map(|part| part.count).max();
        let more = most.unwrap_or(0) + WARP;
        list.resize(list.len() + 2 * more as usize, 0);
    }
}

/// The ghosts of an alignment, and the list in which they are.
#[derive(Clone, Copy)]
pub(super) struct GhostList<'a> {
    pub ghosts: &'a ArrivingGhosts,
    pub list: Operand,
}

/// The part of the list for a thread.
struct Share {
    /// Its warp makes ghosts.
    some: Operand,
    /// Of its warp.
    count: Operand,
    lane: Operand,
    /// The thread's first entry.
    entry: Operand,
    /// Entries of a thread, [`WARP`] from each other.
    rounds: Vec<i64>,
}

impl GhostList<'_> {
    /// Makes the ghosts of the rows that a period begins with, which have arrived.
    pub fn make_held(&self, k: &mut Kernel<'_>, context: &Context<'_>, lane: &Lane) {
        self.make(k, context, lane, &self.ghosts.held);
    }

    /// Makes the ghosts of the rows that have arrived for a stage.
    pub fn make_arrived(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        stage: usize,
    ) {
        self.make(k, context, lane, &self.ghosts.stages[stage]);
    }

    /// `None` where no warp makes ghosts. It is computed anew each time: there are no registers to keep it in.
    fn share(&self, k: &mut Kernel<'_>, context: &Context<'_>, batch: &Batch) -> Option<Share> {
        let most = batch.iter().map(|part| part.count).max();
        let most = most.filter(|most| *most > 0)?;
        let thread = thread(k);
        let warp = k.int(IntOp::Right, thread, word(WARP.trailing_zeros().into()));
        // Which block it is, and indices from one to the next.
        let block = match context.slabs() {
            Some(slabs) => Some((rank(k), slabs.width)),
            None => z_block::base(k, context).map(|base| (base, 1)),
        };
        let (mut first, mut count) = (word(0), word(0));
        for (reader, part) in self.ghosts.readers.iter().zip(batch) {
            let mut this = k.compare(IntCmp::Eq, warp, word(reader.warp));
            if let Some((block, each)) = block {
                let here = k.compare(IntCmp::Eq, block, word(reader.first / each));
                this = k.int(IntOp::And, this, here);
            }
            first = k.choose(this, word(part.first), first);
            count = k.choose(this, word(part.count), count);
        }
        let lane = k.special(Special::Lane);
        let number = k.int(IntOp::Add, first, lane);
        let number = k.resize(number, Type::I64);
        Some(Share {
            some: k.compare(IntCmp::Gt, count, word(0)),
            count,
            lane,
            entry: k.advance(self.list, number, ENTRY),
            rounds: (0..div_ceil(most, WARP)).collect(),
        })
    }

    fn make(&self, k: &mut Kernel<'_>, context: &Context<'_>, own: &Lane, batch: &Batch) {
        let Some(share) = self.share(k, context, batch) else {
            return;
        };
        let Share {
            some,
            count,
            lane,
            entry,
            rounds,
        } = share;
        let real = context.real;
        k.when(some, |k| {
            // Loads come first, so that they are under way together.
            let entries: Vec<[Operand; 2]> = rounds
                .iter()
                .map(|round| {
                    let at = k.offset(entry, round * WARP * i64::from(ENTRY));
                    let both = k.load(Type::I64, at, ENTRY, Access::ReadOnly);
                    let ghost = k.int(IntOp::Right, both, Operand::i64(32));
                    [both, ghost].map(|word| k.resize(word, Type::I32))
                })
                .collect();
            let mut ghosts = Vec::new();
            for (round, [source, to]) in rounds.iter().zip(entries) {
                let number = k.int(IntOp::Add, lane, word(round * WARP));
                let there = k.compare(IntCmp::Lt, number, count);
                let zero = k.int(IntOp::And, source, Operand::i32(ZERO as i32));
                let lives = k.compare(IntCmp::Eq, zero, word(0));
                let loads = k.int(IntOp::And, there, lives);
                let value = k.variable_of(Operand::real(real, 0f64.to_bits()));
                k.when(loads, |k| {
                    let from = k.int(IntOp::And, source, Operand::i32(!NEGATED as i32));
                    let from = k.advance_by_word(own.rows, from);
                    let loaded = k.load(real, from, real.bytes(), Access::Plain);
                    let opposite = k.negated(loaded);
                    let negated = k.compare(IntCmp::Lt, source, word(0));
                    let loaded = k.choose(negated, opposite, loaded);
                    k.set(value, loaded);
                });
                ghosts.push((there, to, value));
            }
            for (there, to, value) in ghosts {
                k.when(there, |k| {
                    let to = k.advance_by_word(own.rows, to);
                    let value = k.get(value);
                    k.store(value, to, real.bytes(), Access::Plain);
                });
            }
            k.warp_barrier();
        });
    }
}
