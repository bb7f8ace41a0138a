//! Back ends: from row kernels to machine code. They decide nothing.

pub mod llvm;
