//! Slabs and their operations as text.

use super::{BUFFERS, LaidOutSlabs, Slab};
use crate::lattice::Interval;
use crate::pipeline::Op;
use crate::pipeline::footprint::along;
use crate::pipeline::print::write_op;
use std::fmt;

/// Slabs with their operations.
pub struct PrintedSlabs<'a>(pub &'a LaidOutSlabs);

impl PrintedSlabs<'_> {
    /// Planes of the array as it counts them.
    fn planes(&self, planes: Interval) -> Interval {
        along(self.0.way, planes)
    }

    fn slab(&self, f: &mut fmt::Formatter<'_>, number: usize, slab: &Slab) -> fmt::Result {
        writeln!(
            f,
            "\npass {} slab {number}: base {}, loaded {}, held {}",
            slab.pass,
            self.planes(slab.base),
            self.planes(slab.loaded),
            self.planes(slab.held)
        )?;
        for (number, block) in slab.work.blocks.iter().enumerate() {
            let (steps, first, end) = (block.steps, block.first, block.end());
            writeln!(f, "  block {number}: {steps} steps, groups {first}..{end}")?;
        }
        Ok(())
    }

    fn op(&self, f: &mut fmt::Formatter<'_>, op: &Op) -> fmt::Result {
        let LaidOutSlabs { window, way, .. } = self.0;
        let devices = (window.devices / BUFFERS).max(1);
        let queue = match devices {
            1 => op.queue.to_string(),
            _ => format!("device {} {}", window.device(op.pass) % devices, op.queue),
        };
        write_op(f, op, &queue, *way)
    }
}

impl fmt::Display for PrintedSlabs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaidOutSlabs {
            window, slabs, ops, ..
        } = self.0;
        let several = match window.devices / BUFFERS {
            0 | 1 => String::new(),
            devices => format!(" on each of {devices} devices"),
        };
        writeln!(
            f,
            "planes {}, two buffers of {} planes{several}, {} time blocks in flight",
            self.planes(window.planes),
            window.places().unwrap_or(0),
            window.in_flight
        )?;
        for (number, slab) in slabs.iter().enumerate() {
            self.slab(f, number, slab)?;
            for op in ops.iter().filter(|op| op.pass == number as u64) {
                self.op(f, op)?;
            }
        }
        Ok(())
    }
}
