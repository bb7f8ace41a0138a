//! Slices as executors record them.

use torre_compiler::lattice::Axis;
use torre_compiler::scheme::{ComponentId, Scheme};

/// A recorded slice: values of one plane, in the order of the remaining axes, the last fastest.
pub struct Picture {
    /// Index into the problem's outputs.
    pub output: usize,
    /// Steps done.
    pub step: u64,
    /// Per remaining present axis.
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// The extents of a slice across `axis`, one per remaining axis of the scheme.
pub fn slice_shape(scheme: &Scheme, id: ComponentId, axis: Axis) -> Vec<usize> {
    let extent = scheme.extent(id);
    let remaining = scheme.grid.present().filter(|a| *a != axis);
    remaining.map(|a| extent[a].hi as usize).collect()
}
