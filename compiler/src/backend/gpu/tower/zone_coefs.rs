//! Coefficients of zones in shared memory ([`ZoneCoefs`](crate::tower::ZoneCoefs)).

use super::super::ir::{Operand, Type};
use super::super::kernel::{Access, IntCmp, IntOp, Kernel};
use super::context::{Context, Lane, word};
use crate::lattice::{Axis, Interval};
use crate::scheme::CoefId;
use crate::tower::{Group, ZoneLine};

/// Copies them: by all threads of a block, before they wait for each other.
pub(super) fn prepare(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    shared: Operand,
    thread: Operand,
    threads: u32,
) {
    let bytes = context.real.bytes();
    let coefs = &context.block().coefs;
    for line in coefs.lines() {
        for (number, range) in line.ranges.iter().enumerate() {
            let count = word(range.len() + 2 * line.margin);
            k.repeat(thread, count, word(threads.into()), Some(1), |k, n| {
                let index = k.int(IntOp::Sub, n, word(line.margin));
                let index = k.int(IntOp::Max, index, word(0));
                let index = k.int(IntOp::Min, index, word(range.len() - 1));
                let [n, index] = [n, index].map(|n| k.resize(n, Type::I64));
                let stride = context.bytes(context.layout.axis_coefs[line.axis].stride);
                let by = k.int(IntOp::Mul, index, Operand::i64(stride));
                for coef in &line.coefs {
                    let first = context.layout.axis_coef_element(line.axis, *coef, range.lo);
                    let array = context.beside(k);
                    let from = k.offset(array, context.bytes(first));
                    let from = k.advance(from, by, 1);
                    let value = k.load(context.real, from, bytes, Access::Plain);
                    let place = line.place(*coef, number) + range.lo - line.margin;
                    let to = k.offset(shared, i64::from(coefs.first) + context.bytes(place));
                    let to = k.advance(to, n, bytes);
                    k.store(value, to, bytes, Access::Plain);
                }
            });
        }
    }
}

/// Where the first coefficient of a line has the value at the thread's own index, if the line is one along the inner
/// axis, or at that of a period's origin. `at`: the origin. Where no row of the period, or the thread, is in a range,
/// it is as if one were at the nearest end of it.
pub(super) fn base(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    line: &ZoneLine,
    at: [Operand; 2],
) -> Operand {
    let rows = context.towers().alignments[context.alignment].rows();
    let (index, rows) = match line.axis {
        Axis::OUTER => (at[0], rows.x),
        Axis::MIDDLE => (at[1], rows.y),
        _ => (lane.thread, Interval::new(0, 1)),
    };
    let index = k.again(index);
    let of = |range: usize| {
        let own = line.ranges[range];
        let place = line.place(line.coefs[0], range);
        [own.lo - (rows.hi - 1), own.hi - 1 - rows.lo, place].map(word)
    };
    let mut chosen = of(0);
    for (number, pair) in line.ranges.windows(2).enumerate() {
        let later = k.compare(IntCmp::Ge, index, word(pair[0].hi - rows.lo));
        for (chosen, own) in chosen.iter_mut().zip(of(number + 1)) {
            *chosen = k.choose(later, own, *chosen);
        }
    }
    let [least, most, place] = chosen;
    let index = k.int(IntOp::Max, index, least);
    let index = k.int(IntOp::Min, index, most);
    let place = k.int(IntOp::Add, place, index);
    let place = k.resize(place, Type::I64);
    let first = k.advance(lane.rows, place, context.real.bytes());
    k.offset(first, i64::from(context.block().coefs.first))
}

/// From there to the value of a coefficient for a row, in bytes.
pub(super) fn distance(context: &Context<'_>, line: &ZoneLine, coef: CoefId, row: Group) -> i64 {
    let by = match line.axis {
        Axis::OUTER => row.x,
        Axis::MIDDLE => row.y,
        _ => 0,
    };
    let places = [coef, line.coefs[0]].map(|coef| line.place(coef, 0));
    context.bytes(places[0] - places[1] + by)
}
