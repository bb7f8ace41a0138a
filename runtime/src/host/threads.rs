//! Threads of a run: one per core, pinned, and a barrier that spins briefly before it yields.

use std::fmt;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Not all threads of a run could be started.
#[derive(Debug)]
pub struct NoThreads {
    pub wanted: usize,
    pub started: usize,
    pub error: io::Error,
}

impl fmt::Display for NoThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            wanted,
            started,
            error,
        } = self;
        write!(
            f,
            "only {started} of {wanted} threads could be started: {error}"
        )
    }
}

impl std::error::Error for NoThreads {}

/// Runs `work(thread)` on `count` threads, each pinned to a core of its own where the system allows; returns when all
/// are done. A single one runs on the calling thread, unpinned. Where not all can be started, none does any work, as
/// they may wait for each other.
pub fn run(count: usize, work: impl Fn(usize) + Sync) -> Result<(), NoThreads> {
    if count <= 1 {
        work(0);
        return Ok(());
    }
    let cores = cores();
    // Whether all are there.
    let complete = OnceLock::new();
    std::thread::scope(|scope| {
        for thread in 0..count {
            let core = cores.get(thread).copied();
            let (work, complete) = (&work, &complete);
            let started = Builder::new().spawn_scoped(scope, move || {
                if *complete.wait() {
                    if let Some(core) = core {
                        core_affinity::set_for_current(core);
                    }
                    work(thread);
                }
            });
            if let Err(error) = started {
                let _ = complete.set(false);
                return Err(NoThreads {
                    wanted: count,
                    started: thread,
                    error,
                });
            }
        }
        let _ = complete.set(true);
        Ok(())
    })
}

/// The cores that this process could use when it was first asked.
fn cores() -> &'static [core_affinity::CoreId] {
    static CORES: OnceLock<Vec<core_affinity::CoreId>> = OnceLock::new();
    CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default())
}

/// How many cores this process may use.
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Lets threads wait for each other, again and again.
pub struct Barrier {
    count: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
}

impl Barrier {
    pub fn new(count: usize) -> Self {
        Self {
            count: count.max(1),
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
        }
    }

    /// Returns when all threads have called it as often as this one.
    pub fn wait(&self) {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.fetch_add(1, Ordering::Release);
        } else {
            let mut pause = Pause::default();
            while self.generation.load(Ordering::Acquire) == generation {
                pause.wait();
            }
        }
    }
}

/// Waits a little longer each time: first spinning, then giving the core away.
#[derive(Default)]
pub struct Pause(u32);

impl Pause {
    pub fn wait(&mut self) {
        if self.0 < 1 << 9 {
            self.0 += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_work_and_wait_for_each_other() {
        for count in [1, 2, 5] {
            let barrier = Barrier::new(count);
            let sum = AtomicUsize::new(0);
            run(count, |thread| {
                sum.fetch_add(thread + 1, Ordering::Relaxed);
                barrier.wait();
                assert_eq!(sum.load(Ordering::Relaxed), count * (count + 1) / 2);
            })
            .unwrap();
        }
    }
}
