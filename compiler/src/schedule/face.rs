//! One face of a tiling, and the rule that makes it legal.
//!
//! A face assigns to every event (position p, time index k) the number `form(p) - slope * k`, in cells. Tiles are cut
//! where it is a multiple of a pitch, and run *from high to low*: towers lean up the form. (In a [frame](super::frame),
//! less the lead of the update.) The same rule covers all shapes:
//!
//! | tiling | faces |
//! |---|---|
//! | layerwise | form 0, slope 1 |
//! | skewed along x | x |
//! | diamond in x-t | x and -x |
//! | DiamondTorre | x + y and x - y |

use crate::cone::{Cones, Dependence, Form, Rational, Via};
use crate::lattice::{HalfIndex, PerAxis};
use std::fmt;

/// A family of parallel planes in space and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Face {
    pub form: Form,
    /// How far the planes move up the form, in cells per stage; on average over a step, if a frame gives updates leads.
    pub slope: Rational,
}

impl Face {
    /// The face of a form with the smallest legal slope.
    pub fn fitting(cones: &Cones, form: Form) -> Face {
        Face {
            form,
            slope: cones.slope(form),
        }
    }

    /// `form(p) - slope * k`, in cells. It does not grow from an event to one that depends on it, if the face is legal.
    pub fn value(&self, position: PerAxis<HalfIndex>, time: i64) -> Rational {
        let along = position
            .iter()
            .map(|(a, h)| Rational::whole(i64::from(self.form[a])) * Rational::halves(h.0))
            .fold(Rational::ZERO, |sum, x| sum + x);
        along - self.slope * Rational::whole(time)
    }

    /// The index of the tile that an event lies in; `pitch` is positive, in cells. `None` if it is 0.
    pub fn index(&self, pitch: Rational, position: PerAxis<HalfIndex>, time: i64) -> Option<i64> {
        let value = self.value(position, time);
        value.checked_div(pitch).map(Rational::floor)
    }
}

/// A dependence that crosses a face against the running order.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    pub face: Face,
    /// A dependence that needs the largest slope.
    pub dependence: Dependence,
    /// In cells per stage.
    pub given: Rational,
    /// The smallest slope that would be legal, in cells per stage.
    pub needed: Rational,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "slope {} is below the {} cells per stage that the scheme needs",
            self.given, self.needed
        )
    }
}

impl std::error::Error for Violation {}

/// A face without leads is legal iff form(space) <= slope * stages for every dependence: then its value never grows
/// from an event to one that depends on it, so that no tile waits for a tile that runs later.
///
/// Reads around a periodic axis count with their long way, through the whole domain.
pub fn check_face(cones: &Cones, face: &Face) -> Result<(), Violation> {
    check_face_around(cones, face, PerAxis::splat(false))
}

/// The same for a tiling that is periodic itself along the axes in `closed`: going around such an axis by the whole
/// domain maps tiles to tiles that are the same ones in the running order. There, reads take the short way.
pub fn check_face_around(
    cones: &Cones,
    face: &Face,
    closed: PerAxis<bool>,
) -> Result<(), Violation> {
    let open = |d: &&Dependence| d.via.iter().all(|(a, &v)| v != Via::Wrap || !closed[a]);
    // The same read with the short way along the closed axes has a vector of its own.
    let steepest = cones.dependences.iter().filter(open).reduce(|best, d| {
        if d.slope(face.form) > best.slope(face.form) {
            d
        } else {
            best
        }
    });
    match steepest {
        Some(d) if d.slope(face.form) > face.slope => Err(Violation {
            face: *face,
            dependence: *d,
            given: face.slope,
            needed: d.slope(face.form),
        }),
        _ => Ok(()),
    }
}
