//! Towers around a periodic outer axis with planes that are counted on from elsewhere.

use super::*;
use torre_compiler::scheme::Boundary;
use torre_compiler::testing::everywhere;

/// Only the work of towers in their periods depends on the plane from which planes are counted on.
#[test]
fn turned_towers_are_placed_anew() {
    for order in [2, 4] {
        let mut scheme = maxwell(order, Precision::F32, [80, 14, 4]);
        scheme.grid.boundary[Axis::OUTER] = [Boundary::Periodic; 2];
        everywhere(&mut scheme);
        let (layout, mut towers) = towers_by(&scheme, Rational::ONE, [6; 2]).expect("towers");
        for uniform in [false, true] {
            towers.rings.uniform = uniform;
            let list = |towers: &Towers| {
                let footprints = Footprints::new(&scheme, &layout, towers, ORDER, 6, 4);
                footprints.tasks(&scheme, &layout, 4).expect("groups")
            };
            let own = list(&towers);
            assert!(own.tasks.len() > 40, "{}", own.tasks.len());
            for rotation in [1, 7, 40, 79] {
                let rotated = towers.rotated(rotation);
                let placed = own.placed_anew(&scheme, &layout, &rotated, 4);
                let placed = placed.expect("the same towers");
                assert_ne!(placed, own);
                assert_eq!(placed, list(&rotated), "{order} {uniform} {rotation}");
            }
        }
    }
}
