//! The data of the machine for measurements.

use core_affinity::CoreId;
use std::fs;
use std::path::Path;

/// The cores that this process may use.
#[derive(Clone, Debug)]
pub struct Cores(Vec<CoreId>);

impl Cores {
    /// To be called before any thread is pinned.
    pub fn find() -> Cores {
        Cores(core_affinity::get_core_ids().unwrap_or_default())
    }

    pub fn count(&self) -> usize {
        self.0.len().max(1)
    }

    /// Runs work that uses `threads` threads. Torre pins the threads that it starts; if there is only one, it runs on a
    /// fresh thread pinned to the first core, as the baseline's does, and leaves the caller where it may go.
    pub fn pinned<R: Send>(&self, threads: usize, work: impl FnOnce() -> R + Send) -> R {
        let Some(&first) = self.0.first().filter(|_| threads == 1) else {
            return work();
        };
        let result = std::thread::scope(|scope| {
            let pinned = move || {
                core_affinity::set_for_current(first);
                work()
            };
            scope.spawn(pinned).join()
        });
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Bytes of the first core's data cache of a level.
pub fn cache_bytes(level: u32) -> Option<u64> {
    let root = Path::new("/sys/devices/system/cpu/cpu0/cache");
    (0..16).find_map(|i| {
        let folder = root.join(format!("index{i}"));
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        if read("type")?.trim() == "Instruction" || read("level")?.trim() != level.to_string() {
            return None;
        }
        let size = read("size")?;
        let kib: u64 = size.trim().strip_suffix('K')?.parse().ok()?;
        Some(kib * 1024)
    })
}

/// Bytes that can be had without swapping.
pub fn free_bytes() -> Option<u64> {
    status_kib("/proc/meminfo", "MemAvailable:").map(|kib| kib * 1024)
}

/// The most memory that a process has had at once, in bytes; `self` for this one, since [`reset_peak`].
pub fn peak_bytes(process: &str) -> Option<u64> {
    status_kib(&format!("/proc/{process}/status"), "VmHWM:").map(|kib| kib * 1024)
}

/// Forgets this process's peak. Where the system does not allow it, peaks of earlier cases remain.
pub fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn status_kib(path: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The processor's name.
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .find_map(|l| l.strip_prefix("model name"))
        .and_then(|l| l.split_once(':'))
        .map_or_else(
            || "unknown".to_string(),
            |(_, name)| name.trim().to_string(),
        )
}

/// How many processes want to run, averaged over a minute; figures taken under load are worth little.
pub fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
