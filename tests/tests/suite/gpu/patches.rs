//! Time blocks of pyramids on a GPU: same bits as the reference, with sources, probes and outputs.

use super::{library, plan_of, random_shape, resolved_in};
use std::path::Path;
use torre_compiler::backend::llvm::library::Library;
use torre_compiler::driver::load;
use torre_compiler::layerwise::Shape;
use torre_compiler::problem::Problem;
use torre_compiler::resolve::Options;
use torre_compiler::scheme::{Precision, Scheme, verify};
use torre_compiler::statics::{Files, NoFiles};
use torre_compiler::testing::{
    Limits, Rng, add_poles, add_random_zones, random_patches, random_scheme,
};
use torre_grammar::source::Source;
use torre_runtime::gpu::{CompiledBlocks, CompiledPatches, Device, DeviceProgram, OnDevice, code};
use torre_runtime::host::Calculation;
use torre_runtime::plan::gpu::TimeBlockPlan;
use torre_runtime::run::{Company, Literal, Watch, execute};
use torre_runtime::simulation::Value;
use torre_runtime::world::FileWorld;
use torre_suite::HELD;
use torre_suite::interpreted::Interpreted;
use torre_suite::random::{add_random_incident, random_problem, replacing};
use torre_suite::small_example;

/// A run.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) scheme: &'a Scheme,
    pub(super) problem: &'a Problem,
    pub(super) files: &'a dyn Files,
}

/// Runs a problem by pyramids and by the reference, and compares all that can be seen.
fn compare<T: Value>(
    library: &Library,
    device: &dyn Device,
    asked: Asked<'_>,
    shape: Shape,
    blocks: &CompiledBlocks,
) -> Result<(), String> {
    let Asked {
        scheme,
        problem,
        files,
    } = asked;
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
    let run = OnDevice::new(calculation, files, device, program);
    let run = run.and_then(|run| run.by(blocks));
    let mut run = run.map_err(|e| e.to_string())?;
    if let Some(reason) = run.without_towers() {
        return Err(reason.to_string());
    }
    let mut check = Literal::<T>::new(scheme, problem, files);
    let company = Company::default();
    let done = execute(&mut run, Some(&mut check), company, &Watch::default());
    done.map(|_| ())
        .map_err(|error| format!("{error:?}\n{scheme}"))
}

pub(super) fn compare_any(
    library: &Library,
    device: &dyn Device,
    asked: Asked<'_>,
    shape: Shape,
    blocks: &CompiledBlocks,
) -> Result<(), String> {
    match asked.scheme.precision {
        Precision::F32 => compare::<f32>(library, device, asked, shape, blocks),
        Precision::F64 => compare::<f64>(library, device, asked, shape, blocks),
    }
}

/// Schemes with one axis or two.
const FLAT: Limits = Limits {
    length: 40,
    width: 24,
    ..Limits::PATCHES
};

/// Schemes with three, whose tiles stay on the chip.
const IN_SPACE: Limits = Limits {
    length: 16,
    width: 12,
    ..Limits::PATCHES_IN_SPACE
};

/// Bytes of shared memory of a block.
const MOST_SHARED: u64 = 200 << 10;

/// Runs random schemes by pyramids, after something was done to each.
fn random_runs(
    seeds: impl Iterator<Item = u64>,
    limits: Limits,
    prepare: impl Fn(&mut Rng, &mut Scheme),
) {
    let Some(library) = library() else { return };
    let (mut tried, mut with_points) = (0, 0);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        let in_space = scheme.grid.dimensions() == 3;
        if in_space != (limits.dimensions == 3) {
            continue;
        }
        prepare(&mut rng, &mut scheme);
        add_poles(&mut scheme);
        verify(&scheme).expect("a valid scheme");
        let mut problem = random_problem(&mut rng, &scheme);
        replacing(seed, &mut problem);
        if seed % 4 < 2 {
            add_random_incident(&mut rng, &scheme, &mut problem);
        }
        let Some(mut program) = random_patches(&mut rng, &scheme) else {
            continue;
        };
        let shared = program.shared_bytes(scheme.precision.bytes());
        if program.tiles() > 40 || shared > MOST_SHARED {
            continue;
        }
        if in_space {
            program.stay(&code::kernels(&scheme).expect("a small size").layout);
            if program.stays.is_none() {
                continue;
            }
        }
        tried += 1;
        with_points += usize::from(!problem.sources.is_empty() && !problem.probes.is_empty());
        let layout = code::kernels(&scheme).expect("a small size").layout;
        let gpu = code::gpu_of(&Interpreted::new()).expect("a GPU that is known");
        let compiled = CompiledPatches::new(library, &scheme, &layout, program, gpu);
        let blocks = CompiledBlocks::Patches(Box::new(compiled.expect("valid IR")));
        let shape = random_shape(&mut rng, &scheme);
        let asked = Asked {
            scheme: &scheme,
            problem: &problem,
            files: &NoFiles,
        };
        let result = compare_any(library, &Interpreted::new(), asked, shape, &blocks);
        assert!(result.is_ok(), "seed {seed}: {}", result.unwrap_err());
    }
    assert!(
        tried > 5 && 3 * with_points > tried,
        "{tried} {with_points}"
    );
}

/// Layerwise and by pyramids.
#[test]
fn held_zeros_have_no_sign_behind_other_mirrors() {
    let Some(library) = library() else { return };
    let (world, source) = (FileWorld::beside(Path::new(".")), Source::new("held", HELD));
    let resolved = load(&world, &source, &Options::default()).expect("no errors");
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let device = Interpreted::new();
    let gpu = code::gpu_of(&device).expect("a GPU that is known");
    let layout = code::kernels(scheme).expect("a small size").layout;
    let mut rng = Rng::new(0);
    for _ in 0..8 {
        let shape = random_shape(&mut rng, scheme);
        let same = super::compare_any(library, &device, scheme, problem, &NoFiles, shape, None);
        assert_eq!(same, Ok(()));
        let Some(program) = random_patches(&mut rng, scheme) else {
            continue;
        };
        let compiled = CompiledPatches::new(library, scheme, &layout, program, gpu);
        let blocks = CompiledBlocks::Patches(Box::new(compiled.expect("valid IR")));
        let asked = Asked {
            scheme,
            problem,
            files: &NoFiles,
        };
        assert_eq!(compare_any(library, &device, asked, shape, &blocks), Ok(()));
    }
}

#[test]
fn pyramids_of_random_schemes_give_the_bits_of_the_reference() {
    random_runs((0..32).step_by(2), FLAT, |_, _| ());
}

#[test]
fn pyramids_of_more_random_schemes_give_the_bits_of_the_reference() {
    random_runs((1..32).step_by(2), FLAT, |_, _| ());
}

#[test]
fn pyramids_in_random_zones_give_the_bits_of_the_reference() {
    random_runs(0..32, FLAT, |rng, scheme| {
        add_random_zones(rng, &Limits::PATCHES, scheme);
    });
}

#[test]
fn pyramids_in_space_give_the_bits_of_the_reference() {
    random_runs(0..72, IN_SPACE, |_, _| ());
}

#[test]
fn pyramids_in_space_with_zones_give_the_bits_of_the_reference() {
    random_runs(0..72, IN_SPACE, |rng, scheme| {
        add_random_zones(rng, &IN_SPACE, scheme);
    });
}

/// Updates read to one side alone, and a base begins at an upper mirror: nodes there find ghosts of values between
/// nodes, whose sources lie one index farther down.
#[test]
fn sources_of_ghosts_at_an_upper_mirror_are_in_the_tile() {
    let Some(library) = library() else { return };
    let text = "scheme leaning {
  axes x, y
  field u : scalar on nodes
  field v : scalar on [0, 1/2]
  step {
    allow W0301
    u = u + 0.1 * v[0, 1/2]
    v = v - 0.1 * u[0, -1/2]
  }
}
problem p {
  scheme leaning
  domain 40 x 64
  boundary x: odd, y: even
  init u = sin(0.3*x) + sin(0.5*y + 1)
  init v = 1 + sin(0.3*x) + sin(0.5*y + 1)
  steps 5
}
";
    for height in [1, 2] {
        let resolved = resolved_in(text, Precision::F32);
        let (scheme, problem) = (&resolved.scheme, &resolved.problem);
        let device = Interpreted::new();
        let schedule = &format!("pyramid(B = 8, TH = {height}, Z = 32)");
        let (plan, model) = plan_of(&device, scheme, problem, schedule);
        let blocks = plan.compile_blocks(library, scheme, &model);
        let blocks = blocks.expect("valid IR").expect("pyramids");
        let asked = Asked {
            scheme,
            problem,
            files: &NoFiles,
        };
        let result = compare_any(library, &device, asked, Shape::of(scheme), &blocks);
        assert_eq!(result, Ok(()), "{height}");
    }
}

/// Layers on all sides and around ends, bodies with states, states that are looked at; both kinds of launches.
#[test]
fn pyramids_in_layers_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let te = |order: u32, boundary: &str| {
        format!(
            "use std::maxwell::maxwell_te

problem antenna {{
  scheme maxwell_te {{ order = {order} }}
  domain 44 x 75
  boundary {boundary}
  source Hz at (20, 30) += exp(-((t - 5) / 2)^2)
  source Hz at (3, 4) += sin(t)
  probe  Hz at (2, 70) as corner
  output volume Hz every 5
  steps 11
}}
"
        )
    };
    let sound = "use std::acoustics::acoustics_2d

problem hall {
  scheme acoustics_2d
  domain 40 x 60
  boundary x: cpml(5), y: periodic
  source p at (20, 3) += sin(t)
  output slice psi of p x = 2 in layer(x) every 4
  steps 10
}
";
    let heat = "def late(f, part) {
  state kept in part
  kept@next = 0.9 * kept + 0.1 * f
  f - kept@next
}

scheme slow {
  axes x, y
  region body = x > 10 and x < 30 and y > 5 and y < 50
  field T : scalar on nodes
  step {
    allow W0301
    T += 0.1 * (d2(T, x) + d2(T, y)) + 0.01 * late(T, body)
  }
}

problem plate {
  scheme slow
  domain 37 x 64
  boundary x: periodic, y: zero
  init   T = sin(0.3 * x * y)
  probe  kept of T at (20, 20) every 3
  steps  9
}
";
    let line = "use std::maxwell::maxwell_1d

problem pulse {
  scheme maxwell_1d
  domain 300
  boundary x: cpml(10)
  source Ez at (100) += sin(t)
  steps 12
}
";
    let space = |order: u32, cells: u32, boundary: &str| {
        format!(
            "use std::maxwell::maxwell{order}2

problem cavity {{
  scheme maxwell{order}2
  domain {cells} x 9 x 10
  boundary {boundary}
  source E.z at (2, 5, 7) += exp(-((t - 3) / 2)^2)
  source E.z at (0, 1, 2) += sin(t)
  probe  E.z at (3, 4, 5) as corner
  steps 5
}}
"
        )
    };
    let in_two = "x: pyramid(base = 6) height 1; y: pyramid(base = 10); z: pyramid(base = 11)";
    let halves = "x: pyramid(base = 3) height 1; y: pyramid(base = 10); z: pyramid(base = 11)";
    let programs = [
        (
            space(2, 10, "x: cpml(3), y: pec | cpml(4), z: periodic"),
            in_two,
        ),
        (
            space(4, 6, "x: periodic, y: cpml(3), z: cpml(4) | pmc"),
            halves,
        ),
        (
            te(2, "x: cpml(7), y: cpml(7)"),
            "pyramid(B = 12, TH = 4, Z = 40)",
        ),
        (te(4, "all: cpml(10)"), "pyramid(B = 20, TH = 2, Z = 40)"),
        (
            te(2, "x: pec | cpml(6), y: cpml(4) | pmc"),
            "pyramid(B = 50, TH = 3, Z = 40)",
        ),
        (sound.to_owned(), "pyramid(B = 16, TH = 4, Z = 30)"),
        (heat.to_owned(), "pyramid(B = 10, TH = 3, Z = 30)"),
        (line.to_owned(), "pyramid(B = 100, TH = 5)"),
    ];
    for (number, (text, schedule)) in programs.iter().enumerate() {
        for precision in [Precision::F32, Precision::F64] {
            let source = Source::new("test.torre", text.clone());
            let options = Options {
                precision,
                ..Options::default()
            };
            let world = FileWorld::beside(Path::new("test.torre"));
            let resolved = load(&world, &source, &options);
            let resolved = resolved.unwrap_or_else(|errors| panic!("{number}: {errors:?}"));
            let (scheme, problem) = (&resolved.scheme, &resolved.problem);
            assert!(!scheme.states.is_empty(), "{number}");
            let device = Interpreted::new();
            let (plan, model) = plan_of(&device, scheme, problem, schedule);
            let patches = plan.patches().expect("pyramids");
            assert!(patches.program.rooms.count > 0);
            // As planned, and the other way.
            for stays in [
                patches.program.stays.is_some(),
                patches.program.stays.is_none(),
            ] {
                if scheme.grid.dimensions() == 3 && !stays {
                    continue;
                }
                let mut plan = plan.clone();
                let Some(TimeBlockPlan::Patches(patches)) = &mut plan.time_blocks else {
                    panic!("pyramids");
                };
                let program = &mut patches.program;
                match stays {
                    true => program.stay(&plan.kernels.layout),
                    false => program.stays = None,
                }
                let blocks = plan.compile_blocks(library, scheme, &model);
                let blocks = blocks.expect("valid IR").expect("pyramids");
                let asked = Asked {
                    scheme,
                    problem,
                    files: &NoFiles,
                };
                let shape = Shape::of(scheme);
                let result = compare_any(library, &device, asked, shape, &blocks);
                assert_eq!(result, Ok(()), "{number} {precision}, stays: {stays}");
            }
        }
    }
}

/// A schedule as it is written is planned, and runs as it says: a launch for a time block.
#[test]
fn planned_pyramids_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/05-maxwell-te2d.torre"
    ));
    let source = small_example(path);
    let resolved = load(&FileWorld::beside(path), &source, &Options::default());
    let resolved = resolved.expect("an example");
    let (scheme, mut problem) = (resolved.scheme, resolved.problem);
    problem.steps = 9;
    let device = Interpreted::new();
    let schedule = "pyramid(B = 16, TH = 4, Z = 30)";
    let (plan, model) = plan_of(&device, &scheme, &problem, schedule);
    let blocks = plan
        .compile_blocks(library, &scheme, &model)
        .expect("valid IR");
    let blocks = blocks.expect("pyramids");
    let shape = Shape::of(&scheme);
    let asked = Asked {
        scheme: &scheme,
        problem: &problem,
        files: &NoFiles,
    };
    assert_eq!(compare_any(library, &device, asked, shape, &blocks), Ok(()));
    // Two time blocks of 4 steps, and one of the last step.
    assert_eq!(
        device.launches(),
        3,
        "{}",
        plan.patches().expect("pyramids").program
    );
}
