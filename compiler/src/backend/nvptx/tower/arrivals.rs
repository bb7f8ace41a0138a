//! Ghosts along the inner axis of rows that arrive in shared memory.
//!
//! Where [`Beyond`] says so, the warp that reads ghosts makes them: when the rows of a stage have arrived, its threads copy each source to where the
//! ghost lies in the slot, and the warp meets before it reads. Which places these are is known before; a list in memory has them for each stage, so
//! that all threads of the warp share the work, whatever rows and ends they are of: some instructions for each 32 ghosts.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use super::Slot;
use super::beyond::{Beyond, Reader};
use super::line::{WARP, rank, thread};
use super::links::word;
use super::plan::{Copy, Plan};
use super::write::Writer;
use crate::layout::Layout;

/// An entry of the list: two words, the place of the source in bytes from the beginning of shared memory, with [`NEGATED`] and [`ZERO`], and
/// that of the ghost.
const ENTRY: u32 = 8;
/// The ghost has the other sign.
const NEGATED: u32 = 1 << 31;
/// It has no source, and is 0.
const ZERO: u32 = 1 << 30;

/// Where some ghosts are in the list: the first one and how many, for each reader.
type Batch = Vec<[i64; 2]>;

/// The ghosts of the rows of a plan.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    readers: Vec<Reader>,
    /// Of the rows that a period begins with.
    held: Batch,
    /// Of those that arrive for each stage.
    stages: Vec<Batch>,
}

impl Arrivals {
    /// Appends to a list.
    pub fn new(
        beyond: &Beyond,
        layout: &Layout,
        slot: Slot,
        plan: &Plan,
        list: &mut Vec<i32>,
    ) -> Arrivals {
        let shown = beyond.shown.iter().flatten();
        let mut readers: Vec<Reader> = shown.map(|shown| shown.reader).collect();
        readers.sort_unstable();
        readers.dedup();
        let mut batch = |copies: &[Copy]| -> Batch {
            let of = |reader: &Reader| {
                let first = list.len() as i64 / 2;
                for copy in copies.iter().filter(|copy| copy.tapped) {
                    let Some(id) = layout.component_of(copy.place.row) else {
                        continue;
                    };
                    let place = |index: i64| {
                        let from = slot.lead + copy.slot as i64 * slot.stride;
                        (from + index - reader.first) as u32 * layout.element_bytes as u32
                    };
                    let shown = beyond.shown[id.index()].iter();
                    for shown in shown.filter(|shown| shown.reader == *reader) {
                        let mut from = shown.source.map_or(ZERO, place);
                        if shown.negated {
                            from |= NEGATED;
                        }
                        list.extend([from, place(shown.index)].map(|word| word as i32));
                    }
                }
                [first, list.len() as i64 / 2 - first]
            };
            readers.iter().map(of).collect()
        };
        let held = batch(&plan.held);
        let count = plan.stages.len();
        let before = (0..count).map(|n| (n + count - 1) % count);
        let stages = before.map(|n| batch(&plan.stages[n].loads)).collect();
        Arrivals {
            readers,
            held,
            stages,
        }
    }

    /// Ends the list of some plans: the threads of a warp look at entries together, and as often whichever reader they are.
    pub fn end(all: &[Option<Arrivals>], list: &mut Vec<i32>) {
        let batches = all
            .iter()
            .flatten()
            .flat_map(|all| all.stages.iter().chain([&all.held]));
        let most = batches.flatten().map(|[_, count]| *count).max();
        let more = most.unwrap_or(0) + WARP;
        list.resize(list.len() + 2 * more as usize, 0);
    }
}

/// What a thread looks at in the list.
struct Share {
    /// Its warp makes ghosts.
    some: Operand,
    /// Of its warp.
    count: Operand,
    lane: Operand,
    /// The thread's first entry.
    entry: Operand,
    /// Entries of a thread, [`WARP`] apart.
    rounds: Vec<i64>,
}

impl Writer<'_> {
    /// Makes the ghosts of the rows that a period begins with, which have arrived.
    pub(super) fn show_held(&self, k: &mut Kernel<'_>) {
        if let Some((arrivals, list)) = self.arrivals {
            self.show(k, list, &arrivals.readers, &arrivals.held);
        }
    }

    /// Makes the ghosts of the rows that have arrived for a stage.
    pub(super) fn show_arrived(&self, k: &mut Kernel<'_>, stage: usize) {
        if let Some((arrivals, list)) = self.arrivals {
            self.show(k, list, &arrivals.readers, &arrivals.stages[stage]);
        }
    }

    /// `None` where nobody makes ghosts. It is computed anew each time: there are no registers to keep it in.
    fn share(
        &self,
        k: &mut Kernel<'_>,
        list: Operand,
        readers: &[Reader],
        batch: &Batch,
    ) -> Option<Share> {
        let most = batch.iter().map(|[_, count]| *count).max();
        let most = most.filter(|most| *most > 0)?;
        let thread = thread(k);
        let warp = k.int(IntOp::Right, thread, word(WARP.trailing_zeros().into()));
        // Which block it is, and indices from one to the next.
        let block = match self.split {
            Some(split) => Some((rank(k), split.part)),
            None => self.base(k).map(|base| (base, 1)),
        };
        let (mut first, mut count) = (word(0), word(0));
        for (reader, [begin, some]) in readers.iter().zip(batch) {
            let mut this = k.compare(IntCmp::Eq, warp, word(reader.warp));
            if let Some((block, each)) = block {
                let here = k.compare(IntCmp::Eq, block, word(reader.first / each));
                this = k.int(IntOp::And, this, here);
            }
            first = k.choose(this, word(*begin), first);
            count = k.choose(this, word(*some), count);
        }
        let lane = k.special(Special::Lane);
        let number = k.int(IntOp::Add, first, lane);
        let number = k.resize(number, Type::I64);
        Some(Share {
            some: k.compare(IntCmp::Gt, count, word(0)),
            count,
            lane,
            entry: k.advance(list, number, ENTRY),
            rounds: (0..crate::lattice::div_ceil(most, WARP)).collect(),
        })
    }

    fn show(&self, k: &mut Kernel<'_>, list: Operand, readers: &[Reader], batch: &Batch) {
        let Some(share) = self.share(k, list, readers, batch) else {
            return;
        };
        let Share {
            some,
            count,
            lane,
            entry,
            rounds,
        } = share;
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
                let value = k.variable_of(Operand::real(self.real, 0f64.to_bits()));
                k.when(loads, |k| {
                    let from = k.int(IntOp::And, source, Operand::i32(!NEGATED as i32));
                    let from = k.advance_by_word(self.slots, from);
                    let loaded = k.load(self.real, from, self.real.bytes(), Access::Plain);
                    let opposite = k.negated(loaded);
                    let negated = k.compare(IntCmp::Lt, source, word(0));
                    let loaded = k.choose(negated, opposite, loaded);
                    k.set(value, loaded);
                });
                ghosts.push((there, to, value));
            }
            for (there, to, value) in ghosts {
                k.when(there, |k| {
                    let to = k.advance_by_word(self.slots, to);
                    let value = k.get(value);
                    k.store(value, to, self.real.bytes(), Access::Plain);
                });
            }
            k.warp_barrier();
        });
    }
}
