//! Layers at the sides of the domain: in variants of interior periods and in boundary periods.

use super::*;
use torre_compiler::lattice::PerAxis;
use torre_compiler::testing::{add_layers, star};

/// A scheme with layers along each axis, by their numbers of cells.
fn layered(mut scheme: Scheme, cells: [i64; 3]) -> Scheme {
    add_layers(&mut scheme, PerAxis(cells));
    assert_eq!(torre_compiler::scheme::verify(&scheme), Ok(()));
    scheme
}

/// With towers that meet layers along some axes and others that meet none, at ends with and without ghosts, of lines
/// that blocks share, and in z blocks; and of steps of one stage.
#[test]
fn layers_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let (f32, f64) = (Precision::F32, Precision::F64);
    let whole = Division::Shared(1);
    for (number, (scheme, layers, pitch, periods, division)) in [
        (fdtd(4, f32, [28, 27, 37], WALLS), [4, 4, 4], 6, 3, whole),
        (fdtd(2, f64, [18, 17, 20], ZERO), [3, 3, 0], 3, 3, whole),
        (fdtd(2, f32, [16, 17, 33], MIRRORS), [0, 0, 5], 3, 3, whole),
        (
            fdtd(2, f32, [16, 15, 40], WALLS),
            [3, 0, 4],
            3,
            3,
            Division::Shared(2),
        ),
        (
            fdtd(2, f32, [14, 15, 75], WALLS),
            [3, 3, 5],
            3,
            2,
            Division::ZBlocks(1),
        ),
        (
            bounded(star(1, f64, [18, 17, 12]), ZERO),
            [4, 3, 2],
            4,
            2,
            whole,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let scheme = layered(scheme, layers);
        let options = Options {
            division,
            abilities: Abilities {
                moves_registers: true,
                asynchronous: number != 1,
                ..Abilities::default()
            },
        };
        let report = Trial {
            options,
            near: if number % 2 == 0 { 64 } else { NEAR },
            seed: number as u64,
            ..Trial::new(library, &scheme, pitch, periods)
        }
        .succeed();
        assert!(report.amended > 4, "{number}: {report:?}");
        let some_are_bare = report.amended < report.with_interior;
        assert_eq!(some_are_bare, layers[2] == 0, "{number}: {report:?}");
    }
}
