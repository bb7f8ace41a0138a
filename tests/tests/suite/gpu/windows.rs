//! Time blocks in flight, and calculation windows: domains that are several times as large as the device's memory.

use super::*;
use torre_compiler::kernel::{KernelSet, layerwise_kernels};
use torre_compiler::layout::BoxLayout;
use torre_compiler::pipeline::{DeviceBuffer, Footprints, Window};
use torre_compiler::problem::OutputKind;
use torre_compiler::resolve::Resolved;
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::{Devices, HeldPlanes, InFlight, Pipelined, device_bytes};
use torre_runtime::host::memory::Memory;
use torre_runtime::run::checkpoint::{self, Earlier};
use torre_runtime::run::verify;
use torre_runtime::simulation::{Progress, Simulation};
use torre_runtime::timeline::Kind;
use torre_suite::interpreted::MAPPING;
use torre_suite::timelines;

/// Two time blocks in flight in groups of six planes, in a buffer that is mapped twice.
pub(super) const CIRCULAR: InFlight = InFlight {
    blocks: 2,
    group: 6,
    ahead: 1,
    spread: false,
    held: HeldPlanes::Circular {
        places: 0,
        unit: MAPPING,
    },
};

/// The kernels for values as a run has them.
pub(super) fn kernels(scheme: &Scheme, how: InFlight) -> KernelSet {
    let layout = match how.held.places() {
        Some(_) => Layout::for_window(scheme),
        None => Layout::for_gpu(scheme),
    };
    layerwise_kernels(scheme, layout.expect("a size that can be addressed"))
}

/// The towers of a plan with a calculation window, compiled.
pub(super) fn compiled_for_window(
    library: &Library,
    scheme: &Scheme,
    mut plan: DevicePlan,
    model: &DeviceModel,
) -> CompiledTowers {
    let arranged = plan.arrange_for_window(scheme);
    arranged.expect("a size that can be addressed");
    compiled(library, scheme, &plan, model)
}

/// The least number of planes for a window over the towers of a plan; `None` where these fit no groups of planes.
pub(super) fn least_places(
    scheme: &Scheme,
    problem: &Problem,
    towers: &CompiledTowers,
    how: InFlight,
) -> Option<i64> {
    let layout = &Layout::for_window(scheme).expect("a size that can be addressed");
    let of = &towers.program.towers;
    let mut footprints = Footprints::new(scheme, layout, of, towers.order, how.group, towers.steps);
    footprints.height(scheme, layout, towers.steps)?;
    let heights = vec![towers.steps; how.blocks];
    let window = Window {
        planes: footprints.planes(scheme, layout, &heights)?,
        ring: footprints.ring(),
        buffer: match how.held.unit() {
            Some(_) => DeviceBuffer::Circular { places: 0 },
            None => DeviceBuffer::Sliding { places: 0 },
        },
        devices: 1,
        in_flight: how.blocks,
        ahead: how.ahead,
        spread: how.spread,
    };
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
    // A ring may be shorter than a window.
    assert!(
        least.is_some() || window.ring.is_some(),
        "a buffer without a bound"
    );
    least
}

/// The work of a run by time blocks in flight.
#[derive(Debug)]
pub(super) struct Done {
    pub slides: u64,
    /// By how much the array is larger than the device's buffer.
    pub times: f64,
    /// How often all places were used, about.
    pub around: f64,
}

/// Bytes of files that are read or written at a time, few enough for many of them.
const PIECE: u64 = 8192;

/// The identity of the calculation of a state.
pub(super) fn identity<T: Value>(scheme: &Scheme, problem: &Problem) -> Identity {
    checkpoint::identity::<T>(scheme, problem, &LoadedFiles::default())
}

/// A calculation over the files of a folder, which goes on where it has a state.
fn calculation_over<'a, T: Value>(
    folder: &Path,
    layout: Layout,
    scheme: &'a Scheme,
    problem: &'a Problem,
    ghosts: RowGhosts,
) -> Result<(Calculation<'a, T>, StateFolder), String> {
    let own = &identity::<T>(scheme, problem);
    let resumed = StateFolder::has_state(folder);
    let files = match resumed {
        true => StateFolder::open(folder, &layout, own, ghosts),
        false => StateFolder::create(folder, &layout, own),
    };
    let files = files.map_err(|error| error.to_string())?;
    let map = files.file().map(layout.bytes()).expect("a file");
    let memory = Memory::of_file(map, &layout);
    let calculation = Calculation::of_memory(memory, layout, scheme, problem, &NoFiles);
    let mut calculation = calculation.expect("a problem that can be");
    let earlier = resumed.then(|| Earlier::open(folder, own).expect("a state"));
    match earlier.map(|earlier| earlier.resume_in_place(&mut calculation)) {
        Some(resumed) => resumed.expect("its records"),
        None => calculation.fill(1).expect("finite values"),
    }
    Ok((calculation, files))
}

/// Runs a problem by time blocks in flight, over the files of a folder or without, and by the reference, and compares
/// all that can be seen; a run that goes on is compared at its end.
fn compared<T: Value>(
    trial: &Trial<'_>,
    devices: Devices<'_>,
    folder: Option<&Path>,
) -> Result<Done, String> {
    let Trial {
        library,
        scheme,
        problem,
        towers,
        how,
    } = *trial;
    let set = kernels(scheme, how);
    let gpu = code::gpu_of(devices.device(0)).expect("a GPU that is known");
    let shape = Shape::of(scheme);
    let ptx = code::ptx(library, scheme, &set, shape, gpu).expect("valid IR");
    let layout = set.layout.clone();
    let (calculation, files): (Calculation<'_, T>, _) = match folder {
        Some(folder) => {
            let layout = layout.clone();
            let ghosts = towers.row_ghosts(scheme);
            let (calculation, files) = calculation_over(folder, layout, scheme, problem, ghosts)?;
            (calculation, Some(files))
        }
        None => {
            let layout = layout.clone();
            let calculation = Calculation::arranged(layout, scheme, problem, &NoFiles, 1);
            (calculation.expect("a problem of finite values"), None)
        }
    };
    let program = DeviceProgram {
        set: &set,
        ptx: &ptx,
        shape,
    };
    let run = Pipelined::new(calculation, &NoFiles, devices, program, towers, how);
    let run = run.map_err(|error| error.to_string())?;
    let mut run = run.ok_or("time blocks cannot do that")?;
    if let Some(files) = files {
        run = run.over(files, PIECE).map_err(|error| error.to_string())?;
    }
    // Every second run is recorded.
    let recorded = scheme.grid.cells[Axis::MIDDLE] % 2 == 0;
    if recorded {
        run = run.with_timeline().map_err(|error| error.to_string())?;
    }
    let resumed = run.steps() > 0;
    let mut check = Literal::<T>::new(scheme, problem, &NoFiles);
    if !resumed && folder.is_none() {
        look_at_planes(&mut run, &mut check)?;
    }
    let beside: Option<&mut dyn Simulation<T>> = match resumed {
        true => None,
        false => Some(&mut check),
    };
    let done = execute(&mut run, beside, Company::default(), &Watch::default());
    done.map_err(|error| format!("{error:?}\n{scheme}"))?;
    if resumed {
        let end = problem.steps;
        let checked = check.run(end, &Progress::default());
        checked.map_err(|error| format!("{error:?}"))?;
        verify::compare(&run, &check).map_err(|difference| difference.to_string())?;
    }
    if let Some(folder) = folder {
        check_sum(folder, &layout, &identity::<T>(scheme, problem))?;
    }
    let planes = scheme.grid.cells[Axis::OUTER] as f64;
    let timeline = run.timeline();
    let counted = timeline.as_ref().map(|timeline| {
        let ops = timeline.operations.iter();
        let slides = ops.filter(|op| op.kind == Kind::Slide).count();
        (timeline.devices.len(), slides as u64)
    });
    let slides = how.held.base().map_or(run.slides(), |_| 0);
    let expected = recorded.then_some((devices.count(), slides));
    assert_eq!(counted, expected);
    if let Some(timeline) = timeline {
        timelines::check(&timeline)?;
    }
    let times = how
        .held
        .places()
        .map_or(1.0, |places| planes / places as f64);
    let passes = problem.steps as f64 / (how.blocks as u64 * towers.steps) as f64;
    Ok(Done {
        slides: run.slides(),
        times,
        around: passes * times,
    })
}

/// A calculation by time blocks in flight.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub library: &'a Library,
    pub scheme: &'a Scheme,
    pub problem: &'a Problem,
    pub towers: &'a CompiledTowers,
    pub how: InFlight,
}

impl Trial<'_> {
    /// Runs over files in a folder.
    pub fn over_files(&self, devices: Devices<'_>, folder: &Path) -> Result<Done, String> {
        self.compared(devices, Some(folder))
    }

    /// Runs over memory.
    pub fn in_flight(&self, devices: Devices<'_>) -> Result<Done, String> {
        self.compared(devices, None)
    }

    fn compared(&self, devices: Devices<'_>, folder: Option<&Path>) -> Result<Done, String> {
        let run = match self.scheme.precision {
            Precision::F32 => compared::<f32>,
            Precision::F64 => compared::<f64>,
        };
        run(self, devices, folder)
    }
}

/// A problem with layers of the library.
pub(super) fn with_layers(text: &str) -> Resolved {
    let world = FileWorld::beside(std::path::Path::new("."));
    let resolved = load(&world, &Source::new("layers", text), &Options::default());
    resolved.unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Sources on one cell, or a few; and slices, volumes and probes.
pub(super) fn few_cells(problem: &mut Problem) {
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
                held: HeldPlanes::All,
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
                held: HeldPlanes::All,
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
                held: HeldPlanes::All,
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
        // Planes that slide, and planes that go around.
        let ways = [(0, None), (0, Some(MAPPING)), (7, Some(MAPPING))];
        for (way, (extra, circular)) in ways.into_iter().enumerate() {
            let least = least_places(&scheme, &problem, towers, how).expect("groups");
            let places = least + extra;
            let how = InFlight {
                held: HeldPlanes::window(places, circular),
                ..how
            };
            let device = Interpreted::new();
            device.reseed(seed as u64 + extra as u64);
            let trial = Trial {
                library,
                scheme: &scheme,
                problem: &problem,
                towers,
                how,
            };
            let done = trial
                .in_flight(Devices::One(&device))
                .expect("the bits of the reference");
            let moved = |done: &Done| match circular {
                Some(_) => done.slides == 0 && done.around > 2.0,
                None => done.slides > 2,
            };
            assert!(moved(&done) && device.changes() > 20, "{seed}: {done:?}");
            // Each of these over files once.
            if way != seed {
                continue;
            }
            let folder = tempfile::tempdir().expect("a folder");
            let device = Interpreted::new();
            device.reseed(seed as u64 + extra as u64);
            let path = folder.path();
            let done = trial.over_files(Devices::One(&device), path);
            let done = done.expect("the bits of the reference");
            assert!(moved(&done), "{seed}: {done:?}");
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
    let mut how = CIRCULAR;
    how = how.with_places(least_places(&scheme, &problem, towers, how).expect("groups"));
    let set = kernels(&scheme, how);
    let needed = device_bytes(&scheme, &problem, &set.layout, towers.steps, how, 0);
    // Tables of the time blocks lie beside that.
    let memory = needed + (1 << 20);
    assert!(set.layout.bytes() > 3 * needed, "{needed}");
    let device = Interpreted::with_memory(memory);
    let trial = Trial {
        library,
        scheme: &scheme,
        problem: &problem,
        towers,
        how,
    };
    let done = trial
        .in_flight(Devices::One(&device))
        .expect("the bits of the reference");
    assert!(done.times > 3.0 && done.around > 6.0, "{done:?}");
    let small = Interpreted::with_memory(needed - 1);
    let refused = trial.in_flight(Devices::One(&small));
    assert!(refused.is_err_and(|error| error.contains("bytes of the GPU's memory")));
    // A plane less is found before anything runs.
    let places = how.held.places().expect("a window");
    let how = how.with_places(places - 1);
    let device = Interpreted::new();
    let refused = Trial { how, ..trial }.in_flight(Devices::One(&device));
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
            held: HeldPlanes::All,
        };
        Trial {
            library,
            scheme: &scheme,
            problem: &problem,
            towers,
            how,
        }
        .in_flight(Devices::One(&device))
        .expect("the bits of the reference");
        assert!(device.changes() > 5, "{seed}");
        // Once everything, and once some planes.
        let (fetched, all) = (device.bytes_read(), kernels(&scheme, how).layout.bytes());
        assert!(fetched < all * 3 / 2, "{fetched} bytes of {all}");
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
        held: HeldPlanes::window(0, Some(MAPPING)),
    };
    how = how.with_places(least_places(&scheme, &problem, towers, how).expect("groups"));
    let done = Trial {
        library,
        scheme: &scheme,
        problem: &problem,
        towers,
        how,
    }
    .in_flight(Devices::One(&device))
    .expect("the bits of the reference");
    assert!(done.slides == 0 && done.around > 1.5, "{done:?}");
}

/// Absorbing layers: layers at the ends of the first axis stay on the device, the others move with the window.
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
    let resolved = with_layers(text);
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 1, TH = 2)");
    let towers = &compiled_for_window(library, scheme, plan, &model);
    let mut how = InFlight {
        blocks: 3,
        group: 5,
        ahead: 1,
        spread: true,
        held: HeldPlanes::All,
    };
    how = how.with_places(least_places(scheme, problem, towers, how).expect("groups"));
    let zones = kernels(scheme, how).layout.zones;
    let [moving, fixed] = [true, false].map(|moves| {
        let zones = zones.iter().filter(|zone| zone.in_planes == moves);
        zones
            .flat_map(|zone| &zone.boxes)
            .collect::<Vec<&BoxLayout>>()
    });
    assert_eq!([moving.len(), fixed.len()], [2, 2]);
    let trial_of = |circular: Option<u64>| Trial {
        library,
        scheme,
        problem,
        towers,
        how: InFlight {
            held: HeldPlanes::window(how.held.places().expect("a window"), circular),
            ..how
        },
    };
    for circular in [None, Some(MAPPING)] {
        let device = Interpreted::new();
        device.reseed(7);
        let done = trial_of(circular)
            .in_flight(Devices::One(&device))
            .expect("the bits of the reference");
        let slides = circular.is_none();
        assert_eq!(done.slides > 2, slides, "{done:?}");
        assert!(done.times > 1.3, "{done:?}");
    }
    let trial = trial_of(Some(MAPPING));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let device = Interpreted::new();
    let done = trial.over_files(Devices::One(&device), path);
    done.expect("the bits of the reference");
}

/// A run over files that a device gives up, after any number of launches, goes on with the last whole pass and ends
/// with the same bits.
#[test]
fn windows_over_files_go_on_where_they_ended() {
    let Some(library) = library() else { return };
    let scheme = maxwell(4, Precision::F32, [40, 7, 6]);
    let mut rng = Rng::new(5);
    let mut problem = random_problem(&mut rng, &scheme);
    few_cells(&mut problem);
    problem.outputs.clear();
    problem.steps = 16;
    let device = Interpreted::new();
    let (plan, model) = plan_of(&device, &scheme, &problem, "torre(D = 2, TH = 2)");
    let towers = &compiled_for_window(library, &scheme, plan, &model);
    let mut how = InFlight {
        blocks: 2,
        group: 6,
        ahead: 1,
        spread: true,
        held: HeldPlanes::window(0, Some(MAPPING)),
    };
    how = how.with_places(least_places(&scheme, &problem, towers, how).expect("groups"));
    let run = |device: &Interpreted, folder: &Path| {
        Trial {
            library,
            scheme: &scheme,
            problem: &problem,
            towers,
            how,
        }
        .over_files(Devices::One(device), folder)
    };
    let folder = tempfile::tempdir().expect("a folder");
    run(&device, folder.path()).expect("the bits of the reference");
    assert_eq!((device.signals(), device.locked()), (0, 0));
    let launches = device.launches();
    let own = identity::<f32>(&scheme, &problem);
    let mut steps = std::collections::BTreeSet::new();
    let mut last = 1;
    while last < launches {
        let folder = tempfile::tempdir().expect("a folder");
        let device = Interpreted::new();
        device.fail_after(last);
        let error = run(&device, folder.path()).expect_err("it gave up");
        assert!(error.contains("this many are enough"), "{error}");
        assert_eq!(device.locked(), 0);
        steps.insert(Earlier::open(folder.path(), &own).expect("a state").step());
        let device = Interpreted::new();
        run(&device, folder.path()).expect("the bits of the reference");
        last += launches / 4 + 1;
    }
    assert!(steps.len() > 2, "{steps:?}");
}
