//! The largest stable time step, or the smallest stable value of another parameter, such as a cell size.
//!
//! The scheme is resolved anew for each step that is tried, as only its source tells how the weights depend on it.
//! Between a step that is stable and one that is not, halving finds the edge for a few watched waves; then the fastest
//! wave just beyond it is looked for and watched, too, until the edge stays (the method of exchange for semi-infinite
//! problems: R. Hettich and K. O. Kortanek, SIAM Review 35 (1993) 380-429, sec. 7). At last all waves are looked at
//! below the edge.

use super::cells::{Cell, Site};
use super::gain::Gain;
use super::media::Media;
use super::zone::{Effort, Growth, Phase};
use crate::scheme::Scheme;
use crate::statics::Files;

/// Doublings or halvings of the present step before the search ends.
const FARTHEST: i32 = 40;
/// Halvings of a stable step, where no longer one is unstable. In much shorter steps eigenvalues cannot be told from
/// each other.
const SHORTER: i32 = 10;
/// The relative distance between a stable step and one that is not, at the end.
const CLOSE: f64 = 1e-10;

/// ln of the growth per step that counts as none: less than for a run ([`super::TOLERANCE`]), so that the limit is
/// sharp, and more than the rounding of eigenvalues that lack an eigenvector.
const SHARP: f64 = 1e-7;

/// Where stability ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Steps up to `dt` are stable, or from `dt` on.
    Step {
        dt: f64,
        side: Side,
        /// The wave that grows just beyond.
        wave: Growth,
        /// The cell with whose coefficients it grows.
        at: Cell,
        /// Every step lets waves grow, but on the stable side of `dt` by less than a factor of e in ten million steps.
        weak: bool,
    },
    /// Every step that was tried is stable.
    None,
    /// No step that was tried is stable.
    Unstable,
}

/// Which of the stable steps a limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Largest,
    Smallest,
}

impl Side {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Side::Largest => "largest",
            Side::Smallest => "smallest",
        }
    }

    /// A step that lies a factor of at least 1 further beyond the limit.
    fn beyond(self, dt: f64, factor: f64) -> f64 {
        match self {
            Side::Largest => dt * factor,
            Side::Smallest => dt / factor,
        }
    }

    /// A step that lies a factor of at least 1 further on the stable side.
    fn within(self, dt: f64, factor: f64) -> f64 {
        match self {
            Side::Largest => dt / factor,
            Side::Smallest => dt * factor,
        }
    }
}

impl Limit {
    /// Whether waves grow with every step.
    pub fn is_none_stable(&self) -> bool {
        matches!(self, Limit::Step { weak: true, .. } | Limit::Unstable)
    }

    /// Whether a step lies on the stable side of one that was found.
    pub fn allows(&self, step: f64) -> bool {
        match *self {
            Limit::Step { dt, side, .. } => match side {
                Side::Largest => step <= dt,
                Side::Smallest => step >= dt,
            },
            Limit::None | Limit::Unstable => false,
        }
    }

    /// Whether steps are on the stable side of this limit, and not of another one.
    pub fn is_wider(&self, other: &Limit) -> bool {
        let Limit::Step { dt, side, .. } = *other else {
            return *other == Limit::Unstable && *self != Limit::Unstable;
        };
        *self == Limit::None || self.allows(side.beyond(dt, 1.0 + 10.0 * CLOSE))
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

/// Looks for the limit, from a step on, with the coefficients of some sites: for a largest stable step first, then for
/// a smallest one. `None` where the scheme cannot be analysed with some step.
pub fn largest_step(
    start: f64,
    with_step: WithStep,
    files: &dyn Files,
    sites: &[Site],
    taken: Taken,
) -> Option<Limit> {
    let mut search = Search {
        with_step,
        files,
        sites,
        taken,
        watched: Vec::new(),
        gain: Gain::Nothing,
    };
    search.run(start)
}

struct Search<'a> {
    with_step: WithStep<'a>,
    files: &'a dyn Files,
    sites: &'a [Site],
    taken: Taken,
    /// Waves that are looked at for every step.
    watched: Vec<Phase>,
    /// The growth that waves may have.
    gain: Gain,
}

/// The edge of stability, between two steps.
#[derive(Clone, Copy)]
struct Edge {
    stable: f64,
    unstable: f64,
    /// The wave that grows beyond, and the cell with whose coefficients it does.
    wave: (Cell, Growth),
}

impl Edge {
    fn side(&self) -> Side {
        match self.stable < self.unstable {
            true => Side::Largest,
            false => Side::Smallest,
        }
    }
}

impl Search<'_> {
    fn media(&mut self, dt: f64) -> Option<Media> {
        let scheme = (self.with_step)(dt)?;
        match self.taken {
            Taken::Combined => Media::combined(&scheme, self.files, self.sites).ok(),
            Taken::Each => Media::new(&scheme, self.files, self.sites).ok(),
        }
    }

    /// The fastest of the watched waves, if it grows, and the cell with whose coefficients it does.
    fn growing(&mut self, dt: f64) -> Option<Option<(Cell, Growth)>> {
        let media = self.media(dt)?;
        let worst = media.worst_beyond(&self.watched, self.gain.in_step(&media));
        let growing = worst.filter(|w| w.excess > SHARP);
        Some(growing.map(|w| (w.at.cell, w.growth)))
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
        self.gain = Gain::find(start, &mut |dt| self.media(dt));
        let Some(mut edge) = self.bracket(start)? else {
            return Some(self.without_edge(start));
        };
        for _ in 0..8 {
            edge = self.halve(edge)?;
            edge = self.exchange(edge)?;
            match self.unwatched(edge)? {
                None => break,
                Some(lower) => edge = lower,
            }
        }
        let weak = self.is_weak(edge)?;
        Some(Limit::Step {
            dt: edge.stable,
            side: edge.side(),
            wave: edge.wave.1,
            at: edge.wave.0,
            weak,
        })
    }

    /// A stable step and an unstable one near each other.
    fn bracket(&mut self, start: f64) -> Option<Option<Edge>> {
        let root = std::f64::consts::SQRT_2;
        let first = self.growing(start)?;
        // Where uniform values grow of themselves, longer steps do not resolve it.
        let longer = if self.gain.grows() { 0 } else { FARTHEST };
        let tries = match first {
            None => [(root, 2 * FARTHEST), (0.5, SHORTER)],
            Some(_) => [(0.5, FARTHEST), (2.0, longer)],
        };
        let mut found = tries.into_iter();
        Some(found.find_map(|(factor, count)| self.change(start, first, factor, count)))
    }

    /// Multiplies a step by a factor until waves grow no more, or begin to. A step for which the scheme cannot be
    /// resolved ends the search.
    fn change(
        &mut self,
        start: f64,
        first: Option<(Cell, Growth)>,
        factor: f64,
        count: i32,
    ) -> Option<Edge> {
        let (mut dt, mut grown) = (start, first);
        for _ in 0..count {
            let next = dt * factor;
            let edge = |stable, unstable, wave| Edge {
                stable,
                unstable,
                wave,
            };
            match (grown, self.growing(next)?) {
                (None, Some(wave)) => return Some(edge(dt, next, wave)),
                (Some(wave), None) => return Some(edge(next, dt, wave)),
                (_, growth) => (dt, grown) = (next, growth),
            }
        }
        None
    }

    fn without_edge(&mut self, start: f64) -> Limit {
        match self.growing(start) {
            Some(None) => Limit::None,
            _ => Limit::Unstable,
        }
    }

    /// Brings the two steps together for the watched waves.
    fn halve(&mut self, mut edge: Edge) -> Option<Edge> {
        while (edge.unstable - edge.stable).abs() > CLOSE * edge.unstable {
            let middle = 0.5 * (edge.stable + edge.unstable);
            match self.growing(middle)? {
                Some(wave) => (edge.unstable, edge.wave) = (middle, wave),
                None => edge.stable = middle,
            }
        }
        Some(edge)
    }

    /// Watches the fastest waves just beyond the edge, until it moves no more.
    fn exchange(&mut self, mut edge: Edge) -> Option<Edge> {
        for excess in [1e-2, 1e-4, 1e-6, 1e-8] {
            let side = edge.side();
            let beyond = side.beyond(edge.stable, 1.0 + excess);
            let media = self.media(beyond)?;
            let (_, from) = self.growing(beyond)?.unwrap_or(edge.wave);
            let found = media.climb(from.phase, excess.sqrt(), 200);
            self.watch(found);
            if let Some(wave) = self.growing(edge.stable)? {
                let mut within = edge.stable;
                for _ in 0..FARTHEST {
                    within = side.within(within, 1.0 + excess);
                    if self.growing(within)?.is_none() {
                        break;
                    }
                }
                edge = self.halve(Edge {
                    stable: within,
                    unstable: edge.stable,
                    wave,
                })?;
            }
        }
        Some(edge)
    }

    /// An edge on the stable side of the one that was found, at which a wave grows that was not watched.
    fn unwatched(&mut self, edge: Edge) -> Option<Option<Edge>> {
        let side = edge.side();
        for part in [0.9999, 0.9, 0.6, 0.3] {
            let dt = side.within(edge.stable, 1.0 / part);
            let found = self.media(dt)?.scan(&Effort::THOROUGH);
            let mut growing = found.into_iter().filter(|g| g.rate > SHARP).peekable();
            if growing.peek().is_none() {
                continue;
            }
            self.watch(growing);
            if let Some(wave) = self.growing(dt)? {
                let mut within = dt;
                for _ in 0..FARTHEST {
                    within = side.within(within, 2.0);
                    if self.growing(within)?.is_none() {
                        break;
                    }
                }
                return Some(Some(Edge {
                    stable: within,
                    unstable: dt,
                    wave,
                }));
            }
        }
        Some(None)
    }

    /// Whether waves still grow well on the stable side of the edge, too slowly to count.
    fn is_weak(&mut self, edge: Edge) -> Option<bool> {
        let dt = edge.side().within(edge.stable, 1.25);
        let media = self.media(dt)?;
        Some(media.radius_beyond(&self.watched, self.gain.in_step(&media)) > 0.1 * SHARP)
    }
}
