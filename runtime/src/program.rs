//! The compilation of kernels by the back end that was chosen or found.

use crate::cache::{self, Cache, Origin};
use std::fmt;
use std::time::{Duration, Instant};
use torre_compiler::backend::interp::Interp;
use torre_compiler::backend::llvm::cpu::{LlvmCode, Shape, emit};
use torre_compiler::backend::llvm::library::{self as llvm, Cpu, Library, Options};
use torre_compiler::kernel::{Code, KernelSet};
use torre_compiler::scheme::Scheme;

/// The back end that turns kernels into code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Machine code by LLVM.
    Llvm,
    /// Machine code by Cranelift: compiled at once, narrower vectors.
    Cranelift,
    /// Evaluation operation by operation.
    Interp,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Llvm => "llvm",
            Backend::Cranelift => "cranelift",
            Backend::Interp => "interp",
        })
    }
}

/// The back end that a user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// The fastest one that this machine has.
    Auto,
    /// This one or none.
    Only(Backend),
}

/// The target for which code is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetChoice {
    /// The processor that this process runs on.
    Host,
    /// A processor by LLVM's name, such as `x86-64-v3`.
    Named(String),
}

/// Kernels ready to run.
pub struct Compiled {
    pub code: Box<dyn Code>,
    pub backend: Backend,
    /// Whether machine code was compiled or found in the cache; `None` where there is none.
    pub origin: Option<Origin>,
    /// From the kernel set to code.
    pub time: Duration,
    /// Why the automatic choice fell on a slower back end.
    pub fallback: Option<llvm::Error>,
}

/// Why kernels could not be compiled.
#[derive(Debug)]
pub enum CompileError {
    /// LLVM is not there, or failed.
    Llvm(llvm::Error),
    /// Cranelift failed.
    Cranelift(String),
    /// This executable was built without this back end.
    NotBuilt(Backend),
    /// This back end compiles for the processor that it runs on only.
    HostOnly(Backend),
    /// No processor of this name is known.
    UnknownTarget(String),
    /// Code for this processor may not run on this machine.
    ForeignTarget { target: String, host: String },
}

impl From<llvm::Error> for CompileError {
    fn from(error: llvm::Error) -> Self {
        CompileError::Llvm(error)
    }
}

/// The processor to compile for, and whether this machine can run its code.
pub fn target(library: &Library, choice: &TargetChoice) -> Result<(Cpu, bool), CompileError> {
    let host = Cpu::host(library);
    match choice {
        TargetChoice::Host => Ok((host?, true)),
        TargetChoice::Named(name) => {
            let cpu = Cpu::named(name).ok_or_else(|| CompileError::UnknownTarget(name.clone()))?;
            let runs = host.is_ok_and(|host| host.runs(name));
            Ok((cpu, runs))
        }
    }
}

/// Compiles a set of kernels for this machine.
pub fn compile(
    scheme: &Scheme,
    set: &KernelSet,
    backend: BackendChoice,
    target: &TargetChoice,
    cache: &Cache,
) -> Result<Compiled, CompileError> {
    let start = Instant::now();
    let ready = |code: Box<dyn Code>, backend, origin| Compiled {
        code,
        backend,
        origin,
        time: start.elapsed(),
        fallback: None,
    };
    let by_llvm = || {
        let (code, origin) = compile_llvm(scheme, set, target, cache)?;
        Ok(ready(Box::new(code), Backend::Llvm, origin))
    };
    let by_another = |backend| {
        if *target != TargetChoice::Host {
            return Err(CompileError::HostOnly(backend));
        }
        let code: Box<dyn Code> = match backend {
            Backend::Cranelift => compile_cranelift(scheme, set)?,
            _ => Box::new(Interp::new(scheme, set)),
        };
        Ok(ready(code, backend, None))
    };
    match backend {
        BackendChoice::Only(Backend::Llvm) => by_llvm(),
        BackendChoice::Only(backend) => by_another(backend),
        BackendChoice::Auto => match by_llvm() {
            Err(CompileError::Llvm(error @ llvm::Error::NotFound(_))) => {
                let compiled = match by_another(Backend::Cranelift) {
                    Err(CompileError::NotBuilt(_)) => by_another(Backend::Interp),
                    compiled => compiled,
                };
                Ok(Compiled {
                    fallback: Some(error),
                    ..compiled?
                })
            }
            compiled => compiled,
        },
    }
}

#[cfg(feature = "cranelift")]
fn compile_cranelift(scheme: &Scheme, set: &KernelSet) -> Result<Box<dyn Code>, CompileError> {
    use torre_compiler::backend::cranelift::{CraneliftCode, Features};
    match CraneliftCode::new(scheme, set, Features::Host) {
        Ok(code) => Ok(Box::new(code)),
        Err(error) => Err(CompileError::Cranelift(error.to_string())),
    }
}

#[cfg(not(feature = "cranelift"))]
fn compile_cranelift(_: &Scheme, _: &KernelSet) -> Result<Box<dyn Code>, CompileError> {
    Err(CompileError::NotBuilt(Backend::Cranelift))
}

fn compile_llvm(
    scheme: &Scheme,
    set: &KernelSet,
    choice: &TargetChoice,
    cache: &Cache,
) -> Result<(LlvmCode, Option<Origin>), CompileError> {
    let library = Library::open()?;
    let (cpu, runs) = target(library, choice)?;
    if !runs {
        let target = match choice {
            TargetChoice::Host => cpu.target.cpu,
            TargetChoice::Named(name) => name.clone(),
        };
        return Err(CompileError::ForeignTarget {
            target,
            host: Cpu::host(library).map_or_else(|_| String::new(), |host| host.target.cpu),
        });
    }
    let shape = Shape::of(&cpu, scheme.precision);
    let compiled = match set.kernels.is_empty() {
        true => None,
        false => {
            let ir = emit(scheme, set, shape);
            Some(cache::compile(
                cache,
                library,
                &ir,
                &cpu.target,
                &Options::CPU,
            )?)
        }
    };
    let (object, origin) = compiled.unzip();
    // SAFETY: the object comes from this IR, directly or through the cache, whose key is the IR, the version of LLVM
    // and the target; `target` says that this machine runs its code.
    let code = unsafe { LlvmCode::load(library, &cpu, shape, scheme, set, object.as_ref()) }?;
    Ok((code, origin))
}
