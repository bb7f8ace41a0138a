//! Whether a scheme's step is stable.

use super::cells::{Cell, setting};
use super::cost::Patience;
use super::places::{Places, extremes_of_cells, places};
use super::step::{Block, NoStep, Step};
use super::zone::{Effort, Growth, Phase, TOLERANCE, Waves};
use crate::lattice::{Axis, Interval, PerAxis};
use crate::scheme::{ComponentId, Scheme};
use crate::statics::Files;
use num_complex::Complex64;
use std::collections::BTreeSet;

/// ln of the growth per step above which a step does not resolve it.
const RESOLVED: f64 = 0.2;

/// The growth of waves.
#[derive(Clone, Debug, PartialEq)]
pub struct Stability {
    /// The wave that grows most over all places, or the one that comes nearest to growth.
    pub worst: Growth,
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
    /// No wave grows faster than uniform values do.
    pub fn is_stable(&self) -> bool {
        self.worst.rate <= allowed(self.own)
    }

    /// Nor does one where all coefficients are as unfavourable as they are anywhere.
    pub fn is_stable_in_any_case(&self) -> bool {
        let combined = self.combined.is_none_or(|g| g.rate <= allowed(self.own));
        self.is_stable() && combined
    }
}

/// ln of the growth per step that is no instability where uniform values grow by `own`.
pub fn allowed(own: f64) -> f64 {
    TOLERANCE + 1.1 * own
}

/// Analyses a scheme as it is.
pub fn stability(scheme: &Scheme, files: &dyn Files, effort: &Effort) -> Result<Stability, NoStep> {
    of_places(
        scheme,
        files,
        &places(scheme, files, Patience::Long)?,
        effort,
    )
}

/// The same at places that are known.
pub fn of_places(
    scheme: &Scheme,
    files: &dyn Files,
    places: &Places,
    effort: &Effort,
) -> Result<Stability, NoStep> {
    let cells: Vec<Cell> = places.list.iter().map(|p| p.cell).collect();
    let media = Media::new(scheme, files, &cells)?;
    // Waves are looked at most closely where coefficients are most vigorous, and the worst of these waves everywhere.
    let mut found = media.scan_first(effort);
    found.extend(media.scan_others(effort));
    let mut suspects: Vec<Phase> = found.iter().map(|(_, g)| g.phase).collect();
    suspects.extend(media.corners());
    found.extend(media.worst(&suspects));
    let worst = found
        .into_iter()
        .max_by(|a, b| a.1.rate.total_cmp(&b.1.rate));
    let (at, worst) = worst.unwrap_or((
        PerAxis::splat(0).into(),
        Growth {
            phase: PerAxis::splat(0.0),
            rate: f64::NEG_INFINITY,
        },
    ));
    let combined = match places.combined.is_empty() {
        true => None,
        false => Media::combined(scheme, files, &cells)?.worst(&suspects),
    };
    Ok(Stability {
        worst,
        at,
        own: media.own_growth(),
        combined: combined.map(|(_, g)| g),
        thin: places.thin.clone(),
        aside: media.aside(),
        settings: places.list.len(),
        is_complete: places.is_complete,
    })
}

/// The steps with the coefficients of some cells, each taken for the whole lattice.
pub struct Media {
    list: Vec<(Cell, Step, Vec<Block>)>,
}

impl Media {
    pub fn new(scheme: &Scheme, files: &dyn Files, cells: &[Cell]) -> Result<Self, NoStep> {
        let mut list = Vec::new();
        for &at in cells {
            let step = Step::new(scheme, &setting(scheme, files, at))?;
            let blocks = step.blocks();
            list.push((at, step, blocks));
        }
        Ok(Self { list })
    }

    /// With all coefficients at the largest absolute values that they have in the cells.
    pub fn combined(scheme: &Scheme, files: &dyn Files, cells: &[Cell]) -> Result<Self, NoStep> {
        let mut list = Vec::new();
        for setting in extremes_of_cells(scheme, files, cells) {
            let step = Step::combined(scheme, &setting)?;
            let blocks = step.blocks();
            list.push((PerAxis::splat(0).into(), step, blocks));
        }
        Ok(Self { list })
    }

    fn waves(&self) -> impl Iterator<Item = (Cell, Waves<'_>)> {
        self.list.iter().flat_map(|(at, step, blocks)| {
            blocks
                .iter()
                .map(|block| (*at, Waves::new(step, block.clone())))
        })
    }

    /// The wave that grows most among the waves of some phases, and where.
    pub fn worst(&self, phases: &[Phase]) -> Option<(Cell, Growth)> {
        let mut worst: Option<(Cell, Growth)> = None;
        for (at, step, blocks) in &self.list {
            for block in blocks {
                for &phase in phases {
                    let rate = step.amplification(block, phase).growth();
                    if worst.is_none_or(|(_, w)| rate > w.rate) {
                        worst = Some((*at, Growth { phase, rate }));
                    }
                }
            }
        }
        worst
    }

    /// The eigenvalues of a wave, for each cell and each part of a step's state; `None` where they are not known.
    pub fn eigenvalues(&self, phase: Phase) -> Option<Vec<Vec<Complex64>>> {
        let parts = self.list.iter();
        let parts = parts.flat_map(|(_, step, blocks)| blocks.iter().map(move |b| (step, b)));
        let values = parts.map(|(step, block)| step.amplification(block, phase).eigenvalues());
        values.collect()
    }

    /// The waves that grow most, or come nearest to it, with the coefficients of the first cell.
    fn scan_first(&self, effort: &Effort) -> Vec<(Cell, Growth)> {
        let first = self.list.first().map(|(at, ..)| *at);
        let waves = self.waves().take_while(|(at, _)| Some(*at) == first);
        waves
            .flat_map(|(at, w)| w.scan(effort).into_iter().map(move |g| (at, g)))
            .collect()
    }

    /// The waves that grow most with the coefficients of the other cells, on grids that all together cost as much as
    /// the grid of the first cell may.
    fn scan_others(&self, effort: &Effort) -> Vec<(Cell, Growth)> {
        let others = self.list.get(1..).unwrap_or_default();
        let blocks: usize = others.iter().map(|(_, _, blocks)| blocks.len()).sum();
        let each = effort.grid / blocks.max(1) as f64;
        let waves = others.iter().flat_map(|(at, step, blocks)| {
            let waves = blocks.iter().map(|block| Waves::new(step, block.clone()));
            waves.map(move |waves| (*at, waves))
        });
        waves
            .filter_map(|(at, waves)| Some((at, waves.scan_coarsely(each)?)))
            .collect()
    }

    /// The same for all cells.
    pub fn scan(&self, effort: &Effort) -> Vec<Growth> {
        self.waves().flat_map(|(_, w)| w.scan(effort)).collect()
    }

    /// Waves near one that grow faster.
    pub fn climb(&self, from: Phase, stride: f64, evaluations: usize) -> Vec<Growth> {
        let near = |(_, w): (Cell, Waves)| w.fastest_near(from, stride, evaluations);
        self.waves().map(near).collect()
    }

    /// The components whose updates are left out somewhere.
    fn aside(&self) -> Vec<ComponentId> {
        let all = self.list.iter().flat_map(|(_, step, _)| step.aside());
        let all: BTreeSet<ComponentId> = all.copied().collect();
        all.into_iter().collect()
    }

    /// Waves that alternate or stand still along each axis.
    pub fn corners(&self) -> Vec<Phase> {
        let mut corners: Vec<Phase> = Vec::new();
        for (_, waves) in self.waves() {
            for phase in waves.corners() {
                if !corners.contains(&phase) {
                    corners.push(phase);
                }
            }
        }
        corners
    }

    /// ln of the factor by which uniform values grow of themselves in a step, as the equations may have it. Only
    /// growth without a change of sign counts: values that swing or alternate more and more do so because the step is
    /// too long. So does growth that the step does not resolve.
    pub fn own_growth(&self) -> f64 {
        let growth = |step: &Step, block: &Block| {
            let matrix = step.amplification(block, PerAxis::splat(0.0));
            let rate = matrix.growth();
            if !(TOLERANCE..RESOLVED).contains(&rate) {
                return 0.0;
            }
            let values = matrix.eigenvalues().unwrap_or_default().into_iter();
            match values.max_by(|a, b| a.norm().total_cmp(&b.norm())) {
                Some(l) if l.re > 0.0 && l.im.abs() < 1e-6 * l.re => rate,
                _ => 0.0,
            }
        };
        let blocks = self
            .list
            .iter()
            .flat_map(|(_, step, blocks)| blocks.iter().map(move |block| growth(step, block)));
        blocks.fold(0.0, f64::max)
    }

    /// The largest absolute value of the eigenvalues of some waves, without waves whose powers grow as polynomials:
    /// their eigenvalues are not exact.
    pub fn radius(&self, phases: &[Phase]) -> f64 {
        let mut radius = 0.0_f64;
        for (_, step, blocks) in &self.list {
            for block in blocks {
                for &phase in phases {
                    let matrix = step.amplification(block, phase);
                    if matrix.polynomial_growth() > 0 {
                        continue;
                    }
                    let values = matrix.eigenvalues();
                    let sizes = values.unwrap_or_default().into_iter().map(|v| v.norm());
                    radius = sizes.fold(radius, f64::max);
                }
            }
        }
        radius
    }
}
