//! Which variant a period runs.

use super::*;
use crate::testing::{add_layers, diamonds};
use crate::tower::block::Options;
use crate::tower::{GroupBox, TowerProgram};

/// Periods that update no row in a layer run the first variant, also those of towers that meet one elsewhere; where
/// ends cut rows off there is one variant only.
#[test]
fn periods_beside_layers_run_the_first_variant() {
    let mut scheme = maxwell(2, Precision::F32, [40, 30, 24]);
    scheme.grid.boundary = PerAxis::splat([Boundary::Zero; 2]);
    everywhere(&mut scheme);
    add_layers(&mut scheme, PerAxis([4, 0, 3]));
    let layout = Layout::for_gpu(&scheme).expect("it is small");
    let frame = Frame::new(&scheme, &cones(&scheme)).opened();
    let tiling = diamonds(&frame, [Rational::whole(3); 2], 1 << 20);
    let tiles = lower(&scheme, &frame, &tiling).expect("fitting faces are legal");
    let program = TowerProgram::new(&scheme, &layout, &tiles, &[], Options::default());
    let variants = program.expect("these are towers").towers.variants;
    let predicated: Vec<bool> = variants.all.iter().map(|v| v.predicated).collect();
    assert_eq!(predicated, [false, false, true]);
    assert_eq!(
        [0, 1, 2].map(|n| variants.elsewhere(n)),
        [None, Some(0), None]
    );
    let rows = |lo, hi| GroupBox {
        x: Interval::new(lo, hi),
        y: Interval::new(5, 9),
    };
    for (lo, hi, variant) in [
        (0, 5, 1),
        (3, 8, 1),
        (4, 9, 0),
        (20, 25, 0),
        (30, 36, 0),
        (33, 38, 1),
    ] {
        assert_eq!(variants.of_period(1, rows(lo, hi)), variant, "{lo}..{hi}");
        assert_eq!(variants.of_period(0, rows(lo, hi)), 0);
        assert_eq!(variants.of_period(2, rows(lo, hi)), 2);
    }
}
