//! Records of a calculation on a device: kernels gather them after a step, and they come back many steps at a time.

use super::OnDevice;
use crate::gpu::code::blocks;
use crate::gpu::device::{Address, DeviceError, Threads};
use crate::gpu::gather::{PlaneGather, numbers, numbers_of_each};
use crate::gpu::records::Batch;
use crate::gpu::step_tables::slice_place;
use crate::simulation::{Picture, Value, slice_shape};
use torre_compiler::backend::gpu::abi::Gather;
use torre_compiler::backend::gpu::service;
use torre_compiler::problem::OutputKind;

/// A slice that waits on the device.
#[derive(Debug)]
pub(super) struct Waiting {
    output: usize,
    step: u64,
    values: u64,
}

impl<T: Value> OnDevice<'_, T> {
    /// Bytes of a step's records of probes.
    pub(super) fn probe_bytes(&self) -> u64 {
        (self.records.len() * T::PRECISION.bytes()) as u64
    }

    /// Where probes record next, with room for `bytes` bytes.
    pub(super) fn room_for_probes(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        let (place, back) = self.probes.room(self.device, bytes)?;
        self.keep_probes(back);
        Ok(place)
    }

    /// Probes after the updates of a step.
    pub(super) fn record_probes(&mut self) -> Result<(), DeviceError> {
        let bytes = self.probe_bytes();
        let to = self.room_for_probes(bytes)?;
        self.gather(self.asked, to)?;
        self.probes.push(bytes, ());
        Ok(())
    }

    /// Records the present values at probes as their values after a step (from 0).
    pub(super) fn gather(&self, step: u64, to: Address) -> Result<(), DeviceError> {
        let count = self.records.len();
        if count == 0 {
            return Ok(());
        }
        let phase = (step % self.code.probes.len() as u64) as usize;
        let arguments = Gather {
            array: self.array.0,
            table: self.code.probes[phase].0,
            count: count as i32,
            out: to.0,
        }
        .arguments();
        let threads = Threads {
            blocks: [blocks(count as u64, service::THREADS)?, 1, 1],
            threads: [service::THREADS, 1, 1],
            shared: 0,
        };
        // SAFETY: the parameters are the kernel's; the table's places lie in the array, and a record fits in the memory
        // for it.
        unsafe {
            self.device
                .start(self.code.services.gather, threads, &arguments)
        }
    }

    /// Whether an output is taken after `step` steps.
    pub(super) fn is_due(&self, output: usize, step: u64) -> bool {
        step.is_multiple_of(self.problem().outputs[output].every)
    }

    /// Slices that are due; gives their number.
    pub(super) fn record_slices(&mut self) -> Result<u64, DeviceError> {
        let mut slices = 0;
        for output in 0..self.problem().outputs.len() {
            if self.is_due(output, self.asked) {
                self.record_slice(output)?;
                slices += 1;
            }
        }
        Ok(slices)
    }

    fn record_slice(&mut self, output: usize) -> Result<(), DeviceError> {
        let layout = &self.calculation.layout;
        let place = slice_place(self.scheme(), self.problem(), layout, output, self.asked);
        let Some(place) = place else { return Ok(()) };
        let bytes = place.count() * T::PRECISION.bytes() as u64;
        let (to, back) = self.planes.room(self.device, bytes)?;
        self.keep_planes(back);
        let PlaneGather { threads, arguments } = PlaneGather::new(&place, self.array, to)?;
        // SAFETY: the parameters are the kernel's; the plane lies in the array, and there is room for it.
        unsafe {
            self.device
                .start(self.code.services.gather_plane, threads, &arguments)
        }?;
        let waiting = Waiting {
            output,
            step: self.asked,
            values: place.count(),
        };
        self.planes.push(bytes, waiting);
        Ok(())
    }

    /// Begins to get all records.
    pub(super) fn begin_records(&mut self) -> Result<(), DeviceError> {
        self.probes.begin(self.device)?;
        self.planes.begin(self.device)
    }

    /// Gets all records: the ones under way, and the ones that waited for these.
    pub(super) fn end_records(&mut self) -> Result<(), DeviceError> {
        for _ in 0..2 {
            self.begin_records()?;
            let back = self.probes.end(self.device)?;
            self.keep_probes(back);
            let back = self.planes.end(self.device)?;
            self.keep_planes(back);
        }
        Ok(())
    }

    fn keep_probes(&mut self, back: Option<Batch<()>>) {
        let Some(batch) = back else { return };
        let values: Vec<f64> = numbers::<T>(&batch.bytes);
        for step in values.chunks_exact(self.records.len().max(1)) {
            for (record, value) in self.records.iter_mut().zip(step) {
                record.push(*value);
            }
        }
    }

    fn keep_planes(&mut self, back: Option<Batch<Waiting>>) {
        let Some(batch) = back else { return };
        let mut rest = &batch.bytes[..];
        let own = batch.records.iter().map(|waiting| {
            let bytes = waiting.values as usize * T::PRECISION.bytes();
            let (own, after) = rest.split_at(bytes.min(rest.len()));
            rest = after;
            own
        });
        let own: Vec<&[u8]> = own.collect();
        for (waiting, values) in batch.records.iter().zip(numbers_of_each::<T>(&own)) {
            let output = &self.problem().outputs[waiting.output];
            let OutputKind::Slice { axis, .. } = output.kind else {
                continue;
            };
            self.pictures.push(Picture {
                output: waiting.output,
                step: waiting.step,
                shape: slice_shape(self.scheme(), output.component, axis),
                values,
            });
        }
    }
}
