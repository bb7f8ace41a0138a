//! Polls: a warp that keeps finding the same values sleeps until one of them changes.
//!
//! A warp may be delayed at any time, so that sleeping changes no outcome, only the time that interpretation takes.
//! Where no thread goes on, all poll in every round: kernels that give up after some polls end, and kernels that do not
//! are found.

use crate::access::number;
use crate::block::{Block, Warp};
use crate::launch::Launch;
use crate::place::Place;

/// The most instructions of a loop that does nothing but poll.
pub(crate) const LOOP: u32 = 32;
/// Turns that a warp sleeps before it polls again although nothing has changed.
const MOST_TURNS: u32 = 128;

/// A value that a poll has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// Up to eight bytes of memory.
    Value {
        place: Place,
        bytes: usize,
        value: u64,
    },
    /// The phase of a barrier object of the block.
    Phase { at: usize, phase: u64 },
}

/// The last poll of a warp.
#[derive(Debug, Default)]
pub(crate) struct Poll {
    pc: u32,
    values: Vec<Polled>,
    /// The poll before it read the same, and little was executed between them.
    pub(crate) repeated: bool,
    /// Turns that the warp has slept.
    turns: u32,
}

impl Warp {
    /// Keeps the values that a poll by the instruction `pc` has read.
    pub(crate) fn keep_poll(&mut self, pc: u32, values: impl Iterator<Item = Polled>) {
        let last = &mut self.poll;
        let (mut count, mut same) = (0, last.pc == pc);
        for value in values {
            match last.values.get_mut(count) {
                Some(before) => {
                    same &= *before == value;
                    *before = value;
                }
                None => {
                    same = false;
                    last.values.push(value);
                }
            }
            count += 1;
        }
        last.repeated = same && count > 0 && count == last.values.len();
        last.values.truncate(count);
        (last.pc, last.turns) = (pc, 0);
    }

    /// Forgets the last poll.
    pub(crate) fn forget_poll(&mut self) {
        let last = &mut self.poll;
        last.values.clear();
        (last.repeated, last.turns) = (false, 0);
    }
}

impl Launch<'_> {
    /// Whether a warp has polled in vain and would read the same again; its turn is over then.
    pub(crate) fn sleeps(&self, block: &mut Block, warp: usize) -> bool {
        let state = &block.warps[warp];
        let spent = state.poll.turns == MOST_TURNS;
        if self.idle || spent || !state.poll.repeated || state.groups.len() != 1 {
            return false;
        }
        let same = state
            .poll
            .values
            .iter()
            .all(|value| self.reads(block, value));
        let poll = &mut block.warps[warp].poll;
        poll.repeated = same;
        poll.turns += 1;
        same
    }

    /// Whether a poll would read this value.
    fn reads(&self, block: &Block, polled: &Polled) -> bool {
        let (memory, at, bytes, value) = match *polled {
            Polled::Phase { at, phase } => return block.transfers.phase(at) == Some(phase),
            Polled::Value {
                place: Place::Global { buffer, at },
                bytes,
                value,
            } => (&self.memory.buffers[buffer].bytes, at, bytes, value),
            Polled::Value {
                place: Place::Shared(at),
                bytes,
                value,
            } => (&block.shared.bytes, at, bytes, value),
            Polled::Value { .. } => return false,
        };
        memory
            .get(at..at + bytes)
            .is_some_and(|now| number(now) == value)
    }
}
