//! Host expressions over a whole row at once: what does not change along the inner axis is computed once.

use crate::host::{HostExpr, HostPoint};
use crate::lattice::{Axis, PerAxis};
use crate::statics::GridPoint;

/// A value for every index of a row, or one for all.
enum Row {
    One(f64),
    Each(Vec<f64>),
}

impl Row {
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
        match self.row(point, lo, out.len()) {
            Row::One(value) => out.fill(value),
            Row::Each(values) => out.copy_from_slice(&values),
        }
    }

    fn row(&self, point: &GridPoint<'_>, lo: i64, len: usize) -> Row {
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
            HostExpr::Unary(op, a) => a.row(point, lo, len).map(|a| op.apply(a)),
            HostExpr::Table(table, a) => a.row(point, lo, len).map(|a| table.value(a)),
            HostExpr::Binary(op, a, b) => match (a.row(point, lo, len), b.row(point, lo, len)) {
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
            },
            HostExpr::If(c, a, b) => match c.row(point, lo, len) {
                Row::One(c) => {
                    let chosen = if c != 0.0 { a } else { b };
                    chosen.row(point, lo, len)
                }
                Row::Each(c) => {
                    let mut out = vec![0.0; len];
                    let mut other = vec![0.0; len];
                    a.eval_row(point, lo, &mut out);
                    b.eval_row(point, lo, &mut other);
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
