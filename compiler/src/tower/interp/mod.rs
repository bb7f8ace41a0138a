//! Executes tower programs on the host, for tests. This defines the meaning of a program without a back end.
//!
//! Towers of a time block run side by side, stage by stage in a random order that the rules for waiting allow, on a
//! few *workers*, each with shared rows of its own; operations before the wait of a stage may run when the stage before
//! is over. A value that has not been written is *unknown*: a shared row while a copy is under way, a register that was
//! not loaded, a ghost that towers do not keep up to date in memory, a value outside of a z block. Unknown values may be
//! computed with, as threads do that have no part in a stage; one that would reach memory, or be recorded, is a fault of
//! the program.

mod boundary;
mod early;
mod interior;
mod lanes;
mod line;
mod run;
mod state;
mod value;
mod volume;
mod waves;
mod zone;

pub use volume::{Injected, Recorded, VolumeCells};

use super::block::ZBlock;
use super::group::Group;
use super::program::TowerProgram;
use crate::ghost::{AxisGhosts, ComponentGhosts};
use crate::lattice::{Axis, Interval, PerAxis};
use crate::layout::{Layout, RowId};
use crate::real::Real;
use crate::reference::for_each_index;
use crate::scheme::{CoefId, ComponentId, Scheme};
use lanes::Lanes;
use line::Line;

/// A calculation that a tower program advances, in time blocks.
pub struct TowerInterp<'a, T> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    program: &'a TowerProgram,
    /// Of the layout; `None`: unknown.
    memory: Vec<Option<T>>,
    /// Ghosts of all components along the inner axis: operations that write rows write them, too, if memory keeps them.
    ghosts: Vec<ComponentGhosts>,
}

/// Parameters that are the same for all towers of a launch.
#[derive(Clone, Copy)]
struct Launch {
    z_block: Option<ZBlock>,
}

impl<'a, T: Real> TowerInterp<'a, T> {
    /// `array`: the values of the layout.
    pub fn new(
        scheme: &'a Scheme,
        layout: &'a Layout,
        program: &'a TowerProgram,
        array: &[T],
    ) -> TowerInterp<'a, T> {
        let ids = scheme.component_ids();
        TowerInterp {
            scheme,
            layout,
            program,
            memory: array.iter().copied().map(Some).collect(),
            ghosts: ids.map(|id| ComponentGhosts::new(scheme, id)).collect(),
        }
    }

    /// All values, if all are known.
    pub fn array(&self) -> Option<Vec<T>> {
        self.memory.iter().copied().collect()
    }

    fn element(&self, row: RowId, group: Group, z: i64) -> usize {
        self.layout.element(row, PerAxis([group.x, group.y, z])) as usize
    }

    fn inner_ghosts(&self, id: ComponentId) -> &AxisGhosts {
        &self.ghosts[id.index()].0[Axis::INNER]
    }

    /// The lanes of a line that a launch has.
    fn lanes(&self, launch: Launch) -> Lanes<'_> {
        Lanes {
            z_blocks: self.program.block.lines.z_blocks(),
            z_block: launch.z_block,
            length: self.program.block.shared_row.length,
        }
    }

    /// An empty shared row or register.
    fn line(&self) -> Line<T> {
        Line::new(
            self.layout.reach[Axis::INNER].map(i64::from),
            self.program.block.shared_row.length,
            self.layout.most_begin(),
        )
    }

    /// A row of memory with the visible values beyond its ends. Where memory has none, it is unknown but for the zeros
    /// beyond its ends.
    fn row(&self, row: RowId, group: Group) -> Line<T> {
        let [outer, middle] = [Axis::OUTER, Axis::MIDDLE].map(|axis| self.layout.visible(axis));
        match outer.contains(group.x) && middle.contains(group.y) {
            true => self.filled(row, |z| self.memory[self.element(row, group, z)]),
            false => self.unknown_row(row),
        }
    }

    /// A row that is unknown but for the zeros beyond its own ends, where other rows may have values: a row that threads
    /// put in the same shared row later may rely on them ([`super::end_zeros`]).
    fn unknown_row(&self, row: RowId) -> Line<T> {
        let component = self.layout.component_of(row);
        let extent = match component {
            Some(id) => self.scheme.extent(id)[Axis::INNER],
            None => self.coef_extent(row),
        };
        let ghosts = component.map(|id| self.inner_ghosts(id).pairs());
        let is_ghost = |z: i64| {
            let mut ghosts = ghosts.iter().flatten();
            ghosts.any(|(_, ghost)| ghost.index == z)
        };
        let is_zero = |z: i64| !extent.contains(z) && !is_ghost(z);
        self.filled(row, |z| is_zero(z).then(|| T::from_f64(0.0)))
    }

    /// The indices along the inner axis of a coefficient.
    fn coef_extent(&self, row: RowId) -> Interval {
        let mut coefs = (0..self.scheme.coefs.len()).map(|index| CoefId(index as u32));
        let coef = coefs.find(|coef| self.layout.coef_row(*coef) == row);
        let position = coef.map(|coef| self.scheme.coefs[coef.index()].position);
        match position {
            Some(position) => self.scheme.grid.extent(position)[Axis::INNER],
            None => self.line().own(),
        }
    }

    fn filled(&self, row: RowId, value: impl Fn(i64) -> Option<T>) -> Line<T> {
        let mut line = self.line().beginning(self.layout.row_begin(row));
        for z in line.visible() {
            line.set(z, value(z));
        }
        line
    }

    /// Ghosts along the inner axis that towers make are unknown in memory.
    fn forget_inner_ghosts(&mut self) {
        if self.program.block.ghosts.is_none() {
            return;
        }
        self.each_inner_ghost(|memory, _, ghost, _| memory[ghost] = None);
    }

    /// Makes all ghosts along the inner axis anew, as a kernel does after time blocks that leave them out of date.
    fn make_inner_ghosts(&mut self) {
        if self.program.block.ghosts.is_none() {
            return;
        }
        self.each_inner_ghost(|memory, source, ghost, negated| {
            let value = memory[source];
            memory[ghost] = if negated { value.map(T::neg) } else { value };
        });
    }

    fn each_inner_ghost(&mut self, mut act: impl FnMut(&mut [Option<T>], usize, usize, bool)) {
        let visible = [Axis::OUTER, Axis::MIDDLE].map(|axis| self.layout.visible(axis));
        for id in self.scheme.component_ids() {
            let pairs = self.inner_ghosts(id).pairs();
            // An odd component stays 0 on its plane of symmetry, in ghosts, too.
            let held =
                [Axis::OUTER, Axis::MIDDLE].map(|axis| self.ghosts[id.index()].0[axis].held());
            for level in 0..self.scheme.component(id).time_levels {
                let row = self.layout.row(id, level.into());
                let groups = PerAxis([visible[0], visible[1], Interval::new(0, 1)]);
                for_each_index(groups, |at| {
                    let group = Group::new(at[Axis::OUTER], at[Axis::MIDDLE]);
                    let within = held.iter().zip(group.array());
                    if !within
                        .into_iter()
                        .all(|(held, n)| held.iter().any(|range| range.contains(n)))
                    {
                        return;
                    }
                    for (source, ghost) in &pairs {
                        let [source, to] = [*source, ghost.index].map(|z| {
                            let at = PerAxis([group.x, group.y, z]);
                            self.layout.element(row, at) as usize
                        });
                        act(&mut self.memory, source, to, ghost.negated);
                    }
                });
            }
        }
    }
}
