//! Torre on a device: layerwise, and by towers or pyramids.

use super::asked::Asked;
use super::cases::GpuCase;
use super::fill::fill;
use std::time::Instant;
use torre_compiler::backend::gpu::{Gpu, Ptx};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::cone::{Rational, cones};
use torre_compiler::kernel::KernelSet;
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::layerwise::Shape;
use torre_compiler::patch;
use torre_compiler::real::Real;
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::{Cut, Frame, Level, Pyramid, Schedule, Template, Tiling};
use torre_compiler::scheme::{Precision, Scheme};
use torre_compiler::tower::Order;
use torre_compiler::tower::block::Division;
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::{
    CompiledBlocks, CompiledPatches, CompiledTowers, Device, DeviceModel, DeviceProgram, OnDevice,
    code,
};
use torre_runtime::host::{Calculation, threads};
use torre_runtime::plan::gpu::{DevicePlanner, PatchPlan, Refusal, TowerPlan};
use torre_runtime::simulation::{Progress, Simulation, Value};

/// A problem, without its probes and outputs, and without its sources unless they are measured, with its
/// layerwise kernels.
pub struct Prepared {
    pub resolved: Resolved,
    files: LoadedFiles,
    pub set: KernelSet,
    library: &'static Library,
    gpu: Gpu,
    ptx: Ptx,
    shape: Shape,
    coefs: Option<[f64; 2]>,
}

/// Steps of the run that the model plans for.
const STEPS: u64 = 1 << 20;

/// Towers or pyramids to run.
#[derive(Clone, Debug)]
pub struct Scheduled {
    pub name: String,
    tiles: Tiles,
    /// How lines are divided.
    division: Option<Division>,
    order: Option<Order>,
    /// The rate that the model expects, in cell-steps per second.
    pub expected: Option<f64>,
}

/// The tiles of a time block.
#[derive(Clone, Debug, PartialEq)]
enum Tiles {
    Towers(Tiling),
    Pyramids(Pyramid),
    /// Pyramids of a shape, and their height.
    Shaped(patch::Shape, u64),
}

/// Towers or pyramids, compiled.
pub struct TimeBlock {
    pub blocks: CompiledBlocks,
    /// Its steps.
    pub steps: u64,
    /// Its tiles in words.
    pub notes: String,
    /// Seconds for it.
    pub compiling: f64,
}

impl Prepared {
    /// Compiles a case for a GPU.
    pub fn new(
        case: &GpuCase,
        precision: Precision,
        cells: &[i64],
        gpu: Gpu,
    ) -> Result<Prepared, String> {
        let (mut resolved, files) = case.resolve(precision, cells)?;
        if !case.sources {
            resolved.problem.sources.clear();
        }
        // In steps with these, towers do not run.
        resolved.problem = resolved.problem.without_results();
        // As of a long run, of whose steps hardly any remain beside time blocks.
        resolved.problem.steps = STEPS;
        let library = Library::open().map_err(|e| e.to_string())?;
        let set = code::kernels(&resolved.scheme).map_err(|_| "the grid is too large")?;
        let shape = Shape::of(&resolved.scheme);
        let ptx = code::ptx(library, &resolved.scheme, &set, shape, gpu);
        Ok(Prepared {
            ptx: ptx.map_err(|e| e.to_string())?,
            resolved,
            files,
            set,
            library,
            gpu,
            shape,
            coefs: case.coefs,
        })
    }

    pub fn scheme(&self) -> &Scheme {
        &self.resolved.scheme
    }

    /// The calculation on a device, started from noise.
    pub fn start<'a, T: Value>(
        &'a self,
        device: &'a dyn Device,
    ) -> Result<OnDevice<'a, T>, String> {
        let Resolved {
            scheme, problem, ..
        } = &self.resolved;
        let mut calculation: Calculation<'_, T> = Calculation::arranged(
            self.set.layout.clone(),
            scheme,
            problem,
            &self.files,
            threads::available(),
        )
        .map_err(|e| format!("cannot start: {e:?}"))?;
        fill(&mut calculation, self.coefs);
        let program = DeviceProgram {
            set: &self.set,
            ptx: &self.ptx,
            shape: self.shape,
        };
        OnDevice::new(calculation, &self.files, device, program).map_err(|e| e.to_string())
    }

    /// The model of the device, whose copies run at some rate.
    pub fn model(&self, device: &dyn Device, copies: f64) -> Result<DeviceModel, String> {
        DeviceModel::of(device, Some(self.gpu), copies).map_err(|e| e.to_string())
    }

    fn planner<'a>(
        &'a self,
        model: &'a DeviceModel,
        division: Option<Division>,
    ) -> Result<DevicePlanner<'a>, String> {
        let Resolved {
            scheme, problem, ..
        } = &self.resolved;
        let planner = DevicePlanner::new(scheme, problem, model);
        let mut planner = planner.map_err(|_| "the grid is too large".to_string())?;
        planner.division = division;
        Ok(planner)
    }

    /// The towers that are asked for; the model chooses only towers that the device can run. `division`: the division
    /// of lines, if it is not the model's choice.
    pub fn schedules(
        &self,
        asked: &[Asked],
        division: Option<Division>,
        model: &DeviceModel,
    ) -> Result<Vec<Scheduled>, String> {
        let scheme = self.scheme();
        let planner = self.planner(model, division)?;
        let choices = planner.choices(&Template::Auto);
        let choices = choices.map_err(|e| format!("the model has no choice: {e:?}"))?;
        let modelled: Vec<Scheduled> = choices
            .into_iter()
            .filter_map(|choice| {
                let tiles = match choice.schedule {
                    Schedule::Tiled(tiling) => Tiles::Towers(tiling),
                    Schedule::Pyramids(pyramid) => Tiles::Pyramids(pyramid),
                    _ => return None,
                };
                Some(Scheduled {
                    name: choice.name,
                    division,
                    tiles,
                    order: None,
                    expected: Some(choice.prediction.rate),
                })
            })
            .collect();
        let mut found = Vec::new();
        for asked in asked {
            match asked {
                Asked::Auto => found.extend(modelled.first().cloned()),
                Asked::Every => found.extend(modelled.iter().cloned()),
                Asked::Pyramids { shape, height } => found.push(Scheduled {
                    name: format!("pyramids {asked}"),
                    expected: (planner.shaped(*shape, *height).ok()).map(|(_, p)| p.rate),
                    division,
                    tiles: Tiles::Shaped(*shape, *height),
                    order: None,
                }),
                Asked::These {
                    width,
                    height,
                    order,
                } => {
                    let tiles = Tiles::Towers(tiling(scheme, *width, *height));
                    let same = modelled.iter().find(|m| m.tiles == tiles);
                    found.push(Scheduled {
                        name: format!("towers {asked}"),
                        // It knows its own order.
                        expected: same.filter(|_| order.is_none()).and_then(|m| m.expected),
                        division,
                        tiles,
                        order: *order,
                    });
                }
            }
        }
        Ok(found)
    }

    /// Compiles towers or pyramids; an error where the device cannot run such.
    pub fn blocks(&self, scheduled: &Scheduled, model: &DeviceModel) -> Result<TimeBlock, String> {
        let begun = Instant::now();
        let planner = self.planner(model, scheduled.division)?;
        let refused = |refusal: Refusal| refusal.to_string();
        let (blocks, steps, notes) = match &scheduled.tiles {
            Tiles::Towers(tiling) => {
                let plan = planner.tower_plan(tiling).map_err(refused)?;
                self.towers(plan, scheduled.order)?
            }
            Tiles::Pyramids(pyramid) => {
                let (plan, _) = planner.patch_plan(pyramid).map_err(refused)?;
                self.pyramids(plan)?
            }
            Tiles::Shaped(shape, height) => {
                let (plan, _) = planner.shaped(*shape, *height).map_err(refused)?;
                self.pyramids(plan)?
            }
        };
        Ok(TimeBlock {
            blocks,
            steps,
            notes,
            compiling: begun.elapsed().as_secs_f64(),
        })
    }

    fn towers(
        &self,
        plan: TowerPlan,
        order: Option<Order>,
    ) -> Result<(CompiledBlocks, u64, String), String> {
        let (scheme, layout) = (self.scheme(), &self.set.layout);
        let mut time_blocks = plan.order;
        time_blocks.order = order.unwrap_or(time_blocks.order);
        let towers = CompiledTowers::new(
            self.library,
            scheme,
            layout,
            plan.program,
            self.gpu,
            time_blocks,
        );
        let towers = towers.map_err(|e| e.to_string())?;
        let (own, block) = (&towers.program.towers, &towers.program.block);
        let notes = format!(
            "{} towers, lines {} x {}, {:.1} bytes",
            towers.count(),
            block.lines.cluster(),
            block.values,
            own.bytes_per_cell(scheme)
        );
        let steps = towers.steps;
        Ok((CompiledBlocks::Towers(Box::new(towers)), steps, notes))
    }

    fn pyramids(&self, plan: PatchPlan) -> Result<(CompiledBlocks, u64, String), String> {
        let program = &plan.program;
        let bases = program.along.each_ref().map(|along| along.base);
        let of_axes = |numbers: &[i64; 3]| program.of_axes(numbers, " x ");
        let notes = format!(
            "{} tiles{} of {}, bases {}, patches {}, {} warps, {} blocks, about {} registers",
            program.tiles(),
            program.stays.as_ref().map_or("", |_| " that stay"),
            of_axes(&program.shape.tile()),
            of_axes(&bases),
            of_axes(&program.shape.patch),
            program.shape.warps(),
            program.shape.blocks,
            plan.registers
        );
        // Where tiles stay, whole launches as in runs.
        let steps = program.launch_steps();
        let (scheme, layout) = (self.scheme(), &self.set.layout);
        let patches = CompiledPatches::new(self.library, scheme, layout, plan.program, self.gpu);
        let patches = patches.map_err(|e| e.to_string())?;
        Ok((CompiledBlocks::Patches(Box::new(patches)), steps, notes))
    }
}

/// One level of towers along both diagonals of the first two axes.
fn tiling(scheme: &Scheme, width: i64, height: u64) -> Tiling {
    let frame = Frame::new(scheme, &cones(scheme)).opened();
    let cut = |form| Cut {
        face: frame.fitting(PerAxis(form)),
        pitch: Rational::whole(width),
    };
    Tiling {
        height,
        levels: vec![Level {
            cuts: vec![cut([1, 1, 0]), cut([1, -1, 0])],
        }],
    }
}

/// Seconds for some steps.
pub fn advance<T: Value>(simulation: &mut OnDevice<'_, T>, steps: u64) -> Result<f64, String> {
    let until = simulation.steps() + steps;
    let start = Instant::now();
    simulation
        .run(until, &Progress::default())
        .map_err(|e| format!("{e:?}"))?;
    Ok(start.elapsed().as_secs_f64())
}

/// A number for each row of each component, which tells whether two runs have the same bits there.
pub fn digests<T: Value>(simulation: &mut OnDevice<'_, T>) -> Result<Vec<u64>, String> {
    simulation.fetch().map_err(|e| format!("{e:?}"))?;
    let simulation: &dyn Simulation<T> = simulation;
    let scheme = simulation.scheme();
    let mut digests = Vec::new();
    for id in scheme.component_ids() {
        let extent = scheme.extent(id);
        for x in extent[Axis::OUTER].lo..extent[Axis::OUTER].hi {
            for y in extent[Axis::MIDDLE].lo..extent[Axis::MIDDLE].hi {
                let row = simulation.row(id, 0, x, y);
                let mix = |d: u64, v: &T| (d ^ Real::bits(*v)).wrapping_mul(0x0100_0000_01b3);
                digests.push(row.iter().fold(0xcbf2_9ce4_8422_2325, mix));
            }
        }
    }
    Ok(digests)
}
