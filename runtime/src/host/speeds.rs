//! Measures the speeds of this computer, and the sizes of its caches.

use super::contention::Waiting;
use super::threads;
use super::vectors::{Block, Vectors};
use super::waiting::Barrier;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use torre_compiler::cost::Machine;

/// How many times as much as its own cache a core sweeps over in the shared cache.
const NEAR: u64 = 4;

/// The share of the shared cache that cores sweep over when it is asked whether they have it, and the factor by which
/// less is tried where they do not.
const TRIED: f64 = 0.9;
const LESS: f64 = std::f64::consts::FRAC_1_SQRT_2;
/// The part of the way from the rate of memory to the one of the shared cache beyond which data stay there.
const NEARER: f64 = 2.0 / 3.0;

/// Bytes of the first core's cache of a level, from sysfs; `None` where it does not say.
fn cache_bytes(level: u32) -> Option<u64> {
    let base = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let mut found = None;
    for entry in fs::read_dir(base).ok()?.flatten() {
        let text = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        if text("level").trim() == level.to_string() && text("type").trim() != "Instruction" {
            let size = text("size");
            let size = size.trim();
            let (digits, unit) = size.split_at(size.trim_end_matches(char::is_alphabetic).len());
            let factor = match unit {
                "K" => 1 << 10,
                "M" => 1 << 20,
                _ => 1,
            };
            found = digits.parse::<u64>().ok().map(|n| n * factor);
        }
    }
    found
}

/// Measurements that take some hundredths of a second. Where the host of a virtual machine lets others share its cores,
/// cores are slow at times: the best round counts for one core alone, and the mean for cores side by side.
struct Round {
    l2_rate: f64,
    l3_rate: f64,
    l3_rate_all: f64,
    l3_rate_far: f64,
    /// Vector operations of one core alone, and of each of all cores at the same time.
    alone: f64,
    together: Vec<f64>,
}

impl Round {
    fn mean(&self) -> f64 {
        self.together.iter().sum::<f64>() / self.together.len() as f64
    }

    fn slowest(&self) -> f64 {
        self.together.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Also says whether others used the machine meanwhile.
pub(super) fn measure(threads: usize) -> (Machine, bool) {
    let l1 = cache_bytes(1).unwrap_or(32 << 10);
    let l2 = cache_bytes(2).unwrap_or(1 << 20);
    let l3 = cache_bytes(3).unwrap_or(8 << 20).max(l2);
    // Far more than the shared cache, which may be larger than this machine can see, but a small part of free memory.
    let free = crate::budget::available().map_or(1 << 30, |a| a.bytes / 4);
    let far = (16 * l3).clamp(256 << 20, 1 << 30).min(free);
    // A few times as much as the cores' own caches hold, as tiles have of which some rows do not stay there; a quarter
    // of the shared cache is more where many cores have it in common, and others of the same host as well.
    let near_l3 = |cores: u64| (NEAR * l2 * cores).min(l3 / 2).max(2 * l2 * cores).min(l3);
    let cores = threads::available();
    let waiting = Waiting::default();
    let round = || Round {
        l2_rate: sweep_rate(1, l2 / 2, &waiting),
        l3_rate: sweep_rate(1, near_l3(1), &waiting),
        l3_rate_all: sweep_rate(cores, near_l3(cores as u64), &waiting),
        l3_rate_far: sweep_rate(1, (l3 / 4).max(2 * l2).min(l3), &waiting),
        alone: vector_rates(1, &waiting)[0],
        together: vector_rates(cores, &waiting),
    };
    // Rounds lie between the longer measurements, so that they meet the machine at different moments.
    let first = round();
    let memory_rate = sweep_rate(1, far, &waiting);
    let second = round();
    let memory_rate_all = sweep_rate(cores, far, &waiting);
    let rounds = [first, second, round()];
    let l3_rate_all = rounds.iter().map(|r| r.l3_rate_all).fold(0.0, f64::max);
    // A cache that is larger than the memory which may be swept over counts as large as that.
    let faster = l3_rate_all - memory_rate_all;
    let nearness = |bytes| {
        let rate = sweep_rate(cores, bytes, &waiting);
        // The size of a cache that is no faster than memory does not matter.
        if faster > 0.0 {
            (rate - memory_rate_all) / faster
        } else {
            1.0
        }
    };
    let usable = usable(l3.min(far), near_l3(cores as u64), nearness);
    let most = |rate: fn(&Round) -> f64| rounds.iter().map(rate).fold(0.0, f64::max);
    let mean = |rate: fn(&Round) -> f64| rounds.iter().map(rate).sum::<f64>() / rounds.len() as f64;
    let machine = Machine {
        threads,
        cores,
        l1,
        l2,
        l3: usable,
        l2_rate: most(|round| round.l2_rate),
        l3_rate: most(|round| round.l3_rate),
        l3_rate_all,
        l3_rate_far: most(|round| round.l3_rate_far),
        memory_rate,
        memory_rate_all,
        vector_rate: most(|round| round.alone),
        vector_rate_all: mean(Round::mean) * cores as f64,
        vector_rate_slowest: mean(Round::slowest),
        vector_bytes: Vectors::of_this_processor().bytes,
    };
    (machine, waiting.is_busy())
}

/// The part of a shared cache of `bytes` that all cores of this machine have together, at least `least`, which they
/// were seen to have. The host of a virtual machine gives a part of it to each, or others fill it; the system says the
/// size of the whole. `nearness`: where the rate of a sweep over a number of bytes lies between the rate of memory, 0,
/// and the rate of the cache, 1.
fn usable(bytes: u64, least: u64, mut nearness: impl FnMut(u64) -> f64) -> u64 {
    let mut of = |part: f64| nearness((TRIED * part) as u64);
    let least = least as f64;
    let mut part = (bytes as f64).max(least);
    let mut near = of(part);
    while part > least && near < NEARER {
        let less = (LESS * part).max(least);
        let found = if less > least { of(less) } else { 1.0 };
        // Between two sizes the logarithm is in proportion: a little more or less of it changes no choice.
        let back = if found < NEARER {
            1.0
        } else {
            (NEARER - near) / (found - near)
        };
        part *= (less / part).powf(back);
        near = found;
    }
    part as u64
}

/// Multiply-adds of vectors per second of each of `count` cores at the same time; of one core where `count` threads
/// cannot be started.
fn vector_rates(count: usize, waiting: &Waiting) -> Vec<f64> {
    let vectors = Vectors::of_this_processor();
    let barrier = Barrier::new(count);
    let rates = Mutex::new(Vec::new());
    let run = threads::run(count, |_| {
        barrier.wait();
        let rate = waiting.during(|| vectors.rate());
        if let Ok(mut rates) = rates.lock() {
            rates.push(rate);
        }
    });
    match (run, rates.into_inner()) {
        (Ok(()), Ok(rates)) if !rates.is_empty() => rates,
        _ => vec![vectors.rate()],
    }
}

/// Bytes read and written per second by `count` cores that each sweep over their part of `bytes`, in place and by
/// vectors as long as the ones of kernels; by one core where `count` threads cannot be started, and a guess where
/// not even one can. The memory asks for huge pages, as the one of calculations does.
fn sweep_rate(count: usize, bytes: u64, waiting: &Waiting) -> f64 {
    let each = (bytes as usize / count / size_of::<Block>()).max(16);
    let each_bytes = each * size_of::<Block>();
    let sweeps = (64 << 20) / each_bytes + 2;
    let vectors = Vectors::of_this_processor();
    let barrier = Barrier::new(count);
    let total = Mutex::new(0.0f64);
    let run = threads::run(count, |_| {
        let mut data: Vec<Block> = Vec::with_capacity(each);
        ask_for_huge_pages(&mut data);
        data.resize(each, Block::ONES);
        let mut sweep = || {
            vectors.sweep(&mut data);
            black_box(data.first());
        };
        sweep();
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            barrier.wait();
            let seconds = waiting.during(|| {
                let start = Instant::now();
                for _ in 0..sweeps {
                    sweep();
                }
                start.elapsed().as_secs_f64()
            });
            best = best.min(seconds);
        }
        if let Ok(mut total) = total.lock() {
            *total += (sweeps * each_bytes * 2) as f64 / best.max(1e-9);
        }
    });
    match (run, total.into_inner()) {
        (Ok(()), Ok(total)) if total > 0.0 => total,
        _ if count == 1 => 1e9,
        _ => sweep_rate(1, bytes, waiting),
    }
}

/// A wish, before the memory is first used.
fn ask_for_huge_pages(data: &mut Vec<Block>) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        const PAGE: usize = 4096;
        let start = data.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE);
        let bytes = data.capacity() * size_of::<Block>();
        if skipped < bytes {
            // SAFETY: the pages begin in the vector's memory; the advice changes no values, on the last page either.
            let _ = unsafe {
                let first = start.add(skipped).cast();
                madvise(first, bytes - skipped, Advice::LinuxHugepage)
            };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = data;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_possible() {
        let vectors = Vectors::of_this_processor();
        assert!([8, 16, 32, 64].contains(&vectors.bytes));
        // From a slow interpreter of instructions to two units of 10 GHz.
        assert!((1e6..2e10).contains(&vectors.rate()));
        for blocks in [0, 1, 3] {
            let mut data = vec![Block::ONES; blocks];
            vectors.sweep(&mut data);
            assert!(data.iter().all(Block::is_swept));
        }
        let waiting = Waiting::default();
        waiting.during(|| black_box(sweep_rate(1, 1 << 16, &Waiting::default())));
        assert!(
            (0.0..=1.0).contains(&waiting.share()),
            "{}",
            waiting.share()
        );
    }

    #[test]
    fn a_machine_has_the_part_of_a_cache_that_stays() {
        for (bytes, least, stay) in [
            (480 << 20, 16 << 20, 80 << 20),
            (300 << 20, 128 << 20, 290 << 20),
            (32 << 20, 8 << 20, 1 << 20),
            (8 << 20, 8 << 20, 0),
            (1 << 40, 1, 0),
        ] {
            let mut tried = 0;
            let part = usable(bytes, least, |n| {
                tried += 1;
                if n <= stay { 1.0 } else { 0.0 }
            });
            assert!((least..=bytes).contains(&part), "{bytes}");
            let whole = stay as f64 / TRIED;
            assert!(part as f64 <= whole / LESS || part == least, "{part}");
            assert!(part as f64 >= whole * LESS || part == bytes, "{part}");
            assert!(tried <= 81, "{tried}");
        }
    }

    /// A rate that falls slowly gives a size near the one at which it falls below the limit, whatever sizes were tried.
    #[test]
    fn the_part_of_a_cache_that_stays_does_not_jump() {
        for bytes in (100..=480).step_by(5) {
            let of = |n: u64| {
                let log = (n as f64 / f64::from(60 << 20)).log2();
                (1.0 - log / 2.0).clamp(0.0, 1.0)
            };
            let part = usable(bytes << 20, 8 << 20, of) as f64;
            let exact = f64::from(60 << 20) * (2.0 * (1.0 - NEARER)).exp2() / TRIED;
            assert!(
                (0.93..1.07).contains(&(part / exact)),
                "{bytes}: {part} of {exact}"
            );
        }
    }
}
