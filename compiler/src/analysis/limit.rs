//! The largest stable time step.
//!
//! The scheme is resolved anew for each step that is tried, as only its source tells how the weights depend on it.
//! Between a step that is stable and one that is not, halving finds the edge for a few watched waves; then the fastest
//! wave just beyond it is looked for and watched, too, until the edge stays (the method of exchange for semi-infinite
//! problems: R. Hettich and K. O. Kortanek, SIAM Review 35 (1993) 380-429, sec. 7). At last all waves are looked at
//! below the edge.

use super::places::Cell;
use super::stability::Media;
use super::zone::{Effort, Growth, Phase};
use crate::scheme::Scheme;
use crate::statics::Files;

/// Doublings or halvings of the present step before the search ends.
const FARTHEST: i32 = 40;
/// The relative distance between a stable step and one that is not, at the end.
const CLOSE: f64 = 1e-10;

/// ln of the growth per step that counts as none: less than for a run ([`super::TOLERANCE`]), so that the limit is
/// sharp, and more than the rounding of eigenvalues that lack an eigenvector.
const SHARP: f64 = 1e-7;

/// Where stability ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Steps up to `dt` are stable.
    Step {
        dt: f64,
        /// The wave that grows just above.
        wave: Growth,
        /// Every step lets waves grow, but up to `dt` by less than a factor of e in ten million steps.
        weak: bool,
    },
    /// Every step that was tried is stable.
    None,
    /// No step that was tried is stable.
    Unstable,
}

impl Limit {
    /// Whether waves grow with every step.
    pub fn is_none_stable(&self) -> bool {
        matches!(self, Limit::Step { weak: true, .. } | Limit::Unstable)
    }
}

/// A scheme whose time step can be chosen. `None`: it cannot be resolved with this step.
pub type WithStep<'a> = &'a mut dyn FnMut(f64) -> Option<Scheme>;

/// Which coefficients of some cells are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The coefficients of each cell.
    Each,
    /// The largest coefficients of all cells at once.
    Combined,
}

/// Looks for the limit, from a step on, with the coefficients of some cells. `None` where the scheme cannot be analysed
/// with some step.
pub fn largest_step(
    start: f64,
    with_step: WithStep,
    files: &dyn Files,
    cells: &[Cell],
    taken: Taken,
) -> Option<Limit> {
    let mut search = Search {
        with_step,
        files,
        cells,
        taken,
        watched: Vec::new(),
        own: 0.0,
    };
    search.run(start)
}

struct Search<'a> {
    with_step: WithStep<'a>,
    files: &'a dyn Files,
    cells: &'a [Cell],
    taken: Taken,
    /// Waves that are looked at for every step.
    watched: Vec<Phase>,
    /// ln of the factor by which uniform values grow of themselves, per unit of time.
    own: f64,
}

/// The edge of stability, between two steps.
#[derive(Clone, Copy)]
struct Edge {
    stable: f64,
    unstable: f64,
    /// The wave that grows above.
    wave: Growth,
}

impl Search<'_> {
    fn media(&mut self, dt: f64) -> Option<Media> {
        let scheme = (self.with_step)(dt)?;
        match self.taken {
            Taken::Combined => Media::combined(&scheme, self.files, self.cells).ok(),
            Taken::Each => Media::new(&scheme, self.files, self.cells).ok(),
        }
    }

    /// The fastest of the watched waves, if it grows.
    fn growing(&mut self, dt: f64) -> Option<Option<Growth>> {
        let media = self.media(dt)?;
        let worst = media.worst(&self.watched).map(|(_, g)| g);
        Some(worst.filter(|g| g.rate > self.allowed(dt)))
    }

    /// ln of the growth per step that is no instability.
    fn allowed(&self, dt: f64) -> f64 {
        SHARP + 1.1 * self.own * dt
    }

    fn watch(&mut self, waves: impl IntoIterator<Item = Growth>) {
        for wave in waves {
            if !self.watched.contains(&wave.phase) {
                self.watched.push(wave.phase);
            }
        }
    }

    fn run(&mut self, start: f64) -> Option<Limit> {
        let media = self.media(start)?;
        self.watched = media.corners();
        self.watch(media.scan(&Effort::THOROUGH));
        if media.own_growth() > 0.0 {
            let short = start / 1024.0;
            self.own = self.media(short)?.own_growth() / short;
        }
        let Some(mut edge) = self.bracket(start)? else {
            return Some(self.without_edge(start));
        };
        for _ in 0..8 {
            edge = self.halve(edge)?;
            edge = self.exchange(edge)?;
            match self.unwatched(edge.stable)? {
                None => break,
                Some(lower) => edge = lower,
            }
        }
        let weak = self.is_weak(edge.stable)?;
        Some(Limit::Step {
            dt: edge.stable,
            wave: edge.wave,
            weak,
        })
    }

    /// A stable step and an unstable one near each other.
    fn bracket(&mut self, start: f64) -> Option<Option<Edge>> {
        let mut dt = start;
        match self.growing(dt)? {
            None => {
                for _ in 0..2 * FARTHEST {
                    let longer = dt * std::f64::consts::SQRT_2;
                    // A step for which the scheme cannot be resolved ends the search.
                    match self.growing(longer) {
                        Some(Some(wave)) => {
                            return Some(Some(Edge {
                                stable: dt,
                                unstable: longer,
                                wave,
                            }));
                        }
                        Some(None) => dt = longer,
                        None => break,
                    }
                }
                Some(None)
            }
            Some(mut wave) => {
                for _ in 0..FARTHEST {
                    let shorter = dt / 2.0;
                    match self.growing(shorter)? {
                        None => {
                            return Some(Some(Edge {
                                stable: shorter,
                                unstable: dt,
                                wave,
                            }));
                        }
                        Some(w) => (dt, wave) = (shorter, w),
                    }
                }
                Some(None)
            }
        }
    }

    fn without_edge(&mut self, start: f64) -> Limit {
        match self.growing(start) {
            Some(None) => Limit::None,
            _ => Limit::Unstable,
        }
    }

    /// Brings the two steps together for the watched waves.
    fn halve(&mut self, mut edge: Edge) -> Option<Edge> {
        while edge.unstable - edge.stable > CLOSE * edge.unstable {
            let middle = 0.5 * (edge.stable + edge.unstable);
            match self.growing(middle)? {
                Some(wave) => (edge.unstable, edge.wave) = (middle, wave),
                None => edge.stable = middle,
            }
        }
        Some(edge)
    }

    /// Watches the fastest waves just above the edge, until it moves no more.
    fn exchange(&mut self, mut edge: Edge) -> Option<Edge> {
        for excess in [1e-2, 1e-4, 1e-6, 1e-8] {
            let above = edge.stable * (1.0 + excess);
            let media = self.media(above)?;
            let from = self.growing(above)?.unwrap_or(edge.wave);
            let found = media.climb(from.phase, excess.sqrt(), 200);
            self.watch(found);
            if let Some(wave) = self.growing(edge.stable)? {
                let mut below = edge.stable;
                for _ in 0..FARTHEST {
                    below *= 1.0 - excess;
                    if self.growing(below)?.is_none() {
                        break;
                    }
                }
                edge = self.halve(Edge {
                    stable: below,
                    unstable: edge.stable,
                    wave,
                })?;
            }
        }
        Some(edge)
    }

    /// An edge below the one that was found, at which a wave grows that was not watched.
    fn unwatched(&mut self, low: f64) -> Option<Option<Edge>> {
        for part in [0.9999, 0.9, 0.6, 0.3] {
            let dt = part * low;
            let found = self.media(dt)?.scan(&Effort::THOROUGH);
            let limit = self.allowed(dt);
            let growing: Vec<Growth> = found.into_iter().filter(|g| g.rate > limit).collect();
            let fastest = growing
                .iter()
                .copied()
                .max_by(|a, b| a.rate.total_cmp(&b.rate));
            self.watch(growing);
            if let Some(wave) = fastest {
                let mut below = dt;
                for _ in 0..FARTHEST {
                    below /= 2.0;
                    if self.growing(below)?.is_none() {
                        break;
                    }
                }
                return Some(Some(Edge {
                    stable: below,
                    unstable: dt,
                    wave,
                }));
            }
        }
        Some(None)
    }

    /// Whether waves still grow well below the edge, too slowly to count.
    fn is_weak(&mut self, low: f64) -> Option<bool> {
        let dt = 0.8 * low;
        let media = self.media(dt)?;
        Some(media.radius(&self.watched).ln() > 0.1 * SHARP + 1.1 * self.own * dt)
    }
}
