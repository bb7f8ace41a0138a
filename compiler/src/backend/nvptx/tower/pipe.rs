//! How threads that copy and threads that compute hand rows of shared memory to each other, stage after stage, without waiting for all of
//! them: the former say that what a stage reads is there, the latter that what it read may be overwritten.
//!
//! Stages have barriers in shared memory in turns, so none is two phases ahead of who waits for it: rows for stage n + 2 are copied after
//! stage n, and a stage ends after its rows have arrived.

use super::super::ir::{Module, Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel, Special, Variable};

/// Barriers of each kind.
const TURNS: i32 = 2;
/// Bytes of a barrier.
const BYTES: i64 = 8;

/// The barriers, as one role sees them.
#[derive(Clone, Copy)]
pub(super) struct Pipe {
    barriers: Operand,
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

/// Takes the shared memory.
pub(super) fn barriers(module: &mut Module) -> Operand {
    module.shared(Type::I64, 2 * TURNS as u32, 16)
}

/// Initialises the barriers: by one thread, before the others use them. `full`, `free`: threads that tell of each kind.
pub(super) fn initialise(k: &mut Kernel<'_>, barriers: Operand, full: u32, free: u32) {
    for (kind, count) in [(Kind::Full, full), (Kind::Free, free)] {
        for turn in 0..TURNS {
            let barrier = k.offset(
                barriers,
                (kind as i64 * i64::from(TURNS) + i64::from(turn)) * BYTES,
            );
            k.assembly(
                "mbarrier.init.shared.b64 [$0], $1;",
                "r,r,~{memory}",
                &[],
                &[barrier, Operand::i32(count as i32)],
                true,
            );
        }
    }
}

impl Pipe {
    pub fn new(k: &mut Kernel<'_>, barriers: Operand, patient: bool) -> Pipe {
        Pipe {
            barriers,
            stage: k.variable_of(Operand::i32(0)),
            patient,
        }
    }

    /// The barrier of a stage, some stages from now, and the parity of its phase.
    fn barrier(&self, k: &mut Kernel<'_>, kind: Kind, ahead: i32) -> (Operand, Operand) {
        let stage = k.get(self.stage);
        let stage = k.int(IntOp::Add, stage, Operand::i32(ahead));
        let turn = k.int(IntOp::And, stage, Operand::i32(TURNS - 1));
        let turn = k.resize(turn, Type::I64);
        let first = k.offset(self.barriers, kind as i64 * i64::from(TURNS) * BYTES);
        let barrier = k.advance(first, turn, BYTES as u32);
        let phase = k.int(
            IntOp::Right,
            stage,
            Operand::i32(TURNS.trailing_zeros() as i32),
        );
        (barrier, k.int(IntOp::And, phase, Operand::i32(1)))
    }

    fn arrive(&self, k: &mut Kernel<'_>, kind: Kind, ahead: i32) {
        let (barrier, _) = self.barrier(k, kind, ahead);
        k.assembly(
            "mbarrier.arrive.shared.b64 $0, [$1];",
            "=l,r,~{memory}",
            &[Type::I64],
            &[barrier],
            true,
        );
    }

    fn wait(&self, k: &mut Kernel<'_>, kind: Kind, ahead: i32) {
        let (barrier, parity) = self.barrier(k, kind, ahead);
        let (test, after) = (k.label(), k.label());
        k.place(test);
        let way = if self.patient {
            "try_wait"
        } else {
            "test_wait"
        };
        let code = format!(
            "{{ .reg .pred %over; mbarrier.{way}.parity.shared.b64 %over, [$1], $2; selp.b32 $0, 1, 0, %over; }}"
        );
        let args = [barrier, parity];
        let over = k.assembly(&code, "=r,r,r,~{memory}", &[Type::I32], &args, true);
        let over = k.compare(IntCmp::Ne, over[0], Operand::i32(0));
        k.branch(over, after, test);
        k.place(after);
    }

    /// What a stage reads, so many from now, has arrived, as far as the thread copied it.
    pub fn fill(&self, k: &mut Kernel<'_>, ahead: i32) {
        self.arrive(k, Kind::Full, ahead);
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

    pub fn next(&self, k: &mut Kernel<'_>) {
        let stage = k.get(self.stage);
        let next = k.int(IntOp::Add, stage, Operand::i32(1));
        k.set(self.stage, next);
    }
}
