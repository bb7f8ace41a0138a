//! Schedules on a GPU.

use super::contest::{Bench, Contestant, Field, contestants, differs, quiet};
use crate::args;
use crate::device;
use crate::failure::Failure;
use crate::input::Input;
use crate::render::Voice;
use crate::schedule;
use std::time::{Duration, Instant};
use torre_compiler::backend::gpu::Ptx;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::cost::Choice;
use torre_compiler::kernel::KernelSet;
use torre_compiler::layerwise::Shape;
use torre_compiler::problem::Problem;
use torre_compiler::schedule::Template;
use torre_compiler::scheme::{Precision, Scheme};
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::{
    CompiledBlocks, CudaDevice, Device, DeviceProgram, OnDevice, TimeBlocks, code,
};
use torre_runtime::host::{Calculation, threads};
use torre_runtime::plan::gpu::{DevicePlan, DevicePlanner};
use torre_runtime::program::CompileError;
use torre_runtime::run::verify;
use torre_runtime::simulation::{Progress, SetupError, Simulation, Value as Number};

/// No measurement reaches this number of steps.
const STEPS: u64 = 1 << 48;

pub fn bench(args: &args::Bench, voice: &Voice) -> Result<(), Failure> {
    let Input {
        world,
        source,
        resolved,
        ..
    } = Input::read(&args.subject, voice)?;
    let scheme = &resolved.scheme;
    let (device, model) = device::opened(args.how.device()?, &args.how.target)?;
    let problem = quiet(&resolved.problem, STEPS);
    let planner = DevicePlanner::new(scheme, &problem, &model).map_err(SetupError::from)?;
    let refused = |error| device::refused(error, &planner, &model);
    let layerwise = planner.choices(&Template::Layerwise).map_err(refused)?;
    let choices = contestants(args, layerwise, |text| {
        let template = schedule::template(text, &source, &resolved, &planner.planner)?;
        let choices = planner.choices(&template).map_err(refused)?;
        Ok((template, choices))
    })?;
    let plan = |choice: Choice| planner.plan(choice).map_err(refused);
    let plans = choices.into_iter().map(plan);
    let plans = plans.collect::<Result<Vec<DevicePlan>, Failure>>()?;
    if let Some(note) = plans.iter().find_map(|plan| plan.note.as_ref()) {
        voice.note(note);
    }
    let files = LoadedFiles::load(&world, scheme)?;
    let library = Library::open().map_err(CompileError::from)?;
    let mut made = Vec::new();
    let mut contestants = Vec::new();
    let start = Instant::now();
    // All have the kernels of whole stages, for the steps between time blocks.
    let set = match plans.first() {
        Some(plan) => &plan.kernels,
        None => return Ok(()),
    };
    let shape = Shape::of(scheme);
    let ptx = code::ptx(library, scheme, set, shape, model.gpu).map_err(CompileError::from)?;
    let compiling = start.elapsed();
    for plan in &plans {
        let start = Instant::now();
        let blocks = plan.compile_blocks(library, scheme, &model);
        made.push(blocks?);
        contestants.push(Contestant {
            choice: plan.choice.clone(),
            height: plan.height(),
            kernels: set.kernels.len() + usize::from(plan.height() > 1),
            compiling: compiling + start.elapsed(),
        });
    }
    let bench = Bench {
        args,
        voice,
        scheme,
        problem: &problem,
        contestants,
        threads: args
            .threads
            .threads
            .map_or_else(threads::available, |n| n as usize),
        backend: "cuda".to_owned(),
        code: format!("LLVM {}, {}", library.version(), ptx.gpu),
        machine: (
            "device",
            device::json(device.facts(), Some(model.copy_rate)),
        ),
    };
    let on = OnGpu {
        scheme,
        problem: &problem,
        files: &files,
        device: &device,
        set,
        ptx: &ptx,
        blocks: &made,
    };
    match scheme.precision {
        Precision::F32 => on.run::<f32>(&bench),
        Precision::F64 => on.run::<f64>(&bench),
    }
}

/// The common part of all calculations.
struct OnGpu<'a> {
    scheme: &'a Scheme,
    problem: &'a Problem,
    files: &'a LoadedFiles,
    device: &'a CudaDevice,
    set: &'a KernelSet,
    ptx: &'a Ptx,
    /// Of each plan.
    blocks: &'a [Option<CompiledBlocks>],
}

impl<'a> OnGpu<'a> {
    fn run<T: Number>(&self, bench: &Bench<'_>) -> Result<(), Failure> {
        let mut turns = self.turns::<T>(bench.threads)?;
        if bench.args.verify {
            self.verify(&mut turns, bench)?;
        }
        bench.run(&mut turns)
    }

    fn turns<T: Number>(&self, threads: usize) -> Result<Turns<'a, T>, Failure> {
        let layout = self.set.layout.clone();
        let calculation =
            Calculation::arranged(layout, self.scheme, self.problem, self.files, threads)?;
        let program = DeviceProgram {
            set: self.set,
            ptx: self.ptx,
            shape: Shape::of(self.scheme),
        };
        let simulation = OnDevice::new(calculation, self.files, self.device, program)?;
        let mut time_blocks = Vec::new();
        for blocks in self.blocks {
            time_blocks.push(match blocks {
                Some(blocks) => simulation.blocks(blocks)?.ok(),
                None => None,
            });
        }
        Ok(Turns {
            simulation,
            time_blocks,
        })
    }

    /// Compares every value of each plan with the first one, which is layerwise, after two time blocks and some steps.
    fn verify<T: Number>(
        &self,
        turns: &mut Turns<'a, T>,
        bench: &Bench<'_>,
    ) -> Result<(), Failure> {
        let phases = u64::from(self.scheme.phases().max(1));
        let mut check = self.turns::<T>(bench.threads)?;
        for (number, contestant) in bench.contestants.iter().enumerate().skip(1) {
            let steps = 2 * contestant.height + phases;
            turns.advance(number, steps)?;
            check.advance(0, steps)?;
            turns.simulation.fetch()?;
            check.simulation.fetch()?;
            verify::compare(&turns.simulation, &check.simulation)
                .map_err(|difference| differs(&contestant.choice, &difference))?;
        }
        Ok(())
    }
}

/// The calculation that all plans advance in turns.
struct Turns<'a, T> {
    simulation: OnDevice<'a, T>,
    /// Of each plan, while it has no turn.
    time_blocks: Vec<Option<TimeBlocks>>,
}

impl<T: Number> Field for Turns<'_, T> {
    fn advance(&mut self, plan: usize, steps: u64) -> Result<Duration, Failure> {
        let until = self.simulation.steps().saturating_add(steps);
        self.simulation.exchange(&mut self.time_blocks[plan]);
        let start = Instant::now();
        let done = self.simulation.run(until, &Progress::default());
        let time = start.elapsed();
        self.simulation.exchange(&mut self.time_blocks[plan]);
        done?;
        Ok(time)
    }
}
