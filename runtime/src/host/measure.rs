//! Measures this computer for the model of schedules, once; the result is kept in the user's cache directory.

use super::threads::{self, Barrier};
use crate::output::atomic::write_file;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;
use torre_compiler::schedule::Machine;

/// Changes when what is measured, or how, changes.
const VERSION: &str = "torre-machine 2";

/// The machine as measured before, or now; `threads` are those of the run.
///
/// Sizes of caches come from the system. Takes about half a second the first time.
pub fn machine(threads: usize) -> Machine {
    let path = cache_file();
    let known = path.as_deref().and_then(|p| read(p, threads));
    known.unwrap_or_else(|| {
        let machine = measure(threads);
        if let Some(path) = path {
            // A cache that cannot be written costs half a second next time.
            if let Some(folder) = path.parent() {
                let _ = fs::create_dir_all(folder);
            }
            let _ = write_file(&path, write(&machine).as_bytes());
        }
        machine
    })
}

/// Measures, whatever is stored, and stores the result.
pub fn measure_again(threads: usize) -> Machine {
    if let Some(path) = cache_file() {
        let _ = fs::remove_file(path);
    }
    machine(threads)
}

fn cache_file() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))?;
    Some(base.join("torre").join("machine.txt"))
}

/// What tells machines apart that share a home directory.
fn identity() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .and_then(|l| l.split_once(':'))
        .map_or("unknown", |(_, name)| name.trim());
    format!("{VERSION}; {model}; {} cores", threads::available())
}

fn write(m: &Machine) -> String {
    format!(
        "{}\nl2 {}\nl3 {}\nl2_rate {:e}\nl3_rate {:e}\nmemory_rate {:e}\nmemory_rate_all {:e}\nvector_rate {:e}\nvector_bytes {}\n",
        identity(),
        m.l2,
        m.l3,
        m.l2_rate,
        m.l3_rate,
        m.memory_rate,
        m.memory_rate_all,
        m.vector_rate,
        m.vector_bytes
    )
}

fn read(path: &Path, threads: usize) -> Option<Machine> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    if lines.next()? != identity() {
        return None;
    }
    let values: Vec<(&str, f64)> = lines
        .filter_map(|l| l.split_once(' '))
        .filter_map(|(k, v)| Some((k, v.parse().ok()?)))
        .collect();
    let get = |name: &str| {
        let found = values.iter().find(|(k, _)| *k == name).map(|(_, v)| *v);
        found.filter(|v| v.is_finite() && *v > 0.0)
    };
    Some(Machine {
        threads,
        l2: get("l2")? as u64,
        l3: get("l3")? as u64,
        l2_rate: get("l2_rate")?,
        l3_rate: get("l3_rate")?,
        memory_rate: get("memory_rate")?,
        memory_rate_all: get("memory_rate_all")?,
        vector_rate: get("vector_rate")?,
        vector_bytes: get("vector_bytes")? as usize,
    })
}

/// Bytes of the first core's cache of a level, and of the last level, from sysfs.
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

fn measure(threads: usize) -> Machine {
    let l2 = cache_bytes(2).unwrap_or(1 << 20);
    let l3 = cache_bytes(3).unwrap_or(8 << 20).max(l2);
    // Far more than the shared cache, which may be larger than this machine can see, but little of what is free.
    let free = crate::budget::available().map_or(1 << 30, |a| a.bytes / 4);
    let far = (16 * l3).clamp(256 << 20, 1 << 30).min(free);
    let near_l3 = (l3 / 4).max(2 * l2).min(l3);
    let cores = threads::available();
    Machine {
        threads,
        l2,
        l3,
        l2_rate: sweep_rate(1, l2 / 2),
        l3_rate: sweep_rate(1, near_l3),
        memory_rate: sweep_rate(1, far),
        memory_rate_all: sweep_rate(cores, far),
        vector_rate: vector_rate(),
        vector_bytes: vector_bytes(),
    }
}

/// Bytes read and written per second by `count` cores that each sweep over their part of `bytes`, adding in place.
fn sweep_rate(count: usize, bytes: u64) -> f64 {
    let each = (bytes as usize / count / 4).max(1024);
    let sweeps = (64 << 20) / (each * 4) + 2;
    let barrier = Barrier::new(count);
    let slowest = Mutex::new(0.0f64);
    threads::run(count, |_| {
        let mut data = vec![1.0f32; each];
        let mut sweep = || {
            let [a, b] = black_box([1.000_001f32, 1e-9]);
            for v in data.iter_mut() {
                *v = *v * a + b;
            }
            black_box(data.first());
        };
        sweep();
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            barrier.wait();
            let start = Instant::now();
            for _ in 0..sweeps {
                sweep();
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        if let Ok(mut slowest) = slowest.lock() {
            *slowest = slowest.max(best);
        }
    });
    let seconds = slowest.into_inner().unwrap_or(1.0).max(1e-9);
    (sweeps * each * 4 * 2 * count) as f64 / seconds
}

/// Vector multiply-adds per second: the clock, from a chain of dependent additions of known latency, times two units.
fn vector_rate() -> f64 {
    let mut best = f64::INFINITY;
    let n = 4_000_000u64;
    for _ in 0..5 {
        let start = Instant::now();
        let mut x = black_box(1u64);
        for _ in 0..n {
            // A multiplication of 64-bit integers takes three cycles on current processors.
            x = black_box_register(x.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
        black_box(x);
        best = best.min(start.elapsed().as_secs_f64());
    }
    2.0 * 3.0 * n as f64 / best
}

/// Hides a value from the optimiser without a trip to memory.
#[cfg(target_arch = "x86_64")]
fn black_box_register(mut x: u64) -> u64 {
    // SAFETY: the empty assembly only claims to change the register.
    unsafe { std::arch::asm!("/* {0} */", inout(reg) x, options(nomem, nostack, preserves_flags)) };
    x
}

#[cfg(not(target_arch = "x86_64"))]
fn black_box_register(x: u64) -> u64 {
    black_box(x)
}

#[cfg(target_arch = "x86_64")]
fn vector_bytes() -> usize {
    if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vl") {
        64
    } else if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
        32
    } else {
        16
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_bytes() -> usize {
    16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_machine_reads_back() {
        let machine = Machine {
            threads: 2,
            l2: 1 << 20,
            l3: 32 << 20,
            l2_rate: 1.5e11,
            l3_rate: 7.25e10,
            memory_rate: 3e10,
            memory_rate_all: 6e10,
            vector_rate: 8.9e9,
            vector_bytes: 64,
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("machine.txt");
        fs::write(&path, write(&machine)).expect("a file");
        assert_eq!(read(&path, 2), Some(machine));
        fs::write(&path, "another machine\nl2 3\n").expect("a file");
        assert_eq!(read(&path, 2), None);
        fs::write(&path, format!("{}\nl2 nan\n", identity())).expect("a file");
        assert_eq!(read(&path, 2), None);
    }
}
