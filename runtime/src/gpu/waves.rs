//! Waves of sources and incident fields, as the host computes them for a device: while the device works on some steps,
//! a thread computes the waves of the next ones.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use torre_compiler::injection::{Driven, Injections};

/// The approximate number of multiplications of the waves that are computed at a time, and the bounds of their steps.
const AT_A_TIME: u64 = 1 << 22;
const STEPS: [u64; 2] = [4, 256];

/// Bytes of waves that are computed ahead of need, if the waves of a few steps do not need more.
const AHEAD: u64 = 64 << 20;

/// The waves of a run, one step after the other.
pub(super) struct WaveStream<'a> {
    of: Driven<'a>,
    injections: Arc<Injections>,
    threads: usize,
    /// Bytes of a step.
    each: u64,
    /// Multiplications of a step.
    operations: u64,
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// Waves that are known and were not taken.
#[derive(Debug, Default)]
struct Queue {
    steps: Range<u64>,
    bytes: Vec<u8>,
    /// Whether a thread computes ahead.
    goes_on: bool,
}

impl Queue {
    /// Goes on with other steps than the next ones.
    fn begin(&mut self, step: u64) {
        if self.steps.start != step {
            self.steps = step..step;
            self.bytes.clear();
        }
    }
}

impl<'a> WaveStream<'a> {
    /// The waves of the steps of a problem, computed by at most `threads` threads.
    pub fn new(of: Driven<'a>, injections: Arc<Injections>, threads: usize) -> WaveStream<'a> {
        WaveStream {
            of,
            threads,
            each: injections.waves_per_step() as u64 * 8,
            operations: injections.operations(),
            injections,
            queue: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'q>(&self, queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        let queue = self.changed.wait(queue);
        queue.unwrap_or_else(PoisonError::into_inner)
    }

    fn at_a_time(&self) -> u64 {
        let [least, most] = STEPS;
        (AT_A_TIME / self.operations.max(1)).clamp(least, most)
    }

    /// Appends waves from a step on, up to the step that is returned: the waves of the needed steps, and of later steps
    /// as far as they are known, but none from `end` on.
    pub fn take(&self, needed: Range<u64>, end: u64, bytes: &mut Vec<u8>) -> u64 {
        let mut next = needed.start;
        let mut queue = self.queue();
        queue.begin(next);
        loop {
            let some = queue.steps.end.min(end) - next;
            let rest = queue.bytes.split_off((some * self.each) as usize);
            bytes.append(&mut std::mem::replace(&mut queue.bytes, rest));
            next += some;
            queue.steps.start = next;
            self.changed.notify_all();
            if next >= needed.end {
                return next;
            }
            if queue.goes_on {
                queue = self.wait(queue);
                continue;
            }
            drop(queue);
            self.injections
                .wave_bytes(&self.of, next..end, self.threads, bytes);
            self.queue().begin(end);
            return end;
        }
    }

    /// Whether computing the waves of some steps is worth a thread.
    fn is_worth_a_thread(&self, steps: Range<u64>) -> bool {
        let count = steps.end.saturating_sub(steps.start);
        self.each > 0 && self.operations.saturating_mul(count) > AT_A_TIME / 4
    }

    /// Does something while a thread computes waves ahead of need, from a step on.
    pub fn beside<R>(&self, steps: Range<u64>, work: impl FnOnce() -> R) -> R {
        if !self.is_worth_a_thread(steps.clone()) {
            return work();
        }
        std::thread::scope(|scope| {
            {
                let mut queue = self.queue();
                queue.begin(steps.start);
                queue.goes_on = true;
            }
            let ahead = || self.go_ahead(steps.end.max(self.of.problem.steps));
            let _end = End(self);
            if Builder::new().spawn_scoped(scope, ahead).is_err() {
                self.queue().goes_on = false;
            }
            work()
        })
    }

    /// Computes waves of steps before `last`, until they are not needed any more.
    fn go_ahead(&self, last: u64) {
        let _end = End(self);
        let most = (AHEAD / self.each.max(1)).max(STEPS[0]);
        let mut some = Vec::new();
        let mut queue = self.queue();
        while queue.goes_on {
            let first = queue.steps.end;
            let until = last.min(first + self.at_a_time());
            if first >= until || first - queue.steps.start >= most {
                queue = self.wait(queue);
                continue;
            }
            drop(queue);
            some.clear();
            self.injections
                .wave_bytes(&self.of, first..until, self.threads, &mut some);
            queue = self.queue();
            // Others may have begun elsewhere.
            if queue.steps.end == first {
                queue.steps.end = until;
                queue.bytes.append(&mut some);
            }
            self.changed.notify_all();
        }
    }
}

/// Says that no thread computes ahead, at the end of its scope.
struct End<'s, 'a>(&'s WaveStream<'a>);

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        self.0.queue().goes_on = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::host::{HostBinary, HostExpr};
    use torre_compiler::lattice::{Axis, HalfIndex};
    use torre_compiler::problem::{Problem, Source};
    use torre_compiler::scheme::{Precision, StageId};
    use torre_compiler::statics::NoFiles;
    use torre_compiler::testing::maxwell;

    /// Waves are the same whether they are computed ahead or when they are needed, in steps of any size, and where a
    /// run begins again elsewhere.
    #[test]
    fn waves_that_are_computed_ahead_are_those_of_their_steps() {
        let scheme = maxwell(2, Precision::F64, [12, 13, 11]);
        let along = HostExpr::Coordinate(Axis::INNER, HalfIndex::ZERO);
        let update = &scheme.stages[0].updates[0];
        let problem = Problem {
            steps: 300,
            sources: vec![Source {
                component: update.target,
                stage: StageId(0),
                region: update.region,
                condition: None,
                profile: HostExpr::Number(1.0),
                wave: HostExpr::binary(HostBinary::Mul, HostExpr::Time, along),
                replaces: false,
            }],
            ..Problem::default()
        };
        let of = Driven {
            scheme: &scheme,
            problem: &problem,
            files: &NoFiles,
        };
        let injections = Arc::new(Injections::new(&scheme, &problem, &NoFiles));
        let stream = WaveStream::new(of, injections.clone(), 2);
        assert!(stream.is_worth_a_thread(0..300), "{}", stream.operations);
        let expect = |steps: Range<u64>, bytes: &[u8]| {
            let mut expected = Vec::new();
            injections.wave_bytes(&of, steps.clone(), 1, &mut expected);
            assert!(expected == bytes, "{steps:?}");
        };
        let take = |step: u64, needed: u64, end: u64| {
            let mut bytes = Vec::new();
            let last = stream.take(step..step + needed, end, &mut bytes);
            assert!((step + needed..=end).contains(&last), "{step}: {last}");
            expect(step..last, &bytes);
            last
        };
        // Behind the last step of the problem, too.
        for (begin, until) in [(0, 200), (200, 340), (50, 300)] {
            let end = stream.beside(begin..until, || {
                let mut step = begin;
                for needed in (1..).map(|n| 1 + n * 7 % 40) {
                    let needed = needed.min(until - step);
                    step = take(step, needed, (step + 64).max(step + needed).min(until));
                    if step == until {
                        break;
                    }
                }
                step
            });
            // The remaining waves are taken without a thread.
            take(end, 5, end + 9);
        }
    }
}
