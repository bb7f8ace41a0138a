//! NVIDIA GPUs: which there are, what each can do, and their assembly language.

mod ptx;
mod target;

pub use ptx::{Ptx, compile};
pub use target::{Gpu, PtxVersion};
