//! Checks the rules of tower programs, before one is executed; a violation is a defect of the compiler, not of a
//! schedule.
//!
//! 1. There is a period for each alignment, with a list of operations for each stage, and rows of boundary periods for
//!    each of them.
//! 2. A stage updates each row of its tiles exactly once, in interior and in boundary periods.
//! 3. A value that an operation reads from a register or from a shared row is the newest value of the row that it
//!    means. A shared row that is loaded during a stage is there from the wait in the next stage on.
//! 4. A shared row is not overwritten in a stage that reads it: only after a stage is there a barrier.
//! 5. A row is loaded from memory only if memory has its newest value: the tower has stored its own writes.
//! 6. An updated row is committed exactly once, after sources have added to it, and published, stored or read in a
//!    later stage only then.
//! 7. A period leaves in registers and shared rows the values with which the next one begins, displaced by the advance;
//!    all else that it wrote is in memory.
//! 8. Where ends may cut rows off, or lines are cut into z blocks, each update has the old value.
//! 9. Faces of z blocks move as far as stages read.
//! 10. An updated row is amended once by each amendment of the variant's zones, in their order, before anything else
//!     happens to it; rows that are amended together are different ones, by the same zone. The values that an amendment
//!     needs from memory were fetched once in the same stage, and after the wait where another tower may not have
//!     advanced them before. An amendment reads the old value of its own row.
//! 11. Waves are added from the slots to which they were copied for the row, after the wait, and once in a period; no
//!     two rows have the same slot, a period has two stages, and the block has all these slots.
//! 12. A published row brings its zeros beyond the ends of lines where other rows of the shared row leave values.
//!
//! The check runs one period with values that have names instead of numbers: a period begins in any state that
//! satisfies rule 7, so that it ends in such a state shows the rest by induction.

mod amend;
mod fault;
mod slots;
mod zeros;

use super::allocate::Allocation;
use super::block::ZBlocks;
use super::numbering::View;
use super::program::{Amended, Operand, PeriodProgram, RowOp, StageProgram, TowerProgram, Update};
use super::residency::{RowRef, RowUpdate, StageAt};
use super::zones::memory_of;
use crate::lattice::Axis;
use crate::layout::Layout;
use crate::scheme::{Body, Scheme, ZoneSet};
pub use fault::Fault;
use fault::fault;
use std::collections::{BTreeMap, BTreeSet};

/// All rules in the module's documentation.
pub fn verify(scheme: &Scheme, layout: &Layout, program: &TowerProgram) -> Result<(), Fault> {
    let View { scheme, layout } = &program.towers.numbering.view(scheme, layout);
    let count = program.towers.alignments.len();
    let boundary = &program.boundary.periods;
    let counts = [
        program.periods.len(),
        program.allocations.len(),
        boundary.len(),
    ];
    if counts != [count; 3] {
        let message = format!("{counts:?} periods for {count} alignments");
        return Err(fault(1, 0, 0, message));
    }
    if let Some(z_blocks) = program.block.lines.z_blocks() {
        check_lean(scheme, z_blocks)?;
    }
    zeros::check(scheme, layout, program)?;
    for (alignment, period) in program.periods.iter().enumerate() {
        check_boundary(scheme, program, alignment)?;
        let variants = &program.towers.variants.all;
        if period.variants.len() != variants.len() {
            let message = format!("{} of {} variants", period.variants.len(), variants.len());
            return Err(fault(1, alignment, 0, message));
        }
        for (stages, variant) in period.variants.iter().zip(variants) {
            let keeps = variant.predicated || program.block.lines.z_blocks().is_some();
            let mut check = Check {
                scheme,
                layout,
                program,
                alignment,
                keeps,
                zones: variant.zones,
                values: 0,
                newest: BTreeMap::new(),
                registers: BTreeMap::new(),
                shared: BTreeMap::new(),
                unstored: BTreeSet::new(),
            };
            slots::check(scheme, program, alignment, stages)?;
            check.period(period, stages)?;
        }
    }
    Ok(())
}

/// Rule 9.
fn check_lean(scheme: &Scheme, z_blocks: &ZBlocks) -> Result<(), Fault> {
    let count = scheme.stages.len() as i64;
    let reach = |stage: i64, sign: i64| {
        let stage = stage.rem_euclid(count) as usize;
        let updates = scheme.stages[stage].updates.iter();
        let reads = updates.flat_map(|u| u.reads());
        let far = reads.map(|read| sign * i64::from(read.offset[Axis::INNER]));
        far.max().unwrap_or(0)
    };
    for stage in 0..count {
        let moved = z_blocks.lean(stage) - z_blocks.lean(stage - 1);
        let needed = reach(stage, 1).max(reach(stage - 1, -1));
        if moved < needed {
            let message = format!("faces move by {moved}, and stages read as far as {needed}");
            return Err(fault(9, 0, stage as usize, message));
        }
    }
    Ok(())
}

/// Rules 1 and 2 for boundary periods.
fn check_boundary(scheme: &Scheme, program: &TowerProgram, alignment: usize) -> Result<(), Fault> {
    let residency = &program.towers.alignments[alignment];
    let stages = &program.boundary.periods[alignment];
    if stages.len() != residency.stages.len() {
        let message = format!("{} stages of boundary periods", stages.len());
        return Err(fault(1, alignment, 0, message));
    }
    if program.boundary.widths != program.towers.rings.widths() {
        let message = "boundary periods have lists for other widths of towers".to_owned();
        return Err(fault(1, alignment, 0, message));
    }
    for (number, (updates, rows)) in stages.iter().zip(&residency.stages).enumerate() {
        let known = StageAt::new(scheme, number as i64).updates(scheme).len();
        let listed = |width: usize| {
            let mut found = Vec::new();
            for update in updates {
                let range = update.rows.get(width).cloned().unwrap_or_default();
                let rows = program.boundary.rows.get(range).unwrap_or_default();
                found.extend(rows.iter().map(|at| RowUpdate {
                    at: *at,
                    update: update.update,
                }));
            }
            found.sort_unstable();
            found
        };
        for (width, own) in program.boundary.widths.iter().enumerate() {
            let limits = program.towers.rings.limits_of(*own);
            let is_own = |row: &&RowUpdate| {
                let depths = program.towers.depths(alignment, number, **row);
                let depths = depths.into_iter().flatten();
                let mut limited = depths.zip(limits);
                limited.all(|(depth, limit)| limit.is_none_or(|limit| depth < limit))
            };
            let expected = rows.updates.iter().filter(is_own);
            if !listed(width).iter().eq(expected) || updates.iter().any(|u| u.update >= known) {
                let message = "boundary periods have other rows than tiles".to_owned();
                return Err(fault(2, alignment, number, message));
            }
        }
    }
    Ok(())
}

/// The name of a value.
type Value = u64;

/// The contents of a shared row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    row: RowRef,
    value: Value,
    /// It was loaded during the stage before, and the stage has not waited for that.
    arriving: bool,
}

/// A period with named values.
struct Check<'a> {
    scheme: &'a Scheme,
    layout: &'a Layout,
    program: &'a TowerProgram,
    alignment: usize,
    /// All updates have the old value.
    keeps: bool,
    /// Whose amendments it has.
    zones: ZoneSet,
    values: Value,
    newest: BTreeMap<RowRef, Value>,
    registers: BTreeMap<RowRef, Value>,
    shared: BTreeMap<usize, Held>,
    /// Rows whose newest values memory does not have.
    unstored: BTreeSet<RowRef>,
}

/// The state of the check in a stage.
#[derive(Default)]
struct StageState {
    updated: BTreeSet<RowUpdate>,
    /// Rows whose new values are not final, and the rows among them whose old values are in registers.
    open: BTreeMap<RowRef, RowUpdate>,
    old: BTreeSet<RowRef>,
    /// Values that amendments have fetched and not used yet, and how many amendments each open row has had.
    fetched: BTreeSet<Amended>,
    amended: BTreeMap<RowUpdate, usize>,
    /// The loads of the previous stage are complete.
    awaited: bool,
    /// Shared rows that were read, and shared rows that were written.
    read: BTreeSet<usize>,
    written: BTreeSet<usize>,
}

impl Check<'_> {
    fn fault(&self, rule: u32, stage: usize, message: String) -> Fault {
        fault(rule, self.alignment, stage, message)
    }

    fn new_value(&mut self, row: RowRef) -> Value {
        self.values += 1;
        self.newest.insert(row, self.values);
        self.values
    }

    /// The newest value of a row.
    fn newest(&mut self, row: RowRef) -> Value {
        match self.newest.get(&row) {
            Some(value) => *value,
            None => self.new_value(row),
        }
    }

    fn period(&mut self, period: &PeriodProgram, stages: &[StageProgram]) -> Result<(), Fault> {
        let allocation: &Allocation = &self.program.allocations[self.alignment];
        let count = self.program.towers.per_period() as usize;
        if stages.len() != count || allocation.stages.len() != count {
            let message = format!("{} stages instead of {count}", stages.len());
            return Err(self.fault(1, 0, message));
        }
        for carried in &period.carried {
            let value = self.newest(carried.row);
            self.registers.insert(carried.row, value);
            if carried.written.is_some() {
                self.unstored.insert(carried.row);
            }
        }
        for copy in &period.held {
            let held = Held {
                row: copy.row,
                value: self.newest(copy.row),
                arriving: false,
            };
            if self.shared.insert(copy.shared, held).is_some() {
                let message = format!("shared row {} holds two rows", copy.shared);
                return Err(self.fault(7, 0, message));
            }
        }
        // Loads of the last stage belong to the next period; here they have been made for the first one.
        let advance = self.program.towers.advance;
        if let Some(last) = stages.last() {
            for load in &last.loads {
                let row = load.row.seen_from(advance);
                let known = period
                    .held
                    .iter()
                    .any(|c| (c.row, c.shared) == (row, load.shared));
                if !known {
                    let message = format!("{row:?} is loaded, and not held when the period begins");
                    return Err(self.fault(7, count - 1, message));
                }
                if let Some(held) = self.shared.get_mut(&load.shared) {
                    held.arriving = true;
                }
            }
        }
        for (number, stage) in stages.iter().enumerate() {
            self.stage(number, stage)?;
        }
        self.end(period, count)
    }

    fn stage(&mut self, number: usize, stage: &StageProgram) -> Result<(), Fault> {
        let mut state = StageState::default();
        for op in &stage.ops {
            self.op(number, &mut state, op)?;
        }
        let rows = &self.program.towers.alignments[self.alignment].stages[number];
        if !state.updated.iter().eq(&rows.updates) {
            let message = "other rows are updated than lie in the tile".to_owned();
            return Err(self.fault(2, number, message));
        }
        if let Some(row) = state.open.values().next() {
            return Err(self.fault(6, number, format!("{row:?} is not committed")));
        }
        if let Some(of) = state.fetched.first() {
            return Err(self.fault(10, number, format!("{of:?} is asked for and not used")));
        }
        if let Some(row) = state.read.intersection(&state.written).next() {
            let message = format!("shared row {row} is read and overwritten");
            return Err(self.fault(4, number, message));
        }
        if let Some((row, _)) = self.shared.iter().find(|(_, held)| held.arriving) {
            let message = format!("nothing waits for shared row {row}");
            return Err(self.fault(3, number, message));
        }
        for load in &stage.loads {
            let StageState { read, written, .. } = &mut state;
            if read.contains(&load.shared) || !written.insert(load.shared) {
                let message = format!("shared row {} is in use when it is loaded", load.shared);
                return Err(self.fault(4, number, message));
            }
            if self.unstored.contains(&load.row) {
                let message = format!("{:?} is loaded, and not stored before", load.row);
                return Err(self.fault(5, number, message));
            }
            let held = Held {
                row: load.row,
                value: self.newest(load.row),
                arriving: true,
            };
            self.shared.insert(load.shared, held);
        }
        Ok(())
    }

    fn op(&mut self, number: usize, state: &mut StageState, op: &RowOp) -> Result<(), Fault> {
        let stage = StageAt::new(self.scheme, number as i64);
        match op {
            RowOp::Prefetch { .. } => {}
            RowOp::Await => {
                state.awaited = true;
                self.shared
                    .values_mut()
                    .for_each(|held| held.arriving = false);
            }
            RowOp::Fetch(all) => {
                for of in all {
                    self.fetch(number, state, stage, *of)?;
                }
            }
            RowOp::Update(update) => self.update(number, state, stage, update)?,
            RowOp::Amend(all) => self.amend_all(number, state, stage, all)?,
            RowOp::Inject { update, rows, .. } => {
                for row in rows {
                    let open = state.open.values().any(|other| other == row);
                    if !open || row.update != *update {
                        let message = format!("a source adds to {row:?}, which is not open");
                        return Err(self.fault(6, number, message));
                    }
                    self.check_amended(number, state, stage, row)?;
                }
            }
            RowOp::Commit(row) => {
                self.check_amended(number, state, stage, row)?;
                let open = state.open.iter().find(|(_, other)| *other == row);
                let Some((target, _)) = open.map(|(target, row)| (*target, *row)) else {
                    let message = format!("{row:?} is committed, and not open");
                    return Err(self.fault(6, number, message));
                };
                state.open.remove(&target);
                state.old.remove(&target);
            }
            RowOp::Publish { row, shared, .. } => {
                let value = self.register(number, state, *row)?;
                let held = Held {
                    row: *row,
                    value,
                    arriving: false,
                };
                state.written.insert(*shared);
                self.shared.insert(*shared, held);
            }
            RowOp::Store { row, .. } => {
                self.register(number, state, *row)?;
                self.unstored.remove(row);
            }
            RowOp::Keep(operand) => self.operand(number, state, *operand)?,
        }
        Ok(())
    }

    /// A committed row is in a register, with its newest value.
    fn register(&mut self, number: usize, state: &StageState, row: RowRef) -> Result<Value, Fault> {
        if state.open.contains_key(&row) {
            let message = format!("{row:?} is used before it is committed");
            return Err(self.fault(6, number, message));
        }
        let newest = self.newest(row);
        match self.registers.get(&row) {
            Some(value) if *value == newest => Ok(newest),
            found => {
                let message = format!("the newest value of {row:?} is in no register: {found:?}");
                Err(self.fault(3, number, message))
            }
        }
    }

    fn operand(
        &mut self,
        number: usize,
        state: &mut StageState,
        operand: Operand,
    ) -> Result<(), Fault> {
        let row = operand.row();
        // An update reads values from before its stage, and no update reads a value that another one of its stage
        // writes.
        let newest = self.newest(row);
        let (shared, enters) = match operand {
            Operand::Register(row) => {
                let found = self.registers.get(&row);
                if found != Some(&newest) {
                    let message =
                        format!("the newest value of {row:?} is in no register: {found:?}");
                    return Err(self.fault(3, number, message));
                }
                return Ok(());
            }
            Operand::Old(row) => {
                return match state.old.contains(&row) {
                    true => Ok(()),
                    false => {
                        let message = format!("the old value of {row:?} is in no register");
                        Err(self.fault(3, number, message))
                    }
                };
            }
            Operand::Entering { shared, .. } => (shared, true),
            Operand::CrossLane { shared, .. } => (shared, false),
        };
        let held = Held {
            row,
            value: newest,
            arriving: false,
        };
        let found = self.shared.get(&shared).copied();
        if found != Some(held) {
            let message = format!("shared row {shared} should hold {held:?}, and holds {found:?}");
            return Err(self.fault(3, number, message));
        }
        state.read.insert(shared);
        if enters {
            self.registers.insert(row, newest);
        }
        Ok(())
    }

    fn update(
        &mut self,
        number: usize,
        state: &mut StageState,
        stage: StageAt,
        op: &Update,
    ) -> Result<(), Fault> {
        let updates = stage.updates(self.scheme);
        let Some(update) = updates.get(op.row.update) else {
            let message = format!("{:?} is no update of the stage", op.row);
            return Err(self.fault(2, number, message));
        };
        let target = RowRef {
            at: op.row.at,
            row: stage.target(self.scheme, self.layout, update),
        };
        let reads = update
            .body
            .ops
            .iter()
            .map(|op| matches!(op, crate::scheme::Op::Read(_) | crate::scheme::Op::Coef(_)));
        let has = op.operands.iter().map(Option::is_some);
        let whole = op.target == target
            && op.operands.len() == update.body.ops.len()
            && reads.eq(has)
            && op.mask.is_some() == update.mask.is_some();
        if !whole || !state.updated.insert(op.row) {
            let message = format!("{:?} is not as the scheme has it, or there twice", op.row);
            return Err(self.fault(2, number, message));
        }
        if self.keeps && op.old.is_none() {
            let message = format!("{:?} has no old value", op.row);
            return Err(self.fault(8, number, message));
        }
        let operands = op.operands.iter().flatten();
        for operand in operands.chain(&op.mask).chain(&op.old) {
            self.operand(number, state, *operand)?;
        }
        self.check_rows(number, stage, op.row, &update.body, &op.operands)?;
        let mask = update.mask.map(|mask| self.layout.coef_row(mask));
        let mask = mask.map(|row| RowRef { at: op.row.at, row });
        let kept = op.old.map(|old| old.row());
        if op.mask.map(|m| m.row()) != mask || kept.is_some_and(|old| old != op.target) {
            let message = format!("mask or old value of {:?} is of another row", op.row);
            return Err(self.fault(3, number, message));
        }
        let value = self.new_value(target);
        self.registers.insert(target, value);
        self.unstored.insert(target);
        state.open.insert(target, op.row);
        if op.old.is_some() {
            state.old.insert(target);
        }
        Ok(())
    }

    /// Operands are of the rows that the body reads.
    fn check_rows(
        &self,
        number: usize,
        stage: StageAt,
        of: RowUpdate,
        body: &Body,
        operands: &[Option<Operand>],
    ) -> Result<(), Fault> {
        let Check { scheme, layout, .. } = *self;
        let here = |row| RowRef { at: of.at, row };
        for (operand, read) in operands.iter().zip(&body.ops) {
            if memory_of(scheme, read).is_some() {
                continue;
            }
            let (expected, by) = match read {
                crate::scheme::Op::Read(read) => {
                    let row = RowRef {
                        at: of.at + super::residency::reach(read),
                        row: stage.read(scheme, layout, read),
                    };
                    (row, i64::from(read.offset[Axis::INNER]))
                }
                crate::scheme::Op::Coef(coef) => (here(layout.coef_row(*coef)), 0),
                _ => continue,
            };
            let fits = operand.is_some_and(|operand| {
                let distance = match operand {
                    Operand::CrossLane { by, .. } => by,
                    _ => 0,
                };
                operand.row() == expected && distance == by
            });
            if !fits {
                let message = format!("{operand:?} is read instead of {expected:?}");
                return Err(self.fault(3, number, message));
            }
        }
        Ok(())
    }

    /// Rule 7.
    fn end(&mut self, period: &PeriodProgram, count: usize) -> Result<(), Fault> {
        let advance = self.program.towers.advance;
        let moved = |row: RowRef| RowRef {
            at: row.at + advance,
            row: row.row,
        };
        let mut written = BTreeSet::new();
        for carried in &period.carried {
            let row = moved(carried.row);
            let newest = self.newest(row);
            let found = self.registers.get(&row);
            if found != Some(&newest) {
                let message = format!("{row:?} should be carried on, and is {found:?}");
                return Err(self.fault(7, count - 1, message));
            }
            if carried.written.is_some() {
                written.insert(row);
            }
        }
        if written != self.unstored {
            let lost = self.unstored.symmetric_difference(&written).next();
            let message = format!("{lost:?} is neither stored nor carried on");
            return Err(self.fault(7, count - 1, message));
        }
        for copy in &period.held {
            let row = moved(copy.row);
            let newest = self.newest(row);
            let found = self.shared.get(&copy.shared);
            if found.is_none_or(|held| (held.row, held.value) != (row, newest)) {
                let message = format!("shared row {} should hold {row:?}", copy.shared);
                return Err(self.fault(7, count - 1, message));
            }
        }
        Ok(())
    }
}
