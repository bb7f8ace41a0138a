//! The program that was chosen for a run on a GPU, and its code.

use super::{Fit, PatchPlan, PlannedVariant};
use crate::gpu::{
    CompiledBlocks, CompiledPatches, CompiledTowers, DeviceModel, TimeBlockError, TimeBlockOrder,
    code, patches, towers,
};
use torre_compiler::backend::gpu::{Gpu, Module, Ptx};
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::cone::Rational;
use torre_compiler::cost::Choice;
use torre_compiler::kernel::KernelSet;
use torre_compiler::kernel::layerwise_kernels;
use torre_compiler::layerwise::Shape;
use torre_compiler::layout::{Layout, TooLarge};
use torre_compiler::schedule::Tiling;
use torre_compiler::scheme::Scheme;
use torre_compiler::tower::TowerProgram;

/// A schedule that was chosen for a GPU.
#[derive(Clone, Debug)]
pub struct DevicePlan {
    pub choice: Choice,
    /// Layerwise; time blocks have kernels of their own.
    pub kernels: KernelSet,
    /// `None`: all steps go stage by stage.
    pub time_blocks: Option<TimeBlockPlan>,
    /// Why not all steps are in time blocks, for people.
    pub note: Option<String>,
}

/// The time blocks of a schedule.
#[derive(Clone, Debug)]
pub enum TimeBlockPlan {
    Towers(Box<TowerPlan>),
    Patches(Box<PatchPlan>),
}

/// The towers of a schedule.
#[derive(Clone, Debug)]
pub struct TowerPlan {
    pub tiling: Tiling,
    pub fit: Fit,
    pub program: TowerProgram,
    pub order: TimeBlockOrder,
    /// Towers of a time block.
    pub count: usize,
    /// Z blocks into which lines are cut, if they are: each of them has a launch for all these towers.
    pub z_blocks: Option<usize>,
    /// The variants of interior periods, where zones amend rows in some.
    pub variants: Vec<PlannedVariant>,
}

impl DevicePlan {
    /// Its towers, if its time blocks are of towers.
    pub fn towers(&self) -> Option<&TowerPlan> {
        match &self.time_blocks {
            Some(TimeBlockPlan::Towers(plan)) => Some(plan),
            Some(TimeBlockPlan::Patches(_)) | None => None,
        }
    }

    /// Its pyramids, if its time blocks are of pyramids.
    pub fn patches(&self) -> Option<&PatchPlan> {
        match &self.time_blocks {
            Some(TimeBlockPlan::Patches(plan)) => Some(plan),
            Some(TimeBlockPlan::Towers(_)) | None => None,
        }
    }

    /// Steps that it takes at once.
    pub fn height(&self) -> u64 {
        match &self.time_blocks {
            Some(TimeBlockPlan::Towers(plan)) => plan.height(),
            Some(TimeBlockPlan::Patches(plan)) => plan.program.height,
            None => 1,
        }
    }

    /// Has values arranged for a calculation window.
    pub fn arrange_for_window(&mut self, scheme: &Scheme) -> Result<(), TooLarge> {
        self.kernels = layerwise_kernels(scheme, Layout::for_window(scheme)?);
        Ok(())
    }

    /// Has planes lie `gap` groups farther apart than they have to, where the device holds all values.
    pub fn arrange_with_gap(&mut self, scheme: &Scheme, gap: i64) -> Result<(), TooLarge> {
        self.kernels = layerwise_kernels(scheme, Layout::for_gpu_with_gap(scheme, gap)?);
        Ok(())
    }

    /// Its own kernels as IR: kernels of its time blocks, or of whole stages.
    pub fn module(&self, scheme: &Scheme, gpu: Gpu) -> Module {
        let layout = &self.kernels.layout;
        match &self.time_blocks {
            Some(TimeBlockPlan::Towers(plan)) => towers::module(scheme, layout, &plan.program),
            Some(TimeBlockPlan::Patches(plan)) => {
                patches::module(scheme, layout, &plan.program, gpu)
            }
            None => code::module(scheme, &self.kernels, Shape::of(scheme)),
        }
    }

    /// Compiles its kernels: kernels of whole stages, and of towers if it has some.
    pub fn compile(
        &self,
        library: &Library,
        scheme: &Scheme,
        model: &DeviceModel,
    ) -> Result<(Ptx, Option<CompiledTowers>), TimeBlockError> {
        let ptx = code::ptx(library, scheme, &self.kernels, Shape::of(scheme), model.gpu)?;
        Ok((ptx, self.compile_towers(library, scheme, model)?))
    }

    /// Compiles the kernels of its time blocks if it has some.
    pub fn compile_blocks(
        &self,
        library: &Library,
        scheme: &Scheme,
        model: &DeviceModel,
    ) -> Result<Option<CompiledBlocks>, TimeBlockError> {
        if let Some(plan) = self.patches() {
            let (layout, program) = (&self.kernels.layout, plan.program.clone());
            let compiled = CompiledPatches::new(library, scheme, layout, program, model.gpu)?;
            return Ok(Some(CompiledBlocks::Patches(Box::new(compiled))));
        }
        let towers = self.compile_towers(library, scheme, model)?;
        Ok(towers.map(|towers| CompiledBlocks::Towers(Box::new(towers))))
    }

    /// Compiles the kernels of its towers if it has some.
    pub fn compile_towers(
        &self,
        library: &Library,
        scheme: &Scheme,
        model: &DeviceModel,
    ) -> Result<Option<CompiledTowers>, TimeBlockError> {
        let compile = |plan: &TowerPlan| {
            let (layout, program) = (&self.kernels.layout, plan.program.clone());
            CompiledTowers::new(library, scheme, layout, program, model.gpu, plan.order)
        };
        self.towers().map(compile).transpose()
    }
}

impl TowerPlan {
    /// The pitch of its faces in cells, and in units of twice their steepest slope, the size of DiamondTorre.
    pub fn width(&self) -> (Rational, Option<Rational>) {
        let cuts = || self.tiling.levels.iter().flat_map(|level| &level.cuts);
        let pitch = cuts().map(|cut| cut.pitch).max().unwrap_or_default();
        let slope = cuts().map(|cut| cut.face.slope).max().unwrap_or_default();
        (pitch, pitch.checked_div(slope * Rational::whole(2)))
    }

    /// Steps of a time block: whole periods.
    pub fn height(&self) -> u64 {
        self.order.steps
    }
}
