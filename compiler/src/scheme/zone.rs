//! Zones: parts of the grid in which updates do more than elsewhere, and keep state.

use super::{Body, Value};
use crate::distinct::distinct;
use crate::lattice::{Axis, Interval, PerAxis, Region};
use std::fmt;

/// The most zones of a scheme.
pub const MOST_ZONES: usize = 32;

/// A part of the grid, such as an absorbing layer: some boxes of cell indices that have no cell in common. A value
/// belongs to the zone by its cell index, wherever in its cell it lies.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    pub name: String,
    pub boxes: Vec<Region>,
}

/// Values that one amendment keeps from step to step, each at its own place: nothing else reads them. They start at 0
/// and exist in their zone only.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub name: String,
    pub position: crate::lattice::Position,
    pub zone: ZoneId,
}

/// The part of an update that acts in a zone: it turns the value of the update so far into another one, and advances
/// states.
#[derive(Clone, Debug, PartialEq)]
pub struct Amendment {
    pub zone: ZoneId,
    /// May read the value so far (`Op::Base`) and states of this amendment (`Op::State`). Its result is the new value.
    pub body: Body,
    pub advances: Vec<StateAdvance>,
}

/// The new value of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateAdvance {
    pub state: StateId,
    pub value: Value,
}

/// A zone of a scheme, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub u32);

/// A state of a scheme, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u32);

impl ZoneId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl StateId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ZoneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "z{}", self.0)
    }
}

impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}", self.0)
    }
}

/// A set of zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneSet(pub u32);

impl ZoneSet {
    pub fn of(zone: ZoneId) -> ZoneSet {
        ZoneSet(1 << zone.0)
    }

    pub fn contains(self, zone: ZoneId) -> bool {
        self.0 >> zone.0 & 1 == 1
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn union(self, other: ZoneSet) -> ZoneSet {
        ZoneSet(self.0 | other.0)
    }

    pub fn intersect(self, other: ZoneSet) -> ZoneSet {
        ZoneSet(self.0 & other.0)
    }

    pub fn without(self, other: ZoneSet) -> ZoneSet {
        ZoneSet(self.0 & !other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = ZoneId> {
        (0..MOST_ZONES as u32)
            .map(ZoneId)
            .filter(move |z| self.contains(*z))
    }
}

impl Zone {
    pub fn contains(&self, at: PerAxis<i64>) -> bool {
        self.boxes.iter().any(|b| b.contains(at))
    }

    /// Cells.
    pub fn volume(&self) -> u64 {
        self.boxes.iter().map(Region::volume).sum()
    }
}

/// The grid cut at the ends of all boxes of all zones: within a part, zones are the same everywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneMap {
    /// Per axis where parts begin, in ascending order; the first one begins below all indices.
    cuts: PerAxis<Vec<i64>>,
    /// The zones of each part, with parts of the inner axis next to each other.
    sets: Vec<ZoneSet>,
}

impl ZoneMap {
    pub fn new(zones: &[Zone]) -> ZoneMap {
        let boxes = || zones.iter().flat_map(|z| &z.boxes);
        let cuts = PerAxis::from_fn(|axis| {
            let ends = boxes().flat_map(|b| [b[axis].lo, b[axis].hi]);
            distinct(ends.chain([i64::MIN]))
        });
        let mut sets = Vec::new();
        for &x in &cuts[Axis::OUTER] {
            for &y in &cuts[Axis::MIDDLE] {
                for &z in &cuts[Axis::INNER] {
                    let mut set = ZoneSet::default();
                    for (i, zone) in zones.iter().enumerate() {
                        if zone.contains(PerAxis([x, y, z])) {
                            set = set.union(ZoneSet::of(ZoneId(i as u32)));
                        }
                    }
                    sets.push(set);
                }
            }
        }
        ZoneMap { cuts, sets }
    }

    /// The sets that occur, the empty one left out.
    pub fn occurring(&self) -> Vec<ZoneSet> {
        let sets = self.sets.iter().copied();
        distinct(sets.filter(|set| !set.is_empty()))
    }

    /// The part of an axis in which an index lies.
    pub fn part(&self, axis: Axis, i: i64) -> usize {
        self.cuts[axis]
            .partition_point(|&cut| cut <= i)
            .saturating_sub(1)
    }

    /// The parts of an axis that a range meets, with the piece of the range in each.
    pub fn parts(
        &self,
        axis: Axis,
        range: Interval,
    ) -> impl Iterator<Item = (usize, Interval)> + '_ {
        let cuts = &self.cuts[axis];
        let first = self.part(axis, range.lo);
        (first..cuts.len()).map_while(move |i| {
            let end = cuts.get(i + 1).copied().unwrap_or(i64::MAX);
            let own = Interval::new(range.lo.max(cuts[i]), range.hi.min(end));
            (own.lo < own.hi).then_some((i, own))
        })
    }

    /// The zones where a part of each axis meet.
    pub fn at_parts(&self, [x, y, z]: [usize; 3]) -> ZoneSet {
        let [ny, nz] = [Axis::MIDDLE, Axis::INNER].map(|a| self.cuts[a].len());
        self.sets[(x * ny + y) * nz + z]
    }

    /// The zones of a cell index.
    pub fn at(&self, at: PerAxis<i64>) -> ZoneSet {
        self.at_parts(Axis::ALL.map(|a| self.part(a, at[a])))
    }

    /// Whether no zone has a cell in a region.
    pub fn is_bare(&self, region: Region) -> bool {
        let span =
            |axis: Axis| self.part(axis, region[axis].lo)..=self.part(axis, region[axis].hi - 1);
        let mut parts = span(Axis::OUTER)
            .flat_map(|x| span(Axis::MIDDLE).map(move |y| (x, y)))
            .flat_map(|(x, y)| span(Axis::INNER).map(move |z| [x, y, z]));
        region.is_empty() || parts.all(|part| self.at_parts(part).is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(x: [i64; 2], y: [i64; 2], z: [i64; 2]) -> Region {
        PerAxis([x, y, z].map(|[lo, hi]| Interval::new(lo, hi)))
    }

    fn zone(boxes: Vec<Region>) -> Zone {
        Zone {
            name: String::new(),
            boxes,
        }
    }

    #[test]
    fn maps_know_the_zones_of_each_cell() {
        let zones = [
            zone(vec![
                boxed([0, 3], [0, 9], [0, 9]),
                boxed([7, 9], [0, 9], [0, 9]),
            ]),
            zone(vec![boxed([2, 5], [4, 6], [0, 1])]),
        ];
        let map = ZoneMap::new(&zones);
        for x in -1..10 {
            for y in -1..10 {
                for z in -1..10 {
                    let at = PerAxis([x, y, z]);
                    let expected = zones
                        .iter()
                        .enumerate()
                        .fold(0, |set, (i, zone)| set | u32::from(zone.contains(at)) << i);
                    assert_eq!(map.at(at), ZoneSet(expected), "{at:?}");
                    let cell = boxed([x, x + 1], [y, y + 1], [z, z + 1]);
                    assert_eq!(map.is_bare(cell), expected == 0, "{at:?}");
                }
            }
        }
        assert_eq!(map.occurring(), [ZoneSet(1), ZoneSet(2), ZoneSet(3)]);
        assert!(map.is_bare(boxed([3, 7], [6, 20], [-5, 50])));
        assert!(!map.is_bare(boxed([3, 8], [6, 20], [-5, 50])));
    }

    #[test]
    fn parts_of_a_range_follow_each_other() {
        let map = ZoneMap::new(&[zone(vec![boxed([2, 5], [0, 1], [0, 1])])]);
        let parts: Vec<_> = map.parts(Axis::OUTER, Interval::new(1, 9)).collect();
        let ranges = [(1, 2), (2, 5), (5, 9)].map(|(lo, hi)| Interval::new(lo, hi));
        assert_eq!(parts, [0, 1, 2].into_iter().zip(ranges).collect::<Vec<_>>());
        assert_eq!(map.parts(Axis::OUTER, Interval::new(3, 3)).count(), 0);
    }
}
