//! The part of lines that a launch advances: which threads have a part in which stage.

use super::super::abi::{TowerParams, ZBlockParams};
use super::super::ir::Operand;
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::context::{Context, word};
use crate::lattice::Interval;
use crate::tower::block::{Ends, ZBlocks};

/// Where a thread, or a chunk that it copies, is between the faces of its z block: its index from the lower one on at
/// the start of a period.
#[derive(Clone, Copy)]
pub(super) struct Between(pub Operand);

fn param(k: &Kernel<'_>, context: &Context<'_>, number: usize) -> Operand {
    let sources = context.program.sources.len();
    k.param(TowerParams::of_z_block(sources, number))
}

/// The first thread's index, where lines are cut into z blocks.
pub(super) fn base(k: &Kernel<'_>, context: &Context<'_>) -> Option<Operand> {
    context
        .z_blocks()
        .map(|_| param(k, context, ZBlockParams::BASE))
}

/// How far faces move in a period.
pub(super) fn lean_of_period(context: &Context<'_>) -> i64 {
    let stages = context.stages().len() as i64;
    let lean = |z_blocks: &ZBlocks| z_blocks.lean(stages) - z_blocks.lean(0);
    context.z_blocks().map_or(0, lean)
}

impl Between {
    /// Where an index is at the start of a period of the time block; `None` where lines are whole.
    pub fn new(
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        period: Operand,
        index: Operand,
    ) -> Option<Between> {
        context.z_blocks()?;
        let low = param(k, context, ZBlockParams::LOW);
        let moved = k.int(IntOp::Mul, period, word(lean_of_period(context)));
        let from = k.int(IntOp::Sub, index, low);
        Some(Between(k.int(IntOp::Add, from, moved)))
    }

    /// Where the z block's base is then.
    pub fn of_base(k: &mut Kernel<'_>, context: &Context<'_>, period: Operand) -> Option<Between> {
        let base = base(k, context)?;
        Between::new(k, context, period, base)
    }

    /// Whether the thread has a part in some stage from one of a period to a later one.
    pub fn takes_part(
        self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        first: i64,
        last: i64,
    ) -> Operand {
        let lean = |stage: i64| context.z_blocks().map_or(0, |z| z.lean(stage));
        let ends = Ends {
            lower: lean(last),
            upper: lean(first),
        };
        self.lies(k, context, ends, 1)
    }

    /// Whether some of `indices` indices lie between `lower` below the lower face and `upper` below the upper face.
    pub fn lies(
        self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        Ends { lower, upper }: Ends,
        indices: i64,
    ) -> Operand {
        let from = k.int(IntOp::Add, self.0, word(lower + indices - 1));
        let mut width = param(k, context, ZBlockParams::WIDTH);
        let more = lower - upper + indices - 1;
        if more > 0 {
            width = k.int(IntOp::Add, width, word(more));
        }
        k.compare(IntCmp::Below, from, width)
    }
}

/// Pieces of a row that a z block copies, none of them beyond the end of the line and the values that are read there;
/// `copied`: indices from the base on.
pub(super) fn pieces(
    k: &mut Kernel<'_>,
    z_blocks: &ZBlocks,
    base: Operand,
    copied: Interval,
) -> Operand {
    let piece = z_blocks.piece();
    let before = k.int(IntOp::Div, base, word(piece));
    let left = k.int(IntOp::Sub, word(z_blocks.pieces(copied)), before);
    k.int(IntOp::Min, word(copied.len() / piece), left)
}
