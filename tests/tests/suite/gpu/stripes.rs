//! Several devices, each with a stripe of the grid.

use super::*;
use torre_compiler::pipeline::{NoStripes, Stripes};
use torre_runtime::gpu::{Striped, StripedProgram, Striping};
use torre_runtime::simulation::Simulation;
use torre_runtime::timeline::Kind;
use torre_suite::interpreted::InterpretedPeers;
use torre_suite::timelines;

/// How a grid is cut, and how it is computed.
#[derive(Clone, Debug)]
struct Cut {
    /// Indices along the second axis.
    borders: Vec<i64>,
    /// Columns of a group.
    columns: i64,
    in_flight: usize,
    /// Groups between planes.
    gap: i64,
}

/// The work of a run.
#[derive(Debug)]
struct Done {
    launches: Vec<u64>,
    sent: u64,
    changes: u64,
}

/// The towers of a plan in stripes, compiled.
fn striped_program(
    library: &Library,
    scheme: &Scheme,
    plan: &DevicePlan,
    model: &DeviceModel,
    cut: &Cut,
) -> Result<StripedProgram, NoStripes> {
    let towers = plan.towers().expect("towers");
    let stripes = Stripes::new(
        scheme,
        &plan.kernels.layout,
        &towers.program.towers,
        towers.order.order,
        cut.columns,
        &cut.borders,
        towers.order.steps,
    )?;
    let program = towers.program.clone();
    let (gpu, order) = (model.gpu, towers.order);
    let striping = Striping {
        stripes,
        in_flight: cut.in_flight,
        gap: cut.gap,
    };
    let made = StripedProgram::new(library, scheme, program, gpu, order, striping);
    Ok(made.expect("valid IR"))
}

/// Runs a problem on as many devices as there are stripes, and by the reference, and compares all that can be seen.
fn on_devices<T: Value>(
    scheme: &Scheme,
    problem: &Problem,
    program: StripedProgram,
    seed: u64,
) -> Result<Done, String> {
    let set = code::kernels(scheme).expect("a size that can be addressed");
    let calculation: Calculation<'_, T> =
        Calculation::arranged(set.layout, scheme, problem, &NoFiles, 1)
            .expect("a problem of finite values");
    let peers = InterpretedPeers::new(program.stripes.count());
    peers.reseed(seed);
    let run = Striped::new(calculation, &NoFiles, &peers, program);
    let run = run.map_err(|error| error.to_string())?;
    let mut run = run.ok_or("towers cannot do that")?;
    // Every second run is recorded.
    if seed.is_multiple_of(2) {
        run = run.with_timeline().map_err(|error| error.to_string())?;
    }
    let mut check = Literal::<T>::new(scheme, problem, &NoFiles);
    look_at_planes(&mut run, &mut check)?;
    let (fetched, all) = (peers.bytes_read(), run.memory_bytes());
    let planes = scheme.grid.cells[Axis::OUTER] as u64;
    assert!(fetched <= 2 * all / planes, "{fetched} bytes of {all}");
    let done = execute(
        &mut run,
        Some(&mut check),
        Company::default(),
        &Watch::default(),
    );
    done.map_err(|error| format!("{error:?}\n{scheme}"))?;
    if let Some(timeline) = run.timeline() {
        timelines::check(&timeline)?;
        let ops = &timeline.operations;
        let of = |kind| ops.iter().filter(move |op| op.kind == kind);
        let sent: u64 = of(Kind::Send).map(|op| op.amount).sum();
        let runs = of(Kind::Run).count() as u64;
        assert_eq!((runs, sent), (run.launches(), run.sent()));
    }
    assert_eq!(run.timeline().is_some(), seed.is_multiple_of(2));
    Ok(Done {
        launches: peers.launches(),
        sent: run.sent(),
        changes: peers.changes(),
    })
}

fn on_devices_any(scheme: &Scheme, problem: &Problem, program: StripedProgram, seed: u64) -> Done {
    let run = match scheme.precision {
        Precision::F32 => on_devices::<f32>,
        Precision::F64 => on_devices::<f64>,
    };
    let done = run(scheme, problem, program, seed);
    done.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
}

/// Launches of towers without rows access no planes, and have work queues and words of progress all the same.
#[test]
fn launches_without_planes_take_turns() {
    let Some(library) = library() else { return };
    let resolved = resolved_in(super::random_towers::WITHOUT_ROWS, Precision::F64);
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    for seed in 0..6 {
        let device = Interpreted::new();
        let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 2)");
        let cut = Cut {
            borders: vec![17],
            columns: 1 + seed as i64 % 2,
            in_flight: 2,
            gap: 0,
        };
        let program = striped_program(library, scheme, &plan, &model, &cut);
        on_devices_any(scheme, problem, program.expect("stripes"), seed);
    }
}

/// FDTD of two orders and elastic waves on two and three devices with stripes of different widths: sources in points
/// and volumes, probes, slices across all axes, volumes.
#[test]
fn several_devices_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let cases = [
        (
            maxwell(4, Precision::F32, [16, 34, 3]),
            "torre(D = 1, TH = 2)",
            Cut {
                borders: vec![15],
                columns: 2,
                in_flight: 3,
                gap: 2,
            },
        ),
        (
            maxwell(2, Precision::F64, [13, 44, 3]),
            "(x, y): diamond(W = 3) lean +x height 2; z: span",
            Cut {
                borders: vec![14, 30],
                columns: 2,
                in_flight: 2,
                gap: 0,
            },
        ),
        (
            elasticity(Precision::F32, [11, 44, 3]),
            "torre(W = 6, TH = 2)",
            Cut {
                borders: vec![24],
                columns: 2,
                in_flight: 2,
                gap: 5,
            },
        ),
    ];
    for (seed, (scheme, schedule, cut)) in cases.into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        problem.sources.extend(volume_sources(&mut rng, &scheme, 1));
        slices_and_a_volume(&mut problem, &scheme, [4, 6], 8);
        problem.steps = 8;
        let device = Interpreted::new();
        let (plan, model) = plan_of(&device, &scheme, &problem, schedule);
        let program = striped_program(library, &scheme, &plan, &model, &cut);
        let program = program.expect("stripes");
        // A device has memory for its stripe.
        let whole = plan.kernels.layout.bytes();
        assert!(program.layout.bytes() < whole, "{seed}: {whole}");
        let done = on_devices_any(&scheme, &problem, program, seed as u64);
        let all = done.launches.iter().all(|launches| *launches > 4);
        assert!(
            all && done.sent > 0 && done.changes > 20,
            "{seed}: {done:?}"
        );
    }
}

/// Absorbing layers and media: states lie in the stripes of both devices, across the border, too.
#[test]
fn several_devices_amend_layers_with_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let text = "use std::maxwell::maxwell_media
problem p {
  scheme maxwell_media
  domain 12 x 32 x 8
  boundary x: cpml(3), y: cpml(3), z: pec | cpml(2)
  coef eps = if y < 9 then 2.5 else 1
  source E.z at (7, 15, 3) += exp(-((t - 3)/2)^2)
  probe E.z at (9, 18, 6)
  steps 6
}
";
    let world = FileWorld::beside(std::path::Path::new("."));
    let resolved = load(&world, &Source::new("layers", text), &Options::default());
    let resolved = resolved.unwrap_or_else(|e| panic!("{e:?}"));
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 3)");
    let cut = Cut {
        borders: vec![17],
        columns: 2,
        in_flight: 2,
        gap: 1,
    };
    let program = striped_program(library, scheme, &plan, &model, &cut).expect("stripes");
    let zones = program.layout.zones.iter();
    let overlap = program.stripes.overlap(0);
    let crosses = |b: &torre_compiler::layout::BoxLayout| {
        !b.region[Axis::MIDDLE].intersect(overlap).is_empty()
    };
    assert!(zones.flat_map(|zone| &zone.boxes).any(crosses));
    let done = on_devices_any(scheme, problem, program, 3);
    assert!(
        done.launches.iter().all(|launches| *launches > 4),
        "{done:?}"
    );
}

/// Random schemes with and without zones, with all kinds of ends but periodic ones along the first two axes.
#[test]
fn random_problems_on_several_devices_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let limits = Limits {
        length: 12,
        width: 6,
        reach: 2,
        ..LIMITS
    };
    let (mut tried, mut three, mut zoned) = (0, 0, 0);
    // In the last one a slice has rows that no device accesses.
    for seed in (0..5 * seeds().end / 3).chain([800]) {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        let periodic = |axis| scheme.grid.is_periodic(axis);
        if scheme.grid.dimensions() < 3 || periodic(Axis::OUTER) || periodic(Axis::MIDDLE) {
            continue;
        }
        let [width, height] = [rng.within(1, 3), rng.within(1, 3)];
        let frame = Frame::new(&scheme, &cones(&scheme)).opened();
        let slopes = [[1, 1, 0], [1, -1, 0]].map(|form| frame.slope(PerAxis(form)));
        let doubled = slopes.map(|slope| (slope * Rational::whole(2)).ceil());
        let slope = doubled[0].max(doubled[1]).max(1);
        let count = rng.within(2, 3);
        lengthen(&mut scheme, Axis::MIDDLE, count * rng.within(9, 15));
        if rng.once_in(2) {
            add_random_zones(&mut rng, &limits, &mut scheme);
        }
        let cells = scheme.grid.cells[Axis::MIDDLE];
        let mut problem = random_problem(&mut rng, &scheme);
        let period = i64::from(scheme.phases()) * 2;
        problem.steps = (period * rng.within(2, 3)) as u64;
        for output in &mut problem.outputs {
            output.every = (period * rng.within(1, 3)) as u64;
        }
        problem.outputs.truncate(2);
        let slope = slope as f64 / 2.0;
        let schedule =
            &format!("(outer, middle): diamond(W = {width}) slope {slope} height {height}");
        let device = Interpreted::new();
        let Some((plan, model)) = planned(&device, &scheme, &problem, schedule) else {
            continue;
        };
        let note = plan.note.as_ref();
        if plan.towers().is_none() || note.is_some_and(|note| note.contains("stage by stage")) {
            continue;
        }
        // Not all random amendments find their values in registers, on one device or several.
        let has_zones = !scheme.zones.is_empty();
        if has_zones && plan.compile_towers(library, &scheme, &model).is_err() {
            continue;
        }
        let towers = plan.towers().map_or(1, |p| p.program.towers.steps);
        let due = problem.outputs.iter().map(|output| output.every);
        let mut due = due.chain([problem.steps]);
        if due.any(|steps| !steps.is_multiple_of(towers)) {
            continue;
        }
        let cut = Cut {
            borders: (1..count)
                .map(|n| n * cells / count + rng.within(-3, 3))
                .collect(),
            columns: rng.within(1, 4),
            in_flight: rng.within(1, 3) as usize,
            gap: rng.within(0, 3),
        };
        let program = match striped_program(library, &scheme, &plan, &model, &cut) {
            Ok(program) => program,
            Err(NoStripes::Narrow { .. }) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        on_devices_any(&scheme, &problem, program, seed);
        tried += 1;
        three += u64::from(count == 3);
        zoned += u64::from(has_zones);
    }
    assert!(
        tried > 3 && three > 0 && zoned > 0,
        "{tried} {three} {zoned}"
    );
}

/// All values are on the devices before a device sends to another one, whatever the order of the work of queues.
#[test]
fn values_are_distributed_before_devices_send() {
    let Some(library) = library() else { return };
    let scheme = &maxwell(2, Precision::F32, [9, 30, 3]);
    let mut problem = random_problem(&mut Rng::new(1), scheme);
    (problem.sources, problem.outputs) = Default::default();
    problem.steps = 2;
    let problem = &problem;
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 2)");
    let cut = Cut {
        borders: vec![15],
        columns: 2,
        in_flight: 2,
        gap: 0,
    };
    let layout = &plan.kernels.layout;
    let mut check = Literal::<f32>::new(scheme, problem, &NoFiles);
    let checked = check.run(problem.steps, &Progress::default());
    checked.expect("steps");
    for seed in 0..10 {
        let program = striped_program(library, scheme, &plan, &model, &cut).expect("stripes");
        let calculation =
            Calculation::<f32>::arranged(layout.clone(), scheme, problem, &NoFiles, 1);
        let calculation = calculation.expect("a problem of finite values");
        let peers = InterpretedPeers::new(2);
        peers.reseed(seed);
        let run = Striped::new(calculation, &NoFiles, &peers, program);
        let mut run = run.expect("devices").expect("towers");
        let done = execute(&mut run, None, Company::default(), &Watch::default());
        done.expect("steps");
        let same = verify::compare(&run, &check);
        same.unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
    }
}

/// Stripes of packed rows, with what a run can ask for at ends of lines.
#[test]
fn several_devices_with_packed_rows_give_the_bits_of_the_reference() {
    use torre_compiler::testing::bounded;
    use torre_compiler::tower::Numbering;
    let Some(library) = library() else { return };
    let line = [Boundary::Pec, Boundary::Pmc];
    let sides = [
        [Boundary::Zero, Boundary::Pec],
        [Boundary::Pmc, Boundary::Zero],
        line,
    ];
    let scheme = bounded(maxwell(4, Precision::F32, [13, 34, 32]), sides);
    let problem = super::packed::problem_at_ends(5, &scheme);
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 1, TH = 2)");
    let cut = Cut {
        borders: vec![15],
        columns: 2,
        in_flight: 3,
        gap: 2,
    };
    let program = striped_program(library, &scheme, &plan, &model, &cut).expect("stripes");
    assert_eq!(program.towers.program.towers.numbering, Numbering::Packed);
    let done = on_devices_any(&scheme, &problem, program, 4);
    assert!(done.sent > 0, "{done:?}");
}
