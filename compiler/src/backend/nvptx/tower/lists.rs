//! The lists from which blocks take towers: one for each partition of the cache that all multiprocessors share.
//!
//! Where that cache has partitions, each keeps copies of what the multiprocessors near it use: what all of them use takes room in all
//! partitions, and each way from one to another costs time. So each partition has strips of its own ([`Order::partitions`](super::Order)), and
//! blocks take those near them. Lists lie in memory, in lines of the cache ([`LIST_BYTES`]): the first one has two words, the blocks that have
//! arrived and the number of multiprocessors; then one for each partition has three, how many of its tasks were taken, the number of the first of them
//! and how many there are; then there is a word for each multiprocessor, the number of its partition.
//!
//! There is an order of all towers in which none comes before one that it depends on, and each list is in that order. The first tower in it that is not
//! done depends on none that is not: so it goes on, if it was taken, and it is taken, if a block that takes towers of its list runs none that comes
//! later. So the first blocks that arrive take those of different lists, wherever they are. A block takes the next tower of its list while it runs
//! one that comes earlier; one of another list, when its own has none left, only while it runs none. Each block finds the end of each list once;
//! the last one that does so makes the list ready for the next start.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use super::flow::param;

/// Bytes from one list to the next.
pub const LIST_BYTES: u32 = 128;

/// Bytes of the words in their lines.
const ARRIVED: i64 = 0;
const PROCESSORS: i64 = 4;
const TAKEN: i64 = 0;
const FIRST: i64 = 4;
const COUNT: i64 = 8;

/// Where a cluster takes towers: the list's number and how many lists there are whose end it has not found, in shared memory, as the thread that
/// takes them has no register to spare.
pub(super) struct Lists {
    at: Operand,
    left: Operand,
    /// Blocks of the cluster.
    parts: u32,
}

impl Lists {
    /// Words of shared memory.
    pub const WORDS: u32 = 2;

    /// The clusters have so many blocks, and `takes` holds in one thread of each, which has these words.
    pub fn new(k: &mut Kernel<'_>, takes: Operand, words: Operand, parts: u32) -> Lists {
        let lists = Lists {
            at: words,
            left: k.offset(words, 4),
            parts,
        };
        k.when(takes, |k| {
            let header = k.param(param::LISTS);
            let arrived = k.offset(header, ARRIVED);
            let number = add_one(k, arrived);
            lists.reset_after(k, arrived, number);
            let processors = word(k, header, PROCESSORS);
            let last = k.int(IntOp::Sub, processors, Operand::i32(1));
            let own = k.special(Special::Processor);
            let own = k.int(IntOp::Min, own, last);
            let all = k.int(IntOp::Add, k.param(param::PARTITIONS), Operand::i32(1));
            let map = place(k, all);
            let wide = k.resize(own, Type::I64);
            let map = k.advance(map, wide, 4);
            let near = word(k, map, 0);
            let early = k.compare(IntCmp::Lt, number, k.param(param::PARTITIONS));
            let at = k.choose(early, number, near);
            k.store(at, lists.at, 4, Access::Volatile);
            let all = k.param(param::PARTITIONS);
            k.store(all, lists.left, 4, Access::Volatile);
        });
        lists
    }

    /// Stores the number of the next task of the list. If there is none, it is that of all tasks or more: it was taken so many too late.
    pub fn take(&self, k: &mut Kernel<'_>, to: Operand) {
        let list = self.list(k);
        let counter = k.offset(list, TAKEN);
        let taken = add_one(k, counter);
        let count = word(k, list, COUNT);
        let there = k.compare(IntCmp::Lt, taken, count);
        let late = k.int(IntOp::Sub, taken, count);
        let late = k.int(IntOp::Add, late, k.param(param::COUNT));
        let first = word(k, list, FIRST);
        let own = k.int(IntOp::Add, first, taken);
        let number = k.choose(there, own, late);
        k.store(number, to, 4, Access::Volatile);
    }

    /// The same of the next list, if there was none, until one has one or none is left.
    pub fn take_elsewhere(&self, k: &mut Kernel<'_>, to: Operand) {
        let (none, one) = (Operand::i32(0), Operand::i32(1));
        k.repeat(none, k.param(param::PARTITIONS), one, Some(1), |k, _| {
            let number = k.load(Type::I32, to, 4, Access::Volatile);
            let late = k.int(IntOp::Sub, number, k.param(param::COUNT));
            let ended = k.compare(IntCmp::Ge, late, none);
            let left = k.load(Type::I32, self.left, 4, Access::Volatile);
            let some = k.compare(IntCmp::Gt, left, none);
            let ended = k.int(IntOp::And, ended, some);
            k.when(ended, |k| {
                let list = self.list(k);
                let counter = k.offset(list, TAKEN);
                self.reset_after(k, counter, late);
                let at = k.load(Type::I32, self.at, 4, Access::Volatile);
                let next = k.int(IntOp::Add, at, one);
                let more = k.compare(IntCmp::Lt, next, k.param(param::PARTITIONS));
                let next = k.choose(more, next, none);
                k.store(next, self.at, 4, Access::Volatile);
                let left = k.int(IntOp::Sub, left, one);
                k.store(left, self.left, 4, Access::Volatile);
                let some = k.compare(IntCmp::Gt, left, none);
                k.when(some, |k| self.take(k, to));
            });
        });
    }

    fn list(&self, k: &mut Kernel<'_>) -> Operand {
        let at = k.load(Type::I32, self.at, 4, Access::Volatile);
        let number = k.int(IntOp::Add, at, Operand::i32(1));
        place(k, number)
    }

    /// Sets a counter back, if no other cluster gets a later number: each of them gets one that is too late.
    fn reset_after(&self, k: &mut Kernel<'_>, counter: Operand, late: Operand) {
        let clusters = k.int(IntOp::Add, late, Operand::i32(1));
        let blocks = k.int(IntOp::Mul, clusters, Operand::i32(self.parts as i32));
        let all = k.special(Special::Blocks(0));
        let last = k.compare(IntCmp::Eq, blocks, all);
        k.when(last, |k| {
            k.store(Operand::i32(0), counter, 4, Access::Volatile);
        });
    }
}

/// A line of the lists.
fn place(k: &mut Kernel<'_>, number: Operand) -> Operand {
    let wide = k.resize(number, Type::I64);
    k.advance(k.param(param::LISTS), wide, LIST_BYTES)
}

fn word(k: &mut Kernel<'_>, line: Operand, byte: i64) -> Operand {
    let from = k.offset(line, byte);
    k.load(Type::I32, from, 4, Access::Plain)
}

/// What a word was before.
fn add_one(k: &mut Kernel<'_>, word: Operand) -> Operand {
    let code = "atom.relaxed.gpu.global.add.u32 $0, [$1], 1;";
    k.assembly(code, "=r,l", &[Type::I32], &[word], true)[0]
}
