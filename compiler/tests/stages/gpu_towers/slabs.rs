//! Lines that are shared by the blocks of a cluster.

use super::*;

#[test]
fn blocks_that_share_lines_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let (f32, f64) = (Precision::F32, Precision::F64);
    for (number, (scheme, pitch, periods, slabs)) in [
        (fdtd(2, f32, [11, 12, 64], ZERO), 3, 3, 2),
        (fdtd(4, f32, [12, 13, 75], WALLS), 3, 2, 3),
        (fdtd(4, f64, [12, 13, 41], MIRRORS), 3, 2, 2),
        (fdtd(4, f64, [12, 13, 42], RING), 3, 2, 2),
        (fdtd(2, f32, [9, 10, 108], RING), 3, 2, 4),
        (fdtd(2, f32, [9, 11, 180], WALLS), 3, 2, 3),
        (elasticity(f32, [13, 14, 44]), 3, 2, 2),
        (fdtd(2, f32, [12, 13, 150], WALLS), 3, 2, 2),
        // As close as they can lie: slabs end within warps.
        (fdtd(4, f32, [12, 13, 105], WALLS), 3, 2, 3),
        (fdtd(4, f64, [12, 13, 76], RING), 3, 2, 2),
        (fdtd(2, f32, [9, 10, 104], RING), 3, 2, 3),
        (elasticity(f32, [13, 14, 77]), 3, 2, 2),
        // Registers are moved, and the warps that complete a group copy.
        (fdtd(2, f32, [9, 10, 300], WALLS), 3, 2, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let options = Options {
            division: Division::Shared(slabs),
            abilities: Abilities {
                moves_registers: number % 2 == 0,
                working_registers: if number == 12 { 200 } else { 48 },
                shared_bytes: if number < 8 { u32::MAX } else { 0 },
                ..Abilities::default()
            },
        };
        let report = Trial {
            options,
            near: if number % 2 == 0 { 0 } else { NEAR },
            seed: number as u64,
            ..Trial::new(library, &scheme, pitch, periods)
        }
        .succeed();
        assert!(report.with_interior > 4, "{number}: {report:?}");
    }
    // Chunks that copies move would hold values of two blocks.
    let odd = fdtd(2, f32, [11, 12, 109], RING);
    let options = Options {
        division: Division::Shared(4),
        ..Options::default()
    };
    let trial = Trial {
        options,
        ..Trial::new(library, &odd, 3, 2)
    };
    assert!(trial.run().is_err());
}
