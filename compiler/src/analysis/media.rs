//! The steps of parts of a scheme with the coefficients of some cells, each in a uniform medium, and the waves that
//! grow in them.

use super::cells::{Cell, Site, setting};
use super::extremes::extremes_of_sites;
use super::parts::{Part, Parts};
use super::step::{Block, NoStep, Step};
use super::zone::{Effort, Growth, Phase, Waves};
use crate::lattice::PerAxis;
use crate::scheme::Scheme;
use crate::statics::Files;
use num_complex::Complex64;

/// The steps of parts of a scheme with the coefficients of some cells, each taken for the whole lattice.
pub struct Media {
    list: Vec<Medium>,
    /// The time step.
    pub dt: f64,
}

/// A part of a step in a uniform medium.
struct Medium {
    site: Site,
    step: Step,
    blocks: Vec<Block>,
    /// Whether no medium before it in the list is one of the same part.
    is_first: bool,
}

/// The wave that grows most beyond its growth in the equations.
pub struct Worst {
    pub at: Site,
    pub growth: Growth,
    /// ln of the growth per step beyond that.
    pub excess: f64,
}

impl Media {
    pub fn new(scheme: &Scheme, files: &dyn Files, sites: &[Site]) -> Result<Self, NoStep> {
        let parts = Parts::new(scheme);
        let mut media = Self::empty(scheme);
        for site in sites {
            let part = site.part.within(&parts);
            let step = Step::of_part(scheme, &setting(scheme, files, site.cell), &part)?;
            media.push(site.cell, part, step);
        }
        Ok(media)
    }

    /// With all coefficients at the largest absolute values that they have in the cells.
    pub fn combined(scheme: &Scheme, files: &dyn Files, sites: &[Site]) -> Result<Self, NoStep> {
        let mut media = Self::empty(scheme);
        for (part, setting) in extremes_of_sites(scheme, files, sites) {
            let step = Step::combined(scheme, &setting, &part)?;
            media.push(PerAxis::splat(0).into(), part, step);
        }
        Ok(media)
    }

    fn empty(scheme: &Scheme) -> Self {
        Self {
            list: Vec::new(),
            dt: scheme.grid.dt,
        }
    }

    fn push(&mut self, cell: Cell, part: Part, step: Step) {
        self.list.push(Medium {
            is_first: self.list.iter().all(|m| !m.site.part.meets(&part)),
            site: Site { cell, part },
            blocks: step.blocks(),
            step,
        });
    }

    /// The wave that grows most among the waves of some phases, and where.
    pub fn worst(&self, phases: &[Phase]) -> Option<(Site, Growth)> {
        let worst = self.worst_beyond(phases, |_, _| 0.0);
        worst.map(|worst| (worst.at, worst.growth))
    }

    /// The same beyond the growth, as ln per step and at least 0, that a wave may have in a medium.
    pub fn worst_beyond(
        &self,
        phases: &[Phase],
        allowed: impl Fn(usize, Phase) -> f64,
    ) -> Option<Worst> {
        let mut worst: Option<Worst> = None;
        for (number, medium) in self.list.iter().enumerate() {
            for block in &medium.blocks {
                for &phase in phases {
                    let rate = medium.step.amplification(block, phase).growth();
                    let is_worse = |excess: f64| worst.as_ref().is_none_or(|w| excess > w.excess);
                    if !is_worse(rate) {
                        continue;
                    }
                    let excess = rate - allowed(number, phase);
                    if is_worse(excess) {
                        worst = Some(Worst {
                            at: medium.site.clone(),
                            growth: Growth { phase, rate },
                            excess,
                        });
                    }
                }
            }
        }
        worst
    }

    /// ln of the growth per step of a wave in a medium, of the values that grow most.
    pub fn growth(&self, medium: usize, phase: Phase) -> f64 {
        let growth = self.list.get(medium).into_iter().flat_map(|medium| {
            let blocks = medium.blocks.iter();
            blocks.map(|block| medium.step.amplification(block, phase).growth())
        });
        growth.fold(f64::NEG_INFINITY, f64::max)
    }

    /// The part of each medium.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.list.iter().map(|m| &m.site.part)
    }

    /// Whether two media are of one part.
    pub fn are_of_one_part(&self, one: usize, other: usize) -> bool {
        let both = self.list.get(one).zip(self.list.get(other));
        both.is_some_and(|(one, other)| one.site.part.meets(&other.site.part))
    }

    /// The eigenvalues of a wave, for each cell and each part of a step's state; `None` where they are not known.
    pub fn eigenvalues(&self, phase: Phase) -> Option<Vec<Vec<Complex64>>> {
        let media = self.list.iter();
        let parts = media.flat_map(|m| m.blocks.iter().map(move |b| (&m.step, b)));
        let values = parts.map(|(step, block)| step.amplification(block, phase).eigenvalues());
        values.collect()
    }

    fn waves<'a>(media: impl Iterator<Item = &'a Medium>) -> impl Iterator<Item = Waves<'a>> {
        media.flat_map(|m| m.blocks.iter().map(|b| Waves::new(&m.step, b.clone())))
    }

    /// The waves that grow most, or come nearest to it, with the coefficients of the first cell of each part.
    pub fn scan_first(&self, effort: &Effort) -> Vec<Growth> {
        let waves = Self::waves(self.list.iter().filter(|m| m.is_first));
        waves.flat_map(|w| w.scan(effort)).collect()
    }

    /// The waves that grow most with the coefficients of the other cells, on grids that all together cost as much as
    /// the grid of one block of the first cell may.
    pub fn scan_others(&self, effort: &Effort) -> Vec<Growth> {
        let others = || self.list.iter().filter(|m| !m.is_first);
        let blocks: usize = others().map(|m| m.blocks.len()).sum();
        let each = effort.grid / blocks.max(1) as f64;
        let waves = Self::waves(others());
        waves.filter_map(|w| w.scan_coarsely(each)).collect()
    }

    /// The waves that grow most on coarse grids.
    pub fn scan_coarsely(&self, effort: f64) -> Vec<Growth> {
        let waves = Self::waves(self.list.iter());
        waves.filter_map(|w| w.scan_coarsely(effort)).collect()
    }

    /// The same for all cells.
    pub fn scan(&self, effort: &Effort) -> Vec<Growth> {
        let waves = Self::waves(self.list.iter());
        waves.flat_map(|w| w.scan(effort)).collect()
    }

    /// Waves near one that grow faster.
    pub fn climb(&self, from: Phase, stride: f64, evaluations: usize) -> Vec<Growth> {
        let waves = Self::waves(self.list.iter());
        waves
            .map(|w| w.fastest_near(from, stride, evaluations))
            .collect()
    }

    /// Waves that alternate or stand still along each axis.
    pub fn corners(&self) -> Vec<Phase> {
        let mut corners: Vec<Phase> = Vec::new();
        for waves in Self::waves(self.list.iter()) {
            for phase in waves.corners() {
                if !corners.contains(&phase) {
                    corners.push(phase);
                }
            }
        }
        corners
    }

    /// By medium ln of the factor by which uniform values grow of themselves in a step, 0 where they do not. Only
    /// growth without a change of sign counts: values that swing or alternate more and more do so because the step is
    /// too long.
    pub fn uniform_growth(&self) -> Vec<f64> {
        let growth = |step: &Step, block: &Block| {
            let matrix = step.amplification(block, PerAxis::splat(0.0));
            let values = matrix.eigenvalues().unwrap_or_default().into_iter();
            match values.max_by(|a, b| a.norm().total_cmp(&b.norm())) {
                Some(l) if l.re > 0.0 && l.im.abs() < 1e-6 * l.re => l.norm().ln().max(0.0),
                _ => 0.0,
            }
        };
        let of_medium = |medium: &Medium| {
            let blocks = medium.blocks.iter();
            let growth = blocks.map(|block| growth(&medium.step, block));
            growth.fold(0.0, f64::max)
        };
        self.list.iter().map(of_medium).collect()
    }

    /// The most by which ln of the largest absolute value of the eigenvalues of some waves is beyond the growth that a
    /// wave may have, without waves whose powers grow as polynomials: their eigenvalues are not exact.
    pub fn radius_beyond(&self, phases: &[Phase], allowed: impl Fn(usize, Phase) -> f64) -> f64 {
        let mut most = f64::NEG_INFINITY;
        for (number, medium) in self.list.iter().enumerate() {
            for block in &medium.blocks {
                for &phase in phases {
                    let matrix = medium.step.amplification(block, phase);
                    if matrix.polynomial_growth() > 0 {
                        continue;
                    }
                    let values = matrix.eigenvalues().unwrap_or_default().into_iter();
                    let radius = values.map(|v| v.norm()).fold(0.0, f64::max);
                    most = most.max(radius.ln() - allowed(number, phase));
                }
            }
        }
        most
    }
}
