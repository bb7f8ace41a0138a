//! The kernels of a layerwise run, and the bytes that it moves.

use torre_compiler::cost::layerwise_bytes;
use torre_compiler::kernel::RowKernel;
use torre_compiler::kernel::layerwise_kernels;
use torre_compiler::layout::Layout;
use torre_compiler::scheme::{Boundary, Precision, Scheme};
use torre_compiler::testing::{bounded, maxwell};

/// Maxwell's equations without ends, of order 4, in f32.
fn periodic_maxwell() -> Scheme {
    let scheme = maxwell(4, Precision::F32, [8, 8, 8]);
    bounded(scheme, [[Boundary::Periodic; 2]; 3])
}

#[test]
fn a_periodic_scheme_without_zones_needs_one_kernel_per_stage() {
    let scheme = periodic_maxwell();
    let set = layerwise_kernels(&scheme, Layout::new(&scheme).unwrap());
    let names: Vec<String> = set.kernels.iter().map(RowKernel::to_string).collect();
    assert_eq!(names, ["s0_p0_u7", "s1_p0_u7"]);
}

#[test]
fn layerwise_traffic_counts_reads_and_writes() {
    // Each of the two stages reads six components and writes three.
    assert_eq!(layerwise_bytes(&periodic_maxwell()), 72.0);
}
