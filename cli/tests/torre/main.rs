//! The command line as its users see it. One program, so that the tests share the cores to the end.

mod bench;
mod checkpoint;
mod cone;
mod examples;
mod folders;
mod gpu;
mod header;
mod limits;
mod plan;
mod results;
mod support;
mod usage;
