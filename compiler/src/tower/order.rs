//! The order of row operations in a stage, and the place of each of their operands.
//!
//! Operations that need no arriving value and overwrite no row that another tower may still read come before the wait
//! for the loads of the previous stage; all others follow. Rows that come before the wait are amended with the first
//! rows behind it: values that amendments fetch when a stage begins take as long to arrive as some rows take.

use super::allocate::{Allocation, StageAllocation};
use super::end_zeros::EndZeros;
use super::group::Group;
use super::program::{Amend, Amended, Operand, RowOp, StageProgram, Update};
use super::residency::{RowRef, RowUpdate, StageAt, is_cross_lane, keeps_old, reach, row_coefs};
use super::towers::Towers;
use super::volume_source::{Adds, VolumeSource};
use super::wave_slots::{WaveCopy, wave_copies};
use super::zone_coefs::ZoneCoefs;
use super::zones::Variant;
use super::zones::{Memory, memory_of};
use crate::incident::FarRows;
use crate::lattice::Axis;
use crate::layout::{Layout, RowId};
use crate::scheme::{Body, Op, Scheme, ZoneSet};
use std::collections::BTreeSet;

/// Bytes of values to which volume sources add together, so that the values that they read are under way at the same
/// time: more values spill.
const TOGETHER: usize = 24;

/// The same where waves have been copied: they are read without a wait.
const COPIED: usize = 32;

/// Bytes of values that are amended together: threads outside of a zone have one jump for all of them, and no value
/// waits for the result of another.
const AMENDED: usize = 24;

/// Bytes of values that amendments have fetched and not used yet. A stage of FDTD(4,2) with W = 4 and layers along the
/// inner axis has that many, and more with other layers.
const AHEAD: usize = 112;

/// The context that the operations of all alignments have in common.
pub(super) struct Context<'a> {
    pub scheme: &'a Scheme,
    pub layout: &'a Layout,
    pub towers: &'a Towers,
    pub sources: &'a [VolumeSource],
    /// Waves of rows far from faces are copied to slots.
    pub copies: bool,
    /// Coefficients of zones that are in shared memory.
    pub coefs: &'a ZoneCoefs,
    pub end_zeros: EndZeros,
    /// All updates need the old values of the rows that they write, in every variant.
    pub keeps: bool,
}

/// The stages of a period, in the order of their operations.
struct Order<'a> {
    context: &'a Context<'a>,
    alignment: usize,
    /// All updates need the old values of the rows that they write.
    keeps: bool,
    /// The zones whose amendments it has.
    zones: ZoneSet,
    /// Whether it may meet faces of boxes of total fields across the first two axes.
    faces: bool,
    /// Rows whose values are in registers.
    registers: BTreeSet<RowRef>,
    /// The loads of the previous stage are complete.
    awaited: bool,
    /// Slots of waves in stages before.
    slots: usize,
    /// Copies of waves for rows of this stage.
    waves: Vec<WaveCopy>,
}

/// New values of a stage for which something is done to several rows together, before they are final.
struct Waiting {
    amendments: Vec<RowUpdate>,
    /// By updates.
    sources: Vec<Vec<RowUpdate>>,
}

/// Amendments of rows by the same zone.
struct Together {
    of: Vec<Amended>,
    /// Of the values that they need from memory, rows excepted.
    bytes: usize,
}

impl Context<'_> {
    /// The stages of a period of an alignment in a variant.
    pub fn stages(
        &self,
        alignment: usize,
        allocation: &Allocation,
        variant: &Variant,
    ) -> Vec<StageProgram> {
        let mut order = Order {
            context: self,
            alignment,
            keeps: self.keeps || variant.predicated,
            zones: variant.zones,
            faces: variant.faces,
            registers: allocation.carried.iter().map(|c| c.row).collect(),
            awaited: false,
            slots: 0,
            waves: Vec::new(),
        };
        let stages = allocation.stages.iter().enumerate();
        stages
            .map(|(number, stage)| StageProgram {
                loads: stage.loads.clone(),
                waves: order.take_slots(number, stage),
                ops: order.stage(number, stage),
            })
            .collect()
    }

    /// The sources after an update.
    fn sources_of(&self, stage: StageAt, update: usize) -> impl Iterator<Item = &VolumeSource> {
        let component = stage.updates(self.scheme)[update].target;
        let sources = self.sources.iter();
        sources.filter(move |source| source.is_after(stage.stage, component))
    }
}

impl Order<'_> {
    /// Gives the rows of a stage slots of waves.
    fn take_slots(&mut self, number: usize, allocation: &StageAllocation) -> Vec<WaveCopy> {
        let Context {
            scheme,
            sources,
            copies,
            ..
        } = *self.context;
        if copies {
            self.waves = wave_copies(scheme, number, allocation, sources, self.slots);
            let stage = StageAt::new(scheme, number as i64);
            let count = |copy: &WaveCopy| {
                let sources = self.context.sources_of(stage, copy.row.update);
                sources.filter(|source| source.is_copied()).count()
            };
            self.slots += self.waves.iter().map(count).sum::<usize>();
        }
        self.waves.clone()
    }

    fn stage(&mut self, number: usize, allocation: &StageAllocation) -> Vec<RowOp> {
        let Context { scheme, .. } = *self.context;
        let stage = StageAt::new(scheme, number as i64);
        let mut ops = Vec::new();
        let count = stage.updates(scheme).len();
        // Finding waves takes as long as loading them, so a prefetch pays only where many rows of a period have some:
        // not for rows near faces of sources that are bare or copied elsewhere, nor far from faces where all rows are
        // alike.
        let copies = self.context.copies;
        let prefetched = |source: &VolumeSource| match source.adds {
            Adds::Correction(FarRows::Alike) => self.faces && !copies,
            Adds::Correction(FarRows::Bare) => false,
            Adds::Correction(FarRows::Various) | Adds::Product => true,
        };
        let any = |update: &usize| self.sources_of(stage, *update).any(prefetched);
        for update in (0..count).filter(any) {
            let of = allocation.updates.iter().filter(|row| row.update == update);
            let rows: Vec<RowUpdate> = of.copied().collect();
            if !rows.is_empty() {
                ops.push(RowOp::Prefetch { update, rows });
            }
        }
        let (late, early): (Vec<RowUpdate>, Vec<RowUpdate>) = allocation
            .updates
            .iter()
            .partition(|row| self.is_late(stage, allocation, row) || self.is_shared(number, row));
        let mut waiting = Waiting {
            amendments: Vec::new(),
            sources: vec![Vec::new(); count],
        };
        self.awaited = false;
        for (rows, arrives) in [(early, true), (late, false)] {
            for row in rows {
                self.update(stage, allocation, row, &mut waiting, &mut ops);
            }
            if arrives {
                ops.push(RowOp::Await);
                self.awaited = true;
                for rows in &mut waiting.sources {
                    self.inject_some(stage, allocation, rows, &mut ops);
                }
            }
        }
        self.amend(stage, allocation, &mut waiting, &mut ops);
        for rows in &mut waiting.sources {
            self.inject(stage, allocation, rows, &mut ops);
        }
        for copy in &allocation.republish {
            // No operation of this stage may have read a row that arrives at the thread's own index.
            let own = self.own(allocation, copy.row);
            if matches!(own, Operand::Entering { .. }) {
                ops.push(RowOp::Keep(own));
            }
            ops.push(self.publish(copy.row, copy.shared));
        }
        for row in &allocation.wanted {
            ops.push(RowOp::Keep(self.own(allocation, *row)));
        }
        self.with_fetches(stage, ops)
    }

    fn publish(&self, row: RowRef, shared: usize) -> RowOp {
        let Context {
            layout, end_zeros, ..
        } = self.context;
        RowOp::Publish {
            row,
            shared,
            zeros: end_zeros.places(layout, row.row, shared),
        }
    }

    /// The same operations, with values that amendments need from memory fetched some rows ahead.
    fn with_fetches(&self, stage: StageAt, ops: Vec<RowOp>) -> Vec<RowOp> {
        let Context { scheme, .. } = *self.context;
        let amends = ops.iter().filter_map(|op| match op {
            RowOp::Amend(amends) => Some(self.together(stage, amends)),
            _ => None,
        });
        let amends: Vec<Together> = amends.collect();
        let needs = |of: Amended| {
            let update = &stage.updates(scheme)[of.row.update];
            let mut ops = update.amendments[of.amendment].body.ops.iter();
            ops.any(|op| memory_of(scheme, op).is_some())
        };
        let mut ready = !self.context.towers.waits_for_states();
        let (mut asked, mut used, mut pending) = (0, 0, 0);
        let mut all = Vec::with_capacity(ops.len() + amends.len());
        for op in ops {
            ready |= op == RowOp::Await;
            if op == RowOp::Await {
                all.push(op);
                continue;
            }
            while let Some(Together { of, bytes }) = amends.get(asked).filter(|_| ready) {
                if pending > 0 && pending + bytes > AHEAD {
                    break;
                }
                let of: Vec<Amended> = of.iter().copied().filter(|of| needs(*of)).collect();
                all.extend((!of.is_empty()).then_some(RowOp::Fetch(of)));
                pending += bytes;
                asked += 1;
            }
            if matches!(op, RowOp::Amend(_)) {
                pending -= amends[used].bytes;
                used += 1;
            }
            all.push(op);
        }
        all
    }

    fn together(&self, stage: StageAt, amends: &[Amend]) -> Together {
        let Context { scheme, .. } = *self.context;
        let mut kept: Vec<(&Op, [Option<i64>; 2])> = Vec::new();
        for Amend { of, .. } in amends {
            let [x, y] = of.row.at.array().map(Some);
            let update = &stage.updates(scheme)[of.row.update];
            let amendment = &update.amendments[of.amendment];
            for op in &amendment.body.ops {
                let is_near = |coef| self.context.coefs.line(amendment.zone, coef).is_some();
                if matches!(op, Op::Coef(coef) if is_near(*coef)) {
                    continue;
                }
                let at = match memory_of(scheme, op) {
                    Some(Memory::State(_)) => [x, y],
                    Some(Memory::Row(Axis::OUTER)) => [x, None],
                    Some(Memory::Row(_)) => [None, y],
                    Some(Memory::Lane) | None => continue,
                };
                if !kept.contains(&(op, at)) {
                    kept.push((op, at));
                }
            }
        }
        Together {
            of: amends.iter().map(|amend| amend.of).collect(),
            bytes: kept.len() * scheme.precision.bytes(),
        }
    }

    /// Whether an update reads something that arrives in this stage.
    fn is_late(&self, stage: StageAt, allocation: &StageAllocation, row: &RowUpdate) -> bool {
        let Context { scheme, layout, .. } = *self.context;
        let update = &stage.updates(scheme)[row.update];
        let arrives = |by: Group, of: RowId| {
            allocation.arriving.contains(&RowRef {
                at: row.at + by,
                row: of,
            })
        };
        if self.context.towers.waits_for_states() && !update.amendments.is_empty() {
            return true;
        }
        let mut reads = update.reads();
        let mut coefs = row_coefs(scheme, update);
        let here = Group::default();
        reads.any(|read| arrives(reach(read), stage.read(scheme, layout, read)))
            || coefs.any(|coef| arrives(here, layout.coef_row(coef)))
            || arrives(here, stage.target(scheme, layout, update))
    }

    /// Whether another tower may not have read or written the target yet: only an arrival shows that it has done so.
    fn is_shared(&self, number: usize, row: &RowUpdate) -> bool {
        let Context {
            scheme,
            layout,
            towers,
            ..
        } = *self.context;
        towers.waits_for_row(scheme, layout, self.alignment, number, *row)
    }

    /// The thread's own value of a row.
    fn own(&mut self, allocation: &StageAllocation, row: RowRef) -> Operand {
        match allocation.entering.get(&row) {
            Some(&shared) if self.registers.insert(row) => Operand::Entering { row, shared },
            _ => Operand::Register(row),
        }
    }

    /// Where the operations of a body find the values of rows that they read.
    fn operands(
        &mut self,
        stage: StageAt,
        allocation: &StageAllocation,
        target: RowRef,
        body: &Body,
    ) -> Vec<Option<Operand>> {
        let Context { scheme, layout, .. } = *self.context;
        let mut operand = |op: &Op| match op {
            Op::Read(read) => {
                let from = RowRef {
                    at: target.at + reach(read),
                    row: stage.read(scheme, layout, read),
                };
                if from == target || !is_cross_lane(scheme, layout, read) {
                    return Some(self.own(allocation, from));
                }
                Some(Operand::CrossLane {
                    row: from,
                    shared: allocation.cross_lane.get(&from).copied().unwrap_or(0),
                    by: read.offset[Axis::INNER].into(),
                })
            }
            Op::Coef(_) if memory_of(scheme, op).is_some() => None,
            Op::Coef(coef) => {
                let row = layout.coef_row(*coef);
                Some(self.own(allocation, RowRef { at: target.at, row }))
            }
            _ => None,
        };
        body.ops.iter().map(&mut operand).collect()
    }

    fn update(
        &mut self,
        stage: StageAt,
        allocation: &StageAllocation,
        row: RowUpdate,
        waiting: &mut Waiting,
        ops: &mut Vec<RowOp>,
    ) {
        let Context { scheme, layout, .. } = *self.context;
        let update = &stage.updates(scheme)[row.update];
        let at = |by: Group, of: RowId| RowRef {
            at: row.at + by,
            row: of,
        };
        let here = Group::default();
        let target = at(here, stage.target(scheme, layout, update));
        let operands = self.operands(stage, allocation, target, &update.body);
        let mask = update.mask.map(|mask| at(here, layout.coef_row(mask)));
        let mask = mask.map(|mask| self.own(allocation, mask));
        let amendments = update.amendments.iter();
        let mut own = amendments.filter(|amendment| self.zones.contains(amendment.zone));
        let keeps = self.keeps
            || keeps_old(scheme, update)
            || own.any(|amendment| scheme.needs_old(update, amendment));
        let old = keeps.then(|| self.own(allocation, target));
        self.registers.insert(target);
        ops.push(RowOp::Update(Update {
            row,
            target,
            operands,
            mask,
            old,
        }));
        let mut zones = update.amendments.iter().map(|amendment| amendment.zone);
        if !zones.any(|zone| self.zones.contains(zone)) {
            self.amended(stage, allocation, row, waiting, ops);
            return;
        }
        waiting.amendments.push(row);
        if waiting.amendments.len() * scheme.precision.bytes() >= AMENDED {
            self.amend(stage, allocation, waiting, ops);
        }
    }

    /// Rows that wait for it are amended, zone by zone.
    fn amend(
        &mut self,
        stage: StageAt,
        allocation: &StageAllocation,
        waiting: &mut Waiting,
        ops: &mut Vec<RowOp>,
    ) {
        let Context { scheme, layout, .. } = *self.context;
        let rows = std::mem::take(&mut waiting.amendments);
        let mut left: Vec<Amended> = Vec::new();
        for row in &rows {
            let amendments = stage.updates(scheme)[row.update].amendments.iter();
            let own = amendments.enumerate();
            let own = own.filter(|(_, amendment)| self.zones.contains(amendment.zone));
            left.extend(own.map(|(amendment, _)| Amended {
                row: *row,
                amendment,
            }));
        }
        let zone =
            |of: &Amended| stage.updates(scheme)[of.row.update].amendments[of.amendment].zone;
        while let Some(first) = left.first() {
            let now = zone(first);
            let mut together = Vec::new();
            let mut later: Vec<Amended> = Vec::new();
            for of in left {
                let blocked = later.iter().any(|other| other.row == of.row);
                match zone(&of) == now && !blocked {
                    true => together.push(of),
                    false => later.push(of),
                }
            }
            left = later;
            let amends = together.into_iter().map(|of| {
                let update = &stage.updates(scheme)[of.row.update];
                let at = |row| RowRef { at: of.row.at, row };
                let target = at(stage.target(scheme, layout, update));
                let body = &update.amendments[of.amendment].body;
                let mask = update.mask.map(|mask| at(layout.coef_row(mask)));
                // The register of the row has the new value by now; no body but the update's own reads that.
                let old = |operand| match operand {
                    Operand::Register(row) if row == target => Operand::Old(row),
                    other => other,
                };
                let operands = self.operands(stage, allocation, target, body);
                Amend {
                    of,
                    target,
                    operands: operands.into_iter().map(|o| o.map(old)).collect(),
                    mask: mask.map(|mask| self.own(allocation, mask)),
                }
            });
            let amends = amends.collect();
            ops.push(RowOp::Amend(amends));
        }
        for row in rows {
            self.amended(stage, allocation, row, waiting, ops);
        }
    }

    /// The sources that may add to rows of an update: few are left where no faces are.
    fn sources_of(&self, stage: StageAt, update: usize) -> impl Iterator<Item = &VolumeSource> {
        let faces = self.faces;
        let sources = self.context.sources_of(stage, update);
        sources.filter(move |source| faces || source.adds != Adds::Correction(FarRows::Bare))
    }

    /// A row needs no amendments, or no more of them.
    fn amended(
        &mut self,
        stage: StageAt,
        allocation: &StageAllocation,
        row: RowUpdate,
        waiting: &mut Waiting,
        ops: &mut Vec<RowOp>,
    ) {
        if self.sources_of(stage, row.update).next().is_none() {
            self.give(stage, allocation, row, ops);
            return;
        }
        let rows = &mut waiting.sources[row.update];
        rows.push(row);
        self.inject_some(stage, allocation, rows, ops);
    }

    /// Volume sources add to the rows that wait for them, if these are enough and the copied waves have arrived.
    fn inject_some(
        &mut self,
        stage: StageAt,
        allocation: &StageAllocation,
        rows: &mut Vec<RowUpdate>,
        ops: &mut Vec<RowOp>,
    ) {
        let copied = |row: &RowUpdate| self.waves.iter().any(|copy| copy.row == *row);
        let copied = rows.first().is_some_and(copied);
        let most = if copied && !self.faces {
            COPIED
        } else {
            TOGETHER
        };
        let enough = rows.len() * self.context.scheme.precision.bytes() >= most;
        if enough && (self.awaited || !copied) {
            self.inject(stage, allocation, rows, ops);
        }
    }

    /// Volume sources add to the rows that wait for it.
    fn inject(
        &mut self,
        stage: StageAt,
        allocation: &StageAllocation,
        rows: &mut Vec<RowUpdate>,
        ops: &mut Vec<RowOp>,
    ) {
        let rows = std::mem::take(rows);
        let Some(update) = rows.first().map(|row| row.update) else {
            return;
        };
        let slot = |row: &RowUpdate| {
            let copy = self.waves.iter().find(|copy| copy.row == *row);
            copy.map(|copy| copy.slot)
        };
        let slots: Option<Vec<usize>> = rows.iter().map(slot).collect();
        ops.push(RowOp::Inject {
            update,
            rows: rows.clone(),
            copied: slots,
        });
        for row in rows {
            self.give(stage, allocation, row, ops);
        }
    }

    /// The new value of a row is final, and goes to the threads and towers that need it.
    fn give(
        &self,
        stage: StageAt,
        allocation: &StageAllocation,
        row: RowUpdate,
        ops: &mut Vec<RowOp>,
    ) {
        let Context { scheme, layout, .. } = *self.context;
        let target = RowRef {
            at: row.at,
            row: stage.target(scheme, layout, &stage.updates(scheme)[row.update]),
        };
        ops.push(RowOp::Commit(row));
        if let Some(&shared) = allocation.publish.get(&target) {
            ops.push(self.publish(target, shared));
        }
        if let Some(&before) = allocation.leaving.get(&target) {
            ops.push(RowOp::Store {
                row: target,
                before,
            });
        }
    }
}
