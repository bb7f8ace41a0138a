//! A component of a calculation as an array that files are written from.

use super::{Simulation, Value};
use crate::output::Rows;
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::scheme::{ComponentId, Scheme};

/// One version of a component, over its extent; indices in the order of the scheme's axes.
pub struct FieldRows<'a, T> {
    simulation: &'a dyn Simulation<T>,
    id: ComponentId,
    age: u8,
    shape: Vec<usize>,
}

impl<'a, T: Value> FieldRows<'a, T> {
    pub fn new(simulation: &'a dyn Simulation<T>, id: ComponentId, age: u8) -> Self {
        Self {
            simulation,
            id,
            age,
            shape: shape(simulation.scheme(), id),
        }
    }
}

/// Values per axis of a component.
pub fn shape(scheme: &Scheme, id: ComponentId) -> Vec<usize> {
    let extent = scheme.extent(id);
    let present = scheme.grid.present();
    present.map(|axis| extent[axis].hi as usize).collect()
}

impl<T: Value> Rows<T> for FieldRows<'_, T> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read(&self, first: &[usize], out: &mut [T]) {
        // The last axis of a scheme is always the inner axis, so a row of the file is one of memory.
        let mut at = PerAxis::splat(0);
        for (axis, &index) in self.simulation.scheme().grid.present().zip(first) {
            at[axis] = index as i64;
        }
        let PerAxis([x, y, _]) = at;
        let start = at[Axis::INNER] as usize;
        let row = self.simulation.row(self.id, self.age, x, y);
        out.copy_from_slice(&row[start..start + out.len()]);
    }
}
