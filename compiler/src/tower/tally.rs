//! How many towers a time block has, and where, without a list of them: towers with the same work are counted together.
//!
//! The work of a tower depends on the place of its origin along the middle axis only through the ends of some
//! intervals. Between two such ends all towers with the same plane and alignment have the same work, so one of them is
//! looked at, and the others are counted.

use super::bounds::{Bounds, Placement};
use super::group::Group;
use super::planes::{PlaneAccess, Planes};
use super::tasks::{Order, tasks};
use super::towers::{Located, Towers};
use crate::distinct::distinct;
use crate::lattice::{Interval, div_ceil};
use crate::layout::Layout;
use crate::scheme::Scheme;
use std::collections::BTreeMap;

/// How many towers a time block has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub towers: usize,
    /// Towers with interior periods, by the number of the variant.
    pub variants: Vec<usize>,
}

/// How many towers [`tasks`] has; `None` where it has no list.
pub fn tally(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    periods: u64,
    order: Order,
) -> Option<Tally> {
    let mut tally = Tally {
        towers: 0,
        variants: vec![0; towers.variants.all.len()],
    };
    let mut add = |placement: &Placement, count: usize| {
        tally.towers += count;
        let variant = tally.variants.get_mut(placement.variant);
        if let Some(own) = variant.filter(|_| !placement.interior.is_empty()) {
            *own += count;
        }
    };
    if towers.rings.cells[0].is_some() {
        // The list says whether the ring of the outer axis is long enough.
        let list = tasks(scheme, layout, towers, periods, order)?;
        list.tasks.iter().for_each(|task| add(&task.placement, 1));
    } else if order.closes(towers) {
        let mut count = |own: Alike| add(&own.placement, own.count);
        each_alike(scheme, layout, towers, periods, &mut count)?;
    } else {
        return None;
    }
    i32::try_from(tally.towers).ok()?;
    Some(tally)
}

/// Towers of a time block whose origins lie in one plane across the outer axis, at the start of the time block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TowersOfPlane {
    pub towers: usize,
    /// The planes that they access.
    pub planes: Planes,
    /// One tower of each kind. Towers of a kind differ in their place alone, and so do the towers on which they depend.
    pub kinds: Vec<Located>,
}

/// The towers of a time block by planes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TowersByPlane {
    pub towers: usize,
    pub planes: BTreeMap<i64, TowersOfPlane>,
}

impl TowersByPlane {
    /// The towers of a time block of `periods` periods, if the outer axis is not periodic. `None` where there are too
    /// many.
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        towers: &Towers,
        periods: u64,
        access: &PlaneAccess,
    ) -> Option<TowersByPlane> {
        let mut all = TowersByPlane::default();
        // Narrow towers are among the others around the middle axis.
        let narrow = towers.rings.narrow;
        let mut add = |Alike { placement, count }: Alike| {
            all.towers += count;
            let own = all.planes.entry(placement.origin.x).or_default();
            own.towers += count;
            own.planes = own.planes.hull(access.of(&placement));
            let is_known = |kind: &Located| !narrow && kind.alignment == placement.alignment;
            if !own.kinds.iter().any(is_known) {
                own.kinds.push(Located {
                    alignment: placement.alignment,
                    origin: placement.origin,
                });
            }
        };
        each_alike(scheme, layout, towers, periods, &mut add)?;
        i32::try_from(all.towers).ok()?;
        Some(all)
    }
}

/// Towers that do the same, but for where they lie along the middle axis.
struct Alike {
    /// Of one of them.
    placement: Placement,
    count: usize,
}

/// The most counters of towers: with more it would be better to look at the towers one by one.
const MOST_COUNTERS: usize = 1 << 24;

/// Visits all towers of a time block of `periods`; around the middle axis each is one of its own. `None` where there
/// are too many to be counted.
fn each_alike(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    periods: u64,
    visit: &mut dyn FnMut(Alike),
) -> Option<()> {
    let bounds = towers.bounds(scheme, layout);
    let rows = towers.tiles(scheme, &bounds, periods)?;
    if let Some(counters) = Counters::new(towers, &bounds, &rows, periods) {
        let all = counters.of(towers, &bounds, &rows, periods);
        all.into_iter().for_each(visit);
        return Some(());
    }
    // One after the other: a list of them would be the largest part of a plan's memory.
    for (i, along) in rows {
        for j in along.lo..along.hi {
            if let Some(placement) = towers.place(&bounds, [i, j], periods) {
                visit(Alike {
                    placement,
                    count: 1,
                });
            }
        }
    }
    Some(())
}

/// Counters of towers by their alignment, the plane of their origin, and the part of the middle axis where it lies.
struct Counters {
    /// After how many tiles of a row towers lie as before, and the displacement to these towers.
    after: usize,
    by: Group,
    x: Interval,
    /// Where the parts of the middle axis begin, but for the first one.
    parts: Vec<i64>,
    count: usize,
}

impl Counters {
    /// `None` around the middle axis, and where there are too many counters.
    fn new(
        towers: &Towers,
        bounds: &[Bounds],
        rows: &[(i64, Interval)],
        periods: u64,
    ) -> Option<Counters> {
        if towers.rings.cells[1].is_some() {
            return None;
        }
        let (after, by) = towers.repeats()?;
        let one = |n: i64| Interval::new(n, n + 1);
        let mut x = Interval::default();
        for (i, along) in rows {
            // Origins never turn back along a row.
            for j in [along.lo, along.hi - 1] {
                x = x.hull(one(towers.locate([*i, j])?.origin.x));
            }
        }
        let moves = (0..=periods as i64).map(|period| towers.advance.y * period);
        let mut moves: Vec<i64> = moves.collect();
        moves.dedup();
        let changes = bounds.iter().flat_map(|own| own.changes(&towers.variants));
        let changes: Vec<i64> = changes.collect();
        let parts = moves
            .iter()
            .flat_map(|moved| changes.iter().map(move |at| at - moved));
        let parts = distinct(parts);
        let count = bounds
            .len()
            .checked_mul(usize::try_from(x.len()).ok()?)?
            .checked_mul(parts.len() + 1)?;
        (count <= MOST_COUNTERS).then_some(Counters {
            after,
            by,
            x,
            parts,
            count,
        })
    }

    fn of(
        &self,
        towers: &Towers,
        bounds: &[Bounds],
        rows: &[(i64, Interval)],
        periods: u64,
    ) -> Vec<Alike> {
        let (width, parts) = (self.x.len() as usize, self.parts.len() + 1);
        // How many towers there are, and where one of them is along the middle axis.
        let mut counters = vec![(0usize, 0i64); self.count];
        for (i, along) in rows {
            for first in (along.lo..along.hi).take(self.after) {
                let Some(Located { alignment, origin }) = towers.locate([*i, first]) else {
                    continue;
                };
                let tiles = div_ceil(along.hi - first, self.after as i64);
                // Towers of a row go along the middle axis, so parts come one after the other.
                let mut part = self.parts.partition_point(|at| *at <= origin.y);
                for n in 0..tiles {
                    let at = origin + self.by * n;
                    while part < self.parts.len() && self.parts[part] <= at.y {
                        part += 1;
                    }
                    while part > 0 && at.y < self.parts[part - 1] {
                        part -= 1;
                    }
                    let plane = (at.x - self.x.lo) as usize;
                    let (count, y) = &mut counters[(alignment * width + plane) * parts + part];
                    *count += 1;
                    *y = at.y;
                }
            }
        }
        let placed = counters
            .into_iter()
            .enumerate()
            .filter_map(|(n, (count, y))| {
                let (alignment, plane) = (n / parts / width, n / parts % width);
                let origin = Group::new(self.x.lo + plane as i64, y);
                let located = Located { alignment, origin };
                let placement = match count {
                    0 => None,
                    _ => towers.place_at(bounds, located, [None; 2], periods),
                };
                placement.map(|placement| Alike { placement, count })
            });
        placed.collect()
    }
}
