//! How fast dependences move along a direction.

use super::rational::reduce;
use super::{Cones, Dependence, Form, Kind, Rational, Site};
use crate::lattice::{Axis, HalfIndex, PerAxis};
use std::collections::BTreeMap;

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
    /// The smallest slope s, in cells per stage, such that no dependence moves up the form faster:
    /// form(space) <= s * stages for all of them. A plane form(p) - s k = const then is crossed in one direction only.
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

    /// How far a plane with the smallest slope moves in a step, in cells.
    pub fn slope_per_step(&self, form: Form) -> Rational {
        self.slope(form) * Rational::whole(i64::from(self.stages))
    }

    /// For each vector there is one with the same stages and the opposite displacement.
    pub fn is_symmetric(&self) -> bool {
        let mut vectors: Vec<_> = self.local().map(|d| (d.stages, d.space)).collect();
        vectors.sort_unstable();
        vectors
            .iter()
            .all(|&(stages, space)| vectors.binary_search(&(stages, space.map(|h| -h))).is_ok())
    }

    /// How fast the influence of a value spreads up the form in the long run, in cells per step.
    ///
    /// The largest mean of form over stages among closed chains of flow dependences. At most `slope_per_step`: a chain cannot
    /// take the steepest vector all the time if stages reach differently far, and memory that is used again asks for more.
    pub fn speed(&self, form: Form) -> Rational {
        let mut edges: BTreeMap<(Site, Site, i64), i128> = BTreeMap::new();
        for d in self.local().filter(|d| d.kind == Kind::Flow) {
            let up = apply(form, d.space);
            let edge = edges.entry((d.from, d.to, d.stages)).or_insert(up);
            *edge = (*edge).max(up);
        }
        let mut sites: Vec<Site> = edges.keys().flat_map(|&(a, b, _)| [a, b]).collect();
        sites.sort_unstable();
        sites.dedup();
        let id = |s: Site| sites.binary_search(&s).unwrap_or(0);
        let edges: Vec<Edge> = edges
            .iter()
            .map(|(&(from, to, stages), &up)| Edge {
                from: id(from),
                to: id(to),
                stages,
                up,
            })
            .collect();
        let Some(mut mean) = any_cycle(sites.len(), &edges) else {
            return Rational::ZERO;
        };
        // Each round finds a cycle with a larger mean; there are finitely many.
        while let Some(better) = better_cycle(sites.len(), &edges, mean) {
            mean = better;
        }
        mean * reduce(i128::from(self.stages), 2)
    }
}

struct Edge {
    from: usize,
    to: usize,
    stages: i64,
    /// In half cells.
    up: i128,
}

/// The mean, in half cells per stage, of some cycle.
fn any_cycle(sites: usize, edges: &[Edge]) -> Option<Rational> {
    better_cycle(sites, edges, Rational::whole(i64::MIN / 2))
}

/// A cycle with a mean above `mean`, by longest paths (Bellman and Ford): weights up - mean * stages, scaled to integers.
fn better_cycle(sites: usize, edges: &[Edge], mean: Rational) -> Option<Rational> {
    let weight =
        |e: &Edge| e.up * i128::from(mean.den()) - i128::from(mean.num()) * i128::from(e.stages);
    let mut best = vec![0i128; sites];
    let mut last: Vec<Option<&Edge>> = vec![None; sites];
    let mut changed = None;
    for _ in 0..=sites {
        changed = None;
        for e in edges {
            if best[e.from] + weight(e) > best[e.to] {
                best[e.to] = best[e.from] + weight(e);
                last[e.to] = Some(e);
                changed = Some(e.to);
            }
        }
        changed?;
    }
    // Still growing after as many rounds as there are sites: going back leads into a cycle.
    let mut at = changed?;
    for _ in 0..sites {
        at = last[at]?.from;
    }
    let start = at;
    let (mut up, mut stages) = (0, 0);
    loop {
        let e = last[at]?;
        up += e.up;
        stages += i128::from(e.stages);
        at = e.from;
        if at == start {
            return Some(reduce(up, stages));
        }
    }
}
