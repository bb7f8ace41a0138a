//! Shapes of tiles and patches, and their division along the axes.

use crate::lattice::{Axis, Interval, div_ceil};

/// Threads of a warp: the threads that have a line of a tile.
pub const WARP: i64 = 32;

/// The axes of a tile, in the order of triples of numbers. Along one that a scheme does not have a tile has one cell.
pub const AXES: [Axis; 3] = Axis::ALL;

/// Cells that a thread loads and stores at a time, at most.
const PIECE: i64 = 4;

/// Where a block keeps coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoefPlace {
    Registers,
    Shared,
}

/// How a tile is divided into patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Threads of a block along the axes: whole warps, and the threads along the inner axis are in one warp.
    pub threads: [i64; 3],
    /// Cells of a patch along the axes.
    pub patch: [i64; 3],
    pub coefs: CoefPlace,
    /// Whether rows that are published have slots of rows whose values no thread reads any more. A stage has one more
    /// barrier then, before threads publish.
    pub reuses_slots: bool,
    /// Blocks that a multiprocessor should hold.
    pub blocks: u32,
}

impl Shape {
    /// A tile of a scheme with one axis or two: each warp has some lines along the inner axis. `patch`: lines and cells
    /// of a thread.
    pub fn of_lines(warps: i64, patch: [i64; 2], coefs: CoefPlace) -> Shape {
        Shape {
            threads: [warps, 1, WARP],
            patch: [patch[0], 1, patch[1]],
            coefs,
            reuses_slots: false,
            blocks: 1,
        }
    }

    /// The cells of a patch, the last index varying fastest.
    pub fn cells(&self) -> impl Iterator<Item = [i64; 3]> + use<> {
        let [outer, middle, inner] = self.patch;
        let plane = move |i| (0..middle).flat_map(move |l| (0..inner).map(move |j| [i, l, j]));
        (0..outer).flat_map(plane)
    }

    /// The number of a cell of a patch.
    pub fn number(&self, [i, l, j]: [i64; 3]) -> usize {
        ((i * self.patch[1] + l) * self.patch[2] + j) as usize
    }

    /// Cells of a patch.
    pub fn count(&self) -> usize {
        self.patch.iter().product::<i64>() as usize
    }

    /// Threads of a block.
    pub fn all_threads(&self) -> i64 {
        self.threads.iter().product()
    }

    pub fn warps(&self) -> i64 {
        self.all_threads() / WARP
    }

    /// Rows of threads along the inner axis.
    pub fn rows(&self) -> i64 {
        self.threads[0] * self.threads[1]
    }

    /// Rows from a thread to another one, by the threads between them along the axes.
    pub fn rows_to(&self, thread: [i64; 3]) -> i64 {
        thread[0] * self.threads[1] + thread[1]
    }

    /// Whether threads are whole warps, as they have to be.
    pub fn is_whole(&self) -> bool {
        let all = self.all_threads();
        self.threads.iter().all(|n| *n >= 1) && WARP % self.threads[2] == 0 && all % WARP == 0
    }

    /// Cells of a patch along an axis that are accessed together, at most: several along the inner one.
    pub fn piece(&self, n: usize) -> i64 {
        match AXES[n] {
            Axis::INNER => PIECE.min(self.patch[n]),
            _ => 1,
        }
    }

    /// The threads along an axis whose cell of a patch is one of some cells of the tile.
    pub fn threads_with(&self, n: usize, cell: i64, own: Interval) -> Interval {
        let first = |bound: i64| div_ceil(bound - cell, self.patch[n]).clamp(0, self.threads[n]);
        Interval::new(first(own.lo), first(own.hi))
    }

    /// Cells of a tile along the axes.
    pub fn tile(&self) -> [i64; 3] {
        [0, 1, 2].map(|n| self.threads[n] * self.patch[n])
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

    /// Whether no tile of `cells` reaches farther beyond the ends of a ring than once around it.
    pub fn is_near_ring(&self, cells: i64) -> bool {
        let last = self.origin(self.tiles - 1) + cells;
        self.ring
            .is_some_and(|ring| self.halo[0] <= ring && last <= 2 * ring)
    }

    /// How many lengths of the ring tiles reach below index 0, rounded up.
    pub fn turns(&self) -> i64 {
        self.ring.map_or(0, |cells| div_ceil(self.halo[0], cells))
    }
}

/// A read of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The row, as the layout counts them.
    pub row: usize,
    /// Cells along the axes.
    pub offset: [i64; 3],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads whose cell of a patch lies in an interval are the same ones that a look at each one finds.
    #[test]
    fn threads_with_a_cell_follow_each_other() {
        let shape = Shape::of_lines(8, [10, 4], CoefPlace::Registers);
        let tile = shape.tile();
        for n in [0, 2] {
            for cell in 0..shape.patch[n] {
                for (lo, hi) in [(0, 3), (3, 77), (74, 77), (-5, 1), (4, 4), (0, 999)] {
                    let own = Interval::new(lo, hi);
                    let threads = shape.threads_with(n, cell, own);
                    for thread in 0..tile[n] / shape.patch[n] {
                        let inside = own.contains(thread * shape.patch[n] + cell);
                        assert_eq!(threads.contains(thread), inside, "{n} {cell} {lo} {hi}");
                    }
                }
            }
        }
        assert!(shape.threads_with(0, 0, Interval::new(3, 9)).is_empty());
    }
}
