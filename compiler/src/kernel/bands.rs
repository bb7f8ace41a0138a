//! Bands: short intervals of the inner axis in which a zone lies in every row that it meets, as layers along the inner
//! axis do.
//!
//! Cutting rows there would leave pieces of a vector or two. So rows are not cut at bands: a kernel of a zone in bands
//! takes whole rows, and amends values in the bands only. Values that it reads as the zone's states elsewhere have no
//! meaning.

use super::{Stream, record_width};
use crate::distinct::distinct;
use crate::lattice::{Axis, Interval, PerAxis, Region, div_floor};
use crate::layout::{ALIGNMENT, BoxLayout, Layout};
use crate::scheme::{Scheme, Zone, ZoneId, ZoneSet};

/// Cells of the longest band: longer ones are worth a call of their own.
const LONGEST: i64 = 32;

/// Which zones lie in bands, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bands {
    /// Per zone, from below; empty for a zone at whose ends rows are cut.
    zones: Vec<Vec<Band>>,
    /// Per zone in bands, the cells of the first one.
    first: Vec<Region>,
}

/// An interval of the inner axis in which a zone lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    pub range: Interval,
    /// From the states of a group in the zone's first band to its states in this one, in elements.
    pub distance: i64,
}

/// A part of a row in which the same zones act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandPart {
    pub zones: ZoneSet,
    pub range: Interval,
    /// The numbers of the runs for a kernel of these zones without bands.
    pub records: Vec<i64>,
}

impl BandPart {
    /// Numbers of a run.
    pub fn width(&self, layout: &Layout) -> usize {
        match self.zones.is_empty() {
            true => 2,
            false => record_width(layout),
        }
    }
}

impl Bands {
    pub fn new(scheme: &Scheme, layout: &Layout) -> Bands {
        let zones = (0..scheme.zones.len()).filter(|_| !layout.zones.is_empty());
        let (mut bands, mut first) = (Vec::new(), Vec::new());
        for boxes in zones.map(|zone| in_bands(layout, zone)) {
            first.push(
                boxes
                    .first()
                    .map_or(PerAxis::splat(Interval::default()), |b| b.region),
            );
            let origin = boxes.first().map_or(0, |b| b.origin);
            let band = |b: &BoxLayout| Band {
                range: b.region[Axis::INNER],
                distance: b.origin - origin,
            };
            bands.push(boxes.iter().map(band).collect());
        }
        Bands {
            zones: bands,
            first,
        }
    }

    /// The bands of a zone, from below; none where rows are cut at its ends.
    pub fn of(&self, zone: ZoneId) -> &[Band] {
        self.zones.get(zone.index()).map_or(&[], Vec::as_slice)
    }

    /// The zones of a set that lie in bands.
    pub fn banded(&self, zones: ZoneSet) -> ZoneSet {
        let own = zones.iter().filter(|zone| !self.of(*zone).is_empty());
        own.fold(ZoneSet::default(), |set, zone| set.union(ZoneSet::of(zone)))
    }

    /// The zones of a set that act somewhere in a range.
    fn within(&self, zones: ZoneSet, range: Interval) -> ZoneSet {
        let acts = |zone: &ZoneId| {
            let own = self.of(*zone);
            own.is_empty() || own.iter().any(|b| !b.range.intersect(range).is_empty())
        };
        let own = zones.iter().filter(acts);
        own.fold(ZoneSet::default(), |set, zone| set.union(ZoneSet::of(zone)))
    }

    /// Zones as a map knows them where rows are not cut at bands: zones in bands take all of the inner axis.
    pub(super) fn uncut(&self, zones: &[Zone]) -> Vec<Zone> {
        let mut zones = zones.to_vec();
        for (number, zone) in zones.iter_mut().enumerate() {
            if !self.of(ZoneId(number as u32)).is_empty() {
                let mut all = self.first[number];
                all[Axis::INNER] = Interval::new(i64::MIN, i64::MAX);
                zone.boxes = vec![all];
            }
        }
        zones
    }

    /// The sets of zones that act somewhere in rows of a kernel of `zones`.
    pub fn acting(&self, zones: ZoneSet) -> Vec<ZoneSet> {
        let whole = Interval::new(i64::MIN, i64::MAX);
        distinct(self.cuts(zones, whole).map(|(set, _)| set))
    }

    /// Cuts runs at bands, for code that amends whole rows only.
    pub fn parts(
        &self,
        layout: &Layout,
        zones: ZoneSet,
        range: Interval,
        records: &[i64],
    ) -> Vec<BandPart> {
        let part = |(set, range): (ZoneSet, Interval)| {
            let width = record_width(layout);
            let mut own = Vec::new();
            for record in records.chunks_exact(width) {
                if set.is_empty() {
                    own.extend(&record[..2]);
                    continue;
                }
                let first = own.len();
                own.extend(record);
                for zone in self.banded(set).iter() {
                    let band = self.of(zone).iter().find(|b| b.range.contains(range.lo));
                    let distance = band.map_or(0, |b| b.distance) * layout.element_bytes as i64;
                    own[first + 2 + Stream::Zone(zone).index()] += distance;
                }
            }
            BandPart {
                zones: set,
                range,
                records: own,
            }
        };
        self.cuts(zones, range).map(part).collect()
    }

    /// The parts of a range in which the same ones of some zones act.
    fn cuts(
        &self,
        zones: ZoneSet,
        range: Interval,
    ) -> impl Iterator<Item = (ZoneSet, Interval)> + '_ {
        let ends = zones.iter().flat_map(|zone| self.of(zone));
        let ends = ends.flat_map(|b| [b.range.lo, b.range.hi]);
        let ends = ends.chain([range.lo, range.hi]);
        let ends = distinct(ends.filter(|end| range.lo <= *end && *end <= range.hi));
        (1..ends.len()).map(move |i| {
            let part = Interval::new(ends[i - 1], ends[i]);
            (self.within(zones, part), part)
        })
    }
}

/// The boxes of a zone from below, if they differ along the inner axis only, are short, and have no vector in common.
fn in_bands(layout: &Layout, zone: usize) -> Vec<BoxLayout> {
    let mut boxes = layout.zones[zone].boxes.clone();
    boxes.sort_by_key(|b| b.region[Axis::INNER].lo);
    let Some(first) = boxes.first().copied() else {
        return Vec::new();
    };
    let across = |axis: Axis| boxes.iter().all(|b| b.region[axis] == first.region[axis]);
    let alike = across(Axis::OUTER) && across(Axis::MIDDLE);
    let short = boxes.iter().all(|b| b.region[Axis::INNER].len() <= LONGEST);
    let vector = |i: i64| div_floor(i, (ALIGNMENT / layout.element_bytes) as i64);
    let is_apart = boxes.windows(2).all(|pair| {
        let [below, above] = [pair[0], pair[1]].map(|b| b.region[Axis::INNER]);
        vector(below.hi - 1) < vector(above.lo)
    });
    match alike && short && is_apart {
        true => boxes,
        false => Vec::new(),
    }
}
