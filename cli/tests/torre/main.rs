//! The command line as its users see it. One program, so that the tests share the cores to the end.

mod analyze;
mod bench;
mod blow_up;
mod book;
mod built;
mod checkpoint;
mod cone;
mod defects;
mod examples;
mod folders;
mod gpu;
mod header;
mod limits;
mod names;
mod pictures;
mod plan;
mod provenance;
mod rates;
mod reports;
mod results;
mod soak;
mod states;
mod support;
mod tutorial;
mod usage;
mod windows;
