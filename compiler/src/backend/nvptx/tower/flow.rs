//! All towers of a time block in one launch: blocks take towers from [lists](super::lists), and wait for the neighbours of each, stage by stage.
//!
//! The warps of a block have four roles. While those that *compute* run stage k (counted from the start of the time block), the *copiers* wait
//! until what stage k + 1 reads of neighbours is in memory, and copy to shared memory what enters there ([`super::pipe`]); the *herald* tells
//! other blocks that the stages before k are done, and takes the next tower from the list ([`super::ticket`]); the *scout* always looks how
//! far the neighbours are, and tells the copiers ([`super::progress`]). At the end of a stage each warp that computes waits for the two beside it
//! ([`super::links`]); all meet at the ends of stages of periods that an end of the grid cuts.
//!
//! A tower reads rows of its neighbours one index lower along one face or both. That nothing else needs to be waited for follows
//! from the pitches: [`Towers::are_adjacent`](crate::tile::residency::Towers::are_adjacent). Those that run never wait for ever
//! for one that has no block.

use super::super::gpu::Feature;
use super::super::ir::{Launch, Module, Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special};
use super::clip::{Clip, by_kind};
use super::edge::Cut;
use super::hooks::Hooked;
use super::line::{self, Meet};
use super::links::{self, Chain, Links};
use super::pipe::{self, Pipe};
use super::progress::{Scout, Waiting, narrow, publish};
use super::roles::{OTHERS, Roles};
use super::sheets::{self, Acting};
use super::spans;
use super::ticket::{self, Ahead, FIRST, Fields, HOOKS, LIMITS, fields};
use super::write::{Meeting, Period, Writer};

/// The kernel's name.
pub(super) const SYMBOL: &str = "torre_towers";

/// The kernel's parameters, see [`FlowKernel`].
const PARAMS: [Type; 12] = [
    Type::GLOBAL,
    Type::GLOBAL,
    Type::I32,
    Type::GLOBAL,
    Type::GLOBAL,
    Type::I32,
    Type::I32,
    Type::I32,
    Type::I32,
    Type::GLOBAL,
    Type::GLOBAL,
    Type::GLOBAL,
];

/// Their numbers.
pub(super) mod param {
    pub const ARRAY: usize = 0;
    pub const TASKS: usize = 1;
    /// Of tasks.
    pub const COUNT: usize = 2;
    pub const PROGRESS: usize = 3;
    /// Of tasks, see [`super::super::lists`].
    pub const LISTS: usize = 4;
    /// How many.
    pub const PARTITIONS: usize = 5;
    /// What progress counts from.
    pub const SINCE: usize = 6;
    /// The progress of a tower that is done.
    pub const OVER: usize = 7;
    pub const LEAD: usize = 8;
    pub const HOOKS: usize = 9;
    pub const WAVES: usize = 10;
    pub const RECORDS: usize = 11;
    /// Those of sheets, if there are some: the bytes of a step's waves, then each sheet's.
    pub const SHEETS: usize = 12;
}

/// The number of parameters before those for spans.
pub(super) fn params(sheets: &[Acting]) -> usize {
    PARAMS.len() + sheets::params(sheets).len()
}

/// The shared memory that the kernel names: the block's task, and barriers.
struct Named {
    task: Operand,
    pipe: Operand,
    /// Where blocks share lines.
    cluster: Option<Operand>,
    links: Operand,
}

impl Named {
    /// For so many blocks that share lines.
    fn take(module: &mut Module, roles: Roles, parts: u32) -> Named {
        Named {
            task: module.shared(Type::I32, ticket::words(parts), 16),
            pipe: pipe::barriers(module),
            cluster: (parts > 1).then(|| module.shared(Type::I64, Meet::WORDS, 16)),
            links: links::barriers(module, roles.compute / 32),
        }
    }
}

/// Bytes of shared memory that the kernel names, if so many blocks share lines.
pub(super) fn named(roles: Roles, parts: u32) -> u32 {
    let mut module = Module::new();
    Named::take(&mut module, roles, parts);
    module.shared_bytes()
}

pub(super) fn write(
    module: &mut Module,
    writers: &[Writer<'_>],
    roles: Roles,
    [shared, rows]: [Operand; 2],
    chain: Option<Chain>,
    patient: bool,
) {
    let Some(writer) = writers.first() else {
        return;
    };
    let parts = writer.split.map_or(1, |split| split.parts);
    let Named {
        task: word,
        pipe: barriers,
        cluster: of_cluster,
        links: of_links,
    } = Named::take(module, roles, parts);
    let warps = roles.compute / 32;
    let launch = Launch {
        threads: [roles.all(), 1, 1],
        blocks: 1,
        cluster: if parts > 1 { parts } else { 0 },
        ..Launch::default()
    };
    let mut params = PARAMS.to_vec();
    params.extend(sheets::params(writer.sheets));
    params.extend(writer.spans.iter().flat_map(|_| spans::PARAMS));
    let mut k = module.kernel(SYMBOL, &params, launch);
    writer.need(&mut k);
    let thread = k.special(Special::Thread(0));
    let slots = writers.iter().map(|w| w.plan.slots).max().unwrap_or(0);
    writer.clear(&mut k, shared, slots, thread, i64::from(roles.all()));
    // Each thread has one role only, so one count of stages does for all of them.
    let scarce = writer.beyond.is_some() || !writer.sheets.is_empty();
    // Threads that compute in f64 have none to spare if others of their group are there.
    let full = roles.completing_copy() && writer.real.bytes() == 8;
    let pipe = Pipe::new(&mut k, barriers, patient, [scarce, full]);
    let links = chain.map(|chain| Links::new(of_links, chain, warps, writer.split, pipe));
    if let Some(links) = &links {
        k.need(Feature::SharedBarrier);
        let first = k.compare(IntCmp::Eq, thread, Operand::i32(0));
        k.when(first, |k| {
            pipe::initialise(k, barriers, [roles.copiers(), warps]);
        });
        links.initialise(&mut k);
    }
    let mut roles = roles;
    match of_cluster {
        Some(barriers) => {
            roles.cluster = Some(Meet::new(&mut k, barriers, parts, roles.working() / 32));
            line::gather(&mut k);
        }
        None => k.barrier(),
    }
    let meeting = Meeting {
        all: roles.barrier(),
        pipe: links.map(|links| (pipe, links)),
    };
    let threads = |count: u32| Operand::i32(count as i32);
    let computes = k.compare(IntCmp::Lt, thread, threads(roles.group));
    let (compute, help) = (k.label(), k.label());
    k.branch(computes, compute, help);

    k.place(compute);
    if let Some([more, _]) = roles.registers {
        k.registers(true, more);
    }
    let (copy, other) = (k.label(), k.label());
    let mut copier = None;
    if roles.group > roles.compute {
        let completes = k.compare(IntCmp::Ge, thread, threads(roles.compute));
        if roles.completing_copy() {
            copier = Some(k.int(IntOp::Sub, thread, threads(roles.compute)));
            let work = k.label();
            k.branch(completes, copy, work);
            k.place(work);
        } else {
            k.exit_if(completes);
        }
    }
    let next = k.label();
    k.place(next);
    roles.begin(&mut k, word, |_| ());
    roles.meet(&mut k);
    let alignment = fields(&mut k, word).alignment;
    for (i, writer) in writers.iter().enumerate() {
        let mine = k.compare(IntCmp::Eq, alignment, Operand::i32(i as i32));
        let prepared = |k: &mut Kernel<'_>| {
            let thread = line::thread(k);
            let writer = writer.clone().meeting(meeting).of_task(word);
            writer.prepared(k, shared, thread)
        };
        k.when(mine, |k| tower(k, prepared, word, rows));
    }
    k.jump(next);

    k.place(help);
    if let Some([_, fewer]) = roles.registers {
        k.registers(false, fewer);
    }
    let rest = k.int(IntOp::Sub, thread, threads(roles.group));
    let (copier, other_thread) = match copier {
        Some(copier) => {
            let idle = k.compare(IntCmp::Ge, rest, threads(OTHERS));
            k.exit_if(idle);
            k.jump(other);
            (copier, rest)
        }
        None => {
            let rest = k.int(
                IntOp::Xor,
                rest,
                threads(roles.swapped(writer.real.bytes())),
            );
            let copiers = threads(roles.copiers());
            let copies = k.compare(IntCmp::Lt, rest, copiers);
            let other_thread = k.int(IntOp::Sub, rest, copiers);
            k.branch(copies, copy, other);
            (rest, other_thread)
        }
    };

    k.place(copy);
    let copiers: Vec<Writer<'_>> = writers
        .iter()
        .map(|w| {
            let writer = w.copying(&mut k, shared, copier, i64::from(roles.copiers()));
            writer.meeting(meeting)
        })
        .collect();
    let next = k.label();
    k.place(next);
    roles.begin(&mut k, word, |_| ());
    let pipe = meeting.pipe.map(|(pipe, _)| pipe);
    copy_tower(&mut k, &copiers, roles, pipe, word);
    k.jump(next);

    k.place(other);
    let (scout, herald) = (k.label(), k.label());
    let looks = k.compare(IntCmp::Ge, other_thread, threads(OTHERS / 2));
    k.branch(looks, scout, herald);

    k.place(scout);
    let scout = Scout::new(&mut k, word, parts);
    let stages = writer.plan.stages.len() as i32;
    let next = k.label();
    k.place(next);
    roles.begin(&mut k, word, |k| scout.forget(k));
    let task = fields(&mut k, word);
    let extra = narrow(&mut k, writer.towers, word);
    scout.look(&mut k, &task, stages, extra);
    k.jump(next);

    k.place(herald);
    let ahead = Ahead::new(&mut k, word, writer.split);
    ahead.take(&mut k);
    let next = k.label();
    k.place(next);
    ahead.look_around(&mut k);
    roles.begin(&mut k, word, |k| ahead.give(k));
    announce_tower(&mut k, writer, roles, pipe, &ahead, word);
    k.jump(next);
    k.finish();
}

/// What the threads of a tower do: what is cut, what is whole, and what is cut again.
fn tower<'a>(
    k: &mut Kernel<'_>,
    prepared: impl Fn(&mut Kernel<'_>) -> Writer<'a>,
    word: Operand,
    rows: Operand,
) {
    // What is cut before and after has one code: it is long, and instructions are fetched.
    let parts = [0, 2].map(Operand::i32);
    k.repeat(parts[0], parts[1], Operand::i32(1), Some(1), |k, part| {
        let before = k.compare(IntCmp::Eq, part, Operand::i32(0));
        let task = fields(k, word);
        let [from, until] = task.whole;
        let periods = [
            k.choose(before, task.first, until),
            k.choose(before, from, task.end),
        ];
        let some = k.compare(IntCmp::Lt, periods[0], periods[1]);
        k.when(some, |k| {
            let writer = prepared(k);
            cut(k, &writer, &task, periods, [word, rows]);
        });
        let some = k.compare(IntCmp::Lt, from, until);
        let some = k.int(IntOp::And, some, before);
        k.when(some, |k| {
            let task = fields(k, word);
            let writer = prepared(k);
            let run = |k: &mut Kernel<'_>, writer: &Writer<'a>| {
                let start = start(k, writer, &task);
                let period = shifted(k, writer, start, task.whole[0]);
                writer.whole(k, period, task.whole);
            };
            by_kind(k, &writer, task.clipped, run);
            writer.settle(k);
        });
    });
}

/// Where a tower starts in memory.
fn start(k: &mut Kernel<'_>, writer: &Writer<'_>, task: &Fields) -> Period {
    let origin = k.advance(k.param(param::ARRAY), task.offset, 1);
    writer.period_at(k, origin)
}

fn cut(
    k: &mut Kernel<'_>,
    writer: &Writer<'_>,
    task: &Fields,
    periods: [Operand; 2],
    [word, rows]: [Operand; 2],
) {
    let writer = &match writer.beyond {
        Some(_) => writer.clone(),
        None => writer.clone().with_ends(k),
    };
    let around = writer.towers.rings.is_any();
    let start = if around {
        let zero = writer.bytes(writer.layout.group(0, 0));
        let zero = k.offset(k.param(param::ARRAY), zero);
        writer.period_at(k, zero)
    } else {
        start(k, writer, task)
    };
    let limits = [0, 1].map(|n| k.offset(word, i64::from(4 * (LIMITS + n))));
    let limits = match writer.towers.rings.narrow {
        true => limits.map(|from| k.load(Type::I32, from, 4, Access::Volatile)),
        false => [Operand::i32(i32::MAX); 2],
    };
    let [from, until] = periods;
    k.repeat(from, until, Operand::i32(1), Some(1), |k, number| {
        let mut at = task.at;
        for (at, by) in at.iter_mut().zip(writer.towers.advance) {
            let by = k.int(IntOp::Mul, number, Operand::i32(by as i32));
            *at = k.int(IntOp::Add, *at, by);
        }
        let period = if around {
            start
        } else {
            shifted(k, writer, start, number)
        };
        let hooked = Hooked {
            array: k.param(param::ARRAY),
            table: k.param(param::HOOKS),
            waves: k.param(param::WAVES),
            records: k.param(param::RECORDS),
            task: [HOOKS, FIRST].map(|n| k.offset(word, i64::from(4 * n))),
            active: None,
        };
        let cut = Cut {
            period,
            at,
            limits,
            rows,
            number,
            step: 0,
            hooked,
        };
        writer.cut_period(k, cut);
    });
}

fn shifted(k: &mut Kernel<'_>, writer: &Writer<'_>, period: Period, periods: Operand) -> Period {
    let wide = k.resize(periods, Type::I64);
    let by = k.int(IntOp::Mul, wide, Operand::i64(writer.advance()));
    Period {
        own: k.advance(period.own, by, 1),
        chunk: k.advance(period.chunk, by, 1),
        ..period
    }
}

/// What copiers do for a tower.
fn copy_tower(
    k: &mut Kernel<'_>,
    writers: &[Writer<'_>],
    roles: Roles,
    pipe: Option<Pipe>,
    word: Operand,
) {
    let task = fields(k, word);
    let parts = writers[0].split.map_or(1, |split| split.parts);
    let extra = narrow(k, writers[0].towers, word);
    let waiting = Waiting::new(k, word, parts, extra);
    let stages = writers[0].plan.stages.len() as i32;
    let last = k.int(IntOp::Mul, task.end, Operand::i32(stages));
    let last = k.int(IntOp::Sub, last, Operand::i32(1));
    let wait = |k: &mut Kernel<'_>, stage: Operand| {
        let stage = k.int(IntOp::Min, stage, last);
        waiting.wait(k, stage);
    };
    let first = k.int(IntOp::Mul, task.first, Operand::i32(stages));
    let first = k.int(IntOp::Add, first, k.param(param::LEAD));
    wait(k, first);
    roles.meet(k);
    let cut = |k: &mut Kernel<'_>, from: Operand, until: Operand| {
        each_stage(k, from, until, stages, |k, number| {
            let next = k.int(IntOp::Add, number, Operand::i32(1));
            wait(k, next);
            roles.settle(k);
        });
    };
    cut(k, task.first, task.whole[0]);
    let whole = k.compare(IntCmp::Lt, task.whole[0], task.whole[1]);
    k.when(whole, |k| {
        for (i, writer) in writers.iter().enumerate() {
            let mine = k.compare(IntCmp::Eq, task.alignment, Operand::i32(i as i32));
            k.when(mine, |k| {
                by_kind(k, writer, task.clipped, |k, writer| {
                    let start = start(k, writer, &task);
                    let first = shifted(k, writer, start, task.whole[0]);
                    let clip = |k: &mut Kernel<'_>, number: Operand| {
                        writer.clips.then(|| Clip::new(k, writer, word, number))
                    };
                    let first = Period {
                        clip: clip(k, task.whole[0]),
                        base: writer.base_between(k, task.whole[0]),
                        ..first
                    };
                    writer.copy(k, first, &writer.plan.held);
                    writer.meet(k);
                    if let Some(pipe) = pipe {
                        pipe.fill(k, 0);
                    }
                    let chunk = k.variable_of(first.chunk);
                    let [from, until] = task.whole;
                    k.repeat(from, until, Operand::i32(1), Some(1), |k, number| {
                        let period = Period {
                            own: first.own,
                            chunk: k.get(chunk),
                            clip: clip(k, number),
                            base: writer.base_between(k, number),
                        };
                        let stage = k.int(IntOp::Mul, number, Operand::i32(stages));
                        for (n, plan) in writer.plan.stages.iter().enumerate() {
                            let next = k.int(IntOp::Add, stage, Operand::i32(n as i32 + 1));
                            let copy = |k: &mut Kernel<'_>| {
                                wait(k, next);
                                if let Some(pipe) = pipe {
                                    let begun = k.int(IntOp::Mul, from, Operand::i32(stages));
                                    let begun = k.int(IntOp::Add, begun, Operand::i32(1));
                                    let older = k.compare(IntCmp::Gt, next, begun);
                                    k.when(older, |k| pipe.wait_for_free(k));
                                }
                                let period = writer.distinct(k, period, n);
                                writer.copy(k, period, &plan.loads);
                                if let Some(pipe) = pipe {
                                    pipe.fill(k, 1);
                                }
                            };
                            if n + 1 == writer.plan.stages.len() {
                                let next = k.int(IntOp::Add, number, Operand::i32(1));
                                let more = k.compare(IntCmp::Lt, next, until);
                                k.when(more, copy);
                            } else {
                                copy(k);
                            }
                            match pipe {
                                Some(pipe) => pipe.next(k),
                                None => writer.meet(k),
                            }
                        }
                        let next = k.offset(period.chunk, writer.advance());
                        k.set(chunk, next);
                    });
                });
            });
        }
        // The tower has stored what only it had, and rows are read from memory again.
        let next = k.int(IntOp::Mul, task.whole[1], Operand::i32(stages));
        wait(k, next);
        roles.settle(k);
    });
    cut(k, task.whole[1], task.end);
}

/// What the herald does for a tower.
fn announce_tower(
    k: &mut Kernel<'_>,
    writer: &Writer<'_>,
    roles: Roles,
    pipe: Option<Pipe>,
    ahead: &Ahead,
    word: Operand,
) {
    let task = fields(k, word);
    let stages = writer.plan.stages.len() as i32;
    let last = k.int(IntOp::Mul, task.end, Operand::i32(stages));
    let last = k.int(IntOp::Sub, last, Operand::i32(1));
    roles.meet(k);
    let announce = |k: &mut Kernel<'_>, number: Operand| {
        let reached = k.int(IntOp::Add, number, k.param(param::SINCE));
        publish(k, ahead, &task, reached);
        let now = k.compare(IntCmp::Eq, number, last);
        k.when(now, |k| ahead.take(k));
    };
    let cut = |k: &mut Kernel<'_>, from: Operand, until: Operand| {
        each_stage(k, from, until, stages, |k, number| {
            announce(k, number);
            roles.meet(k);
        });
    };
    cut(k, task.first, task.whole[0]);
    let [from, until] = task.whole;
    let whole = k.compare(IntCmp::Lt, from, until);
    k.when(whole, |k| {
        // The tower begins.
        roles.meet(k);
        match pipe {
            Some(pipe) => {
                let end = k.int(IntOp::Mul, until, Operand::i32(stages));
                let allow = |k: &mut Kernel<'_>, number: Operand, ahead: i32| {
                    let later = k.int(IntOp::Add, number, Operand::i32(ahead));
                    let there = k.compare(IntCmp::Lt, later, end);
                    k.when(there, |k| pipe.allow(k, ahead));
                };
                let first = k.int(IntOp::Mul, from, Operand::i32(stages));
                allow(k, first, 0);
                allow(k, first, 1);
                each_stage(k, from, until, stages, |k, number| {
                    announce(k, number);
                    pipe.wait_for_end(k);
                    allow(k, number, 2);
                    pipe.next(k);
                });
            }
            None => cut(k, from, until),
        }
        // It has stored what only it had.
        roles.meet(k);
    });
    cut(k, task.whole[1], task.end);
    let over = k.param(param::OVER);
    publish(k, ahead, &task, over);
}

/// What is done for each stage of some periods.
fn each_stage(
    k: &mut Kernel<'_>,
    from: Operand,
    until: Operand,
    stages: i32,
    body: impl FnOnce(&mut Kernel<'_>, Operand),
) {
    let from = k.int(IntOp::Mul, from, Operand::i32(stages));
    let until = k.int(IntOp::Mul, until, Operand::i32(stages));
    k.repeat(from, until, Operand::i32(1), Some(1), body);
}
