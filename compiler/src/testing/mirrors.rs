//! Random schemes between mirrors: differences across points, of which many are central.

use super::random::{Rng, coef_at};
use crate::lattice::{Axis, HalfIndex, Interval, Offset, PerAxis, Position, Region};
use crate::scheme::{
    Body, Boundary, Component, ComponentId, Grid, OddPositions, Op, Precision, Read, Scheme, Stage,
    Update, Value, verify,
};

/// A scheme that `verify` accepts, with three axes and few cells between mirrors, some with parities of their own, and
/// other ends. So rows of some components are longer by one than rows of others, along each axis.
pub fn random_mirrored_scheme(rng: &mut Rng) -> Scheme {
    loop {
        let scheme = any(rng);
        if verify(&scheme).is_ok() {
            return scheme;
        }
    }
}

fn any(rng: &mut Rng) -> Scheme {
    let precision = *rng.pick(&[Precision::F32, Precision::F64]);
    let cells = PerAxis::from_fn(|axis| match (axis, rng.below(6)) {
        (Axis::INNER, _) => rng.within(3, 14),
        (_, 0) => rng.within(1, 4),
        _ => rng.within(5, 22),
    });
    let own = OddPositions::from_bits(rng.draw() as u8);
    let boundary = PerAxis::from_fn(|_| match rng.below(8) {
        0 => [Boundary::Periodic; 2],
        _ => [0, 1].map(|_| match rng.below(7) {
            0 | 1 => Boundary::Pec,
            2 | 3 => Boundary::Pmc,
            4 | 5 => Boundary::Mirror(own),
            _ => Boundary::Zero,
        }),
    });
    let component = |i: i64, rng: &mut Rng| Component {
        name: format!("c{i}"),
        position: Position::from_fn(|_| HalfIndex(rng.within(0, 1))),
        time: HalfIndex(rng.within(0, 1)),
        time_levels: if rng.once_in(8) { 2 } else { 1 },
    };
    let components = (0..rng.within(2, 4)).map(|i| component(i, rng));
    let mut scheme = Scheme {
        name: "mirrored".to_owned(),
        precision,
        grid: Grid {
            axes: PerAxis::from_fn(|axis| Some(format!("{axis}"))),
            cells,
            spacing: PerAxis::splat(1.0),
            dt: 1.0,
            boundary,
        },
        components: components.collect(),
        coefs: Vec::new(),
        files: Vec::new(),
        stages: Vec::new(),
        zones: Vec::new(),
        states: Vec::new(),
    };
    let ids: Vec<ComponentId> = scheme.component_ids().collect();
    for _ in 0..rng.within(1, 3) {
        let mut targets: Vec<ComponentId> = ids.clone();
        targets.retain(|_| rng.once_in(2));
        if targets.is_empty() {
            targets.push(*rng.pick(&ids));
        }
        let updates = targets.iter();
        let updates = updates.map(|target| random_update(rng, &mut scheme, &targets, *target));
        let updates = updates.collect();
        scheme.stages.push(Stage { updates });
    }
    scheme
}

fn random_update(
    rng: &mut Rng,
    scheme: &mut Scheme,
    targets: &[ComponentId],
    target: ComponentId,
) -> Update {
    let of = scheme.component(target).clone();
    let mut ops = Vec::new();
    let mut push = |op: Op| {
        ops.push(op);
        Value(ops.len() as u32 - 1)
    };
    let mut sum = push(match rng.once_in(8) {
        true => Op::Const(0.25),
        false => Op::Read(Read {
            component: target,
            offset: Offset::default(),
            age: of.time_levels - 1,
        }),
    });
    for _ in 0..rng.within(1, 3) {
        let component = ComponentId(rng.below(scheme.components.len() as u64) as u32);
        let levels = scheme.component(component).time_levels;
        let age = rng.below(u64::from(levels)) as u8;
        if targets.contains(&component) && age + 1 == levels {
            continue;
        }
        for offset in random_offsets(rng, of.position, scheme.component(component).position) {
            let tap = push(Op::Read(Read {
                component,
                offset,
                age,
            }));
            let weight = push(match rng.once_in(4) {
                true => Op::Coef(coef_at(rng, scheme, of.position)),
                false => Op::Const(scheme.precision.round(1.6 * rng.float() - 0.8)),
            });
            sum = push(Op::Fma(weight, tap, sum));
        }
    }
    let live = scheme.grid.live(of.position);
    let (mut region, mut mask) = (live, None);
    if of.time_levels == 1 && rng.once_in(5) {
        let axis = *rng.pick(&Axis::ALL);
        let Interval { lo, hi } = live[axis];
        let cut = rng.within(lo, hi.max(lo));
        region = Region::from_fn(|other| match other == axis {
            true => Interval::new(cut, rng.within(cut, hi.max(lo))),
            false => live[other],
        });
    }
    if of.time_levels == 1 && rng.once_in(6) {
        mask = Some(coef_at(rng, scheme, of.position));
    }
    Update {
        target,
        region,
        mask,
        body: Body { ops, result: sum },
        amendments: Vec::new(),
    }
}

/// The offsets of a difference across a point along an axis, of one side alone, or at corners, from one position to
/// another.
fn random_offsets(rng: &mut Rng, from: Position, to: Position) -> Vec<Offset> {
    // The offset at a distance in half cells, or in halves more where there is none.
    let at = |axis: Axis, halves: i64| -> i32 {
        let between = to[axis].0 - from[axis].0;
        (halves - between).div_euclid(2) as i32
    };
    let near = |axis: Axis| i64::from(to[axis] != from[axis]);
    let axis = *rng.pick(&Axis::ALL);
    let least = if near(axis) == 1 { 1 } else { 2 };
    let reach = match rng.below(4) {
        0 => vec![least, least + 2],
        _ => vec![least],
    };
    let both: Vec<i64> = reach.iter().flat_map(|n| [-n, *n]).collect();
    let along: Vec<i64> = match rng.below(6) {
        0 => reach.iter().map(|n| -n).collect(),
        1 => reach,
        2 => both[..both.len() - 1].to_vec(),
        _ => both,
    };
    let other = *rng.pick(&Axis::ALL);
    let corners = rng.once_in(4) && other != axis;
    let mut all = Vec::new();
    for halves in along {
        let mut offset = Offset::from_fn(|axis| at(axis, near(axis)));
        offset[axis] = at(axis, halves);
        if corners {
            let least = if near(other) == 1 { 1 } else { 2 };
            for halves in [-least, least] {
                offset[other] = at(other, halves);
                all.push(offset);
            }
            continue;
        }
        all.push(offset);
    }
    all
}
