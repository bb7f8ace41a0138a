//! Places in memory, and where the lanes of a warp access one region of it.

use crate::alu::{LANES, Row};

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Global {
        buffer: usize,
        at: usize,
    },
    Shared(usize),
    /// Shared memory of another block of the cluster.
    Peer {
        rank: usize,
        at: usize,
    },
    Local(usize),
    Param(usize),
}

/// A buffer, the block's shared memory or the parameters, and where each active lane accesses it.
pub(crate) struct Region {
    /// The first byte of the region.
    pub(crate) place: Place,
    /// The address of the first byte.
    pub(crate) base: u64,
    pub(crate) offsets: [u32; LANES],
    pub(crate) active: u32,
    /// Bytes that a lane accesses.
    pub(crate) bytes: u32,
    /// Lanes whose place follows the place of the lane before.
    joined: u32,
    /// All active lanes access the same place.
    pub(crate) alike: bool,
}

/// Lanes that follow each other and access places that follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneRun {
    pub(crate) lane: usize,
    pub(crate) lanes: usize,
    pub(crate) at: usize,
}

impl Region {
    /// A place that all active lanes access.
    #[inline(always)]
    pub(crate) fn of_one(place: Place, base: u64, at: u32, active: u32, bytes: u32) -> Region {
        Region {
            place,
            base,
            offsets: [at; LANES],
            active,
            bytes,
            joined: 0,
            alike: true,
        }
    }

    #[inline(always)]
    pub(crate) fn new(place: Place, base: u64, addresses: &Row, active: u32, bytes: u32) -> Region {
        let mut offsets = [0; LANES];
        for (offset, address) in offsets.iter_mut().zip(addresses) {
            *offset = address.wrapping_sub(base) as u32;
        }
        let first = offsets[active.trailing_zeros() as usize % LANES];
        let (mut joined, mut others) = (0, 0);
        for (lane, pair) in offsets.windows(2).enumerate() {
            joined |= u32::from(pair[0].wrapping_add(bytes) == pair[1]) << (lane + 1);
        }
        for (lane, offset) in offsets.iter().enumerate() {
            others |= u32::from(*offset != first) << lane;
        }
        Region {
            place,
            base,
            offsets,
            active,
            bytes,
            joined: joined & active & active << 1,
            alike: others & active == 0,
        }
    }

    /// The lanes in runs, ascending.
    #[inline(always)]
    pub(crate) fn runs(&self) -> impl Iterator<Item = LaneRun> {
        let (mut firsts, joined, offsets) =
            (self.active & !self.joined, self.joined, &self.offsets);
        std::iter::from_fn(move || {
            let lane = firsts.trailing_zeros() as usize;
            firsts &= firsts.wrapping_sub(1);
            let more = |lane: usize| (u64::from(joined) >> (lane + 1)).trailing_ones() as usize;
            (lane < LANES).then(|| LaneRun {
                lane,
                lanes: 1 + more(lane),
                at: offsets[lane] as usize,
            })
        })
    }

    /// The bytes of a run.
    #[inline(always)]
    pub(crate) fn span(&self, run: LaneRun) -> std::ops::Range<usize> {
        run.at..run.at + run.lanes * self.bytes as usize
    }

    /// The bytes of each run, or of the place that all access.
    #[inline(always)]
    pub(crate) fn spans(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let count = if self.alike { 1 } else { LANES };
        let runs = self.runs().take(count);
        runs.map(|run| self.span(run))
    }

    pub(crate) fn address(&self, lane: usize) -> u64 {
        self.base + u64::from(self.offsets[lane])
    }
}
