//! A stage of an interior period: its row operations, one after the other.

use super::Period;
use crate::backend::gpu::ir::Operand;
use crate::backend::gpu::kernel::{Access, Kernel};
use crate::backend::gpu::numbers;
use crate::backend::gpu::tower::amended::AmendedValues;
use crate::backend::gpu::tower::cluster::Across;
use crate::backend::gpu::tower::copied::Copied;
use crate::backend::gpu::tower::predicate::Predicate;
use crate::backend::gpu::tower::source_rows::{Places, RowPatterns, Rows};
use crate::backend::gpu::tower::steer::RowPointers;
use crate::backend::gpu::tower::volume;
use crate::backend::gpu::tower::worker::{Left, Worker};
use crate::backend::gpu::tower::zone::{Amending, Zones};
use crate::evaluate::{Elsewhere, range};
use crate::scheme::{self, Cmp};
use crate::tower::{self, Amended, RowOp, RowRef, RowUpdate, StageAt, StageProgram, Written};
use std::collections::BTreeMap;

/// A stage of a period that is being written.
pub(super) struct Stage<'s, 'a> {
    pub worker: &'s Worker<'a>,
    pub number: usize,
    pub at: StageAt,
    pub rows: RowPointers,
    pub predicate: Option<Predicate>,
    pub period: Period,
    /// Whether the thread takes part in the stage, where lines are cut into z blocks.
    pub active: Option<Operand>,
    /// The registers of the thread.
    pub values: &'s mut BTreeMap<RowRef, Operand>,
    /// Old values of rows whose new ones are not final yet.
    pub old: BTreeMap<RowRef, Operand>,
    /// Values that it has read of other threads, by the distance along the inner axis.
    pub cross_lane: BTreeMap<(RowRef, i64), Operand>,
    /// How other blocks get values. It is not kept from stage to stage: there are no registers for it.
    pub across: Option<Across>,
    /// Where amendments find states and coefficients. Not kept from stage to stage either.
    pub zones: Option<Zones>,
    /// Of rows near faces of boxes of total fields.
    pub patterns: Vec<RowPatterns>,
    /// Rows of which they do.
    pub sent: usize,
}

impl Stage<'_, '_> {
    pub fn op(&mut self, k: &mut Kernel<'_>, op: &RowOp) {
        let Worker {
            context,
            lane,
            sync,
            ghosts,
            ..
        } = self.worker;
        match op {
            RowOp::Prefetch { update, rows } => {
                let none: &[usize] = &[];
                let copied = context.block().slots.map(|_| none);
                volume::prefetch(k, context, lane, &self.rows_of(*update, rows, copied));
            }
            RowOp::Await => {
                let wait = |k: &mut Kernel<'_>| sync.wait_for_loads(k);
                match ghosts {
                    Some(ghosts) => ghosts.make_arrived(k, context, lane, self.number, wait),
                    None => wait(k),
                }
            }
            RowOp::Fetch(all) => self.fetch(k, all),
            RowOp::Update(update) => self.update(k, update),
            RowOp::Amend(all) => self.amend(k, all),
            RowOp::Inject {
                update,
                rows,
                copied,
            } => {
                let targets: Vec<RowRef> = rows.iter().map(|row| self.target(row)).collect();
                let mut values: Vec<Operand> = targets.iter().map(|t| self.values[t]).collect();
                let rows = self.rows_of(*update, rows, copied.as_deref());
                volume::add(k, context, lane, &rows, &mut values);
                self.values.extend(targets.into_iter().zip(values));
            }
            RowOp::Commit(row) => self.commit(k, row),
            RowOp::Publish { row, shared, zeros } => self.publish(k, *row, *shared, zeros),
            RowOp::Store { row, before } => self.store(k, *row, *before),
            RowOp::Keep(operand) => {
                self.value(k, *operand);
            }
        }
    }

    /// The row that an update writes.
    fn target(&self, row: &RowUpdate) -> RowRef {
        let context = &self.worker.context;
        let update = &self.at.updates(context.scheme)[row.update];
        RowRef {
            at: row.at,
            row: self.at.target(context.scheme, context.layout, update),
        }
    }

    /// Has the lanes of a warp find the patterns of rows near faces of boxes of total fields.
    pub fn find_patterns(&self, k: &mut Kernel<'_>, stage: &StageProgram) -> Vec<RowPatterns> {
        let none: &[usize] = &[];
        let mut of_updates = BTreeMap::new();
        for op in &stage.ops {
            if let RowOp::Inject {
                update,
                rows,
                copied,
            } = op
            {
                let first = || (Vec::<RowUpdate>::new(), Some(none));
                let (all, slots) = of_updates.entry(*update).or_insert_with(first);
                all.extend(rows);
                *slots = slots.filter(|_| copied.is_some());
            }
        }
        let found = of_updates.iter().flat_map(|(update, (rows, slots))| {
            let rows = self.rows_of(*update, rows, *slots);
            volume::find_patterns(k, &self.worker.context, &rows)
        });
        found.collect()
    }

    /// Rows of an update as volume sources see them.
    fn rows_of<'r>(
        &'r self,
        update: usize,
        rows: &'r [RowUpdate],
        copied: Option<&'r [usize]>,
    ) -> Rows<'r> {
        let scheme = self.worker.context.scheme;
        Rows {
            of: (self.at.stage, self.at.updates(scheme)[update].target),
            active: self.active,
            period: self.period.number,
            step: (self.number / scheme.stages.len()) as i32,
            places: Places::Interior {
                rows,
                words: self.worker.words,
                copied: self.period.known.zip(copied).map(|(known, slots)| Copied {
                    known,
                    slots,
                    before: 0,
                }),
                near: self.period.near,
                patterns: &self.patterns,
            },
        }
    }

    pub fn value(&mut self, k: &mut Kernel<'_>, operand: tower::Operand) -> Operand {
        let Worker { context, lane, .. } = self.worker;
        let real = context.real;
        match operand {
            tower::Operand::Register(row) => self.values[&row],
            tower::Operand::Old(row) => self.old[&row],
            tower::Operand::Entering { row, shared } => {
                let from = lane.shared(k, context, row.row, shared, 0);
                let value = k.load(real, from, real.bytes(), Access::Plain);
                self.values.insert(row, value);
                value
            }
            tower::Operand::CrossLane { row, shared, by } => {
                if let Some(value) = self.cross_lane.get(&(row, by)) {
                    return *value;
                }
                let from = lane.shared(k, context, row.row, shared, by);
                let value = k.load(real, from, real.bytes(), Access::Plain);
                self.cross_lane.insert((row, by), value);
                value
            }
        }
    }

    fn update(&mut self, k: &mut Kernel<'_>, op: &tower::Update) {
        let Worker { context, lane, .. } = self.worker;
        let update: &scheme::Update = &self.at.updates(context.scheme)[op.row.update];
        let seen = self.seen(k, op.row, 0, &op.operands);
        let mut value = crate::evaluate::evaluate(
            &mut (&mut *self, &mut *k),
            &update.body,
            |(stage, k), n| match (&seen, op.operands[n]) {
                (Some(seen), _) => seen[n].unwrap_or(Operand::poison(context.real)),
                (None, Some(operand)) => stage.value(k, operand),
                (None, None) => Operand::poison(context.real),
            },
            |(_, k), op, values| numbers::number(k, context.real, op, values),
        );
        let mut old = None;
        if let (Some(mask), Some(kept)) = (op.mask, op.old) {
            let mask = self.value(k, mask);
            let kept = self.value(k, kept);
            let zero = Operand::real(context.real, 0f64.to_bits());
            value = k.select(Cmp::Ne, mask, zero, value, kept);
            old = Some(kept);
        }
        if range(context.scheme, update).1 == Elsewhere::Old && old.is_none() {
            old = op.old.map(|kept| self.value(k, kept));
        }
        value = context.in_range(k, lane, update, value, old);
        if old.is_none() {
            old = op.old.map(|kept| self.value(k, kept));
        }
        if let (Some(active), Some(old)) = (self.active, old) {
            value = k.choose(active, value, old);
        }
        self.values.insert(op.target, value);
        if let Some(old) = old {
            self.old.insert(op.target, old);
        }
    }

    /// Takes the state of the stage's amendments, with the conditions under which they act on rows.
    fn zones(&mut self, k: &mut Kernel<'_>) -> Zones {
        let known = self.zones.take();
        known.unwrap_or_else(|| {
            let place = self.worker.place(k, self.period.number);
            Zones::new(k, &self.worker.lane, place)
        })
    }

    fn amending(&self, of: Amended) -> Amending<'_> {
        Amending {
            of,
            update: &self.at.updates(self.worker.context.scheme)[of.row.update],
            active: self.active,
            predicate: self.predicate,
        }
    }

    fn fetch(&mut self, k: &mut Kernel<'_>, all: &[Amended]) {
        let mut zones = self.zones(k);
        let Worker { context, lane, .. } = self.worker;
        let rows: Vec<Amending<'_>> = all.iter().map(|of| self.amending(*of)).collect();
        zones.fetch(k, context, lane, &rows);
        self.zones = Some(zones);
    }

    fn amend(&mut self, k: &mut Kernel<'_>, all: &[tower::Amend]) {
        let mut rows = Vec::with_capacity(all.len());
        for op in all {
            // They are registers for all threads afterwards, so all read them.
            let seen = self.seen(k, op.of.row, 1 + op.of.amendment, &op.operands);
            let reads = seen.unwrap_or_else(|| {
                let reads = op.operands.iter().map(|o| o.map(|o| self.value(k, o)));
                reads.collect()
            });
            let mask = op.mask.map(|mask| self.value(k, mask));
            let base = self.values[&op.target];
            rows.push((op.of, AmendedValues { base, mask, reads }));
        }
        let mut zones = self.zones(k);
        let Worker { context, lane, .. } = self.worker;
        let rows = rows.into_iter();
        let rows: Vec<_> = rows
            .map(|(of, values)| (self.amending(of), values))
            .collect();
        let amended = zones.amend(k, context, lane, &rows);
        self.zones = Some(zones);
        let targets = all.iter().map(|op| op.target);
        self.values.extend(targets.zip(amended));
    }

    /// Rows that an end of the grid cuts off keep their old value.
    fn commit(&mut self, k: &mut Kernel<'_>, row: &RowUpdate) {
        let context = &self.worker.context;
        let target = self.target(row);
        let old = self.old.remove(&target);
        let (Some(predicate), Some(old)) = (self.predicate, old) else {
            return;
        };
        let update = &self.at.updates(context.scheme)[row.update];
        let acts = predicate.acts(k, context, update, row);
        let value = k.choose(acts, self.values[&target], old);
        self.values.insert(target, value);
    }

    /// `zeros`: indices beyond the ends of the row at which it is 0.
    fn publish(&mut self, k: &mut Kernel<'_>, row: RowRef, shared: usize, zeros: &[i64]) {
        let Worker {
            context,
            lane,
            sync,
            ghosts,
            ..
        } = self.worker;
        let Some(component) = context.layout.component_of(row.row) else {
            return;
        };
        let value = self.values[&row];
        let to = lane.shared(k, context, row.row, shared, 0);
        let target = self.worker.target(component, to);
        // Neighbours send ghosts around rings of slabs.
        let ring = context.slabs().is_some_and(|slabs| slabs.ring);
        match ring || ghosts.is_some() {
            true => context.write_values(k, lane, component, to, value),
            false => context.write_shared(k, lane, target, shared, value),
        }
        if !ring {
            context.write_zeros(k, lane, target, zeros);
        }
        if self.across.is_none() {
            self.across = sync.across(k, context, lane);
        }
        if let Some(across) = self.across {
            let stride = context.block().shared_row.stride;
            across.send(k, value, context.bytes(shared as i64 * stride));
            self.sent += 1;
        }
    }

    fn store(&mut self, k: &mut Kernel<'_>, row: RowRef, before: i64) {
        let worker = self.worker;
        let context = &worker.context;
        let Some(component) = context.layout.component_of(row.row) else {
            return;
        };
        let number = self.number as i64;
        let left = Left {
            component,
            row,
            to: self.rows.row(k, context, row),
            written: Written {
                first: number - before,
                last: number,
            },
        };
        let value = self.values[&row];
        worker.leave(k, self.predicate, self.period.between, left, value);
    }
}
