//! A component of a calculation, or a box of it, as an array that files are written from.

use super::{Simulation, Value};
use crate::output::Rows;
use torre_compiler::lattice::{Axis, PerAxis, Region};
use torre_compiler::scheme::{ComponentId, Scheme};

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
        let mut at = self.region.map(|i| i.lo);
        for (axis, &index) in self.simulation.scheme().grid.present().zip(first) {
            at[axis] += index as i64;
        }
        let PerAxis([x, y, _]) = at;
        let start = at[Axis::INNER] as usize;
        let row = self.simulation.row(self.id, self.age, x, y);
        out.copy_from_slice(&row[start..start + out.len()]);
    }
}
