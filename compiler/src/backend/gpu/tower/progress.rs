//! How far towers are: blocks publish it in memory, and pollers read the progress of their neighbours.

use super::super::abi::{PROGRESS_BYTES, TaskWord, TowerParams};
use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use super::context::Context;
use super::task::{self, Fields};
use crate::tower::block::NEIGHBOURS;

/// One for a narrow tower, otherwise 0; `None` where none is narrow. Other towers depend across a narrow tower on
/// towers behind it. They wait for the narrow one only, so its progress has to imply enough progress of the towers
/// behind: it waits for one stage more.
pub(super) fn narrow(k: &mut Kernel<'_>, context: &Context<'_>, words: Operand) -> Option<Operand> {
    let narrow = context.towers().rings.narrow;
    narrow.then(|| task::word(k, words, TaskWord::NARROW))
}

/// A block of a cluster: of how many, and its number.
#[derive(Clone, Copy)]
pub(super) struct BlockOf {
    pub blocks: u32,
    pub rank: Operand,
}

/// Tells others how far the tower is: each block for itself, by one thread of a warp.
pub(super) fn publish(
    k: &mut Kernel<'_>,
    leads: Operand,
    block: Option<BlockOf>,
    task: &Fields,
    reached: Operand,
) {
    k.when(leads, |k| {
        let to = place(k, task.number, block);
        k.assembly(
            "st.release.gpu.global.u32 [$0], $1;",
            "l,r,~{memory}",
            &[],
            &[to, reached],
        );
    });
}

/// Where the progress of a task is, or that of one of the blocks that share its lines.
fn place(k: &mut Kernel<'_>, task: Operand, block: Option<BlockOf>) -> Operand {
    let mut word = task;
    if let Some(BlockOf { blocks, rank }) = block {
        let first = k.int(IntOp::Mul, task, Operand::i32(blocks as i32));
        word = k.int(IntOp::Add, first, rank);
    }
    let wide = k.resize(word, Type::I64);
    k.advance(k.param(TowerParams::PROGRESS), wide, PROGRESS_BYTES)
}

/// Where a lane finds the progress of a neighbour's block in shared memory; lanes beyond the neighbours look at the
/// first one, too.
fn seen(k: &mut Kernel<'_>, lane: Operand, words: Operand, blocks: u32) -> Operand {
    let all = Operand::i32((NEIGHBOURS * blocks) as i32);
    let neighbour = k.compare(IntCmp::Below, lane, all);
    let lane = k.choose(neighbour, lane, Operand::i32(0));
    let lane = k.resize(lane, Type::I64);
    let first = task::place(k, words, TaskWord::SEEN);
    k.advance(first, lane, 4)
}

/// The poller: it has a lane for each block of the neighbours.
pub(super) struct Poller {
    /// Of a cluster.
    blocks: u32,
    lane: Operand,
    /// The lane has a neighbour.
    has: Operand,
    to: Operand,
}

impl Poller {
    pub fn new(k: &mut Kernel<'_>, words: Operand, blocks: u32) -> Poller {
        let lane = k.special(Special::Lane);
        let all = Operand::i32((NEIGHBOURS * blocks) as i32);
        Poller {
            blocks,
            lane,
            has: k.compare(IntCmp::Below, lane, all),
            to: seen(k, lane, words, blocks),
        }
    }

    /// Nothing is known of the neighbours yet.
    pub fn forget(&self, k: &mut Kernel<'_>) {
        k.when(self.has, |k| {
            let none = k.param(TowerParams::SINCE);
            k.store(none, self.to, 4, Access::Volatile);
        });
    }

    /// Looks until the neighbours have done all that a tower reads of.
    pub fn look(&self, k: &mut Kernel<'_>, task: &Fields, stages: i32, narrow: Option<Operand>) {
        let [mut neighbour, others @ ..] = task.neighbours;
        let (mut which, mut block) = (self.lane, None);
        if self.blocks > 1 {
            let blocks = Operand::i32(self.blocks as i32);
            which = k.int(IntOp::Div, self.lane, blocks);
            block = Some(BlockOf {
                blocks: self.blocks,
                rank: k.int(IntOp::Rem, self.lane, blocks),
            });
        }
        for (n, other) in others.into_iter().enumerate() {
            let this = k.compare(IntCmp::Eq, which, Operand::i32(n as i32 + 1));
            neighbour = k.choose(this, other, neighbour);
        }
        let from = place(k, neighbour, block);
        let last = k.int(IntOp::Mul, task.end, Operand::i32(stages));
        let last = k.int(IntOp::Sub, last, Operand::i32(1));
        let mut last = k.int(IntOp::Add, last, k.param(TowerParams::SINCE));
        if let Some(narrow) = narrow {
            last = k.int(IntOp::Add, last, narrow);
        }
        let none = k.param(TowerParams::SINCE);
        let known = k.variable_of(none);
        let (again, moved, after) = (k.label(), k.label(), k.label());
        let look = |k: &mut Kernel<'_>, order: &str| {
            let code = format!("ld.{order}.gpu.global.u32 $0, [$1];");
            k.assembly(&code, "=r,l,~{memory}", &[Type::I32], &[from])[0]
        };
        k.place(again);
        let before = k.get(known);
        let done = look(k, "relaxed");
        let same = k.compare(IntCmp::Eq, done, before);
        let same = k.all(same);
        k.branch(same, again, moved);
        // Looking with an order empties the first cache, so it is done only where there is something new.
        k.place(moved);
        let done = look(k, "acquire");
        k.set(known, done);
        k.when(self.has, |k| {
            k.assembly(
                "st.release.cta.shared.u32 [$0], $1;",
                "r,r,~{memory}",
                &[],
                &[self.to, done],
            );
        });
        let enough = k.compare(IntCmp::Ge, done, last);
        let enough = k.all(enough);
        k.branch(enough, after, again);
        k.place(after);
    }
}

/// How producer warps wait for neighbours.
pub(super) struct Waiting {
    /// The progress that the lane looks at.
    from: Operand,
    /// Stages that neighbours must have done beyond the stages that the tower itself reads.
    more: Option<Operand>,
}

impl Waiting {
    pub fn new(
        k: &mut Kernel<'_>,
        words: Operand,
        blocks: u32,
        narrow: Option<Operand>,
    ) -> Waiting {
        let lane = k.special(Special::Lane);
        Waiting {
            from: seen(k, lane, words, blocks),
            more: narrow,
        }
    }

    /// Whether the neighbours have done `stages` stages; the same for all threads of a warp.
    fn is_over(&self, k: &mut Kernel<'_>, stages: Operand) -> Operand {
        let mut stages = k.int(IntOp::Add, stages, k.param(TowerParams::SINCE));
        if let Some(more) = self.more {
            stages = k.int(IntOp::Add, stages, more);
        }
        let done = k.assembly(
            "ld.acquire.cta.shared.u32 $0, [$1];",
            "=r,r,~{memory}",
            &[Type::I32],
            &[self.from],
        );
        let enough = k.compare(IntCmp::Ge, done[0], stages);
        k.all(enough)
    }

    /// Waits until the neighbours have done `stages` stages.
    pub fn wait(&self, k: &mut Kernel<'_>, stages: Operand) {
        let (test, after) = (k.label(), k.label());
        k.place(test);
        let over = self.is_over(k, stages);
        k.branch(over, after, test);
        k.place(after);
        k.warp_barrier();
    }
}
