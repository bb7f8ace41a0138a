//! Rooms: memory of a tile's own for the states of its cells.
//!
//! A tile computes the states of its halo redundantly, as it does values. Its room has all states of all its cells, so
//! that a thread finds the states of its patch at constant distances, and no other thread ever accesses them.

use super::shape::{AXES, Along, Shape};
use crate::lattice::{Interval, div_ceil};
use crate::layout::Layout;
use crate::scheme::{Scheme, Update, ZoneSet};

/// The approximate number of values that a thread has in registers beside the values of its patch, where updates are
/// amended.
pub const AMENDED: usize = 8;

/// Bytes of the cells of a patch that are amended together, approximately: as many as hide most of the latency of a
/// load.
pub const TOGETHER: i64 = 32;

/// Which tiles have rooms: tiles with cells of zones in which updates are amended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rooms {
    /// The room of each tile that has one, along the inner axis fastest; empty where no update is amended.
    pub of_tile: Vec<Option<u32>>,
    /// Rooms of all tiles.
    pub count: u32,
    /// States of a cell.
    pub states: usize,
}

impl Along {
    /// Whether a tile has cells in an interval of indices, around a ring in any turn.
    pub(super) fn meets(&self, tile: i64, own: Interval) -> bool {
        let first = self.origin(tile);
        let cells = Interval::new(first, first + self.needed());
        match self.ring {
            None => !cells.intersect(own).is_empty(),
            Some(ring) => {
                let first = div_ceil(cells.lo - own.hi + 1, ring);
                let last = (cells.hi - 1 - own.lo).div_euclid(ring);
                !own.is_empty() && first <= last
            }
        }
    }
}

impl Rooms {
    pub(super) fn new(scheme: &Scheme, layout: &Layout, along: &[Along; 3]) -> Rooms {
        let zones = amended(scheme);
        if zones.is_empty() {
            return Rooms::default();
        }
        let [outer, middle, inner] = along.each_ref().map(|along| along.tiles);
        let mut has = vec![false; (outer * middle * inner) as usize];
        for own in zones
            .iter()
            .flat_map(|zone| &layout.zones[zone.index()].boxes)
        {
            let meeting = |n: usize| {
                let tiles = 0..along[n].tiles;
                tiles.filter(move |tile| along[n].meets(*tile, own.region[AXES[n]]))
            };
            let [ys, zs] = [1, 2].map(|n| meeting(n).collect::<Vec<i64>>());
            for x in meeting(0) {
                for y in &ys {
                    let first = (x * middle + y) * inner;
                    zs.iter().for_each(|z| has[(first + z) as usize] = true);
                }
            }
        }
        let mut count = 0;
        let number = |has: bool| {
            has.then(|| {
                count += 1;
                count - 1
            })
        };
        let of_tile = has.into_iter().map(number).collect();
        Rooms {
            of_tile,
            count,
            states: scheme.states.len(),
        }
    }

    /// Whether some tile has cells in which updates are amended.
    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// Bytes of a room.
    pub fn each(&self, shape: &Shape, element: usize) -> u64 {
        (self.states * shape.count() * element) as u64 * shape.all_threads() as u64
    }

    /// Bytes of all rooms.
    pub fn bytes(&self, shape: &Shape, element: usize) -> u64 {
        u64::from(self.count) * self.each(shape, element)
    }

    /// For each tile the number of its room, or -1.
    pub fn table(&self) -> Vec<i32> {
        let number = |room: &Option<u32>| room.map_or(-1, |n| n as i32);
        self.of_tile.iter().map(number).collect()
    }
}

/// The zones in which updates that act somewhere are amended.
pub(super) fn amended(scheme: &Scheme) -> ZoneSet {
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    let zones = updates.filter(acts).map(|update| update.zones());
    zones.fold(ZoneSet::default(), ZoneSet::union)
}

/// Whether an update acts anywhere.
pub(super) fn acts(update: &&Update) -> bool {
    !update.region.is_empty()
}
