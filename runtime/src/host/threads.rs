//! Threads of a run: one per core, pinned where all cores have one.

use super::{contention, topology};
use crate::simulation::NoThreads;
use std::sync::OnceLock;
use std::thread::Builder;
use torre_compiler::scheme::{Scheme, Update};

/// Runs `work(thread)` on `count` threads, each pinned to a core of its own where all cores have threads and the system
/// allows it; returns when all are done. A single one runs on the calling thread, unpinned. Where not all can be
/// started, none does any work, as they may wait for each other.
pub fn run(count: usize, work: impl Fn(usize) + Sync) -> Result<(), NoThreads> {
    if count <= 1 {
        contention::of_run(|| work(0));
        return Ok(());
    }
    let places = topology::places(count);
    // Whether all are there.
    let complete = OnceLock::new();
    std::thread::scope(|scope| {
        for thread in 0..count {
            let place = places.get(thread).copied();
            let (work, complete) = (&work, &complete);
            let started = Builder::new().spawn_scoped(scope, move || {
                if *complete.wait() {
                    if let Some(place) = place {
                        core_affinity::set_for_current(place);
                    }
                    let _end = EndsTogether;
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

/// Ends the process where one of several threads panics: others would wait for it forever.
pub(crate) struct EndsTogether;

impl Drop for EndsTogether {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// The results of some work for each part, in their order: the first part on this thread, each other one on a thread of
/// its own. Threads that cannot be started leave their parts to this one.
pub fn map<P: Sync, R: Send>(parts: &[P], work: impl Fn(&P) -> R + Sync) -> Vec<R> {
    let Some((first, others)) = parts.split_first() else {
        return Vec::new();
    };
    std::thread::scope(|scope| {
        let work = &work;
        let start = |part| {
            let started = Builder::new().spawn_scoped(scope, move || work(part));
            (part, started.ok())
        };
        let others: Vec<_> = others.iter().map(start).collect();
        let first = work(first);
        let others = others.into_iter().map(|(part, thread)| {
            let done = thread.and_then(|thread| thread.join().ok());
            done.unwrap_or_else(|| work(part))
        });
        std::iter::once(first).chain(others).collect()
    })
}

/// How many cores this process may use.
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Operations of a stage for each thread. They take about a microsecond, which is also how long threads wait for each
/// other after a stage where each has a core; where others want the cores, too, it is thousands of times as long.
const OPERATIONS: u64 = 1 << 15;

/// The threads of a run that asks for no number: one for each core, or fewer where these would wait for each other
/// longer than they compute.
pub fn worthwhile(scheme: &Scheme) -> usize {
    let operations = |update: &Update| {
        let each = update.body.arithmetic().max(1) as u64;
        update.region.volume().saturating_mul(each)
    };
    let stages = scheme.stages.iter();
    let stages = stages.map(|stage| {
        stage
            .updates
            .iter()
            .map(operations)
            .fold(0, u64::saturating_add)
    });
    enough(stages.max().unwrap_or(0), available())
}

/// The threads for a number of operations, `most` at most.
fn enough(operations: u64, most: usize) -> usize {
    let threads = usize::try_from(operations / OPERATIONS).unwrap_or(usize::MAX);
    threads.clamp(1, most.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_stages_are_for_few_threads() {
        for (operations, threads) in [
            (0, 1),
            (2 * OPERATIONS - 1, 1),
            (2 * OPERATIONS, 2),
            (5 * OPERATIONS, 5),
            (u64::MAX, 16),
        ] {
            assert_eq!(enough(operations, 16), threads, "{operations}");
        }
        assert_eq!(enough(u64::MAX, 0), 1);
    }
}
