//! How threads wait for each other: they spin briefly, then offer their core to others, then sleep until they are
//! woken.
//!
//! A thread that sleeps leaves its core to others: to the thread that it waits for, where there are more threads than
//! cores, to its neighbour on the same core, and to other processes. A thread is awake again some 5 to 50 microseconds
//! after it is woken, and later where a virtual machine has given an idle core back to its host. So a thread that spins
//! in vain yields its core between looks for a while: others that want it have it, and if none does, the thread goes
//! on without being woken.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread spins where each has a core of its own.
const SPIN: Duration = Duration::from_micros(50);
/// How long it waits awake there, most of it by yielding: about as long as a tile takes.
const AWAKE: Duration = Duration::from_micros(2000);
/// Looks at a number between two looks at the clock.
const LOOKS: u32 = 32;

/// A number that only rises. Threads wait until it has passed another one.
#[repr(align(128))]
pub struct Rising {
    value: AtomicI64,
    /// Threads that sleep, or are about to.
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    risen: Condvar,
}

impl Rising {
    pub fn new(value: i64) -> Rising {
        Rising {
            value: AtomicI64::new(value),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            risen: Condvar::new(),
        }
    }

    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Acquire)
    }

    /// Earlier writes are visible to threads that see the new value.
    pub fn raise(&self, value: i64) {
        // In the one order of all these operations either this store comes before a sleeper's last look at the value,
        // or the sleeper is counted before it is looked for here.
        self.value.store(value, Ordering::SeqCst);
        self.wake();
    }

    /// The same with a value that is larger by 1, where several threads raise it.
    pub fn step(&self) {
        self.value.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            drop(self.locked());
            self.risen.notify_all();
        }
    }

    /// Returns when the value is larger than `value`.
    pub fn wait(&self, value: i64, patience: Patience) {
        if self.get() > value || patience.awake(|| self.get() > value) {
            return;
        }
        let mut guard = self.locked();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while self.value.load(Ordering::SeqCst) <= value {
            guard = self
                .risen
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn locked(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data, so nothing can be wrong with them.
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long threads wait awake before they sleep.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    spin: Duration,
    /// With the time that they spin.
    awake: Duration,
}

impl Patience {
    /// The patience of `threads` threads on this machine. With more threads than cores, a thread that spins keeps
    /// others from working.
    pub fn of(threads: usize) -> Patience {
        match threads <= super::threads::available() {
            true => Patience {
                spin: SPIN,
                awake: AWAKE,
            },
            false => Patience {
                spin: Duration::ZERO,
                awake: Duration::ZERO,
            },
        }
    }

    /// Whether a condition comes true while a thread spins.
    pub fn briefly(self, is_true: impl Fn() -> bool) -> bool {
        let brief = Patience {
            awake: self.spin,
            ..self
        };
        brief.awake(is_true)
    }

    /// Whether a condition came true in time.
    fn awake(self, is_true: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        let mut waited = Duration::ZERO;
        loop {
            for _ in 0..LOOKS {
                if is_true() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if waited >= self.awake {
                return false;
            }
            if waited >= self.spin {
                std::thread::yield_now();
            }
            waited = start.elapsed();
        }
    }
}

/// Lets threads wait for each other, again and again.
pub struct Barrier {
    count: usize,
    patience: Patience,
    arrived: AtomicUsize,
    generation: Rising,
}

impl Barrier {
    pub fn new(count: usize) -> Self {
        Self {
            count: count.max(1),
            patience: Patience::of(count),
            arrived: AtomicUsize::new(0),
            generation: Rising::new(0),
        }
    }

    /// Returns when all threads have called it as often as this one.
    pub fn wait(&self) {
        let generation = self.generation.get();
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.raise(generation + 1);
        } else {
            self.generation.wait(generation, self.patience);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::threads::run;
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

    /// Each thread raises its number in turn, so each has to wait for another one in every round, asleep or not.
    #[test]
    fn no_wake_is_lost() {
        let short = Duration::from_micros(3);
        for (spin, awake) in [
            (Duration::ZERO, Duration::ZERO),
            (short, short),
            (short, 2 * short),
            (SPIN, AWAKE),
        ] {
            let patience = Patience { spin, awake };
            let numbers: Vec<Rising> = (0..5).map(|_| Rising::new(0)).collect();
            run(numbers.len(), |thread| {
                let before = (thread + numbers.len() - 1) % numbers.len();
                for round in 0..300 {
                    match thread {
                        0 if round == 0 => {}
                        0 => numbers[before].wait(round - 1, patience),
                        _ => numbers[before].wait(round, patience),
                    }
                    numbers[thread].raise(round + 1);
                }
            })
            .unwrap();
            assert!(numbers.iter().all(|n| n.get() == 300));
        }
    }

    /// Nanoseconds for which the calling thread has had a core.
    #[cfg(target_os = "linux")]
    fn time_on_core() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_waits_long_sleeps() {
        let number = Rising::new(0);
        run(2, |thread| {
            if thread == 0 {
                std::thread::sleep(Duration::from_millis(200));
                number.raise(1);
            } else if let Some(before) = time_on_core() {
                number.wait(0, Patience::of(1));
                let after = time_on_core().unwrap_or(u64::MAX);
                assert!(after - before < 50_000_000, "{} ns", after - before);
            }
        })
        .unwrap();
    }
}
