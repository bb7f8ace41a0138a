//! Zones of the domain by the updates whose regions they lie in.
//!
//! The ends of the regions cut the domain into boxes. Where these are many, or some of them thin, a zone is all boxes
//! with the same updates: a box is cut at the ends of the regions that it is partly in, and not at the ends of others,
//! so their number grows with the number of regions, and no region falls into slivers.

use crate::distinct::distinct;
use crate::lattice::{Axis, Interval, Region};
use crate::scheme::Scheme;
use std::collections::{BTreeMap, VecDeque};

/// Zones of one box each.
pub const ZONES: usize = 64;
/// Zones of several boxes, and the boxes of all of them.
const SETS: usize = 256;
const PARTS: usize = 4096;
/// Regions whose ends are compared for a cut.
const COMPARED: usize = 64;

/// Boxes of cells that do not overlap.
pub type Zone = Vec<Region>;

/// Zones that cover the domain: the boxes between all ends of regions or, where these are many or some of them thinner
/// than twice the reach of reads, all boxes with the same updates.
pub fn zones(scheme: &Scheme) -> Vec<Zone> {
    let regions = regions(scheme);
    match products(scheme, &regions) {
        Some(zones) => zones.into_iter().map(|zone| vec![zone]).collect(),
        None => sets(whole(scheme), &regions),
    }
}

fn whole(scheme: &Scheme) -> Region {
    Region::from_fn(|a| Interval::new(0, scheme.grid.cells[a]))
}

/// The regions of updates that are parts of the domain, in cells.
fn regions(scheme: &Scheme) -> Vec<Region> {
    let grid = &scheme.grid;
    let mut regions = Vec::new();
    for update in scheme.stages.iter().flat_map(|s| &s.updates) {
        let live = grid.live(scheme.component(update.target).position);
        let region = Region::from_fn(|a| {
            let Interval { lo, hi } = update.region[a];
            let lo = if lo > live[a].lo { lo } else { 0 };
            let hi = if hi < live[a].hi { hi } else { grid.cells[a] };
            Interval::new(lo, hi.min(grid.cells[a]))
        });
        let is_part = !update.region.is_empty() && region != whole(scheme);
        if is_part && !region.is_empty() && !regions.contains(&region) {
            regions.push(region);
        }
    }
    regions
}

/// The boxes between all ends of regions; `None` where they are many, or some of them thin.
fn products(scheme: &Scheme, regions: &[Region]) -> Option<Vec<Region>> {
    let grid = &scheme.grid;
    let reach = scheme.reach();
    let mut zones = vec![whole(scheme)];
    for axis in grid.present() {
        let ends = regions.iter().flat_map(|r| [r[axis].lo, r[axis].hi]);
        let cuts = distinct([0, grid.cells[axis]].into_iter().chain(ends));
        let least = 2 * i64::from(reach[axis].into_iter().max().unwrap_or(0));
        let parts: Vec<Interval> = cuts.windows(2).map(|w| Interval::new(w[0], w[1])).collect();
        let is_thin = parts.len() > 1 && parts.iter().any(|p| p.len() < least);
        if is_thin || zones.len() * parts.len() > ZONES {
            return None;
        }
        let cut = |zone: &Region| {
            let parts = parts.iter().map(|part| zone.with(axis, *part));
            parts.collect::<Vec<Region>>()
        };
        zones = zones.iter().flat_map(cut).collect();
    }
    Some(zones)
}

/// For each set of regions that have a cell in common the boxes of cells in these alone. Boxes beyond the bounds make a
/// last zone.
fn sets(whole: Region, regions: &[Region]) -> Vec<Zone> {
    let mut sets: BTreeMap<Vec<bool>, Zone> = BTreeMap::new();
    let mut rest = Zone::new();
    let mut count = 0;
    let mut open = VecDeque::from([whole]);
    while let Some(zone) = open.pop_front() {
        let halves = cut(zone, regions).filter(|_| count + open.len() < PARTS);
        if let Some(halves) = halves {
            open.extend(halves);
            continue;
        }
        count += 1;
        let is_in = |region: &Region| region.intersect(zone) == zone;
        let is_partly_in = |region: &Region| !is_in(region) && !region.intersect(zone).is_empty();
        let set: Vec<bool> = regions.iter().map(is_in).collect();
        if regions.iter().any(is_partly_in) || (sets.len() >= SETS && !sets.contains_key(&set)) {
            rest.push(zone);
        } else {
            sets.entry(set).or_default().push(zone);
        }
    }
    let zones = sets.into_values().chain([rest]);
    zones.filter(|zone| !zone.is_empty()).collect()
}

/// A box in two, at an end of a region that it is partly in: where the fewest of these regions are cut, and about as
/// many lie on both sides.
fn cut(zone: Region, regions: &[Region]) -> Option<[Region; 2]> {
    let within = regions.iter().map(|region| region.intersect(zone));
    let within: Vec<Region> = within
        .filter(|part| !part.is_empty() && *part != zone)
        .take(COMPARED)
        .collect();
    let mut best: Option<((usize, usize), Axis, i64)> = None;
    for axis in Axis::ALL {
        let ends = within
            .iter()
            .flat_map(|part| [part[axis].lo, part[axis].hi]);
        for at in distinct(ends) {
            if at <= zone[axis].lo || at >= zone[axis].hi {
                continue;
            }
            let below = within.iter().filter(|part| part[axis].hi <= at).count();
            let above = within.iter().filter(|part| part[axis].lo >= at).count();
            let rank = (within.len() - below - above, below.abs_diff(above));
            if best.is_none_or(|(least, _, _)| rank < least) {
                best = Some((rank, axis, at));
            }
        }
    }
    let (_, axis, at) = best?;
    let Interval { lo, hi } = zone[axis];
    Some([Interval::new(lo, at), Interval::new(at, hi)].map(|part| zone.with(axis, part)))
}
