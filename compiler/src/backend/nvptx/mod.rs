//! The NVPTX back end: kernels for NVIDIA GPUs, printed as LLVM IR and compiled to PTX, which the driver translates.
//!
//! ```text
//! Gpu::named("sm_90")                         what there is, and what it can do          gpu
//! Module -> kernel(symbol, params, launch)    IR under construction                      ir
//!   Kernel: variables, memory, numbers        one kernel, instruction by instruction     kernel
//! compile(library, &module, gpu) -> Ptx       checked before LLVM sees it, and after     ptx
//!
//! emit(&mut module, scheme, set, shape)       kernels for whole stages                   layerwise
//! emit(&mut module, precision)                ghosts, sources, probes, slices            service
//! ```
//!
//! Generators of whole kernels build on these: they use no other way to LLVM.

mod gpu;
mod ir;
mod kernel;
pub mod layerwise;
mod ptx;
pub mod service;
#[cfg(test)]
mod tests;
pub mod tower;

pub use gpu::{Feature, Gpu, PtxVersion};
pub use ir::{Launch, Module, Operand, Space, Type};
pub use kernel::{Access, IntCmp, IntOp, Kernel, Label, Special, Variable};
pub use ptx::{Ptx, compile};
