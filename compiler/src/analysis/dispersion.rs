//! How far waves on the lattice are from waves of the equations: orders of accuracy, numerical dispersion, anisotropy.
//!
//! The waves of the equations are the waves of the same scheme with cells and steps that tend to 0, extrapolated from
//! 1/8, 1/16 and 1/32 (L. F. Richardson, Phil. Trans. A 226 (1927) 299-361). Where a scheme's cells or steps cannot be
//! changed, it is compared with its own long waves instead, whose frequencies are in proportion to a power of the wave
//! number.

use super::order::{Order, order, order_together};
use super::step::{Block, Step};
use super::waves::{
    Branch, Branches, LONGEST_LISTED, Medium, branches, long_waves, speed, surely_oscillates,
    wave_numbers,
};
use crate::analysis::cells::{Cell, setting};
use crate::lattice::{Axis, PerAxis};
use crate::scheme::Scheme;
use crate::statics::Files;
use num_complex::Complex64;
use std::f64::consts::TAU;

/// Points per wavelength in tables.
pub const POINTS: [f64; 11] = [
    3.0,
    4.0,
    5.0,
    6.0,
    8.0,
    10.0,
    12.0,
    16.0,
    20.0,
    30.0,
    LONGEST_LISTED,
];
/// Points per wavelength over the directions of a plane.
pub const AROUND: [f64; 3] = [5.0, 10.0, 20.0];
/// Cells and steps of the reference are divided by these powers of 2.
const FINE: [i32; 3] = [3, 4, 5];

/// The angle per step of the finest reference that eigenvalues tell to six digits.
const SEEN: f64 = 3e-4;

/// The sizes that a scheme is resolved with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lattice {
    pub dt: f64,
    pub spacing: PerAxis<f64>,
}

/// A scheme whose sizes can be chosen. `None`: not these.
pub type Resolve<'a> = &'a mut dyn FnMut(&Lattice) -> Option<Scheme>;

/// A direction in which waves travel.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// `x`, or `x+y` for the diagonal of equal parts.
    pub name: String,
    /// Of length 1.
    pub unit: PerAxis<f64>,
}

/// The waves with which waves are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The same waves on finer and finer lattices.
    Refined,
    /// Long waves on the same lattice.
    LongWaves,
    /// The same, as waves of smaller cells and steps belong to none of its own.
    Unpaired,
}

/// One wave against that of the equations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub points: f64,
    /// Phase velocity over that of the equations; of waves that do not move, the rate of decay over that of the
    /// equations.
    pub ratio: f64,
    /// The factor that remains of an amplitude after one period relative to the equations; 1 for waves that do
    /// not move.
    pub remains: f64,
}

/// A kind of waves.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// How many kinds behave like this one in all directions.
    pub count: usize,
    /// Whether long waves move or decay.
    pub moves: bool,
    /// Frequencies of long waves are in proportion to this power of the wave number.
    pub power: u32,
    /// That proportion, by direction: a speed where the power is 1, and 0 where waves that move along others stand.
    pub coefficients: Vec<f64>,
    /// By direction, the points of tables; none where waves that move along others stand.
    pub table: Vec<Vec<Sample>>,
    /// By direction, from long waves to short ones, for curves.
    pub curves: Vec<Vec<Sample>>,
    /// By [`AROUND`]: angles from the first axis to the second one, in degrees, and the ratio.
    pub around: Vec<Vec<(f64, f64)>>,
}

impl Kind {
    /// Without values.
    fn new(branch: &Branch) -> Self {
        Self {
            count: 1,
            moves: branch.moves(),
            power: branch.power,
            coefficients: Vec::new(),
            table: Vec::new(),
            curves: Vec::new(),
            around: Vec::new(),
        }
    }
}

/// The accuracy of a scheme's waves with the coefficients of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispersion {
    pub at: Cell,
    /// The cell size that wavelengths are counted in: the largest one.
    pub cell: f64,
    pub directions: Vec<Direction>,
    pub reference: Reference,
    pub in_space: Order,
    pub in_time: Order,
    /// By cells and steps that become smaller together.
    pub in_both: Order,
    pub kinds: Vec<Kind>,
    /// Numbers of kinds without tables: kinds that stand still at all wavelengths.
    pub still: usize,
    /// Kinds whose long waves follow no power of the wave number, or that oscillate at some of the lengths of tables
    /// and only decay at others.
    pub irregular: usize,
    /// Kinds whose long waves have a quarter of a period in a step, or more, and less with smaller steps.
    pub unresolved: usize,
    /// Kinds that have as much with smaller steps, too: products of the scheme, not of the equations. None where steps
    /// cannot be made smaller.
    pub spurious: usize,
}

/// A scheme at one place, with one pair of sizes.
pub(super) struct Sized {
    step: Step,
    blocks: Vec<Block>,
    lattice: Lattice,
}

impl Sized {
    fn new(scheme: &Scheme, files: &dyn Files, at: Cell, lattice: Lattice) -> Option<Self> {
        let step = Step::new(scheme, &setting(scheme, files, at)).ok()?;
        Some(Self {
            blocks: step.blocks(),
            step,
            lattice,
        })
    }

    pub(super) fn branches(&self, direction: PerAxis<f64>, numbers: &[f64]) -> Option<Branches> {
        let medium = Medium {
            step: &self.step,
            blocks: &self.blocks,
            spacing: self.lattice.spacing,
            dt: self.lattice.dt,
        };
        branches(&medium, direction, numbers)
    }
}

/// Compares the waves of a scheme at a cell with waves of the equations. `None` where it cannot be analysed.
pub fn dispersion(
    scheme: &Scheme,
    files: &dyn Files,
    at: Cell,
    resolve: Resolve,
) -> Option<Dispersion> {
    let grid = &scheme.grid;
    let lattice = Lattice {
        dt: grid.dt,
        spacing: grid.spacing,
    };
    let cell = grid.present().map(|a| grid.spacing[a]).fold(0.0, f64::max);
    let present = Sized::new(scheme, files, at, lattice)?;
    let mut halved = |space: i32, time: i32| -> Option<Sized> {
        let half = |n: i32| 0.5_f64.powi(n);
        let lattice = Lattice {
            dt: lattice.dt * half(time),
            spacing: PerAxis::from_fn(|a| match grid.axes[a] {
                Some(_) => lattice.spacing[a] * half(space),
                None => lattice.spacing[a],
            }),
        };
        Sized::new(&resolve(&lattice)?, files, at, lattice)
    };
    let directions = directions(scheme, &present);
    let in_space = order(&present, &directions, cell, |n| halved(n, 0));
    let in_time = order(&present, &directions, cell, |n| halved(0, n));
    let in_both = order_together(&present, &directions, cell, &mut halved);
    let fine = FINE.map(|n| halved(n, n));
    let fine = match &fine {
        [Some(a), Some(b), Some(c)] => Some([a, b, c]),
        _ => None,
    };
    let compare = Compare {
        present: &present,
        fine,
        powers: error_powers(in_space, in_time, in_both),
        cell,
    };
    let mut found = Dispersion {
        at,
        cell,
        directions,
        reference: match fine {
            Some(_) => Reference::Refined,
            None => Reference::LongWaves,
        },
        in_space,
        in_time,
        in_both,
        kinds: Vec::new(),
        still: 0,
        irregular: 0,
        unresolved: 0,
        spurious: 0,
    };
    let changes = compare.directions(&mut found)?;
    compare.plane(scheme, &mut found);
    let mut changes = changes.into_iter();
    let all = found.kinds.len();
    found.kinds.retain(|_| changes.next() == Some(false));
    found.irregular += all - found.kinds.len();
    found.merge();
    Some(found)
}

/// The two lowest powers of the errors of a scheme with these orders, by cells and steps that become smaller together,
/// the lower one first. Errors of the second order are even.
fn error_powers(in_space: Order, in_time: Order, in_both: Order) -> [u32; 2] {
    let [low, high] = match (in_space, in_time) {
        (Order::Power(a), Order::Power(b)) => [a.min(b), a.max(b)],
        (Order::Power(a), _) | (_, Order::Power(a)) => [a, a],
        _ => [2, 2],
    };
    match in_both {
        // Errors of cells and steps that cancel, or grow as steps become smaller alone, need not be even.
        Order::Power(both) if both != low => [both, both + 1],
        _ if high > low => [low, high.min(2 * low)],
        _ => [low, 2 * low],
    }
}

/// The axes along which the scheme reads at a distance, and their diagonals, one of each that it treats alike.
fn directions(scheme: &Scheme, sized: &Sized) -> Vec<Direction> {
    let grid = &scheme.grid;
    let reach = sized.step.reach();
    let mut axes: Vec<Axis> = grid.present().collect();
    if axes.iter().any(|axis| reach[*axis] > 0) {
        axes.retain(|axis| reach[*axis] > 0);
    }
    let mut list: Vec<Direction> = Vec::new();
    for count in 1..=axes.len() {
        for parts in 1..1usize << axes.len() {
            if parts.count_ones() as usize != count {
                continue;
            }
            let chosen: Vec<Axis> = (0..axes.len())
                .filter(|i| parts >> i & 1 == 1)
                .map(|i| axes[i])
                .collect();
            for signs in 0..1usize << count {
                let sign = |i: usize| if signs >> i & 1 == 1 { -1.0 } else { 1.0 };
                let mut unit = PerAxis::splat(0.0);
                let mut name = String::new();
                for (i, &axis) in chosen.iter().enumerate() {
                    unit[axis] = sign(i) / f64::sqrt(count as f64);
                    match (sign(i) < 0.0, name.is_empty()) {
                        (true, _) => name.push('-'),
                        (false, false) => name.push('+'),
                        (false, true) => {}
                    }
                    name.push_str(grid.axis_name(axis));
                }
                list.push(Direction { name, unit });
            }
        }
    }
    // Alike are directions with the same spectrum for some wave number.
    let spectrum = |d: &Direction| -> Vec<Complex64> {
        let theta = PerAxis::from_fn(|a| 1.234 * d.unit[a]);
        let blocks = sized.blocks.iter();
        blocks
            .flat_map(|b| sized.step.amplification(b, theta).traces())
            .collect()
    };
    let mut kept: Vec<(Direction, Vec<Complex64>)> = Vec::new();
    for direction in list {
        let own = spectrum(&direction);
        let size = own.iter().map(|t| t.norm()).fold(1.0, f64::max);
        let spacing = |d: &Direction| -> f64 {
            let parts = Axis::ALL
                .iter()
                .map(|&a| (d.unit[a] / scheme.grid.spacing[a]).powi(2));
            parts.sum()
        };
        let alike = |(d, s): &(Direction, Vec<Complex64>)| {
            (spacing(d) - spacing(&direction)).abs() < 1e-9 * spacing(d)
                && s.iter()
                    .zip(&own)
                    .all(|(a, b)| (a - b).norm() < 1e-9 * size)
        };
        if !kept.iter().any(alike) {
            kept.push((direction, own));
        }
    }
    kept.into_iter().map(|(d, _)| d).collect()
}

/// The waves along a direction, and the frequencies that they should have.
struct Pair {
    own: Branches,
    reference: Vec<Vec<Complex64>>,
    /// They are from finer lattices.
    is_refined: bool,
    /// Kinds that are fast on finer lattices, too.
    spurious: usize,
}

/// Frequencies on the lattice against frequencies of the equations.
struct Compare<'a> {
    present: &'a Sized,
    fine: Option<[&'a Sized; 3]>,
    /// Of the errors of the finer ones.
    powers: [u32; 2],
    cell: f64,
}

impl Compare<'_> {
    /// The waves along all directions. Returns by kind whether some waves of tables, or longer waves with which they
    /// are compared, are of another kind ([`Branch::is_other`]).
    fn directions(&self, found: &mut Dispersion) -> Option<Vec<bool>> {
        let wanted: Vec<f64> = POINTS.iter().map(|p| TAU / (p * self.cell)).collect();
        let mut rays = Vec::new();
        for direction in std::mem::take(&mut found.directions) {
            let widest = Axis::ALL
                .iter()
                .map(|&a| direction.unit[a].abs() * self.present.lattice.spacing[a])
                .fold(0.0, f64::max);
            let last = (0.5 * TAU / widest).min(0.5 * TAU / self.cell);
            let numbers = wave_numbers(self.cell, last, &wanted);
            let pair = self.pair(direction.unit, &numbers)?;
            rays.push((direction, pair, numbers));
        }
        // Waves of some equations travel in some directions only.
        let most = rays.iter().map(|(_, pair, _)| pair.own.list.len()).max()?;
        rays.retain(|(_, pair, _)| pair.own.list.len() == most);
        let (_, Pair { own, spurious, .. }, _) = rays.first()?;
        (found.still, found.irregular) = (own.still, own.irregular);
        (found.spurious, found.unresolved) = (*spurious, own.fast - spurious);
        found.kinds = own.list.iter().map(Kind::new).collect();
        if rays.iter().any(|(_, pair, _)| !pair.is_refined) {
            found.reference = match self.fine {
                Some(_) => Reference::Unpaired,
                None => Reference::LongWaves,
            };
        }
        let mut changes = vec![false; found.kinds.len()];
        for (direction, pair, numbers) in rays {
            let pairs = pair.own.list.iter().zip(&pair.reference);
            let kinds = found.kinds.iter_mut().zip(&mut changes);
            for ((kind, changes), (branch, exact)) in kinds.zip(pairs) {
                let long = self.longest_exact(kind.power, exact).max(branch.longest);
                let at = |k: &f64| numbers.iter().position(|n| (n - k).abs() < 1e-8 * k);
                let listed: Vec<usize> = wanted.iter().filter_map(at).collect();
                // Losses make long waves oscillate less than they decay.
                let told = |n: &usize| surely_oscillates(exact[*n]);
                let stands = kind.moves && !listed.iter().chain([&long]).any(told);
                let sample_at = |n: usize| {
                    let points = TAU / (numbers[n] * self.cell);
                    match kind.moves {
                        true => sample(points, branch.omega[n], exact[n]),
                        false => still_sample(points, branch.omega[n], exact[n]),
                    }
                };
                let shown = |n: &usize| !stands && *n >= branch.longest;
                let curve = (0..numbers.len()).filter(shown).map(sample_at);
                let curve = curve.filter(|s| s.ratio.is_finite()).collect();
                let (compared, is_other) = match pair.is_refined {
                    true => (exact, false),
                    false => (&branch.omega, branch.is_other_when_longer),
                };
                let dt = self.present.lattice.dt;
                *changes |= is_other || listed.iter().any(|n| branch.is_other(compared[*n], dt));
                let listed = listed.into_iter().filter(|_| !stands);
                kind.table.push(listed.map(sample_at).collect());
                let moving = match (kind.moves, kind.power) {
                    (true, _) if stands => Some(0.0),
                    // Losses change the phase velocity of long waves, but not this.
                    (true, 1) => speed(exact, &numbers, long),
                    _ => None,
                };
                let frequency = || match kind.moves {
                    true => exact[long].norm(),
                    false => -exact[long].im,
                };
                let coefficient =
                    moving.unwrap_or_else(|| frequency() / numbers[long].powi(kind.power as i32));
                kind.coefficients.push(coefficient);
                kind.curves.push(curve);
            }
            found.directions.push(direction);
        }
        Some(changes)
    }

    /// The longest wave whose frequency tells its coefficient: frequencies of long waves, most so where these are in
    /// proportion to the square of the wave number, become so small that eigenvalues round them.
    fn longest_exact(&self, power: u32, exact: &[Complex64]) -> usize {
        let finest = self.present.lattice.dt * 0.5_f64.powi(FINE[2]);
        // Where steps are so small that not even short waves are seen, fewer digits have to do.
        let is_seen = |share: f64| exact.iter().position(|w| w.norm() * finest > SEEN * share);
        let shares: &[f64] = match power {
            0 => &[],
            1 => &[0.3],
            _ => &[1.0, 0.1, 0.01],
        };
        shares.iter().find_map(|s| is_seen(*s)).unwrap_or(0)
    }

    /// The directions between the first two axes.
    fn plane(&self, scheme: &Scheme, found: &mut Dispersion) {
        let axes: Vec<Axis> = scheme.grid.present().collect();
        let [first, second, ..] = axes[..] else {
            return;
        };
        let reach = self.present.step.reach();
        if reach[first] == 0 || reach[second] == 0 {
            return;
        }
        let wanted: Vec<f64> = AROUND.iter().map(|p| TAU / (p * self.cell)).collect();
        let last = wanted[0];
        let numbers = wave_numbers(self.cell, last, &wanted);
        let places: Vec<Option<usize>> = wanted
            .iter()
            .map(|k| numbers.iter().position(|n| (n - k).abs() < 1e-8 * k))
            .collect();
        for kind in &mut found.kinds {
            kind.around = vec![Vec::new(); AROUND.len()];
        }
        for step in 0..=30 {
            let angle = 3.0 * f64::from(step);
            let mut unit = PerAxis::splat(0.0);
            (unit[second], unit[first]) = angle.to_radians().sin_cos();
            let Some(Pair { own, reference, .. }) = self.pair(unit, &numbers) else {
                continue;
            };
            if own.list.len() != found.kinds.len() {
                continue;
            }
            for (kind, (branch, exact)) in
                found.kinds.iter_mut().zip(own.list.iter().zip(&reference))
            {
                for (list, place) in kind.around.iter_mut().zip(&places) {
                    let Some(n) = *place else { continue };
                    let (own, exact) = (branch.omega[n], exact[n]);
                    let ratio = match kind.moves {
                        true => own.re / exact.re,
                        false => own.im / exact.im,
                    };
                    let stands = kind.moves && !surely_oscillates(exact);
                    if ratio.is_finite() && !stands {
                        list.push((angle, ratio));
                    }
                }
            }
        }
    }

    /// The waves along a direction, and the frequencies that they should have.
    fn pair(&self, direction: PerAxis<f64>, numbers: &[f64]) -> Option<Pair> {
        let own = self.present.branches(direction, numbers)?;
        let mut spurious = 0;
        let refined = match self.fine {
            None => None,
            Some(levels) => {
                let levels = levels.map(|sized| sized.branches(direction, numbers));
                let levels = levels.into_iter().collect::<Option<Vec<Branches>>>()?;
                let fast = levels.iter().map(|b| b.fast);
                spurious = fast.fold(own.fast, usize::min);
                let fits = |b: &Branches| b.list.len() == own.list.len();
                levels.iter().all(fits).then(|| self.extrapolated(&levels))
            }
        };
        let is_refined = refined.is_some();
        let reference = refined.unwrap_or_else(|| {
            let list = own.list.iter();
            list.map(|b| {
                let long = long_waves(b, numbers);
                numbers
                    .iter()
                    .map(|k| long * k.powi(b.power as i32))
                    .collect()
            })
            .collect()
        });
        Some(Pair {
            own,
            reference,
            is_refined,
            spurious,
        })
    }

    /// The limit of frequencies on finer and finer lattices.
    fn extrapolated(&self, levels: &[Branches]) -> Vec<Vec<Complex64>> {
        let factors = self.powers.map(|p| f64::powi(2.0, p.min(20) as i32) - 1.0);
        let limit = |kind: usize, n: usize| {
            let mut values: Vec<Complex64> = levels.iter().map(|b| b.list[kind].omega[n]).collect();
            for factor in factors {
                let better = values.windows(2).map(|w| w[1] + (w[1] - w[0]) / factor);
                values = better.collect();
            }
            values[0]
        };
        let kinds = levels[0].list.iter().enumerate();
        kinds
            .map(|(kind, b)| (0..b.omega.len()).map(|n| limit(kind, n)).collect())
            .collect()
    }
}

/// How a wave compares with the exact one.
fn sample(points: f64, own: Complex64, exact: Complex64) -> Sample {
    let periods = |w: Complex64| TAU / w.re.abs();
    Sample {
        points,
        ratio: own.re / exact.re,
        remains: (own.im * periods(own) - exact.im * periods(exact)).exp(),
    }
}

/// The same for waves that do not move.
fn still_sample(points: f64, own: Complex64, exact: Complex64) -> Sample {
    Sample {
        points,
        ratio: own.im / exact.im,
        remains: 1.0,
    }
}

impl Dispersion {
    /// The order in cells and steps together, where it is higher than that of the lower one of both.
    pub fn higher_together(&self) -> Option<Order> {
        let low = match (self.in_space, self.in_time) {
            (Order::Power(a), Order::Power(b)) => a.min(b),
            (Order::Power(a), Order::Exact) | (Order::Exact, Order::Power(a)) => a,
            _ => return None,
        };
        match self.in_both {
            Order::Power(p) if p > low => Some(self.in_both),
            Order::Exact => Some(Order::Exact),
            Order::Power(_) | Order::Unknown => None,
        }
    }

    /// Makes kinds that are alike in all directions one.
    fn merge(&mut self) {
        let mut kinds: Vec<Kind> = Vec::new();
        for kind in std::mem::take(&mut self.kinds) {
            let alike = |other: &&mut Kind| {
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
                let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| close(*a, *b));
                let ratios = |k: &Kind| -> Vec<f64> {
                    let samples = k.table.iter().flatten();
                    samples.map(|s| s.ratio).collect()
                };
                (other.power, other.moves) == (kind.power, kind.moves)
                    && same(&other.coefficients, &kind.coefficients)
                    && same(&ratios(other), &ratios(&kind))
            };
            match kinds.iter_mut().find(alike) {
                Some(other) => other.count += 1,
                None => kinds.push(kind),
            }
        }
        self.kinds = kinds;
    }
}
