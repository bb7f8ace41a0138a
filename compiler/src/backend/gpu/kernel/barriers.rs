//! How threads wait for each other.

use super::{IntCmp, Kernel};
use crate::backend::gpu::feature::Feature;
use crate::backend::gpu::ir::{Operand, Type};

/// How a thread waits for a phase of a barrier object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// By looking again and again.
    Looking,
    /// Suspended for some time, where the GPU can do so.
    Suspended,
    /// The same, and the thread sees stores to memory that threads of the cluster made before they arrived with a
    /// release.
    Settled,
}

impl Kernel<'_> {
    /// All threads of the block wait for each other.
    pub fn barrier(&mut self) {
        self.call("llvm.nvvm.barrier.cta.sync.aligned.all", &[Operand::i32(0)]);
    }

    /// Some threads of the block, a multiple of 32, wait for each other at barrier `number` (1 to 15).
    pub fn barrier_of(&mut self, number: u32, threads: u32) {
        self.call(
            "llvm.nvvm.barrier.cta.sync.aligned.count",
            &[Operand::i32(number as i32), Operand::i32(threads as i32)],
        );
    }

    /// The threads of a warp wait for each other, and see each other's writes.
    pub fn warp_barrier(&mut self) {
        self.call("llvm.nvvm.bar.warp.sync", &[Operand::i32(-1)]);
    }

    /// Waits for the end of the launches before, and sees their stores. Blocks of the next launch may begin as soon as
    /// all blocks of this one have: they wait here.
    pub fn after_launches(&mut self) {
        self.need(Feature::EarlyLaunch);
        for code in ["griddepcontrol.launch_dependents;", "griddepcontrol.wait;"] {
            self.assembly(code, "~{memory}", &[], &[]);
        }
    }

    /// A warp gets a larger number of registers, as do all four of its group, after others gave some back.
    pub fn more_registers(&mut self, registers: u32) {
        self.need(Feature::RegisterShift);
        let registers = Operand::i32(registers as i32);
        self.call("llvm.nvvm.setmaxnreg.inc.sync.aligned.u32", &[registers]);
    }

    /// A warp gets a smaller number of registers, as do all four of its group.
    pub fn fewer_registers(&mut self, registers: u32) {
        self.need(Feature::RegisterShift);
        let registers = Operand::i32(registers as i32);
        self.call("llvm.nvvm.setmaxnreg.dec.sync.aligned.u32", &[registers]);
    }

    /// Whether a condition holds in all threads of a warp, each of which is asked.
    pub fn all(&mut self, condition: Operand) -> Operand {
        let everyone = Operand::i32(-1);
        self.value_of("llvm.nvvm.vote.all.sync", Type::I1, &[everyone, condition])
    }

    /// Makes a barrier object in shared memory whose phases end after `arrivals` arrivals.
    pub fn barrier_object(&mut self, at: Operand, arrivals: u32) {
        self.assembly(
            "mbarrier.init.shared.b64 [$0], $1;",
            "r,r,~{memory}",
            &[],
            &[at, Operand::i32(arrivals as i32)],
        );
    }

    /// Arrives at a barrier object of the block.
    pub fn arrive(&mut self, barrier: Operand) {
        self.assembly(
            "mbarrier.arrive.shared.b64 $0, [$1];",
            "=l,r,~{memory}",
            &[Type::I64],
            &[barrier],
        );
    }

    /// Waits until the phase of a barrier object of this parity is over.
    pub fn wait_for_phase(&mut self, barrier: Operand, parity: Operand, wait: Wait) {
        let way = match wait {
            Wait::Looking => "test_wait.parity",
            Wait::Suspended => "try_wait.parity",
            Wait::Settled => "try_wait.parity.acquire.cluster",
        };
        let code = format!(
            "{{ .reg .pred %over; mbarrier.{way}.shared.b64 %over, [$1], $2; selp.b32 $0, 1, 0, %over; }}"
        );
        let (test, after) = (self.label(), self.label());
        self.place(test);
        let args = [barrier, parity];
        let over = self.assembly(&code, "=r,r,r,~{memory}", &[Type::I32], &args);
        let over = self.compare(IntCmp::Ne, over[0], Operand::i32(0));
        self.branch(over, after, test);
        self.place(after);
    }
}
