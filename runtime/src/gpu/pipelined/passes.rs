//! Passes: their time blocks, and the preparations of these before a pass begins.

use super::pass_state::{BlockState, PassState};
use super::slices::{Slice, slice_bytes};
use super::unit::Lie;
use super::{Pipelined, most_blocks};
use crate::gpu::InFlight;
use crate::gpu::device::DeviceError;
use crate::gpu::interruptions::EvenHeights;
use crate::gpu::queues::WorkQueue;
use crate::gpu::tower_blocks::{Listed, Ready};
use crate::simulation::{Progress, Value};
use std::collections::BTreeSet;
use std::sync::PoisonError;
use torre_compiler::injection::Driven;
use torre_compiler::lattice::Interval;
use torre_compiler::pipeline::Pass;
use torre_compiler::problem::OutputKind;

impl<T: Value> Pipelined<'_, T> {
    /// Makes the towers of time blocks of `steps` steps ready on a device, if they can be run, for a pass of time
    /// blocks of some heights. Where memory is short, tables of heights that no pass needs are given back.
    pub(super) fn make_ready(
        &mut self,
        number: usize,
        steps: u64,
        heights: &BTreeSet<u64>,
    ) -> Result<bool, DeviceError> {
        if self.units[number].ready.contains_key(&steps) {
            return Ok(true);
        }
        let ready = match self.ready_of(number, steps) {
            Err(DeviceError::Memory { .. }) if self.give_back_unused(number, heights)? => {
                self.ready_of(number, steps)?
            }
            other => other?,
        };
        let possible = ready.is_some();
        self.units[number]
            .ready
            .extend(ready.map(|ready| (steps, ready)));
        Ok(possible)
    }

    /// Gives back the tables of time blocks of a device, but for heights of passes that have begun, and for these ones.
    /// Whether there were any.
    fn give_back_unused(
        &mut self,
        number: usize,
        heights: &BTreeSet<u64>,
    ) -> Result<bool, DeviceError> {
        let window = self.builder.window();
        let own = self
            .active
            .numbered()
            .filter(|(pass, _)| window.device(*pass) == number);
        let blocks = own.flat_map(|(_, state)| &state.blocks);
        let used: BTreeSet<u64> = blocks.map(|block| block.steps).collect();
        let unit = &mut self.units[number];
        let all = unit.ready.keys();
        let unused = all.filter(|steps| !used.contains(steps) && !heights.contains(steps));
        let unused: Vec<u64> = unused.copied().collect();
        for steps in &unused {
            if let Some(ready) = unit.ready.remove(steps) {
                let device = self.devices.device(number);
                unit.table_memory.give_back_of(device, ready)?;
            }
        }
        Ok(!unused.is_empty())
    }

    /// The towers of time blocks of `steps` steps, made ready on a device; `None` where they cannot be run.
    fn ready_of(&mut self, number: usize, steps: u64) -> Result<Option<Ready>, DeviceError> {
        let Some(list) = self.list_of(steps) else {
            return Ok(None);
        };
        let unit = &mut self.units[number];
        let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
        let (device, towers) = (self.devices.device(number), &self.towers);
        let of = Listed {
            towers: &towers.program.towers,
            list,
            steps,
        };
        let (points, is_cut) = (&self.points, self.slabs.is_some());
        unit.table_memory.attempt(|memory| {
            let ready = Ready::new(memory, device, towers, scheme, layout, points, of)?;
            let Ok(mut ready) = ready else {
                return Ok(None);
            };
            if is_cut {
                ready.cut_off(memory, device)?;
            }
            Ok(Some(ready))
        })
    }

    /// The height of the time block that begins at a step, of the time blocks up to a later one.
    fn height(&self, step: u64, until: u64) -> Option<u64> {
        let heights = EvenHeights::new(self.towers.steps, &self.towers.program.towers);
        heights.next(self.interruptions.room(step, until))
    }

    /// Whether the next pass, of the passes up to step `until`, finds room beside passes that are not over.
    pub(super) fn next_finds_room(&mut self, until: u64) -> Result<bool, DeviceError> {
        // Over files each device has a pass at a time.
        let alone = self.builder.is_idle() || self.over.is_some();
        if alone || self.builder.window().places().is_none() {
            return Ok(true);
        }
        let (blocks, _) = self.blocks_until(until)?;
        let pass = self.pass_of(&blocks).ok_or(DeviceError::TooLong)?;
        Ok(self.builder.has_room_for(pass))
    }

    /// The heights of the time blocks of the pass that begins after `from` steps, of the passes up to step `until`.
    fn heights(&self, from: u64, until: u64) -> Vec<u64> {
        let most = most_blocks(self.how());
        let mut heights = Vec::new();
        let (mut step, mut bytes) = (from, 0);
        while heights.len() < most
            && step < until
            && let Some(steps) = self.height(step, until)
        {
            let (_, after) = self.slices_after(step + steps, bytes);
            if after > self.slice_bytes && !heights.is_empty() {
                break;
            }
            (step, bytes) = (step + steps, after);
            heights.push(steps);
        }
        if let Some(low) = &self.low_passes {
            let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
            let mut low = low.lock().unwrap_or_else(PoisonError::into_inner);
            heights.truncate(low.blocks(scheme, layout, &heights));
        }
        heights
    }

    /// The step after which the pass ends that begins after `from` steps, of the passes up to step `until`.
    pub(super) fn end_of_pass(&self, from: u64, until: u64) -> u64 {
        from + self.heights(from, until).iter().sum::<u64>()
    }

    fn how(&self) -> InFlight {
        let window = self.builder.window();
        InFlight {
            blocks: window.in_flight,
            group: self.footprints.grouping().planes(),
            ahead: window.ahead,
            spread: window.spread,
            held: self.planes.held(),
        }
    }

    /// The time blocks of the next pass, of the passes up to step `until`, and the step after which it ends.
    pub(super) fn blocks_until(&self, until: u64) -> Result<(Vec<BlockState>, u64), DeviceError> {
        self.blocks_from(self.asked, until)
    }

    /// The same of a pass that begins after `from` steps.
    pub(super) fn blocks_from(
        &self,
        from: u64,
        until: u64,
    ) -> Result<(Vec<BlockState>, u64), DeviceError> {
        let mut blocks: Vec<BlockState> = Vec::new();
        let (mut step, mut bytes) = (from, 0);
        for steps in self.heights(from, until) {
            let (slices, after) = self.slices_after(step + steps, bytes);
            bytes = after;
            blocks.push(BlockState {
                steps,
                moved: 0,
                lie: Lie { steps, rotation: 0 },
                from: step - from,
                since: 0,
                slices,
                first: None,
            });
            step += steps;
        }
        if blocks.is_empty() && step < until {
            return Err(DeviceError::Failed {
                operation: "advancing by time blocks",
                message: format!("they do not reach step {until} from step {step}"),
            });
        }
        Ok((blocks, step))
    }

    /// Makes the time blocks of a pass ready on its device, and gives the value from which their progress counts.
    pub(super) fn count_on(
        &mut self,
        number: u64,
        blocks: &mut [BlockState],
    ) -> Result<(), DeviceError> {
        let window = self.builder.window().clone();
        let device = window.device(number);
        let mut active = self.active.first()..number;
        // Only before the first block counts: blocks of a height count on from each other.
        if active.all(|pass| window.device(pass) != device) {
            for ready in self.units[device].ready.values_mut() {
                ready.renew(self.devices.device(device))?;
            }
        }
        let heights: BTreeSet<u64> = blocks.iter().map(|block| block.steps).collect();
        for block in blocks.iter_mut() {
            let steps = block.steps;
            if !self.make_ready(device, steps, &heights)? {
                return Err(DeviceError::Failed {
                    operation: "advancing by time blocks",
                    message: format!("there are none of {steps} steps"),
                });
            }
            if let Some(ready) = self.units[device].ready.get_mut(&steps) {
                block.since = ready.since;
                ready.since = ready.time_block.over(ready.since);
            }
        }
        self.make_rotated(device, blocks)
    }

    /// Writes are complete before anything else of a pass begins.
    pub(super) fn follow_writes(&self, number: u64) -> Result<(), DeviceError> {
        let device = self.builder.window().device(number);
        let (unit, device) = (&self.units[device], self.devices.device(device));
        let written = device.signal(WorkQueue::OWN)?;
        for queue in unit.queues.all() {
            device.follow(queue, written)?;
        }
        device.forget(written);
        Ok(())
    }

    /// Begins the pass that comes next.
    pub(super) fn begin_pass(&mut self, until: u64) -> Result<(), DeviceError> {
        let number = self.builder.passes();
        let (blocks, step) = self.blocks_until(until)?;
        let mut state = PassState {
            blocks,
            ..PassState::default()
        };
        let pass = self.pass_of(&state.blocks).ok_or(DeviceError::TooLong)?;
        self.turn_blocks(&pass, &mut state);
        self.count_on(number, &mut state.blocks)?;
        self.send_waves(number, step)?;
        self.follow_writes(number)?;
        self.builder.begin(pass);
        self.active.begin(state);
        self.asked = step;
        Ok(())
    }

    /// The slices that are due after `step` steps, and where they end in the memory for them.
    fn slices_after(&self, step: u64, mut bytes: u64) -> (Vec<Slice>, u64) {
        let (scheme, problem) = (self.calculation.scheme, self.calculation.problem);
        let layout = &self.calculation.layout;
        let mut slices = Vec::new();
        if self.footprints.ring().is_some() {
            // The host takes them when a pass has ended.
            return (slices, bytes);
        }
        for (output, of) in problem.outputs.iter().enumerate() {
            if !step.is_multiple_of(of.every) || !matches!(of.kind, OutputKind::Slice { .. }) {
                continue;
            }
            slices.extend(Slice::new(scheme, problem, layout, output, step, bytes));
            bytes += slice_bytes(scheme, problem, layout, output);
        }
        (slices, bytes)
    }

    /// The pass of some time blocks.
    pub(super) fn pass_of(&mut self, blocks: &[BlockState]) -> Option<Pass> {
        let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
        let heights: Vec<u64> = blocks.iter().map(|block| block.steps).collect();
        let mut pass = self.footprints.pass(scheme, layout, &heights)?;
        let along = |planes: Interval| self.planes.of_array(planes);
        for (block, state) in pass.blocks.iter_mut().zip(blocks) {
            block.gathers = state
                .slices
                .iter()
                .map(|slice| along(slice.planes))
                .collect();
        }
        Some(pass)
    }

    /// Brings the waves of the steps of a pass to the device.
    pub(super) fn send_waves(&mut self, pass: u64, until: u64) -> Result<(), DeviceError> {
        if self.waves.per_step() == 0 {
            return Ok(());
        }
        let of = Driven {
            scheme: self.calculation.scheme,
            problem: self.calculation.problem,
            files: self.files,
        };
        let bytes = self.waves.bytes(&of, self.asked..until);
        let window = self.builder.window();
        let (number, before) = (window.device(pass), window.passes_before(pass));
        let device = self.devices.device(number);
        device.write(self.units[number].waves.of(before), bytes)
    }

    /// Waits for the first of the passes that have begun, and keeps its records.
    pub(super) fn end_pass(&mut self, progress: &Progress) -> Result<(), DeviceError> {
        let Some((pass, state)) = self.active.end() else {
            return Ok(());
        };
        let mut result = Ok(());
        let device = self.devices.device(self.builder.window().device(pass));
        for id in state.ends.values() {
            if let Some(own) = self.signals.get(id) {
                let arrived = device.arrive(own.signal);
                result = result.and(arrived);
            }
        }
        if result.is_ok() {
            result = self.settle_record(&state.ops);
        }
        for id in &state.ops {
            if let Some(own) = self.signals.remove(id) {
                device.forget(own.signal);
            }
        }
        result?;
        self.leave_lists(pass);
        self.keep_records(pass, &state)?;
        // A pass by slabs is over with its last one.
        if state.slab.is_none_or(|slab| slab.ends) {
            self.count(state.blocks.iter().map(|block| block.steps).sum(), progress);
        }
        Ok(())
    }
}
