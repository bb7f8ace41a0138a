//! Lines along the inner axis that are too long for a block of threads: the blocks of a cluster have a slab
//! of each line.
//!
//! Slab r has the indices from r * width on. All blocks run the same tower, stage by stage, and each keeps in its
//! shared rows the values that its own threads read beyond its slab. Rows from memory are copied with these values. A
//! value that a thread publishes is sent to the neighbouring block, too, where that block reads it.

use crate::lattice::{Axis, div_ceil};
use crate::layout::{Layout, PIECE};
use crate::scheme::Scheme;

/// The most blocks of a cluster that every GPU with clusters takes.
pub const MOST_SLABS: u32 = 8;

/// Threads of a warp.
pub const WARP: i64 = 32;

/// How lines are cut into slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slabs {
    pub count: u32,
    /// Values of each slab but the last one.
    pub width: i64,
    pub last: i64,
    /// Indices that a slab reads below and above.
    pub reach: [i64; 2],
    /// The index at which warps with no part of the last slab read, if there are such warps. It and the indices that
    /// are read from it lie beyond all that any thread writes there.
    pub idle: Option<i64>,
    /// The first slab follows the last one, so ghosts are values that the neighbours send.
    pub ring: bool,
}

impl Slabs {
    /// Slabs of a multiple of `unit` values, itself a multiple of the piece that copies move at a time. `None` where
    /// slabs would be shorter than the part that neighbours read of them.
    pub fn new(scheme: &Scheme, layout: &Layout, count: u32, unit: i64) -> Option<Slabs> {
        let piece = (PIECE / layout.element_bytes) as i64;
        if !(2..=MOST_SLABS).contains(&count) || unit % piece != 0 {
            return None;
        }
        let reach = layout.reach[Axis::INNER].map(i64::from);
        let length = layout.extent[Axis::INNER];
        let width = div_ceil(div_ceil(length, i64::from(count)), unit) * unit;
        let last = length - i64::from(count - 1) * width;
        // The sources of all ghosts lie in the slab at that end, and the part that slabs send has a value in every
        // component.
        let least = reach[0] + reach[1] + 2;
        let ring = scheme.grid.is_periodic(Axis::INNER);
        // Another block stores the values that follow the last slab of a ring. A copy moves either these or the slab.
        let whole = !ring || last % piece == 0;
        let copied = (div_ceil(reach[1], piece) + 1) * piece;
        let idle = ((last - 1) / WARP < (width - 1) / WARP).then_some(last + copied + reach[0]);
        let room = idle.is_none_or(|index| index < width);
        (last >= least && width >= least && whole && room).then_some(Slabs {
            count,
            width,
            last,
            reach,
            idle,
            ring,
        })
    }
}
