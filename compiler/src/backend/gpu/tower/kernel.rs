//! All towers of a time block in one launch: blocks take towers from work queues, and wait for the neighbours of each,
//! stage by stage.
//!
//! The warps of a block have four roles. While the warps that *compute* run stage k (counted from the start of the time
//! block), the *producers* wait until the values that stage k + 1 reads of neighbours are in memory, and copy the
//! entering rows to shared memory ([`super::pipeline`]); the *publisher* tells other blocks that the stages before k
//! are done, and takes the next tower from the queue ([`super::queue`]); the *poller* always looks how far the
//! neighbours are, and tells the producers ([`super::progress`]). At the end of a stage each warp that computes waits
//! for the two beside it ([`super::neighbours`]); stages of boundary periods end with a barrier.
//!
//! A tower reads rows of its neighbours one index lower along one face or both. That nothing else needs to be waited
//! for follows from the pitches: [`Towers::waits_reach_all`](crate::tower::Towers::waits_reach_all). Running towers
//! never wait for ever for a tower that has no block.

use super::super::abi::{TaskWord, TowerParams};
use super::super::feature::Feature;
use super::super::ir::{Launch, Module, Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel, Label, Special};
use super::boundary::BoundaryPeriod;
use super::cluster::{self, ClusterBarrier};
use super::code::Code;
use super::context::{Context, Lane};
use super::copied;
use super::load::{self, Producer};
use super::neighbours::{self, Neighbours};
use super::pipeline::{self, Arrivals, Pipeline, Scarce};
use super::points::PointTable;
use super::produce;
use super::progress::{Poller, narrow, publish};
use super::queue::NextTask;
use super::steer;
use super::sync::{Sync, each_stage};
use super::task::{self, Fields, fields};
use super::worker::Worker;
use super::zone_coefs;
use crate::tower::block::{CLUSTER_BARRIERS, OTHERS, WARP};

/// The kernel's name.
pub const SYMBOL: &str = "torre_towers";

/// The shared memory of the kernel besides shared rows.
struct Named {
    task: Operand,
    pipeline: Operand,
    /// Where blocks share lines.
    cluster: Option<Operand>,
    neighbours: Operand,
}

impl Named {
    /// For a cluster of `blocks` blocks with `warps` compute warps each.
    fn take(module: &mut Module, blocks: u32, warps: u32) -> Named {
        Named {
            task: module.shared(Type::I32, TaskWord::shared(blocks), 16),
            pipeline: pipeline::barriers(module),
            cluster: (blocks > 1).then(|| module.shared(Type::I64, CLUSTER_BARRIERS, 16)),
            neighbours: neighbours::barriers(module, warps),
        }
    }
}

/// Adds the kernel: with the code of each alignment, the shared rows, and the list of rows of boundary periods.
pub(super) fn write(module: &mut Module, codes: &[Code<'_>], shared: Operand, rows: Operand) {
    let Some(code) = codes.first() else {
        return;
    };
    let context = code.context();
    let block = context.block();
    let roles = block.roles;
    let blocks = block.lines.cluster();
    let named = Named::take(module, blocks, roles.warps());
    let launch = Launch {
        threads: [roles.all(), 1, 1],
        blocks: 1,
        cluster: if blocks > 1 { blocks } else { 0 },
        ..Launch::default()
    };
    let params = context.params().types();
    let mut kernel = module.kernel(SYMBOL, &params, launch);
    let k = &mut kernel;
    if block.abilities.asynchronous {
        k.need(Feature::AsyncCopy);
    }
    let thread = k.special(Special::Thread(0));
    load::clear(k, context, shared, thread, i64::from(roles.all()));
    copied::prepare(k, context, shared, thread, roles.all());
    zone_coefs::prepare(k, context, shared, thread, roles.all());
    let warps = Warps {
        codes,
        shared,
        words: named.task,
        rows,
        sync: synchronisation(k, context, &named, thread),
    };
    let computes = k.compare(IntCmp::Lt, thread, threads(roles.group));
    let (compute, help) = (k.label(), k.label());
    k.branch(computes, compute, help);

    k.place(compute);
    if let Some(moved) = roles.moved {
        k.more_registers(moved.computing);
    }
    let (produce, other) = (k.label(), k.label());
    let completing = warps.leave_group(k, thread, produce);
    warps.compute(k);

    k.place(help);
    if let Some(moved) = roles.moved {
        k.fewer_registers(moved.others);
    }
    let rest = k.int(IntOp::Sub, thread, threads(roles.group));
    let (producer, other_thread) = match completing {
        Some(producer) => {
            let idle = k.compare(IntCmp::Ge, rest, threads(OTHERS));
            k.exit_if(idle);
            k.jump(other);
            (producer, rest)
        }
        None => {
            let swapped = roles.swapped(context.real.bytes());
            let rest = k.int(IntOp::Xor, rest, threads(swapped));
            let producers = threads(roles.producers());
            let produces = k.compare(IntCmp::Lt, rest, producers);
            let other_thread = k.int(IntOp::Sub, rest, producers);
            k.branch(produces, produce, other);
            (rest, other_thread)
        }
    };

    k.place(produce);
    warps.produce(k, producer);

    k.place(other);
    let (poll, publish) = (k.label(), k.label());
    let looks = k.compare(IntCmp::Ge, other_thread, threads(OTHERS / 2));
    k.branch(looks, poll, publish);
    k.place(poll);
    warps.poll(k);
    k.place(publish);
    warps.publish(k);
    kernel.finish();
}

fn threads(count: u32) -> Operand {
    Operand::i32(count as i32)
}

/// Makes the barriers of a block ready, by which its threads keep order.
fn synchronisation<'a>(
    k: &mut Kernel<'_>,
    context: &Context<'a>,
    named: &Named,
    thread: Operand,
) -> Sync<'a> {
    let block = context.block();
    let roles = block.roles;
    // Each thread has one role only, so one count of stages does for all of them.
    let scarce = Scarce {
        place: context.ghosts().is_some() || !context.program.sources.is_empty(),
        // Threads that compute in f64 have none to spare if others of their group are there.
        lane: roles.completing_produce() && context.real.bytes() == 8,
    };
    let pipeline = Pipeline::new(k, named.pipeline, block.abilities, scarce);
    let neighbours = block.chain.map(|chain| {
        Neighbours::new(
            named.neighbours,
            chain,
            roles.warps(),
            context.slabs(),
            pipeline,
        )
    });
    if let Some(neighbours) = &neighbours {
        k.need(Feature::SharedBarrier);
        let first = k.compare(IntCmp::Eq, thread, Operand::i32(0));
        let arrivals = Arrivals {
            producers: roles.producers(),
            warps: roles.warps(),
        };
        k.when(first, |k| pipeline::initialise(k, named.pipeline, arrivals));
        neighbours.initialise(k);
    }
    let mut sync = Sync {
        roles,
        cluster: None,
        pipeline: neighbours.map(|neighbours| (pipeline, neighbours)),
    };
    match named.cluster {
        Some(barriers) => {
            let warps = roles.working() / WARP as u32;
            let blocks = block.lines.cluster();
            sync.cluster = Some(ClusterBarrier::new(k, barriers, blocks, warps));
            cluster::barrier_of_all(k);
        }
        None => k.barrier(),
    }
    sync
}

/// The code of a block's warps by their roles: each goes through tower after tower, until there is none.
struct Warps<'c, 'a> {
    /// Of each alignment.
    codes: &'c [Code<'a>],
    /// Where shared rows lie.
    shared: Operand,
    /// The words of the block's task.
    words: Operand,
    /// The list of rows of boundary periods.
    rows: Operand,
    sync: Sync<'a>,
}

impl<'a> Warps<'_, 'a> {
    fn context(&self) -> &Context<'a> {
        self.codes[0].context()
    }

    /// Threads that only complete the group of computing threads leave its code: to `produce`, if they produce,
    /// else they end. Returns the thread's number among producers in the first case.
    fn leave_group(&self, k: &mut Kernel<'_>, thread: Operand, produce: Label) -> Option<Operand> {
        let roles = self.sync.roles;
        if roles.group <= roles.compute {
            return None;
        }
        let completes = k.compare(IntCmp::Ge, thread, threads(roles.compute));
        if !roles.completing_produce() {
            k.exit_if(completes);
            return None;
        }
        let producer = k.int(IntOp::Sub, thread, threads(roles.compute));
        let work = k.label();
        k.branch(completes, produce, work);
        k.place(work);
        Some(producer)
    }

    fn compute(&self, k: &mut Kernel<'_>) {
        let next = k.label();
        k.place(next);
        self.sync.begin(k, self.words, |_| ());
        self.sync.barrier(k);
        let alignment = fields(k, self.words).alignment;
        for (i, code) in self.codes.iter().enumerate() {
            let mine = k.compare(IntCmp::Eq, alignment, Operand::i32(i as i32));
            let worker = |k: &mut Kernel<'_>| {
                let thread = steer::thread(k);
                Worker {
                    context: *code.context(),
                    lane: Lane::new(k, code.context(), self.shared, thread),
                    ends: None,
                    sync: self.sync,
                    words: self.words,
                    ghosts: code.ghosts,
                }
            };
            k.when(mine, |k| tower(k, code, self.words, self.rows, worker));
        }
        k.jump(next);
    }

    /// `producer` is the thread's number among producers.
    fn produce(&self, k: &mut Kernel<'_>, producer: Operand) {
        let count = i64::from(self.sync.roles.producers());
        let producers: Vec<Producer> = self
            .codes
            .iter()
            .map(|code| Producer::new(k, code.context(), self.shared, producer, count))
            .collect();
        let next = k.label();
        k.place(next);
        self.sync.begin(k, self.words, |_| ());
        produce::tower(k, self.codes, &producers, &self.sync, self.words);
        k.jump(next);
    }

    fn poll(&self, k: &mut Kernel<'_>) {
        let context = self.context();
        let poller = Poller::new(k, self.words, context.block().lines.cluster());
        let stages = context.program.per_period() as i32;
        let next = k.label();
        k.place(next);
        self.sync.begin(k, self.words, |k| poller.forget(k));
        let task = fields(k, self.words);
        let extra = narrow(k, context, self.words);
        poller.look(k, &task, stages, extra);
        k.jump(next);
    }

    fn publish(&self, k: &mut Kernel<'_>) {
        let context = self.context();
        let ahead = NextTask::new(k, self.words, context.block().lines.cluster());
        ahead.take(k);
        let next = k.label();
        k.place(next);
        ahead.take_elsewhere(k);
        self.sync.begin(k, self.words, |k| ahead.show(k));
        publish_tower(k, context, &self.sync, &ahead, self.words);
        k.jump(next);
    }
}

/// The work of the threads of a tower: boundary periods, interior ones, and boundary periods again.
fn tower<'a>(
    k: &mut Kernel<'_>,
    code: &Code<'a>,
    words: Operand,
    rows: Operand,
    worker: impl Fn(&mut Kernel<'_>) -> Worker<'a>,
) {
    // Boundary periods before and after have one code: it is long, and instructions are fetched.
    let parts = [0, 2].map(Operand::i32);
    k.repeat(parts[0], parts[1], Operand::i32(1), Some(1), |k, part| {
        let before = k.compare(IntCmp::Eq, part, Operand::i32(0));
        let task = fields(k, words);
        let [from, until] = task.interior;
        let periods = [
            k.choose(before, task.first, until),
            k.choose(before, from, task.end),
        ];
        let some = k.compare(IntCmp::Lt, periods[0], periods[1]);
        k.when(some, |k| {
            let worker = worker(k);
            boundary(k, &worker, &task, periods, rows);
        });
        let some = k.compare(IntCmp::Lt, from, until);
        let some = k.int(IntOp::And, some, before);
        k.when(some, |k| {
            let task = fields(k, words);
            let worker = worker(k);
            code.by_variant(k, task.variant, &|k, context| {
                let worker = Worker {
                    context: *context,
                    ..worker.clone()
                };
                let start = start(k, &worker, &task);
                let first = context.shifted(k, start, task.interior[0]);
                worker.interior(k, first, task.interior);
            });
            worker.sync.fenced_barrier(k);
        });
    });
}

/// Where a tower starts in memory, at the thread's index.
fn start(k: &mut Kernel<'_>, worker: &Worker<'_>, task: &Fields) -> Operand {
    let origin = k.advance(k.param(TowerParams::ARRAY), task.offset, 1);
    worker.at(k, origin)
}

fn boundary(
    k: &mut Kernel<'_>,
    worker: &Worker<'_>,
    task: &Fields,
    periods: [Operand; 2],
    rows: Operand,
) {
    let worker = &match worker.context.ghosts() {
        Some(_) => worker.clone(),
        None => worker.clone().with_ends(k),
    };
    let context = &worker.context;
    let rings = &context.towers().rings;
    let start = if rings.is_any() {
        let zero = context.bytes(context.layout.group(0, 0));
        let zero = k.offset(k.param(TowerParams::ARRAY), zero);
        worker.at(k, zero)
    } else {
        start(k, worker, task)
    };
    let width = rings
        .narrow
        .then(|| task::word(k, worker.words, TaskWord::WIDTH));
    let counted = context.unrolled() && !context.planes_alike();
    let rotation = counted.then(|| task::word(k, worker.words, TaskWord::SHIFT[0]));
    let [from, until] = periods;
    k.repeat(from, until, Operand::i32(1), Some(1), |k, number| {
        let mut at = task.origin;
        for (at, by) in at.iter_mut().zip(context.towers().advance.array()) {
            let by = k.int(IntOp::Mul, number, Operand::i32(by as i32));
            *at = k.int(IntOp::Add, *at, by);
        }
        let own = match rings.is_any() {
            true => start,
            false => context.shifted(k, start, number),
        };
        let period = BoundaryPeriod {
            own,
            at,
            rotation,
            width,
            rows,
            number,
            points: PointTable::new(k, worker.words),
        };
        worker.boundary(k, period);
    });
}

/// The work of the publisher for a tower.
fn publish_tower(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    sync: &Sync<'_>,
    ahead: &NextTask,
    words: Operand,
) {
    let task = fields(k, words);
    let stages = context.program.per_period() as i32;
    let last = k.int(IntOp::Mul, task.end, Operand::i32(stages));
    let last = k.int(IntOp::Sub, last, Operand::i32(1));
    sync.barrier(k);
    let announce = |k: &mut Kernel<'_>, number: Operand| {
        let reached = k.int(IntOp::Add, number, k.param(TowerParams::SINCE));
        publish(k, ahead.leads, ahead.block, &task, reached);
        let now = k.compare(IntCmp::Eq, number, last);
        k.when(now, |k| ahead.take(k));
    };
    let boundary = |k: &mut Kernel<'_>, from: Operand, until: Operand| {
        each_stage(k, from, until, stages, |k, number| {
            announce(k, number);
            sync.barrier(k);
        });
    };
    boundary(k, task.first, task.interior[0]);
    let [from, until] = task.interior;
    let some = k.compare(IntCmp::Lt, from, until);
    k.when(some, |k| {
        // The interior periods begin.
        sync.barrier(k);
        match sync.pipeline {
            Some((pipeline, _)) => {
                let end = k.int(IntOp::Mul, until, Operand::i32(stages));
                let allow = |k: &mut Kernel<'_>, number: Operand, ahead: i32| {
                    let later = k.int(IntOp::Add, number, Operand::i32(ahead));
                    let there = k.compare(IntCmp::Lt, later, end);
                    k.when(there, |k| pipeline.allow(k, ahead));
                };
                let first = k.int(IntOp::Mul, from, Operand::i32(stages));
                allow(k, first, 0);
                allow(k, first, 1);
                each_stage(k, from, until, stages, |k, number| {
                    announce(k, number);
                    pipeline.wait_for_end(k);
                    allow(k, number, 2);
                    pipeline.next(k);
                });
            }
            None => boundary(k, from, until),
        }
        // The tower has stored the values that only it had.
        sync.barrier(k);
    });
    boundary(k, task.interior[1], task.end);
    let over = k.param(TowerParams::OVER);
    publish(k, ahead.leads, ahead.block, &task, over);
}
