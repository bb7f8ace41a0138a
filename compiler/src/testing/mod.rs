//! For tests and measurements: schemes built by hand and at random, and memory to run kernels on.

mod effort;
mod layers;
mod memo;
mod memory;
mod mirrors;
mod patches;
mod poles;
mod random;
mod room;
mod schemes;
mod stagewise;
mod tilings;

pub use effort::Effort;
pub use layers::add_layers;
pub use memo::{look_first, once};
pub use memory::Memory;
pub use mirrors::random_mirrored_scheme;
pub use patches::random_patches;
pub use poles::add_poles;
pub use random::{
    Limits, Rng, add_random_bands, add_random_zones, random_kernels, random_linear_scheme,
    random_scheme,
};
pub use room::{
    between_odd_and_even, lengthen, make_room_for_towers, random_folded_scheme, tower_pitch,
    tower_pitches,
};
pub use schemes::{
    bounded, elasticity, everywhere, maxwell, maxwell_te, one_update_per_stage, star,
};
pub use stagewise::Stagewise;
pub use tilings::{diamonds, random_pyramid, random_tiling};
