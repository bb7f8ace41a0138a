//! Back ends: from row kernels to machine code. They decide nothing.

#[cfg(feature = "cranelift")]
pub mod cranelift;
pub mod ends;
pub mod gpu;
pub mod interp;
pub mod llvm;
pub mod rows;
