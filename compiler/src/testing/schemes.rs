//! Well-known schemes, as the resolver would give them.

use crate::host::HostExpr;
use crate::lattice::{Axis, HalfIndex, Offset, PerAxis, Position};
use crate::scheme::{
    Body, Boundary, Coef, CoefId, Component, ComponentId, Grid, Op, Precision, Read, Scheme, Stage,
    Update, Value, displacement,
};

/// All updates act wherever they may.
pub fn everywhere(scheme: &mut Scheme) {
    for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
        let position = scheme.components[update.target.index()].position;
        update.region = scheme.grid.live(position);
    }
}

/// The scheme with other ends.
pub fn bounded(mut scheme: Scheme, boundary: [[Boundary; 2]; 3]) -> Scheme {
    scheme.grid.boundary = PerAxis(boundary);
    everywhere(&mut scheme);
    scheme
}

/// The difference across one point at half a cell, by order: distances in half cells and weights.
fn difference(order: u32) -> &'static [(i64, f64)] {
    match order {
        2 => &[(-1, -1.0), (1, 1.0)],
        _ => &[
            (-3, 1.0 / 24.0),
            (-1, -9.0 / 8.0),
            (1, 9.0 / 8.0),
            (3, -1.0 / 24.0),
        ],
    }
}

/// The difference of `source` along an axis, seen from `at`, times `factor`.
fn taps(
    scheme: &Scheme,
    at: Position,
    source: ComponentId,
    axis: Axis,
    order: u32,
    factor: f64,
) -> Vec<(Read, f64)> {
    let from = scheme.component(source).position;
    let shifted = |half: i64| {
        let offset = Offset::from_fn(|a| {
            if a == axis {
                ((at[a].0 + half - from[a].0) / 2) as i32
            } else {
                0
            }
        });
        Read {
            component: source,
            offset,
            age: 0,
        }
    };
    difference(order)
        .iter()
        .map(|&(half, weight)| (shifted(half), scheme.precision.round(factor * weight)))
        .collect()
}

/// Taps in ascending order of position.
fn sort(scheme: &Scheme, at: Position, taps: &mut [(Read, f64)]) {
    taps.sort_by_key(|(read, _)| {
        let position = scheme.component(read.component).position;
        (displacement(at, position, read.offset), read.component)
    });
}

/// Adds the taps to a value, one fused multiply-add after the other.
fn chain(ops: &mut Vec<Op>, start: Option<Value>, taps: &[(Read, f64)]) -> Value {
    let mut push = |op| {
        ops.push(op);
        Value(ops.len() as u32 - 1)
    };
    let mut sum = start;
    for &(read, weight) in taps {
        let weight = push(Op::Const(weight));
        let tap = push(Op::Read(read));
        sum = Some(push(match sum {
            Some(sum) => Op::Fma(weight, tap, sum),
            None => Op::Mul(weight, tap),
        }));
    }
    sum.unwrap_or(Value(0))
}

fn own(component: ComponentId) -> Read {
    Read {
        component,
        offset: Offset::default(),
        age: 0,
    }
}

fn half_at(axes: &[Axis]) -> Position {
    Position::from_fn(|a| HalfIndex(i64::from(axes.contains(&a))))
}

fn empty(name: &str, precision: Precision, cells: [i64; 3]) -> Scheme {
    Scheme {
        name: name.to_string(),
        precision,
        grid: Grid {
            axes: PerAxis(["x", "y", "z"].map(|a| Some(a.to_string()))),
            cells: PerAxis(cells),
            spacing: PerAxis::splat(1.0),
            dt: 0.4,
            boundary: PerAxis::splat([Boundary::Pec; 2]),
        },
        components: Vec::new(),
        coefs: Vec::new(),
        files: Vec::new(),
        stages: Vec::new(),
        zones: Vec::new(),
        states: Vec::new(),
    }
}

fn component(name: String, position: Position, time: HalfIndex) -> Component {
    Component {
        name,
        position,
        time,
        time_levels: 1,
    }
}

/// Maxwell's equations in vacuum on Yee's grid, of order 2 or 4 in space: components Ex, Ey, Ez, Hx, Hy, Hz, stages H,
/// E.
pub fn maxwell(order: u32, precision: Precision, cells: [i64; 3]) -> Scheme {
    let mut scheme = empty("maxwell", precision, cells);
    for (field, time) in [("E", HalfIndex::ZERO), ("H", HalfIndex::HALF)] {
        for axis in Axis::ALL {
            let mut halves: Vec<Axis> = vec![axis];
            if field == "H" {
                halves = Axis::ALL.into_iter().filter(|&a| a != axis).collect();
            }
            let name = format!("{field}.{}", ["x", "y", "z"][axis.index()]);
            scheme
                .components
                .push(component(name, half_at(&halves), time));
        }
    }
    for (target, source, sign) in [(3, 0, -1.0), (0, 3, 1.0)] {
        let updates = (0..3)
            .map(|i| {
                let (j, k) = ((i + 1) % 3, (i + 2) % 3);
                let id = ComponentId(target + i as u32);
                let from = |component: usize| ComponentId(source + component as u32);
                // The curl: d_j F_k - d_k F_j.
                let terms = [
                    (from(k), Axis::ALL[j], sign),
                    (from(j), Axis::ALL[k], -sign),
                ];
                curl_update(&scheme, id, &terms, order)
            })
            .collect();
        scheme.stages.push(Stage { updates });
    }
    scheme
}

/// The update that adds some derivatives to a component: of components, along axes, with signs.
fn curl_update(
    scheme: &Scheme,
    target: ComponentId,
    terms: &[(ComponentId, Axis, f64)],
    order: u32,
) -> Update {
    let at = scheme.component(target).position;
    let of = |(from, axis, sign): &(ComponentId, Axis, f64)| {
        taps(scheme, at, *from, *axis, order, sign * 0.4)
    };
    let mut all: Vec<(Read, f64)> = terms.iter().flat_map(of).collect();
    sort(scheme, at, &mut all);
    let mut ops = vec![Op::Read(own(target))];
    let result = chain(&mut ops, Some(Value(0)), &all);
    Update {
        target,
        region: scheme.grid.live(at),
        mask: None,
        body: Body { ops, result },
        amendments: Vec::new(),
    }
}

/// The same with two axes and three components, the electric field in their plane.
pub fn maxwell_te(order: u32, precision: Precision, cells: [i64; 2]) -> Scheme {
    let mut scheme = empty("maxwell_te", precision, [cells[0], 1, cells[1]]);
    scheme.grid.axes[Axis::MIDDLE] = None;
    let (x, y) = (Axis::OUTER, Axis::INNER);
    let of = |name: &str, halves: &[Axis], time| component(name.to_string(), half_at(halves), time);
    scheme.components = vec![
        of("E.x", &[x], HalfIndex::ZERO),
        of("E.y", &[y], HalfIndex::ZERO),
        of("H.z", &[x, y], HalfIndex::HALF),
    ];
    let [ex, ey, hz] = [0, 1, 2].map(ComponentId);
    let curl = |target, terms: &[_]| curl_update(&scheme, target, terms, order);
    let magnetic = vec![curl(hz, &[(ex, y, 1.0), (ey, x, -1.0)])];
    let electric = vec![curl(ex, &[(hz, y, 1.0)]), curl(ey, &[(hz, x, -1.0)])];
    scheme.stages = [magnetic, electric].map(|updates| Stage { updates }).into();
    scheme
}

/// Elastic waves, velocity and stress, of fourth order in space, with a density and two moduli per position.
/// Components vx, vy, vz, sxx, syy, szz, syz, sxz, sxy; stages v, s.
pub fn elasticity(precision: Precision, cells: [i64; 3]) -> Scheme {
    let mut scheme = empty("elasticity", precision, cells);
    let [x, y, z] = Axis::ALL;
    let shear = [[y, z], [x, z], [x, y]];
    for axis in Axis::ALL {
        let c = component(format!("v.{axis}"), half_at(&[axis]), HalfIndex::HALF);
        scheme.components.push(c);
    }
    for axis in Axis::ALL {
        let c = component(format!("s.{axis}"), half_at(&[]), HalfIndex::ZERO);
        scheme.components.push(c);
    }
    for pair in shear {
        let c = component(
            format!("s.{}.{}", pair[0], pair[1]),
            half_at(&pair),
            HalfIndex::ZERO,
        );
        scheme.components.push(c);
    }
    let mut coef = |name: String, position: Position| {
        scheme.coefs.push(Coef {
            name,
            position,
            value: HostExpr::Number(0.25),
            only_axis: None,
        });
        CoefId(scheme.coefs.len() as u32 - 1)
    };
    let buoyancy = Axis::ALL.map(|a| coef(format!("b.{a}"), half_at(&[a])));
    let lambda = coef("lambda".to_string(), half_at(&[]));
    let mu = coef("mu".to_string(), half_at(&[]));
    let rigidity = shear.map(|pair| coef(format!("mu.{}{}", pair[0], pair[1]), half_at(&pair)));

    let stress =
        |a: usize, b: usize| ComponentId(if a == b { 3 + a } else { 6 + (3 - a - b) } as u32);
    let finish = |scheme: &Scheme, target: ComponentId, mut ops: Vec<Op>, scaled: Value| {
        ops.push(Op::Read(own(target)));
        let old = Value(ops.len() as u32 - 1);
        ops.push(Op::Add(old, scaled));
        Update {
            target,
            region: scheme.grid.live(scheme.component(target).position),
            mask: None,
            body: Body {
                result: Value(ops.len() as u32 - 1),
                ops,
            },
            amendments: Vec::new(),
        }
    };
    // A coefficient times a sum of differences of (component, axis).
    let scaled = |ops: &mut Vec<Op>, at: Position, coef: CoefId, terms: &[(ComponentId, usize)]| {
        let mut all: Vec<(Read, f64)> = Vec::new();
        for &(source, axis) in terms {
            all.extend(taps(&scheme, at, source, Axis::ALL[axis], 4, 0.4));
        }
        sort(&scheme, at, &mut all);
        let sum = chain(ops, None, &all);
        ops.push(Op::Coef(coef));
        let coef = Value(ops.len() as u32 - 1);
        ops.push(Op::Mul(coef, sum));
        Value(ops.len() as u32 - 1)
    };
    let velocity = |a: usize| ComponentId(a as u32);
    let mut velocities = Vec::new();
    for (i, &b) in buoyancy.iter().enumerate() {
        let terms: Vec<_> = (0..3).map(|j| (stress(i, j), j)).collect();
        let at = scheme.component(velocity(i)).position;
        let mut ops = Vec::new();
        let value = scaled(&mut ops, at, b, &terms);
        velocities.push(finish(&scheme, velocity(i), ops, value));
    }
    let mut stresses = Vec::new();
    for i in 0..3 {
        let at = half_at(&[]);
        let mut ops = Vec::new();
        let terms: Vec<_> = (0..3).map(|j| (velocity(j), j)).collect();
        let volume = scaled(&mut ops, at, lambda, &terms);
        let strain = scaled(&mut ops, at, mu, &[(velocity(i), i)]);
        ops.push(Op::Add(volume, strain));
        let value = Value(ops.len() as u32 - 1);
        stresses.push(finish(&scheme, stress(i, i), ops, value));
    }
    for (i, &mu) in rigidity.iter().enumerate() {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        let target = stress(j, k);
        let at = scheme.component(target).position;
        let mut ops = Vec::new();
        let value = scaled(&mut ops, at, mu, &[(velocity(j), k), (velocity(k), j)]);
        stresses.push(finish(&scheme, target, ops, value));
    }
    scheme.stages = vec![
        Stage {
            updates: velocities,
        },
        Stage { updates: stresses },
    ];
    scheme
}

/// The same updates in the same order, each in a stage of its own.
pub fn one_update_per_stage(mut scheme: Scheme) -> Scheme {
    let updates = scheme.stages.into_iter().flat_map(|stage| stage.updates);
    scheme.stages = updates
        .map(|update| Stage {
            updates: vec![update],
        })
        .collect();
    scheme
}

/// The wave equation with a star of `radius` cells each way, two levels of time in place.
pub fn star(radius: i32, precision: Precision, cells: [i64; 3]) -> Scheme {
    let mut scheme = maxwell(2, precision, cells);
    let read = |offset: [i32; 3], age: u8| {
        Op::Read(Read {
            component: ComponentId(0),
            offset: Offset::from_fn(|a| offset[a.index()]),
            age,
        })
    };
    let mut ops = vec![read([0; 3], 1)];
    for axis in 0..3 {
        for o in -radius..=radius {
            let mut offset = [0; 3];
            offset[axis] = o;
            ops.extend([read(offset, 0), Op::Const(0.125)]);
            let n = ops.len() as u32;
            ops.push(Op::Fma(Value(n - 2), Value(n - 1), Value(n - 3)));
        }
    }
    let result = Value(ops.len() as u32 - 1);
    scheme.components = vec![Component {
        name: "u".to_string(),
        position: PerAxis::splat(HalfIndex::ZERO),
        time: HalfIndex::ZERO,
        time_levels: 2,
    }];
    scheme.coefs = vec![];
    let update = Update {
        target: ComponentId(0),
        region: scheme.grid.live(scheme.components[0].position),
        mask: None,
        body: Body { ops, result },
        amendments: Vec::new(),
    };
    scheme.stages = vec![Stage {
        updates: vec![update],
    }];
    scheme
}
