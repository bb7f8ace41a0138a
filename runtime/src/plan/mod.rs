//! From the schedule that was asked for to its execution: the tiles, and the kernels to compile.

pub mod compiling;
pub mod gpu;

use crate::host::Execution;
use torre_compiler::cone::{Cones, cones};
use torre_compiler::cost::{Choice, Machine, candidates};
use torre_compiler::kernel::KernelSet;
use torre_compiler::kernel::layerwise_kernels;
use torre_compiler::layout::{Layout, TooLarge};
use torre_compiler::schedule::{Frame, Illegal, Schedule, Template};
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::{NoTiles, PyramidProgram, lower};

/// A schedule that was chosen, ready to compile.
#[derive(Clone, Debug)]
pub struct Plan {
    pub choice: Choice,
    pub execution: Execution,
    pub kernels: KernelSet,
}

/// Why a schedule has no plan, neither for the processor nor for a GPU.
#[derive(Debug)]
pub enum PlanError {
    TooLarge,
    /// A slope that was given is too small, or a tiling has no meaning.
    Illegal(Illegal),
    /// The compiler made a wrong program.
    Fault(String),
}

impl From<NoTiles> for PlanError {
    fn from(reason: NoTiles) -> Self {
        match reason {
            NoTiles::Illegal(illegal) => PlanError::Illegal(illegal),
            NoTiles::Fault(fault) => PlanError::Fault(fault),
        }
    }
}

impl From<TooLarge> for PlanError {
    fn from(_: TooLarge) -> Self {
        PlanError::TooLarge
    }
}

/// The input of planning for a scheme.
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
        let (execution, kernels) = self.lowered(&choice.schedule)?;
        Ok(Plan {
            choice,
            execution,
            kernels,
        })
    }

    /// The execution of a schedule, and its kernels.
    pub fn lowered(&self, schedule: &Schedule) -> Result<(Execution, KernelSet), PlanError> {
        let mut kernels = layerwise_kernels(self.scheme, Layout::new(self.scheme)?);
        let execution = match schedule {
            Schedule::Layerwise => Execution::Layerwise,
            Schedule::Boxes(boxes) => Execution::Boxes(boxes.clone()),
            Schedule::Pyramids(pyramid) => {
                if !self.scheme.states.is_empty() || !self.scheme.zones.is_empty() {
                    return Err(PlanError::Illegal(Illegal::States));
                }
                if pyramid.height == 0 {
                    return Err(PlanError::Illegal(Illegal::Size));
                }
                let program = PyramidProgram::new(self.scheme, pyramid)?;
                kernels.layout = program.layout.clone();
                kernels.ends = false;
                Execution::Pyramids(Box::new(program))
            }
            Schedule::Tiled(tiling) => {
                let program = lower(self.scheme, &self.frame, tiling)?;
                if program.is_endless() {
                    return Err(PlanError::Illegal(Illegal::Endless));
                }
                let own = program.kernels(self.scheme);
                kernels = KernelSet::new(self.scheme, kernels.layout, own);
                Execution::Tiles(program)
            }
        };
        Ok((execution, kernels))
    }

    /// The plan that the model likes best.
    pub fn best(&self, template: &Template, machine: &Machine) -> Result<Plan, PlanError> {
        let best = self.choices(template, machine).into_iter().next();
        let best = best.unwrap_or_else(|| Choice {
            name: "layerwise".to_owned(),
            schedule: Schedule::Layerwise,
            prediction: torre_compiler::cost::predict(
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
    /// Steps that it takes at once.
    pub fn height(&self) -> u64 {
        self.execution.height()
    }

    /// Bytes that a run needs beside the array of the fields, which has this layout.
    pub fn more_bytes(&self, fields: &Layout, threads: usize) -> u64 {
        match &self.execution {
            Execution::Pyramids(program) => {
                let own = program.layout.bytes().saturating_mul(threads as u64);
                fields.bytes().saturating_add(own)
            }
            _ => 0,
        }
    }
}
