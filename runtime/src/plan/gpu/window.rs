//! Time blocks in flight and calculation windows: how many, over how many planes, for a device's memory.

use super::{DevicePlanner, NoWindow, PlannedSlabs, Refusal, TowerPlan};
use crate::disk;
use crate::gpu::{InFlight, device_bytes};
use std::collections::BTreeMap;
use torre_compiler::backend::gpu::abi::{PROGRESS_BYTES, TaskWord};
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::layout::Layout;
use torre_compiler::pipeline::{Footprints, LaidOut, Rates, Window, WindowRate};
use torre_compiler::problem::OutputKind;
use torre_compiler::tower::Towers;

/// Time blocks in flight, planned.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowPlan {
    pub how: InFlight,
    /// Devices that take passes in turns.
    pub devices: usize,
    /// Steps of a pass.
    pub steps: u64,
    /// Planes across the first axis, ghosts included; those of the window.
    pub planes: i64,
    pub least: i64,
    /// Bytes of each device's memory, and of a plane.
    pub bytes: u64,
    pub plane_bytes: u64,
    pub cells_of_plane: u64,
    pub rate: WindowRate,
    /// Bytes copied each way in a run.
    pub copied: u64,
    /// Bytes of the files that planes come from and go to; `None`: they are in the host's memory.
    pub files: Option<u64>,
    /// Where it is no window that slides, but slabs.
    pub slabs: Option<PlannedSlabs>,
}

/// What is asked for, and what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Time blocks in flight; `None`: what is expected to be fastest.
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
const BLOCKS: [usize; 7] = [8, 6, 5, 4, 3, 2, 1];
const BLOCKS_OVER_FILES: [usize; 14] = [64, 48, 40, 32, 24, 20, 16, 12, 8, 6, 4, 3, 2, 1];
pub(super) const COLUMNS: [i64; 5] = [16, 8, 4, 2, 1];

/// The same where the whole array is on the device.
const RESIDENT: (usize, i64) = (4, 16);

/// Groups whose planes are loaded ahead.
const AHEAD: i64 = 2;

/// Share of the rate that is lost for each group of a pass, about: a launch that ends while others wait for it.
pub(super) const LAUNCH: f64 = 0.16;

/// Time blocks have as many heights, about, for which there are tables.
pub(super) const HEIGHTS: u64 = 3;

/// Planes of a group of so many columns of towers.
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
        let scheme = self.planner.scheme;
        let Some(plan) = plan else {
            return Some(match self.interruptions.refusal() {
                Some(reason) => NoWindow::Points(reason),
                None => NoWindow::Layerwise,
            });
        };
        if scheme.grid.is_periodic(Axis::OUTER) {
            return Some(NoWindow::Ring);
        }
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

    /// Time blocks in flight over the whole array on the device.
    pub fn resident(&self, plan: Option<&TowerPlan>, wanted: Wanted) -> Result<InFlight, Refusal> {
        match (plan, self.window_refusal(plan, wanted.every)) {
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
                    places: None,
                    slabs: None,
                })
            }
        }
    }

    /// The most cell-steps per second that any window over the towers of a plan could do, without looking whether it
    /// fits.
    pub fn window_bound(&self, plan: &TowerPlan, wanted: Wanted) -> f64 {
        let candidates = self.window_candidates(plan, wanted);
        candidates
            .iter()
            .map(|(rate, ..)| *rate)
            .fold(0.0, f64::max)
    }

    /// Rates of windows that are considered, with the planes that they have about.
    fn window_candidates(&self, plan: &TowerPlan, wanted: Wanted) -> Vec<(f64, InFlight, i64)> {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let towers = plan.fit.towers();
        let plane_bytes = layout.stride[Axis::OUTER] as u64 * layout.element_bytes as u64;
        let (rates, bytes) = (self.window_rates(wanted), self.bytes_of_a_cell());
        let blocks = match wanted.disk {
            Some(_) => &BLOCKS_OVER_FILES[..],
            None => &BLOCKS,
        };
        let mut candidates = Vec::new();
        for &blocks in wanted.blocks.as_ref().map_or(blocks, std::slice::from_ref) {
            for columns in wanted.columns.map_or(COLUMNS.to_vec(), |n| vec![n]) {
                let how = InFlight {
                    blocks,
                    group: group_planes(towers, columns),
                    ahead: AHEAD,
                    spread: true,
                    places: Some(0),
                    slabs: None,
                };
                let fixed = device_bytes(scheme, self.problem, layout, plan.height(), how);
                let fixed = fixed.saturating_add(table_bytes(plan));
                let left = wanted.available.saturating_sub(fixed);
                let places = (left / plane_bytes.max(1)) as i64;
                let how = InFlight {
                    places: Some(places.min(2 * layout.visible(Axis::OUTER).len())),
                    ..how
                };
                let about = about_planes(towers, plan.height(), how);
                let steps = blocks as u64 * plan.height();
                let rate = WindowRate::new(rates, steps, bytes, about, places);
                let rate = self.in_turns(rate, wanted.devices, steps, about + how.group);
                let launches = 1.0 - LAUNCH / columns as f64;
                // What is about twice too large is not looked at closely.
                let rate = if about <= 2 * places {
                    rate.cells * launches
                } else {
                    0.0
                };
                candidates.push((rate, how, about));
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
        candidates
    }

    /// The rate of devices that take passes of so many steps in turns, if that of one is known.
    fn in_turns(&self, rate: WindowRate, devices: usize, steps: u64, behind: i64) -> WindowRate {
        let planes = self.window_layout.visible(Axis::OUTER).len();
        let passes = self.problem.steps.div_ceil(steps.max(1));
        rate.in_turns(devices, passes, planes, behind)
    }

    pub(super) fn window_rates(&self, wanted: Wanted) -> Rates {
        let link = self.model.link_rate();
        Rates {
            cells: wanted.cells,
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

    /// A calculation window over the host's memory, or over files.
    pub fn window(&self, plan: Option<&TowerPlan>, wanted: Wanted) -> Result<WindowPlan, Refusal> {
        let available = wanted.available;
        let refuse = |reason| Err(Refusal::Window(reason));
        if let Some(reason) = self.window_refusal(plan, wanted.every) {
            return refuse(reason);
        }
        let Some(plan) = plan else {
            return refuse(NoWindow::Layerwise);
        };
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let plane_bytes = layout.stride[Axis::OUTER] as u64 * layout.element_bytes as u64;
        let (rates, bytes) = (self.window_rates(wanted), self.bytes_of_a_cell());
        let tables = table_bytes(plan);
        let candidates = self.window_candidates(plan, wanted);
        // By planes of a group: towers are put into groups once.
        let mut known: BTreeMap<i64, Footprints> = BTreeMap::new();
        let mut needed = None::<u64>;
        for (_, how, about) in candidates {
            let places = how.places.unwrap_or(0);
            // What is about twice too large is not looked at closely.
            let least = match about <= 2 * places {
                true => {
                    let new = || self.footprints(plan, how);
                    let footprints = known.entry(how.group).or_insert_with(new);
                    self.least_places(footprints, plan, how)
                        .ok_or(Refusal::Window(NoWindow::Way))?
                }
                false => about,
            };
            let fixed = device_bytes(
                scheme,
                self.problem,
                layout,
                plan.height(),
                InFlight {
                    places: Some(least),
                    ..how
                },
            );
            let own = fixed.saturating_add(tables);
            needed = Some(needed.map_or(own, |least: u64| least.min(own)));
            if least > places {
                continue;
            }
            let steps = how.blocks as u64 * plan.height();
            let planes = layout.visible(Axis::OUTER).len();
            let passes = self.problem.steps.div_ceil(steps.max(1));
            let rate = WindowRate::new(rates, steps, bytes, least, places);
            return Ok(WindowPlan {
                how,
                devices: wanted.devices.max(1),
                steps,
                planes,
                least,
                bytes: device_bytes(scheme, self.problem, layout, plan.height(), how)
                    .saturating_add(tables),
                plane_bytes,
                cells_of_plane: self.cells_of_a_plane() as u64,
                rate: self.in_turns(rate, wanted.devices, steps, least + how.group),
                files: wanted.disk.map(|_| disk::needed(layout)),
                slabs: None,
                copied: passes
                    .saturating_mul(planes as u64)
                    .saturating_mul(plane_bytes),
            });
        }
        refuse(NoWindow::Memory {
            needed: needed.unwrap_or(u64::MAX),
            available,
        })
    }

    pub(super) fn footprints(&self, plan: &TowerPlan, how: InFlight) -> Footprints {
        let (scheme, layout): (_, &Layout) = (self.planner.scheme, &self.window_layout);
        Footprints::new(
            scheme,
            layout,
            plan.fit.towers(),
            plan.order.order,
            how.group,
            plan.height(),
        )
    }

    /// The planes that a window holds at least.
    fn least_places(
        &self,
        footprints: &mut Footprints,
        plan: &TowerPlan,
        how: InFlight,
    ) -> Option<i64> {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let window = Window {
            planes: footprints.held(),
            places: None,
            devices: 1,
            in_flight: how.blocks,
            ahead: how.ahead,
            spread: how.spread,
        };
        let outputs = self.problem.outputs.iter();
        let slices = outputs.filter_map(|output| match output.kind {
            OutputKind::Slice {
                axis: Axis::OUTER,
                index,
            } => Some(Interval::new(index, index + 1)),
            OutputKind::Slice { .. } => Some(Interval::new(
                0,
                scheme.extent(output.component)[Axis::OUTER].hi,
            )),
            OutputKind::Volume => None,
        });
        let slices: Vec<Interval> = slices.collect();
        let slices: Vec<Interval> = slices.into_iter().map(|s| footprints.along(s)).collect();
        let heights = vec![plan.height(); how.blocks];
        footprints.least_places(scheme, layout, &heights, &window, &slices)
    }

    /// The operations of two passes of each device of a plan.
    pub fn laid_out(&self, plan: &TowerPlan, how: InFlight, devices: usize) -> Option<LaidOut> {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let mut footprints = self.footprints(plan, how);
        let heights = vec![plan.height(); how.blocks];
        let pass = footprints.pass(scheme, layout, &heights)?;
        let window = Window {
            planes: footprints.held(),
            places: how.places,
            devices,
            in_flight: how.blocks,
            ahead: how.ahead,
            spread: how.spread,
        };
        LaidOut::new(window, vec![pass; 2 * devices], footprints.way()).ok()
    }
}

/// Bytes of the tables of time blocks.
pub(super) fn table_bytes(plan: &TowerPlan) -> u64 {
    let task = u64::from(TaskWord::BYTES + PROGRESS_BYTES * plan.fit.block.lines.cluster());
    HEIGHTS * plan.count as u64 * task
}

/// The planes of a window, about.
fn about_planes(towers: &Towers, steps: u64, how: InFlight) -> i64 {
    let moved = towers.advance.x.abs() * (steps / towers.steps.max(1)) as i64;
    let lag = (how.group + moved) / how.group.max(1);
    let blocks = how.blocks.max(1) as i64 - 1;
    let offset = lag * blocks + blocks / 2 * i64::from(how.spread);
    moved + how.group * (1 + offset + how.ahead) + 8
}
