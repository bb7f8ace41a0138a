//! Whether a scheme's step is stable.

use super::cells::Cell;
use super::cost::Patience;
use super::gain::{Gain, SLACK};
use super::media::{Media, Worst};
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
    /// ln of the factor per step by which uniform values grow of themselves, as values of an equation u_t = a u do; 0
    /// if they do not.
    pub own: f64,
    /// The wave that grows most if all coefficients have their largest values at one place; none where there is such a
    /// place.
    pub combined: Option<Growth>,
    /// Regions that are too thin for waves in them to mean anything.
    pub thin: Vec<(Axis, Interval)>,
    /// Components whose updates are not linear, and on which no other value depends.
    pub aside: Vec<ComponentId>,
    /// How many different sets of coefficients were looked at.
    pub settings: usize,
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
        let combined = self.combined.is_none_or(|g| g.rate <= allowed(self.own));
        self.is_stable() && combined
    }
}

/// ln of the growth per step that is no instability where uniform values grow by `own`.
pub fn allowed(own: f64) -> f64 {
    TOLERANCE + SLACK * own
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
    let cells: Vec<Cell> = places.list.iter().map(|p| p.cell).collect();
    let media = Media::new(scheme, files, &cells)?;
    // Waves are looked at most closely where coefficients are most vigorous, and the worst of these waves everywhere.
    let mut found = media.scan_first(effort);
    found.extend(media.scan_others(effort));
    let mut suspects: Vec<Phase> = found.iter().map(|(_, g)| g.phase).collect();
    suspects.extend(media.corners());
    let worst = media.worst_beyond(&suspects, gain.in_step(&media));
    let worst = worst.unwrap_or(Worst {
        at: PerAxis::splat(0).into(),
        growth: Growth {
            phase: PerAxis::splat(0.0),
            rate: f64::NEG_INFINITY,
        },
        excess: f64::NEG_INFINITY,
    });
    let combined = match places.combined.is_empty() {
        true => None,
        false => Media::combined(scheme, files, &cells)?.worst(&suspects),
    };
    Ok(Stability {
        worst: worst.growth,
        excess: worst.excess,
        at: worst.at,
        own: gain.own_growth(&media),
        combined: combined.map(|(_, g)| g),
        thin: places.thin.clone(),
        aside: media.aside(),
        settings: places.list.len(),
        is_complete: places.is_complete,
    })
}
