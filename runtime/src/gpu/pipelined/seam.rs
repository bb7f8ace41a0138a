//! The planes that passes over files around a periodic first axis keep: planes that the seam passes are in memory of
//! the host from when a pass stores them for the first time, or has loaded them if it does not store them then, until
//! it loads them once more. So each plane comes to a pass once, from a file or from the pass before, and leaves it
//! once.
//!
//! A pass begins below the planes that the one before has twice, so planes come to it in the order in which they leave
//! that one, but for a few: the lowest planes of the one before, which it only reads. They are the first to leave it,
//! as planes once around the ring higher, and the last to come to the next pass. That takes them from the memory of the
//! pass before, which keeps them until the chain ends.

use super::chain::Locked;
use super::ends::{End, Ends, split};
use super::planes::Part;
use super::stream::Pieces;
use crate::gpu::device::DeviceError;
use crate::gpu::queues::Queues;
use torre_compiler::lattice::Interval;
use torre_compiler::pipeline::RingPart;

/// The part of the ring that a pass has, and by how many planes the planes of the first pass of its chain with the same
/// index lie higher.
#[derive(Clone, Copy, Debug)]
struct RingPass {
    ring_part: RingPart,
    below: i64,
}

/// The passes of a chain around a ring, by their number in the chain.
#[derive(Clone, Debug)]
pub(super) struct RingPasses {
    ring: i64,
    way: i64,
    all: Vec<RingPass>,
}

impl RingPasses {
    fn new(ring: i64, way: i64, ring_parts: &[RingPart]) -> RingPasses {
        let mut below = 0;
        let pass = |ring_part: &RingPart| {
            let own = below;
            below += ring_part.drift(ring);
            RingPass {
                ring_part: *ring_part,
                below: own,
            }
        };
        RingPasses {
            ring,
            way,
            all: ring_parts.iter().map(pass).collect(),
        }
    }

    fn ring_part(&self, pass: usize) -> RingPart {
        self.all[pass].ring_part
    }

    /// Below which plane a pass has all planes for the second time.
    fn again(&self, pass: usize) -> i64 {
        self.ring_part(pass).loaded.hi - self.ring
    }

    /// Below which plane a pass has no planes that come to it in the order in which they leave the one before.
    fn in_order(&self, pass: usize) -> i64 {
        let before = pass.checked_sub(1).map(|before| self.ring_part(before));
        let more = before.map_or(0, |before| before.stored.lo - before.loaded.lo);
        self.again(pass) + more
    }

    /// Planes along the way in parts each of which comes from one place, and goes to one.
    fn parts(&self, pass: usize, planes: Interval) -> Vec<Interval> {
        let RingPart { loaded, stored } = self.ring_part(pass);
        let ends = [
            self.again(pass),
            self.in_order(pass),
            loaded.lo + self.ring,
            stored.lo + self.ring,
            stored.hi,
        ];
        split(planes, ends.to_vec())
    }

    /// Whether a plane comes back later, or has come back.
    fn comes_back(&self, pass: usize, plane: i64) -> bool {
        plane >= self.ring_part(pass).loaded.lo + self.ring
    }

    /// From where planes of a part are loaded. They go to memory, too, if they come back and are not stored before.
    fn loaded(&self, pass: usize, part: Interval) -> Ends<usize> {
        let kept = match part.lo {
            lo if lo < self.again(pass) => Some(pass),
            lo if lo < self.in_order(pass) => pass.checked_sub(1),
            _ => None,
        };
        let stored = part.lo < self.ring_part(pass).stored.hi;
        Ends {
            end: kept.map_or(End::Outside, End::Kept),
            also_keep: (self.comes_back(pass, part.lo) && !stored).then_some(pass),
        }
    }

    /// Where planes of a part are stored. Planes that come back and are stored once more go to memory alone; the others
    /// leave the pass for the last time.
    fn stored(&self, pass: usize, part: Interval) -> Ends<usize> {
        match part.lo < self.ring_part(pass).stored.lo + self.ring {
            true => Ends {
                end: End::Outside,
                also_keep: self.comes_back(pass, part.lo).then_some(pass),
            },
            false => Ends::kept(pass),
        }
    }

    /// The planes of the memory of a pass that some of its planes are, as the array counts them; or planes of the next
    /// pass.
    fn kept(&self, pass: usize, of: usize, planes: Interval) -> Interval {
        let RingPass { ring_part, below } = self.all[pass];
        // Along the way.
        let lo = match self.way < 0 {
            true => 1 - planes.hi,
            false => planes.lo,
        };
        let lo = lo - (self.all[of].below - below) - ring_part.loaded.lo;
        // Once around the ring they lie at the same place.
        let own = lo.rem_euclid(self.ring);
        let first = match self.way < 0 {
            true => ring_part.drift(self.ring) - own - planes.len(),
            false => own,
        };
        Interval::new(first, first + planes.len())
    }

    /// Planes of a pass, as the array counts them, in terms of the planes of the first pass.
    fn of_first(&self, pass: usize, plane: i64) -> i64 {
        plane - self.way.signum() * self.all[pass].below
    }
}

/// The memory of passes that go over files together around a ring.
pub(super) struct SeamPlanes<'a> {
    /// Of each pass.
    memories: Vec<Locked<'a>>,
    /// Bytes of a plane.
    each: i64,
    passes: RingPasses,
    /// The number of the first pass.
    first: u64,
}

impl<'a> SeamPlanes<'a> {
    /// For `passes` passes at a time, none of which has more planes of the ring than `ring_part`.
    pub fn new(
        device: &'a dyn Queues,
        way: i64,
        ring: i64,
        each: u64,
        ring_part: RingPart,
        passes: usize,
    ) -> Result<SeamPlanes<'a>, DeviceError> {
        let bytes = ring_part.drift(ring).max(0) as u64 * each;
        let memories = (0..passes.max(1)).map(|_| Locked::new(device, bytes));
        Ok(SeamPlanes {
            memories: memories.collect::<Result<_, _>>()?,
            each: each as i64,
            passes: RingPasses::new(ring, way, &[ring_part]),
            first: 0,
        })
    }

    /// Begins with the pass of some number, and others after it.
    pub fn begin(&mut self, first: u64, ring_parts: &[RingPart]) {
        self.first = first;
        self.passes = RingPasses::new(self.passes.ring, self.passes.way, ring_parts);
    }

    pub fn is_locked(&self) -> bool {
        self.memories.iter().all(Locked::is_locked)
    }

    fn index(&self, pass: u64) -> usize {
        let last = self.passes.all.len().max(1) - 1;
        (pass.saturating_sub(self.first) as usize).min(last)
    }

    /// Planes along the way in parts each of which comes from one place, and goes to one.
    pub fn parts(&self, pass: u64, planes: Interval) -> Vec<Interval> {
        self.passes.parts(self.index(pass), planes)
    }

    /// From where planes of a part are loaded, with memory by the number of its pass in the chain.
    pub fn loaded(&self, pass: u64, part: Interval) -> Ends<usize> {
        self.passes.loaded(self.index(pass), part)
    }

    /// Where planes of a part are stored.
    pub fn stored(&self, pass: u64, part: Interval) -> Ends<usize> {
        self.passes.stored(self.index(pass), part)
    }

    /// The places of a part of the array in the memories of its ends.
    pub fn places(&self, pass: u64, ends: Ends<usize>, part: Part) -> Ends<*mut u8> {
        let own = self.index(pass);
        ends.map(|of| {
            let kept = self.passes.kept(of, own, part.planes);
            self.memories[of].at((kept.lo * self.each) as usize)
        })
    }

    /// From plane 0 of the first pass to some planes of a pass, as arrays have them, in bytes.
    pub fn offset(&self, pass: u64, part: Part) -> i64 {
        let pass = self.index(pass);
        self.passes.of_first(pass, part.planes.lo) * self.each
    }

    /// The pieces of the passes, which take all bytes of the ring once: the pieces that the first pass reads, and the
    /// pieces that the last one writes.
    pub fn pieces(&self, whole: &Pieces) -> [Pieces; 2] {
        let RingPasses {
            ring,
            way,
            all: passes,
        } = &self.passes;
        let last = passes.len().max(1) - 1;
        // The plane above the first one along the way.
        let first = passes[0].ring_part.loaded.hi;
        let ends = [first, passes[last].ring_part.stored.lo - passes[last].below];
        ends.map(|end| {
            let plane = if *way < 0 { 1 - end } else { end };
            let cut = plane.rem_euclid(*ring) * self.each;
            Pieces {
                cut: whole.range.start + cut as u64,
                ..whole.clone()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::iter::once;

    /// By place in memory or by plane of the array: a plane of the array, and the passes that have stored it.
    type Kept = BTreeMap<i64, (i64, usize)>;

    /// Goes through the passes of a chain plane by plane, each with planes of a window between loads and stores.
    fn go(of: &RingPasses, ring_parts: &[RingPart]) {
        let ring = of.ring;
        let mut memories: Vec<Kept> = vec![Kept::new(); ring_parts.len()];
        let mut between: Kept = (0..ring).map(|plane| (plane, (plane, 0))).collect();
        let mut left: Vec<i64> = Vec::new();
        for (pass, ring_part) in ring_parts.iter().enumerate() {
            let counted = |plane: i64| match of.way < 0 {
                true => Interval::new(-plane, 1 - plane),
                false => Interval::new(plane, plane + 1),
            };
            let in_array = |plane: i64| of.of_first(pass, counted(plane).lo).rem_euclid(ring);
            let (mut leaves, mut comes) = (Vec::new(), Vec::new());
            let mut given = Kept::new();
            let mut stores = (ring_part.stored.lo..ring_part.stored.hi).rev().peekable();
            for plane in (ring_part.loaded.lo..ring_part.loaded.hi)
                .rev()
                .chain(once(i64::MIN))
            {
                while let Some(store) = stores.next_if(|store| *store > plane.saturating_add(7)) {
                    let value = (in_array(store), pass + 1);
                    let ends = of.stored(pass, Interval::new(store, store + 1));
                    if ends.end != End::Outside || ends.also_keep.is_some() {
                        let place = of.kept(pass, pass, counted(store)).lo;
                        assert!((0..ring_part.drift(ring)).contains(&place));
                        memories[pass].insert(place, value);
                    }
                    if ends.end == End::Outside {
                        assert!(given.insert(value.0, value).is_none());
                        leaves.push(value.0);
                    }
                }
                if plane == i64::MIN {
                    break;
                }
                let ends = of.loaded(pass, Interval::new(plane, plane + 1));
                let place = |memory: usize| of.kept(memory, pass, counted(plane)).lo;
                let found = match ends.end {
                    End::Kept(memory) => memories[memory].get(&place(memory)).copied(),
                    End::Outside => {
                        comes.push(in_array(plane));
                        between.remove(&in_array(plane))
                    }
                };
                let again =
                    plane < ring_part.loaded.hi - ring && plane + ring < ring_part.stored.hi;
                let right = (in_array(plane), pass + usize::from(again));
                assert_eq!(found, Some(right), "plane {plane} of pass {pass}");
                if ends.also_keep.is_some() {
                    memories[pass].insert(place(pass), right);
                }
            }
            assert_eq!(given.len() as i64, ring);
            // The planes that the pass before has given come in that order, except the first ones.
            let few = left.len() - if pass == 0 { 0 } else { comes.len() };
            assert_eq!(left[few..], comes[..left.len() - few]);
            assert!(few < 4);
            (left, between) = (leaves, given);
        }
    }

    /// Each plane comes to a pass once and leaves it once; in between all planes are where they are looked for.
    #[test]
    fn planes_come_once_and_leave_once() {
        let ring_part = |drift: i64, reach: i64, top: i64| RingPart {
            loaded: Interval::new(top - 60 - drift, top),
            stored: Interval::new(top - 60 - drift + reach, top - reach + 1),
        };
        for way in [1, -1] {
            for ring_parts in [
                vec![ring_part(11, 2, 5)],
                vec![ring_part(11, 2, 5); 3],
                vec![ring_part(14, 3, 7), ring_part(14, 3, 7), ring_part(9, 3, 7)],
            ] {
                go(&RingPasses::new(60, way, &ring_parts), &ring_parts);
            }
        }
    }
}
