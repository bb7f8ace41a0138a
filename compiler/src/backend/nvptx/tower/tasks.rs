//! The towers of a time block, in an order in which blocks may take them.

use super::Task;
use super::lists::LIST_BYTES;
use crate::lattice::{Interval, PerAxis};
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tile::residency::{Part, Towers};
use std::collections::BTreeMap;

/// An order of towers: tiles are cut into strips along the first face, and in each of them columns, which are tiles with the same sum of
/// indices, come one after the other. Strips are dealt to the partitions of the cache that all multiprocessors share: what a strip's towers
/// store and load again stays in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Tiles of a strip along the first face, at least 1: so many run side by side.
    pub width: i64,
    /// The last columns of a strip that alternate with the first ones of the next strip of the same partition, at least 0: where ends of the grid make
    /// towers slow, others run beside them.
    pub overlap: i64,
    /// Stages that the neighbours of a tower are ahead at least when it begins. More of them let towers wait less for each other, and keep
    /// less of what one stores in a cache until the next one loads it: on an H200 the latter weighs more.
    pub lead: u32,
    /// Partitions of the cache, each with multiprocessors that are near it; at least 1.
    pub partitions: u32,
}

/// The towers of a time block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskList {
    pub tasks: Vec<Task>,
    /// How many of these each start of the kernel runs for each partition, one after the other: those of a start begin when the one before is
    /// over.
    pub starts: Vec<Vec<usize>>,
}

/// All towers of a time block of so many periods that have anything to do. There is an order in which each comes after all that it depends on, and those of
/// a start and a partition are in that order. Towers that run at the same time are near each other: what one stores, the next finds in a cache.
/// `None` where sizes exceed what tasks hold, or a ring is too short for so many periods or for a strip.
pub fn tasks(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    periods: u64,
    order: Order,
) -> Option<TaskList> {
    let rooms = towers.rooms(scheme, layout);
    let halves = towers.halves(scheme, periods)?;
    let [first, second] = towers.indices(scheme, periods)?;
    let partitions = i64::from(order.partitions.max(1));
    let wide = order.width.max(1);
    let mut parts: Vec<Ordered> = Vec::new();
    // Per strip its columns.
    let mut columns: BTreeMap<i64, Interval> = BTreeMap::new();
    for i in first.lo..first.hi {
        for j in second.lo..second.hi {
            if let Some(part) = towers.part(&rooms, [i, j], periods) {
                let strip = i.div_euclid(wide);
                columns.entry(strip).or_default();
                let own = Interval::new(i + j, i + j + 1);
                columns.entry(strip).and_modify(|all| *all = all.hull(own));
                parts.push(Ordered {
                    start: usize::from(!halves.is_first(part.origin)),
                    partition: strip.rem_euclid(partitions) as usize,
                    column: i + j,
                    strip,
                    tile: [i, j],
                    part,
                });
            }
        }
    }
    // Columns are numbered on from those of the strip before in the same partition, never below those of the strip beside it: then a tile comes
    // after its neighbours there. Around a ring with more tiles along the second face than along the first one, the tile before the first one of a row
    // is known by a later column of an earlier strip.
    let [back, last] = towers.rings.known([0, -1]);
    let later = if back < 0 { back + last } else { 0 };
    let mut offsets: BTreeMap<i64, (i64, Interval)> = BTreeMap::new();
    for (strip, own) in columns {
        let beside = offsets.last_key_value().map_or(0, |(_, (o, _))| *o);
        let before = offsets.get(&(strip - partitions));
        let offset = before.map_or(0, |(o, b)| o + (b.hi - own.lo - order.overlap).max(0));
        let mut offset = offset.max(beside);
        if later > 0 {
            for row in [strip * wide, strip * wide + wide - 1] {
                let other = (row + back).div_euclid(wide);
                if other == strip {
                    return None;
                }
                offset = offset.max(offsets.get(&other).map_or(0, |(o, _)| o + later));
            }
        }
        offsets.insert(strip, (offset, own));
    }
    for part in &mut parts {
        part.column += offsets.get(&part.strip).map_or(0, |(offset, _)| *offset);
    }
    parts.sort_by_key(|p| (p.start, p.partition, p.column, p.strip, p.tile[0]));
    let known: BTreeMap<[i64; 2], usize> =
        parts.iter().enumerate().map(|(n, p)| (p.tile, n)).collect();
    let count = i32::try_from(parts.len()).ok()?;
    let task = |own: &Ordered| {
        let [i, j] = own.tile;
        let neighbour = |di: i64, dj: i64| {
            let found = known.get(&towers.rings.known([i - di, j - dj]));
            found.map_or(count, |n| *n as i32)
        };
        Task::of(
            layout,
            &own.part,
            [neighbour(1, 0), neighbour(0, 1), neighbour(1, 1)],
        )
    };
    let tasks: Option<Vec<Task>> = parts.iter().map(task).collect();
    let mut starts = vec![vec![0; partitions as usize]; 2];
    for part in &parts {
        starts[part.start][part.partition] += 1;
    }
    starts.retain(|counts| counts.iter().any(|count| *count > 0));
    Some(TaskList {
        tasks: tasks?,
        starts,
    })
}

/// A tower and what it is ordered by.
struct Ordered {
    start: usize,
    partition: usize,
    /// Counted on over strips.
    column: i64,
    strip: i64,
    /// Its indices along both faces.
    tile: [i64; 2],
    part: Part,
}

impl TaskList {
    /// The tasks of all starts up to one, that included.
    pub fn until(&self, start: usize) -> usize {
        self.starts.iter().take(start + 1).flatten().sum()
    }

    /// The words of a start's [lists](super::lists), if the multiprocessors with the numbers 0, 1, 2 ... are near these partitions.
    pub fn lists(&self, start: usize, near: &[u32]) -> Option<Vec<i32>> {
        let counts = self.starts.get(start)?;
        let mut first = self.until(start) - counts.iter().sum::<usize>();
        let near = if near.is_empty() { &[0] } else { near };
        let line = (LIST_BYTES / 4) as usize;
        let mut words = vec![0; line * (1 + counts.len())];
        words[1] = i32::try_from(near.len()).ok()?;
        for (list, count) in words.chunks_mut(line).skip(1).zip(counts) {
            list[1] = i32::try_from(first).ok()?;
            list[2] = i32::try_from(*count).ok()?;
            first += count;
        }
        let partition = |n: &u32| (*n as usize % counts.len()) as i32;
        words.extend(near.iter().map(partition));
        Some(words)
    }
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
            first: small(part.periods.start)?,
            whole: [small(part.whole.start)?, small(part.whole.end)?],
            end: small(part.periods.end)?,
            at: [place(x)?, place(y)?],
            neighbours,
            hooks: 0,
            limits: [limit(0)?, limit(1)?],
            shift: [place(part.shift[0])?, place(part.shift[1])?],
            clipped: part.clipped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_what_is_theirs() {
        let list = TaskList {
            tasks: Vec::new(),
            starts: vec![vec![3, 5], vec![2, 0]],
        };
        assert_eq!([list.until(0), list.until(1)], [8, 10]);
        let line = LIST_BYTES as usize / 4;
        for (start, ranges) in [(0, [(0, 3), (3, 5)]), (1, [(8, 2), (10, 0)])] {
            let words = list.lists(start, &[1, 0, 3]).expect("few tasks");
            assert_eq!(words.len(), 3 * line + 3);
            assert_eq!(words[..2], [0, 3]);
            for (n, (first, count)) in ranges.into_iter().enumerate() {
                assert_eq!(words[(n + 1) * line..][..3], [0, first, count]);
            }
            assert_eq!(words[3 * line..], [1, 0, 1]);
        }
        assert_eq!(list.lists(2, &[]), None);
        let words = list.lists(0, &[]).expect("few tasks");
        assert_eq!((words[1], words[3 * line..].to_vec()), (1, vec![0]));
    }
}
