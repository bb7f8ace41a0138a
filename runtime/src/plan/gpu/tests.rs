//! Plans for GPUs, and refusals.

mod interrupted;
mod measured;
mod sides;

use super::*;
use crate::world::FileWorld;
use std::path::Path;
use torre_compiler::backend::gpu::Gpu;
use torre_compiler::driver::load;
use torre_compiler::host::HostExpr;
use torre_compiler::lattice::PerAxis;
use torre_compiler::problem::{Drive, Incident, IncidentField, PlaneWave, TotalBox};
use torre_compiler::schedule::Pyramid;
use torre_compiler::schedule::template::Size;
use torre_compiler::scheme::{Boundary, Precision};
use torre_compiler::testing::{add_layers, everywhere, maxwell};
use torre_grammar::source::Source;

fn h200() -> DeviceModel {
    usual("sm_90")
}

fn usual(name: &str) -> DeviceModel {
    DeviceModel::usual(Gpu::named(name).expect("a GPU")).expect("a usual GPU")
}

fn problem() -> Problem {
    Problem {
        name: "empty".to_owned(),
        steps: 1000,
        ..Problem::default()
    }
}

/// The member of a size and a height, or all that `auto` considers.
fn choices(scheme: &Scheme, size: Option<(i64, i64)>) -> Result<Vec<Choice>, NoDevicePlan> {
    let (problem, model) = (problem(), h200());
    let planner = DevicePlanner::new(scheme, &problem, &model)?;
    let one = |(d, th): (i64, i64)| {
        let [d, th] = [Size::of("D", &[d]), Size::of("TH", &[th])];
        Template::Tiled(template::towers(
            d,
            template::tower_unit(&planner.planner.frame),
            th,
        ))
    };
    planner.choices(&size.map_or(Template::Auto, one))
}

#[test]
fn large_grids_go_by_the_widest_towers_that_fit() {
    for (precision, cells, rate) in [
        (Precision::F32, [1536, 1536, 256], 120e9..160e9),
        (Precision::F64, [1536, 1536, 128], 55e9..80e9),
    ] {
        let scheme = maxwell(4, precision, cells);
        let choices = choices(&scheme, None).expect("towers");
        assert!(
            choices[0].name.starts_with("torre(D = 2"),
            "{}",
            choices[0].name
        );
        assert!(rate.contains(&choices[0].prediction.rate), "{choices:?}");
        let narrow = choices.iter().find(|c| c.name.starts_with("torre(D = 1"));
        let share = narrow.map(|c| c.prediction.rate / choices[0].prediction.rate);
        assert!(share.is_some_and(|s| (0.55..0.9).contains(&s)), "{share:?}");
        assert!(choices.iter().any(|c| c.schedule == Schedule::Layerwise));
    }
}

#[test]
fn what_does_not_fit_is_refused_with_numbers() {
    let refusal_of = |scheme: Scheme, size| match choices(&scheme, Some((size, 8))) {
        Err(NoDevicePlan::Refused { refusal, fits, .. }) => Some((refusal, fits)),
        _ => None,
    };
    let refusal = |cells, size| refusal_of(maxwell(4, Precision::F32, cells), size);
    let shared = |rows, bytes| Refusal::Shared {
        rows,
        bytes,
        most: 227 << 10,
    };
    let (found, fits) = refusal([99, 99, 256], 3).expect("no room");
    assert_eq!(found, shared(290, (290 * 260 + 4) * 4 + 640));
    assert_eq!(
        fits,
        "for these lines `torre(D = 1)`, `torre(W = 4)`, `torre(W = 5)`, `torre(D = 2)` fit"
    );
    // Short lines leave room in shared memory, but not in registers.
    let (found, _) = refusal([99, 99, 64], 3).expect("no room");
    let registers = Refusal::Registers {
        kept: 238,
        needed: 262,
        threads: 192,
        most: 255,
    };
    assert_eq!(found, registers);
    // Cut towers run by a list of rows in constant memory.
    let (found, fits) = refusal([99, 99, 64], 28).expect("too many rows");
    assert!(
        matches!(found, Refusal::Rows { rows } if rows > 16384),
        "{found:?}"
    );
    assert!(fits.contains("`torre(D = 2)`"), "{fits}");
    // Blocks share longer lines.
    let (found, fits) = refusal([99, 99, 800], 3).expect("no registers");
    assert!(
        matches!(found, Refusal::Shared { rows: 290, .. }),
        "{found:?}"
    );
    assert!(fits.contains("`torre(D = 2)` fit"), "{fits}");
    for cells in [256, 500, 512, 1000, 1024, 2000, 9000] {
        assert!(refusal([99, 99, cells], 2).is_none(), "{cells}");
    }
    // Periodic lines are not cut.
    let mut scheme = maxwell(4, Precision::F32, [99, 99, 9000]);
    scheme.grid.boundary[Axis::INNER] = [Boundary::Periodic; 2];
    for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
        let position = scheme.components[update.target.index()].position;
        update.region = scheme.grid.live(position);
    }
    let (found, fits) = refusal_of(scheme, 2).expect("no threads");
    assert_eq!(found, Refusal::Line { values: 9000 });
    assert!(fits.contains("--set domain"), "{fits}");
}

/// States that follow the value that their own update overwrites cost the traffic of a copy of it: layerwise it is
/// written, and read twice.
#[test]
fn states_may_follow_overwritten_values() {
    let choices = |follows: &str, domain: &str, module: &str| {
        let text = format!(
            "use std::acoustics::{module}
def slow(u, body) {{
  state lost in body
  lost@next = 0.9 * lost + {follows}
  lost@next
}}
scheme lossy : {module} {{
  region body = x > 32
  step {{ p -= dt * (kappa * std::div::div(v, order) + slow(p, body)) }}
}}
problem bar {{ scheme lossy; domain {domain}; steps 1000 }}"
        );
        let source = Source::new("p.torre", text);
        let world = FileWorld::beside(Path::new("."));
        let resolved = load(&world, &source, &Default::default());
        let (scheme, problem, model) = (resolved.expect("a problem").scheme, problem(), h200());
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("a planner");
        let (plan, choices) = planner.best(&Template::Auto).expect("a plan");
        assert_eq!(plan.choice, choices[0]);
        choices
    };
    for (module, domain, family) in [
        ("acoustics_2d", "64 x 4096", "pyramid"),
        ("acoustics", "64 x 512 x 256", "torre"),
    ] {
        let [bare, following] = ["0.1", "0.1 * u"].map(|f| choices(f, domain, module));
        let layerwise = |of: &[Choice]| {
            let own = of.iter().find(|c| c.schedule == Schedule::Layerwise);
            own.map(|c| c.prediction.clone())
                .expect("it is always there")
        };
        let [bare, kept] = [&bare, &following].map(|of| layerwise(of));
        let more = (kept.memory_bytes - bare.memory_bytes) / (3.0 * 4.0);
        assert!((0.4..0.55).contains(&more), "{more}");
        assert!(kept.rate < bare.rate, "{kept:?}");
        let best = &following[0];
        assert!(best.name.starts_with(family), "{}", best.name);
        assert!(best.prediction.rate > kept.rate, "{best:?}");
    }
}

/// Layerwise schedules are no help where several GPUs or a calculation window were asked for, which go by towers.
#[test]
fn what_helps_beside_windows_and_several_gpus_is_said() {
    let text = |scheme: &str, domain: &str| {
        format!(
            "use std::maxwell::{scheme}\nproblem p {{ scheme {scheme}; domain {domain}; steps 9 }}"
        )
    };
    let window = Refusal::Window(NoWindow::Layerwise);
    let devices = Refusal::Devices(NoDevices::Layerwise);
    let stripes = Refusal::Devices(NoDevices::Steps {
        period: 1,
        every: 3,
    });
    for (scheme, domain, towers) in [
        ("maxwell_te", "64 x 64", false),
        ("maxwell42", "64 x 64 x 64", true),
    ] {
        let source = Source::new("p.torre", text(scheme, domain));
        let world = FileWorld::beside(Path::new("."));
        let resolved = load(&world, &source, &Default::default());
        let (scheme, problem, model) = (resolved.expect("a problem").scheme, problem(), h200());
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("a planner");
        for (refusal, option, by_towers) in [
            (&window, "--window none", towers),
            (&devices, "--devices 0", towers),
            (&stripes, "--devices 0", false),
        ] {
            let refused = planner.refused("layerwise", refusal.clone());
            let NoDevicePlan::Refused { fits, .. } = refused else {
                panic!("no refusal");
            };
            assert!(
                fits.contains(option) && !fits.contains("layerwise"),
                "{fits}"
            );
            assert_eq!(fits.contains("use towers"), by_towers, "{fits}");
        }
    }
}

/// Waves of order 8, whose updates read 26 values. Layerwise was fastest on an H200: 1.13 times as fast as D = 1, and
/// 1.9 times as fast as D = 3/2, for which threads have no registers.
#[test]
fn values_of_long_sums_in_memory_slow_wide_towers_down() {
    let text = "use std::wave::wave
problem p {
  scheme wave { order = 8 }
  domain 1536 x 1536 x 512
  coef c = 0.6 + x/9999
  steps 1
}
";
    let source = Source::new("p.torre", text);
    let world = FileWorld::beside(Path::new("."));
    let resolved = load(&world, &source, &Default::default());
    let scheme = resolved.expect("a problem").scheme;
    let all = choices(&scheme, None).expect("towers");
    assert_eq!(all[0].name, "layerwise");
    let best = |start: &str| {
        let alike = all.iter().filter(|choice| choice.name.starts_with(start));
        let rates = alike.map(|choice| choice.prediction.rate);
        rates.fold(0.0, f64::max)
    };
    let [wide, narrow] = ["torre(D = 3/2", "torre(D = 1,"].map(best);
    assert!(wide > 0.0 && wide < 0.75 * narrow, "{wide:e} {narrow:e}");
}

#[test]
fn lines_that_one_block_does_not_hold_are_shared() {
    for (target, precision, cells, blocks) in [
        ("sm_90", Precision::F32, 256, 1),
        ("sm_90", Precision::F32, 512, 2),
        ("sm_90", Precision::F32, 1000, 4),
        ("sm_90", Precision::F64, 128, 1),
        ("sm_90", Precision::F64, 256, 2),
        ("sm_90", Precision::F64, 512, 4),
        // A larger block, whose threads get registers of others.
        ("sm_90a", Precision::F32, 336, 1),
    ] {
        let scheme = maxwell(4, precision, [512, 512, cells]);
        // Z blocks would lean too much in time blocks as high as that.
        let all = choices(&scheme, Some((2, 128))).expect("towers");
        let (problem, model) = (problem(), usual(target));
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("a small grid");
        let plan = planner.plan(all[0].clone()).expect("towers");
        let block = &plan.towers().expect("towers").fit.block;
        assert_eq!(
            block.lines.cluster(),
            blocks,
            "{cells} in {precision} for {target}"
        );
    }
}

/// Lines are cut into z blocks where GPUs have no clusters, or where one asks for it.
#[test]
fn long_lines_are_cut() {
    let problem = problem();
    let plan = |target, cells, th: i64, division| {
        let model = usual(target);
        let scheme = maxwell(4, Precision::F32, [512, 512, cells]);
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("a small grid");
        let planner = DevicePlanner {
            division,
            ..planner
        };
        let [d, th] = [Size::of("D", &[2]), Size::of("TH", &[th])];
        let unit = template::tower_unit(&planner.planner.frame);
        let asked = Template::Tiled(template::towers(d, unit, th));
        let (plan, choices) = planner.best(&asked)?;
        let towers = plan.towers().expect("towers");
        assert_eq!(towers.fit.block.lines.cluster(), 1);
        let rate = choices[0].prediction.rate;
        Ok((towers.z_blocks, towers.fit.block.values, rate))
    };
    let of = |values: u32| Some(Division::ZBlocks(values / 32));
    let (count, values, rate) = plan("sm_80", 512, 8, None).expect("z blocks");
    assert_eq!((count, values), (Some(3), 192));
    // Higher time blocks lean more, up to where blocks do not reach.
    let (more, _, less) = plan("sm_80", 512, 16, of(192)).expect("z blocks");
    assert!(more > count && less < rate, "{more:?}");
    let refused: Result<_, NoDevicePlan> = plan("sm_80", 512, 128, None);
    let Err(NoDevicePlan::Refused { refusal, .. }) = refused else {
        panic!("faces lean farther than threads reach");
    };
    assert_eq!(refusal, Refusal::Lean { steps: 128 });
    let (count, values, _) = plan("sm_90a", 768, 8, of(288)).expect("z blocks");
    assert_eq!((count, values), (Some(3), 288));
}

#[test]
fn small_grids_leave_multiprocessors_idle() {
    let rate = |cells| {
        let scheme = maxwell(4, Precision::F32, cells);
        choices(&scheme, Some((2, 32))).map(|all| all[0].prediction.rate)
    };
    let [small, large] = [[48, 48, 256], [768, 768, 256]].map(|cells| rate(cells).expect("towers"));
    assert!(small < 0.4 * large, "{small:e} {large:e}");
}

/// A plane wave in a box that ends `before` cells before the ends of the grid.
fn with_box(scheme: &Scheme, before: i64) -> Problem {
    let ends = PerAxis::from_fn(|axis| [before, scheme.grid.cells[axis] - before]);
    let drive = Drive {
        component: scheme.stages[1].updates[2].target,
        wave: HostExpr::Time,
    };
    Problem {
        incidents: vec![Incident {
            name: "wave".to_owned(),
            field: IncidentField::Plane(PlaneWave {
                direction: PerAxis([1, 2, 3]),
                drives: vec![drive],
                loss: 0.0,
            }),
            boxes: vec![TotalBox { ends }],
        }],
        ..problem()
    }
}

/// Faces of a box slow towers down in periods near them, the more the smaller the grid is, and layerwise kernels by the
/// values that are corrected; so the choice goes by both.
#[test]
fn boxes_of_total_fields_slow_towers_and_layerwise_kernels_down() {
    let model = h200();
    let slower = |cells: i64| {
        let scheme = maxwell(4, Precision::F32, [cells; 3]);
        let rates = |problem: &Problem| {
            let planner =
                DevicePlanner::new(&scheme, problem, &model).expect("it can be addressed");
            let (plan, _) = planner.best(&Template::Auto).expect("a plan");
            let rate = |choice: &Choice| choice.prediction.rate;
            let towers = plan.towers().is_some();
            assert_eq!(towers, rate(&plan.choice) > rate(&planner.layerwise));
            [rate(&plan.choice), rate(&planner.layerwise)]
        };
        let (bare, boxed) = (rates(&problem()), rates(&with_box(&scheme, 16)));
        [0, 1].map(|n| boxed[n] / bare[n])
    };
    let ([towers, layerwise], [small, least]) = (slower(768), slower(256));
    assert!((0.6..1.0).contains(&towers), "{towers}");
    assert!((0.7..0.95).contains(&layerwise), "{layerwise}");
    assert!(small < towers && least < layerwise, "{small} {least}");
}

#[test]
fn layers_slow_towers_down_and_keep_their_variants() {
    let bare = maxwell(4, Precision::F32, [768, 768, 256]);
    let layered = |cells: [i64; 3]| {
        let mut scheme = bare.clone();
        add_layers(&mut scheme, PerAxis(cells));
        scheme
    };
    let (problem, model) = (problem(), h200());
    let planned = |scheme: &Scheme| {
        let planner = DevicePlanner::new(scheme, &problem, &model).expect("it can be addressed");
        let (plan, _) = planner.best(&Template::Auto).expect("a plan");
        let towers = plan.towers().expect("towers");
        let window = planner.window(Some(towers), Wanted::default()).err();
        let working = towers.fit.registers - towers.fit.kept as u64;
        let rate = plan.choice.prediction.rate;
        ((rate, working), towers.variants.clone(), window)
    };
    let ((whole, few), none, _) = planned(&bare);
    assert!(none.is_empty(), "{none:?}");
    let ((sides, same), two, _) = planned(&layered([10, 10, 0]));
    let ((all, more), both, window) = planned(&layered([10, 10, 10]));
    assert!(all < sides && sides < whole, "{all} {sides} {whole}");
    // Layers that few towers meet take no registers from the others.
    assert!(few == same && same < more, "{few} {same} {more}");
    assert!(all > layerwise(&bare, &model).prediction.rate);
    let count = |variants: &[PlannedVariant]| {
        let of = |v: &PlannedVariant| (v.zones.len(), v.predicated);
        variants.iter().map(of).collect::<Vec<(usize, bool)>>()
    };
    assert_eq!(count(&two)[..2], [(0, false), (2, false)]);
    assert_eq!(count(&both)[..2], [(1, false), (3, false)]);
    assert!(two[0].towers > 4 * two[1].towers, "{two:?}");
    assert!(matches!(
        window,
        Some(Refusal::Window(NoWindow::Memory { .. }))
    ));
}

/// Layers that many towers meet take the registers of amendments, as no values of many towers may lie in memory: D = 2
/// has none left in f64.
#[test]
fn layers_that_many_towers_meet_take_registers() {
    let (problem, model) = (problem(), h200());
    let fits = |cells| {
        let mut scheme = maxwell(4, Precision::F64, [768, 768, 64]);
        add_layers(&mut scheme, PerAxis(cells));
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("it can be addressed");
        let unit = template::tower_unit(&planner.planner.frame);
        let [size, height] = [("D", 2), ("TH", 8)].map(|(name, n)| Size::of(name, &[n]));
        let family = Template::Tiled(template::towers(size, unit, height));
        match planner.choices(&family) {
            Ok(_) => true,
            Err(NoDevicePlan::Refused {
                refusal: Refusal::Registers { needed, most, .. },
                ..
            }) => {
                assert!(needed > most, "{needed} {most}");
                false
            }
            Err(other) => panic!("{other:?}"),
        }
    };
    assert!(fits([10, 0, 0]));
    assert!(!fits([192, 0, 0]));
}

/// Small grids with three axes may stay on the chip; where they do not fit, pyramids are refused, and `auto` has none.
#[test]
fn small_grids_with_three_axes_stay_on_the_chip() {
    let (problem, model) = (problem(), h200());
    let pyramids = |choices: &[Choice]| {
        let found = |c: &&Choice| matches!(c.schedule, Schedule::Pyramids(_));
        choices.iter().find(found).cloned()
    };
    for (order, precision, cells) in [
        (2, Precision::F32, 64),
        (2, Precision::F64, 48),
        (4, Precision::F32, 48),
    ] {
        let scheme = maxwell(order, precision, [cells; 3]);
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("a small grid");
        let choices = planner.choices(&Template::Auto).expect("a choice");
        let rates = choices.iter().take(4);
        let rates: Vec<_> = rates
            .map(|c| format!("{} {:.1e}", c.name, c.prediction.rate))
            .collect();
        let choice = pyramids(&choices).expect("pyramids");
        let rate = choice.prediction.rate;
        let plan = planner.plan(choice).expect("a plan");
        let program = &plan.patches().expect("pyramids").program;
        println!("{order} {precision} {cells}: {rates:#?} {rate:.1e}\n{program}");
        assert!(program.three && program.stays.is_some(), "{rates:?}");
        assert!(program.tiles() <= 132 * i64::from(program.shape.blocks));
    }
    let large = maxwell(4, Precision::F32, [256; 3]);
    let planner = DevicePlanner::new(&large, &problem, &model).expect("a small grid");
    let choices = planner.choices(&Template::Auto).expect("a choice");
    assert!(pyramids(&choices).is_none(), "{choices:?}");
    let base = PerAxis([Some(14), Some(14), Some(16)]);
    let refusal = planner.patch_plan(&Pyramid { height: 1, base });
    let refusal = refusal.err().map(|refusal| refusal.to_string());
    assert!(
        refusal.is_some_and(|text| text.contains("stay on the chip")),
        "too many tiles"
    );
}

/// A window has no more places than the domain has planes, for any memory, along an open axis and around a
/// periodic one, and takes no more memory for them.
#[test]
fn windows_are_no_larger_than_domains() {
    let (problem, model) = (problem(), h200());
    for boundary in [Boundary::Zero, Boundary::Periodic] {
        let mut scheme = maxwell(4, Precision::F32, [600, 128, 64]);
        scheme.grid.boundary[Axis::OUTER] = [boundary; 2];
        everywhere(&mut scheme);
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("it can be addressed");
        let (plan, _) = planner.best(&Template::Auto).expect("a plan");
        let towers = plan.towers().expect("towers");
        for mapping in [model.facts.mapping, None] {
            let mut model = model.clone();
            model.facts.mapping = mapping;
            let planner = DevicePlanner::new(&scheme, &problem, &model);
            let planner = planner.expect("it can be addressed");
            let window = |available| {
                let wanted = Wanted {
                    available,
                    cells: plan.choice.prediction.rate,
                    ..Wanted::default()
                };
                planner.window(Some(towers), wanted).expect("a window")
            };
            let own = window(1 << 40);
            let places = own.how.held.places().expect("a window");
            let WindowKind::Moving(MovingWindow { least, .. }) = own.kind else {
                panic!("a window that moves");
            };
            assert!(places == own.planes && least <= places, "{own:?}");
            let fields = own.plane_bytes * own.planes as u64;
            assert!(own.bytes < fields + fields / 4, "{} of {fields}", own.bytes);
            let less = window(own.bytes / 4 * 3);
            assert!(less.how.held.places() < own.how.held.places(), "{less:?}");
        }
    }
}

/// Stripes have the groups of columns whose operations take least time, though not all groups are looked at: larger
/// groups in narrow stripes, where launches of small groups would have few towers.
#[test]
fn stripes_have_the_groups_that_take_least_time() {
    let model = h200();
    let mut chosen = Vec::new();
    for (steps, devices, [x, y]) in [(2400, 2, [300, 3600]), (24, 4, [600, 900])] {
        let problem = Problem { steps, ..problem() };
        let mut scheme = maxwell(4, Precision::F32, [x, y, 64]);
        everywhere(&mut scheme);
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("it can be addressed");
        let (plan, _) = planner.best(&Template::Auto).expect("a plan");
        let towers = plan.towers().expect("towers");
        let wanted = Wanted {
            available: 1 << 40,
            cells: plan.choice.prediction.rate,
            ..Wanted::default()
        };
        let bound = planner.stripes_bound(towers, devices, wanted);
        let best = planner.stripes(Some(towers), devices, wanted);
        let best = best.expect("stripes");
        assert!(best.rate.cells <= bound, "{:?} of {bound}", best.rate);
        for columns in [2, 4, 8, 16, 32] {
            let wanted = Wanted {
                columns: Some(columns),
                ..wanted
            };
            let own = planner.stripes(Some(towers), devices, wanted);
            let own = own.expect("stripes").rate.cells;
            let most = best.rate.cells;
            assert!(own <= most, "{columns} columns: {own} of {most}");
            assert_eq!(own == most, columns == best.stripes.columns());
        }
        chosen.push(best.stripes.columns());
    }
    assert!(chosen[0] < chosen[1], "{chosen:?}");
}
