//! The values that GPUs hold: all, a calculation window, or stripes.

mod note;

pub use note::note;

use crate::args::{Holding, WindowArg};
use crate::device;
use crate::failure::Failure;
use crate::rates::{Expected, LearnedRates};
use crate::report::bytes;
use std::fmt::Write;
use torre_compiler::cost::Choice;
use torre_compiler::pipeline::NoStripes;
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::Schedule;
use torre_runtime::gpu::{DeviceError, DeviceModel, InFlight, resident_bytes};
use torre_runtime::plan::gpu::{
    DevicePlan, DevicePlanner, MovingWindow, NoDevices, PlannedSlabs, Refusal, StripesPlan, Wanted,
    WindowKind, WindowPlan,
};
use torre_runtime::rates::Kind;
use torre_runtime::simulation::SetupError;

/// Where options of windows have no meaning.
pub const ONLY_CUDA: &str = "`--window`, `--memory`, `--in-flight` and `--columns` go with `--backend cuda`, and \
    `--window DIR` with the processor, too";

/// The values that the GPU holds, where these are not simply all values with one time block at a time.
#[derive(Clone, Debug)]
pub enum Held {
    /// All values, with time blocks in flight.
    All(InFlight),
    Window(Box<WindowPlan>),
    /// Each of several devices holds a stripe.
    Stripes(Box<StripesPlan>),
}

impl Held {
    /// Where each device has planes of its own.
    pub fn how(&self) -> Option<InFlight> {
        match self {
            Held::All(how) => Some(*how),
            Held::Window(plan) => Some(plan.how),
            Held::Stripes(_) => None,
        }
    }

    /// The devices that take passes in turns.
    pub fn in_turns(&self) -> usize {
        match self {
            Held::Window(plan) => plan.devices,
            Held::All(_) | Held::Stripes(_) => 1,
        }
    }

    /// The expectation for it with a schedule.
    fn expected(&self, learned_rates: &LearnedRates, taken: &Choice) -> Expected {
        let (kind, modelled) = match self {
            Held::All(_) => (Kind::InFlight, taken.prediction.rate),
            Held::Window(plan) => match &plan.kind {
                WindowKind::Moving(_) => (Kind::Window, plan.rate()),
                WindowKind::Slabs(_) => (Kind::Slabs, plan.rate()),
            },
            Held::Stripes(plan) => (Kind::Stripes, plan.rate.cells),
        };
        learned_rates.expected_as(kind, taken, modelled)
    }
}

/// The expectation for a plan, one of several in the model's order.
pub fn expected(
    held: Option<&Held>,
    learned_rates: &LearnedRates,
    plan: &DevicePlan,
    choices: &[Choice],
) -> Expected {
    match held {
        Some(held) => held.expected(learned_rates, &plan.choice),
        None => learned_rates.expected(&plan.choice, choices),
    }
}

/// Bytes per second that a disk reads and writes, both together, as plans expect it: one solid-state disk.
pub const DISK: f64 = 2.75e9;

/// The schedule that the model chooses.
const AUTO: &str = "auto";

/// Schedules for which a window is planned.
const CONSIDERED: usize = 8;

/// The expected rate of a window with another schedule than the best one for all values on the GPU, relative to that of
/// the best window with that one, from which on the other schedule is taken.
const WORTHWHILE: f64 = 1.01;

/// The data of the decision.
pub struct Question<'a> {
    pub holding: &'a Holding,
    /// The schedule, as it was asked for.
    pub schedule: &'a str,
    pub resolved: &'a Resolved,
    pub model: &'a DeviceModel,
    /// How many GPUs compute together.
    pub devices: usize,
    /// The part of a GPU that each of them is.
    pub share: f64,
    /// Bytes of each GPU's memory that could be taken.
    pub free: u64,
    /// Steps between checkpoints.
    pub every: Option<u64>,
}

impl Question<'_> {
    /// The schedule for which a message says that no window advances by it: the choice of the model is not the user's
    /// where it has no towers.
    fn refused_schedule<'b>(&'b self, plan: &'b DevicePlan) -> &'b str {
        match self.schedule.trim() {
            AUTO if plan.towers().is_none() => AUTO,
            _ => &plan.choice.name,
        }
    }

    /// All values, with one time block at a time: refuses options for several.
    fn one_at_a_time(&self) -> Result<Option<Held>, Failure> {
        let Some(option) = self.holding.of_several_blocks() else {
            return Ok(None);
        };
        let why = match self.holding.window {
            WindowArg::None => "does not go with `--window none`",
            _ => "has no meaning here, as all values fit into the GPU's memory",
        };
        Err(Failure::usage(format!(
            "`{option}` {why}: one time block runs at a time; `--window device` and `--window host` have several in \
             flight"
        )))
    }

    /// Decides which values the GPU holds. A window needs towers: the plan becomes one by towers, the best of the plans
    /// that were considered for a window, if it was chosen by the model. `None`: all values, with one time block at a
    /// time.
    pub fn decide(
        &self,
        plan: &mut DevicePlan,
        choices: &[Choice],
    ) -> Result<Option<Held>, Failure> {
        let Resolved {
            scheme, problem, ..
        } = self.resolved;
        let available = self
            .holding
            .memory
            .map_or(self.free, |most| most.min(self.free));
        let several = self.devices > 1;
        let in_turns = matches!(
            self.holding.window,
            WindowArg::Host | WindowArg::Slabs { .. } | WindowArg::Folder(_)
        );
        if several && !in_turns {
            let stripes = self.stripes(plan, choices, available)?;
            if stripes.is_some() {
                return Ok(stripes);
            }
        }
        let needed = resident_bytes(scheme, problem, &plan.kernels);
        let fits = needed <= available && !several;
        let wanted = match &self.holding.window {
            WindowArg::None | WindowArg::Auto if fits => return self.one_at_a_time(),
            WindowArg::None => return Err(DeviceError::Memory { needed, available }.into()),
            other => other,
        };
        let planner = DevicePlanner::new(scheme, problem, self.model).map_err(SetupError::from)?;
        let refused = |error| device::refused(error, &planner, self.model);
        if *wanted == WindowArg::Device {
            if let (None, Some(choice)) = (plan.towers(), by_towers(choices).next()) {
                *plan = planner.plan(choice.clone()).map_err(refused)?;
            }
            if !fits {
                return Err(DeviceError::Memory { needed, available }.into());
            }
            let resident = planner.resident(plan.towers(), self.wanted(&planner, plan, available));
            let name = self.refused_schedule(plan);
            let held = resident.map_err(|r| refused(planner.refused(name, r)))?;
            return Ok(Some(Held::All(held)));
        }
        let best = self.best_window(&planner, plan, choices, wanted, available);
        let name = self.refused_schedule(plan);
        let window = best.map_err(|refusal| refused(planner.refused(name, refusal)))?;
        plan.arrange_for_window(scheme).map_err(SetupError::from)?;
        Ok(Some(Held::Window(Box::new(window))))
    }

    /// The window with the highest expected rate, by `plan` or by the best of the `choices` of towers, whose plan
    /// `plan` becomes then; the refusal that lacks least where none fits. Transfers bound a window, too, so another
    /// schedule may be the best one, by more than expectations can tell. `available`: bytes of each GPU's memory.
    fn best_window(
        &self,
        planner: &DevicePlanner<'_>,
        plan: &mut DevicePlan,
        choices: &[Choice],
        wanted: &WindowArg,
        available: u64,
    ) -> Result<WindowPlan, Refusal> {
        let asked = |plan: &DevicePlan| self.wanted(planner, plan, available);
        let mut best = planned(planner, plan, wanted, asked(plan));
        let rate =
            |window: &Result<WindowPlan, Refusal>| window.as_ref().map_or(0.0, WindowPlan::weighed);
        // The most that each could do is known at once, and the cost of a window only when its towers are known.
        let bound = |other: &DevicePlan| {
            let towers = other.towers();
            match wanted {
                WindowArg::Slabs { .. } => asked(other).cells,
                _ => towers.map_or(0.0, |towers| planner.window_bound(towers, asked(other))),
            }
        };
        let others = by_towers(choices).take(CONSIDERED);
        let others = others.filter(|choice| choice.schedule != plan.choice.schedule);
        let others = others.filter_map(|choice| planner.plan(choice.clone()).ok());
        let least = rate(&best) * WORTHWHILE;
        let mut others: Vec<_> = others.map(|other| (bound(&other), other)).collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (bound, other) in others {
            if best.as_ref().is_ok_and(|best| bound <= best.weighed()) {
                break;
            }
            let window = planned(planner, &other, wanted, asked(&other));
            let better = match (&window, &best) {
                (Err(other), Err(refusal)) => plan.towers().is_none() || takes_less(other, refusal),
                _ => rate(&window) > rate(&best).max(least),
            };
            if better {
                best = window;
                *plan = other;
            }
        }
        best
    }
}

/// The choices of tiled schedules.
fn by_towers(choices: &[Choice]) -> impl Iterator<Item = &Choice> {
    choices
        .iter()
        .filter(|c| matches!(c.schedule, Schedule::Tiled(_)))
}

/// Whether a window that does not fit takes less memory than another one.
fn takes_less(one: &Refusal, other: &Refusal) -> bool {
    match (one.lacking_memory(), other.lacking_memory()) {
        (Some(one), Some(other)) => one < other,
        (one, None) => one.is_some(),
        (None, _) => false,
    }
}

/// A window, or slabs.
fn planned(
    planner: &DevicePlanner<'_>,
    plan: &DevicePlan,
    wanted: &WindowArg,
    asked: Wanted,
) -> Result<WindowPlan, Refusal> {
    match wanted {
        WindowArg::Slabs { sizes, .. } => planner.slabs(plan.towers(), asked, *sizes),
        _ => planner.window(plan.towers(), asked),
    }
}

impl Question<'_> {
    /// The holding that a run asks for, with the rate of a plan and the bytes that each GPU has for it.
    fn wanted(&self, planner: &DevicePlanner<'_>, plan: &DevicePlan, available: u64) -> Wanted {
        let layerwise = plan.choice.prediction.rate;
        let towers = plan.towers();
        let rate = towers.map_or(layerwise, |towers| planner.rate_in_flight(towers));
        Wanted {
            blocks: self.holding.in_flight.map(|n| n as usize),
            columns: self.holding.columns.map(i64::from),
            every: self.every,
            available,
            devices: self.devices,
            disk: self.holding.folder().map(|_| DISK),
            cells: rate * self.share,
        }
    }

    /// Stripes of several devices, with the schedule that is best for them; `None` where they have no memory for
    /// stripes, or axes do not allow any, and nothing else was asked for.
    fn stripes(
        &self,
        plan: &mut DevicePlan,
        choices: &[Choice],
        available: u64,
    ) -> Result<Option<Held>, Failure> {
        let Resolved {
            scheme, problem, ..
        } = self.resolved;
        let planner = DevicePlanner::new(scheme, problem, self.model).map_err(SetupError::from)?;
        let wanted = |plan: &DevicePlan| self.wanted(&planner, plan, available);
        let stripes_of = |plan: &DevicePlan| match &self.holding.window {
            WindowArg::Auto | WindowArg::Device => {
                planner.stripes(plan.towers(), self.devices, wanted(plan))
            }
            _ => Err(Refusal::Devices(NoDevices::Window)),
        };
        let mut best = stripes_of(plan);
        for choice in by_towers(choices).take(CONSIDERED) {
            let Ok(other) = planner.plan(choice.clone()) else {
                continue;
            };
            let bound = |towers| planner.stripes_bound(towers, self.devices, wanted(&other));
            let bound = other.towers().map_or(0.0, bound);
            if best.as_ref().is_ok_and(|best| bound <= best.rate.cells) {
                continue;
            }
            let stripes = stripes_of(&other);
            let rate = |of: &Result<StripesPlan, Refusal>| {
                of.as_ref().map_or(0.0, |stripes| stripes.rate.cells)
            };
            // The reason why towers cannot do it says more than that others are no towers.
            let explains = plan.towers().is_none() && best.is_err();
            if rate(&stripes) > rate(&best) || explains {
                (best, *plan) = (stripes, other);
            }
        }
        let elsewhere = matches!(
            &best,
            Err(Refusal::Devices(
                NoDevices::Memory { .. } | NoDevices::Stripes(NoStripes::Axes)
            ))
        );
        if elsewhere && self.holding.window == WindowArg::Auto {
            return Ok(None);
        }
        let name = self.refused_schedule(plan);
        let refused =
            |refusal| device::refused(planner.refused(name, refusal), &planner, self.model);
        Ok(Some(Held::Stripes(Box::new(best.map_err(refused)?))))
    }
}

/// A window, line by line.
pub fn text(held: &Held) -> String {
    let mut out = String::new();
    let (blocks, group) = in_flight(held);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "  in flight {blocks:8} time blocks, in groups of {group} planes"
    );
    match held {
        Held::All(_) => {}
        Held::Stripes(plan) => write_stripes(&mut out, plan),
        Held::Window(plan) => match &plan.kind {
            WindowKind::Moving(window) => write_window(&mut out, plan, window),
            WindowKind::Slabs(slabs) => write_slabs(&mut out, plan, slabs),
        },
    }
    out
}

/// Stripes of several devices, line by line.
fn write_stripes(out: &mut String, plan: &StripesPlan) {
    let rows: Vec<String> = plan
        .stripes
        .rows()
        .iter()
        .map(|r| r.len().to_string())
        .collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "  devices   {:8} with {} rows along the second axis; {} of each GPU's memory",
        plan.stripes.count(),
        rows.join(", "),
        bytes(plan.bytes),
    );
    let _ = writeln!(
        out,
        "  launches  {:8.2} ms each; {} to each neighbour take {:.2} ms",
        plan.rate.launch * 1e3,
        bytes(plan.message),
        plan.rate.message * 1e3,
    );
    let _ = writeln!(
        out,
        "  expected  {:8.1} Gcells/s of all; each GPU computes {:.2} of the time",
        plan.rate.cells * 1e-9,
        plan.rate.utilisation,
    );
}

/// A calculation window, line by line.
fn write_window(out: &mut String, plan: &WindowPlan, window: &MovingWindow) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "  window    {:8} of {} planes of {}; {} at least; {} of {} memory",
        plan.how.held.places().unwrap_or(0),
        plan.planes,
        bytes(plan.plane_bytes),
        window.least,
        bytes(plan.bytes),
        match plan.devices {
            0 | 1 => "the GPU's",
            _ => "each GPU's",
        },
    );
    let _ = writeln!(
        out,
        "  buffer    {:>8} {}",
        bytes(plan.how.held.places().unwrap_or(0).max(0) as u64 * plan.plane_bytes),
        match plan.how.held.unit() {
            Some(_) => "mapped twice in a row: planes go around",
            None => "in which planes slide, as this GPU does not map memory twice",
        }
    );
    if plan.devices > 1 {
        let _ = writeln!(out, "  devices   {:8} take passes in turns", plan.devices);
    }
    let _ = writeln!(
        out,
        "  passes    {:8} steps each; {} copied each way",
        plan.steps,
        bytes(plan.copied)
    );
    write_files(out, plan);
    let _ = writeln!(
        out,
        "  expected  {:8.1} Gcells/s{}; transfers allow {:.1}, computing {:.1}{}",
        window.rate.cells * 1e-9,
        if plan.devices > 1 { " of all" } else { "" },
        window.rate.transfers * 1e-9,
        window.rate.computing * 1e-9,
        if plan.devices > 1 { " on each" } else { "" },
    );
}

/// Slabs, line by line.
fn write_slabs(out: &mut String, plan: &WindowPlan, slabs: &PlannedSlabs) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "  slabs     {:8} of {} of {} planes of {}; two buffers of {} planes; {} of {} memory",
        slabs.count,
        slabs.base,
        plan.planes,
        bytes(plan.plane_bytes),
        plan.how.held.places().unwrap_or(0),
        bytes(plan.bytes),
        match plan.devices {
            0 | 1 => "the GPU's",
            _ => "each GPU's",
        },
    );
    if plan.devices > 1 {
        let _ = writeln!(out, "  devices   {:8} take slabs in turns", plan.devices);
    }
    let loaded = (plan.copied as f64 * slabs.loaded) as u64;
    let _ = writeln!(
        out,
        "  passes    {:8} steps each; {} loaded and {} stored in a run",
        plan.steps,
        bytes(loaded),
        bytes(plan.copied),
    );
    write_files(out, plan);
    let cell = plan.plane_bytes as f64 / plan.cells_of_plane.max(1) as f64;
    let _ = writeln!(
        out,
        "  copied    {:8.3} bytes per cell-step loaded, {:.3} stored",
        cell * slabs.loaded / plan.steps.max(1) as f64,
        cell / plan.steps.max(1) as f64,
    );
    let _ = writeln!(
        out,
        "  computed  {:8.3} cell-steps per cell-step of the domain",
        slabs.computed
    );
    let _ = writeln!(
        out,
        "  expected  {:8.1} Gcells/s; transfers allow {:.1}, computing {:.1}",
        slabs.rate.cells * 1e-9,
        slabs.rate.transfers * 1e-9,
        slabs.rate.computing * 1e-9,
    );
}

/// Files, if planes come from there and go to there.
fn write_files(out: &mut String, plan: &WindowPlan) {
    if let Some(files) = plan.files {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "  files     {:>8} on the disk; {} written in a run, and as much read",
            bytes(files),
            bytes(plan.copied),
        );
    }
}

/// Time blocks in flight, and planes of a group.
fn in_flight(held: &Held) -> (usize, i64) {
    match held {
        Held::All(how) => (how.blocks, how.group),
        Held::Window(plan) => (plan.how.blocks, plan.how.group),
        Held::Stripes(plan) => (plan.in_flight, plan.group),
    }
}

/// The same for reports.
pub fn json(held: &Held) -> serde_json::Value {
    let (blocks, group) = in_flight(held);
    let mut value = serde_json::json!({
        "time_blocks_in_flight": blocks,
        "planes_of_a_group": group,
    });
    if let Held::Stripes(plan) = held {
        let rows: Vec<i64> = plan.stripes.rows().iter().map(|rows| rows.len()).collect();
        crate::report::extend(
            &mut value,
            serde_json::json!({
                "devices": plan.stripes.count(),
                "rows_of_devices": rows,
                "device_memory_bytes": plan.bytes,
                "message_bytes": plan.message,
                "seconds_of_a_launch": plan.rate.launch,
                "seconds_of_a_message": plan.rate.message,
                "utilisation": plan.rate.utilisation,
                "predicted_gcells_per_s": plan.rate.cells * 1e-9,
            }),
        );
    }
    if let Held::Window(plan) = held {
        let places = plan.how.held.places();
        let (least, slides) = match &plan.kind {
            WindowKind::Moving(window) => (Some(window.least), window.rate.slides),
            WindowKind::Slabs(_) => (places, 0.0),
        };
        let [transfers, computing] = plan.allowed();
        crate::report::extend(
            &mut value,
            serde_json::json!({
                "devices": plan.devices,
                "buffer_planes": places,
                "least_planes": least,
                "planes": plan.planes,
                "plane_bytes": plan.plane_bytes,
                "device_memory_bytes": plan.bytes,
                "steps_of_a_pass": plan.steps,
                "copied_bytes_each_way": plan.copied,
                "bytes_of_files": plan.files,
                "predicted_gcells_per_s": plan.rate() * 1e-9,
                "transfers_allow_gcells_per_s": transfers * 1e-9,
                "computing_allows_gcells_per_s": computing * 1e-9,
                "planes_go_around": plan.how.held.unit().is_some(),
                "seconds_of_slides_per_second": slides,
            }),
        );
        if let WindowKind::Slabs(slabs) = &plan.kind {
            crate::report::extend(
                &mut value,
                serde_json::json!({
                    "slabs": slabs.count,
                    "planes_of_a_base": slabs.base,
                    "loaded_bytes": plan.copied as f64 * slabs.loaded,
                    "computed_per_cell_step": slabs.computed,
                }),
            );
        }
    }
    value
}
