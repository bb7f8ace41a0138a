//! The waves for which a step grows most.
//!
//! Phases per cell are taken from the zone -pi .. pi along each axis, cut down by the symmetries that the step's
//! spectrum has: a grid first, then a search around its best points. On the grid two measures are taken: the growth of
//! the matrix's powers in the long run, and how near they come to growth in 64 steps ([`Matrix::transient`]). The
//! second leads the search to places where growth begins between the points of the grid, and tells something where the
//! first is 0 everywhere, as for all schemes that conserve energy.

use super::matrix::Matrix;
use super::step::{Block, Step};
use crate::lattice::{Axis, PerAxis};
use std::f64::consts::PI;

/// ln of the growth per step up to which powers count as bounded: a factor of e in a million steps. It lies above the
/// growth that coefficients in single precision give to a conserving step (1e-7), and above the rounding of eigenvalues
/// that lack an eigenvector (2e-8).
pub const TOLERANCE: f64 = 1e-6;

/// Intervals of grids from 0 to pi.
const DIVISIONS: [i32; 9] = [4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Phases per cell along the axes.
pub type Phase = PerAxis<f64>;

/// A wave and how it grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    pub phase: Phase,
    /// ln of the factor per step.
    pub rate: f64,
}

/// The waves of a part of a step's state.
pub struct Waves<'a> {
    pub step: &'a Step,
    pub block: Block,
    /// The axes along which the step reads at a distance.
    axes: Vec<Axis>,
    /// Axes along which the spectrum is the same for both directions.
    mirrored: PerAxis<bool>,
    /// Pairs of axes that may be exchanged.
    exchanged: Vec<(Axis, Axis)>,
}

/// The greatest cost of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Multiplications in products of matrices on the grid.
    pub grid: f64,
    /// Points from which a search starts.
    pub starts: usize,
    /// Evaluations of each search.
    pub search: usize,
    /// Multiplications in products of matrices of all searches, of which each takes some evaluations all the same.
    pub searches: f64,
}

impl Effort {
    /// For every run: some milliseconds.
    pub const QUICK: Effort = Effort {
        grid: 2e7,
        starts: 3,
        search: 60,
        searches: 6e8,
    };
    /// Where the answer itself is wanted.
    pub const THOROUGH: Effort = Effort {
        grid: 3e8,
        starts: 8,
        search: 120,
        searches: f64::INFINITY,
    };
    /// Products of matrices that one point of the grid takes.
    const PRODUCTS: f64 = 35.0;
    /// Further cost of a point, as multiplications per product.
    const OVERHEAD: f64 = 60.0;
    /// Multiplications for which a grid is finer than the reach of the step wants it: growth may begin between its
    /// points, where waves of two kinds meet.
    const FINE: f64 = 2e6;

    /// Multiplications of the measures of a wave, for a matrix of some rows.
    fn point(size: usize) -> f64 {
        Self::PRODUCTS * ((size as f64).powi(3) + Self::OVERHEAD)
    }
}

impl<'a> Waves<'a> {
    pub fn new(step: &'a Step, block: Block) -> Self {
        let reach = step.reach();
        let axes: Vec<Axis> = Axis::ALL.into_iter().filter(|&a| reach[a] > 0).collect();
        let mut waves = Self {
            step,
            block,
            axes,
            mirrored: PerAxis::splat(false),
            exchanged: Vec::new(),
        };
        waves.find_symmetries();
        waves
    }

    pub fn matrix(&self, phase: Phase) -> Matrix {
        self.step.amplification(&self.block, phase)
    }

    pub fn growth(&self, phase: Phase) -> Growth {
        Growth {
            phase,
            rate: self.matrix(phase).growth(),
        }
    }

    /// Symmetries of the spectrum. Two spectra that agree at points in general position agree everywhere, as their
    /// traces are trigonometric polynomials.
    fn find_symmetries(&mut self) {
        let points = [
            PerAxis([0.7311, 1.9237, 1.3171]),
            PerAxis([2.3719, -0.5743, 0.9479]),
        ];
        let same = |change: &dyn Fn(Phase) -> Phase| {
            points.iter().all(|&p| {
                let (a, b) = (self.matrix(p).traces(), self.matrix(change(p)).traces());
                let size = a.iter().map(|t| t.norm()).fold(1.0, f64::max);
                a.iter().zip(&b).all(|(a, b)| (a - b).norm() <= 1e-9 * size)
            })
        };
        let mut mirrored = PerAxis::splat(false);
        for &axis in &self.axes {
            mirrored[axis] = same(&|mut p| {
                p[axis] = -p[axis];
                p
            });
        }
        let mut exchanged = Vec::new();
        for (i, &a) in self.axes.iter().enumerate() {
            for &b in &self.axes[i + 1..] {
                let swap = |mut p: Phase| {
                    (p[a], p[b]) = (p[b], p[a]);
                    p
                };
                if mirrored[a] && mirrored[b] && same(&swap) {
                    exchanged.push((a, b));
                }
            }
        }
        (self.mirrored, self.exchanged) = (mirrored, exchanged);
    }

    /// Phases along an axis from 0 to pi, or from -pi to pi where the directions differ. As waves with opposite phases
    /// along all axes are each other's conjugates, the first such axis needs one half only.
    fn ticks(&self, axis: Axis, divisions: i32) -> Vec<f64> {
        let first = self.axes.iter().find(|&&a| !self.mirrored[a]);
        let lowest = if self.mirrored[axis] || first == Some(&axis) {
            0
        } else {
            1 - divisions
        };
        (lowest..=divisions)
            .map(|i| PI * f64::from(i) / f64::from(divisions))
            .collect()
    }

    /// The points of a grid with `divisions` intervals from 0 to pi.
    fn grid(&self, divisions: i32) -> Vec<Phase> {
        let mut points = vec![PerAxis::splat(0.0)];
        for &axis in &self.axes {
            let ticks = self.ticks(axis, divisions);
            points = points
                .iter()
                .flat_map(|p| {
                    ticks.iter().map(|&t| {
                        let mut p = *p;
                        p[axis] = t;
                        p
                    })
                })
                .collect();
        }
        points.retain(|p| self.exchanged.iter().all(|&(a, b)| p[a] <= p[b]));
        points
    }

    /// Waves that alternate or stand still along each axis.
    pub fn corners(&self) -> Vec<Phase> {
        self.grid(1)
    }

    /// The waves that grow most, or come nearest to growth where none does: the best one first.
    pub fn scan(&self, effort: &Effort) -> Vec<Growth> {
        let point = Effort::point(self.block.slots.len());
        let [affordable, fine] = [effort.grid, Effort::FINE].map(|most| most / point);
        let searches = (effort.starts + 1) as f64;
        let evaluations = effort
            .search
            .min((effort.searches / (searches * point)) as usize);
        let farthest = self.axes.iter().map(|&a| self.step.reach()[a]).max();
        // Eight points per period of the phase of the farthest read.
        let wanted = (2 * farthest.unwrap_or(0)).clamp(8, 64) as i32;
        let (mut points, mut last) = (self.grid(2), 2);
        for divisions in DIVISIONS {
            let finer = self.grid(divisions);
            let most = if last < wanted {
                affordable
            } else {
                fine.min(affordable)
            };
            if finer.len() as f64 > most {
                break;
            }
            (points, last) = (finer, divisions);
        }
        let spacing = points.iter().map(|p| self.spacing(p)).fold(PI, f64::min);
        let mut measured: Vec<Measured> = points.into_iter().map(|p| self.measure(p)).collect();
        measured.sort_by(|a, b| b.compare(a));
        // Of waves that decay, the one that does so most slowly.
        let slowest = measured.iter().max_by(|a, b| a.growth.total_cmp(&b.growth));
        let slowest = slowest.map(|m| self.fastest_near(m.phase, 0.5 * spacing, evaluations));
        let mut starts: Vec<Measured> = Vec::new();
        for candidate in measured {
            let is_distant = |other: &Measured| {
                let distance = |&a: &Axis| (candidate.phase[a] - other.phase[a]).abs();
                self.axes.iter().any(|a| distance(a) > 1.5 * spacing)
            };
            if starts.iter().all(is_distant) {
                starts.push(candidate);
            }
            if starts.len() >= effort.starts {
                break;
            }
        }
        let mut found: Vec<Growth> = starts
            .into_iter()
            .map(|start| match start.growth > TOLERANCE {
                true => self.fastest_near(start.phase, 0.5 * spacing, evaluations),
                false => {
                    let transient = |p| self.matrix(p).transient();
                    let top = start.transient;
                    self.growth(self.climb(start.phase, top, transient, 0.5 * spacing, evaluations))
                }
            })
            .collect();
        found.extend(slowest);
        found.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        found
    }

    /// The wave that grows most on a grid whose growth costs `effort` multiplications; `None` where a coarse grid costs
    /// more.
    pub fn scan_coarsely(&self, effort: f64) -> Option<Growth> {
        let affordable = effort / Effort::point(self.block.slots.len());
        let grids = DIVISIONS.into_iter().map(|divisions| self.grid(divisions));
        let points = grids
            .take_while(|grid| grid.len() as f64 <= affordable)
            .last()?;
        let growths = points.into_iter().map(|phase| self.growth(phase));
        growths.max_by(|a, b| a.rate.total_cmp(&b.rate))
    }

    /// The smallest phase of a grid's point that is not 0: all of them together have the grid's spacing.
    fn spacing(&self, p: &Phase) -> f64 {
        let parts = self.axes.iter().map(|&a| p[a].abs());
        parts.filter(|p| *p > 0.0).fold(PI, f64::min)
    }

    fn measure(&self, phase: Phase) -> Measured {
        let matrix = self.matrix(phase);
        Measured {
            phase,
            growth: matrix.growth(),
            transient: matrix.transient(),
        }
    }

    /// A place where a measure is larger, near one: by steps along the axes that get smaller where none is better.
    fn climb(
        &self,
        from: Phase,
        value: f64,
        measure: impl Fn(Phase) -> f64,
        mut stride: f64,
        evaluations: usize,
    ) -> Phase {
        let (mut best, mut top) = (from, value);
        let mut left = evaluations;
        while stride > 1e-6 {
            let mut better = false;
            for &axis in &self.axes {
                for sign in [1.0, -1.0] {
                    if left == 0 {
                        return best;
                    }
                    left -= 1;
                    let mut p = best;
                    p[axis] += sign * stride;
                    let value = measure(p);
                    if value > top {
                        (best, top, better) = (p, value, true);
                    }
                }
            }
            stride *= if better { 1.2 } else { 0.4 };
        }
        best
    }

    /// The wave near one that grows fastest.
    pub fn fastest_near(&self, from: Phase, stride: f64, evaluations: usize) -> Growth {
        let rate = |p| self.matrix(p).growth();
        self.growth(self.climb(from, rate(from), rate, stride, evaluations))
    }
}

/// How a wave's amplitudes behave.
#[derive(Clone, Copy, Debug)]
struct Measured {
    phase: Phase,
    growth: f64,
    transient: f64,
}

impl Measured {
    /// Growing waves by their growth, then the others by how near they come to it.
    fn compare(&self, other: &Measured) -> std::cmp::Ordering {
        let growth = |m: &Measured| if m.growth > TOLERANCE { m.growth } else { 0.0 };
        growth(self)
            .total_cmp(&growth(other))
            .then(self.transient.total_cmp(&other.transient))
    }
}
