//! How blocks of threads get the lines along the inner axis.

use super::slabs::{Slabs, WARP};
use super::z_block::ZBlocks;
use crate::layout::Layout;
use crate::scheme::Scheme;

/// How lines should be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// The blocks of a cluster share them; the number counts the blocks. 1: each block has whole lines.
    Shared(u32),
    /// They are cut into z blocks, for blocks with this number of compute warps.
    ZBlocks(u32),
}

/// How the lines of a grid are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lines {
    /// A block has whole lines.
    Whole,
    /// The blocks of a cluster have a slab each.
    Slabs(Slabs),
    /// A launch advances a part of them.
    ZBlocks(ZBlocks),
}

impl Lines {
    /// `unit`: values of which slabs have a multiple. `None` where lines cannot be divided so.
    pub fn new(scheme: &Scheme, layout: &Layout, division: Division, unit: i64) -> Option<Lines> {
        match division {
            Division::Shared(1) => Some(Lines::Whole),
            Division::Shared(count) => Slabs::new(scheme, layout, count, unit).map(Lines::Slabs),
            Division::ZBlocks(warps) => ZBlocks::new(scheme, layout, warps).map(Lines::ZBlocks),
        }
    }

    /// How they were divided.
    pub fn division(&self) -> Division {
        match self {
            Lines::Whole => Division::Shared(1),
            Lines::Slabs(slabs) => Division::Shared(slabs.count),
            Lines::ZBlocks(z_blocks) => Division::ZBlocks((z_blocks.threads / WARP) as u32),
        }
    }

    pub fn slabs(&self) -> Option<&Slabs> {
        match self {
            Lines::Slabs(slabs) => Some(slabs),
            _ => None,
        }
    }

    pub fn z_blocks(&self) -> Option<&ZBlocks> {
        match self {
            Lines::ZBlocks(z_blocks) => Some(z_blocks),
            _ => None,
        }
    }

    /// Blocks that run a tower together.
    pub fn cluster(&self) -> u32 {
        self.slabs().map_or(1, |slabs| slabs.count)
    }

    /// Values of a line of `length` that a block has, at most.
    pub fn own(&self, length: i64) -> i64 {
        match self {
            Lines::Whole => length,
            Lines::Slabs(slabs) => slabs.width,
            Lines::ZBlocks(z_blocks) => z_blocks.threads,
        }
    }
}
