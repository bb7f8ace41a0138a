//! From a schedule as asked for to what a run needs: the tiles, and the kernels to compile.

use crate::program::layerwise_kernels;
use torre_compiler::cone::{Cones, cones};
use torre_compiler::kernel::KernelSet;
use torre_compiler::layout::{Layout, TooLarge};
use torre_compiler::schedule::{
    Choice, Frame, Illegal, Machine, Schedule, Template, candidates, check_tiling,
};
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::{TileProgram, lower};

/// A schedule that was chosen, ready to compile.
#[derive(Clone, Debug)]
pub struct Plan {
    pub choice: Choice,
    /// `None`: layerwise.
    pub program: Option<TileProgram>,
    pub kernels: KernelSet,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum PlanError {
    TooLarge,
    /// A slope that was given is too small, or a tiling has no meaning.
    Illegal(Illegal),
}

impl From<TooLarge> for PlanError {
    fn from(_: TooLarge) -> Self {
        PlanError::TooLarge
    }
}

/// What planning needs to know about a scheme.
pub struct Planner<'a> {
    pub scheme: &'a Scheme,
    pub layout: Layout,
    pub cones: Cones,
    pub frame: Frame,
}

impl<'a> Planner<'a> {
    pub fn new(scheme: &'a Scheme) -> Result<Self, TooLarge> {
        let cones = cones(scheme);
        Ok(Self {
            scheme,
            layout: Layout::new(scheme)?,
            frame: Frame::new(scheme, &cones),
            cones,
        })
    }

    /// The members of a template, the one that the model expects to be fastest first.
    pub fn choices(&self, template: &Template, machine: &Machine) -> Vec<Choice> {
        let Self {
            scheme,
            layout,
            frame,
            ..
        } = self;
        candidates(scheme, layout, frame, template, machine)
    }

    /// The plan for one choice.
    pub fn plan(&self, choice: Choice) -> Result<Plan, PlanError> {
        let (program, kernels) = self.lowered(&choice.schedule)?;
        Ok(Plan {
            choice,
            program,
            kernels,
        })
    }

    /// The tiles of a schedule, if it has any, and its kernels.
    pub fn lowered(
        &self,
        schedule: &Schedule,
    ) -> Result<(Option<TileProgram>, KernelSet), PlanError> {
        let mut kernels = layerwise_kernels(self.scheme)?;
        let program = match schedule {
            Schedule::Layerwise => None,
            Schedule::Tiled(tiling) => {
                check_tiling(&self.frame, tiling).map_err(PlanError::Illegal)?;
                let program = lower(self.scheme, &self.frame, tiling);
                kernels.kernels = program.kernels(self.scheme);
                Some(program)
            }
        };
        Ok((program, kernels))
    }

    /// The plan that the model likes best.
    pub fn best(&self, template: &Template, machine: &Machine) -> Result<Plan, PlanError> {
        let best = self.choices(template, machine).into_iter().next();
        let best = best.unwrap_or_else(|| Choice {
            name: "layerwise".to_owned(),
            schedule: Schedule::Layerwise,
            prediction: torre_compiler::schedule::predict(
                self.scheme,
                &self.layout,
                &self.frame,
                &Schedule::Layerwise,
                machine,
            ),
        });
        self.plan(best)
    }
}

impl Plan {
    /// The order in which an engine runs it.
    pub fn order(&self) -> crate::host::Order<'_> {
        match &self.program {
            None => crate::host::Order::Layerwise,
            Some(program) => crate::host::Order::Tiles(program),
        }
    }
}
