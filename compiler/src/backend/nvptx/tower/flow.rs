//! All towers of a band in one launch: blocks take towers from a list, and wait for the neighbours of each, stage by stage.
//!
//! The warps of a block have four roles. While those that compute run stage k (counted from the start of the band), the *copiers* wait
//! until what stage k + 1 reads of neighbours is in memory, and copy to shared memory what enters there; the *herald* tells other blocks
//! that the stages before k are done. These meet at the barrier that ends each stage. The *scout* always looks how far the neighbours
//! are, and tells the copiers.
//!
//! A tower reads rows of its neighbours one index lower along one face or both. That nothing else needs to be waited for follows
//! from the periods: [`Towers::are_adjacent`](crate::tile::residency::Towers::are_adjacent). Towers come before their neighbours in the list, so those that run never wait for one that
//! has no block.

use super::super::gpu::Feature;
use super::super::ir::{Launch, Module, Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Variable};
use super::edge::Cut;
use super::hooks::Hooked;
use super::line::{self, Barrier, Meet, Split};
use super::pipe::{self, Pipe};
use super::write::{Meeting, Turn, Writer};
use super::{PROGRESS_BYTES, Task};

/// Threads that copy.
const COPIERS: u32 = 64;
/// Threads that do not compute: those that copy, the herald's warp and the scout's.
pub(super) const HELPERS: u32 = COPIERS + 64;
/// Registers of a thread that does not compute, where they can be moved.
const HELPER_REGISTERS: u32 = 40;
/// Registers of a multiprocessor, and the most that a thread has.
const REGISTERS: [u32; 2] = [65536, 255];
/// Warps that get registers together.
const WARPGROUP: u32 = 128;

/// Words of a task in shared memory: as in the list, and its number.
const WORDS: u32 = NUMBER + 1;
const FIRST: u32 = 3;
const HOOKS: u32 = 12;
const NUMBER: u32 = Task::BYTES / 4;
/// After them: the number of the next task, and the progress of the neighbours.
const NEXT: u32 = WORDS;
const SEEN: u32 = NEXT + 1;
const NEIGHBOURS: u32 = 3;

/// The barrier at the end of a stage.
const STAGE: u32 = 1;
/// That between two towers, where the scout is, too.
const TOWER: u32 = 2;
/// That at the end of a stage of which copiers hear in another way.
const COMPUTE: u32 = 3;

/// What the warps of a block do.
#[derive(Clone, Copy)]
pub(super) struct Roles {
    /// Threads that compute.
    compute: u32,
    /// The same with warps that are only there to complete a group.
    group: u32,
    /// Registers of a thread that computes, if they are moved.
    registers: Option<u32>,
    /// How those who work on a tower, and those that compute, meet in a cluster.
    cluster: Option<[Meet; 2]>,
}

impl Roles {
    /// `compute`: a multiple of 32; `needed`: registers of a thread that computes; `shift`: registers may be moved.
    pub fn new(compute: u32, needed: u32, shift: bool) -> Roles {
        let whole = compute.div_ceil(WARPGROUP) * WARPGROUP;
        let [all, most] = REGISTERS;
        let threads = whole + HELPERS;
        let each = (all / threads / 8 * 8).min(most);
        let left = (each * threads).saturating_sub(HELPERS * HELPER_REGISTERS);
        let more = (left / whole / 8 * 8).min(most / 8 * 8);
        let registers = (shift && needed > each && more > each).then_some(more);
        Roles {
            compute,
            group: if registers.is_some() { whole } else { compute },
            registers,
            cluster: None,
        }
    }

    /// Threads of a block.
    pub fn all(self) -> u32 {
        self.group + HELPERS
    }

    /// Those who meet after each stage.
    fn working(self) -> u32 {
        self.compute + HELPERS - 32
    }

    /// Those that compute, and the herald.
    fn computing(self) -> u32 {
        self.compute + 32
    }

    /// Where those who work on a tower meet, and those that compute.
    fn barriers(self) -> [Barrier; 2] {
        let [all, computing] = [(STAGE, self.working()), (COMPUTE, self.computing())]
            .map(|(number, threads)| Barrier::Block { number, threads });
        match self.cluster {
            Some(meets) => meets.map(Barrier::Cluster),
            None => [all, computing],
        }
    }

    fn meet(self, k: &mut Kernel<'_>) {
        self.barriers()[0].meet(k);
    }

    /// The same, and all see what others have stored in memory.
    fn settle(self, k: &mut Kernel<'_>) {
        self.barriers()[0].settle(k);
    }

    /// All threads that run a tower, scouts included.
    fn gather(self, k: &mut Kernel<'_>) {
        match self.cluster {
            Some(_) => line::gather(k),
            None => k.barrier_of(TOWER, self.compute + HELPERS),
        }
    }

    /// Waits until nobody needs the task before, shows the next one, and ends threads where there is none.
    fn begin(self, k: &mut Kernel<'_>, words: Operand, show: impl FnOnce(&mut Kernel<'_>)) {
        self.gather(k);
        show(k);
        self.gather(k);
        let number = k.offset(words, i64::from(4 * NUMBER));
        let number = k.load(Type::I32, number, 4, Access::Volatile);
        let ended = k.compare(IntCmp::Ge, number, k.param(3));
        k.exit_if(ended);
    }
}

/// A task as a block has read it.
struct Fields {
    number: Operand,
    offset: Operand,
    alignment: Operand,
    first: Operand,
    whole: [Operand; 2],
    end: Operand,
    at: [Operand; 2],
    neighbours: [Operand; 3],
}

/// The kernel's parameters, see [`FlowKernel`].
const PARAMS: [Type; 13] = [
    Type::GLOBAL,
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

pub(super) fn write(
    module: &mut Module,
    writers: &[Writer<'_>],
    roles: Roles,
    shared: Operand,
    patient: bool,
) {
    let Some(writer) = writers.first() else {
        return;
    };
    let parts = writer.split.map_or(1, |split| split.parts);
    let word = module.shared(Type::I32, SEEN + NEIGHBOURS * parts, 16);
    let barriers = pipe::barriers(module, parts);
    let of_cluster = (parts > 1).then(|| module.shared(Type::I64, 2 * Meet::WORDS, 16));
    let launch = Launch {
        threads: [roles.all(), 1, 1],
        blocks: 1,
        cluster: if parts > 1 { parts } else { 0 },
        ..Launch::default()
    };
    let mut k = module.kernel("torre_towers", &PARAMS, launch);
    writer.need(&mut k);
    let thread = k.special(Special::Thread(0));
    let slots = writers.iter().map(|w| w.plan.slots).max().unwrap_or(0);
    writer.clear(&mut k, shared, slots, thread, i64::from(roles.all()));
    let piped = writer.asynchronous;
    if piped {
        k.need(Feature::SharedBarrier);
        let first = k.compare(IntCmp::Eq, thread, Operand::i32(0));
        k.when(first, |k| {
            pipe::initialise(k, barriers, parts, [COPIERS, roles.compute / 32]);
        });
    }
    let mut roles = roles;
    match of_cluster {
        Some(first) => {
            let second = k.offset(first, i64::from(Meet::WORDS) * 8);
            let warps = [roles.working(), roles.computing()].map(|threads| threads / 32);
            roles.cluster = Some([
                Meet::new(&mut k, first, parts, warps[0]),
                Meet::new(&mut k, second, parts, warps[1]),
            ]);
            line::gather(&mut k);
        }
        None => k.barrier(),
    }
    // Each thread has one role only, so one count of stages does for all of them.
    let pipe = Pipe::new(&mut k, barriers, parts, patient);
    let [all, computing] = roles.barriers();
    let meeting = Meeting {
        all,
        computing,
        pipe: piped.then_some(pipe),
    };
    let computes = k.compare(IntCmp::Lt, thread, Operand::i32(roles.group as i32));
    let (compute, help) = (k.label(), k.label());
    k.branch(computes, compute, help);

    k.place(compute);
    if let Some(registers) = roles.registers {
        k.registers(true, registers);
    }
    if roles.group > roles.compute {
        let idle = k.compare(IntCmp::Ge, thread, Operand::i32(roles.compute as i32));
        k.exit_if(idle);
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
            writer.clone().meeting(meeting).prepared(k, shared, thread)
        };
        k.when(mine, |k| tower(k, prepared, word));
    }
    k.jump(next);

    k.place(help);
    if roles.registers.is_some() {
        k.registers(false, HELPER_REGISTERS);
    }
    let thread = k.int(IntOp::Sub, thread, Operand::i32(roles.group as i32));
    let copies = k.compare(IntCmp::Lt, thread, Operand::i32(COPIERS as i32));
    let (copy, other) = (k.label(), k.label());
    k.branch(copies, copy, other);

    k.place(copy);
    let copiers: Vec<Writer<'_>> = writers
        .iter()
        .map(|w| {
            let writer = w.copying(&mut k, shared, thread, i64::from(COPIERS));
            writer.meeting(meeting)
        })
        .collect();
    let next = k.label();
    k.place(next);
    roles.begin(&mut k, word, |_| ());
    copy_tower(&mut k, &copiers, roles, meeting.pipe, word);
    k.jump(next);

    k.place(other);
    let (scout, herald) = (k.label(), k.label());
    let looks = k.compare(IntCmp::Ge, thread, Operand::i32(COPIERS as i32 + 32));
    k.branch(looks, scout, herald);

    k.place(scout);
    let scout = Scout::new(&mut k, word, parts);
    let stages = writer.plan.stages.len() as i32;
    let next = k.label();
    k.place(next);
    roles.begin(&mut k, word, |k| scout.forget(k));
    let task = fields(&mut k, word);
    scout.look(&mut k, &task, stages);
    k.jump(next);

    k.place(herald);
    let ahead = Ahead::new(&mut k, word, writer.split);
    ahead.take(&mut k);
    let next = k.label();
    k.place(next);
    roles.begin(&mut k, word, |k| ahead.give(k));
    announce_tower(&mut k, writer, roles, meeting, &ahead, word);
    k.jump(next);
    k.finish();
}

/// The task that comes next, in the registers of the herald's warp: a word in each lane.
struct Ahead {
    lane: Operand,
    leads: Operand,
    /// The lane has a word.
    has: Operand,
    /// The lane's word in shared memory.
    to: Operand,
    /// Where the number lies while the warp tells itself.
    number: Operand,
    word: Variable,
    /// Where blocks share lines: how, and the block's number among them. The first one takes tasks for all.
    part: Option<(Split, Operand)>,
}

impl Ahead {
    fn new(k: &mut Kernel<'_>, words: Operand, split: Option<Split>) -> Ahead {
        let lane = k.special(Special::Lane);
        let wide = k.resize(lane, Type::I64);
        Ahead {
            lane,
            leads: k.compare(IntCmp::Eq, lane, Operand::i32(0)),
            has: k.compare(IntCmp::Below, lane, Operand::i32(WORDS as i32)),
            to: k.advance(words, wide, 4),
            number: k.offset(words, i64::from(4 * NEXT)),
            word: k.variable_of(Operand::i32(0)),
            part: split.map(|split| (split, line::rank(k))),
        }
    }

    /// What the first block does for all that share lines with it.
    fn as_first(&self, k: &mut Kernel<'_>, body: impl FnOnce(&mut Kernel<'_>)) {
        match self.part {
            Some((_, rank)) => {
                let first = k.compare(IntCmp::Eq, rank, Operand::i32(0));
                k.when(first, body);
            }
            None => body(k),
        }
    }

    /// Takes the next task of the list.
    fn take(&self, k: &mut Kernel<'_>) {
        self.as_first(k, |k| self.take_one(k));
    }

    fn take_one(&self, k: &mut Kernel<'_>) {
        k.when(self.leads, |k| {
            let counter = k.param(5);
            let taken = k.assembly(
                "atom.relaxed.gpu.global.add.u32 $0, [$1], 1;",
                "=r,l",
                &[Type::I32],
                &[counter],
                true,
            );
            let number = k.int(IntOp::Sub, taken[0], k.param(6));
            k.store(number, self.number, 4, Access::Volatile);
        });
        k.warp_barrier();
        let number = k.load(Type::I32, self.number, 4, Access::Volatile);
        k.set(self.word, number);
        let there = k.compare(IntCmp::Lt, number, k.param(3));
        let listed = k.compare(IntCmp::Below, self.lane, Operand::i32(NUMBER as i32));
        let listed = k.int(IntOp::And, listed, there);
        k.when(listed, |k| {
            let wide = k.resize(number, Type::I64);
            let task = k.advance(k.param(2), wide, Task::BYTES);
            let wide = k.resize(self.lane, Type::I64);
            let from = k.advance(task, wide, 4);
            let word = k.load(Type::I32, from, 4, Access::Plain);
            k.set(self.word, word);
        });
    }

    /// Shows the task to the block, and to those that run it together with this one.
    fn give(&self, k: &mut Kernel<'_>) {
        if let Some((split, _)) = self.part {
            self.as_first(k, |k| {
                k.when(self.has, |k| {
                    let word = k.get(self.word);
                    for rank in 0..split.parts {
                        let to = line::address_in(k, self.to, Operand::i32(rank as i32));
                        let code = "st.shared::cluster.u32 [$0], $1;";
                        k.assembly(code, "r,r,~{memory}", &[], &[to, word], true);
                    }
                });
            });
            return;
        }
        k.when(self.has, |k| {
            let word = k.get(self.word);
            k.store(word, self.to, 4, Access::Volatile);
        });
    }
}

/// Reads the block's task. Reading it anew is cheaper than keeping it: threads that compute have no register to spare.
fn fields(k: &mut Kernel<'_>, words: Operand) -> Fields {
    let offset = k.load(Type::I64, words, 8, Access::Volatile);
    let mut word = |n: u32| {
        let from = k.offset(words, i64::from(4 * n));
        k.load(Type::I32, from, 4, Access::Volatile)
    };
    Fields {
        number: word(NUMBER),
        offset,
        alignment: word(2),
        first: word(FIRST),
        whole: [word(4), word(5)],
        end: word(6),
        at: [word(7), word(8)],
        neighbours: [word(9), word(10), word(11)],
    }
}

/// What the threads of a tower do: what is cut, what is whole, and what is cut again.
fn tower<'a>(k: &mut Kernel<'_>, prepared: impl Fn(&mut Kernel<'_>) -> Writer<'a>, word: Operand) {
    let part = |k: &mut Kernel<'_>, range: fn(&Fields) -> [Operand; 2], whole: bool| {
        let task = fields(k, word);
        let turns = range(&task);
        let some = k.compare(IntCmp::Lt, turns[0], turns[1]);
        k.when(some, |k| {
            let writer = prepared(k);
            if !whole {
                cut(k, &writer, &task, turns, word);
                return;
            }
            let start = start(k, &writer, &task);
            let turn = shifted(k, &writer, start, turns[0]);
            writer.whole(k, turn, turns);
            writer.settle(k);
        });
    };
    part(k, |task| [task.first, task.whole[0]], false);
    part(k, |task| task.whole, true);
    part(k, |task| [task.whole[1], task.end], false);
}

/// Where a tower starts in memory.
fn start(k: &mut Kernel<'_>, writer: &Writer<'_>, task: &Fields) -> Turn {
    let origin = k.advance(k.param(0), task.offset, 1);
    writer.turn_at(k, origin)
}

fn cut(k: &mut Kernel<'_>, writer: &Writer<'_>, task: &Fields, turns: [Operand; 2], word: Operand) {
    let start = start(k, writer, task);
    let [from, until] = turns;
    k.repeat(from, until, Operand::i32(1), Some(1), |k, number| {
        let mut at = task.at;
        for (at, by) in at.iter_mut().zip(writer.towers.advance) {
            let by = k.int(IntOp::Mul, number, Operand::i32(by as i32));
            *at = k.int(IntOp::Add, *at, by);
        }
        let turn = shifted(k, writer, start, number);
        let hooked = Hooked {
            array: k.param(0),
            table: k.param(10),
            waves: k.param(11),
            records: k.param(12),
            task: [HOOKS, FIRST].map(|n| k.offset(word, i64::from(4 * n))),
        };
        let cut = Cut {
            turn,
            at,
            rows: k.param(1),
            number,
            hooked,
        };
        writer.cut_turn(k, cut);
    });
}

fn shifted(k: &mut Kernel<'_>, writer: &Writer<'_>, turn: Turn, turns: Operand) -> Turn {
    let wide = k.resize(turns, Type::I64);
    let by = k.int(IntOp::Mul, wide, Operand::i64(writer.advance()));
    Turn {
        own: k.advance(turn.own, by, 1),
        chunk: k.advance(turn.chunk, by, 1),
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
    let waiting = Waiting::new(k, word, parts);
    let stages = writers[0].plan.stages.len() as i32;
    let last = k.int(IntOp::Mul, task.end, Operand::i32(stages));
    let last = k.int(IntOp::Sub, last, Operand::i32(1));
    let wait = |k: &mut Kernel<'_>, stage: Operand| {
        let stage = k.int(IntOp::Min, stage, last);
        waiting.wait(k, stage);
    };
    let first = k.int(IntOp::Mul, task.first, Operand::i32(stages));
    let first = k.int(IntOp::Add, first, k.param(9));
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
                let start = start(k, writer, &task);
                let first = shifted(k, writer, start, task.whole[0]);
                writer.copy(k, first, &writer.plan.held);
                writer.meet(k);
                if let Some(pipe) = pipe {
                    pipe.fill(k, 0);
                }
                let chunk = k.variable_of(first.chunk);
                let [from, until] = task.whole;
                k.repeat(from, until, Operand::i32(1), Some(1), |k, number| {
                    let turn = Turn {
                        own: first.own,
                        chunk: k.get(chunk),
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
                            writer.copy(k, turn, &plan.loads);
                            if let Some(pipe) = pipe {
                                writer.arrived(k);
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
                    let next = k.offset(turn.chunk, writer.advance());
                    k.set(chunk, next);
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
    meeting: Meeting,
    ahead: &Ahead,
    word: Operand,
) {
    let task = fields(k, word);
    let stages = writer.plan.stages.len() as i32;
    let last = k.int(IntOp::Mul, task.end, Operand::i32(stages));
    let last = k.int(IntOp::Sub, last, Operand::i32(1));
    roles.meet(k);
    let end = meeting.end();
    let announce = |k: &mut Kernel<'_>, from: Operand, until: Operand, end: Barrier| {
        each_stage(k, from, until, stages, |k, number| {
            let reached = k.int(IntOp::Add, number, k.param(7));
            publish(k, ahead, &task, reached);
            let now = k.compare(IntCmp::Eq, number, last);
            k.when(now, |k| ahead.take(k));
            end.meet(k);
        });
    };
    announce(k, task.first, task.whole[0], meeting.all);
    let whole = k.compare(IntCmp::Lt, task.whole[0], task.whole[1]);
    k.when(whole, |k| {
        // The tower begins.
        roles.meet(k);
        announce(k, task.whole[0], task.whole[1], end);
        // It has stored what only it had.
        roles.meet(k);
    });
    announce(k, task.whole[1], task.end, meeting.all);
    let over = k.param(8);
    publish(k, ahead, &task, over);
}

/// What is done for each stage of some turns.
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

/// Tells others how far the tower is: each block for itself.
fn publish(k: &mut Kernel<'_>, ahead: &Ahead, task: &Fields, reached: Operand) {
    k.when(ahead.leads, |k| {
        let of_block = ahead.part.map(|(split, rank)| (split.parts, rank));
        let to = progress(k, task.number, of_block);
        k.assembly(
            "st.release.gpu.global.u32 [$0], $1;",
            "l,r,~{memory}",
            &[],
            &[to, reached],
            true,
        );
    });
}

/// Where the progress of a task is, or that of one of the blocks that share its lines.
fn progress(k: &mut Kernel<'_>, task: Operand, block: Option<(u32, Operand)>) -> Operand {
    let mut word = task;
    if let Some((parts, rank)) = block {
        let first = k.int(IntOp::Mul, task, Operand::i32(parts as i32));
        word = k.int(IntOp::Add, first, rank);
    }
    let wide = k.resize(word, Type::I64);
    k.advance(k.param(4), wide, PROGRESS_BYTES)
}

/// Where a lane finds the progress of a neighbour's block in shared memory; lanes beyond the neighbours look at the first one, too.
fn seen(k: &mut Kernel<'_>, lane: Operand, words: Operand, parts: u32) -> Operand {
    let all = Operand::i32((NEIGHBOURS * parts) as i32);
    let neighbour = k.compare(IntCmp::Below, lane, all);
    let lane = k.choose(neighbour, lane, Operand::i32(0));
    let lane = k.resize(lane, Type::I64);
    let first = k.offset(words, i64::from(4 * SEEN));
    k.advance(first, lane, 4)
}

/// What looks at neighbours: a lane for each of their blocks.
struct Scout {
    parts: u32,
    lane: Operand,
    /// The lane has a neighbour.
    has: Operand,
    to: Operand,
}

impl Scout {
    fn new(k: &mut Kernel<'_>, words: Operand, parts: u32) -> Scout {
        let lane = k.special(Special::Lane);
        let all = Operand::i32((NEIGHBOURS * parts) as i32);
        Scout {
            parts,
            lane,
            has: k.compare(IntCmp::Below, lane, all),
            to: seen(k, lane, words, parts),
        }
    }

    /// Nothing is known of the neighbours yet.
    fn forget(&self, k: &mut Kernel<'_>) {
        k.when(self.has, |k| {
            let none = k.param(7);
            k.store(none, self.to, 4, Access::Volatile);
        });
    }

    /// Looks until the neighbours have done all that a tower reads of.
    fn look(&self, k: &mut Kernel<'_>, task: &Fields, stages: i32) {
        let [mut neighbour, others @ ..] = task.neighbours;
        let (mut which, mut block) = (self.lane, None);
        if self.parts > 1 {
            let parts = Operand::i32(self.parts as i32);
            which = k.int(IntOp::Div, self.lane, parts);
            block = Some((self.parts, k.int(IntOp::Rem, self.lane, parts)));
        }
        for (n, other) in others.into_iter().enumerate() {
            let this = k.compare(IntCmp::Eq, which, Operand::i32(n as i32 + 1));
            neighbour = k.choose(this, other, neighbour);
        }
        let from = progress(k, neighbour, block);
        let last = k.int(IntOp::Mul, task.end, Operand::i32(stages));
        let last = k.int(IntOp::Sub, last, Operand::i32(1));
        let last = k.int(IntOp::Add, last, k.param(7));
        let none = k.param(7);
        let known = k.variable_of(none);
        let (again, moved, after) = (k.label(), k.label(), k.label());
        let glance = |k: &mut Kernel<'_>, order: &str| {
            let code = format!("ld.{order}.gpu.global.u32 $0, [$1];");
            k.assembly(&code, "=r,l,~{memory}", &[Type::I32], &[from], true)[0]
        };
        k.place(again);
        let before = k.get(known);
        let done = glance(k, "relaxed");
        let same = k.compare(IntCmp::Eq, done, before);
        let same = k.all(same);
        k.branch(same, again, moved);
        // Looking with an order empties the first cache, so it is done only where there is something new.
        k.place(moved);
        let done = glance(k, "acquire");
        k.set(known, done);
        k.when(self.has, |k| {
            k.assembly(
                "st.release.cta.shared.u32 [$0], $1;",
                "r,r,~{memory}",
                &[],
                &[self.to, done],
                true,
            );
        });
        let enough = k.compare(IntCmp::Ge, done, last);
        let enough = k.all(enough);
        k.branch(enough, after, again);
        k.place(after);
    }
}

/// How copiers wait for neighbours.
struct Waiting {
    /// The progress that the lane looks at.
    from: Operand,
}

impl Waiting {
    fn new(k: &mut Kernel<'_>, words: Operand, parts: u32) -> Waiting {
        let lane = k.special(Special::Lane);
        Waiting {
            from: seen(k, lane, words, parts),
        }
    }

    /// Whether the neighbours have done so many stages; the same for all threads of a warp.
    fn is_over(&self, k: &mut Kernel<'_>, stages: Operand) -> Operand {
        let stages = k.int(IntOp::Add, stages, k.param(7));
        let done = k.assembly(
            "ld.acquire.cta.shared.u32 $0, [$1];",
            "=r,r,~{memory}",
            &[Type::I32],
            &[self.from],
            true,
        );
        let enough = k.compare(IntCmp::Ge, done[0], stages);
        k.all(enough)
    }

    /// Waits until the neighbours have done so many stages.
    fn wait(&self, k: &mut Kernel<'_>, stages: Operand) {
        let (test, after) = (k.label(), k.label());
        k.place(test);
        let over = self.is_over(k, stages);
        k.branch(over, after, test);
        k.place(after);
        k.warp_barrier();
    }
}
