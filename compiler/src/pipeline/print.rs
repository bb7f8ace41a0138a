//! A pipeline as text.

use super::footprint::along;
use super::{Action, Op, Pass, PassBlock, Queue, Window};
use crate::lattice::Interval;
use std::fmt;

/// A line for an operation of a queue: its number, its action, and the operations for which it waits. Planes are
/// counted along the way of the pass.
pub(super) fn write_op(f: &mut fmt::Formatter<'_>, op: &Op, queue: &str, way: i64) -> fmt::Result {
    let shown = |planes: Interval| along(way, planes);
    let action = match op.action {
        Action::Load { planes } => format!("load {}", shown(planes)),
        Action::Run { block, group } => format!("run block {block} group {group}"),
        Action::Gather {
            block,
            output,
            planes,
        } => format!("gather {} output {output} block {block}", shown(planes)),
        Action::Store { planes } => format!("store {}", shown(planes)),
        Action::Slide { places, by } => format!("slide places {places} by {by}"),
    };
    write!(f, "{:>5}  {queue:<9} {action}", op.id)?;
    if !op.after.is_empty() {
        let after: Vec<String> = op.after.iter().map(u64::to_string).collect();
        write!(f, "  after {}", after.join(", "))?;
    }
    writeln!(f)
}

/// A window, its passes, and the operations of them.
pub struct Printed<'a> {
    pub window: &'a Window,
    pub passes: &'a [Pass],
    pub ops: &'a [Op],
    /// Along the outer axis towers move up (1) or down (-1).
    pub way: i64,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Loads => f.write_str("loads"),
            Queue::Stores => f.write_str("stores"),
            Queue::Blocks(n) => write!(f, "blocks {n}"),
        }
    }
}

impl Printed<'_> {
    /// Planes of the array as it counts them.
    fn planes(&self, planes: Interval) -> Interval {
        along(self.way, planes)
    }

    fn block(&self, f: &mut fmt::Formatter<'_>, number: usize, block: &PassBlock) -> fmt::Result {
        let behind = |(earlier, needs): (usize, &std::sync::Arc<[i64]>)| {
            let lags = needs
                .iter()
                .zip(block.first..)
                .map(|(need, own)| need - own);
            let lag = lags.max()?;
            Some(format!("block {earlier} by {lag} groups"))
        };
        let behind: Vec<String> = block.needs.iter().enumerate().filter_map(behind).collect();
        write!(
            f,
            "  block {number}: {} steps, groups {}..{}",
            block.steps,
            block.first,
            block.end()
        )?;
        match behind.last() {
            Some(last) => writeln!(f, ", behind {last}"),
            None => writeln!(f),
        }
    }

    fn op(&self, f: &mut fmt::Formatter<'_>, op: &Op) -> fmt::Result {
        let queue = match self.window.devices {
            0 | 1 => op.queue.to_string(),
            _ => format!("device {} {}", self.window.device(op.pass), op.queue),
        };
        write_op(f, op, &queue, self.way)
    }
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Window {
            planes,
            buffer,
            devices,
            in_flight,
            ahead,
            ..
        } = self.window;
        let planes = self.planes(*planes);
        write!(f, "planes {planes}, ")?;
        if let Some(ring) = self.window.ring {
            write!(f, "counted on around a ring of {ring}, ")?;
        }
        write!(f, "{in_flight} time blocks in flight")?;
        match devices {
            0 | 1 => writeln!(f)?,
            _ => writeln!(
                f,
                " on each of {devices} devices, which take passes in turns"
            )?,
        }
        match buffer.places() {
            Some(places) => {
                let around = match self.window.is_circular() {
                    true => ", which go around",
                    false => "",
                };
                writeln!(
                    f,
                    "buffer of {places} planes{around}, {ahead} groups loaded ahead"
                )?
            }
            None => writeln!(f, "all of them on the device")?,
        }
        for (number, pass) in self.passes.iter().enumerate() {
            writeln!(f, "\npass {number}")?;
            if let Some(ring_part) = pass.ring_part {
                let [loaded, stored] = [ring_part.loaded, ring_part.stored].map(|p| self.planes(p));
                writeln!(f, "  loads planes {loaded}, stores {stored}")?;
            }
            for (number, block) in pass.blocks.iter().enumerate() {
                self.block(f, number, block)?;
            }
            for op in self.ops.iter().filter(|op| op.pass == number as u64) {
                self.op(f, op)?;
            }
        }
        Ok(())
    }
}
