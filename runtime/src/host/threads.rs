//! Threads of a run: one per core, pinned where each has one.

use super::contention;
use std::fmt;
use std::io;
use std::sync::OnceLock;
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
        contention::of_run(|| work(0));
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
                    contention::of_run(|| work(thread));
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
