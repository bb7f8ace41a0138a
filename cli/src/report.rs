//! The report of a run: `report.json`, and the lines on stdout.

use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;
use torre_compiler::cost::gcells;
use torre_compiler::scheme::Scheme;
use torre_runtime::run::{Count, Times};
use torre_runtime::simulation::BlowUp;

/// The outcome of a run.
pub struct Report {
    /// The data that are needed to repeat the run.
    pub provenance: Map<String, Value>,
    /// The identity of the run's results among results of others, if it wrote any.
    pub identity: Option<Value>,
    /// Whether all was written, the checkpoint of the end included.
    pub complete: bool,
    /// Files that it wrote outside of the folder of results.
    pub files: Vec<PathBuf>,
    pub scheme: String,
    pub problem: String,
    pub domain: Vec<i64>,
    pub cells: u64,
    /// Steps of the problem.
    pub steps: u64,
    /// Steps done by this process, after a checkpoint fewer.
    pub steps_run: u64,
    pub precision: String,
    /// In short, such as `llvm`.
    pub backend: String,
    /// With versions and vectors.
    pub code: String,
    pub schedule: String,
    /// As `--schedule` takes it.
    pub schedule_text: Option<String>,
    pub threads: usize,
    pub devices: Vec<String>,
    /// The newest CUDA that the driver knows.
    pub cuda: Option<String>,
    /// Stepping, and the work that goes with it.
    pub times: Times,
    /// From the text to the resolved calculation.
    pub reading: Duration,
    /// The choice of a schedule.
    pub planning: Duration,
    pub compiling: Duration,
    /// Start values, tables and memory, and code for a check.
    pub preparing: Duration,
    /// From the start of the command.
    pub total: Duration,
    /// The values of each component at the end; `None` where a blow-up ended the run early.
    pub counts: Option<Vec<Count>>,
    pub blow_up: Option<BlowUp>,
    /// Whether machine code came from the cache.
    pub cached: bool,
    pub field_bytes: u64,
    /// Bytes of values of a thread on a GPU that registers do not hold.
    pub spilled: u64,
    pub peak_bytes: Option<u64>,
    /// By level of memory; unknown levels are left out.
    pub bytes_per_cell_step: Vec<(String, f64)>,
    pub predicted_gcells_per_s: Option<f64>,
    /// The learned rate, if there is one: as a rate, for programs, and in a line.
    pub learned_gcells_per_s: Option<f64>,
    pub learned: Value,
    pub learned_text: Option<String>,
    /// The planes that the GPU holds, where time blocks are in flight.
    pub window: Option<Value>,
    /// The schedules that were compared, if the run was tuned: for programs, and in a line.
    pub tuning: Option<Value>,
    pub tuning_text: Option<String>,
    /// How far planes lie from each other on a GPU, if that was decided: for programs, and in a line.
    pub planes: Option<Value>,
    pub planes_text: Option<String>,
    /// The work and the waits of GPUs, if they were recorded.
    pub timeline: Option<Value>,
    /// The calculation with which every value was compared.
    pub verified: Option<String>,
}

/// The counts of a component.
fn counted(count: &Count) -> Value {
    json!({
        "component": count.component,
        "values": count.values,
        "nan": count.nan,
        "infinite": count.infinite,
        "largest": count.largest,
    })
}

/// Where a blow-up was found.
fn blow_up(found: &BlowUp) -> Value {
    json!({
        "component": found.component,
        "at": found.at,
        "step": found.step,
        "value": match found.value.is_finite() {
            true => json!(found.value),
            // JSON has no numbers for `NaN`, `inf` and `-inf`.
            false => json!(found.value.to_string()),
        },
    })
}

/// The cells of a scheme's domain per axis.
pub fn domain(scheme: &Scheme) -> Vec<i64> {
    let present = scheme.grid.present();
    present.map(|axis| scheme.grid.cells[axis]).collect()
}

impl Report {
    /// Cell-steps per second in units of 1e9; `None` if no time was measured, or where a blow-up ended the run: parts
    /// of the domain may be further then.
    pub fn gcells_per_s(&self) -> Option<f64> {
        if self.blow_up.is_some() {
            return None;
        }
        let rate =
            self.cells as f64 * self.steps_run as f64 / self.times.stepping.as_secs_f64() / 1e9;
        rate.is_finite().then_some(rate)
    }

    pub fn json(&self) -> Value {
        let bytes: serde_json::Map<String, Value> = self
            .bytes_per_cell_step
            .iter()
            .map(|(level, bytes)| (level.clone(), json!(bytes)))
            .collect();
        let counts = self.counts.as_ref();
        let sum = |of: fn(&Count) -> u64| counts.map(|all| all.iter().map(of).sum::<u64>());
        let values = counts.map(|all| all.iter().map(counted).collect::<Vec<Value>>());
        let files = self.files.iter().map(|file| file.display().to_string());
        let mut report = json!({
            "torre": env!("CARGO_PKG_VERSION"),
            "scheme": self.scheme,
            "problem": self.problem,
            "domain": self.domain,
            "cells": self.cells,
            "steps": self.steps,
            "steps_run": self.steps_run,
            "seconds": self.times.stepping.as_secs_f64(),
            "gcells_per_s": self.gcells_per_s(),
            "predicted_gcells_per_s": self.predicted_gcells_per_s,
            "learned_gcells_per_s": self.learned_gcells_per_s,
            "learned": self.learned,
            "backend": self.backend,
            "code": self.code,
            "schedule": self.schedule,
            "schedule_text": self.schedule_text,
            "precision": self.precision,
            "threads": self.threads,
            "devices": self.devices,
            "cuda": self.cuda,
            "bytes_per_cell_step": bytes,
            "compile_seconds": self.compiling.as_secs_f64(),
            "wall_seconds": {
                "reading": self.reading.as_secs_f64(),
                "planning": self.planning.as_secs_f64(),
                "compiling": self.compiling.as_secs_f64(),
                "preparing": self.preparing.as_secs_f64(),
                "stepping": self.times.stepping.as_secs_f64(),
                "writing": self.times.writing.as_secs_f64(),
                "checkpoints": self.times.checkpoints.as_secs_f64(),
                "verifying": self.times.verifying.as_secs_f64(),
                "counting": self.times.counting.as_secs_f64(),
                "total": self.total.as_secs_f64(),
            },
            "compiled_from_cache": self.cached,
            "field_memory_bytes": self.field_bytes,
            "peak_memory_bytes": self.peak_bytes,
            "verified": self.verified,
            "complete": self.complete,
            "identity": self.identity,
            "files": files.collect::<Vec<_>>(),
            "nan": sum(|count| count.nan),
            "infinite": sum(|count| count.infinite),
            "values": values,
        });
        if self.cuda.is_some() {
            report["spilled_bytes_of_thread"] = self.spilled.into();
        }
        if let Some(found) = &self.blow_up {
            report["blow_up"] = blow_up(found);
        }
        if let Some(window) = &self.window {
            report["window"] = window.clone();
        }
        if let Some(tuning) = &self.tuning {
            report["tuning"] = tuning.clone();
        }
        if let Some(planes) = &self.planes {
            report["planes"] = planes.clone();
        }
        if let Some(timeline) = &self.timeline {
            report["timeline"] = timeline.clone();
        }
        for (key, value) in &self.provenance {
            report[key] = value.clone();
        }
        report
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let domain: Vec<String> = self.domain.iter().map(i64::to_string).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{}: {} steps of {} cells in {}, {}",
            self.problem,
            self.steps_run,
            domain.join(" x "),
            seconds(self.times.stepping),
            match self.gcells_per_s() {
                Some(rate) => format!("{} Gcells/s", gcells(rate * 1e9)),
                None => "no time at all".to_owned(),
            },
        );
        let _ = writeln!(
            out,
            "  {}, {}, {}, {} thread{}",
            self.code,
            self.schedule,
            self.precision,
            self.threads,
            if self.threads == 1 { "" } else { "s" },
        );
        let _ = writeln!(
            out,
            "  compiled in {}{}, fields of {}",
            seconds(self.compiling),
            if self.cached { " (from the cache)" } else { "" },
            bytes(self.field_bytes),
        );
        if let Some(tuning) = &self.tuning_text {
            let _ = writeln!(out, "  {tuning}");
        }
        if let Some(planes) = &self.planes_text {
            let _ = writeln!(out, "  {planes}");
        }
        if let (Some(text), Some(predicted)) = (&self.learned_text, self.predicted_gcells_per_s) {
            let predicted = gcells(predicted * 1e9);
            let _ = writeln!(out, "  expected {predicted} Gcells/s, modelled; {text}");
        }
        if let Some(check) = &self.verified {
            let _ = writeln!(
                out,
                "  verified: all values equal those of {check}, bit by bit"
            );
        }
        out
    }
}

fn seconds(time: Duration) -> String {
    let s = time.as_secs_f64();
    match s {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}

/// Decimals for three significant digits.
fn decimals(value: f64) -> usize {
    (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize
}

/// A size in units in which it is from 1 to 1000, and their name.
fn scaled(n: u64) -> (f64, &'static str) {
    let value = n as f64;
    match n {
        1000..1_000_000 => (value / 1e3, "kB"),
        1_000_000..1_000_000_000 => (value / 1e6, "MB"),
        1_000_000_000..1_000_000_000_000 => (value / 1e9, "GB"),
        _ => (value / 1e12, "TB"),
    }
}

/// A size as people say it.
pub fn bytes(n: u64) -> String {
    if n < 1000 {
        return format!("{n} B");
    }
    let (value, unit) = scaled(n);
    format!("{value:.*} {unit}", decimals(value))
}

/// The same of a size that is needed: rounded up, so that the size that is said is enough.
pub fn bytes_up(n: u64) -> String {
    if n < 1000 {
        return format!("{n} B");
    }
    let (value, unit) = scaled(n);
    let decimals = decimals(value);
    let parts = 10f64.powi(decimals as i32);
    format!("{:.decimals$} {unit}", (value * parts).ceil() / parts)
}

/// Adds the entries of an object to another one.
pub fn extend(all: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (all, more) {
        all.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        for (n, text) in [
            (17, "17 B"),
            (1000, "1.00 kB"),
            (402_653_184, "403 MB"),
            (9_876_543_210, "9.88 GB"),
            (u64::MAX, "18446744 TB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        for (n, text) in [
            (17, "17 B"),
            (1000, "1.00 kB"),
            (1_001_000, "1.01 MB"),
            (402_100_000, "403 MB"),
            (9_870_000_001, "9.88 GB"),
        ] {
            assert_eq!(bytes_up(n), text);
        }
    }

    #[test]
    fn a_blow_up_has_a_number_where_it_is_one() {
        for (value, shown) in [
            (1.5e30, json!(1.5e30)),
            (f64::NAN, json!("NaN")),
            (f64::INFINITY, json!("inf")),
            (f64::NEG_INFINITY, json!("-inf")),
        ] {
            let found = BlowUp {
                component: "u".to_owned(),
                at: vec![1, 2],
                step: 7,
                value,
                zone: None,
            };
            assert_eq!(blow_up(&found)["value"], shown);
        }
    }
}
