//! Records of a pass: probes in every step, and slices after some time blocks. They come back when the pass is over.

use super::{PICTURE_BYTES, PassState, Pipelined};
use crate::gpu::device::{Address, DeviceError};
use crate::gpu::step_tables::{PlanePlace, slice_place};
use crate::host::receivers::{Picture, slice_shape};
use crate::simulation::Value;
use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::layout::Layout;
use torre_compiler::problem::{OutputKind, Problem};
use torre_compiler::real::Real;
use torre_compiler::scheme::Scheme;

/// Bytes of the records of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Steps of a pass, at most.
    pub steps: u64,
    pub probes: u64,
    pub slices: u64,
}

impl Sizes {
    pub fn new(scheme: &Scheme, problem: &Problem, layout: &Layout, steps: u64) -> Sizes {
        let each = (problem.probes.len() * layout.element_bytes) as u64;
        let bytes = |output: usize| slice_bytes(scheme, problem, layout, output);
        let all: u64 = (0..problem.outputs.len()).map(bytes).sum();
        let least = (0..problem.outputs.len())
            .map(bytes)
            .filter(|bytes| *bytes > 0)
            .min();
        Sizes {
            steps,
            probes: steps * each,
            // All that are due after a time block, and as many as that of those that are due often.
            slices: match least {
                Some(_) => all.max(PICTURE_BYTES.min(all.saturating_mul(steps))),
                None => 0,
            },
        }
    }

    pub fn all(&self) -> u64 {
        self.probes.saturating_add(self.slices)
    }
}

/// Bytes of the slices of an output; 0 for one that has none.
pub(super) fn slice_bytes(
    scheme: &Scheme,
    problem: &Problem,
    layout: &Layout,
    output: usize,
) -> u64 {
    let place = slice_place(scheme, problem, layout, output, 0);
    place.map_or(0, |place| place.count() * layout.element_bytes as u64)
}

/// A slice that a pass takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub output: usize,
    pub step: u64,
    pub place: PlanePlace,
    /// Where it is put, in bytes.
    pub offset: u64,
    /// The planes that it has values in, as the array counts them.
    pub planes: Interval,
    /// Its rows lie along the first axis, one in each plane.
    row_of_plane: bool,
}

impl Slice {
    /// That of an output after so many steps.
    pub fn new(
        scheme: &Scheme,
        problem: &Problem,
        layout: &Layout,
        output: usize,
        step: u64,
        offset: u64,
    ) -> Option<Slice> {
        let place = slice_place(scheme, problem, layout, output, step)?;
        let OutputKind::Slice { axis, index } = problem.outputs[output].kind else {
            return None;
        };
        let planes = match axis {
            Axis::OUTER => Interval::new(index, index + 1),
            _ => Interval::new(0, place.rows),
        };
        Some(Slice {
            row_of_plane: axis != Axis::OUTER,
            output,
            step,
            place,
            offset,
            planes,
        })
    }

    /// The part of it that lies in some planes, and where that is put.
    pub fn part(&self, planes: Interval, out: Address, bytes: usize) -> (PlanePlace, Address) {
        let out = out.offset(self.offset as i64);
        if !self.row_of_plane {
            return (self.place, out);
        }
        let from = planes.lo - self.planes.lo;
        let values = from * self.place.values * bytes as i64;
        let place = PlanePlace {
            first: self.place.first + from * self.place.between_rows,
            rows: planes.len(),
            ..self.place
        };
        (place, out.offset(values))
    }
}

impl<T: Value> Pipelined<'_, T> {
    /// Gets what a pass recorded; its operations are over.
    pub(super) fn keep_records(&mut self, pass: u64, state: &PassState) -> Result<(), DeviceError> {
        let steps: u64 = state.blocks.iter().map(|block| block.steps).sum();
        let count = self.receivers.len();
        if count > 0 && steps > 0 {
            let mut bytes = vec![0; steps as usize * count * T::PRECISION.bytes()];
            self.device.read(self.records.of(pass), &mut bytes)?;
            let values = numbers::<T>(&bytes);
            for step in values.chunks_exact(count) {
                for (n, value) in step.iter().enumerate() {
                    let receiver = &self.receivers[n];
                    // Nothing ever changes what is recorded after no stage.
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
        let size = T::PRECISION.bytes();
        for slice in slices {
            let mut bytes = vec![0; slice.place.count() as usize * size];
            let from = self.slices.of(pass).offset(slice.offset as i64);
            self.device.read(from, &mut bytes)?;
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

/// Values as they lie on the device.
fn numbers<T: Value>(bytes: &[u8]) -> Vec<f64> {
    let mut values = vec![T::default(); bytes.len() / T::PRECISION.bytes()];
    T::decode(bytes, &mut values);
    values.into_iter().map(Real::to_f64).collect()
}
