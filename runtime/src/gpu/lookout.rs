//! Whether values on a device stay finite: some of them come back now and then, and the host looks at them.
//!
//! The cells form a lattice over all components, so that values that spread by a cell per step from anywhere reach a
//! point of it after as many steps as points are apart. They are gathered like probes, without another kernel, and come
//! back while the device goes on.

use super::code::blocks;
use super::device::{Address, Device, DeviceError, Function, Threads};
use super::records::{Batch, Records};
use super::step_tables::probe_places;
use crate::simulation::BlowUp;
use crate::simulation::guard::bound;
use torre_compiler::backend::gpu::abi::Gather;
use torre_compiler::backend::gpu::service;
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layout::Layout;
use torre_compiler::problem::{Probe, Problem};
use torre_compiler::scheme::Scheme;

/// Cells that are looked at, at most.
const CELLS: u64 = 1 << 14;
/// Looks whose values come back together.
const TOGETHER: u64 = 8;
/// Cell-stages between two looks, at least: on the fastest GPUs more than a millisecond, of which a look takes some
/// microseconds. A time block of a large grid has more, so that each has a look.
pub const BETWEEN: u64 = 1 << 30;

/// The cells, and how their values come back.
#[derive(Debug)]
pub struct Lookout {
    cells: Vec<Probe>,
    /// By phase, their places in the array.
    places: Vec<Address>,
    gather: Function,
    /// Each with its step.
    records: Records<u64>,
}

impl Lookout {
    pub fn new(
        device: &dyn Device,
        gather: Function,
        scheme: &Scheme,
        layout: &Layout,
    ) -> Result<Self, DeviceError> {
        let cells = cells(scheme);
        let problem = Problem {
            probes: cells,
            ..Problem::default()
        };
        let mut places = Vec::new();
        for phase in 0..scheme.phases() {
            let list = probe_places(scheme, &problem, layout, phase);
            let bytes: Vec<u8> = list.iter().flat_map(|place| place.to_le_bytes()).collect();
            let table = device.take(bytes.len().max(1) as u64)?;
            device.write(table, &bytes)?;
            places.push(table);
        }
        let bytes = (problem.probes.len() * scheme.precision.bytes()) as u64;
        Ok(Self {
            cells: problem.probes,
            places,
            gather,
            records: Records::new(device, (bytes * TOGETHER).max(1))?,
        })
    }

    /// Whether there is room for another look without waiting for the device.
    pub fn has_room(&self, scheme: &Scheme) -> bool {
        let bytes = self.cells.len() * scheme.precision.bytes();
        self.records.has_room(bytes as u64)
    }

    /// Gathers the values as they are after `steps` steps, at least one.
    pub fn look(
        &mut self,
        device: &dyn Device,
        scheme: &Scheme,
        array: Address,
        steps: u64,
    ) -> Result<Option<BlowUp>, DeviceError> {
        let bytes = (self.cells.len() * scheme.precision.bytes()) as u64;
        if bytes == 0 || steps == 0 {
            return Ok(None);
        }
        let (to, back) = self.records.room(device, bytes)?;
        let phase = ((steps - 1) % self.places.len() as u64) as usize;
        let arguments = Gather {
            array: array.0,
            table: self.places[phase].0,
            count: self.cells.len() as i32,
            out: to.0,
        }
        .arguments();
        let threads = Threads {
            blocks: [blocks(self.cells.len() as u64, service::THREADS)?, 1, 1],
            threads: [service::THREADS, 1, 1],
            shared: 0,
        };
        // SAFETY: the parameters are the kernel's; the places lie in the array, and there is room for the
        // values.
        unsafe { device.start(self.gather, threads, &arguments) }?;
        self.records.push(bytes, steps);
        Ok(self.examine(scheme, back))
    }

    /// Everything that has been gathered, after waiting for it.
    pub fn end(
        &mut self,
        device: &dyn Device,
        scheme: &Scheme,
    ) -> Result<Option<BlowUp>, DeviceError> {
        let mut found = None;
        for _ in 0..2 {
            self.records.begin(device)?;
            let back = self.records.end(device)?;
            found = found.or_else(|| self.examine(scheme, back));
        }
        Ok(found)
    }

    fn examine(&self, scheme: &Scheme, back: Option<Batch<u64>>) -> Option<BlowUp> {
        let batch = back?;
        let size = scheme.precision.bytes();
        let number = |bytes: &[u8]| match *bytes {
            [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => f64::NAN,
        };
        let bound = bound(scheme.precision);
        let looks = batch.bytes.chunks_exact(size * self.cells.len());
        looks.zip(batch.records).find_map(|(values, step)| {
            let values = values.chunks_exact(size).map(number);
            let (cell, value) = self.cells.iter().zip(values).find(|(_, v)| {
                let regular = v.abs() <= bound;
                !regular
            })?;
            Some(BlowUp::new(scheme, cell.component, cell.at, step, value))
        })
    }
}

/// Cells on a lattice, as many as there may be over all components.
pub(super) fn cells(scheme: &Scheme) -> Vec<Probe> {
    let each = per_component(scheme);
    let mut list = Vec::new();
    for component in scheme.component_ids() {
        let live = scheme.grid.live(scheme.component(component).position);
        let stride = stride(live.0, each);
        // The middle of each box of the lattice.
        let first = PerAxis::from_fn(|a| {
            let Interval { lo, hi } = live[a];
            (lo + stride / 2).min(hi - 1)
        });
        let ticks = |axis: Axis| (first[axis]..live[axis].hi).step_by(stride as usize);
        if live.is_empty() {
            continue;
        }
        for x in ticks(Axis::OUTER) {
            for y in ticks(Axis::MIDDLE) {
                list.extend(ticks(Axis::INNER).map(|z| Probe {
                    name: String::new(),
                    component,
                    at: PerAxis([x, y, z]),
                    every: 1,
                }));
            }
        }
    }
    list
}

/// Cells of a component, at most.
fn per_component(scheme: &Scheme) -> u64 {
    (CELLS / (scheme.components.len() as u64).max(1)).max(1)
}

/// The distance of neighbouring points of a lattice that has no more than `most` of them.
fn stride(live: [Interval; 3], most: u64) -> i64 {
    let mut stride = 1;
    while count(live, stride) > most {
        stride += 1 + stride / 8;
    }
    stride
}

/// Points of a lattice with a stride, or a few more.
fn count(live: [Interval; 3], stride: i64) -> u64 {
    let along = |i: Interval| (i.len() as u64).div_ceil(stride as u64).max(1);
    live.into_iter().map(along).fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::scheme::Precision;
    use torre_compiler::testing::maxwell;

    #[test]
    fn cells_lie_everywhere_and_are_not_too_many() {
        for size in [
            [1, 1, 1],
            [7, 5, 300],
            [64, 64, 64],
            [1000, 900, 4000],
            [1, 3, 1_000_000],
        ] {
            let scheme = maxwell(4, Precision::F32, size);
            let list = cells(&scheme);
            assert!(list.len() as u64 <= CELLS, "{size:?}: {}", list.len());
            for component in scheme.component_ids() {
                let live = scheme.grid.live(scheme.component(component).position);
                let own: Vec<&Probe> = list.iter().filter(|p| p.component == component).collect();
                assert_eq!(own.is_empty(), live.is_empty());
                assert!(own.iter().all(|p| live.contains(p.at)));
                // No place is farther from one than the lattice is wide, and that is no wider than it has to be.
                let each = per_component(&scheme);
                let stride = stride(live.0, each);
                assert!(
                    stride == 1 || count(live.0, stride * 3 / 4) > each / 2,
                    "{size:?}"
                );
                for corner in [live.map(|i| i.lo), live.map(|i| i.hi - 1)] {
                    let distance = |p: &&Probe| {
                        let parts = Axis::ALL.map(|a| (p.at[a] - corner[a]).abs());
                        parts.into_iter().max().unwrap_or(0)
                    };
                    let nearest = own.iter().map(distance).min().unwrap_or(0);
                    assert!(nearest <= stride, "{size:?}: {nearest}");
                }
            }
        }
    }
}
