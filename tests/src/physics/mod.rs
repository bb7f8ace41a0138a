//! Tools for the physics tests: cases from Torre texts, the theory of difference schemes, and measurements on runs.

pub mod bessel;
pub mod case;
pub mod measure;
pub mod model;
pub mod theory;
