//! The groups of time blocks, derived from towers.

use super::{LaidOut, Pass, PassBlock, RingPart, Window};
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tower::{
    GroupedTasks, Grouping, Located, Order, PlaneAccess, Planes, TaskList, Towers, TowersByPlane,
    grouped_tasks,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The needs of a group without towers: below all groups.
const NONE: i64 = i64::MIN / 4;

/// Planes of a buffer without a bound.
const UNLIMITED: i64 = 1 << 40;

/// Time blocks of some towers in groups of planes, by their height.
#[derive(Clone, Debug)]
pub struct Footprints {
    towers: Towers,
    access: PlaneAccess,
    order: Order,
    grouping: Grouping,
    /// By height; the same for all groups.
    by_plane: BTreeMap<u64, Arc<TowersByPlane>>,
    heights: BTreeMap<u64, Height>,
    /// By height, and the distance of two time blocks: per group, the last group of the earlier one that has to be done
    /// before.
    needs: BTreeMap<(u64, Between), Arc<[i64]>>,
}

/// The distance of two time blocks: stages between their beginnings, and planes by which the seam has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Between {
    stages: i64,
    moved: i64,
}

/// The towers of time blocks of some height.
#[derive(Clone, Debug)]
pub struct Height {
    pub steps: u64,
    /// The number of the first group.
    pub first: i64,
    /// The planes of each group, along the way.
    pub groups: Arc<[Planes]>,
    /// Per group, how many towers there are; and of all groups.
    pub towers: Vec<usize>,
    pub all: usize,
    /// Per group, the towers that come last of each kind: others of the kind depend on no later towers of earlier time
    /// blocks than these do.
    last: Vec<Vec<Located>>,
}

/// Towers of a group that differ in their place alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    alignment: usize,
    /// Where some towers around a ring are narrow, only towers of one row are of a kind.
    row: Option<i64>,
}

impl Height {
    /// The towers of a group by its number; 0 if there is no such group.
    pub fn towers_of(&self, group: i64) -> usize {
        let index = usize::try_from(group - self.first).ok();
        let towers = index.and_then(|index| self.towers.get(index));
        towers.copied().unwrap_or(0)
    }
}

/// Planes along the way of towers, or back.
pub(super) fn along(way: i64, planes: Interval) -> Interval {
    match way < 0 {
        true => Interval::new(1 - planes.hi, 1 - planes.lo),
        false => planes,
    }
}

impl Footprints {
    /// Groups of a number of planes, for time blocks of a number of steps at most.
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        towers: &Towers,
        order: Order,
        planes: i64,
        steps: u64,
    ) -> Footprints {
        Footprints {
            access: PlaneAccess::new(scheme, layout, towers, Axis::OUTER),
            towers: towers.clone(),
            order,
            grouping: Grouping::new(towers, planes, steps / towers.steps.max(1)),
            by_plane: BTreeMap::new(),
            heights: BTreeMap::new(),
            needs: BTreeMap::new(),
        }
    }

    /// The same footprints with groups of `planes` planes, for time blocks of at most `steps` steps. Counts of towers
    /// are kept.
    pub fn regrouped(&self, planes: i64, steps: u64) -> Footprints {
        let periods = steps / self.towers.steps.max(1);
        Footprints {
            towers: self.towers.clone(),
            access: self.access.clone(),
            order: self.order,
            grouping: Grouping::new(&self.towers, planes, periods),
            by_plane: self.by_plane.clone(),
            heights: BTreeMap::new(),
            needs: BTreeMap::new(),
        }
    }

    pub fn towers(&self) -> &Towers {
        &self.towers
    }

    /// Along the outer axis towers move up (1) or down (-1).
    pub fn way(&self) -> i64 {
        self.towers.way()
    }

    /// The planes of the array along the way, ghosts included.
    pub fn held(&self) -> Interval {
        along(self.way(), self.access.held())
    }

    /// Planes of the ring, where the outer axis is periodic and planes are counted on around it.
    pub fn ring(&self) -> Option<i64> {
        let cells = self.towers.rings.cells[0];
        cells.filter(|_| self.access.is_unrolled())
    }

    /// The planes of passes of time blocks of such heights, or lower ones: planes of the array, or planes that are
    /// counted on around a ring.
    pub fn planes(
        &mut self,
        scheme: &Scheme,
        layout: &Layout,
        heights: &[u64],
    ) -> Option<Interval> {
        match self.ring() {
            None => Some(self.held()),
            Some(_) => Some(self.pass(scheme, layout, heights)?.ring_part?.loaded),
        }
    }

    /// Planes of the array as they are counted along the way, or the other way round.
    pub fn along(&self, planes: Interval) -> Interval {
        along(self.way(), planes)
    }

    pub fn grouping(&self) -> Grouping {
        self.grouping
    }

    /// The towers of time blocks of `steps` steps, a whole number of periods. `None` where they cannot be put into
    /// groups, or there are none.
    pub fn height(&mut self, scheme: &Scheme, layout: &Layout, steps: u64) -> Option<&Height> {
        if !self.heights.contains_key(&steps) {
            let height = self.make(scheme, layout, steps)?;
            self.heights.insert(steps, height);
        }
        self.heights.get(&steps)
    }

    /// The same, if it was asked for before.
    pub fn known(&self, steps: u64) -> Option<&Height> {
        self.heights.get(&steps)
    }

    fn make(&mut self, scheme: &Scheme, layout: &Layout, steps: u64) -> Option<Height> {
        let towers = &self.towers;
        let way = towers.way();
        let ring = scheme.grid.is_periodic(Axis::OUTER) && !self.access.is_unrolled();
        let unfit = way == 0 || self.grouping.planes() < 1 || ring;
        if unfit || steps == 0 || !steps.is_multiple_of(towers.steps) {
            return None;
        }
        if !towers.follow_neighbours() {
            // Only the towers themselves say whether some depend on towers of later groups.
            self.tasks(scheme, layout, steps)?;
        }
        let by_plane = match self.by_plane.get(&steps) {
            Some(known) => known.clone(),
            None => {
                let periods = steps / towers.steps;
                let all = TowersByPlane::new(scheme, layout, towers, periods, &self.access)?;
                let all = Arc::new(all);
                self.by_plane.insert(steps, all.clone());
                all
            }
        };
        let numbers = by_plane.planes.keys().map(|x| self.grouping.number(*x));
        let (first, last) = (numbers.clone().min()?, numbers.max()?);
        let count = usize::try_from(last - first + 1).ok()?;
        let mut groups = vec![Planes::default(); count];
        let mut counts = vec![0; count];
        let mut lasts: Vec<BTreeMap<Kind, Located>> = vec![BTreeMap::new(); count];
        let narrow = self.towers.rings.narrow;
        for (x, own) in &by_plane.planes {
            let group = (self.grouping.number(*x) - first) as usize;
            counts[group] += own.towers;
            groups[group] = groups[group].hull(Planes {
                touched: self.along(own.planes.touched),
                written: self.along(own.planes.written),
            });
            for tower in &own.kinds {
                let kind = Kind {
                    alignment: tower.alignment,
                    row: narrow.then_some(tower.origin.y),
                };
                let last = lasts[group].entry(kind).or_insert(*tower);
                if -way * tower.origin.x > -way * last.origin.x {
                    *last = *tower;
                }
            }
        }
        Some(Height {
            steps,
            first,
            groups: groups.into(),
            towers: counts,
            all: by_plane.towers,
            last: lasts
                .into_iter()
                .map(|of| of.into_values().collect())
                .collect(),
        })
    }

    /// The towers of time blocks of `steps` steps, with one launch for each group.
    pub fn tasks(&self, scheme: &Scheme, layout: &Layout, steps: u64) -> Option<TaskList> {
        let periods = steps / self.towers.steps.max(1);
        let towers = &self.towers;
        let grouped = grouped_tasks(scheme, layout, towers, periods, self.order, self.grouping)?;
        let GroupedTasks { list, .. } = grouped;
        (!list.tasks.is_empty()).then_some(list)
    }

    /// Per group of time blocks of a height, the last group that has to be done of a time block that begins `between`
    /// before.
    fn needs(&mut self, steps: u64, between: Between) -> Option<Arc<[i64]>> {
        if let Some(known) = self.needs.get(&(steps, between)) {
            return Some(known.clone());
        }
        let Between { stages, moved } = between;
        let height = self.heights.get(&steps)?;
        let need = |tower: &Located| {
            let origin = self.towers.last_before(*tower, stages, moved);
            self.grouping.number(origin)
        };
        let of = |last: &Vec<Located>| last.iter().map(need).max().unwrap_or(NONE);
        let needs: Arc<[i64]> = height.last.iter().map(of).collect();
        self.needs.insert((steps, between), needs.clone());
        Some(needs)
    }

    /// The planes that a buffer has to have for passes of such heights, one after the other, if some planes are
    /// gathered after each time block.
    pub fn least_places(
        &mut self,
        scheme: &Scheme,
        layout: &Layout,
        heights: &[u64],
        window: &Window,
        gathers: &[Interval],
    ) -> Option<i64> {
        let mut pass = self.pass(scheme, layout, heights)?;
        for block in &mut pass.blocks {
            block.gathers = match self.ring() {
                // Gathers end passes.
                Some(_) => Vec::new(),
                None => gathers.to_vec(),
            };
        }
        let window = Window {
            planes: self.planes(scheme, layout, heights)?,
            buffer: window.buffer.with_places(UNLIMITED),
            devices: 1,
            ..window.clone()
        };
        let laid_out = LaidOut::new(window, vec![pass.clone(), pass], self.way());
        laid_out.ok().map(|laid_out| laid_out.peak)
    }

    /// A pass of time blocks of such heights.
    pub fn pass(&mut self, scheme: &Scheme, layout: &Layout, heights: &[u64]) -> Option<Pass> {
        let stages = scheme.stages.len() as i64;
        let mut blocks: Vec<PassBlock> = Vec::new();
        let mut moved = 0;
        for (number, steps) in heights.iter().enumerate() {
            let Height { first, groups, .. } = self.height(scheme, layout, *steps)?;
            let (first, groups) = (*first, farther(groups, moved));
            let mut needs = Vec::new();
            for earlier in 0..number {
                let between: u64 = heights[earlier..number].iter().sum();
                let between = Between {
                    stages: between as i64 * stages,
                    moved: moved - blocks[earlier].moved,
                };
                needs.push(self.needs(*steps, between)?);
            }
            blocks.push(PassBlock {
                steps: *steps,
                first,
                moved,
                groups,
                needs,
                gathers: Vec::new(),
            });
            if self.ring().is_some() {
                moved += self.towers.drift(*steps as i64 * stages);
            }
        }
        let ring_part = match self.ring() {
            Some(ring) => Some(self.ring_part(scheme, &blocks, ring + moved)?),
            None => None,
        };
        Some(Pass { blocks, ring_part })
    }

    /// Planes that blocks have of the ring, `least` or more: the planes of the ring and the planes by which the seam
    /// moves. `None` if blocks touch planes above the top.
    fn ring_part(&self, scheme: &Scheme, blocks: &[PassBlock], least: i64) -> Option<RingPart> {
        let groups = blocks.iter().flat_map(|block| block.groups.iter());
        let all = groups.fold(Planes::default(), |all, group| all.hull(*group));
        let top = self.access.top(&self.towers, scheme)?;
        (all.touched.hi <= top).then_some(RingPart {
            loaded: Interval::new(all.touched.lo.min(top - least), top),
            stored: all.written,
        })
    }
}

/// The planes of groups, moved against the way by some planes.
fn farther(groups: &Arc<[Planes]>, moved: i64) -> Arc<[Planes]> {
    if moved == 0 {
        return groups.clone();
    }
    let by = |range: Interval| match range.is_empty() {
        true => range,
        false => Interval::new(range.lo - moved, range.hi - moved),
    };
    let groups = groups.iter().map(|group| Planes {
        touched: by(group.touched),
        written: by(group.written),
    });
    groups.collect()
}
