//! Which partition of a cache is near a multiprocessor.

use super::*;
use torre_runtime::gpu::l2_partitions::{measure, near};

#[test]
fn each_block_measures_all_lines() {
    let device = Interpreted::new();
    let blocks = measure(&device, 3, 5).expect("no fault");
    assert_eq!(blocks.len(), 3);
    for (block, (multiprocessor, times)) in blocks.iter().enumerate() {
        // A block of the interpreter has a multiprocessor for itself.
        assert_eq!(*multiprocessor, block as u32);
        assert_eq!(times.len(), 5);
        assert!(times.iter().all(|t| (1..10_000).contains(t)), "{times:?}");
    }
    // Nothing is farther away than anything else there.
    assert_eq!(near(&device), Ok(Vec::new()));
}
