//! What a pass around a periodic first axis goes over files with: planes that the seam passes are in memory of the host
//! from when they are stored for the first time, or have been loaded if they are not stored then, until they are loaded
//! once more. So each plane is read from one file once, and written to the other one once.

use super::chain::Locked;
use super::planes::Part;
use super::stream::Pieces;
use crate::gpu::device::DeviceError;
use crate::gpu::queues::Queues;
use torre_compiler::lattice::Interval;
use torre_compiler::pipeline::Around;

/// Planes of a pass that come back.
#[derive(Debug)]
pub(super) struct SeamPlanes {
    memory: Locked,
    way: i64,
    /// Planes of the ring, and bytes of each.
    ring: i64,
    each: i64,
    /// What the pass that runs has of the ring.
    around: Around,
}

/// Where planes come from, or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub file: bool,
    pub memory: bool,
}

impl SeamPlanes {
    /// For passes that have no more planes of the ring than one.
    pub fn new(
        device: &dyn Queues,
        way: i64,
        ring: i64,
        each: u64,
        around: Around,
    ) -> Result<SeamPlanes, DeviceError> {
        let bytes = around.drift(ring).max(0) as u64 * each;
        Ok(SeamPlanes {
            memory: Locked::new(device, bytes)?,
            way,
            ring,
            each: each as i64,
            around,
        })
    }

    /// Begins a pass.
    pub fn begin(&mut self, around: Around) {
        self.around = around;
    }

    pub fn is_locked(&self) -> bool {
        self.memory.is_locked()
    }

    pub fn give_back(&self, device: &dyn Queues) {
        self.memory.give_back(device);
    }

    /// Planes along the way in parts each of which comes from one place, and goes to one.
    pub fn parts(&self, planes: Interval) -> Vec<Interval> {
        let Around { loaded, stored } = self.around;
        let mut ends = [
            loaded.hi - self.ring,
            loaded.lo + self.ring,
            stored.lo + self.ring,
            stored.hi,
            planes.hi,
        ];
        ends.sort_unstable();
        let mut from = planes.lo;
        let mut parts = Vec::new();
        for end in ends.map(|end| end.clamp(planes.lo, planes.hi)) {
            if from < end {
                parts.push(Interval::new(from, end));
                from = end;
            }
        }
        parts
    }

    /// Whether a plane comes back later, or has come back.
    fn comes_back(&self, plane: i64) -> bool {
        plane >= self.around.loaded.lo + self.ring
    }

    /// From where planes of a part are loaded: from one of both. Planes that come from a file go to memory, too, if
    /// they come back and are not stored before.
    pub fn loaded(&self, part: Interval) -> Ends {
        let file = part.lo >= self.around.loaded.hi - self.ring;
        Ends {
            file,
            memory: !file || self.comes_back(part.lo) && part.lo >= self.around.stored.hi,
        }
    }

    /// Where planes of a part are stored: in a file for the last time.
    pub fn stored(&self, part: Interval) -> Ends {
        Ends {
            file: part.lo < self.around.stored.lo + self.ring,
            memory: self.comes_back(part.lo),
        }
    }

    /// Where planes as the array counts them lie in memory.
    pub fn at(&self, part: Part) -> *mut u8 {
        let Part { planes, .. } = part;
        let lowest = self.around.loaded.lo;
        // Once around the ring they lie at the same place.
        let first = match self.way < 0 {
            true => {
                let own = 1 - planes.hi - lowest;
                let count = self.around.drift(self.ring);
                count - own.rem_euclid(self.ring) - planes.len()
            }
            false => (planes.lo - lowest).rem_euclid(self.ring),
        };
        self.memory.at((first * self.each) as usize)
    }

    /// The pieces of a pass, which takes all bytes of the ring once: those that it reads, and those that it writes.
    pub fn pieces(&self, all: &Pieces) -> [Pieces; 2] {
        let Around { loaded, stored } = self.around;
        // The plane above the first one along the way.
        [loaded.hi, stored.lo].map(|end| {
            let plane = if self.way < 0 { 1 - end } else { end };
            let cut = plane.rem_euclid(self.ring) * self.each;
            Pieces {
                cut: all.range.start + cut as u64,
                ..all.clone()
            }
        })
    }
}
