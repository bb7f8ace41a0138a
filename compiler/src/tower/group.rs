//! Positions along the two axes over which towers are cut.

pub use crate::lattice::Group;

/// One value for each of the two faces of a tower.
pub type PerFace<T> = [T; 2];
