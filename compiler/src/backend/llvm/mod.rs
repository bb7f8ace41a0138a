//! The LLVM back end: tile programs printed as LLVM IR, compiled by a libLLVM that is found at run time.

pub mod library;
