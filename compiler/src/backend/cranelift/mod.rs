//! The Cranelift back end: kernels compiled in vectors of 128 bits, without LLVM, in a tenth of the time.

mod build;

use crate::backend::ends::{self, RowEnds};
use crate::backend::rows::RowProgram;
use crate::kernel::{Bands, Code, KernelSet, RowFn, RowKernel, Run};
use crate::lattice::Interval;
use crate::layout::Layout;
use crate::scheme::{Precision, Scheme, ZoneSet};
use build::Kernel;
use cranelift_codegen::ir::{Function, Signature};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Why Cranelift could not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// This processor is not one of Cranelift's targets.
    Host(String),
    /// The code generator refused; our bug.
    Codegen(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Host(message) => write!(f, "Cranelift does not serve this processor: {message}"),
            Error::Codegen(message) => write!(f, "Cranelift failed: {message}"),
        }
    }
}

impl std::error::Error for Error {}

/// Which features of the processor to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// All instructions that it has.
    Host,
    /// Instructions that every processor of the family has. Without a fused multiply-add each one is a call.
    Baseline,
}

/// The functions of a kernel, for each set of zones that acts somewhere in its rows.
struct Functions {
    zones: ZoneSet,
    all: Vec<(ZoneSet, RowFn)>,
}

impl Functions {
    fn of(&self, zones: ZoneSet) -> Option<RowFn> {
        let mut all = self.all.iter();
        let found = all.find(|(own, _)| *own == zones);
        found.map(|(_, function)| *function)
    }
}

/// Compiled kernels.
pub struct CraneliftCode {
    functions: Vec<Functions>,
    /// Owns the memory of the functions; gone only while dropping.
    module: Mutex<Option<JITModule>>,
    description: String,
    layout: Layout,
    bands: Bands,
    /// Per kernel, the ghosts that are written after its code has run.
    ends: Vec<Vec<RowEnds>>,
    precision: Precision,
    /// Between groups of a run, in bytes.
    stride: i64,
}

impl CraneliftCode {
    /// Compiles the kernels of a set for this processor.
    pub fn new(scheme: &Scheme, set: &KernelSet, features: Features) -> Result<Self, Error> {
        let isa = isa(features)?;
        let description = format!(
            "Cranelift {}, {}, 128-bit{}",
            cranelift_codegen::VERSION,
            isa.triple().architecture,
            match features {
                Features::Host => "",
                Features::Baseline => ", baseline",
            }
        );
        let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
        // Rust's functions, so that compiled and interpreted programs give the same bits.
        builder.symbol("fmaf", fmaf as *const u8);
        builder.symbol("fma", fma as *const u8);
        let mut code = CraneliftCode {
            functions: Vec::new(),
            module: Mutex::new(None),
            description,
            layout: set.layout.clone(),
            bands: set.bands.clone(),
            ends: Vec::new(),
            precision: scheme.precision,
            stride: set.run_stride(scheme) * scheme.precision.bytes() as i64,
        };
        // From here on, a failure frees the module's memory by dropping the code.
        let module = code
            .module
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let module = module.insert(JITModule::new(builder));
        code.functions = compile(module, scheme, set)?;
        let of = |kernel| RowEnds::of_kernel(scheme, set, kernel);
        code.ends = set.kernels.iter().map(of).collect();
        Ok(code)
    }
}

impl CraneliftCode {
    /// Ghosts along the inner axis of a run, with the distance of its first group from `base` in bytes.
    ///
    /// # Safety
    /// As for [`Code::run`].
    unsafe fn write_ends(
        &self,
        kernel: usize,
        base: *mut u8,
        offset: i64,
        groups: i64,
        range: Interval,
    ) {
        let first = base.wrapping_offset(offset as isize);
        let (ends, precision) = (&self.ends[kernel], self.precision);
        // SAFETY: passed on.
        unsafe { ends::write(ends, precision, first, groups, self.stride, range) }
    }
}

impl Drop for CraneliftCode {
    fn drop(&mut self) {
        let module = self
            .module
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = module.take() {
            // SAFETY: the functions are only called through `run`, which borrows the code.
            unsafe { module.free_memory() }
        }
    }
}

impl fmt::Debug for CraneliftCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CraneliftCode")
            .field(&self.description)
            .finish()
    }
}

impl Code for CraneliftCode {
    unsafe fn run_zoned(&self, kernel: usize, base: *mut u8, records: &[i64], range: Interval) {
        let functions = &self.functions[kernel];
        for part in (self.bands).parts(&self.layout, functions.zones, range, records) {
            let width = part.width(&self.layout);
            let count = (part.records.len() / width) as i64;
            let runs = part.records.as_ptr().cast::<Run>();
            let Interval { lo, hi } = part.range;
            if let Some(function) = functions.of(part.zones) {
                // SAFETY: the caller keeps the contract of `RowFn`, and the code lives as long as `self`.
                unsafe { function(base, runs, count, lo, hi) }
            }
            for record in part.records.chunks_exact(width) {
                // SAFETY: passed on.
                unsafe { self.write_ends(kernel, base, record[0], record[1], part.range) }
            }
        }
    }

    unsafe fn run(&self, kernel: usize, base: *mut u8, runs: &[Run], range: Interval) {
        let count = runs.len() as i64;
        if let Some(function) = self.functions[kernel].of(ZoneSet::default()) {
            // SAFETY: the caller keeps the contract of `RowFn`, and the code lives as long as `self`.
            unsafe { function(base, runs.as_ptr(), count, range.lo, range.hi) }
        }
        for run in runs {
            // SAFETY: passed on.
            unsafe { self.write_ends(kernel, base, run.offset, run.groups, range) }
        }
    }

    fn description(&self) -> String {
        self.description.clone()
    }
}

/// The kernels of a set in Cranelift's own notation, before optimisation.
pub fn print(scheme: &Scheme, set: &KernelSet, features: Features) -> Result<String, Error> {
    let isa = isa(features)?;
    let stride = set.run_stride(scheme) * scheme.precision.bytes() as i64;
    let unaligned = unaligned(&*isa);
    let mut scratch = FunctionBuilderContext::new();
    let mut text = String::new();
    for program in programs(scheme, set).into_iter().flatten() {
        let program = program.1;
        let kernel = Kernel {
            program: &program,
            precision: scheme.precision,
            stride,
            unaligned,
        };
        let mut function = Function::new();
        function.signature = Signature::new(isa.default_call_conv());
        kernel.build(&mut function, &mut scratch, isa.frontend_config());
        text.push_str(&format!("; {}\n{function}\n", program.symbol));
    }
    Ok(text)
}

extern "C" fn fmaf(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

extern "C" fn fma(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

fn isa(features: Features) -> Result<OwnedTargetIsa, Error> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        (
            "enable_verifier",
            if cfg!(debug_assertions) {
                "true"
            } else {
                "false"
            },
        ),
    ] {
        flags
            .set(name, value)
            .map_err(|e| Error::Codegen(e.to_string()))?;
    }
    cranelift_native::builder_with_options(features == Features::Host)
        .map_err(|e| Error::Host(e.to_string()))?
        .finish(settings::Flags::new(flags))
        .map_err(|e| Error::Host(e.to_string()))
}

/// Whether instructions take vectors from memory at any address. Of the processors that Cranelift serves, only x86
/// processors without AVX need aligned addresses.
fn unaligned(isa: &dyn TargetIsa) -> bool {
    isa.name() != "x64"
        || isa
            .isa_flags()
            .iter()
            .any(|flag| flag.name == "has_avx" && flag.as_bool() == Some(true))
}

/// The programs of each kernel, one for each set of zones that acts somewhere in its rows.
fn programs(scheme: &Scheme, set: &KernelSet) -> Vec<Vec<(ZoneSet, RowProgram)>> {
    let program = |kernel: &RowKernel, zones| {
        let kernel = RowKernel { zones, ..*kernel };
        (zones, RowProgram::new(scheme, set, &kernel))
    };
    let of = |kernel: &RowKernel| {
        let sets = set.bands.acting(kernel.zones).into_iter();
        sets.map(|zones| program(kernel, zones)).collect()
    };
    set.kernels.iter().map(of).collect()
}

fn compile(
    module: &mut JITModule,
    scheme: &Scheme,
    set: &KernelSet,
) -> Result<Vec<Functions>, Error> {
    let failed = |e: cranelift_module::ModuleError| Error::Codegen(e.to_string());
    let stride = set.run_stride(scheme) * scheme.precision.bytes() as i64;
    let unaligned = unaligned(module.isa());
    let mut scratch = FunctionBuilderContext::new();
    let mut context = module.make_context();
    // Programs of the same name are the same.
    let mut known: BTreeMap<String, FuncId> = BTreeMap::new();
    let mut ids = Vec::with_capacity(set.kernels.len());
    for own in programs(scheme, set) {
        let mut of_kernel = Vec::with_capacity(own.len());
        for (zones, program) in own {
            if let Some(&id) = known.get(&program.symbol) {
                of_kernel.push((zones, id));
                continue;
            }
            let kernel = Kernel {
                program: &program,
                precision: scheme.precision,
                stride,
                unaligned,
            };
            context.func.signature = module.make_signature();
            kernel.build(&mut context.func, &mut scratch, module.target_config());
            let id = module
                .declare_anonymous_function(&context.func.signature)
                .map_err(failed)?;
            module.define_function(id, &mut context).map_err(failed)?;
            module.clear_context(&mut context);
            known.insert(program.symbol, id);
            of_kernel.push((zones, id));
        }
        ids.push(of_kernel);
    }
    module.finalize_definitions().map_err(failed)?;
    let function = |(zones, id): (ZoneSet, FuncId)| {
        let address = module.get_finalized_function(id);
        // SAFETY: the function was built with the signature of `RowFn` and the platform's C convention, for this
        // processor; a defined function has an address.
        (zones, unsafe {
            std::mem::transmute::<*const u8, RowFn>(address)
        })
    };
    let functions = set.kernels.iter().zip(ids).map(|(kernel, own)| Functions {
        zones: kernel.zones,
        all: own.into_iter().map(function).collect(),
    });
    Ok(functions.collect())
}
