//! For tests and measurements: schemes built by hand and at random, and memory to run kernels on.

mod memory;
mod random;
mod schemes;
mod tilings;

pub use memory::Memory;
pub use random::{Limits, Rng, lengthen, random_kernels, random_linear_scheme, random_scheme};
pub use schemes::{elasticity, everywhere, maxwell, one_update_per_stage, star};
pub use tilings::{random_pyramid, random_tiling};
