//! Shapes of tiles and patches, and what lies along their axes.

use crate::lattice::{Axis, Interval, div_ceil};

/// Threads of a warp: those that have a line of a tile.
pub const WARP: i64 = 32;

/// The axes of a tile, in the order of pairs of numbers.
pub const AXES: [Axis; 2] = [Axis::OUTER, Axis::INNER];

/// Where a block keeps coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoefPlace {
    Registers,
    Shared,
}

/// How a tile is divided into patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub warps: i64,
    /// Cells of a patch along the outer and the inner axis.
    pub patch: [i64; 2],
    pub coefs: CoefPlace,
    /// Blocks that a multiprocessor should hold.
    pub blocks: u32,
}

impl Shape {
    /// The cells of a patch, the last index varying fastest.
    pub fn cells(&self) -> impl Iterator<Item = [i64; 2]> + use<> {
        let [outer, inner] = self.patch;
        (0..outer).flat_map(move |i| (0..inner).map(move |j| [i, j]))
    }

    /// The number of a cell of a patch.
    pub fn number(&self, cell: [i64; 2]) -> usize {
        (cell[0] * self.patch[1] + cell[1]) as usize
    }

    /// Cells of a patch.
    pub fn count(&self) -> usize {
        (self.patch[0] * self.patch[1]) as usize
    }

    pub fn threads(&self) -> i64 {
        self.warps * WARP
    }

    /// Cells of a tile along the axes.
    pub fn tile(&self) -> [i64; 2] {
        [self.warps * self.patch[0], WARP * self.patch[1]]
    }
}

/// Tiles along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// Cells that a tile stores.
    pub base: i64,
    /// From its first cell to its base, and cells above its base that are needed.
    pub halo: [i64; 2],
    pub tiles: i64,
    /// The cells at which all updates act, and all components and coefficients are stored.
    pub bare: Interval,
    /// The cells of a periodic axis.
    pub ring: Option<i64>,
}

impl Along {
    /// The first cell of a tile.
    pub fn origin(&self, tile: i64) -> i64 {
        tile * self.base - self.halo[0]
    }

    /// How often a ring goes into what tiles reach below index 0, rounded up.
    pub fn turns(&self) -> i64 {
        self.ring.map_or(0, |cells| div_ceil(self.halo[0], cells))
    }
}

/// A read of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The row, as the layout counts them.
    pub row: usize,
    /// Cells along the outer and the inner axis.
    pub offset: [i64; 2],
}
