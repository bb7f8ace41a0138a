//! How long threads wanted a core and had none: whether others use the machine.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Others used the machine where threads waited for a core in more than this share of the time.
const BUSY: f64 = 0.03;

/// The threads of all runs of this process so far.
static OF_RUNS: Waiting = Waiting::new();

/// How long threads waited for a core, and out of how long.
#[derive(Debug, Default)]
pub struct Waiting {
    nanoseconds: AtomicU64,
    of: AtomicU64,
}

impl Waiting {
    const fn new() -> Self {
        Self {
            nanoseconds: AtomicU64::new(0),
            of: AtomicU64::new(0),
        }
    }

    /// Does some work of the calling thread, and counts how long it waited meanwhile.
    pub fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        let (start, before) = (Instant::now(), waited());
        let result = work();
        if let (Some(before), Some(after)) = (before, waited()) {
            let waited = after.saturating_sub(before);
            self.nanoseconds.fetch_add(waited, Ordering::Relaxed);
            let elapsed = start.elapsed().as_nanos() as u64;
            self.of.fetch_add(elapsed, Ordering::Relaxed);
        }
        result
    }

    /// The share of the time in which threads waited; 0 where the system does not count it.
    pub fn share(&self) -> f64 {
        let of = self.of.load(Ordering::Relaxed).max(1);
        self.nanoseconds.load(Ordering::Relaxed) as f64 / of as f64
    }

    /// Whether others used the machine.
    pub fn is_busy(&self) -> bool {
        self.share() > BUSY
    }

    fn copy(&self) -> [u64; 2] {
        [&self.nanoseconds, &self.of].map(|count| count.load(Ordering::Relaxed))
    }
}

/// Nanoseconds for which the calling thread waited for a core, where the system counts them.
fn waited() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Does some work of a run's thread; [`during_runs`] knows how long it waited.
pub(super) fn of_run<R>(work: impl FnOnce() -> R) -> R {
    OF_RUNS.during(work)
}

/// Does some work of the calling thread, which may start threads of runs; also says how long all of them waited.
pub fn during_runs<R>(work: impl FnOnce() -> R) -> (R, Waiting) {
    let own = Waiting::new();
    let [waited, of] = OF_RUNS.copy();
    let result = own.during(work);
    let [now_waited, now_of] = OF_RUNS.copy();
    // A caller that only waits for its threads says nothing about them.
    match now_of - of {
        0 => (result, own),
        of => {
            let nanoseconds = AtomicU64::new(now_waited - waited);
            let of = AtomicU64::new(of);
            (result, Waiting { nanoseconds, of })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::threads;
    use std::time::Duration;

    #[test]
    fn threads_of_runs_are_counted_and_a_share_lies_between_0_and_1() {
        let work = |_| {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(2) {
                std::hint::spin_loop();
            }
        };
        for count in [1, 3] {
            let (started, waiting) = during_runs(|| threads::run(count, work).is_ok());
            assert!(started);
            assert!((0.0..=1.0).contains(&waiting.share()), "{waiting:?}");
            let least = 2_000_000 * count as u64;
            assert!(waiting.of.load(Ordering::Relaxed) >= least || waited().is_none());
        }
    }

    #[test]
    fn a_machine_is_busy_where_threads_wait_for_more_than_3_percent() {
        for (waited, busy) in [(0, false), (29, false), (31, true), (1000, true)] {
            let waiting = Waiting {
                nanoseconds: AtomicU64::new(waited),
                of: AtomicU64::new(1000),
            };
            assert_eq!(waiting.is_busy(), busy, "{waited}");
        }
        assert!(!Waiting::default().is_busy());
    }
}
