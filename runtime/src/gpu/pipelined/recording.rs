//! The record of when operations ran.

use super::Pipelined;
use super::pass_state::Record;
use crate::gpu::device::DeviceError;
use crate::gpu::queues::{Queues, WorkQueue};
use crate::gpu::recorder::{Begun, Description, Recorder};
use crate::simulation::Value;
use crate::timeline::Kind;
use std::collections::BTreeMap;
use torre_compiler::pipeline::{Action, Op, OpId, Queue};

fn kind(action: Action) -> Kind {
    match action {
        Action::Load { .. } => Kind::Load,
        Action::Store { .. } => Kind::Store,
        Action::Slide { .. } => Kind::Slide,
        Action::Run { .. } => Kind::Run,
        Action::Gather { .. } => Kind::Gather,
    }
}

fn name(op: &Op) -> String {
    let pass = op.pass;
    match op.action {
        Action::Load { planes } => format!("pass {pass}, load {} to {}", planes.lo, planes.hi),
        Action::Store { planes } => format!("pass {pass}, store {} to {}", planes.lo, planes.hi),
        Action::Slide { places, by } => format!("slide of {} planes by {by}", places.len()),
        Action::Run { block, group } => format!("pass {pass}, block {block}, group {group}"),
        Action::Gather { block, output, .. } => {
            format!("pass {pass}, block {block}, output {output}")
        }
    }
}

fn queue_name(queue: Queue) -> String {
    match queue {
        Queue::Loads => "loads".to_owned(),
        Queue::Stores => "stores".to_owned(),
        Queue::Blocks(n) => format!("blocks {n}"),
    }
}

impl<T: Value> Pipelined<'_, T> {
    /// Records when operations run, from now on.
    #[inline(never)]
    pub fn with_timeline(mut self) -> Result<Self, DeviceError> {
        let devices = self.devices;
        self.record = Some(Record {
            recorder: Recorder::new(devices.count(), &|number| devices.device(number))?,
            numbers: BTreeMap::new(),
        });
        Ok(self)
    }

    /// The device of an operation among the devices of the record.
    fn recorded_device(&self, op: &Op) -> usize {
        self.devices.index(self.builder.window().device(op.pass))
    }

    /// Begins the record of an operation, behind the operations for which it waits.
    pub(super) fn begin_record(
        &self,
        op: &Op,
        queue: WorkQueue,
    ) -> Result<Option<Begun>, DeviceError> {
        let Some(record) = &self.record else {
            return Ok(None);
        };
        let device: &dyn Queues = self.devices.device(self.recorded_device(op));
        record.recorder.begin(device, queue).map(Some)
    }

    /// Behind an operation.
    pub(super) fn end_record(
        &mut self,
        op: &Op,
        queue: WorkQueue,
        begun: Begun,
        amount: u64,
    ) -> Result<(), DeviceError> {
        let number = self.recorded_device(op);
        let Some(record) = &mut self.record else {
            return Ok(());
        };
        let after = op.after.iter().filter_map(|id| record.numbers.get(id));
        let operation = Description {
            device: number,
            queue,
            queue_name: queue_name(op.queue),
            kind: kind(op.action),
            name: name(op),
            amount,
            after: after.copied().collect(),
        };
        let device = self.devices.device(number);
        let own = record.recorder.end(device, begun, operation)?;
        record.numbers.insert(op.id, own);
        Ok(())
    }

    /// Finds out when operations of a pass ran, which are over.
    pub(super) fn settle_record(&mut self, ops: &[OpId]) -> Result<(), DeviceError> {
        let Some(record) = &mut self.record else {
            return Ok(());
        };
        let numbers = ops.iter().filter_map(|id| record.numbers.get(id));
        let over: std::collections::BTreeSet<usize> = numbers.copied().collect();
        let devices = self.devices;
        record
            .recorder
            .settle(&|number| devices.device(number), |n| over.contains(&n))
    }
}
