//! Runs on a GPU give the bits of the reference. Without a GPU their PTX is interpreted; where there is one, it runs
//! there, too.

mod around;
mod downwards;
mod early_ends;
mod examples;
mod gaps;
mod l2_partitions;
mod layers;
mod line_ends;
mod packed;
mod patches;
mod quotients;
mod random_towers;
mod random_windows;
mod resumed;
mod resumed_files;
mod resumed_patches;
mod short_memory;
mod slabs;
mod sources;
mod stripes;
mod tiny;
mod turns;
mod waves;
mod windows;

use std::fmt;
use std::path::Path;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::cone::{Rational, cones};
use torre_compiler::driver::load;
use torre_compiler::host::{HostExpr, HostUnary};
use torre_compiler::lattice::{Axis, HalfIndex, Interval, PerAxis};
use torre_compiler::layerwise::{MOST_BLOCKS, Shape};
use torre_compiler::layout::Layout;
use torre_compiler::problem::{self, Problem};
use torre_compiler::real::Real;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::schedule::{Frame, notation};
use torre_compiler::scheme::{Boundary, Precision, Scheme, StageId, Update, verify};
use torre_compiler::statics::{Files, NoFiles};
use torre_compiler::testing::{
    Effort, Limits, Rng, add_poles, add_random_zones, elasticity, everywhere, lengthen, maxwell,
    random_scheme,
};
use torre_compiler::tower::{self as towers, block::Division};
use torre_grammar::parse_schedule;
use torre_grammar::source::Source;
use torre_runtime::disk::{RowGhosts, StateFolder};
use torre_runtime::gpu::{
    CompiledTowers, Device, DeviceModel, DeviceProgram, OnDevice, VolumeChoice, code,
};
use torre_runtime::host::Calculation;
use torre_runtime::output::checkpoint::Identity;
use torre_runtime::plan::gpu::{DevicePlan, DevicePlanner};
use torre_runtime::run::{Company, Literal, Watch, execute, verify};
use torre_runtime::simulation::{Part, PartOf, Progress, Simulation, Value};
use torre_runtime::world::FileWorld;
use torre_suite::interpreted::Interpreted;
use torre_suite::random::{
    LIMITS, add_random_incident, random_problem, replacing, seeds, slices_and_a_volume,
    volume_sources,
};

/// Runs a problem on a device, by towers if there are some, and by the reference, and compares all that can be seen.
fn compare<T: Value>(
    library: &Library,
    device: &dyn Device,
    scheme: &Scheme,
    problem: &Problem,
    files: &dyn Files,
    shape: Shape,
    towers: Option<&CompiledTowers>,
) -> Result<(), String> {
    let set = code::kernels(scheme).expect("a size that can be addressed");
    let gpu = code::gpu_of(device).expect("a GPU that is known");
    let ptx = code::ptx(library, scheme, &set, shape, gpu).expect("valid IR");
    let calculation: Calculation<'_, T> =
        Calculation::arranged(set.layout.clone(), scheme, problem, files, 1)
            .expect("a problem of finite values");
    let program = DeviceProgram {
        set: &set,
        ptx: &ptx,
        shape,
    };
    let mut run = OnDevice::new(calculation, files, device, program).map_err(|e| e.to_string())?;
    if let Some(towers) = towers {
        run = run.by_towers(towers).map_err(|e| e.to_string())?;
    }
    let mut check = Literal::<T>::new(scheme, problem, files);
    execute(
        &mut run,
        Some(&mut check),
        Company::default(),
        &Watch::default(),
    )
    .map(|_| ())
    .map_err(|error| format!("{error:?}\n{scheme}"))
}

fn compare_any(
    library: &Library,
    device: &dyn Device,
    scheme: &Scheme,
    problem: &Problem,
    files: &dyn Files,
    shape: Shape,
    towers: Option<&CompiledTowers>,
) -> Result<(), String> {
    let compare = match scheme.precision {
        Precision::F32 => compare::<f32>,
        Precision::F64 => compare::<f64>,
    };
    compare(library, device, scheme, problem, files, shape, towers)
}

/// Runs to the first pause, and fetches one plane of each component, which has the values of the reference then.
fn look_at_planes<T: Value>(
    run: &mut dyn Simulation<T>,
    check: &mut dyn Simulation<T>,
) -> Result<(), String> {
    let until = run.next_pause().min(run.next_state());
    let progress = Progress::default();
    run.run(until, &progress).map_err(|e| format!("{e:?}"))?;
    check.run(until, &progress).map_err(|e| format!("{e:?}"))?;
    let pictures = [run.take_pictures(), check.take_pictures()];
    verify::compare_pictures(run, &pictures[0], &pictures[1]).map_err(|e| e.to_string())?;
    let scheme = check.scheme().clone();
    let plane = |id| {
        let mut region = scheme.extent(id);
        let middle = region[Axis::OUTER].hi / 2;
        region[Axis::OUTER] = Interval::new(middle, middle + 1);
        let of = PartOf::Newest(id);
        Part { of, region }
    };
    let parts: Vec<Part> = scheme.component_ids().map(plane).collect();
    run.fetch_parts(&parts).map_err(|e| format!("{e:?}"))?;
    for (id, part) in scheme.component_ids().zip(&parts) {
        let [planes, rows, _] = part.region.0;
        for y in rows.lo..rows.hi {
            let of = |from: &dyn Simulation<T>| -> Vec<u64> {
                let row = from.row(id, 0, planes.lo, y).iter();
                row.map(|v| Real::bits(*v)).collect()
            };
            if of(run) != of(check) {
                return Err(format!("row {y} of {id:?} differs\n{scheme}"));
            }
        }
    }
    Ok(())
}

/// The medium with memory of the book: its states follow the values of `E` that the update of `E` overwrites.
pub(crate) const LORENTZ: &str = "
def lorentz(E, body, dt, w0 = 0.3, wp = 0.2, loss = 0.01) {
  state J in body
  state P in body
  J@next = ((1 - loss*dt/2) * J + dt * (wp^2 * E - w0^2 * P)) / (1 + loss*dt/2)
  P@next = P + dt * J@next
  J@next
}";

/// The only problem of a text.
fn resolved_in(text: &str, precision: Precision) -> Resolved {
    let options = Options {
        precision,
        ..Options::default()
    };
    let world = FileWorld::beside(std::path::Path::new("."));
    let resolved = load(&world, &Source::new("problem", text), &options);
    resolved.unwrap_or_else(|e| panic!("{precision}: {e:?}\n{text}"))
}

fn library() -> Option<&'static Library> {
    Effort::Least.choose();
    Library::open()
        .inspect_err(|error| eprintln!("skipped: {error}"))
        .ok()
}

/// Shapes that cut grids of a few cells in many ways.
fn random_shape(rng: &mut Rng, scheme: &Scheme) -> Shape {
    let usual = Shape::of(scheme);
    Shape {
        threads: *rng.pick(&[usual.threads, [4, 2], [8, 4], [32, 1]]),
        march: rng.within(1, 9) as u32,
        unroll: rng.within(0, 4) as u32,
        kept: rng.within(0, 96) as u32,
        ahead: rng.within(0, 96) as u32,
        blocks: rng.within(0, 2) as u32,
        most_outer: *rng.pick(&[MOST_BLOCKS, 2, 3]),
    }
}

fn random_runs(device: impl Fn() -> Box<dyn Device>, seeds: impl Iterator<Item = u64>) {
    let Some(library) = library() else { return };
    let (mut tried, mut old, mut disordered) = (0, 0, 0);
    for seed in seeds {
        tried += 1;
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &LIMITS);
        if seed % 4 > 1 {
            add_random_zones(&mut rng, &LIMITS, &mut scheme);
            let updates = || scheme.stages.iter().flat_map(|s| &s.updates);
            let needs_old = |u: &Update| u.amendments.iter().any(|a| scheme.needs_old(u, a));
            let in_order = |u: &Update| u.amendments.iter().map(|a| a.zone).is_sorted();
            old += usize::from(updates().any(needs_old));
            disordered += usize::from(!updates().all(in_order));
        }
        add_poles(&mut scheme);
        verify(&scheme).expect("a valid scheme");
        let mut problem = random_problem(&mut rng, &scheme);
        replacing(seed, &mut problem);
        if seed % 3 == 1 {
            add_random_incident(&mut Rng::new(seed), &scheme, &mut problem);
        }
        let shape = random_shape(&mut rng, &scheme);
        let result = compare_any(
            library,
            &*device(),
            &scheme,
            &problem,
            &NoFiles,
            shape,
            None,
        );
        assert!(result.is_ok(), "seed {seed}: {}", result.unwrap_err());
    }
    assert!(
        tried < 16 || 4 * old > tried && 8 * disordered > tried,
        "{old} and {disordered} of {tried}"
    );
}

#[test]
fn random_schemes_give_the_bits_of_the_reference() {
    random_runs(|| Box::new(Interpreted::new()), seeds().step_by(2));
}

#[test]
fn more_random_schemes_give_the_bits_of_the_reference() {
    random_runs(|| Box::new(Interpreted::new()), seeds().skip(1).step_by(2));
}

/// The plan of a schedule as it is written on the command line.
fn plan_of(
    device: &dyn Device,
    scheme: &Scheme,
    problem: &Problem,
    schedule: &str,
) -> (DevicePlan, DeviceModel) {
    planned(device, scheme, problem, schedule).expect("a schedule that is not refused")
}

/// The same, if it is not refused.
fn planned(
    device: &dyn Device,
    scheme: &Scheme,
    problem: &Problem,
    schedule: &str,
) -> Option<(DevicePlan, DeviceModel)> {
    planned_for(device, scheme, problem, schedule, None)
}

/// The same, if blocks get lines in some way.
fn planned_for(
    device: &dyn Device,
    scheme: &Scheme,
    problem: &Problem,
    schedule: &str,
    division: Option<Division>,
) -> Option<(DevicePlan, DeviceModel)> {
    let model = DeviceModel::of(device, None, 1e9).expect("a GPU that is known");
    let mut planner = DevicePlanner::new(scheme, problem, &model).expect("a small size");
    planner.division = division;
    let source = Source::new("--schedule", schedule);
    let written = parse_schedule(&source).expect("a schedule");
    let template = notation::read(&source, &written, scheme, &planner.planner.frame);
    let plan = planner.best(&template.expect("a schedule"));
    let (plan, _) = plan.ok()?;
    Some((plan, model))
}

/// The towers of a plan, compiled.
fn compiled(
    library: &Library,
    scheme: &Scheme,
    plan: &DevicePlan,
    model: &DeviceModel,
) -> CompiledTowers {
    let (_, towers) = plan.compile(library, scheme, model).expect("valid IR");
    towers.expect("towers")
}

/// Schemes on small grids, and schedules for them by towers of some heights.
fn cases_of_towers(heights: [u64; 3]) -> [(Scheme, String); 3] {
    let [few, leaning, long] = heights;
    [
        (
            maxwell(4, Precision::F32, [16, 17, 12]),
            format!("torre(D = 1, TH = {few})"),
        ),
        (
            maxwell(2, Precision::F64, [14, 15, 12]),
            format!("(x, y): diamond(W = 3) lean +x height {leaning}; z: span"),
        ),
        // Lines that two blocks share.
        (
            maxwell(4, Precision::F64, [14, 15, 190]),
            format!("torre(D = 2, TH = {long})"),
        ),
    ]
}

/// Runs and compares a problem as [`compare`] does; how many kernels were started.
fn starts(
    library: &Library,
    device: &Interpreted,
    seed: impl fmt::Display,
    scheme: &Scheme,
    problem: &Problem,
    towers: Option<&CompiledTowers>,
) -> u64 {
    let before = device.launches();
    let shape = Shape::of(scheme);
    let result = compare_any(library, device, scheme, problem, &NoFiles, shape, towers);
    assert!(result.is_ok(), "seed {seed}: {}", result.unwrap_err());
    device.launches() - before
}

/// How many kernels a step takes stage by stage, without outputs; its values are compared, too.
fn starts_per_step(
    library: &Library,
    device: &Interpreted,
    seed: impl fmt::Display,
    scheme: &Scheme,
    problem: &Problem,
) -> u64 {
    let step = Problem {
        steps: 1,
        outputs: Vec::new(),
        ..problem.clone()
    };
    starts(library, device, seed, scheme, &step, None)
}

#[test]
fn time_blocks_of_towers_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let mut cases = Vec::from(cases_of_towers([3, 4, 2]));
    let elastic = elasticity(Precision::F32, [21, 22, 8]);
    cases.insert(2, (elastic, "torre(W = 6, TH = 2)".to_owned()));
    for (seed, (scheme, schedule)) in cases.into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        problem.sources.clear();
        problem.probes.clear();
        problem.outputs.clear();
        let (plan, model) = plan_of(&device, &scheme, &problem, &schedule);
        problem.steps = 2 * plan.height() + 1;
        let towers = &compiled(library, &scheme, &plan, &model);
        assert_eq!(towers.steps, plan.height());
        assert_eq!(towers.count(), plan.towers().map_or(0, |plan| plan.count));
        let by_towers = starts(library, &device, seed, &scheme, &problem, Some(towers));
        // Each of the two time blocks is one start, and a time block of the last step, too.
        assert_eq!(by_towers, 3);
        let each = starts_per_step(library, &device, seed, &scheme, &problem);
        assert!(each >= 2);
    }
}

#[test]
fn sources_and_probes_act_inside_of_time_blocks() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    for (seed, (scheme, schedule)) in cases_of_towers([4, 16, 4]).into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        let mut again = random_problem(&mut rng, &scheme).sources;
        problem.sources.append(&mut again);
        problem.sources.truncate(5);
        for (n, source) in problem.sources.iter_mut().enumerate() {
            // All on one cell, or on few.
            for axis in Axis::ALL {
                let range = source.region[axis];
                let at = [range.lo, range.hi - 1, (range.lo + range.hi) / 2][n % 3];
                source.region[axis] = Interval::new(at, at + 1);
            }
        }
        let doubled = problem.sources.clone();
        problem.sources.extend(doubled);
        problem.outputs.clear();
        assert!(problem.sources.len() > 2 && problem.probes.len() > 2);
        let (plan, model) = plan_of(&device, &scheme, &problem, &schedule);
        // A time block, one of half its height, and a step.
        problem.steps = plan.height() + plan.height() / 2 + 1;
        let towers = &compiled(library, &scheme, &plan, &model);
        let each = starts_per_step(library, &device, seed, &scheme, &problem);
        let single = plan.height() > 8;
        // A step looks at ghosts in memory.
        let ghosts = u64::from(single && towers.leaves_ghosts());
        let last = if single { each } else { 1 };
        let by_towers = starts(library, &device, seed, &scheme, &problem, Some(towers));
        assert_eq!(by_towers, 2 + ghosts + last);
    }
}

/// Interior periods of towers in time blocks of a plan, points aside.
fn interior_periods(towers: &CompiledTowers) -> u64 {
    let tasks = towers.list().tasks.iter();
    let interior = tasks.map(|task| task.placement.interior.clone());
    interior.map(|periods| periods.end - periods.start).sum()
}

/// Towers leave ghosts along the last axis out of date in memory; single steps between time blocks find them there.
/// Sources and probes are near the ends of lines.
#[test]
fn ghosts_are_made_for_who_reads_them() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    for (seed, ends) in [Pec, Pmc, Periodic, Zero].into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        let mut scheme = maxwell(2, Precision::F64, [14, 15, 12]);
        scheme.grid.boundary = PerAxis([[Pmc, Pec], [Pec, Zero], [ends; 2]]);
        everywhere(&mut scheme);
        let mut problem = random_problem(&mut rng, &scheme);
        for (n, source) in problem.sources.iter_mut().enumerate() {
            for axis in Axis::ALL {
                let range = source.region[axis];
                let at = [range.lo, range.hi - 1][n % 2];
                source.region[axis] = Interval::new(at, at + 1);
            }
        }
        for (n, probe) in problem.probes.iter_mut().enumerate() {
            let live = scheme.grid.live(scheme.component(probe.component).position);
            probe.at[Axis::INNER] = [live[Axis::INNER].lo, live[Axis::INNER].hi - 1][n % 2];
        }
        problem.outputs.truncate(1);
        let schedule = "(x, y): diamond(W = 3) lean +x height 16; z: span";
        let (plan, model) = plan_of(&device, &scheme, &problem, schedule);
        // A time block, a step, and a slice, twice; and a time block.
        let every = plan.height() + 1;
        problem.outputs[0].every = every;
        problem.steps = 3 * every - 1;
        let towers = &compiled(library, &scheme, &plan, &model);
        assert!(interior_periods(towers) > 0);
        let each = starts_per_step(library, &device, seed, &scheme, &problem);
        let stale = u64::from(ends != Zero);
        let by_towers = starts(library, &device, seed, &scheme, &problem, Some(towers));
        assert_eq!(by_towers, 3 + 2 * (stale + each + 1), "{seed}");
    }
}

/// Sources and probes in whole columns of cells, and sources in many columns, where lines are cut into spans.
#[test]
fn spans_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let (open, walls) = ([Boundary::Zero; 2], [Boundary::Pmc, Boundary::Pec]);
    let cases = [
        (
            4,
            Precision::F32,
            [20, 23, 75],
            open,
            "torre(D = 2, TH = 2)",
        ),
        (
            2,
            Precision::F64,
            [13, 14, 80],
            walls,
            "torre(D = 1, TH = 4)",
        ),
    ];
    for (seed, (order, precision, cells, ends, schedule)) in cases.into_iter().enumerate() {
        let mut scheme = maxwell(order, precision, cells);
        scheme.grid.boundary = PerAxis([open, open, ends]);
        everywhere(&mut scheme);
        let mut rng = Rng::new(seed as u64);
        let mut problem = random_problem(&mut rng, &scheme);
        problem.outputs.clear();
        problem.sources.truncate(2);
        for source in &mut problem.sources {
            let position = scheme.component(source.component).position;
            let column = Interval::new(7, 8);
            source.region = PerAxis([column, column, scheme.grid.live(position)[Axis::INNER]]);
        }
        let some = problem.probes.clone();
        let last = cells[2] - 1;
        for (n, z) in [1, 21, 29, 30, 31, 32, 47, 60, last]
            .into_iter()
            .enumerate()
        {
            problem.probes.push(some[n % some.len()].clone());
            problem.probes[some.len() + n].at[Axis::INNER] = z;
        }
        problem.sources.extend(volume_sources(&mut rng, &scheme, 2));
        let lines = Some(Division::ZBlocks(1));
        let (plan, model) =
            planned_for(&device, &scheme, &problem, schedule, lines).expect("a plan");
        // A time block, and one of half its height, each of three spans.
        problem.steps = plan.height() + plan.height() / 2;
        let towers = &compiled(library, &scheme, &plan, &model);
        assert!(interior_periods(towers) > 0, "seed {seed}");
        assert_eq!(towers.leaves_ghosts(), ends == walls);
        let starts = starts(library, &device, seed, &scheme, &problem, Some(towers));
        assert_eq!(starts, 2 * 3, "seed {seed}");
    }
}

/// Whether some tower amends rows in interior periods.
fn runs_amendments(towers: &CompiledTowers) -> bool {
    let variants = &towers.program.towers.variants.all;
    let mut placements = towers.list().tasks.iter().map(|task| &task.placement);
    placements.any(|p| !p.interior.is_empty() && !variants[p.variant].zones.is_empty())
}

#[test]
fn plans_know_what_sources_and_probes_cost() {
    let device = Interpreted::new();
    let scheme = maxwell(4, Precision::F32, [64, 64, 12]);
    let mut problem = random_problem(&mut Rng::new(1), &scheme);
    problem.outputs.clear();
    problem.sources.truncate(1);
    problem.steps = 1000;
    assert!(!problem.probes.is_empty() && !problem.sources.is_empty());
    let written = "torre(D = 1, TH = 8)";
    let rate = |problem: &Problem| {
        let (plan, _) = plan_of(&device, &scheme, problem, written);
        assert_eq!(plan.note, None);
        plan.choice.prediction.rate
    };
    let few = rate(&problem);
    let live = scheme
        .grid
        .live(scheme.component(problem.sources[0].component).position);
    problem.sources[0].region = live;
    let many = rate(&problem);
    problem.sources.clear();
    problem.probes.clear();
    let none = rate(&problem);
    assert!(many < few && few < none, "{many} {few} {none}");
    // Slices end time blocks.
    problem = random_problem(&mut Rng::new(1), &scheme);
    problem.outputs.truncate(1);
    problem.outputs[0].every = 1;
    problem.steps = 1000;
    let (plan, _) = plan_of(&device, &scheme, &problem, "torre(D = 1, TH = 64)");
    let note = plan.note.expect("a note");
    assert!(note.starts_with("only 0 % of the steps"), "{note}");
}

/// The state of a folder has the checksum of its fields, and is refused after any change of them.
fn check_sum(folder: &Path, layout: &Layout, own: &Identity) -> Result<(), String> {
    let open = || StateFolder::open(folder, layout, own, RowGhosts::Absent);
    let state = open().map_err(|error| error.to_string())?;
    let mut map = state.file().map(layout.bytes()).expect("a file");
    let at = map.len() / 3;
    map[at] ^= 4;
    let error = open().err().ok_or("a changed byte is not seen")?;
    assert!(error.to_string().contains("damaged"), "{error}");
    map[at] ^= 4;
    Ok(())
}
