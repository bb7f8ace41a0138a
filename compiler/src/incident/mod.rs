//! Incident fields: boxes in which values are total fields, around which they are scattered ones, for any linear
//! scheme.
//!
//! A value is *in* a box if its position lies between the box's ends, these included. An update near a face reads
//! values of the other kind. For a target p and each value q that it reads, with p's own weight, the value that should
//! be read is
//!
//! ```text
//! read(q) = stored(q) + ([p in] - [q in]) F(q)
//! ```
//!
//! where F is the incident field of the version that is read. Updates near faces are linear in the values that they
//! read across them, so this is a number that is added to the update's result: the sum of `weight * ([p in] - [q in]) *
//! F(q)` over all q, the *correction* of p. It is computed in double precision, in the order of the update's weights
//! ([`crate::analysis::weights`]), rounded to the scheme's precision and added right after the update, before sources
//! act: in that precision, as sources add; a sum that updates would flush is 0. A q beyond a mirror is
//! the value that is read instead, with the mirror's sign.
//!
//! F is given as an expression, or it is a plane wave of the scheme itself ([`line`]): along the direction m all its
//! values are f(m . I) of the cell index I, so that one array for each component, to which the same updates are
//! applied, has them all. With its numerical dispersion and polarisation nothing but rounding errors leaves the box (T.
//! Tan and M. Potter, IEEE Trans. Antennas Propag. 58 (2010) 2641-2648, for Maxwell's equations; here for any updates
//! of a scheme).
//!
//! ```text
//! shell      the places near faces
//! weigh      weights of an update at a place
//! background the medium of a plane wave outside of the faces
//! line       a plane wave
//! field      an incident field, step by step
//! table      corrections of a whole problem, places with equal ones together
//! waves      their values in a step
//! rows       where they act, row by row
//! size       how large the tables are
//! fault      why there is no such field
//! ```

mod background;
mod fault;
mod field;
mod line;
mod rows;
mod shell;
mod size;
mod table;
mod waves;
mod weigh;

pub use fault::{Fault, Refusal};
pub use field::{Field, When};
pub use line::cell_along;
pub use rows::{CorrectedRows, RowPlace};
pub use shell::{
    CorrectedUpdate, FarRows, MOST_PLACES, Shell, alike_places, corrected_updates, places, shells,
    whole_rows,
};
pub use size::Sizes;
pub use table::{Corrections, Group};
pub use waves::{Gathered, Gathering, Summing};
pub use weigh::{Site, Term, for_each_site};

use crate::problem::{IncidentField, Problem};
use crate::scheme::Scheme;
use crate::statics::Files;

/// Checks the incident fields of a problem: `files` are the files of the scheme.
pub fn check(scheme: &Scheme, problem: &Problem, files: &dyn Files) -> Result<(), Refusal> {
    Corrections::new(scheme, problem, files).map(|_| ())
}

/// A correction as it is added: tiny ones are 0, as values are that updates flush.
pub fn settled(scheme: &Scheme, sum: f64) -> f64 {
    match sum.abs() < scheme.precision.flush_threshold() {
        true => 0.0,
        false => sum,
    }
}

/// The checks that need no values of coefficients: where boxes lie.
pub fn check_places(scheme: &Scheme, problem: &Problem) -> Result<(), Refusal> {
    for (number, incident) in problem.incidents.iter().enumerate() {
        for (total, of) in incident.boxes.iter().enumerate() {
            Shell::new(scheme, of)
                .check(&incident.field)
                .map_err(|fault| Refusal {
                    incident: number,
                    total,
                    fault,
                })?;
        }
    }
    Ok(())
}

/// Refuses waves whose lines would be too long, whichever places their updates read: this looks at no place of a box.
pub fn check_lengths(scheme: &Scheme, problem: &Problem) -> Result<(), Refusal> {
    for (number, incident) in problem.incidents.iter().enumerate() {
        let IncidentField::Plane(wave) = &incident.field else {
            continue;
        };
        let boxes = incident.boxes.iter();
        let shells: Vec<Shell<'_>> = boxes.map(|of| Shell::new(scheme, of)).collect();
        if shells.is_empty() {
            continue;
        }
        line::check_length(scheme, wave.direction, &shells).map_err(|fault| Refusal {
            incident: number,
            total: 0,
            fault,
        })?;
    }
    Ok(())
}
