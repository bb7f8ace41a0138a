//! Records of a pass: probes of every step, slices at its end, and cells that tell whether values stay finite.

use super::{Striped, Unit, failed};
use crate::gpu::code::blocks;
use crate::gpu::device::{Address, Device, DeviceError, Function, Threads};
use crate::gpu::gather::{PlaneGather, numbers};
use crate::gpu::lookout;
use crate::gpu::step_tables::{PlanePlace, probe_places, slice_axes, slice_place};
use crate::simulation::guard::bound;
use crate::simulation::{BlowUp, Picture, RunError, Value, slice_shape};
use torre_compiler::backend::gpu::abi::{Argument, Gather};
use torre_compiler::backend::gpu::service;
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layout::Layout;
use torre_compiler::problem::{Output, OutputKind, Probe, Problem};
use torre_compiler::real::Real;
use torre_compiler::scheme::Scheme;

/// Bytes of the largest slice, and of the cells that are looked at.
pub(super) fn picture_bytes(scheme: &Scheme, problem: &Problem) -> u64 {
    let size = scheme.precision.bytes() as u64;
    let count = |output: usize| {
        let layout = Layout::for_gpu(scheme).ok()?;
        slice_place(scheme, problem, &layout, output, 0).map(|place| place.count())
    };
    let slices = (0..problem.outputs.len()).filter_map(count).max();
    let cells = lookout::cells(scheme).len() as u64;
    slices.unwrap_or(0).max(cells) * size
}

/// The part of a slice that lies at some indices along the middle axis: where, and its rows and values in the slice.
fn part(place: PlanePlace, axis: Axis, index: i64, own: Interval) -> Option<Part> {
    let all = Part {
        rows: Interval::new(0, place.rows),
        values: Interval::new(0, place.values),
        place,
    };
    let part = match axis {
        Axis::OUTER => Part {
            rows: all.rows.intersect(own),
            ..all
        },
        Axis::MIDDLE => return own.contains(index).then_some(all),
        _ => Part {
            values: all.values.intersect(own),
            ..all
        },
    };
    let place = PlanePlace {
        first: place.first
            + part.rows.lo * place.between_rows
            + part.values.lo * place.between_values,
        rows: part.rows.len(),
        values: part.values.len(),
        ..place
    };
    (!part.rows.is_empty() && !part.values.is_empty()).then_some(Part { place, ..part })
}

#[derive(Clone, Copy, Debug)]
struct Part {
    place: PlanePlace,
    rows: Interval,
    values: Interval,
}

impl Unit {
    /// Collects values by a kernel and reads them.
    fn gathered<T: Value>(
        &self,
        device: &dyn Device,
        kernel: Function,
        threads: Threads,
        arguments: &[Argument],
        count: u64,
    ) -> Result<Vec<f64>, DeviceError> {
        // SAFETY: the parameters are the kernel's; the values that it collects lie in the array, and there is room for
        // the largest slice and for the cells that are looked at.
        unsafe { device.start(kernel, threads, arguments) }?;
        let mut bytes = vec![0; count as usize * T::PRECISION.bytes()];
        device.read(self.slices, &mut bytes)?;
        Ok(numbers::<T>(&bytes))
    }

    fn plane<T: Value>(
        &self,
        device: &dyn Device,
        place: PlanePlace,
    ) -> Result<Vec<f64>, DeviceError> {
        let PlaneGather { threads, arguments } = PlaneGather::new(&place, self.array, self.slices)?;
        let kernel = self.gather_plane;
        self.gathered::<T>(device, kernel, threads, &arguments, place.count())
    }
}

impl<T: Value> Striped<'_, T> {
    /// Bytes of the records of a step.
    pub(super) fn record_bytes(&self) -> u64 {
        (self.receivers.len() * T::PRECISION.bytes()) as u64
    }

    /// Each value is recorded by one device, and others leave zeros in its place.
    pub(super) fn clear_records(&self, steps: u64) -> Result<(), DeviceError> {
        let zeros = vec![0; (steps * self.record_bytes()) as usize];
        for (number, unit) in self.units.iter().enumerate() {
            if !zeros.is_empty() {
                self.peers.device(number).write(unit.records, &zeros)?;
            }
        }
        Ok(())
    }

    /// Gets the records of probes in the steps of a pass that is over.
    pub(super) fn keep_probes(&mut self, steps: u64) -> Result<(), DeviceError> {
        let count = self.receivers.len();
        if count == 0 {
            return Ok(());
        }
        let mut all = vec![0u8; (steps * self.record_bytes()) as usize];
        for (number, unit) in self.units.iter().enumerate() {
            let mut bytes = vec![0; all.len()];
            self.peers.device(number).read(unit.records, &mut bytes)?;
            all.iter_mut().zip(bytes).for_each(|(all, own)| *all |= own);
        }
        for step in numbers::<T>(&all).chunks_exact(count) {
            for (n, value) in step.iter().enumerate() {
                let receiver = &self.receivers[n];
                // Values that are recorded after no stage never change.
                let value = match receiver.stage {
                    Some(_) => *value,
                    None => Real::to_f64(self.calculation.value(receiver.component, receiver.at)),
                };
                self.probes[n].push(value);
            }
        }
        Ok(())
    }

    /// Gathers the slices that are due now.
    pub(super) fn take_slices(&mut self) -> Result<(), DeviceError> {
        let (scheme, problem) = (self.calculation.scheme, self.calculation.problem);
        for (output, of) in problem.outputs.iter().enumerate() {
            let OutputKind::Slice { axis, index } = of.kind else {
                continue;
            };
            if of.state.is_some() || !self.steps.is_multiple_of(of.every) {
                continue;
            }
            let layout = &self.program.layout;
            let place = slice_place(scheme, problem, layout, output, self.steps);
            let place = place.ok_or_else(|| failed("taking a slice", "it is none"))?;
            let mut values = vec![0.0; place.count() as usize];
            self.fill_slice(of, place, &mut values);
            for (number, unit) in self.units.iter().enumerate() {
                let Some(part) = part(place, axis, index, unit.own) else {
                    continue;
                };
                let found = unit.plane::<T>(self.peers.device(number), part.place)?;
                let width = part.values.len() as usize;
                for (row, found) in (part.rows.lo..).zip(found.chunks_exact(width)) {
                    let first = (row * place.values + part.values.lo) as usize;
                    values[first..first + width].copy_from_slice(found);
                }
            }
            self.pictures.push(Picture {
                output,
                step: self.steps,
                shape: slice_shape(scheme, of.component, axis),
                values,
            });
        }
        Ok(())
    }

    /// Gives a slice the values that no device accesses.
    fn fill_slice(&self, output: &Output, place: PlanePlace, values: &mut [f64]) {
        let OutputKind::Slice { axis, index } = output.kind else {
            return;
        };
        let component = output.component;
        let held = |row: i64| self.units.iter().any(|unit| unit.own.contains(row));
        let extent = self.calculation.scheme.extent(component)[Axis::MIDDLE];
        if (extent.lo..extent.hi).all(held) {
            return;
        }
        let axes = slice_axes(axis);
        for (number, value) in (0..).zip(values) {
            let mut at = PerAxis::splat(index);
            at[axes[0]] = number / place.values;
            at[axes[1]] = number % place.values;
            if !held(at[Axis::MIDDLE]) {
                *value = Real::to_f64(self.calculation.value(component, at));
            }
        }
    }

    /// Looks at some of the values.
    pub(super) fn look(&mut self) -> Result<(), RunError> {
        let scheme = self.calculation.scheme;
        let phases = u64::from(scheme.phases()).max(1);
        let phase = ((self.steps + phases - 1) % phases) as usize;
        for number in 0..self.units.len() {
            self.make_looks(number)?;
            let unit = &self.units[number];
            let Some((cells, places)) = &unit.looks else {
                continue;
            };
            if cells.is_empty() {
                continue;
            }
            let arguments = Gather {
                array: unit.array.0,
                table: places[phase].0,
                count: cells.len() as i32,
                out: unit.slices.0,
            }
            .arguments();
            let count = cells.len() as u64;
            let threads = Threads {
                blocks: [blocks(count, service::THREADS)?, 1, 1],
                threads: [service::THREADS, 1, 1],
                shared: 0,
            };
            let device = self.peers.device(number);
            let values = unit.gathered::<T>(device, unit.gather, threads, &arguments, count)?;
            let bound = bound(scheme.precision);
            let irregular = |value: &f64| {
                let regular = value.abs() <= bound;
                !regular
            };
            let found = cells.iter().zip(values).find(|(_, value)| irregular(value));
            if let Some((cell, value)) = found {
                let found = BlowUp::new(scheme, cell.component, cell.at, self.steps, value);
                return Err(RunError::BlowUp(found));
            }
        }
        Ok(())
    }

    /// The cells of a device that are looked at; none where it has no memory for their places.
    fn make_looks(&mut self, number: usize) -> Result<(), DeviceError> {
        if self.units[number].looks.is_some() {
            return Ok(());
        }
        let looks = match self.looks_of(number) {
            Err(DeviceError::Memory { .. }) => (Vec::new(), Vec::new()),
            looks => looks?,
        };
        self.units[number].looks = Some(looks);
        Ok(())
    }

    /// The cells of a device that are looked at, and by phase the table of their places.
    fn looks_of(&self, number: usize) -> Result<(Vec<Probe>, Vec<Address>), DeviceError> {
        let unit = &self.units[number];
        let scheme = self.calculation.scheme;
        let all = lookout::cells(scheme).into_iter();
        let own: Vec<_> = all
            .filter(|c| unit.own.contains(c.at[Axis::MIDDLE]))
            .collect();
        let problem = Problem {
            probes: own.clone(),
            ..Problem::default()
        };
        let device = self.peers.device(number);
        let mut places: Vec<Address> = Vec::new();
        for phase in 0..scheme.phases().max(1) {
            let list = probe_places(scheme, &problem, &self.program.layout, phase);
            let bytes: Vec<u8> = list.iter().flat_map(|place| place.to_le_bytes()).collect();
            let table = device.take(bytes.len().max(1) as u64)?;
            device.write(table, &bytes)?;
            places.push(table);
        }
        Ok((own, places))
    }
}
