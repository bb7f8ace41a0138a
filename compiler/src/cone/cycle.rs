//! Chains of dependences: how fast closed ones move, and how far open ones get ahead of a given speed.

use super::Rational;
use super::rational::reduce;

/// A dependence between two sites, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub from: usize,
    pub to: usize,
    /// At least 1.
    pub stages: i64,
    /// How far it moves up a form, in half cells.
    pub up: i128,
}

impl Link {
    /// How far it gets ahead of a speed of `mean` half cells per stage, times the denominator of the speed.
    fn ahead(&self, mean: Rational) -> i128 {
        self.up * i128::from(mean.den()) - i128::from(mean.num()) * i128::from(self.stages)
    }
}

/// A closed chain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cycle {
    /// In half cells per stage.
    pub mean: Rational,
    /// Indices into the links, in running order.
    pub links: Vec<usize>,
}

/// A closed chain with the largest mean; `None` if no chain is closed.
pub(crate) fn fastest_cycle(sites: usize, links: &[Link]) -> Option<Cycle> {
    let mut best = faster_cycle(sites, links, Rational::whole(i64::MIN / 2))?;
    // Each round finds a cycle with a larger mean; there are finitely many.
    while let Some(faster) = faster_cycle(sites, links, best.mean) {
        best = faster;
    }
    Some(best)
}

/// The longest of all chains up to each site, a chain's length being how far it gets ahead of `mean` half cells per
/// stage and that of no link 0; `None` if a closed chain is faster. Then `lead[to] - lead[from] >= up - mean * stages`
/// for all links.
pub(crate) fn leads(sites: usize, links: &[Link], mean: Rational) -> Option<Vec<Rational>> {
    let paths = longest_paths(sites, links, mean);
    let den = i128::from(mean.den());
    match paths.growing {
        Some(_) => None,
        None => Some(paths.best.iter().map(|&b| reduce(b, den)).collect()),
    }
}

/// A cycle with a mean above `mean`.
fn faster_cycle(sites: usize, links: &[Link], mean: Rational) -> Option<Cycle> {
    let Paths { last, growing, .. } = longest_paths(sites, links, mean);
    let start = growing?;
    let mut at = start;
    let (mut up, mut stages) = (0, 0);
    let mut chain = Vec::new();
    loop {
        let index = last[at]?;
        let link = &links[index];
        up += link.up;
        stages += i128::from(link.stages);
        chain.push(index);
        at = link.from;
        if at == start {
            chain.reverse();
            return Some(Cycle {
                mean: reduce(up, stages),
                links: chain,
            });
        }
    }
}

struct Paths {
    /// Per site, times the denominator of the speed.
    best: Vec<i128>,
    /// The last link of the longest path.
    last: Vec<Option<usize>>,
    /// A site on a closed chain of last links, whose paths grow without end.
    growing: Option<usize>,
}

/// Longest paths by Bellman and Ford.
fn longest_paths(sites: usize, links: &[Link], mean: Rational) -> Paths {
    let mut paths = Paths {
        best: vec![0; sites],
        last: vec![None; sites],
        growing: None,
    };
    for _ in 0..=sites {
        paths.growing = None;
        for (index, link) in links.iter().enumerate() {
            let length = paths.best[link.from] + link.ahead(mean);
            if length > paths.best[link.to] {
                paths.best[link.to] = length;
                paths.last[link.to] = Some(index);
                paths.growing = Some(link.to);
            }
        }
        if paths.growing.is_none() {
            break;
        }
        // Paths that a closed chain of last links is part of go on growing.
        if let Some(site) = closed(&paths.last, links) {
            paths.growing = Some(site);
            break;
        }
    }
    paths
}

/// A site on a closed chain of last links.
fn closed(last: &[Option<usize>], links: &[Link]) -> Option<usize> {
    // The walk that came by first, counted from 1; 0: none.
    let mut seen = vec![0; last.len()];
    for start in 0..last.len() {
        let mut at = start;
        while let (0, Some(link)) = (seen[at], last[at]) {
            seen[at] = start + 1;
            at = links[link].from;
        }
        if last[at].is_some() && seen[at] == start + 1 {
            return Some(at);
        }
    }
    None
}
