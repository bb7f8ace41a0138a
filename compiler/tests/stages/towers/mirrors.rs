//! Tower programs of random schemes between mirrors, interpreted: same bits as row kernels stage by stage.

use super::interp::{Trial, random_points};
use super::*;
use torre_compiler::testing::{
    add_random_zones, between_odd_and_even, random_mirrored_scheme, tower_pitch, tower_pitches,
};
use torre_compiler::tower::block::{Division, Options};

#[derive(Debug, Default)]
struct Tried {
    schemes: u64,
    interior: u64,
    predicated: usize,
    closed: u64,
    packed: u64,
    amended: usize,
    z_blocks: u64,
}

#[test]
fn programs_of_schemes_between_mirrors_give_the_bits_of_rows() {
    let mut tried = Tried::default();
    // In the last four seeds a row that memory does not have leaves zeros where a shorter row has its end.
    for seed in (0..300).chain([2961, 4835, 5339, 7492]) {
        let mut rng = Rng::new(seed);
        let mut scheme = random_mirrored_scheme(&mut rng);
        if seed % 4 == 1 {
            add_random_zones(&mut Rng::new(seed), &Limits::TOWERS, &mut scheme);
        }
        let packed = seed % 3 == 1;
        if packed && rng.once_in(2) {
            between_odd_and_even(&mut scheme);
        }
        if torre_compiler::scheme::verify(&scheme).is_err() {
            continue;
        }
        let (points, mut volumes) = random_points(&mut rng, &scheme);
        if packed && Numbering::packs(&scheme) {
            volumes.clear();
        }
        let pitches = match seed % 4 {
            0 => tower_pitches(&mut rng),
            _ => [tower_pitch(&mut rng); 2],
        };
        let z_blocks = seed % 7 == 3;
        let trial = Trial {
            scheme: &scheme,
            pitches,
            slope: None,
            periods: 1 + rng.below(3),
            options: Options {
                division: match z_blocks {
                    true => Division::ZBlocks(1),
                    false => Division::Shared(1),
                },
                ..Options::default()
            },
            packed,
            points,
            volumes,
            seed,
        };
        if let Ok(report) = trial.run() {
            tried.schemes += 1;
            tried.interior += report.interior;
            tried.predicated += report.predicated;
            tried.closed += u64::from(MirroredReads::new(&scheme).any_closed());
            tried.packed += u64::from(packed && Numbering::packs(&scheme));
            tried.amended += report.amended;
            tried.z_blocks += u64::from(z_blocks);
        }
    }
    let Tried {
        schemes,
        interior,
        predicated,
        closed,
        packed,
        amended,
        z_blocks,
    } = tried;
    assert!(schemes > 40 && interior > 20 * schemes, "{tried:?}");
    assert!(
        closed > 30 && predicated > 10 * schemes as usize,
        "{tried:?}"
    );
    assert!(amended > 100 && packed > 3 && z_blocks > 2, "{tried:?}");
}
