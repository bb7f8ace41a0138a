//! Random schedules that keep the rules of [`crate::schedule`].

use super::random::Rng;
use crate::cone::{Form, Rational};
use crate::lattice::PerAxis;
use crate::schedule::{Cut, Frame, Level, Pyramid, Tiling};
use crate::scheme::Scheme;

/// Faces that fit the scheme's cone, of random forms and pitches, on one to three levels.
pub fn random_tiling(rng: &mut Rng, scheme: &Scheme, frame: &Frame) -> Tiling {
    let forms: &[&[Form]] = match scheme.grid.dimensions() {
        3 => &[
            &[PerAxis([1, 1, 0]), PerAxis([1, -1, 0])],
            &[PerAxis([1, 1, 0]), PerAxis([1, -1, 0]), PerAxis([0, 0, 1])],
            &[PerAxis([0, 0, -1]), PerAxis([1, -1, 0])],
            &[PerAxis([1, 0, 0]), PerAxis([0, 1, 0]), PerAxis([0, -1, 0])],
            &[PerAxis([2, 1, 0]), PerAxis([1, -3, 0])],
            &[PerAxis([1, 0, 0]), PerAxis([-1, 0, 0])],
            &[PerAxis([0, 1, 0])],
            &[PerAxis([0, 0, 0]), PerAxis([0, 1, 0])],
            &[],
        ],
        2 => &[
            &[PerAxis([1, 0, 0]), PerAxis([-1, 0, 0])],
            &[PerAxis([1, 0, 0]), PerAxis([0, 0, 1])],
            &[
                PerAxis([1, 0, 0]),
                PerAxis([-1, 0, 0]),
                PerAxis([0, 0, 1]),
                PerAxis([0, 0, -1]),
            ],
            &[PerAxis([0, 0, 1])],
            &[PerAxis([0, 0, 0])],
            &[],
        ],
        _ => &[
            &[PerAxis([0, 0, 1])],
            &[PerAxis([0, 0, 1]), PerAxis([0, 0, -1])],
            &[],
        ],
    };
    let levels = (0..rng.within(1, 3))
        .map(|_| {
            let cuts = rng
                .pick(forms)
                .iter()
                .map(|form| {
                    let mut face = frame.fitting(*form);
                    if rng.once_in(4) {
                        face.slope = face.slope + Rational::halves(rng.within(0, 3));
                    }
                    let [num, den] = [rng.within(1, 24), rng.within(1, 3)];
                    Cut {
                        face,
                        pitch: Rational::new(num, den).unwrap_or(Rational::ONE),
                    }
                })
                .collect();
            Level { cuts }
        })
        .collect();
    Tiling {
        height: rng.within(1, 5) as u64,
        levels,
    }
}

/// Towers: one level of faces along both diagonals of the first two axes, with these pitches.
pub fn diamonds(frame: &Frame, pitches: [Rational; 2], height: u64) -> Tiling {
    let cut = |form: [i32; 3], pitch| Cut {
        face: frame.fitting(PerAxis(form)),
        pitch,
    };
    let cuts = vec![cut([1, 1, 0], pitches[0]), cut([1, -1, 0], pitches[1])];
    Tiling {
        height,
        levels: vec![Level { cuts }],
    }
}

/// Small pyramids, of which some do not cut some axes.
pub fn random_pyramid(rng: &mut Rng) -> Pyramid {
    let height = rng.within(1, 4) as u64;
    let base = PerAxis::from_fn(|_| (!rng.once_in(4)).then(|| rng.within(1, 9)));
    Pyramid { height, base }
}
