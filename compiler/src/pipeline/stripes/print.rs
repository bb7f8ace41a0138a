//! A pass over several devices as text.

use super::{StripeAction, StripeLaunches, StripeOp, StripeQueue, StripedPass, Stripes};
use std::fmt;

/// Stripes, a pass, and its operations.
pub struct PrintedStripes<'a> {
    pub stripes: &'a Stripes,
    pub pass: &'a StripedPass,
    pub ops: &'a [StripeOp],
}

impl fmt::Display for StripeQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StripeQueue::Blocks { stripe, slot } => write!(f, "device {stripe} blocks {slot}"),
            StripeQueue::Links { stripe, slot, up } => {
                let way = if *up { "up" } else { "down" };
                write!(f, "device {stripe} {way} {slot}")
            }
        }
    }
}

impl fmt::Display for PrintedStripes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PrintedStripes { stripes, pass, ops } = self;
        writeln!(f, "{} time blocks in flight", pass.in_flight)?;
        for (device, rows) in stripes.rows().iter().enumerate() {
            write!(f, "device {device}: rows {rows} along the second axis")?;
            let overlap = stripes.overlap(device);
            match overlap.is_empty() {
                true => writeln!(f)?,
                false => writeln!(f, ", {overlap} also on device {}", device + 1)?,
            }
        }
        for (number, block) in pass.blocks.iter().enumerate() {
            let launches: usize = block.stripes.iter().map(StripeLaunches::len).sum();
            writeln!(
                f,
                "  block {number}: {} steps, {launches} launches",
                block.steps
            )?;
        }
        for (id, op) in ops.iter().enumerate() {
            let action = match op.action {
                StripeAction::Run { block, launch, .. } => {
                    format!("run block {block} launch {launch}")
                }
                StripeAction::Send {
                    block, to, planes, ..
                } => format!(
                    "send planes {} of block {block} to device {to}",
                    stripes.along(planes)
                ),
            };
            write!(f, "{id:>5}  {:<18} {action}", op.queue.to_string())?;
            if !op.after.is_empty() {
                let after: Vec<String> = op.after.iter().map(usize::to_string).collect();
                write!(f, "  after {}", after.join(", "))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
