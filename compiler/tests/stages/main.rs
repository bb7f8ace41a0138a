//! The stages of the compiler, each on problems built by hand and at random.
//!
//! Tests of one file's inner parts are in that file. These tests see the compiler as other crates do, so it is not
//! compiled again for them.

mod cones;
mod emulated;
mod gpu_patches;
mod gpu_towers;
mod incident;
mod kernels;
mod kernels_in_zones;
mod layerwise;
mod layouts;
mod patches;
mod pipeline;
mod schemes;
mod towers;
