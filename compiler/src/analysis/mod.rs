//! Stability and accuracy of a scheme from its own taps: von Neumann's analysis.
//!
//! ```text
//! Body          --linear--> weights of the values that an update reads
//! updates       --parts---> components whose values depend on each other, each part judged alone
//! coefficients  --places--> the places where they are extreme     --forms--> and of each set of updates and branches
//! both          --step----> one step in a uniform medium: its amplification matrix G(theta)
//! G             --zone----> the waves that grow most     --stability, limit--> stable or not, the largest step
//! cells         --trial---> growth of a piece of the lattice, where no step is stable in a uniform medium, and at
//!               --interfaces  interfaces between media
//!               --equation-> growth that shorter steps and smaller cells keep, as the equations have it
//!               --still---> the share of a drive that makes no wave
//!               --waves---> frequencies of waves         --pace, dispersion--> Courant number, errors of velocity
//! ```
//!
//! Powers of G have to stay bounded for all phases theta: |lambda| <= 1 for its eigenvalues, and no growth of another
//! kind but as a polynomial of the number of steps. Equations have such growth, too: uniform values of u_tt = c^2 u_xx
//! grow in proportion to time, and so do sums over time. So eigenvalues decide, and polynomials are reported
//! ([`Analysis::drift`]).

mod boxes;
mod cells;
mod cost;
mod dispersion;
mod draw;
mod equation;
mod extremes;
mod forms;
mod gain;
mod interfaces;
mod limit;
mod linear;
mod matrix;
mod media;
mod number;
mod order;
mod pace;
mod parts;
mod places;
mod search;
mod stability;
mod step;
mod still;
mod sums;
mod thin;
mod trial;
mod waves;
mod zone;
mod zones;

pub use cells::{Cell, Place, Site};
pub use cost::{Patience, limit_is_quick};
pub use dispersion::{
    AROUND, Direction, Dispersion, Kind, Lattice, POINTS, Reference, Resolve, Sample, dispersion,
};
pub use draw::draw;
pub use equation::growth_of_equations;
pub use gain::Gain;
pub use interfaces::{trial_of_interfaces, trial_of_part};
pub use limit::{Limit, Side, Taken, WithStep, largest_step};
pub use linear::{Nonlinear, Operation, weights};
pub use order::Order;
pub use pace::{Pace, pace};
pub use parts::Part;
pub use places::{Places, places, places_in};
pub use stability::{Stability, of_places, stability};
pub use step::{NoStep, NonlinearUpdate};
pub use still::{StillDrive, still_drives};
pub use trial::{Trial, trial};
pub use zone::{Effort, Growth, Phase, TOLERANCE};

use crate::lattice::{Axis, PerAxis};
use crate::scheme::Scheme;
use crate::statics::Files;
use cost::pace_is_quick;
use media::Media;
use step::Step;

/// A short answer, for every run.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub stability: Stability,
    pub pace: Option<Pace>,
}

/// Whether the step of a scheme is stable, and how far waves get in it. Takes milliseconds for schemes with a few
/// values per cell; an analysis that takes longer than about a second is left out. `without_phases` is the scheme with
/// periodic sides in the place of sides with a phase.
pub fn summary(
    scheme: &Scheme,
    without_phases: Option<&Scheme>,
    files: &dyn Files,
) -> Result<Summary, NoStep> {
    let places = places(scheme, files, Patience::Short)?;
    let quick = pace_is_quick(scheme, &places.list);
    let pace = || pace_of(scheme, without_phases, files, &places);
    Ok(Summary {
        stability: of_places(scheme, files, &places, &Effort::QUICK, &Gain::OfStep)?,
        pace: quick.then(pace).flatten(),
    })
}

/// The pace of waves. Where sides have a phase, waves with the phase 0 from cell to cell are not the longest ones.
fn pace_of(
    scheme: &Scheme,
    without_phases: Option<&Scheme>,
    files: &dyn Files,
    places: &Places,
) -> Option<Pace> {
    match without_phases {
        None => pace(scheme, files, places),
        Some(plain) => {
            let places = self::places(plain, files, Patience::Long).ok()?;
            pace(plain, files, &places)
        }
    }
}

/// All results about a scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    pub stability: Stability,
    pub pace: Option<Pace>,
    /// Where stability ends, with the coefficients of any one cell used everywhere; `None` if the step cannot
    /// be changed.
    pub limit: Option<Limit>,
    /// The same with the largest absolute values of all coefficients at once, where no cell has them all.
    pub safe_limit: Option<Limit>,
    /// Steps with the coefficients that the cells really have, where waves grow with every step in a medium of one
    /// cell's, or at interfaces only.
    pub trial: Option<Trial>,
    /// The rate per unit of time at which waves grow, where that is the rate of the equations.
    pub of_equations: Option<f64>,
    /// The degree of the polynomial by which uniform values, and others, may grow.
    pub drift: [u32; 2],
    /// Axes with a mirror boundary that the scheme is not symmetric about: the neighbourhood of such ends is not part
    /// of the analysis.
    pub unmirrored: Vec<Axis>,
    pub dispersion: Option<Dispersion>,
}

/// How a scheme depends on its sizes.
pub struct Sizes<'a> {
    /// The value from which the limit is looked for.
    pub start: f64,
    /// The scheme for another value of it.
    pub with_step: Option<WithStep<'a>>,
    pub resolve: Resolve<'a>,
    /// The scheme with periodic sides, where its sides have a phase.
    pub without_phases: Option<&'a Scheme>,
}

/// The growth that waves may have with the coefficients of some sites, looked for from a step on.
pub fn gain_of_sites(start: f64, with_step: WithStep, files: &dyn Files, sites: &[Site]) -> Gain {
    Gain::find(start, &mut |step| {
        let scheme = with_step(step)?;
        Media::new(&scheme, files, sites).ok()
    })
}

/// Analyses a scheme.
pub fn analyze(scheme: &Scheme, files: &dyn Files, mut sizes: Sizes) -> Result<Analysis, NoStep> {
    let places = places(scheme, files, Patience::Long)?;
    let sites = &places.list;
    let gain = match &mut sizes.with_step {
        Some(with_step) => gain_of_sites(sizes.start, with_step, files, sites),
        None => Gain::OfStep,
    };
    let stability = of_places(scheme, files, &places, &Effort::THOROUGH, &gain)?;
    let (mut limit, mut safe_limit) = (None, None);
    if let Some(with_step) = sizes.with_step {
        limit = largest_step(sizes.start, with_step, files, sites, Taken::Each);
        if !places.combined.is_empty() {
            safe_limit = largest_step(sizes.start, with_step, files, sites, Taken::Combined);
            // The largest values need not be the most unfavourable.
            if let (Some(own), Some(safe)) = (&limit, &safe_limit)
                && safe.is_wider(own)
            {
                safe_limit = limit;
            }
        }
    }
    let without_edge = limit.as_ref().is_some_and(Limit::is_none_stable);
    let trial = match (stability.is_stable(), without_edge) {
        (true, _) => None,
        (false, true) => trial_of_part(scheme, files, &stability),
        (false, false) => trial_of_interfaces(scheme, files, &stability),
    };
    let grows = !stability.is_stable() && trial.is_none_or(|t| t.grows() != Some(false));
    let of_equations = match grows && without_edge {
        true => growth_of_equations(&stability, scheme, files, sizes.resolve),
        false => None,
    };
    let at = cells::setting(scheme, files, stability.at);
    let worst = Step::new(scheme, &at);
    let worst = worst.or_else(|_| Step::of_part(scheme, &at, &stability.part))?;
    let is_left_out = |axis: Axis| {
        let mut sides = scheme.grid.boundary[axis].iter();
        sides.any(|side| side.is_mirror() && !worst.is_mirrored(scheme, axis, *side))
    };
    let unmirrored = scheme.grid.present().filter(|a| is_left_out(*a)).collect();
    let drift = [PerAxis::splat(0.0), PerAxis([0.7, 0.4, 0.9])]
        .map(|p| worst.amplification(&worst.whole(), p).polynomial_growth());
    Ok(Analysis {
        pace: pace_of(scheme, sizes.without_phases, files, &places),
        limit,
        safe_limit,
        trial,
        of_equations,
        drift,
        unmirrored,
        dispersion: dispersion(scheme, files, stability.at, sizes.resolve),
        stability,
    })
}

#[cfg(test)]
mod tests;
