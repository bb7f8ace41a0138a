//! Runs compiled Torre programs: plans, devices, exchange between them, and the files of results.

pub mod cache;
pub mod host;
pub mod output;
