//! Which partition of a cache is near a multiprocessor.

use super::*;
use torre_runtime::gpu::device::{Argument, Threads};
use torre_runtime::gpu::partitions::{PTX, near};

#[test]
fn each_block_measures_all_lines() {
    const LINES: usize = 5;
    const APART: usize = 384;
    const BLOCKS: usize = 3;
    let device = Interpreted::new();
    let kernels = device.load(PTX, &["torre_latencies".to_owned()]);
    let kernel = kernels.expect("a kernel")[0];
    let take = |bytes: usize| device.take(bytes as u64).expect("memory");
    let (lines, out) = (take(LINES * APART), take(BLOCKS * (LINES + 1) * 4));
    let arguments = [
        Argument::Place(lines),
        Argument::Word(APART as i32),
        Argument::Word(LINES as i32),
        Argument::Place(out),
    ];
    let threads = Threads {
        blocks: [BLOCKS as u32, 1, 1],
        threads: [32, 1, 1],
        shared: 0,
    };
    // SAFETY: these are the kernel's parameters, and memory of that size was taken.
    unsafe { device.start(kernel, threads, &arguments) }.expect("no fault");
    let mut bytes = [0; BLOCKS * (LINES + 1) * 4];
    device.read(out, &mut bytes).expect("what was taken");
    let (words, _) = bytes.as_chunks::<4>();
    for (block, words) in words.chunks(LINES + 1).enumerate() {
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        // A block of the interpreter has a multiprocessor for itself.
        assert_eq!(words[0], block as u32);
        assert!(
            words[1..].iter().all(|t| (1..10_000).contains(t)),
            "{words:?}"
        );
    }
    // Nothing is farther away than anything else there.
    assert_eq!(near(&device), Ok(Vec::new()));
}
