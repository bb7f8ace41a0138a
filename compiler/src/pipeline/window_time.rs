//! How long the operations of a window take.

use super::pace::{self, Work};
use super::{Action, LaidOut};
use std::collections::BTreeMap;

/// Seconds of operations.
pub struct WindowSeconds<'a> {
    /// Of the launch of a group, by the steps of its time block and its number: no other launch begins meanwhile.
    pub launch: &'a dyn Fn(u64, i64) -> f64,
    /// From the time at which a device could go on with another launch to the end of a launch.
    pub tail: f64,
    /// Of a copy of a plane from the host or back.
    pub plane: f64,
    /// Of a copy of a plane within the device's memory.
    pub moved: f64,
    /// From the end of an operation to the beginning of another one that waits for it.
    pub signal: f64,
}

impl LaidOut {
    /// Seconds that all operations take. A device does one launch after the other, and at the same time a copy each
    /// way.
    pub fn time(&self, of: &WindowSeconds<'_>) -> f64 {
        let mut works: Vec<Work> = Vec::with_capacity(self.ops.len());
        let mut last = BTreeMap::new();
        for (number, op) in self.ops.iter().enumerate() {
            let device = self.window.device(op.pass);
            let mut after: Vec<usize> = op.after.iter().map(|id| *id as usize).collect();
            after.extend(last.insert((device, op.queue), number));
            let (resource, occupies, tail) = match op.action {
                Action::Run { block, group } => {
                    let pass = self.passes.get(op.pass as usize);
                    let steps = pass.and_then(|pass| pass.blocks.get(block));
                    let occupies = steps.map_or(0.0, |own| (of.launch)(own.steps, group));
                    (0, occupies, of.tail + of.signal)
                }
                Action::Gather { .. } => (0, 0.0, of.signal),
                Action::Load { planes } => (1, of.plane * planes.len() as f64, of.signal),
                Action::Store { planes } => (2, of.plane * planes.len() as f64, of.signal),
                // Nothing else goes on, as everything waits for it.
                Action::Slide { places, .. } => (1, of.moved * places.len() as f64, of.signal),
            };
            works.push(Work {
                resource: 3 * device + resource,
                occupies,
                takes: occupies + tail,
                after,
            });
        }
        pace::ends(&works).into_iter().fold(0.0, f64::max)
    }
}
