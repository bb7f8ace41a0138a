//! Boundary periods: row by row in memory.

use super::value::{kept, number};
use super::volume::{Corrected, VolumeAt, VolumeCell};
use super::zone::Amending;
use super::{Launch, TowerInterp};
use crate::evaluate::evaluate;
use crate::lattice::{Axis, PerAxis};
use crate::layout::RowId;
use crate::real::Real;
use crate::scheme::{ComponentId, Op, Read};
use crate::tower::Placement;
use crate::tower::boundary::BoundaryUpdate;
use crate::tower::group::Group;
use crate::tower::residency::{StageAt, keeps_old, reach};
use crate::tower::zones::memory_of;

/// A stage of a boundary period.
#[derive(Clone, Copy)]
pub(super) struct Boundary<'p> {
    pub launch: Launch,
    pub placement: &'p Placement,
    pub period: u64,
    /// Of the period.
    pub stage: usize,
}

/// A cell whose update is evaluated.
#[derive(Clone, Copy)]
struct Cell {
    at: StageAt,
    group: Group,
    z: i64,
}

impl<T: Real> TowerInterp<'_, T> {
    /// The rows of a stage that lie in the regions of their updates.
    pub(super) fn boundary(
        &mut self,
        of: Boundary<'_>,
        volumes: &VolumeAt<'_, T>,
    ) -> Result<(), String> {
        let program = self.program;
        let periods = &program.boundary.periods[of.placement.alignment];
        for rows in &periods[of.stage] {
            self.boundary_rows(of, rows, volumes)?;
        }
        Ok(())
    }

    fn boundary_rows(
        &mut self,
        of: Boundary<'_>,
        rows: &BoundaryUpdate,
        volumes: &VolumeAt<'_, T>,
    ) -> Result<(), String> {
        let program = self.program;
        let towers = &program.towers;
        let at = StageAt::new(self.scheme, of.stage as i64);
        let update = &at.updates(self.scheme)[rows.update];
        let stage = of.period as i64 * program.per_period() as i64 + of.stage as i64;
        let origin = of.placement.origin + towers.advance * of.period as i64;
        let seam = towers.rings.seam.as_ref();
        let side = seam.map(|seam| {
            let stages = self.scheme.stages.len();
            seam.side(of.stage % stages, rows.update).at(stage)
        });
        let lanes = self.lanes(of.launch);
        let active = lanes.active(stage, stage).intersect(lanes.present());
        let [outer, middle, _] = update.region.0;
        let extent = self.scheme.extent(update.target)[Axis::INNER];
        let indices = extent.intersect(active);
        let target = at.target(self.scheme, self.layout, update);
        let width = program.boundary.width(of.placement.width());
        let width = width.ok_or("a narrow tower has no list of rows")?;
        for row in &program.boundary.rows[rows.rows[width].clone()] {
            let group = origin + *row;
            if side.is_some_and(|side| !side.contains(group.x)) {
                continue;
            }
            let [x, y] = towers.rings.cells;
            let around = |n: i64, cells: Option<i64>| cells.map_or(n, |cells| n.rem_euclid(cells));
            let group = Group::new(around(group.x, x), around(group.y, y));
            if !outer.contains(group.x) || !middle.contains(group.y) {
                continue;
            }
            let mut values = Vec::new();
            for z in indices.lo..indices.hi {
                let cell = Cell { at, group, z };
                let value = self.evaluate_cell(cell, rows.update)?;
                let of = VolumeCell {
                    stage: at.stage,
                    component: update.target,
                    group,
                    z,
                };
                values.push(volumes.add(of, Corrected::All, value, |_| None));
            }
            for (z, value) in (indices.lo..).zip(values) {
                self.write_everywhere(
                    update.target,
                    target,
                    PerAxis([group.x, group.y, z]),
                    value,
                )?;
            }
        }
        Ok(())
    }

    /// The new value of a cell, from memory.
    fn evaluate_cell(&mut self, cell: Cell, update: usize) -> Result<Option<T>, String> {
        let Cell { at, group, z } = cell;
        let update = &at.updates(self.scheme)[update];
        let own = |row: RowId| self.memory[self.element(row, group, z)];
        let mut none = ();
        let value = evaluate(
            &mut none,
            &update.body,
            |_, n| match &update.body.ops[n] {
                Op::Read(read) => self.read_cell(cell, read),
                Op::Coef(coef) => own(self.layout.coef_row(*coef)),
                _ => None,
            },
            |_, op, values| number(op, values),
        );
        let mask = update.mask.map(|mask| own(self.layout.coef_row(mask)));
        let old = keeps_old(self.scheme, update)
            .then(|| own(at.target(self.scheme, self.layout, update)))
            .flatten();
        let mut value = kept(self.scheme, update, z, value, mask, old);
        for amendment in &update.amendments {
            let reads: Vec<Option<T>> = amendment
                .body
                .ops
                .iter()
                .map(|op| match op {
                    Op::Read(read) => self.read_cell(cell, read),
                    Op::Coef(coef) if memory_of(self.scheme, op).is_none() => {
                        self.memory[self.element(self.layout.coef_row(*coef), group, z)]
                    }
                    Op::State(state) => self.state_value(amendment.zone, *state, group, z),
                    _ => None,
                })
                .collect();
            let cell = Amending { group, z, mask };
            value = self.amended(cell, update, amendment, value, |n| reads[n])?;
        }
        Ok(value)
    }

    /// A value near a cell; ghosts along the inner axis are found where their sources are, if memory does not keep
    /// them.
    fn read_cell(&self, cell: Cell, read: &Read) -> Option<T> {
        let Cell { at, group, z } = cell;
        let row = at.read(self.scheme, self.layout, read);
        let by = i64::from(read.offset[Axis::INNER]);
        let group = group + reach(read);
        let index = z + by;
        let length = self.program.block.shared_row.length;
        let ghosts = self.program.block.ghosts.as_ref();
        let folds = ghosts.map(|ghosts| ghosts.inner.folds(read.component, length, by));
        let below = folds
            .and_then(|f| f.below)
            .filter(|lower| index < lower.end);
        let above = folds
            .and_then(|f| f.above)
            .filter(|upper| index >= upper.first);
        let below = below.map(|lower| lower.fold);
        match below.or(above.map(|upper| upper.fold)) {
            Some(fold) => {
                let value = self.memory[self.element(row, group, fold.source(index))];
                if fold.negated {
                    value.map(T::neg)
                } else {
                    value
                }
            }
            None => self.memory[self.element(row, group, index)],
        }
    }

    /// Writes a value to memory with all of its ghosts, except ghosts along the inner axis that memory does not keep.
    fn write_everywhere(
        &mut self,
        id: ComponentId,
        row: RowId,
        at: PerAxis<i64>,
        value: Option<T>,
    ) -> Result<(), String> {
        let z = at[Axis::INNER];
        for (to, negated) in self.ghosts[id.index()].of_row(at) {
            let group = Group::new(to[Axis::OUTER], to[Axis::MIDDLE]);
            let live = self.scheme.grid.live(self.scheme.component(id).position);
            // The zeros on a plane about which a component is odd have no sign.
            let is_zero = !live[Axis::INNER].contains(z);
            let ghost = if negated && !is_zero {
                value.map(T::neg)
            } else {
                value
            };
            self.write(id, row, group, z, ghost)?;
        }
        Ok(())
    }
}
