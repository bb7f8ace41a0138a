//! The tiles of a strip: all of them, and the ones with rows.

use super::{Case, seeds};
use crate::lattice::Interval;
use crate::tile::{Strips, Tile, TileProgram};
use std::ops::ControlFlow;

fn has_rows(program: &TileProgram, tile: &Tile, numbers: Interval) -> bool {
    let mut rows = false;
    program.walk(tile, numbers, &mut |_| rows = true);
    rows
}

#[test]
fn tiles_with_rows_lie_at_occupied_indices() {
    let (mut kept, mut left_out) = (0, 0);
    for seed in seeds() {
        let program = Case::new(seed).lower();
        let strips = Strips::new(&program, 3);
        for strip in 0..strips.len() {
            let numbers = strips.time_blocks[strips.time_block(strip)].numbers;
            let all = strips.of_strip(&program, strip);
            let mut some = Vec::new();
            let occupied = TileProgram::occupied;
            let flow = strips.visit(&program, strip, occupied, &mut |place, _, tile| {
                some.push((place, tile.clone()));
                ControlFlow::Continue(())
            });
            assert_eq!(flow, ControlFlow::Continue(()));
            let with_rows = |tiles: &[(i64, Tile)]| -> Vec<(i64, Tile)> {
                let rows = |tile: &&(i64, Tile)| has_rows(&program, &tile.1, numbers);
                tiles.iter().filter(rows).cloned().collect()
            };
            let all: Vec<(i64, Tile)> = all.into_iter().map(|own| (own.place, own.tile)).collect();
            assert_eq!(with_rows(&some), with_rows(&all), "seed {seed}");
            kept += some.len();
            left_out += all.len() - some.len();
        }
    }
    assert!(kept > 1000 && left_out > 100, "{kept} {left_out}");
}
