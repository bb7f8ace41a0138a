//! Tower programs, interpreted without a back end, give the bits of the reference: every example with three axes, with
//! its sources and probes.

use std::path::Path;
use torre_compiler::driver::load;
use torre_compiler::injection::{Injections, receivers};
use torre_compiler::real::Real;
use torre_compiler::reference::{Reference, for_each_index};
use torre_compiler::resolve::Options;
use torre_compiler::schedule::notation;
use torre_compiler::scheme::Precision;
use torre_compiler::testing::Rng;
use torre_compiler::tower::{Injected, Order, Points, TowerInterp, VolumeCells, tasks, verify};
use torre_grammar::parse_schedule;
use torre_grammar::source::Source;
use torre_runtime::files::LoadedFiles;
use torre_runtime::gpu::{DeviceModel, VolumeChoice};
use torre_runtime::host::Calculation;
use torre_runtime::plan::gpu::DevicePlanner;
use torre_runtime::world::FileWorld;
use torre_suite::interpreted::Interpreted;
use torre_suite::small_example;

/// An example in small, a schedule, and steps of a time block.
struct Case {
    name: &'static str,
    /// Its text, where it is no example.
    text: Option<&'static str>,
    schedule: &'static str,
    steps: &'static str,
}

const CASES: [Case; 6] = [
    Case {
        name: "03-wave3d-order8",
        text: None,
        schedule: "torre(W = 8, TH = 4)",
        steps: "4",
    },
    Case {
        name: "08-maxwell42",
        text: None,
        schedule: "torre(D = 2, TH = 2)",
        steps: "2",
    },
    Case {
        name: "12-elastic3d",
        text: None,
        schedule: "torre(W = 6, TH = 4)",
        steps: "4",
    },
    Case {
        name: "a box of total fields",
        text: Some(
            "use std::maxwell::maxwell42
problem p {
  scheme maxwell42
  domain 28 x 30 x 20
  boundary z: cpml(3)
  incident wave { E = [cos(t + x), cos(t - y), 1]; H = [cos(t + z), cos(x), t] }
  total x = 6..20, y = 7..21, z = 7..13 from wave
  source E.z at (7, 8, 8) += cos(t)
  steps 10
}",
        ),
        schedule: "torre(D = 1, TH = 2)",
        steps: "10",
    },
    // Towers pass faces, and are far from them before and after; waves there are copied.
    Case {
        name: "a plane wave in a box",
        text: Some(
            "use std::maxwell::maxwell42
problem p {
  scheme maxwell42
  domain 44 x 36 x 20
  boundary z: cpml(3)
  incident wave { direction (1, 2, 3); drive E.z = 1e30 * cos(t) }
  total x = 12..30, y = 9..27, z = 7..13 from wave
  source E.z at (7, 8, 8) += cos(t)
  steps 12
}",
        ),
        schedule: "torre(W = 4, TH = 6)",
        steps: "12",
    },
    Case {
        name: "09-cavity",
        text: None,
        schedule: "torre(D = 1, TH = 4)",
        steps: "4",
    },
];

fn floats<T: Real>(bytes: &[u8]) -> Vec<T> {
    let values = bytes.chunks_exact(size_of::<T>());
    let value = |bytes: &[u8]| match T::PRECISION {
        Precision::F32 => f64::from(f32::from_ne_bytes(bytes.try_into().expect("4 bytes"))),
        Precision::F64 => f64::from_ne_bytes(bytes.try_into().expect("8 bytes")),
    };
    values.map(|bytes| T::from_f64(value(bytes))).collect()
}

impl Case {
    /// Whether waves are copied to slots.
    fn copies_waves(&self) -> bool {
        self.text.is_some_and(|text| text.contains("direction"))
    }
}

/// Runs a time block of an example and compares all values and records.
fn run<T: Real>(case: &Case, seed: u64) {
    let name = case.name;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let path = folder.join(format!("{name}.torre"));
    let source = match case.text {
        Some(text) => Source::new(name, text),
        None => small_example(&path),
    };
    let settings = [("steps", case.steps)];
    let options = Options {
        precision: T::PRECISION,
        overrides: settings.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..Options::default()
    };
    let resolved = load(&FileWorld::beside(&path), &source, &options).expect("no errors");
    let (scheme, problem) = (&resolved.scheme, &resolved.problem);
    let files = LoadedFiles::load(&FileWorld::beside(&path), scheme).expect("readable files");
    let model = DeviceModel::of(&Interpreted::new(), None, 1e9).expect("a GPU that is known");
    let planner = DevicePlanner::new(scheme, problem, &model).expect("a small size");
    let schedule = Source::new("--schedule", case.schedule);
    let written = parse_schedule(&schedule).expect("a schedule");
    let template = notation::read(&schedule, &written, scheme, &planner.planner.frame);
    let best = planner.best(&template.expect("a schedule"));
    let (plan, _) = best.unwrap_or_else(|_| panic!("{name}: no towers"));
    let program = &plan.towers().expect("towers").program;
    assert_eq!(program.block.slots.is_some(), case.copies_waves(), "{name}");
    let layout = &plan.kernels.layout;
    verify(scheme, layout, program).unwrap_or_else(|fault| panic!("{name}: {fault}"));

    let arranged = Calculation::<T>::arranged(layout.clone(), scheme, problem, &files, 1);
    let mut calculation = arranged.expect("a problem of finite values");
    let start = floats::<T>(calculation.array());
    let view = program.view(scheme, layout);
    let mut interp = TowerInterp::new(&view.scheme, &view.layout, program, &start);
    let injections = Injections::new(scheme, problem, &files);
    let choice = VolumeChoice::new(scheme, problem);
    let points = Points::new(&injections, receivers(scheme, problem), |n| choice.has(n));
    let first = injections.first_correction() as u32;
    let corrections = injections.corrected().iter();
    let corrections = corrections.map(|rows| VolumeCells::of_corrections(rows, first));
    let volumes = injections.sources.iter().enumerate();
    let volumes = volumes.filter(|(n, _)| choice.has(*n));
    let volumes = volumes.map(|(_, source)| VolumeCells::of_source(source));
    let volumes: Vec<VolumeCells> = corrections.chain(volumes).collect();
    let steps = problem.steps;
    assert_eq!(steps % program.towers.steps, 0, "{name}: whole periods");
    let periods = steps / program.towers.steps;
    let of_step = |step| injections.waves(scheme, problem, &files, step);
    let waves: Vec<Vec<f64>> = (0..steps).map(of_step).collect();
    let order = Order {
        width: 3,
        overlap: 1,
        head_start: 2,
        partitions: 2,
    };
    let list = tasks(scheme, layout, &program.towers, periods, order);
    let mut list = list.unwrap_or_else(|| panic!("{name}: too many towers"));
    let plan = points.attach(scheme, layout, &program.towers, periods, &mut list.tasks);
    let plan = plan.unwrap_or_else(|| panic!("{name}: points outside of towers"));
    assert!(plan.interior > 0, "{name}: no interior periods");
    let injected = Injected {
        points: &plan,
        volumes: &volumes,
        wave: &|step, wave| waves[step as usize][wave as usize],
    };
    let mut rng = Rng::new(seed);
    let mut pick = |n: usize| rng.below(n as u64) as usize;
    let records = interp
        .time_block(&list, steps, order.head_start, &injected, 3, &mut pick)
        .unwrap_or_else(|fault| panic!("{name}: {fault}"));

    let mut reference = Reference::<T>::new(scheme, problem, &files);
    for _ in 0..steps {
        reference.step();
    }
    for record in &records {
        let expected = reference.probe(record.receiver)[record.step as usize];
        assert_eq!(record.value.bits(), expected.bits(), "{name}: {record:?}");
    }
    let receivers = receivers(scheme, problem);
    let changing = receivers.iter().filter(|r| r.stage.is_some()).count();
    assert_eq!(records.len(), changing * steps as usize, "{name}");
    let array = interp.array();
    let array = array.unwrap_or_else(|| panic!("{name}: unknown values are left"));
    let bytes = array.iter().flat_map(|value| {
        let bits = value.bits().to_le_bytes();
        bits.into_iter().take(size_of::<T>())
    });
    let bytes: Vec<u8> = bytes.collect();
    calculation.array_mut().copy_from_slice(&bytes);
    calculation.set_steps(steps);
    let mut compared = 0;
    for id in scheme.component_ids() {
        for_each_index(scheme.extent(id), |at| {
            let (found, expected) = (calculation.value(id, at), reference.value(id, at));
            assert_eq!(found.bits(), expected.bits(), "{name}: {id:?} at {at:?}");
            compared += 1;
        });
    }
    assert!(compared > 100_000);
}

#[test]
fn example_03_is_the_reference() {
    run::<f64>(&CASES[0], 3);
}

#[test]
fn example_08_is_the_reference() {
    run::<f32>(&CASES[1], 8);
}

#[test]
fn example_09_is_the_reference() {
    run::<f64>(&CASES[5], 9);
}

#[test]
fn example_12_is_the_reference() {
    run::<f32>(&CASES[2], 12);
}

#[test]
fn a_box_of_total_fields_is_the_reference() {
    run::<f64>(&CASES[3], 18);
}

#[test]
fn a_plane_wave_in_a_box_is_the_reference() {
    run::<f32>(&CASES[4], 19);
}
