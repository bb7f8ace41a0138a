//! The groups of time blocks, derived from towers.

use super::{Block, LaidOut, Pass, Window};
use crate::lattice::Interval;
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tower::{
    GroupedTasks, Order, PlaneAccess, Planes, Task, TaskList, Towers, grouped_tasks,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a group without towers needs: below all groups.
const NONE: i64 = i64::MIN / 4;

/// Planes of a buffer without a bound.
const UNLIMITED: i64 = 1 << 40;

/// Time blocks of some towers in groups of planes, by their height.
#[derive(Clone, Debug)]
pub struct Footprints {
    towers: Towers,
    access: PlaneAccess,
    order: Order,
    /// Planes of a group.
    planes: i64,
    heights: BTreeMap<u64, Height>,
    /// By height, and stages between the beginnings of two time blocks: per group, the last group of the earlier one
    /// that has to be done before.
    needs: BTreeMap<(u64, i64), Arc<[i64]>>,
}

/// The towers of time blocks of some height.
#[derive(Clone, Debug)]
pub struct Height {
    pub steps: u64,
    /// In as many launches as there are groups.
    pub list: TaskList,
    /// The number of the first group.
    pub first: i64,
    /// The planes of each group, along the way.
    pub groups: Arc<[Planes]>,
}

/// Planes along the way of towers, or back.
pub(super) fn along(way: i64, planes: Interval) -> Interval {
    match way < 0 {
        true => Interval::new(1 - planes.hi, 1 - planes.lo),
        false => planes,
    }
}

impl Footprints {
    /// Groups of so many planes.
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        towers: &Towers,
        order: Order,
        planes: i64,
    ) -> Footprints {
        Footprints {
            access: PlaneAccess::new(scheme, layout, towers),
            towers: towers.clone(),
            order,
            planes,
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

    /// Planes of the array as they are counted along the way, or the other way round.
    pub fn along(&self, planes: Interval) -> Interval {
        along(self.way(), planes)
    }

    /// Planes of a group.
    pub fn planes(&self) -> i64 {
        self.planes
    }

    /// The towers of time blocks of so many steps, a whole number of periods. `None` where they cannot be put into
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

    fn make(&self, scheme: &Scheme, layout: &Layout, steps: u64) -> Option<Height> {
        let towers = &self.towers;
        if steps == 0 || !steps.is_multiple_of(towers.steps) {
            return None;
        }
        let periods = steps / towers.steps;
        let grouped = grouped_tasks(scheme, layout, towers, periods, self.order, self.planes)?;
        let GroupedTasks { list, first } = grouped;
        if list.tasks.is_empty() {
            return None;
        }
        let of = |task: &Task| {
            let planes = self.access.of(&task.placement);
            Planes {
                touched: self.along(planes.touched),
                written: self.along(planes.written),
            }
        };
        let group = |launch: usize| {
            let tasks = &list.tasks[list.of_launch(launch)];
            tasks.iter().map(of).fold(Planes::default(), Planes::hull)
        };
        let groups = (0..list.launches.len()).map(group).collect();
        Some(Height {
            steps,
            list,
            first,
            groups,
        })
    }

    /// Per group of time blocks of a height, the last group that has to be done of one that begins so many stages
    /// before.
    fn needs(&mut self, steps: u64, stages: i64) -> Option<Arc<[i64]>> {
        if let Some(known) = self.needs.get(&(steps, stages)) {
            return Some(known.clone());
        }
        let height = self.heights.get(&steps)?;
        let way = self.way();
        let number = |x: i64| (-way * x).div_euclid(self.planes);
        let need = |task: &Task| number(self.towers.last_before(&task.placement, stages));
        let of = |launch: usize| {
            let tasks = &height.list.tasks[height.list.of_launch(launch)];
            tasks.iter().map(need).max().unwrap_or(NONE)
        };
        let needs: Arc<[i64]> = (0..height.list.launches.len()).map(of).collect();
        self.needs.insert((steps, stages), needs.clone());
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
            block.gathers = gathers.to_vec();
        }
        let window = Window {
            places: Some(UNLIMITED),
            ..window.clone()
        };
        let laid_out = LaidOut::new(window, vec![pass.clone(), pass], self.way());
        laid_out.ok().map(|laid_out| laid_out.peak)
    }

    /// A pass of time blocks of such heights.
    pub fn pass(&mut self, scheme: &Scheme, layout: &Layout, heights: &[u64]) -> Option<Pass> {
        let stages = scheme.stages.len() as i64;
        let mut blocks = Vec::new();
        for (number, steps) in heights.iter().enumerate() {
            let Height { first, groups, .. } = self.height(scheme, layout, *steps)?;
            let (first, groups) = (*first, groups.clone());
            let mut needs = Vec::new();
            for earlier in 0..number {
                let between: u64 = heights[earlier..number].iter().sum();
                needs.push(self.needs(*steps, between as i64 * stages)?);
            }
            blocks.push(Block {
                steps: *steps,
                first,
                groups,
                needs,
                gathers: Vec::new(),
            });
        }
        Some(Pass { blocks })
    }
}
