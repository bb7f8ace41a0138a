//! The expected cost of amendments in zones for pyramids, as fitted to 14 shapes of TE waves between layers on an H200.
//!
//! A tile with cells of a zone waits in each stage for its warp that has most of them, so that its time grows by the
//! work of this warp alone, cell by cell of its patches, and by the wait for loads of the cells that are amended
//! together.

use super::layers::{amendments, bytes, share_of};
use torre_compiler::lattice::div_ceil;
use torre_compiler::patch::{AXES, Shape, TOGETHER};
use torre_compiler::scheme::{Op, Scheme, ZoneSet};

/// Cycles from one instruction to the next of a warp for which others wait.
const ALONE: f64 = 4.0;
/// Cycles for which such a warp waits where it amends some cells together.
const LOADED: f64 = 490.0;
/// Seconds in which a tile moves the states of a line of its patches between its room and memory, if the tiles of other
/// blocks run meanwhile.
const MOVED_BESIDE: f64 = 0.2e-6;
/// The same if all tiles stay on the chip, so that they wait for each other.
const MOVED_STAYING: f64 = 0.8e-6;
/// Instructions of an amended cell beside its arithmetic, loads and stores: conditions and places.
const AROUND: f64 = 6.0;

/// Where tiles are between two time blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// In memory: each time block is a launch.
    Memory,
    /// On the chip: all tiles run at once and exchange their rims.
    Chip,
}

/// The cost of zones for the pyramids of a scheme.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InZones {
    /// Instructions of a cell of a zone in a step.
    instructions: f64,
    /// Bytes of states that are read and written in a time block, for each cell of the grid.
    pub bytes: f64,
    /// Amendments of a step, and bytes of a value.
    amendments: f64,
    element: i64,
    /// Lengths of the boxes of zones along the axes.
    boxes: Vec<[i64; 3]>,
}

impl InZones {
    pub fn new(scheme: &Scheme) -> InZones {
        let mut own = InZones {
            bytes: bytes(scheme)[0],
            element: scheme.precision.bytes() as i64,
            ..InZones::default()
        };
        let mut zones = ZoneSet::default();
        for (update, amendment) in amendments(scheme) {
            own.amendments += 1.0;
            zones = zones.union(ZoneSet::of(amendment.zone));
            let operands = amendment.body.ops.iter();
            let loads = operands.filter(|op| matches!(op, Op::State(_) | Op::Coef(_)));
            let all = amendment.body.arithmetic() + loads.count() + amendment.advances.len();
            own.instructions += share_of(scheme, update, amendment) * (all as f64 + AROUND);
        }
        let whole = scheme.grid.cells;
        let mut share = 0.0;
        for part in zones.iter().flat_map(|zone| &scheme.zone(zone).boxes) {
            let lengths = AXES.map(|a| part[a].len().min(whole[a]));
            let shares = [0, 1, 2].map(|n| lengths[n] as f64 / whole[AXES[n]] as f64);
            share += shares.iter().product::<f64>();
            own.boxes.push(lengths);
        }
        own.instructions /= share.max(1e-9);
        own
    }

    /// Whether updates are amended somewhere.
    pub fn any(&self) -> bool {
        !self.boxes.is_empty()
    }

    /// Share of tiles of some base that have cells of zones.
    pub fn share(&self, shape: &Shape, base: [i64; 3], tiles: [i64; 3]) -> f64 {
        let tile = shape.tile();
        let along = |n: usize, length: i64| {
            let halo = (tile[n] - base[n]).max(0);
            div_ceil(length + halo, base[n].max(1)).clamp(0, tiles[n]) as f64
        };
        let met = |lengths: &[i64; 3]| (0..3).map(|n| along(n, lengths[n])).product::<f64>();
        let all = tiles.iter().product::<i64>().max(1);
        (self.boxes.iter().map(met).sum::<f64>() / all as f64).min(1.0)
    }

    /// Cycles by which a step of such a tile takes longer.
    pub fn cycles(&self, shape: &Shape) -> f64 {
        let [px, py, pz] = shape.patch;
        let together = (TOGETHER / (pz * self.element.max(1))).clamp(1, px * py);
        let groups = self.amendments * div_ceil(px * py, together) as f64;
        ALONE * self.instructions * shape.count() as f64 + LOADED * groups
    }

    /// Seconds in which such a tile takes its states and gives them back, once for each time block.
    pub fn moving(&self, shape: &Shape, between: Between) -> f64 {
        let lines = match self.any() {
            true => 2 * shape.patch[0] * shape.patch[1],
            false => 0,
        };
        let moved = match between {
            Between::Memory => MOVED_BESIDE,
            Between::Chip => MOVED_STAYING,
        };
        moved * lines as f64
    }
}
