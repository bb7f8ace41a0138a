//! The towers of a band, in an order in which blocks may take them.

use super::Task;
use crate::lattice::{Interval, PerAxis};
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tile::residency::{Part, Towers};
use std::collections::BTreeMap;

/// An order of towers: tiles are cut into strips along the first face, and in each of them columns, which are tiles with the same sum of
/// indices, come one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Tiles of a strip along the first face, at least 1: so many run side by side.
    pub width: i64,
    /// The last columns of a strip that alternate with the first ones of the next strip, at least 0: where ends of the grid make towers
    /// slow, others run beside them.
    pub overlap: i64,
    /// Stages that the neighbours of a tower are ahead at least when it begins. More of them let towers wait less for each other, and keep
    /// less of what one stores in a cache until the next one loads it: on an H200 the latter weighs more.
    pub lead: u32,
}

/// The towers of a band.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskList {
    pub tasks: Vec<Task>,
    /// So many come first: others begin when these are done. 0: no such difference.
    pub before: usize,
}

/// All towers of a band of so many turns that have anything to do, such that each comes after all that it depends on. Towers that run at the
/// same time are near each other: what one stores, the next finds in a cache. `None` where sizes exceed what tasks hold, or a ring is too
/// short for so many turns.
pub fn tasks(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    turns: u64,
    order: Order,
) -> Option<TaskList> {
    let rooms = towers.rooms(scheme, layout);
    let halves = towers.halves(scheme, turns)?;
    let [first, second] = towers.indices(scheme, turns)?;
    let mut parts: Vec<([i64; 4], [i64; 2], Part)> = Vec::new();
    // Per strip its columns.
    let mut columns: BTreeMap<i64, Interval> = BTreeMap::new();
    for i in first.lo..first.hi {
        for j in second.lo..second.hi {
            if let Some(part) = towers.part(&rooms, [i, j], turns) {
                let strip = i.div_euclid(order.width.max(1));
                columns.entry(strip).or_default();
                let own = Interval::new(i + j, i + j + 1);
                columns.entry(strip).and_modify(|all| *all = all.hull(own));
                let half = i64::from(!halves.is_first(part.origin));
                parts.push(([half, 0, strip, i], [i, j], part));
            }
        }
    }
    // A strip's columns are numbered on from those of the strip before, never below it: then a tile comes after its neighbours there.
    let mut offset = 0;
    let mut before: Option<Interval> = None;
    let mut offsets = BTreeMap::new();
    for (strip, own) in columns {
        if let Some(before) = before {
            offset += (before.hi - own.lo - order.overlap).max(0);
        }
        offsets.insert(strip, offset);
        before = Some(own);
    }
    for (key, [i, j], _) in &mut parts {
        key[1] = *i + *j + offsets.get(&key[2]).copied().unwrap_or(0);
    }
    parts.sort_by_key(|(key, _, _)| *key);
    let known: BTreeMap<[i64; 2], usize> =
        parts.iter().enumerate().map(|(n, p)| (p.1, n)).collect();
    let count = i32::try_from(parts.len()).ok()?;
    let task = |(_, [i, j], part): &([i64; 4], [i64; 2], Part)| {
        let neighbour = |di: i64, dj: i64| {
            let found = known.get(&towers.rings.known([i - di, j - dj]));
            found.map_or(count, |n| *n as i32)
        };
        Task::of(
            layout,
            part,
            [neighbour(1, 0), neighbour(0, 1), neighbour(1, 1)],
        )
    };
    let tasks: Option<Vec<Task>> = parts.iter().map(task).collect();
    let before = parts.iter().filter(|(key, ..)| key[0] == 0).count();
    Some(TaskList {
        tasks: tasks?,
        before: if before < parts.len() { before } else { 0 },
    })
}

impl Task {
    /// `None` where it is too large.
    fn of(layout: &Layout, part: &Part, neighbours: [i32; 3]) -> Option<Task> {
        let stride = |axis: usize| PerAxis(layout.stride.0).0[axis];
        let [x, y] = [0, 1].map(|a| part.origin[a] + part.shift[a]);
        let element = layout.group(0, 0) + x * stride(0) + y * stride(1);
        let small = |n: u64| i32::try_from(n).ok();
        let place = |n: i64| i32::try_from(n).ok();
        let [x, y] = part.origin;
        let limit = |cut: usize| part.limits[cut].map_or(Some(i32::MAX), place);
        Some(Task {
            offset: element * layout.element_bytes as i64,
            alignment: part.alignment as i32,
            first: small(part.turns.start)?,
            whole: [small(part.whole.start)?, small(part.whole.end)?],
            end: small(part.turns.end)?,
            at: [place(x)?, place(y)?],
            neighbours,
            hooks: 0,
            limits: [limit(0)?, limit(1)?],
            shift: [place(part.shift[0])?, place(part.shift[1])?],
            clipped: part.clipped,
        })
    }
}
