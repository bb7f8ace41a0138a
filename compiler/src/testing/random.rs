//! Random schemes that keep all the rules of [`crate::scheme`].

use crate::host::{HostBinary, HostExpr};
use crate::kernel::{RowKernel, UpdateSet};
use crate::lattice::{Axis, HalfIndex, Interval, Offset, PerAxis, Position, Region, div_ceil};
use crate::layout::ALIGNMENT;
use crate::scheme::{
    Amendment, Body, Boundary, Cmp, Coef, CoefId, Component, ComponentId, Grid, OddPositions, Op,
    Precision, Read, Scheme, Stage, State, StateAdvance, StateId, Update, Value, Zone, ZoneId,
    ZoneSet,
};

/// A small generator of random numbers (splitmix64), the same on every machine.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; `n` must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.draw() % n
    }

    /// A number in `lo..=hi`.
    pub fn within(&mut self, lo: i64, hi: i64) -> i64 {
        lo + self.below((hi - lo + 1) as u64) as i64
    }

    pub fn float(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// Upper bounds for a random scheme; all at least 1, `reach` at least 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub dimensions: usize,
    pub components: usize,
    pub stages: usize,
    /// Operations of a body.
    pub ops: usize,
    /// Cells along the inner axis.
    pub length: i64,
    /// Cells along the other axes.
    pub width: i64,
    /// Of reads along the inner axis; the others have at most 2.
    pub reach: i64,
}

impl Limits {
    /// Schemes whose towers are small.
    pub const TOWERS: Limits = Limits {
        dimensions: 3,
        components: 3,
        stages: 3,
        ops: 8,
        length: 14,
        width: 20,
        reach: 2,
    };
}

/// A scheme that `verify` accepts.
pub fn random_scheme(rng: &mut Rng, limits: &Limits) -> Scheme {
    let roles = Axis::roles(rng.within(1, limits.dimensions.min(3) as i64) as usize);
    let present = PerAxis::from_fn(|a| roles.contains(&a));
    let precision = *rng.pick(&[Precision::F32, Precision::F64]);
    let cells = PerAxis::from_fn(|a| match (present[a], a == Axis::INNER) {
        (false, _) => 1,
        (true, true) => rng.within(1, limits.length),
        (true, false) => rng.within(1, limits.width),
    });
    let boundary = PerAxis::from_fn(|_| {
        if rng.once_in(3) {
            [Boundary::Periodic; 2]
        } else {
            let mut side = || *rng.pick(&[Boundary::Zero, Boundary::Pec, Boundary::Pmc]);
            [side(), side()]
        }
    });
    // Some mirrors have parities of their own, without a draw, so that the other choices of a seed stay.
    let bits = cells.0.iter().fold(0x5b, |n, c| (n * 37 + c) & 0xff) as u8;
    let boundary = boundary.map(|sides| match (sides, bits & 1) {
        ([Boundary::Periodic, _], _) | (_, 0) => sides,
        _ => sides.map(|side| match side {
            Boundary::Pmc => Boundary::Mirror(OddPositions::from_bits(bits)),
            side => side,
        }),
    });
    let components = (0..rng.within(1, limits.components as i64))
        .map(|i| Component {
            name: format!("c{i}"),
            position: Position::from_fn(|a| HalfIndex(i64::from(present[a]) * rng.within(0, 1))),
            time: HalfIndex(rng.within(0, 1)),
            time_levels: *rng.pick(&[1, 1, 1, 2, 2, 3]),
        })
        .collect();
    let mut scheme = Scheme {
        name: "random".to_string(),
        precision,
        grid: Grid {
            axes: PerAxis::from_fn(|a| present[a].then(|| format!("{a}"))),
            cells,
            spacing: PerAxis::splat(1.0),
            dt: 1.0,
            boundary,
        },
        components,
        coefs: Vec::new(),
        files: Vec::new(),
        stages: Vec::new(),
        zones: Vec::new(),
        states: Vec::new(),
    };
    for _ in 0..rng.within(1, limits.stages as i64) {
        let mut targets: Vec<ComponentId> = Vec::new();
        for id in scheme.component_ids() {
            if rng.once_in(2) {
                targets.push(id);
            }
        }
        if targets.is_empty() {
            let id = rng.below(scheme.components.len() as u64);
            targets.push(ComponentId(id as u32));
        }
        let updates = targets
            .iter()
            .map(|&target| random_update(rng, limits, &mut scheme, &targets, target))
            .collect();
        scheme.stages.push(Stage { updates });
    }
    scheme
}

/// A scheme on a periodic grid in double precision whose updates are linear, the same everywhere, and written in
/// different ways. Cells per axis are at least 3, so that no read goes around the grid.
pub fn random_linear_scheme(rng: &mut Rng, limits: &Limits) -> Scheme {
    let mut scheme = random_scheme(
        rng,
        &Limits {
            length: limits.length.max(3),
            width: limits.width.max(3),
            reach: limits.reach.min(2),
            ..*limits
        },
    );
    scheme.precision = Precision::F64;
    scheme.coefs.clear();
    for axis in Axis::ALL {
        scheme.grid.boundary[axis] = [Boundary::Periodic; 2];
        if scheme.grid.axes[axis].is_some() {
            scheme.grid.cells[axis] = scheme.grid.cells[axis].max(3);
        }
    }
    for stage in 0..scheme.stages.len() {
        let targets: Vec<ComponentId> = scheme.stages[stage]
            .updates
            .iter()
            .map(|u| u.target)
            .collect();
        let updates = targets
            .iter()
            .map(|&target| Update {
                target,
                region: scheme.grid.live(scheme.component(target).position),
                mask: None,
                body: random_linear_body(rng, limits, &mut scheme, &targets, target),
                amendments: Vec::new(),
            })
            .collect();
        scheme.stages[stage].updates = updates;
    }
    scheme
}

/// A sum of values with weights, a few of them coefficients.
fn random_linear_body(
    rng: &mut Rng,
    limits: &Limits,
    scheme: &mut Scheme,
    targets: &[ComponentId],
    target: ComponentId,
) -> Body {
    let position = scheme.component(target).position;
    let mut ops = vec![Op::Const(0.25)];
    let mut push = |op: Op| {
        ops.push(op);
        Value(ops.len() as u32 - 1)
    };
    let mut sum = Value(0);
    for _ in 0..rng.within(1, limits.ops.min(6) as i64) {
        let Some(read) = random_read(rng, limits, scheme, targets, target) else {
            continue;
        };
        let tap = push(Op::Read(read));
        let weight = push(if rng.once_in(3) {
            Op::Coef(coef_at(rng, scheme, position))
        } else {
            Op::Const(1.6 * rng.float() - 0.8)
        });
        sum = match rng.below(5) {
            0 => {
                let product = push(Op::Mul(tap, weight));
                push(Op::Sub(sum, product))
            }
            1 => {
                let two = push(Op::Const(2.0));
                let half = push(Op::Div(tap, two));
                let product = push(Op::Mul(weight, half));
                push(Op::Add(product, sum))
            }
            2 => {
                let negated = push(Op::Neg(tap));
                push(Op::Fma(negated, weight, sum))
            }
            _ => push(Op::Fma(weight, tap, sum)),
        };
    }
    Body { ops, result: sum }
}

fn random_update(
    rng: &mut Rng,
    limits: &Limits,
    scheme: &mut Scheme,
    targets: &[ComponentId],
    target: ComponentId,
) -> Update {
    let component = scheme.component(target).clone();
    let live = scheme.grid.live(component.position);
    let (mut region, mut mask) = (live, None);
    if component.time_levels == 1 && rng.once_in(2) {
        region = Region::from_fn(|a| {
            let Interval { lo, hi } = live[a];
            let cut = rng.within(lo, hi.max(lo));
            Interval::new(cut, rng.within(cut, hi.max(lo)))
        });
    }
    if component.time_levels == 1 && rng.once_in(3) {
        mask = Some(coef_at(rng, scheme, component.position));
    }
    let mut ops = Vec::new();
    for i in 0..rng.within(1, limits.ops as i64) as u64 {
        let leaf = i < 2 || rng.once_in(3);
        let op = if leaf {
            match rng.below(6) {
                0 => Op::Const(scheme.precision.round(constant(rng))),
                1 => Op::Coef(coef_at(rng, scheme, component.position)),
                _ => match random_read(rng, limits, scheme, targets, target) {
                    Some(read) => Op::Read(read),
                    None => Op::Const(scheme.precision.round(constant(rng))),
                },
            }
        } else {
            let mut v = || Value(rng.below(i) as u32);
            let [a, b, c, d] = [v(), v(), v(), v()];
            match rng.below(14) {
                0 => Op::Neg(a),
                1 => match a.0 % 2 {
                    0 => Op::Abs(a),
                    _ => Op::Flush(a),
                },
                2 => match a.0 % 3 {
                    0 => Op::Sqrt(a),
                    1 => Op::Power2(a),
                    _ => Op::Exponent(a),
                },
                3 | 4 => Op::Add(a, b),
                5 => Op::Sub(a, b),
                6 => Op::Mul(a, b),
                7 => Op::Div(a, b),
                8 | 9 => Op::Select {
                    cmp: *rng.pick(&[Cmp::Lt, Cmp::Le, Cmp::Eq, Cmp::Ne]),
                    a,
                    b,
                    then: c,
                    otherwise: d,
                },
                _ => Op::Fma(a, b, c),
            }
        };
        ops.push(op);
    }
    let last = ops.len() as u64 - 1;
    let result = if rng.once_in(4) {
        rng.below(last + 1)
    } else {
        last
    };
    Update {
        target,
        region,
        mask,
        body: Body {
            ops,
            result: Value(result as u32),
        },
        amendments: Vec::new(),
    }
}

/// Zones of up to two boxes each, in which some updates are amended with up to two states each.
pub fn add_random_zones(rng: &mut Rng, limits: &Limits, scheme: &mut Scheme) {
    let cells = scheme.grid.cells;
    // Reads are random only where a stage may make them, so its targets are needed.
    for zone in 0..rng.within(1, 3) {
        let part = |rng: &mut Rng, axis: Axis, lo: i64, hi: i64| {
            if scheme.grid.axes[axis].is_none() || rng.once_in(3) {
                return Interval::new(0, cells[axis] + 1);
            }
            let cut = rng.within(lo, hi);
            Interval::new(cut, rng.within(cut, hi))
        };
        let mut boxes = vec![Region::from_fn(|a| part(rng, a, 0, cells[a] + 1))];
        let axis = *rng.pick(&Axis::ALL);
        if boxes[0][axis].hi <= cells[axis] && scheme.grid.axes[axis].is_some() {
            let mut second = Region::from_fn(|a| part(rng, a, 0, cells[a] + 1));
            second[axis] = part(rng, axis, boxes[0][axis].hi, cells[axis] + 1);
            second[axis].lo = second[axis].lo.max(boxes[0][axis].hi);
            second[axis].hi = second[axis].hi.max(second[axis].lo);
            boxes.push(second);
        }
        scheme.zones.push(Zone {
            name: format!("zone {zone}"),
            boxes,
        });
    }
    for stage in 0..scheme.stages.len() {
        let updates = &scheme.stages[stage].updates;
        let targets: Vec<ComponentId> = updates.iter().map(|u| u.target).collect();
        for (update, &target) in targets.iter().enumerate() {
            for zone in 0..scheme.zones.len() as u32 {
                if scheme.component(target).time_levels == 1 && rng.once_in(3) {
                    continue;
                }
                let mut amendment =
                    random_amendment(rng, limits, scheme, &targets, target, ZoneId(zone));
                read_old(scheme, target, &mut amendment);
                scheme.stages[stage].updates[update]
                    .amendments
                    .push(amendment);
            }
            // Some are not in the order of zones.
            if update % 2 == 1 {
                scheme.stages[stage].updates[update].amendments.reverse();
            }
        }
    }
}

/// The same with zones in bands: some have two short boxes that differ along the inner axis only.
pub fn add_random_bands(rng: &mut Rng, limits: &Limits, scheme: &mut Scheme) {
    add_random_zones(rng, limits, scheme);
    let end = scheme.grid.cells[Axis::INNER] + 1;
    let line = (ALIGNMENT / scheme.precision.bytes()) as i64;
    for zone in &mut scheme.zones {
        zone.boxes.truncate(1);
        let whole = zone.boxes[0];
        let mut cut = |lo: i64, end: i64| {
            let lo = rng.within(lo.min(end), end);
            Interval::new(lo, rng.within(lo, end.min(lo + 32)))
        };
        let below = cut(0, end.min(9));
        // No vector has a part of both.
        let above = cut(div_ceil(below.hi, line) * line, end);
        zone.boxes = [below, above]
            .into_iter()
            .map(|range| {
                let mut own = whole;
                own[Axis::INNER] = range;
                own
            })
            .collect();
    }
}

/// Has every second amendment of a component read the value that its update overwrites, if it has an operand for that.
fn read_old(scheme: &Scheme, target: ComponentId, amendment: &mut Amendment) {
    if !(target.0 + amendment.zone.0).is_multiple_of(2) {
        return;
    }
    let is_operand = |op: &&mut Op| matches!(op, Op::Read(_) | Op::Const(_));
    if let Some(op) = amendment.body.ops.iter_mut().find(is_operand) {
        *op = Op::Read(Read {
            component: target,
            age: scheme.component(target).time_levels - 1,
            offset: PerAxis::splat(0),
        });
    }
}

fn random_amendment(
    rng: &mut Rng,
    limits: &Limits,
    scheme: &mut Scheme,
    targets: &[ComponentId],
    target: ComponentId,
    zone: ZoneId,
) -> Amendment {
    let position = scheme.component(target).position;
    let mut ops = vec![Op::Base];
    let states: Vec<StateId> = (0..rng.within(0, 2))
        .map(|_| {
            let name = format!("q{}", scheme.states.len());
            scheme.states.push(State {
                name,
                position,
                zone,
            });
            StateId(scheme.states.len() as u32 - 1)
        })
        .collect();
    ops.extend(states.iter().map(|s| Op::State(*s)));
    for _ in 0..rng.within(1, limits.ops.min(6) as i64) {
        let v = |rng: &mut Rng, ops: &[Op]| Value(rng.below(ops.len() as u64) as u32);
        let [a, b, c] = [v(rng, &ops), v(rng, &ops), v(rng, &ops)];
        let op = match rng.below(8) {
            0 => Op::Const(scheme.precision.round(constant(rng))),
            1 => Op::Coef(coef_at(rng, scheme, position)),
            2 | 3 => Op::Coef(axis_coef_at(rng, scheme, position)),
            4 => match random_read(rng, limits, scheme, targets, target) {
                Some(read) => Op::Read(read),
                None => Op::Base,
            },
            5 => Op::Sub(a, b),
            _ => Op::Fma(a, b, c),
        };
        ops.push(op);
    }
    let last = ops.len() as u64 - 1;
    let mut value = || Value(rng.below(last + 1) as u32);
    let advances = states
        .into_iter()
        .map(|state| StateAdvance {
            state,
            value: value(),
        })
        .collect();
    Amendment {
        zone,
        body: Body {
            ops,
            result: Value(last as u32),
        },
        advances,
    }
}

/// A coefficient at a position that depends on one axis: a new one, or one that exists.
fn axis_coef_at(rng: &mut Rng, scheme: &mut Scheme, position: Position) -> CoefId {
    let is_known = |m: &Coef| m.position == position && m.only_axis.is_some();
    let found = scheme.coefs.iter().position(is_known);
    if let (Some(i), false) = (found, rng.once_in(2)) {
        return CoefId(i as u32);
    }
    let axis = *rng.pick(&Axis::ALL);
    scheme.coefs.push(Coef {
        name: format!("m{}", scheme.coefs.len()),
        position,
        value: HostExpr::binary(
            HostBinary::Mul,
            HostExpr::Number(0.125),
            HostExpr::Coordinate(axis, HalfIndex::HALF),
        ),
        only_axis: Some(axis),
    });
    CoefId(scheme.coefs.len() as u32 - 1)
}

fn constant(rng: &mut Rng) -> f64 {
    match rng.below(8) {
        0 => 0.0,
        1 => -0.0,
        2 => 1.0,
        3 => 0.5,
        4 => 3.0,
        _ => rng.float() * 4.0 - 2.0,
    }
}

/// A coefficient at a position: a new one, or one that exists.
pub(super) fn coef_at(rng: &mut Rng, scheme: &mut Scheme, position: Position) -> CoefId {
    let found = (scheme.coefs.iter()).position(|m| m.position == position && m.only_axis.is_none());
    if let (Some(i), false) = (found, rng.once_in(3)) {
        return CoefId(i as u32);
    }
    scheme.coefs.push(Coef {
        name: format!("m{}", scheme.coefs.len()),
        position,
        value: HostExpr::Number(*rng.pick(&[0.0, 0.25, 1.0, -3.0])),
        only_axis: None,
    });
    CoefId(scheme.coefs.len() as u32 - 1)
}

/// A read that the stage with these targets may make, if one was found.
fn random_read(
    rng: &mut Rng,
    limits: &Limits,
    scheme: &Scheme,
    targets: &[ComponentId],
    target: ComponentId,
) -> Option<Read> {
    let component = ComponentId(rng.below(scheme.components.len() as u64) as u32);
    let time_levels = scheme.component(component).time_levels;
    let age = rng.below(u64::from(time_levels)) as u8;
    let mut offset = Offset::from_fn(|a| {
        let reach = match a {
            Axis::INNER => limits.reach,
            _ => 2,
        };
        let reach = reach.min(scheme.grid.cells[a]);
        if scheme.grid.axes[a].is_none() || rng.once_in(2) {
            0
        } else {
            rng.within(-reach, reach) as i32
        }
    });
    if targets.contains(&component) && age + 1 == time_levels {
        if component != target {
            return None;
        }
        offset = Offset::default();
    }
    Some(Read {
        component,
        offset,
        age,
    })
}

/// Kernels for all stages and phases: one with all updates of the stage, and one with some of them.
pub fn random_kernels(rng: &mut Rng, scheme: &Scheme) -> Vec<RowKernel> {
    let mut kernels = Vec::new();
    for stage in scheme.stage_ids() {
        for phase in 0..scheme.phases() {
            let count = scheme.stages[stage.index()].updates.len();
            let all = UpdateSet::all(count);
            let some = UpdateSet(all.0 & rng.draw());
            for updates in [all, some] {
                if !updates.is_empty() {
                    kernels.push(RowKernel {
                        stage,
                        phase,
                        updates,
                        zones: ZoneSet::default(),
                    });
                }
            }
        }
    }
    kernels
}
