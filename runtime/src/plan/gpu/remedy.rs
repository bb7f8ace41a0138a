//! The schedules and options that help where a GPU refuses a schedule.

use super::refusal::{NoDevices, NoSlabs, NoWindow, Refusal};
use super::{DevicePlanner, Fit, HEIGHTS, NoDevicePlan, TowerPlan};
use torre_compiler::lattice::Axis;
use torre_compiler::patch::Misfit;
use torre_compiler::schedule::{Schedule, Tiling};
use torre_compiler::tower::Unfit;

/// Towers that most schemes can have.
const USUAL: &str = "`torre(D = 2)`";

impl DevicePlanner<'_> {
    pub fn refused(&self, schedule: &str, refusal: Refusal) -> NoDevicePlan {
        NoDevicePlan::Refused {
            schedule: schedule.to_owned(),
            fits: self.remedy(&refusal),
            refusal,
        }
    }

    /// The schedules or options that a GPU, or several, would run instead.
    fn remedy(&self, refusal: &Refusal) -> String {
        match refusal {
            Refusal::Window(reason) => self.beside_windows(reason),
            Refusal::Devices(reason) => self.beside_devices(reason),
            Refusal::Shared { .. }
            | Refusal::Registers { .. }
            | Refusal::Line { .. }
            | Refusal::Rows { .. }
            | Refusal::Far
            | Refusal::Unfit(Unfit::Size | Unfit::Advance) => self.narrower(),
            Refusal::Patches(misfit) if !self.has_patches() => {
                let other = match misfit {
                    Misfit::Many { .. } => "larger bases",
                    _ => "fewer steps",
                };
                let towers = match self.towers_where(&|_| true) {
                    Some(name) => format!(", towers as in {name},"),
                    None => String::new(),
                };
                format!(
                    "with three axes pyramids stay on the chip, which small grids do: use {other}{towers} or `auto`"
                )
            }
            Refusal::Patches(_) | Refusal::Rooms { .. } => {
                let base = match refusal {
                    Refusal::Rooms { .. } => "larger",
                    _ => "smaller",
                };
                match self.usual_patches().first() {
                    Some(choice) => {
                        let name = &choice.name;
                        format!("use a {base} base or fewer steps, as in `{name}`, or use `auto`")
                    }
                    None => "use `layerwise` or `auto`".to_owned(),
                }
            }
            _ if self.has_patches() => {
                "calculations on one or two axes run as `pyramid`, `layerwise` or `auto`".to_owned()
            }
            Refusal::Shape(_) => match self.towers_where(&|_| true) {
                Some(name) => {
                    format!(
                        "use one level of towers that leaves the last axis whole, such as {name}"
                    )
                }
                None => "use `layerwise` or `auto`".to_owned(),
            },
            _ => "use `layerwise` or `auto`".to_owned(),
        }
    }

    /// The same where a calculation window, or several time blocks in flight, were asked for.
    fn beside_windows(&self, reason: &NoWindow) -> String {
        let remedy = match reason {
            NoWindow::Layerwise if self.has_towers() => {
                let none = "`--window none`, if the domain fits the GPU's memory";
                let allowed = |plan: &TowerPlan| self.window_refusal(Some(plan), None).is_none();
                return match self.towers_where(&allowed) {
                    Some(name) => format!("use towers, such as {name}, or {none}"),
                    None => format!("no towers of this scheme fit: use {none}"),
                };
            }
            NoWindow::Layerwise => {
                "only schemes with three axes have towers: make the domain smaller, so that it fits the GPU's memory, \
                 and use `--window none`"
            }
            NoWindow::Memory { .. } => {
                "allow more with `--memory`, or make the last two axes shorter"
            }
            NoWindow::Slabs(NoSlabs::Devices) => {
                "use `--window DIR`, with which several GPUs go over files, \
                 or `--window slabs`, with which they go over the host's memory"
            }
            NoWindow::Slabs(NoSlabs::Memory { .. }) => {
                "use a smaller base or fewer steps, as in `--window \"slabs(base = 256, height = 16)\"`, \
                 allow more with `--memory`, or use `--window host`, which takes less"
            }
            NoWindow::Slabs(_) => {
                "use a larger base or another height, leave both to the model with `--window slabs`, or use \
                 `--window host`"
            }
            NoWindow::Ring => {
                "use `--window host`, which goes around it, let the second or the last axis be the periodic \
                 one, or make the domain smaller and use `--window none`"
            }
            NoWindow::ShortRing | NoWindow::Way | NoWindow::Steps { .. } | NoWindow::Points(_) => {
                "make the domain smaller, so that it fits the GPU's memory, or use `--window none`"
            }
        };
        remedy.to_owned()
    }

    /// The same where several devices were asked for.
    fn beside_devices(&self, reason: &NoDevices) -> String {
        let remedy = match reason {
            NoDevices::Layerwise if self.has_towers() => {
                let one = "one GPU, as with `--devices 0`";
                let allowed = |plan: &TowerPlan| self.stripes_refusal(plan, None).is_none();
                return match self.towers_where(&allowed) {
                    Some(name) => format!("use towers, such as {name}, or {one}"),
                    None => format!("no towers of this scheme fit: use {one}"),
                };
            }
            NoDevices::Memory { .. } => {
                "use more GPUs, or `--window host`, with which they go over the host's memory"
            }
            NoDevices::Window => "use `--window auto`, or one GPU, as with `--devices 0`",
            NoDevices::Layerwise
            | NoDevices::Steps { .. }
            | NoDevices::Points(_)
            | NoDevices::Stripes(_) => "use one GPU, as with `--devices 0`",
        };
        remedy.to_owned()
    }

    /// Towers that the GPU runs and that are allowed, as one writes them: the usual ones, if these are among them.
    fn towers_where(&self, allowed: &dyn Fn(&TowerPlan) -> bool) -> Option<String> {
        let mut members: Vec<(String, Tiling)> = self.members().collect();
        members.sort_by_key(|(name, _)| name != USUAL);
        let runs = |tiling: &Tiling| self.tower_plan(tiling).is_ok_and(|plan| allowed(&plan));
        let first = members.into_iter().find(|(_, tiling)| runs(tiling));
        first.map(|(name, _)| name)
    }

    /// The lowest towers of each size that `auto` considers.
    fn members(&self) -> impl Iterator<Item = (String, Tiling)> {
        let frame = &self.planner.frame;
        let sizes = self.usual(&HEIGHTS[..1]);
        sizes.filter_map(move |(name, family)| match family.members(frame).pop() {
            Some((_, Schedule::Tiled(tiling))) => Some((name, tiling)),
            _ => None,
        })
    }

    /// Whether these towers fit the lines of the grid.
    fn sizes(&self) -> impl Iterator<Item = (String, Result<Fit, Refusal>)> {
        self.members()
            .map(|(name, tiling)| (name, self.fit(&tiling)))
    }

    /// The sizes that fit.
    pub(super) fn fitting(&self) -> Vec<String> {
        let fitting = self.sizes().filter(|(_, fit)| fit.is_ok());
        fitting.map(|(name, _)| name).collect()
    }

    /// The sizes that fit the lines of the grid, or the lines that fit.
    fn narrower(&self) -> String {
        let fitting = self.fitting();
        if !fitting.is_empty() {
            let verb = if fitting.len() == 1 { "fits" } else { "fit" };
            return format!("for these lines {} {verb}", fitting.join(", "));
        }
        match self.sizes().next() {
            Some((_, Err(Refusal::Shared { bytes, most, .. }))) => {
                let cells = self.planner.scheme.grid.cells[Axis::INNER];
                let cells = (cells as f64 * most as f64 / bytes.max(1) as f64) as i64 / 8 * 8;
                format!(
                    "the narrowest towers fit for lines of about {cells} cells along the last axis; or use `layerwise`"
                )
            }
            Some((_, Err(Refusal::Line { .. }))) => {
                "make the last axis shorter with `--set domain=AxBxC`, or use `layerwise`"
                    .to_owned()
            }
            _ => "no towers of this scheme fit: use `layerwise`".to_owned(),
        }
    }
}
