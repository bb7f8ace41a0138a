//! Tiles that stay on the chip: where all tiles of a grid run at the same time, blocks keep their values from one time
//! block of a launch to the next, and exchange only values that others need.
//!
//! ```text
//! store     the rim of the base: cells that other tiles have in their halos
//! publish   the number of time blocks done
//! wait      until the neighbours have published as many
//! load      the halo, from their rims
//! ```
//! Rims lie in two arrays beside the arrays of the values; exchanges use the two alternately. A tile waits for the
//! tiles that read its rim, too: so no tile still reads a rim when it is written anew two exchanges later.

use super::program::PatchProgram;
use super::shape::{AXES, Along, WARP};
use crate::lattice::div_ceil;
use crate::layout::Layout;
use std::collections::{BTreeMap, BTreeSet};

/// Tiles that a tile waits for, at most: a lane of a warp looks at each.
pub const MOST_NEIGHBOURS: usize = WARP as usize;

/// Time blocks of a launch, at most: enough that its start takes hardly a part of its time.
pub const TIME_BLOCKS: u64 = 64;

/// How tiles that stay exchange the values that they need of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staying {
    /// For each row, cells from the lower and the upper end of a base that others read, along the axes.
    pub rims: Vec<[[i64; 2]; 3]>,
    /// The same of states, as wide as halos are.
    pub of_states: [[i64; 2]; 3],
    /// The tiles for which each tile waits: tiles whose cells it has in its halo, and tiles that have its cells in
    /// theirs. The inner axis runs fastest.
    pub neighbours: Vec<Vec<u32>>,
}

/// The needs of the tiles along an axis of each other.
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
    /// an axis with `extent` cells.
    pub fn owner(&self, index: i64, extent: i64) -> Option<[i64; 2]> {
        let index = self.ring.map_or(index, |ring| index.rem_euclid(ring));
        let inside = (0..extent).contains(&index);
        inside.then(|| [index / self.base, index % self.base])
    }

    /// With `halo` cells below and above each base.
    fn line(&self, extent: i64, halo: [i64; 2]) -> Line {
        let mut line = Line {
            tiles: vec![BTreeSet::new(); self.tiles as usize],
            rim: [0; 2],
        };
        for (tile, seen) in (0..).zip(&mut line.tiles) {
            let own = self.halo[0]..self.halo[0] + self.base;
            for cell in own.start - halo[0]..own.end + halo[1] {
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
        let line = |n: usize, halo| self.along[n].line(layout.extent[AXES[n]], halo);
        let lines = [0, 1, 2].map(|n| line(n, self.along[n].halo));
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
        // With up to two axes rows exchange cells of the widest halo of all: conditions are the same for all rows then,
        // and take longer than the cells that are moved without need. Blocks that share a multiprocessor, whose threads
        // have half of the registers, were slower by a third with it.
        if !self.three && self.shape.blocks == 1 {
            let rows = self.needs.iter().zip(&self.held);
            let held = rows.filter(|(_, held)| **held);
            let widest = held.fold([[0; 2]; 3], |widest, (row, _)| {
                [0, 1, 2].map(|n| [0, 1].map(|end| row[n][end].max(widest[n][end])))
            });
            let rows = self.needs.iter_mut().zip(&self.held);
            let held = rows.filter(|(_, held)| **held);
            held.for_each(|(row, _)| *row = widest);
        }
        // Whole pieces, as they are stored.
        let whole = |n: usize, cells: i64| {
            let piece = self.shape.piece(n);
            (div_ceil(cells, piece) * piece).min(self.along[n].base)
        };
        let rim = |n: usize, own: &Line| own.rim.map(|cells| whole(n, cells));
        let of_states = [0, 1, 2].map(|n| rim(n, &lines[n]));
        let mut known = BTreeMap::new();
        let mut of_row = |n: usize, halo: [i64; 2]| {
            *known
                .entry((n, halo))
                .or_insert_with(|| rim(n, &line(n, halo)))
        };
        let rows = self.needs.iter();
        let rims = rows.map(|row| [0, 1, 2].map(|n| of_row(n, row[n])));
        let rims = rims.collect();
        let few = neighbours.iter().all(|all| all.len() <= MOST_NEIGHBOURS);
        self.stays = few.then(|| Staying {
            rims,
            of_states,
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

    /// Whether tiles of a scheme with one axis or two stay, and exchange after each round. Tiles with three axes
    /// that publish and store in the same way were not measured.
    pub fn exchanges_each_round(&self) -> bool {
        self.stays.is_some() && !self.three && self.height == self.round
    }

    /// Steps of a launch, at most.
    pub fn launch_steps(&self) -> u64 {
        match self.stays {
            Some(_) => self.height * TIME_BLOCKS,
            None => self.height,
        }
    }

    /// How often tiles exchange in a launch of `steps` steps.
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

    /// The neighbours of all tiles, with the same number of words for each; a tile itself stands for neighbours that it
    /// does not have.
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
