//! How the new value of a row is computed: the operations of a body in their order, then a mask, then the range of the
//! inner axis.
//!
//! Code for towers and their interpreter evaluate updates by this one definition, each with values of its own kind.

use crate::lattice::{Axis, Interval};
use crate::scheme::{Body, Op, Scheme, Update};

/// Evaluates a body: `operand` gives the value that an operation reads, by its number; `number` computes all others
/// from the values of operations before.
pub fn evaluate<C, V: Copy>(
    context: &mut C,
    body: &Body,
    operand: impl FnMut(&mut C, usize) -> V,
    number: impl FnMut(&mut C, &Op, &[V]) -> V,
) -> V {
    evaluate_all(context, body, operand, number)[body.result.index()]
}

/// The same; gives the values of all operations, among which are new states of amendments.
pub fn evaluate_all<C, V: Copy>(
    context: &mut C,
    body: &Body,
    mut operand: impl FnMut(&mut C, usize) -> V,
    mut number: impl FnMut(&mut C, &Op, &[V]) -> V,
) -> Vec<V> {
    let mut values: Vec<V> = Vec::with_capacity(body.ops.len());
    for (n, op) in body.ops.iter().enumerate() {
        let value = match op {
            op if op.is_operand() => operand(context, n),
            op => number(context, op, &values),
        };
        values.push(value);
    }
    values
}

/// The values of a row at indices along the inner axis at which an update does not act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// There is none.
    Nothing,
    /// They lie on a plane about which the component is odd.
    Zero,
    /// The value from before.
    Old,
}

/// The indices along the inner axis at which an update acts, and the values of the row at other indices of its extent.
pub fn range(scheme: &Scheme, update: &Update) -> (Interval, Elsewhere) {
    let position = scheme.component(update.target).position;
    let live = scheme.grid.live(position)[Axis::INNER];
    let range = update.region[Axis::INNER];
    let elsewhere = match (range == live, live.lo == 0) {
        (true, true) => Elsewhere::Nothing,
        (true, false) => Elsewhere::Zero,
        (false, _) => Elsewhere::Old,
    };
    (range, elsewhere)
}
