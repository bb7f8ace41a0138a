//! The parts of the grid that threads advance in each stage of a layerwise run.
//!
//! Each thread has a share of the grid, the same in all stages, whose values its caches and the memory near it hold.
//! The second half of a share is cut into pieces. A thread that is done with its own share takes pieces of other
//! shares, so that a thread without a core, or with a slower core, does not keep all threads waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use torre_compiler::lattice::{Interval, div_ceil};

/// Pieces of the second half of a share, at most.
const PIECES: i64 = 4;

/// The shares of all threads, of which each thread takes parts stage by stage.
pub struct Shares {
    of_threads: Vec<Share>,
}

/// The share of a thread. It lies on cache lines of its own, as all threads count in it.
#[repr(align(128))]
struct Share {
    parts: Vec<Interval>,
    /// Parts that were taken in all stages together; each stage adds the number of parts.
    taken: AtomicU64,
}

impl Share {
    /// A part that no thread has taken yet in the stage of this number.
    fn take(&self, stage: u64) -> Option<Interval> {
        let count = self.parts.len() as u64;
        let end = (stage + 1) * count;
        let next = |taken| (taken < end).then_some(taken + 1);
        let taken = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        taken.ok().map(|n| self.parts[(n % count) as usize])
    }
}

impl Shares {
    /// Indices `0..length` for `threads` threads. Shares and pieces begin at multiples of `grain`; pieces have at least
    /// `least` indices, but for the last one of the grid, which has up to `grain` less.
    pub fn new(length: i64, threads: usize, grain: i64, least: i64) -> Shares {
        let cut = |thread: usize| match thread == threads {
            true => length,
            false => length * thread as i64 / threads as i64 / grain * grain,
        };
        let share = |thread| Share {
            parts: parts(
                Interval::new(cut(thread), cut(thread + 1)),
                grain,
                least.max(1),
            ),
            taken: AtomicU64::new(0),
        };
        Shares {
            of_threads: (0..threads).map(share).collect(),
        }
    }

    /// The parts that a thread takes in a stage, one after the other: its own, then the ones that others have left.
    /// Stages are counted from 0, and separated by a wait for all threads.
    pub fn of(&self, thread: usize, stage: u64) -> impl Iterator<Item = Interval> + '_ {
        let shares = (0..self.of_threads.len()).map(move |n| (thread + n) % self.of_threads.len());
        shares.flat_map(move |n| std::iter::from_fn(move || self.of_threads[n].take(stage)))
    }
}

/// The first half of a share, and pieces of the second one.
fn parts(share: Interval, grain: i64, least: i64) -> Vec<Interval> {
    let half = share.len() / 2;
    let each = div_ceil(div_ceil(half, PIECES).max(least), grain) * grain;
    let count = half / each;
    let first = div_ceil(share.hi - count * each, grain) * grain;
    let mut cuts = vec![share.lo];
    cuts.extend((0..count).map(|n| first + n * each));
    cuts.push(share.hi);
    let parts = cuts.windows(2).map(|cut| Interval::new(cut[0], cut[1]));
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::super::threads::run;
    use super::super::waiting::Barrier;
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn parts_make_up_the_grid() {
        for length in [1, 5, 16, 100, 257, 4096] {
            for threads in 1..=length.min(20) {
                for (grain, least) in [(1, 1), (1, 8), (16, 16), (16, 100)] {
                    let shares = Shares::new(length, threads as usize, grain, least);
                    let mut all: Vec<Interval> = shares.of(0, 0).collect();
                    all.sort_by_key(|part| (part.lo, part.hi));
                    let mut at = 0;
                    for part in &all {
                        assert_eq!(part.lo, at);
                        at = part.hi;
                    }
                    assert_eq!(at, length);
                    for Share { parts, .. } in &shares.of_threads {
                        assert!(parts.len() <= 1 + PIECES as usize);
                        for piece in &parts[1..] {
                            assert!(piece.lo % grain == 0 && piece.len() > least - grain);
                            assert!(piece.len() >= least || piece.hi == length);
                        }
                        let whole: i64 = parts.iter().map(|part| part.len()).sum();
                        assert!(2 * parts[0].len() >= whole);
                    }
                }
            }
        }
    }

    #[test]
    fn a_thread_has_its_own_part_first() {
        let shares = Shares::new(64, 4, 1, 2);
        let first = |thread, stage| shares.of(thread, stage).next();
        for stage in 0..3 {
            for thread in [2, 0, 3, 1] {
                let lo = 16 * thread as i64;
                assert_eq!(first(thread, stage), Some(Interval::new(lo, lo + 8)));
            }
            let rest: Vec<Interval> = shares.of(1, stage).collect();
            assert_eq!(rest.len(), 16);
            assert_eq!(rest[0], Interval::new(24, 26));
            assert_eq!(first(3, stage), None);
        }
    }

    #[test]
    fn each_part_is_taken_once_in_each_stage() {
        let threads = 4;
        let stages = 200;
        let shares = Shares::new(100, threads, 1, 3);
        let barrier = Barrier::new(threads);
        let taken = Mutex::new(vec![Vec::new(); stages]);
        run(threads, |thread| {
            for stage in 0..stages {
                for part in shares.of(thread, stage as u64) {
                    taken.lock().unwrap()[stage].push((part.lo, part.hi));
                }
                barrier.wait();
            }
        })
        .unwrap();
        for mut stage in taken.into_inner().unwrap() {
            stage.sort_unstable();
            let mut at = 0;
            for (lo, hi) in stage {
                assert_eq!(lo, at);
                at = hi;
            }
            assert_eq!(at, 100);
        }
    }
}
