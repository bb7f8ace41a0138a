//! Reductions over the grid: the one definition of the values that a [`Series`] records.
//!
//! Values are taken exactly, the expression is evaluated in double precision, operation by operation, and sums are
//! taken in two parts ([`Sum`]) in the order of the indices: along the inner axis, then the middle one; the sums of
//! planes of the outer axis are added in their order. So a record depends on the values alone, and not on the engine
//! that computed them, its order or its number of threads. The error of a sum is about 2^-100 of the sum of the
//! magnitudes, then rounded once.
//!
//! Minima and maxima are NaN where any value is.

use crate::lattice::{Axis, Interval, Offset, PerAxis, Region};
use crate::problem::{Reduction, Series, SeriesTerm};
use crate::real::Real;
use crate::scheme::{Body, ComponentId, Located, Op, Read, Scheme};
use crate::statics::{Files, GridPoint};

/// Values after a step, by rows.
pub trait RowValues: Sync {
    /// The values of a component along the inner axis over its extent, at indices along the others within it. `age` 0
    /// is the newest version.
    fn copy_row(&self, id: ComponentId, age: u8, x: i64, y: i64, to: &mut Vec<f64>);
}

/// A sum in two parts, whose second one is below the last bit of the first (D. E. Knuth, The Art of Computer
/// Programming, volume 2, 4.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    high: f64,
    low: f64,
    /// In one part, for sums that are not finite.
    plain: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let sum = self.high + value;
        let part = sum - self.high;
        let lost = (self.high - (sum - part)) + (value - part);
        let low = self.low + lost;
        self.high = sum + low;
        self.low = low - (self.high - sum);
        self.plain += value;
    }

    fn value(self) -> f64 {
        match self.high.is_finite() && self.low.is_finite() {
            true => self.high + self.low,
            false => self.plain,
        }
    }
}

/// The contribution of a plane across the outer axis to a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Partial {
    Sum(Sum),
    /// The least or largest value; `None` of nothing.
    Extreme(Option<f64>),
}

impl Partial {
    fn nothing(reduction: Reduction) -> Partial {
        match reduction {
            Reduction::Sum => Partial::Sum(Sum::default()),
            Reduction::Min | Reduction::Max => Partial::Extreme(None),
        }
    }

    fn take(&mut self, reduction: Reduction, value: f64) {
        match self {
            Partial::Sum(sum) => sum.add(value),
            Partial::Extreme(None) => *self = Partial::Extreme(Some(value)),
            Partial::Extreme(Some(found)) => {
                let better = match reduction {
                    Reduction::Min => value < *found,
                    _ => value > *found,
                };
                if better || value.is_nan() {
                    *found = if found.is_nan() { *found } else { value };
                }
            }
        }
    }

    /// Both, in this order.
    fn join(self, reduction: Reduction, other: Partial) -> Partial {
        let mut joined = self;
        match (&mut joined, other) {
            (Partial::Sum(all), Partial::Sum(more)) => {
                let plain = all.plain + more.plain;
                all.add(more.high);
                all.add(more.low);
                all.plain = plain;
            }
            (Partial::Extreme(_), Partial::Extreme(Some(value))) => joined.take(reduction, value),
            _ => {}
        }
        joined
    }
}

/// The planes across the outer axis that a record needs.
pub fn planes(series: &Series) -> Interval {
    let ranges = series.terms.iter().map(|term| term.region[Axis::OUTER]);
    ranges.reduce(Interval::hull).unwrap_or(Interval::new(0, 0))
}

/// The recorded value, from all its planes in ascending order.
pub fn total(series: &Series, partials: impl IntoIterator<Item = Partial>) -> f64 {
    let nothing = Partial::nothing(series.reduction);
    let all = partials
        .into_iter()
        .fold(nothing, |all, plane| all.join(series.reduction, plane));
    match all {
        Partial::Sum(sum) => sum.value(),
        Partial::Extreme(found) => found.unwrap_or(f64::NAN),
    }
}

/// The contribution of plane `x`, term after term.
pub fn plane(
    scheme: &Scheme,
    files: &dyn Files,
    series: &Series,
    rows: &dyn RowValues,
    step: u64,
    x: i64,
) -> Partial {
    let time = step as f64 * scheme.grid.dt;
    let mut partial = Partial::nothing(series.reduction);
    for term in &series.terms {
        if !term.region[Axis::OUTER].contains(x) {
            continue;
        }
        let mut evaluator = Evaluator {
            scheme,
            files,
            rows,
            term,
            time,
            row: Vec::new(),
            counts: Vec::new(),
            values: Vec::new(),
        };
        let Interval { lo, hi } = term.region[Axis::MIDDLE];
        for y in lo..hi {
            evaluator.row(x, y);
            let result = &evaluator.values[term.body.result.index()];
            for (value, counts) in result.iter().zip(&evaluator.counts) {
                if *counts != 0.0 {
                    partial.take(series.reduction, *value);
                }
            }
        }
    }
    partial
}

/// The record after `step` steps.
pub fn reduce(
    scheme: &Scheme,
    files: &dyn Files,
    series: &Series,
    rows: &dyn RowValues,
    step: u64,
) -> f64 {
    let Interval { lo, hi } = planes(series);
    let partials = (lo..hi).map(|x| plane(scheme, files, series, rows, step, x));
    total(series, partials)
}

/// A term over rows along the inner axis.
struct Evaluator<'a> {
    scheme: &'a Scheme,
    files: &'a dyn Files,
    rows: &'a dyn RowValues,
    term: &'a SeriesTerm,
    time: f64,
    row: Vec<f64>,
    /// Per index 0 where it does not count.
    counts: Vec<f64>,
    /// Per operation of the body.
    values: Vec<Vec<f64>>,
}

impl Evaluator<'_> {
    fn row(&mut self, x: i64, y: i64) {
        let term = self.term;
        let Interval { lo, hi } = term.region[Axis::INNER];
        let length = (hi - lo).max(0) as usize;
        let point = GridPoint {
            scheme: self.scheme,
            files: self.files,
            position: term.position,
            at: PerAxis([x, y, lo]),
            time: self.time,
        };
        self.counts.clear();
        self.counts.resize(length, 1.0);
        if let Some(condition) = &term.condition {
            condition.eval_row(&point, lo, &mut self.counts);
        }
        let Body { ops, .. } = &term.body;
        self.values.resize(ops.len(), Vec::new());
        for (i, op) in ops.iter().enumerate() {
            let mut out = std::mem::take(&mut self.values[i]);
            out.clear();
            match op {
                Op::Read(read) => self.read(read, PerAxis([x, y, lo]), length, &mut out),
                Op::Coef(id) => {
                    out.resize(length, 0.0);
                    term.coefs[id.index()].eval_row(&point, lo, &mut out);
                }
                op => apply(op, &self.values, length, &mut out),
            }
            self.values[i] = out;
        }
    }

    /// The values that a read finds from an index on along the inner axis.
    fn read(&mut self, read: &Read, from: PerAxis<i64>, length: usize, out: &mut Vec<f64>) {
        let grid = &self.scheme.grid;
        let component = self.scheme.component(read.component);
        let extent = grid.extent(component.position);
        let first = offset(from, read.offset);
        let last = first[Axis::INNER] + length as i64;
        // Rows that lie in the extent are copied.
        let mut inside: Region = extent;
        inside[Axis::INNER] = Interval::new(first[Axis::INNER], last);
        if inside.intersect(extent) == inside && inside.contains(first) {
            let PerAxis([x, y, z]) = first;
            self.rows
                .copy_row(read.component, read.age, x, y, &mut self.row);
            out.extend_from_slice(&self.row[z as usize..last as usize]);
            return;
        }
        let mut copied = None;
        for z in first[Axis::INNER]..last {
            let at = PerAxis([first[Axis::OUTER], first[Axis::MIDDLE], z]);
            out.push(match grid.resolve(component.position, at) {
                Located::Zero => 0.0,
                Located::Stored { at, negated } => {
                    let PerAxis([x, y, z]) = at;
                    if copied != Some((x, y)) {
                        self.rows
                            .copy_row(read.component, read.age, x, y, &mut self.row);
                        copied = Some((x, y));
                    }
                    let value = self.row[z as usize];
                    if negated { -value } else { value }
                }
            });
        }
    }
}

fn offset(at: PerAxis<i64>, by: Offset) -> PerAxis<i64> {
    PerAxis::from_fn(|a| at[a] + i64::from(by[a]))
}

/// An operation without reads over a row.
fn apply(op: &Op, values: &[Vec<f64>], length: usize, out: &mut Vec<f64>) {
    let of = |v: crate::scheme::Value| values[v.index()].iter().copied();
    match *op {
        // Done by the caller.
        Op::Read(_) | Op::Coef(_) | Op::Base | Op::State(_) => {}
        Op::Const(c) => out.resize(length, c),
        Op::Neg(a) => out.extend(of(a).map(|a| -a)),
        Op::Abs(a) => out.extend(of(a).map(f64::abs)),
        Op::Flush(a) => out.extend(of(a)),
        Op::Sqrt(a) => out.extend(of(a).map(f64::sqrt)),
        Op::Power2(a) => out.extend(of(a).map(Real::power2)),
        Op::Exponent(a) => out.extend(of(a).map(Real::exponent)),
        Op::Add(a, b) => out.extend(of(a).zip(of(b)).map(|(a, b)| a + b)),
        Op::Sub(a, b) => out.extend(of(a).zip(of(b)).map(|(a, b)| a - b)),
        Op::Mul(a, b) => out.extend(of(a).zip(of(b)).map(|(a, b)| a * b)),
        Op::Div(a, b) => out.extend(of(a).zip(of(b)).map(|(a, b)| a / b)),
        Op::Fma(a, b, c) => {
            let factors = of(a).zip(of(b));
            out.extend(factors.zip(of(c)).map(|((a, b), c)| a.mul_add(b, c)));
        }
        Op::Select {
            cmp,
            a,
            b,
            then,
            otherwise,
        } => {
            let sides = of(then).zip(of(otherwise));
            let chosen = of(a).zip(of(b)).zip(sides);
            out.extend(chosen.map(
                |((a, b), (then, otherwise))| {
                    if a.compare(cmp, b) { then } else { otherwise }
                },
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> f64 {
        let mut sum = Sum::default();
        values.iter().for_each(|value| sum.add(*value));
        sum.value()
    }

    #[test]
    fn sums_keep_what_cancels() {
        assert_eq!(sum(&[1e16, 1.0, -1e16]), 1.0);
        assert_eq!(sum(&[1.0, 1e-20, -1.0]), 1e-20);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        let many = [1.0, 1e-16].repeat(100_000);
        assert_eq!(sum(&many), 100_000.0 + 1e-11);
        assert_eq!(sum(&[1.0, f64::INFINITY, 2.0]), f64::INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert!(sum(&[1.0, f64::NAN]).is_nan());
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
    }

    #[test]
    fn extremes_are_nan_where_a_value_is() {
        let of = |reduction, values: &[f64]| {
            let mut partial = Partial::nothing(reduction);
            values
                .iter()
                .for_each(|value| partial.take(reduction, *value));
            match partial {
                Partial::Extreme(found) => found,
                Partial::Sum(_) => None,
            }
        };
        assert_eq!(of(Reduction::Max, &[1.0, 3.0, 2.0]), Some(3.0));
        assert_eq!(of(Reduction::Min, &[1.0, -3.0, 2.0]), Some(-3.0));
        assert_eq!(of(Reduction::Min, &[]), None);
        for values in [[f64::NAN, 1.0, 2.0], [1.0, f64::NAN, 2.0]] {
            assert!(of(Reduction::Max, &values).is_some_and(f64::is_nan));
            assert!(of(Reduction::Min, &values).is_some_and(f64::is_nan));
        }
    }
}
