//! Growth that the equations have themselves: of a laser's medium, of waves in a shear flow, of patterns.
//!
//! Von Neumann's condition for convergence is |G| <= 1 + C dt with one C for all small steps and cells (P. D. Lax and
//! R. D. Richtmyer, Comm. Pure Appl. Math. 9 (1956) 267-293). So growth is that of the equations if its rate per unit
//! of time, ln|G| / dt,
//! - does not fall with a quarter of the step, for each wave that grows: the growth of a step that is too long ends
//!   with shorter ones, and that of a method that is not centred in time falls with them;
//! - belongs to a wave that is resolved in time, as parasites of methods with several time levels never are;
//! - does not rise with cells of half the size: differences that do not fit, and equations without a solution that
//!   depends on their start values, have no bound;
//! - is that of long waves: growth of the shortest waves alone is that of the cells.
//!
//! All kinds of waves of a grid of lengths and directions are looked at, in up to eight media, so that growth of one
//! does not hide another's.

use super::cells::Site;
use super::cost::Patience;
use super::dispersion::{Lattice, Resolve};
use super::media::Media;
use super::parts::Part;
use super::places::places;
use super::stability::Stability;
use super::zone::{Phase, TOLERANCE};
use crate::lattice::{Axis, PerAxis};
use crate::scheme::Scheme;
use crate::statics::Files;
use num_complex::Complex64;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_3, PI};

/// ln of the growth per step up to which a step resolves it.
const RESOLVED: f64 = 0.2;
/// By how much growth may be faster than with a step of a quarter: methods of first order have this much.
const OF_STEPS: f64 = 0.25;
/// By how much growth may rise with cells of half the size, and be faster in short waves than in long ones: growth like
/// the root of the wave number rises by 0.41.
const OF_CELLS: f64 = 0.3;
/// Differences that are less than this part of the fastest growth count for nothing.
const SMALL: f64 = 0.05;
/// Steps in the present one with cells of half the size: sixth derivatives take 64, and more beside lower ones.
const SHORTER: f64 = 256.0;
/// The angle of G up to which a quarter of a step resolves a wave: the present step has up to two thirds of a period.
const ANGLE: f64 = FRAC_PI_3;
/// Media that are looked at: the one with the fastest growth, and the first others.
const MOST_MEDIA: usize = 8;
/// Waves between 0 and pi along each axis, by the number of axes.
const WAVES: [i32; 3] = [64, 12, 4];

/// An eigenvalue of G for a wave in a medium: ln of its size per unit of time, and its angle.
#[derive(Clone, Copy)]
struct Rate {
    rate: f64,
    angle: f64,
}

/// The rate per unit of time at which the fastest wave grows, if all waves that grow do so as in the equations; `found`
/// has waves that grow.
pub fn growth_of_equations(
    found: &Stability,
    scheme: &Scheme,
    files: &dyn Files,
    resolve: Resolve<'_>,
) -> Option<f64> {
    let grid = &scheme.grid;
    let fastest = found.worst.rate / grid.dt;
    if found.worst.rate > RESOLVED {
        return None;
    }
    let mut at = |steps: f64, cells: f64| {
        resolve(&Lattice {
            dt: grid.dt / steps,
            spacing: grid.spacing.map(|h| h / cells),
        })
    };
    let (quarter, finer) = (at(4.0, 1.0)?, at(SHORTER, 2.0)?);
    let sites = media(found, scheme, files)?;
    let rates = |scheme: &Scheme, dt: f64, phases: &[Phase]| -> Option<Vec<Rates>> {
        let media = Media::new(scheme, files, &sites).ok()?;
        let of = |phase: &Phase| {
            let parts = media.eigenvalues(*phase)?.into_iter();
            Some(parts.map(|values| ranked(values, dt)).collect())
        };
        phases.iter().map(of).collect()
    };
    let mut phases = waves(scheme);
    phases.push(found.worst.phase);
    let mut long: Vec<Phase> = phases.iter().map(|p| p.map(|phase| phase / 4.0)).collect();
    let is_long = Axis::ALL
        .iter()
        .all(|a| found.worst.phase[*a].abs() <= FRAC_PI_2);
    if is_long {
        // A narrow band may lie between the others.
        long.push(found.worst.phase.map(|phase| phase / 2.0));
    }
    let present = rates(scheme, grid.dt, &phases)?;
    let quarter = rates(&quarter, grid.dt / 4.0, &phases)?;
    let all_on_finer = rates(&finer, grid.dt / SHORTER, &phases)?;
    let long_on_finer = rates(&finer, grid.dt / SHORTER, &long)?;
    let small = SMALL * fastest;
    let of_media = largest(&quarter).zip(largest(&all_on_finer));
    let mut of_media = of_media.zip(largest(&long_on_finer));
    let is_bounded = of_media.all(|((own, finer), long)| {
        finer <= (1.0 + OF_CELLS) * own.max(0.0) + small
            && own <= (1.0 + OF_CELLS) * long.max(0.0) + small
    });
    let grows = |value: &Rate| value.rate * grid.dt > TOLERANCE;
    let mut parts = present.iter().flatten().zip(quarter.iter().flatten());
    let are_own = parts.all(|(present, quarter)| {
        let mut both = present.iter().zip(quarter);
        let keep = both.all(|(present, quarter)| {
            // A method may damp waves with the present step.
            !grows(present) || present.rate <= (1.0 + OF_STEPS) * quarter.rate + small
        });
        keep && quarter
            .iter()
            .all(|value| !grows(value) || value.angle <= ANGLE)
    });
    (is_bounded && are_own).then_some(fastest)
}

/// For each medium and part of the state the eigenvalues of a wave, the fastest growth first.
type Rates = Vec<Vec<Rate>>;

fn ranked(values: Vec<Complex64>, dt: f64) -> Vec<Rate> {
    let rate = |value: Complex64| Rate {
        rate: value.norm().ln() / dt,
        angle: value.arg().abs(),
    };
    let mut rates: Vec<Rate> = values.into_iter().map(rate).collect();
    rates.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    rates
}

/// For each medium and part of the state the fastest growth of all waves.
fn largest(rates: &[Rates]) -> impl Iterator<Item = f64> + '_ {
    let parts = rates.first().map_or(0, Vec::len);
    (0..parts).map(|n| {
        let own = rates.iter().filter_map(move |all| all.get(n)?.first());
        own.map(|r| r.rate).fold(f64::NEG_INFINITY, f64::max)
    })
}

/// The sites whose media are looked at, some of each part of the scheme.
fn media(found: &Stability, scheme: &Scheme, files: &dyn Files) -> Option<Vec<Site>> {
    let own = Site {
        cell: found.at,
        part: found.part.clone(),
    };
    let known = places(scheme, files, Patience::Long).ok()?;
    let others: Vec<Site> = known.list.into_iter().filter(|site| *site != own).collect();
    let mut parts: Vec<&Part> = others.iter().map(|site| &site.part).collect();
    parts.dedup();
    let most = MOST_MEDIA * parts.len().max(1);
    let sites = std::iter::once(own).chain(others.iter().cloned());
    Some(sites.take(most).collect())
}

/// Waves of all lengths and directions.
fn waves(scheme: &Scheme) -> Vec<Phase> {
    let axes: Vec<Axis> = scheme.grid.present().collect();
    let most = WAVES[axes.len().clamp(1, 3) - 1];
    let mut phases = vec![PerAxis::splat(0.0)];
    for (number, axis) in axes.into_iter().enumerate() {
        // A wave and the opposite one grow alike.
        let least = if number == 0 { 0 } else { -most };
        let along = |phase: &Phase| {
            let phase = *phase;
            (least..=most).map(move |n| {
                let mut own = phase;
                own[axis] = PI * f64::from(n) / f64::from(most);
                own
            })
        };
        phases = phases.iter().flat_map(along).collect();
    }
    phases
}
