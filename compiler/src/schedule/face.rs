//! One face of a tiling.
//!
//! A face assigns to every event (position p, time index k) the number `form(p) - slope * k`, in cells. Tiles are cut
//! where it is a multiple of a pitch, and run *from high to low*: towers lean up the form. (In a [frame](super::frame),
//! less the lead of the update.) The rule of [`check_tiling`](super::check_tiling) covers all shapes:
//!
//! | tiling | faces |
//! |---|---|
//! | layerwise | form 0, slope 1 |
//! | skewed along x | x |
//! | diamond in x-t | x and -x |
//! | DiamondTorre | x + y and x - y |

use crate::cone::{Cones, Form, Rational};
use crate::lattice::{HalfIndex, PerAxis};

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
