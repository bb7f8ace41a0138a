//! NVIDIA GPUs, their features, and their assembly language.

mod ptx;
mod target;

pub use ptx::{Ptx, compile};
pub use target::{Gpu, PtxVersion};
