//! Runs compiled Torre programs: plans, devices, exchange between them, and the files of results.

pub mod budget;
pub mod cache;
pub mod disk;
pub mod files;
pub mod gpu;
pub mod host;
pub mod instances;
pub mod output;
pub mod plan;
pub mod program;
pub mod rates;
pub mod room;
pub mod run;
pub mod simulation;
pub mod timeline;
pub mod world;
