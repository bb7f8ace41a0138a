//! How far a run is: a bar on a terminal, a line every tenth of the steps elsewhere.

use crate::render::Voice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Thread};
use std::time::{Duration, Instant};
use torre_compiler::cost::gcells;
use torre_runtime::run::Watch;

/// The time after which the bar is drawn anew.
const INTERVAL: Duration = Duration::from_millis(100);

/// Lines follow each other in no less time than this, so that short runs have none.
const LINES: Duration = Duration::from_secs(1);

/// The extent of a run, for its bar.
pub struct Extent {
    /// Cells of the domain.
    pub cells: u64,
    /// Steps to do.
    pub steps: u64,
    /// Cell-stages of a step, as progress counts them.
    pub cell_stages: u64,
    /// Whether a check runs as well.
    pub check: bool,
}

/// Runs `work` on this thread while another one shows how far it is.
pub fn show<R>(voice: &Voice, extent: &Extent, watch: &Watch, work: impl FnOnce() -> R) -> R {
    if voice.quiet || extent.cell_stages == 0 || extent.steps == 0 {
        return work();
    }
    if !voice.terminal {
        return lines(voice, extent, watch, work);
    }
    let bar = ProgressBar::with_draw_target(Some(extent.steps), ProgressDrawTarget::stderr());
    let template = "{wide_bar} {pos}/{len} steps  {msg}";
    bar.set_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let result = beside(
        |elapsed| {
            let now = Now::of(extent, watch, elapsed);
            bar.set_message(now.says(extent));
            bar.set_position(now.done as u64);
        },
        work,
    );
    bar.finish_and_clear();
    result
}

fn lines<R>(voice: &Voice, extent: &Extent, watch: &Watch, work: impl FnOnce() -> R) -> R {
    let mut tenths = Tenths::default();
    let line = |elapsed| {
        let now = Now::of(extent, watch, elapsed);
        if let Some(line) = tenths.line(&now, extent, elapsed) {
            voice.note(line);
        }
    };
    beside(line, work)
}

/// Runs `work` on this thread while another one looks on, with the time since the beginning. Without a thread for it
/// nothing is seen.
fn beside<R>(mut look: impl FnMut(Duration) + Send, work: impl FnOnce() -> R) -> R {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = Builder::new().spawn_scoped(scope, || {
            let start = Instant::now();
            while !ended.load(Ordering::Acquire) {
                look(start.elapsed());
                std::thread::park_timeout(INTERVAL);
            }
        });
        let _end = End {
            ended: &ended,
            watcher: watcher.ok().map(|watcher| watcher.thread().clone()),
        };
        work()
    })
}

/// Ends the thread that looks on, also where the work panics: the end of the process would wait for it.
struct End<'a> {
    ended: &'a AtomicBool,
    watcher: Option<Thread>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(watcher) = &self.watcher {
            watcher.unpark();
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
struct Now {
    /// Steps of the run.
    done: f64,
    /// Steps of the check, where one runs as well.
    checked: f64,
    seconds: f64,
}

impl Now {
    fn of(extent: &Extent, watch: &Watch, elapsed: Duration) -> Self {
        let steps = |progress: &torre_runtime::simulation::Progress| {
            progress.done.load(Ordering::Relaxed) as f64 / extent.cell_stages as f64
        };
        Self {
            done: steps(&watch.run),
            checked: steps(&watch.check),
            seconds: elapsed.as_secs_f64(),
        }
    }

    /// Rate and time left, or how far the check is. At first there is no time to tell a rate from.
    fn says(&self, extent: &Extent) -> String {
        if extent.check && self.checked > 0.0 {
            return format!("verifying, {:.0} steps checked", self.checked);
        }
        if self.seconds < INTERVAL.as_secs_f64() {
            return String::new();
        }
        let rate = self.done * extent.cells as f64 / self.seconds;
        let left = self.seconds * (extent.steps as f64 / self.done - 1.0);
        match left.is_finite() {
            true => format!("{} Gcells/s  {} left", gcells(rate), duration(left)),
            false => String::new(),
        }
    }
}

/// Which lines were written.
#[derive(Debug, Default)]
struct Tenths {
    /// The last tenth of the steps that was passed.
    passed: u64,
    written: Duration,
}

impl Tenths {
    /// The line of a tenth that was passed: `40 %, 400 of 1000 steps, 0.35 Gcells/s, 12 s left`. The end has a report
    /// instead.
    fn line(&mut self, now: &Now, extent: &Extent, elapsed: Duration) -> Option<String> {
        let tenth = (10.0 * now.done / extent.steps as f64) as u64;
        let is_due = tenth > self.passed && elapsed.saturating_sub(self.written) >= LINES;
        if !is_due || tenth >= 10 {
            return None;
        }
        self.passed = tenth;
        self.written = elapsed;
        let says = now.says(extent).replace("  ", ", ");
        let (percent, done) = (10 * tenth, now.done as u64);
        Some(format!(
            "{percent} %, {done} of {} steps, {says}",
            extent.steps
        ))
    }
}

/// A time as people say it: `1 h 5 min`, `3 min 20 s`, `12 s`.
pub fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_have_a_line_every_tenth_and_none_of_short_runs() {
        let extent = Extent {
            cells: 1_000_000,
            steps: 1000,
            cell_stages: 1,
            check: false,
        };
        let lines = |total: f64| {
            let mut tenths = Tenths::default();
            let mut lines = Vec::new();
            for n in 0..=1000 {
                let seconds = total * f64::from(n) / 1000.0;
                let now = Now {
                    done: f64::from(n),
                    checked: 0.0,
                    seconds,
                };
                lines.extend(tenths.line(&now, &extent, Duration::from_secs_f64(seconds)));
            }
            lines
        };
        let long = lines(100.0);
        assert_eq!(long.len(), 9, "{long:?}");
        assert_eq!(
            long[3],
            "40 %, 400 of 1000 steps, 0.0100 Gcells/s, 1 min 0 s left"
        );
        assert_eq!(lines(0.9).len(), 0);
        assert_eq!(lines(5.0).len(), 4, "a second lies between two lines");
    }

    #[test]
    fn a_panic_of_the_work_ends_the_look_at_it() {
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let work: fn() = || panic!("a defect");
            let ended = std::panic::catch_unwind(|| beside(|_| (), work));
            send.send(ended.is_err()).unwrap();
        });
        let ended = receive.recv_timeout(Duration::from_secs(60));
        assert_eq!(ended, Ok(true));
    }

    #[test]
    fn the_first_look_tells_no_rate() {
        let extent = Extent {
            cells: 1_000_000,
            steps: 1000,
            cell_stages: 1,
            check: false,
        };
        let says = |seconds: f64| {
            let now = Now {
                done: 0.5,
                checked: 0.0,
                seconds,
            };
            now.says(&extent)
        };
        assert_eq!(says(2e-5), "");
        assert_eq!(says(0.1), "0.00500 Gcells/s  3 min 20 s left");
    }

    #[test]
    fn durations_read_well() {
        for (seconds, text) in [
            (0.2, "0 s"),
            (59.7, "1 min 0 s"),
            (200.0, "3 min 20 s"),
            (3900.0, "1 h 5 min"),
            (-1.0, "0 s"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
