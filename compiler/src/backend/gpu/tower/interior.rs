//! Interior periods: the row operations of a tower program, printed.

mod mirrors;

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntOp, Kernel, Variable};
use super::super::numbers;
use super::amended::AmendedValues;
use super::cluster::Across;
use super::copied::{self, Copied, Known};
use super::listed_ghosts::Ahead;
use super::predicate::Predicate;
use super::source_rows::{Places, RowPatterns, Rows};
use super::steer::RowPointers;
use super::task;
use super::volume;
use super::worker::{Left, Worker};
use super::z_block::{self, Between};
use super::zone::{Amending, Zones};
use crate::evaluate::{Elsewhere, range};
use crate::scheme::{self, Cmp};
use crate::tower::block::Ends;
use crate::tower::{self, Amended, RowOp, RowRef, RowUpdate, StageAt, StageProgram, Written};
use std::collections::BTreeMap;

/// The values that a thread keeps from one period to the next.
type Carried = BTreeMap<RowRef, Variable>;

/// A period that is being written.
#[derive(Clone, Copy)]
struct Period {
    /// Row 0 of the origin's group at the thread's index.
    own: Operand,
    /// Which period it is, from the end of the interior ones on.
    number: Operand,
    /// Where the thread is, where lines are cut into z blocks.
    between: Option<Between>,
    /// The thread's word for waves in slots.
    known: Option<Known>,
    /// Whether it is near faces of boxes of total fields, where it may be.
    near: Option<Operand>,
}

impl<'a> Worker<'a> {
    /// Runs the interior periods in a range of the time block. `first`: the place in memory of the origin's group of
    /// the first one.
    pub fn interior(&self, k: &mut Kernel<'_>, first: Operand, periods: [Operand; 2]) {
        match self.context.ghosts() {
            Some(_) => self.periods(k, first, periods),
            None => self.clone().with_ends(k).periods(k, first, periods),
        }
    }

    fn periods(&self, k: &mut Kernel<'_>, first: Operand, periods: [Operand; 2]) {
        let context = &self.context;
        let [from, until] = periods;
        // Counted to zero: there is no register for the last one.
        let number = k.int(IntOp::Sub, from, until);
        let predicate = self.predicate(k, number);
        let between = Between::new(k, context, from, self.lane.thread);
        let known = copied::begin(k, context, &self.lane, self.words, from);
        let carried = self.begin(k, first, predicate, between);
        let ahead = self.ghosts.as_ref().map(|ghosts| {
            let ahead = ghosts.ahead(k);
            ghosts.look_ahead(k, context, &ahead, 0);
            ahead
        });
        let ahead = ahead.as_ref();
        let own = k.variable_of(first);
        let between = between.map(|Between(n)| k.variable_of(n));
        let [zero, one] = [0, 1].map(Operand::i32);
        k.repeat(number, zero, one, Some(1), |k, number| {
            let now = k.get(own);
            let place = between.map(|between| Between(k.get(between)));
            let period = Period {
                own: now,
                number,
                between: place,
                known,
                near: self.near(k, number, known),
            };
            match self.is_busy(k, place) {
                Some(busy) => {
                    let run = |k: &mut Kernel<'_>| self.period(k, period, &carried, ahead);
                    k.either(busy, run, |k| self.pass(k))
                }
                None => self.period(k, period, &carried, ahead),
            }
            if let (Some(variable), Some(Between(now))) = (between, place) {
                let lean = z_block::lean_of_period(context);
                let next = k.int(IntOp::Add, now, Operand::i32(lean as i32));
                k.set(variable, next);
            }
            let next = k.offset(now, context.advance());
            k.set(own, next);
        });
        let own = k.get(own);
        let predicate = self.predicate(k, zero);
        let between = between.map(|between| Between(k.get(between)));
        self.end(k, own, predicate, between, &carried);
    }

    /// Loads the rows that are kept when a period begins; of parts of lines, the values that some thread needs.
    fn begin(
        &self,
        k: &mut Kernel<'_>,
        own: Operand,
        predicate: Option<Predicate>,
        between: Option<Between>,
    ) -> Carried {
        let context = &self.context;
        let real = context.real;
        let mut variables = Carried::new();
        let mut rows = RowPointers::new(own);
        let mut needed: BTreeMap<Ends, Operand> = BTreeMap::new();
        for carried in &context.period().carried {
            let from = rows.row(k, context, carried.row);
            let there = predicate.map(|p| p.has(k, context, carried.row));
            let part = between.zip(context.z_blocks()).map(|(between, z_blocks)| {
                let ends = z_blocks.needed(carried.uses);
                *needed
                    .entry(ends)
                    .or_insert_with(|| between.lies(k, context, ends, 1))
            });
            let has = match (there, part) {
                (Some(there), Some(part)) => Some(k.int(IntOp::And, there, part)),
                (there, part) => there.or(part),
            };
            let value = match has {
                None => k.load(real, from, real.bytes(), Access::Plain),
                Some(has) => k.load_if(has, real, from),
            };
            variables.insert(carried.row, k.variable_of(value));
        }
        self.sync.barrier(k);
        if let Some(ghosts) = &self.ghosts {
            ghosts.make_held(k, context, &self.lane);
        }
        variables
    }

    /// Whether a period is near faces of boxes of total fields, where towers may be. Behind them threads learn anew
    /// which sources correct them.
    fn near(&self, k: &mut Kernel<'_>, number: Operand, known: Option<Known>) -> Option<Operand> {
        let context = &self.context;
        if !context.near_faces() {
            return None;
        }
        let end = task::interior_end(k, self.words);
        let period = k.int(IntOp::Add, number, end);
        if let Some(known) = known {
            let is_first = task::is_first_behind(k, self.words, period);
            k.when(is_first, |k| {
                copied::learn(k, context, &self.lane, self.words, period, known);
            });
        }
        Some(task::is_near(k, self.words, period))
    }

    /// Stores the values that only the tower has.
    fn end(
        &self,
        k: &mut Kernel<'_>,
        own: Operand,
        predicate: Option<Predicate>,
        between: Option<Between>,
        variables: &Carried,
    ) {
        let context = &self.context;
        let mut rows = RowPointers::new(own);
        for carried in &context.period().carried {
            let (Some(written), Some(variable)) = (carried.written, variables.get(&carried.row))
            else {
                continue;
            };
            let value = k.get(*variable);
            if let Some(component) = context.layout.component_of(carried.row.row) {
                let left = Left {
                    component,
                    row: carried.row,
                    to: rows.row(k, context, carried.row),
                    written,
                };
                self.leave(k, predicate, between, left, value);
            }
        }
    }

    /// Whether some thread of the warp has something to do in a period; `None` where all have.
    fn is_busy(&self, k: &mut Kernel<'_>, between: Option<Between>) -> Option<Operand> {
        let context = &self.context;
        let (between, z_blocks) = between.zip(context.z_blocks())?;
        let one = Operand::int(Type::I1, 1);
        let busy = z_blocks.busy(context.allocation());
        let does = between.lies(k, context, busy, 1);
        let none = k.int(IntOp::Xor, does, one);
        let none = k.all(none);
        Some(k.int(IntOp::Xor, none, one))
    }

    /// A period in which the warp only keeps order with others.
    fn pass(&self, k: &mut Kernel<'_>) {
        for _ in self.context.stages() {
            self.sync.wait_for_loads(k);
            self.sync.end_stage(k, &self.context, 0);
        }
    }

    fn stage<'s>(
        &'s self,
        k: &mut Kernel<'_>,
        period: Period,
        number: usize,
        values: &'s mut BTreeMap<RowRef, Operand>,
    ) -> Stage<'s, 'a> {
        let context = &self.context;
        let active = period.between;
        let at = number as i64;
        Stage {
            worker: self,
            number,
            at: StageAt::new(context.scheme, at),
            rows: RowPointers::new(period.own),
            // There are no registers to keep it from stage to stage.
            predicate: self.predicate(k, period.number),
            period,
            active: active.map(|between| between.takes_part(k, context, at, at)),
            values,
            old: BTreeMap::new(),
            cross_lane: BTreeMap::new(),
            across: None,
            zones: None,
            patterns: Vec::new(),
            sent: 0,
        }
    }

    /// Makes the first fetches of a stage while the stage before runs: other towers have advanced these states
    /// before the rows of that stage arrived.
    fn early(
        &self,
        k: &mut Kernel<'_>,
        period: Period,
        number: usize,
        stage: &StageProgram,
    ) -> Early {
        let is_fetch = |op: &&RowOp| matches!(op, RowOp::Fetch(_));
        let fetches = stage.ops.iter().take_while(is_fetch).count();
        if fetches == 0 {
            return Early::default();
        }
        let mut values = BTreeMap::new();
        let mut writer = self.stage(k, period, number, &mut values);
        let ops = stage.ops.iter().take(fetches);
        ops.for_each(|op| writer.op(k, op));
        let zones = writer.zones.take();
        Early { zones, fetches }
    }

    fn period(
        &self,
        k: &mut Kernel<'_>,
        period: Period,
        variables: &Carried,
        ahead: Option<&Ahead>,
    ) {
        let context = &self.context;
        let ghosts = self.ghosts.as_ref().zip(ahead);
        let mut values: BTreeMap<RowRef, Operand> = BTreeMap::new();
        for (row, variable) in variables {
            values.insert(*row, k.get(*variable));
        }
        let mut early = Early::default();
        for (number, stage) in context.stages().iter().enumerate() {
            if let Some((ghosts, ahead)) = ghosts {
                ghosts.make_published(k, context, &self.lane, ahead, number);
            }
            let mut writer = self.stage(k, period, number, &mut values);
            let Early { zones, fetches } = std::mem::take(&mut early);
            writer.zones = zones;
            writer.patterns = writer.find_patterns(k, stage);
            let ops = stage.ops.iter().skip(fetches);
            ops.for_each(|op| writer.op(k, op));
            let sent = writer.sent;
            if let Some(next) = context.stages().get(number + 1) {
                early = self.early(k, period, number + 1, next);
            }
            if let Some((ghosts, ahead)) = ghosts {
                let next = (number + 1) % context.stages().len();
                ghosts.look_ahead(k, context, ahead, next);
            }
            self.sync.end_stage(k, context, sent);
        }
        for (row, variable) in variables {
            let now = RowRef {
                at: row.at + context.towers().advance,
                row: row.row,
            };
            if let Some(value) = values.get(&now) {
                k.set(*variable, *value);
            }
        }
    }
}

/// Values that a stage has fetched before the previous stage ends.
#[derive(Default)]
struct Early {
    zones: Option<Zones>,
    /// The number of its operations whose values have been fetched.
    fetches: usize,
}

/// A stage of a period that is being written.
struct Stage<'s, 'a> {
    worker: &'s Worker<'a>,
    number: usize,
    at: StageAt,
    rows: RowPointers,
    predicate: Option<Predicate>,
    period: Period,
    /// Whether the thread takes part in the stage, where lines are cut into z blocks.
    active: Option<Operand>,
    /// The registers of the thread.
    values: &'s mut BTreeMap<RowRef, Operand>,
    /// Old values of rows whose new ones are not final yet.
    old: BTreeMap<RowRef, Operand>,
    /// Values that it has read of other threads, by the distance along the inner axis.
    cross_lane: BTreeMap<(RowRef, i64), Operand>,
    /// How other blocks get values. It is not kept from stage to stage: there are no registers for it.
    across: Option<Across>,
    /// Where amendments find states and coefficients. Not kept from stage to stage either.
    zones: Option<Zones>,
    /// Of rows near faces of boxes of total fields.
    patterns: Vec<RowPatterns>,
    /// Rows of which they do.
    sent: usize,
}

impl Stage<'_, '_> {
    fn op(&mut self, k: &mut Kernel<'_>, op: &RowOp) {
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
    fn find_patterns(&self, k: &mut Kernel<'_>, stage: &StageProgram) -> Vec<RowPatterns> {
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

    fn value(&mut self, k: &mut Kernel<'_>, operand: tower::Operand) -> Operand {
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
