//! How fast dependences move along a direction.

use super::cycle::{Link, fastest_cycle};
use super::rational::reduce;
use super::{Cones, Dependence, Form, Kind, Rational, Site};
use crate::distinct::distinct;
use crate::lattice::{Axis, HalfIndex, PerAxis};
use crate::scheme::ComponentId;
use std::collections::{BTreeMap, BTreeSet};

/// The value of a form at a displacement, in half cells.
pub(crate) fn apply(form: Form, space: PerAxis<HalfIndex>) -> i128 {
    Axis::ALL
        .iter()
        .map(|&a| i128::from(form[a]) * i128::from(space[a].0))
        .sum()
}

/// The form that is +1 or -1 along one axis.
pub fn axis_form(axis: Axis, sign: i32) -> Form {
    Form::from_fn(|a| if a == axis { sign } else { 0 })
}

impl Dependence {
    /// The slope that this dependence needs: how far it moves up the form, in cells per stage.
    pub fn slope(&self, form: Form) -> Rational {
        reduce(apply(form, self.space), 2 * i128::from(self.stages.max(1)))
    }
}

impl Cones {
    /// The smallest slope s, in cells per stage, such that no dependence moves up the form faster: form(space) <= s *
    /// stages for all of them. A plane form(p) - s k = const then is crossed in one direction only. Faces of tiles may
    /// make steps at their stages and so can do with less ([`Cones::slope_per_step`]).
    ///
    /// Reads around a periodic axis count with their short way.
    pub fn slope(&self, form: Form) -> Rational {
        let slopes = self.local().map(|d| d.slope(form));
        slopes.max().unwrap_or(Rational::ZERO)
    }

    /// A dependence that decides the slope; `None` for a scheme without updates.
    pub fn steepest(&self, form: Form) -> Option<&Dependence> {
        // The first in order among equals.
        self.local().reduce(|best, d| {
            if d.slope(form) > best.slope(form) {
                d
            } else {
                best
            }
        })
    }

    /// The slopes down and up each axis.
    pub fn slopes(&self) -> PerAxis<[Rational; 2]> {
        PerAxis::from_fn(|a| [-1, 1].map(|sign| self.slope(axis_form(a, sign))))
    }

    /// How far the planes of a legal face move up the form in a step at least, in cells: the largest mean among closed
    /// chains of dependences. A chain cannot take the steepest vector all the time if stages reach differently far.
    pub fn slope_per_step(&self, form: Form) -> Rational {
        self.speed_of(form, |_| true)
    }

    /// Values depend on the same events to all sides: for each vector of flow there is one with the same stages and the
    /// opposite displacement, between values of the same kinds. Kinds are components that depend on each other, as the
    /// fields of a wave do: a read of one of them to one side and a read of another one to the other side are a pair.
    pub fn is_symmetric(&self) -> bool {
        let flow = || self.local().filter(|d| d.kind == Kind::Flow);
        let kinds = kinds(flow().map(|d| [d.from.component, d.to.component]));
        let kind = |site: Site| kinds.get(&site.component).copied();
        let vectors = flow().map(|d| (kind(d.from), kind(d.to), d.stages, d.space));
        let mut vectors: Vec<_> = vectors.collect();
        vectors.sort_unstable();
        vectors.iter().all(|&(from, to, stages, space)| {
            let opposite = (from, to, stages, space.map(|h| -h));
            vectors.binary_search(&opposite).is_ok()
        })
    }

    /// How fast the influence of a value spreads up the form in the long run, in cells per step.
    ///
    /// The largest mean of form over stages among closed chains of flow dependences. At most `slope_per_step`: memory
    /// that is used again asks for more.
    pub fn speed(&self, form: Form) -> Rational {
        self.speed_of(form, |d| d.kind == Kind::Flow)
    }

    /// The largest mean among closed chains of the dependences that count, in cells per step.
    fn speed_of(&self, form: Form, counts: impl Fn(&Dependence) -> bool) -> Rational {
        let mut ups: BTreeMap<(Site, Site, i64), i128> = BTreeMap::new();
        for d in self.local().filter(|d| counts(d)) {
            let up = apply(form, d.space);
            let most = ups.entry((d.from, d.to, d.stages)).or_insert(up);
            *most = (*most).max(up);
        }
        let sites: Vec<Site> = distinct(ups.keys().flat_map(|&(a, b, _)| [a, b]));
        let id = |s: Site| sites.binary_search(&s).unwrap_or(0);
        let links: Vec<Link> = ups
            .iter()
            .map(|(&(from, to, stages), &up)| Link {
                from: id(from),
                to: id(to),
                stages,
                up,
            })
            .collect();
        match fastest_cycle(sites.len(), &links) {
            Some(cycle) => cycle.mean * reduce(i128::from(self.stages), 2),
            None => Rational::ZERO,
        }
    }
}

/// For each component that flows connect, the first of the components that it influences and that influence it.
fn kinds(flows: impl Iterator<Item = [ComponentId; 2]>) -> BTreeMap<ComponentId, ComponentId> {
    let mut next: BTreeMap<ComponentId, Vec<ComponentId>> = BTreeMap::new();
    for [from, to] in distinct(flows) {
        next.entry(from).or_default().push(to);
        next.entry(to).or_default();
    }
    let influenced: BTreeMap<ComponentId, BTreeSet<ComponentId>> = next
        .keys()
        .map(|id| (*id, influenced(&next, *id)))
        .collect();
    let kind = |id: &ComponentId| {
        let mut alike = influenced[id].iter().copied();
        (
            *id,
            alike
                .find(|other| influenced[other].contains(id))
                .unwrap_or(*id),
        )
    };
    influenced.keys().map(kind).collect()
}

/// A component and all others that it influences.
fn influenced(
    next: &BTreeMap<ComponentId, Vec<ComponentId>>,
    id: ComponentId,
) -> BTreeSet<ComponentId> {
    let mut reached = BTreeSet::from([id]);
    let mut open = vec![id];
    while let Some(from) = open.pop() {
        open.extend(next[&from].iter().copied().filter(|to| reached.insert(*to)));
    }
    reached
}
