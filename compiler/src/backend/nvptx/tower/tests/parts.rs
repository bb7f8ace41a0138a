//! Lines that are shared by the blocks of a cluster.

use super::*;

#[test]
fn blocks_that_share_lines_give_the_bits_of_rows() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let zero = [[Zero; 2]; 3];
    let walls = [[Pec, Pmc], [Pmc, Pec], [Pec, Pmc]];
    let mirrors = [[Pec, Pmc], [Zero; 2], [Pmc, Pec]];
    let ring = [[Zero, Pec], [Zero; 2], [Periodic; 2]];
    let (f32, f64) = (Precision::F32, Precision::F64);
    let of = |order, precision, cells, ends| bounded(maxwell(order, precision, cells), ends);
    let whole = |n: i64| [Rational::whole(n); 2];
    for (seed, (scheme, period, turns, parts)) in [
        (of(2, f32, [11, 12, 64], zero), 3, 3, 2),
        (of(4, f32, [20, 23, 75], walls), 6, 2, 3),
        (of(4, f64, [22, 24, 41], mirrors), 6, 2, 2),
        (of(4, f64, [20, 22, 42], ring), 6, 2, 2),
        (of(2, f32, [9, 10, 108], ring), 3, 2, 4),
        (of(2, f32, [9, 11, 180], walls), 3, 2, 3),
        (elasticity(f32, [15, 18, 44]), 3, 2, 2),
        (of(2, f32, [12, 13, 150], walls), 3, 2, 2),
        // As close as they can lie: parts end within warps.
        (of(4, f32, [20, 23, 105], walls), 6, 2, 3),
        (of(4, f64, [20, 22, 76], ring), 6, 2, 2),
        (of(2, f32, [9, 10, 104], ring), 3, 2, 3),
        (elasticity(f32, [15, 18, 77]), 3, 2, 2),
        // Registers are moved, and the warps that complete a group copy.
        (of(2, f32, [9, 10, 300], walls), 3, 2, 2),
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
        same_bits(library, (seed, &scheme, period, turns), options, 4);
    }
    // Pieces that copies move would hold values of two blocks.
    let options = Options {
        parts: 4,
        ..Options::default()
    };
    let odd = of(2, f32, [11, 12, 109], ring);
    assert!(differ(library, &odd, whole(3), 2, options, 0, true).is_none());
}
