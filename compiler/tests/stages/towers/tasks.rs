//! The order of towers is sufficient: each event of a time block belongs to one tower, and when it happens, all that it
//! depends on is done. Proved for many schemes by simulation of the events, of the progress that towers see, and of the
//! work queues.

use super::*;
use std::collections::HashMap;
use std::rc::Rc;
use torre_compiler::testing::{add_layers, diamonds, lengthen};

/// A row of memory.
type Place = (Group, u32);

/// A stage and a task.
type Event = (i64, usize);

/// For each task, stages that are known to be done.
type Known = Rc<HashMap<usize, i64>>;

struct TimeBlock<'a> {
    scheme: &'a Scheme,
    towers: &'a Towers,
    list: TaskList,
    /// Stages of a period.
    per_period: i64,
    /// By task, and the stage that begins.
    found: HashMap<(usize, i64), Known>,
}

impl TimeBlock<'_> {
    /// Known when a task begins a stage; for the stage after its last one, when it is over.
    fn known(&mut self, task: usize, number: i64) -> Known {
        if let Some(known) = self.found.get(&(task, number)) {
            return known.clone();
        }
        let own = self.list.tasks[task].clone();
        let [first, end] = self.stages_of(task);
        let mut known = HashMap::new();
        let mut merge = |more: &HashMap<usize, i64>| {
            for (task, done) in more {
                let all = known.entry(*task).or_insert(i64::MIN);
                *all = (*all).max(*done);
            }
        };
        if number > first {
            merge(&self.known(task, number - 1));
        }
        merge(&HashMap::from([(
            task,
            if number == end { i64::MAX } else { number },
        )]));
        let launch = (0..).find(|launch| task < self.list.until(*launch));
        if let Some(before) = launch.and_then(|launch| launch.checked_sub(1)) {
            let over = 0..self.list.until(before);
            over.for_each(|t| merge(&HashMap::from([(t, i64::MAX)])));
        }
        let narrow = i64::from(own.is_narrow());
        for neighbour in own.neighbours.into_iter().flatten() {
            if number < end {
                merge(&self.seen(neighbour, number + narrow));
            }
        }
        let known = Rc::new(known);
        self.found.insert((task, number), known.clone());
        known
    }

    /// The first stage of a task and the one after its last.
    fn stages_of(&self, task: usize) -> [i64; 2] {
        let periods = &self.list.tasks[task].placement.periods;
        [periods.start, periods.end].map(|period| period as i64 * self.per_period)
    }

    /// Known from the progress of a task.
    fn seen(&mut self, task: usize, progress: i64) -> Known {
        let [first, end] = self.stages_of(task);
        self.known(task, progress.clamp(first, end))
    }

    /// The task of each event, by stage, update and place.
    fn events(&self) -> HashMap<(i64, usize, Group), usize> {
        let mut events = HashMap::new();
        let rings = &self.towers.rings;
        for (task, of) in self.list.tasks.iter().enumerate() {
            let placement = &of.placement;
            let alignment = placement.alignment;
            for period in placement.periods.clone() {
                let by = self.towers.advance.map(|n| n * period as i64);
                let origin = placement.origin + by;
                for (n, stage) in self.towers.alignments[alignment].stages.iter().enumerate() {
                    let number = period as i64 * self.per_period + n as i64;
                    let stage_of_step = n % self.scheme.stages.len();
                    let updates = &self.scheme.stages[stage_of_step].updates;
                    for own in &stage.updates {
                        let depths = self.towers.depths(alignment, n, *own).expect("a row");
                        let at = origin + own.at;
                        let seam = rings.seam.as_ref();
                        let side = seam.map(|s| s.side(stage_of_step, own.update).at(number));
                        let beyond = |c: usize| placement.limits[c].is_some_and(|l| depths[c] >= l);
                        if side.is_some_and(|side| !side.contains(at.x)) || (0..2).any(beyond) {
                            continue;
                        }
                        let [x, y] = rings.cells;
                        let around = |at: i64, cells: Option<i64>| {
                            cells.map_or(at, |cells| at.rem_euclid(cells))
                        };
                        let at = Group::new(around(at.x, x), around(at.y, y));
                        let region = updates[own.update].region;
                        if region[Axis::OUTER].contains(at.x) && region[Axis::MIDDLE].contains(at.y)
                        {
                            let before = events.insert((number, own.update, at), task);
                            assert_eq!(before, None, "{at:?} at {number} has two towers");
                        }
                    }
                }
            }
        }
        events
    }

    /// Whether all events on which an event depends are done when it runs: reads after writes, writes after reads and
    /// writes.
    fn check(&mut self, layout: &Layout, periods: u64) {
        let events = self.events();
        let stages = self.scheme.stages.len() as i64;
        let all = periods as i64 * self.per_period;
        // Per place and row, in the order of stages: the last write, and the reads since.
        let mut places: HashMap<Place, (Option<Event>, Vec<Event>)> = HashMap::new();
        for number in 0..all {
            let stage = StageId((number % stages) as u32);
            let phase = (number / stages % i64::from(self.scheme.phases().max(1))) as u32;
            let mut touched = Vec::new();
            for (index, update) in self.scheme.stages[stage.index()].updates.iter().enumerate() {
                let [outer, middle, inner] = update.region.0;
                if inner.is_empty() {
                    continue;
                }
                let lines = (outer.lo..outer.hi)
                    .flat_map(|x| (middle.lo..middle.hi).map(move |y| Group::new(x, y)));
                for at in lines {
                    let task = *events
                        .get(&(number, index, at))
                        .unwrap_or_else(|| panic!("{at:?} of {index} at {number} has no tower"));
                    for read in update.body.reads() {
                        let Some(place) = self.stored(read.component, at + reach(read)) else {
                            continue;
                        };
                        let row = layout.read_row(self.scheme, stage, phase, read);
                        touched.push((place, row.0, task, false));
                    }
                    let row = layout.target_row(self.scheme, stage, phase, update.target);
                    touched.push((at, row.0, task, true));
                }
            }
            // In a stage, reads come before writes.
            touched.sort_by_key(|(.., write)| *write);
            for (place, row, task, write) in touched {
                let (last, reads) = places.entry((place, row)).or_default();
                let needed: Vec<Event> = match write {
                    true => reads.iter().chain(last.as_ref()).copied().collect(),
                    false => last.iter().copied().collect(),
                };
                for (n, other) in needed {
                    if other == task || n == number {
                        continue;
                    }
                    let done = self.known(task, number).get(&other).copied();
                    assert!(
                        done > Some(n),
                        "task {task} {:?} at {number} needs {n} of {other} {:?}, knows {done:?}: place {place:?} row \
                         {row} write {write}",
                        self.list.tasks[task],
                        self.list.tasks[other],
                    );
                }
                match write {
                    true => (*last, *reads) = (Some((number, task)), Vec::new()),
                    false => reads.push((number, task)),
                }
            }
        }
    }

    /// Where the row lies that is read at a place, perhaps as a ghost; `None` for constant zeros.
    fn stored(&self, id: ComponentId, at: Group) -> Option<Group> {
        let position = self.scheme.component(id).position;
        let z = self.scheme.grid.live(position)[Axis::INNER].lo;
        match self.scheme.grid.resolve(position, PerAxis([at.x, at.y, z])) {
            torre_compiler::scheme::Located::Stored { at, .. } => {
                Some(Group::new(at[Axis::OUTER], at[Axis::MIDDLE]))
            }
            torre_compiler::scheme::Located::Zero => None,
        }
    }
}

/// Whether all tasks end, if each begins when its neighbours and the one before in its work queue have ended: then
/// there is an order of all in which each comes after these.
pub fn all_end(list: &TaskList) -> bool {
    let mut ended = vec![false; list.tasks.len()];
    let mut until = 0;
    for launch in &list.launches {
        let mut queues: Vec<std::ops::Range<usize>> = Vec::new();
        for count in launch {
            queues.push(until..until + count);
            until += count;
        }
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            for own in &mut queues {
                let next = own.clone().find(|task| {
                    let mut neighbours = list.tasks[*task].neighbours.iter();
                    let ready = neighbours.all(|n| n.is_none_or(|n| ended[n]));
                    ended[*task] = ready;
                    goes_on |= ready;
                    !ready
                });
                own.start = next.unwrap_or(own.end);
            }
        }
    }
    until == ended.len() && ended.iter().all(|e| *e)
}

/// The towers of a scheme by two faces with these slopes, or steeper ones, and pitches; `None` where there are none.
fn towers_by(scheme: &Scheme, faces: [(Rational, Rational); 2]) -> Option<(Layout, Towers)> {
    let layout = Layout::for_gpu(scheme).ok()?;
    let frame = Frame::new(scheme, &cones(scheme)).opened();
    let mut tiling = diamonds(&frame, faces.map(|(_, pitch)| pitch), 1 << 20);
    for (cut, (slope, _)) in tiling.levels[0].cuts.iter_mut().zip(faces) {
        cut.face.slope = cut.face.slope.max(slope);
    }
    let tiles = lower(scheme, &frame, &tiling).expect("fitting faces are legal");
    let towers = Towers::new(scheme, &layout, &tiles, Numbering::Grid).ok()?;
    towers.waits_reach_all().then_some((layout, towers))
}

/// Of all pairs of indices, the pairs of tiles with rows in the grid are listed.
fn all_tiles_are_listed(scheme: &Scheme, layout: &Layout, towers: &Towers, periods: u64) {
    let bounds = towers.bounds(scheme, layout);
    let tiles = towers.tiles(scheme, &bounds, periods).expect("few tiles");
    let [first, second] = towers.indices(scheme, periods).expect("few tiles");
    for i in first.lo..first.hi {
        let listed = tiles.iter().find(|(row, _)| *row == i);
        for j in second.lo..second.hi {
            let is_listed = listed.is_some_and(|(_, along)| along.contains(j));
            let has_rows = towers.place(&bounds, [i, j], periods).is_some();
            assert!(is_listed || !has_rows, "{i} {j}");
        }
    }
}

/// In a grid eight times as long along one axis eight times as many tiles are looked at.
#[test]
fn tiles_grow_with_the_longer_axis() {
    let faces = [(Rational::ONE, Rational::whole(6)); 2];
    for axis in [Axis::OUTER, Axis::MIDDLE] {
        let listed = [1000, 8000].map(|length| {
            let mut cells = [24; 3];
            cells[axis.index()] = length;
            let scheme = maxwell(4, Precision::F32, cells);
            let (layout, towers) = towers_by(&scheme, faces).expect("towers");
            let bounds = towers.bounds(&scheme, &layout);
            let tiles = towers.tiles(&scheme, &bounds, 8).expect("few tiles");
            tiles.iter().map(|(_, along)| along.len()).sum::<i64>()
        });
        assert!(listed[1] <= 9 * listed[0], "{axis:?} {listed:?}");
    }
}

/// Towers are counted by variants and by planes as a list of all of them says.
fn are_counted_as_listed(
    scheme: &Scheme,
    layout: &Layout,
    towers: &Towers,
    periods: u64,
    order: Order,
) {
    let list = tasks(scheme, layout, towers, periods, order).expect("few towers");
    let mut expected = Tally {
        towers: list.tasks.len(),
        variants: vec![0; towers.variants.all.len()],
    };
    let access = PlaneAccess::new(scheme, layout, towers, Axis::OUTER);
    let mut planes: BTreeMap<i64, (usize, Planes)> = BTreeMap::new();
    for Task { placement, .. } in &list.tasks {
        let interior = !placement.interior.is_empty();
        expected.variants[placement.variant] += usize::from(interior);
        let (count, all) = planes.entry(placement.origin.x).or_default();
        *count += 1;
        *all = all.hull(access.of(placement));
    }
    let found = tally(scheme, layout, towers, periods, order);
    assert_eq!(found, Some(expected));
    if !scheme.grid.is_periodic(Axis::OUTER) {
        let found = TowersByPlane::new(scheme, layout, towers, periods, &access);
        let found = found.expect("few towers");
        assert_eq!(found.towers, list.tasks.len());
        let of = |(x, own): (i64, TowersOfPlane)| (x, (own.towers, own.planes));
        let found: BTreeMap<i64, (usize, Planes)> = found.planes.into_iter().map(of).collect();
        assert_eq!(found, planes);
    }
}

/// Towers meet layers on some sides, and run other variants there.
#[test]
fn towers_in_layers_are_counted_as_they_are_listed() {
    let order = Order {
        width: 4,
        overlap: 2,
        head_start: 0,
        partitions: 2,
    };
    let mut variants = 0;
    for (cells, layers) in [
        ([40, 44, 12], [5, 6, 3]),
        ([30, 60, 8], [0, 7, 0]),
        ([60, 30, 8], [8, 0, 2]),
    ] {
        let mut scheme = maxwell(4, Precision::F32, cells);
        add_layers(&mut scheme, PerAxis(layers));
        for pitches in [[3, 3], [4, 4], [5, 5], [6, 6], [4, 6]] {
            let faces = pitches.map(|pitch| (Rational::ONE, Rational::whole(pitch)));
            let Some((layout, towers)) = towers_by(&scheme, faces) else {
                continue;
            };
            for periods in [1, 2, 5] {
                are_counted_as_listed(&scheme, &layout, &towers, periods, order);
                variants += usize::from(towers.variants.all.len() > 1);
            }
        }
    }
    assert!(variants > 20, "{variants}");
}

/// Checks the tasks of a time block; `None` where there are no towers.
fn check(
    scheme: &Scheme,
    faces: [(Rational, Rational); 2],
    periods: u64,
    order: Order,
) -> Option<usize> {
    let (layout, towers) = towers_by(scheme, faces)?;
    let Some(list) = tasks(scheme, &layout, &towers, periods, order) else {
        assert_eq!(tally(scheme, &layout, &towers, periods, order), None);
        return None;
    };
    assert!(all_end(&list), "{list:?}");
    all_tiles_are_listed(scheme, &layout, &towers, periods);
    are_counted_as_listed(scheme, &layout, &towers, periods, order);
    let narrow = list.tasks.iter().filter(|t| t.is_narrow()).count();
    let mut time_block = TimeBlock {
        scheme,
        towers: &towers,
        per_period: towers.per_period(),
        list,
        found: HashMap::new(),
    };
    time_block.check(&layout, periods);
    Some(narrow)
}

#[test]
fn towers_wait_for_all_that_they_depend_on() {
    let (tried, narrow) = random_towers(0..600, |_, _, _| {});
    assert!(tried > 60 && narrow > 10, "{narrow} of {tried}");
}

/// Also where all stages but one act at an end of the grid only, so that few towers have rows in their regions. In the
/// last schemes, a row is advanced by a tower and then by one that is no neighbour of it, or is seen through a mirror
/// along a diagonal, or a seam lies between.
#[test]
fn towers_wait_where_stages_act_in_parts_of_the_grid() {
    let seeds = (0..400).chain([552, 7856, 8104, 9331, 18773]);
    let (tried, _) = random_towers(seeds, confine_all_but_one);
    assert!(tried > 40, "{tried}");
}

/// How many random schemes, each changed by its seed, have towers, and how many have narrow ones.
fn random_towers(
    seeds: impl Iterator<Item = u64>,
    change: impl Fn(u64, &mut Rng, &mut Scheme),
) -> (usize, usize) {
    let limits = Limits {
        dimensions: 3,
        components: 3,
        stages: 3,
        ops: 6,
        length: 12,
        width: 3,
        reach: 2,
    };
    let (mut tried, mut narrow) = (0, 0);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        if scheme.grid.dimensions() < 3 {
            continue;
        }
        change(seed, &mut rng, &mut scheme);
        let frame = Frame::new(&scheme, &cones(&scheme)).opened();
        let slopes = [[1, 1, 0], [1, -1, 0]].map(|form| frame.slope(PerAxis(form)));
        let doubled = slopes.map(|slope| (slope * Rational::whole(2)).ceil());
        let slope = doubled[0].max(doubled[1]).max(1);
        let [width, periods] = [rng.within(1, 6), rng.within(1, 3)];
        for axis in [Axis::OUTER, Axis::MIDDLE] {
            let steps = 2 * scheme.stages.len() as i64 * i64::from(scheme.phases()) * periods;
            let least = match (scheme.grid.is_periodic(axis), axis) {
                (true, Axis::OUTER) => slope * steps + 2 * width + 12,
                (true, _) => 4 * width,
                _ => 0,
            };
            let by = (least - scheme.grid.cells[axis]).max(0) + rng.within(0, 6);
            lengthen(&mut scheme, axis, by);
        }
        let slope = Rational::new(slope, 2).unwrap_or(Rational::ONE);
        let order = Order {
            width: rng.within(1, 4),
            overlap: rng.within(0, 3),
            head_start: 0,
            partitions: rng.within(1, 3) as u32,
        };
        let other = if rng.once_in(3) {
            rng.within(2, 6)
        } else {
            width
        };
        let faces = [width, other].map(|width| (slope, Rational::whole(width)));
        if let Some(found) = check(&scheme, faces, periods as u64, order) {
            tried += 1;
            narrow += usize::from(found > 0);
        }
    }
    (tried, narrow)
}

/// Confines the updates of all stages but one to the first or the last row along both axes, and sometimes the updates
/// of that one, too.
fn confine_all_but_one(seed: u64, rng: &mut Rng, scheme: &mut Scheme) {
    let last = scheme.stages.len() as i64 - 1;
    let [also, but] = [0, 0].map(|from| rng.within(from, last) as usize);
    for (number, stage) in scheme.stages.iter_mut().enumerate() {
        if number == but && number != also {
            continue;
        }
        for update in &mut stage.updates {
            for axis in [Axis::OUTER, Axis::MIDDLE] {
                let region = &mut update.region[axis];
                match seed % 2 {
                    _ if region.is_empty() => {}
                    0 => region.hi = region.lo + 1,
                    _ => region.lo = region.hi - 1,
                }
            }
        }
    }
}

/// Also where a ring has more tiles along one face than along the other.
#[test]
fn work_queues_around_rings_end() {
    let (mut tried, mut refused) = (0, 0);
    for cells in [36, 48, 60] {
        let mut scheme = maxwell(2, Precision::F32, [40, cells, 4]);
        scheme.grid.boundary[Axis::MIDDLE] = [Boundary::Periodic; 2];
        everywhere(&mut scheme);
        for pitches in [[6, 6], [6, 4], [4, 6], [6, 3], [3, 6], [12, 4], [4, 12]] {
            let faces = pitches.map(|pitch| (Rational::ONE, Rational::whole(pitch)));
            let Some((layout, towers)) = towers_by(&scheme, faces) else {
                continue;
            };
            for n in 0..240 {
                let order = Order {
                    width: 1 + n % 8,
                    overlap: n / 8 % 5 * 4,
                    head_start: 0,
                    partitions: 1 + n as u32 / 40 % 3,
                };
                let list = tasks(&scheme, &layout, &towers, 2, order);
                let counted = tally(&scheme, &layout, &towers, 2, order).map(|all| all.towers);
                assert_eq!(counted, list.as_ref().map(|list| list.tasks.len()));
                refused += usize::from(list.is_none());
                if let Some(list) = list {
                    assert!(all_end(&list), "{cells} {pitches:?} {order:?}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 3000 && refused > 100, "{tried} {refused}");
}
