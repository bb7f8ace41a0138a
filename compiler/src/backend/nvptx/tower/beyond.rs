//! What rows show beyond their ends along the inner axis, where nobody needs it in memory.
//!
//! A ghost is a small piece of memory far from the rest of its row, and to store and copy it costs nearly as much as a line of a cache. So
//! where all threads that read a ghost are in one warp, towers neither store ghosts nor copy them: that warp makes those of rows that arrive
//! in shared memory ([`super::arrivals`]), and cut periods read the sources instead ([`Fold`]). Ghosts in memory are then out of date after a
//! time block, until a kernel of its own makes them for who needs them ([`super::refresh`]).

use super::super::ir::{Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::line::{Split, WARP};
use super::links::word;
use super::spans::Spans;
use super::write::Writer;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::{Boundary, ComponentId, Scheme};

/// A place beyond an end of a row that updates read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub index: i64,
    /// Whose ghost it is; `None`: it lies on a plane about which the component is odd, and is 0, where rows of other components have a ghost.
    pub source: Option<i64>,
    pub negated: bool,
    /// Who reads it.
    pub reader: Reader,
}

/// A warp of the block that has a part of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reader {
    /// The block's first index.
    pub first: i64,
    pub warp: i64,
}

/// Where the value at an index beyond an end comes from: `sum - index` or, around a ring, `sum + index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fold {
    sum: i64,
    mirrored: bool,
    negated: bool,
}

/// Those of a component below index 0, and from an index on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Folds {
    below: Option<Fold>,
    above: Option<(i64, Fold)>,
}

/// Those that threads meet on either side.
pub(super) type Met = [Option<(i64, Fold)>; 2];

/// What rows show beyond their ends, per component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beyond {
    pub shown: Vec<Vec<Shown>>,
    folds: Vec<Folds>,
}

impl Beyond {
    /// `None` where memory has to hold ghosts: some warps or blocks read them where others have the source, or lines are shorter than what updates
    /// reach. And where there are none.
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        (split, spans): (Option<&Split>, Option<&Spans>),
    ) -> Option<Beyond> {
        let length = layout.extent[Axis::INNER];
        let own = match (split, spans) {
            (Some(split), _) => split.part,
            (_, Some(spans)) => spans.threads,
            _ => length,
        };
        // The block that has an index beside an end of the line.
        let block = |index: i64, above: bool| {
            let first = match spans {
                Some(spans) if above => spans.last_with_ghosts(),
                Some(_) => 0,
                None => index.div_euclid(own) * own,
            };
            let block = Interval::new(first, (first + own).min(length));
            block.contains(index).then_some(first)
        };
        let shown = scheme
            .component_ids()
            .map(|id| shown(scheme, layout, block, id));
        let shown = shown.collect::<Option<Vec<Vec<Shown>>>>()?;
        let of = scheme.component_ids().zip(&shown);
        let folds = of.map(|(id, shown)| folds(scheme, id, shown));
        let folds = folds.collect::<Option<Vec<Folds>>>()?;
        let any = folds != vec![Folds::default(); folds.len()];
        any.then_some(Beyond { shown, folds })
    }
}

/// Ascending.
fn shown(
    scheme: &Scheme,
    layout: &Layout,
    block: impl Fn(i64, bool) -> Option<i64>,
    id: ComponentId,
) -> Option<Vec<Shown>> {
    let axis = Axis::INNER;
    let length = layout.extent[axis];
    let updates = || scheme.stages.iter().flat_map(|s| &s.updates);
    let reads = || updates().flat_map(|u| u.body.reads());
    let by: Vec<i64> = reads()
        .filter(|read| read.component == id)
        .map(|read| read.offset[axis].into())
        .collect();
    let ghosts = AxisGhosts::new(scheme, id, Axis::INNER).pairs();
    let [extent, visible] = [scheme.extent(id)[axis], scheme.visible(id)[axis]];
    let mut all = Vec::new();
    for index in visible.lo..visible.hi {
        let above = index >= extent.hi;
        let zero = scheme.grid.boundary[axis][usize::from(above)] == Boundary::Zero;
        if extent.contains(index) || zero || scheme.grid.axes[axis].is_none() {
            continue;
        }
        let ghost = ghosts.iter().find(|(_, ghost)| ghost.index == index);
        // Threads whose results nobody needs read, too.
        let threads = by.iter().map(|by| index - by);
        let threads = threads.filter(|thread| (0..length).contains(thread));
        let reader_of = |thread| {
            let first = block(thread, above)?;
            let warp = (thread - first) / WARP;
            Some(Reader { first, warp })
        };
        let mut readers = threads.map(reader_of);
        let Some(reader) = readers.next() else {
            continue;
        };
        let reader = reader?;
        let near = ghost.is_none_or(|(source, _)| block(*source, above) == Some(reader.first));
        if !near || readers.any(|other| other != Some(reader)) {
            return None;
        }
        all.push(Shown {
            index,
            source: ghost.map(|(source, _)| *source),
            negated: ghost.is_some_and(|(_, ghost)| ghost.negated),
            reader,
        });
    }
    Some(all)
}

fn folds(scheme: &Scheme, id: ComponentId, shown: &[Shown]) -> Option<Folds> {
    let mirrored = !scheme.grid.is_periodic(Axis::INNER);
    let one = |shown: &[Shown]| {
        let fold = |shown: &Shown| {
            let sign = if mirrored { 1 } else { -1 };
            Some(Fold {
                sum: shown.source? + sign * shown.index,
                mirrored,
                negated: shown.negated,
            })
        };
        let first = fold(shown.first()?);
        let same = shown.iter().all(|shown| fold(shown) == first);
        Some(first.filter(|_| same))
    };
    let extent = scheme.extent(id)[Axis::INNER];
    let (below, above) = shown.split_at(shown.partition_point(|shown| shown.index < extent.lo));
    // What lies on the end is 0 in memory.
    let zeros = above.iter().take_while(|shown| shown.source.is_none());
    let above = &above[zeros.count()..];
    let below = one(below);
    let fold = one(above);
    if below == Some(None) || fold == Some(None) {
        return None;
    }
    let first = above.first().map(|shown| shown.index);
    Some(Folds {
        below: below.flatten(),
        above: first.zip(fold.flatten()),
    })
}

impl Writer<'_> {
    /// Where values come from that threads meet below index 0, and from an index on, if they read a component so far along the inner axis.
    pub(super) fn folds(&self, id: ComponentId, by: i64) -> Met {
        let folds = self.beyond.map(|beyond| beyond.folds[id.index()]);
        let Folds { below, above } = folds.unwrap_or_default();
        let met = Interval::new(by, self.layout.extent[Axis::INNER] + by);
        [
            below.map(|fold| (0, fold)).filter(|_| met.lo < 0),
            above.filter(|(first, _)| *first < met.hi),
        ]
    }

    /// Bytes from where the thread reads to where it finds that.
    pub(super) fn sight(&self, k: &mut Kernel<'_>, met: Met, by: i64) -> Operand {
        let index = self.seen(k, by);
        let twice = k.int(IntOp::Mul, index, word(-self.bytes(2)));
        let mut to = word(0);
        for (side, fold) in met.into_iter().enumerate() {
            let Some((first, fold)) = fold else { continue };
            let mut there = word(self.bytes(fold.sum));
            if fold.mirrored {
                there = k.int(IntOp::Add, there, twice);
            }
            let here = k.compare(BEYOND[side], index, word(first));
            to = k.choose(here, there, to);
        }
        to
    }

    /// Whether it has the other sign there, if some thread's has.
    pub(super) fn is_negated(&self, k: &mut Kernel<'_>, met: Met, by: i64) -> Option<Operand> {
        let negated = |fold: &Option<(i64, Fold)>| fold.is_some_and(|(_, fold)| fold.negated);
        if !met.iter().any(negated) {
            return None;
        }
        let index = self.seen(k, by);
        let mut negated = Operand::int(Type::I1, 0);
        for (cmp, fold) in BEYOND.into_iter().zip(met) {
            if let Some((first, _)) = fold.filter(|(_, fold)| fold.negated) {
                let here = k.compare(cmp, index, word(first));
                negated = k.int(IntOp::Or, negated, here);
            }
        }
        Some(negated)
    }

    /// The index that the thread sees. It is the same for all rows, but there are no registers to keep what follows from it.
    fn seen(&self, k: &mut Kernel<'_>, by: i64) -> Operand {
        let thread = k.again(self.thread);
        k.int(IntOp::Add, thread, word(by))
    }
}

/// How the index that a thread sees lies to the first one below or above which it is another's.
const BEYOND: [IntCmp; 2] = [IntCmp::Lt, IntCmp::Ge];
