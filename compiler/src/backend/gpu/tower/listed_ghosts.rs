//! Ghosts along the inner axis in shared rows.
//!
//! Where towers make them, the warp that reads ghosts copies each source to where the ghost lies in the shared row, and
//! the warp meets before it reads: for rows that threads have published when the next stage begins, for rows that
//! arrive when they are there. The places are known before; a list in memory has them for each stage. So all threads of
//! the warp share the work, for all rows and ends together: some instructions for each 32 ghosts. Entries of the list
//! are loaded before the warp waits for the rows.
//!
//! A thread that publishes a value could also store its ghost, with a condition. Such a store goes to another address
//! than the value by a distance that only the thread knows, so the assembler moves no load of shared memory before it,
//! in any warp, and all wait longer for what they read.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Variable};
use super::context::{Context, Lane, word};
use super::steer::{rank, thread};
use super::z_block;
use crate::tower::block::{Reader, Shown, WARP};
use crate::tower::{RowRef, SharedCopy};
use std::iter;

/// An entry of the list: two words, the place of the source in bytes from the beginning of shared rows, with
/// [`FLAGS`], and that of the ghost.
const ENTRY: u32 = 8;
/// The ghost has the other sign.
const NEGATED: u32 = 1 << 31;
/// It has no source, and is 0. The place of the source is another one of the row, which no thread writes meanwhile: lanes
/// that repeat an entry load, too.
const ZERO: u32 = 1 << 30;
/// The entry repeats the one before, and nothing is to be done.
const REPEATED: u32 = 1 << 29;
const FLAGS: u32 = NEGATED | ZERO | REPEATED;

/// Some ghosts in the list: the ghosts of a reader follow each other, in whole rounds of a warp, of which the last one
/// repeats its last entry.
#[derive(Clone, Debug, Default)]
struct Batch {
    /// The first entry of each reader that has some.
    first: Vec<(Reader, i64)>,
    /// Entries of a thread, [`WARP`] from each other.
    rounds: usize,
    /// The flags that some entries have.
    flags: u32,
}

impl Batch {
    /// Appends to a list. `of`: the entries of a reader.
    fn new(readers: &[Reader], of: impl Fn(Reader) -> Vec<[u32; 2]>, list: &mut Vec<i32>) -> Batch {
        let all: Vec<(Reader, Vec<[u32; 2]>)> = readers
            .iter()
            .map(|reader| (*reader, of(*reader)))
            .filter(|(_, entries)| !entries.is_empty())
            .collect();
        let most = all.iter().map(|(_, entries)| entries.len()).max();
        let rounds = most.unwrap_or(0).div_ceil(WARP as usize);
        let mut batch = Batch {
            rounds,
            ..Batch::default()
        };
        for (reader, entries) in all {
            batch.first.push((reader, list.len() as i64 / 2));
            let [from, to] = entries[entries.len() - 1];
            let more = rounds * WARP as usize - entries.len();
            let more = iter::repeat_n([from | REPEATED, to], more);
            for [from, to] in entries.into_iter().chain(more) {
                batch.flags |= from & FLAGS;
                list.extend([from as i32, to as i32]);
            }
        }
        batch
    }
}

/// The ghosts of the rows of an alignment.
#[derive(Clone, Debug)]
pub(super) struct ListedGhosts {
    /// Of the rows that a period begins with.
    held: Batch,
    /// Of the rows that arrive for each stage.
    arriving: Vec<Batch>,
    /// Of the rows that threads have published in the stage before each one.
    published: Vec<Batch>,
}

impl ListedGhosts {
    /// Appends to a list. `None` where towers make no ghosts.
    pub fn new(context: &Context<'_>, list: &mut Vec<i32>) -> Option<ListedGhosts> {
        let (ghosts, layout) = (context.ghosts()?, context.layout);
        let (shape, allocation) = (context.block().shared_row, context.allocation());
        let shown = ghosts.shown.iter().flatten();
        let mut readers: Vec<Reader> = shown.map(|shown| shown.reader).collect();
        readers.sort_unstable();
        readers.dedup();
        let entry = |row: RowRef, shared: usize, shown: &Shown| {
            let place = |index: i64| {
                let begin = shape.before + layout.row_begin(row.row);
                let from = begin + shared as i64 * shape.stride;
                (from + index - shown.reader.first) as u32 * layout.element_bytes as u32
            };
            let Reader { first, warp } = shown.reader;
            let own = || place(first + warp * WARP) | ZERO;
            let mut from = shown.source.map_or_else(own, place);
            if shown.negated {
                from |= NEGATED;
            }
            [from, place(shown.index)]
        };
        let mut batch = |rows: &[(RowRef, usize)]| -> Batch {
            let of = |reader: Reader| {
                let all = rows.iter().filter_map(|(row, shared)| {
                    let id = layout.component_of(row.row)?;
                    let shown = ghosts.shown[id.index()].iter();
                    let shown = shown.filter(move |shown| shown.reader == reader);
                    Some(shown.map(move |shown| entry(*row, *shared, shown)))
                });
                all.flatten().collect()
            };
            Batch::new(&readers, of, list)
        };
        let copied = |copies: &[SharedCopy]| -> Vec<(RowRef, usize)> {
            let read = copies.iter().filter(|copy| copy.cross_lane);
            read.map(|copy| (copy.row, copy.shared)).collect()
        };
        let held = batch(&copied(&allocation.held));
        let count = allocation.stages.len();
        let before = (0..count).map(|n| &allocation.stages[(n + count - 1) % count]);
        let arriving = before.clone().map(|stage| batch(&copied(&stage.loads)));
        let arriving = arriving.collect();
        let published = before.map(|stage| {
            let own = stage.publish.iter().map(|(row, shared)| (*row, *shared));
            let again = copied(&stage.republish);
            batch(&own.chain(again).collect::<Vec<_>>())
        });
        let published = published.collect();
        Some(ListedGhosts {
            held,
            arriving,
            published,
        })
    }
}

/// The ghosts of an alignment, and the list in which they are.
#[derive(Clone, Copy)]
pub(super) struct GhostList<'a> {
    pub ghosts: &'a ListedGhosts,
    pub list: Operand,
}

/// Entries that a thread has loaded for rows published in a stage, until the next one begins.
#[derive(Clone)]
pub(super) struct Ahead(Vec<Variable>);

impl GhostList<'_> {
    /// Makes the ghosts of the rows that a period begins with, which have arrived.
    pub fn make_held(&self, k: &mut Kernel<'_>, context: &Context<'_>, lane: &Lane) {
        let batch = &self.ghosts.held;
        let entries = self.load(k, context, batch);
        make(k, context, lane, batch, &entries);
    }

    /// Makes the ghosts of the rows that arrive for a stage; `wait`: waits for these.
    pub fn make_arrived(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        stage: usize,
        wait: impl FnOnce(&mut Kernel<'_>),
    ) {
        let batch = &self.ghosts.arriving[stage];
        let entries = self.load(k, context, batch);
        wait(k);
        make(k, context, lane, batch, &entries);
    }

    /// Where a thread keeps entries of published rows while it waits. `None` where it loads them afterwards: in z
    /// blocks, which are slower otherwise, and in f64, for which there are too few registers.
    pub fn ahead(&self, k: &mut Kernel<'_>, context: &Context<'_>) -> Option<Ahead> {
        if context.z_blocks().is_some() || context.real.bytes() == 8 {
            return None;
        }
        let rounds = self.ghosts.published.iter().map(|batch| batch.rounds);
        let most = 0..rounds.max().unwrap_or(0);
        let ahead = Ahead(most.map(|_| k.variable_of(Operand::i64(0))).collect());
        self.look_ahead(k, context, &ahead, 0);
        Some(ahead)
    }

    /// Loads the entries of the rows that have been published when a stage begins.
    pub fn look_ahead(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        ahead: &Ahead,
        stage: usize,
    ) {
        self.load_to(k, context, &self.ghosts.published[stage], &ahead.0);
    }

    /// Makes the ghosts of the rows that threads have published in the stage before.
    pub fn make_published(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        ahead: Option<&Ahead>,
        stage: usize,
    ) {
        let batch = &self.ghosts.published[stage];
        match ahead {
            Some(ahead) => make(k, context, lane, batch, &ahead.0),
            None => {
                let entries = self.load(k, context, batch);
                make(k, context, lane, batch, &entries);
            }
        }
    }

    fn load(&self, k: &mut Kernel<'_>, context: &Context<'_>, batch: &Batch) -> Vec<Variable> {
        let rounds = 0..batch.rounds;
        let entries: Vec<Variable> = rounds.map(|_| k.variable_of(Operand::i64(0))).collect();
        self.load_to(k, context, batch, &entries);
        entries
    }

    /// Loads the entries of a thread, if its warp is a reader.
    fn load_to(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        batch: &Batch,
        entries: &[Variable],
    ) {
        if batch.rounds == 0 {
            return;
        }
        let (reads, first) = share(k, context, batch);
        k.when(reads, |k| {
            let lane = k.special(Special::Lane);
            let number = k.int(IntOp::Add, first, lane);
            let number = k.resize(number, Type::I64);
            let entry = k.advance(self.list, number, ENTRY);
            for (round, variable) in entries.iter().take(batch.rounds).enumerate() {
                let at = k.offset(entry, round as i64 * WARP * i64::from(ENTRY));
                let both = k.load(Type::I64, at, ENTRY, Access::ReadOnly);
                k.set(*variable, both);
            }
        });
    }
}

/// Whether the thread's warp is a reader of some ghosts, and where its entries begin. It is computed anew each time:
/// there are no registers to keep it in.
fn share(k: &mut Kernel<'_>, context: &Context<'_>, batch: &Batch) -> (Operand, Operand) {
    let thread = thread(k);
    let warp = k.int(IntOp::Right, thread, word(WARP.trailing_zeros().into()));
    // Which block it is, and indices from one to the next.
    let block = match context.slabs() {
        Some(slabs) => Some((rank(k), slabs.width)),
        None => z_block::base(k, context).map(|base| (base, 1)),
    };
    let (mut reads, mut first) = (Operand::int(Type::I1, 0), word(0));
    for (reader, begin) in &batch.first {
        let mut this = k.compare(IntCmp::Eq, warp, word(reader.warp));
        if let Some((block, each)) = block {
            let here = k.compare(IntCmp::Eq, block, word(reader.first / each));
            this = k.int(IntOp::And, this, here);
        }
        reads = k.int(IntOp::Or, reads, this);
        first = k.choose(this, word(*begin), first);
    }
    (reads, first)
}

/// Makes ghosts by the entries that the threads of a reader have loaded.
fn make(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    own: &Lane,
    batch: &Batch,
    entries: &[Variable],
) {
    if batch.rounds == 0 {
        return;
    }
    let real = context.real;
    let (reads, _) = share(k, context, batch);
    k.when(reads, |k| {
        // Loads come first, so that they are under way together.
        let has = |k: &mut Kernel<'_>, source: Operand, flag: u32| {
            let flag = k.int(IntOp::And, source, Operand::i32(flag as i32));
            k.compare(IntCmp::Ne, flag, word(0))
        };
        let entries = entries.iter().take(batch.rounds);
        let ghosts: Vec<[Operand; 3]> = entries
            .map(|entry| {
                let both = k.get(*entry);
                let to = k.int(IntOp::Right, both, Operand::i64(32));
                let [source, to] = [both, to].map(|word| k.resize(word, Type::I32));
                let place = k.int(IntOp::And, source, Operand::i32(!FLAGS as i32));
                let from = k.advance_by_word(own.rows, place);
                let mut value = k.load(real, from, real.bytes(), Access::Plain);
                if batch.flags & NEGATED != 0 {
                    let opposite = k.negated(value);
                    let negated = k.compare(IntCmp::Lt, source, word(0));
                    value = k.choose(negated, opposite, value);
                }
                if batch.flags & ZERO != 0 {
                    let zero = has(k, source, ZERO);
                    value = k.choose(zero, Operand::real(real, 0f64.to_bits()), value);
                }
                [source, value, to]
            })
            .collect();
        for [source, value, to] in ghosts {
            let to = k.advance_by_word(own.rows, to);
            let store = |k: &mut Kernel<'_>| k.store(value, to, real.bytes(), Access::Plain);
            if batch.flags & REPEATED == 0 {
                store(k);
                continue;
            }
            let repeated = has(k, source, REPEATED);
            let acts = k.int(IntOp::Xor, repeated, Operand::int(Type::I1, 1));
            k.when(acts, store);
        }
        k.warp_barrier();
    });
}
