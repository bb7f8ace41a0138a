//! A layout as *packed* rows see it: memory is the same, but a row that begins with a value that is held at 0 has index
//! 0 at the value behind that one.

use super::Layout;
use super::rows::{PackedRows, RowId};
use crate::lattice::{Axis, Interval};
use crate::scheme::{ComponentId, Scheme};

impl Layout {
    /// The same memory for `scheme`, of whose components, coefficients and states some begin a whole cell farther along
    /// the inner axis than the scheme that the layout was made for has it.
    pub fn packed(&self, scheme: &Scheme) -> Layout {
        let axis = Axis::INNER;
        let mut rows = vec![0; self.rows as usize];
        for (n, component) in scheme.components.iter().enumerate() {
            let id = ComponentId(n as u32);
            for level in 0..component.time_levels {
                let row = self.row(id, level.into());
                rows[row.0 as usize] = component.position[axis].whole();
            }
        }
        let coefs = (0..).map(crate::scheme::CoefId).zip(&scheme.coefs);
        for (id, coef) in coefs {
            if let Some(begin) = rows.get_mut(self.coef_row(id).0 as usize) {
                *begin = coef.position[axis].whole();
            }
        }
        let states = scheme.states.iter().map(|s| s.position[axis].whole());
        let ids = scheme.component_ids();
        let length = ids.map(|id| scheme.extent(id)[axis].hi).max().unwrap_or(1);
        let mut packed = self.clone();
        packed.extent[axis] = length;
        for (reach, needed) in packed.reach[axis].iter_mut().zip(scheme.reach()[axis]) {
            *reach = needed.max(*reach);
        }
        for own in packed.zones.iter_mut().flat_map(|zone| &mut zone.boxes) {
            own.region[axis] = own.region[axis].intersect(Interval::new(0, length));
        }
        packed.packed = PackedRows {
            states: states.collect(),
            rows,
        };
        packed
    }

    /// Elements by which a row begins behind the place of index 0 in memory.
    pub fn row_begin(&self, row: RowId) -> i64 {
        self.packed.row(row)
    }

    /// The most elements by which a row does.
    pub fn most_begin(&self) -> i64 {
        self.packed.rows.iter().copied().max().unwrap_or(0)
    }
}
