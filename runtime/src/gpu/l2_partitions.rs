//! Which partition of the cache that all multiprocessors share is near each of them.
//!
//! The cache of an A100, H100 or H200 has two partitions, each connected to half of the multiprocessors; the driver
//! does not tell which. A line of memory is at home in one of them, by a function of its address, and a multiprocessor
//! that is connected to the other one waits longer for it: on an H200 260 cycles in the same partition, 450 in the
//! other. So the times of some lines, less the mean of each line and of each multiprocessor, have one sign for the
//! multiprocessors of one partition and the other sign for the multiprocessors of the other one. How large these times
//! are together, and how alike for all multiprocessors of a partition, tells whether there are two. The sign that
//! explains most is the first principal component.

use super::device::{Device, DeviceError, Threads};
use torre_compiler::backend::gpu::abi::Argument;

/// A kernel `torre_latencies` that measures these times.
pub const PTX: &str = include_str!("l2_partitions.ptx");

/// Lines that are looked at, and bytes from one to the next, which are an odd number of lines.
const LINES: usize = 96;
const APART: u64 = 1031 * 128;

/// Blocks for each multiprocessor: each gets one at least.
const BLOCKS: u32 = 2;

/// Times a component is refined: far more than two that differ need.
const ROUNDS: usize = 50;

/// Thresholds for two partitions: the mean of the cycles by which a line takes longer or less long than the mean of
/// near and far ones; the least share of these cycles that each multiprocessor has; and the least share of all
/// multiprocessors that are near each partition.
const CYCLES: f64 = 20.0;
const ALIKE: f64 = 0.5;
const SHARE: f64 = 0.25;

/// The partition near each multiprocessor, by its number; empty where they are all alike.
pub fn near(device: &dyn Device) -> Result<Vec<u32>, DeviceError> {
    let blocks = device.facts().multiprocessors.max(1).saturating_mul(BLOCKS);
    let mut times: Vec<Vec<u32>> = Vec::new();
    for (multiprocessor, own) in measure(device, blocks, LINES)? {
        let multiprocessor = multiprocessor as usize;
        if multiprocessor >= blocks as usize {
            return Ok(Vec::new());
        }
        if multiprocessor >= times.len() {
            times.resize(multiprocessor + 1, Vec::new());
        }
        match times[multiprocessor].as_mut_slice() {
            [] => times[multiprocessor] = own,
            known => known.iter_mut().zip(own).for_each(|(a, b)| *a = b.min(*a)),
        }
    }
    Ok(parts(&times))
}

/// The multiprocessor of each of `blocks` blocks, and the cycles that it waited for each line.
pub fn measure(
    device: &dyn Device,
    blocks: u32,
    lines: usize,
) -> Result<Vec<(u32, Vec<u32>)>, DeviceError> {
    let functions = device.load(PTX, &["torre_latencies".to_owned()])?;
    let Some(function) = functions.first() else {
        return Ok(Vec::new());
    };
    let mut bytes = vec![0; blocks as usize * (lines + 1) * 4];
    let memory = device.take(lines as u64 * APART)?;
    let out = device.take(bytes.len() as u64)?;
    let arguments = [
        Argument::Place(memory.0),
        Argument::Word(APART as i32),
        Argument::Word(lines as i32),
        Argument::Place(out.0),
    ];
    let threads = Threads {
        blocks: [blocks, 1, 1],
        threads: [32, 1, 1],
        shared: 0,
    };
    // SAFETY: the kernel's parameters are these; it accesses the first word of each line, and a word for each of them
    // and one more for each block.
    let started = unsafe { device.start(*function, threads, &arguments) };
    let read = started.and_then(|()| device.read(out, &mut bytes));
    device.give_back(out)?;
    device.give_back(memory)?;
    read?;
    let (words, _) = bytes.as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let blocks = words.chunks_exact(lines + 1);
    Ok(blocks
        .filter_map(|block| block.split_first())
        .map(|(multiprocessor, times)| (*multiprocessor, times.to_vec()))
        .collect())
}

/// The partition near each multiprocessor, by the times of some lines; multiprocessors without times count to the first
/// one. Empty where there are not two.
fn parts(times: &[Vec<u32>]) -> Vec<u32> {
    let known: Vec<usize> = (0..times.len()).filter(|n| !times[*n].is_empty()).collect();
    let mut rows: Vec<Vec<f64>> = known
        .iter()
        .map(|n| times[*n].iter().map(|t| f64::from(*t)).collect())
        .collect();
    let (Some(lines), count) = (rows.iter().map(Vec::len).min(), rows.len() as f64) else {
        return Vec::new();
    };
    for row in &mut rows {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        row.iter_mut().for_each(|t| *t -= mean);
    }
    for line in 0..lines {
        let mean = rows.iter().map(|row| row[line]).sum::<f64>() / count;
        rows.iter_mut().for_each(|row| row[line] -= mean);
    }
    // The power iteration.
    let mut component = rows.first().cloned().unwrap_or_default();
    let mut sides = Vec::new();
    for _ in 0..ROUNDS {
        let along = |row: &Vec<f64>| row.iter().zip(&component).map(|(a, b)| a * b).sum();
        sides = rows.iter().map(along).collect::<Vec<f64>>();
        let size = sides.iter().map(|s| s * s).sum::<f64>().sqrt();
        for (line, of) in component.iter_mut().enumerate() {
            let sum = rows.iter().zip(&sides).map(|(row, s)| row[line] * s);
            *of = sum.sum::<f64>() / size.max(f64::MIN_POSITIVE);
        }
        let size = component.iter().map(|c| c * c).sum::<f64>().sqrt();
        component
            .iter_mut()
            .for_each(|c| *c /= size.max(f64::MIN_POSITIVE));
    }
    let mean = sides.iter().map(|s| s.abs()).sum::<f64>() / count;
    let least = sides.iter().map(|s| s.abs()).fold(f64::INFINITY, f64::min);
    let first = sides.iter().filter(|s| **s > 0.0).count() as f64;
    let large = mean >= CYCLES * (lines as f64).sqrt() && least >= ALIKE * mean;
    if !large || first.min(count - first) < SHARE * count {
        return Vec::new();
    }
    let mut near = vec![0; times.len()];
    for (n, side) in known.into_iter().zip(&sides) {
        // The first multiprocessor is near the first partition.
        near[n] = u32::from((*side > 0.0) != (sides[0] > 0.0));
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::testing::Rng;

    /// Lines are at home in one of `partitions` partitions, and a multiprocessor in another one waits longer.
    fn times(near: &[u32], partitions: u64, far: u32, noise: u64) -> Vec<Vec<u32>> {
        let mut rng = Rng::new(7);
        let homes: Vec<u32> = (0..LINES).map(|_| rng.below(partitions) as u32).collect();
        let own = |near: &u32| {
            let mut of =
                |home: &u32| 250 + u32::from(home != near) * far + rng.below(noise.max(1)) as u32;
            homes.iter().map(&mut of).collect()
        };
        near.iter().map(own).collect()
    }

    #[test]
    fn two_partitions_are_told_from_one() {
        let mut rng = Rng::new(3);
        let near: Vec<u32> = (0..132)
            .map(|n| u32::from(n > 0 && rng.below(2) > 0))
            .collect();
        assert_eq!(parts(&times(&near, 2, 190, 60)), near);
        assert_eq!(parts(&times(&near, 2, 90, 60)), near);
        // Nothing but noise, nothing at all, too little, or one side with few multiprocessors.
        assert!(parts(&times(&near, 2, 0, 200)).is_empty());
        assert!(parts(&times(&near, 2, 0, 0)).is_empty());
        assert!(parts(&[]).is_empty());
        assert!(parts(&times(&near, 2, 30, 2)).is_empty());
        let few: Vec<u32> = (0..132).map(|n| u32::from(n % 12 == 5)).collect();
        assert!(parts(&times(&few, 2, 190, 1)).is_empty());
        // Numbers that no multiprocessor has.
        let mut some = times(&near, 2, 190, 60);
        some.insert(5, Vec::new());
        let mut expected = near;
        expected.insert(5, 0);
        assert_eq!(parts(&some), expected);
    }
}
