//! Host expressions as C, with the same bits: products go through a function whose result the C compiler cannot fuse
//! into an addition, and powers are taken as the compiler takes them. Parts of deep expressions have names: compilers
//! take few brackets within each other.

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

/// Brackets within each other from which on a part of an expression has a name. C99 promises 63; a few come around it.
const DEEPEST: usize = 50;

/// Named parts of expressions: statements before the expressions that take them.
#[derive(Default)]
pub struct Parts {
    /// How many have names.
    named: usize,
    statements: String,
}

impl Parts {
    /// The text, or a name for it where it is deep.
    fn shallow(&mut self, text: String) -> String {
        if depth(&text) < DEEPEST {
            return text;
        }
        let name = format!("part{}", self.named);
        self.named += 1;
        self.statements
            .push_str(&format!("      const double {name} = {text};\n"));
        name
    }

    /// The statements since the last call.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.statements)
    }
}

/// How many brackets of C are within each other.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0, 0);
    for byte in text.bytes() {
        match byte {
            b'(' => open += 1,
            b')' => open -= 1,
            _ => continue,
        }
        deepest = deepest.max(open);
    }
    deepest
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
    /// The expression as C of type `double`, and its named parts. A choice may compute both of its values then, which
    /// has no other effects.
    pub fn print(&self, e: &HostExpr, parts: &mut Parts) -> String {
        let p = self.prefix;
        let mut print = |e: &HostExpr| {
            let text = self.print(e, parts);
            parts.shallow(text)
        };
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
            HostExpr::Table(table, a) => tables::call(p, self.tables, table, &print(a)),
            HostExpr::Unary(op, a) => self.unary(*op, &print(a)),
            HostExpr::Binary(op, a, b) => {
                let (a, b) = (print(a), print(b));
                self.binary(*op, &a, &b)
            }
            HostExpr::If(c, a, b) => {
                let (c, a, b) = (print(c), print(a), print(b));
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
            c.print(&e, &mut Parts::default()),
            "(exp(p_mul((double)(2 * y + (1)) / 2.0, 0.1)) - (-1.5))"
        );
        let chosen = HostExpr::If(
            Box::new(HostExpr::binary(HostBinary::Lt, y, HostExpr::Time)),
            Box::new(HostExpr::Number(1e-30)),
            Box::new(HostExpr::Number(f64::NEG_INFINITY)),
        );
        assert_eq!(
            c.print(&chosen, &mut Parts::default()),
            "((double)(p_mul((double)(2 * y + (1)) / 2.0, 0.1) < t) != 0.0 ? 1e-30 : (-1.0 / 0.0))"
        );
    }

    #[test]
    fn parts_of_deep_expressions_have_names() {
        let c = Expressions {
            prefix: "p",
            stagger: PerAxis([0, 0, 0]).map(HalfIndex),
            ring: PerAxis([None, None, None]),
            spacing: PerAxis([1.0, 1.0, 1.0]),
            tables: &[],
        };
        for op in [HostBinary::Add, HostBinary::Mul, HostBinary::Min] {
            let mut e = HostExpr::Time;
            for _ in 0..400 {
                e = HostExpr::binary(op, e, HostExpr::Time);
            }
            let mut parts = Parts::default();
            let value = c.print(&e, &mut parts);
            let statements = parts.take();
            let texts = statements.lines().chain([&*value]);
            assert!(texts.clone().count() > 4 && texts.clone().all(|text| depth(text) <= 63));
            let words = texts.flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
            assert_eq!(words.filter(|word| *word == "t").count(), 401);
            assert!(value.contains("part6") && statements.contains("const double part6 = "));
            assert_eq!(parts.take(), "");
        }
    }
}
