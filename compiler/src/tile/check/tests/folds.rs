//! Tiles on folded axes: the order of their parts, and the rows at their faces.

use super::*;
use crate::tile::Part;

/// On two folded axes tiles have up to four parts. Those that are far from each other run one after the other, those
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
            assert!(shapes.parts(tile, numbers, &mut parts));
            let mut course = Vec::new();
            shapes.course(&program, tile, numbers, &mut course);
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
                assert!(shapes.parts(tile, numbers, &mut parts));
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
