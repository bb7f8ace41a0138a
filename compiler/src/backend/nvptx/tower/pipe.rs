//! How threads that copy and threads that compute hand rows of shared memory to each other, stage after stage, without waiting for all of
//! them: the former say that what a stage reads is there, the latter that what it read may be overwritten.
//!
//! Stages have barriers in shared memory in turns, so none is two phases ahead of who waits for it: rows for stage n + 2 are copied after
//! stage n, and a stage ends after its rows have arrived. The herald, which waits for the end of each stage to tell other blocks, is one of
//! those that let stage n + 2 begin when it has seen the end of stage n.
//!
//! Where blocks share lines, each tells all of them: what one copies of a line, another one stores anew.

use super::super::ir::{Module, Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel, Special, Variable, Wait};
use super::line::address_in;

/// Barriers of each kind.
const TURNS: i32 = 2;
/// The same where blocks share lines: before one of them tells others of a stage, it knows that they have had what they need of the one
/// three before.
const TURNS_OF_CLUSTER: i32 = 4;
/// Bytes of a barrier.
const BYTES: i64 = 8;

/// The barriers, as one role sees them.
#[derive(Clone, Copy)]
pub(super) struct Pipe {
    barriers: Operand,
    /// Blocks that share lines.
    parts: u32,
    /// Stages so far.
    stage: Variable,
    /// Threads wait without looking again and again, where the GPU can do so.
    patient: bool,
}

/// The kinds.
#[derive(Clone, Copy)]
enum Kind {
    /// What the stage reads has arrived.
    Full,
    /// What the stage read may be overwritten.
    Free,
}

fn turns(parts: u32) -> i32 {
    if parts > 1 { TURNS_OF_CLUSTER } else { TURNS }
}

/// Takes the shared memory, for blocks of which so many share lines.
pub(super) fn barriers(module: &mut Module, parts: u32) -> Operand {
    module.shared(Type::I64, 2 * turns(parts) as u32, 16)
}

/// Initialises the barriers: by one thread, before the others use them. `full`, `free`: threads that tell of each kind, or
/// warps where blocks share lines; besides, the herald tells of the former.
pub(super) fn initialise(
    k: &mut Kernel<'_>,
    barriers: Operand,
    parts: u32,
    [full, free]: [u32; 2],
) {
    let full = 1 + if parts > 1 { full / 32 * parts } else { full };
    let turns = turns(parts);
    for (kind, count) in [(Kind::Full, full), (Kind::Free, free)] {
        for turn in 0..turns {
            let barrier = k.offset(
                barriers,
                (kind as i64 * i64::from(turns) + i64::from(turn)) * BYTES,
            );
            k.barrier_object(barrier, count);
        }
    }
}

impl Pipe {
    pub fn new(k: &mut Kernel<'_>, barriers: Operand, parts: u32, patient: bool) -> Pipe {
        Pipe {
            barriers,
            parts,
            stage: k.variable_of(Operand::i32(0)),
            patient,
        }
    }

    /// Which of so many barriers, a power of two, a stage has, some stages from now, and the parity of its phase.
    pub fn turn(&self, k: &mut Kernel<'_>, ahead: i32, turns: i32) -> (Operand, Operand) {
        let stage = k.get(self.stage);
        let stage = k.int(IntOp::Add, stage, Operand::i32(ahead));
        let turn = k.int(IntOp::And, stage, Operand::i32(turns - 1));
        let shift = Operand::i32(turns.trailing_zeros() as i32);
        let phase = k.int(IntOp::Right, stage, shift);
        (turn, k.int(IntOp::And, phase, Operand::i32(1)))
    }

    /// The barrier of a stage, some stages from now, and the parity of its phase.
    fn barrier(&self, k: &mut Kernel<'_>, kind: Kind, ahead: i32) -> (Operand, Operand) {
        let turns = turns(self.parts);
        let (turn, parity) = self.turn(k, ahead, turns);
        let turn = k.resize(turn, Type::I64);
        let first = k.offset(self.barriers, kind as i64 * i64::from(turns) * BYTES);
        (k.advance(first, turn, BYTES as u32), parity)
    }

    fn arrive(&self, k: &mut Kernel<'_>, kind: Kind, ahead: i32) {
        let (barrier, _) = self.barrier(k, kind, ahead);
        k.arrive(barrier);
    }

    /// How threads wait.
    pub fn way(&self) -> Wait {
        match self.patient {
            true => Wait::Suspended,
            false => Wait::Looking,
        }
    }

    fn wait(&self, k: &mut Kernel<'_>, kind: Kind, ahead: i32) {
        let (barrier, parity) = self.barrier(k, kind, ahead);
        k.wait_for_phase(barrier, parity, self.way());
    }

    /// Tells that what a stage reads, so many from now, has arrived as far as the thread copied it, when it has: the thread goes on, unless
    /// blocks share lines.
    pub fn fill(&self, k: &mut Kernel<'_>, ahead: i32) {
        let (barrier, _) = self.barrier(k, Kind::Full, ahead);
        if self.parts > 1 {
            k.call("llvm.nvvm.cp.async.wait.all", &[]);
            k.warp_barrier();
            let lane = k.special(Special::Lane);
            let tells = k.compare(IntCmp::Below, lane, Operand::i32(self.parts as i32));
            k.when(tells, |k| {
                let to = address_in(k, barrier, lane);
                let code = "mbarrier.arrive.shared::cluster.b64 _, [$0];";
                k.assembly(code, "r,~{memory}", &[], &[to], true);
            });
            return;
        }
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
        let lane = k.special(Special::Lane);
        let leads = k.compare(IntCmp::Eq, lane, Operand::i32(0));
        k.when(leads, |k| self.arrive(k, Kind::Free, 0));
    }

    /// What the stage before this one read may be overwritten.
    pub fn wait_for_free(&self, k: &mut Kernel<'_>) {
        self.wait(k, Kind::Free, -1);
    }

    /// All warps have ended this stage.
    pub fn wait_for_end(&self, k: &mut Kernel<'_>) {
        self.wait(k, Kind::Free, 0);
    }

    /// The herald has told of the stages two and more before one, so many from now, which may begin.
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
