//! The work of producer warps for a tower: they wait for the neighbours, stage after stage, and copy the rows that
//! enter in interior periods to shared memory.

use super::super::abi::TowerParams;
use super::super::ir::Operand;
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::code::Code;
use super::context::Context;
use super::load::{self, LoadPeriod, Producer};
use super::predicate::Predicate;
use super::progress::{Waiting, narrow};
use super::sync::{Sync, each_stage};
use super::task::{Fields, fields};
use super::z_block::Between;

/// The work of producer threads for a tower.
pub(super) fn tower(
    k: &mut Kernel<'_>,
    codes: &[Code<'_>],
    producers: &[Producer],
    sync: &Sync<'_>,
    words: Operand,
) {
    let task = fields(k, words);
    let context = codes[0].context();
    let extra = narrow(k, context, words);
    let waiting = Waiting::new(k, words, context.block().lines.cluster(), extra);
    let stages = context.program.per_period() as i32;
    let last = k.int(IntOp::Mul, task.end, Operand::i32(stages));
    let last = k.int(IntOp::Sub, last, Operand::i32(1));
    let wait = |k: &mut Kernel<'_>, stage: Operand| {
        let stage = k.int(IntOp::Min, stage, last);
        waiting.wait(k, stage);
    };
    let first = k.int(IntOp::Mul, task.first, Operand::i32(stages));
    let first = k.int(IntOp::Add, first, k.param(TowerParams::HEAD_START));
    wait(k, first);
    sync.barrier(k);
    let boundary = |k: &mut Kernel<'_>, from: Operand, until: Operand| {
        each_stage(k, from, until, stages, |k, number| {
            let next = k.int(IntOp::Add, number, Operand::i32(1));
            wait(k, next);
            sync.fenced_barrier(k);
        });
    };
    boundary(k, task.first, task.interior[0]);
    let some = k.compare(IntCmp::Lt, task.interior[0], task.interior[1]);
    k.when(some, |k| {
        for (i, (code, producer)) in codes.iter().zip(producers).enumerate() {
            let mine = k.compare(IntCmp::Eq, task.alignment, Operand::i32(i as i32));
            k.when(mine, |k| {
                code.by_kind(k, task.variant, &|k, context| {
                    let interior = Produced {
                        context,
                        producer,
                        sync,
                        words,
                    };
                    interior.produce(k, &task, &wait);
                });
            });
        }
        // The tower has stored the values that only it had, and rows are read from memory again.
        let next = k.int(IntOp::Mul, task.interior[1], Operand::i32(stages));
        wait(k, next);
        sync.fenced_barrier(k);
    });
    boundary(k, task.interior[1], task.end);
}

/// The interior periods of a tower, as producer threads see them.
struct Produced<'s, 'a> {
    context: &'s Context<'a>,
    producer: &'s Producer,
    sync: &'s Sync<'a>,
    words: Operand,
}

impl Produced<'_, '_> {
    /// A period, where its chunks lie.
    fn period(&self, k: &mut Kernel<'_>, chunk: Operand, number: Operand) -> LoadPeriod {
        let predicated = self.context.predicated();
        LoadPeriod {
            chunk,
            predicate: predicated.then(|| Predicate::new(k, self.context, self.words, number)),
            base: Between::of_base(k, self.context, number),
        }
    }

    /// The stage after one of a period, and the period in which it is.
    fn after(&self, k: &mut Kernel<'_>, period: Operand, stage: usize) -> (Operand, usize) {
        let next = stage + 1;
        match next == self.context.stages().len() {
            true => (k.int(IntOp::Add, period, Operand::i32(1)), 0),
            false => (period, next),
        }
    }

    /// Copies the rows that the periods need; `wait`: waits until the neighbours have done a number of stages.
    fn produce(&self, k: &mut Kernel<'_>, task: &Fields, wait: &impl Fn(&mut Kernel<'_>, Operand)) {
        let Produced {
            context,
            producer,
            sync,
            ..
        } = self;
        let pipeline = sync.pipeline.map(|(pipeline, _)| pipeline);
        let all = context.stages();
        let stages = Operand::i32(all.len() as i32);
        let origin = k.advance(k.param(TowerParams::ARRAY), task.offset, 1);
        let start = producer.at(k, origin);
        let [from, until] = task.interior;
        let first = context.shifted(k, start, from);
        let period = self.period(k, first, from);
        producer.copy(k, context, period, &context.period().held);
        producer.waves.copy(k, context, self.words, from, 0);
        load::wait_for_copies(k, context);
        sync.barrier(k);
        if let Some(pipeline) = pipeline {
            pipeline.fill(k, 0);
        }
        let chunk = k.variable_of(first);
        k.repeat(from, until, Operand::i32(1), Some(1), |k, number| {
            let now = k.get(chunk);
            let period = self.period(k, now, number);
            let before = k.int(IntOp::Mul, number, stages);
            for (n, stage) in all.iter().enumerate() {
                let next = k.int(IntOp::Add, before, Operand::i32(n as i32 + 1));
                let copy = |k: &mut Kernel<'_>| {
                    let wait_for_free = |k: &mut Kernel<'_>| {
                        if let Some(pipeline) = pipeline {
                            let begun = k.int(IntOp::Mul, from, stages);
                            let begun = k.int(IntOp::Add, begun, Operand::i32(1));
                            let older = k.compare(IntCmp::Gt, next, begun);
                            k.when(older, |k| pipeline.wait_for_free(k));
                        }
                    };
                    if context.block().slots.is_some() {
                        // Waves depend on no neighbour: they are under way when rows of neighbours are waited for.
                        wait_for_free(k);
                        let (later, after) = self.after(k, number, n);
                        producer.waves.copy(k, context, self.words, later, after);
                        wait(k, next);
                    } else {
                        wait(k, next);
                        wait_for_free(k);
                    }
                    let period = producer.for_stage(k, period, n);
                    producer.copy(k, context, period, &stage.loads);
                    if let Some(pipeline) = pipeline {
                        pipeline.fill(k, 1);
                    }
                };
                if n + 1 == all.len() {
                    let next = k.int(IntOp::Add, number, Operand::i32(1));
                    let more = k.compare(IntCmp::Lt, next, until);
                    k.when(more, copy);
                } else {
                    copy(k);
                }
                match pipeline {
                    Some(pipeline) => pipeline.next(k),
                    None => {
                        load::wait_for_copies(k, context);
                        sync.barrier(k);
                    }
                }
            }
            let next = k.offset(now, context.advance());
            k.set(chunk, next);
        });
    }
}
