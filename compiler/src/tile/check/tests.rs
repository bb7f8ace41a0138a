//! The checker passes legal programs, and notices others.

mod folds;
mod leads;
mod rules;
mod shapes;
mod strips;

use super::*;
use crate::cone::{Cones, Form, Rational, axis_form, cones};
use crate::schedule::face::Face;
use crate::schedule::{Cut, Frame, Illegal, Level, Tiling, check_tiling};
use crate::scheme::{Boundary, Located, Precision, StageId};
use crate::testing::{
    Limits, Rng, everywhere, maxwell, one_update_per_stage, random_scheme, random_tiling,
};
use crate::tile::in_integers;

pub(super) const LIMITS: Limits = Limits {
    dimensions: 3,
    components: 3,
    stages: 3,
    ops: 6,
    length: 12,
    width: 7,
    reach: 3,
};

pub(super) fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("TORRE_TEST_SEEDS").ok();
    0..count.and_then(|c| c.parse().ok()).unwrap_or(300)
}

struct Case {
    rng: Rng,
    scheme: Scheme,
    cones: Cones,
    frame: Frame,
    tiling: Tiling,
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &LIMITS);
        if seed.is_multiple_of(3) {
            scheme = one_update_per_stage(scheme);
        }
        let cones = cones(&scheme);
        let frame = Frame::new(&scheme, &cones);
        let tiling = random_tiling(&mut rng, &scheme, &frame);
        Case {
            rng,
            scheme,
            cones,
            frame,
            tiling,
        }
    }

    fn lower(&self) -> TileProgram {
        in_integers(&self.scheme, &self.frame, &self.tiling)
    }
}

/// Events that a run has, straight from the scheme.
fn events(scheme: &Scheme, steps: u64) -> u64 {
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    updates.map(|u| u.region.volume()).sum::<u64>() * steps
}

fn tiling(height: u64, forms: &[[i32; 3]], pitch: i64, scheme: &Scheme) -> (Frame, Cones, Tiling) {
    let cones = cones(scheme);
    let frame = Frame::new(scheme, &cones);
    let cuts = forms
        .iter()
        .map(|form| Cut {
            face: frame.fitting(PerAxis(*form)),
            pitch: Rational::whole(pitch),
        })
        .collect();
    let levels = vec![Level { cuts }];
    (frame, cones, Tiling { height, levels })
}

fn towers(height: u64, pitch: i64, scheme: &Scheme) -> TileProgram {
    let (frame, _, tiling) = tiling(height, &[[1, 1, 0], [1, -1, 0]], pitch, scheme);
    in_integers(scheme, &frame, &tiling)
}

#[test]
fn random_tilings_of_random_schemes_pass() {
    let (mut passed, mut several) = (0, 0);
    for seed in seeds() {
        let case = Case::new(seed);
        check_tiling(&case.frame, &case.tiling).expect("fitting faces are legal");
        let program = case.lower();
        let steps = 1 + seed % 7;
        let report = match check(&case.scheme, &program, steps).map_err(|fault| *fault) {
            Ok(report) => report,
            Err(TileFault::TooLarge) => continue,
            Err(fault) => panic!(
                "seed {seed}: {fault}\n{}\n{program}{}",
                case.tiling, case.scheme
            ),
        };
        passed += 1;
        assert_eq!(report.events, events(&case.scheme, steps), "seed {seed}");
        for level in &report.levels {
            assert!(level.loads <= report.reads, "seed {seed}");
            assert!(level.stores <= report.events, "seed {seed}");
        }
        several += u64::from(report.strips > 2 && report.levels[0].tiles > report.strips);
    }
    // Few are too large to look at, and many have something to order.
    assert!(10 * passed > 9 * seeds().end, "{passed}");
    assert!(several > seeds().end / 6, "{several}");
}

#[test]
fn slopes_below_the_needed_are_refused_and_mostly_go_wrong() {
    let (mut tried, mut found) = (0, 0);
    let (mut versions, mut races) = (0, 0);
    for seed in seeds() {
        let mut case = Case::new(seed);
        // Updates act everywhere, so that each vector has events.
        everywhere(&mut case.scheme);
        case.cones = cones(&case.scheme);
        case.frame = Frame::new(&case.scheme, &case.cones);
        let Some(cuts) = case.tiling.levels.first_mut().map(|l| &mut l.cuts) else {
            continue;
        };
        for cut in cuts.iter_mut() {
            cut.face = case.frame.fitting(cut.face.form);
            // Odd, so that planes meet positions of either kind.
            cut.pitch = Rational::halves(2 * case.rng.within(0, 2) + 1);
        }
        case.tiling.levels.truncate(1);
        let cuts = &mut case.tiling.levels[0].cuts;
        if cuts.is_empty() {
            continue;
        }
        let cut = case.rng.below(cuts.len() as u64) as usize;
        let needed = case.frame.slope(cuts[cut].face.form);
        let given = (needed - Rational::halves(1)).max(Rational::ZERO);
        let form = cuts[cut].face.form;
        let narrow = |a: Axis| form[a] != 0 && case.scheme.grid.cells[a] < 6;
        if needed.is_zero() || Axis::ALL.into_iter().any(narrow) {
            continue;
        }
        cuts[cut].face.slope = given;
        let bad = cuts[cut];
        match check_tiling(&case.frame, &case.tiling) {
            Err(Illegal::Slope { cut, needed: asked }) => {
                assert_eq!((cut, asked.slope), (bad, needed), "seed {seed}");
                let own = case.frame.slope_of(&asked.dependence, bad.face.form);
                assert!(own >= needed, "seed {seed}");
                leads::check_chain(&case.frame, &asked.chain, bad.face.form, needed);
            }
            other => panic!("seed {seed}: {other:?}"),
        }
        let program = case.lower();
        tried += 1;
        match check(&case.scheme, &program, 6).map_err(|fault| *fault) {
            // The fold of a ring asks for more than some reads need, and few places may lie just so.
            Ok(_) | Err(TileFault::TooLarge) => {}
            Err(TileFault::WrongVersion { crossing, .. })
            | Err(TileFault::WrongTurn { crossing, .. }) => {
                let Some(Crossing::Cut { level, cut, .. }) = crossing else {
                    panic!("seed {seed}: {crossing:?}");
                };
                let plane = program.planes[program.levels[level][cut].plane];
                let form = bad.face.form.map(i64::from);
                let parallel = Axis::ALL.iter().all(|&a| {
                    Axis::ALL
                        .iter()
                        .all(|&b| plane.form[a] * form[b] == plane.form[b] * form[a])
                });
                assert!(
                    parallel,
                    "seed {seed}: {plane} instead of {}",
                    bad.face.slope
                );
                (found, versions) = (found + 1, versions + 1);
            }
            Err(TileFault::Race { .. }) => (found, races) = (found + 1, races + 1),
            Err(fault) => panic!("seed {seed}: {fault}"),
        }
    }
    assert!(tried > seeds().end / 10, "{tried}");
    assert!(4 * found > 3 * tried, "{found} of {tried}");
    assert!(versions > 0 && races > 0, "{versions} {races}");
}

#[test]
fn a_wait_that_is_left_out_is_a_race() {
    let scheme = maxwell(4, Precision::F32, [20, 20, 6]);
    let program = towers(2, 6, &scheme);
    let run = |change: &dyn Fn(&mut Waits)| {
        let waits = |strips: &Strips, strip| {
            let mut waits = strips.waits(strip);
            change(&mut waits);
            waits
        };
        let order = Order {
            waits: &waits,
            ..Order::default()
        };
        check_with(&scheme, &program, 6, &order)
    };
    run(&|_| {}).expect("with both waits nothing is wrong");
    // Rows of both kinds of shapes have run: whole ones, and ones that ends cut.
    let (strips, mut shapes) = (Strips::new(&program, 6), Shapes::new(&program));
    let mut of_shapes = [0, 0];
    for strip in 0..strips.len() {
        let numbers = strips.time_blocks[strips.time_block(strip)].numbers;
        strips.tiles(&program, strip, &mut |_, _, tile| {
            let mut parts = Vec::new();
            assert!(shapes.parts(tile, numbers, SheetSet::MAX, &mut parts));
            let whole = parts.iter().all(|p| p.whole());
            of_shapes[usize::from(whole)] += 1;
        });
    }
    assert!(of_shapes.iter().all(|n| *n > 4), "{of_shapes:?}");
    let left = run(&|waits| waits.left = None).expect_err("neighbours need each other");
    match *left {
        TileFault::Race {
            earlier,
            later,
            crossing: Crossing::Cut { cut: 0, .. },
            ..
        } => {
            assert_eq!(earlier.time_block, later.time_block);
            assert_eq!(earlier.indices[0] + 1, later.indices[0]);
        }
        other => panic!("{other}"),
    }
    let before = run(&|waits| waits.before = None).expect_err("time blocks need each other");
    match *before {
        TileFault::Race { earlier, later, .. } => {
            assert_eq!(earlier.time_block + 1, later.time_block)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn waits_that_are_left_out_are_noticed_on_random_schemes() {
    let mut found = [0, 0];
    for seed in seeds() {
        let case = Case::new(seed);
        let program = case.lower();
        for (n, found) in found.iter_mut().enumerate() {
            let waits = |strips: &Strips, strip| {
                let waits = strips.waits(strip);
                match n {
                    0 => Waits {
                        left: None,
                        ..waits
                    },
                    _ => Waits {
                        before: None,
                        ..waits
                    },
                }
            };
            let order = Order {
                waits: &waits,
                ..Order::default()
            };
            let result = check_with(&case.scheme, &program, 5, &order);
            match result.map_err(|fault| *fault) {
                Ok(_) | Err(TileFault::TooLarge) => {}
                Err(TileFault::Race { .. }) => *found += 1,
                Err(fault) => panic!("seed {seed}: {fault}"),
            }
        }
    }
    assert!(found.iter().all(|n| *n > seeds().end / 5), "{found:?}");
}

#[test]
fn events_that_are_missing_doubled_or_misplaced_are_noticed() {
    let scheme = maxwell(2, Precision::F32, [6, 6, 6]);
    let program = towers(2, 2, &scheme);
    let run = || Run::new(&scheme, &program, 2).expect("a sound program");

    let mut short = run();
    short
        .time_blocks(1, &Order::default())
        .expect("one step is right");
    short.finish(1).expect("and complete");
    let fault = *short.finish(2).expect_err("the second step is missing");
    assert!(
        matches!(fault, TileFault::Missing { event: Some(e), .. } if e.number >= 2),
        "{fault}"
    );

    let mut again = run();
    again
        .time_blocks(1, &Order::default())
        .expect("one step is right");
    again.group = 1;
    let fault = *again
        .time_blocks(1, &Order::default())
        .expect_err("the same step once more");
    assert!(
        matches!(fault, TileFault::WrongVersion { event, expected, found, .. }
            if event.number == 0 && found > expected),
        "{fault}"
    );

    let mut twice = run();
    let strips = Strips::new(&program, 1);
    twice.tiles.push(Outer {
        group: 0,
        time_block: 0,
        track: 0,
        sequence: 0,
        indices: vec![strips.time_blocks[0].strips.lo, 0],
    });
    twice.clock = vec![0; strips.len()];
    twice.enter(0, Vec::new());
    let event = Event {
        number: 1,
        stage: StageId(1),
        update: 0,
        at: PerAxis([2, 2, 2]),
    };
    let fault = *twice
        .event(event)
        .expect_err("it reads H before it is there");
    assert!(
        matches!(
            fault,
            TileFault::WrongVersion {
                expected: 1,
                found: 0,
                ..
            }
        ),
        "{fault}"
    );
    let first = Event {
        number: 0,
        stage: StageId(0),
        ..event
    };
    twice.event(first).expect("the first time");
    let fault = *twice.event(first).expect_err("the second time");
    // It reads its own old value, which is gone.
    assert!(
        matches!(
            fault,
            TileFault::WrongVersion {
                expected: 0,
                found: 1,
                ..
            }
        ),
        "{fault}"
    );

    let class = &program.stages[0][0];
    let mut tile = program.whole();
    let outside = Event {
        at: PerAxis([2, 2, 6]),
        ..first
    };
    let fault = *twice.inside(&tile, class, 0, outside).expect_err("no cell");
    assert!(matches!(fault, TileFault::OutOfRegion { .. }), "{fault}");
    twice.inside(&tile, class, 0, first).expect("a cell");
    program.narrow(&mut tile, program.levels[0][0], 0);
    let fault = *twice.inside(&tile, class, 0, first).expect_err("far away");
    assert!(
        matches!(fault, TileFault::OutOfTile { plane: 0, .. }),
        "{fault}"
    );
}

/// Loads and stores of a run of one time block of towers.
fn traffic(size: [i64; 4], pitch: i64) -> [i64; 2] {
    let [x, y, z, height] = size;
    let scheme = maxwell(4, Precision::F32, [x, y, z]);
    let program = towers(height as u64, pitch, &scheme);
    let report =
        check(&scheme, &program, height as u64).unwrap_or_else(|fault| panic!("{size:?}: {fault}"));
    assert_eq!(report.events, events(&scheme, height as u64));
    assert_eq!(report.time_blocks, 1);
    let level = report.levels[0];
    [level.loads as i64, level.stores as i64]
}

/// A tower of half-diagonal D, with 9 D^2 / 2 cells per stage, stores 27 (2 D - 1) values and loads 54 D + 15 per step:
/// values that it computes for the first time, and the neighbours along the axes that each curl uses, counted out on an
/// infinite lattice. The parts of ends and edges are removed by taking differences along all axes and in the height.
#[test]
fn towers_load_and_store_by_their_law() {
    for d in [1, 2] {
        let mut sums = [0, 0];
        for corner in 0..16 {
            let more = |bit: i64| corner >> bit & 1;
            let size = [12 + 6 * more(0), 12 + 6 * more(1), 3 + more(2), 1 + more(3)];
            let sign = if (0..4).map(more).sum::<i64>() % 2 == 0 {
                1
            } else {
                -1
            };
            for (sum, n) in sums.iter_mut().zip(traffic(size, 3 * d)) {
                *sum += sign * n;
            }
        }
        // A block of 6 x 6 cells, one more along z, one step more.
        let towers = |values: i64| 36 * 2 * values / (9 * d * d);
        assert_eq!(
            sums,
            [towers(54 * d + 15), towers(27 * (2 * d - 1))],
            "D = {d}"
        );
    }
}

#[test]
fn counts_of_towers() {
    let scheme = maxwell(4, Precision::F32, [12, 12, 20]);
    let program = towers(2, 6, &scheme);
    assert_eq!(
        program.to_string(),
        "\
tiles of height 2
  plane 0: x+y slope 3
  plane 1: x-y slope 3
  level 0: plane 0 pitch 12, plane 1 pitch 12
  stage s0
    class 0: updates 0 in [1..12, 0..12, 0..20] at [0, 1, 1]
    class 1: updates 1 in [0..12, 1..12, 0..20] at [1, 0, 1]
    class 2: updates 2 in [0..12, 0..12, 0..20] at [1, 1, 1]
  stage s1
    class 0: updates 0 in [0..12, 1..12, 0..20] at [1, 0, 0]
    class 1: updates 1 in [1..12, 0..12, 0..20] at [0, 1, 0]
    class 2: updates 2 in [1..12, 1..12, 0..20] at [0, 0, 0]
"
    );
    let report = check(&scheme, &program, 4).expect("towers are legal");
    assert_eq!(report.events, events(&scheme, 4));
    assert_eq!(
        report.to_string(),
        "\
steps = 4
events = 61808
reads = 537712
level 0: tiles = 34, loads = 97188, stores = 54436
time blocks = 2
barriers = 1
strips = 10
waits = 65
rows = 1316
segments = 788
variants of s0 = 5: 2 4 5 6 7
variants of s1 = 4: 1 2 5 7
"
    );
}

/// The position of an event in the frame, folded, in half cells.
fn folded(scheme: &Scheme, frame: &Frame, event: Event) -> PerAxis<i64> {
    let position = frame.position(event.stage, event.update);
    PerAxis::from_fn(|a| {
        let place = 2 * event.at[a] + position[a].0;
        let ring = 2 * scheme.grid.cells[a];
        if frame.folded[a] && 2 * place > ring {
            ring - place
        } else {
            place
        }
    })
}

/// Against all pairs of events of small grids, most of them periodic.
#[test]
fn frames_keep_dependent_events_in_order() {
    let forms: Vec<Form> = [[1, 1, 0], [1, -1, 0], [2, -1, 0]]
        .map(PerAxis)
        .into_iter()
        .chain(
            Axis::ALL
                .iter()
                .flat_map(|&a| [1, -1].map(|s| axis_form(a, s))),
        )
        .collect();
    let (mut tight, mut all, mut rings) = (0, 0, 0);
    for seed in seeds().take(100) {
        let mut case = Case::new(seed);
        for axis in Axis::ALL {
            if case.scheme.grid.axes[axis].is_some() && !case.rng.once_in(3) {
                case.scheme.grid.boundary[axis] = [Boundary::Periodic; 2];
            }
        }
        everywhere(&mut case.scheme);
        let scheme = &case.scheme;
        let cones = cones(scheme);
        let frame = Frame::new(scheme, &cones);
        assert!(frame.anchors.iter().all(|h| (0..=1).contains(&h.0)));
        for axis in Axis::ALL {
            assert_eq!(frame.folded[axis], scheme.grid.is_periodic(axis));
            rings += u64::from(frame.folded[axis]);
        }
        let versions = Versions::new(scheme);
        let stages = scheme.stages.len() as i64;
        let faces: Vec<Face> = forms.iter().map(|form| frame.fitting(*form)).collect();
        let leads: Vec<_> = faces.iter().map(|face| frame.leads(face)).collect();
        let mut least: Vec<Option<Rational>> = vec![None; forms.len()];
        let mut pair = |from: Option<Event>, to: Option<Event>| {
            let (Some(from), Some(to)) = (from, to) else {
                return;
            };
            let ends = [from, to].map(|e| folded(scheme, &frame, e));
            let stages = to.number - from.number;
            assert!(stages > 0 || from == to, "seed {seed}: {from} and {to}");
            for ((face, leads), least) in faces.iter().zip(&leads).zip(&mut least) {
                let up: i64 = Axis::ALL
                    .iter()
                    .map(|&a| i64::from(face.form[a]) * (ends[1][a] - ends[0][a]))
                    .sum();
                let lead = |e: Event| leads[e.stage.index()][e.update];
                let moved = face.slope * Rational::whole(stages) + lead(to) - lead(from);
                let left = moved - Rational::halves(up);
                if from != to {
                    *least = Some(least.map_or(left, |l| l.min(left)));
                }
            }
        };
        for stage in scheme.stage_ids() {
            for (update, own) in scheme.stages[stage.index()].updates.iter().enumerate() {
                for_each_index(own.region, |at| {
                    let number = 4 * stages + i64::from(stage.0);
                    let event = Event {
                        number,
                        stage,
                        update,
                        at,
                    };
                    for read in own.body.reads() {
                        let id = read.component;
                        let seen = PerAxis::from_fn(|a| at[a] + i64::from(read.offset[a]));
                        let position = scheme.component(id).position;
                        if let Located::Stored { at, .. } = scheme.grid.resolve(position, seen) {
                            let version = versions.newest(id, number) - i64::from(read.age);
                            let time_levels = i64::from(scheme.component(id).time_levels);
                            pair(versions.event(id, version, at), Some(event));
                            pair(Some(event), versions.event(id, version + time_levels, at));
                        }
                    }
                });
            }
        }
        for (face, least) in faces.iter().zip(least) {
            let least = least.unwrap_or(Rational::ZERO);
            assert!(
                least >= Rational::ZERO,
                "seed {seed}: {face:?} {least}\n{scheme}"
            );
            all += 1;
            tight += u64::from(least.is_zero());
        }
    }
    assert!(rings > 50, "{rings}");
    assert!(2 * tight > all, "{tight} of {all}");
}
