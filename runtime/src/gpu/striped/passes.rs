//! Passes: their time blocks, and their operations as work for the devices' queues.

use super::{Striped, Unit, failed};
use crate::gpu::device::{Device, DeviceError};
use crate::gpu::interruptions::EvenHeights;
use crate::gpu::queues::{ByteLines, Signal, WorkQueue};
use crate::gpu::recorder::Description;
use crate::gpu::tower_blocks::{Listed, Ready, TableMemory, tower_threads};
use crate::host::threads;
use crate::simulation::{Progress, Value};
use crate::timeline::Kind;
use std::sync::atomic::Ordering;
use torre_compiler::backend::gpu::abi::TowerBuffers;
use torre_compiler::injection::Driven;
use torre_compiler::lattice::Interval;
use torre_compiler::pipeline::{StripeAction, StripeOp, StripeOps, StripeQueue};

/// A time block of a pass.
#[derive(Clone, Debug)]
pub(super) struct BlockState {
    steps: u64,
    /// Steps of the pass before it.
    from: u64,
    /// The value from which progress counts, on each device.
    since: Vec<u32>,
}

/// The description of an operation of a pass for the record; `first`: the number of the pass's first operation there.
fn description(
    op: &StripeOp,
    queue: WorkQueue,
    pass: u64,
    amount: u64,
    first: usize,
) -> Description {
    let (kind, name) = match op.action {
        StripeAction::Run { block, launch, .. } => (
            Kind::Run,
            format!("pass {pass}, block {block}, launch {launch}"),
        ),
        StripeAction::Send { block, to, .. } => (
            Kind::Send,
            format!("pass {pass}, block {block}, to GPU {to}"),
        ),
    };
    Description {
        device: op.queue.stripe(),
        queue,
        queue_name: match op.queue {
            StripeQueue::Blocks { slot, .. } => format!("blocks {slot}"),
            StripeQueue::Links { slot, up: true, .. } => format!("up {slot}"),
            StripeQueue::Links { slot, .. } => format!("down {slot}"),
        },
        kind,
        name,
        amount,
        after: op.after.iter().map(|before| first + before).collect(),
    }
}

fn unknown() -> DeviceError {
    failed("running an operation", "it is none of the pass")
}

impl Unit {
    /// Gives back the tables of time blocks, but for the heights of some; no pass is in flight. Whether there were any.
    fn give_back_unused(
        &mut self,
        device: &dyn Device,
        blocks: &[BlockState],
    ) -> Result<bool, DeviceError> {
        let is_used = |steps: &u64| blocks.iter().any(|block| block.steps == *steps);
        let unused = self.ready.keys().filter(|steps| !is_used(steps));
        let unused: Vec<u64> = unused.copied().collect();
        for steps in &unused {
            if let Some(ready) = self.ready.remove(steps) {
                self.table_memory.give_back_of(device, ready)?;
            }
        }
        Ok(!unused.is_empty())
    }
}

impl<T: Value> Striped<'_, T> {
    /// Makes the towers of a time block ready on all devices, if it can be run, for a pass that begins with some other
    /// ones. Where memory is short, tables of heights that these do not have are given back.
    pub(super) fn make_ready(
        &mut self,
        steps: u64,
        before: &[BlockState],
    ) -> Result<bool, DeviceError> {
        // Lists of towers are long.
        if self
            .units
            .iter()
            .all(|unit| unit.ready.contains_key(&steps))
        {
            return Ok(true);
        }
        let scheme = self.calculation.scheme;
        let known = self
            .program
            .stripes
            .height(scheme, &self.calculation.layout, steps);
        let Some(height) = known else {
            return Ok(false);
        };
        let lists = height.lists.clone();
        let (towers, layout) = (&self.program.towers, &self.program.layout);
        for (number, list) in lists.into_iter().enumerate() {
            let unit = &mut self.units[number];
            if unit.ready.contains_key(&steps) {
                continue;
            }
            let device = self.peers.device(number);
            let make = |memory: &mut TableMemory| {
                let of = Listed {
                    towers: &towers.program.towers,
                    list: list.clone(),
                    steps,
                };
                Ready::new(memory, device, towers, scheme, layout, &self.points, of)
            };
            let ready = match make(&mut unit.table_memory) {
                Err(DeviceError::Memory { .. }) if unit.give_back_unused(device, before)? => {
                    make(&mut unit.table_memory)?
                }
                other => other?,
            };
            let Ok(ready) = ready else {
                return Ok(false);
            };
            unit.ready.insert(steps, ready);
        }
        Ok(true)
    }

    /// The time blocks of the next pass, which ends where something is due: they are as high as the towers of the
    /// schedule, or a little lower and all about alike.
    fn blocks(&mut self, until: u64) -> Result<Vec<BlockState>, DeviceError> {
        let towers = &self.program.towers;
        let heights = EvenHeights::new(towers.steps, &towers.program.towers);
        let end = self.steps + self.interruptions.room(self.steps, until);
        let last = self.steps + self.pass_steps;
        let (mut blocks, mut step) = (Vec::new(), self.steps);
        while step < end && step + self.program.towers.steps <= last {
            let steps = heights.next(end - step).unwrap_or(0);
            if steps == 0 || !self.make_ready(steps, &blocks)? {
                let message = format!("they do not reach step {end} from step {step}");
                return Err(failed("advancing by time blocks", message));
            }
            blocks.push(BlockState {
                steps,
                from: step - self.steps,
                since: Vec::new(),
            });
            step += steps;
        }
        for (number, unit) in self.units.iter_mut().enumerate() {
            let device = self.peers.device(number);
            for ready in unit.ready.values_mut() {
                ready.renew(device)?;
            }
            for block in &mut blocks {
                let ready = unit.ready.get_mut(&block.steps).ok_or_else(unknown)?;
                block.since.push(ready.since);
                ready.since = ready.time_block.over(ready.since);
            }
        }
        Ok(blocks)
    }

    /// Runs a pass, up to a step at most.
    pub(super) fn pass(&mut self, until: u64, progress: &Progress) -> Result<(), DeviceError> {
        let blocks = self.blocks(until)?;
        let steps: u64 = blocks.iter().map(|block| block.steps).sum();
        let heights: Vec<u64> = blocks.iter().map(|block| block.steps).collect();
        let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
        let in_flight = self.program.in_flight;
        let pass = self
            .program
            .stripes
            .pass(scheme, layout, &heights, in_flight);
        let pass = pass.ok_or_else(unknown)?;
        self.send_waves(steps)?;
        self.clear_records(steps)?;
        // Writes are complete before the pass begins.
        for (number, unit) in self.units.iter().enumerate() {
            let device = self.peers.device(number);
            let written = device.signal(WorkQueue::OWN)?;
            for queue in unit.queues.values() {
                device.follow(*queue, written)?;
            }
            device.forget(written);
        }
        let mut ops = pass.list();
        let mut signals = Vec::new();
        let issued = self.issue_all(&mut ops, &blocks, &mut signals);
        let ops = ops.listed();
        let arrived = self.arrive_all(ops, &blocks, &signals, progress);
        let peers = self.peers;
        if let Some(recorder) = self.recorder.as_mut().filter(|_| arrived.is_ok()) {
            recorder.settle(&|number| peers.device(number), |_| true)?;
        }
        self.passes += 1;
        for (op, signal) in ops.iter().zip(&signals) {
            self.peers.device(op.queue.stripe()).forget(*signal);
        }
        issued?;
        arrived?;
        self.keep_probes(steps)?;
        self.steps += steps;
        self.take_slices()
    }

    /// Gives all operations to their queues, while later ones are listed.
    fn issue_all(
        &mut self,
        ops: &mut StripeOps<'_>,
        blocks: &[BlockState],
        signals: &mut Vec<Signal>,
    ) -> Result<(), DeviceError> {
        let mut left = true;
        while left {
            let more = ops.advance();
            left = more.map_err(|error| failed("laying out stripes", error))?;
            let ops = ops.listed();
            for op in &ops[signals.len()..] {
                let signal = self.issue(op, ops, blocks, signals)?;
                signals.push(signal);
            }
        }
        Ok(())
    }

    /// Waits for all that was asked for, block by block.
    fn arrive_all(
        &self,
        ops: &[StripeOp],
        blocks: &[BlockState],
        signals: &[Signal],
        progress: &Progress,
    ) -> Result<(), DeviceError> {
        let mut result = Ok(());
        for (number, state) in blocks.iter().enumerate() {
            for (op, signal) in ops.iter().zip(signals) {
                let (StripeAction::Run { block, .. } | StripeAction::Send { block, .. }) =
                    op.action;
                if block == number {
                    let arrived = self.peers.device(op.queue.stripe()).arrive(*signal);
                    result = result.and(arrived);
                }
            }
            let done = state.steps * self.per_step;
            progress.done.fetch_add(done, Ordering::Relaxed);
        }
        result
    }

    /// Gives an operation to its queue, behind the operations for which it waits.
    fn issue(
        &mut self,
        op: &StripeOp,
        ops: &[StripeOp],
        blocks: &[BlockState],
        signals: &[Signal],
    ) -> Result<Signal, DeviceError> {
        let stripe = op.queue.stripe();
        let device = self.peers.device(stripe);
        let queue = self.units[stripe].queues.get(&op.queue);
        let queue = *queue.ok_or_else(unknown)?;
        for before in &op.after {
            let of = ops[*before].queue.stripe();
            match of == stripe {
                true => device.follow(queue, signals[*before])?,
                false => self
                    .peers
                    .follow_peer(stripe, queue, of, signals[*before])?,
            }
        }
        let begun = match &self.recorder {
            Some(recorder) => Some(recorder.begin(device, queue)?),
            None => None,
        };
        let amount = match op.action {
            StripeAction::Run { block, launch, .. } => {
                self.launches += 1;
                self.run_launch(stripe, queue, &blocks[block], launch)?
            }
            StripeAction::Send {
                from, to, planes, ..
            } => self.send([from, to], queue, planes)?,
        };
        if let (Some(recorder), Some(begun)) = (&mut self.recorder, begun) {
            // All operations of passes are recorded in their order.
            let first = recorder.count() - signals.len();
            let operation = description(op, queue, self.passes, amount, first);
            recorder.end(device, begun, operation)?;
        }
        device.signal(queue)
    }

    /// Towers that are run.
    fn run_launch(
        &self,
        stripe: usize,
        queue: WorkQueue,
        block: &BlockState,
        launch: i64,
    ) -> Result<u64, DeviceError> {
        let (unit, device) = (&self.units[stripe], self.peers.device(stripe));
        let mut all = 0;
        let ready: &Ready = unit.ready.get(&block.steps).ok_or_else(unknown)?;
        let height = self.program.stripes.known(block.steps);
        let number = height.and_then(|height| height.stripes[stripe].index(launch));
        let number = number.ok_or_else(unknown)?;
        let waves = block.from * self.injections.waves_per_step() as u64 * 8;
        let records = block.from * self.record_bytes();
        let buffers = TowerBuffers {
            array: unit.array.0,
            waves: unit.waves.offset(waves as i64).0,
            records: unit.records.offset(records as i64).0,
            ..ready.buffers.clone()
        };
        let time_block = &ready.time_block;
        for z_block in 0..time_block.z_blocks.len() {
            let since = block.since[stripe];
            let launch = time_block.launch(&buffers, &unit.volumes, since, z_block, number);
            let towers = u32::try_from(launch.towers).unwrap_or(u32::MAX);
            if towers == 0 {
                continue;
            }
            let threads = tower_threads(time_block, towers.min(unit.clusters));
            // SAFETY: the parameters are the ones that the compiler lists; the rows that the stripe's towers access lie
            // in the array of the stripe's layout, profiles in arrays over the boxes of volume sources, and there are
            // waves of all steps of the pass, and room for their records.
            unsafe { device.start_in(queue, unit.function, threads, &launch.arguments) }?;
            all += u64::from(towers);
        }
        Ok(all)
    }

    /// Copies planes of the overlap of two stripes; how many bytes.
    fn send(
        &mut self,
        stripes: [usize; 2],
        queue: WorkQueue,
        planes: Interval,
    ) -> Result<u64, DeviceError> {
        let mut all = 0;
        let layout = &self.program.layout;
        let below = stripes[0].min(stripes[1]);
        let rows = self.program.stripes.overlap(below);
        let planes = self.program.stripes.along(planes);
        let size = layout.element_bytes as i64;
        for lines in layout.part(planes, rows) {
            let bytes = ByteLines {
                length: (lines.length * size) as u64,
                stride: (lines.stride * size) as u64,
                count: lines.count as u64,
            };
            let places = stripes.map(|n| self.units[n].array.offset(lines.first * size));
            self.peers.send(stripes, queue, places, bytes)?;
            all += bytes.length * bytes.count;
        }
        self.sent += all;
        Ok(all)
    }

    /// Brings the waves of the next steps to the devices.
    fn send_waves(&mut self, steps: u64) -> Result<(), DeviceError> {
        if self.injections.waves_per_step() == 0 {
            return Ok(());
        }
        let of = Driven {
            scheme: self.calculation.scheme,
            problem: self.calculation.problem,
            files: self.files,
        };
        let mut bytes = Vec::new();
        let steps = self.steps..self.steps + steps;
        self.injections
            .wave_bytes(&of, steps, threads::available(), &mut bytes);
        for (number, unit) in self.units.iter().enumerate() {
            self.peers.device(number).write(unit.waves, &bytes)?;
        }
        Ok(())
    }
}
