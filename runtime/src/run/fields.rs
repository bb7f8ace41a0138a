//! A component of a calculation, or a box of it, as an array that files are written from.

use crate::output::{Attempt, Cause, FileError, Rows, View};
use crate::simulation::{Simulation, Value};
use std::path::Path;
use torre_compiler::lattice::{Axis, PerAxis, Region};
use torre_compiler::scheme::{ComponentId, Scheme, StateId};

/// One version of a component, over a box; indices in the order of the scheme's axes.
pub struct FieldRows<'a, T> {
    simulation: &'a dyn Simulation<T>,
    id: ComponentId,
    age: u8,
    region: Region,
    shape: Vec<usize>,
}

impl<'a, T: Value> FieldRows<'a, T> {
    /// All values.
    pub fn new(simulation: &'a dyn Simulation<T>, id: ComponentId, age: u8) -> Self {
        Self::within(simulation, id, age, simulation.scheme().extent(id))
    }

    /// The values of a box within the extent.
    pub fn within(
        simulation: &'a dyn Simulation<T>,
        id: ComponentId,
        age: u8,
        region: Region,
    ) -> Self {
        Self {
            simulation,
            id,
            age,
            region,
            shape: shape_of(simulation.scheme(), region),
        }
    }
}

/// The value of a state; 0 outside of its zone, and where the sides of the domain hold values.
pub fn state_value<T: Value>(simulation: &dyn Simulation<T>, id: StateId, at: PerAxis<i64>) -> T {
    let scheme = simulation.scheme();
    let state = &scheme.states[id.index()];
    let kept =
        scheme.zone(state.zone).contains(at) && scheme.grid.live(state.position).contains(at);
    match kept {
        true => simulation.state(id, at),
        false => T::default(),
    }
}

/// The values of a state over a box.
pub struct StateRows<'a, T> {
    simulation: &'a dyn Simulation<T>,
    id: StateId,
    region: Region,
    shape: Vec<usize>,
}

impl<'a, T: Value> StateRows<'a, T> {
    pub fn within(simulation: &'a dyn Simulation<T>, id: StateId, region: Region) -> Self {
        Self {
            simulation,
            id,
            region,
            shape: shape_of(simulation.scheme(), region),
        }
    }
}

impl<T: Value> Rows<T> for StateRows<'_, T> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read(&self, first: &[usize], out: &mut [T]) {
        let mut at = place_of(self.simulation.scheme(), self.region, first);
        for value in out {
            *value = state_value(self.simulation, self.id, at);
            at[Axis::INNER] += 1;
        }
    }
}

/// The place of the value with some indices in a box, in the order of the scheme's axes.
fn place_of(scheme: &Scheme, region: Region, indices: &[usize]) -> PerAxis<i64> {
    let mut at = region.map(|i| i.lo);
    for (axis, &index) in scheme.grid.present().zip(indices) {
        at[axis] += index as i64;
    }
    at
}

/// Values per axis of a component.
pub fn shape(scheme: &Scheme, id: ComponentId) -> Vec<usize> {
    shape_of(scheme, scheme.extent(id))
}

/// Values per axis of a box.
pub fn shape_of(scheme: &Scheme, region: Region) -> Vec<usize> {
    let present = scheme.grid.present();
    present.map(|axis| region[axis].len() as usize).collect()
}

impl<T: Value> Rows<T> for FieldRows<'_, T> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read(&self, first: &[usize], out: &mut [T]) {
        // The last axis of a scheme is always the inner axis, so a row of the file is one of memory.
        let at = place_of(self.simulation.scheme(), self.region, first);
        let PerAxis([x, y, _]) = at;
        let start = at[Axis::INNER] as usize;
        let row = self.simulation.row(self.id, self.age, x, y);
        out.copy_from_slice(&row[start..start + out.len()]);
    }
}

/// The values of a file as an array.
pub fn shaped<'a, T: Value>(
    values: &'a [T],
    shape: &[usize],
    path: &Path,
) -> Result<View<'a, T>, FileError> {
    View::contiguous(values, shape).ok_or_else(|| {
        let (expected, found) = (shape.to_vec(), vec![values.len()]);
        FileError::new(path, Attempt::Write, Cause::Shape { expected, found })
    })
}
