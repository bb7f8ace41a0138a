//! Expressions that the host evaluates in double precision: coefficients, initial values, sources.

use crate::lattice::{Axis, HalfIndex, Offset};
use crate::scheme::FileId;
use crate::table::Table;
use std::fmt;
use std::sync::Arc;

/// A number as a function of position, time and static files. Conditions are numbers too: 0 is false.
#[derive(Clone, Debug, PartialEq)]
pub enum HostExpr {
    Number(f64),
    /// The position along an axis, some half cells farther, times the cell size. Around a periodic axis positions start
    /// anew at 0.
    Coordinate(Axis, HalfIndex),
    /// Physical time.
    Time,
    /// A value of a file at an offset from the index where the expression is evaluated; indices beyond its ends
    /// read the nearest value, or go around a periodic axis.
    File {
        file: FileId,
        offset: Offset,
    },
    /// The value of a table at an argument.
    Table(Arc<Table>, Box<HostExpr>),
    Unary(HostUnary, Box<HostExpr>),
    Binary(HostBinary, Box<HostExpr>, Box<HostExpr>),
    If(Box<HostExpr>, Box<HostExpr>, Box<HostExpr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostUnary {
    Neg,
    Not,
    Abs,
    Sqrt,
    Exp,
    Log,
    Sin,
    Cos,
    Tan,
    Tanh,
    Floor,
    Ceil,
    Round,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostBinary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Atan2,
    Min,
    Max,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    And,
    Or,
}

/// The values that a host expression can read.
pub trait HostPoint {
    fn coordinate(&self, axis: Axis, by: HalfIndex) -> f64;
    fn time(&self) -> f64;
    fn file(&self, file: FileId, offset: Offset) -> f64;
}

/// A point with coordinates and time but no files; cells have size 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct At {
    pub position: [f64; 3],
    pub time: f64,
}

impl HostPoint for At {
    fn coordinate(&self, axis: Axis, by: HalfIndex) -> f64 {
        self.position[axis.index()] + by.as_f64()
    }
    fn time(&self) -> f64 {
        self.time
    }
    fn file(&self, _: FileId, _: Offset) -> f64 {
        f64::NAN
    }
}

impl HostUnary {
    pub fn apply(self, a: f64) -> f64 {
        match self {
            HostUnary::Neg => -a,
            HostUnary::Not => f64::from(a == 0.0),
            HostUnary::Abs => a.abs(),
            HostUnary::Sqrt => a.sqrt(),
            HostUnary::Exp => a.exp(),
            HostUnary::Log => a.ln(),
            HostUnary::Sin => a.sin(),
            HostUnary::Cos => a.cos(),
            HostUnary::Tan => a.tan(),
            HostUnary::Tanh => a.tanh(),
            HostUnary::Floor => a.floor(),
            HostUnary::Ceil => a.ceil(),
            HostUnary::Round => a.round(),
        }
    }
}

impl HostBinary {
    /// Whether it is written as a function of two arguments.
    pub fn is_function(self) -> bool {
        use HostBinary::{Atan2, Max, Min};
        matches!(self, Atan2 | Min | Max)
    }

    /// An operator or a function of two arguments as it is written.
    pub fn sign(self) -> &'static str {
        match self {
            HostBinary::Add => "+",
            HostBinary::Sub => "-",
            HostBinary::Mul => "*",
            HostBinary::Div => "/",
            HostBinary::Pow => "^",
            HostBinary::Atan2 => "atan2",
            HostBinary::Min => "min",
            HostBinary::Max => "max",
            HostBinary::Lt => "<",
            HostBinary::Le => "<=",
            HostBinary::Gt => ">",
            HostBinary::Ge => ">=",
            HostBinary::Eq => "==",
            HostBinary::Ne => "!=",
            HostBinary::And => "and",
            HostBinary::Or => "or",
        }
    }

    pub fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            HostBinary::Add => a + b,
            HostBinary::Sub => a - b,
            HostBinary::Mul => a * b,
            HostBinary::Div => a / b,
            HostBinary::Pow => power(a, b),
            HostBinary::Atan2 => a.atan2(b),
            HostBinary::Min => {
                if a < b {
                    a
                } else {
                    b
                }
            }
            HostBinary::Max => {
                if a > b {
                    a
                } else {
                    b
                }
            }
            HostBinary::Lt => f64::from(a < b),
            HostBinary::Le => f64::from(a <= b),
            HostBinary::Gt => f64::from(a > b),
            HostBinary::Ge => f64::from(a >= b),
            HostBinary::Eq => f64::from(a == b),
            HostBinary::Ne => f64::from(a != b),
            HostBinary::And => f64::from(a != 0.0 && b != 0.0),
            HostBinary::Or => f64::from(a != 0.0 || b != 0.0),
        }
    }
}

/// Whether a power with this exponent is a product of few factors.
pub fn is_product(exponent: f64) -> bool {
    exponent == exponent.trunc() && exponent.abs() <= 64.0
}

/// Small integer powers are products, so that `x^2` is exactly `x * x`.
fn power(a: f64, b: f64) -> f64 {
    if is_product(b) {
        let mut result = 1.0;
        let mut base = a;
        let mut n = b.abs() as u32;
        while n > 0 {
            if n & 1 == 1 {
                result *= base;
            }
            base *= base;
            n >>= 1;
        }
        if b < 0.0 { 1.0 / result } else { result }
    } else {
        a.powf(b)
    }
}

impl HostExpr {
    pub fn unary(op: HostUnary, a: HostExpr) -> Self {
        match a {
            HostExpr::Number(a) => HostExpr::Number(op.apply(a)),
            a => HostExpr::Unary(op, Box::new(a)),
        }
    }

    /// The axis that the expression depends on, if it depends on one and on nothing else.
    pub fn only_axis(&self) -> Option<Axis> {
        let mut found = None;
        let mut open = vec![self];
        while let Some(e) = open.pop() {
            match e {
                HostExpr::Number(_) => {}
                HostExpr::Coordinate(axis, _) => match found {
                    Some(other) if other != *axis => return None,
                    _ => found = Some(*axis),
                },
                HostExpr::Time | HostExpr::File { .. } => return None,
                HostExpr::Table(_, a) | HostExpr::Unary(_, a) => open.push(a),
                HostExpr::Binary(_, a, b) => open.extend([&**a, &**b]),
                HostExpr::If(a, b, c) => open.extend([&**a, &**b, &**c]),
            }
        }
        found
    }

    pub fn binary(op: HostBinary, a: HostExpr, b: HostExpr) -> Self {
        match (a, b) {
            (HostExpr::Number(a), HostExpr::Number(b)) => HostExpr::Number(op.apply(a, b)),
            (a, b) => HostExpr::Binary(op, Box::new(a), Box::new(b)),
        }
    }

    pub fn eval(&self, point: &impl HostPoint) -> f64 {
        match self {
            HostExpr::Number(n) => *n,
            HostExpr::Coordinate(axis, by) => point.coordinate(*axis, *by),
            HostExpr::Time => point.time(),
            HostExpr::File { file, offset } => point.file(*file, *offset),
            HostExpr::Table(table, a) => table.value(a.eval(point)),
            HostExpr::Unary(op, a) => op.apply(a.eval(point)),
            HostExpr::Binary(op, a, b) => op.apply(a.eval(point), b.eval(point)),
            HostExpr::If(c, a, b) => {
                if c.eval(point) != 0.0 {
                    a.eval(point)
                } else {
                    b.eval(point)
                }
            }
        }
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            HostExpr::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// Whether `f` holds for any node.
    pub fn any(&self, f: &mut impl FnMut(&HostExpr) -> bool) -> bool {
        f(self)
            || match self {
                HostExpr::Number(_)
                | HostExpr::Coordinate(..)
                | HostExpr::Time
                | HostExpr::File { .. } => false,
                HostExpr::Table(_, a) | HostExpr::Unary(_, a) => a.any(f),
                HostExpr::Binary(_, a, b) => a.any(f) || b.any(f),
                HostExpr::If(c, a, b) => c.any(f) || a.any(f) || b.any(f),
            }
    }

    pub fn depends_on_time(&self) -> bool {
        self.any(&mut |e| matches!(e, HostExpr::Time))
    }

    pub fn depends_on_place(&self) -> bool {
        self.any(&mut |e| matches!(e, HostExpr::Coordinate(..) | HostExpr::File { .. }))
    }

    /// Splits into (factor of place, factor of time) whose product this is, if it is such a product.
    pub fn separate(&self) -> Option<(HostExpr, HostExpr)> {
        if !self.depends_on_time() {
            return Some((self.clone(), HostExpr::Number(1.0)));
        }
        if !self.depends_on_place() {
            return Some((HostExpr::Number(1.0), self.clone()));
        }
        match self {
            HostExpr::Unary(HostUnary::Neg, a) => {
                let (p, t) = a.separate()?;
                Some((HostExpr::unary(HostUnary::Neg, p), t))
            }
            HostExpr::Binary(op @ (HostBinary::Mul | HostBinary::Div), a, b) => {
                let (pa, ta) = a.separate()?;
                let (pb, tb) = b.separate()?;
                Some((HostExpr::binary(*op, pa, pb), HostExpr::binary(*op, ta, tb)))
            }
            _ => None,
        }
    }
}

impl fmt::Display for HostExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostExpr::Number(n) => write!(f, "{n:?}"),
            HostExpr::Coordinate(axis, HalfIndex::ZERO) => write!(f, "pos.{axis}"),
            HostExpr::Coordinate(axis, by) => write!(f, "pos.{axis}[{by}]"),
            HostExpr::Time => f.write_str("t"),
            HostExpr::File { file, offset } => {
                let [a, b, c] = offset.0;
                write!(f, "{file}[{a}, {b}, {c}]")
            }
            HostExpr::Table(table, a) => write!(f, "{table}({a})"),
            HostExpr::Unary(op, a) => write!(f, "{}({a})", format!("{op:?}").to_lowercase()),
            HostExpr::Binary(op, a, b) => match op.is_function() {
                true => write!(f, "{}({a}, {b})", op.sign()),
                false => write!(f, "({a} {} {b})", op.sign()),
            },
            HostExpr::If(c, a, b) => write!(f, "(if {c} then {a} else {b})"),
        }
    }
}
