//! Bodies and weights of small updates.

use super::super::central;
use super::super::graph::{Coefficient, Kernel};
use super::*;
use crate::host::At;
use crate::lattice::{Axis, HalfIndex};
use crate::real::Real;
use proptest::prelude::*;

/// Any number for a value that is read.
fn field(read: &Read) -> f64 {
    let [_, _, z] = read.offset.0;
    let n = i64::from(z) * 7 + i64::from(read.component.0) * 3 + i64::from(read.age) * 11;
    (n as f64 * 0.37).sin()
}

fn run(body: &Body, coefs: &[Coef], at: At) -> f64 {
    let mut values: Vec<f64> = Vec::new();
    for op in &body.ops {
        let v = |x: Value| values[x.index()];
        values.push(match *op {
            Op::Const(c) => c,
            Op::Read(r) => field(&r),
            Op::Coef(c) => coefs[c.index()].value.eval(&at),
            Op::Base | Op::State(_) => f64::NAN,
            Op::Neg(a) => -v(a),
            Op::Abs(a) => v(a).abs(),
            Op::Flush(a) => v(a).flush(),
            Op::Sqrt(a) => v(a).sqrt(),
            Op::Power2(a) => v(a).power2(),
            Op::Exponent(a) => v(a).exponent(),
            Op::Add(a, b) => v(a) + v(b),
            Op::Sub(a, b) => v(a) - v(b),
            Op::Mul(a, b) => v(a) * v(b),
            Op::Div(a, b) => v(a) / v(b),
            Op::Fma(a, b, c) => v(a).mul_add(v(b), v(c)),
            Op::Select {
                cmp,
                a,
                b,
                then,
                otherwise,
            } => {
                let (a, b) = (v(a), v(b));
                let holds = match cmp {
                    Cmp::Lt => a < b,
                    Cmp::Le => a <= b,
                    Cmp::Eq => a == b,
                    Cmp::Ne => a != b,
                };
                v(if holds { then } else { otherwise })
            }
        });
    }
    values[body.result.index()]
}

/// A linear expression of two components at whole positions along one axis, from a list of choices.
fn build(graph: &mut Graph, choices: &[u8]) -> NodeId {
    let mut stack: Vec<NodeId> = Vec::new();
    let field = |graph: &mut Graph, n: u8| {
        let level = (n & 2 != 0).then_some(LevelKey::Prev);
        graph.field(ComponentId(u32::from(n & 1)), level)
    };
    for &choice in choices {
        let n = choice / 8;
        let top = stack.pop();
        let top = top.unwrap_or_else(|| field(graph, n));
        let axis = Axis::INNER;
        let node = match choice % 8 {
            0 => {
                stack.push(top);
                field(graph, n)
            }
            1 | 2 => {
                let op = if choice % 8 == 1 {
                    HostBinary::Add
                } else {
                    HostBinary::Sub
                };
                let other = stack.pop().unwrap_or_else(|| field(graph, n));
                graph.binary(op, other, top)
            }
            3 => graph.unary(HostUnary::Neg, top),
            4 => {
                let number = graph.number(f64::from(n) - 15.5);
                graph.binary(HostBinary::Mul, number, top)
            }
            5 => {
                let x = graph.coordinate(axis);
                let number = graph.number(f64::from(n) + 1.0);
                let factor = graph.binary(HostBinary::Add, x, number);
                let op = if n & 1 == 0 {
                    HostBinary::Mul
                } else {
                    HostBinary::Div
                };
                graph.binary(op, top, factor)
            }
            6 => {
                let mut by = Shift::default();
                by[axis] = HalfIndex::cells(i64::from(n % 5) - 2);
                graph.shift(top, by)
            }
            _ => {
                let c = central::centred_second(2 + 2 * u32::from(n % 3)).expect("exists");
                let mut taps: Vec<(HalfIndex, Coefficient)> = Vec::new();
                for (k, c) in c.into_iter().enumerate() {
                    taps.push((HalfIndex::cells(k as i64), Coefficient::Exact(c)));
                    if k > 0 {
                        taps.push((HalfIndex::cells(-(k as i64)), Coefficient::Exact(c)));
                    }
                }
                taps.sort_by_key(|(o, _)| *o);
                graph.stencil(
                    top,
                    Kernel {
                        axis,
                        taps,
                        divisor: 0.7,
                    },
                )
            }
        };
        stack.push(node);
    }
    let first = stack.pop().unwrap_or_else(|| graph.number(0.0));
    stack
        .into_iter()
        .fold(first, |a, b| graph.binary(HostBinary::Add, a, b))
}

proptest! {
    /// The normal form has the value of the expression as written, up to rounding.
    #[test]
    fn normal_form_keeps_the_value(choices in proptest::collection::vec(any::<u8>(), 1..14)) {
        let mut graph = Graph::default();
        graph.spacing = PerAxis::splat(0.7);
        let component = |name: &str| Component {
            name: name.to_string(),
            position: Position::default(),
            time: HalfIndex::ZERO,
            time_levels: 2,
        };
        let components = [component("u"), component("v")];
        let node = build(&mut graph, &choices);
        let mut coefs = Coefs::default();
        let mut emitter = |as_written: bool| {
            let mut e = Emitter::new(
                &mut graph,
                &components,
                &mut coefs,
                Precision::F64,
                ComponentId(0),
                &[1, 1],
                PerAxis::splat(1000),
            );
            if !as_written {
                return e.body(node);
            }
            let result = e.as_written(node, Shift::default())?;
            Ok(Body { ops: e.ops, result })
        };
        let (normal, written) = (emitter(false), emitter(true));
        if let (Ok(normal), Ok(written)) = (normal, written) {
            // No coefficient has a pole at such a place.
            let at = At { position: [0.0, 0.0, 5.037_1], time: 0.0 };
            let a = run(&normal, &coefs.list, at);
            let b = run(&written, &coefs.list, at);
            let scale: f64 = normal.ops.iter().map(|op| match op {
                Op::Const(c) => c.abs(),
                _ => 1.0,
            }).fold(1.0, |x, y| x + y);
            let coef = coefs.list.iter().map(|c| c.value.eval(&at).abs()).fold(1.0, f64::max);
            prop_assert!(a == b || (a - b).abs() <= 1e-10 * scale * coef, "{a} {b}\n{normal:?}");
        }
    }
}
