//! Host expressions over whole rows: parts that do not change along the inner axis are computed once for a row, parts
//! that change along that axis alone once for all rows.

use crate::host::{HostExpr, HostPoint};
use crate::lattice::{Axis, Interval, PerAxis};
use crate::statics::GridPoint;
use std::collections::BTreeMap;

/// An expression that is evaluated in many rows, all of which run over the same indices of the inner axis, of one
/// position and at one time. The largest parts of it that depend on the inner axis alone have their values already.
#[derive(Debug)]
pub struct RowExpr<'e> {
    expr: &'e HostExpr,
    kept: Kept,
}

/// Parts of an expression, by their addresses, with their values along the inner axis.
#[derive(Debug, Default)]
struct Kept {
    /// The index of the first value.
    first: i64,
    of_part: BTreeMap<usize, Vec<f64>>,
}

impl Kept {
    /// The values of a part at `len` indices from `lo`.
    fn get(&self, part: &HostExpr, lo: i64, len: usize) -> Option<&[f64]> {
        let values = self.of_part.get(&address(part))?;
        Some(&values[(lo - self.first) as usize..][..len])
    }

    /// Keeps the largest parts of an expression that depend on the inner axis alone, but for the expression itself;
    /// gives the axes that the expression depends on.
    fn add(&mut self, expr: &HostExpr, rows: &mut Rows<'_>) -> Depends {
        let parts = match expr {
            HostExpr::Number(_) => return Depends::Nowhere,
            HostExpr::Coordinate(Axis::INNER, _) => return Depends::OnInner,
            HostExpr::Coordinate(..) | HostExpr::Time | HostExpr::File { .. } => {
                return Depends::OnMore;
            }
            HostExpr::Unary(_, a) | HostExpr::Table(_, a) => vec![&**a],
            HostExpr::Binary(_, a, b) => vec![&**a, &**b],
            HostExpr::If(c, a, b) => vec![&**c, &**a, &**b],
        };
        let depends: Vec<Depends> = parts.iter().map(|part| self.add(part, rows)).collect();
        let all = depends.iter().copied().max().unwrap_or(Depends::Nowhere);
        if all == Depends::OnMore {
            let on_inner = parts
                .iter()
                .zip(depends)
                .filter(|(_, d)| *d == Depends::OnInner);
            on_inner.for_each(|(part, _)| self.keep(part, rows));
        }
        all
    }

    /// Keeps the values of an expression, if there is room; coordinates themselves are not worth it.
    fn keep(&mut self, expr: &HostExpr, rows: &mut Rows<'_>) {
        let len = rows.cells.len() as usize;
        if matches!(expr, HostExpr::Coordinate(..)) {
            return;
        }
        if let Some(left) = rows.room.checked_sub(len) {
            *rows.room = left;
            let mut values = vec![0.0; len];
            expr.eval_row(&rows.point, rows.cells.lo, &mut values);
            self.of_part.insert(address(expr), values);
        }
    }
}

/// Rows of an expression.
struct Rows<'r> {
    point: GridPoint<'r>,
    /// Indices along the inner axis.
    cells: Interval,
    /// Values that may be kept.
    room: &'r mut usize,
}

/// The axes that an expression depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depends {
    Nowhere,
    /// The inner axis alone.
    OnInner,
    /// Other axes, files or time.
    OnMore,
}

fn address(part: &HostExpr) -> usize {
    std::ptr::from_ref(part).addr()
}

impl<'e> RowExpr<'e> {
    /// Of rows like that at `point`, over the indices `cells` of the inner axis. No more than `room` values are kept,
    /// which are taken from it.
    pub fn new(
        expr: &'e HostExpr,
        point: &GridPoint<'_>,
        cells: Interval,
        room: &mut usize,
    ) -> RowExpr<'e> {
        let mut kept = Kept {
            first: cells.lo,
            ..Kept::default()
        };
        let rows = &mut Rows {
            point: *point,
            cells,
            room,
        };
        if kept.add(expr, rows) == Depends::OnInner {
            kept.keep(expr, rows);
        }
        RowExpr { expr, kept }
    }

    /// The values at `cells` of a row, which are some of the indices that rows run over, with the same bits as `eval`
    /// of the expression at each of them.
    pub fn eval(&self, point: &GridPoint<'_>, cells: Interval) -> Vec<f64> {
        let mut values = vec![0.0; cells.len() as usize];
        let row = self.expr.row(&self.kept, point, cells.lo, values.len());
        row.put(&mut values);
        values
    }
}

/// A value for every index of a row, or one for all.
enum Row {
    One(f64),
    Each(Vec<f64>),
}

impl Row {
    fn put(self, out: &mut [f64]) {
        match self {
            Row::One(value) => out.fill(value),
            Row::Each(values) => out.copy_from_slice(&values),
        }
    }

    fn map(self, f: impl Fn(f64) -> f64) -> Row {
        match self {
            Row::One(a) => Row::One(f(a)),
            Row::Each(mut a) => {
                a.iter_mut().for_each(|a| *a = f(*a));
                Row::Each(a)
            }
        }
    }
}

impl HostExpr {
    /// Evaluates at `point` with the inner index running over `lo..lo + out.len()`. Gives the same bits as `eval`.
    pub fn eval_row(&self, point: &GridPoint<'_>, lo: i64, out: &mut [f64]) {
        self.row(&Kept::default(), point, lo, out.len()).put(out);
    }

    fn row(&self, kept: &Kept, point: &GridPoint<'_>, lo: i64, len: usize) -> Row {
        if let Some(values) = kept.get(self, lo, len) {
            return Row::Each(values.to_vec());
        }
        let at = |i: usize| {
            let mut p = *point;
            p.at = PerAxis([p.at[Axis::OUTER], p.at[Axis::MIDDLE], lo + i as i64]);
            p
        };
        match self {
            HostExpr::Coordinate(Axis::INNER, by) => {
                let coordinate = |i| at(i).coordinate(Axis::INNER, *by);
                Row::Each((0..len).map(coordinate).collect())
            }
            HostExpr::File { file, offset } => {
                Row::Each((0..len).map(|i| at(i).file(*file, *offset)).collect())
            }
            HostExpr::Number(_) | HostExpr::Coordinate(..) | HostExpr::Time => {
                Row::One(self.eval(point))
            }
            HostExpr::Unary(op, a) => a.row(kept, point, lo, len).map(|a| op.apply(a)),
            HostExpr::Table(table, a) => a.row(kept, point, lo, len).map(|a| table.value(a)),
            HostExpr::Binary(op, a, b) => {
                match (a.row(kept, point, lo, len), b.row(kept, point, lo, len)) {
                    (Row::One(a), Row::One(b)) => Row::One(op.apply(a, b)),
                    (Row::Each(mut a), Row::One(b)) => {
                        a.iter_mut().for_each(|a| *a = op.apply(*a, b));
                        Row::Each(a)
                    }
                    (Row::One(a), Row::Each(mut b)) => {
                        b.iter_mut().for_each(|b| *b = op.apply(a, *b));
                        Row::Each(b)
                    }
                    (Row::Each(mut a), Row::Each(b)) => {
                        a.iter_mut().zip(b).for_each(|(a, b)| *a = op.apply(*a, b));
                        Row::Each(a)
                    }
                }
            }
            HostExpr::If(c, a, b) => match c.row(kept, point, lo, len) {
                Row::One(c) => {
                    let chosen = if c != 0.0 { a } else { b };
                    chosen.row(kept, point, lo, len)
                }
                Row::Each(c) => {
                    let mut out = vec![0.0; len];
                    let mut other = vec![0.0; len];
                    a.row(kept, point, lo, len).put(&mut out);
                    b.row(kept, point, lo, len).put(&mut other);
                    for ((o, b), c) in out.iter_mut().zip(other).zip(c) {
                        if c == 0.0 {
                            *o = b;
                        }
                    }
                    Row::Each(out)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;
