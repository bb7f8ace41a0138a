//! All towers of a band in one launch: blocks take towers from a list, and wait for the neighbours of each, stage by stage.
//!
//! A block has the threads of a tower and one warp more, which serves them: while they run stage k (counted from the start of the band),
//! it tells others that the stages before k are done, and then waits until what stages k + 1 and k + 2 read of others is in memory. So
//! the copies that threads start in stage k + 1 find it there. Threads and service meet at the barrier that ends each stage.
//!
//! A tower reads rows of its neighbours one index lower along one face or both. That nothing else needs to be waited for follows
//! from the periods: [`Towers::are_adjacent`](crate::tile::residency::Towers::are_adjacent). Towers come before their neighbours in the list, so those that run never wait for one that
//! has no block.

use super::super::ir::{Launch, Module, Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel, Special, Variable};
use super::edge::Cut;
use super::write::{Turn, Writer};
use super::{FlowKernel, Task};

/// Threads of the service.
pub(super) const SERVICE: u32 = 32;

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
const PARAMS: [Type; 9] = [
    Type::GLOBAL,
    Type::GLOBAL,
    Type::GLOBAL,
    Type::I32,
    Type::GLOBAL,
    Type::GLOBAL,
    Type::I32,
    Type::I32,
    Type::I32,
];

pub(super) fn write(
    module: &mut Module,
    writers: &[Writer<'_>],
    kernel: &FlowKernel,
    shared: Operand,
    registers: u32,
) {
    let Some(writer) = writers.first() else {
        return;
    };
    let word = module.shared(Type::I32, 1, 4);
    let launch = Launch {
        threads: [kernel.threads, 1, 1],
        registers,
        ..Launch::default()
    };
    let mut k = module.kernel(&kernel.symbol, &PARAMS, launch);
    writer.need(&mut k);
    let thread = k.special(Special::Thread(0));
    let computes = k.compare(IntCmp::Lt, thread, Operand::i32(writer.threads as i32));
    let slots = writers.iter().map(|w| w.plan.slots).max().unwrap_or(0);
    let writers: Vec<Writer<'_>> = writers
        .iter()
        .map(|w| w.prepared(&mut k, shared, thread))
        .collect();
    writers[0].clear(&mut k, shared, slots, thread, i64::from(kernel.threads));
    let (next, done) = (k.label(), k.label());
    k.place(next);
    // The barrier also ends what the block did before.
    k.barrier();
    let first = k.compare(IntCmp::Eq, thread, Operand::i32(0));
    k.when(first, |k| {
        let counter = k.param(5);
        let taken = k.assembly(
            "atom.relaxed.gpu.global.add.u32 $0, [$1], 1;",
            "=r,l",
            &[Type::I32],
            &[counter],
            true,
        );
        let number = k.int(IntOp::Sub, taken[0], k.param(6));
        k.store(number, word, 4, Access::Plain);
    });
    k.barrier();
    let number = k.load(Type::I32, word, 4, Access::Volatile);
    let ended = k.compare(IntCmp::Ge, number, k.param(3));
    let on = k.label();
    k.branch(ended, done, on);
    k.place(on);
    let (serve, joined) = (k.label(), k.label());
    let run = k.label();
    k.branch(computes, run, serve);
    k.place(run);
    k.barrier();
    let alignment = fields(&mut k, word).alignment;
    for (i, writer) in writers.iter().enumerate() {
        let mine = k.compare(IntCmp::Eq, alignment, Operand::i32(i as i32));
        k.when(mine, |k| tower(k, writer, word));
    }
    k.jump(joined);
    k.place(serve);
    let task = fields(&mut k, word);
    service(&mut k, &writers[0], &task);
    k.place(joined);
    k.jump(next);
    k.place(done);
    k.finish();
}

/// Reads the task whose number lies in shared memory. Reading it anew is cheaper than keeping it: threads that compute have no register to
/// spare.
fn fields(k: &mut Kernel<'_>, word: Operand) -> Fields {
    let number = k.load(Type::I32, word, 4, Access::Volatile);
    let wide = k.resize(number, Type::I64);
    let task = k.advance(k.param(2), wide, Task::BYTES);
    let offset = k.load(Type::I64, task, 8, Access::Volatile);
    let mut word = |n: i64| {
        let from = k.offset(task, 8 + 4 * n);
        k.load(Type::I32, from, 4, Access::Volatile)
    };
    Fields {
        number,
        offset,
        alignment: word(0),
        first: word(1),
        whole: [word(2), word(3)],
        end: word(4),
        at: [word(5), word(6)],
        neighbours: [word(7), word(8), word(9)],
    }
}

/// What the threads of a tower do: what is cut, what is whole, and what is cut again.
fn tower(k: &mut Kernel<'_>, writer: &Writer<'_>, word: Operand) {
    let task = fields(k, word);
    cut(k, writer, &task, [task.first, task.whole[0]]);
    let task = fields(k, word);
    let whole = k.compare(IntCmp::Lt, task.whole[0], task.whole[1]);
    k.when(whole, |k| {
        let start = start(k, writer, &task);
        let turn = shifted(k, writer, start, task.whole[0]);
        writer.whole(k, turn, task.whole);
        k.barrier();
    });
    let task = fields(k, word);
    cut(k, writer, &task, [task.whole[1], task.end]);
}

/// Where a tower starts in memory.
fn start(k: &mut Kernel<'_>, writer: &Writer<'_>, task: &Fields) -> Turn {
    let origin = k.advance(k.param(0), task.offset, 1);
    writer.turn_at(k, origin)
}

fn cut(k: &mut Kernel<'_>, writer: &Writer<'_>, task: &Fields, turns: [Operand; 2]) {
    let start = start(k, writer, task);
    let [from, until] = turns;
    k.repeat(from, until, Operand::i32(1), Some(1), |k, number| {
        let mut at = task.at;
        for (at, by) in at.iter_mut().zip(writer.towers.advance) {
            let by = k.int(IntOp::Mul, number, Operand::i32(by as i32));
            *at = k.int(IntOp::Add, *at, by);
        }
        let turn = shifted(k, writer, start, number);
        let rows = k.param(1);
        writer.cut_turn(k, Cut { turn, at, rows });
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

/// What the service does, with the same barriers.
fn service(k: &mut Kernel<'_>, writer: &Writer<'_>, task: &Fields) {
    let stages = writer.plan.stages.len() as i32;
    let lane = k.special(Special::Lane);
    let leads = k.compare(IntCmp::Eq, lane, Operand::i32(0));
    let none = k.param(7);
    let seen = k.variable_of(none);
    let last = k.int(IntOp::Mul, task.end, Operand::i32(stages));
    let last = k.int(IntOp::Sub, last, Operand::i32(1));
    let first = k.int(IntOp::Mul, task.first, Operand::i32(stages));
    let ahead = k.int(IntOp::Add, first, Operand::i32(1));
    wait(k, leads, task, seen, ahead, last);
    k.barrier();
    let stages_of = |k: &mut Kernel<'_>, from: Operand, until: Operand| {
        let from = k.int(IntOp::Mul, from, Operand::i32(stages));
        let until = k.int(IntOp::Mul, until, Operand::i32(stages));
        k.repeat(from, until, Operand::i32(1), Some(1), |k, number| {
            let reached = k.int(IntOp::Add, number, k.param(7));
            publish(k, leads, task, reached);
            let ahead = k.int(IntOp::Add, number, Operand::i32(2));
            wait(k, leads, task, seen, ahead, last);
            k.barrier();
        });
    };
    stages_of(k, task.first, task.whole[0]);
    let whole = k.compare(IntCmp::Lt, task.whole[0], task.whole[1]);
    k.when(whole, |k| {
        // The tower begins.
        k.barrier();
        stages_of(k, task.whole[0], task.whole[1]);
        // It has stored what only it had.
        k.barrier();
    });
    stages_of(k, task.whole[1], task.end);
    let over = k.param(8);
    publish(k, leads, task, over);
}

/// Tells others how far the tower is.
fn publish(k: &mut Kernel<'_>, leads: Operand, task: &Fields, reached: Operand) {
    k.when(leads, |k| {
        let to = progress(k, task.number);
        k.assembly(
            "st.release.gpu.global.u32 [$0], $1;",
            "l,r,~{memory}",
            &[],
            &[to, reached],
            true,
        );
    });
}

fn progress(k: &mut Kernel<'_>, task: Operand) -> Operand {
    let wide = k.resize(task, Type::I64);
    k.advance(k.param(4), wide, 4)
}

/// Waits until the neighbours have done so many stages, or as many as the tower's last stage reads of.
fn wait(
    k: &mut Kernel<'_>,
    leads: Operand,
    task: &Fields,
    seen: Variable,
    stages: Operand,
    last: Operand,
) {
    let stages = k.int(IntOp::Min, stages, last);
    let stages = k.int(IntOp::Add, stages, k.param(7));
    k.when(leads, |k| {
        let (test, look, after) = (k.label(), k.label(), k.label());
        k.place(test);
        let known = k.get(seen);
        let enough = k.compare(IntCmp::Ge, known, stages);
        k.branch(enough, after, look);
        k.place(look);
        let mut least = Operand::i32(i32::MAX);
        for neighbour in task.neighbours {
            let from = progress(k, neighbour);
            let done = k.assembly(
                "ld.acquire.gpu.global.u32 $0, [$1];",
                "=r,l,~{memory}",
                &[Type::I32],
                &[from],
                true,
            );
            least = k.int(IntOp::Min, least, done[0]);
        }
        k.set(seen, least);
        let less = k.compare(IntCmp::Lt, least, stages);
        k.when(less, |k| {
            k.assembly("nanosleep.u32 40;", "", &[], &[], true);
        });
        k.jump(test);
        k.place(after);
    });
}
