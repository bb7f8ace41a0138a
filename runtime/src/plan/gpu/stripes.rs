//! Several devices: where the grid is cut, and the prediction.

use super::window::group_planes;
use super::window_times::{MOST_LAUNCHES, SIGNALS, TAIL};
use super::{DevicePlanner, NoDevices, Refusal, TowerPlan, Wanted};
use crate::gpu::striped_bytes;
use std::collections::BTreeMap;
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::{
    LaunchTowers, StripeSeconds, StripeWork, StripedPass, StripedTime, Stripes, StripesRate,
};
use torre_compiler::tower::Zigzag;

/// Several devices, planned.
#[derive(Clone, Debug)]
pub struct StripesPlan {
    pub stripes: Stripes,
    pub in_flight: usize,
    /// Planes of a group.
    pub group: i64,
    /// Bytes of each device's memory.
    pub bytes: u64,
    /// Bytes that a launch sends to a neighbour.
    pub message: u64,
    pub rate: StripesRate,
}

/// Time blocks in flight, and columns of towers of a group that are considered.
const IN_FLIGHT: usize = 4;
const COLUMNS: [i64; 5] = [32, 16, 8, 4, 2];

/// Passes of a run that are timed, at most.
const PASSES: usize = 8;

/// Share of the time of a tower in which multiprocessors wait at the ends of a launch although another one goes on:
/// about 25 of 54 microseconds on an H100.
const BETWEEN: f64 = 0.45;

/// Columns by which a strip of towers takes longer in each launch, which begins and ends the strip anew. On H200s
/// launches of 32 columns reached 0.952 to 0.98 of the rate of whole time blocks, launches of 64 columns 0.976 to 1.
const STRIP: f64 = 1.0;

/// Columns of a group that are considered, if none were asked for.
fn considered(wanted: Wanted) -> Vec<i64> {
    wanted.columns.map_or(COLUMNS.to_vec(), |n| vec![n])
}

/// The time of towers in launches of two groups of these columns, as a multiple of that in whole time blocks.
fn strips(columns: i64) -> f64 {
    1.0 + STRIP / (2 * columns.max(1)) as f64
}

impl StripesPlan {
    /// The operations of a pass of a number of time blocks.
    pub fn pass(
        &mut self,
        planner: &DevicePlanner<'_>,
        steps: u64,
        blocks: usize,
    ) -> Option<StripedPass> {
        let (scheme, layout) = (planner.planner.scheme, &planner.planner.layout);
        let heights = vec![steps; blocks];
        self.stripes.pass(scheme, layout, &heights, self.in_flight)
    }
}

impl DevicePlanner<'_> {
    pub(super) fn stripes_refusal(
        &self,
        plan: &TowerPlan,
        every: Option<u64>,
    ) -> Option<NoDevices> {
        if let Some(reason) = self.interruptions.refusal() {
            return Some(NoDevices::Points(reason));
        }
        let period = plan.fit.towers().steps;
        let due = self.problem.intervals();
        let mut due = due.chain([self.problem.steps]).chain(every);
        let every = due.find(|steps| !steps.is_multiple_of(period))?;
        Some(NoDevices::Steps { period, every })
    }

    /// An upper bound on the rate of stripes, known without their towers: all devices compute all the time, but for the
    /// loss at the end of each launch when the next one goes on at once.
    pub fn stripes_bound(&self, plan: &TowerPlan, devices: usize, wanted: Wanted) -> f64 {
        let bounds = considered(wanted).into_iter();
        let bounds = bounds.map(|columns| self.bound_of_columns(plan, devices, columns, wanted));
        bounds.fold(0.0, f64::max)
    }

    fn bound_of_columns(
        &self,
        plan: &TowerPlan,
        devices: usize,
        columns: i64,
        wanted: Wanted,
    ) -> f64 {
        let launch = self.launch_of_stripe(plan, devices, columns);
        let share = launch.count / (launch.count + BETWEEN * launch.together);
        wanted.cells * share * devices as f64 / strips(Zigzag::even(columns))
    }

    /// The towers of a launch of a stripe, one for each device, with groups of these columns.
    fn launch_of_stripe(&self, plan: &TowerPlan, devices: usize, columns: i64) -> LaunchTowers {
        let group = group_planes(plan.fit.towers(), Zigzag::even(columns));
        let all = self.launch_towers(plan, 2 * group);
        LaunchTowers {
            count: all.count / devices.max(1) as f64,
            ..all
        }
    }

    /// Stripes for a number of devices.
    pub fn stripes(
        &self,
        plan: Option<&TowerPlan>,
        devices: usize,
        wanted: Wanted,
    ) -> Result<StripesPlan, Refusal> {
        let plan = plan.ok_or_else(|| {
            Refusal::Devices(match self.interruptions.refusal() {
                Some(reason) => NoDevices::Points(reason),
                None => NoDevices::Layerwise,
            })
        })?;
        if let Some(reason) = self.stripes_refusal(plan, wanted.every) {
            return Err(Refusal::Devices(reason));
        }
        let mut best: Result<StripesPlan, NoDevices> = Err(NoDevices::Layerwise);
        for columns in considered(wanted) {
            let bound = self.bound_of_columns(plan, devices, columns, wanted);
            if best.as_ref().is_ok_and(|best| bound <= best.rate.cells) {
                continue;
            }
            match (self.striped(plan, devices, columns, wanted), &best) {
                (Ok(own), best_so_far) => {
                    let own = self.timed(plan, own, wanted.cells);
                    let most = best_so_far.as_ref().map_or(0.0, |best| best.rate.cells);
                    if best_so_far.is_err() || own.rate.cells > most {
                        best = Ok(own);
                    }
                }
                // The reason that is left is that of the narrowest borders.
                (Err(reason), Err(_)) => best = Err(reason),
                (Err(_), Ok(_)) => {}
            }
        }
        best.map_err(Refusal::Devices)
    }

    /// The same with the rate that the operations of a run lead to, if they are not too many.
    fn timed(&self, plan: &TowerPlan, mut stripes: StripesPlan, cells: f64) -> StripesPlan {
        if let Some(rate) = self.rate_of_operations(plan, &mut stripes, cells) {
            stripes.rate = rate;
        }
        stripes
    }

    fn rate_of_operations(
        &self,
        plan: &TowerPlan,
        stripes: &mut StripesPlan,
        cells: f64,
    ) -> Option<StripesRate> {
        // A pass ends where something is due. Its time blocks are about alike.
        let passes = self.even_blocks(plan).into_iter().take(PASSES);
        let passes = passes.filter_map(|blocks| Some((*blocks.first()?, blocks.len())));
        let mut known = BTreeMap::<(u64, usize), StripedTime>::new();
        let (mut steps, mut seconds, mut computing) = (0, 0.0, 0.0);
        for (height, blocks) in passes {
            let time = match known.get(&(height, blocks)) {
                Some(time) => *time,
                None => self.time_of_pass(plan, stripes, cells, height, blocks)?,
            };
            known.insert((height, blocks), time);
            steps += height * blocks as u64;
            seconds += time.seconds;
            computing += time.computing;
        }
        let grid = self.planner.scheme.grid.cells;
        let all = grid.0.iter().map(|n| *n as f64).product::<f64>();
        (steps > 0).then(|| StripesRate {
            utilisation: computing / seconds,
            cells: all * steps as f64 / seconds,
            ..stripes.rate
        })
    }

    /// The time of a pass of `blocks` time blocks of `steps` steps; `None` if its operations are too many.
    fn time_of_pass(
        &self,
        plan: &TowerPlan,
        stripes: &mut StripesPlan,
        cells: f64,
        steps: u64,
        blocks: usize,
    ) -> Option<StripedTime> {
        // Beyond these each time block takes as long as the one before.
        let (few, many) = (2 * stripes.in_flight, 4 * stripes.in_flight);
        stripes.pass(self, steps, 1)?;
        let height = stripes.stripes.known(steps)?.clone();
        let launches: usize = height.stripes.iter().map(|own| own.len()).sum();
        if launches.saturating_mul(many) > MOST_LAUNCHES {
            return None;
        }
        let grid = self.planner.scheme.grid.cells;
        let all = grid.0.iter().map(|n| *n as f64).product::<f64>();
        let towers: usize = height.lists.iter().map(|list| list.tasks.len()).sum();
        // Of a tower, on a device that does nothing else.
        let each = all * steps as f64 / cells / towers.max(1) as f64;
        let each = each * strips(stripes.stripes.columns());
        // Seconds of the towers that run side by side.
        let together = self.launch_towers(plan, stripes.group).together * each;
        let launch = |stripe: usize, launch: i64| {
            let number = height.stripes[stripe].index(launch);
            let own = number.map_or(0, |number| height.lists[stripe].of_launch(number).len());
            own as f64 * each + BETWEEN * together
        };
        let layout = &self.planner.layout;
        let row = layout.stride[Axis::MIDDLE] as f64 * layout.element_bytes as f64;
        let overlap = (0..stripes.stripes.count()).map(|n| stripes.stripes.overlap(n).len());
        let plane = overlap.max().unwrap_or(0) as f64 * row / self.model.peer_rate();
        let of = StripeSeconds {
            launch: &launch,
            tail: TAIL * together,
            send: &|planes| planes.len() as f64 * plane + SIGNALS,
        };
        let mut time = |blocks: usize| {
            let pass = stripes.pass(self, steps, blocks)?;
            let ops = pass.operations().ok()?;
            Some(pass.time(&ops, &of))
        };
        let first = time(many.min(blocks))?;
        let left = blocks.saturating_sub(many) as f64;
        if left == 0.0 {
            return Some(first);
        }
        let before = time(few)?;
        let more = left / (many - few) as f64;
        Some(StripedTime {
            seconds: first.seconds + more * (first.seconds - before.seconds),
            computing: first.computing + more * (first.computing - before.computing),
        })
    }

    /// The same with groups of a number of columns of towers.
    fn striped(
        &self,
        plan: &TowerPlan,
        devices: usize,
        columns: i64,
        wanted: Wanted,
    ) -> Result<StripesPlan, NoDevices> {
        let (scheme, layout) = (self.planner.scheme, &self.planner.layout);
        let towers = plan.fit.towers();
        let cells = scheme.grid.cells;
        let count = devices.max(1) as i64;
        let borders: Vec<i64> = (1..count)
            .map(|n| n * cells[Axis::MIDDLE] / count)
            .collect();
        let (order, steps) = (plan.order.order, plan.height());
        let stripes = Stripes::new(scheme, layout, towers, order, columns, &borders, steps);
        let stripes = stripes.map_err(NoDevices::Stripes)?;
        let in_flight = wanted.blocks.unwrap_or(IN_FLIGHT).max(1);
        let tables = self.table_bytes(plan) / count as u64;
        let own = Layout::for_stripe(scheme, stripes.widest(), 0);
        let array = own.map_or(u64::MAX / 4, |own| own.bytes());
        let waves = self.waves_per_step();
        let bytes = striped_bytes(scheme, self.problem, array, steps, in_flight, waves);
        let bytes = bytes.saturating_add(tables);
        let available = wanted.available;
        if bytes > available {
            let needed = bytes;
            return Err(NoDevices::Memory { needed, available });
        }
        let group = group_planes(towers, stripes.columns());
        let own = (0..devices).map(|n| {
            stripes
                .own(n, layout)
                .intersect(Interval::new(0, cells[Axis::MIDDLE]))
        });
        let widest = own.map(|own| own.len()).max().unwrap_or(0) as f64;
        let of = |planes: i64, rows: f64| {
            planes as f64 * rows * cells[Axis::INNER] as f64 * steps as f64
        };
        let moved = towers.advance.x.abs() * (steps / towers.steps.max(1)) as i64;
        let share = self.launch_of_stripe(plan, devices, columns).share();
        let row = layout.stride[Axis::MIDDLE] as u64 * layout.element_bytes as u64;
        let overlap = (0..devices).map(|n| stripes.overlap(n).len()).max();
        let planes = (2 * group + moved).min(cells[Axis::OUTER]);
        let message = planes as u64 * overlap.unwrap_or(0) as u64 * row;
        let work = StripeWork {
            devices,
            in_flight,
            launch: of((2 * group).min(cells[Axis::OUTER]), widest),
            block: of(cells[Axis::OUTER], widest),
            all: of(cells[Axis::OUTER], cells[Axis::MIDDLE] as f64),
            message: message as f64,
            link: self.model.peer_rate(),
        };
        Ok(StripesPlan {
            rate: StripesRate::new(wanted.cells * share, work),
            stripes,
            in_flight,
            group,
            bytes,
            message,
        })
    }
}
