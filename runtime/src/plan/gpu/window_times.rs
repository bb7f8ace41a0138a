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
        let (height, steps) = (plan.height(), self.problem.steps);
        let devices = wanted.devices.max(1);
        let period = plan.fit.towers().steps.max(1);
        let blocks = steps.div_ceil(height.max(1));
        let count = blocks.div_ceil(how.blocks.max(1) as u64) as usize;
        // Beyond these each pass takes as long as the one before.
        let [few, many] = [2, 4].map(|n| n * devices);
        let groups = footprints.height(scheme, layout, height)?.groups.len();
        let operations = groups.saturating_mul(how.blocks).saturating_mul(many);
        if wanted.disk.is_some() || count == 0 || operations > MOST_LAUNCHES {
            return None;
        }
        let window = how.window(footprints, scheme, layout, height, devices)?;
        let cells = scheme.grid.cells.0.iter().map(|n| *n as f64);
        let all = cells.product::<f64>();
        let mut lay_out = |count: usize, left: u64| {
            let whole = vec![height; how.blocks];
            let mut passes = vec![footprints.pass(scheme, layout, &whole)?; count];
            if left > 0 {
                // The last blocks of a run are lower than the others, all about alike.
                let own = left.div_ceil(height);
                let each = (left / period).div_ceil(own) * period;
                let mut heights = vec![each; own as usize - 1];
                heights.push(left - each * (own - 1));
                passes.push(footprints.pass(scheme, layout, &heights)?);
            }
            LaidOut::new(window.clone(), passes, footprints.way()).ok()
        };
        let pass = how.blocks as u64 * height;
        let exact = count <= many;
        let laid_out = match exact {
            true => lay_out((steps / pass) as usize, steps % pass)?,
            false => lay_out(many, 0)?,
        };
        let before = (!exact).then(|| lay_out(few, 0)).flatten();
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
        let rate = |rates: Rates| {
            let own = seconds(&laid_out, rates);
            let Some(before) = &before else {
                return exact.then(|| all * steps as f64 / own);
            };
            let more = (own - seconds(before, rates)) / (many - few) as f64;
            let passes = steps as f64 / pass as f64;
            Some(all * steps as f64 / (own + (passes - many as f64) * more))
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
