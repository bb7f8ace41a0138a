//! What the warps of a block do, how many there are of each kind, and where they meet.

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, Kernel};
use super::flow::param;
use super::line::{self, Barrier, Meet};
use super::ticket::NUMBER;

/// Threads that copy, at least.
const COPIERS: u32 = 64;
/// The herald's warp and the scout's.
pub(super) const OTHERS: u32 = 64;
/// Threads that do not compute, besides warps that complete a group.
pub(super) const HELPERS: u32 = COPIERS + OTHERS;
/// Registers of a thread that does not compute, at least, where they can be moved.
const HELPER_REGISTERS: u32 = 24;
/// Registers of a multiprocessor, and the most that a thread has.
const REGISTERS: [u32; 2] = [65536, 255];
/// Warps that get registers together.
const WARPGROUP: u32 = 128;

/// The barrier at the end of a stage.
const STAGE: u32 = 1;
/// That between two towers, where the scout is, too.
const TOWER: u32 = 2;

/// What the warps of a block do.
#[derive(Clone, Copy)]
pub(super) struct Roles {
    /// Threads that compute.
    pub compute: u32,
    /// The same with warps that are only there to complete a group.
    pub group: u32,
    /// Registers of a thread that computes and of one that does not, if they are moved.
    pub registers: Option<[u32; 2]>,
    /// Those that a thread that computes has in any case.
    each: u32,
    /// How those who work on a tower meet in a cluster.
    pub cluster: Option<Meet>,
}

impl Roles {
    /// `compute`: a multiple of 32; `needed`, `wanted`: registers of a thread that computes, without which and up to which registers are moved,
    /// if they may be (`shift`).
    pub fn new(compute: u32, [needed, wanted]: [u32; 2], shift: bool) -> Roles {
        let whole = compute.div_ceil(WARPGROUP) * WARPGROUP;
        let [all, most] = REGISTERS;
        let threads = whole + HELPERS;
        let each = (all / threads / 8 * 8).min(most);
        // What is left by some, for each of others.
        let left = |some: u32, by: u32, others: u32| {
            (each * threads).saturating_sub(some * by) / others / 8 * 8
        };
        let more = left(HELPERS, HELPER_REGISTERS, whole).min(most / 8 * 8);
        let more = more.min(wanted.next_multiple_of(8));
        // A multiprocessor has four parts, each with a quarter of the registers, on which warps are spread evenly.
        let spread = (compute + HELPERS).next_multiple_of(WARPGROUP);
        let alone = (all / spread / 8 * 8).min(most);
        let moved = shift && needed > alone && more > alone;
        let group = if moved { whole } else { compute };
        let fewer = left(whole, more, HELPERS).min(each);
        Roles {
            compute,
            group,
            registers: moved.then_some([more, fewer]),
            each: if moved { more } else { alone },
            cluster: None,
        }
    }

    /// Threads that copy.
    pub fn copiers(self) -> u32 {
        match self.completing_copy() {
            true => self.group - self.compute,
            false => COPIERS,
        }
    }

    /// Whether those that copy are the warps that complete a group, as they are more then, and on the parts of a multiprocessor with fewer warps that
    /// compute. 9 warps of f32 need 72 pieces for a row of a span, which two warps would copy in two rounds, and three do in one: 2 % faster on an
    /// H200; 5 warps of f64 3 %.
    pub fn completing_copy(self) -> bool {
        self.group - self.compute > COPIERS
    }

    /// Threads of a block.
    pub fn all(self) -> u32 {
        self.group + HELPERS
    }

    /// Which bits of the numbers of threads that do not compute are reversed, if values have so many bytes. Warps take turns on the four parts of a
    /// multiprocessor, and the first ones have more warps that compute where these do not complete a group: there those that copy come last, in f32.
    pub fn swapped(self, bytes: u32) -> u32 {
        match self.group > self.compute && bytes == 4 {
            true => COPIERS,
            false => 0,
        }
    }

    /// Registers that a thread that computes can have.
    pub fn registers(self) -> u32 {
        self.each
    }

    /// Those who meet after each stage.
    pub fn working(self) -> u32 {
        self.compute + self.copiers() + 32
    }

    /// Where those who work on a tower meet.
    pub fn barrier(self) -> Barrier {
        let (number, threads) = (STAGE, self.working());
        match self.cluster {
            Some(meet) => Barrier::Cluster(meet),
            None => Barrier::Block { number, threads },
        }
    }

    pub fn meet(self, k: &mut Kernel<'_>) {
        self.barrier().meet(k);
    }

    /// The same, and all see what others have stored in memory.
    pub fn settle(self, k: &mut Kernel<'_>) {
        self.barrier().settle(k);
    }

    /// All threads that run a tower, scouts included.
    pub fn gather(self, k: &mut Kernel<'_>) {
        match self.cluster {
            Some(_) => line::gather(k),
            None => k.barrier_of(TOWER, self.working() + 32),
        }
    }

    /// Waits until nobody needs the task before, shows the next one, and ends threads where there is none.
    pub fn begin(self, k: &mut Kernel<'_>, words: Operand, show: impl FnOnce(&mut Kernel<'_>)) {
        self.gather(k);
        show(k);
        self.gather(k);
        let number = k.offset(words, i64::from(4 * NUMBER));
        let number = k.load(Type::I32, number, 4, Access::Volatile);
        let ended = k.compare(IntCmp::Ge, number, k.param(param::COUNT));
        k.exit_if(ended);
    }
}
