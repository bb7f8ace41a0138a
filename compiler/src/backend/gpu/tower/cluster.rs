//! Blocks of a cluster that share the lines along the inner axis: their barriers, and how a thread's values reach
//! another block.
//!
//! From stage to stage of interior periods only the warps at the ends of slabs wait for another block
//! ([`super::neighbours`]). At the beginning and the end of a tower, and where an end of the grid cuts it, all blocks
//! pass a barrier: an object in shared memory, at which every warp of the cluster arrives. Two objects alternate, so
//! that no warp arrives for a stage before the previous stage has ended. That orders shared memory alone. Only where
//! blocks read values that others have stored in memory, [`ClusterBarrier::fenced_barrier`] orders memory, too, which
//! takes far longer.

use super::super::ir::{Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel, Special, Variable, Wait};
use super::context::word;
use super::steer::{rank, thread};
use crate::tower::block::{CLUSTER_BARRIERS, Slabs};

/// Bytes of a barrier object.
const BARRIER_BYTES: u32 = 8;

/// The address of shared memory in a block of the cluster.
pub(super) fn address_in(k: &mut Kernel<'_>, pointer: Operand, rank: Operand) -> Operand {
    let code = "mapa.shared::cluster.u32 $0, $1, $2;";
    k.pure_assembly(code, "=r,r,r", &[Type::I32], &[pointer, rank])[0]
}

/// The address of shared memory in the thread's own block, as a word.
pub(super) fn word_of(k: &mut Kernel<'_>, pointer: Operand) -> Operand {
    k.pure_assembly("mov.b32 $0, $1;", "=r,r", &[Type::I32], &[pointer])[0]
}

/// Other blocks will see the barrier objects that the thread has made, once the cluster has passed a barrier.
pub(super) fn show_barrier_objects(k: &mut Kernel<'_>) {
    let code = "fence.mbarrier_init.release.cluster;";
    k.assembly(code, "~{memory}", &[], &[]);
}

/// All threads of the cluster wait for each other, and see all writes.
pub(super) fn barrier_of_all(k: &mut Kernel<'_>) {
    k.warp_barrier();
    k.call("llvm.nvvm.barrier.cluster.arrive.aligned", &[]);
    k.call("llvm.nvvm.barrier.cluster.wait.aligned", &[]);
}

/// Whether a block has the last slab.
pub(super) fn is_last(k: &mut Kernel<'_>, slabs: &Slabs, rank: Operand) -> Operand {
    k.compare(IntCmp::Eq, rank, Operand::i32(slabs.count as i32 - 1))
}

/// One number for the last slab, another one for others.
pub(super) fn of_slab(
    k: &mut Kernel<'_>,
    slabs: &Slabs,
    rank: Operand,
    others: i64,
    last: i64,
) -> Operand {
    let is_last = is_last(k, slabs, rank);
    let [last, others] = [last, others].map(|n| Operand::i32(n as i32));
    k.choose(is_last, last, others)
}

/// The first index of the block's slab.
pub(super) fn first_index(k: &mut Kernel<'_>, slabs: &Slabs, rank: Operand) -> Operand {
    k.int(IntOp::Mul, rank, Operand::i32(slabs.width as i32))
}

/// The barrier of the threads of a cluster that work on a tower.
#[derive(Clone, Copy)]
pub(super) struct ClusterBarrier {
    /// The barrier objects.
    barriers: Operand,
    blocks: u32,
    /// Barriers that the thread has passed.
    count: Variable,
}

impl ClusterBarrier {
    /// Makes the barrier objects, for blocks of `warps` warps. Before the first use, the whole cluster has to pass a
    /// barrier.
    pub fn new(k: &mut Kernel<'_>, barriers: Operand, blocks: u32, warps: u32) -> ClusterBarrier {
        let thread = k.special(Special::Thread(0));
        let first = k.compare(IntCmp::Eq, thread, Operand::i32(0));
        k.when(first, |k| {
            for number in 0..CLUSTER_BARRIERS {
                let at = k.offset(barriers, i64::from(number * BARRIER_BYTES));
                k.barrier_object(at, blocks * warps);
            }
            show_barrier_objects(k);
        });
        ClusterBarrier {
            barriers,
            blocks,
            count: k.variable_of(Operand::i32(0)),
        }
    }

    fn object(&self, k: &mut Kernel<'_>) -> Operand {
        let count = k.get(self.count);
        let odd = k.int(IntOp::And, count, Operand::i32(1));
        let by = k.int(IntOp::Mul, odd, Operand::i32(BARRIER_BYTES as i32));
        k.advance_by_word(self.barriers, by)
    }

    /// Threads wait for each other, and see writes to shared memory.
    pub fn barrier(&self, k: &mut Kernel<'_>) {
        self.wait(k, "", Wait::Suspended);
    }

    /// The same, and all see stores of others to memory.
    pub fn fenced_barrier(&self, k: &mut Kernel<'_>) {
        self.wait(k, ".release.cluster", Wait::Settled);
    }

    fn wait(&self, k: &mut Kernel<'_>, release: &str, wait: Wait) {
        let barrier = self.object(k);
        k.warp_barrier();
        let lane = k.special(Special::Lane);
        let arrives = k.compare(IntCmp::Below, lane, Operand::i32(self.blocks as i32));
        k.when(arrives, |k| {
            let to = address_in(k, barrier, lane);
            let code = format!("mbarrier.arrive{release}.shared::cluster.b64 _, [$0];");
            k.assembly(&code, "r,~{memory}", &[], &[to]);
        });
        let count = k.get(self.count);
        let parity = k.int(IntOp::Right, count, Operand::i32(1));
        let parity = k.int(IntOp::And, parity, Operand::i32(1));
        k.wait_for_phase(barrier, parity, wait);
        let next = k.int(IntOp::Add, count, Operand::i32(1));
        k.set(self.count, next);
    }
}

/// How a thread's values reach the neighbouring block that reads them.
#[derive(Clone, Copy)]
pub(super) struct Across {
    /// A neighbour reads the thread's values.
    has: Operand,
    /// Where they belong in the neighbour's shared row 0, and the barrier object there at which they count.
    to: Operand,
    barrier: Operand,
}

impl Across {
    /// `own`: the thread's value in shared row 0; `bytes`: of a value; `receiving`: the barrier object of the warp at
    /// the end of another block's slab, by whether that slab is above the thread's, and the block's rank.
    pub fn new(
        k: &mut Kernel<'_>,
        slabs: &Slabs,
        own: Operand,
        bytes: i64,
        receiving: impl FnOnce(&mut Kernel<'_>, Operand, Operand) -> Operand,
    ) -> Across {
        let (thread, rank) = (thread(k), rank(k));
        let [below, above] = slabs.reach;
        let count = i64::from(slabs.count);
        let (mut lower, mut upper) = (Operand::int(Type::I1, 1), Operand::int(Type::I1, 1));
        if !slabs.ring {
            lower = k.compare(IntCmp::Gt, rank, word(0));
            upper = k.compare(IntCmp::Lt, rank, word(count - 1));
        }
        let length = of_slab(k, slabs, rank, slabs.width, slabs.last);
        // Values that the slab below reads above itself, and values that the slab above reads below.
        let down = k.compare(IntCmp::Below, thread, word(above));
        let down = k.int(IntOp::And, down, lower);
        let from = k.int(IntOp::Sub, length, word(below));
        let from = k.int(IntOp::Sub, thread, from);
        let up = k.compare(IntCmp::Below, from, word(below));
        let up = k.int(IntOp::And, up, upper);
        let by = k.choose(down, word(count - 1), word(1));
        let neighbour = k.int(IntOp::Add, rank, by);
        let neighbour = k.int(IntOp::Rem, neighbour, word(count));
        // An index counts from the end of the slab below, and from below the first index of the slab above.
        let further = of_slab(k, slabs, neighbour, slabs.width, slabs.last);
        let back = k.int(IntOp::Sub, word(0), length);
        let shift = k.choose(down, further, back);
        let shift = k.int(IntOp::Mul, shift, word(bytes));
        // Where there is no neighbour, the place is not used.
        let to = address_in(k, own, neighbour);
        Across {
            has: k.int(IntOp::Or, down, up),
            to: k.int(IntOp::Add, to, shift),
            barrier: receiving(k, up, neighbour),
        }
    }

    /// Sends a value to its place `by` bytes from shared row 0.
    pub fn send(&self, k: &mut Kernel<'_>, value: Operand, by: i64) {
        let (ty, register) = match value.ty.bytes() {
            4 => ("f32", "f"),
            _ => ("f64", "d"),
        };
        k.when(self.has, |k| {
            let code = format!(
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.{ty} [$0+{by}], $1, [$2];"
            );
            let constraints = format!("r,{register},r");
            k.assembly(&code, &constraints, &[], &[self.to, value, self.barrier]);
        });
    }
}
