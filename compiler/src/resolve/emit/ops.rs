//! Lists of operations: told apart by their bits, and without unneeded ones.

use crate::scheme::{Body, Op, StateAdvance, Value};

/// Operations told apart by their bits.
#[derive(PartialEq, Eq, Hash)]
pub struct OpKey(u8, [u64; 5]);

/// Leaves out operations that the result does not need, such as the base of a power 0.
pub fn pruned(ops: &[Op], result: Value) -> Body {
    pruned_to(ops, result, &mut [])
}

/// The same for a result and the new values of states, which are renumbered.
pub fn pruned_to(ops: &[Op], result: Value, advances: &mut [StateAdvance]) -> Body {
    let mut needed = vec![false; ops.len()];
    needed[result.index()] = true;
    for advance in advances.iter() {
        needed[advance.value.index()] = true;
    }
    for (i, op) in ops.iter().enumerate().rev() {
        if needed[i] {
            op.operands(|v| needed[v.index()] = true);
        }
    }
    let mut place = vec![Value(0); ops.len()];
    let mut body = Body {
        ops: Vec::new(),
        result,
    };
    for (i, op) in ops.iter().enumerate().filter(|(i, _)| needed[*i]) {
        place[i] = Value(body.ops.len() as u32);
        body.ops.push(op.map(|v| place[v.index()]));
    }
    body.result = place[result.index()];
    for advance in advances {
        advance.value = place[advance.value.index()];
    }
    body
}

pub fn key(op: &Op) -> OpKey {
    let v = |v: Value| u64::from(v.0);
    let (tag, words) = match *op {
        Op::Const(c) => (0, [c.to_bits(), 0, 0, 0, 0]),
        Op::Read(r) => {
            let o = r.offset.0.map(|n| u64::from(n as u32));
            let id = u64::from(r.component.0) << 8 | u64::from(r.age);
            (1, [id, o[0], o[1], o[2], 0])
        }
        Op::Coef(c) => (2, [u64::from(c.0), 0, 0, 0, 0]),
        Op::Base => (12, [0; 5]),
        Op::State(s) => (13, [u64::from(s.0), 0, 0, 0, 0]),
        Op::Neg(a) => (3, [v(a), 0, 0, 0, 0]),
        Op::Abs(a) => (4, [v(a), 0, 0, 0, 0]),
        Op::Sqrt(a) => (5, [v(a), 0, 0, 0, 0]),
        Op::Add(a, b) => (6, [v(a), v(b), 0, 0, 0]),
        Op::Sub(a, b) => (7, [v(a), v(b), 0, 0, 0]),
        Op::Mul(a, b) => (8, [v(a), v(b), 0, 0, 0]),
        Op::Div(a, b) => (9, [v(a), v(b), 0, 0, 0]),
        Op::Fma(a, b, c) => (10, [v(a), v(b), v(c), 0, 0]),
        Op::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        } => (11, [cmp as u64, v(a), v(b), v(then), v(otherwise)]),
        Op::Power2(a) => (14, [v(a), 0, 0, 0, 0]),
        Op::Exponent(a) => (15, [v(a), 0, 0, 0, 0]),
        Op::Flush(a) => (16, [v(a), 0, 0, 0, 0]),
    };
    OpKey(tag, words)
}
