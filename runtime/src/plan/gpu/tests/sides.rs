//! Lines between sides of several kinds.

use super::{choices, h200, problem};
use crate::plan::gpu::{DevicePlanner, NoDevicePlan, NoDevices, NoWindow, Refusal};
use torre_compiler::lattice::Axis;
use torre_compiler::scheme::{Boundary, Precision};
use torre_compiler::testing::{everywhere, maxwell};
use torre_compiler::tower::Numbering;

/// The GPU runs all schedules that are named as a remedy.
#[test]
fn towers_that_help_fit() {
    let (problem, model) = (problem(), h200());
    let named = |cells: i64, refusal: Refusal| {
        let mut scheme = maxwell(4, Precision::F32, [99, 99, cells]);
        // Lines around a periodic axis are not shared by blocks.
        scheme.grid.boundary[Axis::INNER] = [Boundary::Periodic; 2];
        everywhere(&mut scheme);
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("a planner");
        let NoDevicePlan::Refused { fits, .. } = planner.refused("layerwise", refusal) else {
            panic!("no refusal");
        };
        let fitting = planner.fitting();
        let name = fits.split('`').find(|word| word.starts_with("torre("));
        let name = name.map(|name| format!("`{name}`"));
        assert!(
            name.iter().all(|name| fitting.contains(name)),
            "{cells}: {fits}"
        );
        assert_eq!(name.is_none(), fitting.is_empty(), "{cells}: {fits}");
        name
    };
    for refusal in [
        Refusal::Window(NoWindow::Layerwise),
        Refusal::Devices(NoDevices::Layerwise),
        Refusal::Shape("boxes"),
    ] {
        let [short, long, longest] = [256, 512, 9000].map(|cells| named(cells, refusal.clone()));
        assert_eq!(short.as_deref(), Some("`torre(D = 2)`"), "{refusal:?}");
        assert!(long.is_some(), "{refusal:?}");
        assert_eq!(longest, None, "{refusal:?}");
    }
}

/// Packed rows are as long as all others, so their program accesses shared memory like that of rows that need no
/// packing.
#[test]
fn packed_rows_have_accesses_of_their_own() {
    let (problem, model) = (problem(), h200());
    let [packed, alike] = [
        [Boundary::Pec, Boundary::Pmc],
        [Boundary::Pmc, Boundary::Pec],
    ]
    .map(|ends| {
        let mut scheme = maxwell(4, Precision::F32, [99, 99, 256]);
        scheme.grid.boundary[Axis::INNER] = ends;
        everywhere(&mut scheme);
        let all = choices(&scheme, Some((2, 8))).expect("towers");
        let planner = DevicePlanner::new(&scheme, &problem, &model).expect("a planner");
        let plan = planner.plan(all[0].clone()).expect("towers");
        let fit = &plan.towers().expect("towers").fit;
        (fit.towers().numbering, fit.accesses)
    });
    assert_eq!(packed.0, Numbering::Packed);
    assert_eq!(alike.0, Numbering::Grid);
    assert_eq!(packed.1, alike.1);
}
