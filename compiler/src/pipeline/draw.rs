//! Pictures of pipelines: planes from left to right, time upwards.

use super::{Action, LaidOut, Op, OpId, Queue};
use crate::lattice::Interval;
use crate::svg::{FAINT, Frame, INK, Label, PALETTE, Svg, fill, pale};
use std::collections::BTreeMap;

/// How long operations take, in launches.
#[derive(Clone, Copy, Debug)]
pub struct Durations {
    /// A copy of a plane between host and device.
    pub plane: f64,
}

/// When an operation runs.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: f64,
    end: f64,
}

/// The times of operations that begin as soon as the operations for which they wait are over, with one launch at a time
/// on a device.
fn timeline(laid_out: &LaidOut, durations: Durations) -> BTreeMap<OpId, Span> {
    let window = &laid_out.window;
    let mut spans: BTreeMap<OpId, Span> = BTreeMap::new();
    let mut queues: BTreeMap<(usize, Queue), f64> = BTreeMap::new();
    let mut busy = vec![0.0f64; window.devices.max(1)];
    for op in &laid_out.ops {
        let device = window.device(op.pass);
        let queue = queues.entry((device, op.queue)).or_default();
        let after = op.after.iter().filter_map(|id| spans.get(id));
        let ready = after.map(|span| span.end).fold(*queue, f64::max);
        let (start, takes) = match op.action {
            Action::Load { planes } | Action::Store { planes } => {
                (ready, durations.plane * planes.len() as f64)
            }
            Action::Run { .. } => (ready.max(busy[device]), 1.0),
            Action::Gather { .. } | Action::Slide { .. } => (ready, 0.0),
        };
        let span = Span {
            start,
            end: start + takes,
        };
        if matches!(op.action, Action::Run { .. }) {
            busy[device] = span.end;
        }
        *queue = span.end;
        spans.insert(op.id, span);
    }
    spans
}

const LOAD: &str = PALETTE[5];
const STORE: &str = PALETTE[4];

/// The colour of a time block of a pass.
fn colour(block: usize, blocks: usize) -> String {
    pale(PALETTE[0], 0.75 * block as f64 / blocks.max(1) as f64)
}

/// The mark of an operation in a picture: its planes as the array counts them, and a colour.
fn shown(laid_out: &LaidOut, op: &Op) -> Option<(Interval, String)> {
    let along = |planes| super::footprint::along(laid_out.way, planes);
    match op.action {
        Action::Load { planes } => Some((along(planes), LOAD.to_owned())),
        Action::Store { planes } => Some((along(planes), STORE.to_owned())),
        Action::Run { block, group } => {
            let blocks = &laid_out.passes.get(op.pass as usize)?.blocks;
            let planes = blocks.get(block)?.group(group)?.written;
            Some((along(planes), colour(block, blocks.len())))
        }
        Action::Gather { .. } | Action::Slide { .. } => None,
    }
}

/// A panel for each device.
pub fn timelines(laid_out: &LaidOut, durations: Durations) -> String {
    let spans = timeline(laid_out, durations);
    let end = spans.values().map(|span| span.end).fold(0.0, f64::max);
    let window = &laid_out.window;
    let planes = super::footprint::along(laid_out.way, window.planes);
    let devices = window.devices.max(1);
    let (width, height, gap) = (560.0, 420.0 / devices as f64 + 60.0, 62.0);
    let all = devices as f64 * (height + gap);
    let mut svg = Svg::new(width + 250.0, all + 20.0);
    for device in 0..devices {
        let frame = Frame {
            corner: [64.0, 20.0 + device as f64 * (height + gap)],
            size: [width, height],
            x: [planes.lo as f64, planes.hi as f64],
            y: [0.0, end],
        };
        frame.clip(&mut svg);
        svg.rect(frame.corner, frame.size, fill(FAINT).opacity(0.35));
        let own = laid_out.ops.iter();
        for op in own.filter(|op| window.device(op.pass) == device) {
            let Some(span) = spans.get(&op.id) else {
                continue;
            };
            if let Some((planes, colour)) = shown(laid_out, op) {
                let [left, top] = frame.place(planes.lo as f64, span.end);
                let [right, bottom] = frame.place(planes.hi as f64, span.start);
                let style = fill(&colour).outline(INK, 0.3);
                svg.rect([left, top], [right - left, bottom - top], style);
            }
        }
        svg.unclip();
        frame.border(&mut svg);
        frame.bottom_axis(&mut svg, "planes across the first axis");
        let title = match devices {
            1 => "time, in launches".to_owned(),
            _ => format!("GPU {device}: time, in launches"),
        };
        frame.left_axis(&mut svg, &title);
    }
    let most = laid_out.passes.iter().map(|pass| pass.blocks.len()).max();
    let most = most.unwrap_or(0);
    let blocks = (0..most).map(|n| (format!("time block {n}"), colour(n, most)));
    let entries = [("load".to_owned(), LOAD.to_owned())]
        .into_iter()
        .chain(blocks)
        .chain([("store".to_owned(), STORE.to_owned())]);
    for (n, (name, colour)) in entries.enumerate() {
        let y = 30.0 + 24.0 * n as f64;
        svg.rect(
            [width + 90.0, y],
            [18.0, 12.0],
            fill(&colour).outline(INK, 0.3),
        );
        svg.text([width + 116.0, y + 11.0], &name, Label::default());
    }
    svg.finish("Which planes copies and launches of a calculation window access, and when")
}
