//! GPUs: kernels printed as LLVM IR, compiled to the assembly language of a maker, which the driver translates.
//!
//! ```text
//! Module -> kernel(symbol, params, launch)    IR under construction                          ir
//!   Kernel: variables, memory, numbers        one kernel, instruction by instruction         kernel
//! Gpu::named("sm_90")                         a GPU and its features                         nvidia
//! compile(library, &module, gpu) -> Ptx       checked before LLVM sees it, and after         nvidia
//!
//! layerwise::emit(&mut module, ..)            kernels for whole stages
//! service::emit(&mut module, precision)       ghosts, sources, probes, slices around them
//! tower::emit(&mut module, .., program)       the kernel of a tower program
//! patch::emit(&mut module, .., program)       the kernels of a patch program
//! abi                                         parameters, words and tables of all of these, for their callers
//! ```
//!
//! Generators of whole kernels build on the first two: they use no other way to LLVM.

pub mod abi;
mod feature;
mod ir;
mod kernel;
pub mod layerwise;
mod numbers;
mod nvidia;
pub mod patch;
pub mod service;
#[cfg(test)]
mod tests;
pub mod tower;

pub use feature::Feature;
pub use ir::{Launch, Module, Operand, Space, Type};
pub use kernel::{Access, IntCmp, IntOp, Kernel, Label, Special, Variable};
pub use nvidia::{Gpu, Ptx, PtxVersion, compile};
