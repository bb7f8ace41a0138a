//! From the schedule that was asked for to the program of a run on a GPU: layerwise, or towers that it can run.

mod boxes;
mod device_plan;
mod fit;
mod layers;
mod layerwise;
mod order;
mod patch_rates;
mod patch_room;
mod patches;
mod predict;
mod refusal;
mod remedy;
mod shapes;
mod slabs;
mod stripes;
#[cfg(test)]
mod tests;
mod thread_blocks;
mod waves;
mod window;
mod window_search;
mod window_times;
mod work;
mod zones;

pub use device_plan::{DevicePlan, TimeBlockPlan, TowerPlan};
pub use fit::Fit;
pub use layers::PlannedVariant;
pub use layerwise::layerwise;
pub use order::usual_order;
pub use patches::{PatchPlan, patch_heights};
pub use predict::line;
pub use refusal::{NoDevices, NoSlabs, NoWindow, Refusal};
pub use slabs::{PlannedSlabs, SlabSizes};
pub use stripes::StripesPlan;
pub use thread_blocks::{candidates, options};
pub use window::{MovingWindow, Wanted, WindowKind, WindowPlan, group_planes};

use crate::gpu::{DeviceModel, HeightShares, Heights, Interruptions, TimeBlockOrder, code};
use crate::plan::{PlanError, Planner};
use boxes::{Boxes, FarFrom};
use fit::Known;
use predict::{PartOfRun, Slowdown};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use torre_compiler::cone::Rational;
use torre_compiler::cost::{Choice, Prediction};
use torre_compiler::incident::{self, FarRows};
use torre_compiler::lattice::Axis;
use torre_compiler::layout::{Layout, TooLarge};
use torre_compiler::problem::Problem;
use torre_compiler::schedule::{Level, Schedule, Template, Tiling, check_tiling, template};
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::{Checked, TileProgram, lower};
use torre_compiler::tower::block::{Block, Division, Misfit};
use torre_compiler::tower::{Adds, AllocatedTowers, Numbering, Towers, tally};
use waves::HostWaves;

/// Candidates of `auto`: sizes in units of twice the slope, if they are whole cells, and steps of a time block.
const SIZES: [[i64; 2]; 8] = [
    [1, 1],
    [5, 4],
    [4, 3],
    [3, 2],
    [5, 3],
    [2, 1],
    [3, 1],
    [4, 1],
];
const HEIGHTS: [i64; 6] = [8, 12, 16, 32, 64, 128];

/// Towers are chosen if they are expected to be this much faster; less is within the model's error.
const WORTHWHILE: f64 = 1.1;

/// Why there is no plan for a GPU.
#[derive(Debug)]
pub enum NoDevicePlan {
    /// The scheme does not allow the schedule on any machine.
    Any(PlanError),
    /// The GPU does not run it.
    Refused {
        schedule: String,
        refusal: Refusal,
        /// The schedule that it would run instead.
        fits: String,
    },
}

impl From<PlanError> for NoDevicePlan {
    fn from(error: PlanError) -> Self {
        NoDevicePlan::Any(error)
    }
}

impl From<TooLarge> for NoDevicePlan {
    fn from(error: TooLarge) -> Self {
        NoDevicePlan::Any(error.into())
    }
}

/// The input of planning a run on a GPU.
pub struct DevicePlanner<'a> {
    pub planner: Planner<'a>,
    /// The layout of values with a calculation window.
    window_layout: Layout,
    problem: &'a Problem,
    model: &'a DeviceModel,
    interruptions: Interruptions,
    layerwise: Choice,
    /// Once it was asked for.
    waves: OnceLock<HostWaves>,
    /// Fits of tilings that were looked at.
    known: Mutex<Vec<Known>>,
    /// How lines have to be divided, instead of the way that is expected to be fastest.
    pub division: Option<Division>,
}

/// A member of a family: its prediction, or why it does not run.
type Member = Result<Choice, NoDevicePlan>;

impl<'a> DevicePlanner<'a> {
    pub fn new(
        scheme: &'a Scheme,
        problem: &'a Problem,
        model: &'a DeviceModel,
    ) -> Result<Self, TooLarge> {
        Ok(DevicePlanner {
            planner: {
                let planner = Planner::new(scheme)?;
                Planner {
                    layout: Layout::for_gpu(scheme)?,
                    frame: planner.frame.opened(),
                    ..planner
                }
            },
            window_layout: Layout::for_window(scheme)?,
            problem,
            model,
            interruptions: Interruptions::new(scheme, problem),
            layerwise: predict::correcting(
                layerwise(scheme, model),
                scheme,
                incident::places(scheme, problem),
                model.copy_rate,
            ),
            waves: OnceLock::new(),
            known: Mutex::new(Vec::new()),
            division: None,
        })
    }

    /// The members of a family that the GPU runs, the one that is expected to be fastest first; an error if there is
    /// none.
    pub fn choices(&self, template: &Template) -> Result<Vec<Choice>, NoDevicePlan> {
        let mut choices = self.device_choices(template)?;
        for choice in &mut choices {
            choice.prediction = self.with_waves(choice.prediction.clone());
        }
        Ok(choices)
    }

    /// A prediction of the device alone, with the waves of sources.
    fn with_waves(&self, prediction: Prediction) -> Prediction {
        let scheme = self.planner.scheme;
        let waves = self.host_waves();
        waves.with(prediction, scheme.grid.cell_count())
    }

    /// The same with predictions of the device alone.
    fn device_choices(&self, template: &Template) -> Result<Vec<Choice>, NoDevicePlan> {
        let plain = || self.layerwise.clone();
        let frame = &self.planner.frame;
        let members = match template {
            Template::Layerwise => return Ok(vec![plain()]),
            Template::Tiled(tiled) => tiled.members(frame),
            Template::Auto if self.has_patches() => Vec::new(),
            Template::Auto if self.interruptions.always.is_empty() && self.has_towers() => {
                let families = self.usual(&HEIGHTS).map(|(_, family)| family);
                families.flat_map(|family| family.members(frame)).collect()
            }
            Template::Auto => Vec::new(),
        };
        let mut found = match template {
            Template::Auto => self.usual_patches(),
            Template::Tiled(tiled) => self.open_patches(tiled),
            Template::Layerwise => Vec::new(),
        };
        let is_complete = *template != Template::Auto && !found.is_empty();
        let members = if is_complete { Vec::new() } else { members };
        let mut refused = match template {
            Template::Tiled(tiled) if !is_complete => self.no_open_patches(tiled),
            _ => None,
        };
        for (name, schedule) in members {
            match self.member(name, schedule) {
                Ok(choice) => found.push(choice),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        found.sort_by(|a, b| b.prediction.rate.total_cmp(&a.prediction.rate));
        if *template == Template::Auto {
            let worth =
                |c: &Choice| c.prediction.rate >= WORTHWHILE * self.layerwise.prediction.rate;
            let at = found.iter().position(|c| !worth(c)).unwrap_or(found.len());
            found.insert(at, plain());
        }
        match refused {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// The plan of the member that is expected to be fastest, and all members that the GPU runs.
    pub fn best(&self, template: &Template) -> Result<(DevicePlan, Vec<Choice>), NoDevicePlan> {
        self.best_by(template, |_| 0)
    }

    /// The same where `pick` says which of the members is taken, by its index.
    pub fn best_by(
        &self,
        template: &Template,
        pick: impl FnOnce(&[Choice]) -> usize,
    ) -> Result<(DevicePlan, Vec<Choice>), NoDevicePlan> {
        let choices = self.choices(template)?;
        let best = choices.get(pick(&choices)).unwrap_or(&self.layerwise);
        let mut plan = self.plan(best.clone())?;
        let auto = *template == Template::Auto;
        if let Some(refusal) = self.no_patches().filter(|_| auto && self.has_patches()) {
            plan.note = Some(format!("{refusal}, so a GPU goes stage by stage"));
        }
        let kept = auto && self.has_towers() && !self.interruptions.always.is_empty();
        let kept = kept && plan.patches().is_none();
        if kept && !self.fitting().is_empty() {
            plan.note = self.interruptions.refusal();
        }
        Ok((plan, choices))
    }

    /// The plan for one choice.
    pub fn plan(&self, choice: Choice) -> Result<DevicePlan, NoDevicePlan> {
        let scheme = self.planner.scheme;
        let kernels = code::kernels(scheme)?;
        let refused = |refusal| self.refused(&choice.name, refusal);
        let time_blocks = match &choice.schedule {
            Schedule::Pyramids(pyramid) => {
                let (plan, _) = self.patch_plan(pyramid).map_err(refused)?;
                Some(TimeBlockPlan::Patches(Box::new(plan)))
            }
            Schedule::Tiled(tiling) => {
                let plan = self.tower_plan(tiling).map_err(refused)?;
                Some(TimeBlockPlan::Towers(Box::new(plan)))
            }
            Schedule::Layerwise | Schedule::Boxes(_) => None,
        };
        let note = match &time_blocks {
            Some(TimeBlockPlan::Towers(plan)) => {
                let heights = Heights::new(plan.height(), plan.fit.towers(), scheme);
                self.interruptions.note(heights, self.problem.steps)
            }
            Some(TimeBlockPlan::Patches(plan)) => {
                let heights = patch_heights(scheme, plan.program.height);
                self.interruptions
                    .few(heights, self.problem.steps, "pyramids")
            }
            None => None,
        };
        Ok(DevicePlan {
            choice,
            kernels,
            time_blocks,
            note,
        })
    }

    /// The towers of a legal tiling.
    pub fn tower_plan(&self, tiling: &Tiling) -> Result<TowerPlan, Refusal> {
        let Planner { scheme, layout, .. } = &self.planner;
        let fit = self.fit(tiling)?;
        let facts = &self.model.facts;
        let towers = fit.towers();
        let steps = whole_periods(tiling.height, towers);
        let order = TimeBlockOrder {
            steps,
            order: usual_order(scheme, towers, &fit.block, tiling.height, facts),
            most_queues: order::most_queues(&fit.block, facts),
        };
        let tally = tally(scheme, layout, towers, steps / towers.steps, order.order);
        let tally = tally.ok_or(Refusal::Many)?;
        let variants = PlannedVariant::all(scheme, towers, &tally);
        let count = tally.towers;
        Ok(TowerPlan {
            variants,
            tiling: tiling.clone(),
            program: fit.program(scheme, layout),
            z_blocks: fit.z_blocks(scheme, steps),
            fit,
            order,
            count,
        })
    }

    /// Whether there could be towers at all: two axes to cut, and one for threads.
    fn has_towers(&self) -> bool {
        let scheme = self.planner.scheme;
        scheme.grid.dimensions() == 3
    }

    /// The towers that `auto` considers, by size, as one writes it.
    fn usual(&self, heights: &[i64]) -> impl Iterator<Item = (String, template::TiledTemplate)> {
        let unit = template::tower_unit(&self.planner.frame);
        let sizes = SIZES.into_iter().filter_map(|[a, b]| Rational::new(a, b));
        sizes.filter_map(move |size| {
            let pitch = unit * size;
            // Written sizes are multiples of 1/64.
            let (name, value, unit) = match 64 % size.den() {
                0 => ("D", size, unit),
                _ => ("W", pitch, Rational::ONE),
            };
            let open = template::Size {
                name: name.to_owned(),
                values: vec![value],
                is_given: true,
            };
            let family = template::towers(open, unit, template::Size::of("TH", heights));
            let whole = Rational::whole(pitch.floor()) == pitch;
            whole.then(|| (format!("`torre({name} = {value})`"), family))
        })
    }

    fn member(&self, name: String, schedule: Schedule) -> Member {
        let tiling = match &schedule {
            Schedule::Layerwise => return Ok(self.layerwise.clone()),
            Schedule::Tiled(tiling) => tiling,
            Schedule::Pyramids(pyramid) => return self.patch_member(name, pyramid),
            Schedule::Boxes(_) => return Err(self.refused(&name, Refusal::Shape("boxes"))),
        };
        check_tiling(&self.planner.frame, tiling)
            .map_err(|illegal| NoDevicePlan::Any(PlanError::Illegal(illegal)))?;
        let fits = self.fits(tiling);
        let fits = fits.map_err(|refusal| self.refused(&name, refusal))?;
        let Some((fit, whole)) = self.fastest(&fits, tiling.height) else {
            let steps = fits
                .first()
                .map(|fit| whole_periods(tiling.height, fit.towers()));
            let lean = |steps| Refusal::Lean { steps };
            return Err(self.refused(&name, steps.map_or(Refusal::Far, lean)));
        };
        if let Some(refusal) = self.around(fit, tiling.height) {
            return Err(self.refused(&name, refusal));
        }
        let towers = fit.towers();
        let height = whole_periods(tiling.height, towers);
        let heights = Heights::new(height, towers, self.planner.scheme);
        let shares = self.interruptions.shares(heights, self.problem.steps);
        let parts = self.parts(&shares, |height| self.predicted(fit, height));
        Ok(Choice {
            prediction: predict::mixed(whole, &parts, &self.layerwise.prediction),
            name,
            schedule,
        })
    }

    /// Why towers of some height do not go around the first axis, if it is periodic.
    fn around(&self, fit: &Fit, height: u64) -> Option<Refusal> {
        let towers = fit.towers();
        let steps = whole_periods(height, towers);
        match towers.launches(self.planner.scheme, steps / towers.steps) {
            Some(_) => None,
            None => Some(Refusal::Ring { steps }),
        }
    }

    /// Of blocks with several divisions of lines, the ones with the best prediction in time blocks of some height.
    fn fastest<'f>(&self, fits: &'f [Fit], height: u64) -> Option<(&'f Fit, Prediction)> {
        let scheme = self.planner.scheme;
        let possible = fits.iter().filter(|fit| {
            let height = whole_periods(height, fit.towers());
            fit.z_blocks(scheme, height) != Some(0)
        });
        let predicted = possible.map(|fit| {
            let height = whole_periods(height, fit.towers());
            (fit, self.predicted(fit, height))
        });
        predicted.max_by(|(_, a), (_, b)| a.rate.total_cmp(&b.rate))
    }

    /// The prediction of time blocks of `height` steps, a whole number of periods.
    fn predicted(&self, fit: &Fit, height: u64) -> Prediction {
        let scheme = self.planner.scheme;
        let slowdown = Slowdown {
            cut: self.interruptions.cut(scheme, fit.towers()),
            volumes: self.interruptions.added(scheme),
            boxes: self.boxes(fit),
        };
        predict::towers(scheme, fit, height, slowdown, self.model)
    }

    /// The parts of a run by time blocks, from a prediction for each height.
    pub(super) fn parts(
        &self,
        shares: &HeightShares,
        of: impl Fn(u64) -> Prediction,
    ) -> Vec<PartOfRun> {
        let part = |(height, share)| PartOfRun {
            share,
            prediction: of(height),
        };
        shares.iter().map(part).collect()
    }

    /// The cost of boxes of total fields for towers.
    fn boxes(&self, fit: &Fit) -> Boxes {
        let volumes = &self.interruptions.volumes;
        let sources = fit.allocated.sources.iter();
        let far = sources.map(|source| match source.adds {
            Adds::Correction(FarRows::Alike) if fit.block.slots.is_some() => FarFrom::Copied,
            Adds::Correction(FarRows::Alike | FarRows::Various) => FarFrom::Looked,
            Adds::Correction(FarRows::Bare) | Adds::Product => FarFrom::Bare,
        });
        let far = far.max().unwrap_or(FarFrom::Bare);
        let scheme = self.planner.scheme;
        Boxes::new(scheme, fit.towers(), volumes.whole_rows(), far)
    }

    /// The fit of the towers of a legal tiling, if the GPU can run them.
    pub fn fit(&self, tiling: &Tiling) -> Result<Fit, Refusal> {
        let fits = self.fits(tiling)?;
        let steps = tiling.height;
        let fastest = self.fastest(&fits, steps);
        let (fit, _) = fastest.ok_or(Refusal::Lean { steps })?;
        match self.around(fit, steps) {
            None => Ok(fit.clone()),
            Some(refusal) => Err(refusal),
        }
    }

    /// The same for each division of lines that is possible, for any height of time blocks.
    fn fits(&self, tiling: &Tiling) -> Result<Arc<Vec<Fit>>, Refusal> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |known: &&Known| known.division == self.division && known.levels == tiling.levels;
        if let Some(known) = known.iter().find(same) {
            return known.fits.clone();
        }
        let fits = self.new_fits(tiling).map(Arc::new);
        known.push(Known {
            levels: tiling.levels.clone(),
            division: self.division,
            fits: fits.clone(),
        });
        fits
    }

    fn new_fits(&self, tiling: &Tiling) -> Result<Vec<Fit>, Refusal> {
        let Planner { scheme, frame, .. } = &self.planner;
        if tiling.levels.len() > 1 {
            return Err(Refusal::Shape("tiles inside of tiles"));
        }
        let cuts_inner =
            |level: &Level| level.cuts.iter().any(|cut| cut.face.form[Axis::INNER] != 0);
        if self.has_towers() && tiling.levels.iter().any(cuts_inner) {
            return Err(Refusal::Shape("tiles that are cut along the last axis"));
        }
        let tiles = lower(scheme, frame, tiling).map_err(Refusal::Tiles)?;
        let mut fits = Vec::new();
        let mut refusal = None;
        for numbering in self.numberings() {
            match self.numbered_fits(&tiles, numbering) {
                Ok(own) => fits.extend(own),
                Err(own) => refusal = Some(own),
            }
        }
        match refusal {
            Some(refusal) if fits.is_empty() => Err(refusal),
            _ => Ok(fits),
        }
    }

    /// The numberings of threads that blocks may have. Only threads with whole lines of their own, and no volume
    /// sources, are numbered otherwise than the grid.
    fn numberings(&self) -> Vec<Numbering> {
        let whole = self.division.is_none_or(|own| own == Division::Shared(1));
        let volumes = self.interruptions.volumes.acting(self.problem);
        match whole && volumes.is_empty() {
            true => Numbering::all(self.planner.scheme),
            false => vec![Numbering::Grid],
        }
    }

    fn numbered_fits(
        &self,
        tiles: &Checked<TileProgram>,
        numbering: Numbering,
    ) -> Result<Vec<Fit>, Refusal> {
        let Planner { scheme, layout, .. } = &self.planner;
        let allocated = AllocatedTowers::new(scheme, layout, tiles, numbering)
            .map_err(|reason| Refusal::from_no_program(reason, layout))?;
        let volumes = &self.interruptions.volumes;
        let sources = volumes.acting(self.problem);
        let places = volumes.places().len();
        let allocated = allocated.correcting(volumes.whole_rows(), &sources, places);
        let gpu = self.model.gpu;
        let one = |division| vec![allocated.block(scheme, layout, options(gpu, division))];
        let blocks = match (self.division, numbering) {
            (Some(division), _) => one(division),
            (None, Numbering::Packed) => one(Division::Shared(1)),
            (None, Numbering::Grid) => candidates(scheme, layout, &allocated, gpu),
        };
        let fits = blocks
            .into_iter()
            .map(|block| self.fit_of(&allocated, block));
        fits.collect()
    }

    /// The same for some block.
    fn fit_of(
        &self,
        allocated: &AllocatedTowers,
        block: Result<Block, Misfit>,
    ) -> Result<Fit, Refusal> {
        let Planner { scheme, layout, .. } = &self.planner;
        let towers = &allocated.towers;
        let block = block.map_err(|misfit| Refusal::from_misfit(misfit, layout))?;
        let [bytes, most] = [block.all_shared(), self.model.gpu.shared_per_block].map(u64::from);
        if bytes > most {
            let rows = block.shared_rows;
            return Err(Refusal::Shared { rows, bytes, most });
        }
        let registers = thread_blocks::registers(scheme, towers, &block);
        let kept = thread_blocks::most_kept(towers);
        let most = u64::from(block.roles.registers);
        if registers > most {
            return Err(Refusal::Registers {
                kept,
                needed: registers,
                threads: block.roles.all(),
                most,
            });
        }
        let z_blocks = block.lines.z_blocks();
        let in_common = z_blocks.map(|z| z.in_common(allocated.allocations.iter()));
        Ok(Fit {
            in_common: in_common.unwrap_or(0.0),
            accesses: predict::shared_accesses(scheme, layout, allocated),
            allocated: allocated.clone(),
            block,
            kept,
            registers,
        })
    }
}

/// The steps of a time block of about this height, at least a period.
fn whole_periods(height: u64, towers: &Towers) -> u64 {
    (height / towers.steps).max(1) * towers.steps
}
