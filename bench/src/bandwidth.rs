//! The bandwidth of memory and caches.

use crate::args::Args;
use crate::baseline::{Builder, pinned};
use crate::machine::cache_bytes;

/// Rates in GB/s of the bytes that a program reads and writes.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    pub level: &'static str,
    pub threads: usize,
    /// All arrays of all threads.
    pub bytes: u64,
    /// One array into another one.
    pub copy: f64,
    /// Two into a third.
    pub triad: f64,
}

/// Measures copies in a level-2 cache, in a level-3 cache and in memory.
pub fn bandwidth(args: &Args, builder: &Builder) -> Result<Vec<Bandwidth>, String> {
    let program = builder.build_stream()?;
    let l2 = cache_bytes(2).unwrap_or(1 << 20);
    let l3 = cache_bytes(3).unwrap_or(16 << 20);
    let memory = if args.quick { 16 << 20 } else { 768 << 20 };
    let moved: u64 = if args.quick { 32 << 20 } else { 4 << 30 };
    let mut found = Vec::new();
    for &threads in &args.threads {
        let count = threads as u64;
        let levels = [
            ("L2", l2 / 2),
            ("L3", l3 / 2 / count),
            ("memory", memory / count),
        ];
        for (level, per_thread) in levels {
            let elements = per_thread / 12;
            let repetitions = (moved / count / per_thread).max(2);
            let output = pinned(&program, threads)
                .args([elements.to_string(), repetitions.to_string()])
                .output()
                .map_err(|e| e.to_string())?;
            let text = String::from_utf8_lossy(&output.stdout);
            let mut rates = text.split_whitespace().map(|w| w.parse::<f64>().ok());
            let (Some(Some(copy)), Some(Some(triad))) = (rates.next(), rates.next()) else {
                return Err(format!("stream answered `{}`", text.trim()));
            };
            found.push(Bandwidth {
                level,
                threads,
                bytes: per_thread * count,
                copy,
                triad,
            });
        }
    }
    Ok(found)
}
