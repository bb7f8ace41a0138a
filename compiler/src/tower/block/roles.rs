//! The roles of the warps of a block, the number of warps of each kind, and the registers of their threads.
//!
//! While warps that *compute* run a stage, *producer warps* copy the rows that the next one reads of memory,
//! a *publisher* tells other blocks how far the tower is and takes the next task, and a *poller* looks how far the
//! neighbours are.

use super::shape::Abilities;
use super::slabs::WARP;

/// Threads of producer warps, at least.
const PRODUCERS: u32 = 64;
/// The publisher's warp and the poller's.
pub const OTHERS: u32 = 2 * WARP as u32;
/// Threads that do not compute, besides warps that complete a group.
pub const HELPERS: u32 = PRODUCERS + OTHERS;
/// Registers of a thread that does not compute, at least, where they can be moved.
const HELPER_REGISTERS: u32 = 24;
/// Registers of a multiprocessor, and the most that a thread has.
const REGISTERS: u32 = 65536;
pub const MOST_REGISTERS: u32 = 255;
/// Threads of the warps that get registers together.
const WARPGROUP: u32 = 128;

/// Registers of a thread, where they are moved from threads that do not compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    pub computing: u32,
    pub others: u32,
}

/// Registers that a thread that computes should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// With fewer, registers are moved, where the GPU can do so.
    pub needed: u32,
    /// They are moved up to this number.
    pub wanted: u32,
}

/// The warps of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Threads that compute.
    pub compute: u32,
    /// The same with warps that are only there to complete a group.
    pub group: u32,
    pub moved: Option<Moved>,
    /// Registers that a thread that computes can have.
    pub registers: u32,
}

impl Roles {
    /// `compute`: a multiple of a warp.
    pub fn new(compute: u32, demand: Demand, abilities: Abilities) -> Roles {
        let whole = compute.div_ceil(WARPGROUP) * WARPGROUP;
        let threads = whole + HELPERS;
        let each = (REGISTERS / threads / 8 * 8).min(MOST_REGISTERS);
        // Registers that `some` threads leave for each of `others` threads, if each of the former has `own` registers.
        let left = |some: u32, own: u32, others: u32| {
            (each * threads).saturating_sub(some * own) / others / 8 * 8
        };
        let more = left(HELPERS, HELPER_REGISTERS, whole).min(MOST_REGISTERS / 8 * 8);
        let more = more.min(demand.wanted.next_multiple_of(8));
        // A multiprocessor has four parts, each with a quarter of the registers, on which warps are spread evenly.
        let spread = (compute + HELPERS).next_multiple_of(WARPGROUP);
        let alone = (REGISTERS / spread / 8 * 8).min(MOST_REGISTERS);
        let moves = abilities.moves_registers && demand.needed > alone && more > alone;
        let moved = Moved {
            computing: more,
            others: left(whole, more, HELPERS).min(each),
        };
        Roles {
            compute,
            group: if moves { whole } else { compute },
            moved: moves.then_some(moved),
            registers: if moves { more } else { alone },
        }
    }

    /// Threads of producer warps.
    pub fn producers(self) -> u32 {
        match self.completing_produce() {
            true => self.group - self.compute,
            false => PRODUCERS,
        }
    }

    /// Whether the warps that complete a group are the producers, as they are more then, and on the parts of a
    /// multiprocessor with fewer warps that compute. 9 warps of f32 need 72 pieces for a row of a z block, which two
    /// warps would copy in two rounds, and three do in one: 2 % faster on an H200; 5 warps of f64 3 %.
    pub fn completing_produce(self) -> bool {
        self.group - self.compute > PRODUCERS
    }

    /// Threads of a block.
    pub fn all(self) -> u32 {
        self.group + HELPERS
    }

    /// Which bits of the numbers of threads that do not compute are reversed, if a value has `bytes` bytes. Warps
    /// alternate between the four parts of a multiprocessor, and the first ones have more warps that compute where
    /// these do not complete a group: there producers come last, in f32.
    pub fn swapped(self, bytes: u32) -> u32 {
        match self.group > self.compute && bytes == 4 {
            true => PRODUCERS,
            false => 0,
        }
    }

    /// Threads of the barrier after each stage: all but the poller's.
    pub fn working(self) -> u32 {
        self.compute + self.producers() + WARP as u32
    }

    /// Warps that compute.
    pub fn warps(self) -> u32 {
        self.compute / WARP as u32
    }
}
