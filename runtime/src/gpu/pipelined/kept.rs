//! Planes that a pass over files has more than once, and that memory of the host keeps in between: each plane is read
//! from one file once, and written to the other one once.

use super::chain::Locked;
use super::ends::{End, Ends, split};
use super::planes::Part;
use super::seam::SeamPlanes;
use crate::gpu::device::DeviceError;
use crate::gpu::queues::Queues;
use torre_compiler::lattice::Interval;
use torre_compiler::pipeline::Slab;

/// Planes that are kept.
pub(super) enum KeptPlanes<'a> {
    /// Around a periodic first axis.
    Seam(SeamPlanes<'a>),
    Slabs(SlabPlanes<'a>),
}

/// Planes that several overlapped slabs load, from when the first one of them does until the last one has. They go
/// around in memory.
pub(super) struct SlabPlanes<'a> {
    memory: Locked<'a>,
    order: SlabOrder,
    /// Bytes of a plane.
    each: i64,
}

/// The planes that slabs of a pass load, in their order.
#[derive(Clone, Debug)]
struct SlabOrder {
    way: i64,
    /// Planes of the memory.
    places: i64,
    /// The number of the first slab.
    first: u64,
    /// Per slab, below which plane all planes are new: no slab before has loaded any.
    new_below: Vec<i64>,
    /// Per slab, below which plane planes are that later slabs load.
    kept_below: Vec<i64>,
}

impl SlabOrder {
    fn new(way: i64, first: u64, slabs: &[Slab]) -> SlabOrder {
        let mut lowest = i64::MAX;
        let new_below = slabs.iter().map(|slab| {
            let before = lowest;
            lowest = lowest.min(slab.loaded.lo);
            before
        });
        let new_below: Vec<i64> = new_below.collect();
        let mut highest = i64::MIN;
        let kept_below = slabs.iter().rev().map(|slab| {
            let later = highest;
            highest = highest.max(slab.loaded.hi);
            later
        });
        let mut kept_below: Vec<i64> = kept_below.collect();
        kept_below.reverse();
        let lowest = new_below.iter().skip(1);
        let most = lowest.zip(&kept_below).map(|(lo, hi)| hi - lo).max();
        SlabOrder {
            way,
            places: most.unwrap_or(0).max(1),
            first,
            new_below,
            kept_below,
        }
    }

    fn bounds(&self, slab: u64) -> [i64; 2] {
        let index = slab.saturating_sub(self.first) as usize;
        let of = |bounds: &[i64]| bounds.get(index).copied().unwrap_or(i64::MIN);
        [of(&self.new_below), of(&self.kept_below)]
    }

    /// Planes along the way as the array counts them, or the other way round.
    fn along(&self, planes: Interval) -> Interval {
        match self.way < 0 {
            true => Interval::new(1 - planes.hi, 1 - planes.lo),
            false => planes,
        }
    }

    /// Planes along the way in parts each of which comes from one place, and lies at one.
    fn parts(&self, slab: u64, planes: Interval) -> Vec<Interval> {
        let own = self.along(planes);
        let rounds = own.lo.div_euclid(self.places)..=own.hi.div_euclid(self.places);
        let rounds = rounds.map(|round| {
            let plane = round * self.places;
            if self.way < 0 { 1 - plane } else { plane }
        });
        split(planes, rounds.chain(self.bounds(slab)).collect())
    }

    /// From where planes of a part are loaded. The memory is one.
    fn loaded(&self, slab: u64, part: Interval) -> Ends<()> {
        let [new_below, kept_below] = self.bounds(slab);
        match part.lo < new_below {
            true => Ends {
                end: End::Outside,
                also_keep: (part.lo < kept_below).then_some(()),
            },
            false => Ends::kept(()),
        }
    }

    /// Where planes that the array counts lie in memory.
    fn place(&self, planes: Interval) -> i64 {
        planes.lo.rem_euclid(self.places)
    }
}

impl<'a> SlabPlanes<'a> {
    /// For passes whose slabs have no more planes in common than `slabs`.
    pub fn new(
        device: &'a dyn Queues,
        way: i64,
        each: u64,
        slabs: &[Slab],
    ) -> Result<SlabPlanes<'a>, DeviceError> {
        let order = SlabOrder::new(way, 0, slabs);
        Ok(SlabPlanes {
            memory: Locked::new(device, order.places as u64 * each)?,
            order,
            each: each as i64,
        })
    }

    /// Where a part of the array lies.
    fn at(&self, part: Part) -> *mut u8 {
        self.memory
            .at((self.order.place(part.planes) * self.each) as usize)
    }

    /// Begins a pass whose first slab has some number.
    pub fn begin(&mut self, first: u64, slabs: &[Slab]) {
        self.order = SlabOrder {
            places: self.order.places,
            ..SlabOrder::new(self.order.way, first, slabs)
        };
    }
}

impl KeptPlanes<'_> {
    pub fn is_locked(&self) -> bool {
        match self {
            KeptPlanes::Seam(seam) => seam.is_locked(),
            KeptPlanes::Slabs(slabs) => slabs.memory.is_locked(),
        }
    }

    /// Planes along the way in parts each of which comes from one place, and goes to one.
    pub fn parts(&self, pass: u64, planes: Interval) -> Vec<Interval> {
        match self {
            KeptPlanes::Seam(seam) => seam.parts(pass, planes),
            KeptPlanes::Slabs(slabs) => slabs.order.parts(pass, planes),
        }
    }

    /// From where the planes `planes` of a pass are loaded, of which a part of the array is copied.
    pub fn loaded(&self, pass: u64, planes: Interval, part: Part) -> Ends<*mut u8> {
        match self {
            KeptPlanes::Seam(seam) => seam.places(pass, seam.loaded(pass, planes), part),
            KeptPlanes::Slabs(slabs) => {
                let ends = slabs.order.loaded(pass, planes);
                ends.map(|()| slabs.at(part))
            }
        }
    }

    /// Where the planes `planes` of a pass are stored, of which a part of the array is copied.
    pub fn stored(&self, pass: u64, planes: Interval, part: Part) -> Ends<*mut u8> {
        match self {
            KeptPlanes::Seam(seam) => seam.places(pass, seam.stored(pass, planes), part),
            // Bases go to the other file.
            KeptPlanes::Slabs(_) => Ends::OUTSIDE,
        }
    }

    /// From plane 0 of the first pass of a chain to some planes, as arrays have them, in bytes, where passes give
    /// planes to each other around a ring.
    pub fn offset(&self, pass: u64, part: Part) -> Option<i64> {
        match self {
            KeptPlanes::Seam(seam) => Some(seam.offset(pass, part)),
            KeptPlanes::Slabs(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Each plane is new once, and where slabs look for it afterwards.
    #[test]
    fn slabs_find_what_others_have_loaded() {
        for (base, halo) in [(10, 3), (10, 9), (7, 7), (25, 0), (40, 5)] {
            for way in [1, -1] {
                let slab = |number: i64| {
                    let (lo, hi) = (100 - (number + 1) * base, 100 - number * base);
                    Slab {
                        pass: 0,
                        work: Default::default(),
                        needed: Vec::new(),
                        base: Interval::new(lo.max(-2), hi),
                        loaded: Interval::new((lo - halo).max(-2), (hi + halo).min(100)),
                        held: Interval::default(),
                    }
                };
                let count = 102 / base + i64::from(102 % base > 0);
                let slabs: Vec<Slab> = (0..count).map(slab).collect();
                let order = SlabOrder::new(way, 5, &slabs);
                assert!(order.places <= (2 * halo).max(1));
                let mut memory = BTreeMap::new();
                let mut next = 100;
                for (number, slab) in (5..).zip(&slabs) {
                    for part in order.parts(number, slab.loaded).into_iter().rev() {
                        let ends = order.loaded(number, part);
                        let first = order.place(order.along(part));
                        for plane in (part.lo..part.hi).rev() {
                            let own = order.along(Interval::new(plane, plane + 1));
                            let place = first + own.lo - order.along(part).lo;
                            if ends.end == End::Kept(()) {
                                assert_eq!(memory.get(&place), Some(&plane));
                            } else {
                                assert_eq!(plane, next - 1);
                                next = plane;
                            }
                            if ends.also_keep.is_some() {
                                assert!((0..order.places).contains(&place));
                                memory.insert(place, plane);
                            }
                        }
                    }
                }
                assert_eq!(next, -2);
            }
        }
    }
}
