//! All tests of the suite as one program, so that they share the cores to the end.

mod gpu;
mod gpu_files;
mod in_files;
mod physics;
mod ptxas;
mod schedules;
mod tower_programs;
