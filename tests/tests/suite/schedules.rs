//! Every legal schedule gives the bits of the reference: random schemes on random grids in random tilings.

use torre_compiler::backend::interp::Interp;
use torre_compiler::cone::cones;
use torre_compiler::cost::Blocking;
use torre_compiler::driver::load;
use torre_compiler::host::HostExpr;
use torre_compiler::kernel::{Bands, KernelSet, RowKernel, UpdateSet};
use torre_compiler::layout::Layout;
use torre_compiler::problem::{IncidentField, OutputKind, Problem};
use torre_compiler::real::Real;
use torre_compiler::reference::Reference;
use torre_compiler::resolve::Options;
use torre_compiler::schedule::{Boxes, Frame};
use torre_compiler::scheme::{
    ComponentId, Precision, Scheme, State, StateId, ZoneId, ZoneSet, verify,
};
use torre_compiler::statics::NoFiles;
use torre_compiler::testing::{
    Rng, add_poles, add_random_bands, add_random_zones, diamonds, one_update_per_stage,
    random_folded_scheme, random_pyramid, random_scheme, random_tiling, tower_pitches,
};
use torre_compiler::tile::{PyramidProgram, Strips, lower};
use torre_grammar::source::Source;
use torre_runtime::host::{Calculation, Execution};
use torre_runtime::simulation::Progress;
use torre_runtime::world::FileWorld;
use torre_suite::HELD;
use torre_suite::random::{LIMITS, add_random_incident, random_problem, replacing, seeds};

/// A kernel for each stage, phase and single update, and one for all updates of the stage.
fn kernels(scheme: &Scheme, execution: &Execution) -> KernelSet {
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
                zones: ZoneSet::default(),
            }));
        }
    }
    let layout = match execution {
        Execution::Pyramids(program) => program.layout.clone(),
        _ => Layout::new(scheme).expect("a size that can be addressed"),
    };
    KernelSet::new(scheme, layout, kernels)
}

/// Runs a problem and compares everything that can be seen with the reference: in one order, or some steps in one of
/// several orders and then in another one.
fn compare<T: Real>(seed: u64, scheme: &Scheme, problem: &Problem, executions: &[Execution]) {
    let threads = 1 + (seed % 3) as usize;
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
    let set = kernels(scheme, &executions[0]);
    let code = Interp::new(scheme, &set);
    let mut calculation: Calculation<'_, T> =
        Calculation::new(scheme, problem, &NoFiles, threads).expect("a problem of finite values");
    // Rows in pieces, and sweeps over few rows, for every other seed.
    if seed % 2 == 1 {
        calculation.blocking = Blocking {
            sweep: 1 << 12,
            piece: 64,
        };
    }
    let progress = Progress::default();
    let mut taken = Vec::new();
    let mut rng = Rng::new(seed);
    while calculation.steps() < problem.steps {
        let mut until = calculation.next_pause();
        let mut execution = &executions[0];
        if executions.len() > 1 {
            execution = rng.pick(executions);
            until = until.min(calculation.steps() + rng.within(1, 5) as u64);
        }
        calculation
            .run(&set, &code, execution, threads, until, &progress)
            .expect("threads");
        for picture in calculation.take_pictures() {
            let bits = picture.values.iter().map(|v| T::from_f64(*v).bits());
            taken.push((picture.step, picture.output, bits.collect::<Vec<_>>()));
        }
    }
    for id in scheme.component_ids() {
        check_component(seed, &reference, &calculation, id);
    }
    for state in (0..scheme.states.len() as u32).map(StateId) {
        check_state(seed, &reference, &calculation, state);
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

/// States are compared where their updates act.
fn check_state<T: Real>(
    seed: u64,
    reference: &Reference<'_, T>,
    calculation: &Calculation<'_, T>,
    id: StateId,
) {
    let scheme = calculation.scheme;
    let State { position, zone, .. } = scheme.states[id.index()];
    let extent = scheme.grid.extent(position);
    let live = scheme.grid.live(position);
    let expected = reference.state_values(id);
    let mut next = 0;
    torre_compiler::reference::for_each_index(extent, |at| {
        let a = expected[next];
        next += 1;
        if live.contains(at) && scheme.zone(zone).contains(at) {
            let b = calculation.state_value(id, at).expect("a cell of the zone");
            assert_eq!(
                a.bits(),
                b.bits(),
                "seed {seed}: {id} at {:?}: reference {a:?}, here {b:?}\n{scheme}",
                at.0,
            );
        } else {
            assert_eq!(a.bits(), 0, "seed {seed}: {id} at {:?}", at.0);
        }
    });
}

fn compare_any(seed: u64, scheme: &Scheme, problem: &Problem, execution: Execution) {
    compare_all(seed, scheme, problem, &[execution]);
}

fn compare_all(seed: u64, scheme: &Scheme, problem: &Problem, executions: &[Execution]) {
    match scheme.precision {
        Precision::F32 => compare::<f32>(seed, scheme, problem, executions),
        Precision::F64 => compare::<f64>(seed, scheme, problem, executions),
    }
}

/// How the stages of random schemes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stages {
    AsDrawn,
    /// Stages of every fourth scheme have one update each.
    SomeSingle,
}

/// Where the updates of random schemes act.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zoning {
    Everywhere,
    /// Some in zones only.
    Zoned,
}

impl Zoning {
    /// Every second scheme has zones.
    fn of(seed: u64) -> Zoning {
        match seed % 2 {
            0 => Zoning::Everywhere,
            _ => Zoning::Zoned,
        }
    }
}

/// A random scheme and a problem, and the generator for how they are run.
fn random_case(seed: u64, stages: Stages, zoning: Zoning) -> (Rng, Scheme, Problem) {
    let mut rng = Rng::new(seed);
    let mut scheme = random_scheme(&mut rng, &LIMITS);
    if stages == Stages::SomeSingle && seed % 4 == 3 {
        scheme = one_update_per_stage(scheme);
    }
    if zoning == Zoning::Zoned {
        match seed % 4 {
            1 => add_random_bands(&mut rng, &LIMITS, &mut scheme),
            _ => add_random_zones(&mut rng, &LIMITS, &mut scheme),
        }
    }
    add_poles(&mut scheme);
    let mut problem = random_problem(&mut rng, &scheme);
    replacing(seed, &mut problem);
    if seed % 3 == 1 {
        add_random_incident(&mut Rng::new(seed), &scheme, &mut problem);
    }
    (rng, scheme, problem)
}

/// The tests of this file run problems with plane waves, and with fields of other values.
#[test]
fn fields_come_into_random_problems() {
    let mut found = [0; 2];
    for seed in 0..150 {
        let (_, _, problem) = random_case(seed, Stages::AsDrawn, Zoning::of(seed));
        for incident in &problem.incidents {
            found[usize::from(matches!(incident.field, IncidentField::Plane(_)))] += 1;
        }
    }
    assert!(found[0] >= 10 && found[1] >= 2, "{found:?}");
}

/// Some have coefficients that are no finite numbers where no update takes them.
#[test]
fn coefficients_of_some_random_problems_are_infinite() {
    let is_pole = |e: &HostExpr| e.as_number().is_some_and(|n| !n.is_finite());
    let with_poles = (0..150).filter(|seed| {
        let (_, scheme, _) = random_case(*seed, Stages::AsDrawn, Zoning::of(*seed));
        let mut coefs = scheme.coefs.iter();
        coefs.any(|coef| coef.value.any(&mut |e| is_pole(e)))
    });
    assert!(with_poles.count() > 20);
}

/// Some of the zones of these problems lie in two bands.
#[test]
fn some_rows_are_not_cut_at_zones() {
    let in_bands = |seed: u64| {
        let (_, scheme, _) = random_case(seed, Stages::AsDrawn, Zoning::Zoned);
        let layout = Layout::new(&scheme).expect("a small scheme");
        let bands = Bands::new(&scheme, &layout);
        (0..scheme.zones.len()).any(|zone| bands.of(ZoneId(zone as u32)).len() == 2)
    };
    let found = (1..150).step_by(4).filter(|seed| in_bands(*seed)).count();
    assert!(found >= 5, "{found}");
}

#[test]
fn layerwise_gives_the_bits_of_the_reference() {
    for seed in seeds() {
        let (_, scheme, problem) = random_case(seed, Stages::AsDrawn, Zoning::of(seed));
        verify(&scheme).expect("a valid scheme");
        compare_any(seed, &scheme, &problem, Execution::Layerwise);
    }
}

/// Lines that are longer than the pieces in which start values are computed: coefficients whose parts along the line
/// are kept, initial values of several time levels, and ghosts of both ends.
#[test]
fn long_lines_start_with_the_bits_of_the_reference() {
    let text = "
use std::wave::wave_2d
problem p {
  scheme wave_2d { order = 4 }
  domain 3 x 40001
  boundary x: pec | pmc, y: periodic
  coef c = 0.4 + 0.1 * sin(x) * cos(0.3 * y)
  init u = sin(0.001 * y^2) + x
  init u@prev = cos(0.002 * y) * x
  steps 3
}";
    let source = Source::new("long lines", text);
    let world = FileWorld::beside(std::path::Path::new("."));
    for precision in [Precision::F32, Precision::F64] {
        let options = Options {
            precision,
            ..Options::default()
        };
        let resolved = load(&world, &source, &options).expect("no errors");
        compare_any(2, &resolved.scheme, &resolved.problem, Execution::Layerwise);
    }
}

/// A value that the boundary holds at 0 on a plane is +0 behind another mirror, too, where other odd values are
/// negated.
#[test]
fn held_zeros_have_no_sign_behind_other_mirrors() {
    let source = Source::new("held", HELD);
    let world = FileWorld::beside(std::path::Path::new("."));
    let resolved = load(&world, &source, &Options::default()).expect("no errors");
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    compare_any(0, scheme, problem, Execution::Layerwise);
    let frame = Frame::new(scheme, &cones(scheme));
    let mut rng = Rng::new(0);
    for seed in 0..4 {
        let tiling = random_tiling(&mut rng, scheme, &frame);
        let program = lower(scheme, &frame, &tiling).expect("fitting faces are legal");
        compare_any(seed, scheme, problem, Execution::Tiles(program));
    }
}

/// Runs may change from one order to another one after any step.
#[test]
fn orders_in_alternation_give_the_bits_of_the_reference() {
    for seed in seeds() {
        let (mut rng, scheme, problem) = random_case(seed, Stages::SomeSingle, Zoning::of(seed));
        let frame = Frame::new(&scheme, &cones(&scheme));
        let programs: Vec<_> = (0..3)
            .map(|_| random_tiling(&mut rng, &scheme, &frame))
            .map(|tiling| lower(&scheme, &frame, &tiling).expect("fitting faces are legal"))
            .collect();
        let boxes = Boxes {
            levels: vec![random_pyramid(&mut rng).base],
        };
        let others = [Execution::Layerwise, Execution::Boxes(boxes)];
        let tiles = programs.into_iter().map(Execution::Tiles);
        let executions: Vec<Execution> = others.into_iter().chain(tiles).collect();
        compare_all(seed, &scheme, &problem, &executions);
    }
}

#[test]
fn pyramids_give_the_bits_of_the_reference() {
    for seed in seeds() {
        let (mut rng, scheme, problem) = random_case(seed, Stages::SomeSingle, Zoning::Everywhere);
        let pyramid = random_pyramid(&mut rng);
        let program = PyramidProgram::new(&scheme, &pyramid).expect("a size that can be addressed");
        let execution = Execution::Pyramids(Box::new(program));
        compare_any(seed, &scheme, &problem, execution);
    }
}

#[test]
fn boxes_give_the_bits_of_the_reference() {
    for seed in seeds() {
        let (mut rng, scheme, problem) = random_case(seed, Stages::AsDrawn, Zoning::of(seed));
        let boxes = Boxes {
            levels: (0..rng.within(1, 2))
                .map(|_| random_pyramid(&mut rng).base)
                .collect(),
        };
        let execution = Execution::Boxes(boxes);
        compare_any(seed, &scheme, &problem, execution);
    }
}

#[test]
fn tilings_give_the_bits_of_the_reference() {
    for seed in seeds() {
        let (mut rng, scheme, problem) = random_case(seed, Stages::SomeSingle, Zoning::of(seed));
        let cones = cones(&scheme);
        let frame = Frame::new(&scheme, &cones);
        let tiling = random_tiling(&mut rng, &scheme, &frame);
        let program = lower(&scheme, &frame, &tiling).expect("fitting faces are legal");
        let execution = Execution::Tiles(program);
        compare_any(seed, &scheme, &problem, execution);
    }
}

/// Parts on two sides of a fold run apart, by several threads at a time and without waiting for each other.
#[test]
fn tilings_of_folded_axes_give_the_bits_of_the_reference() {
    let mut apart = 0;
    let seeds = seeds().end / 2;
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let mut scheme = random_folded_scheme(&mut rng);
        if seed % 4 == 1 {
            add_random_zones(&mut rng, &LIMITS, &mut scheme);
        }
        let problem = random_problem(&mut rng, &scheme);
        let frame = Frame::new(&scheme, &cones(&scheme));
        let tiling = match seed % 2 {
            0 => random_tiling(&mut rng, &scheme, &frame),
            _ => diamonds(&frame, tower_pitches(&mut rng), rng.within(1, 4) as u64),
        };
        let program = lower(&scheme, &frame, &tiling).expect("fitting faces are legal");
        let strips = Strips::new(&program, problem.steps);
        let sets = |strip: usize| {
            let tiles = strips.of_strip(&program, strip).into_iter();
            tiles.map(|tile| tile.joint.sets(program.sheets()).count())
        };
        apart += (0..strips.len()).flat_map(sets).filter(|n| *n > 1).count();
        compare_any(seed, &scheme, &problem, Execution::Tiles(program));
    }
    assert!(apart > 10 * seeds as usize, "{apart}");
}
