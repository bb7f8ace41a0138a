//! The pipeline of a block: how producer warps and warps that compute hand shared rows to each other, stage after
//! stage, without waiting for all of them. The former signal that the rows of a stage have arrived, the latter that
//! they may be overwritten.
//!
//! Two stages are in flight, with a barrier object of each kind for both, so no object is two phases ahead of a warp
//! that waits for it: rows for stage n + 2 are copied after stage n, and a stage ends after its rows have arrived. The
//! publisher, which waits for the end of each stage to tell other blocks, also has to let stage n + 2 begin: it does so
//! when it has seen the end of stage n.
//!
//! Where blocks share lines, each has a pipeline of its own: the values that a block copies of the slabs beside its own
//! are not stored anew in the stage that reads them.

use super::super::ir::{Module, Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel, Special, Variable, Wait};
use crate::tower::block::{Abilities, PIPELINE_BARRIERS};

/// Stages in flight: barrier objects of each kind.
pub(super) const DEPTH: i32 = 2;
/// Bytes of a barrier object.
const BYTES: i64 = 8;

/// The pipeline, as one role sees it.
#[derive(Clone, Copy)]
pub(super) struct Pipeline {
    barriers: Operand,
    /// Stages so far.
    stage: Variable,
    /// Threads wait without looking again and again, where the GPU can do so.
    suspends: bool,
    scarce: Scarce,
}

/// Values that a thread has no registers to keep from stage to stage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scarce {
    /// The place of a barrier.
    pub place: bool,
    /// Which lane of its warp it is.
    pub lane: bool,
}

/// The kinds of barrier objects.
#[derive(Clone, Copy)]
enum Kind {
    /// The rows that the stage reads have arrived.
    Full,
    /// The rows that the stage read may be overwritten.
    Free,
}

/// The arrivals at the barrier objects of a stage.
#[derive(Clone, Copy)]
pub(super) struct Arrivals {
    /// Threads of producer warps; the publisher arrives there, too.
    pub producers: u32,
    /// Warps that compute.
    pub warps: u32,
}

/// Takes the shared memory.
pub(super) fn barriers(module: &mut Module) -> Operand {
    module.shared(Type::I64, PIPELINE_BARRIERS, 16)
}

/// Initialises the barrier objects: by one thread, before the others use them.
pub(super) fn initialise(k: &mut Kernel<'_>, barriers: Operand, arrivals: Arrivals) {
    let Arrivals { producers, warps } = arrivals;
    for (kind, count) in [(Kind::Full, producers + 1), (Kind::Free, warps)] {
        for slot in 0..DEPTH {
            let number = kind as i64 * i64::from(DEPTH) + i64::from(slot);
            let barrier = k.offset(barriers, number * BYTES);
            k.barrier_object(barrier, count);
        }
    }
}

impl Pipeline {
    pub fn new(
        k: &mut Kernel<'_>,
        barriers: Operand,
        abilities: Abilities,
        scarce: Scarce,
    ) -> Pipeline {
        Pipeline {
            barriers,
            stage: k.variable_of(Operand::i32(0)),
            suspends: abilities.suspends,
            scarce,
        }
    }

    /// Which barrier objects a stage has, some stages from now, and the parity of its phase.
    pub fn slot(&self, k: &mut Kernel<'_>, ahead: i32) -> (Operand, Operand) {
        let stage = k.get(self.stage);
        let stage = k.int(IntOp::Add, stage, Operand::i32(ahead));
        let slot = k.int(IntOp::And, stage, Operand::i32(DEPTH - 1));
        let shift = Operand::i32(DEPTH.trailing_zeros() as i32);
        let phase = k.int(IntOp::Right, stage, shift);
        (slot, k.int(IntOp::And, phase, Operand::i32(1)))
    }

    /// The same, to find a barrier object by its slot: anew each time where there are no registers to keep its place.
    pub fn slot_for_place(&self, k: &mut Kernel<'_>, ahead: i32) -> (Operand, Operand) {
        let (slot, parity) = self.slot(k, ahead);
        match self.scarce.place {
            true => (k.again(slot), parity),
            false => (slot, parity),
        }
    }

    /// The barrier object of a stage, some stages from now, and the parity of its phase.
    fn barrier(&self, k: &mut Kernel<'_>, kind: Kind, ahead: i32) -> (Operand, Operand) {
        let (slot, parity) = self.slot_for_place(k, ahead);
        let slot = k.resize(slot, Type::I64);
        let first = k.offset(self.barriers, kind as i64 * i64::from(DEPTH) * BYTES);
        (k.advance(first, slot, BYTES as u32), parity)
    }

    fn arrive(&self, k: &mut Kernel<'_>, kind: Kind, ahead: i32) {
        let (barrier, _) = self.barrier(k, kind, ahead);
        k.arrive(barrier);
    }

    /// How threads wait.
    pub fn way(&self) -> Wait {
        match self.suspends {
            true => Wait::Suspended,
            false => Wait::Looking,
        }
    }

    fn wait(&self, k: &mut Kernel<'_>, kind: Kind, ahead: i32) {
        let (barrier, parity) = self.barrier(k, kind, ahead);
        k.wait_for_phase(barrier, parity, self.way());
    }

    /// Arrives at the barrier object of the stage that is `ahead` stages ahead, when the thread's copies for it are
    /// complete. The thread itself goes on.
    pub fn fill(&self, k: &mut Kernel<'_>, ahead: i32) {
        let (barrier, _) = self.barrier(k, Kind::Full, ahead);
        k.call(
            "llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared",
            &[barrier],
        );
    }

    pub fn wait_for_full(&self, k: &mut Kernel<'_>) {
        self.wait(k, Kind::Full, 0);
    }

    /// The threads of the warp have read all that they read in this stage.
    pub fn free(&self, k: &mut Kernel<'_>) {
        k.warp_barrier();
        let mut lane = k.special(Special::Lane);
        if self.scarce.lane {
            lane = k.again(lane);
        }
        let leads = k.compare(IntCmp::Eq, lane, Operand::i32(0));
        k.when(leads, |k| self.arrive(k, Kind::Free, 0));
    }

    /// The rows that the previous stage read may be overwritten.
    pub fn wait_for_free(&self, k: &mut Kernel<'_>) {
        self.wait(k, Kind::Free, -1);
    }

    /// All warps have ended this stage.
    pub fn wait_for_end(&self, k: &mut Kernel<'_>) {
        self.wait(k, Kind::Free, 0);
    }

    /// Lets the stage begin that is `ahead` stages ahead: the publisher has published the stages two and more before
    /// it.
    pub fn allow(&self, k: &mut Kernel<'_>, ahead: i32) {
        let lane = k.special(Special::Lane);
        let leads = k.compare(IntCmp::Eq, lane, Operand::i32(0));
        k.when(leads, |k| self.arrive(k, Kind::Full, ahead));
    }

    pub fn next(&self, k: &mut Kernel<'_>) {
        let stage = k.get(self.stage);
        let next = k.int(IntOp::Add, stage, Operand::i32(1));
        k.set(self.stage, next);
    }
}
