//! Measures Torre against plain layerwise C.
//!
//! For each case there is a program in C that computes the same scheme the way a physicist would write it (`c/`), built
//! when it is needed. It runs as a process of its own and alternates with Torre, round by round, on the same cores;
//! the result is the ratio of the medians. On small grids the results of both are compared first, so that they compute
//! the same.

pub mod args;
pub mod bandwidth;
pub mod baseline;
pub mod cases;
pub mod ceiling;
pub mod compare;
pub mod compile;
pub mod gpu;
pub mod machine;
pub mod program;
pub mod real;
pub mod report;
pub mod tiling;
pub mod verify;
