//! Random problems for random schemes.

use torre_compiler::host::{HostBinary, HostExpr, HostUnary};
use torre_compiler::incident::check;
use torre_compiler::lattice::{Axis, HalfIndex, Interval, PerAxis};
use torre_compiler::problem::{
    Drive, Incident, IncidentField, Init, Output, OutputKind, PlaneWave, Probe, Problem, Source,
    StaticValue, TotalBox,
};
use torre_compiler::scheme::{ComponentId, Scheme, StageId};
use torre_compiler::statics::NoFiles;
use torre_compiler::testing::{Limits, Rng};

/// How large random schemes are.
pub const LIMITS: Limits = Limits {
    dimensions: 3,
    components: 4,
    stages: 3,
    ops: 8,
    length: 24,
    width: 9,
    reach: 3,
};

/// The seeds of random tests: 90, or as many as `TORRE_TEST_SEEDS` says.
pub fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("TORRE_TEST_SEEDS").ok();
    0..count.and_then(|c| c.parse().ok()).unwrap_or(90)
}

/// Values without a pattern that a shifted read could hide in.
fn noise(seed: f64) -> HostExpr {
    let mul = |a, b| HostExpr::binary(HostBinary::Mul, a, b);
    let add = |a, b| HostExpr::binary(HostBinary::Add, a, b);
    let mut phase = HostExpr::Number(seed);
    for (axis, k) in Axis::ALL.into_iter().zip([1.7, 2.3, 3.1]) {
        let term = mul(
            HostExpr::Number(k),
            HostExpr::Coordinate(axis, HalfIndex::ZERO),
        );
        phase = add(phase, term);
    }
    HostExpr::unary(HostUnary::Sin, mul(phase.clone(), phase))
}

/// 1 in about half of the cells, 0 in the others.
fn somewhere() -> HostExpr {
    HostExpr::binary(HostBinary::Lt, noise(0.7), HostExpr::Number(0.1))
}

/// Sources that act in many columns of cells: planes and boxes, some of them on the same cells, some with one profile
/// everywhere, some only where a condition holds, and one in one column before and after them.
pub fn volume_sources(rng: &mut Rng, scheme: &Scheme, count: usize) -> Vec<Source> {
    let mut sources = Vec::new();
    let stages: Vec<StageId> = scheme.stage_ids().collect();
    for number in 0..count {
        let stage = *rng.pick(&stages);
        let updates = &scheme.stages[stage.index()].updates;
        let Some(update) = updates.get(rng.below(updates.len().max(1) as u64) as usize) else {
            continue;
        };
        if update.region.is_empty() {
            continue;
        }
        let mut region = update.region;
        for axis in Axis::ALL {
            let Interval { lo, hi } = region[axis];
            let from = rng.within(lo, hi - 1);
            let until = rng.within(from + 1, hi);
            match (number, axis) {
                // A plane across the last axis.
                (0, Axis::INNER) => region[axis] = Interval::new(from, from + 1),
                (0, _) => (),
                _ if rng.once_in(2) => region[axis] = Interval::new(from, until),
                _ => (),
            }
        }
        let source = Source {
            component: update.target,
            stage,
            region,
            condition: (number > 0 && rng.once_in(2)).then(somewhere),
            profile: match rng.once_in(3) {
                true => HostExpr::Number(0.375),
                false => noise(f64::from(number as u32)),
            },
            wave: HostExpr::unary(HostUnary::Cos, HostExpr::Time),
            replaces: false,
        };
        let mut alone = source.clone();
        for axis in [Axis::OUTER, Axis::MIDDLE] {
            alone.region[axis].hi = alone.region[axis].lo + 1;
        }
        match rng.below(4) {
            0 => sources.extend([alone, source]),
            1 => sources.extend([source, alone]),
            2 => sources.extend([source.clone(), source]),
            _ => sources.push(source),
        }
    }
    sources
}

/// Lets some sources of every third seed replace values, without a draw.
pub fn replacing(seed: u64, problem: &mut Problem) {
    if seed.is_multiple_of(3) {
        for source in problem.sources.iter_mut().skip((seed / 3 % 2) as usize) {
            source.replaces = true;
        }
    }
}

/// A problem with initial values, and with sources, probes and slices at random places.
pub fn random_problem(rng: &mut Rng, scheme: &Scheme) -> Problem {
    let mut problem = Problem {
        name: "random".to_string(),
        steps: rng.within(1, 9) as u64,
        ..Problem::default()
    };
    for id in scheme.component_ids() {
        problem.init.push(Init {
            component: id,
            age: 0,
            value: StaticValue::Expr(noise(f64::from(id.0))),
        });
        let live = scheme.grid.live(scheme.component(id).position);
        if live.is_empty() {
            continue;
        }
        let at = PerAxis::from_fn(|a| rng.within(live[a].lo, live[a].hi - 1));
        problem.probes.push(Probe {
            name: format!("p{id}"),
            component: id,
            at,
            every: 1,
        });
        let axes: Vec<Axis> = scheme.grid.present().collect();
        let axis = *rng.pick(&axes);
        problem.outputs.push(Output {
            state: None,
            name: format!("o{id}"),
            component: id,
            kind: OutputKind::Slice {
                axis,
                index: at[axis],
            },
            region: scheme.extent(id),
            every: rng.within(1, 3) as u64,
            spectrum: None,
        });
        let stages: Vec<StageId> = scheme
            .stage_ids()
            .filter(|s| {
                let updates = &scheme.stages[s.index()].updates;
                updates.iter().any(|u| u.target == id)
            })
            .collect();
        if stages.is_empty() || rng.once_in(2) {
            continue;
        }
        let stage = *rng.pick(&stages);
        let updates = &scheme.stages[stage.index()].updates;
        let Some(update) = updates.iter().find(|u| u.target == id) else {
            continue;
        };
        let mut region = update.region;
        for axis in Axis::ALL {
            if rng.once_in(2) && !region[axis].is_empty() {
                let at = rng.within(region[axis].lo, region[axis].hi - 1);
                region[axis].lo = at;
                region[axis].hi = at + 1;
            }
        }
        let time = HostExpr::unary(HostUnary::Cos, HostExpr::Time);
        let (profile, wave) = if rng.once_in(2) {
            (noise(0.5), time)
        } else {
            let wave = HostExpr::binary(HostBinary::Add, noise(0.25), time);
            (HostExpr::Number(1.0), wave)
        };
        problem.sources.push(Source {
            component: id,
            stage,
            region,
            condition: rng.once_in(2).then(|| noise(0.1)),
            profile,
            wave,
            replaces: false,
        });
    }
    problem
}

/// Lets a field come in through the faces of a box, where the scheme can have one; says whether it does.
pub fn add_random_incident(rng: &mut Rng, scheme: &Scheme, problem: &mut Problem) -> bool {
    let time = || HostExpr::unary(HostUnary::Cos, HostExpr::Time);
    let product = |a, b| HostExpr::binary(HostBinary::Mul, a, b);
    for _ in 0..8 {
        let field = match rng.once_in(2) {
            true => IncidentField::Plane(PlaneWave {
                direction: PerAxis::from_fn(|a| match scheme.grid.axes[a] {
                    Some(_) => rng.within(-2, 2),
                    None => 0,
                }),
                drives: vec![Drive {
                    component: ComponentId(rng.below(scheme.components.len() as u64) as u32),
                    wave: time(),
                }],
                loss: 0.2,
            }),
            false => {
                let value = |id: ComponentId| Some(product(noise(f64::from(id.0)), time()));
                IncidentField::Given(scheme.component_ids().map(value).collect())
            }
        };
        let ends = PerAxis::from_fn(|a| {
            let n = scheme.grid.cells[a];
            let whole = scheme.grid.axes[a].is_none() || n < 4 || rng.once_in(3);
            match whole {
                true => [0, n],
                false => {
                    let lo = rng.within(0, n - 2);
                    [lo, rng.within(lo + 1, n)]
                }
            }
        });
        problem.incidents = vec![Incident {
            name: "field".to_string(),
            field,
            boxes: vec![TotalBox { ends }; 1 + rng.below(2) as usize],
        }];
        if check(scheme, problem, &NoFiles).is_ok() {
            return true;
        }
    }
    problem.incidents.clear();
    false
}

/// Makes the outputs of a problem, four at most, slices across the axes in turns, each due after a number of steps, and
/// adds a volume of the first of them.
pub fn slices_and_a_volume(problem: &mut Problem, scheme: &Scheme, slices: [u64; 2], volume: u64) {
    for (n, output) in problem.outputs.iter_mut().enumerate() {
        let axis = Axis::ALL[n % 3];
        let index = scheme.extent(output.component)[axis].hi / 2;
        output.kind = OutputKind::Slice { axis, index };
        output.every = slices[n % 2];
    }
    problem.outputs.truncate(4);
    let mut all = problem.outputs[0].clone();
    all.kind = OutputKind::Volume;
    all.every = volume;
    problem.outputs.push(all);
}
