//! Schemes with layers at the sides of the domain.

use crate::host::{HostBinary, HostExpr};
use crate::lattice::{Axis, HalfIndex, Interval, PerAxis, Region};
use crate::scheme::{
    Amendment, Body, Coef, CoefId, Op, Read, Scheme, State, StateAdvance, StateId, Update, Value,
    Zone, ZoneId,
};

/// Adds a layer of `cells` cells at both ends of each axis, 0 for none, like an absorbing layer: updates that take a
/// difference along the axis take another one there, with a state for each and three coefficients that depend on the
/// axis alone.
pub fn add_layers(scheme: &mut Scheme, cells: PerAxis<i64>) {
    for axis in Axis::ALL.into_iter().filter(|axis| cells[*axis] > 0) {
        let zone = ZoneId(scheme.zones.len() as u32);
        let whole = PerAxis::from_fn(|a| Interval::new(0, scheme.grid.cells[a] + 1));
        let side = |lo: i64, hi: i64| -> Region {
            PerAxis::from_fn(|a| match a == axis {
                true => Interval::new(lo, hi),
                false => whole[a],
            })
        };
        let length = scheme.grid.cells[axis];
        scheme.zones.push(Zone {
            name: format!("layer {axis}"),
            boxes: vec![side(0, cells[axis]), side(length - cells[axis], length + 1)],
        });
        for stage in 0..scheme.stages.len() {
            for update in 0..scheme.stages[stage].updates.len() {
                let of = &scheme.stages[stage].updates[update];
                let Some(pair) = difference(of, axis) else {
                    continue;
                };
                let target = scheme.component(of.target).position;
                let state = StateId(scheme.states.len() as u32);
                scheme.states.push(State {
                    name: format!("q{}", state.0),
                    position: target,
                    zone,
                });
                let coefs = [0.25, 0.5, 0.75].map(|n| coef(scheme, axis, target, n));
                let amendment = amendment(zone, pair, state, coefs);
                let of = &mut scheme.stages[stage].updates[update];
                of.amendments.push(amendment);
            }
        }
    }
}

/// Two reads of an update that differ along an axis alone.
fn difference(update: &Update, axis: Axis) -> Option<[Read; 2]> {
    let reads: Vec<Read> = update.body.reads().copied().collect();
    let apart = |a: &Read, b: &Read| {
        let same = |other: Axis| other == axis || a.offset[other] == b.offset[other];
        a.component == b.component
            && a.age == b.age
            && a.offset[axis] > b.offset[axis]
            && Axis::ALL.into_iter().all(same)
    };
    let pairs = reads
        .iter()
        .flat_map(|a| reads.iter().map(move |b| [*a, *b]));
    pairs.into_iter().find(|[a, b]| apart(a, b))
}

/// A coefficient of an axis, which exists once.
fn coef(scheme: &mut Scheme, axis: Axis, position: crate::lattice::Position, scale: f64) -> CoefId {
    let value = HostExpr::binary(
        HostBinary::Mul,
        HostExpr::Number(scale),
        HostExpr::Coordinate(axis, HalfIndex::HALF),
    );
    let name = format!("layer {axis} {scale}");
    let known = |c: &Coef| c.name == name && c.position == position;
    let found = scheme.coefs.iter().position(known);
    CoefId(found.unwrap_or_else(|| {
        scheme.coefs.push(Coef {
            name,
            position,
            value,
            only_axis: Some(axis),
        });
        scheme.coefs.len() - 1
    }) as u32)
}

/// base + (k g + psi@next - g)/4 with psi@next = b psi + c g.
fn amendment(
    zone: ZoneId,
    [above, below]: [Read; 2],
    state: StateId,
    [b, c, k]: [CoefId; 3],
) -> Amendment {
    let v = Value;
    let ops = vec![
        Op::Base,
        Op::Read(above),
        Op::Read(below),
        Op::Sub(v(1), v(2)),
        Op::State(state),
        Op::Coef(b),
        Op::Coef(c),
        Op::Coef(k),
        Op::Mul(v(6), v(3)),
        Op::Fma(v(5), v(4), v(8)),
        Op::Fma(v(7), v(3), v(9)),
        Op::Sub(v(10), v(3)),
        Op::Const(0.25),
        Op::Fma(v(12), v(11), v(0)),
    ];
    Amendment {
        zone,
        body: Body { ops, result: v(13) },
        advances: vec![StateAdvance { state, value: v(9) }],
    }
}
