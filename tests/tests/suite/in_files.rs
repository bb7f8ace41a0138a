//! Calculations whose arrays are in files have the bits of the reference, for any parts in which their planes come and
//! go, and go on with the state that an earlier run left.

use std::path::Path;
use torre_compiler::backend::interp::Interp;
use torre_compiler::driver::load;
use torre_compiler::kernel::layerwise_kernels;
use torre_compiler::lattice::Axis;
use torre_compiler::layout::Layout;
use torre_compiler::problem::Problem;
use torre_compiler::resolve::Options;
use torre_compiler::scheme::{Precision, Scheme};
use torre_compiler::statics::NoFiles;
use torre_compiler::testing::{Rng, add_poles, add_random_zones, lengthen, random_scheme};
use torre_grammar::source::Source;
use torre_runtime::disk::{BLOCK, RowGhosts, StateFolder};
use torre_runtime::files::LoadedFiles;
use torre_runtime::host::Calculation;
use torre_runtime::host::memory::Memory;
use torre_runtime::output::checkpoint as file;
use torre_runtime::run::checkpoint::Earlier;
use torre_runtime::run::{
    Company, InFiles, Literal, SweepPlan, Watch, checkpoint, execute, verify,
};
use torre_runtime::simulation::{Progress, Simulation, Value};
use torre_runtime::world::FileWorld;
use torre_suite::random::{LIMITS, add_random_incident, random_problem, seeds};

/// Opens a problem in the files of a folder, with the state that it has; `then` gets it, and whether there was one.
fn with_run<T: Value, R>(
    scheme: &Scheme,
    problem: &Problem,
    folder: &Path,
    threads: usize,
    adjust: impl Fn(&mut SweepPlan),
    then: impl FnOnce(&mut InFiles<'_, T>, bool) -> R,
) -> Result<R, String> {
    let layout = Layout::for_files(scheme).expect("a size that can be addressed");
    let set = layerwise_kernels(scheme, layout);
    let code = Interp::new(scheme, &set);
    let layout = set.layout.clone();
    let own = checkpoint::identity::<T>(scheme, problem, &LoadedFiles::default());
    let resumed = StateFolder::has_state(folder);
    let state = match resumed {
        true => StateFolder::open(folder, &layout, &own, RowGhosts::InMemory),
        false => StateFolder::create(folder, &layout, &own),
    };
    let state = state.map_err(|error| error.to_string())?;
    let map = state.file().map(layout.bytes()).expect("a file");
    let memory = Memory::of_file(map, &layout);
    let calculation: Result<Calculation<'_, T>, _> =
        Calculation::of_memory(memory, layout.clone(), scheme, problem, &NoFiles);
    let mut calculation = calculation.expect("a problem that can be");
    match resumed {
        true => {
            let earlier = Earlier::open(folder, &own).expect("a state");
            earlier
                .resume_in_place(&mut calculation)
                .expect("its records");
        }
        false => calculation.fill(threads).expect("finite values"),
    }
    let mut plan =
        SweepPlan::new(scheme, &layout, problem.steps, u64::MAX, BLOCK).expect("room for a step");
    adjust(&mut plan);
    let mut run = InFiles {
        calculation,
        set: &set,
        code: &code,
        threads,
        plan,
        folder: state,
        records: Vec::new(),
    };
    Ok(then(&mut run, resumed))
}

/// Runs a problem in the files of a folder, from the state that it has, and compares all visible values with the
/// reference.
fn compare<T: Value>(
    scheme: &Scheme,
    problem: &Problem,
    folder: &Path,
    threads: usize,
    adjust: impl Fn(&mut SweepPlan),
) -> Result<(), String> {
    let compared = |run: &mut InFiles<'_, T>, resumed: bool| {
        let mut check = Literal::<T>::new(scheme, problem, &NoFiles);
        if resumed {
            let checked = check.run(problem.steps, &Progress::default());
            checked.map_err(|error| format!("{error:?}"))?;
        }
        let beside: Option<&mut dyn Simulation<T>> = match resumed {
            true => None,
            false => Some(&mut check),
        };
        let done = execute(run, beside, Company::default(), &Watch::default());
        done.map_err(|error| format!("{error:?}"))?;
        verify::compare(run, &check).map_err(|difference| difference.to_string())
    };
    with_run(scheme, problem, folder, threads, adjust, compared)?
}

#[test]
fn sweeps_over_files_have_the_bits_of_the_reference() {
    let (mut tried, mut zoned) = (0, 0);
    for seed in 0..seeds().end {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &LIMITS);
        if scheme.grid.axes[Axis::OUTER].is_none() || scheme.grid.is_periodic(Axis::OUTER) {
            continue;
        }
        lengthen(&mut scheme, Axis::OUTER, rng.within(10, 40));
        if rng.once_in(3) {
            add_random_zones(&mut rng, &LIMITS, &mut scheme);
        }
        add_poles(&mut scheme);
        let mut problem = random_problem(&mut rng, &scheme);
        if rng.once_in(3) {
            add_random_incident(&mut rng, &scheme, &mut problem);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let steps = rng.within(1, 4) as u64;
        let slab = rng.within(1, 5);
        let adjust = |plan: &mut SweepPlan| {
            plan.steps = steps;
            plan.sweep.slab = slab;
        };
        let threads = 1 + (seed % 3) as usize;
        let first = (problem.clone(), seed.is_multiple_of(2));
        let runs = [first, (problem, true)];
        for (n, (mut problem, whole)) in runs.into_iter().enumerate() {
            if n == 0 && whole {
                continue;
            }
            // A run that goes on begins where a shorter one ended.
            if n == 0 {
                problem.steps = (problem.steps / 2).max(1);
            }
            let run = match scheme.precision {
                Precision::F32 => compare::<f32>(&scheme, &problem, folder.path(), threads, adjust),
                Precision::F64 => compare::<f64>(&scheme, &problem, folder.path(), threads, adjust),
            };
            run.unwrap_or_else(|error| panic!("{seed} {n}: {error}\n{scheme}"));
        }
        tried += 1;
        zoned += u64::from(!scheme.zones.is_empty());
    }
    assert!(tried > 20 && zoned > 3, "{zoned} of {tried}");
}

/// An update that reads to one side alone: on the plane of an upper mirror the images of values are farther off than
/// values are elsewhere.
#[test]
fn reads_to_one_side_find_their_images_behind_mirrors() {
    for (side, distance) in [
        ("pmc", "3/2"),
        ("pmc", "5/2"),
        ("pec", "5/2"),
        ("zero", "7/2"),
    ] {
        let text = format!(
            "scheme own {{\naxes x, y\nfield v : scalar on nodes\nfield w : scalar on [1/2, 0]\nstep {{\nallow W0301\n\
             v += 0.1 * w[{distance}, 0]\nw += 0.1 * v[1/2, 0]\n}}\n}}\n\
             problem p {{\nscheme own\ndomain 40 x 4\nboundary x: zero | {side}\n\
             init v = sin(x)\ninit w = cos(x)\nsteps 6\n}}"
        );
        let world = FileWorld::beside(Path::new("."));
        let resolved = load(&world, &Source::new("own", &text), &Options::default());
        let resolved = resolved.unwrap_or_else(|errors| panic!("{errors:?}"));
        for slab in [1, 3] {
            let folder = tempfile::tempdir().expect("a folder");
            let adjust = |plan: &mut SweepPlan| {
                plan.steps = 4;
                plan.sweep.slab = slab;
            };
            let (scheme, problem) = (&resolved.scheme, &resolved.problem);
            compare::<f32>(scheme, problem, folder.path(), 1, adjust)
                .unwrap_or_else(|error| panic!("{side} {distance} {slab}: {error}"));
        }
    }
}

/// Waves of all steps have no room, so passes end earlier than their planes would let them; runs pause there, since
/// results have to be written before the values are a state.
#[test]
fn states_come_no_later_than_the_end_of_a_pass() {
    let mut corrected = 0;
    for seed in 0..seeds().end {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &LIMITS);
        if scheme.grid.axes[Axis::OUTER].is_none() || scheme.grid.is_periodic(Axis::OUTER) {
            continue;
        }
        scheme.precision = Precision::F64;
        let mut problem = random_problem(&mut rng, &scheme);
        add_random_incident(&mut rng, &scheme, &mut problem);
        problem.steps = 1 << 20;
        let folder = tempfile::tempdir().expect("a folder");
        let pass = |run: &mut InFiles<'_, f64>, _| {
            let state = run.next_state();
            (state, run.calculation.prepare(problem.steps))
        };
        let all = |plan: &mut SweepPlan| plan.steps = problem.steps;
        let run = with_run(&scheme, &problem, folder.path(), 1, all, pass);
        let (state, end) = run.unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert_eq!(state, end, "{seed}");
        corrected += u64::from(end < problem.steps);
        if corrected == 3 {
            return;
        }
    }
    panic!("{corrected} problems with waves");
}

/// A state has the checksum of its fields from the first step on; one without is refused, as one is that says nothing
/// about its ghosts.
#[test]
fn states_without_a_checksum_are_refused() {
    let mut rng = Rng::new(1);
    let scheme = random_scheme(&mut rng, &LIMITS);
    let problem = random_problem(&mut rng, &scheme);
    let layout = Layout::for_files(&scheme).expect("a size that can be addressed");
    let own = match scheme.precision {
        Precision::F32 => checkpoint::identity::<f32>(&scheme, &problem, &LoadedFiles::default()),
        Precision::F64 => checkpoint::identity::<f64>(&scheme, &problem, &LoadedFiles::default()),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let open = || StateFolder::open(folder.path(), &layout, &own, RowGhosts::InMemory);
    let mut state = StateFolder::create(folder.path(), &layout, &own).expect("a folder");
    let mut map = state.file().map(layout.bytes()).expect("a file");
    map.fill(7);
    drop(map);
    state.commit(0, &[]).expect("a state");
    open().expect("the state that was written");

    let path = folder.path().join("state.checkpoint");
    let written = file::Checkpoint::open(&path).expect("a state");
    let mut notes = written.header().notes.clone();
    for (sum, reason) in [(None, "no checksum"), (Some("?"), "no valid \"sum\"")] {
        notes.remove("sum").expect("a checksum");
        notes.extend(sum.map(|sum| ("sum".to_owned(), sum.into())));
        file::write(&path, &own, 0, &notes, &[]).expect("a state");
        let error = open().expect_err("no checksum").to_string();
        assert!(error.contains(reason), "{error}");
        notes.insert("sum".to_owned(), "0".into());
    }
    notes.remove("ghosts").expect("an entry");
    file::write(&path, &own, 0, &notes, &[]).expect("a state");
    let error = open().expect_err("no entry on ghosts").to_string();
    assert!(error.contains("may be out of date"), "{error}");
}
