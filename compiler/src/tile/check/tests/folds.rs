//! Tiles on folded axes: the order of their parts, and the rows at their faces.

use super::*;
use crate::testing::random_folded_scheme;
use crate::tile::{Part, Tile};

/// On two folded axes tiles have up to four parts. Parts that are far from each other run one after the other, parts
/// that touch run together in the stages in which they do, and each stage of each part runs once.
#[test]
fn parts_far_from_each_other_run_one_after_the_other() {
    let mut scheme = maxwell(4, Precision::F32, [48, 48, 2]);
    for axis in [Axis::OUTER, Axis::MIDDLE] {
        scheme.grid.boundary[axis] = [Boundary::Periodic; 2];
    }
    everywhere(&mut scheme);
    let program = towers(2, 6, &scheme);
    check(&scheme, &program, 4).unwrap_or_else(|fault| panic!("{fault}"));
    let (strips, mut shapes) = (Strips::new(&program, 4), Shapes::new(&program));
    let (mut together, mut in_pieces) = ([0; 5], 0);
    for strip in 0..strips.len() {
        let numbers = strips.time_blocks[strips.time_block(strip)].numbers;
        strips.tiles(&program, strip, &mut |_, _, tile| {
            let mut parts = Vec::new();
            assert!(shapes.parts(tile, numbers, SheetSet::MAX, &mut parts));
            let mut course = Vec::new();
            shapes.course(&program, tile, numbers, SheetSet::MAX, &mut course);
            for part in &parts {
                let has = |parts: &Vec<Part>| parts.iter().any(|p| p.sheet == part.sheet);
                let own = course.iter().filter(|w| w.parts.as_ref().is_some_and(has));
                let mut next = 0;
                for work in own {
                    assert_eq!(work.stages.lo, next);
                    next = work.stages.hi;
                }
                assert_eq!(next, numbers.len());
            }
            in_pieces += usize::from(course.len() > parts.len());
            for work in &course {
                together[work.parts.as_ref().map_or(0, Vec::len)] += 1;
            }
        });
    }
    assert_eq!(together[0], 0);
    assert!(together[1..3].iter().all(|n| *n > 20), "{together:?}");
    assert!(together[4] > 0, "{together:?}");
    assert!(in_pieces > 4, "{in_pieces}");
}

/// At the faces of tiles rows lack some updates of their stage, and on folded axes not more of them than elsewhere.
#[test]
fn folded_axes_cut_no_more_rows_at_faces_of_tiles() {
    let partial = |folded: [bool; 2]| {
        let mut scheme = maxwell(4, Precision::F32, [96, 96, 2]);
        for (axis, folded) in [Axis::OUTER, Axis::MIDDLE].into_iter().zip(folded) {
            if folded {
                scheme.grid.boundary[axis] = [Boundary::Periodic; 2];
            }
        }
        everywhere(&mut scheme);
        let program = towers(2, 2, &scheme);
        let (strips, mut shapes) = (Strips::new(&program, 2), Shapes::new(&program));
        let (mut all, mut some) = (0, 0);
        for strip in 0..strips.len() {
            let numbers = strips.time_blocks[strips.time_block(strip)].numbers;
            strips.tiles(&program, strip, &mut |_, _, tile| {
                let mut parts = Vec::new();
                assert!(shapes.parts(tile, numbers, SheetSet::MAX, &mut parts));
                let whole = parts.iter().filter(|p| p.whole());
                for segment in whole.flat_map(|p| &p.shape.segments) {
                    let rows = segment.rows[Axis::MIDDLE].len();
                    match segment.classes.count_ones() as usize
                        == program.stages[segment.stage.index()].len()
                    {
                        true => all += rows,
                        false => some += rows,
                    }
                }
            });
        }
        some as f64 / (all + some) as f64
    };
    let open = partial([false, false]);
    for folded in [[true, false], [false, true], [true, true]] {
        let own = partial(folded);
        assert!(own < 1.01 * open, "{folded:?}: {own} instead of {open}");
    }
}

/// A random scheme with folded axes, and a random tiling of it.
fn folded_case(seed: u64) -> (Scheme, TileProgram) {
    let mut rng = Rng::new(seed);
    let scheme = random_folded_scheme(&mut rng);
    let cones = cones(&scheme);
    let frame = Frame::new(&scheme, &cones);
    let tiling = random_tiling(&mut rng, &scheme, &frame);
    let program = in_integers(&scheme, &frame, &tiling);
    (scheme, program)
}

/// Counts of random cases with folds.
#[derive(Default)]
struct FoldCounts {
    tried: usize,
    passed: usize,
    /// Tiles by their number of sets of parts that run apart.
    apart: [usize; 5],
    /// Tiles with parts that are joined.
    joined: usize,
    /// Cases in which a fault is found where no parts are joined, and those in which the fault is a race.
    needed: usize,
    races: usize,
}

/// An upper bound for the number of tiles of all levels.
pub(super) fn most_tiles(program: &TileProgram, steps: u64) -> u64 {
    let numbers = Interval::new(0, steps as i64 * program.stages_per_step());
    let cuts = program.levels.iter().flatten();
    let whole = program.whole();
    cuts.map(|cut| program.indices(&whole, *cut, numbers).len() as u64)
        .fold(1, u64::saturating_mul)
}

/// Tiles of a case at the most: millions of them are almost all without rows, and take longer than all other cases.
const MOST_TILES: u64 = 1_000_000;

/// Checks the random cases of some seeds.
fn count_folds(seeds: impl Iterator<Item = u64>) -> FoldCounts {
    let mut counts = FoldCounts::default();
    for seed in seeds {
        counts.tried += 1;
        let (scheme, program) = folded_case(seed);
        let steps = 1 + seed % 5;
        if most_tiles(&program, steps) > MOST_TILES {
            continue;
        }
        let report = match check(&scheme, &program, steps).map_err(|fault| *fault) {
            Ok(report) => report,
            Err(TileFault::TooLarge) => continue,
            Err(fault) => panic!("seed {seed}: {fault}\n{program}{scheme}"),
        };
        counts.passed += 1;
        assert_eq!(report.events, events(&scheme, steps), "seed {seed}");
        let strips = Strips::new(&program, steps);
        let sheets = program.sheets();
        let before = counts.apart;
        for strip in 0..strips.len() {
            for tile in strips.of_strip(&program, strip) {
                let sets = tile.joint.sets(sheets).count();
                counts.apart[sets] += 1;
                counts.joined += usize::from(sets < sheets);
            }
        }
        // Where no parts were joined, something would go wrong.
        let order = Order {
            joint: &|_| Joint::NONE,
            ..Order::default()
        };
        match check_with(&scheme, &program, steps, &order).map_err(|fault| *fault) {
            Ok(_) | Err(TileFault::TooLarge) => {}
            Err(TileFault::Race { .. }) => {
                counts.needed += 1;
                counts.races += 1;
            }
            Err(TileFault::WrongVersion { .. } | TileFault::WrongTurn { .. }) => counts.needed += 1,
            Err(fault) => panic!("seed {seed}: {fault}"),
        }
        assert!(sheets == 1 || counts.apart != before, "seed {seed}");
    }
    counts
}

/// Parts on two sides of a fold that are not joined are ordered by nothing else, and need no other order.
#[test]
fn parts_far_from_the_ends_of_a_fold_run_apart() {
    let FoldCounts {
        tried,
        passed,
        apart,
        joined,
        needed,
        races,
    } = count_folds(seeds().step_by(12));
    assert!(10 * passed > 8 * tried, "{passed}");
    assert!(apart[2] > 10 * tried && apart[4] > 2 * tried, "{apart:?}");
    assert!(joined > 10 * tried, "{joined}");
    assert!(
        12 * needed > passed && races > 0,
        "{needed} {races} of {passed}"
    );
}

/// The positions of all events of a tile lie in the span that tells whether its parts are joined, and at its ends.
#[test]
fn spans_hold_all_events_of_a_tile() {
    let (mut tiles, mut tight) = (0, 0);
    for seed in seeds().take(100) {
        let (_, program) = folded_case(seed);
        let strips = Strips::new(&program, 2 * program.height);
        let mut look = |tile: &Tile, numbers: Interval, axis: Axis| {
            let Some(fold) = program.fold(axis) else {
                return;
            };
            let span = program.span(tile, numbers, axis);
            let (mut lo, mut hi) = (i64::MAX, i64::MIN);
            program.walk(tile, numbers, &mut |segment| {
                let classes = program.stages[segment.stage.index()].iter().enumerate();
                for (_, class) in classes.filter(|(i, _)| segment.classes >> i & 1 == 1) {
                    for at in segment.rows[axis].lo..segment.rows[axis].hi {
                        let place = 2 * at + class.position[axis];
                        let place = place.min(fold - place);
                        (lo, hi) = (lo.min(place), hi.max(place));
                    }
                }
            });
            if lo <= hi {
                assert!(
                    span.lo <= lo && hi <= span.hi,
                    "seed {seed}: {lo} {hi} {span:?}"
                );
                tiles += 1;
                tight += u64::from(lo - span.lo <= 2 && span.hi - hi <= 2);
            }
        };
        for strip in 0..strips.len() {
            let numbers = strips.time_blocks[strips.time_block(strip)].numbers;
            for tile in strips.of_strip(&program, strip) {
                look(&tile.tile, numbers, Axis::OUTER);
                look(&tile.tile, numbers, Axis::MIDDLE);
            }
        }
    }
    assert!(tiles > 1000 && 2 * tight > tiles, "{tight} of {tiles}");
}

/// On a large grid nearly all tiles have parts that run apart.
#[test]
fn most_tiles_of_large_grids_have_parts_that_run_apart() {
    let mut scheme = maxwell(4, Precision::F32, [256, 256, 1]);
    for axis in [Axis::OUTER, Axis::MIDDLE] {
        scheme.grid.boundary[axis] = [Boundary::Periodic; 2];
    }
    everywhere(&mut scheme);
    let program = towers(8, 24, &scheme);
    let strips = Strips::new(&program, 8);
    let mut sets = [0; 5];
    for strip in 0..strips.len() {
        for tile in strips.of_strip(&program, strip) {
            sets[tile.joint.sets(program.sheets()).count()] += 1;
        }
    }
    let all: usize = sets.iter().sum();
    assert!(2 * sets[4] > all / 2, "{sets:?}");
    assert!(sets[1] < all / 3, "{sets:?}");
}
