//! The progress bar of a run: steps, rate, time left. Only on a terminal.

use crate::render::Voice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};
use torre_runtime::run::Watch;

/// The time after which the bar is drawn anew.
const INTERVAL: Duration = Duration::from_millis(100);

/// What a bar needs to know of a run.
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
    if voice.quiet || !voice.terminal || extent.cell_stages == 0 {
        return work();
    }
    let bar = ProgressBar::with_draw_target(Some(extent.steps), ProgressDrawTarget::stderr());
    let template = "{wide_bar} {pos}/{len} steps  {msg}";
    bar.set_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Without a thread for it there is no bar.
        let watcher = Builder::new().spawn_scoped(scope, || {
            let start = Instant::now();
            while !ended.load(Ordering::Acquire) {
                draw(&bar, extent, watch, start.elapsed());
                std::thread::park_timeout(INTERVAL);
            }
            bar.finish_and_clear();
        });
        let result = work();
        ended.store(true, Ordering::Release);
        if let Ok(watcher) = &watcher {
            watcher.thread().unpark();
        }
        result
    })
}

fn draw(bar: &ProgressBar, extent: &Extent, watch: &Watch, elapsed: Duration) {
    let steps = |progress: &torre_runtime::host::Progress| {
        progress.done.load(Ordering::Relaxed) as f64 / extent.cell_stages as f64
    };
    let done = steps(&watch.run);
    let checked = steps(&watch.check);
    let seconds = elapsed.as_secs_f64();
    let message = match extent.check && checked > 0.0 {
        true => format!("verifying, {checked:.0} steps checked"),
        false => {
            let rate = done * extent.cells as f64 / seconds / 1e9;
            let left = seconds * (extent.steps as f64 / done - 1.0);
            match left.is_finite() {
                true => format!("{rate:.3} Gcells/s  {} left", duration(left)),
                false => String::new(),
            }
        }
    };
    bar.set_message(message);
    bar.set_position(done as u64);
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
    use super::duration;

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
