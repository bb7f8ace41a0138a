//! Programs keep their rules, and break them after any one of some changes.

use torre_compiler::layout::Layout;
use torre_compiler::patch::*;
use torre_compiler::scheme::{Boundary, Precision};
use torre_compiler::testing::{
    Limits, Rng, add_random_zones, bounded, maxwell, random_patches, random_scheme,
};

/// Schemes with one axis, two or three.
fn limits(seed: u64) -> Limits {
    match seed % 2 {
        0 => Limits::PATCHES,
        _ => Limits::PATCHES_IN_SPACE,
    }
}

/// The cells that a step of electric and magnetic fields reads beside a base, row by row: E is read at H's places and
/// one farther on, and H at one place before.
#[test]
fn rows_need_what_a_time_block_reads_of_them() {
    let scheme = maxwell(2, Precision::F32, [9, 10, 11]);
    let mut scheme = bounded(scheme, [[Boundary::Periodic; 2]; 3]);
    let layout = Layout::for_gpu(&scheme).expect("a small scheme");
    let rows = halos_of_rows(&scheme, &layout, 1);
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[0], [[1, 0], [1, 1], [1, 1]]);
    assert_eq!(rows[1], [[1, 1], [1, 0], [1, 1]]);
    assert_eq!(rows[3], [[0, 0], [1, 0], [1, 0]]);
    assert_eq!(rows[5], [[1, 0], [1, 0], [0, 0]]);
    // At mirrors there are the sources of ghosts, too.
    scheme = bounded(scheme, [[Boundary::Pec; 2]; 3]);
    let rows = halos_of_rows(&scheme, &layout, 1);
    assert_eq!(rows[0], [[1, 1], [2, 2], [2, 2]]);
    // The widest ones of two steps are as wide as wrong values come.
    let rows = halos_of_rows(&scheme, &layout, 2);
    for (n, axis) in AXES.into_iter().enumerate() {
        let widest = [0, 1].map(|end| rows.iter().map(|row| row[n][end]).max());
        assert_eq!(widest.map(Option::unwrap), creep(&scheme, &layout, axis, 2));
    }
}

/// A rim that is too narrow, and a tile for which another one does not wait, are found.
#[test]
fn what_is_wrong_with_tiles_that_stay_is_found() {
    let (mut programs, mut narrow, mut of_rows, mut alone) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let scheme = random_scheme(&mut rng, &limits(seed));
        let Some(mut program) = random_patches(&mut rng, &scheme) else {
            continue;
        };
        let layout = Layout::for_gpu(&scheme).expect("a small scheme");
        program.stay(&layout);
        verify(&scheme, &layout, &program).expect("tiles as they are made");
        let Some(staying) = program.stays.clone() else {
            continue;
        };
        programs += 1;
        let is_wrong = |staying: Staying| {
            let mut other = program.clone();
            other.stays = Some(staying);
            verify(&scheme, &layout, &other).is_err()
        };
        for n in 0..3 {
            for end in 0..2 {
                let mut other = staying.clone();
                other.of_states[n][end] = 0;
                narrow += usize::from(staying.of_states[n][end] > 0 && is_wrong(other));
                for row in 0..staying.rims.len() {
                    let mut other = staying.clone();
                    other.rims[row][n][end] = 0;
                    of_rows += usize::from(staying.rims[row][n][end] > 0 && is_wrong(other));
                }
            }
        }
        for tile in 0..staying.neighbours.len() {
            let mut other = staying.clone();
            if other.neighbours[tile].pop().is_some() {
                assert!(is_wrong(other), "seed {seed}");
                alone += 1;
            }
        }
    }
    assert!(
        programs > 100 && narrow > 50 && of_rows > 60 && alone > 100,
        "{programs} {narrow} {of_rows} {alone}"
    );
}

/// Each change of a program that could matter is found.
#[test]
fn what_is_wrong_with_a_program_is_found() {
    let (mut programs, mut needs, mut frees, mut found) = (0, 0, 0, [0; 4]);
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let scheme = random_scheme(&mut rng, &limits(seed));
        let Some(program) = random_patches(&mut rng, &scheme) else {
            continue;
        };
        programs += 1;
        let layout = Layout::for_gpu(&scheme).expect("a small scheme");
        let is_wrong = |program: &PatchProgram| verify(&scheme, &layout, program).is_err();
        for n in 0..3 {
            let mut narrow = program.clone();
            narrow.along[n].halo[0] -= 1;
            // Halos are rounded to whole pieces, so that some are wider than they have to be.
            found[0] += usize::from(program.along[n].halo[0] > 0 && is_wrong(&narrow));
            for row in 0..program.needs.len() {
                let mut less = program.clone();
                less.needs[row][n][0] -= 1;
                // Along the inner axis they are rounded, too.
                needs += usize::from(program.needs[row][n][0] > 0 && is_wrong(&less));
            }
            let mut short = program.clone();
            short.along[n].tiles -= 1;
            assert!(is_wrong(&short), "seed {seed}");
        }
        for stage in 0..program.stages.len() {
            let mut silent = program.clone();
            found[1] += usize::from(!silent.stages[stage].publish.is_empty());
            silent.stages[stage].publish.clear();
            found[2] += usize::from(is_wrong(&silent));
            let mut alone = program.clone();
            alone.stages[stage].barrier = false;
            found[3] += usize::from(is_wrong(&alone));
            if program.stages[stage].frees {
                let mut early = program.clone();
                early.stages[stage].frees = false;
                assert!(is_wrong(&early), "seed {seed}");
                frees += 1;
            }
        }
    }
    let [narrow, published, silent, alone] = found;
    assert!(programs > 200 && narrow > 100, "{programs} {found:?}");
    assert!(needs > 80 && frees > 10, "{needs} {frees}");
    assert!(
        published > 100 && 2 * silent > published && alone > 100,
        "{found:?}"
    );
}

/// A tile with cells of zones that has no room, or that of another tile, is found.
#[test]
fn what_is_wrong_with_rooms_is_found() {
    let (mut programs, mut rooms, mut shared) = (0, 0, 0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits(seed));
        add_random_zones(&mut rng, &limits(seed), &mut scheme);
        let Some(program) = random_patches(&mut rng, &scheme) else {
            continue;
        };
        programs += 1;
        let layout = Layout::for_gpu(&scheme).expect("a small scheme");
        let mut last = None;
        for tile in 0..program.rooms.of_tile.len() {
            let Some(room) = program.rooms.of_tile[tile] else {
                continue;
            };
            rooms += 1;
            let mut other = program.clone();
            other.rooms.of_tile[tile] = None;
            assert!(verify(&scheme, &layout, &other).is_err(), "seed {seed}");
            if last.is_some() {
                other.rooms.of_tile[tile] = last;
                assert!(verify(&scheme, &layout, &other).is_err(), "seed {seed}");
                shared += 1;
            }
            last = Some(room);
        }
    }
    assert!(
        programs > 100 && rooms > 200 && shared > 100,
        "{programs} {rooms} {shared}"
    );
}
