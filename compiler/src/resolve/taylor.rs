//! Methods by Taylor's series: the second term is half of the change of the first one, of several fields together.
//!
//! Velocity Verlet's method is one, and Lax and Wendroff's for systems. A field of constant coefficients is looked at
//! as a wave exp(z s), `s` being the distance along a direction: the change that an update makes to its target is a
//! polynomial in z for each field that it reads. All values count as of one time, because a step between them changes
//! the third term alone.

use super::second_order::Frozen;
use crate::analysis::weights;
use crate::lattice::Position;
use crate::scheme::{Coef, ComponentId, Stage, Update, displacement};
use std::collections::BTreeMap;

/// Directions along which waves are looked at.
const DIRECTIONS: [[f64; 3]; 2] = [[1.0, 0.83, 0.61], [0.57, -1.0, 0.74]];
/// Terms of a polynomial: up to the second power.
const TERMS: usize = 3;
/// Parts of a sum of weights that are rounding.
const ROUNDING: f64 = 2e-7;
/// The relative difference of terms that are alike.
const ALIKE: f64 = 1e-3;
/// Components of which one is a function of the next.
const FUNCTIONS: usize = 8;

/// A polynomial in z, and that of the absolute weights that it is made of.
#[derive(Clone, Copy, Debug, Default)]
struct Symbol {
    terms: [f64; TERMS],
    sizes: [f64; TERMS],
}

impl Symbol {
    fn add(&mut self, other: Symbol) {
        for power in 0..TERMS {
            self.terms[power] += other.terms[power];
            self.sizes[power] += other.sizes[power];
        }
    }

    fn mul(self, other: Symbol) -> Symbol {
        let mut product = Symbol::default();
        for i in 0..TERMS {
            for j in 0..TERMS - i {
                product.terms[i + j] += self.terms[i] * other.terms[j];
                product.sizes[i + j] += self.sizes[i] * other.sizes[j];
            }
        }
        product
    }

    fn halved(self) -> Symbol {
        Symbol {
            terms: self.terms.map(|t| 0.5 * t),
            sizes: self.sizes.map(|s| 0.5 * s),
        }
    }

    fn is_zero(self, power: usize) -> bool {
        self.terms[power].abs() <= ROUNDING * self.sizes[power]
    }

    fn vanishes(self) -> bool {
        (0..TERMS).all(|power| self.is_zero(power))
    }

    fn is_like(self, other: Symbol, power: usize) -> bool {
        let (a, b) = (self.terms[power], other.terms[power]);
        let small = ROUNDING * self.sizes[power].max(other.sizes[power]);
        (a - b).abs() <= ALIKE * a.abs().max(b.abs()) + small
    }
}

/// By component that is read.
type Row = BTreeMap<ComponentId, Symbol>;

/// The updates of a step at a place.
pub struct Rates<'a> {
    pub stages: &'a [Stage],
    pub coefs: &'a [Coef],
    /// By component its position.
    pub positions: &'a [Position],
    /// By stage whether each of its updates adds to the old value.
    pub advances: &'a dyn Fn(usize, &Update) -> bool,
}

impl Rates<'_> {
    /// Whether an update of a component, by values of the start of its step, has the second term of Taylor's series.
    /// `None`: it needs none at this place, or that cannot be told.
    pub fn has_second_term(&self, target: ComponentId, at: &Frozen) -> Option<bool> {
        let along = |direction: &[f64; 3]| {
            let rows = self.rows(at, *direction)?;
            needs_second_term(&rows, target)
                .then(|| moves_in_second_order(&rows, target) || is_by_parts(&rows, target))
        };
        let found: Option<Vec<bool>> = DIRECTIONS.iter().map(along).collect();
        found.map(|found| !found.contains(&false))
    }

    /// The change that a step makes to each component that it advances; `None` where that is not linear, or has higher
    /// powers alone.
    fn rows(&self, at: &Frozen, direction: [f64; 3]) -> Option<BTreeMap<ComponentId, Row>> {
        let coefs: Vec<f64> = self.coefs.iter().map(|c| c.value.eval(at)).collect();
        let mut sums: BTreeMap<ComponentId, Row> = BTreeMap::new();
        let mut functions: BTreeMap<ComponentId, Row> = BTreeMap::new();
        for (number, stage) in self.stages.iter().enumerate() {
            for update in &stage.updates {
                let mut row = self.row(update, &coefs, direction)?;
                let target = update.target;
                if (self.advances)(number, update) {
                    let own = row.entry(target).or_default();
                    own.terms[0] -= 1.0;
                    let sum = sums.entry(target).or_default();
                    for (of, symbol) in row {
                        sum.entry(of).or_default().add(symbol);
                    }
                } else if row.contains_key(&target) || functions.insert(target, row).is_some() {
                    return None;
                }
            }
        }
        if functions.keys().any(|c| sums.contains_key(c)) {
            return None;
        }
        let rows = sums.into_iter();
        rows.map(|(c, row)| Some((c, expanded(row, c, &functions)?)))
            .collect()
    }

    fn row(&self, update: &Update, coefs: &[f64], direction: [f64; 3]) -> Option<Row> {
        let mut row = Row::new();
        for (read, weight) in weights(&update.body, coefs).ok()? {
            let [to, from] = [update.target, read.component].map(|c| self.positions[c.index()]);
            let distance = displacement(to, from, read.offset).0;
            let along = distance.iter().zip(direction);
            let s: f64 = along.map(|(half, d)| half.as_f64() * d).sum();
            let (w, d) = (weight.abs(), s.abs());
            row.entry(read.component).or_default().add(Symbol {
                terms: [weight, weight * s, 0.5 * weight * s * s],
                sizes: [w, w * d, 0.5 * w * d * d],
            });
        }
        Some(row)
    }
}

/// A row of a component with the values that functions of other components have.
fn expanded(
    mut row: Row,
    target: ComponentId,
    functions: &BTreeMap<ComponentId, Row>,
) -> Option<Row> {
    for _ in 0..FUNCTIONS {
        let Some(of) = row.keys().copied().find(|c| functions.contains_key(c)) else {
            // An operator of the third power or a higher one is not told from none.
            let hidden =
                |(c, s): (&ComponentId, &Symbol)| *c != target && s.sizes[0] > 0.0 && s.vanishes();
            return (!row.iter().any(hidden)).then_some(row);
        };
        let factor = row.remove(&of)?;
        for (component, symbol) in &functions[&of] {
            row.entry(*component).or_default().add(factor.mul(*symbol));
        }
    }
    None
}

type Rows = BTreeMap<ComponentId, Row>;

fn entry(rows: &Rows, of: ComponentId, by: ComponentId) -> Symbol {
    let found = rows.get(&of).and_then(|row| row.get(&by));
    found.copied().unwrap_or_default()
}

/// Half of the change of a row's values, of the parts through some components.
fn half_of_change(
    rows: &Rows,
    target: ComponentId,
    by: ComponentId,
    through: impl Fn(ComponentId) -> bool,
) -> Symbol {
    let mut half = Symbol::default();
    for (of, symbol) in rows.get(&target).into_iter().flatten() {
        if through(*of) {
            half.add(symbol.mul(entry(rows, *of, by)).halved());
        }
    }
    half
}

fn needs_second_term(rows: &Rows, target: ComponentId) -> bool {
    let mut all = rows.values().flat_map(BTreeMap::keys);
    all.any(|by| !half_of_change(rows, target, *by, |_| true).vanishes())
}

/// Whether an update moves waves by first differences, and has half of the square of these.
fn moves_in_second_order(rows: &Rows, target: ComponentId) -> bool {
    let Some(row) = rows.get(&target) else {
        return false;
    };
    let reads = || row.keys().filter_map(|c| rows.get(c)).chain([row]);
    let has_rates = reads().flat_map(BTreeMap::values).any(|s| !s.is_zero(0));
    let moves = row.values().any(|s| !s.is_zero(1));
    let all = reads().flat_map(BTreeMap::keys);
    let is_second = |by: &ComponentId| {
        let half = half_of_change(rows, target, *by, |_| true);
        entry(rows, target, *by).is_like(half, 2)
    };
    moves && !has_rates && all.into_iter().all(is_second)
}

/// Whether an update has, beside the first terms of other components, their change as its own second term, as of
/// components that do not change by themselves.
fn is_by_parts(rows: &Rows, target: ComponentId) -> bool {
    let half =
        |of: ComponentId, by: ComponentId| half_of_change(rows, of, by, |c| c != of && c != by);
    let is_alike = |of: ComponentId, by: ComponentId| {
        let (own, half) = (entry(rows, of, by), half(of, by));
        (0..TERMS).all(|power| own.is_like(half, power))
    };
    let Some(row) = rows.get(&target) else {
        return false;
    };
    let others = || row.keys().copied().filter(|c| *c != target);
    let keep = |c: ComponentId| entry(rows, c, c).vanishes() || is_alike(c, c);
    let is_first_or_second = |c: ComponentId| half(target, c).vanishes() || is_alike(target, c);
    !half(target, target).vanishes()
        && is_alike(target, target)
        && others().all(|c| keep(c) && is_first_or_second(c))
}
