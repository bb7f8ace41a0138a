//! How long the operations of a run with a window take, by their list.

use super::window::Wanted;
use super::{DevicePlanner, TowerPlan};
use crate::gpu::InFlight;
use torre_compiler::lattice::Axis;
use torre_compiler::pipeline::{Footprints, LaidOut, LaunchTowers, Rates, WindowSeconds};

/// Launches of the passes that are timed, at most.
pub(super) const MOST_LAUNCHES: usize = 1 << 15;

/// Share of the time of a tower from the time at which a device could go on with another launch to the end of a launch,
/// whose last towers wait for each other: 33 of 54 microseconds were measured on an H100.
pub(super) const TAIL: f64 = 0.6;

/// Seconds from the end of an operation to the beginning of another one that waits for it.
pub(super) const SIGNALS: f64 = 10e-6;

impl DevicePlanner<'_> {
    /// The cell-steps per second of the operations of a run over the host's memory, timed by their list, with the
    /// expected rates and with [doubted](Rates::doubted) ones; `None` if they are too many or none, or over files.
    pub(super) fn window_times(
        &self,
        footprints: &mut Footprints,
        plan: &TowerPlan,
        wanted: Wanted,
        how: InFlight,
    ) -> Option<[f64; 2]> {
        let (scheme, layout) = (self.planner.scheme, &self.window_layout);
        let (height, devices) = (plan.height(), wanted.devices.max(1));
        let blocks = self.even_blocks(plan).concat();
        let passes: Vec<&[u64]> = blocks.chunks(how.blocks.max(1)).collect();
        // Beyond these each pass takes as long as the pass before, or as the passes between events that are due.
        let [few, many] = [2, 4].map(|n| n * devices);
        let groups = footprints.height(scheme, layout, height)?.groups.len();
        let operations = groups.saturating_mul(how.blocks).saturating_mul(many);
        if wanted.disk.is_some() || passes.is_empty() || operations > MOST_LAUNCHES {
            return None;
        }
        let window = how.window(footprints, scheme, layout, height, devices)?;
        let all = scheme.grid.cell_count();
        let mut lay_out = |count: usize| {
            let passes = passes[..count].iter();
            let passes = passes.map(|heights| footprints.pass(scheme, layout, heights));
            LaidOut::new(
                window.clone(),
                passes.collect::<Option<_>>()?,
                footprints.way(),
            )
            .ok()
        };
        let laid_out = lay_out(passes.len().min(many))?;
        let before = (passes.len() > many).then(|| lay_out(few)).flatten();
        let seconds = |laid_out: &LaidOut, rates: Rates| {
            let timed = Timed {
                plan,
                footprints,
                launch: self.launch_towers(plan, how.group),
                rates,
                plane: layout.stride[Axis::OUTER] as f64 * layout.element_bytes as f64,
                cells: all,
            };
            timed.seconds(laid_out)
        };
        let known = blocks.iter().sum::<u64>() as f64;
        let rate = |rates: Rates| {
            let own = seconds(&laid_out, rates);
            let Some(before) = &before else {
                return (passes.len() <= many).then(|| all * known / own);
            };
            let more = (own - seconds(before, rates)) / (many - few) as f64;
            // As many passes for each of the other steps as for the steps that were looked at.
            let steps = self.problem.steps as f64;
            let passes = passes.len() as f64 * steps / known;
            Some(all * steps / (own + (passes - many as f64) * more))
        };
        let rates = self.window_rates(wanted);
        Some([rate(rates)?, rate(rates.doubted())?])
    }
}

/// The operations of a window, to be timed.
struct Timed<'a> {
    plan: &'a TowerPlan,
    footprints: &'a Footprints,
    launch: LaunchTowers,
    rates: Rates,
    /// Bytes of a plane, and cells of the domain.
    plane: f64,
    cells: f64,
}

impl Timed<'_> {
    /// Seconds of all operations.
    fn seconds(&self, laid_out: &LaidOut) -> f64 {
        let together = self.launch.together;
        let launch = |steps: u64, group: i64| {
            let Some(height) = self.footprints.known(steps) else {
                return 0.0;
            };
            let own = height.towers_of(group) as f64;
            (own + LaunchTowers::ENDS * together) * self.tower(steps, height.all)
        };
        laid_out.time(&WindowSeconds {
            launch: &launch,
            tail: TAIL * together * self.tower(self.plan.height(), self.plan.count),
            plane: self.plane / self.rates.link,
            moved: 2.0 * self.plane / self.rates.copies,
            signal: SIGNALS,
        })
    }

    /// Seconds of a tower of a time block of `towers` towers, on a device that does nothing else.
    fn tower(&self, steps: u64, towers: usize) -> f64 {
        self.cells * steps as f64 / self.rates.cells / towers.max(1) as f64
    }
}
