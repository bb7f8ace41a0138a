//! Whether a scheme's step is stable.

use super::cells::{Cell, Site};
use super::cost::Patience;
use super::gain::{Gain, SLACK};
use super::media::{Media, Worst};
use super::parts::Part;
use super::places::{Places, places};
use super::step::NoStep;
use super::zone::{Effort, Growth, Phase, TOLERANCE};
use crate::lattice::{Axis, Interval, PerAxis};
use crate::scheme::{ComponentId, Scheme};
use crate::statics::Files;

/// The growth of waves.
#[derive(Clone, Debug, PartialEq)]
pub struct Stability {
    /// The wave that grows most over all places beyond its growth in the equations, or comes nearest to that.
    pub worst: Growth,
    /// ln of its growth per step beyond that.
    pub excess: f64,
    /// Where: the cell whose coefficients are used everywhere.
    pub at: Cell,
    /// The values that grow there.
    pub part: Part,
    /// ln of the factor per step by which uniform values grow of themselves, as values of an equation u_t = a u do, the
    /// largest of all parts of the scheme; 0 if they do not.
    pub own: f64,
    /// The same by part.
    pub own_of_parts: Vec<(Part, f64)>,
    /// ln of the most growth per step beyond that of the equations if all coefficients have their largest values at one
    /// place; none where there is such a place.
    pub combined: Option<f64>,
    /// Regions that are too thin for waves in them to mean anything.
    pub thin: Vec<(Axis, Interval)>,
    /// Components whose updates are not linear, and on which no other value depends.
    pub aside: Vec<ComponentId>,
    /// How many different sets of coefficients were looked at.
    pub settings: usize,
    /// Coefficients that vary, and whose extremes were not looked for.
    pub unsearched: usize,
    /// Whether all combinations of updates and branches that act together somewhere are among them.
    pub is_complete: bool,
}

impl Stability {
    /// No wave grows more than the equations let it.
    pub fn is_stable(&self) -> bool {
        self.excess <= TOLERANCE
    }

    /// Whether the step may be unstable though it seems to be stable, or the other way round, as long as growth with
    /// shorter steps is not known.
    pub fn is_open(&self) -> bool {
        !self.is_stable() || self.own > 0.0
    }

    /// Nor does one where all coefficients are as unfavourable as they are anywhere.
    pub fn is_stable_in_any_case(&self) -> bool {
        self.is_stable() && self.combined.is_none_or(|excess| excess <= TOLERANCE)
    }

    /// ln of the growth per step of a part that is no instability.
    pub fn allowed(&self, part: &Part) -> f64 {
        let own = self.own_of_parts.iter().filter(|(own, _)| own.meets(part));
        TOLERANCE + SLACK * own.map(|(_, growth)| *growth).fold(0.0, f64::max)
    }
}

/// Analyses a scheme as it is.
pub fn stability(scheme: &Scheme, files: &dyn Files, effort: &Effort) -> Result<Stability, NoStep> {
    of_places(
        scheme,
        files,
        &places(scheme, files, Patience::Long)?,
        effort,
        &Gain::OfStep,
    )
}

/// The same at places that are known.
pub fn of_places(
    scheme: &Scheme,
    files: &dyn Files,
    places: &Places,
    effort: &Effort,
    gain: &Gain,
) -> Result<Stability, NoStep> {
    let media = Media::new(scheme, files, &places.list)?;
    // Waves are looked at most closely where coefficients are most vigorous, and the worst of these waves everywhere.
    let mut found = media.scan_first(effort);
    found.extend(media.scan_others(effort));
    let mut suspects: Vec<Phase> = found.iter().map(|g| g.phase).collect();
    suspects.extend(media.corners());
    let worst = media.worst_beyond(&suspects, gain.in_step(&media));
    let worst = worst.unwrap_or(Worst {
        at: Site {
            cell: PerAxis::splat(0).into(),
            part: Part::whole(scheme),
        },
        growth: Growth {
            phase: PerAxis::splat(0.0),
            rate: f64::NEG_INFINITY,
        },
        excess: f64::NEG_INFINITY,
    });
    let own = gain.own_growth(&media);
    let parts = places.list.iter().map(|site| site.part.clone());
    let own_of_parts: Vec<(Part, f64)> = parts.zip(own).collect();
    let mut found = Stability {
        worst: worst.growth,
        excess: worst.excess,
        at: worst.at.cell,
        part: worst.at.part,
        own: own_of_parts.iter().map(|(_, own)| *own).fold(0.0, f64::max),
        own_of_parts,
        combined: None,
        thin: places.thin.clone(),
        aside: places.aside.clone(),
        settings: places.settings,
        unsearched: places.unsearched,
        is_complete: places.is_complete,
    };
    if !places.combined.is_empty() {
        let media = Media::combined(scheme, files, &places.list)?;
        let allowed = media.parts().map(|part| found.allowed(part) - TOLERANCE);
        let allowed: Vec<f64> = allowed.collect();
        let worst = media.worst_beyond(&suspects, |medium, _| allowed[medium]);
        found.combined = worst.map(|worst| worst.excess);
    }
    Ok(found)
}
