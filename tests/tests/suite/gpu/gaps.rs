//! Gaps between planes: with any gap a run has the bits of the reference, and towers are timed with some.

use super::*;
use std::collections::BTreeSet;
use torre_compiler::pipeline::Stripes;
use torre_runtime::gpu::{GapTrial, NoTrial, TimeBlockOrder, TimedGap};

/// Runs a problem with values as a plan arranges them, and by the reference; the kernels that were started.
fn run<T: Value>(
    library: &Library,
    device: &Interpreted,
    scheme: &Scheme,
    problem: &Problem,
    plan: &DevicePlan,
    towers: &CompiledTowers,
) -> Result<u64, String> {
    let (set, shape) = (&plan.kernels, Shape::of(scheme));
    let gpu = code::gpu_of(device).expect("a GPU that is known");
    let ptx = code::ptx(library, scheme, set, shape, gpu).expect("valid IR");
    let calculation: Calculation<'_, T> =
        Calculation::arranged(set.layout.clone(), scheme, problem, &NoFiles, 1)
            .expect("a problem of finite values");
    let program = DeviceProgram {
        set,
        ptx: &ptx,
        shape,
    };
    let before = device.launches();
    let run = OnDevice::new(calculation, &NoFiles, device, program).map_err(|e| e.to_string())?;
    let mut run = run.by_towers(towers).map_err(|e| e.to_string())?;
    assert!(run.without_towers().is_none());
    let mut check = Literal::<T>::new(scheme, problem, &NoFiles);
    let done = execute(
        &mut run,
        Some(&mut check),
        Company::default(),
        &Watch::default(),
    );
    done.map_err(|error| format!("{error:?}\n{scheme}"))?;
    Ok(device.launches() - before)
}

fn run_any(
    library: &Library,
    device: &Interpreted,
    scheme: &Scheme,
    problem: &Problem,
    plan: &DevicePlan,
    towers: &CompiledTowers,
) -> Result<u64, String> {
    let run = match scheme.precision {
        Precision::F32 => run::<f32>,
        Precision::F64 => run::<f64>,
    };
    run(library, device, scheme, problem, plan, towers)
}

/// A trial of the towers of a plan.
fn trial<'a>(scheme: &'a Scheme, plan: &'a DevicePlan, model: &DeviceModel) -> GapTrial<'a> {
    let towers = plan.towers().expect("towers");
    GapTrial {
        scheme,
        program: &towers.program,
        gpu: model.gpu,
        order: towers.order,
        stripes: None,
    }
}

/// Schemes with walls, rings and open ends, sources in points and volumes, probes, slices and volumes: time blocks and
/// single steps.
#[test]
fn gaps_leave_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let walls = [Boundary::Pec, Boundary::Pmc];
    let ends = [
        [[Boundary::Zero; 2]; 3],
        [walls, [Boundary::Zero; 2], walls],
        [[Boundary::Zero; 2], [Boundary::Periodic; 2], walls],
    ];
    for (seed, ends) in ends.into_iter().enumerate() {
        let mut scheme = maxwell(2, Precision::F32, [14, 17, 12]);
        scheme.grid.boundary = PerAxis(ends);
        everywhere(&mut scheme);
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        problem.sources.extend(volume_sources(&mut rng, &scheme, 1));
        slices_and_a_volume(&mut problem, &scheme, [5, 6], 9);
        let (mut plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 1, TH = 4)");
        problem.steps = 2 * plan.height() + 1;
        let close = plan.kernels.layout.clone();
        let gap = 1 + 2 * seed as i64;
        let arranged = plan.arrange_with_gap(&scheme, gap);
        arranged.expect("a size that can be addressed");
        let layout = &plan.kernels.layout;
        let [group, plane] = [Axis::MIDDLE, Axis::OUTER].map(|axis| layout.stride[axis]);
        assert_eq!(plane, close.stride[Axis::OUTER] + gap * group);
        let towers = &compiled(library, &scheme, &plan, &model);
        let done = run_any(library, &device, &scheme, &problem, &plan, towers);
        done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Ghosts along the inner axis that towers leave out of date are made anew for single steps after time blocks.
#[test]
fn ghosts_in_memory_are_made_anew_with_any_gap() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    for (seed, ends) in [[Boundary::Pec, Boundary::Pmc], [Boundary::Periodic; 2]]
        .into_iter()
        .enumerate()
    {
        let mut scheme = maxwell(4, Precision::F32, [14, 17, 12]);
        let walls = [Boundary::Pmc, Boundary::Pec];
        scheme.grid.boundary = PerAxis([[Boundary::Zero; 2], walls, ends]);
        everywhere(&mut scheme);
        let mut problem = random_problem(&mut Rng::new(seed as u64), &scheme);
        problem.outputs.clear();
        let (mut plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 1, TH = 16)");
        // The least time block has two steps, and one is left.
        problem.steps = plan.height() + 3;
        let arranged = plan.arrange_with_gap(&scheme, 3);
        arranged.expect("a size that can be addressed");
        let towers = &compiled(library, &scheme, &plan, &model);
        let program = &plan.towers().expect("towers").program;
        assert!(program.block.ghosts.is_some());
        let done = run_any(library, &device, &scheme, &problem, &plan, towers);
        done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Layers have states behind all planes, and towers amend rows.
#[test]
fn gaps_leave_layers_as_they_are() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let text = "use std::maxwell::maxwell42
problem p {
  scheme maxwell42
  domain 16 x 15 x 12
  boundary x: cpml(4), y: pec | cpml(3), z: cpml(2)
  source E.z at (7, 8, 3) += exp(-((t - 5)/2)^2)
  probe E.z at (12, 3, 7)
  steps 9
}
";
    let world = FileWorld::beside(std::path::Path::new("."));
    let resolved = load(&world, &Source::new("layers", text), &Options::default());
    let resolved = resolved.unwrap_or_else(|e| panic!("{e:?}"));
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let (mut plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 8)");
    let arranged = plan.arrange_with_gap(scheme, 2);
    arranged.expect("a size that can be addressed");
    let towers = &compiled(library, scheme, &plan, &model);
    assert!(runs_amendments(towers));
    let done = run_any(library, &device, scheme, problem, &plan, towers);
    done.unwrap_or_else(|error| panic!("{error}"));
}

/// Towers for another gap than that of the array compute other values, or access memory that is not there.
#[test]
fn another_gap_than_that_of_the_array_is_found() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let scheme = maxwell(2, Precision::F32, [14, 15, 12]);
    let mut problem = random_problem(&mut Rng::new(3), &scheme);
    problem.outputs.clear();
    let (mut plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 1, TH = 4)");
    problem.steps = plan.height();
    let mut others = Vec::new();
    for gap in [0, 2, 3] {
        let arranged = plan.arrange_with_gap(&scheme, gap);
        arranged.expect("a size that can be addressed");
        others.push(compiled(library, &scheme, &plan, &model));
    }
    let arranged = plan.arrange_with_gap(&scheme, 2);
    arranged.expect("a size that can be addressed");
    let right = others
        .iter()
        .map(|towers| run_any(library, &device, &scheme, &problem, &plan, towers).is_ok());
    assert_eq!(right.collect::<Vec<_>>(), [false, true, false]);
}

/// Each gap is timed, memory is given back, and names of trials tell layouts apart.
#[test]
fn towers_are_timed_with_each_gap() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let scheme = maxwell(2, Precision::F32, [14, 15, 12]);
    let mut problem = random_problem(&mut Rng::new(3), &scheme);
    problem.steps = 8;
    problem.sources.clear();
    let (plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 1, TH = 4)");
    let own = trial(&scheme, &plan, &model);
    // Planes of few rows have no room for a gap.
    assert_eq!(own.gaps(), [0]);
    assert_eq!(own.bytes().expect("a size"), 0);
    let free = device.free_memory().expect("a size");
    let launches = device.launches();
    let gaps = [0, 1, 3];
    let timed = own.time(library, &device, &gaps).expect("a trial");
    let mut found: Vec<i64> = timed.iter().map(|timed| timed.gap).collect();
    found.sort_unstable();
    assert_eq!(found, gaps);
    assert!(timed.iter().all(|timed| timed.seconds.is_finite()));
    assert_eq!(device.launches() - launches, 1 + 2 * gaps.len() as u64);
    assert_eq!(device.free_memory().expect("a size"), free);
    // Towers with sources in many cells do not run without these.
    problem
        .sources
        .extend(volume_sources(&mut Rng::new(1), &scheme, 1));
    let (plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 1, TH = 4)");
    let refused = trial(&scheme, &plan, &model).time(library, &device, &gaps);
    assert!(matches!(refused, Err(NoTrial::Sources)), "{refused:?}");
    // A device that fails is no harm.
    device.fail_after(device.launches());
    let failed = own.time(library, &device, &gaps);
    assert!(matches!(failed, Err(NoTrial::Device(_))), "{failed:?}");
    assert_eq!(device.free_memory().expect("a size"), free);
}

/// Towers of a stripe are timed on the planes of a stripe.
#[test]
fn towers_of_stripes_are_timed_with_each_gap() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let scheme = maxwell(2, Precision::F64, [13, 44, 3]);
    let mut problem = random_problem(&mut Rng::new(3), &scheme);
    problem.steps = 8;
    problem.sources.clear();
    let schedule = "(x, y): diamond(W = 3) lean +x height 2; z: span";
    let (plan, model) = plan_of(&device, &scheme, &problem, schedule);
    let own = trial(&scheme, &plan, &model);
    let (layout, towers) = (&plan.kernels.layout, &own.program.towers);
    let TimeBlockOrder { order, steps, .. } = own.order;
    let stripes = Stripes::new(&scheme, layout, towers, order, 2, &[14, 30], steps);
    let stripes = &stripes.expect("stripes");
    let striped = GapTrial {
        stripes: Some(stripes),
        ..own
    };
    let bytes = |trial: &GapTrial<'_>| trial.layout(0).expect("a size").bytes();
    assert!(bytes(&striped) < bytes(&own));
    let (free, launches) = (device.free_memory().expect("a size"), device.launches());
    let timed = striped.time(library, &device, &[0, 2]).expect("a trial");
    assert_eq!(timed.len(), 2);
    assert!(device.launches() - launches > 10);
    assert_eq!(device.free_memory().expect("a size"), free);
    let keys = [own, striped, own].map(|trial| trial.key().expect("a size"));
    assert_eq!(keys[0], keys[2]);
    assert_eq!(BTreeSet::from(keys).len(), 2);
}

/// Large planes have gaps up to a small part of them.
#[test]
fn gaps_are_a_small_part_of_planes() {
    let device = Interpreted::new();
    for (rows, most) in [(200, 3), (768, 12), (1600, 16)] {
        let scheme = maxwell(2, Precision::F32, [14, rows, 12]);
        let problem = Problem {
            sources: Vec::new(),
            outputs: Vec::new(),
            ..random_problem(&mut Rng::new(3), &scheme)
        };
        let (plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 1, TH = 4)");
        let own = trial(&scheme, &plan, &model);
        let gaps = own.gaps();
        assert_eq!((gaps[0], gaps.last()), (0, Some(&most)));
        assert!(
            gaps.len() <= 8 && gaps.is_sorted_by(|a, b| a < b),
            "{gaps:?}"
        );
        let timed = |gap| TimedGap { gap, seconds: 1.0 };
        assert!(own.tries(&gaps.iter().copied().map(timed).collect::<Vec<_>>()));
        assert!(!own.tries(&[timed(0), timed(most + 1)]));
        let bytes = own.layout(0).expect("a size").bytes();
        assert!(own.bytes().expect("a size") * 60 <= bytes);
    }
}
