//! The task that a block runs, as it lies in shared memory.

use super::super::abi::TaskWord;
use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::context::Context;

/// A task as a thread has read it. Reading it anew is cheaper than keeping it: threads that compute have no register to
/// spare.
pub(super) struct Fields {
    pub number: Operand,
    pub offset: Operand,
    pub alignment: Operand,
    pub first: Operand,
    pub interior: [Operand; 2],
    pub end: Operand,
    pub origin: [Operand; 2],
    pub neighbours: [Operand; 3],
    pub variant: Operand,
}

/// Where a word of the block's task lies.
pub(super) fn place(k: &mut Kernel<'_>, words: Operand, number: u32) -> Operand {
    k.offset(words, i64::from(4 * number))
}

/// A word of the block's task.
pub(super) fn word(k: &mut Kernel<'_>, words: Operand, number: u32) -> Operand {
    let from = place(k, words, number);
    k.load(Type::I32, from, 4, Access::Volatile)
}

pub(super) fn fields(k: &mut Kernel<'_>, words: Operand) -> Fields {
    let offset = k.load(Type::I64, words, 8, Access::Volatile);
    let mut word = |number: u32| word(k, words, number);
    Fields {
        number: word(TaskWord::NUMBER),
        offset,
        alignment: word(TaskWord::ALIGNMENT),
        first: word(TaskWord::FIRST),
        interior: TaskWord::INTERIOR.map(&mut word),
        end: word(TaskWord::END),
        origin: TaskWord::ORIGIN.map(&mut word),
        neighbours: TaskWord::NEIGHBOURS.map(&mut word),
        variant: word(TaskWord::VARIANT),
    }
}

/// The index in the array of the task's origin at the start of the time block, as interior periods see it.
pub(super) fn interior_origin(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    words: Operand,
) -> [Operand; 2] {
    let mut word = |number: u32| word(k, words, number);
    let at = TaskWord::ORIGIN.map(&mut word);
    if !context.towers().rings.is_any() {
        return at;
    }
    let shift = TaskWord::SHIFT.map(&mut word);
    [0, 1].map(|n| k.int(IntOp::Add, at[n], shift[n]))
}

/// Whether a period of the time block is near faces of boxes of total fields.
pub(super) fn is_near(k: &mut Kernel<'_>, words: Operand, period: Operand) -> Operand {
    let [first, count] = TaskWord::NEAR.map(|number| word(k, words, number));
    let from = k.int(IntOp::Sub, period, first);
    k.compare(IntCmp::Below, from, count)
}

/// Whether a period of the time block is the first one behind the periods near faces.
pub(super) fn is_first_behind(k: &mut Kernel<'_>, words: Operand, period: Operand) -> Operand {
    let [first, count] = TaskWord::NEAR.map(|number| word(k, words, number));
    let behind = k.int(IntOp::Add, first, count);
    k.compare(IntCmp::Eq, period, behind)
}

/// After the last interior period of the task.
pub(super) fn interior_end(k: &mut Kernel<'_>, words: Operand) -> Operand {
    word(k, words, TaskWord::INTERIOR[1])
}
