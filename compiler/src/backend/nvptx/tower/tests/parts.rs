//! Lines that are shared by the blocks of a cluster.

use super::*;

#[test]
fn blocks_that_share_lines_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let (f32, f64) = (Precision::F32, Precision::F64);
    let whole = |n: i64| [Rational::whole(n); 2];
    for (seed, (scheme, pitch, periods, parts)) in [
        (fdtd(2, f32, [11, 12, 64], ZERO), 3, 3, 2),
        (fdtd(4, f32, [20, 23, 75], WALLS), 6, 2, 3),
        (fdtd(4, f64, [22, 24, 41], MIRRORS), 6, 2, 2),
        (fdtd(4, f64, [20, 22, 42], RING), 6, 2, 2),
        (fdtd(2, f32, [9, 10, 108], RING), 3, 2, 4),
        (fdtd(2, f32, [9, 11, 180], WALLS), 3, 2, 3),
        (elasticity(f32, [15, 18, 44]), 3, 2, 2),
        (fdtd(2, f32, [12, 13, 150], WALLS), 3, 2, 2),
        // As close as they can lie: parts end within warps.
        (fdtd(4, f32, [20, 23, 105], WALLS), 6, 2, 3),
        (fdtd(4, f64, [20, 22, 76], RING), 6, 2, 2),
        (fdtd(2, f32, [9, 10, 104], RING), 3, 2, 3),
        (elasticity(f32, [15, 18, 77]), 3, 2, 2),
        // Registers are moved, and the warps that complete a group copy.
        (fdtd(2, f32, [9, 10, 300], WALLS), 3, 2, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let options = Options {
            shift: seed % 2 == 0,
            beside: if seed == 12 { 200 } else { 48 },
            parts,
            room: if seed < 8 { u32::MAX } else { 0 },
            near: if seed % 2 == 0 { 0 } else { 1 << 23 },
            ..Options::default()
        };
        same_bits(library, (seed, &scheme, pitch, periods), options, 4);
    }
    // Pieces that copies move would hold values of two blocks.
    let options = Options {
        parts: 4,
        ..Options::default()
    };
    let odd = fdtd(2, f32, [11, 12, 109], RING);
    assert!(differ(library, &odd, whole(3), 2, options, 0, true).is_none());
}
