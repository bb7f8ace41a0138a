//! Places beyond the ends of a row at which it is 0, where other rows of the same shared row leave values.
//!
//! A component that is odd about the end plane of a line is 0 on that plane, and no value has a ghost there: the place
//! is 0 in memory, in shared memory from the beginning on, and where a row arrives. Components that are even about the
//! plane have a ghost at the same index. If rows of both take turns in a shared row, a row that threads put there has
//! to bring its 0.

use super::allocate::Allocation;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval};
use crate::layout::{Layout, RowId};
use crate::scheme::{CoefId, ComponentId, Scheme};
use std::collections::{BTreeMap, BTreeSet};

/// Per component and shared row, the indices along the inner axis that a row sets to 0; ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EndZeros(BTreeMap<(ComponentId, usize), Vec<i64>>);

impl EndZeros {
    /// `held`: shared rows, with the rows that they hold at some time, in towers of any alignment.
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        held: impl Iterator<Item = (usize, RowId)>,
    ) -> EndZeros {
        let ids: Vec<ComponentId> = scheme.component_ids().collect();
        let zeros: Vec<Vec<i64>> = ids.iter().map(|id| zeros(scheme, *id)).collect();
        if zeros.iter().all(Vec::is_empty) {
            return EndZeros::default();
        }
        let mut rows: BTreeMap<usize, BTreeSet<RowId>> = BTreeMap::new();
        for (shared, row) in held {
            rows.entry(shared).or_default().insert(row);
        }
        let mut all = BTreeMap::new();
        for (shared, rows) in rows {
            let left: Vec<i64> = rows
                .iter()
                .flat_map(|row| left(scheme, layout, *row))
                .collect();
            let own: BTreeSet<ComponentId> = rows
                .iter()
                .filter_map(|row| layout.component_of(*row))
                .collect();
            for id in own {
                let begin = layout.row_begin(layout.row(id, 0));
                let places = zeros[id.index()].iter().copied();
                let is_left = |place: &i64| left.contains(&(place + begin));
                let places: Vec<i64> = places.filter(is_left).collect();
                if !places.is_empty() {
                    all.insert((id, shared), places);
                }
            }
        }
        EndZeros(all)
    }

    /// The same for the shared rows of allocations.
    pub fn of(scheme: &Scheme, layout: &Layout, allocations: &[Allocation]) -> EndZeros {
        let stages = allocations.iter().flat_map(|own| &own.stages);
        let held = stages.flat_map(|stage| {
            let copies = stage.loads.iter().chain(&stage.republish);
            let copies = copies.map(|copy| (copy.shared, copy.row.row));
            let published = stage.publish.iter();
            copies.chain(published.map(|(row, shared)| (*shared, row.row)))
        });
        EndZeros::new(scheme, layout, held)
    }

    /// The places that a row sets to 0 in a shared row.
    pub fn places(&self, layout: &Layout, row: RowId, shared: usize) -> Vec<i64> {
        let id = layout.component_of(row);
        let found = id.and_then(|id| self.0.get(&(id, shared)));
        found.cloned().unwrap_or_default()
    }
}

/// Indices beyond the extent of a component that updates read, without ghosts: a component is 0 there.
fn zeros(scheme: &Scheme, id: ComponentId) -> Vec<i64> {
    let axis = Axis::INNER;
    let [extent, visible] = [scheme.extent(id)[axis], scheme.visible(id)[axis]];
    let ghosts = AxisGhosts::new(scheme, id, axis).pairs();
    let is_ghost = |index: i64| ghosts.iter().any(|(_, ghost)| ghost.index == index);
    let beyond = (visible.lo..visible.hi).filter(|index| !extent.contains(*index));
    beyond.filter(|index| !is_ghost(*index)).collect()
}

/// Elements of a shared row at which a row has values and others may have none: ghosts, values on the end plane, and
/// values before other rows begin. A coefficient has values at all indices, also where components are held at 0.
fn left(scheme: &Scheme, layout: &Layout, row: RowId) -> Vec<i64> {
    let axis = Axis::INNER;
    let begin = layout.row_begin(row);
    let ends = |first: i64, extent: Interval| {
        let beyond = scheme.grid.cells[axis]..extent.hi + begin;
        (first..layout.most_begin()).chain(beyond)
    };
    let Some(id) = layout.component_of(row) else {
        let mut coefs = (0..scheme.coefs.len()).map(|index| CoefId(index as u32));
        let coef = coefs.find(|coef| layout.coef_row(*coef) == row);
        let extent = coef.map(|coef| scheme.grid.extent(scheme.coefs[coef.index()].position)[axis]);
        return extent
            .map(|extent| ends(0, extent))
            .into_iter()
            .flatten()
            .collect();
    };
    let ghosts = AxisGhosts::new(scheme, id, axis).pairs();
    let ghosts = ghosts.into_iter().map(|(_, ghost)| ghost.index + begin);
    ends(begin, scheme.extent(id)[axis]).chain(ghosts).collect()
}
