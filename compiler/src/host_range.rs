//! Between which values an expression of the host lies over a box of places.

use crate::host::{HostBinary, HostExpr, HostUnary};
use crate::lattice::{Axis, HalfIndex, Offset};
use crate::scheme::FileId;
use std::f64::consts::{PI, TAU};

/// All values from `lo` to `hi`. Bounds of results are the bounds of exact arithmetic up to rounding, or wider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub lo: f64,
    pub hi: f64,
}

/// The values that an expression can read, with ranges for places.
pub trait HostBox {
    fn coordinate(&self, axis: Axis, by: HalfIndex) -> Range;
    fn file(&self, file: FileId, offset: Offset) -> Range;
}

impl Range {
    pub const WHOLE: Range = Range {
        lo: f64::NEG_INFINITY,
        hi: f64::INFINITY,
    };
    const FALSE: Range = Range { lo: 0.0, hi: 0.0 };
    const TRUE: Range = Range { lo: 1.0, hi: 1.0 };
    const EITHER: Range = Range { lo: 0.0, hi: 1.0 };

    /// From one bound to the other; everything if one of them is no number.
    pub fn new(lo: f64, hi: f64) -> Self {
        if lo <= hi {
            Self { lo, hi }
        } else {
            Self::WHOLE
        }
    }

    pub fn point(value: f64) -> Self {
        Self::new(value, value)
    }

    pub fn hull(self, other: Self) -> Self {
        Self::new(self.lo.min(other.lo), self.hi.max(other.hi))
    }

    pub fn contains(self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    pub fn is_point(self) -> bool {
        self.lo == self.hi
    }

    /// Whether a bound is infinite: a value may be none, as after a division by zero, of which no function knows
    /// anything.
    fn is_unbounded(self) -> bool {
        self.lo.is_infinite() || self.hi.is_infinite()
    }

    /// The largest absolute value.
    pub fn size(self) -> f64 {
        self.lo.abs().max(self.hi.abs())
    }

    /// The range of a function that rises or falls all the way.
    pub fn monotone(self, f: impl Fn(f64) -> f64) -> Self {
        let (a, b) = (f(self.lo), f(self.hi));
        if self.is_unbounded() || a.is_nan() || b.is_nan() {
            return Self::WHOLE;
        }
        Self::new(a.min(b), a.max(b))
    }

    /// The range of an operation that takes its extremes where its operands do.
    pub fn corners(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let values = [
            f(self.lo, other.lo),
            f(self.lo, other.hi),
            f(self.hi, other.lo),
            f(self.hi, other.hi),
        ];
        if self.is_unbounded() || other.is_unbounded() || values.iter().any(|v| v.is_nan()) {
            return Self::WHOLE;
        }
        let lo = values.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self::new(lo, hi)
    }

    /// Whether it holds, where that is the same for all values.
    pub fn truth(self) -> Option<bool> {
        if self.is_point() && self.lo == 0.0 {
            Some(false)
        } else if !self.contains(0.0) {
            Some(true)
        } else {
            None
        }
    }

    /// The range of a condition; `truth`: its value for all arguments, if that is known.
    fn of_truth(truth: Option<bool>) -> Self {
        match truth {
            Some(true) => Self::TRUE,
            Some(false) => Self::FALSE,
            None => Self::EITHER,
        }
    }

    /// Whether all values are less than all values of another range, or none is.
    pub fn is_less(self, other: Self) -> Option<bool> {
        if self.hi < other.lo {
            Some(true)
        } else if self.lo >= other.hi {
            Some(false)
        } else {
            None
        }
    }

    /// Whether all values equal the values of another range, or none does.
    pub fn is_equal(self, other: Self) -> Option<bool> {
        if self.hi < other.lo || other.hi < self.lo {
            Some(false)
        } else if self.is_point() && other.is_point() && self.lo == other.lo {
            Some(true)
        } else {
            None
        }
    }

    /// Sine or cosine, whose peaks lie at `peak` and multiples of 2 pi from it, its troughs pi further.
    fn wave(self, f: fn(f64) -> f64, peak: f64) -> Self {
        let Range { lo, hi } = self;
        if self.is_unbounded() {
            return Self::WHOLE;
        }
        // Beyond, the distance to a peak is lost in rounding.
        let precise = lo.abs().max(hi.abs()) < 1e12;
        if !precise || hi - lo >= TAU {
            return Self { lo: -1.0, hi: 1.0 };
        }
        let between = |at: f64| ((hi - at) / TAU).floor() >= ((lo - at) / TAU).ceil();
        let ends = self.monotone(f);
        Self {
            lo: if between(peak + PI) { -1.0 } else { ends.lo },
            hi: if between(peak) { 1.0 } else { ends.hi },
        }
    }

    fn power(self, exponent: Self) -> Self {
        if self.is_unbounded() {
            return Self::WHOLE;
        }
        if exponent.is_point() && exponent.lo == exponent.lo.trunc() {
            let n = exponent.lo;
            let whole = self.monotone(|a| HostBinary::Pow.apply(a, n));
            return match (self.contains(0.0), n % 2.0 == 0.0, n < 0.0) {
                (_, _, _) if n == 0.0 => Self::point(1.0),
                (true, _, true) => Self::WHOLE,
                (true, true, false) => Self::new(0.0, whole.hi),
                _ => whole,
            };
        }
        if self.lo > 0.0 {
            return self.corners(exponent, |a, b| HostBinary::Pow.apply(a, b));
        }
        Self::WHOLE
    }
}

/// The range of an operation.
pub fn unary(op: HostUnary, a: Range) -> Range {
    match op {
        HostUnary::Neg => Range::new(-a.hi, -a.lo),
        HostUnary::Not => match a.truth() {
            Some(true) => Range::FALSE,
            Some(false) => Range::TRUE,
            None => Range::EITHER,
        },
        HostUnary::Abs if a.contains(0.0) && !a.is_unbounded() => Range::new(0.0, a.size()),
        HostUnary::Cos => a.wave(f64::cos, 0.0),
        HostUnary::Sin => a.wave(f64::sin, PI / 2.0),
        // Poles lie at the odd multiples of pi / 2.
        HostUnary::Tan => {
            let branch = |x: f64| ((x - PI / 2.0) / PI).floor();
            match a.lo.is_finite() && a.hi.is_finite() && branch(a.lo) == branch(a.hi) {
                true => a.monotone(f64::tan),
                false => Range::WHOLE,
            }
        }
        op => a.monotone(|x| op.apply(x)),
    }
}

/// The range of an operation with two operands.
pub fn binary(op: HostBinary, a: Range, b: Range) -> Range {
    use HostBinary as H;
    match op {
        H::Add => Range::new(a.lo + b.lo, a.hi + b.hi),
        H::Sub => Range::new(a.lo - b.hi, a.hi - b.lo),
        H::Mul => a.corners(b, |x, y| x * y),
        H::Div if b.contains(0.0) => Range::WHOLE,
        H::Div => a.corners(b, |x, y| x / y),
        H::Pow => a.power(b),
        H::Atan2 => {
            // The angle jumps on the negative half of the second operand's axis.
            if a.contains(0.0) && b.lo <= 0.0 && !a.is_unbounded() && !b.is_unbounded() {
                Range::new(-PI, PI)
            } else {
                a.corners(b, f64::atan2)
            }
        }
        H::Min | H::Max if a.is_unbounded() || b.is_unbounded() => Range::WHOLE,
        H::Min => Range::new(a.lo.min(b.lo), a.hi.min(b.hi)),
        H::Max => Range::new(a.lo.max(b.lo), a.hi.max(b.hi)),
        H::Lt => Range::of_truth(a.is_less(b)),
        H::Le => Range::of_truth(b.is_less(a).map(|less| !less)),
        H::Gt => Range::of_truth(b.is_less(a)),
        H::Ge => Range::of_truth(a.is_less(b).map(|less| !less)),
        H::Eq => Range::of_truth(a.is_equal(b)),
        H::Ne => Range::of_truth(a.is_equal(b).map(|equal| !equal)),
        H::And => Range::of_truth(match (a.truth(), b.truth()) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }),
        H::Or => Range::of_truth(match (a.truth(), b.truth()) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        }),
    }
}

/// The range of an expression's values over a box of places. Of one that depends on time nothing is known.
pub fn range(expr: &HostExpr, places: &impl HostBox) -> Range {
    match expr {
        HostExpr::Number(n) => Range::point(*n),
        HostExpr::Coordinate(axis, by) => places.coordinate(*axis, *by),
        HostExpr::Time => Range::WHOLE,
        HostExpr::File { file, offset } => places.file(*file, *offset),
        HostExpr::Table(table, argument) => {
            let argument = range(argument, places);
            if argument.is_unbounded() {
                return Range::WHOLE;
            }
            let [lo, hi] = table.extremes(argument.lo, argument.hi);
            Range::new(lo, hi)
        }
        HostExpr::Unary(op, a) => unary(*op, range(a, places)),
        HostExpr::Binary(op, a, b) => binary(*op, range(a, places), range(b, places)),
        HostExpr::If(c, a, b) => match range(c, places).truth() {
            Some(true) => range(a, places),
            Some(false) => range(b, places),
            None => range(a, places).hull(range(b, places)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostPoint;
    use crate::table::{Column, Table};
    use crate::testing::Rng;
    use std::sync::Arc;

    /// A box of coordinates without files.
    struct Places([Range; 3]);

    impl HostBox for Places {
        fn coordinate(&self, axis: Axis, by: HalfIndex) -> Range {
            let Range { lo, hi } = self.0[axis.index()];
            Range::new(lo + by.as_f64(), hi + by.as_f64())
        }
        fn file(&self, _: FileId, _: Offset) -> Range {
            Range::WHOLE
        }
    }

    struct Point([f64; 3]);

    impl HostPoint for Point {
        fn coordinate(&self, axis: Axis, by: HalfIndex) -> f64 {
            self.0[axis.index()] + by.as_f64()
        }
        fn time(&self) -> f64 {
            0.0
        }
        fn file(&self, _: FileId, _: Offset) -> f64 {
            f64::NAN
        }
    }

    /// A table with arguments from -3 on, and with another value beyond its ends or not.
    fn table(rng: &mut Rng) -> Arc<Table> {
        let mut at = -3.0;
        let lines = (0..rng.within(2, 400)).map(|_| {
            at += 0.01 + rng.float() * *rng.pick(&[0.01, 1.0]);
            format!("{at}, {}\n", 4.0 * rng.float() - 2.0)
        });
        let text: String = lines.collect();
        let outside = rng.once_in(2).then_some(2.5);
        Arc::new(Table::read("random.csv", &text, &Column::Number(2), outside).unwrap())
    }

    fn random(rng: &mut Rng, depth: u32) -> HostExpr {
        if depth == 0 || rng.once_in(6) {
            return match rng.below(3) {
                0 => HostExpr::Number(*rng.pick(&[0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5])),
                _ => HostExpr::Coordinate(*rng.pick(&Axis::ALL), HalfIndex(rng.within(-1, 1))),
            };
        }
        use HostBinary as B;
        use HostUnary as U;
        let unary = [
            U::Neg,
            U::Not,
            U::Abs,
            U::Sqrt,
            U::Exp,
            U::Log,
            U::Sin,
            U::Cos,
            U::Tan,
            U::Tanh,
            U::Floor,
            U::Ceil,
            U::Round,
        ];
        let binary = [
            B::Add,
            B::Sub,
            B::Mul,
            B::Div,
            B::Pow,
            B::Atan2,
            B::Min,
            B::Max,
            B::Lt,
            B::Le,
            B::Gt,
            B::Ge,
            B::Eq,
            B::Ne,
            B::And,
            B::Or,
            B::Add,
            B::Mul,
            B::Sub,
        ];
        let mut part = || Box::new(random(rng, depth - 1));
        let (a, b, c) = (part(), part(), part());
        match rng.below(9) {
            0 => HostExpr::If(a, b, c),
            8 => HostExpr::Table(table(rng), a),
            1 | 2 => HostExpr::Unary(*rng.pick(&unary), a),
            _ => HostExpr::Binary(*rng.pick(&binary), a, b),
        }
    }

    #[test]
    fn every_value_lies_in_the_range() {
        let mut rng = Rng::new(5);
        let (mut narrow, mut checked) = (0, 0);
        for _ in 0..4000 {
            let expr = random(&mut rng, 4);
            let places = Places([(); 3].map(|()| {
                let lo = 8.0 * rng.float() - 4.0;
                let width = *rng.pick(&[0.0, 0.1, 1.0, 8.0]);
                Range::new(lo, lo + width)
            }));
            let bounds = range(&expr, &places);
            narrow += u32::from(bounds.lo.is_finite() && bounds.hi.is_finite());
            for _ in 0..20 {
                let point = Point([0, 1, 2].map(|a| {
                    let Range { lo, hi } = places.0[a];
                    match rng.below(4) {
                        0 => lo,
                        1 => hi,
                        _ => lo + (hi - lo) * rng.float(),
                    }
                }));
                let value = expr.eval(&point);
                if value.is_finite() {
                    checked += 1;
                    let slack = 1e-9 * (1.0 + value.abs());
                    assert!(
                        bounds.lo - slack <= value && value <= bounds.hi + slack,
                        "{expr} is {value} in {:?} of {:?}, not in {bounds:?}",
                        point.0,
                        places.0
                    );
                }
            }
        }
        // Ranges that contain everything would pass, too.
        assert!(narrow > 2500 && checked > 50_000, "{narrow} {checked}");
    }

    #[test]
    fn ranges_are_tight() {
        let x = || Box::new(HostExpr::Coordinate(Axis::OUTER, HalfIndex::ZERO));
        let number = |n| Box::new(HostExpr::Number(n));
        let places = Places([Range::new(-1.0, 3.0), Range::WHOLE, Range::WHOLE]);
        for (expr, lo, hi) in [
            (
                HostExpr::Binary(HostBinary::Pow, x(), number(2.0)),
                0.0,
                9.0,
            ),
            (
                HostExpr::Binary(HostBinary::Pow, x(), number(3.0)),
                -1.0,
                27.0,
            ),
            (HostExpr::Unary(HostUnary::Abs, x()), 0.0, 3.0),
            (HostExpr::Unary(HostUnary::Cos, x()), 3f64.cos(), 1.0),
            (HostExpr::Unary(HostUnary::Sin, x()), (-1f64).sin(), 1.0),
            (HostExpr::Binary(HostBinary::Lt, x(), number(4.0)), 1.0, 1.0),
            (
                HostExpr::Binary(HostBinary::Lt, x(), number(-1.0)),
                0.0,
                0.0,
            ),
        ] {
            let bounds = range(&expr, &places);
            assert!(
                (bounds.lo - lo).abs() < 1e-12 && (bounds.hi - hi).abs() < 1e-12,
                "{expr} {bounds:?}"
            );
        }
    }
}
