//! The seam: where the ring of a periodic outer axis is cut.
//!
//! Towers of a time block run along the outer axis, from one end to the other, and around a ring they would wait for
//! themselves. So the ring is cut at a face that moves against the towers: where it needs no more than its own slope,
//! nothing on the side that runs first depends on the other one. Towers beyond the seam end before towers that read
//! their values begin: a time block has two launches then.

use super::residency::Residency;
use crate::lattice::{Axis, Interval, div_ceil, div_floor};
use crate::scheme::Scheme;
use crate::tile::{Class, TileProgram};

/// Where the ring of the outer axis is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seam {
    /// Of the plane, per half cell of the outer axis: not 0.
    pub(super) form: i64,
    /// Per stage.
    pub(super) slope: i64,
    /// Per stage and update.
    leads: Vec<Vec<i64>>,
    /// Half cells of each target's position along the outer axis.
    positions: Vec<Vec<i64>>,
    pub(super) cells: i64,
}

/// The cells of a ring that lie on the right side of the seam in a stage, all of them once, counted on around it, in
/// terms of `(rate * n + from) / unit`, rounded down, with n the stages since the time block began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeamSide {
    pub rate: i64,
    pub from: i64,
    pub unit: i64,
    /// They begin at minus that; otherwise they end after that.
    pub begins: bool,
    pub cells: i64,
}

impl SeamSide {
    pub fn at(&self, number: i64) -> Interval {
        let edge = div_floor(self.rate * number + self.from, self.unit);
        if self.begins {
            Interval::new(-edge, self.cells - edge)
        } else {
            Interval::new(edge + 1 - self.cells, edge + 1)
        }
    }
}

/// The depths of the rows of a period along the seam.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeamDepths {
    least: i64,
    most: i64,
}

/// How many of the rows of a period lie on the right side of the seam.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub all: bool,
    pub some: bool,
}

impl Seam {
    /// `None` where the tile program has none.
    pub(super) fn new(scheme: &Scheme, program: &TileProgram, cells: i64) -> Option<Seam> {
        let plane = program.seam?;
        let mut leads: Vec<Vec<i64>> = Vec::new();
        let mut positions: Vec<Vec<i64>> = Vec::new();
        for (stage, classes) in scheme.stages.iter().zip(&program.stages) {
            let class = |n: usize| classes.iter().find(|c| c.updates.contains(n));
            let all = || (0..stage.updates.len()).map(class);
            leads.push(all().map(|c| c.map_or(0, |c| c.leads[plane])).collect());
            let at = |c: Option<&Class>| c.map_or(0, |c| c.position[Axis::OUTER]);
            positions.push(all().map(at).collect());
        }
        Some(Seam {
            form: program.planes[plane].form[Axis::OUTER],
            slope: program.planes[plane].slope,
            leads,
            positions,
            cells,
        })
    }

    /// The largest distance by which an update is ahead of the seam, in units of depth.
    pub(super) fn most_lead(&self) -> i64 {
        let leads = self.leads.iter().flatten().map(|l| l.abs());
        leads.max().unwrap_or(0)
    }

    /// Cells by which it moves in `stages`, rounded up.
    pub(super) fn drift(&self, stages: i64) -> i64 {
        div_ceil(self.slope.saturating_mul(stages), 2 * self.form.abs())
    }

    /// Events count whose depth lies in an interval as long as the ring.
    fn around(&self) -> i64 {
        2 * self.cells * self.form.abs()
    }

    /// The cells that count for an update of a stage of a step.
    pub fn side(&self, stage: usize, update: usize) -> SeamSide {
        let (lead, position) = (self.leads[stage][update], self.positions[stage][update]);
        // 0 <= slope * n + lead - form * (2 x + position) < around
        SeamSide {
            rate: self.slope,
            from: lead - self.form * position,
            unit: 2 * self.form.abs(),
            begins: self.form < 0,
            cells: self.cells,
        }
    }

    /// Of the rows of a period that begins at stage 0 with its origin at index 0.
    pub(super) fn depths(&self, residency: &Residency) -> SeamDepths {
        let mut depths = SeamDepths {
            least: i64::MAX / 4,
            most: i64::MIN / 4,
        };
        for (number, stage) in residency.stages.iter().enumerate() {
            let of = number % self.leads.len();
            for update in &stage.updates {
                let at = 2 * update.at.x + self.positions[of][update.update];
                let lead = self.leads[of][update.update];
                let depth = self.slope * number as i64 + lead - self.form * at;
                depths.least = depths.least.min(depth);
                depths.most = depths.most.max(depth);
            }
        }
        depths
    }

    /// Whether rows of such depths lie on the right side, `stage` stages later, with the origin at plane `x`.
    pub(super) fn holds(&self, depths: SeamDepths, stage: i64, x: i64) -> Held {
        let by = self.slope * stage - 2 * self.form * x;
        let (least, most) = (depths.least + by, depths.most + by);
        let around = self.around();
        Held {
            all: least >= 0 && most < around,
            some: most >= 0 && least < around,
        }
    }
}
