//! Every legal schedule gives the bits of the reference: random schemes on random grids in random tilings.

use torre_compiler::backend::interp::Interp;
use torre_compiler::cone::cones;
use torre_compiler::host::{HostBinary, HostExpr, HostUnary};
use torre_compiler::kernel::{KernelSet, RowKernel, UpdateSet};
use torre_compiler::lattice::{Axis, HalfIndex, PerAxis};
use torre_compiler::layout::Layout;
use torre_compiler::problem::{Init, Output, OutputKind, Probe, Problem, Source, StaticValue};
use torre_compiler::real::Real;
use torre_compiler::reference::Reference;
use torre_compiler::schedule::{Frame, check_tiling};
use torre_compiler::scheme::{ComponentId, Precision, Scheme, StageId, verify};
use torre_compiler::statics::NoFiles;
use torre_compiler::testing::{Limits, Rng, one_update_per_stage, random_scheme, random_tiling};
use torre_compiler::tile::lower;
use torre_runtime::host::{Calculation, Order, Progress};

const LIMITS: Limits = Limits {
    dimensions: 3,
    components: 4,
    stages: 3,
    ops: 8,
    length: 24,
    width: 9,
    reach: 3,
};

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

fn random_problem(rng: &mut Rng, scheme: &Scheme) -> Problem {
    let mut problem = Problem {
        name: "random".to_string(),
        steps: rng.within(1, 9) as u64,
        init: Vec::new(),
        sources: Vec::new(),
        probes: Vec::new(),
        outputs: Vec::new(),
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

/// A kernel for each stage, phase and single update, and one for all updates of the stage.
fn kernels(scheme: &Scheme) -> KernelSet {
    let mut kernels = Vec::new();
    for stage in scheme.stage_ids() {
        let count = scheme.stages[stage.index()].updates.len();
        let singles = (0..count).map(|i| UpdateSet(1 << i));
        let mut sets: Vec<UpdateSet> = singles.chain([UpdateSet::all(count)]).collect();
        sets.dedup();
        for phase in 0..scheme.phases() {
            kernels.extend(sets.iter().map(|&updates| RowKernel {
                stage,
                phase,
                updates,
            }));
        }
    }
    KernelSet {
        layout: Layout::new(scheme).expect("a size that can be addressed"),
        kernels,
    }
}

/// Runs a problem in some order and compares everything that can be seen with the reference.
fn compare<T: Real>(
    seed: u64,
    scheme: &Scheme,
    problem: &Problem,
    order: Order<'_>,
    threads: usize,
) {
    let mut reference: Reference<'_, T> = Reference::new(scheme, problem, &NoFiles);
    let mut pictures = Vec::new();
    for step in 1..=problem.steps {
        reference.step();
        for (number, output) in problem.outputs.iter().enumerate() {
            let OutputKind::Slice { axis, index } = output.kind else {
                continue;
            };
            if step % output.every == 0 {
                let mut region = scheme.extent(output.component);
                region[axis].lo = index;
                region[axis].hi = index + 1;
                let mut values = Vec::new();
                torre_compiler::reference::for_each_index(region, |at| {
                    values.push(reference.value(output.component, at).bits());
                });
                pictures.push((step, number, values));
            }
        }
    }
    let set = kernels(scheme);
    let code = Interp::new(scheme, &set);
    let mut calculation: Calculation<'_, T> =
        Calculation::new(scheme, problem, &NoFiles, threads).expect("a problem of finite values");
    let progress = Progress::default();
    let mut taken = Vec::new();
    while calculation.steps() < problem.steps {
        let until = calculation.next_pause();
        calculation.run(&set, &code, order, threads, until, &progress);
        for picture in calculation.take_pictures() {
            let bits = picture.values.iter().map(|v| T::from_f64(*v).bits());
            taken.push((picture.step, picture.output, bits.collect::<Vec<_>>()));
        }
    }
    for id in scheme.component_ids() {
        check_component(seed, &reference, &calculation, id);
    }
    for index in 0..problem.probes.len() {
        let bits: Vec<u64> = reference.probe(index).iter().map(|v| v.bits()).collect();
        let own = calculation.probe(index);
        let own: Vec<u64> = own.iter().map(|v| T::from_f64(*v).bits()).collect();
        assert_eq!(own, bits, "seed {seed}: probe {index}");
    }
    taken.sort();
    pictures.sort();
    assert_eq!(taken, pictures, "seed {seed}: slices");
}

fn check_component<T: Real>(
    seed: u64,
    reference: &Reference<'_, T>,
    calculation: &Calculation<'_, T>,
    id: ComponentId,
) {
    let scheme = calculation.scheme;
    torre_compiler::reference::for_each_index(scheme.extent(id), |at| {
        let (a, b) = (reference.value(id, at), calculation.value(id, at));
        assert_eq!(
            a.bits(),
            b.bits(),
            "seed {seed}: {} at {:?}: reference {a:?}, here {b:?}\n{scheme}",
            scheme.component(id).name,
            at.0,
        );
    });
}

fn compare_any(seed: u64, scheme: &Scheme, problem: &Problem, order: Order<'_>, threads: usize) {
    match scheme.precision {
        Precision::F32 => compare::<f32>(seed, scheme, problem, order, threads),
        Precision::F64 => compare::<f64>(seed, scheme, problem, order, threads),
    }
}

fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("TORRE_TEST_SEEDS").ok();
    0..count.and_then(|c| c.parse().ok()).unwrap_or(150)
}

#[test]
fn layerwise_gives_the_bits_of_the_reference() {
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let scheme = random_scheme(&mut rng, &LIMITS);
        verify(&scheme).expect("a valid scheme");
        let problem = random_problem(&mut rng, &scheme);
        compare_any(
            seed,
            &scheme,
            &problem,
            Order::Layerwise,
            1 + (seed % 3) as usize,
        );
    }
}

#[test]
fn tilings_give_the_bits_of_the_reference() {
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &LIMITS);
        if seed % 4 == 3 {
            scheme = one_update_per_stage(scheme);
        }
        let problem = random_problem(&mut rng, &scheme);
        let cones = cones(&scheme);
        let frame = Frame::new(&scheme, &cones);
        let tiling = random_tiling(&mut rng, &scheme, &frame);
        check_tiling(&frame, &tiling).expect("fitting faces are legal");
        let program = lower(&scheme, &frame, &tiling);
        let order = Order::Tiles(&program);
        compare_any(seed, &scheme, &problem, order, 1 + (seed % 3) as usize);
    }
}
