//! Which tower a block runs, and which one comes next.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Variable};
use super::Task;
use super::flow::param;
use super::line::{self, Split};
use super::lists::Lists;

/// Words of a task in shared memory: as in the list, and its number.
const WORDS: u32 = NUMBER + 1;
pub(super) const FIRST: u32 = 3;
const WHOLE: [u32; 2] = [4, 5];
const AT: [u32; 2] = [7, 8];
pub(super) const HOOKS: u32 = 12;
pub(super) const LIMITS: u32 = 13;
/// Whether it is narrow.
pub(super) const NARROW: u32 = 15;
const SHIFT: [u32; 2] = [16, 17];
const CLIPPED: u32 = 18;
pub(super) const NUMBER: u32 = Task::BYTES / 4;
/// After them: the number of the next task, from where it was taken, and the progress of the neighbours.
const NEXT: u32 = WORDS;
const TAKEN: u32 = NEXT + 1;
pub(super) const SEEN: u32 = TAKEN + Lists::WORDS;
pub(super) const NEIGHBOURS: u32 = 3;

/// Words of shared memory for all that, for blocks of which so many share lines.
pub(super) const fn words(parts: u32) -> u32 {
    SEEN + NEIGHBOURS * parts
}

/// A task as a block has read it.
pub(super) struct Fields {
    pub number: Operand,
    pub offset: Operand,
    pub alignment: Operand,
    pub first: Operand,
    pub whole: [Operand; 2],
    pub end: Operand,
    pub at: [Operand; 2],
    pub neighbours: [Operand; 3],
    pub clipped: Operand,
}

/// The task that comes next, in the registers of the herald's warp: a word in each lane.
pub(super) struct Ahead {
    lane: Operand,
    pub leads: Operand,
    /// The lane has a word.
    has: Operand,
    /// The lane's word in shared memory.
    to: Operand,
    /// Where the number lies while the warp tells itself.
    number: Operand,
    word: Variable,
    /// Where blocks share lines: how, and the block's number among them. The first one takes tasks for all.
    pub part: Option<(Split, Operand)>,
    lists: Lists,
}

impl Ahead {
    pub fn new(k: &mut Kernel<'_>, words: Operand, split: Option<Split>) -> Ahead {
        let lane = k.special(Special::Lane);
        let wide = k.resize(lane, Type::I64);
        let leads = k.compare(IntCmp::Eq, lane, Operand::i32(0));
        let part = split.map(|split| (split, line::rank(k)));
        let takes = match part {
            Some((_, rank)) => {
                let first = k.compare(IntCmp::Eq, rank, Operand::i32(0));
                k.int(IntOp::And, leads, first)
            }
            None => leads,
        };
        Ahead {
            lane,
            leads,
            has: k.compare(IntCmp::Below, lane, Operand::i32(WORDS as i32)),
            to: k.advance(words, wide, 4),
            number: k.offset(words, i64::from(4 * NEXT)),
            word: k.variable_of(Operand::i32(0)),
            part,
            lists: {
                let own = k.offset(words, i64::from(4 * TAKEN));
                Lists::new(k, takes, own, split.map_or(1, |split| split.parts))
            },
        }
    }

    /// What the first block does for all that share lines with it.
    fn as_first(&self, k: &mut Kernel<'_>, body: impl FnOnce(&mut Kernel<'_>)) {
        match self.part {
            Some((_, rank)) => {
                let first = k.compare(IntCmp::Eq, rank, Operand::i32(0));
                k.when(first, body);
            }
            None => body(k),
        }
    }

    /// Takes the next task of the list, if there is one.
    pub fn take(&self, k: &mut Kernel<'_>) {
        self.as_first(k, |k| {
            k.when(self.leads, |k| self.lists.take(k, self.number));
            self.read(k);
        });
    }

    /// Takes one of another list if there was none, now that the block runs none: one that it depends on could be among them.
    pub fn look_around(&self, k: &mut Kernel<'_>) {
        self.as_first(k, |k| {
            let number = k.load(Type::I32, self.number, 4, Access::Volatile);
            let none = k.compare(IntCmp::Ge, number, k.param(param::COUNT));
            k.when(none, |k| {
                k.warp_barrier();
                k.when(self.leads, |k| self.lists.take_elsewhere(k, self.number));
                self.read(k);
            });
        });
    }

    /// Reads the task whose number the first lane has told.
    fn read(&self, k: &mut Kernel<'_>) {
        k.warp_barrier();
        let number = k.load(Type::I32, self.number, 4, Access::Volatile);
        k.set(self.word, number);
        let there = k.compare(IntCmp::Lt, number, k.param(param::COUNT));
        let listed = k.compare(IntCmp::Below, self.lane, Operand::i32(NUMBER as i32));
        let listed = k.int(IntOp::And, listed, there);
        k.when(listed, |k| {
            let wide = k.resize(number, Type::I64);
            let task = k.advance(k.param(param::TASKS), wide, Task::BYTES);
            let wide = k.resize(self.lane, Type::I64);
            let from = k.advance(task, wide, 4);
            let word = k.load(Type::I32, from, 4, Access::Plain);
            k.set(self.word, word);
        });
    }

    /// Shows the task to the block, and to those that run it together with this one.
    pub fn give(&self, k: &mut Kernel<'_>) {
        if let Some((split, _)) = self.part {
            self.as_first(k, |k| {
                k.when(self.has, |k| {
                    let word = k.get(self.word);
                    for rank in 0..split.parts {
                        let to = line::address_in(k, self.to, Operand::i32(rank as i32));
                        let code = "st.shared::cluster.u32 [$0], $1;";
                        k.assembly(code, "r,r,~{memory}", &[], &[to, word], true);
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

/// The index of the origin of the task's whole part at the start of the time block, in the array.
pub(super) fn whole_at(k: &mut Kernel<'_>, words: Operand, around: bool) -> [Operand; 2] {
    let mut word = |n: u32| {
        let from = k.offset(words, i64::from(4 * n));
        k.load(Type::I32, from, 4, Access::Volatile)
    };
    let at = AT.map(&mut word);
    if !around {
        return at;
    }
    let shift = SHIFT.map(&mut word);
    [0, 1].map(|n| k.int(IntOp::Add, at[n], shift[n]))
}

/// After the last period of the task's whole part.
pub(super) fn whole_end(k: &mut Kernel<'_>, words: Operand) -> Operand {
    let from = k.offset(words, i64::from(4 * WHOLE[1]));
    k.load(Type::I32, from, 4, Access::Volatile)
}

/// Reads the block's task. Reading it anew is cheaper than keeping it: threads that compute have no register to spare.
pub(super) fn fields(k: &mut Kernel<'_>, words: Operand) -> Fields {
    let offset = k.load(Type::I64, words, 8, Access::Volatile);
    let mut word = |n: u32| {
        let from = k.offset(words, i64::from(4 * n));
        k.load(Type::I32, from, 4, Access::Volatile)
    };
    Fields {
        number: word(NUMBER),
        offset,
        alignment: word(2),
        first: word(FIRST),
        whole: WHOLE.map(&mut word),
        end: word(6),
        at: AT.map(&mut word),
        neighbours: [word(9), word(10), word(11)],
        clipped: word(CLIPPED),
    }
}
