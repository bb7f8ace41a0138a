//! The threads that access memory, and whether an access is known to come after an earlier one.
//!
//! An access is a race if the thread does not know of an access before it and one of the two writes; accesses that are
//! both strong (atomic, relaxed, acquire, release or volatile) never race with each other.

use crate::cells::{Accessor, EIGHT, Lanes, Truth, each as eight};
use crate::clock::{Floors, MOST_WARPS, Presence, Published, Sight, View};
use crate::op::{AccessKind, Scope, Strength};

/// An access: the lanes of a warp, the time of the warp, and the instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    pub(crate) block: u32,
    /// 0 for no access.
    pub(crate) time: u32,
    pub(crate) lanes: u32,
    /// The instruction in 24 bits, the warp in 7, whether it is strong in one.
    pub(crate) packed: u32,
}

/// The most instructions that a kernel may have.
pub(crate) const MOST_INSTRUCTIONS: usize = 1 << 24;

impl Stamp {
    /// Where the warp lies among the packed bits.
    pub(crate) const WARP_AT: u32 = 24;
    pub(crate) const WARP: u32 = 0x7f << Stamp::WARP_AT;

    pub(crate) fn pc(&self) -> u32 {
        self.packed & 0xff_ffff
    }

    pub(crate) fn warp(&self) -> u32 {
        (self.packed & Stamp::WARP) >> Stamp::WARP_AT
    }

    pub(crate) fn strength(&self) -> Strength {
        match self.packed >> 31 {
            0 => Strength::Weak,
            _ => Strength::Strong,
        }
    }
}

/// The agent that stands for the copies that a barrier object counts: a lane of the warp after a block's last one, and
/// its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) lane: u32,
    pub(crate) time: u32,
}

/// The thread that makes an access, and its knowledge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor<'a> {
    pub(crate) block: u32,
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) time: u32,
    pub(crate) pc: u32,
    pub(crate) strength: Strength,
    /// It goes to shared memory.
    pub(crate) near: bool,
    pub(crate) view: &'a View,
    /// The time up to which it knows all threads of its block, for all memory.
    pub(crate) floor: u32,
    /// The warp of copies.
    pub(crate) agents: u32,
    /// The thread that issued the copy which makes the access, and the time up to which its accesses are known.
    pub(crate) issuer: Option<Presence>,
}

impl Actor<'_> {
    pub(crate) fn stamp(&self) -> Stamp {
        let packed = self.pc
            | self.warp << Stamp::WARP_AT
            | u32::from(self.strength == Strength::Strong) << 31;
        Stamp {
            block: self.block,
            time: self.time,
            lanes: 1 << self.lane,
            packed,
        }
    }

    /// Whether an access is known to come before.
    pub(crate) fn knows(&self, stamp: &Stamp) -> bool {
        let sight = if self.near {
            Sight::Shared
        } else {
            Sight::Global
        };
        self.knows_by(stamp, sight)
    }

    /// Whether a read is known to be over: all later accesses saw its value, so that an order of shared memory is
    /// enough.
    pub(crate) fn knows_over(&self, stamp: &Stamp) -> bool {
        self.knows_by(stamp, Sight::Shared)
    }

    #[inline(always)]
    fn knows_by(&self, stamp: &Stamp, sight: Sight) -> bool {
        let early = stamp.time <= self.floor && stamp.block == self.block;
        if stamp.time == 0 || early && stamp.warp() != self.agents {
            return true;
        }
        self.knows_lanes(stamp, sight)
    }

    fn knows_lanes(&self, stamp: &Stamp, sight: Sight) -> bool {
        let mut lanes = stamp.lanes;
        if stamp.block == self.block {
            if stamp.warp() == self.warp {
                lanes &= !(1 << self.lane);
            }
            if let Some(issuer) = self.issuer
                && stamp.warp() == issuer.warp
                && stamp.time <= issuer.time
            {
                lanes &= !issuer.lanes;
            }
            if lanes == 0 {
                return true;
            }
        }
        let times = self.view.times(self.block, stamp.block, sight);
        times.is_some_and(|times| times.covers(stamp.warp(), lanes, stamp.time))
    }

    /// Whether a write of a thread is visible to copies in bulk that this thread issues.
    pub(crate) fn shows(&self, stamp: &Stamp, agents: u32) -> bool {
        if stamp.time == 0 || stamp.warp() == agents {
            return true;
        }
        let times = self.view.times(self.block, stamp.block, Sight::Bulk);
        times.is_some_and(|times| times.covers(stamp.warp(), stamp.lanes, stamp.time))
    }

    pub(crate) fn follows(&self, stamp: &Stamp) -> bool {
        let strong = |strength| strength == Strength::Strong;
        strong(self.strength) && strong(stamp.strength()) || self.knows(stamp)
    }
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) before: Stamp,
    pub(crate) kind: AccessKind,
}

/// The knowledge of lanes of a warp: the same for all, or one for each.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Views<'a> {
    One(&'a View),
    Each(&'a [View]),
}

/// Lanes of a warp that access memory by one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew<'a> {
    /// One of them.
    pub(crate) actor: Actor<'a>,
    pub(crate) views: Views<'a>,
    /// The least time that all of them know of each warp of their block.
    pub(crate) floors: &'a Floors,
}

impl<'a> Crew<'a> {
    pub(crate) fn actor(&self, lane: usize) -> Actor<'a> {
        let view = match self.views {
            Views::One(view) => view,
            Views::Each(views) => &views[lane],
        };
        Actor {
            lane: lane as u32,
            view,
            floor: view.floor(),
            ..self.actor
        }
    }

    #[inline(always)]
    pub(crate) fn accessor(&self) -> Accessor<'a> {
        Accessor {
            stamp: self.actor.stamp(),
            floors: self.floors,
        }
    }

    /// Whether all of them know an access that was not their own.
    #[inline(always)]
    pub(crate) fn knows(&self, before: &Stamp) -> bool {
        let early = before.time <= self.floors[before.warp() as usize % MOST_WARPS];
        before.time == 0 || early && before.block == self.actor.block
    }
}

/// Pieces that lanes access one after the other, each the same power of two of them.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) pieces: std::ops::Range<usize>,
    pub(crate) lane: usize,
    /// Pieces of a lane, as a power of two.
    pub(crate) each: u32,
}

impl Run {
    /// The lane that accesses a piece.
    #[inline(always)]
    pub(crate) fn lane(&self, piece: usize) -> usize {
        self.lane + (piece.wrapping_sub(self.pieces.start) >> self.each)
    }

    /// The part of it before a piece.
    pub(crate) fn before(&self, end: usize) -> Run {
        Run {
            pieces: self.pieces.start..self.pieces.end.min(end),
            ..self.clone()
        }
    }

    /// The part of it from a piece on.
    pub(crate) fn from(&self, piece: usize) -> Run {
        Run {
            pieces: piece..self.pieces.end,
            lane: self.lane(piece),
            each: self.each,
        }
    }

    /// The part of it in the eight cells from the one of `first` on.
    #[inline(always)]
    pub(crate) fn lanes<'a>(&self, first: usize, accessor: Accessor<'a>) -> Lanes<'a> {
        let (from, to) = (self.pieces.start, self.pieces.end);
        let (from, to) = (
            from.saturating_sub(first) as u32,
            (to - first).min(EIGHT) as u32,
        );
        let ahead = (first as u32).wrapping_sub(self.pieces.start as u32);
        let (lane, each) = (self.lane as u32, self.each);
        Lanes {
            accessor,
            bits: eight(|i| 1 << (lane.wrapping_add(ahead.wrapping_add(i as u32) >> each) & 31)),
            active: eight(|i| (i as u32 >= from).mask() & ((i as u32) < to).mask()),
        }
    }
}

/// The knowledge that strong writes to a place have published.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) published: Published,
    pub(crate) scope: Scope,
}

impl Release {
    pub(crate) fn same(&self, other: &Release) -> bool {
        self.scope == other.scope && self.published.same(&other.published)
    }
}
