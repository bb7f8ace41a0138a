//! Random problems for random schemes.

use torre_compiler::host::{HostBinary, HostExpr, HostUnary};
use torre_compiler::lattice::{Axis, HalfIndex, PerAxis};
use torre_compiler::problem::{Init, Output, OutputKind, Probe, Problem, Source, StaticValue};
use torre_compiler::scheme::{Scheme, StageId};
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

/// The seeds of random tests: 150, or as many as `TORRE_TEST_SEEDS` says.
pub fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("TORRE_TEST_SEEDS").ok();
    0..count.and_then(|c| c.parse().ok()).unwrap_or(150)
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
        });
        let axes: Vec<Axis> = scheme.grid.present().collect();
        let axis = *rng.pick(&axes);
        problem.outputs.push(Output {
            name: format!("o{id}"),
            component: id,
            kind: OutputKind::Slice {
                axis,
                index: at[axis],
            },
            every: rng.within(1, 3) as u64,
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
        });
    }
    problem
}
