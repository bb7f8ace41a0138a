//! Tuning: a long run takes its first steps by several schedules, times them, and goes on with the fastest one. All of
//! them give the same bits, so no step is lost.

use super::execution::Execution;
use crate::simulation::{Tried, TuningResult};
use std::time::Duration;

/// Timings of each schedule. Their median counts: a single timing may be disturbed, or find a higher clock.
const ROUNDS: usize = 4;
/// The length of a timing, in seconds, if time blocks are not longer.
const LENGTH: f64 = 0.4;
/// Time blocks of a timing at least: tiles have little to do at the beginning and at the end.
const TIME_BLOCKS: u64 = 2;
/// The largest share of a run's time that tuning takes. Most of it is not lost: a schedule is tried if it is expected
/// to be nearly as fast.
const SHARE: f64 = 1.0 / 8.0;
/// The first schedule stays unless another one takes less than this share of its time.
const WORTHWHILE: f64 = 0.95;
/// A schedule that takes this multiple of the fastest one's time is timed no further.
const HOPELESS: f64 = 1.3;

/// The runs that are tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuned {
    /// Runs that take several times as long as tuning.
    LongRuns,
    AllRuns,
}

/// A schedule that a run may take.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    pub execution: &'a Execution,
    /// Steps of a time block.
    pub height: u64,
    /// The expected time of a step, in seconds.
    pub step: f64,
}

/// Steps that were timed.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    pub steps: u64,
    pub time: Duration,
    /// Whether others used the machine.
    pub disturbed: bool,
}

/// Candidates that are timed one after the other, and again; the first one is expected to be fastest.
pub struct Tuning<'a> {
    entries: Vec<Entry<'a>>,
    /// Timings up to now, with the timings that hopeless candidates leave out.
    done: usize,
}

struct Entry<'a> {
    execution: &'a Execution,
    tried: Tried,
    /// Seconds of a step in the timings that nobody disturbed, in ascending order.
    steps: Vec<f64>,
}

impl<'a> Entry<'a> {
    fn new(candidate: &Candidate<'a>) -> Self {
        let height = candidate.height.max(1);
        let time_blocks = (LENGTH / candidate.step / height as f64).ceil() as u64;
        Self {
            execution: candidate.execution,
            tried: Tried {
                steps: time_blocks.max(TIME_BLOCKS).saturating_mul(height),
                ..Tried::default()
            },
            steps: Vec::new(),
        }
    }

    /// The time of a step in seconds, if it is known: the median.
    fn step(&self) -> Option<f64> {
        let (last, count) = (self.steps.len().checked_sub(1)?, self.steps.len());
        Some((self.steps[last / 2] + self.steps[count / 2]) / 2.0)
    }
}

impl<'a> Tuning<'a> {
    /// Tuning in a run of `steps` steps, of as many of the first candidates as it can afford; `None` where that leaves
    /// nothing to compare.
    pub fn new(candidates: &[Candidate<'a>], steps: u64, tuned: Tuned) -> Option<Self> {
        let affordable = match tuned {
            Tuned::LongRuns => SHARE * steps as f64 * candidates.first()?.step,
            Tuned::AllRuns => f64::INFINITY,
        };
        let mut entries = Vec::new();
        let mut time = 0.0;
        for candidate in candidates {
            let entry = Entry::new(candidate);
            time += ROUNDS as f64 * entry.tried.steps as f64 * candidate.step;
            if time > affordable {
                break;
            }
            entries.push(entry);
        }
        (entries.len() > 1).then_some(Self { entries, done: 0 })
    }

    /// The shortest run that can afford one, in seconds.
    pub fn shortest_run() -> f64 {
        (ROUNDS * 2) as f64 * LENGTH / SHARE
    }

    /// The schedule of the next steps, and their number, if at most `left` follow. Timings wait for as many steps as
    /// they take without a pause.
    pub fn next(&mut self, left: u64) -> (&'a Execution, u64) {
        while self.done < self.timings() {
            let entry = &self.entries[self.done % self.entries.len()];
            match self.is_hopeless(entry) {
                true => self.done += 1,
                false if entry.tried.steps <= left => return (entry.execution, entry.tried.steps),
                false => break,
            }
        }
        (self.entries[self.best()].execution, left)
    }

    /// Notes how long the steps that [`Self::next`] gave took.
    pub fn took(&mut self, timed: Timed) {
        let Timed {
            steps,
            time,
            disturbed,
        } = timed;
        let is_over = self.done >= self.timings();
        let number = self.done % self.entries.len();
        let entry = &mut self.entries[number];
        if is_over || steps != entry.tried.steps {
            return;
        }
        entry.tried.times.push(time);
        entry.tried.disturbed |= disturbed;
        if !disturbed {
            entry.steps.push(time.as_secs_f64() / steps as f64);
            entry.steps.sort_by(f64::total_cmp);
        }
        self.done += 1;
    }

    fn timings(&self) -> usize {
        ROUNDS * self.entries.len()
    }

    fn is_hopeless(&self, entry: &Entry<'_>) -> bool {
        let times = self.entries.iter().filter_map(Entry::step);
        let fastest = times.fold(f64::INFINITY, f64::min);
        entry.step().is_some_and(|own| own > HOPELESS * fastest)
    }

    /// The candidate to go on with. Without a timing of the first one that nobody disturbed nothing can be compared.
    fn best(&self) -> usize {
        let Some(mut least) = self.entries[0].step().map(|time| WORTHWHILE * time) else {
            return 0;
        };
        let mut best = 0;
        for (index, entry) in self.entries.iter().enumerate().skip(1) {
            if let Some(time) = entry.step().filter(|time| *time < least) {
                (least, best) = (time, index);
            }
        }
        best
    }

    /// How it went, as far as it is over.
    pub fn result(&self) -> TuningResult {
        TuningResult {
            taken: self.best(),
            tried: self
                .entries
                .iter()
                .map(|entry| entry.tried.clone())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEIGHT: u64 = 8;

    /// Candidates of time blocks of 8 steps, with these expected milliseconds of a step.
    fn tuning(expected: &[u64], steps: u64) -> Option<Tuning<'static>> {
        let candidate = |step: &u64| Candidate {
            execution: &Execution::Layerwise,
            height: HEIGHT,
            step: *step as f64 * 1e-3,
        };
        let candidates: Vec<Candidate<'_>> = expected.iter().map(candidate).collect();
        Tuning::new(&candidates, steps, Tuned::LongRuns)
    }

    /// Tunes a run whose candidates take some milliseconds for a step; `disturbed` timings take twice as long. Returns
    /// the candidates of all timings.
    fn run(tuning: &mut Tuning<'_>, real: &[u64], disturbed: &[usize]) -> Vec<usize> {
        let mut timings = Vec::new();
        loop {
            let (_, steps) = tuning.next(u64::MAX);
            if steps == u64::MAX {
                return timings;
            }
            let number = tuning.done % real.len();
            let is_disturbed = disturbed.contains(&timings.len());
            let factor = if is_disturbed { 2 } else { 1 };
            let time = Duration::from_millis(real[number] * steps * factor);
            tuning.took(Timed {
                steps,
                time,
                disturbed: is_disturbed,
            });
            timings.push(number);
        }
    }

    #[test]
    fn the_fastest_schedule_is_taken_if_it_is_worthwhile() {
        for (real, disturbed, taken) in [
            ([20, 16, 18], vec![], 1),
            ([20, 21, 18], vec![], 2),
            // Less than 5 percent.
            ([100, 96, 99], vec![], 0),
            ([20, 20, 20], vec![], 0),
            // Disturbed timings do not count: here all timings of one schedule.
            ([20, 16, 16], vec![1, 4, 7, 10], 2),
            ([20, 16, 18], vec![0], 1),
            ([20, 16, 18], vec![0, 3, 6, 9], 0),
        ] {
            let mut tuning = tuning(&[10, 11, 12], 1_000_000).unwrap();
            let timings = run(&mut tuning, &real, &disturbed);
            assert_eq!(tuning.result().taken, taken, "{real:?} {disturbed:?}");
            assert_eq!(timings, [0, 1, 2].repeat(ROUNDS), "{real:?}");
            let tried = tuning.result().tried;
            for tried in tried {
                // 0.4 s in whole time blocks.
                assert_eq!(tried.steps, 5 * HEIGHT);
                assert_eq!(tried.all_steps(), tried.steps * ROUNDS as u64);
            }
        }
    }

    #[test]
    fn single_timings_do_not_decide() {
        for (others, taken) in [([18, 18, 60, 18], 1), ([12, 20, 20, 20], 0)] {
            let mut tuning = tuning(&[10, 10], 1_000_000).unwrap();
            for other in others {
                for step in [20, other] {
                    let (_, steps) = tuning.next(u64::MAX);
                    let time = Duration::from_millis(step * steps);
                    tuning.took(Timed {
                        steps,
                        time,
                        disturbed: false,
                    });
                }
            }
            assert_eq!(tuning.result().taken, taken, "{others:?}");
        }
    }

    #[test]
    fn hopeless_schedules_are_timed_once() {
        let mut tuning = tuning(&[10, 10, 10], 1_000_000).unwrap();
        let timings = run(&mut tuning, &[10, 14, 9], &[]);
        assert_eq!(timings, [0, 1, 2, 0, 2, 0, 2, 0, 2]);
        assert_eq!(tuning.result().taken, 2);
    }

    #[test]
    fn short_runs_have_none() {
        // Four rounds of 40 steps for each of two.
        for (steps, is_there) in [(100, false), (2559, false), (2561, true)] {
            assert_eq!(tuning(&[10, 10], steps).is_some(), is_there, "{steps}");
        }
        assert!(tuning(&[10], 1_000_000).is_none());
        // Three take half as long again.
        for (steps, candidates) in [(3839, 2), (3841, 3)] {
            let tuning = tuning(&[10, 10, 10], steps).unwrap();
            assert_eq!(tuning.result().tried.len(), candidates);
        }
        // Steps that take long have timings of two time blocks.
        assert!(tuning(&[10_000, 10_000], 1023).is_none());
        assert!(tuning(&[10_000, 10_000], 1025).is_some());
    }

    #[test]
    fn timings_wait_for_steps_without_a_pause() {
        let mut tuning = tuning(&[10, 10], 1_000_000).unwrap();
        let of = |steps| Timed {
            steps,
            time: Duration::from_secs(1),
            disturbed: false,
        };
        for _ in 0..3 {
            assert_eq!(tuning.next(39).1, 39);
            tuning.took(of(39));
        }
        assert!(tuning.result().tried.iter().all(|t| t.times.is_empty()));
        assert_eq!(tuning.next(41).1, 40);
        tuning.took(of(40));
        assert_eq!(tuning.result().tried[0].all_steps(), 40);
        assert_eq!(tuning.done, 1);
    }
}
