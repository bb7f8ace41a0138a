//! Records of a pass: probes in every step, and slices after some time blocks. They come back when the pass is over.

use super::Pipelined;
use super::pass_state::PassState;
use super::slices::Slice;
use crate::gpu::device::DeviceError;
use crate::gpu::gather::numbers;
use crate::simulation::{Picture, Value, slice_shape};
use torre_compiler::lattice::Axis;
use torre_compiler::problem::OutputKind;
use torre_compiler::real::Real;

impl<T: Value> Pipelined<'_, T> {
    /// Gets the records of a pass; its operations are over.
    pub(super) fn keep_records(&mut self, pass: u64, state: &PassState) -> Result<(), DeviceError> {
        let steps: u64 = state.blocks.iter().map(|block| block.steps).sum();
        let window = self.builder.window();
        let (number, before) = (window.device(pass), window.passes_before(pass));
        let (device, unit) = (self.devices.device(number), &self.units[number]);
        let count = self.receivers.len();
        if count > 0 && steps > 0 {
            let mut bytes = vec![0; steps as usize * count * T::PRECISION.bytes()];
            device.read(unit.records.of(before), &mut bytes)?;
            let values = numbers::<T>(&bytes);
            for step in values.chunks_exact(count) {
                for (n, value) in step.iter().enumerate() {
                    let receiver = &self.receivers[n];
                    if !self.owns(state, receiver.at[Axis::OUTER]) {
                        continue;
                    }
                    // Values that are recorded after no stage never change.
                    let value = match receiver.stage {
                        Some(_) => *value,
                        None => {
                            Real::to_f64(self.calculation.value(receiver.component, receiver.at))
                        }
                    };
                    self.probes[n].push(value);
                }
            }
        }
        let slices = state.blocks.iter().flat_map(|block| &block.slices);
        let slices: Vec<Slice> = slices.copied().collect();
        if let Some(slab) = state.slab {
            return self.keep_parts(pass, slab, &slices);
        }
        let size = T::PRECISION.bytes();
        for slice in slices {
            let mut bytes = vec![0; slice.place.count() as usize * size];
            let from = unit.slices.of(before).offset(slice.offset as i64);
            device.read(from, &mut bytes)?;
            let output = &self.calculation.problem.outputs[slice.output];
            let OutputKind::Slice { axis, .. } = output.kind else {
                continue;
            };
            self.pictures.push(Picture {
                output: slice.output,
                step: slice.step,
                shape: slice_shape(self.calculation.scheme, output.component, axis),
                values: numbers::<T>(&bytes),
            });
        }
        Ok(())
    }
}
