//! Reads beyond the ends of lines in boundary periods, where memory holds no ghosts along the inner axis: threads near
//! an end read the sources.

use super::super::ir::{Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::context::{Context, Lane, word};
use crate::lattice::Axis;
use crate::scheme::ComponentId;
use crate::tower::block::{LineFold, LineFolds};

/// How the index at which a thread reads lies to the first one below or above which it is another's.
const BEYOND: [IntCmp; 2] = [IntCmp::Lt, IntCmp::Ge];

/// The folds on both sides: from where on they hold, below and above.
fn sides(folds: LineFolds) -> [Option<(i64, LineFold)>; 2] {
    [
        folds.below.map(|lower| (lower.end, lower.fold)),
        folds.above.map(|upper| (upper.first, upper.fold)),
    ]
}

/// The folds that threads meet which read a component at the offset `by` along the inner axis.
pub(super) fn folds(context: &Context<'_>, id: ComponentId, by: i64) -> LineFolds {
    let length = context.layout.extent[Axis::INNER];
    let ghosts = context.ghosts();
    ghosts.map_or_else(LineFolds::default, |ghosts| ghosts.folds(id, length, by))
}

/// Bytes from where the thread reads to where it finds the value.
pub(super) fn displacement(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    folds: LineFolds,
    by: i64,
) -> Operand {
    let index = seen(k, lane, by);
    let twice = k.int(IntOp::Mul, index, word(-context.bytes(2)));
    let mut to = word(0);
    for (side, fold) in sides(folds).into_iter().enumerate() {
        let Some((first, fold)) = fold else { continue };
        let mut there = word(context.bytes(fold.sum));
        if fold.mirrored {
            there = k.int(IntOp::Add, there, twice);
        }
        let here = k.compare(BEYOND[side], index, word(first));
        to = k.choose(here, there, to);
    }
    to
}

/// Whether the value has the other sign there; `None` if no thread's has.
pub(super) fn is_negated(
    k: &mut Kernel<'_>,
    lane: &Lane,
    folds: LineFolds,
    by: i64,
) -> Option<Operand> {
    let sides = sides(folds);
    let negates = |fold: &Option<(i64, LineFold)>| fold.is_some_and(|(_, fold)| fold.negated);
    if !sides.iter().any(negates) {
        return None;
    }
    let index = seen(k, lane, by);
    let mut negated = Operand::int(Type::I1, 0);
    for (cmp, fold) in BEYOND.into_iter().zip(sides) {
        if let Some((first, _)) = fold.filter(|(_, fold)| fold.negated) {
            let here = k.compare(cmp, index, word(first));
            negated = k.int(IntOp::Or, negated, here);
        }
    }
    Some(negated)
}

/// The index that the thread reads. It is the same for all rows, but there are no registers to keep values that follow
/// from it.
fn seen(k: &mut Kernel<'_>, lane: &Lane, by: i64) -> Operand {
    let thread = k.again(lane.thread);
    k.int(IntOp::Add, thread, word(by))
}
