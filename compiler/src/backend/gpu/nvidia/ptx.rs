//! From a module of kernels to PTX.

use super::target::Gpu;
use crate::backend::gpu::ir::Module;
#[cfg(not(any(test, feature = "testing")))]
use crate::backend::llvm::library::Options;
use crate::backend::llvm::library::{Error, Library, compile_to_asm};

/// Kernels in PTX, the assembly language that the driver translates for the device that it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx {
    pub text: String,
    /// The GPU for which it was made.
    pub gpu: Gpu,
}

/// Text that must not be in PTX: calls out of it, and instructions that round otherwise than IEEE 754 wants or flush
/// subnormals.
const FORBIDDEN: [&str; 5] = [".extern .func", "call.uni", ".approx", ".full.f32", ".ftz"];

/// Compiles a module for a GPU.
pub fn compile(library: &Library, module: &Module, gpu: Gpu) -> Result<Ptx, Error> {
    for feature in module.features() {
        gpu.check(feature)?;
    }
    let text = assemble(library, &module.text(), gpu)?;
    match FORBIDDEN.iter().find(|word| text.contains(**word)) {
        None => Ok(Ptx { text, gpu }),
        Some(word) => Err(Error::Codegen {
            message: format!("the PTX for {gpu} has `{word}` in it"),
        }),
    }
}

/// PTX for a module's text. Tests run the same kernels in many ways, so there each text is compiled once in a process.
fn assemble(library: &Library, text: &str, gpu: Gpu) -> Result<String, Error> {
    #[cfg(not(any(test, feature = "testing")))]
    return compile_to_asm(library, text, &gpu.target(), &Options::PTX);
    #[cfg(any(test, feature = "testing"))]
    {
        let options = crate::testing::Effort::options();
        let compile = || compile_to_asm(library, text, &gpu.target(), &options);
        let version = library.version();
        let all = format!("{} {:?} {version}\n{text}", gpu.name, options.level);
        crate::testing::once(&all, compile)
    }
}
