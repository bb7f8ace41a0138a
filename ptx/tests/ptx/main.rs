//! Kernels in the interpreter. One program, so that the tests share the cores to the end.

mod clusters;
mod common;
mod copies;
mod counts;
mod damaged;
mod faults;
mod instructions;
mod kept;
mod kernels;
