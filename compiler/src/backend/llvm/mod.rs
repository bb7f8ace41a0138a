//! The LLVM back end: kernels printed as LLVM IR, compiled by a libLLVM that is found at run time.

pub mod cpu;
pub mod library;
mod types;
