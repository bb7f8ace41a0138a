//! The memory of a program that is run on version numbers.

use super::TileFault;
use crate::lattice::{Axis, PerAxis, Region};
use crate::scheme::{ComponentId, Read, Scheme};

/// Places in memory that are looked at; bounds the time and the memory.
const MOST_PLACES: u64 = 1 << 26;

/// The version at each place in memory, and the tiles that touched it last.
pub struct Memory {
    /// Per component, the first place and the extent of a time level.
    arrays: Vec<(usize, Region)>,
    pub versions: Vec<i64>,
    /// The outermost tile that wrote it last.
    pub writer: Vec<Option<u32>>,
    /// Since then, per first track of a task the last outermost tile that read it.
    pub readers: Vec<Vec<Reader>>,
    /// Per level and place, the tile of that level that loaded and stored it last.
    pub loaded: Vec<Vec<u64>>,
    pub stored: Vec<Vec<u64>>,
}

/// An outermost tile that read a place, and by which read.
#[derive(Clone, Copy)]
pub struct Reader {
    pub tile: u32,
    pub read: Read,
}

impl Memory {
    pub fn new(scheme: &Scheme, levels: usize) -> Result<Memory, Box<TileFault>> {
        let mut arrays = Vec::new();
        let mut places = 0u64;
        for id in scheme.component_ids() {
            let extent = scheme.extent(id);
            arrays.push((places as usize, extent));
            let time_levels = u64::from(scheme.component(id).time_levels);
            places = places.saturating_add(extent.volume().saturating_mul(time_levels));
            if places > MOST_PLACES {
                return Err(Box::new(TileFault::TooLarge));
            }
        }
        let mut versions = Vec::with_capacity(places as usize);
        for (id, (_, extent)) in scheme.component_ids().zip(&arrays) {
            let time_levels = i64::from(scheme.component(id).time_levels);
            for time_level in 0..time_levels {
                // Of the initial versions 0, -1, ... the one with this time level.
                let version = -(-time_level).rem_euclid(time_levels);
                versions.extend((0..extent.volume()).map(|_| version));
            }
        }
        let places = places as usize;
        Ok(Memory {
            arrays,
            versions,
            writer: vec![None; places],
            readers: vec![Vec::new(); places],
            loaded: vec![vec![0; places]; levels],
            stored: vec![vec![0; places]; levels],
        })
    }

    pub fn place(&self, id: ComponentId, time_level: usize, at: PerAxis<i64>) -> usize {
        let (first, extent) = self.arrays[id.index()];
        let volume = extent.volume() as usize;
        let along = Axis::ALL
            .iter()
            .fold(0, |n, &a| n * extent[a].len() + (at[a] - extent[a].lo));
        first + time_level * volume + along as usize
    }
}
