//! Time blocks in flight and calculation windows: how many, over how many planes, for a device's memory.

use super::{DevicePlanner, NoWindow, PlannedSlabs, Refusal, TowerPlan, predict};
use crate::gpu::{EvenHeights, HeightShares, HeldPlanes, InFlight, device_bytes};
use std::collections::BTreeSet;
use torre_compiler::backend::gpu::abi::{PROGRESS_BYTES, TaskWord};
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::{Footprints, LaidOut, LaunchTowers, Rates, WindowRate, WindowWork};
use torre_compiler::tower::Towers;

/// Time blocks in flight over planes of the host's memory, or of files, planned.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowPlan {
    pub how: InFlight,
    /// Devices that take passes in turns.
    pub devices: usize,
    /// Steps of a pass, on average: some time blocks are lower than others.
    pub steps: u64,
    /// Planes across the first axis, ghosts included.
    pub planes: i64,
    /// Bytes of each device's memory.
    pub bytes: u64,
    /// Bytes of a plane.
    pub plane_bytes: u64,
    /// Cells of a plane.
    pub cells_of_plane: u64,
    /// Bytes copied each way in a run.
    pub copied: u64,
    /// Bytes of the files that planes come from and go to; `None`: they are in the host's memory.
    pub files: Option<u64>,
    /// Planes that a pass around a periodic first axis loads once more, or that slabs over files have in common.
    pub again: i64,
    pub kind: WindowKind,
}

/// How planes go through a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowKind {
    Moving(MovingWindow),
    Slabs(PlannedSlabs),
}

/// A calculation window, planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MovingWindow {
    /// The fewest places that a buffer needs for it.
    pub least: i64,
    pub rate: WindowRate,
}

impl WindowPlan {
    /// Cell-steps per second that are expected.
    pub fn rate(&self) -> f64 {
        match &self.kind {
            WindowKind::Moving(window) => window.rate.cells,
            WindowKind::Slabs(slabs) => slabs.rate.cells,
        }
    }

    /// Bytes copied each way in the steps that are `left` of `all` steps of the run that was planned.
    pub fn copied_in(&self, left: u64, all: u64) -> u64 {
        // Passes of a chain go through files together.
        let together = match (self.files, &self.kind) {
            (Some(_), WindowKind::Moving(_)) => self.devices.max(1) as u64,
            _ => 1,
        };
        let passes = |steps: u64| steps.div_ceil(self.steps.max(1)).div_ceil(together);
        (self.copied / passes(all).max(1)).saturating_mul(passes(left))
    }

    /// Cell-steps per second that transfers allow, and that computing allows.
    pub fn allowed(&self) -> [f64; 2] {
        match &self.kind {
            WindowKind::Moving(MovingWindow { rate, .. }) => [rate.transfers, rate.computing],
            WindowKind::Slabs(PlannedSlabs { rate, .. }) => [rate.transfers, rate.computing],
        }
    }

    /// The rate by which plans are compared.
    pub fn weighed(&self) -> f64 {
        match &self.kind {
            WindowKind::Moving(window) => window.rate.weighed,
            WindowKind::Slabs(slabs) => slabs.rate.cells,
        }
    }
}

/// A window that is considered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// The rate that it could have at most; 0 where its places are too few for its planes ([`is_close`]).
    pub(super) rate: f64,
    pub(super) how: InFlight,
    /// The planes that it has, about.
    pub(super) about: i64,
}

/// The options that are asked for, and the memory that there is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Time blocks in flight; `None`: the number that is expected to be fastest.
    pub blocks: Option<usize>,
    /// Columns of towers of a group, in the same way.
    pub columns: Option<i64>,
    /// Steps between checkpoints.
    pub every: Option<u64>,
    /// Bytes of each device's memory.
    pub available: u64,
    /// Devices that take passes in turns, if there are several.
    pub devices: usize,
    /// Bytes that a disk reads and writes per second, both together, if planes are in files.
    pub disk: Option<f64>,
    /// Cell-steps per second that the towers are expected to reach where the whole array is on the device.
    pub cells: f64,
}

/// Time blocks in flight that are considered, and columns of towers of a group. Files are so slow that passes over them
/// cannot have too many.
const BLOCKS: [usize; 10] = [12, 10, 8, 7, 6, 5, 4, 3, 2, 1];
const BLOCKS_OVER_FILES: [usize; 14] = [64, 48, 40, 32, 24, 20, 16, 12, 8, 6, 4, 3, 2, 1];
pub(super) const COLUMNS: [i64; 11] = [64, 48, 32, 24, 16, 12, 8, 6, 4, 2, 1];

/// The same where the whole array is on the device.
const RESIDENT: (usize, i64) = (4, 16);

/// Groups whose planes are loaded ahead, in a buffer in which planes slide and in a circular one. In a circular one
/// loads go ahead as far as there is room, and launches wait for nothing but the groups and planes that they need, in
/// any order of the list; so one group, which takes fewest planes, is enough.
const AHEAD: [i64; 2] = [2, 1];

/// A window is looked at closely whose planes are about as many as there are places, or a little more.
const CLOSE: f64 = 1.2;

/// The least and the greatest number of heights of time blocks for whose tables there is memory. A run with more
/// heights gives tables back that no pass needs.
const HEIGHTS: [u64; 2] = [3, 8];

/// Numbers of time blocks in flight for a run of `all` time blocks, out of some in descending order: no more than it
/// has, and all of them, if these are not too many.
fn blocks_of_a_run(considered: &[usize], all: u64) -> Vec<usize> {
    let all = usize::try_from(all).unwrap_or(usize::MAX).max(1);
    let whole = considered.first().filter(|most| all <= **most);
    let fewer = considered.iter().copied().filter(|blocks| *blocks < all);
    whole.map(|_| all).into_iter().chain(fewer).collect()
}

/// Planes of a group of `columns` columns of towers.
pub fn group_planes(towers: &Towers, columns: i64) -> i64 {
    let apart = (towers.cells() / 2.0).sqrt();
    ((columns as f64 * apart).round() as i64).max(1)
}

impl DevicePlanner<'_> {
    /// Whether a run can have time blocks in flight.
    pub(super) fn window_refusal(
        &self,
        plan: Option<&TowerPlan>,
        every: Option<u64>,
    ) -> Option<NoWindow> {
        let Some(plan) = plan else {
            return Some(match self.interruptions.refusal() {
                Some(reason) => NoWindow::Points(reason),
                None => NoWindow::Layerwise,
            });
        };
        let towers = plan.fit.towers();
        if towers.way() == 0 {
            return Some(NoWindow::Way);
        }
        if let Some(reason) = self.interruptions.refusal() {
            return Some(NoWindow::Points(reason));
        }
        let period = towers.steps;
        let due = self.problem.intervals();
        let mut due = due.chain([self.problem.steps]).chain(every);
        let every = due.find(|steps| !steps.is_multiple_of(period))?;
        Some(NoWindow::Steps { period, every })
    }

    /// Why nothing but a window over the host's memory, or over files, goes around a periodic first axis.
    pub(super) fn ring_refusal(&self) -> Option<NoWindow> {
        let periodic = self.planner.scheme.grid.is_periodic(Axis::OUTER);
        periodic.then_some(NoWindow::Ring)
    }

    /// Time blocks in flight over the whole array on the device.
    pub fn resident(&self, plan: Option<&TowerPlan>, wanted: Wanted) -> Result<InFlight, Refusal> {
        let refusal = self.window_refusal(plan, wanted.every);
        match (plan, refusal.or(self.ring_refusal())) {
            (_, Some(reason)) => Err(Refusal::Window(reason)),
            (None, None) => Err(Refusal::Window(NoWindow::Layerwise)),
            (Some(plan), None) => {
                let (blocks, columns) = RESIDENT;
                let columns = wanted.columns.unwrap_or(columns);
                Ok(InFlight {
                    blocks: wanted.blocks.unwrap_or(blocks),
                    group: group_planes(plan.fit.towers(), columns),
                    ahead: 0,
                    spread: true,
                    held: HeldPlanes::All,
                })
            }
        }
    }

    /// The most cell-steps per second that any window over the towers of a plan could do, without looking whether it
    /// fits.
    pub fn window_bound(&self, plan: &TowerPlan, wanted: Wanted) -> f64 {
        let candidates = self.window_candidates(plan, wanted);
        let rates = candidates.iter().map(|candidate| candidate.rate);
        rates.fold(0.0, f64::max)
    }

    /// Windows that are considered, the one with the highest rate first.
    pub(super) fn window_candidates(&self, plan: &TowerPlan, wanted: Wanted) -> Vec<Candidate> {
        let layout = &self.window_layout;
        let towers = plan.fit.towers();
        let mapping = self.model.facts.mapping;
        let blocks = match wanted.blocks {
            Some(blocks) => vec![blocks],
            None => blocks_of_a_run(
                match wanted.disk {
                    Some(_) => &BLOCKS_OVER_FILES[..],
                    None => &BLOCKS,
                },
                self.problem.steps.div_ceil(plan.height().max(1)),
            ),
        };
        let mut candidates = Vec::new();
        for blocks in blocks {
            for columns in wanted.columns.map_or(COLUMNS.to_vec(), |n| vec![n]) {
                let how = InFlight {
                    blocks,
                    group: group_planes(towers, columns),
                    ahead: AHEAD[usize::from(mapping.is_some())],
                    spread: mapping.is_none(),
                    held: HeldPlanes::window(0, mapping),
                };
                // A circular buffer has a whole number of pieces of memory.
                let fits = |places| self.window_bytes(plan, how, places) <= wanted.available;
                let places = most_that_fit(2 * layout.visible(Axis::OUTER).len(), fits);
                let how = how.with_places(places);
                let about = about_planes(towers, plan.height(), how);
                let rate = self.window_rate(plan, wanted, how, about);
                let close = is_close(about, places);
                candidates.push(Candidate {
                    rate: if close { rate.weighed } else { 0.0 },
                    how,
                    about,
                });
            }
        }
        candidates.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        candidates
    }

    /// The expected rate of a window of `least` planes.
    pub(super) fn window_rate(
        &self,
        plan: &TowerPlan,
        wanted: Wanted,
        how: InFlight,
        least: i64,
    ) -> WindowRate {
        let steps = self.pass_steps(plan, how.blocks);
        let planes = self.window_layout.visible(Axis::OUTER).len();
        let passes = self.problem.steps.div_ceil(steps.max(1));
        let work = WindowWork {
            steps,
            bytes: self.bytes_of_a_cell(),
            window: least,
            slides_in: match how.held {
                HeldPlanes::Sliding { places } => Some(places),
                _ => None,
            },
            launch: self.launch_towers(plan, how.group),
            planes: (passes as i64 * planes) as f64 / wanted.devices.max(1) as f64,
        };
        let rate = WindowRate::new(self.window_rates(wanted), work);
        match wanted.disk {
            // A chain of passes ends before the next one begins.
            Some(_) => rate.in_turns(
                wanted.devices,
                wanted.devices as u64,
                planes,
                least + how.group,
            ),
            None => self.in_turns(rate, wanted.devices, steps, least + how.group),
        }
    }

    /// The towers of a launch of a group of `group` planes.
    pub(super) fn launch_towers(&self, plan: &TowerPlan, group: i64) -> LaunchTowers {
        let towers = plan.fit.towers();
        let moved = towers.advance.x.abs() * (plan.height() / towers.steps.max(1)) as i64;
        let begin = self.planner.scheme.grid.cells[Axis::OUTER] + moved;
        let block = &plan.fit.block;
        let cluster = block.lines.cluster().max(1);
        let resident = match cluster {
            1 => self.model.resident(block, plan.fit.registers),
            _ => 1,
        };
        LaunchTowers {
            count: plan.count as f64 * (group as f64 / begin.max(1) as f64).min(1.0),
            together: u64::from(self.model.facts.multiprocessors.max(1)) as f64 * resident as f64
                / f64::from(cluster),
        }
    }

    /// The rate of devices that take passes of `steps` steps in turns, from the rate of one device.
    fn in_turns(&self, rate: WindowRate, devices: usize, steps: u64, behind: i64) -> WindowRate {
        let planes = self.window_layout.visible(Axis::OUTER).len();
        let passes = self.problem.steps.div_ceil(steps.max(1));
        rate.in_turns(devices, passes, planes, behind)
    }

    pub(super) fn window_rates(&self, wanted: Wanted) -> Rates {
        let link = self.model.link_rate();
        Rates {
            cells: wanted.cells,
            // The passes of a chain move together, each as fast as the files are read and written.
            link: wanted.disk.map_or(link, |disk| link.min(disk / 2.0)),
            copies: self.model.copy_rate,
        }
    }

    /// Bytes of a cell, with all that lies between rows.
    pub(super) fn bytes_of_a_cell(&self) -> f64 {
        let layout = &self.window_layout;
        let plane_bytes = layout.stride[Axis::OUTER] as f64 * layout.element_bytes as f64;
        plane_bytes / self.cells_of_a_plane().max(1) as f64
    }

    pub(super) fn cells_of_a_plane(&self) -> i64 {
        let cells = self.planner.scheme.grid.cells;
        cells[Axis::MIDDLE] * cells[Axis::INNER]
    }

    /// Bytes of a device's memory for a window of `places` planes, with tables.
    pub(super) fn window_bytes(&self, plan: &TowerPlan, how: InFlight, places: i64) -> u64 {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let how = how.with_places(places);
        let waves = self.waves_per_step();
        device_bytes(scheme, self.problem, layout, plan.height(), how, waves)
            .saturating_add(self.tables(plan, how.blocks))
    }

    /// The heights of the time blocks of a run of a window or of stripes, in their order, as far as one looks: a list
    /// up to each step after which something is due.
    pub(super) fn even_blocks(&self, plan: &TowerPlan) -> Vec<Vec<u64>> {
        let heights = EvenHeights::new(plan.height(), plan.fit.towers());
        self.interruptions.even_blocks(heights, self.problem.steps)
    }

    /// The cell-steps per second that are expected of the towers of a plan where the whole array is on the device, in
    /// the time blocks of a window or of stripes.
    pub fn rate_in_flight(&self, plan: &TowerPlan) -> f64 {
        let mut blocks = self.even_blocks(plan).concat();
        if blocks.is_empty() {
            blocks.push(plan.height());
        }
        let whole = self.predicted(&plan.fit, plan.height());
        let shares = HeightShares::of_blocks(&blocks);
        let parts = self.parts(&shares, |height| self.predicted(&plan.fit, height));
        let mixed = predict::mixed(whole, &parts, &self.layerwise.prediction);
        self.with_waves(mixed).rate
    }

    /// The steps of a pass of some time blocks, on average: some are lower than others. No pass has more than the run.
    pub(super) fn pass_steps(&self, plan: &TowerPlan, blocks: usize) -> u64 {
        let all = self.even_blocks(plan).concat();
        let mean = match all.len() {
            0 => plan.height() as f64,
            count => all.iter().sum::<u64>() as f64 / count as f64,
        };
        let steps = (blocks as f64 * mean).round() as u64;
        steps.clamp(1, self.problem.steps.max(1))
    }

    /// The heights of time blocks for which there are tables.
    pub(super) fn table_heights(&self, plan: &TowerPlan) -> u64 {
        let heights: BTreeSet<u64> = self.even_blocks(plan).into_iter().flatten().collect();
        let [least, most] = HEIGHTS;
        (heights.len() as u64).clamp(least, most)
    }

    /// Bytes of the tables of time blocks.
    pub(super) fn table_bytes(&self, plan: &TowerPlan) -> u64 {
        let task = u64::from(TaskWord::BYTES + PROGRESS_BYTES * plan.fit.block.lines.cluster());
        self.table_heights(plan) * plan.count as u64 * task
    }

    /// Bytes of the tables of time blocks; around a ring two passes may have tasks for each of theirs.
    fn tables(&self, plan: &TowerPlan, blocks: usize) -> u64 {
        let each = plan.count as u64 * u64::from(TaskWord::BYTES);
        let around = self.ring_refusal().map_or(0, |_| 2 * blocks as u64);
        self.table_bytes(plan)
            .saturating_add(each.saturating_mul(around))
    }

    /// The groups of time blocks of a plan, in groups of `group` planes; its towers are known.
    pub(super) fn footprints(&self, plan: &TowerPlan, group: i64) -> Footprints {
        let (scheme, layout): (_, &Layout) = (self.planner.scheme, &self.window_layout);
        let mut footprints = Footprints::new(
            scheme,
            layout,
            plan.fit.towers(),
            plan.order.order,
            group,
            plan.height(),
        );
        footprints.height(scheme, layout, plan.height());
        footprints
    }

    /// The operations of two passes of each device of a plan.
    pub fn laid_out(&self, plan: &TowerPlan, how: InFlight, devices: usize) -> Option<LaidOut> {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let mut footprints = self.footprints(plan, how.group);
        let heights = vec![plan.height(); how.blocks];
        let pass = footprints.pass(scheme, layout, &heights)?;
        let window = how.window(&mut footprints, scheme, layout, plan.height(), devices)?;
        LaidOut::new(window, vec![pass; 2 * devices], footprints.way()).ok()
    }
}

/// The largest number up to `most` that fits, where all smaller ones do; 0 if none does.
fn most_that_fit(most: i64, fits: impl Fn(i64) -> bool) -> i64 {
    let (mut fitting, mut most) = (0, most.max(0));
    while fitting < most {
        let middle = fitting + (most - fitting + 1) / 2;
        match fits(middle) {
            true => fitting = middle,
            false => most = middle - 1,
        }
    }
    fitting
}

/// Whether a window of about `about` planes may fit into `places` places.
pub(super) fn is_close(about: i64, places: i64) -> bool {
    about as f64 <= CLOSE * places as f64
}

/// The planes of a window, about.
fn about_planes(towers: &Towers, steps: u64, how: InFlight) -> i64 {
    let moved = towers.advance.x.abs() * (steps / towers.steps.max(1)) as i64;
    let lag = (how.group + moved) / how.group.max(1);
    let blocks = how.blocks.max(1) as i64 - 1;
    let offset = lag * blocks + blocks / 2 * i64::from(how.spread);
    moved + how.group * (1 + offset + how.ahead) + 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_no_more_time_blocks_in_flight_than_time_blocks() {
        let of = |all| blocks_of_a_run(&BLOCKS, all);
        assert_eq!(of(0), [1]);
        assert_eq!(of(1), [1]);
        assert_eq!(of(4), [4, 3, 2, 1]);
        assert_eq!(of(9), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(of(11), [11, 10, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(of(12), BLOCKS);
        assert_eq!(of(u64::MAX), BLOCKS);
        assert_eq!(blocks_of_a_run(&BLOCKS_OVER_FILES, 30)[..2], [30, 24]);
    }
}
