//! The towers of a time block, in an order in which blocks of threads may take them.

use super::bounds::Placement;
use super::group::{Group, PerFace};
use super::towers::{Located, Towers};
use super::zigzag::Zigzag;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::Scheme;
use std::collections::BTreeMap;
use std::ops::Range;

/// An order of towers. Tiles are cut into strips along the first face. The columns of a strip, which are tiles with the
/// same sum of indices, come one after the other. Strips are dealt to the partitions of the cache that all
/// multiprocessors share: values that a strip's towers store and load again stay in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Tiles of a strip along the first face, at least 1: they run side by side.
    pub width: i64,
    /// How many of a strip's last columns alternate with the first columns of the next strip of the same partition, at
    /// least 0: where ends of the grid make towers slow, others run beside them.
    pub overlap: i64,
    /// Stages by which the neighbours of a tower are ahead when it begins, at least. With a longer head start towers
    /// wait less for each other, but fewer values that one tower stores stay in a cache until the next one loads them.
    /// On an H200 the latter weighs more.
    pub head_start: u32,
    /// Partitions of the cache, each with multiprocessors that are near it; at least 1.
    pub partitions: u32,
}

impl Order {
    /// The strip of a row of tiles, by its index along the first face.
    fn strip(self, index: i64) -> i64 {
        index.div_euclid(self.width.max(1))
    }

    /// Whether strips are narrow enough for a periodic middle axis: the tile before the first one of a row lies in
    /// another strip then.
    pub(super) fn closes(self, towers: &Towers) -> bool {
        let Known { back, later } = known_before(towers);
        later <= 0 || back <= -self.width.max(1)
    }
}

/// How the tile before the first one of a row is known around the ring of the middle axis.
struct Known {
    /// Rows between them, at most 0.
    back: i64,
    /// Columns by which it is known later, if that is more than 0.
    later: i64,
}

fn known_before(towers: &Towers) -> Known {
    let [back, last] = towers.rings.known([0, -1]);
    Known {
        back,
        later: if back < 0 { back + last } else { 0 },
    }
}

/// A tower that a block runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// In which periods it has rows, and which of these are interior.
    pub placement: Placement,
    /// The tasks with an index one lower along the first face, the second, and both; `None` where there is no such
    /// task.
    pub neighbours: [Option<usize>; 3],
}

/// The towers of a time block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskList {
    pub tasks: Vec<Task>,
    /// How many of these each launch runs for each partition, one after the other: tasks of a launch begin when the
    /// launch before is over.
    pub launches: Vec<Vec<usize>>,
    /// How many of them all launches up to each run.
    ends: Vec<usize>,
}

/// All towers of a time block of `periods` periods that have rows in the grid. There is an order in which each tower
/// comes after all towers on which it depends, and the towers of a launch and a partition are in that order. Towers
/// that run at the same time are near each other: values that one stores, the next finds in a cache. `None` where there
/// are too many towers, or a ring is too short for the periods or for a strip.
pub fn tasks(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    periods: u64,
    order: Order,
) -> Option<TaskList> {
    let launches = towers.launches(scheme, periods)?;
    let bounds = towers.bounds(scheme, layout);
    let launched = |tile: PerFace<i64>| {
        let placement = towers.place(&bounds, tile, periods)?;
        Some((launches.of(placement.origin) as i64, placement))
    };
    let TaskList {
        tasks,
        mut launches,
        ..
    } = ordered(scheme, layout, towers, periods, order, &launched)?.list;
    launches.retain(|counts| counts.iter().any(|count| *count > 0));
    Some(TaskList::new(tasks, launches))
}

/// The towers of a time block in groups, each of which is a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupedTasks {
    pub list: TaskList,
    /// The number of the first launch's group.
    pub first: i64,
}

/// Groups of towers by the plane across the outer axis in which their origins lie at the start of a time block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// See [`Towers::way`].
    way: i64,
    /// Planes of a group.
    planes: i64,
    /// Where groups begin, counted against the way.
    offset: i64,
}

impl Grouping {
    /// Groups of `planes` planes. The last group of a time block of `periods` periods is whole: in a partial group,
    /// towers would be few and wait for each other.
    pub fn new(towers: &Towers, planes: i64, periods: u64) -> Grouping {
        let width = towers.alignments.iter().map(|own| own.width()).max();
        let behind = towers.advance.x.abs() * periods as i64 + width.unwrap_or(0);
        Grouping {
            way: towers.way(),
            planes,
            offset: behind.rem_euclid(planes.max(1)),
        }
    }

    /// Planes of a group.
    pub fn planes(&self) -> i64 {
        self.planes
    }

    /// The number of the group of towers with this origin. Groups are numbered against the way of towers, so that
    /// towers depend on none of later groups.
    pub fn number(&self, origin: i64) -> i64 {
        (-self.way * origin - self.offset).div_euclid(self.planes)
    }
}

/// The same in groups. `None` also where towers depend on towers of later groups, and where they do not move along the
/// outer axis, or around it in an array that has the whole ring.
pub fn grouped_tasks(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    periods: u64,
    order: Order,
    grouping: Grouping,
) -> Option<GroupedTasks> {
    let ring = scheme.grid.is_periodic(Axis::OUTER) && !towers.is_unrolled(layout);
    if grouping.way == 0 || grouping.planes < 1 || ring {
        return None;
    }
    let group_of = |placement: &Placement| grouping.number(placement.origin.x);
    let bounds = towers.bounds(scheme, layout);
    let launched = |tile: PerFace<i64>| {
        let placement = towers.place(&bounds, tile, periods)?;
        Some((group_of(&placement), placement))
    };
    let grouped = ordered(scheme, layout, towers, periods, order, &launched)?;
    let tasks = &grouped.list.tasks;
    let group = |task: &Task| group_of(&task.placement);
    let follows = |task: &Task| {
        let mut neighbours = task.neighbours.iter().flatten();
        neighbours.all(|n| group(&tasks[*n]) <= group(task))
    };
    tasks.iter().all(follows).then_some(grouped)
}

/// The last column of towers in a time block of `periods` periods: the greatest sum of their indices.
pub fn last_column(scheme: &Scheme, layout: &Layout, towers: &Towers, periods: u64) -> Option<i64> {
    let bounds = towers.bounds(scheme, layout);
    let tiles = towers.tiles(scheme, &bounds, periods)?;
    let is_there = |tile: PerFace<i64>| towers.place(&bounds, tile, periods).is_some();
    let last = |i: i64, own: Interval| (own.lo..own.hi).rev().find(|j| is_there([i, *j]));
    tiles
        .into_iter()
        .filter_map(|(i, own)| Some(i + last(i, own)?))
        .max()
}

/// The towers of each stripe in a time block of `periods` periods, in launches whose numbers count on from the first of
/// the stripe; see [`Zigzag`]. `None` also where towers do not move along the outer axis, go around an axis, or depend
/// on launches that come later.
pub fn striped_tasks(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    periods: u64,
    order: Order,
    zigzag: &Zigzag,
) -> Option<Vec<GroupedTasks>> {
    let rings = [Axis::OUTER, Axis::MIDDLE];
    if towers.way() == 0 || rings.iter().any(|axis| scheme.grid.is_periodic(*axis)) {
        return None;
    }
    let bounds = towers.bounds(scheme, layout);
    let place = |tile: PerFace<i64>| towers.place(&bounds, tile, periods);
    for (i, along) in towers.tiles(scheme, &bounds, periods)? {
        for j in along.lo..along.hi {
            let own = zigzag.of([i, j]);
            let before = [[i - 1, j], [i, j - 1], [i - 1, j - 1]];
            let follows = before.iter().all(|tile| own.follows(zigzag.of(*tile)));
            if !follows && place([i, j]).is_some() {
                return None;
            }
        }
    }
    let tasks = |stripe: usize| {
        let launched = |tile: PerFace<i64>| {
            let own = zigzag.of(tile);
            let launch = (own.stripe == stripe).then(|| own.launch.div_euclid(2))?;
            Some((launch, place(tile)?))
        };
        ordered(scheme, layout, towers, periods, order, &launched)
    };
    (0..zigzag.stripes()).map(tasks).collect()
}

/// The towers of a time block in launches: `launched` has the number of the launch of a tile, and where its tower is;
/// tiles without either are left out.
fn ordered(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    periods: u64,
    order: Order,
    launched: &dyn Fn(PerFace<i64>) -> Option<(i64, Placement)>,
) -> Option<GroupedTasks> {
    let mut placed = PlacedTowers::default();
    let bounds = towers.bounds(scheme, layout);
    for (i, along) in towers.tiles(scheme, &bounds, periods)? {
        placed.add_row(i, along, order, launched)?;
    }
    if !order.closes(towers) {
        return None;
    }
    placed.number_columns(order, &known_before(towers));
    let sorted = placed.sorted()?;
    let all = &placed.all;
    let [first, last] = [sorted.first(), sorted.last()]
        .map(|number| number.map_or(0, |number| all[*number as usize].launch));
    let launches = usize::try_from(last - first + 1).ok()?;
    let mut counts = vec![vec![0; order.partitions.max(1) as usize]; launches];
    for one in all {
        counts[(one.launch - first) as usize][one.partition] += 1;
    }
    let mut tasks_of = vec![0usize; all.len()];
    for (task, number) in sorted.iter().enumerate() {
        tasks_of[*number as usize] = task;
    }
    let task = |number: &u32| {
        let own = &all[*number as usize];
        let [i, j] = own.tile;
        let neighbour = |di: i64, dj: i64| {
            let number = placed.number_of(towers.rings.known([i - di, j - dj]))?;
            Some(tasks_of[number as usize])
        };
        Task {
            neighbours: [neighbour(1, 0), neighbour(0, 1), neighbour(1, 1)],
            placement: own.placement.clone(),
        }
    };
    let list = TaskList::new(sorted.iter().map(task).collect(), counts);
    Some(GroupedTasks { list, first })
}

/// The towers of a time block, tile by tile in rows.
#[derive(Default)]
struct PlacedTowers {
    all: Vec<Placed>,
    /// Per strip its columns.
    columns: BTreeMap<i64, Interval>,
    rows: Vec<TileRow>,
    /// Per tile of all rows the number of its tower, if it has one.
    numbers: Vec<Option<u32>>,
}

/// Tiles with the same index along the first face.
struct TileRow {
    index: i64,
    /// Their indices along the second face.
    along: Interval,
    /// Where the numbers of their towers begin.
    begin: usize,
}

impl PlacedTowers {
    /// Adds a row, whose index lies above that of all others. `None` where there are too many towers.
    fn add_row(
        &mut self,
        index: i64,
        along: Interval,
        order: Order,
        launched: &dyn Fn(PerFace<i64>) -> Option<(i64, Placement)>,
    ) -> Option<()> {
        self.rows.push(TileRow {
            index,
            along,
            begin: self.numbers.len(),
        });
        let strip = order.strip(index);
        let mut columns = Interval::default();
        for j in along.lo..along.hi {
            let own = launched([index, j]);
            let number = u32::try_from(self.all.len()).ok()?;
            self.numbers.push(own.is_some().then_some(number));
            if let Some((launch, placement)) = own {
                let column = index + j;
                columns = columns.hull(Interval::new(column, column + 1));
                self.all.push(Placed {
                    launch,
                    partition: strip.rem_euclid(i64::from(order.partitions.max(1))) as usize,
                    column,
                    strip,
                    tile: [index, j],
                    placement,
                });
            }
        }
        if !columns.is_empty() {
            let all = self.columns.entry(strip).or_default();
            *all = all.hull(columns);
        }
        Some(())
    }

    /// Numbers columns on from the columns of the strip before in the same partition, never below the columns of the
    /// strip beside it: then a tile comes after its neighbours there. Around a ring with more tiles along the second
    /// face than along the first one, the tile before the first one of a row is known by a later column of an earlier
    /// strip.
    fn number_columns(&mut self, order: Order, known: &Known) {
        let partitions = i64::from(order.partitions.max(1));
        let width = order.width.max(1);
        let mut offsets: BTreeMap<i64, (i64, Interval)> = BTreeMap::new();
        for (&strip, &own) in &self.columns {
            let beside = offsets.last_key_value().map_or(0, |(_, (o, _))| *o);
            let before = offsets.get(&(strip - partitions));
            let offset = before.map_or(0, |(o, b)| o + (b.hi - own.lo - order.overlap).max(0));
            let mut offset = offset.max(beside);
            if known.later > 0 {
                for row in [strip * width, strip * width + width - 1] {
                    let other = offsets.get(&order.strip(row + known.back));
                    offset = offset.max(other.map_or(0, |(o, _)| o + known.later));
                }
            }
            offsets.insert(strip, (offset, own));
        }
        // Tiles of a strip follow each other.
        for strip in self.all.chunk_by_mut(|a, b| a.strip == b.strip) {
            let offset = offsets.get(&strip[0].strip).map_or(0, |(o, _)| *o);
            strip.iter_mut().for_each(|one| one.column += offset);
        }
    }

    /// The numbers of towers in their order. `None` where there are too many.
    fn sorted(&self) -> Option<Vec<u32>> {
        i32::try_from(self.all.len()).ok()?;
        // Keys side by side are sorted faster than the towers to which they belong.
        let keys = self.all.iter().zip(0u32..).map(|(p, number)| {
            let key = [p.launch, p.partition as i64, p.column, p.strip, p.tile[0]];
            (key, number)
        });
        let mut keys: Vec<([i64; 5], u32)> = keys.collect();
        keys.sort_unstable();
        Some(keys.into_iter().map(|(_, number)| number).collect())
    }

    /// The number of the tower of a tile.
    fn number_of(&self, [i, j]: PerFace<i64>) -> Option<u32> {
        let row = self.rows.binary_search_by_key(&i, |row| row.index).ok()?;
        let row = &self.rows[row];
        let index = row.begin + usize::try_from(j - row.along.lo).ok()?;
        *self.numbers.get(index).filter(|_| row.along.contains(j))?
    }
}

/// A tower and the keys by which it is ordered.
struct Placed {
    launch: i64,
    partition: usize,
    /// Counted on over strips.
    column: i64,
    strip: i64,
    tile: PerFace<i64>,
    placement: Placement,
}

impl TaskList {
    pub fn new(tasks: Vec<Task>, launches: Vec<Vec<usize>>) -> TaskList {
        let mut end = 0;
        let ends = launches.iter().map(|counts| {
            end += counts.iter().sum::<usize>();
            end
        });
        TaskList {
            ends: ends.collect(),
            tasks,
            launches,
        }
    }

    /// The same of towers with planes that are counted on around the ring from elsewhere
    /// ([`Towers::rotated`](super::Towers::rotated)): only the work of towers in their periods depends on that, not
    /// their number, places or order. Points have cut none of them.
    pub fn placed_anew(
        &self,
        scheme: &Scheme,
        layout: &Layout,
        rotated: &Towers,
        periods: u64,
    ) -> Option<TaskList> {
        let bounds = rotated.bounds(scheme, layout);
        let mut list = self.clone();
        for task in &mut list.tasks {
            let own = &task.placement;
            let located = Located {
                alignment: own.alignment,
                origin: own.origin,
            };
            task.placement = rotated.place_at(&bounds, located, own.limits, periods)?;
        }
        Some(list)
    }

    /// The tasks of all launches up to one, that included.
    pub fn until(&self, launch: usize) -> usize {
        let end = self.ends.get(launch).or(self.ends.last());
        end.copied().unwrap_or(0)
    }

    /// The tasks of a launch.
    pub fn of_launch(&self, launch: usize) -> Range<usize> {
        let count: usize = self.launches.get(launch).into_iter().flatten().sum();
        let end = self.until(launch);
        end - count..end
    }
}

impl Task {
    /// Where the origin lies in the array in interior periods, at the start of the time block.
    pub fn interior_origin(&self) -> Group {
        self.placement.origin + self.placement.shift
    }

    /// Whether a face around a periodic axis is narrow.
    pub fn is_narrow(&self) -> bool {
        self.placement.limits.iter().any(Option::is_some)
    }
}
