//! `--timeline`: when launches and copies of GPUs ran.

use crate::args;
use crate::failure::Failure;
use crate::report::bytes;
use crate::window::Held;
use crate::write;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::path::Path;
use torre_runtime::timeline::{DeviceTimes, Format, Timeline, summary};

/// Calculations with operations that are recorded.
const RECORDED: &str = "`--timeline` records time blocks in flight on GPUs: it goes with `--backend cuda` and \
    `--window device`, `host`, `slabs` or a folder, or with several `--devices`";

/// Causes of waiting that are shown.
const CAUSES: usize = 6;

/// The format of a file; refuses other names, and that of the report.
pub fn format(args: &args::Run) -> Result<Option<(&Path, Format)>, Failure> {
    let Some(file) = args.timeline.as_deref() else {
        return Ok(None);
    };
    let Some(format) = Format::of(file) else {
        return Err(Failure::usage(format!(
            "`--timeline {}`: the name of a timeline ends in `.json` or `.csv`",
            file.display()
        )));
    };
    if args::report_file(args.report.as_deref()) == Some(file) {
        return Err(Failure::usage(
            "`--timeline` and `--report` name the same file",
        ));
    }
    Ok(Some((file, format)))
}

/// Refuses a timeline of a run that has no time blocks in flight.
pub fn check(args: &args::Run, held: Option<&Held>) -> Result<(), Failure> {
    match (format(args)?, held) {
        (Some(_), None) => Err(Failure::usage(RECORDED)),
        _ => Ok(()),
    }
}

/// Writes a timeline to its file.
pub fn write(args: &args::Run, timeline: Option<&Timeline>) -> Result<(), Failure> {
    match (format(args)?, timeline) {
        (Some((file, format)), Some(timeline)) => {
            write::file(file, format.text(timeline).as_bytes())
        }
        _ => Ok(()),
    }
}

/// The entries of a report for a timeline.
pub fn json(timeline: &Timeline) -> Json {
    let devices = summary(timeline).into_iter().map(|times| {
        let copies = times.copying.iter();
        let copies = copies.map(|(kind, seconds, bytes)| {
            json!({ "kind": kind.name(), "seconds": seconds, "bytes": bytes })
        });
        let causes = times.causes.iter();
        let causes = causes.map(
            |cause| json!({ "for": cause.name, "seconds": cause.seconds, "gaps": cause.gaps }),
        );
        json!({
            "device": times.device,
            "seconds": times.all,
            "computing": times.computing,
            "launches_together": times.together,
            "waiting": times.waiting,
            "before_first_launch": times.before,
            "after_last_launch": times.after,
            "launches": times.launches,
            "towers": times.towers,
            "copies": copies.collect::<Vec<_>>(),
            "waited": causes.collect::<Vec<_>>(),
        })
    });
    json!({
        "operations": timeline.operations.len(),
        "devices": devices.collect::<Vec<_>>(),
    })
}

/// For people: a line for the work of each device, and one for its waits.
pub fn text(timeline: &Timeline) -> String {
    let mut out = String::new();
    for times in summary(timeline) {
        let _ = writeln!(out, "  {}", line(&times));
        if let Some(causes) = causes(&times) {
            let _ = writeln!(out, "    {causes}");
        }
    }
    out
}

fn line(times: &DeviceTimes) -> String {
    let share = |seconds: f64| {
        format!(
            "{:.1} %",
            100.0 * seconds / times.all.max(f64::MIN_POSITIVE)
        )
    };
    let mut out = format!(
        "GPU {}: {:.3} s, computes {} of them, two launches at a time {}",
        times.device,
        times.all,
        share(times.computing),
        share(times.together),
    );
    for (kind, seconds, amount) in &times.copying {
        let rate = *amount as f64 / seconds.max(f64::MIN_POSITIVE);
        let _ = write!(
            out,
            "; {} {} ({}/s)",
            kind.name(),
            share(*seconds),
            bytes(rate as u64)
        );
    }
    out
}

fn causes(times: &DeviceTimes) -> Option<String> {
    let all = times.all.max(f64::MIN_POSITIVE);
    let share = |seconds: f64| format!("{:.1} %", 100.0 * seconds / all);
    let mut parts = Vec::new();
    let ends = [
        ("its first launch", times.before),
        ("other GPUs and copies at the end", times.after),
    ];
    for (name, seconds) in ends {
        if seconds > 0.0 {
            parts.push((name.to_owned(), seconds));
        }
    }
    let causes = times.causes.iter();
    parts.extend(causes.map(|cause| (cause.name.clone(), cause.seconds)));
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts.truncate(CAUSES);
    let parts = parts.into_iter();
    let parts: Vec<String> = parts
        .map(|(name, seconds)| format!("{name} {}", share(seconds)))
        .collect();
    let waits = format!("waits {} of the time: ", share(times.waiting));
    (!parts.is_empty()).then(|| waits + &parts.join(", "))
}
