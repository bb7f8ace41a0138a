//! Devices with too little memory for the tables of time blocks.

use super::waves::given;
use super::windows::{CIRCULAR, Trial, compiled_for_window, few_cells, kernels, least_places};
use super::*;
use torre_compiler::injection::Injections;
use torre_compiler::problem::OutputKind;
use torre_compiler::testing::{Limits, random_patches};
use torre_runtime::gpu::{
    CompiledBlocks, CompiledPatches, Devices, HeldPlanes, InFlight, Pipelined, device_bytes,
};

/// Bytes of a device's memory.
const MEMORY: u64 = 1 << 30;

/// Time blocks, and a problem without sources.
struct Case<'a> {
    library: &'a Library,
    scheme: &'a Scheme,
    problem: &'a Problem,
    blocks: &'a CompiledBlocks,
}

/// The course of a run on a device.
#[derive(Debug)]
struct Fate {
    /// Bytes that are free before time blocks are made ready, and after that.
    free: [u64; 2],
    by_blocks: bool,
}

impl Case<'_> {
    /// Makes time blocks ready where no more than some bytes are free, runs, and compares the bits with the reference.
    fn run<T: Value>(&self, most: u64) -> Result<Fate, String> {
        let device = &Interpreted::new();
        let (scheme, problem, shape) = (self.scheme, self.problem, Shape::of(self.scheme));
        let set = code::kernels(scheme).expect("a size that can be addressed");
        let gpu = code::gpu_of(device).expect("a GPU that is known");
        let ptx = code::ptx(self.library, scheme, &set, shape, gpu).expect("valid IR");
        let layout = set.layout.clone();
        let calculation = Calculation::<T>::arranged(layout, scheme, problem, &NoFiles, 1);
        let calculation = calculation.expect("a problem of finite values");
        let program = DeviceProgram {
            set: &set,
            ptx: &ptx,
            shape,
        };
        let run = OnDevice::new(calculation, &NoFiles, device, program);
        let run = run.map_err(|error| error.to_string())?;
        let all = device.free_memory().expect("a number");
        let other = device.take(all - most.min(all)).expect("memory");
        let before = device.free_memory().expect("a number");
        let run = run.by(self.blocks);
        let mut run = run.map_err(|error| error.to_string())?;
        let after = device.free_memory().expect("a number");
        device.give_back(other).expect("memory");
        let by_blocks = run.without_towers().is_none();
        let mut check = Literal::<T>::new(scheme, problem, &NoFiles);
        let company = Company::default();
        let done = execute(&mut run, Some(&mut check), company, &Watch::default());
        done.map_err(|error| format!("{error:?}"))?;
        Ok(Fate {
            free: [before, after],
            by_blocks,
        })
    }

    /// With memory for some of the tables the run goes stage by stage, and all of the tables' memory is free.
    fn falls_back<T: Value>(&self) {
        let Fate { free, by_blocks } = self.run::<T>(u64::MAX).expect("the same bits");
        let [before, after] = free;
        let tables = before - after;
        assert!(by_blocks && tables > 100, "{tables}");
        for part in [0, tables / 4, tables / 2, 3 * tables / 4, tables - 1] {
            let fate = self.run::<T>(part).expect("the same bits");
            assert!(!fate.by_blocks, "{part} of {tables}");
            assert_eq!(fate.free, [part; 2], "of {tables}");
        }
        let enough = self.run::<T>(tables);
        assert!(enough.expect("the same bits").by_blocks);
    }
}

#[test]
fn towers_without_memory_leave_a_run_to_single_steps() {
    let Some(library) = library() else { return };
    let scheme = &maxwell(4, Precision::F32, [16, 17, 12]);
    let mut problem = random_problem(&mut Rng::new(1), scheme);
    (problem.sources, problem.outputs) = Default::default();
    problem.steps = 9;
    let (plan, model) = plan_of(
        &Interpreted::new(),
        scheme,
        &problem,
        "torre(D = 1, TH = 4)",
    );
    let towers = compiled(library, scheme, &plan, &model);
    let case = Case {
        library,
        scheme,
        problem: &problem,
        blocks: &CompiledBlocks::Towers(Box::new(towers)),
    };
    case.falls_back::<f32>();
}

#[test]
fn pyramids_without_memory_leave_none_taken() {
    let Some(library) = library() else { return };
    let limits = Limits {
        length: 40,
        width: 24,
        ..Limits::PATCHES
    };
    let mut tried = 0;
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let scheme = &random_scheme(&mut rng, &limits);
        let mut problem = random_problem(&mut rng, scheme);
        (problem.sources, problem.outputs) = Default::default();
        problem.steps = 6;
        let Some(program) = random_patches(&mut rng, scheme) else {
            continue;
        };
        let shared = program.shared_bytes(scheme.precision.bytes());
        if program.tiles() > 40 || shared > 200 << 10 || problem.probes.is_empty() {
            continue;
        }
        let layout = code::kernels(scheme).expect("a small size").layout;
        let gpu = code::gpu_of(&Interpreted::new()).expect("a GPU that is known");
        let patches = CompiledPatches::new(library, scheme, &layout, program, gpu);
        let case = Case {
            library,
            scheme,
            problem: &problem,
            blocks: &CompiledBlocks::Patches(Box::new(patches.expect("valid IR"))),
        };
        match scheme.precision {
            Precision::F32 => case.falls_back::<f32>(),
            Precision::F64 => case.falls_back::<f64>(),
        }
        tried += 1;
        if tried == 4 {
            return;
        }
    }
    panic!("{tried} problems with pyramids");
}

/// Two outputs whose time blocks have five heights, over the host's memory: where tables of all heights do not fit,
/// tables of heights that no pass needs are given back.
#[test]
fn tables_of_other_heights_are_given_back() {
    let Some(library) = library() else { return };
    let scheme = &maxwell(2, Precision::F32, [40, 9, 6]);
    let mut problem = random_problem(&mut Rng::new(2), scheme);
    few_cells(&mut problem);
    problem.outputs.truncate(2);
    for (output, every) in problem.outputs.iter_mut().zip([5, 8]) {
        let axis = Axis::OUTER;
        output.kind = OutputKind::Slice { axis, index: 3 };
        output.every = every;
    }
    problem.steps = 40;
    assert_eq!(problem.outputs.len(), 2);
    let problem = &problem;
    let device = Interpreted::with_memory(MEMORY);
    let (plan, model) = plan_of(&device, scheme, problem, "torre(D = 2, TH = 4)");
    let towers = &compiled_for_window(library, scheme, plan, &model);
    let mut how = InFlight {
        blocks: 1,
        group: 6,
        ahead: 1,
        spread: false,
        held: HeldPlanes::All,
    };
    how = how.with_places(least_places(scheme, problem, towers, how).expect("groups"));
    // Bytes that are free when the run begins, and at its end.
    let run = |device: &Interpreted| -> Result<[u64; 2], String> {
        let (set, shape) = (kernels(scheme, how), Shape::of(scheme));
        let gpu = code::gpu_of(device).expect("a GPU that is known");
        let ptx = code::ptx(library, scheme, &set, shape, gpu).expect("valid IR");
        let layout = set.layout.clone();
        let calculation = Calculation::<f32>::arranged(layout, scheme, problem, &NoFiles, 1);
        let calculation = calculation.expect("a problem of finite values");
        let program = DeviceProgram {
            set: &set,
            ptx: &ptx,
            shape,
        };
        let one = Devices::One(device);
        let run = Pipelined::new(calculation, &NoFiles, one, program, towers, how);
        let mut run = run.map_err(|error| error.to_string())?.expect("towers");
        let begun = device.free_memory().expect("a number");
        let mut check = Literal::<f32>::new(scheme, problem, &NoFiles);
        let company = Company::default();
        let done = execute(&mut run, Some(&mut check), company, &Watch::default());
        done.map_err(|error| format!("{error:?}"))?;
        Ok([begun, device.free_memory().expect("a number")])
    };
    let [begun, ended] = run(&device).expect("the same bits");
    assert!(begun - ended > 1000, "tables of other heights");
    for part in [1, (begun - ended) / 3] {
        let [_, rest] =
            run(&Interpreted::with_memory(MEMORY - ended - part)).expect("the same bits");
        assert!(rest < begun - ended, "{rest}");
    }
}

/// A run takes the memory that is stated, but for tables: with the waves of a box of total fields, too, of which plans
/// count no fewer than there are.
#[test]
fn memory_for_waves_is_counted() {
    let Some(library) = library() else { return };
    let scheme = &maxwell(4, Precision::F32, [60, 16, 12]);
    let mut problem = random_problem(&mut Rng::new(1), scheme);
    (problem.sources, problem.outputs) = Default::default();
    problem.incidents = vec![given(scheme, &[[[4, 56], [3, 13], [3, 9]]])];
    let problem = &problem;
    let device = &Interpreted::new();
    let (plan, model) = plan_of(device, scheme, problem, "torre(D = 2, TH = 2)");
    let towers = &compiled_for_window(library, scheme, plan, &model);
    let mut how = CIRCULAR;
    how = how.with_places(least_places(scheme, problem, towers, how).expect("groups"));
    let (set, shape) = (kernels(scheme, how), Shape::of(scheme));
    let gpu = code::gpu_of(device).expect("a GPU that is known");
    let ptx = code::ptx(library, scheme, &set, shape, gpu).expect("valid IR");
    let waves = Injections::new(scheme, problem, &NoFiles).waves_per_step() as u64;
    let planner = DevicePlanner::new(scheme, problem, &model).expect("a small size");
    assert!(planner.waves_per_step() >= waves);
    let stated = |waves| device_bytes(scheme, problem, &set.layout, towers.steps, how, waves);
    let calculation =
        Calculation::<f32>::arranged(set.layout.clone(), scheme, problem, &NoFiles, 1);
    let calculation = calculation.expect("a problem of finite values");
    let program = DeviceProgram {
        set: &set,
        ptx: &ptx,
        shape,
    };
    let before = device.free_memory().expect("a number");
    let one = Devices::One(device);
    let run = Pipelined::new(calculation, &NoFiles, one, program, towers, how);
    let _run = run.expect("memory").expect("towers");
    let taken = before - device.free_memory().expect("a number");
    let tables = taken
        .checked_sub(stated(waves))
        .expect("all that is stated");
    let for_waves = stated(waves) - stated(0);
    assert!(
        for_waves > 3 * tables,
        "{for_waves} of {taken}, and {tables}"
    );
}

/// However few parts of the host's memory can be locked for files before there is an error: none of them stays locked.
#[test]
fn memory_that_was_locked_before_an_error_is_unlocked() {
    let Some(library) = library() else { return };
    let scheme = &maxwell(2, Precision::F32, [40, 9, 6]);
    let mut problem = random_problem(&mut Rng::new(2), scheme);
    few_cells(&mut problem);
    problem.outputs.clear();
    problem.steps = 8;
    let problem = &problem;
    let (plan, model) = plan_of(&Interpreted::new(), scheme, problem, "torre(D = 2, TH = 2)");
    let towers = &compiled_for_window(library, scheme, plan, &model);
    let mut how = CIRCULAR;
    how = how.with_places(least_places(scheme, problem, towers, how).expect("groups"));
    let trial = Trial {
        library,
        scheme,
        problem,
        towers,
        how,
    };
    for most in 0.. {
        let folder = tempfile::tempdir().expect("a folder");
        let device = &Interpreted::new();
        device.lock_at_most(most);
        let done = trial.over_files(Devices::One(device), folder.path());
        assert_eq!(device.locked(), 0);
        let Err(error) = done else {
            assert!(most > 7, "{most}");
            return;
        };
        assert!(error.contains("locking memory"), "{error}");
    }
}
