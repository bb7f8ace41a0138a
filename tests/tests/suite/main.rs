//! All tests of the suite as one program, so that they share the cores to the end. Tests start in the order of their
//! names; tests of the assembler are the longest ones and come first.

mod assembler;
mod assembly;
mod gpu;
mod gpu_files;
mod in_files;
mod physics;
mod schedules;
mod signatures;
mod structure;
mod tower_programs;
