//! The search for the calculation window that is expected to be fastest.

use super::window::{Candidate, MovingWindow, WindowKind, is_close};
use super::{DevicePlanner, NoWindow, Refusal, TowerPlan, Wanted, WindowPlan};
use crate::disk;
use crate::gpu::InFlight;
use std::collections::BTreeMap;
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::pipeline::{Footprints, mean_time};
use torre_compiler::problem::OutputKind;

/// Windows whose operations are timed for a schedule, at most.
const MOST_TIMED: usize = 6;

impl DevicePlanner<'_> {
    /// A calculation window over the host's memory, or over files.
    pub fn window(&self, plan: Option<&TowerPlan>, wanted: Wanted) -> Result<WindowPlan, Refusal> {
        if let Some(reason) = self.window_refusal(plan, wanted.every) {
            return Err(Refusal::Window(reason));
        }
        let plan = plan.ok_or(Refusal::Window(NoWindow::Layerwise))?;
        let candidates = self.window_candidates(plan, wanted);
        let mut search = Search {
            planner: self,
            plan,
            wanted,
            fewest: candidates
                .iter()
                .map(|candidate| candidate.how.blocks)
                .min(),
            all: None,
            known: BTreeMap::new(),
            needed: None,
        };
        let (mut best, mut timed) = (None::<WindowPlan>, 0);
        for candidate in candidates {
            let most = candidate.rate;
            let enough = |best: &WindowPlan| most <= best.weighed() || timed >= MOST_TIMED;
            if best.as_ref().is_some_and(enough) {
                break;
            }
            let Some(found) = search.weigh(candidate).map_err(Refusal::Window)? else {
                continue;
            };
            timed += 1;
            let is_better = |best: &WindowPlan| best.weighed() < found.weighed();
            if best.as_ref().is_none_or(is_better) {
                best = Some(found);
            }
        }
        best.ok_or_else(|| Refusal::Window(search.refusal()))
    }

    /// The planes that a run loads into a window and stores again.
    fn copied_planes(
        &self,
        footprints: Option<&mut Footprints>,
        plan: &TowerPlan,
        wanted: Wanted,
        how: InFlight,
    ) -> CopiedPlanes {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let heights = vec![plan.height(); how.blocks];
        let loaded = footprints.and_then(|own| own.planes(scheme, layout, &heights));
        let loaded = loaded.unwrap_or(layout.visible(Axis::OUTER)).len();
        let ring = self.ring_refusal().map(|_| scheme.grid.cells[Axis::OUTER]);
        let again = ring.map_or(0, |ring| loaded - ring);
        let passes = self
            .problem
            .steps
            .div_ceil(self.pass_steps(plan, how.blocks));
        let devices = wanted.devices.max(1) as u64;
        // How often planes come from the host and go back, or from files. Over files, planes that come back stay in the
        // host's memory.
        let (planes, through) = match wanted.disk {
            Some(_) => (loaded - again, passes.div_ceil(devices)),
            None => (loaded, passes),
        };
        CopiedPlanes {
            again,
            planes: through.saturating_mul(planes as u64),
        }
    }

    /// The planes that a window holds at least.
    fn least_places(
        &self,
        footprints: &mut Footprints,
        plan: &TowerPlan,
        how: InFlight,
    ) -> Option<i64> {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let window = how.window(footprints, scheme, layout, plan.height(), 1)?;
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
}

/// The planes that a run copies to a window, and back.
struct CopiedPlanes {
    /// The planes that a pass has twice, around a ring.
    again: i64,
    /// Of all passes.
    planes: u64,
}

/// The windows that were looked at.
struct Search<'a> {
    planner: &'a DevicePlanner<'a>,
    plan: &'a TowerPlan,
    wanted: Wanted,
    /// The fewest time blocks in flight of all candidates.
    fewest: Option<usize>,
    /// The towers of a time block, once they were looked at.
    all: Option<Footprints>,
    /// The same by planes of a group.
    known: BTreeMap<i64, Footprints>,
    /// Bytes of the window that needs least.
    needed: Option<u64>,
}

impl Search<'_> {
    /// A window with its rate, timed by its operations where that is possible. `None`: it does not fit.
    fn weigh(&mut self, candidate: Candidate) -> Result<Option<WindowPlan>, NoWindow> {
        let (planner, plan, wanted) = (self.planner, self.plan, self.wanted);
        let how = candidate.how;
        let places = how.held.places().unwrap_or(0);
        let least = self.least(candidate)?.filter(|least| *least <= places);
        let Some(least) = least else {
            return Ok(None);
        };
        let layout = &planner.window_layout;
        let plane_bytes = layout.stride[Axis::OUTER] as u64 * layout.element_bytes as u64;
        let planes = layout.visible(Axis::OUTER).len();
        // The next pass takes the places of planes that this one has stored: more of them would stay empty.
        let places = places.min(planes.max(least));
        let how = how.with_places(places);
        let mut footprints = self.known.get_mut(&how.group);
        let copied = planner.copied_planes(footprints.as_deref_mut(), plan, wanted, how);
        let mut rate = planner.window_rate(plan, wanted, how, least);
        let times = footprints.and_then(|own| planner.window_times(own, plan, wanted, how));
        if let Some([expected, doubted]) = times {
            rate.cells = expected;
            rate.weighed = mean_time(expected, doubted);
        }
        Ok(Some(WindowPlan {
            how,
            devices: wanted.devices.max(1),
            steps: planner.pass_steps(plan, how.blocks),
            planes,
            bytes: planner.window_bytes(plan, how, places),
            plane_bytes,
            cells_of_plane: planner.cells_of_a_plane() as u64,
            files: wanted.disk.map(|_| disk::needed(layout)),
            again: copied.again,
            kind: WindowKind::Moving(MovingWindow { least, rate }),
            copied: copied.planes.saturating_mul(plane_bytes),
        }))
    }

    /// The places that a window needs at least: about, where it is far from fitting. `None`: the ring is shorter than
    /// the window.
    fn least(&mut self, candidate: Candidate) -> Result<Option<i64>, NoWindow> {
        let Candidate { how, about, .. } = candidate;
        let (planner, plan) = (self.planner, self.plan);
        // Where no other window fits, the smallest windows are looked at, too.
        let closely =
            is_close(about, how.held.places().unwrap_or(0)) || Some(how.blocks) == self.fewest;
        if !closely {
            return Ok(Some(about));
        }
        let all = self
            .all
            .get_or_insert_with(|| planner.footprints(plan, how.group));
        let new = || all.regrouped(how.group, plan.height());
        let footprints = self.known.entry(how.group).or_insert_with(new);
        let least = planner.least_places(footprints, plan, how);
        match (least, planner.ring_refusal()) {
            (Some(least), _) => {
                let own = planner.window_bytes(plan, how, least);
                self.needed = self.needed.into_iter().chain([own]).min();
                Ok(Some(least))
            }
            (None, Some(_)) => Ok(None),
            (None, None) => Err(NoWindow::Way),
        }
    }

    /// Why no window was found.
    fn refusal(&self) -> NoWindow {
        match (self.needed, self.planner.ring_refusal()) {
            (None, Some(_)) => NoWindow::ShortRing,
            (needed, _) => NoWindow::Memory {
                needed: needed.unwrap_or(u64::MAX),
                available: self.wanted.available,
            },
        }
    }
}
