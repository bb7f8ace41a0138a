//! `torre emit`: what a program is turned into.

use crate::args::{self, StageArg};
use crate::failure::Failure;
use crate::input;
use crate::render::Voice;
use crate::write;
use torre_compiler::backend::llvm::cpu::{Shape, emit as emit_llvm};
use torre_compiler::backend::llvm::library::{self as llvm, Library, Options};
use torre_compiler::cone::cones;
use torre_compiler::scheme::Scheme;
use torre_grammar::{parse, print};
use torre_runtime::host::SetupError;
use torre_runtime::program::{self, CompileError, TargetChoice};

pub fn emit(args: &args::Emit, voice: &Voice) -> Result<(), Failure> {
    let text = match args.stage {
        StageArg::Ast => print(&parse(&input::source(&args.what.file)?)?),
        StageArg::Scheme => input::inspected(&args.what, voice)?.scheme.to_string(),
        StageArg::Cones => cones(&input::inspected(&args.what, voice)?.scheme).to_string(),
        StageArg::Llvm | StageArg::Asm => {
            let scheme = input::inspected(&args.what, voice)?.scheme;
            machine_code(&scheme, args.stage, &args.target)?
        }
        #[cfg(feature = "cranelift")]
        StageArg::Clif => clif(&input::inspected(&args.what, voice)?.scheme, &args.target)?,
    };
    write::result_to(args.output.as_deref(), &text)
}

/// The kernels of a layerwise run as LLVM sees them, or as the processor does.
fn machine_code(
    scheme: &Scheme,
    stage: StageArg,
    choice: &TargetChoice,
) -> Result<String, Failure> {
    let set = program::layerwise_kernels(scheme).map_err(SetupError::from)?;
    let library = Library::open().map_err(CompileError::from)?;
    let (cpu, _) = program::target(library, choice)?;
    let ir = emit_llvm(scheme, &set, Shape::of(cpu.vector_bits));
    match stage {
        StageArg::Asm => {
            let asm = llvm::compile_to_asm(library, &ir, &cpu.target, &Options::CPU);
            Ok(asm.map_err(CompileError::from)?)
        }
        _ => Ok(ir),
    }
}

/// The kernels of a layerwise run as Cranelift sees them.
#[cfg(feature = "cranelift")]
fn clif(scheme: &Scheme, target: &TargetChoice) -> Result<String, Failure> {
    use torre_compiler::backend::cranelift::{Features, print};
    use torre_runtime::program::Backend;
    if *target != TargetChoice::Host {
        return Err(CompileError::HostOnly(Backend::Cranelift).into());
    }
    let set = program::layerwise_kernels(scheme).map_err(SetupError::from)?;
    let text = print(scheme, &set, Features::Host);
    Ok(text.map_err(|error| CompileError::Cranelift(error.to_string()))?)
}
