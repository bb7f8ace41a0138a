//! Host expressions as C, with the same bits: products go through a function whose result the C compiler cannot fuse
//! into an addition, and powers are taken as the compiler takes them.

use super::tables;
use std::sync::Arc;
use torre_compiler::host::{HostBinary, HostExpr, HostUnary};
use torre_compiler::lattice::{HalfIndex, PerAxis};
use torre_compiler::table::Table;

/// C for an expression at a point of a component: `x`, `y`, `z` are cell indices, `t` is the time.
pub struct Expressions<'a> {
    /// The prefix of all names.
    pub prefix: &'a str,
    /// The position of the component in its cell.
    pub stagger: PerAxis<HalfIndex>,
    /// The half cells of a periodic axis.
    pub ring: PerAxis<Option<i64>>,
    /// The cell size.
    pub spacing: PerAxis<f64>,
    pub tables: &'a [Arc<Table>],
}

/// A number that reads back as the same one.
pub fn number(n: f64) -> String {
    if n.is_nan() {
        "(0.0 / 0.0)".into()
    } else if n.is_infinite() {
        let sign = if n < 0.0 { "-" } else { "" };
        format!("({sign}1.0 / 0.0)")
    } else {
        // A sign in brackets cannot run into another operator.
        let text = format!("{n:?}");
        if n.is_sign_negative() {
            format!("({text})")
        } else {
            text
        }
    }
}

impl Expressions<'_> {
    /// The expression as C of type `double`.
    pub fn print(&self, e: &HostExpr) -> String {
        let p = self.prefix;
        match e {
            HostExpr::Number(n) => number(*n),
            HostExpr::Coordinate(axis, by) => {
                let index = ["x", "y", "z"][axis.index()];
                let spacing = number(self.spacing[*axis]);
                let halves = (self.stagger[*axis] + *by).0;
                match self.ring[*axis] {
                    // Positions go around a periodic axis.
                    Some(ring) if *by != HalfIndex::ZERO => format!(
                        "{p}_mul((double)(((2 * {index} + ({halves})) % {ring} + {ring}) % {ring}) / 2.0, {spacing})"
                    ),
                    _ => format!("{p}_mul((double)(2 * {index} + ({halves})) / 2.0, {spacing})"),
                }
            }
            HostExpr::Time => "t".into(),
            HostExpr::File { file, offset } => {
                let [a, b, c] = offset.0;
                let index = file.0;
                format!("{p}_file(files, {index}, x + ({a}), y + ({b}), z + ({c}))")
            }
            HostExpr::Table(table, a) => tables::call(p, self.tables, table, &self.print(a)),
            HostExpr::Unary(op, a) => self.unary(*op, &self.print(a)),
            HostExpr::Binary(op, a, b) => self.binary(*op, &self.print(a), &self.print(b)),
            HostExpr::If(c, a, b) => {
                let (c, a, b) = (self.print(c), self.print(a), self.print(b));
                format!("({c} != 0.0 ? {a} : {b})")
            }
        }
    }

    fn unary(&self, op: HostUnary, a: &str) -> String {
        let function = match op {
            HostUnary::Neg => return format!("(-{a})"),
            HostUnary::Not => return format!("(double)({a} == 0.0)"),
            HostUnary::Abs => "fabs",
            HostUnary::Sqrt => "sqrt",
            HostUnary::Exp => "exp",
            HostUnary::Log => "log",
            HostUnary::Sin => "sin",
            HostUnary::Cos => "cos",
            HostUnary::Tan => "tan",
            HostUnary::Tanh => "tanh",
            HostUnary::Floor => "floor",
            HostUnary::Ceil => "ceil",
            HostUnary::Round => "round",
        };
        format!("{function}({a})")
    }

    fn binary(&self, op: HostBinary, a: &str, b: &str) -> String {
        let p = self.prefix;
        let infix = match op {
            HostBinary::Add => "+",
            HostBinary::Sub => "-",
            HostBinary::Div => "/",
            HostBinary::Mul => return format!("{p}_mul({a}, {b})"),
            HostBinary::Pow => return format!("{p}_pow({a}, {b})"),
            HostBinary::Atan2 => return format!("atan2({a}, {b})"),
            HostBinary::Min => return format!("{p}_min({a}, {b})"),
            HostBinary::Max => return format!("{p}_max({a}, {b})"),
            HostBinary::And => return format!("(double)({a} != 0.0 && {b} != 0.0)"),
            HostBinary::Or => return format!("(double)({a} != 0.0 || {b} != 0.0)"),
            HostBinary::Lt => "<",
            HostBinary::Le => "<=",
            HostBinary::Gt => ">",
            HostBinary::Ge => ">=",
            HostBinary::Eq => "==",
            HostBinary::Ne => "!=",
        };
        match op {
            HostBinary::Add | HostBinary::Sub | HostBinary::Div => format!("({a} {infix} {b})"),
            _ => format!("(double)({a} {infix} {b})"),
        }
    }
}

/// Three numbers as an initializer in C.
pub fn triple<T: std::fmt::Display>(values: PerAxis<T>) -> String {
    let [x, y, z] = values.0;
    format!("{{{x}, {y}, {z}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_compiler::lattice::Axis;

    #[test]
    fn expressions_become_c() {
        let c = Expressions {
            prefix: "p",
            stagger: PerAxis([0, 1, 0]).map(HalfIndex),
            ring: PerAxis([None, Some(8), None]),
            spacing: PerAxis([1.0, 0.1, 2.0]),
            tables: &[],
        };
        let y = HostExpr::Coordinate(Axis::MIDDLE, HalfIndex::ZERO);
        let e = HostExpr::binary(
            HostBinary::Sub,
            HostExpr::unary(HostUnary::Exp, y.clone()),
            HostExpr::Number(-1.5),
        );
        assert_eq!(
            c.print(&e),
            "(exp(p_mul((double)(2 * y + (1)) / 2.0, 0.1)) - (-1.5))"
        );
        let chosen = HostExpr::If(
            Box::new(HostExpr::binary(HostBinary::Lt, y, HostExpr::Time)),
            Box::new(HostExpr::Number(1e-30)),
            Box::new(HostExpr::Number(f64::NEG_INFINITY)),
        );
        assert_eq!(
            c.print(&chosen),
            "((double)(p_mul((double)(2 * y + (1)) / 2.0, 0.1) < t) != 0.0 ? 1e-30 : (-1.0 / 0.0))"
        );
    }
}
