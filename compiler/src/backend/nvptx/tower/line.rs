//! Lines along the inner axis that are longer than what a block holds: the blocks of a cluster have a part each.
//!
//! Block r has the indices from r * part on. All blocks run the same tower, stage by stage, and each keeps in its slots what its own
//! threads read beyond its part: rows from memory are copied with it, and what threads publish is sent to the neighbour, too, where
//! that one reads it ([`Across`]). From stage to stage of whole periods only the warps at the ends of parts wait for another block
//! ([`super::links`]). At the beginning and the end of a tower, and where an end of the grid cuts it, all blocks meet: by barrier objects
//! in shared memory, at each of which every warp of the cluster arrives. Two objects take turns, so that nobody arrives for a stage where the
//! stage before has not ended. That orders shared memory alone; only where blocks read what others have stored in memory, [`Meet::settle`]
//! orders that, too, which takes far longer.

use super::super::ir::{Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel, Special, Variable, Wait};
use super::links::Links;
use crate::lattice::{Axis, div_ceil};
use crate::layout::{Layout, PIECE};
use crate::scheme::Scheme;

/// The most blocks of a cluster that every GPU with clusters takes.
pub const MOST_PARTS: u32 = 8;

/// Threads of a warp.
pub(super) const WARP: i64 = 32;

/// Barrier objects, and the bytes of each.
const BARRIERS: u32 = 2;
const BARRIER_BYTES: u32 = 8;

/// How a line is cut into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub parts: u32,
    /// Values of each part but the last one.
    pub part: i64,
    pub last: i64,
    /// What a part sees below and above.
    pub reach: [i64; 2],
    /// Where warps look that have nothing of the last part, if there are such: an index beyond all that anyone writes there, with what is
    /// seen from it.
    pub beyond: Option<i64>,
    /// The first part follows the last one.
    ring: bool,
}

impl Split {
    /// In parts of a multiple of so many values, which is one of what copies move at a time. `None` where parts would be too short for
    /// what others see of them.
    pub fn new(scheme: &Scheme, layout: &Layout, parts: u32, unit: i64) -> Option<Split> {
        let piece = (PIECE / layout.element_bytes) as i64;
        if !(2..=MOST_PARTS).contains(&parts) || unit % piece != 0 {
            return None;
        }
        let reach = layout.reach[Axis::INNER].map(i64::from);
        let length = layout.extent[Axis::INNER];
        let part = div_ceil(div_ceil(length, i64::from(parts)), unit) * unit;
        let last = length - i64::from(parts - 1) * part;
        // The sources of all ghosts lie in the part at that end, and what parts send has a value in every component.
        let least = reach[0] + reach[1] + 2;
        let ring = scheme.grid.is_periodic(Axis::INNER);
        // What follows the last part of a ring, another block stores: a copy moves either that or the part.
        let whole = !ring || last % piece == 0;
        let copied = (div_ceil(reach[1], piece) + 1) * piece;
        let beyond = ((last - 1) / WARP < (part - 1) / WARP).then_some(last + copied + reach[0]);
        let room = beyond.is_none_or(|index| index < part);
        (last >= least && part >= least && whole && room).then_some(Split {
            parts,
            part,
            last,
            reach,
            beyond,
            ring,
        })
    }

    /// Whether ghosts are what the neighbours send.
    pub fn is_ring(&self) -> bool {
        self.ring
    }

    /// Whether a block has the last part.
    pub fn is_last(&self, k: &mut Kernel<'_>, rank: Operand) -> Operand {
        k.compare(IntCmp::Eq, rank, Operand::i32(self.parts as i32 - 1))
    }

    /// One number for the last part, another one for others.
    pub fn of_part(&self, k: &mut Kernel<'_>, rank: Operand, others: i64, last: i64) -> Operand {
        let is_last = self.is_last(k, rank);
        let [last, others] = [last, others].map(|n| Operand::i32(n as i32));
        k.choose(is_last, last, others)
    }

    /// The first index of the block's part.
    pub fn first(&self, k: &mut Kernel<'_>, rank: Operand) -> Operand {
        k.int(IntOp::Mul, rank, Operand::i32(self.part as i32))
    }
}

/// The thread's number, such that what follows from it is not kept from one part of a tower to the next: there are no registers for it.
pub(super) fn thread(k: &mut Kernel<'_>) -> Operand {
    let thread = k.assembly("mov.u32 $0, %tid.x;", "=r", &[Type::I32], &[], true);
    thread[0]
}

/// The block's number in its cluster, such that what follows from it is not kept.
pub(super) fn rank(k: &mut Kernel<'_>) -> Operand {
    k.assembly(
        "mov.u32 $0, %cluster_ctarank;",
        "=r",
        &[Type::I32],
        &[],
        true,
    )[0]
}

/// The address of shared memory in a block of the cluster.
pub(super) fn address_in(k: &mut Kernel<'_>, pointer: Operand, rank: Operand) -> Operand {
    let code = "mapa.shared::cluster.u32 $0, $1, $2;";
    k.assembly(code, "=r,r,r", &[Type::I32], &[pointer, rank], false)[0]
}

/// The address of shared memory in the thread's own block, as a word.
pub(super) fn word_of(k: &mut Kernel<'_>, pointer: Operand) -> Operand {
    k.assembly("mov.b32 $0, $1;", "=r,r", &[Type::I32], &[pointer], false)[0]
}

/// Other blocks will see the barrier objects that the thread has made, when the cluster has gathered.
pub(super) fn show_barrier_objects(k: &mut Kernel<'_>) {
    let code = "fence.mbarrier_init.release.cluster;";
    k.assembly(code, "~{memory}", &[], &[], true);
}

/// All threads of the cluster wait for each other, and see what all have written.
pub(super) fn gather(k: &mut Kernel<'_>) {
    k.warp_barrier();
    k.call("llvm.nvvm.barrier.cluster.arrive.aligned", &[]);
    k.call("llvm.nvvm.barrier.cluster.wait.aligned", &[]);
}

/// Where threads meet.
#[derive(Clone, Copy)]
pub(super) enum Barrier {
    /// At a barrier of so many threads of the block.
    Block {
        number: u32,
        threads: u32,
    },
    Cluster(Meet),
}

impl Barrier {
    pub fn meet(self, k: &mut Kernel<'_>) {
        match self {
            Barrier::Block { number, threads } => k.barrier_of(number, threads),
            Barrier::Cluster(meet) => meet.meet(k),
        }
    }

    /// The same, and all see what others have stored in memory.
    pub fn settle(self, k: &mut Kernel<'_>) {
        match self {
            Barrier::Block { .. } => self.meet(k),
            Barrier::Cluster(meet) => meet.settle(k),
        }
    }
}

/// How threads of a cluster meet.
#[derive(Clone, Copy)]
pub(super) struct Meet {
    /// The barrier objects.
    barriers: Operand,
    parts: u32,
    /// How often the thread has met others.
    count: Variable,
}

impl Meet {
    /// Makes the barrier objects, for blocks of so many warps. Before anyone meets, the cluster has to gather.
    pub fn new(k: &mut Kernel<'_>, barriers: Operand, parts: u32, warps: u32) -> Meet {
        let thread = k.special(Special::Thread(0));
        let first = k.compare(IntCmp::Eq, thread, Operand::i32(0));
        k.when(first, |k| {
            for number in 0..BARRIERS {
                let at = k.offset(barriers, i64::from(number * BARRIER_BYTES));
                k.barrier_object(at, parts * warps);
            }
            show_barrier_objects(k);
        });
        Meet {
            barriers,
            parts,
            count: k.variable_of(Operand::i32(0)),
        }
    }

    /// Shared memory for the barrier objects: so many values of 64 bits.
    pub const WORDS: u32 = BARRIERS;

    fn barrier(&self, k: &mut Kernel<'_>) -> Operand {
        let count = k.get(self.count);
        let odd = k.int(IntOp::And, count, Operand::i32(1));
        let by = k.int(IntOp::Mul, odd, Operand::i32(BARRIER_BYTES as i32));
        k.advance_by_word(self.barriers, by)
    }

    /// Those who work on a tower wait for each other, and see what is in shared memory.
    pub fn meet(&self, k: &mut Kernel<'_>) {
        self.wait(k, "", Wait::Suspended);
    }

    /// The same, and all see what others have stored in memory.
    pub fn settle(&self, k: &mut Kernel<'_>) {
        self.wait(k, ".release.cluster", Wait::Settled);
    }

    fn wait(&self, k: &mut Kernel<'_>, release: &str, wait: Wait) {
        let barrier = self.barrier(k);
        k.warp_barrier();
        let lane = k.special(Special::Lane);
        let arrives = k.compare(IntCmp::Below, lane, Operand::i32(self.parts as i32));
        k.when(arrives, |k| {
            let to = address_in(k, barrier, lane);
            let code = format!("mbarrier.arrive{release}.shared::cluster.b64 _, [$0];");
            k.assembly(&code, "r,~{memory}", &[], &[to], true);
        });
        let count = k.get(self.count);
        let parity = k.int(IntOp::Right, count, Operand::i32(1));
        let parity = k.int(IntOp::And, parity, Operand::i32(1));
        k.wait_for_phase(barrier, parity, wait);
        let next = k.int(IntOp::Add, count, Operand::i32(1));
        k.set(self.count, next);
    }
}

/// How a thread's values reach the neighbours that read them.
#[derive(Clone, Copy)]
pub(super) struct Across {
    /// A neighbour reads the thread's values.
    has: Operand,
    /// Where they belong in the neighbour's slot 0, and the barrier object there at which they count.
    to: Operand,
    barrier: Operand,
}

impl Across {
    /// `own`: the thread's value in slot 0; `bytes`: of a value.
    pub fn new(
        k: &mut Kernel<'_>,
        split: &Split,
        links: &Links,
        own: Operand,
        bytes: i64,
    ) -> Across {
        let (thread, rank) = (thread(k), rank(k));
        let [below, above] = split.reach;
        let word = |n: i64| Operand::i32(n as i32);
        let count = i64::from(split.parts);
        let (mut lower, mut upper) = (Operand::int(Type::I1, 1), Operand::int(Type::I1, 1));
        if !split.ring {
            lower = k.compare(IntCmp::Gt, rank, word(0));
            upper = k.compare(IntCmp::Lt, rank, word(count - 1));
        }
        let length = split.of_part(k, rank, split.part, split.last);
        // What the part below sees above itself, and what the part above sees below.
        let down = k.compare(IntCmp::Below, thread, word(above));
        let down = k.int(IntOp::And, down, lower);
        let from = k.int(IntOp::Sub, length, word(below));
        let from = k.int(IntOp::Sub, thread, from);
        let up = k.compare(IntCmp::Below, from, word(below));
        let up = k.int(IntOp::And, up, upper);
        let by = k.choose(down, word(count - 1), word(1));
        let neighbour = k.int(IntOp::Add, rank, by);
        let neighbour = k.int(IntOp::Rem, neighbour, word(count));
        // An index counts from the end of the part below, and from below the first index of the part above.
        let further = split.of_part(k, neighbour, split.part, split.last);
        let back = k.int(IntOp::Sub, word(0), length);
        let shift = k.choose(down, further, back);
        let shift = k.int(IntOp::Mul, shift, word(bytes));
        // Where there is no neighbour, the place is not used.
        let to = address_in(k, own, neighbour);
        Across {
            has: k.int(IntOp::Or, down, up),
            to: k.int(IntOp::Add, to, shift),
            barrier: links.receiving(k, up, neighbour),
        }
    }

    /// Sends a value to its place `by` bytes from slot 0.
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
            k.assembly(
                &code,
                &constraints,
                &[],
                &[self.to, value, self.barrier],
                true,
            );
        });
    }
}
