//! Sources and probes inside of boundary periods: after the rows of a stage, each thread looks whether something
//! happens to a value that it has just written. All is in a table of points.

use super::super::abi::{PointEntry, TaskWord, TowerParams};
use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::context::{Context, Lane};
use super::task;
use crate::lattice::Interval;
use crate::scheme::Precision;

/// The points of a kernel.
#[derive(Clone, Copy)]
pub(super) struct PointTable {
    /// The array, the table, the waves and the records of the first step.
    array: Operand,
    table: Operand,
    waves: Operand,
    records: Operand,
    /// Where the task's word of points and its first period are.
    of_task: Operand,
    first: Operand,
}

/// A stage in which points act.
#[derive(Clone, Copy)]
pub(super) struct PointStage {
    /// Counted from the time block's start.
    pub period: Operand,
    /// Counted from the period's start.
    pub stage: usize,
    /// Whether the thread takes part in the stage, where lines are cut into z blocks.
    pub active: Option<Operand>,
}

fn at(k: &mut Kernel<'_>, base: Operand, by: Operand) -> Operand {
    let by = k.resize(by, Type::I64);
    k.advance(base, by, 1)
}

fn word(k: &mut Kernel<'_>, from: Operand, by: i64) -> Operand {
    let from = k.offset(from, by);
    k.load(Type::I32, from, 4, Access::ReadOnly)
}

impl PointTable {
    /// Of the task whose words these are.
    pub fn new(k: &mut Kernel<'_>, words: Operand) -> PointTable {
        PointTable {
            array: k.param(TowerParams::ARRAY),
            table: k.param(TowerParams::POINTS),
            waves: k.param(TowerParams::WAVES),
            records: k.param(TowerParams::RECORDS),
            of_task: task::place(k, words, TaskWord::POINTS),
            first: task::place(k, words, TaskWord::FIRST),
        }
    }

    /// The points of a stage: each thread looks after its own index, if it takes part in the stage.
    pub fn act(&self, k: &mut Kernel<'_>, context: &Context<'_>, lane: &Lane, now: PointStage) {
        let [of, first] =
            [self.of_task, self.first].map(|from| k.load(Type::I32, from, 4, Access::Volatile));
        let some = k.compare(IntCmp::Ne, of, Operand::i32(0));
        k.when(some, |k| {
            let periods = k.int(IntOp::Sub, now.period, first);
            let stages = Operand::i32(4 * context.program.per_period() as i32);
            let by = k.int(IntOp::Mul, periods, stages);
            let by = k.int(IntOp::Add, by, of);
            let starts = at(k, self.table, by);
            let [from, until] = [0, 1].map(|n| word(k, starts, 4 * (now.stage as i64 + n)));
            let length = context.block().shared_row.length;
            let mut within = lane.is_within(k, Interval::new(0, length));
            if let Some(active) = now.active {
                within = k.int(IntOp::And, within, active);
            }
            k.repeat(from, until, Operand::i32(4), Some(1), |k, entry| {
                let entry = at(k, self.table, entry);
                let row = word(k, entry, 0);
                let row = at(k, self.table, row);
                let place = k.offset(row, PointEntry::ROW_PLACE);
                let place = k.load(Type::I64, place, 8, Access::ReadOnly);
                let indices = word(k, row, PointEntry::ROW_INDICES);
                let indices = at(k, self.table, indices);
                let cell = k.advance(indices, lane.index, 4);
                let cell = k.load(Type::I32, cell, 4, Access::ReadOnly);
                let has = k.compare(IntCmp::Ne, cell, Operand::i32(0));
                let has = k.int(IntOp::And, has, within);
                k.when(has, |k| {
                    let cell = at(k, self.table, cell);
                    let to = k.advance(self.array, place, 1);
                    let to = k.advance(to, lane.index, context.real.bytes());
                    let steps = Operand::i32(context.towers().steps as i32);
                    let step = k.int(IntOp::Mul, now.period, steps);
                    let within_period = (now.stage / context.scheme.stages.len()) as i32;
                    let step = k.int(IntOp::Add, step, Operand::i32(within_period));
                    self.act_on(k, context.real, cell, to, step);
                });
            });
        });
    }

    /// The points that act on a value of the thread in a step.
    fn act_on(&self, k: &mut Kernel<'_>, real: Type, cell: Operand, to: Operand, step: Operand) {
        let bytes = real.bytes();
        let double = Type::scalar(Precision::F64);
        let wide = k.resize(step, Type::I64);
        let of_step = [
            (self.waves, PointEntry::HEADER_WAVES),
            (self.records, PointEntry::HEADER_RECORDS),
        ];
        let [waves, records] = of_step.map(|(base, n)| {
            let each = word(k, self.table, n);
            let each = k.resize(each, Type::I64);
            let by = k.int(IntOp::Mul, wide, each);
            k.advance(base, by, 1)
        });
        let [injections, ghosts, receivers, end] = PointEntry::CELL.map(|n| word(k, cell, n));
        let value = k.load(real, to, bytes, Access::Plain);
        let value = k.variable_of(value);
        let step = Operand::i32(PointEntry::BYTES);
        k.repeat(injections, ghosts, step, Some(1), |k, entry| {
            let entry = at(k, self.table, entry);
            let profile = k.load(double, entry, 8, Access::ReadOnly);
            let wave = word(k, entry, PointEntry::WAVE);
            let wave = k.resize(wave, Type::I64);
            let wave = k.advance(waves, wave, 8);
            let wave = k.load(double, wave, 8, Access::ReadOnly);
            let added = k.product(profile, wave);
            let added = k.convert(added, real);
            let before = k.get(value);
            let after = k.sum(before, added);
            k.set(value, after);
        });
        let value = k.get(value);
        k.store(value, to, bytes, Access::Plain);
        let opposite = k.negated(value);
        k.repeat(ghosts, receivers, step, Some(1), |k, entry| {
            let entry = at(k, self.table, entry);
            let place = k.offset(entry, PointEntry::GHOST_PLACE);
            let place = k.load(Type::I64, place, 8, Access::ReadOnly);
            let negated = word(k, entry, PointEntry::GHOST_NEGATED);
            let negated = k.compare(IntCmp::Ne, negated, Operand::i32(0));
            let ghost = k.choose(negated, opposite, value);
            let to = k.advance(self.array, place, 1);
            k.store(ghost, to, bytes, Access::Plain);
        });
        k.repeat(receivers, end, step, Some(1), |k, entry| {
            let entry = at(k, self.table, entry);
            let number = word(k, entry, PointEntry::RECORD);
            let number = k.resize(number, Type::I64);
            let to = k.advance(records, number, bytes);
            k.store(value, to, bytes, Access::Plain);
        });
    }
}
