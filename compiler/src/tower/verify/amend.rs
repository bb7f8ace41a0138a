//! Amendments of rows.

use super::{Check, Fault, StageState};
use crate::scheme::Op;
use crate::tower::program::{Amend, Amended, Operand};
use crate::tower::residency::{RowRef, RowUpdate, StageAt};
use crate::tower::zones::memory_of;
use std::collections::BTreeSet;

impl Check<'_> {
    /// The amendments of the variant's zones that an update has, by their numbers.
    fn amendments(&self, stage: StageAt, update: usize) -> Vec<usize> {
        let of = stage.updates(self.scheme).get(update);
        let all = of.into_iter().flat_map(|u| u.amendments.iter().enumerate());
        let own = all.filter(|(_, amendment)| self.zones.contains(amendment.zone));
        own.map(|(number, _)| number).collect()
    }

    /// Rule 10.
    pub(super) fn fetch(
        &self,
        number: usize,
        state: &mut StageState,
        stage: StageAt,
        of: Amended,
    ) -> Result<(), Fault> {
        let early = self.program.towers.waits_for_states() && !state.awaited;
        let is_own = self
            .amendments(stage, of.row.update)
            .contains(&of.amendment);
        if early || !is_own || !state.fetched.insert(of) {
            let message = format!("{of:?} is fetched too early, or twice");
            return Err(self.fault(10, number, message));
        }
        Ok(())
    }

    /// Rules 3 and 10 for rows that are amended together.
    pub(super) fn amend_all(
        &mut self,
        number: usize,
        state: &mut StageState,
        stage: StageAt,
        all: &[Amend],
    ) -> Result<(), Fault> {
        let mut rows = BTreeSet::new();
        let mut zones = BTreeSet::new();
        for Amend { of, .. } in all {
            let update = stage.updates(self.scheme).get(of.row.update);
            let amendment = update.and_then(|u| u.amendments.get(of.amendment));
            zones.insert(amendment.map(|amendment| amendment.zone));
            if !rows.insert(of.row) || zones.len() > 1 {
                let message =
                    format!("{of:?} is amended together with itself, or in several zones");
                return Err(self.fault(10, number, message));
            }
        }
        for op in all {
            self.amend(number, state, stage, op)?;
        }
        Ok(())
    }

    /// Rules 3 and 10.
    fn amend(
        &mut self,
        number: usize,
        state: &mut StageState,
        stage: StageAt,
        op: &Amend,
    ) -> Result<(), Fault> {
        let Amend { of, target, .. } = *op;
        let before = state.amended.entry(of.row).or_default();
        let next = self.amendments(stage, of.row.update).get(*before).copied();
        *before += 1;
        let open = state.open.get(&target) == Some(&of.row);
        if next != Some(of.amendment) || !open {
            let message = format!("{of:?} acts on a row that is not open, or out of order");
            return Err(self.fault(10, number, message));
        }
        let update = &stage.updates(self.scheme)[of.row.update];
        let body = &update.amendments[of.amendment].body;
        let memory = |op: &Op| memory_of(self.scheme, op).is_some();
        if body.ops.iter().any(memory) && !state.fetched.remove(&of) {
            return Err(self.fault(10, number, format!("{of:?} has not been asked for")));
        }
        let reads = body.ops.iter().map(|op| {
            let row = matches!(op, Op::Read(_) | Op::Coef(_));
            row && !memory(op)
        });
        let mask = update.mask.map(|mask| self.layout.coef_row(mask));
        let mask = mask.map(|row| RowRef { at: of.row.at, row });
        let has = op.operands.iter().map(Option::is_some);
        if !reads.eq(has) || op.mask.map(|m| m.row()) != mask {
            let message = format!("{of:?} is not as the scheme has it");
            return Err(self.fault(10, number, message));
        }
        for operand in op.operands.iter().flatten().chain(&op.mask) {
            let is_old = matches!(operand, Operand::Old(_));
            if is_old != (operand.row() == target) {
                let message =
                    format!("{of:?} reads {operand:?}, which is not from before the stage");
                return Err(self.fault(10, number, message));
            }
            self.operand(number, state, *operand)?;
        }
        self.check_rows(number, stage, of.row, body, &op.operands)?;
        let value = self.new_value(target);
        self.registers.insert(target, value);
        Ok(())
    }

    /// Rule 10: nothing else happens to a row before it is amended.
    pub(super) fn check_amended(
        &self,
        number: usize,
        state: &StageState,
        stage: StageAt,
        row: &RowUpdate,
    ) -> Result<(), Fault> {
        let needed = self.amendments(stage, row.update).len();
        let found = state.amended.get(row).copied().unwrap_or(0);
        match needed == found {
            true => Ok(()),
            false => {
                let message = format!("{row:?} has {found} of {needed} amendments");
                Err(self.fault(10, number, message))
            }
        }
    }
}
