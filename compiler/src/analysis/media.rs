//! The steps with the coefficients of some cells, each in a uniform medium, and the waves that grow in them.

use super::cells::{Cell, setting};
use super::places::extremes_of_cells;
use super::step::{Block, NoStep, Step};
use super::zone::{Effort, Growth, Phase, Waves};
use crate::lattice::PerAxis;
use crate::scheme::{ComponentId, Scheme};
use crate::statics::Files;
use num_complex::Complex64;
use std::collections::BTreeSet;

/// The steps with the coefficients of some cells, each taken for the whole lattice.
pub struct Media {
    list: Vec<(Cell, Step, Vec<Block>)>,
    /// The time step.
    pub dt: f64,
}

/// The wave that grows most beyond its growth in the equations.
pub struct Worst {
    pub at: Cell,
    pub growth: Growth,
    /// ln of the growth per step beyond that.
    pub excess: f64,
}

impl Media {
    pub fn new(scheme: &Scheme, files: &dyn Files, cells: &[Cell]) -> Result<Self, NoStep> {
        let mut list = Vec::new();
        for &at in cells {
            let step = Step::new(scheme, &setting(scheme, files, at))?;
            let blocks = step.blocks();
            list.push((at, step, blocks));
        }
        Ok(Self {
            list,
            dt: scheme.grid.dt,
        })
    }

    /// With all coefficients at the largest absolute values that they have in the cells.
    pub fn combined(scheme: &Scheme, files: &dyn Files, cells: &[Cell]) -> Result<Self, NoStep> {
        let mut list = Vec::new();
        for setting in extremes_of_cells(scheme, files, cells) {
            let step = Step::combined(scheme, &setting)?;
            let blocks = step.blocks();
            list.push((PerAxis::splat(0).into(), step, blocks));
        }
        Ok(Self {
            list,
            dt: scheme.grid.dt,
        })
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
        for (medium, (at, step, blocks)) in self.list.iter().enumerate() {
            for block in blocks {
                for &phase in phases {
                    let rate = step.amplification(block, phase).growth();
                    let is_worse = |excess: f64| worst.as_ref().is_none_or(|w| excess > w.excess);
                    if !is_worse(rate) {
                        continue;
                    }
                    let excess = rate - allowed(medium, phase);
                    if is_worse(excess) {
                        worst = Some(Worst {
                            at: *at,
                            growth: Growth { phase, rate },
                            excess,
                        });
                    }
                }
            }
        }
        worst
    }

    /// ln of the growth per step of a wave in a medium, of the part of the state that grows most.
    pub fn growth(&self, medium: usize, phase: Phase) -> f64 {
        let parts = self.list.get(medium).into_iter();
        let parts = parts.flat_map(|(_, step, blocks)| blocks.iter().map(move |b| (step, b)));
        let growth = parts.map(|(step, block)| step.amplification(block, phase).growth());
        growth.fold(f64::NEG_INFINITY, f64::max)
    }

    /// The eigenvalues of a wave, for each cell and each part of a step's state; `None` where they are not known.
    pub fn eigenvalues(&self, phase: Phase) -> Option<Vec<Vec<Complex64>>> {
        let parts = self.list.iter();
        let parts = parts.flat_map(|(_, step, blocks)| blocks.iter().map(move |b| (step, b)));
        let values = parts.map(|(step, block)| step.amplification(block, phase).eigenvalues());
        values.collect()
    }

    /// The waves that grow most, or come nearest to it, with the coefficients of the first cell.
    pub fn scan_first(&self, effort: &Effort) -> Vec<(Cell, Growth)> {
        let first = self.list.first().map(|(at, ..)| *at);
        let waves = self.waves().take_while(|(at, _)| Some(*at) == first);
        waves
            .flat_map(|(at, w)| w.scan(effort).into_iter().map(move |g| (at, g)))
            .collect()
    }

    /// The waves that grow most with the coefficients of the other cells, on grids that all together cost as much as
    /// the grid of the first cell may.
    pub fn scan_others(&self, effort: &Effort) -> Vec<(Cell, Growth)> {
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
    pub fn aside(&self) -> Vec<ComponentId> {
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
        let media = self.list.iter();
        let media = media.map(|(_, step, blocks)| {
            blocks
                .iter()
                .map(|block| growth(step, block))
                .fold(0.0, f64::max)
        });
        media.collect()
    }

    /// The most by which ln of the largest absolute value of the eigenvalues of some waves is beyond the growth that a
    /// wave may have, without waves whose powers grow as polynomials: their eigenvalues are not exact.
    pub fn radius_beyond(&self, phases: &[Phase], allowed: impl Fn(usize, Phase) -> f64) -> f64 {
        let mut most = f64::NEG_INFINITY;
        for (medium, (_, step, blocks)) in self.list.iter().enumerate() {
            for block in blocks {
                for &phase in phases {
                    let matrix = step.amplification(block, phase);
                    if matrix.polynomial_growth() > 0 {
                        continue;
                    }
                    let values = matrix.eigenvalues().unwrap_or_default().into_iter();
                    let radius = values.map(|v| v.norm()).fold(0.0, f64::max);
                    most = most.max(radius.ln() - allowed(medium, phase));
                }
            }
        }
        most
    }
}
