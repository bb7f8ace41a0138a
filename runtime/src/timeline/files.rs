//! Timelines as files: tables, and traces that `chrome://tracing` and Perfetto show.

use super::{Kind, Timeline};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line per operation.
    Csv,
    /// The trace event format of Chrome.
    Json,
}

impl Format {
    /// The format of a file, by the end of its name; `None` for other names.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            _ => None,
        }
    }

    /// The content of a file.
    pub fn text(self, timeline: &Timeline) -> String {
        match self {
            Format::Csv => csv(timeline),
            Format::Json => format!("{}\n", chrome_json(timeline)),
        }
    }
}

/// The columns of a table.
const COLUMNS: &str = "device,queue,kind,operation,towers,bytes,asked,begin,end\n";

/// A line per operation: times in seconds from the beginning of the record, towers of launches, bytes of copies.
pub fn csv(timeline: &Timeline) -> String {
    let mut out = COLUMNS.to_owned();
    for op in &timeline.operations {
        let [towers, bytes] = match op.kind.computes() {
            true => [op.amount, 0],
            false => [0, op.amount],
        };
        let queue = &timeline.queues[op.queue];
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{},{queue},{},\"{}\",{towers},{bytes},{:.6},{:.6},{:.6}",
            op.device,
            op.kind.name(),
            op.name,
            op.asked,
            op.begin,
            op.end,
        );
    }
    out
}

/// A trace: devices are processes and queues threads, times are in microseconds.
pub fn chrome_json(timeline: &Timeline) -> Value {
    let micro = |seconds: f64| (seconds * 1e9).round() / 1e3;
    let mut events: Vec<Value> = Vec::new();
    for (device, name) in timeline.devices.iter().enumerate() {
        events.push(json!({
            "name": "process_name", "ph": "M", "pid": device,
            "args": { "name": format!("{device}: {name}") },
        }));
        for (queue, name) in timeline.queues.iter().enumerate() {
            events.push(json!({
                "name": "thread_name", "ph": "M", "pid": device, "tid": queue, "args": { "name": name },
            }));
        }
    }
    for op in &timeline.operations {
        let amount = match op.kind {
            Kind::Run => "towers",
            Kind::Gather => "values",
            _ => "bytes",
        };
        events.push(json!({
            "name": op.name, "cat": op.kind.name(), "ph": "X",
            "pid": op.device, "tid": op.queue,
            "ts": micro(op.begin), "dur": micro(op.end - op.begin),
            "args": { "kind": op.kind.name(), amount: op.amount, "asked": micro(op.asked) },
        }));
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}
