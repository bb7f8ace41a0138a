//! Passes by overlapped slabs: each slab is loaded with all planes on which its base depends, goes through all time
//! blocks of the pass, and stores its base. The two buffers of a device have units of their own, with the queues of the
//! device in common; several devices take slabs in turns.
//!
//! Values that slabs compute more than once are recorded once: a probe is recorded from the slab in whose base it lies,
//! and a slice is put together from the planes of all bases.

use super::kept::KeptPlanes;
use super::pass_state::{BlockState, PassState, SlabPart};
use super::slices::Slice;
use super::{BETWEEN_LOOKS, Pipelined};
use crate::gpu::device::DeviceError;
use crate::gpu::gather::numbers;
use crate::simulation::{Picture, Progress, RunError, Value, slice_shape};
use std::collections::BTreeMap;
use torre_compiler::lattice::Interval;
use torre_compiler::pipeline::{NoLayout, Op, Slab, SlabBuilder, wide_enough};
use torre_compiler::problem::OutputKind;

/// The slabs of a run.
pub(super) struct SlabRun {
    /// Planes of a base.
    pub base: i64,
    pub builder: SlabBuilder,
    /// Passes that have begun.
    passes: u64,
    /// Slices that are not whole yet, by output and step.
    pictures: BTreeMap<(usize, u64), Picture>,
}

impl SlabRun {
    pub fn new(base: i64, builder: SlabBuilder) -> SlabRun {
        SlabRun {
            base,
            builder,
            passes: 0,
            pictures: BTreeMap::new(),
        }
    }
}

fn failed(error: NoLayout) -> DeviceError {
    DeviceError::Failed {
        operation: "laying out slabs",
        message: error.to_string(),
    }
}

fn none() -> DeviceError {
    DeviceError::Failed {
        operation: "laying out slabs",
        message: "there are none".to_owned(),
    }
}

impl<T: Value> Pipelined<'_, T> {
    pub(super) fn advance_by_slabs(
        &mut self,
        until: u64,
        progress: &Progress,
    ) -> Result<(), RunError> {
        while self.asked < until {
            let done = self.slabs_until(until, progress);
            // Copies use the host's array until they are over, also after a failure.
            let ended = self.end_passes(progress);
            done?;
            ended?;
            self.steps = self.asked;
            self.calculation.set_steps(self.steps);
            if progress.guard.looks() {
                self.look()?;
            }
        }
        Ok(())
    }

    /// Runs some passes up to a step, all of their slabs.
    fn slabs_until(&mut self, until: u64, progress: &Progress) -> Result<(), DeviceError> {
        for _ in 0..BETWEEN_LOOKS {
            if self.asked < until {
                self.pass_by_slabs(until, progress)?;
            }
        }
        self.end_slabs()
    }

    /// Runs the slabs of one pass up to a step at most.
    pub(super) fn slabs_of_pass(
        &mut self,
        until: u64,
        progress: &Progress,
    ) -> Result<(), DeviceError> {
        self.pass_by_slabs(until, progress)?;
        self.end_slabs()
    }

    fn end_slabs(&mut self) -> Result<(), DeviceError> {
        let ops = self.slabs.as_mut().ok_or_else(none)?.builder.end();
        self.issue_all(&ops)
    }

    fn issue_all(&mut self, ops: &[Op]) -> Result<(), DeviceError> {
        ops.iter().try_for_each(|op| self.issue(op))
    }

    /// Begins the slabs of the pass that comes next.
    fn pass_by_slabs(&mut self, until: u64, progress: &Progress) -> Result<(), DeviceError> {
        let (blocks, step) = self.blocks_until(until)?;
        let heights: Vec<u64> = blocks.iter().map(|block| block.steps).collect();
        let run = self.slabs.as_mut().ok_or_else(none)?;
        let (base, pass) = (run.base, run.passes);
        let first = run.builder.slabs();
        run.passes += 1;
        let (scheme, layout) = (self.calculation.scheme, &self.calculation.layout);
        let slabs = self.footprints.slabs(scheme, layout, &heights, base);
        let slabs = slabs.ok_or_else(none)?;
        wide_enough(&slabs).map_err(failed)?;
        let over = self.over.as_mut();
        if let Some(KeptPlanes::Slabs(kept)) = over.and_then(|over| over.kept.as_mut()) {
            kept.begin(first, &slabs);
        }
        let last = slabs.len();
        for (number, slab) in (1..).zip(slabs) {
            let part = SlabPart {
                base: slab.base,
                ends: number == last,
            };
            let slab = Slab { pass, ..slab };
            let state = PassState {
                blocks: blocks.clone(),
                slab: Some(part),
                ..PassState::default()
            };
            self.begin_slab(slab, state, step, progress)?;
        }
        self.asked = step;
        Ok(())
    }

    /// Begins the next slab of a pass that ends after `step` steps.
    fn begin_slab(
        &mut self,
        mut slab: Slab,
        mut state: PassState,
        step: u64,
        progress: &Progress,
    ) -> Result<(), DeviceError> {
        let builder = |run: &Self| {
            let slabs = run.slabs.as_ref();
            slabs.map(|slabs| (slabs.builder.slabs(), slabs.builder.first_active()))
        };
        let (number, first) = builder(self).ok_or_else(none)?;
        while self.active.first() < first {
            self.end_pass(progress)?;
        }
        for (block, own) in state.blocks.iter_mut().zip(&mut slab.work.blocks) {
            block.first = Some(own.first);
            let slices = block.slices.iter();
            let planes = slices.map(|slice| self.planes.of_array(slice.planes));
            own.gathers = planes.collect();
        }
        self.count_on(number, &mut state.blocks)?;
        self.send_waves(number, step)?;
        self.follow_writes(number)?;
        self.active.begin(state);
        let run = self.slabs.as_mut().ok_or_else(none)?;
        let ops = run.builder.begin(slab).map_err(failed)?;
        self.issue_all(&ops)
    }

    /// Whether a pass or slab gives the records at index `x` of the first axis.
    pub(super) fn owns(&self, state: &PassState, x: i64) -> bool {
        let plane = self.planes.of_array(Interval::new(x, x + 1)).lo;
        state.slab.is_none_or(|slab| slab.base.contains(plane))
    }

    /// Gets the parts of slices that lie in the base of a slab.
    pub(super) fn keep_parts(
        &mut self,
        pass: u64,
        slab: SlabPart,
        slices: &[Slice],
    ) -> Result<(), DeviceError> {
        let window = self.builder.window();
        let (number, before) = (window.device(pass), window.passes_before(pass));
        let device = self.devices.device(number);
        let size = T::PRECISION.bytes();
        let base = self.planes.of_array(slab.base);
        let (scheme, problem) = (self.calculation.scheme, self.calculation.problem);
        let Some(run) = &mut self.slabs else {
            return Ok(());
        };
        for slice in slices {
            let planes = slice.planes.intersect(base);
            let output = &problem.outputs[slice.output];
            let OutputKind::Slice { axis, .. } = output.kind else {
                continue;
            };
            let picture = run.pictures.entry((slice.output, slice.step));
            let picture = picture.or_insert_with(|| Picture {
                output: slice.output,
                step: slice.step,
                shape: slice_shape(scheme, output.component, axis),
                values: vec![0.0; slice.place.count() as usize],
            });
            if planes.is_empty() {
                continue;
            }
            let range = slice.values(planes);
            let mut bytes = vec![0; range.len() * size];
            let from = self.units[number].slices.of(before);
            let from = from.offset(slice.offset as i64 + (range.start * size) as i64);
            device.read(from, &mut bytes)?;
            picture.values[range].copy_from_slice(&numbers::<T>(&bytes));
        }
        if slab.ends {
            let whole = std::mem::take(&mut run.pictures);
            self.pictures.extend(whole.into_values());
        }
        Ok(())
    }

    /// The group whose towers do not wait for towers above it, as a slab begins with it.
    pub(super) fn cut_at(state: &BlockState, group: i64) -> Option<usize> {
        let first = state.first?;
        usize::try_from(group - first).ok()
    }
}
