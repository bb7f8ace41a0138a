//! Shapes of pyramids that are tried.

use torre_compiler::lattice::Axis;
use torre_compiler::patch::{AXES, CoefPlace, Shape, WARP, exchanged};
use torre_compiler::scheme::Scheme;

/// Warps of a block, and cells of a patch along the outer and the inner axis.
const WARPS: [i64; 5] = [2, 4, 8, 12, 16];
const LINES: [i64; 14] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 16, 18, 20];
const CELLS: [i64; 3] = [2, 4, 8];
/// Cells of a patch of a scheme with one axis.
const LONG: [i64; 4] = [4, 8, 16, 32];

/// With three axes: warps of a block, and its threads along the outer and the inner axis.
const WARPS_IN_SPACE: [i64; 9] = [4, 6, 8, 10, 12, 16, 20, 24, 32];
const THREADS: [&[i64]; 2] = [&[1, 2], &[16, 32]];
/// Cells of a patch along the axes, and of all of it.
const PATCHES: [&[i64]; 3] = [
    &[2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28],
    &[1, 2, 3, 4],
    &[1, 2, 3, 4],
];
const MOST_CELLS: i64 = 160;

/// All shapes for a scheme.
pub(super) fn all(scheme: &Scheme) -> Vec<Shape> {
    let has_coefs = scheme.full_coefs() > 0;
    let places: &[CoefPlace] = match has_coefs {
        true => &[CoefPlace::Registers, CoefPlace::Shared],
        false => &[CoefPlace::Registers],
    };
    let mut all = Vec::new();
    for &coefs in places {
        match scheme.grid.dimensions() {
            1 => all.extend(LONG.map(|cells| Shape::of_lines(1, [1, cells], coefs))),
            2 => {
                for warps in WARPS {
                    for lines in LINES {
                        all.extend(CELLS.map(|n| Shape::of_lines(warps, [lines, n], coefs)));
                    }
                }
            }
            _ => all.extend(in_space(coefs)),
        }
    }
    all
}

fn in_space(coefs: CoefPlace) -> impl Iterator<Item = Shape> {
    let [xs, zs] = THREADS;
    let threads = WARPS_IN_SPACE.into_iter().flat_map(move |warps| {
        let rows = xs
            .iter()
            .flat_map(move |x| zs.iter().map(move |z| [*x, *z]));
        rows.filter_map(move |[x, z]| {
            let all = warps * WARP;
            (all % (x * z) == 0).then(|| [x, all / (x * z), z])
        })
    });
    let [xs, ys, zs] = PATCHES;
    threads.flat_map(move |threads| {
        let lines = xs
            .iter()
            .flat_map(move |x| ys.iter().map(move |y| [*x, *y]));
        let patches = lines.flat_map(move |[x, y]| zs.iter().map(move |z| [x, y, *z]));
        let small = patches.filter(|patch| patch.iter().product::<i64>() <= MOST_CELLS);
        small.map(move |patch| Shape {
            threads,
            patch,
            coefs,
            reuses_slots: false,
            blocks: 1,
        })
    })
}

/// Values of ghosts that a tile exchanges at a time.
pub(super) fn ghosts(scheme: &Scheme, shape: &Shape) -> f64 {
    let tile = shape.tile();
    let all = tile.iter().product::<i64>();
    let of = |n: usize, axis: Axis| exchanged(scheme, axis) as i64 * all / tile[n];
    (0..).zip(AXES).map(|(n, axis)| of(n, axis) as f64).sum()
}
