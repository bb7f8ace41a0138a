//! From a resolved scheme to kernels that can be run: which kernels a schedule needs, their compilation by the back end
//! that was chosen or found, and the arrays that a scheme names.

use crate::cache::{self, Cache, Origin};
use crate::output::npy::NpyReader;
use crate::output::{Cause, FileError};
use crate::world::FileWorld;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use torre_compiler::backend::interp::Interp;
use torre_compiler::backend::llvm::cpu::{LlvmCode, Shape, emit};
use torre_compiler::backend::llvm::library::{self as llvm, Cpu, Library, Options};
use torre_compiler::kernel::{Code, KernelSet, RowKernel};
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::layout::{Layout, TooLarge};
use torre_compiler::scheme::{FileId, Scheme, ZoneSet};
use torre_compiler::statics::Files;
use torre_compiler::tile::stage_blocks;

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

/// The kernels that a layerwise run needs: one for each set of updates that runs together somewhere, in each phase.
pub fn layerwise_kernels(scheme: &Scheme) -> Result<KernelSet, TooLarge> {
    Ok(layerwise_kernels_for(scheme, Layout::new(scheme)?))
}

/// The same for values as a layout of the scheme arranges them.
pub fn layerwise_kernels_for(scheme: &Scheme, layout: Layout) -> KernelSet {
    let mut kernels = BTreeSet::new();
    for stage in scheme.stage_ids() {
        for block in stage_blocks(scheme, stage) {
            for phase in 0..scheme.phases() {
                kernels.insert(RowKernel {
                    stage,
                    phase,
                    updates: block.updates,
                    zones: ZoneSet::default(),
                });
            }
        }
    }
    KernelSet::new(scheme, layout, kernels)
}

/// The bytes that a layerwise run moves between memory and the processor per cell and step, where nothing stays in a
/// cache from one stage to the next: each stage reads all rows that it needs and writes all that it computes.
pub fn layerwise_bytes_per_cell_step(scheme: &Scheme) -> f64 {
    let cells: f64 = scheme.grid.cells.0.iter().map(|&n| n as f64).product();
    let mut rows = 0.0;
    for stage in scheme.stage_ids() {
        for block in stage_blocks(scheme, stage) {
            let updates = &scheme.stages[stage.index()].updates;
            let mut read = BTreeSet::new();
            let mut coefs = BTreeSet::new();
            for update in block.updates.iter().map(|i| &updates[i]) {
                read.extend(update.body.reads().map(|r| (r.component, r.age)));
                coefs.extend(update.body.coefs().chain(update.mask));
            }
            let moved = read.len() + coefs.len() + block.updates.iter().count();
            rows += moved as f64 * block.region.volume() as f64 / cells;
        }
    }
    rows * scheme.precision.bytes() as f64
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

/// The arrays of the files that a scheme names, in memory.
#[derive(Debug, Default)]
pub struct LoadedFiles(Vec<LoadedFile>);

#[derive(Debug)]
struct LoadedFile {
    path: PathBuf,
    /// Values per axis, an absent one has 1.
    extent: PerAxis<i64>,
    values: Vec<f64>,
}

impl LoadedFiles {
    /// The bytes that they will take.
    pub fn bytes(scheme: &Scheme) -> u64 {
        let count = |f: &torre_compiler::scheme::StaticFile| {
            scheme.grid.extent(f.position).volume().saturating_mul(8)
        };
        scheme.files.iter().map(count).fold(0, u64::saturating_add)
    }

    /// Reads all files of a scheme. A shape that is not the one that was resolved is an error: the file has changed
    /// meanwhile.
    pub fn load(world: &FileWorld, scheme: &Scheme) -> Result<LoadedFiles, FileError> {
        let load = |file: &torre_compiler::scheme::StaticFile| {
            let path = world.path(&file.path);
            let mut reader = NpyReader::open(&path)?;
            let extent = scheme.grid.extent(file.position).map(|i| i.hi);
            let expected: Vec<usize> = scheme
                .grid
                .present()
                .map(|axis| extent[axis] as usize)
                .collect();
            let found = reader.header().shape.clone();
            if found != expected {
                let cause = Cause::Shape { expected, found };
                return Err(FileError::new(&path, crate::output::Attempt::Read, cause));
            }
            let values = reader.read_all()?;
            Ok(LoadedFile {
                path,
                extent,
                values,
            })
        };
        Ok(Self(
            scheme.files.iter().map(load).collect::<Result<_, _>>()?,
        ))
    }

    /// All values, file after file, for a hash.
    pub fn values(&self) -> impl Iterator<Item = &[f64]> {
        self.0.iter().map(|file| &file.values[..])
    }

    /// Where the files lie.
    pub fn paths(&self) -> impl Iterator<Item = &std::path::Path> {
        self.0.iter().map(|file| file.path.as_path())
    }
}

impl Files for LoadedFiles {
    fn value(&self, file: FileId, at: PerAxis<i64>) -> f64 {
        let file = &self.0[file.index()];
        let index = Axis::ALL
            .iter()
            .fold(0, |n, &axis| n * file.extent[axis] + at[axis]);
        file.values[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::scheme::{Boundary, Precision};
    use torre_compiler::testing::{bounded, maxwell};

    /// Maxwell's equations without ends, of order 4, in f32.
    fn periodic_maxwell() -> Scheme {
        let scheme = maxwell(4, Precision::F32, [8, 8, 8]);
        bounded(scheme, [[Boundary::Periodic; 2]; 3])
    }

    #[test]
    fn a_periodic_scheme_without_zones_needs_one_kernel_per_stage() {
        let set = layerwise_kernels(&periodic_maxwell()).unwrap();
        let names: Vec<String> = set.kernels.iter().map(RowKernel::to_string).collect();
        assert_eq!(names, ["s0_p0_u7", "s1_p0_u7"]);
    }

    #[test]
    fn layerwise_traffic_counts_reads_and_writes() {
        // Each of the two stages reads six components and writes three.
        let bytes = layerwise_bytes_per_cell_step(&periodic_maxwell());
        assert_eq!(bytes, 72.0);
    }
}
