//! `torre emit`: the stages of the compilation of a program.

use crate::args::{self, StageArg};
use crate::codes;
use crate::device;
use crate::failure::Failure;
use crate::input;
use crate::plan::time_blocks_text;
use crate::rates::LearnedRates;
use crate::render::Voice;
use crate::schedule;
use crate::window::{self, Held, Question};
use crate::write;
use std::fmt::Write;
use torre_compiler::backend::gpu::compile;
use torre_compiler::backend::llvm::cpu::{Shape, emit as emit_llvm};
use torre_compiler::backend::llvm::library::{self as llvm, Library, Options};
use torre_compiler::cone::cones;
use torre_compiler::cost::Choice;
use torre_compiler::kernel::KernelSet;
use torre_compiler::pipeline::{
    Printed as PrintedPipeline, PrintedSlabs, PrintedStripes, check_stripes,
};
use torre_compiler::resolve::Resolved;
use torre_compiler::schedule::Schedule;
use torre_compiler::scheme::{CoefId, Scheme};
use torre_compiler::tower::Printed;
use torre_grammar::diag::Diagnostic;
use torre_grammar::{parse, print};
use torre_runtime::gpu::DeviceModel;
use torre_runtime::host::{Execution, threads};
use torre_runtime::plan::Planner;
use torre_runtime::plan::gpu::{DevicePlan, DevicePlanner, TimeBlockPlan};
use torre_runtime::program::{self, CompileError, TargetChoice};
use torre_runtime::simulation::SetupError;

pub fn emit(args: &args::Emit, voice: &Voice) -> Result<(), Failure> {
    if (args.holding.is_given() || args.devices.is_some()) && args.stage != StageArg::Pipeline {
        return Err(Failure::usage(
            "`--devices`, `--window` and what goes with it are for `--stage pipeline`",
        ));
    }
    if let StageArg::Ast | StageArg::Scheme | StageArg::Cones | StageArg::Schedule | StageArg::Tiles =
        args.stage
        && args.target != TargetChoice::Host
    {
        return Err(Failure::usage(
            "`--target` is for the stages of code: `plan`, `towers`, `pipeline`, `llvm`, `asm`, `clif` and `ptx`",
        ));
    }
    let text = match args.stage {
        StageArg::Ast => print(&parse(&input::source(&args.subject.file)?)?),
        StageArg::Scheme => input::inspected(&args.subject, voice)?.scheme.to_string(),
        StageArg::Cones => cones(&input::inspected(&args.subject, voice)?.scheme).to_string(),
        StageArg::Ptx | StageArg::Towers | StageArg::Pipeline => on_device(args, voice)?,
        StageArg::Plan | StageArg::Llvm | StageArg::Asm if device::is_gpu(&args.target) => {
            on_device(args, voice)?
        }
        stage => {
            let Scheduled {
                scheme,
                schedule,
                execution,
                kernels,
            } = Scheduled::new(args, voice)?;
            match stage {
                StageArg::Schedule => format!("{schedule}\n"),
                StageArg::Tiles => execution.to_string(),
                StageArg::Plan => plan_text(&scheme, &schedule.to_string(), &kernels),
                #[cfg(feature = "cranelift")]
                StageArg::Clif => clif(&scheme, &kernels, &args.target)?,
                _ => machine_code(&scheme, &kernels, stage, &args.target)?,
            }
        }
    };
    write::result_to(args.output.as_deref(), &text)
}

/// A program with its schedule.
struct Scheduled {
    scheme: Scheme,
    schedule: Schedule,
    execution: Execution,
    kernels: KernelSet,
}

impl Scheduled {
    /// Sizes that are left open are chosen for a run on this machine.
    fn new(args: &args::Emit, voice: &Voice) -> Result<Self, Failure> {
        let source = input::source(&args.subject.file)?;
        let resolved = input::inspected(&args.subject, voice)?;
        let planner = Planner::new(&resolved.scheme).map_err(SetupError::from)?;
        let template = schedule::template(&args.schedule, &source, &resolved, &planner)?;
        let refused = |error| schedule::refused(error, &planner);
        let schedule = match template.fixed(&planner.frame) {
            Some(schedule) => schedule,
            None => {
                let machine = schedule::machine(threads::available());
                let best = planner.best(&template, &machine).map_err(refused)?;
                best.choice.schedule
            }
        };
        let (execution, kernels) = planner.lowered(&schedule).map_err(refused)?;
        Ok(Self {
            schedule,
            execution,
            kernels,
            scheme: resolved.scheme,
        })
    }
}

/// A schedule without towers, which `auto` and sizes left open may choose, too.
fn no_towers(args: &args::Emit, schedule: &Schedule) -> Failure {
    let reason = match args.schedule == schedule.to_string() {
        true => {
            format!("`{schedule}` has no towers: name some with `--schedule`, such as `torre`")
        }
        false => format!(
            "`{}` chooses `{schedule}` for this problem, which has no towers",
            args.schedule
        ),
    };
    Failure::usage(reason)
}

/// The schedule, the places of values, and the updates of each kernel.
fn plan_text(scheme: &Scheme, schedule: &str, kernels: &KernelSet) -> String {
    let mut text = format!("{schedule}\n\n");
    text.push_str(&memory(scheme, kernels));
    text.push_str(&functions(scheme, kernels));
    text
}

/// Where values lie.
fn memory(scheme: &Scheme, kernels: &KernelSet) -> String {
    let layout = &kernels.layout;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "memory: {} elements of {} bytes",
        layout.elements, layout.element_bytes
    );
    let _ = writeln!(out, "  origin {}", layout.origin);
    let _ = writeln!(out, "  row stride {}", layout.row_stride);
    for axis in scheme.grid.present() {
        let [below, above] = layout.reach[axis];
        let _ = writeln!(
            out,
            "  axis {}: {} values, ghosts {below} below and {above} above, stride {}",
            scheme.grid.axis_name(axis),
            layout.extent[axis],
            layout.stride[axis],
        );
    }
    for id in scheme.component_ids() {
        let component = scheme.component(id);
        for time_level in 0..component.time_levels {
            let row = layout.row(id, u64::from(time_level));
            let _ = match component.time_levels {
                1 => writeln!(out, "  {row} {}", component.name),
                time_levels => writeln!(
                    out,
                    "  {row} {}, versions {time_level} + {time_levels} n",
                    component.name
                ),
            };
        }
    }
    for (i, coef) in scheme.coefs.iter().enumerate() {
        let row = layout.coef_row(CoefId(i as u32));
        let _ = writeln!(out, "  {row} {}", coef.name);
    }
    out
}

/// Which updates each kernel runs.
fn functions(scheme: &Scheme, kernels: &KernelSet) -> String {
    let mut out = "\nkernels\n".to_owned();
    for kernel in &kernels.kernels {
        let targets = kernel.updates(scheme).map(|u| u.target);
        let names: Vec<&str> = targets
            .map(|id| scheme.component(id).name.as_str())
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {kernel}: {}", names.join(", "));
    }
    out
}

/// Kernels as LLVM sees them, or as the processor does.
fn machine_code(
    scheme: &Scheme,
    kernels: &KernelSet,
    stage: StageArg,
    choice: &TargetChoice,
) -> Result<String, Failure> {
    let library = Library::open().map_err(CompileError::from)?;
    let (cpu, _) = program::target(library, choice)?;
    let ir = emit_llvm(scheme, kernels, Shape::of(&cpu, scheme.precision));
    match stage {
        StageArg::Asm => {
            let asm = llvm::compile_to_asm(library, &ir, &cpu.target, &Options::CPU);
            Ok(asm.map_err(CompileError::from)?)
        }
        _ => Ok(ir),
    }
}

/// The program of a GPU: the plan, or the kernels as LLVM sees them or as the driver does. For towers these are the
/// kernels of a time block.
fn on_device(args: &args::Emit, voice: &Voice) -> Result<String, Failure> {
    let source = input::source(&args.subject.file)?;
    let resolved = input::inspected(&args.subject, voice)?;
    let model = device::target(&args.target)?;
    let (plan, choices) = device::plan(
        &args.schedule,
        &source,
        &resolved,
        &model,
        &LearnedRates::none(&resolved),
    )?;
    let scheme = &resolved.scheme;
    let module = || plan.module(scheme, model.gpu);
    Ok(match args.stage {
        StageArg::Plan => {
            let mut title = plan.choice.schedule.to_string();
            if let Some(time_blocks) = &plan.time_blocks {
                title.push('\n');
                title.push_str(time_blocks_text(time_blocks).trim_end());
            }
            plan_text(scheme, &title, &plan.kernels)
        }
        StageArg::Towers => match &plan.time_blocks {
            Some(TimeBlockPlan::Patches(patches)) => patches.program.to_string(),
            Some(TimeBlockPlan::Towers(towers)) => Printed {
                scheme,
                layout: &plan.kernels.layout,
                program: &towers.program,
            }
            .to_string(),
            None => {
                return Err(no_towers(args, &plan.choice.schedule));
            }
        },
        StageArg::Pipeline => pipeline(args, &resolved, &model, plan, &choices)?,
        StageArg::Llvm => module().text(),
        _ => {
            let library = Library::open().map_err(CompileError::from)?;
            // Kernels of towers may use specific features of a GPU.
            let gpu = match plan.towers() {
                Some(_) => model.gpu,
                None => model.gpu.portable(),
            };
            let ptx = compile(library, &module(), gpu);
            ptx.map_err(CompileError::from)?.text
        }
    })
}

/// The pipeline of the first two passes, after it was checked.
fn pipeline(
    args: &args::Emit,
    resolved: &Resolved,
    model: &DeviceModel,
    mut plan: DevicePlan,
    choices: &[Choice],
) -> Result<String, Failure> {
    let first = [0];
    let numbers = args.devices.as_ref().map_or(&first[..], |d| d.numbers());
    let question = Question {
        holding: &args.holding,
        schedule: &args.schedule,
        resolved,
        model,
        share: 1.0,
        devices: numbers.len(),
        free: device::memory(&args.target, numbers, model)?,
        every: None,
    };
    let held = question.decide(&mut plan, choices)?;
    let (Some(held), Some(towers)) = (held, plan.towers()) else {
        return Err(Failure::usage(
            "one time block at a time is no pipeline: name `--window host`, `--window slabs`, `--window device` or \
             several `--devices`",
        ));
    };
    let planner = DevicePlanner::new(&resolved.scheme, &resolved.problem, model);
    let planner = planner.map_err(SetupError::from)?;
    let wrong = |fault: &dyn std::fmt::Display| {
        let message = format!("the pipeline is wrong: {fault}");
        Failure::from(Diagnostic::error(codes::BACKEND, message))
    };
    if let Held::Stripes(mut plan) = held.clone() {
        let blocks = plan.in_flight + 2;
        let pass = plan.pass(&planner, towers.height(), blocks);
        let pass = pass.ok_or_else(|| Failure::usage("there are no time blocks"))?;
        let ops = pass.operations().map_err(|error| wrong(&error))?;
        check_stripes(&pass, &ops).map_err(|fault| wrong(&fault))?;
        let printed = PrintedStripes {
            stripes: &plan.stripes,
            pass: &pass,
            ops: &ops,
        };
        return Ok(format!("{}\n{printed}", window::text(&held)));
    }
    if let Some(how) = held.how().filter(|how| how.held.base().is_some()) {
        let slabs = planner.laid_out_slabs(towers, how, held.in_turns());
        let slabs = slabs.ok_or_else(|| Failure::usage("there are no slabs"))?;
        slabs.check().map_err(|fault| wrong(&fault))?;
        return Ok(format!("{}\n{}", window::text(&held), PrintedSlabs(&slabs)));
    }
    let devices = held.in_turns();
    let laid_out = held
        .how()
        .and_then(|how| planner.laid_out(towers, how, devices));
    let laid_out = laid_out.ok_or_else(|| Failure::usage("the window does not hold a pass"))?;
    laid_out.check().map_err(|fault| wrong(&fault))?;
    let printed = PrintedPipeline {
        window: &laid_out.window,
        passes: &laid_out.passes,
        ops: &laid_out.ops,
        way: laid_out.way,
    };
    Ok(format!("{}\n{printed}", window::text(&held)))
}

/// Kernels as Cranelift sees them.
#[cfg(feature = "cranelift")]
fn clif(scheme: &Scheme, kernels: &KernelSet, target: &TargetChoice) -> Result<String, Failure> {
    use torre_compiler::backend::cranelift::{Features, print};
    if *target != TargetChoice::Host {
        return Err(Failure::usage(
            "Cranelift compiles for this machine only: `--stage llvm` and `asm` take a `--target`",
        ));
    }
    let text = print(scheme, kernels, Features::Host);
    Ok(text.map_err(|error| CompileError::Cranelift(error.to_string()))?)
}
