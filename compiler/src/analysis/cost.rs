//! The cost of an analysis, known before it is made.
//!
//! Amplification matrices have as many rows as values of a cell depend on each other, and most of the work is products
//! of them. So work is counted in media times the third power of these values.

use super::cells::Site;
use super::parts::Part;
use super::step::{NoStep, largest_block};
use crate::scheme::Scheme;

/// The most values of a cell that depend on each other whose waves are looked at in a second.
pub const VALUES: usize = 56;
/// The work on media whose waves are looked at in a second.
const MEDIA: f64 = 6e6;
/// The same for the pace of waves, which takes more of each medium.
const PACE: f64 = 3e5;
/// The same for the search of the largest step.
const LIMIT: f64 = 1e5;
/// The work on boxes of cells in which a step's vigour is looked for.
const BOXES: f64 = 1.5e7;
/// The work on forms of a step in all zones together: decisions about an update, of which a run has time for these
/// many.
const FORMS: u64 = 4_000_000;
/// How much more there may be where the answer itself is wanted.
const LONG: u64 = 20;
/// Values whose media take little work.
const SMALL: usize = 24;
/// Further work on a medium.
const OVERHEAD: f64 = 60.0;

/// How long an analysis may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// About a second, for every run.
    Short,
    /// As long as it takes, where the answer itself is wanted.
    Long,
}

/// The size of a scheme's analysis.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    values: usize,
}

impl Cost {
    pub fn new(scheme: &Scheme) -> Self {
        Self {
            values: largest_block(scheme),
        }
    }

    /// Work on a medium of as many values as depend on each other.
    fn of(self, media: usize) -> f64 {
        media as f64 * work(self.values)
    }

    /// Refuses to look at waves where that takes too long.
    pub fn allow(self, patience: Patience) -> Result<(), NoStep> {
        self.allow_work(self.of(1), patience)
    }

    /// The same for the waves of some media, and of others of some part.
    pub fn allow_media(
        self,
        scheme: &Scheme,
        sites: &[Site],
        combined: &[Part],
        patience: Patience,
    ) -> Result<(), NoStep> {
        let combined = combined.iter().map(|part| work(part.values(scheme)));
        self.allow_work(of_sites(scheme, sites) + combined.sum::<f64>(), patience)
    }

    fn allow_work(self, work: f64, patience: Patience) -> Result<(), NoStep> {
        let slow = self.values > VALUES || work > MEDIA;
        match patience == Patience::Short && slow {
            true => Err(NoStep::TooSlow {
                values: self.values,
            }),
            false => Ok(()),
        }
    }

    /// Whether a medium takes so little that some dozens of them may be compared for each place.
    pub fn is_small(self) -> bool {
        self.values <= SMALL
    }
}

/// How many boxes of cells there may be in which the vigour of a step with some values is looked for, up to a number.
pub fn boxes(values: usize, zones: usize, most: usize) -> usize {
    let affordable = BOXES / (zones.max(1) as f64 * work(values));
    most.min(affordable as usize).max(8)
}

/// Work on a medium of some values.
fn work(values: usize) -> f64 {
    (values as f64).powi(3) + OVERHEAD
}

fn of_sites(scheme: &Scheme, sites: &[Site]) -> f64 {
    sites
        .iter()
        .map(|site| work(site.part.values(scheme)))
        .sum()
}

/// Whether the pace of waves takes no longer than a second with the coefficients of some sites.
pub fn pace_is_quick(scheme: &Scheme, sites: &[Site]) -> bool {
    of_sites(scheme, sites) <= PACE
}

/// The work on forms of a step.
pub fn forms(patience: Patience) -> u64 {
    match patience {
        Patience::Short => FORMS,
        Patience::Long => LONG * FORMS,
    }
}

/// Whether the largest step of a scheme is found in some seconds with the coefficients of some cells.
pub fn limit_is_quick(scheme: &Scheme, sites: &[Site]) -> bool {
    of_sites(scheme, sites) <= LIMIT
}
