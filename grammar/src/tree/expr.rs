//! Expressions: precedence, literals and calls.

use super::{Builder, MAX_EXPRESSION, Rule, first, parts};
use crate::ast::{Arg, BinaryOp, Expr, ExprKind, Level, UnaryOp};
use crate::codes;
use crate::diag::Diagnostic;
use crate::layout::shorten;
use crate::source::{Span, Spanned};
use pest::iterators::Pair;
use std::collections::VecDeque;

/// How tightly an operator binds; more is tighter.
type Binding = u8;

const OR: Binding = 1;
const AND: Binding = 2;
const NOT: Binding = 3;
const COMPARE: Binding = 4;
const SUM: Binding = 5;
const PRODUCT: Binding = 6;
const SIGN: Binding = 7;
const POWER: Binding = 8;

/// An expression and the depth of its tree.
struct Deep {
    expr: Expr,
    depth: u32,
    /// An `if` without parentheses, which may only stand alone.
    open_if: bool,
}

/// One token of a row of operands and operators.
enum Link {
    Prefix(Prefix, Span),
    Operand(Deep),
    Op(BinaryOp, Span),
}

#[derive(Clone, Copy, PartialEq)]
enum Prefix {
    Plus,
    Minus,
    Not,
}

fn binding(op: BinaryOp) -> Binding {
    match op {
        BinaryOp::Or => OR,
        BinaryOp::And => AND,
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => {
            COMPARE
        }
        BinaryOp::Add | BinaryOp::Sub => SUM,
        BinaryOp::Mul | BinaryOp::Div => PRODUCT,
        BinaryOp::Pow => POWER,
    }
}

fn binary_op(text: &str) -> Option<BinaryOp> {
    Some(match text {
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Sub,
        "*" => BinaryOp::Mul,
        "/" => BinaryOp::Div,
        "^" => BinaryOp::Pow,
        "<" => BinaryOp::Lt,
        "<=" => BinaryOp::Le,
        ">" => BinaryOp::Gt,
        ">=" => BinaryOp::Ge,
        "==" => BinaryOp::Eq,
        "!=" => BinaryOp::Ne,
        "and" => BinaryOp::And,
        "or" => BinaryOp::Or,
        _ => return None,
    })
}

/// The level that `@prev` or `@next` names.
pub(super) fn level(pair: Pair<'_, Rule>) -> Option<Level> {
    match first(pair)?.as_str() {
        "next" => Some(Level::Next),
        "prev" => Some(Level::Prev),
        _ => None,
    }
}

impl Builder<'_> {
    pub(super) fn expr(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        Some(self.deep(pair)?.expr)
    }

    pub(super) fn exprs<'i>(
        &mut self,
        pairs: impl Iterator<Item = Pair<'i, Rule>>,
    ) -> Option<Vec<Expr>> {
        pairs.map(|pair| self.expr(pair)).collect()
    }

    fn deep(&mut self, pair: Pair<'_, Rule>) -> Option<Deep> {
        let mut row = VecDeque::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::op => row.push_back(Link::Op(binary_op(part.as_str())?, self.span(&part))),
                _ => self.operand(part, &mut row)?,
            }
        }
        self.climb(&mut row, 0, 0)
    }

    /// A node above others. Too deep a tree is reported and replaced.
    fn above(&mut self, kind: ExprKind, span: Span, below: u32) -> Deep {
        if below < MAX_EXPRESSION {
            return Deep {
                expr: Spanned::new(kind, span),
                depth: below + 1,
                open_if: false,
            };
        }
        self.refused(span)
    }

    /// Stands for an expression that is too long, after the error was reported.
    fn refused(&mut self, span: Span) -> Deep {
        self.too_long(span);
        Deep {
            expr: Spanned::new(ExprKind::Number(0.0), span),
            depth: 1,
            open_if: false,
        }
    }

    /// Reads operators that bind at least as tightly as `least`.
    ///
    /// Signs, `not` and powers recurse as often as they follow each other. `level` counts that; where it passes the
    /// depth that a tree may have anyway, the rest of the row is dropped.
    fn climb(&mut self, row: &mut VecDeque<Link>, least: Binding, level: u32) -> Option<Deep> {
        if level > MAX_EXPRESSION + 32 {
            let span = match row.front()? {
                Link::Prefix(_, span) | Link::Op(_, span) => *span,
                Link::Operand(operand) => operand.expr.span,
            };
            row.clear();
            return Some(self.refused(span));
        }
        let mut left = match row.pop_front()? {
            Link::Operand(operand) => operand,
            Link::Prefix(prefix, span) => {
                let own = if prefix == Prefix::Not { NOT } else { SIGN };
                if own < least && prefix == Prefix::Not {
                    self.needs_parentheses("not", span);
                }
                let operand = self.climb(row, own, level + 1)?;
                self.closed(&operand);
                let whole = span.to(operand.expr.span);
                match prefix {
                    Prefix::Plus => operand,
                    Prefix::Minus => self.above(
                        ExprKind::Unary(UnaryOp::Neg, Box::new(operand.expr)),
                        whole,
                        operand.depth,
                    ),
                    Prefix::Not => self.above(
                        ExprKind::Unary(UnaryOp::Not, Box::new(operand.expr)),
                        whole,
                        operand.depth,
                    ),
                }
            }
            Link::Op(..) => return None,
        };
        let mut compared: Option<Span> = None;
        while let Some(Link::Op(op, at)) = row.front() {
            let (op, at) = (*op, *at);
            let own = binding(op);
            if own < least {
                break;
            }
            row.pop_front();
            if own == COMPARE
                && let Some(before) = compared.replace(at)
            {
                self.error(
                    Diagnostic::error(codes::COMPARISON_CHAIN, "comparisons cannot be chained")
                        .at(self.source, at, "second comparison")
                        .at(self.source, before, "first comparison")
                        .hint("write `a < b and b < c`"),
                );
            }
            self.closed(&left);
            // A power's exponent may have a sign and further powers.
            let least = if op == BinaryOp::Pow { SIGN } else { own + 1 };
            let right = self.climb(row, least, level + 1)?;
            self.closed(&right);
            let span = left.expr.span.to(right.expr.span);
            let below = left.depth.max(right.depth);
            left = self.above(
                ExprKind::Binary(op, Box::new(left.expr), Box::new(right.expr)),
                span,
                below,
            );
        }
        Some(left)
    }

    fn closed(&mut self, operand: &Deep) {
        if operand.open_if {
            self.needs_parentheses("if", operand.expr.span);
        }
    }

    fn needs_parentheses(&mut self, word: &str, span: Span) {
        self.error(
            Diagnostic::error(
                codes::NEEDS_PARENTHESES,
                format!("`{word}` as an operand needs parentheses"),
            )
            .at(self.source, span, "an operand here")
            .hint(format!("write `({word} ...)`")),
        );
    }

    fn operand(&mut self, pair: Pair<'_, Rule>, row: &mut VecDeque<Link>) -> Option<()> {
        let mut operand: Option<Deep> = None;
        for part in parts(pair) {
            let span = self.span(&part);
            let Some(inner) = operand.take() else {
                if part.as_rule() == Rule::prefix {
                    let prefix = match part.as_str() {
                        "+" => Prefix::Plus,
                        "-" => Prefix::Minus,
                        _ => Prefix::Not,
                    };
                    row.push_back(Link::Prefix(prefix, span));
                } else {
                    operand = Some(self.primary(part)?);
                }
                continue;
            };
            self.closed(&inner);
            let whole = inner.expr.span.to(span);
            let below = inner.depth;
            let base = Box::new(inner.expr);
            let (kind, below) = match part.as_rule() {
                Rule::member => (ExprKind::Member(base, self.name(first(part)?)), below),
                Rule::level => (ExprKind::Level(base, level(part)?), below),
                Rule::offset => {
                    let (offsets, depth) = self.deep_list(part)?;
                    (ExprKind::Offset(base, offsets), below.max(depth))
                }
                _ => {
                    let (args, depth) = self.deep_args(part)?;
                    (ExprKind::Call { callee: base, args }, below.max(depth))
                }
            };
            operand = Some(self.above(kind, whole, below));
        }
        row.push_back(Link::Operand(operand?));
        Some(())
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Option<Deep> {
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::number => {
                let value = self.number(pair.as_str(), span);
                Some(self.above(ExprKind::Number(value), span, 0))
            }
            Rule::string => {
                // The source's own text: in the grammar's, nothing inside of strings differs.
                let end = (span.end as usize).saturating_sub(1);
                let text = self.text(span.start as usize + 1, end).to_string();
                Some(self.above(ExprKind::Text(text), span, 0))
            }
            Rule::paren => {
                let mut inner = self.deep(first(pair)?)?;
                // The parentheses belong to the expression's place.
                inner.expr.span = span;
                inner.open_if = false;
                Some(inner)
            }
            Rule::list => {
                let (elements, depth) = self.deep_list(pair)?;
                Some(self.above(ExprKind::List(elements), span, depth))
            }
            Rule::if_expr => {
                let mut parts = parts(pair);
                let condition = self.deep(parts.next()?)?;
                let then = self.deep(parts.next()?)?;
                let otherwise = self.deep(parts.next()?)?;
                let depth = condition.depth.max(then.depth).max(otherwise.depth);
                let kind = ExprKind::If {
                    condition: Box::new(condition.expr),
                    then: Box::new(then.expr),
                    otherwise: Box::new(otherwise.expr),
                };
                Some(Deep {
                    open_if: true,
                    ..self.above(kind, span, depth)
                })
            }
            _ => {
                let mut names: Vec<_> = parts(pair).map(|name| self.name(name)).collect();
                let kind = if names.len() == 1 {
                    ExprKind::Name(names.pop()?.node)
                } else {
                    ExprKind::Path(names)
                };
                Some(self.above(kind, span, 0))
            }
        }
    }

    fn deep_list(&mut self, pair: Pair<'_, Rule>) -> Option<(Vec<Expr>, u32)> {
        let mut depth = 0;
        let mut exprs = Vec::new();
        for part in parts(pair) {
            let deep = self.deep(part)?;
            depth = depth.max(deep.depth);
            exprs.push(deep.expr);
        }
        Some((exprs, depth))
    }

    fn deep_args(&mut self, pair: Pair<'_, Rule>) -> Option<(Vec<Arg>, u32)> {
        let mut depth = 0;
        let mut args = Vec::new();
        for arg in parts(pair) {
            let mut name = None;
            for part in parts(arg) {
                if part.as_rule() == Rule::arg_name {
                    name = Some(self.name(first(part)?));
                } else {
                    let deep = self.deep(part)?;
                    depth = depth.max(deep.depth);
                    args.push(Arg {
                        name: name.take(),
                        value: deep.expr,
                    });
                }
            }
        }
        Some((args, depth))
    }

    pub(super) fn args(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Arg>> {
        Some(self.deep_args(pair)?.0)
    }

    fn number(&mut self, text: &str, span: Span) -> f64 {
        let value: f64 = text.parse().unwrap_or(f64::NAN);
        let digits = text.split(['e', 'E']).next().unwrap_or("");
        let zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
        let problem = if !value.is_finite() {
            "too large"
        } else if value == 0.0 && !zero {
            "too small"
        } else {
            return value;
        };
        self.error(
            Diagnostic::error(
                codes::NUMBER_RANGE,
                format!("`{}` is {problem}", shorten(text)),
            )
            .at(self.source, span, "does not fit a double-precision number")
            .hint("the largest number is about 1.8e308, the smallest above zero about 4.9e-324"),
        );
        0.0
    }
}
