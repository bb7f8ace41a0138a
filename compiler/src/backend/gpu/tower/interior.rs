//! Interior periods: the row operations of a tower program, printed.

mod mirrors;
mod stage;

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntOp, Kernel, Variable};
use super::copied::{self, Known};
use super::listed_ghosts::Ahead;
use super::predicate::Predicate;
use super::steer::RowPointers;
use super::task;
use super::worker::{Left, Worker};
use super::z_block::{self, Between};
use super::zone::Zones;
use crate::tower::block::Ends;
use crate::tower::{RowOp, RowRef, StageAt, StageProgram};
use stage::Stage;
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
        let ahead = self.ghosts.and_then(|ghosts| ghosts.ahead(k, context));
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
        let mut values: BTreeMap<RowRef, Operand> = BTreeMap::new();
        for (row, variable) in variables {
            values.insert(*row, k.get(*variable));
        }
        let mut early = Early::default();
        for (number, stage) in context.stages().iter().enumerate() {
            if let Some(ghosts) = self.ghosts {
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
            if let Some((ghosts, ahead)) = self.ghosts.zip(ahead) {
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
