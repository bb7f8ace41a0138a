//! Towers that move down the first axis: planes are counted backwards, and go through windows from low to high ones.

use super::slabs::by_slabs;
use super::turns::in_turns;
use super::windows::few_cells;
use super::*;
use torre_runtime::gpu::{HeldPlanes, InFlight};

const SCHEDULE: &str = "(x, y): diamond(W = 3) lean -x height 2; z: span";

fn moves_down(scheme: &Scheme, problem: &Problem) {
    let (plan, _) = plan_of(&Interpreted::new(), scheme, problem, SCHEDULE);
    assert_eq!(plan.towers().expect("towers").program.towers.way(), -1);
}

/// Windows in memory and over files, on one device and two, in buffers whose planes slide or go around; and slabs; with
/// points, volumes, probes, slices across all axes and volumes.
#[test]
fn towers_that_move_down_give_the_bits_of_the_reference() {
    if library().is_none() {
        return;
    }
    let scheme = maxwell(2, Precision::F64, [48, 7, 3]);
    let how = InFlight {
        blocks: 2,
        group: 5,
        ahead: 1,
        spread: false,
        held: HeldPlanes::All,
    };
    for seed in 0..2 {
        let mut rng = Rng::new(seed);
        let mut problem = random_problem(&mut rng, &scheme);
        few_cells(&mut problem);
        problem.sources.extend(volume_sources(&mut rng, &scheme, 1));
        slices_and_a_volume(&mut problem, &scheme, [6, 8], 10);
        problem.steps = 14;
        moves_down(&scheme, &problem);
        let devices = seed as usize + 1;
        let done = in_turns(&scheme, &problem, SCHEDULE, devices, how);
        let moved = [done.slides > 2, done.around > 2.0][usize::from(devices == 2)];
        assert!(moved, "{done:?}");
        let slabs = InFlight { ahead: 0, ..how };
        let (_, slabs) = by_slabs(&scheme, &problem, SCHEDULE, slabs, 11);
        assert!(scheme.grid.cells[Axis::OUTER] > 2 * slabs.held.base().expect("slabs"));
    }
}
