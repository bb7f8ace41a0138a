//! Tiles that stay on the chip: where all tiles of a grid run at the same time, blocks keep their values from one time
//! block of a launch to the next, and exchange only what others need.
//!
//! ```text
//! store     the rim of the base: cells that other tiles have in their halos
//! publish   the number of time blocks done
//! wait      until the neighbours have published as many
//! load      the halo, from their rims
//! ```
//! Rims lie in two arrays beside those of the values, which exchanges use alternately. Who reads of a tile is waited
//! for by it, too: so nobody still reads a rim when it is written anew two exchanges later.

use super::program::{PIECE, PatchProgram};
use super::shape::{AXES, Along, WARP};
use crate::lattice::{Axis, div_ceil};
use crate::layout::Layout;
use std::collections::BTreeSet;

/// Tiles that a tile waits for, at most: a lane of a warp looks at each.
pub const MOST_NEIGHBOURS: usize = WARP as usize;

/// Time blocks of a launch, at most: enough that its start takes hardly a part of its time.
pub const TIME_BLOCKS: u64 = 64;

/// How tiles that stay exchange what they need of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staying {
    /// Cells from the lower and the upper end of a base that others read, along the axes.
    pub rims: [[i64; 2]; 3],
    /// Whom each tile waits for: whose cells it has in its halo, and who has its own ones. Along the inner axis
    /// fastest.
    pub neighbours: Vec<Vec<u32>>,
}

/// What the tiles along an axis need of each other.
struct Line {
    /// The tiles whose cells each tile has, itself among them.
    tiles: Vec<BTreeSet<i64>>,
    rim: [i64; 2],
}

impl Along {
    /// The cells of a tile that are exchanged or its own, counted from its first cell.
    pub fn needed(&self) -> i64 {
        self.halo[0] + self.base + self.halo[1]
    }

    /// The tile whose base has an index along the axis, and the cell's number in this base; `None` beyond the ends of
    /// an axis with so many cells.
    pub fn owner(&self, index: i64, extent: i64) -> Option<[i64; 2]> {
        let index = self.ring.map_or(index, |ring| index.rem_euclid(ring));
        let inside = (0..extent).contains(&index);
        inside.then(|| [index / self.base, index % self.base])
    }

    fn line(&self, extent: i64) -> Line {
        let mut line = Line {
            tiles: vec![BTreeSet::new(); self.tiles as usize],
            rim: [0; 2],
        };
        for (tile, seen) in (0..).zip(&mut line.tiles) {
            let own = self.halo[0]..self.halo[0] + self.base;
            for cell in 0..self.needed() {
                let Some([owner, number]) = self.owner(self.origin(tile) + cell, extent) else {
                    continue;
                };
                seen.insert(owner);
                if cell < own.start {
                    line.rim[1] = line.rim[1].max(self.base - number);
                } else if cell >= own.end {
                    line.rim[0] = line.rim[0].max(number + 1);
                }
            }
        }
        line
    }
}

impl PatchProgram {
    /// Lets tiles stay; they do not where one of them would wait for too many others.
    pub fn stay(&mut self, layout: &Layout) {
        let lines = [0, 1, 2].map(|n| self.along[n].line(layout.extent[AXES[n]]));
        let mut neighbours = vec![BTreeSet::new(); self.tiles() as usize];
        for own in self.places() {
            let seen = |n: usize| lines[n].tiles[own[n] as usize].iter().copied();
            let number = self.tile_number(own);
            for x in seen(0) {
                for y in seen(1) {
                    for z in seen(2) {
                        let other = self.tile_number([x, y, z]);
                        if other != number {
                            neighbours[number].insert(other as u32);
                            neighbours[other].insert(number as u32);
                        }
                    }
                }
            }
        }
        // Whole pieces, as they are stored.
        let piece = |n: usize| match AXES[n] {
            Axis::INNER => PIECE.min(self.shape.patch[2]),
            _ => 1,
        };
        let whole =
            |n: usize, cells: i64| (div_ceil(cells, piece(n)) * piece(n)).min(self.along[n].base);
        let rims = [0, 1, 2].map(|n| lines[n].rim.map(|cells| whole(n, cells)));
        let few = neighbours.iter().all(|all| all.len() <= MOST_NEIGHBOURS);
        self.stays = few.then(|| Staying {
            rims,
            neighbours: neighbours
                .into_iter()
                .map(|all| all.into_iter().collect())
                .collect(),
        });
    }

    /// All tiles, each by its index along the axes, in the order of their numbers.
    pub(super) fn places(&self) -> impl Iterator<Item = [i64; 3]> + use<> {
        let [xs, ys, zs] = self.along.each_ref().map(|along| along.tiles);
        let plane = move |x| (0..ys).flat_map(move |y| (0..zs).map(move |z| [x, y, z]));
        (0..xs).flat_map(plane)
    }

    /// Steps of a launch, at most.
    pub fn launch_steps(&self) -> u64 {
        match self.stays {
            Some(_) => self.height * TIME_BLOCKS,
            None => self.height,
        }
    }

    /// How often tiles exchange in a launch of so many steps.
    pub fn exchanges(&self, steps: u64) -> u64 {
        match self.stays {
            Some(_) => steps.div_ceil(self.height).saturating_sub(1),
            None => 0,
        }
    }
}

impl Staying {
    /// Words of the table of neighbours for each tile.
    pub fn width(&self) -> usize {
        self.neighbours
            .iter()
            .map(Vec::len)
            .max()
            .unwrap_or(0)
            .max(1)
    }

    /// The neighbours of all tiles, for each as many words; a tile itself stands for those that it does not have.
    pub fn table(&self) -> Vec<u32> {
        let width = self.width();
        let of = |(tile, all): (u32, &Vec<u32>)| {
            let mut words = all.clone();
            words.resize(width, tile);
            words
        };
        (0..).zip(&self.neighbours).flat_map(of).collect()
    }
}
