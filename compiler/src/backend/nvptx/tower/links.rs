//! How warps that compute keep order with those beside them: a thread reads values of others only near its own index, so a warp needs to
//! know of the two warps beside it, not of all, that they have ended a stage. Then it may read what they have told it, and may overwrite
//! what they have read.
//!
//! The warps of a line are a chain, or a ring where the line is one. Where blocks of a cluster share a line, the chain goes through them, and
//! only the warps at the ends of parts wait for other blocks. What threads send there counts as bytes at the barrier object that the
//! receiving warp waits for, so it has arrived when the wait is over.
//!
//! Each warp has a barrier object for either side, and two of each kind alternately: nobody is two stages ahead of who is beside it. Where those
//! of the warps beside it are, it notes beside its own, as there are no registers to keep that in.

use super::super::ir::{Module, Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Wait};
use super::line::{self, Split, WARP, address_in};
use super::pipe::{DEPTH, Pipe};
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval, div_ceil};
use crate::layout::Layout;
use crate::scheme::Scheme;

/// Bytes of a barrier object, of those for one side, of what is known of who waits there, and of all that a warp has.
const BYTES: i64 = 8;
const SIDE: i64 = DEPTH as i64 * BYTES;
const KNOWN: i64 = 8;
const OF_WARP: i64 = 2 * (SIDE + KNOWN);

/// Which warps are beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// The last warp, counted through all blocks that share the line.
    last: i64,
    /// It is beside the first one.
    ring: bool,
}

impl Chain {
    /// `None` where a thread reads what a warp tells that is not beside its own: the last warp of a line, or of a part, can be that short.
    pub fn new(scheme: &Scheme, layout: &Layout, split: Option<&Split>) -> Option<Chain> {
        let [below, above] = layout.reach[Axis::INNER].map(i64::from);
        let length = layout.extent[Axis::INNER];
        let part = split.map_or(length, |split| split.part);
        let warps = div_ceil(part, WARP);
        let warp_of = |index: i64| index / part * warps + index % part / WARP;
        let chain = Chain {
            last: warp_of(length - 1),
            ring: scheme.grid.is_periodic(Axis::INNER),
        };
        let reads = |warp: i64| {
            let first = warp / warps * part + warp % warps * WARP;
            let end = (first + WARP).min((warp / warps + 1) * part).min(length);
            Interval::new(first - below, end + above)
        };
        let ghosts = scheme.component_ids().flat_map(|id| {
            let ghosts = AxisGhosts::new(scheme, id, Axis::INNER).pairs().into_iter();
            ghosts.map(|(source, ghost)| (source, ghost.index))
        });
        let own = (0..=chain.last).flat_map(|warp| {
            let within = reads(warp).intersect(Interval::new(0, length));
            [within.lo, within.hi - 1].map(|index| (warp, warp_of(index)))
        });
        let seen = |(source, index): (i64, i64)| {
            let readers = (0..=chain.last).filter(|&warp| reads(warp).contains(index));
            readers
                .into_iter()
                .all(|warp| chain.are_beside(warp_of(source), warp))
        };
        let near =
            own.into_iter().all(|(a, b)| chain.are_beside(a, b)) && ghosts.into_iter().all(seen);
        near.then_some(chain)
    }

    /// Of so many warps, whose lines have an end behind the last one, or go on there: threads read nothing that is farther than a warp.
    pub fn of_span(warps: u32) -> Chain {
        Chain {
            last: i64::from(warps) - 1,
            ring: false,
        }
    }

    fn are_beside(&self, a: i64, b: i64) -> bool {
        let apart = (a - b).abs();
        apart <= 1 || self.ring && apart == self.last
    }
}

/// The barrier objects, as a warp that computes sees them.
#[derive(Clone, Copy)]
pub(super) struct Links {
    barriers: Operand,
    chain: Chain,
    /// Of a block.
    warps: i64,
    split: Option<Split>,
    /// Counts stages.
    pipe: Pipe,
}

/// Takes the shared memory, for blocks of so many warps that compute.
pub(super) fn barriers(module: &mut Module, warps: u32) -> Operand {
    module.shared(Type::I64, warps * (OF_WARP / BYTES) as u32, 16)
}

impl Links {
    /// `warps`: of a block; `pipe` counts stages.
    pub fn new(
        barriers: Operand,
        chain: Chain,
        warps: u32,
        split: Option<Split>,
        pipe: Pipe,
    ) -> Links {
        Links {
            barriers,
            chain,
            warps: warps.into(),
            split,
            pipe,
        }
    }

    /// Makes the barrier objects, before anyone uses them: two lanes of each warp, one for either side.
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
            if self.split.is_some() {
                line::show_barrier_objects(k);
            }
            let (to, bytes) = self.beside(k, lane);
            let known = self.known(k, own, lane);
            for (n, value) in [to, bytes].into_iter().enumerate() {
                let at = k.offset(known, 4 * n as i64);
                k.store(value, at, 4, Access::Plain);
            }
        });
    }

    /// What a warp has.
    fn of_warp(&self, k: &mut Kernel<'_>, warp: Operand) -> Operand {
        let by = k.int(IntOp::Mul, warp, word(OF_WARP));
        k.advance_by_word(self.barriers, by)
    }

    /// What it knows of the one on some side, 0 for below and 1 for above.
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

    /// The last warp of a block with a part of the line.
    fn top(&self, k: &mut Kernel<'_>, rank: Operand) -> Operand {
        match self.split {
            Some(split) => split.of_part(k, rank, self.warps - 1, (split.last - 1) / WARP),
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
        let (slot, _) = self.pipe.slot_for_place(k, 0);
        k.int(IntOp::Mul, slot, word(BYTES))
    }

    /// The barrier objects that the threads at the end of another block's part wait for, at which what is sent there counts; `up`: that
    /// part is above the thread's.
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

    /// Tells the warps beside the thread's own one that it has ended the stage; in other blocks, they wait for so many rows of values of so
    /// many bytes, too. The threads of the warp have met.
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
            if self.split.is_none() {
                let code = "mbarrier.arrive.shared.b64 _, [$0];";
                k.assembly(code, "r,~{memory}", &[], &[to], true);
                return;
            }
            let values = k.offset(known, 4);
            let values = k.load(Type::I32, values, 4, Access::Volatile);
            let sent = k.int(IntOp::Mul, values, word(rows as i64 * bytes));
            let code = "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [$0], $1;";
            k.assembly(code, "r,r,~{memory}", &[], &[to, sent], true);
        });
    }

    /// The first barrier object of the warp that lane 0 or 1 tells, and the values of a row that are sent there. Lane 0 tells the warp below,
    /// lane 1 the one above. At the ends of the line they tell themselves.
    fn beside(&self, k: &mut Kernel<'_>, lane: Operand) -> (Operand, Operand) {
        let up = k.compare(IntCmp::Eq, lane, word(1));
        let by = k.choose(up, word(1), word(-1));
        let warp = self.warp(k);
        let parts = self.split.map_or(1, |split| i64::from(split.parts));
        let rank = match self.split {
            Some(_) => line::rank(k),
            None => word(0),
        };
        let top = self.top(k, rank);
        let [last, first] = [top, word(0)].map(|end| k.compare(IntCmp::Eq, warp, end));
        let ends = k.choose(up, last, first);
        let mut alone = k.compare(IntCmp::Gt, warp, top);
        if !self.chain.ring {
            let [last, first] = [parts - 1, 0].map(|r| k.compare(IntCmp::Eq, rank, word(r)));
            let line_ends = k.choose(up, last, first);
            let line_ends = k.int(IntOp::And, line_ends, ends);
            alone = k.int(IntOp::Or, alone, line_ends);
        }
        let other = k.int(IntOp::Add, rank, by);
        let other = k.int(IntOp::Add, other, word(parts));
        let other = k.int(IntOp::Rem, other, word(parts));
        let top = self.top(k, other);
        let across = k.choose(up, word(0), top);
        let within = k.int(IntOp::Add, warp, by);
        let beside = k.choose(ends, across, within);
        let beside = k.choose(alone, warp, beside);
        // Who is above looks down; who is alone looks the same way.
        let one = Operand::int(Type::I1, 1);
        let down = k.int(IntOp::Xor, up, one);
        let upper = k.int(IntOp::Xor, down, alone);
        let distance = self.distance(k, beside, upper);
        let at = k.advance_by_word(self.barriers, distance);
        let Some(split) = self.split else {
            return (line::word_of(k, at), word(0));
        };
        let together = k.int(IntOp::Xor, alone, one);
        let crosses = k.int(IntOp::And, ends, together);
        let rank = k.choose(crosses, other, rank);
        let [below, above] = split.reach.map(word);
        let sent = k.choose(up, below, above);
        let sent = k.choose(crosses, sent, word(0));
        (address_in(k, at, rank), sent)
    }

    /// The warps beside the thread's own one have ended the stage, and what they sent is there. Each thread waits for both: if some waited
    /// for one and some for the other, the warp would have to come together again, which takes long.
    pub fn wait(&self, k: &mut Kernel<'_>) {
        let warp = self.warp(k);
        let wait = match self.split {
            Some(_) => Wait::Suspended,
            None => self.pipe.way(),
        };
        let (_, parity) = self.pipe.slot(k, 0);
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

pub(super) fn word(n: i64) -> Operand {
    Operand::i32(n as i32)
}
