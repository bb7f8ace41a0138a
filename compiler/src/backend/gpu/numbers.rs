//! Operations of bodies as instructions.

use super::ir::{Operand, Type};
use super::kernel::Kernel;
use crate::backend::rows::LaneOp;
use crate::scheme::Op;

/// An operation that reads nothing, on the values of operations before.
pub(super) fn number(k: &mut Kernel<'_>, real: Type, op: &Op, values: &[Operand]) -> Operand {
    if let Op::Const(c) = op {
        return Operand::real(real, c.to_bits());
    }
    let number = LaneOp::of(op).and_then(|op| k.number(&op, |v| values[v.index()]));
    number.unwrap_or(Operand::poison(real))
}
