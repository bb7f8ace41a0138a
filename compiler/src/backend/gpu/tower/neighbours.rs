//! How a compute warp synchronises with the two beside it. When these have ended a stage, the warp may read the values
//! that they have published, and may overwrite the values that they have read.
//!
//! Where blocks of a cluster share a line, the chain of warps goes through them, and only the warps at the ends of
//! slabs wait for other blocks. The values that threads send there count as bytes at the barrier object for which the
//! receiving warp waits, so they have arrived when the wait is over.
//!
//! Each warp has a barrier object for either side, and two of each kind that alternate: no warp is two stages ahead of
//! a neighbour. A warp keeps the addresses of its neighbours' objects beside its own objects, as there are no registers
//! for them.

use super::super::ir::{Module, Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Wait};
use super::cluster::{self, address_in, of_slab, show_barrier_objects};
use super::context::word;
use super::pipeline::{DEPTH, Pipeline};
use super::steer::rank;
use crate::tower::block::{Slabs, WARP, WARP_BYTES, WarpChain};

/// Bytes of a barrier object, of the barrier objects for one side, of the words for the neighbour there, and of all
/// data of a warp.
const BYTES: i64 = 8;
const SIDE: i64 = DEPTH as i64 * BYTES;
const KNOWN: i64 = 8;
const OF_WARP: i64 = 2 * (SIDE + KNOWN);
const _: () = assert!(OF_WARP == WARP_BYTES as i64);

/// The barrier objects, as a warp that computes sees them.
#[derive(Clone, Copy)]
pub(super) struct Neighbours<'a> {
    barriers: Operand,
    chain: WarpChain,
    /// Of a block.
    warps: i64,
    slabs: Option<&'a Slabs>,
    /// Counts stages.
    pipeline: Pipeline,
}

/// Takes the shared memory, for blocks of `warps` compute warps.
pub(super) fn barriers(module: &mut Module, warps: u32) -> Operand {
    module.shared(Type::I64, warps * (OF_WARP / BYTES) as u32, 16)
}

impl<'a> Neighbours<'a> {
    /// `warps`: of a block; `pipeline` counts stages.
    pub fn new(
        barriers: Operand,
        chain: WarpChain,
        warps: u32,
        slabs: Option<&'a Slabs>,
        pipeline: Pipeline,
    ) -> Neighbours<'a> {
        Neighbours {
            barriers,
            chain,
            warps: warps.into(),
            slabs,
            pipeline,
        }
    }

    /// Makes the barrier objects, before any warp uses them: two lanes of each warp, one for either side.
    pub fn initialise(&self, k: &mut Kernel<'_>) {
        let warp = self.warp(k);
        let lane = k.special(Special::Lane);
        let computes = k.compare(IntCmp::Below, warp, word(self.warps));
        let mine = k.compare(IntCmp::Below, lane, word(2));
        let mine = k.int(IntOp::And, computes, mine);
        k.when(mine, |k| {
            let own = self.of_warp(k, warp);
            let side = k.int(IntOp::Mul, lane, word(SIDE));
            let first = k.advance_by_word(own, side);
            for slot in 0..DEPTH {
                let at = k.offset(first, i64::from(slot) * BYTES);
                k.barrier_object(at, 1);
            }
            if self.slabs.is_some() {
                show_barrier_objects(k);
            }
            let (to, bytes) = self.neighbour(k, lane);
            let known = self.known(k, own, lane);
            for (n, value) in [to, bytes].into_iter().enumerate() {
                let at = k.offset(known, 4 * n as i64);
                k.store(value, at, 4, Access::Plain);
            }
        });
    }

    /// The data of a warp.
    fn of_warp(&self, k: &mut Kernel<'_>, warp: Operand) -> Operand {
        let by = k.int(IntOp::Mul, warp, word(OF_WARP));
        k.advance_by_word(self.barriers, by)
    }

    /// Its words for the neighbour on a side, 0 for below and 1 for above.
    fn known(&self, k: &mut Kernel<'_>, own: Operand, side: Operand) -> Operand {
        let known = k.offset(own, 2 * SIDE);
        let by = k.int(IntOp::Mul, side, word(KNOWN));
        k.advance_by_word(known, by)
    }

    /// The thread's warp in its block.
    fn warp(&self, k: &mut Kernel<'_>) -> Operand {
        let thread = k.special(Special::Thread(0));
        k.int(IntOp::Right, thread, word(WARP.trailing_zeros().into()))
    }

    /// The last warp of a block with a slab of the line.
    fn top(&self, k: &mut Kernel<'_>, rank: Operand) -> Operand {
        match self.slabs {
            Some(slabs) => of_slab(k, slabs, rank, self.warps - 1, (slabs.last - 1) / WARP),
            None => word(self.chain.last),
        }
    }

    /// From the first barrier object of a block to the first one of a warp, on its upper side or the lower one.
    fn distance(&self, k: &mut Kernel<'_>, warp: Operand, upper: Operand) -> Operand {
        let side = k.choose(upper, word(SIDE), word(0));
        let by = k.int(IntOp::Mul, warp, word(OF_WARP));
        k.int(IntOp::Add, by, side)
    }

    /// From there to that of the present stage.
    fn slot(&self, k: &mut Kernel<'_>) -> Operand {
        let (slot, _) = self.pipeline.slot_for_place(k, 0);
        k.int(IntOp::Mul, slot, word(BYTES))
    }

    /// The barrier object that the threads at the end of another block's slab wait for, at which values that are sent
    /// there count; `up`: that slab is above the thread's.
    pub fn receiving(&self, k: &mut Kernel<'_>, up: Operand, rank: Operand) -> Operand {
        let top = self.top(k, rank);
        let warp = k.choose(up, word(0), top);
        let down = k.int(IntOp::Xor, up, Operand::int(Type::I1, 1));
        let by = self.distance(k, warp, down);
        let slot = self.slot(k);
        let by = k.int(IntOp::Add, by, slot);
        let at = k.advance_by_word(self.barriers, by);
        address_in(k, at, rank)
    }

    /// Tells the neighbours of the thread's warp that it has ended the stage; in other blocks, they wait for `rows`
    /// rows of values of `bytes` bytes, too. The warp has passed a barrier.
    pub fn tell(&self, k: &mut Kernel<'_>, rows: usize, bytes: i64) {
        let lane = k.special(Special::Lane);
        let tells = k.compare(IntCmp::Below, lane, word(2));
        k.when(tells, |k| {
            let warp = self.warp(k);
            let own = self.of_warp(k, warp);
            let known = self.known(k, own, lane);
            let slot = self.slot(k);
            let to = k.load(Type::I32, known, 4, Access::Volatile);
            let to = k.int(IntOp::Add, to, slot);
            if self.slabs.is_none() {
                let code = "mbarrier.arrive.shared.b64 _, [$0];";
                k.assembly(code, "r,~{memory}", &[], &[to]);
                return;
            }
            let values = k.offset(known, 4);
            let values = k.load(Type::I32, values, 4, Access::Volatile);
            let sent = k.int(IntOp::Mul, values, word(rows as i64 * bytes));
            let code = "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [$0], $1;";
            k.assembly(code, "r,r,~{memory}", &[], &[to, sent]);
        });
    }

    /// The first barrier object of the warp that lane 0 or 1 tells, and the values of a row that are sent there. Lane 0
    /// tells the warp below, lane 1 the one above. At the ends of the line they tell themselves.
    fn neighbour(&self, k: &mut Kernel<'_>, lane: Operand) -> (Operand, Operand) {
        let up = k.compare(IntCmp::Eq, lane, word(1));
        let by = k.choose(up, word(1), word(-1));
        let warp = self.warp(k);
        let blocks = self.slabs.map_or(1, |slabs| i64::from(slabs.count));
        let rank = match self.slabs {
            Some(_) => rank(k),
            None => word(0),
        };
        let top = self.top(k, rank);
        let [last, first] = [top, word(0)].map(|end| k.compare(IntCmp::Eq, warp, end));
        let ends = k.choose(up, last, first);
        let mut alone = k.compare(IntCmp::Gt, warp, top);
        if !self.chain.ring {
            let [last, first] = [blocks - 1, 0].map(|r| k.compare(IntCmp::Eq, rank, word(r)));
            let line_ends = k.choose(up, last, first);
            let line_ends = k.int(IntOp::And, line_ends, ends);
            alone = k.int(IntOp::Or, alone, line_ends);
        }
        let other = k.int(IntOp::Add, rank, by);
        let other = k.int(IntOp::Add, other, word(blocks));
        let other = k.int(IntOp::Rem, other, word(blocks));
        let top = self.top(k, other);
        let across = k.choose(up, word(0), top);
        let within = k.int(IntOp::Add, warp, by);
        let beside = k.choose(ends, across, within);
        let beside = k.choose(alone, warp, beside);
        // The warp above looks down; a warp that is alone looks the same way.
        let one = Operand::int(Type::I1, 1);
        let down = k.int(IntOp::Xor, up, one);
        let upper = k.int(IntOp::Xor, down, alone);
        let distance = self.distance(k, beside, upper);
        let at = k.advance_by_word(self.barriers, distance);
        let Some(slabs) = self.slabs else {
            return (cluster::word_of(k, at), word(0));
        };
        let together = k.int(IntOp::Xor, alone, one);
        let crosses = k.int(IntOp::And, ends, together);
        let rank = k.choose(crosses, other, rank);
        let [below, above] = slabs.reach.map(word);
        let sent = k.choose(up, below, above);
        let sent = k.choose(crosses, sent, word(0));
        (address_in(k, at, rank), sent)
    }

    /// The neighbours of the thread's warp have ended the stage, and the values that they sent have arrived. Each
    /// thread waits for both: if some waited for one and some for the other, the warp would have to come together
    /// again, which takes long.
    pub fn wait(&self, k: &mut Kernel<'_>) {
        let warp = self.warp(k);
        let wait = match self.slabs {
            Some(_) => Wait::Suspended,
            None => self.pipeline.way(),
        };
        let (_, parity) = self.pipeline.slot(k, 0);
        let own = self.of_warp(k, warp);
        let own = k.again(own);
        let slot = self.slot(k);
        let now = k.advance_by_word(own, slot);
        for side in [0, SIDE] {
            let at = k.offset(now, side);
            k.wait_for_phase(at, parity, wait);
        }
    }
}
