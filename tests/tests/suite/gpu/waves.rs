//! Boxes of total fields on a GPU: corrections act after their updates, stage by stage and inside of time blocks.

use super::*;
use torre_compiler::backend::gpu::{Module, tower};
use torre_compiler::host::HostBinary;
use torre_compiler::incident::{self, FarRows};
use torre_compiler::injection::Injections;
use torre_compiler::problem::{Drive, Incident, IncidentField, PlaneWave, TotalBox};
use torre_compiler::testing::bounded;
use torre_compiler::tower::{RowOp, TowerProgram};

/// A wave of a scheme, with its drive: the update of a stage.
fn wave(
    scheme: &Scheme,
    direction: [i64; 3],
    driven: [usize; 2],
    boxes: &[[[i64; 2]; 3]],
) -> Incident {
    let [stage, update] = driven;
    let ends = |ends: &[[i64; 2]; 3]| TotalBox {
        ends: PerAxis(*ends),
    };
    Incident {
        name: "wave".to_owned(),
        field: IncidentField::Plane(PlaneWave {
            direction: PerAxis(direction),
            drives: vec![Drive {
                component: scheme.stages[stage].updates[update].target,
                wave: HostExpr::unary(HostUnary::Cos, HostExpr::Time),
            }],
            loss: 0.2,
        }),
        boxes: boxes.iter().map(ends).collect(),
    }
}

/// A field that is another one at each place, and is there at once: a plane wave takes many steps to the box.
pub(super) fn given(scheme: &Scheme, boxes: &[[[i64; 2]; 3]]) -> Incident {
    let place = |axis| HostExpr::Coordinate(axis, HalfIndex::ZERO);
    let sum = |a, b| HostExpr::binary(HostBinary::Add, a, b);
    let phase = sum(
        place(Axis::OUTER),
        sum(place(Axis::MIDDLE), place(Axis::INNER)),
    );
    let value = HostExpr::unary(HostUnary::Cos, sum(HostExpr::Time, phase));
    Incident {
        field: IncidentField::Given(
            scheme
                .component_ids()
                .map(|_| Some(value.clone()))
                .collect(),
        ),
        ..wave(scheme, [1, 0, 0], [0, 0], boxes)
    }
}

/// Runs a time block and a step, all of them by towers.
fn by_towers(seed: u64, scheme: &Scheme, schedule: &str, incidents: Vec<Incident>, sources: usize) {
    blocks_by_towers(1, seed, scheme, schedule, incidents, sources);
}

/// Runs some time blocks and a step, all of them by towers.
fn blocks_by_towers(
    blocks: u64,
    seed: u64,
    scheme: &Scheme,
    schedule: &str,
    incidents: Vec<Incident>,
    sources: usize,
) {
    let Some(library) = library() else { return };
    let device = Interpreted::new();
    let mut rng = Rng::new(seed);
    let mut problem = random_problem(&mut rng, scheme);
    problem.outputs = Vec::new();
    problem.sources = volume_sources(&mut rng, scheme, sources);
    problem.incidents = incidents;
    assert_eq!(incident::check(scheme, &problem, &NoFiles), Ok(()));
    let (plan, model) = plan_of(&device, scheme, &problem, schedule);
    assert_eq!(plan.note, None);
    problem.steps = blocks * plan.height() + 1;
    let injections = Injections::new(scheme, &problem, &NoFiles);
    let waves = injections.waves(scheme, &problem, &NoFiles, problem.steps - 2);
    let corrections = &waves[injections.first_correction()..];
    let largest = corrections
        .iter()
        .fold(0.0f64, |max, wave| max.max(wave.abs()));
    assert!(largest > 1e-6, "nothing is corrected yet: {largest}");
    let towers = &compiled(library, scheme, &plan, &model);
    assert!(interior_periods(towers) > 0, "seed {seed}");
    let starts = starts(library, &device, seed, scheme, &problem, Some(towers));
    // A seam through the outer axis takes two launches for a time block.
    let launches = 1 + u64::from(scheme.grid.is_periodic(Axis::OUTER));
    assert_eq!(starts, (blocks + 1) * launches, "seed {seed}");
}

const OPEN: [Boundary; 2] = [Boundary::Zero; 2];
const RING: [Boundary; 2] = [Boundary::Periodic; 2];

#[test]
fn corrections_act_inside_of_time_blocks() {
    let scheme = maxwell(4, Precision::F32, [24, 27, 20]);
    let of = given(&scheme, &[[[4, 20], [5, 22], [4, 16]]]);
    by_towers(0, &scheme, "torre(D = 1, TH = 2)", vec![of], 1);
    let scheme = bounded(maxwell(2, Precision::F64, [18, 19, 12]), [OPEN; 3]);
    let leaning = "(x, y): diamond(W = 3) lean +x height 3; z: span";
    let of = given(&scheme, &[[[5, 13], [4, 15], [3, 9]]]);
    by_towers(1, &scheme, leaning, vec![of], 0);
}

/// Far from faces across the first two axes the rows of a plane wave have the same pattern. The wave is so high that
/// values ahead of it are seen there within a few steps.
#[test]
fn rows_far_from_faces_are_corrected_alike() {
    let mirrors = [Boundary::Pmc, Boundary::Pmc];
    let scheme = bounded(
        maxwell(4, Precision::F32, [27, 28, 20]),
        [OPEN, RING, mirrors],
    );
    let update = &scheme.stages[1].updates[1];
    assert_eq!(scheme.component(update.target).name, "E.y");
    let mut of = wave(&scheme, [1, 0, 0], [1, 1], &[[[4, 23], [0, 28], [0, 12]]]);
    if let IncidentField::Plane(wave) = &mut of.field {
        let drive = &mut wave.drives[0].wave;
        *drive = HostExpr::binary(HostBinary::Mul, HostExpr::Number(1e30), drive.clone());
    }
    let problem = Problem {
        incidents: vec![of.clone()],
        ..Problem::default()
    };
    let updates = incident::corrected_updates(&scheme, &problem);
    let count = |far| updates.iter().filter(|u| u.far_rows == far).count();
    // E.z and H.z read nothing along z.
    assert_eq!([FarRows::Alike, FarRows::Bare].map(count), [4, 2]);
    blocks_by_towers(5, 8, &scheme, "torre(W = 6, TH = 2)", vec![of], 0);
}

/// A plane wave along no axis, so high that values ahead of it are seen within a few steps.
fn high_wave(scheme: &Scheme, boxes: &[[[i64; 2]; 3]]) -> Incident {
    let mut of = wave(scheme, [1, -1, 2], [1, 0], boxes);
    if let IncidentField::Plane(wave) = &mut of.field {
        let drive = &mut wave.drives[0].wave;
        *drive = HostExpr::binary(HostBinary::Mul, HostExpr::Number(1e30), drive.clone());
    }
    of
}

/// Waves of rows far from faces across the first two axes are copied: by towers that meet no such faces, and by towers
/// that pass them. One box, and two.
#[test]
fn waves_far_from_faces_are_copied() {
    let cases = [
        (
            Precision::F32,
            [42, 32, 16],
            vec![[[10, 32], [8, 25], [5, 11]]],
        ),
        (
            Precision::F64,
            [30, 25, 16],
            vec![[[7, 22], [6, 20], [5, 11]], [[8, 21], [7, 19], [4, 12]]],
        ),
    ];
    for (number, (precision, cells, boxes)) in cases.into_iter().enumerate() {
        let scheme = maxwell(4, precision, cells);
        let of = high_wave(&scheme, &boxes);
        let problem = Problem {
            incidents: vec![of.clone()],
            ..Problem::default()
        };
        let schedule = "torre(W = 4, TH = 4)";
        let (plan, _) = plan_of(&Interpreted::new(), &scheme, &problem, schedule);
        let program = &plan.towers().expect("towers").program;
        assert!(program.block.slots.is_some(), "{number}");
        blocks_by_towers(2, 30 + number as u64, &scheme, schedule, vec![of], 1);
    }
}

/// The towers of a wave whose rows far from faces have slots, and their kernel as LLVM gets it.
fn kernel_with_slots() -> (TowerProgram, String) {
    let scheme = maxwell(4, Precision::F32, [42, 32, 16]);
    let problem = Problem {
        incidents: vec![high_wave(&scheme, &[[[10, 32], [8, 25], [5, 11]]])],
        ..Problem::default()
    };
    let schedule = "torre(W = 4, TH = 4)";
    let (plan, _) = plan_of(&Interpreted::new(), &scheme, &problem, schedule);
    let program = plan.towers().expect("towers").program.clone();
    assert!(program.block.slots.is_some());
    let mut module = Module::new();
    tower::emit(&mut module, &scheme, &plan.kernels.layout, &program);
    (program, module.text())
}

/// Producer warps copy the waves of a stage before they wait for its neighbours, and its rows behind that.
#[test]
fn waves_are_under_way_when_neighbours_are_waited_for() {
    let (program, text) = kernel_with_slots();
    let kinds = [
        ("waves", "cp.async.ca.shared.global [$1], [$0], 8"),
        ("wait", "ld.acquire.cta.shared.u32"),
        ("rows", "cp.async.cg.shared.global.16"),
        ("end", "cp.async.mbarrier.arrive.noinc"),
    ];
    let kind = |line: &str| kinds.iter().find(|(_, code)| line.contains(code));
    let calls = text.lines().filter(|line| line.contains("call "));
    let mut order: Vec<&str> = calls.filter_map(kind).map(|(name, _)| *name).collect();
    order.dedup();
    let stages = order.split(|name| *name == "end");
    let of_stages = stages.filter(|stage| stage.ends_with(&["waves", "wait", "rows"]));
    // Towers that ends cut off have code of their own.
    let variants = &program.towers.variants;
    let codes = 1 + usize::from(variants.plain() < variants.all.len());
    let expected: usize = program.periods.iter().map(|p| p.variants[0].len()).sum();
    assert_eq!(of_stages.count(), codes * expected, "{order:?}");
}

/// Near faces a lane finds the pattern of a row, and all threads of its warp get it.
#[test]
fn lanes_find_the_patterns_of_rows_near_faces() {
    let (program, text) = kernel_with_slots();
    let mut rows = 0;
    for period in &program.periods {
        let variants = period.variants.iter().zip(&program.towers.variants.all);
        let near = variants.filter(|(_, variant)| variant.faces);
        let ops = near.flat_map(|(stages, _)| stages.iter().flat_map(|stage| &stage.ops));
        rows += ops
            .map(|op| match op {
                RowOp::Inject { rows, .. } => rows.len(),
                _ => 0,
            })
            .sum::<usize>();
    }
    assert!(rows > 0);
    let given = text
        .matches("call i32 @llvm.nvvm.shfl.sync.idx.i32")
        .count();
    assert_eq!(given, rows);
}

/// Several boxes of several fields, one in another one; injections of sources into the same places follow.
#[test]
fn boxes_of_several_fields_act_in_their_order() {
    let scheme = maxwell(4, Precision::F32, [25, 24, 18]);
    let [large, small] = [[[4, 21], [4, 20], [3, 15]], [[8, 16], [4, 15], [3, 12]]];
    let all = vec![given(&scheme, &[large, small]), given(&scheme, &[small])];
    by_towers(2, &scheme, "torre(D = 1, TH = 2)", all, 2);
}

/// Boxes that reach mirrors, and go around periodic axes.
#[test]
fn boxes_reach_mirrors_and_go_around() {
    let mirrors = [Boundary::Pmc, Boundary::Pmc];
    let scheme = maxwell(4, Precision::F32, [24, 16, 14]);
    let scheme = bounded(scheme, [OPEN, RING, mirrors]);
    let whole = [[5, 18], [0, 16], [0, 14]];
    let of = given(&scheme, &[whole]);
    by_towers(3, &scheme, "torre(D = 1, TH = 2)", vec![of], 1);
    let scheme = bounded(maxwell(2, Precision::F32, [16, 21, 13]), [RING, OPEN, RING]);
    let of = given(&scheme, &[[[0, 16], [4, 16], [0, 13]]]);
    by_towers(4, &scheme, "torre(D = 1, TH = 2)", vec![of], 0);
}

/// Elastic waves; lines that two blocks share.
#[test]
fn corrections_of_other_schemes_act_inside_of_time_blocks() {
    let scheme = elasticity(Precision::F32, [22, 23, 14]);
    let of = given(&scheme, &[[[5, 17], [5, 17], [4, 10]]]);
    by_towers(5, &scheme, "torre(W = 6, TH = 2)", vec![of], 0);
    let scheme = maxwell(2, Precision::F32, [18, 19, 12]);
    let of = given(&scheme, &[[[4, 14], [5, 15], [3, 9]]]);
    by_towers(6, &scheme, "torre(D = 1, TH = 2)", vec![of], 1);
    let scheme = maxwell(4, Precision::F64, [14, 15, 190]);
    let of = given(&scheme, &[[[4, 10], [4, 11], [20, 170]]]);
    by_towers(7, &scheme, "torre(D = 1, TH = 2)", vec![of], 0);
}

/// A box of more rows than points could have.
#[test]
fn large_boxes_stay_in_towers() {
    let device = Interpreted::new();
    let scheme = maxwell(4, Precision::F32, [1024, 1024, 256]);
    let problem = Problem {
        steps: 1000,
        incidents: vec![wave(
            &scheme,
            [1, 2, 3],
            [0, 0],
            &[[[20, 1000], [20, 1000], [20, 236]]],
        )],
        ..Problem::default()
    };
    let (plan, _) = plan_of(&device, &scheme, &problem, "torre(D = 2, TH = 8)");
    assert_eq!(plan.note, None);
}
