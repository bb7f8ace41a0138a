//! The rows of shapes, where they are placed, are the rows of walks: on one axis and on two, open and folded.

use super::*;
use crate::testing::{diamonds, tower_pitches};
use crate::tile::Part;

/// A cell of a class at a stage.
type Cell = (i64, usize, [i64; 3]);

fn add(segment: &Segment, cells: &mut Vec<Cell>) {
    for class in (0..64).filter(|class| segment.classes >> class & 1 == 1) {
        for_each_index(segment.rows, |at| cells.push((segment.number, class, at.0)));
    }
}

fn moved(range: Interval, by: i64) -> Interval {
    Interval::new(range.lo + by, range.hi + by)
}

/// The cells of some parts of a tile, as an executor places them.
fn placed(shapes: &Shapes, parts: &[Part], numbers: Interval) -> Vec<Cell> {
    let mut cells = Vec::new();
    for part in parts {
        for segment in (0..numbers.len()).flat_map(|number| part.shape.of_stage(number)) {
            if !part.whole() {
                shapes.place(part, segment, numbers.lo, &mut |own| add(own, &mut cells));
                continue;
            }
            let mut own = *segment;
            own.number += numbers.lo;
            for axis in [Axis::OUTER, Axis::MIDDLE] {
                own.rows[axis] = moved(own.rows[axis], part.origin[axis]);
            }
            own.rows[Axis::INNER] = shapes.cut(part, own.rows[Axis::INNER]);
            add(&own, &mut cells);
        }
    }
    cells.sort_unstable();
    cells
}

fn walked(program: &TileProgram, tile: &Tile, numbers: Interval, set: SheetSet) -> Vec<Cell> {
    let mut cells = Vec::new();
    program.walk_on(tile, numbers, set, &mut |segment| add(segment, &mut cells));
    cells.sort_unstable();
    cells
}

/// Tiles by the use of shapes.
#[derive(Debug, Default)]
struct Counts {
    /// With rows, by axes of the grid: placed, and walked.
    placed: [usize; 3],
    walked: [usize; 3],
    /// Whole parts, and cut ones.
    whole: usize,
    cut: usize,
    /// Parts that classes with different ends along the inner axis cut.
    uneven: usize,
    /// Tiles with parts on both sides of the fold of the inner axis.
    on_both_sides: usize,
}

#[test]
fn shapes_have_the_rows_of_walks_on_one_axis_and_two() {
    let limits = Limits {
        dimensions: 2,
        length: 40,
        width: 24,
        ..LIMITS
    };
    let mut counts = Counts::default();
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        if seed.is_multiple_of(3) {
            scheme = one_update_per_stage(scheme);
        }
        let frame = Frame::new(&scheme, &cones(&scheme));
        // Forms of diamonds have the middle axis as well, which these grids lack.
        let tiling = match seed % 4 {
            0 => diamonds(&frame, tower_pitches(&mut rng), rng.within(1, 4) as u64),
            _ => random_tiling(&mut rng, &scheme, &frame),
        };
        let program = in_integers(&scheme, &frame, &tiling);
        let steps = 2 * program.height.min(6) + 1;
        if folds::most_tiles(&program, steps) > 20_000 {
            continue;
        }
        let axes = scheme.grid.dimensions() - 1;
        let (strips, mut shapes) = (Strips::new(&program, steps), Shapes::new(&program));
        let mut look = |tile: &Tile, numbers: Interval, set: SheetSet| {
            let (mut parts, rows) = (Vec::new(), walked(&program, tile, numbers, set));
            if !shapes.parts(tile, numbers, set, &mut parts) {
                counts.walked[axes] += usize::from(!rows.is_empty());
                return;
            }
            assert_eq!(
                placed(&shapes, &parts, numbers),
                rows,
                "seed {seed}\n{program}{scheme}"
            );
            counts.placed[axes] += usize::from(!rows.is_empty());
            let whole = parts.iter().filter(|part| part.whole()).count();
            counts.whole += whole;
            counts.cut += parts.len() - whole;
            counts.uneven += parts.iter().filter(|part| part.cut[Axis::INNER]).count();
            let both = parts.windows(2).any(|p| p[0].sheet == p[1].sheet);
            counts.on_both_sides += usize::from(both);
        };
        for strip in 0..strips.len() {
            let numbers = strips.time_blocks[strips.time_block(strip)].numbers;
            strips.tiles(&program, strip, &mut |_, _, outer| {
                let sets = program.joint(outer, numbers).sets(program.sheets());
                let sets: Vec<SheetSet> = sets.collect();
                program.tiles_inside(outer, 1, numbers, &mut |tile| {
                    sets.iter().for_each(|set| look(tile, numbers, *set));
                });
            });
        }
    }
    let Counts {
        placed,
        walked,
        whole,
        cut,
        uneven,
        on_both_sides,
    } = counts;
    // Small tiles with pitches that are no whole numbers are of more kinds than are kept, and are walked.
    assert!(
        placed[..2].iter().all(|n| *n > 1000),
        "{placed:?}, {walked:?} walked"
    );
    assert!(whole > 1000 && cut > 1000, "{whole} {cut}");
    assert!(
        uneven > 100 && on_both_sides > 100,
        "{uneven} {on_both_sides}"
    );
}
