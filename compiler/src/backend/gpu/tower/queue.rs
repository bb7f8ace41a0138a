//! The work queues from which blocks take tasks: one for each partition of the cache that all multiprocessors share.
//!
//! Where that cache has partitions, each keeps copies of the lines that the multiprocessors near it use. Lines that all
//! of them use take room in all partitions, and each transfer from one to another costs time. So each partition has
//! strips of its own, and blocks take tasks of the partition near them.
//!
//! There is an order of all towers in which none comes before a tower on which it depends, and each queue is in that
//! order. The first tower in it that is not done depends only on towers that are done. So it goes on if it was taken,
//! and it is taken if a block that takes towers of its queue runs none that comes later. So the first blocks that
//! arrive take towers of different queues, wherever the blocks are. A block takes the next tower of its queue while it
//! runs one that comes earlier; one of another queue, when its own has none left, only while it runs none. Each block
//! finds the end of each queue once; the last one that does so makes the queue ready for the next launch.

use super::super::abi::{QUEUE_BYTES, QueueHeader, QueueLine, TaskWord, TowerParams};
use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Variable};
use super::cluster::address_in;
use super::progress::BlockOf;
use super::steer::rank;
use super::task;

/// Where a cluster takes tasks: the queue's number and how many queues there are whose end it has not found, in shared
/// memory, as the thread that takes them has no register to spare.
struct Queues {
    at: Operand,
    left: Operand,
    /// Of a cluster.
    blocks: u32,
}

impl Queues {
    /// The clusters have `blocks` blocks, and `takes` holds in one thread of each, which has `words`.
    fn new(k: &mut Kernel<'_>, takes: Operand, words: Operand, blocks: u32) -> Queues {
        let queues = Queues {
            at: words,
            left: k.offset(words, 4),
            blocks,
        };
        k.when(takes, |k| {
            let header = k.param(TowerParams::QUEUES);
            let arrived = k.offset(header, QueueHeader::ARRIVED);
            let number = add_one(k, arrived);
            queues.reset_after(k, arrived, number);
            let multiprocessors = word(k, header, QueueHeader::MULTIPROCESSORS);
            let last = k.int(IntOp::Sub, multiprocessors, Operand::i32(1));
            let own = k.special(Special::Multiprocessor);
            let own = k.int(IntOp::Min, own, last);
            let partitions = k.param(TowerParams::PARTITIONS);
            let all = k.int(IntOp::Add, partitions, Operand::i32(1));
            let map = line(k, all);
            let wide = k.resize(own, Type::I64);
            let map = k.advance(map, wide, 4);
            let near = word(k, map, 0);
            let early = k.compare(IntCmp::Lt, number, k.param(TowerParams::PARTITIONS));
            let at = k.choose(early, number, near);
            k.store(at, queues.at, 4, Access::Volatile);
            let all = k.param(TowerParams::PARTITIONS);
            k.store(all, queues.left, 4, Access::Volatile);
        });
        queues
    }

    /// Stores the number of the next task of the queue. If there is none, it is the number of all tasks or more; the
    /// excess counts the takes after the last task.
    fn take(&self, k: &mut Kernel<'_>, to: Operand) {
        let queue = self.queue(k);
        let counter = k.offset(queue, QueueLine::TAKEN);
        let taken = add_one(k, counter);
        let count = word(k, queue, QueueLine::COUNT);
        let there = k.compare(IntCmp::Lt, taken, count);
        let late = k.int(IntOp::Sub, taken, count);
        let late = k.int(IntOp::Add, late, k.param(TowerParams::COUNT));
        let first = word(k, queue, QueueLine::FIRST);
        let own = k.int(IntOp::Add, first, taken);
        let number = k.choose(there, own, late);
        k.store(number, to, 4, Access::Volatile);
    }

    /// The same of the next queue, if there was none, until one has one or none is left.
    fn take_elsewhere(&self, k: &mut Kernel<'_>, to: Operand) {
        let (none, one) = (Operand::i32(0), Operand::i32(1));
        let partitions = k.param(TowerParams::PARTITIONS);
        k.repeat(none, partitions, one, Some(1), |k, _| {
            let number = k.load(Type::I32, to, 4, Access::Volatile);
            let late = k.int(IntOp::Sub, number, k.param(TowerParams::COUNT));
            let ended = k.compare(IntCmp::Ge, late, none);
            let left = k.load(Type::I32, self.left, 4, Access::Volatile);
            let some = k.compare(IntCmp::Gt, left, none);
            let ended = k.int(IntOp::And, ended, some);
            k.when(ended, |k| {
                let queue = self.queue(k);
                let counter = k.offset(queue, QueueLine::TAKEN);
                self.reset_after(k, counter, late);
                let at = k.load(Type::I32, self.at, 4, Access::Volatile);
                let next = k.int(IntOp::Add, at, one);
                let more = k.compare(IntCmp::Lt, next, k.param(TowerParams::PARTITIONS));
                let next = k.choose(more, next, none);
                k.store(next, self.at, 4, Access::Volatile);
                let left = k.int(IntOp::Sub, left, one);
                k.store(left, self.left, 4, Access::Volatile);
                let some = k.compare(IntCmp::Gt, left, none);
                k.when(some, |k| self.take(k, to));
            });
        });
    }

    fn queue(&self, k: &mut Kernel<'_>) -> Operand {
        let at = k.load(Type::I32, self.at, 4, Access::Volatile);
        let number = k.int(IntOp::Add, at, Operand::i32(1));
        line(k, number)
    }

    /// Sets a counter back, if no other cluster gets a later number: each of them gets one that is too late.
    fn reset_after(&self, k: &mut Kernel<'_>, counter: Operand, late: Operand) {
        let clusters = k.int(IntOp::Add, late, Operand::i32(1));
        let blocks = k.int(IntOp::Mul, clusters, Operand::i32(self.blocks as i32));
        let all = k.special(Special::Blocks(0));
        let last = k.compare(IntCmp::Eq, blocks, all);
        k.when(last, |k| {
            k.store(Operand::i32(0), counter, 4, Access::Volatile);
        });
    }
}

/// A line of the queues.
fn line(k: &mut Kernel<'_>, number: Operand) -> Operand {
    let wide = k.resize(number, Type::I64);
    k.advance(k.param(TowerParams::QUEUES), wide, QUEUE_BYTES)
}

fn word(k: &mut Kernel<'_>, line: Operand, byte: i64) -> Operand {
    let from = k.offset(line, byte);
    k.load(Type::I32, from, 4, Access::Plain)
}

/// Adds one to a word of memory, and gives its value before.
fn add_one(k: &mut Kernel<'_>, word: Operand) -> Operand {
    let code = "atom.relaxed.gpu.global.add.u32 $0, [$1], 1;";
    k.assembly(code, "=r,l", &[Type::I32], &[word])[0]
}

/// The task that comes next, in the registers of the publisher's warp: a word in each lane.
pub(super) struct NextTask {
    lane: Operand,
    pub leads: Operand,
    /// The lane has a word.
    has: Operand,
    /// The lane's word in shared memory.
    to: Operand,
    /// Where the number lies while the warp tells itself.
    number: Operand,
    word: Variable,
    /// Where blocks share lines. The first one takes tasks for all.
    pub block: Option<BlockOf>,
    queues: Queues,
}

impl NextTask {
    /// `blocks`: of a cluster.
    pub fn new(k: &mut Kernel<'_>, words: Operand, blocks: u32) -> NextTask {
        let lane = k.special(Special::Lane);
        let wide = k.resize(lane, Type::I64);
        let leads = k.compare(IntCmp::Eq, lane, Operand::i32(0));
        let block = (blocks > 1).then(|| BlockOf {
            blocks,
            rank: rank(k),
        });
        let takes = match block {
            Some(BlockOf { rank, .. }) => {
                let first = k.compare(IntCmp::Eq, rank, Operand::i32(0));
                k.int(IntOp::And, leads, first)
            }
            None => leads,
        };
        NextTask {
            lane,
            leads,
            has: k.compare(IntCmp::Below, lane, Operand::i32(TaskWord::SHOWN as i32)),
            to: k.advance(words, wide, 4),
            number: task::place(k, words, TaskWord::NEXT),
            word: k.variable_of(Operand::i32(0)),
            block,
            queues: {
                let own = task::place(k, words, TaskWord::QUEUE);
                Queues::new(k, takes, own, blocks)
            },
        }
    }

    /// Code that the first block runs for all blocks that share lines with it.
    fn as_first(&self, k: &mut Kernel<'_>, body: impl FnOnce(&mut Kernel<'_>)) {
        match self.block {
            Some(BlockOf { rank, .. }) => {
                let first = k.compare(IntCmp::Eq, rank, Operand::i32(0));
                k.when(first, body);
            }
            None => body(k),
        }
    }

    /// Takes the next task of the queue, if there is one.
    pub fn take(&self, k: &mut Kernel<'_>) {
        self.as_first(k, |k| {
            k.when(self.leads, |k| self.queues.take(k, self.number));
            self.read(k);
        });
    }

    /// Takes one of another queue if there was none, now that the block runs none: one that it depends on could be
    /// among them.
    pub fn take_elsewhere(&self, k: &mut Kernel<'_>) {
        self.as_first(k, |k| {
            let number = k.load(Type::I32, self.number, 4, Access::Volatile);
            let none = k.compare(IntCmp::Ge, number, k.param(TowerParams::COUNT));
            k.when(none, |k| {
                k.warp_barrier();
                k.when(self.leads, |k| self.queues.take_elsewhere(k, self.number));
                self.read(k);
            });
        });
    }

    /// Reads the task whose number the first lane has told.
    fn read(&self, k: &mut Kernel<'_>) {
        k.warp_barrier();
        let number = k.load(Type::I32, self.number, 4, Access::Volatile);
        k.set(self.word, number);
        let there = k.compare(IntCmp::Lt, number, k.param(TowerParams::COUNT));
        let words = Operand::i32(TaskWord::COUNT as i32);
        let listed = k.compare(IntCmp::Below, self.lane, words);
        let listed = k.int(IntOp::And, listed, there);
        k.when(listed, |k| {
            let wide = k.resize(number, Type::I64);
            let task = k.advance(k.param(TowerParams::TASKS), wide, TaskWord::BYTES);
            let wide = k.resize(self.lane, Type::I64);
            let from = k.advance(task, wide, 4);
            let word = k.load(Type::I32, from, 4, Access::Plain);
            k.set(self.word, word);
        });
    }

    /// Shows the task to the block, and to the blocks that run it together with this one.
    pub fn show(&self, k: &mut Kernel<'_>) {
        if let Some(BlockOf { blocks, .. }) = self.block {
            self.as_first(k, |k| {
                k.when(self.has, |k| {
                    let word = k.get(self.word);
                    for rank in 0..blocks {
                        let to = address_in(k, self.to, Operand::i32(rank as i32));
                        let code = "st.shared::cluster.u32 [$0], $1;";
                        k.assembly(code, "r,r,~{memory}", &[], &[to, word]);
                    }
                });
            });
            return;
        }
        k.when(self.has, |k| {
            let word = k.get(self.word);
            k.store(word, self.to, 4, Access::Volatile);
        });
    }
}
