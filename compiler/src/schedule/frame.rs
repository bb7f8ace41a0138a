//! The frame in which a tiling measures positions.
//!
//! Tiles cut the grid by where values lie. Along the lean and diamond axes that is the true, staggered position of each
//! component. Along the vector axis all components of a stage get one common position, its *anchor*, so that a kernel
//! runs all of them over the same range; the anchors are chosen such that slopes stay small.
//!
//! A periodic axis is folded: position p and position N - p are measured as the same distance from 0, which turns the ring
//! into a line. The fold never lengthens the distance of two positions on the ring, but may reverse its direction; so a
//! form's slope must hold for both directions.

use super::face::Face;
use crate::cone::{Cones, Dependence, Form, Rational, Site, Via, axis_form};
use crate::lattice::{Axis, HalfIndex, PerAxis};
use crate::scheme::{ComponentId, Scheme, StageId};

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Per stage, where its updates count as lying along the vector axis.
    pub anchors: Vec<HalfIndex>,
    /// The axes that are folded: the periodic ones.
    pub folded: PerAxis<bool>,
    /// Per stage and update, the target and its position.
    targets: Vec<Vec<(ComponentId, PerAxis<HalfIndex>)>>,
}

impl Frame {
    /// The frame whose anchors keep the slopes along the vector axis small.
    pub fn new(scheme: &Scheme, cones: &Cones) -> Frame {
        let targets: Vec<Vec<_>> = scheme
            .stages
            .iter()
            .map(|s| {
                let of = |id| (id, scheme.component(id).position);
                s.updates.iter().map(|u| of(u.target)).collect()
            })
            .collect();
        // Start with what most components of a stage have, then improve one stage at a time.
        let anchors = targets
            .iter()
            .map(|t: &Vec<(ComponentId, PerAxis<HalfIndex>)>| {
                let halves = t.iter().filter(|(_, p)| p[Axis::VECTOR].is_half()).count();
                HalfIndex(i64::from(2 * halves > t.len()))
            })
            .collect();
        let mut frame = Frame {
            anchors,
            folded: PerAxis::from_fn(|a| scheme.grid.is_periodic(a)),
            targets,
        };
        let cost = |frame: &Frame| {
            let [up, down] = [1, -1].map(|s| frame.slope(cones, axis_form(Axis::VECTOR, s)));
            (up.max(down), up + down)
        };
        let mut best = cost(&frame);
        for stage in 0..frame.anchors.len() {
            let own = frame.anchors[stage];
            frame.anchors[stage] = HalfIndex::HALF - own;
            let other = cost(&frame);
            if other < best {
                best = other;
            } else {
                frame.anchors[stage] = own;
            }
        }
        frame
    }

    /// The position of an update in its cell.
    pub fn position(&self, stage: StageId, update: usize) -> PerAxis<HalfIndex> {
        let (_, mut position) = self.targets[stage.index()][update];
        position[Axis::VECTOR] = self.anchors[stage.index()];
        position
    }

    /// How far the frame moves the updates of a site along the vector axis.
    fn shift(&self, site: Site) -> HalfIndex {
        let stage = site.stage.index();
        let own = |(id, _): &&(ComponentId, _)| *id == site.component;
        match self.targets[stage].iter().find(own) {
            Some((_, position)) => self.anchors[stage] - position[Axis::VECTOR],
            None => HalfIndex::ZERO,
        }
    }

    /// From the earlier to the later event, as the frame measures it.
    pub fn displacement(&self, dependence: &Dependence) -> PerAxis<HalfIndex> {
        let mut space = dependence.space;
        space[Axis::VECTOR] =
            space[Axis::VECTOR] + self.shift(dependence.to) - self.shift(dependence.from);
        space
    }

    /// The slope that a dependence needs along a form, in cells per stage; `None` if it does not count because it goes
    /// around a folded axis (the same read the short way has a vector of its own).
    pub fn slope_of(&self, dependence: &Dependence, form: Form) -> Option<Rational> {
        let around = |(a, via): (Axis, &Via)| *via == Via::Wrap && self.folded[a];
        if dependence.via.iter().any(around) {
            return None;
        }
        let space = self.displacement(dependence);
        let up = Axis::ALL.iter().fold(0i64, |sum, &a| {
            let part = i64::from(form[a]).saturating_mul(space[a].0);
            sum.saturating_add(if self.folded[a] { part.abs() } else { part })
        });
        Rational::new(up, dependence.stages.max(1).saturating_mul(2))
    }

    /// The smallest legal slope of a form in this frame, in cells per stage, and a dependence that asks for it.
    pub fn steepest<'c>(&self, cones: &'c Cones, form: Form) -> Option<(Rational, &'c Dependence)> {
        let mut best: Option<(Rational, &Dependence)> = None;
        for d in &cones.dependences {
            if let Some(slope) = self.slope_of(d, form)
                && best.is_none_or(|(b, _)| slope > b)
            {
                best = Some((slope, d));
            }
        }
        best
    }

    pub fn slope(&self, cones: &Cones, form: Form) -> Rational {
        self.steepest(cones, form)
            .map_or(Rational::ZERO, |(slope, _)| slope)
    }

    /// The face of a form with the smallest legal slope.
    pub fn fitting(&self, cones: &Cones, form: Form) -> Face {
        Face {
            form,
            slope: self.slope(cones, form),
        }
    }
}
