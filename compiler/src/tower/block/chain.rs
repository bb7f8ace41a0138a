//! Which warps of a line read values that other warps publish. A thread reads values of other threads only near its own
//! index, so a warp waits only for the two warps beside it to end a stage, not for all.

use super::slabs::{Slabs, WARP};
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval, div_ceil};
use crate::layout::Layout;
use crate::scheme::Scheme;

/// The warps of a line: a chain, or a ring where the line is one. Where the blocks of a cluster share a line, it goes
/// through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpChain {
    /// The last warp, counted through all blocks that share the line.
    pub last: i64,
    /// It is beside the first one.
    pub ring: bool,
}

impl WarpChain {
    /// `None` where a thread reads a value of a warp that is not beside its own. That happens where the last warp of a
    /// line, or of a slab, is short.
    pub fn new(scheme: &Scheme, layout: &Layout, slabs: Option<&Slabs>) -> Option<WarpChain> {
        let [below, above] = layout.reach[Axis::INNER].map(i64::from);
        let length = layout.extent[Axis::INNER];
        let width = slabs.map_or(length, |slabs| slabs.width);
        let warps = div_ceil(width, WARP);
        let warp_of = |index: i64| index / width * warps + index % width / WARP;
        let chain = WarpChain {
            last: warp_of(length - 1),
            ring: scheme.grid.is_periodic(Axis::INNER),
        };
        let reads = |warp: i64| {
            let first = warp / warps * width + warp % warps * WARP;
            let end = (first + WARP).min((warp / warps + 1) * width).min(length);
            Interval::new(first - below, end + above)
        };
        let ghosts = scheme.component_ids().flat_map(|id| {
            let pairs = AxisGhosts::new(scheme, id, Axis::INNER).pairs();
            pairs
                .into_iter()
                .map(|(source, ghost)| (source, ghost.index))
        });
        let own = (0..=chain.last).flat_map(|warp| {
            let within = reads(warp).intersect(Interval::new(0, length));
            [within.lo, within.hi - 1].map(|index| (warp, warp_of(index)))
        });
        let seen = |(source, index): (i64, i64)| {
            let mut readers = (0..=chain.last).filter(|&warp| reads(warp).contains(index));
            readers.all(|warp| chain.are_neighbours(warp_of(source), warp))
        };
        let mut ghosts = ghosts;
        let near = own.into_iter().all(|(a, b)| chain.are_neighbours(a, b)) && ghosts.all(seen);
        near.then_some(chain)
    }

    /// A chain of `warps` warps, whose lines have an end behind the last one, or go on there: threads read nothing that
    /// is farther than a warp.
    pub fn of_z_block(warps: u32) -> WarpChain {
        WarpChain {
            last: i64::from(warps) - 1,
            ring: false,
        }
    }

    fn are_neighbours(&self, a: i64, b: i64) -> bool {
        let distance = (a - b).abs();
        distance <= 1 || self.ring && distance == self.last
    }
}
