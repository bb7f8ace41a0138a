//! Towers of random schemes: same bits as row kernels stage by stage.

use super::*;
use torre_compiler::lattice::Axis;
use torre_compiler::testing::{
    Limits, Rng, between_odd_and_even, lengthen, make_room_for_towers, random_scheme, tower_pitch,
    tower_pitches,
};
use torre_compiler::tower::Numbering;

/// Updates act everywhere except at indices that they leave out along the inner axis.
pub fn zones_along_lines_only(scheme: &mut Scheme) {
    for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
        let position = scheme.components[update.target.index()].position;
        let range = update.region[Axis::INNER];
        update.region = scheme.grid.live(position);
        if !range.is_empty() {
            update.region[Axis::INNER] = range;
        }
    }
}

#[derive(Debug, Default)]
struct Tried {
    schemes: usize,
    with_interior: usize,
    /// Lines are shared by two blocks.
    shared: usize,
    /// The outer or the middle axis is periodic.
    rings: usize,
    makes_ghosts: usize,
}

fn run(seeds: impl Iterator<Item = u64>) {
    let Some(library) = library() else { return };
    let mut tried = Tried::default();
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &Limits::TOWERS);
        if scheme.grid.dimensions() < 3 || scheme.grid.cells[Axis::INNER] < 6 {
            continue;
        }
        let longer = match tried.schemes % 2 {
            1 => rng.within(30, 60),
            _ => 0,
        };
        lengthen(&mut scheme, Axis::INNER, longer);
        make_room_for_towers(&mut rng, &mut scheme, 22);
        zones_along_lines_only(&mut scheme);
        let pitches = match seed % 3 {
            0 => tower_pitches(&mut rng),
            _ => [tower_pitch(&mut rng); 2],
        };
        let options = Options {
            abilities: Abilities {
                asynchronous: rng.once_in(2) || longer > 0,
                moves_registers: true,
                suspends: seed % 4 < 2,
                shared_bytes: if seed % 5 < 2 { 0 } else { u32::MAX },
                ..Abilities::default()
            },
            division: Division::Shared(if longer > 0 { 2 } else { 1 }),
        };
        let trial = Trial {
            pitches,
            options,
            near: if seed % 3 == 0 { 64 } else { NEAR },
            seed,
            ..Trial::new(library, &scheme, 1, 1 + rng.below(3))
        };
        if let Ok(report) = trial.run() {
            let ring = |axis: &Axis| scheme.grid.is_periodic(*axis);
            tried.schemes += 1;
            tried.rings += usize::from([Axis::OUTER, Axis::MIDDLE].iter().any(ring));
            tried.with_interior += report.with_interior;
            tried.makes_ghosts += usize::from(report.makes_ghosts);
            tried.shared += usize::from(longer > 0);
        }
    }
    let Tried {
        schemes,
        with_interior,
        shared,
        rings,
        makes_ghosts,
    } = tried;
    assert!(schemes > 0 && with_interior > 10 * schemes, "{tried:?}");
    assert!(3 * shared > schemes, "{tried:?}");
    assert!(3 * makes_ghosts > schemes, "{tried:?}");
    assert!(5 * rings > schemes, "{tried:?}");
}

// Two tests, so that two cores share the work.

#[test]
fn towers_of_random_schemes_give_the_bits_of_rows() {
    run((0..150).step_by(2));
}

#[test]
fn towers_of_more_random_schemes_give_the_bits_of_rows() {
    run((1..150).step_by(2));
}

/// Lines of one to three warps, the last one full or not; ghosts in memory, or made by towers.
#[test]
fn packed_rows_of_random_schemes_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let [mut packed, mut makes_ghosts, mut holds_ghosts] = [0; 3];
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &Limits::TOWERS);
        if scheme.grid.dimensions() < 3 || scheme.grid.cells[Axis::INNER] < 6 {
            continue;
        }
        let longer = match seed % 4 {
            0 => 0,
            1 => 32 - scheme.grid.cells[Axis::INNER],
            2 => 64 - scheme.grid.cells[Axis::INNER],
            _ => rng.within(26, 60),
        };
        lengthen(&mut scheme, Axis::INNER, longer);
        make_room_for_towers(&mut rng, &mut scheme, 22);
        zones_along_lines_only(&mut scheme);
        between_odd_and_even(&mut scheme);
        if !Numbering::packs(&scheme) || torre_compiler::scheme::verify(&scheme).is_err() {
            continue;
        }
        let options = Options {
            abilities: Abilities {
                asynchronous: rng.once_in(2),
                moves_registers: true,
                suspends: rng.once_in(2),
                shared_bytes: if seed % 5 < 2 { 0 } else { u32::MAX },
                ..Abilities::default()
            },
            ..Options::default()
        };
        let trial = Trial {
            pitches: [tower_pitch(&mut rng); 2],
            options,
            packed: true,
            seed,
            ..Trial::new(library, &scheme, 1, 1 + rng.below(3))
        };
        if let Ok(report) = trial.run() {
            packed += usize::from(report.with_interior > 0);
            makes_ghosts += usize::from(report.makes_ghosts);
            holds_ghosts += usize::from(!report.makes_ghosts);
        }
    }
    let tried = [packed, makes_ghosts, holds_ghosts];
    assert!(
        packed > 5 && makes_ghosts > 1 && holds_ghosts > 0,
        "{tried:?}"
    );
}
