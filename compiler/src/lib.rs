//! The Torre compiler: pure functions from source text to code, one data type per stage.
//!
//! ```text
//! Source --parse--> Ast --resolve--> (Scheme, Problem)
//! Scheme --analysis--> growth, speeds and errors of its waves
//! Scheme --cones--> Cones --Frame--> positions in which faces are measured
//! (text of a schedule, Scheme, Frame) --notation--> Template
//! (Template, Machine) --candidates--> Schedule with its Prediction
//! (Scheme, Frame, Tiling) --lower (check_tiling, in_integers, verify)--> Checked<TileProgram>
//! (TileProgram, Layout) --kernels--> KernelSet --backend--> Code          CPU
//! (Scheme, TileProgram, Layout) --tower--> TowerProgram --verify, backend::gpu--> Module --> Ptx  GPU
//! (Scheme, Pyramid, Layout) --patch--> PatchProgram --verify, backend::gpu--> Module --> Ptx      GPU
//! (Towers, Window) --pipeline--> operations of time blocks in flight
//! ```
//!
//! The compiler opens no files, reads no clock and no environment (the LLVM library excepted); it sees the outside
//! through [`world::World`].

pub mod analysis;
pub mod backend;
pub mod cone;
pub mod cost;
mod distinct;
pub mod draw;
pub mod driver;
pub mod elementary;
pub mod evaluate;
pub mod ghost;
pub mod host;
mod host_range;
pub mod host_row;
pub mod incident;
pub mod injection;
pub mod kernel;
pub mod lattice;
pub mod layerwise;
pub mod layout;
pub mod patch;
pub mod pipeline;
pub mod problem;
pub mod real;
pub mod reference;
pub mod resolve;
pub mod schedule;
pub mod scheme;
pub mod series;
pub mod statics;
mod svg;
pub mod table;
pub mod taken;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tile;
pub mod tower;
pub mod world;
