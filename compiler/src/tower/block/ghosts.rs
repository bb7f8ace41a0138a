//! Ghosts along the inner axis that towers make themselves, where no code reads them in memory.
//!
//! Such a ghost is a small piece of memory far from the rest of its row, and to store and copy it costs nearly as much
//! as a line of a cache. So where all threads that read a ghost are in one warp, towers neither store ghosts nor copy
//! them: that warp makes the ghosts of rows that arrive in shared rows, and rows that are run in memory read the
//! sources instead ([`LineFold`]). Ghosts in memory are then out of date after a time block, until a kernel of its own
//! makes them for code that reads them.

use super::lines::Lines;
use super::slabs::WARP;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::{Boundary, ComponentId, Scheme};

/// A place beyond an end of a row that updates read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub index: i64,
    /// Whose ghost it is; `None`: it lies on a plane about which the component is odd, and is 0, where rows of other
    /// components have a ghost.
    pub source: Option<i64>,
    pub negated: bool,
    /// The warp whose threads read it.
    pub reader: Reader,
}

/// A warp of the block that has a part of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader {
    /// The block's first index.
    pub first: i64,
    pub warp: i64,
}

/// Where the value at an index beyond an end comes from: `sum - index` or, around a ring, `sum + index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineFold {
    pub sum: i64,
    pub mirrored: bool,
    pub negated: bool,
}

impl LineFold {
    pub fn source(&self, index: i64) -> i64 {
        match self.mirrored {
            true => self.sum - index,
            false => self.sum + index,
        }
    }
}

/// The folds of a component: below an index, and from an index on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineFolds {
    pub below: Option<LowerFold>,
    pub above: Option<UpperFold>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowerFold {
    /// It holds for indices below this one.
    pub end: i64,
    pub fold: LineFold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperFold {
    /// The first index that it holds for.
    pub first: i64,
    pub fold: LineFold,
}

/// The values that appear beyond the ends of rows, per component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerGhosts {
    pub shown: Vec<Vec<Shown>>,
    folds: Vec<LineFolds>,
}

impl InnerGhosts {
    /// `None` where memory has to hold ghosts: some warps or blocks read them where others have the source, or lines
    /// are shorter than the reach of updates. `None` also where there are no ghosts.
    pub fn new(scheme: &Scheme, layout: &Layout, lines: &Lines) -> Option<InnerGhosts> {
        let length = layout.extent[Axis::INNER];
        let own = lines.own(length);
        // The block that has an index beside an end of the line.
        let block = |index: i64, above: bool| {
            let first = match lines {
                Lines::ZBlocks(z_blocks) if above => z_blocks.last_with_ghosts(),
                Lines::ZBlocks(_) => 0,
                _ => index.div_euclid(own) * own,
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
        let folds = folds.collect::<Option<Vec<LineFolds>>>()?;
        let any = folds != vec![LineFolds::default(); folds.len()];
        any.then_some(InnerGhosts { shown, folds })
    }

    /// The folds that threads meet in lines of `length` values, if they read a component at the offset `by` along the
    /// inner axis.
    pub fn folds(&self, id: ComponentId, length: i64, by: i64) -> LineFolds {
        let LineFolds { below, above } = self.folds[id.index()];
        LineFolds {
            below: below.filter(|lower| by < lower.end),
            above: above.filter(|upper| upper.first < length + by),
        }
    }
}

/// Ghosts along the inner axis that the towers of a block make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockGhosts {
    pub inner: InnerGhosts,
    /// The kernel that makes the ghosts in memory afterwards.
    pub pass: GhostPass,
}

/// The launch of a kernel that makes all ghosts along the inner axis in memory: a thread for each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GhostPass {
    pub blocks: u32,
    pub threads: u32,
    /// One for each thread, but for the last ones.
    pub groups: i32,
}

impl GhostPass {
    const THREADS: u32 = 128;

    /// `None` where there are too many groups for a launch.
    pub fn new(layout: &Layout) -> Option<GhostPass> {
        let [outer, middle] = [Axis::OUTER, Axis::MIDDLE].map(|axis| layout.visible(axis).len());
        let groups = i32::try_from(outer.checked_mul(middle)?).ok()?;
        Some(GhostPass {
            blocks: (groups as u32).div_ceil(GhostPass::THREADS),
            threads: GhostPass::THREADS,
            groups,
        })
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
    let reads = || updates().flat_map(|u| u.reads());
    let by: Vec<i64> = reads()
        .filter(|read| read.component == id)
        .map(|read| read.offset[axis].into())
        .collect();
    let ghosts = AxisGhosts::new(scheme, id, axis).pairs();
    let [extent, visible] = [scheme.extent(id)[axis], scheme.visible(id)[axis]];
    let mut all = Vec::new();
    let ends = [visible.lo..extent.lo, extent.hi.max(visible.lo)..visible.hi];
    for index in ends.into_iter().flatten() {
        let above = index >= extent.hi;
        let zero = scheme.grid.boundary[axis][usize::from(above)] == Boundary::Zero;
        if zero || scheme.grid.axes[axis].is_none() {
            continue;
        }
        let ghost = ghosts.iter().find(|(_, ghost)| ghost.index == index);
        // Threads whose results are not needed read, too.
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

/// `None` where ghosts of one side do not follow one rule.
fn folds(scheme: &Scheme, id: ComponentId, shown: &[Shown]) -> Option<LineFolds> {
    let mirrored = !scheme.grid.is_periodic(Axis::INNER);
    let one = |shown: &[Shown]| -> Option<Option<LineFold>> {
        let fold = |shown: &Shown| {
            let sign = if mirrored { 1 } else { -1 };
            Some(LineFold {
                sum: shown.source? + sign * shown.index,
                mirrored,
                negated: shown.negated,
            })
        };
        let Some(first) = shown.first() else {
            return Some(None);
        };
        let first = fold(first)?;
        let same = shown.iter().all(|shown| fold(shown) == Some(first));
        same.then_some(Some(first))
    };
    let extent = scheme.extent(id)[Axis::INNER];
    let (below, above) = shown.split_at(shown.partition_point(|shown| shown.index < extent.lo));
    // Values on the ends are 0 in memory.
    let is_zero = |shown: &&Shown| shown.source.is_none();
    let zeros = below.iter().rev().take_while(is_zero).count();
    let below = &below[..below.len() - zeros];
    let end = below.last().map(|shown| shown.index + 1);
    let zeros = above.iter().take_while(is_zero).count();
    let above = &above[zeros..];
    let first = above.first().map(|shown| shown.index);
    Some(LineFolds {
        below: end
            .zip(one(below)?)
            .map(|(end, fold)| LowerFold { end, fold }),
        above: first
            .zip(one(above)?)
            .map(|(first, fold)| UpperFold { first, fold }),
    })
}
