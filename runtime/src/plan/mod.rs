//! From the schedule that was asked for to the program of a run: the tiles, and the kernels to compile.

pub mod gpu;

use crate::host::Order;
use std::fmt;
use torre_compiler::cone::{Cones, cones};
use torre_compiler::cost::{Choice, Machine, candidates};
use torre_compiler::kernel::KernelSet;
use torre_compiler::layout::{Layout, TooLarge};
use torre_compiler::schedule::{Boxes, Frame, Illegal, Schedule, Template};
use torre_compiler::scheme::Scheme;
use torre_compiler::tile::{
    Checked, NoTiles, PyramidProgram, TileProgram, layerwise_kernels, lower,
};

/// A schedule that was chosen, ready to compile.
#[derive(Clone, Debug)]
pub struct Plan {
    pub choice: Choice,
    pub program: Program,
    pub kernels: KernelSet,
}

/// The program that a run executes.
#[derive(Clone, Debug)]
pub enum Program {
    Layerwise,
    Tiles(Checked<TileProgram>),
    Pyramids(Box<PyramidProgram>),
    Boxes(Boxes),
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Program::Layerwise => writeln!(f, "layerwise"),
            Program::Tiles(program) => program.fmt(f),
            Program::Pyramids(program) => program.fmt(f),
            Program::Boxes(boxes) => writeln!(f, "{}", Schedule::Boxes(boxes.clone())),
        }
    }
}

/// Why there is no plan.
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
        let (program, kernels) = self.lowered(&choice.schedule)?;
        Ok(Plan {
            choice,
            program,
            kernels,
        })
    }

    /// The program that a run of a schedule executes, and its kernels.
    pub fn lowered(&self, schedule: &Schedule) -> Result<(Program, KernelSet), PlanError> {
        let mut kernels = layerwise_kernels(self.scheme, Layout::new(self.scheme)?);
        let program = match schedule {
            Schedule::Layerwise => Program::Layerwise,
            Schedule::Boxes(boxes) => Program::Boxes(boxes.clone()),
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
                Program::Pyramids(Box::new(program))
            }
            Schedule::Tiled(tiling) => {
                let program = lower(self.scheme, &self.frame, tiling)?;
                if program.is_endless() {
                    return Err(PlanError::Illegal(Illegal::Endless));
                }
                let own = program.kernels(self.scheme);
                kernels = KernelSet::new(self.scheme, kernels.layout, own);
                Program::Tiles(program)
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
    /// The order in which an engine runs it.
    pub fn order(&self) -> Order<'_> {
        match &self.program {
            Program::Layerwise => Order::Layerwise,
            Program::Tiles(program) => Order::Tiles(program),
            Program::Pyramids(program) => Order::Pyramids(program),
            Program::Boxes(boxes) => Order::Boxes(boxes),
        }
    }

    /// Steps that it takes at once.
    pub fn height(&self) -> u64 {
        match &self.program {
            Program::Layerwise | Program::Boxes(_) => 1,
            Program::Tiles(program) => program.height,
            Program::Pyramids(program) => program.height,
        }
    }

    /// Bytes that a run needs beside the array of the fields, which has this layout.
    pub fn more_bytes(&self, fields: &Layout, threads: usize) -> u64 {
        match &self.program {
            Program::Pyramids(program) => {
                let own = program.layout.bytes().saturating_mul(threads as u64);
                fields.bytes().saturating_add(own)
            }
            _ => 0,
        }
    }
}
