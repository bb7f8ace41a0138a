//! Time blocks in flight, and calculation windows: domains that are several times as large as what the device holds.

use super::*;
use torre_compiler::kernel::KernelSet;
use torre_compiler::layout::{BoxLayout, Layout};
use torre_compiler::pipeline::{Footprints, Window};
use torre_compiler::problem::OutputKind;
use torre_runtime::gpu::{InFlight, Pipelined, Queues, device_bytes};
use torre_runtime::program::layerwise_kernels_for;

/// The kernels for values as a run has them.
fn kernels(scheme: &Scheme, how: InFlight) -> KernelSet {
    let layout = match how.places {
        Some(_) => Layout::for_window(scheme),
        None => Layout::for_gpu(scheme),
    };
    layerwise_kernels_for(scheme, layout.expect("a size that can be addressed"))
}

/// The towers of a plan with a calculation window, compiled.
fn compiled_for_window(
    library: &Library,
    scheme: &Scheme,
    mut plan: DevicePlan,
    model: &DeviceModel,
) -> CompiledTowers {
    let arranged = plan.arrange_for_window(scheme);
    arranged.expect("a size that can be addressed");
    compiled(library, scheme, &plan, model)
}

/// The least number of planes for a window over the towers of a plan; `None` where these cannot be put into groups of
/// planes.
fn least_places(
    scheme: &Scheme,
    problem: &Problem,
    towers: &CompiledTowers,
    how: InFlight,
) -> Option<i64> {
    let layout = &Layout::for_window(scheme).expect("a size that can be addressed");
    let of = &towers.program.towers;
    let mut footprints = Footprints::new(scheme, layout, of, towers.order, how.group, towers.steps);
    footprints.height(scheme, layout, towers.steps)?;
    let window = Window {
        planes: footprints.held(),
        places: None,
        in_flight: how.blocks,
        ahead: how.ahead,
        spread: how.spread,
    };
    let heights = vec![towers.steps; how.blocks];
    let slice = |output: &problem::Output| match output.kind {
        OutputKind::Slice {
            axis: Axis::OUTER,
            index,
        } => Some(Interval::new(index, index + 1)),
        OutputKind::Slice { .. } => Some(Interval::new(0, scheme.grid.cells[Axis::OUTER])),
        OutputKind::Volume => None,
    };
    let gathers: Vec<Interval> = problem.outputs.iter().filter_map(slice).collect();
    let gathers: Vec<Interval> = gathers.into_iter().map(|g| footprints.along(g)).collect();
    let least = footprints.least_places(scheme, layout, &heights, &window, &gathers);
    Some(least.expect("a buffer without a bound"))
}

/// What a run by time blocks in flight did.
#[derive(Debug)]
struct Done {
    slides: u64,
    /// By how much the array is larger than the device's buffer.
    times: f64,
}

/// Runs a problem by time blocks in flight, and by the reference, and compares all that can be seen.
fn in_flight<T: Value>(
    library: &Library,
    device: &dyn Queues,
    scheme: &Scheme,
    problem: &Problem,
    towers: &CompiledTowers,
    how: InFlight,
) -> Result<Done, String> {
    let set = kernels(scheme, how);
    let gpu = code::gpu_of(device).expect("a GPU that is known");
    let shape = Shape::of(scheme);
    let ptx = code::ptx(library, scheme, &set, shape, gpu).expect("valid IR");
    let calculation: Calculation<'_, T> =
        Calculation::arranged(set.layout.clone(), scheme, problem, &NoFiles, 1)
            .expect("a problem of finite values");
    let program = DeviceProgram {
        set: &set,
        ptx: &ptx,
        shape,
    };
    let run = Pipelined::new(calculation, &NoFiles, device, program, towers, how);
    let run = run.map_err(|error| error.to_string())?;
    let mut run = run.ok_or("time blocks cannot do that")?;
    let mut check = Literal::<T>::new(scheme, problem, &NoFiles);
    let done = execute(
        &mut run,
        Some(&mut check),
        Company::default(),
        &Watch::default(),
    );
    done.map_err(|error| format!("{error:?}\n{scheme}"))?;
    let planes = scheme.grid.cells[Axis::OUTER] as f64;
    Ok(Done {
        slides: run.slides(),
        times: how.places.map_or(1.0, |places| planes / places as f64),
    })
}

fn in_flight_any(
    library: &Library,
    device: &dyn Queues,
    scheme: &Scheme,
    problem: &Problem,
    towers: &CompiledTowers,
    how: InFlight,
) -> Done {
    let run = match scheme.precision {
        Precision::F32 => in_flight::<f32>,
        Precision::F64 => in_flight::<f64>,
    };
    run(library, device, scheme, problem, towers, how).expect("the bits of the reference")
}

/// Sources on one cell, or a few; and slices, volumes and probes.
fn few_cells(problem: &mut Problem) {
    for (n, source) in problem.sources.iter_mut().enumerate() {
        for axis in Axis::ALL {
            let range = source.region[axis];
            let at = [range.lo, range.hi - 1, (range.lo + range.hi) / 2][n % 3];
            source.region[axis] = Interval::new(at, at + 1);
        }
    }
}

/// A window over lines along one of three axes, with everything that a run can ask for.
#[test]
fn windows_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let cases = [
        (
            maxwell(4, Precision::F32, [70, 8, 6]),
            "torre(D = 2, TH = 2)",
            InFlight {
                blocks: 3,
                group: 6,
                ahead: 1,
                spread: true,
                places: None,
            },
        ),
        (
            maxwell(2, Precision::F64, [48, 9, 6]),
            "(x, y): diamond(W = 3) lean +x height 4; z: span",
            InFlight {
                blocks: 2,
                group: 5,
                ahead: 0,
                spread: false,
                places: None,
            },
        ),
        (
            elasticity(Precision::F32, [60, 8, 6]),
            "torre(W = 6, TH = 2)",
            InFlight {
                blocks: 2,
                group: 9,
                ahead: 2,
                spread: true,
                places: None,
            },
        ),
    ];
    for (seed, (scheme, schedule, how)) in cases.into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        few_cells(&mut problem);
        problem.sources.extend(volume_sources(&mut rng, &scheme, 1));
        slices_and_a_volume(&mut problem, &scheme, [6, 8], 10);
        problem.steps = 14;
        let device = Interpreted::new();
        let (plan, model) = plan_of(&device, &scheme, &problem, schedule);
        let towers = &compiled_for_window(library, &scheme, plan, &model);
        for extra in [0, 7].into_iter().take(2 - seed.min(1)) {
            let least = least_places(&scheme, &problem, towers, how).expect("groups");
            let places = least + extra;
            let how = InFlight {
                places: Some(places),
                ..how
            };
            let device = Interpreted::new();
            device.reseed(seed as u64 + extra as u64);
            let done = in_flight_any(library, &device, &scheme, &problem, towers, how);
            assert!(done.slides > 2 && device.changes() > 20, "{seed}: {done:?}");
        }
    }
}

/// The device has less memory than the array; and with less than a window takes it says so.
#[test]
fn windows_keep_to_the_memory_of_the_device() {
    let Some(library) = library() else { return };
    let scheme = maxwell(4, Precision::F32, [160, 7, 4]);
    let mut problem = random_problem(&mut Rng::new(1), &scheme);
    (problem.sources, problem.outputs) = Default::default();
    problem.steps = 8;
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 2, TH = 2)");
    let towers = &compiled_for_window(library, &scheme, plan, &model);
    let mut how = InFlight {
        blocks: 2,
        group: 6,
        ahead: 1,
        spread: false,
        places: None,
    };
    how.places = least_places(&scheme, &problem, towers, how);
    let set = kernels(&scheme, how);
    let needed = device_bytes(&scheme, &problem, &set.layout, towers.steps, how);
    // Tables of the time blocks lie beside that.
    let memory = needed + (1 << 20);
    assert!(set.layout.bytes() > 4 * needed, "{needed}");
    let device = Interpreted::with_memory(memory);
    let done = in_flight_any(library, &device, &scheme, &problem, towers, how);
    assert!(done.times > 4.0 && done.slides > 2, "{done:?}");
    let small = Interpreted::with_memory(needed - 1);
    let refused = in_flight::<f32>(library, &small, &scheme, &problem, towers, how);
    assert!(refused.is_err_and(|error| error.contains("bytes of the GPU's memory")));
    // A plane less is found before anything runs.
    how.places = how.places.map(|places| places - 1);
    let device = Interpreted::new();
    let refused = in_flight::<f32>(library, &device, &scheme, &problem, towers, how);
    assert!(refused.is_err_and(|error| error.contains("planes are needed at a time")));
}

/// The whole array on the device, with several time blocks in flight.
#[test]
fn time_blocks_in_flight_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    for (seed, (scheme, schedule)) in cases_of_towers([2, 4, 2]).into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        few_cells(&mut problem);
        for output in &mut problem.outputs {
            output.every = 4;
        }
        problem.steps = 8;
        let device = Interpreted::new();
        let (plan, model) = plan_of(&device, &scheme, &problem, &schedule);
        let towers = &compiled(library, &scheme, &plan, &model);
        let how = InFlight {
            blocks: 3,
            group: 4,
            ahead: 0,
            spread: true,
            places: None,
        };
        in_flight_any(library, &device, &scheme, &problem, towers, how);
        assert!(device.changes() > 5, "{seed}");
    }
}

/// Lines in z blocks: each group runs all of them, one after the other.
#[test]
fn windows_over_z_blocks_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let scheme = maxwell(4, Precision::F32, [44, 7, 75]);
    let mut problem = random_problem(&mut Rng::new(3), &scheme);
    few_cells(&mut problem);
    problem.outputs.clear();
    problem.steps = 6;
    let device = Interpreted::new();
    let lines = Some(Division::ZBlocks(1));
    let schedule = "torre(D = 2, TH = 2)";
    let (plan, model) = planned_for(&device, &scheme, &problem, schedule, lines).expect("a plan");
    let towers = &compiled_for_window(library, &scheme, plan, &model);
    let mut how = InFlight {
        blocks: 2,
        group: 6,
        ahead: 0,
        spread: false,
        places: None,
    };
    how.places = least_places(&scheme, &problem, towers, how);
    let done = in_flight_any(library, &device, &scheme, &problem, towers, how);
    assert!(done.slides > 1, "{done:?}");
}

/// Absorbing layers: those at the ends of the first axis stay on the device, the others move with the window.
#[test]
fn windows_amend_layers_with_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let text = "use std::maxwell::maxwell_media
problem p {
  scheme maxwell_media
  domain 56 x 9 x 8
  boundary x: cpml(3), y: cpml(2) | pec, z: pec | cpml(2)
  coef eps = if y < 5 then 2.5 else 1
  source E.z at (7, 4, 3) += exp(-((t - 3)/2)^2)
  probe E.z at (50, 5, 6)
  steps 12
}
";
    let world = FileWorld::beside(std::path::Path::new("."));
    let resolved = load(&world, &Source::new("layers", text), &Options::default());
    let resolved = resolved.unwrap_or_else(|e| panic!("{e:?}"));
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 2)");
    let towers = &compiled_for_window(library, scheme, plan, &model);
    let mut how = InFlight {
        blocks: 3,
        group: 5,
        ahead: 1,
        spread: true,
        places: None,
    };
    how.places = least_places(scheme, problem, towers, how);
    let zones = kernels(scheme, how).layout.zones;
    let [moving, fixed] = [true, false].map(|moves| {
        let zones = zones.iter().filter(|zone| zone.in_planes == moves);
        zones
            .flat_map(|zone| &zone.boxes)
            .collect::<Vec<&BoxLayout>>()
    });
    assert_eq!([moving.len(), fixed.len()], [2, 2]);
    device.reseed(7);
    let done = in_flight_any(library, &device, scheme, problem, towers, how);
    assert!(done.slides > 2 && done.times > 1.3, "{done:?}");
}

/// Random schemes on long grids, with all kinds of ends; towers up and down the first axis.
#[test]
fn random_problems_by_windows_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let limits = Limits {
        length: 14,
        width: 10,
        reach: 2,
        ..LIMITS
    };
    let (mut tried, mut slides, mut zoned) = (0, 0, 0);
    for seed in 0..seeds().end / 2 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        if scheme.grid.dimensions() < 3 || scheme.grid.is_periodic(Axis::OUTER) {
            continue;
        }
        let [width, height] = [rng.within(2, 5), rng.within(1, 3)];
        let frame = Frame::new(&scheme, &cones(&scheme)).opened();
        let slopes = [[1, 1, 0], [1, -1, 0]].map(|form| frame.slope(PerAxis(form)));
        let doubled = slopes.map(|slope| (slope * Rational::whole(2)).ceil());
        let slope = doubled[0].max(doubled[1]).max(1);
        let around = 4 * width * i64::from(scheme.grid.is_periodic(Axis::MIDDLE));
        let by = (around - scheme.grid.cells[Axis::MIDDLE]).max(0);
        lengthen(&mut scheme, Axis::MIDDLE, by);
        lengthen(&mut scheme, Axis::OUTER, rng.within(10, 30));
        if rng.once_in(2) {
            add_random_zones_for_gpus(&mut rng, &limits, &mut scheme);
        }
        let mut problem = random_problem(&mut rng, &scheme);
        let steps = i64::from(scheme.phases()) * rng.within(2, 5) * 2;
        problem.steps = steps as u64;
        for output in &mut problem.outputs {
            output.every = u64::from(scheme.phases()) * rng.within(1, 3) as u64 * 2;
        }
        problem.outputs.truncate(2);
        if rng.once_in(2) {
            problem.sources.extend(volume_sources(&mut rng, &scheme, 1));
        }
        let slope = slope as f64 / 2.0;
        let schedule =
            &format!("(outer, middle): diamond(W = {width}) slope {slope} height {height}");
        let device = Interpreted::new();
        let Some((mut plan, model)) = planned(&device, &scheme, &problem, schedule) else {
            continue;
        };
        if plan
            .note
            .as_ref()
            .is_some_and(|note| note.contains("stage by stage"))
        {
            continue;
        }
        let window = !rng.once_in(4);
        if window {
            let arranged = plan.arrange_for_window(&scheme);
            arranged.expect("a size that can be addressed");
        }
        // Not all random amendments find their values in registers.
        let has_zones = !scheme.zones.is_empty();
        let Ok((_, Some(towers))) = plan.compile(library, &scheme, &model) else {
            assert!(has_zones, "{seed}");
            continue;
        };
        let towers = &towers;
        let period = towers.program.towers.steps;
        let due = problem.outputs.iter().map(|output| output.every);
        if due
            .chain([problem.steps])
            .any(|steps| !steps.is_multiple_of(period))
        {
            continue;
        }
        let mut how = InFlight {
            blocks: rng.within(1, 3) as usize,
            group: rng.within(2, 9),
            ahead: rng.within(0, 2),
            spread: rng.once_in(2),
            places: None,
        };
        let more = rng.within(0, 1) * rng.within(0, 9);
        let Some(least) = least_places(&scheme, &problem, towers, how) else {
            continue;
        };
        if window {
            how.places = Some(least + more);
        }
        device.reseed(seed);
        let done = in_flight_any(library, &device, &scheme, &problem, towers, how);
        tried += 1;
        slides += u64::from(done.slides > 0);
        zoned += u64::from(has_zones && window);
    }
    assert!(
        tried > 4 && slides > 2 && zoned > 0,
        "{slides} {zoned} of {tried}"
    );
}
