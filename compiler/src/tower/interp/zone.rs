//! Amendments: states stay in memory, and interior periods fetch them ahead.

use super::TowerInterp;
use super::interior::Lane;
use super::value::number;
use crate::evaluate::evaluate_all;
use crate::lattice::{Axis, PerAxis};
use crate::real::Real;
use crate::scheme::{Amendment, Op, StateId, Update, ZoneId};
use crate::tower::group::Group;
use crate::tower::program::{Amend, Amended};
use crate::tower::zones::{Memory, memory_of};

/// A cell at which an amendment may act.
#[derive(Clone, Copy)]
pub(super) struct Amending<T> {
    pub group: Group,
    pub z: i64,
    /// `None`: the update has none. An unknown mask makes an unknown value.
    pub mask: Option<Option<T>>,
}

impl<T: Real> TowerInterp<'_, T> {
    fn state(&self, zone: ZoneId, state: StateId, group: Group, z: i64) -> Option<usize> {
        let at = PerAxis([group.x, group.y, z]);
        let element = self.layout.state_element(zone, state, at)?;
        Some(element as usize)
    }

    /// Fetches the states of a row.
    pub(super) fn fetch(&self, of: Amended, lane: &mut Lane<'_, '_, T>) {
        let update = &lane.at.updates(self.scheme)[of.row.update];
        let amendment = &update.amendments[of.amendment];
        let group = lane.origin + of.row.at;
        let present = self.lanes(lane.of.launch).present();
        for op in &amendment.body.ops {
            let Op::State(state) = op else { continue };
            let mut line = self.line();
            for z in present.lo..present.hi {
                let at = self.state(amendment.zone, *state, group, z);
                line.set(z, at.and_then(|at| self.memory[at]));
            }
            lane.stage.states.insert((of, *state), line);
        }
    }

    /// Amends a row, and advances its states in memory.
    pub(super) fn amend(&mut self, op: &Amend, lane: &mut Lane<'_, '_, T>) -> Result<(), String> {
        let update = &lane.at.updates(self.scheme)[op.of.row.update];
        let amendment = &update.amendments[op.of.amendment];
        for operand in op.operands.iter().flatten().chain(&op.mask) {
            lane.fetch(*operand)?;
        }
        let mut line = lane.register(op.target)?.clone();
        let lanes = self.lanes(lane.of.launch);
        let stage = self.stage_of(lane.of);
        let active = lanes.active(stage, stage).intersect(lanes.present());
        let group = lane.origin + op.of.row.at;
        for z in active.lo..active.hi {
            let mask = op.mask.map(|mask| lane.value(mask, z));
            let cell = Amending { group, z, mask };
            let base = line.get(z);
            let read = |n: usize| match (op.operands[n], &amendment.body.ops[n]) {
                (Some(_), _) => self.seen(lane, op.of.row, 1 + op.of.amendment, &op.operands, n, z),
                (None, Op::State(state)) => {
                    let asked = lane.stage.states.get(&(op.of, *state));
                    asked.and_then(|line| line.get(z))
                }
                _ => None,
            };
            let reads: Vec<Option<T>> = (0..amendment.body.ops.len()).map(read).collect();
            line.set(
                z,
                self.amended(cell, update, amendment, base, |n| reads[n])?,
            );
        }
        lane.tower.registers.insert(op.target, line);
        Ok(())
    }

    /// The value after an amendment; new states go to memory. `read`: the value that an operation of the body reads of
    /// a row or a state.
    pub(super) fn amended(
        &mut self,
        cell: Amending<T>,
        update: &Update,
        amendment: &Amendment,
        base: Option<T>,
        mut read: impl FnMut(usize) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Amending { group, z, mask } = cell;
        let at = PerAxis([group.x, group.y, z]);
        let acts = update.region.contains(at) && self.scheme.zone(amendment.zone).contains(at);
        match mask {
            _ if !acts => return Ok(base),
            Some(None) => return Ok(None),
            Some(Some(mask)) if mask == T::from_f64(0.0) => return Ok(base),
            _ => {}
        }
        let mut none = ();
        let values = evaluate_all(
            &mut none,
            &amendment.body,
            |_, n| match &amendment.body.ops[n] {
                Op::Base => base,
                op @ Op::Coef(coef) => match memory_of(self.scheme, op) {
                    Some(Memory::Lane) => self.axis_coef(Axis::INNER, *coef, z),
                    Some(Memory::Row(axis)) => self.axis_coef(axis, *coef, at[axis]),
                    _ => read(n),
                },
                _ => read(n),
            },
            |_, op, values| number(op, values),
        );
        for advance in &amendment.advances {
            let name = &self.scheme.states[advance.state.index()].name;
            let place = self.state(amendment.zone, advance.state, group, z);
            let (Some(place), Some(value)) = (place, values[advance.value.index()]) else {
                return Err(format!("{name} at {at:?} gets an unknown value"));
            };
            self.memory[place] = Some(value);
        }
        Ok(values[amendment.body.result.index()])
    }

    fn axis_coef(&self, axis: Axis, coef: crate::scheme::CoefId, i: i64) -> Option<T> {
        self.memory[self.layout.axis_coef_element(axis, coef, i) as usize]
    }

    /// A state in memory.
    pub(super) fn state_value(
        &self,
        zone: ZoneId,
        state: StateId,
        group: Group,
        z: i64,
    ) -> Option<T> {
        self.memory[self.state(zone, state, group, z)?]
    }
}
