//! Several devices: each computes a stripe of the domain along the middle axis.
//!
//! A stripe is the towers of one device ([`Zigzag`]). It accesses some rows that its neighbours access, too: an
//! *overlap*, of which both devices have a copy. The unit of work is a launch of a stripe in a time block. In a time
//! block neighbours run in turns, and after each launch a device sends the planes of the overlaps that the launch wrote
//! to its neighbours. So the device that runs has the newest values of its overlaps, for any shapes of towers, and
//! sends no value that is out of date. A plane belongs to one time block at a time: a launch waits for the launches of
//! earlier time blocks, in its own and the neighbouring stripes, that access a plane that it writes, or write one that
//! it accesses, and for the copies that these sent.
//!
//! While a device waits for its neighbours in one time block, it computes in another one: several are in flight.
//!
//! [`StripedPass::operations`] makes the list of a pass, which [`check_stripes`] executes symbolically. All operations
//! of a pass are over when the next one begins.

mod build;
mod check;
mod pace;
mod print;

pub use build::StripeOps;
pub use check::{StripeFault, check_stripes};
pub use pace::{StripeSeconds, StripedTime};
pub use print::PrintedStripes;

use super::footprint::along;
use crate::lattice::{Axis, Interval};
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tower::{
    Order, PlaneAccess, Planes, TaskList, Towers, Zigzag, last_column, striped_tasks,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The stripes of a domain.
#[derive(Clone, Debug)]
pub struct Stripes {
    towers: Towers,
    order: Order,
    zigzag: Zigzag,
    outer: PlaneAccess,
    middle: PlaneAccess,
    /// Per stripe.
    rows: Vec<Interval>,
    heights: BTreeMap<u64, StripedHeight>,
}

/// Why a domain is not cut into stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStripes {
    /// Along the outer axis towers do not move, or either axis is periodic.
    Axes,
    /// Stripes of `cells` cells along the middle axis would meet others than their neighbours, or have no towers.
    Narrow { cells: i64 },
    /// Towers depend on others in an order in which stripes do not run.
    Order,
}

/// The towers of time blocks of some height.
#[derive(Clone, Debug)]
pub struct StripedHeight {
    pub steps: u64,
    /// Per stripe, in as many launches as it has.
    pub lists: Vec<TaskList>,
    pub stripes: Arc<[StripeLaunches]>,
}

/// The launches of a stripe in a time block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeLaunches {
    /// The number of the first one. Numbers of a stripe are 2 apart.
    pub first: i64,
    /// The planes across the outer axis of each, along the way of towers.
    planes: Vec<Planes>,
    /// One above the highest plane that it or a later one accesses.
    below: Vec<i64>,
}

impl StripeLaunches {
    pub fn new(first: i64, planes: Vec<Planes>) -> StripeLaunches {
        let mut below = Vec::with_capacity(planes.len());
        let mut most = i64::MIN;
        for own in planes.iter().rev() {
            if !own.touched.is_empty() {
                most = most.max(own.touched.hi);
            }
            below.push(most);
        }
        below.reverse();
        StripeLaunches {
            first,
            planes,
            below,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.planes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.planes.is_empty()
    }

    /// The last launch that writes planes that a launch with `planes` accesses, or accesses planes that it writes.
    fn last_conflict(&self, planes: Planes) -> Option<i64> {
        let meet = |a: Interval, b: Interval| !a.intersect(b).is_empty();
        let count = self.below.partition_point(|hi| *hi > planes.touched.lo);
        let found = self.planes[..count].iter().rposition(|own| {
            meet(own.written, planes.touched) || meet(own.touched, planes.written)
        });
        found.map(|index| self.first + 2 * index as i64)
    }

    /// After the last one.
    fn end(&self) -> i64 {
        self.first + 2 * self.planes.len() as i64
    }

    /// The index of a launch.
    pub fn index(&self, launch: i64) -> Option<usize> {
        let by = launch.checked_sub(self.first).filter(|by| by % 2 == 0)?;
        let index = usize::try_from(by / 2).ok()?;
        (index < self.planes.len()).then_some(index)
    }

    pub fn planes(&self, launch: i64) -> Option<Planes> {
        self.planes.get(self.index(launch)?).copied()
    }

    fn numbers(&self) -> impl DoubleEndedIterator<Item = i64> + use<> {
        let first = self.first;
        (0..self.planes.len()).map(move |index| first + 2 * index as i64)
    }
}

/// Time blocks of all stripes, several of them in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripedPass {
    /// Queues of time blocks of a device: the most that are in flight.
    pub in_flight: usize,
    pub blocks: Vec<StripedBlock>,
}

/// A time block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripedBlock {
    pub steps: u64,
    pub stripes: Arc<[StripeLaunches]>,
}

/// A queue of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StripeQueue {
    /// Time blocks of a stripe, dealt to slots in turns.
    Blocks { stripe: usize, slot: usize },
    /// Copies from the device to the next stripe up, or down, the middle axis. In one queue for all time blocks, a copy
    /// would wait for launches whose turn in the list is earlier, and which run later.
    Links {
        stripe: usize,
        slot: usize,
        up: bool,
    },
}

impl StripeQueue {
    /// The stripe whose device it belongs to.
    pub fn stripe(self) -> usize {
        match self {
            StripeQueue::Blocks { stripe, .. } | StripeQueue::Links { stripe, .. } => stripe,
        }
    }
}

/// The action of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripeAction {
    /// Runs the towers of a launch of a stripe in a block of the pass.
    Run {
        block: usize,
        stripe: usize,
        launch: i64,
    },
    /// Copies planes, along the way of towers, of the overlap of two neighbouring stripes from one device to the other.
    Send {
        block: usize,
        from: usize,
        to: usize,
        planes: Interval,
    },
}

/// An operation of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeOp {
    pub action: StripeAction,
    pub queue: StripeQueue,
    /// Operations, by their index in the list, that are over before it begins, besides the one before it in its queue.
    pub after: Vec<usize>,
}

impl Stripes {
    /// Cuts a domain at these indices along the middle axis, ascending, for time blocks of `steps` steps at most, and
    /// launches of twice `columns` columns of towers.
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        towers: &Towers,
        order: Order,
        columns: i64,
        borders: &[i64],
        steps: u64,
    ) -> Result<Stripes, NoStripes> {
        let rings = [Axis::OUTER, Axis::MIDDLE];
        if towers.way() == 0 || rings.iter().any(|axis| scheme.grid.is_periodic(*axis)) {
            return Err(NoStripes::Axes);
        }
        let cells = scheme.grid.cells[Axis::MIDDLE] / (borders.len() as i64 + 1);
        let narrow = NoStripes::Narrow { cells };
        let periods = steps / towers.steps.max(1);
        // A time block without towers has no columns; its stripes are refused below.
        let last = last_column(scheme, layout, towers, periods).unwrap_or_default();
        let zigzag = Zigzag::new(towers, columns, last, borders).ok_or(narrow)?;
        let mut stripes = Stripes {
            outer: PlaneAccess::new(scheme, layout, towers, Axis::OUTER),
            middle: PlaneAccess::new(scheme, layout, towers, Axis::MIDDLE),
            towers: towers.clone(),
            order,
            rows: Vec::new(),
            heights: BTreeMap::new(),
            zigzag,
        };
        let height = stripes.make(scheme, layout, steps);
        let height = height.ok_or(NoStripes::Order)?;
        if height.lists.iter().any(|list| list.tasks.is_empty()) {
            return Err(narrow);
        }
        let rows = |list: &TaskList| {
            let of = |task: &crate::tower::Task| stripes.middle.of(&task.placement).touched;
            list.tasks
                .iter()
                .map(of)
                .fold(Interval::default(), Interval::hull)
        };
        let rows: Vec<Interval> = height.lists.iter().map(rows).collect();
        let meets = |far: &[Interval]| far[0].hi > far[2].lo;
        if rows.windows(3).any(meets) {
            return Err(narrow);
        }
        stripes.rows = rows;
        stripes.heights.insert(steps, height);
        Ok(stripes)
    }

    pub fn towers(&self) -> &Towers {
        &self.towers
    }

    pub fn count(&self) -> usize {
        self.zigzag.stripes()
    }

    /// Columns of a group; a launch has two groups.
    pub fn columns(&self) -> i64 {
        self.zigzag.columns()
    }

    /// The group of a column of tiles.
    pub fn group(&self, column: i64) -> i64 {
        self.zigzag.group(column)
    }

    /// Planes across the outer axis as they are counted along the way of towers, or the other way round.
    pub fn along(&self, planes: Interval) -> Interval {
        along(self.towers.way(), planes)
    }

    /// The indices along the middle axis that each stripe accesses, ghosts included.
    pub fn rows(&self) -> &[Interval] {
        &self.rows
    }

    /// The most of them that a stripe has.
    pub fn widest(&self) -> i64 {
        self.rows.iter().map(|rows| rows.len()).max().unwrap_or(0)
    }

    /// The indices that a stripe and the next one up the middle axis both access.
    pub fn overlap(&self, below: usize) -> Interval {
        match (self.rows.get(below), self.rows.get(below + 1)) {
            (Some(one), Some(other)) => one.intersect(*other),
            _ => Interval::default(),
        }
    }

    /// The indices whose values a stripe has at the end of a pass, each in one stripe; all of the array together.
    pub fn own(&self, stripe: usize, layout: &Layout) -> Interval {
        let all = layout.visible(Axis::MIDDLE);
        let cut = |below: usize| {
            let overlap = self.overlap(below);
            match overlap.is_empty() {
                true => self.rows.get(below + 1).map_or(all.hi, |rows| rows.lo),
                false => overlap.lo + overlap.len() / 2,
            }
        };
        let last = stripe + 1 == self.count();
        Interval::new(
            stripe.checked_sub(1).map_or(all.lo, cut),
            if last { all.hi } else { cut(stripe) },
        )
    }

    /// The towers of time blocks of `steps` steps, a whole number of periods. `None` where there are none.
    pub fn height(
        &mut self,
        scheme: &Scheme,
        layout: &Layout,
        steps: u64,
    ) -> Option<&StripedHeight> {
        if !self.heights.contains_key(&steps) {
            let height = self.make(scheme, layout, steps)?;
            self.heights.insert(steps, height);
        }
        self.heights.get(&steps)
    }

    /// The same, if it was asked for before.
    pub fn known(&self, steps: u64) -> Option<&StripedHeight> {
        self.heights.get(&steps)
    }

    fn make(&self, scheme: &Scheme, layout: &Layout, steps: u64) -> Option<StripedHeight> {
        let towers = &self.towers;
        if steps == 0 || !steps.is_multiple_of(towers.steps) {
            return None;
        }
        let periods = steps / towers.steps;
        let all = striped_tasks(scheme, layout, towers, periods, self.order, &self.zigzag)?;
        let stripes = all.iter().enumerate().map(|(stripe, grouped)| {
            let planes = |launch: usize| {
                let tasks = &grouped.list.tasks[grouped.list.of_launch(launch)];
                let of = |task: &crate::tower::Task| {
                    let planes = self.outer.of(&task.placement);
                    Planes {
                        touched: self.along(planes.touched),
                        written: self.along(planes.written),
                    }
                };
                tasks.iter().map(of).fold(Planes::default(), Planes::hull)
            };
            let launches = match grouped.list.tasks.is_empty() {
                true => 0,
                false => grouped.list.launches.len(),
            };
            let first = 2 * grouped.first + (stripe % 2) as i64;
            StripeLaunches::new(first, (0..launches).map(planes).collect())
        });
        let stripes = stripes.collect();
        Some(StripedHeight {
            steps,
            stripes,
            lists: all.into_iter().map(|grouped| grouped.list).collect(),
        })
    }

    /// A pass of time blocks of such heights.
    pub fn pass(
        &mut self,
        scheme: &Scheme,
        layout: &Layout,
        heights: &[u64],
        in_flight: usize,
    ) -> Option<StripedPass> {
        let mut blocks = Vec::new();
        for steps in heights {
            let stripes = self.height(scheme, layout, *steps)?.stripes.clone();
            blocks.push(StripedBlock {
                steps: *steps,
                stripes,
            });
        }
        Some(StripedPass {
            in_flight: in_flight.max(1),
            blocks,
        })
    }
}

impl StripedPass {
    pub fn stripes(&self) -> usize {
        self.blocks.first().map_or(0, |block| block.stripes.len())
    }

    /// The stripes next to one.
    fn neighbours(&self, stripe: usize) -> impl Iterator<Item = usize> + use<> {
        let above = (stripe + 1 < self.stripes()).then_some(stripe + 1);
        stripe.checked_sub(1).into_iter().chain(above)
    }
}

impl fmt::Display for NoStripes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoStripes::Axes => f.write_str(
                "several devices need towers that move along the first axis, and neither the first nor the second \
                 axis may be periodic",
            ),
            NoStripes::Narrow { cells } => write!(
                f,
                "stripes of {cells} cells along the second axis are too narrow for several devices"
            ),
            NoStripes::Order => f.write_str(
                "the towers depend on each other in an order in which several devices do not run",
            ),
        }
    }
}

impl std::error::Error for NoStripes {}
