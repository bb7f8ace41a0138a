//! Growth of uniform values that the equations have: in a medium with gain, or by a reaction.
//!
//! Uniform values that grow without a change of sign, and at the same rate with shorter steps, are part of the
//! equations. Waves may grow as they do, but none more than it does with short steps: a wave that decays there, as
//! short waves do by diffusion, may not grow in the step that is looked at. So the answer is one of the step alone,
//! whatever other step it is looked for from.

use super::media::Media;
use super::zone::{Phase, TOLERANCE};

/// The factor by which growth may be faster in a step than the equations have it.
pub const SLACK: f64 = 1.1;
/// ln of the growth per step above which a step does not resolve it, where other steps are not known.
const RESOLVED: f64 = 0.2;
/// ln of the growth of uniform values in a short step: the least, the most, and the wanted one.
const LEAST: f64 = 1e-5;
const MOST: f64 = 1e-4;
const WANTED: f64 = 3e-5;
/// Growth that is rounding.
const ROUNDING: f64 = 1e-13;
/// Steps that are tried for a short one, the factor between two of them, and how much longer they may be than the
/// first.
const ROUNDS: usize = 8;
const FACTOR: f64 = 1024.0;
const LONGEST: f64 = 1e6;
/// By how much growth may differ with a quarter of a short step.
const KEPT: f64 = 0.25;

/// The growth that waves may have.
pub enum Gain {
    /// That of uniform values in the step, as no other step is known.
    OfStep,
    /// None.
    Nothing,
    /// That which they have in a short step, up to that of uniform values.
    OfShortStep(Short),
}

/// Media with a short step.
pub struct Short {
    media: Media,
    /// By medium ln of the growth of uniform values per unit of time.
    uniform: Vec<f64>,
}

impl Gain {
    /// Looks for it by steps in some media, from one step on.
    pub fn find(start: f64, media_with: &mut dyn FnMut(f64) -> Option<Media>) -> Self {
        Self::found(start, media_with).unwrap_or(Self::OfStep)
    }

    /// `None` where steps cannot be changed.
    fn found(start: f64, media_with: &mut dyn FnMut(f64) -> Option<Media>) -> Option<Self> {
        let own = media_with(start)?.dt;
        let mut step = start / FACTOR;
        let mut media = media_with(step)?;
        // The value may be another one than the step.
        if (FACTOR * media.dt / own - 1.0).abs() > 1e-6 {
            return None;
        }
        for _ in 0..ROUNDS {
            let growth = most(&media);
            if growth < ROUNDING || step > LONGEST * start {
                break;
            }
            if (LEAST..MOST).contains(&growth) {
                let shorter = most(&media_with(step / 4.0)?);
                return Some(match (4.0 * shorter / growth - 1.0).abs() <= KEPT {
                    true => Self::OfShortStep(Short::new(media)),
                    false => Self::Nothing,
                });
            }
            step *= (WANTED / growth).clamp(FACTOR.recip(), FACTOR);
            media = media_with(step)?;
        }
        Some(Self::Nothing)
    }

    /// Whether uniform values grow with short steps.
    pub fn grows(&self) -> bool {
        matches!(self, Self::OfShortStep(_))
    }

    /// For a medium and a wave, ln of the growth in a step that is no instability.
    pub fn in_step<'a>(&'a self, media: &'a Media) -> impl Fn(usize, Phase) -> f64 + 'a {
        let of_step = match self {
            Self::OfStep => self.own_growth(media),
            _ => Vec::new(),
        };
        move |medium, phase| match self {
            Self::OfStep => SLACK * of_step.get(medium).copied().unwrap_or(0.0),
            Self::Nothing => 0.0,
            Self::OfShortStep(short) => SLACK * short.rate(medium, phase) * media.dt,
        }
    }

    /// By medium ln of the factor by which uniform values grow of themselves in a step, as the equations have it, in
    /// any medium of the same part of the scheme; 0 where they do not. Growth of one part is none of the others.
    pub fn own_growth(&self, media: &Media) -> Vec<f64> {
        let uniform = media.uniform_growth();
        let counts = |medium: usize, growth: f64| match self {
            Self::Nothing => false,
            // Growth that the step does not resolve may be one of the step.
            Self::OfStep => (TOLERANCE..RESOLVED).contains(&growth),
            Self::OfShortStep(short) => {
                let grows = short.uniform.get(medium).is_some_and(|rate| *rate > 0.0);
                grows && growth >= TOLERANCE
            }
        };
        let own = |medium: usize| {
            let alike = (0..uniform.len()).filter(|other| media.are_of_one_part(medium, *other));
            let counted = alike.filter(|other| counts(*other, uniform[*other]));
            counted.map(|other| uniform[other]).fold(0.0, f64::max)
        };
        (0..uniform.len()).map(own).collect()
    }
}

impl Short {
    fn new(media: Media) -> Self {
        let uniform = media.uniform_growth().into_iter();
        Self {
            uniform: uniform.map(|growth| growth / media.dt).collect(),
            media,
        }
    }

    /// The rate per unit of time at which a wave may grow in a medium.
    fn rate(&self, medium: usize, phase: Phase) -> f64 {
        match self.uniform.get(medium) {
            Some(uniform) if *uniform > 0.0 => {
                let own = self.media.growth(medium, phase) / self.media.dt;
                own.clamp(0.0, *uniform)
            }
            _ => 0.0,
        }
    }
}

fn most(media: &Media) -> f64 {
    media.uniform_growth().into_iter().fold(0.0, f64::max)
}
