//! A run on a GPU goes on while its files are written. The files are the reference's, bit by bit, and so are the files
//! that a failing run leaves. The GPU is interpreted; where there is a real one, it does the same.

mod results;

use results::{add_spectra, add_states, squares};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use torre_compiler::backend::interp::Interp;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::cone::cones;
use torre_compiler::kernel::{KernelSet, RowKernel, UpdateSet};
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::layerwise::Shape;
use torre_compiler::layout::Layout;
use torre_compiler::problem::{Output, OutputKind, Problem};
use torre_compiler::schedule::{Frame, notation};
use torre_compiler::scheme::{Op, Precision, Scheme, ZoneSet};
use torre_compiler::statics::NoFiles;
use torre_compiler::testing::{Effort, Rng, add_layers, maxwell, random_tiling};
use torre_compiler::tile::lower;
use torre_grammar::parse_schedule;
use torre_grammar::source::Source;
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::{CudaDevice, Device, DeviceModel, DeviceProgram, OnDevice, code};
use torre_runtime::host::{Calculation, Compiled, Execution};
use torre_runtime::plan::gpu::DevicePlanner;
use torre_runtime::run::checkpoint::Earlier;
use torre_runtime::run::{
    Checkpoints, Company, Literal, Outputs, Pictures, Records, SeriesRecords, Spectra,
    VolumeFormat, Wanted, Watch, checkpoint, execute, verify,
};
use torre_runtime::simulation::{Progress, RunError, Simulation, Values};
use torre_suite::interpreted::Interpreted;
use torre_suite::random::random_problem;

/// A run, and its towers, if it has any.
struct Case {
    scheme: Scheme,
    problem: Problem,
    schedule: Option<&'static str>,
    /// Steps between checkpoints.
    checkpoints: u64,
}

impl Case {
    /// Slices and volumes of all components, with the intervals of `every` in turn.
    fn new(cells: [i64; 3], steps: u64, every: &[u64], schedule: Option<&'static str>) -> Case {
        let mut scheme = maxwell(4, Precision::F32, cells);
        if cells[2] == 9 {
            add_layers(&mut scheme, PerAxis([2, 0, 1]));
        }
        let mut problem = random_problem(&mut Rng::new(7), &scheme);
        problem.steps = steps;
        let volumes: Vec<Output> = problem
            .outputs
            .iter()
            .map(|slice| Output {
                state: None,
                name: format!("v{}", slice.name),
                kind: OutputKind::Volume,
                ..slice.clone()
            })
            .collect();
        problem.outputs.extend(volumes);
        for (output, every) in problem.outputs.iter_mut().zip(every.iter().cycle()) {
            output.every = *every;
        }
        problem.series = vec![squares(&scheme, every.iter().copied().max().unwrap_or(1))];
        add_states(&scheme, &mut problem, every);
        add_spectra(&mut problem);
        if schedule.is_some() {
            for source in &mut problem.sources {
                for axis in [Axis::OUTER, Axis::MIDDLE] {
                    source.region[axis].hi = source.region[axis].lo + 1;
                }
            }
        }
        Case {
            scheme,
            problem,
            schedule,
            checkpoints: 5,
        }
    }

    /// Volumes and records of some cells in two planes that are far from each other, and states in one of them, after
    /// each of nine time blocks.
    fn boxes(cells: [i64; 3], schedule: Option<&'static str>) -> Case {
        let mut case = Case::new(cells, 36, &[4], schedule);
        let near = |plane: i64| {
            let [x, rest] = [(plane, plane + 1), (2, 5)].map(|(lo, hi)| Interval::new(lo, hi));
            PerAxis([x, rest, rest])
        };
        case.checkpoints = 100;
        case.problem.probes.truncate(1);
        case.problem.outputs.retain(|o| o.needs_values());
        for (number, output) in case.problem.outputs.iter_mut().enumerate() {
            output.region = match output.state {
                Some(_) => near(1),
                None => near([1, 25][number % 2]),
            };
            output.kind = OutputKind::Volume;
        }
        for term in case.problem.series.iter_mut().flat_map(|s| &mut s.terms) {
            term.region = near(25);
        }
        case
    }

    /// Few steps with much to write, stage by stage and by towers, and many steps, in which more records wait than
    /// there is room for.
    fn all() -> Vec<Case> {
        let slices = [29, 31, 37, 41, 43, 47];
        let volumes = [1100; 6];
        let many = Case::new([2, 2, 4], 2200, &[slices, volumes].concat(), None);
        vec![
            Case::new([5, 6, 8], 40, &[1, 2, 1, 3, 1], None),
            Case::new([5, 6, 9], 23, &[4, 9, 4, 12], None),
            Case::new([14, 15, 8], 26, &[8, 8, 16], Some("torre(D = 1, TH = 4)")),
            Case {
                checkpoints: 1100,
                ..many
            },
        ]
    }

    /// Runs on a device, from the last checkpoint in the folder if there is one.
    fn run(&self, library: &Library, device: &dyn Device, folder: &Path) -> Result<(), RunError> {
        self.with(library, device, Some(folder), |run| self.write(run, folder))
    }

    /// Makes a run ready, from the last checkpoint in a folder if there is one.
    fn with<R>(
        &self,
        library: &Library,
        device: &dyn Device,
        folder: Option<&Path>,
        then: impl FnOnce(&mut OnDevice<'_, f32>) -> Result<R, RunError>,
    ) -> Result<R, RunError> {
        let Case {
            scheme,
            problem,
            schedule,
            ..
        } = self;
        let set = code::kernels(scheme).expect("a size that can be addressed");
        let gpu = code::gpu_of(device)?;
        let shape = Shape::of(scheme);
        let ptx = code::ptx(library, scheme, &set, shape, gpu).expect("valid IR");
        let layout = set.layout.clone();
        let mut calculation = Calculation::arranged(layout, scheme, problem, &NoFiles, 1)?;
        let state = folder.map(|folder| folder.join("state"));
        if let Some(state) = state.filter(|state| state.join("state.checkpoint").is_file()) {
            let identity = checkpoint::identity::<f32>(scheme, problem, &LoadedFiles::default());
            Earlier::open(&state, &identity)?.resume(&mut calculation)?;
        }
        let program = DeviceProgram {
            set: &set,
            ptx: &ptx,
            shape,
        };
        let mut run = OnDevice::new(calculation, &NoFiles, device, program)?;
        if let Some(written) = schedule {
            let model = DeviceModel::of(device, None, 1e9)?;
            let planner = DevicePlanner::new(scheme, problem, &model).expect("a size");
            let source = Source::new("--schedule", *written);
            let written = parse_schedule(&source).expect("a schedule");
            let template = notation::read(&source, &written, scheme, &planner.planner.frame);
            let plan = planner.best(&template.expect("a schedule"));
            let (plan, _) = plan.expect("towers that fit");
            let towers = plan.compile_towers(library, scheme, &model);
            run = run.by_towers(&towers.expect("valid IR").expect("towers"))?;
            assert!(run.without_towers().is_none());
        }
        then(&mut run)
    }

    /// Runs on the processor, from the last checkpoint in the folder.
    fn run_on_host(&self, folder: &Path, order: HostOrder) -> Result<(), RunError> {
        let Case {
            scheme, problem, ..
        } = self;
        let kernels = scheme.stage_ids().flat_map(|stage| {
            let count = scheme.stages[stage.index()].updates.len();
            let singles = (0..count).map(|i| UpdateSet(1 << i));
            let sets: BTreeSet<UpdateSet> = singles.chain([UpdateSet::all(count)]).collect();
            sets.into_iter().map(move |updates| RowKernel {
                stage,
                phase: 0,
                updates,
                zones: ZoneSet::default(),
            })
        });
        let layout = Layout::new(scheme).expect("a size that can be addressed");
        let set = KernelSet::new(scheme, layout, kernels.collect::<Vec<_>>());
        let frame = Frame::new(scheme, &cones(scheme));
        let tiling = random_tiling(&mut Rng::new(5), scheme, &frame);
        let program = lower(scheme, &frame, &tiling).expect("fitting faces are legal");
        let mut calculation = Calculation::new(scheme, problem, &NoFiles, 2)?;
        let identity = checkpoint::identity::<f32>(scheme, problem, &LoadedFiles::default());
        let state = folder.join("state");
        if state.join("state.checkpoint").is_file() {
            Earlier::open(&state, &identity)?.resume(&mut calculation)?;
        }
        let mut run = Compiled {
            calculation,
            set: &set,
            code: &Interp::new(scheme, &set),
            execution: &match order {
                HostOrder::Layerwise => Execution::Layerwise,
                HostOrder::Tiles => Execution::Tiles(program),
            },
            threads: 2,
            tuning: None,
        };
        self.write(&mut run, folder)
    }

    /// Runs to the end, with checkpoints, and writes all there is.
    fn write(&self, run: &mut dyn Simulation<f32>, folder: &Path) -> Result<(), RunError> {
        let (scheme, problem) = (&self.scheme, &self.problem);
        let identity = checkpoint::identity::<f32>(scheme, problem, &LoadedFiles::default());
        let results = folder.join("results");
        let wanted = Wanted {
            format: VolumeFormat::Npy,
            save_initial: true,
            save_final: true,
            keep_volumes: true,
            pictures: Pictures::default(),
        };
        let outputs = Outputs::create(&results, wanted)?;
        let state = folder.join("state");
        std::fs::create_dir_all(&state).expect("a folder");
        let earlier = match state.join("state.checkpoint").is_file() {
            true => Some(Earlier::open(&state, &identity)?),
            false => None,
        };
        let before = earlier.as_ref().map(|earlier| earlier.series(problem));
        let series = SeriesRecords::new(problem, &NoFiles, before.transpose()?);
        let before = earlier.as_ref().map(|earlier| earlier.spectra(problem));
        let spectra = Spectra::new(problem, before.transpose()?);
        let checkpoints = Checkpoints::new(&state, self.checkpoints, identity);
        let company = Company {
            records: Records {
                series: Some(&series),
                spectra: Some(&spectra),
            },
            outputs: Some(&outputs),
            checkpoints: Some(&checkpoints),
            threads: 2,
        };
        execute(run, None, company, &Watch::default()).map(|_| ())
    }

    /// The files that the reference writes.
    fn expected(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut reference = Literal::<f32>::new(&self.scheme, &self.problem, &NoFiles);
        let written = self.write(&mut reference, folder.path());
        written.expect("the reference runs");
        content(folder.path())
    }
}

/// How a run on the processor goes: stage by stage, or in tiles.
#[derive(Clone, Copy)]
enum HostOrder {
    Layerwise,
    Tiles,
}

/// All files below a folder.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("below the folder");
            let bytes = std::fs::read(&path).expect("a file");
            files.insert(name.to_path_buf(), bytes);
        }
    }
    files
}

/// Says which files differ, not how.
fn assert_same(found: &BTreeMap<PathBuf, Vec<u8>>, expected: &BTreeMap<PathBuf, Vec<u8>>) {
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected));
    let differ: Vec<_> = found.iter().filter(|(k, v)| expected[*k] != **v).collect();
    let differ: Vec<_> = differ.into_iter().map(|(name, _)| name).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

fn library() -> Option<&'static Library> {
    Effort::Quick.choose();
    Library::open()
        .inspect_err(|error| eprintln!("skipped: {error}"))
        .ok()
}

fn real() -> Option<CudaDevice> {
    CudaDevice::open(0)
        .inspect_err(|error| eprintln!("skipped: tests on a GPU: {error}"))
        .ok()
}

fn compare(library: &Library, device: &dyn Device, case: &Case) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = case.run(library, device, folder.path());
    run.expect("a run without errors");
    assert_same(&content(folder.path()), &case.expected());
}

#[test]
fn files_are_those_of_the_reference() {
    let Some(library) = library() else { return };
    for case in Case::all() {
        let device = Interpreted::new();
        compare(library, &device, &case);
        // Probes, slices, and all values.
        assert!((2..=3).contains(&device.readings_together()));
    }
}

#[test]
fn files_of_a_real_gpu_are_those_of_the_reference() {
    let (Some(library), Some(device)) = (library(), real()) else {
        return;
    };
    for case in Case::all() {
        compare(library, &device, &case);
    }
    // Fields that take several pieces of page-locked memory.
    let large = Case::new([80, 80, 256], 2, &[1, 2], None);
    compare(library, &device, &large);
}

#[test]
fn a_run_that_fails_goes_on_from_its_checkpoint() {
    let Some(library) = library() else { return };
    let mut resumed = 0;
    for case in &Case::all()[..3] {
        let expected = case.expected();
        let whole = Interpreted::new();
        let folder = tempfile::tempdir().expect("a folder");
        case.run(library, &whole, folder.path()).expect("a run");
        // Towers take their time in the interpreter.
        let parts: &[u64] = if case.schedule.is_some() {
            &[3]
        } else {
            &[1, 4]
        };
        for part in parts {
            let folder = tempfile::tempdir().expect("a folder");
            let device = Interpreted::new();
            device.fail_after(whole.launches() * part / 5);
            let run = case.run(library, &device, folder.path());
            assert!(matches!(run, Err(RunError::Device(_))));
            let state = folder.path().join("state/state.checkpoint").is_file();
            let device = Interpreted::new();
            case.run(library, &device, folder.path()).expect("the rest");
            assert_eq!(state, device.launches() < whole.launches());
            resumed += u32::from(state);
            assert_same(&content(folder.path()), &expected);
        }
    }
    assert!(resumed >= 3, "{resumed}");
}

/// With layers, whose states a checkpoint has to hold.
#[test]
fn a_checkpoint_goes_on_in_other_schedules_and_back_ends() {
    let Some(library) = library() else { return };
    let towers = Some("torre(D = 1, TH = 4)");
    let whole = Case {
        checkpoints: 100,
        ..Case::new([10, 11, 9], 16, &[8], towers)
    };
    assert!(!whole.scheme.states.is_empty() && !whole.problem.state_probes.is_empty());
    let folder = tempfile::tempdir().expect("a folder");
    let part = |steps: u64, schedule| {
        // The same sources for all schedules.
        let mut part = Case::new([10, 11, 9], steps, &[8], towers);
        (part.checkpoints, part.schedule) = (100, schedule);
        part
    };
    let on_host = |steps: u64, order| {
        let run = part(steps, towers).run_on_host(folder.path(), order);
        run.expect("a run on the processor");
    };
    let device = Interpreted::new();
    on_host(5, HostOrder::Tiles);
    on_host(7, HostOrder::Layerwise);
    let run = |steps: u64, schedule| part(steps, schedule).run(library, &device, folder.path());
    // A time block, and single steps up to the next slice.
    run(12, towers).expect("a run by towers");
    run(14, None).expect("a run stage by stage");
    on_host(16, HostOrder::Tiles);
    assert_same(&content(folder.path()), &whole.expected());
}

/// The memory that a device has left beside a run: enough for a copy of the array, or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FreeMemory {
    Ample,
    Scarce,
}

/// Looks at values in the middle of a run, with later steps begun.
fn look(library: &Library, device: &dyn Device, case: &Case, memory: FreeMemory) {
    let looked = case.with(library, device, None, |run| {
        let mut reference = Literal::<f32>::new(&case.scheme, &case.problem, &NoFiles);
        if memory == FreeMemory::Scarce {
            let free = device.free_memory()?;
            device.take(free - run.memory_bytes() / 2)?;
        }
        let progress = Progress::default();
        let stops = [3, 4, 9, case.problem.steps];
        for (n, step) in stops.into_iter().enumerate() {
            run.run(step, &progress)?;
            reference.run(step, &progress)?;
            let pictures = run.take_pictures();
            let before = device.free_memory()?;
            let next = *stops.get(n + 1).unwrap_or(&step);
            run.run_ahead(next, &Values::All)?;
            assert_eq!(run.steps(), step);
            assert!(memory == FreeMemory::Ample || device.free_memory()? == before);
            verify::compare(run, &reference).map_err(RunError::Difference)?;
            let checked = reference.take_pictures();
            verify::compare_pictures(run, &pictures, &checked).map_err(RunError::Difference)?;
            // Steps that have begun cannot be taken back, nor are they shown.
            if next > step {
                assert!(run.run(step, &progress).is_err());
            }
        }
        Ok(())
    });
    looked.expect("a run without errors");
}

/// Volumes, records and states of some cells bring the planes of these cells back, not the array.
#[test]
fn small_boxes_bring_few_bytes_back() {
    let Some(library) = library() else { return };
    for (cells, schedule) in [
        ([48, 8, 8], None),
        ([48, 8, 9], None),
        ([48, 12, 8], Some("torre(D = 1, TH = 4)")),
    ] {
        let case = Case::boxes(cells, schedule);
        let folder = tempfile::tempdir().expect("a folder");
        let device = Interpreted::new();
        let all = case.with(library, &device, Some(folder.path()), |run| {
            case.write(run, folder.path())?;
            Ok(run.memory_bytes())
        });
        let all = all.expect("a run without errors");
        assert_same(&content(folder.path()), &case.expected());
        // All of it at the end; before, eight times two planes, and some bytes between them and the states.
        let fetched = device.bytes_read() - all;
        let planes = match case.scheme.states.is_empty() {
            true => 8 * 2 * all / 48,
            false => 8 * all / 4,
        };
        assert!((8..planes).contains(&fetched), "{fetched} bytes of {all}");
    }
}

#[test]
fn values_can_be_looked_at_while_steps_go_on() {
    let Some(library) = library() else { return };
    for case in &Case::all()[..3] {
        for memory in [FreeMemory::Ample, FreeMemory::Scarce] {
            look(library, &Interpreted::new(), case, memory);
        }
    }
}

#[test]
fn a_run_whose_values_blow_up_ends_with_their_place() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    for schedule in [None, Some("torre(D = 1, TH = 4)")] {
        let mut case = Case::new([14, 15, 8], 26, &[1000], schedule);
        let stages = case.scheme.stages.iter_mut();
        for op in stages
            .flat_map(|s| &mut s.updates)
            .flat_map(|u| &mut u.body.ops)
        {
            if let Op::Const(weight) = op {
                *weight *= 1024.0;
            }
        }
        let run =
            |progress: &Progress| case.with(library, &device, None, |run| run.run(26, progress));
        assert!(run(&Progress::default()).is_ok(), "nobody looks");
        let Err(RunError::BlowUp(found)) = run(&Progress::guarded()) else {
            panic!("{schedule:?}: nothing was found");
        };
        let irregular = found.value.is_nan() || found.value.abs() > 1e30;
        assert!(found.step <= 26 && irregular, "{found}");
        assert_eq!(found.at.len(), 3, "{found}");
        // Regular values are not reported.
        let case = Case::new([14, 15, 8], 26, &[1000], schedule);
        let fine = case.with(library, &device, None, |run| {
            run.run(26, &Progress::guarded())
        });
        assert!(fine.is_ok(), "{schedule:?}");
    }
}
