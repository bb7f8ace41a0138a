//! Lines with ghosts at their ends.

use super::*;

/// Walls and a ring along the inner axis: a reader of a ghost is in the warp of its source, in another one, at both
/// ends of one warp; towers that lie on the lattice in two ways use the same shared rows one after the other.
#[test]
fn lines_have_ghosts_at_their_ends() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let (f32, f64) = (Precision::F32, Precision::F64);
    let of =
        |order, precision, cells, z| fdtd(order, precision, cells, [[Pec, Pmc], [Pmc, Pec], z]);
    for (number, (scheme, pitch, periods, makes_ghosts)) in [
        (of(4, f32, [13, 14, 32], [Pec; 2]), 3, 2, true),
        (of(4, f32, [13, 14, 72], [Pec; 2]), 3, 2, true),
        (of(4, f32, [13, 14, 31], [Pmc; 2]), 3, 2, true),
        (of(4, f64, [13, 14, 39], [Pmc, Pec]), 3, 2, true),
        (of(4, f32, [13, 14, 40], [Pec, Zero]), 3, 2, true),
        (of(4, f32, [13, 14, 40], [Periodic; 2]), 3, 2, true),
        // The last warp has one value, two, and one again.
        (of(4, f32, [13, 14, 32], [Pec, Pmc]), 3, 2, false),
        (of(4, f32, [13, 14, 65], [Pmc; 2]), 3, 2, true),
        (of(2, f64, [12, 13, 33], [Periodic; 2]), 3, 3, true),
        (of(2, f64, [12, 13, 64], [Pec, Pmc]), 3, 3, true),
    ]
    .into_iter()
    .enumerate()
    {
        let report = Trial {
            seed: number as u64,
            ..Trial::new(library, &scheme, pitch, periods)
        }
        .succeed();
        assert!(report.with_interior > 4, "{number}: {report:?}");
        assert_eq!(report.makes_ghosts, makes_ghosts, "{number}");
    }
}

/// Lanes that have no ghost of their own repeat the last one of a list, which is a zero on the end plane here.
#[test]
fn lists_of_ghosts_end_with_zeros() {
    use Boundary::*;
    let Some(library) = library() else { return };
    let walls = [[Zero, Pmc], [Pec, Zero], [Pec; 2]];
    for (order, pitch) in [(2, 2), (2, 3), (2, 4), (2, 6), (4, 3), (4, 4), (4, 6)] {
        let scheme = fdtd(order, Precision::F32, [13, 14, 30], walls);
        for seed in [0, 1] {
            let trial = Trial {
                seed,
                ..Trial::new(library, &scheme, pitch, 2)
            };
            let report = trial.succeed();
            assert!(
                report.makes_ghosts && report.with_interior > 4,
                "{pitch}: {report:?}"
            );
        }
    }
}
