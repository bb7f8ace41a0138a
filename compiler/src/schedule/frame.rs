//! The frame in which a tiling measures positions, and the needs of legal faces in it.
//!
//! Tiles cut the grid by where values lie. Along the outer and middle axes that is the true, staggered position of each
//! component. Along the inner axis all components of a stage get one common position, its *anchor*, so that a kernel
//! runs all of them over the same range; the anchors are chosen such that slopes stay small.
//!
//! A periodic axis is folded: position p and position N - p are measured as the same distance from 0, which turns the
//! ring into a line. The fold never lengthens the distance of two positions on the ring, but may reverse its direction;
//! so a form's slope must hold for both directions. Towers on a GPU go around instead: there the first two axes stay
//! open ([`Frame::open`]), and the code that runs the tiles has to close the ring.
//!
//! A face moves up its form by its slope in every stage, on average over a step. Where the updates of a step reach
//! differently far it may be ahead of that at some of them, by their [`Frame::leads`], and behind at others. So the
//! slope that a form needs is not the slope of the steepest dependence, but the largest mean among closed chains of
//! dependences: a lead takes from the next link of a closed chain as much as it gives to one.

use super::face::Face;
use crate::cone::{
    Cones, Dependence, Form, Link, Rational, Site, Via, axis_form, fastest_cycle, leads,
};
use crate::lattice::{Axis, HalfIndex, PerAxis};
use crate::scheme::{ComponentId, Scheme, StageId};
use std::collections::BTreeMap;

/// Stages with more updates have one lead for all of them, or one for each.
const MOST_JOINED: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Per stage, where its updates count as lying along the inner axis.
    pub anchors: Vec<HalfIndex>,
    /// The axes that are folded: the periodic ones, except the ones that are left open.
    pub folded: PerAxis<bool>,
    /// The periodic axes that are left open: positions count on around them.
    pub open: PerAxis<bool>,
    /// Per stage and update, the target and its position.
    targets: Vec<Vec<(ComponentId, PerAxis<HalfIndex>)>>,
    /// The dependences that count: dependences that go around a folded axis do not, as the same read the short way has
    /// a vector of its own.
    dependences: Vec<Dependence>,
}

/// The needs of a legal face of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Needed {
    /// In cells per stage, on average over a step.
    pub slope: Rational,
    /// A dependence as steep as the slope, or a steeper one of the chain.
    pub dependence: Dependence,
    /// A closed chain of dependences that moves up the form by the slope.
    pub chain: Vec<Dependence>,
}

impl Frame {
    /// The frame whose anchors keep the slopes along the inner axis small.
    pub fn new(scheme: &Scheme, cones: &Cones) -> Frame {
        let targets: Vec<Vec<_>> = scheme
            .stages
            .iter()
            .map(|s| {
                let of = |id| (id, scheme.component(id).position);
                s.updates.iter().map(|u| of(u.target)).collect()
            })
            .collect();
        // Start with the position of most components of a stage, then improve one stage at a time.
        let anchors = targets
            .iter()
            .map(|t: &Vec<(ComponentId, PerAxis<HalfIndex>)>| {
                let halves = t.iter().filter(|(_, p)| p[Axis::INNER].is_half()).count();
                HalfIndex(i64::from(2 * halves > t.len()))
            })
            .collect();
        let folded = PerAxis::from_fn(|a| scheme.grid.is_periodic(a));
        let around = |(a, via): (Axis, &Via)| *via == Via::Wrap && folded[a];
        let counts = |d: &&Dependence| !d.via.iter().any(around);
        let mut frame = Frame {
            anchors,
            folded,
            open: PerAxis::splat(false),
            targets,
            dependences: cones.dependences.iter().filter(counts).copied().collect(),
        };
        // First of all the slopes, then how much leads have to make up for.
        let cost = |frame: &Frame| {
            let of = |sign| frame.steepness(axis_form(Axis::INNER, sign));
            let [(up, most_up), (down, most_down)] = [1, -1].map(of);
            (
                (up.max(down), up + down),
                (most_up.max(most_down), most_up + most_down),
            )
        };
        let mut best = cost(&frame);
        // Along an axis that is not folded anchors change no slope, and no dependence can be less steep than it.
        if !folded[Axis::INNER] && best.0 == best.1 {
            return frame;
        }
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

    /// The same frame with the outer and the middle axis left open where they are periodic: faces over them need the
    /// slopes of one direction only.
    pub fn opened(mut self) -> Frame {
        for axis in [Axis::OUTER, Axis::MIDDLE] {
            self.open[axis] |= self.folded[axis];
            self.folded[axis] = false;
        }
        self
    }

    /// The position of an update in its cell.
    pub fn position(&self, stage: StageId, update: usize) -> PerAxis<HalfIndex> {
        let (_, mut position) = self.targets[stage.index()][update];
        position[Axis::INNER] = self.anchors[stage.index()];
        position
    }

    /// How far the frame moves the updates of a site along the inner axis.
    fn shift(&self, site: Site) -> HalfIndex {
        let stage = site.stage.index();
        let own = |(id, _): &&(ComponentId, _)| *id == site.component;
        match self.targets[stage].iter().find(own) {
            Some((_, position)) => self.anchors[stage] - position[Axis::INNER],
            None => HalfIndex::ZERO,
        }
    }

    /// From the earlier to the later event, as the frame measures it.
    pub fn displacement(&self, dependence: &Dependence) -> PerAxis<HalfIndex> {
        let mut space = dependence.space;
        space[Axis::INNER] =
            space[Axis::INNER] + self.shift(dependence.to) - self.shift(dependence.from);
        space
    }

    /// How far a dependence moves up a form, in half cells.
    fn up(&self, dependence: &Dependence, form: Form) -> i64 {
        let space = self.displacement(dependence);
        Axis::ALL.iter().fold(0i64, |sum, &a| {
            let part = i64::from(form[a]).saturating_mul(space[a].0);
            sum.saturating_add(if self.folded[a] { part.abs() } else { part })
        })
    }

    /// The slope of a dependence along a form, in cells per stage.
    pub fn slope_of(&self, dependence: &Dependence, form: Form) -> Rational {
        let stages = dependence.stages.max(1).saturating_mul(2);
        Rational::new(self.up(dependence, form), stages).unwrap_or(Rational::ZERO)
    }

    /// The dependences between each two sites that move up a form farthest, and each one's index.
    fn links(&self, form: Form) -> (Vec<Link>, Vec<usize>) {
        let mut most: BTreeMap<(Site, Site, i64), (i64, usize)> = BTreeMap::new();
        for (index, d) in self.dependences.iter().enumerate() {
            let up = self.up(d, form);
            let own = most.entry((d.from, d.to, d.stages)).or_insert((up, index));
            if up > own.0 {
                *own = (up, index);
            }
        }
        let links = most.iter().map(|(&(from, to, stages), &(up, _))| Link {
            from: self.number(from),
            to: self.number(to),
            stages,
            up: i128::from(up),
        });
        (links.collect(), most.values().map(|&(_, i)| i).collect())
    }

    /// Sites are numbered by stage, then by update.
    fn number(&self, site: Site) -> usize {
        let stage = site.stage.index();
        let before: usize = self.targets[..stage].iter().map(Vec::len).sum();
        let own = |(id, _): &(ComponentId, _)| *id == site.component;
        before + self.targets[stage].iter().position(own).unwrap_or(0)
    }

    fn sites(&self) -> usize {
        self.targets.iter().map(Vec::len).sum()
    }

    /// The slope that a form needs, and that of its steepest dependence.
    fn steepness(&self, form: Form) -> (Rational, Rational) {
        let most = self.dependences.iter().map(|d| self.slope_of(d, form));
        (self.slope(form), most.max().unwrap_or(Rational::ZERO))
    }

    /// The needs of a legal face of a form in this frame; `None` for a scheme without updates.
    pub fn needed(&self, form: Form) -> Option<Needed> {
        let (links, indices) = self.links(form);
        let cycle = fastest_cycle(self.sites(), &links)?;
        let slope = cycle.mean * Rational::halves(1);
        let chain: Vec<Dependence> = cycle
            .links
            .iter()
            .map(|&link| self.dependences[indices[link]])
            .collect();
        let first_of = |list: &[Dependence]| {
            let steeper = |best: Dependence, d: Dependence| {
                if self.slope_of(&d, form) > self.slope_of(&best, form) {
                    d
                } else {
                    best
                }
            };
            list.iter().copied().reduce(steeper)
        };
        // Where none is steeper than the slope, the first in order among equals, as chains have no order.
        let first = first_of(&self.dependences).filter(|d| self.slope_of(d, form) == slope);
        let dependence = first.or_else(|| first_of(&chain))?;
        Some(Needed {
            slope,
            dependence,
            chain,
        })
    }

    /// The smallest legal slope of a form in this frame, in cells per stage.
    pub fn slope(&self, form: Form) -> Rational {
        let (links, _) = self.links(form);
        match fastest_cycle(self.sites(), &links) {
            Some(cycle) => cycle.mean * Rational::halves(1),
            None => Rational::ZERO,
        }
    }

    /// The face of a form with the smallest legal slope.
    pub fn fitting(&self, form: Form) -> Face {
        Face {
            form,
            slope: self.slope(form),
        }
    }

    /// By how much a face is ahead of its slope at each update of each stage, in cells: such that for every dependence
    /// form(space) <= slope * stages + lead of the later update - lead of the earlier one.
    ///
    /// All leads are 0 where no dependence is steeper than the slope. Otherwise the updates of a stage share one as far
    /// as the slope allows, so that they run together. Of a slope that is too small, leads make up for nothing: they
    /// are 0.
    pub fn leads(&self, face: &Face) -> Vec<Vec<Rational>> {
        let mut groups: Vec<usize> = (0..self.sites()).collect();
        let (links, _) = self.links(face.form);
        let mean = face.slope * Rational::whole(2);
        let within = |groups: &[usize]| {
            let joined: Vec<Link> = links
                .iter()
                .map(|link| Link {
                    from: groups[link.from],
                    to: groups[link.to],
                    ..*link
                })
                .collect();
            leads(groups.len(), &joined, mean)
        };
        let mut found = within(&groups);
        let even = |leads: &[Rational]| leads.iter().all(|l| l.is_zero());
        if found.as_ref().is_some_and(|leads| !even(leads)) {
            let mut first = 0;
            for stage in &self.targets {
                let sites = first..first + stage.len();
                first = sites.end;
                // All of them, or else one after the other.
                let all = sites.clone().map(|site| (site, sites.start)).collect();
                let few = sites.len() <= MOST_JOINED;
                let singly = sites.clone().filter(|_| few).flat_map(|site| {
                    let earlier = sites.start..site;
                    earlier.map(move |other| vec![(site, other)])
                });
                for moves in std::iter::once::<Vec<(usize, usize)>>(all).chain(singly) {
                    let mut joined = groups.clone();
                    for &(site, other) in &moves {
                        joined[site] = groups[other];
                    }
                    if joined == groups {
                        continue;
                    }
                    // A site that has joined others stays with them.
                    let alone = |&(site, _): &(usize, usize)| groups[site] == site;
                    if moves.iter().all(alone)
                        && let Some(leads) = within(&joined)
                    {
                        (groups, found) = (joined, Some(leads));
                    }
                }
            }
        }
        let found = found.unwrap_or_else(|| vec![Rational::ZERO; groups.len()]);
        let mut of_site = groups
            .iter()
            .map(|&group| found[group] * Rational::halves(1));
        self.targets
            .iter()
            .map(|stage| of_site.by_ref().take(stage.len()).collect())
            .collect()
    }
}
